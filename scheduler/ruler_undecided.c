#include "scheduler/ruler_undecided.h"

#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_intern.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_place.h"
#include "scheduler/ruler_rule.h"

#define PREFIX_MS 100 /* so long what is known of a named prefix is good for them */

static struct protocol_job_id *
id_at(struct ruler_undecided *undecided, uint32_t i)
{
	return &undecided->ids[(undecided->first + i) % RULER_UNDECIDED_MAX];
}

void
ruler_undecided_clear(struct ruler *ruler)
{
	ruler->undecided.first = 0;
	ruler->undecided.count = 0;
	ruler->undecided.asked_ms = 0;
	ruler->undecided.fetching = false;
	ruler->undecided.ready = false;
	ruler->undecided.sent = false;
	ruler->undecided.told = false;
}

void
ruler_undecided_add(struct ruler *ruler, struct span text)
{
	struct ruler_undecided *undecided = &ruler->undecided;
	struct protocol_job_id id;

	if (undecided->count == RULER_UNDECIDED_MAX ||
	    protocol_parse_job_id(text, &id) < 0)
		return;
	for (uint32_t i = 0; i < undecided->count; i++) {
		const struct protocol_job_id *other = id_at(undecided, i);

		if (other->ms == id.ms && other->sequence == id.sequence &&
		    other->part == id.part)
			return;
	}
	*id_at(undecided, undecided->count++) = id;
}

static void
pop(struct ruler_undecided *undecided)
{
	VERIFY(undecided->count > 0);
	undecided->count--;
	undecided->first = (undecided->first + 1) % RULER_UNDECIDED_MAX;
	undecided->ready = false;
	undecided->sent = false;
	undecided->told = false;
}

static void
fetch(struct ruler *ruler, struct call_list *out)
{
	char key[5 + PROTOCOL_JOB_ID_SIZE + 1] = "slim:";
	size_t len = protocol_print_job_id(*id_at(&ruler->undecided, 0), key + 5);

	key[5 + len] = '\0';
	call_begin(out, ruler_tag(ruler, RULER_CALL_UNDECIDED, 0));
	call_text(out, "GET");
	protocol_call_key(out, ruler->config->ns, key);
	ruler->undecided.fetching = true;
}

void
ruler_undecided_on_payload(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                           const struct reply *reply)
{
	struct ruler_undecided *undecided = &ruler->undecided;

	(void)index;
	undecided->fetching = false;
	if (reply->kind != REPLY_TEXT) { /* cancelled, or expired */
		pop(undecided);
		return;
	}
	buffer_clear(&undecided->payload);
	(void)buffer_append(&undecided->payload, reply->text);
	undecided->ready = true;
	if (now_ms >= undecided->asked_ms && now_ms - undecided->asked_ms < PREFIX_MS)
		return;
	undecided->asked_ms = now_ms;
	ruler->page_serial++; /* prefixes have to be asked for anew */
}

/* ---- placing --------------------------------------------------------------------- */

static bool
may_place(const struct ruler *ruler)
{
	return ruler->undecided.ready && ruler->phase == RULER_RULING && ruler->admits &&
	       !ruler->admit.sent && ruler->admit.waits == 0 &&
	       ruler_core_room(ruler) >= RULER_QUEUE_MAX / 2;
}

static bool
may_fetch(const struct ruler *ruler)
{
	const struct ruler_undecided *undecided = &ruler->undecided;

	return undecided->count > 0 && !undecided->fetching && !undecided->ready &&
	       ruler->phase == RULER_RULING;
}

bool
ruler_undecided_is_due(const struct ruler *ruler)
{
	return may_place(ruler) || may_fetch(ruler);
}

static void
send(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;
	char text[PROTOCOL_JOB_ID_SIZE];
	size_t len = protocol_print_job_id(*id_at(&ruler->undecided, 0), text);

	ruler_batch_word(admit, RULER_GROUP_DECIDED, (struct span){ text, len });
	ruler_batch_item(admit, RULER_GROUP_DECIDED);
	if (!ruler_batch_fits(ruler, out)) {
		VERIFY(out->call_count > 0);
		return; /* begun anew at the next step */
	}
	admit->to = admit->stored; /* the cursor stays where it is */
	ruler_batch_send(ruler, out);
	admit->sent = true;
	ruler->undecided.sent = true;
	if (!ruler->undecided.told)
		ruler_batch_tell(ruler, now_ms);
	ruler->undecided.told = true;
}

static void
place(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct ruler_undecided *undecided = &ruler->undecided;
	struct ruler_admit *admit = &ruler->admit;
	struct ruler_job job;
	bool slim;

	ruler_intern_undo(ruler);
	ruler_batch_clear(admit);
	admit->open = false; /* the reader is borrowed: its entry is opened again */
	ruler_job_adopt(&admit->reader, buffer_span(&undecided->payload),
	                MIN(id_at(undecided, 0)->ms, now_ms), &job);
	switch (ruler_place_job(ruler, now_ms, *id_at(undecided, 0), undecided->told,
	                        &job, &slim, out)) {
	case RULER_PLACE_TAKEN:
		send(ruler, now_ms, out);
		return;
	case RULER_PLACE_LATER:
		pop(undecided); /* the next line of it comes within a second */
		return;
	case RULER_PLACE_WAITS:
	case RULER_PLACE_FULL:
		return;
	}
}

void
ruler_undecided_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	if (may_place(ruler))
		place(ruler, now_ms, out);
	if (may_fetch(ruler) && ruler_fits(out, 4, 256))
		fetch(ruler, out);
}

void
ruler_undecided_on_admit(struct ruler *ruler, uint64_t now_ms, const struct reply *reply)
{
	struct ruler_undecided *undecided = &ruler->undecided;
	char text[PROTOCOL_JOB_ID_SIZE];
	struct span name = { text, 0 };

	undecided->sent = false;
	switch (protocol_answer_word(reply)) {
	case PROTOCOL_OK:
		ruler_intern_stored(ruler);
		pop(undecided);
		return;
	case PROTOCOL_NEED:
		ruler_admit_need(ruler, reply);
		ruler_intern_undo(ruler);
		return; /* once more, with everything that is missing */
	case PROTOCOL_CURSOR:
		ruler_rule_rebuild(ruler, now_ms);
		return;
	case PROTOCOL_GONE:
		break;
	default:
		name.len = protocol_print_job_id(*id_at(undecided, 0), text);
		ruler_note_job(ruler, RULER_ERROR, name, SPAN(""),
		               "Redis refused to admit an undecided job; it is looked at "
		               "again within a second: %.*s",
		               (int)MIN(reply_text(reply).len, 200),
		               reply_text(reply).data);
		break;
	}
	ruler_intern_undo(ruler);
	pop(undecided);
}
