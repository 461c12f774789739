#include "scheduler/ruler_place.h"

#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_family.h"
#include "scheduler/ruler_intern.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_prefix.h"

#define DEAD_RESULT_MS 86400000 /* how long the result of a dead job is kept */
#define DELAY_MS_MIN   20       /* a job due so soon goes straight into its list */
#define PREFIX_MS      10000 /* so long a job waits for its named prefix: DATAPATH 19 */
#define LOOK_MS        1000  /* until the first look for it */

/* ---- one job --------------------------------------------------------------------- */

/* What a producer gets for a job that ends here. */
static void
append_dead_result(struct buffer *out, struct span id, const struct ruler_job *job)
{
	(void)buffer_append(out, SPAN("{\"id\":"));
	(void)buffer_append_json(out, id);
	(void)buffer_append(out, SPAN(",\"state\":\"dead\",\"reason\":"));
	(void)buffer_append_json(out, span_from(job->reason));
	(void)buffer_append(out, SPAN(",\"text\":"));
	(void)buffer_append_json(out, span_from(job->text));
	if (job->envelope && job->envelope->ref.len > 0) {
		(void)buffer_append(out, SPAN(",\"ref\":"));
		(void)buffer_append_json(out, job->envelope->ref);
	}
	if (job->envelope && job->envelope->traceparent.len > 0) {
		(void)buffer_append(out, SPAN(",\"traceparent\":"));
		(void)buffer_append_json(out, job->envelope->traceparent);
	}
	(void)buffer_append_byte(out, '}');
}

static void
add_dead(struct ruler *ruler, struct protocol_job_id id, const struct ruler_job *job)
{
	struct ruler_admit *admit = &ruler->admit;
	char text[PROTOCOL_JOB_ID_SIZE];
	struct span name = { text, protocol_print_job_id(id, text) };
	struct ruler_note about = { 0 };
	size_t from;

	ruler_batch_word(admit, RULER_GROUP_DEAD, name);
	ruler_batch_word(admit, RULER_GROUP_DEAD, span_from(job->reason));
	ruler_batch_word(admit, RULER_GROUP_DEAD, span_from(job->text));
	from = admit->bytes.len;
	/* Empty bytes of a whole entry: it is moved inside Redis, whatever its size. */
	if (job->raw.data)
		(void)buffer_append(&admit->bytes, job->raw);
	else if (id.part > 0 && job->envelope)
		ruler_job_payload(&admit->reader, job, &admit->bytes);
	ruler_batch_tail(admit, RULER_GROUP_DEAD, from);
	ruler_batch_word(admit, RULER_GROUP_DEAD, job->reply);
	ruler_batch_number(admit, RULER_GROUP_DEAD, DEAD_RESULT_MS);
	from = admit->bytes.len;
	append_dead_result(&admit->bytes, name, job);
	ruler_batch_tail(admit, RULER_GROUP_DEAD, from);
	ruler_batch_item(admit, RULER_GROUP_DEAD);
	about.job = name;
	if (job->envelope) {
		about.route = job->envelope->route;
		about.trace = job->envelope->traceparent;
	}
	ruler_note_about(ruler, RULER_WARNING, &about, "dead at admission: %s: %s",
	                 job->reason, job->text);
}

static void
add_prefix(struct ruler *ruler, struct protocol_job_id id, struct ruler_job *job)
{
	const struct envelope *envelope = job->envelope;
	struct ruler_admit *admit = &ruler->admit;
	struct chain_error error = { "" };
	struct id128 version;

	if (chain_prefix_check(DIALECT_ANTHROPIC, envelope->body, &version, &error) < 0 &&
	    chain_prefix_check(DIALECT_OPENAI_CHAT, envelope->body, &version, &error) <
	            0) {
		ruler_job_bury(job, "malformed", error.text);
		add_dead(ruler, id, job);
		return;
	}
	ruler_batch_word(admit, RULER_GROUP_PREFIXES, envelope->prefix);
	ruler_batch_word(admit, RULER_GROUP_PREFIXES, envelope->body);
	ruler_batch_item(admit, RULER_GROUP_PREFIXES);
	ruler_prefix_put(ruler, envelope->prefix, envelope->body);
}

/* ---- prefixes -------------------------------------------------------------------- */

