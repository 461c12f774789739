#include "common/codec/splice.h"

#include "common/codec/splice_parts.h"
#include "common/codec/tape.h"

bool
splice_parts_fit(const struct splice_request *request)
{
	if (request->px_count > PART_NODES_MAX)
		return false;
	for (unsigned i = 0; i < request->px_count; i++) {
		const struct part_px *px = &request->px[i];

		if (px->dialect != request->traits->dialect ||
		    (i > 0 && px->tier <= request->px[i - 1].tier))
			return false;
	}
	return true;
}

/* The member that WarmQ writes as a marker of that class. */
static struct span
our_mark(const struct dialect_traits *traits, enum ttl ttl)
{
	if (traits->markers == MARKER_BREAKPOINT)
		return part_mark_text(PART_MARK_BREAKPOINT);
	return part_mark_text(ttl == TTL_1H ? PART_MARK_1H : PART_MARK_PLAIN);
}

/* Where the body begins in the buffer, and what we add to it. */
struct target {
	struct buffer *out;
	size_t from;
	struct splice_report *report; /* NULL: what is put is not ours */
};

static void
put(const struct target *target, struct span bytes)
{
	(void)buffer_append(target->out, bytes);
}

/* Puts three runs of ours, one edit. */
static void
add(const struct target *target, struct span a, struct span b, struct span c)
{
	struct splice_report *report = target->report;
	size_t at = target->out->len - target->from;

	put(target, a);
	put(target, b);
	put(target, c);
	if (!report)
		return;
	VERIFY(report->edit_count < SPLICE_EDITS_MAX);
	report->edit[report->edit_count++] =
		(struct splice_edit){ .at = at, .len = a.len + b.len + c.len };
}

/* Appends a segment with `mark` at its boundary; an empty mark leaves it as interned. */
static void
put_segment(const struct target *target, const struct part_px *px, struct span mark)
{
	size_t at = 0;

	if (mark.len == 0 || px->mark_at == PART_NOWHERE) {
		put(target, px->segment);
		return;
	}
	if (px->wrap_at != PART_NOWHERE) {
		put(target, (struct span){ px->segment.data, px->wrap_at });
		add(target, SPAN("[{\"type\":\"text\",\"text\":"), SPAN(""), SPAN(""));
		at = px->wrap_at;
	}
	put(target, (struct span){ px->segment.data + at, px->mark_at - at });
	add(target, SPAN(","), mark, px->wrap_at != PART_NOWHERE ? SPAN("}]") : SPAN(""));
	put(target, (struct span){ px->segment.data + px->mark_at,
	                           px->segment.len - px->mark_at });
}

void
splice_parts_put(const struct splice_request *request, const struct part_own *own,
                 struct buffer *out, struct splice_report *report)
{
	struct target target = { .out = out, .from = out->len };

	for (unsigned i = 0; i < request->px_count; i++) {
		const struct part_px *px = &request->px[i];
		bool ours = (report->plan.insert & 1u << i) != 0;

		target.report = ours ? report : NULL;
		put_segment(&target, px,
		            ours ? our_mark(request->traits, px->ttl)
		                 : part_mark_text(own->user[px->tier]));
	}
}

/* The tail as a JSON object: ",…}" or "…}" behind other members, or a whole "{…}". */
struct tail {
	struct tape tape;
	struct buffer text;
	uint32_t stream;
	uint32_t options;
	uint32_t key;
	uint32_t mode;
};

static void
tail_fini(struct tail *tail)
{
	tape_fini(&tail->tape);
	buffer_fini(&tail->text);
}

