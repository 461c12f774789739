#include "common/codec/splice.h"

#include "common/codec/splice_parts.h"
#include "common/codec/tape.h"

#define PLACEHOLDER "{\"role\":\"user\",\"content\":\".\"}"

static uint32_t
all_flags(const struct splice_request *request)
{
	uint32_t flags = 0;

	for (unsigned i = 0; i < request->px_count; i++)
		flags |= request->px[i].flags;
	return flags;
}

static enum splice_refusal
refusal(const struct splice_request *request)
{
	const struct part_px *last = &request->px[request->px_count - 1];
	uint32_t flags = all_flags(request);
	bool messages = last->tier == TIER_MESSAGES;

	if (request->traits->call == CALL_NONE)
		return SPLICE_CALL_NONE;
	if (last->end == PART_BYTES)
		return SPLICE_CALL_RAW;
	if (request->traits->markers != MARKER_NONE && last->mark_at == PART_NOWHERE &&
	    !(last->flags & PART_FIXED))
		return SPLICE_CALL_UNMARKED;
	if (flags & PART_THINKING)
		return SPLICE_CALL_THINKING;
	if (flags & PART_FORMAT)
		return SPLICE_CALL_FORMAT;
	if (flags & PART_CONTEXT)
		return SPLICE_CALL_CONTEXT;
	if (flags & PART_HELD)
		return SPLICE_CALL_HELD;
	if (flags & PART_CITATIONS)
		return SPLICE_CALL_CITATIONS;
	if (messages && (last->flags & PART_FORCED))
		return SPLICE_CALL_TOOL;
	if (messages && (last->flags & PART_IMAGE))
		return SPLICE_CALL_IMAGE;
	if (messages && (last->flags & PART_TOOL_USE))
		return SPLICE_CALL_TOOL_USE;
	if (messages && (flags & PART_SERVER_TOOL))
		return SPLICE_CALL_SERVER;
	return SPLICE_CALL_OK;
}

/* Ends the messages so that the shared part is followed by as little as the provider
 * takes: nothing after a user turn, else one user turn of a single character. */
static void
put_closing(struct buffer *out, const struct dialect_traits *traits,
            const struct part_px *last)
{
	bool user = last->role == PART_ROLE_USER || last->role == PART_ROLE_NONE;

	if (last->end == PART_CLOSED) {
		if (out->data[out->len - 1] != '{')
			(void)buffer_append_byte(out, ',');
		(void)buffer_append_text(out, "\"messages\":[" PLACEHOLDER "]");
		return;
	}
	if (last->end == PART_BLOCK && user && traits->placeholder)
		(void)buffer_append_text(out, ",{\"type\":\"text\",\"text\":\".\"}");
	(void)buffer_append_text(out, last->end == PART_BLOCK ? "]}" : "}");
	if (!user)
		(void)buffer_append_text(out, "," PLACEHOLDER);
	(void)buffer_append_byte(out, ']');
}

static bool
is_in(const struct tape *tape, const struct tape *other, uint32_t key)
{
	struct span raw = tape_raw(tape, key);

	for (uint32_t i = tape_first(other, 0); i < tape_end(other, 0);
	     i = tape_next(other, i + 1))
		if (span_equals(raw, tape_raw(other, i)))
			return true;
	return false;
}

/* The settings of all nodes; where two say the same key, the deeper one is complete. */
static int
put_settings(struct buffer *out, const struct splice_request *request)
{
	struct tape tape[PART_NODES_MAX];
	struct tape_error where;
	int err = 0;

	for (unsigned i = 0; i < request->px_count; i++)
		tape_init(&tape[i]);
	for (unsigned i = 0; i < request->px_count && err == 0; i++) {
		err = tape_parse(&tape[i], request->px[i].settings, &where);
		if (err == 0 && !tape_is(&tape[i], 0, TAPE_OBJECT))
			err = ERR_MALFORMED;
	}
	for (unsigned i = request->px_count; err == 0 && i-- > 0;) {
		for (uint32_t key = tape_first(&tape[i], 0); key < tape_end(&tape[i], 0);
		     key = tape_next(&tape[i], key + 1)) {
			bool covered = false;

			for (unsigned k = i + 1; k < request->px_count; k++)
				covered = covered || is_in(&tape[i], &tape[k], key);
			if (covered)
				continue;
			(void)buffer_append_byte(out, ',');
			(void)buffer_append(out, tape_raw(&tape[i], key));
			(void)buffer_append_byte(out, ':');
			(void)buffer_append(out, tape_raw(&tape[i], key + 1));
		}
	}
	for (unsigned i = 0; i < request->px_count; i++)
		tape_fini(&tape[i]);
	return err;
}

int
splice_call(const struct splice_request *request, struct buffer *out,
            struct splice_report *ret_report, enum splice_refusal *ret_refusal)
{
	struct splice_report report = { 0 };
	struct part_own none = { .dialect = request->traits->dialect };
	const struct part_px *last;
	enum splice_refusal why;
	struct marker_request marker = {
		.traits = request->traits,
		.px = request->px,
		.px_count = request->px_count,
		.own = &none,
		.want = request->want,
		.never = request->markers_never,
	};
	int err;

	if (request->px_count == 0 || !splice_parts_fit(request))
		return ERR_MALFORMED;
	last = &request->px[request->px_count - 1];
	why = refusal(request);
	if (why != SPLICE_CALL_OK) {
		*ret_report = report;
		*ret_refusal = why;
		return 0;
	}
	marker.want |= 1u << (request->px_count - 1);
	marker_plan(&marker, &report.plan);
	if (request->traits->markers != MARKER_NONE &&
	    !(report.plan.wire & 1u << (request->px_count - 1))) {
		*ret_report = report;
		*ret_refusal = SPLICE_CALL_UNMARKED;
		return 0;
	}
	splice_parts_put(request, &none, out, &report);
	put_closing(out, request->traits, last);
	err = put_settings(out, request);
	if (err < 0)
		return err;
	(void)buffer_append_text(out, request->traits->call == CALL_ZERO
	                                      ? ",\"max_tokens\":0}"
	                                      : ",\"max_tokens\":1}");
	err = buffer_error(out);
	if (err < 0)
		return err;
	*ret_report = report;
	*ret_refusal = SPLICE_CALL_OK;
	return 0;
}

const char *
splice_refusal_text(enum splice_refusal refusal_code)
{
	switch (refusal_code) {
#define X(name, text) \
	case name:    \
		return text;
		SPLICE_REFUSAL_LIST(X)
#undef X
	case SPLICE_REFUSAL_COUNT:
		break;
	}
	return "unknown";
}