/* A pinned job wants one version and no other. */
static void
check_pin(struct ruler *ruler, struct span content, struct ruler_job *job)
{
	const struct ruler_upstream *upstream = &ruler->config->upstreams[job->upstream];
	struct span pin = job->envelope->prefix_pin;
	struct chain_error error;
	struct id128 version;
	char hex[ID_HEX_LEN];

	if (pin.len == 0)
		return;
	if (chain_prefix_check(upstream->traits.dialect, content, &version, &error) < 0) {
		ruler_job_bury(job, "malformed", "the named prefix is not valid");
		return;
	}
	id_encode(version, hex);
	if (pin.len > ID_HEX_LEN || memcmp(pin.data, hex, pin.len) != 0)
		ruler_job_bury(
			job, "malformed",
			"prefix changed: the stored version is not the one that the job "
			"pins");
}

static enum ruler_place
find_prefix(struct ruler *ruler, struct ruler_job *job, struct span *ret_content,
            bool *ret_missing, struct call_list *out)
{
	struct span name = job->envelope->prefix;
	int err;

	*ret_content = (struct span){ NULL, 0 };
	*ret_missing = false;
	if (name.len == 0)
		return RULER_PLACE_TAKEN;
	err = ruler_prefix_find(ruler, name, ret_content);
	if (err == ERR_AGAIN) {
		/* What this batch puts is in Redis behind it only. */
		if (ruler_batch_puts(&ruler->admit) || !ruler_fits(out, 4, 512))
			return RULER_PLACE_FULL;
		ruler_prefix_ask(ruler, name, out);
		return RULER_PLACE_WAITS;
	}
	*ret_missing = err == ERR_NOT_FOUND;
	if (err == 0)
		check_pin(ruler, *ret_content, job);
	return RULER_PLACE_TAKEN;
}

/* ---- into the batch -------------------------------------------------------------- */

static void
add_slim(struct ruler_admit *admit, enum ruler_group group, const struct ruler_job *job)
{
	size_t from = admit->bytes.len;

	ruler_job_payload(&admit->reader, job, &admit->bytes);
	ruler_batch_tail(admit, group, from);
	ruler_batch_item(admit, group);
}

static void
add_deadline(struct ruler_admit *admit, struct span name, const struct ruler_job *job)
{
	if (job->envelope->deadline_ms == ENVELOPE_NO_TIME)
		return;
	ruler_batch_word(admit, RULER_GROUP_DEADLINES, name);
	ruler_batch_number(admit, RULER_GROUP_DEADLINES, job->envelope->deadline_ms);
	ruler_batch_item(admit, RULER_GROUP_DEADLINES);
}

/* `family` none: nobody knows yet where it belongs. */
static void
add_later(struct ruler_admit *admit, struct span name, uint64_t due_ms,
          struct id128 family, const struct ruler_job *job)
{
	char letter = protocol_band_letter((enum protocol_band)job->band);
	size_t from;

	ruler_batch_word(admit, RULER_GROUP_LATER, name);
	ruler_batch_number(admit, RULER_GROUP_LATER, due_ms);
	from = admit->bytes.len;
	if (!id_is_none(family))
		(void)buffer_append_id(&admit->bytes, family);
	ruler_batch_tail(admit, RULER_GROUP_LATER, from);
	ruler_batch_word(admit, RULER_GROUP_LATER,
	                 job->now ? SPAN("now") : (struct span){ &letter, 1 });
	add_slim(admit, RULER_GROUP_LATER, job);
}

static void
add_run(struct ruler *ruler, uint64_t now_ms, struct protocol_job_id id, uint32_t place,
        const struct ruler_job *job, bool odd, bool *ret_slim)
{
	struct ruler_admit *admit = &ruler->admit;
	struct protocol_element element = { .id = id, .slim = job->slim };
	char text[PROTOCOL_JOB_ID_SIZE];
	struct span name = { text, protocol_print_job_id(id, text) };

	add_deadline(admit, name, job);
	*ret_slim = true;
	if (job->envelope->not_before_ms > now_ms + DELAY_MS_MIN) {
		(void)ruler_batch_family(ruler, place);
		add_later(admit, name, job->envelope->not_before_ms, job->family, job);
		return;
	}
	if (odd) {
		element.has_estimate = true;
		element.input = (uint64_t)job->input_tokens +
		                ruler->known.families[place].ungated;
		element.output = job->output_tokens;
	}
	if (job->slim) {
		ruler_batch_word(admit, RULER_GROUP_SLIMS, name);
		add_slim(admit, RULER_GROUP_SLIMS, job);
	}
	ruler_batch_push(ruler, place,
	                 job->now ? EVENT_LIST_NOW : (enum event_list)job->band,
	                 &element);
	*ret_slim = job->slim;
}