static int
tail_init(struct tail *tail, struct span bytes)
{
	struct tape_error where;
	int err;

	tape_init(&tail->tape);
	buffer_init(&tail->text, BUFFER_SIZE_DEFAULT);
	if (bytes.len > 0 && bytes.data[0] == ',') {
		bytes.data++;
		bytes.len--;
	}
	if (bytes.len == 0 || bytes.data[0] != '{')
		(void)buffer_append_byte(&tail->text, '{');
	(void)buffer_append(&tail->text, bytes);
	err = buffer_error(&tail->text);
	if (err < 0)
		return err;
	err = tape_parse(&tail->tape, buffer_span(&tail->text), &where);
	if (err < 0)
		return err;
	if (!tape_is(&tail->tape, 0, TAPE_OBJECT))
		return ERR_MALFORMED;
	tail->stream = tape_find(&tail->tape, 0, "stream");
	tail->options = tape_find(&tail->tape, 0, "stream_options");
	tail->key = tape_find(&tail->tape, 0, "prompt_cache_key");
	tail->mode = tape_find(&tail->tape, 0, "prompt_cache_options");
	return 0;
}

static enum splice_was
was(const struct tape *tape, uint32_t at)
{
	if (at == TAPE_NONE)
		return SPLICE_ABSENT;
	return tape_type(tape, at) == TAPE_FALSE  ? SPLICE_FALSE
	       : tape_type(tape, at) == TAPE_NULL ? SPLICE_NULL
	                                          : SPLICE_KEPT;
}

/* Several choices of one request come in an order that cannot be reassembled. */
static bool
has_many_choices(const struct tail *tail)
{
	uint32_t at = tape_find(&tail->tape, 0, "n");
	int64_t n;

	if (at == TAPE_NONE || tape_type(&tail->tape, at) == TAPE_NULL)
		return false;
	return tape_integer(&tail->tape, at, &n) < 0 || n != 1;
}

static void
decide_stream(const struct splice_request *request, const struct tail *tail,
              struct splice_report *report)
{
	report->job_streams = tape_is(&tail->tape, tail->stream, TAPE_TRUE);
	report->streams = report->job_streams;
	if (request->traits->stream && !request->stream_never && !report->job_streams &&
	    !has_many_choices(tail)) {
		report->stream = was(&tail->tape, tail->stream);
		report->streams = report->stream != SPLICE_KEPT;
	}
}

static void
decide_usage(const struct splice_request *request, const struct tail *tail,
             struct splice_report *report)
{
	enum splice_was options = was(&tail->tape, tail->options);

	if (!request->traits->include_usage || !report->streams)
		return;
	if (options == SPLICE_ABSENT)
		report->usage = SPLICE_NO_PARENT;
	else if (options == SPLICE_NULL)
		report->usage = SPLICE_NULL_PARENT;
	else if (tape_is(&tail->tape, tail->options, TAPE_OBJECT))
		report->usage = was(&tail->tape, tape_find(&tail->tape, tail->options,
		                                           "include_usage"));
}

static void
decide_cache(const struct splice_request *request, const struct tail *tail,
             struct splice_report *report)
{
	const struct dialect_traits *traits = request->traits;

	if (traits->cache_key && request->cache_key.len > 0 && tail->key == TAPE_NONE)
		report->key = SPLICE_ABSENT;
	/* Explicit mode stops the provider from writing every job's own end; agents need
	 * those ends, so only requests without a past get it. */
	if (traits->cache_mode && tail->mode == TAPE_NONE && !request->own->turns &&
	    report->plan.wire != 0)
		report->mode = SPLICE_ABSENT;
}

/* Members of stream_options as sent, include_usage true in its place or at the end. */
static void
put_options(struct buffer *out, const struct tail *tail)
{
	const struct tape *tape = &tail->tape;
	bool first = true, done = false;

	(void)buffer_append_byte(out, '{');
	if (tape_is(tape, tail->options, TAPE_OBJECT)) {
		for (uint32_t key = tape_first(tape, tail->options);
		     key < tape_end(tape, tail->options);
		     key = tape_next(tape, key + 1)) {
			bool usage = tape_string_is(tape, key, "include_usage");

			if (!first)
				(void)buffer_append_byte(out, ',');
			(void)buffer_append(out, tape_raw(tape, key));
			(void)buffer_append_byte(out, ':');
			(void)buffer_append(out, usage ? SPAN("true")
			                               : tape_raw(tape, key + 1));
			done = done || usage;
			first = false;
		}
	}
	if (!done)
		(void)buffer_append_text(out, first ? "\"include_usage\":true"
		                                    : ",\"include_usage\":true");
	(void)buffer_append_byte(out, '}');
}