/* The inbox never waits for a prefix; the job does, for a while. */
static void
add_undecided(struct ruler_admit *admit, uint64_t now_ms, struct protocol_job_id id,
              const struct ruler_job *job)
{
	char text[PROTOCOL_JOB_ID_SIZE];
	struct span name = { text, protocol_print_job_id(id, text) };

	add_deadline(admit, name, job);
	add_later(admit, name, now_ms + LOOK_MS, ID_NONE, job);
}

static void
note_trace(struct ruler *ruler, struct protocol_job_id id, const struct ruler_job *job)
{
	char text[PROTOCOL_JOB_ID_SIZE];

	if (job->envelope && job->envelope->trace_ignored)
		ruler_note_job(ruler, RULER_WARNING,
		               (struct span){ text, protocol_print_job_id(id, text) },
		               job->envelope->route,
		               "its traceparent is none of W3C's: the job goes on "
		               "without a trace");
}

/* A job that has an upstream, and its prefix if it wants one. */
static enum ruler_place
place_run(struct ruler *ruler, uint64_t now_ms, struct protocol_job_id id, bool told,
          struct ruler_job *job, bool *ret_slim, struct call_list *out)
{
	int err = ruler_intern_job(ruler, job, out);
	uint32_t place;
	bool fresh, odd;

	if (err < 0)
		return err == ERR_AGAIN ? RULER_PLACE_WAITS : RULER_PLACE_FULL;
	place = ruler_known_family(&ruler->known, job->family, &fresh);
	odd = ruler_family_update(ruler, now_ms, place, job, fresh, told);
	add_run(ruler, now_ms, id, place, job, odd, ret_slim);
	if (!told)
		note_trace(ruler, id, job);
	return RULER_PLACE_TAKEN;
}

/* The age of a job is that of its id; one from the future has none, and cannot wait. */
static bool
may_wait(struct protocol_job_id id, uint64_t now_ms)
{
	return id.ms <= now_ms + PREFIX_MS && id.ms + PREFIX_MS > now_ms;
}

enum ruler_place
ruler_place_job(struct ruler *ruler, uint64_t now_ms, struct protocol_job_id id,
                bool told, struct ruler_job *job, bool *ret_slim, struct call_list *out)
{
	struct span prefix = { NULL, 0 };
	bool missing = false;

	*ret_slim = true;
	if (job->kind == RULER_JOB_RUN) {
		enum ruler_place verdict =
			find_prefix(ruler, job, &prefix, &missing, out);

		if (verdict != RULER_PLACE_TAKEN)
			return verdict;
	}
	if (missing && may_wait(id, now_ms)) {
		if (job->raw.data)
			return RULER_PLACE_LATER;
		add_undecided(&ruler->admit, now_ms, id, job);
		return RULER_PLACE_TAKEN;
	}
	if (missing)
		ruler_job_bury(
			job, "prefix_missing",
			ruler_prefix_why(ruler, job->envelope->prefix, id.ms > now_ms));
	if (job->kind == RULER_JOB_RUN)
		ruler_job_identify(&ruler->admit.reader, prefix, job);
	if (job->kind == RULER_JOB_RUN)
		return place_run(ruler, now_ms, id, told, job, ret_slim, out);
	if (job->kind == RULER_JOB_PREFIX) {
		add_prefix(ruler, id, job);
		return RULER_PLACE_TAKEN;
	}
	add_dead(ruler, id, job);
	*ret_slim = id.part > 0; /* a whole entry is moved by the function */
	return RULER_PLACE_TAKEN;
}

void
ruler_place_dead(struct ruler *ruler, const struct ruler_entry *entry)
{
	struct ruler_job job = {
		.kind = RULER_JOB_DEAD,
		.reason = "malformed",
		.text = "parser: the scheduler died, or Redis refused, each time this "
			"entry "
			"was looked at",
		.reply = SPAN(""),
	};
	struct protocol_job_id id = { 0 };

	if (protocol_parse_job_id(entry->id, &id) == 0)
		add_dead(ruler, id, &job);
}