static void
put_member(struct buffer *out, const struct tail *tail, uint32_t key,
           const struct splice_report *report)
{
	const struct tape *tape = &tail->tape;

	(void)buffer_append(out, tape_raw(tape, key));
	(void)buffer_append_byte(out, ':');
	if (key + 1 == tail->stream && report->stream != SPLICE_KEPT)
		(void)buffer_append(out, SPAN("true"));
	else if (key + 1 == tail->options && report->usage != SPLICE_KEPT)
		put_options(out, tail);
	else
		(void)buffer_append(out, tape_raw(tape, key + 1));
}

static bool
needs_comma(const struct target *target)
{
	const struct buffer *out = target->out;

	return out->len > target->from && out->data[out->len - 1] != '{';
}

/* A member of ours at the end of the body. */
static void
add_member(const struct target *target, struct span member)
{
	add(target, needs_comma(target) ? SPAN(",") : SPAN(""), member, SPAN(""));
}

static void
put_tail(const struct target *target, const struct tail *tail,
         const struct splice_request *request)
{
	const struct splice_report *report = target->report;
	const struct tape *tape = &tail->tape;
	struct buffer key_json = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	for (uint32_t key = tape_first(tape, 0); key < tape_end(tape, 0);
	     key = tape_next(tape, key + 1)) {
		if (needs_comma(target))
			put(target, SPAN(","));
		put_member(target->out, tail, key, report);
	}
	if (report->stream == SPLICE_ABSENT)
		add_member(target, SPAN("\"stream\":true"));
	if (report->usage == SPLICE_NO_PARENT)
		add_member(target, SPAN("\"stream_options\":{\"include_usage\":true}"));
	if (report->key == SPLICE_ABSENT) {
		(void)buffer_append_text(&key_json, "\"prompt_cache_key\":");
		(void)buffer_append_json(&key_json, request->cache_key);
		add_member(target, buffer_span(&key_json));
		buffer_fini(&key_json);
	}
	if (report->mode == SPLICE_ABSENT)
		add_member(target,
		           SPAN("\"prompt_cache_options\":{\"mode\":\"explicit\"}"));
	put(target, SPAN("}"));
}

static int
render_opaque(const struct splice_request *request, struct buffer *out)
{
	for (unsigned i = 0; i < request->px_count; i++)
		(void)buffer_append(out, request->px[i].segment);
	(void)buffer_append(out, request->own->own);
	(void)buffer_append(out, request->own->tail);
	return buffer_error(out);
}

int
splice_render(const struct splice_request *request, struct buffer *out,
              struct splice_report *ret_report)
{
	const struct part_own *own = request->own;
	struct splice_report report = { 0 };
	struct marker_request marker = {
		.traits = request->traits,
		.px = request->px,
		.px_count = request->px_count,
		.own = own,
		.want = request->want,
		.never = request->markers_never,
	};
	struct target target = { .out = out, .from = out->len, .report = &report };
	struct tail tail;
	int err;

	if (!splice_parts_fit(request) || own->dialect != request->traits->dialect)
		return ERR_MALFORMED;
	if (own->opaque) {
		*ret_report = report;
		return render_opaque(request, out);
	}
	err = tail_init(&tail, own->tail);
	if (err < 0)
		goto out;
	marker_plan(&marker, &report.plan);
	decide_stream(request, &tail, &report);
	decide_usage(request, &tail, &report);
	decide_cache(request, &tail, &report);

	splice_parts_put(request, own, out, &report);
	put(&target, own->own);
	if (out->len == target.from)
		put(&target, SPAN("{"));
	put_tail(&target, &tail, request);
	err = buffer_error(out);
	if (err == 0)
		*ret_report = report;
out:
	tail_fini(&tail);
	return err;
}
