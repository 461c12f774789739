#include "scheduler/ruler_admit.h"

#include "common/text.h"
#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_inbox.h"
#include "scheduler/ruler_intern.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_place.h"
#include "scheduler/ruler_rule.h"
#include "scheduler/ruler_scout.h"
#include "scheduler/ruler_undecided.h"

#define PARSE_BYTES  (1u << 20) /* of one batch: a few ms */
#define ISOLATED_MAX 500        /* entries that go one by one after a death */
#define REFUSALS_MAX 3
#define BURIAL_MS    60000 /* from one culprit to the next, if nobody else gets in */

int
ruler_admit_open(struct ruler *ruler)
{
	ruler_job_init(&ruler->admit.reader, ruler->config);
	ruler_job_init(&ruler->admit.scout, ruler->config);
	return ruler_batch_open(&ruler->admit);
}

void
ruler_admit_close(struct ruler *ruler)
{
	ruler_job_fini(&ruler->admit.reader);
	ruler_job_fini(&ruler->admit.scout);
	ruler_batch_close(&ruler->admit);
}

static void
go_to(struct ruler_admit *admit, uint32_t entry, uint32_t job)
{
	admit->entry = admit->entry_from = entry;
	admit->job = admit->job_from = job;
	admit->open = false;
}

void
ruler_admit_clear(struct ruler *ruler)
{
	struct ruler_admit *admit = &ruler->admit;

	ruler_batch_clear(admit);
	go_to(admit, 0, 0);
	admit->entry_fed = 0;
	admit->job_fed = 0;
	admit->sent = false;
	admit->waits = 0;
	ruler_intern_forget(admit);
	admit->noted = false;
	admit->stored = (struct ruler_cursor){ "0-0", 0 };
	ruler_undecided_clear(ruler);
}

static void
parse_cursor(struct span *text, struct ruler_cursor *cursor)
{
	struct span entry = SPAN("0-0"), n = SPAN("0");

	(void)protocol_cut(text, ' ', &entry);
	(void)protocol_cut(text, ' ', &n);
	*cursor = (struct ruler_cursor){ { 0 }, 0 };
	ruler_copy(cursor->entry, sizeof(cursor->entry), entry);
	if (text_parse_unsigned(n, UINT32_MAX, &cursor->n) < 0)
		cursor->n = 0;
}

void
ruler_admit_set_cursor(struct ruler *ruler, struct span text)
{
	if (text.len > 0)
		parse_cursor(&text, &ruler->admit.stored);
}

/* ---- deaths at one cursor -------------------------------------------------------- */

static bool
is_same(const struct ruler_cursor *a, const struct ruler_cursor *b)
{
	return strcmp(a->entry, b->entry) == 0 && a->n == b->n;
}

bool
ruler_admit_is_elsewhere(const struct ruler *ruler, struct span text)
{
	struct ruler_cursor stored;

	if (text.len == 0 || !ruler->admits || ruler->phase != RULER_RULING)
		return false;
	parse_cursor(&text, &stored);
	return !is_same(&stored, &ruler->admit.stored);
}

void
ruler_admit_set_tries(struct ruler *ruler, struct span text)
{
	struct ruler_admit *admit = &ruler->admit;
	struct ruler_cursor last;
	struct span count = SPAN("0"), state = SPAN("-");
	uint64_t tries = 0;

	admit->tries = 1;
	admit->isolates = false;
	admit->kills = false;
	admit->refusals = 0;
	if (text.len == 0)
		return;
	parse_cursor(&text, &last);
	(void)protocol_cut(&text, ' ', &count);
	(void)protocol_cut(&text, ' ', &state);
	if (text_parse_unsigned(count, UINT32_MAX / 2, &tries) < 0)
		tries = 0;
	if (!is_same(&admit->stored, &last))
		return;
	/* Who lost the connection and took the rule again has not died. */
	admit->tries = (uint32_t)tries + !is_same(&admit->announced, &last);
	admit->isolates = admit->tries > RULER_TRIES_MAX;
	admit->isolated = ISOLATED_MAX;
	admit->kills = admit->isolates && span_equals(state, SPAN("parsing")) &&
	               !is_same(&admit->survived, &last);
	if (admit->isolates)
		ruler_note(ruler, RULER_WARNING,
		           "schedulers began %u times at entry %s of the inbox and "
		           "admitted nothing behind it, as if they died of it: "
		           "entries go one by one now",
		           admit->tries, admit->stored.entry);
}

static void
write_try(struct ruler *ruler, enum ruler_call kind, const char *state,
          struct call_list *out)
{
	const struct ruler_admit *admit = &ruler->admit;
	struct buffer *text = &ruler->text;

	buffer_clear(text);
	(void)buffer_append_format(text, "%s %llu %u %s", admit->stored.entry,
	                           (unsigned long long)admit->stored.n, admit->tries,
	                           state);
	call_begin(out, ruler_tag(ruler, kind, 0));
	call_text(out, "HSET");
	protocol_call_key(out, ruler->config->ns, "meta");
	call_text(out, "admit_try");
	call_word(out, buffer_span(text));
}

void
ruler_admit_announce(struct ruler *ruler, struct call_list *out)
{
	ruler->admit.announced = ruler->admit.stored;
	write_try(ruler, RULER_CALL_NOTE, ruler->admit.kills ? "parsing" : "-", out);
}

void
ruler_admit_answered(struct ruler *ruler)
{
	VERIFY(ruler->admit.waits > 0);
	ruler->admit.waits--;
}

void
ruler_admit_on_try(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                   const struct reply *reply)
{
	(void)now_ms;
	(void)index;
	(void)reply;
	ruler_admit_answered(ruler);
	ruler->admit.noted = true;
}

/* Whether the core knows of the job already: the batch is sent once more. */
static bool
is_told(const struct ruler_admit *admit)
{
	return admit->entry < admit->entry_fed ||
	       (admit->entry == admit->entry_fed && admit->job < admit->job_fed);
}

static struct protocol_job_id
job_id(const struct ruler_admit *admit, const struct ruler_entry *entry)
{
	struct protocol_job_id id = { 0 };
	int err = protocol_parse_job_id(entry->id, &id);

	VERIFY(err == 0);
	if (admit->reader.is_pack)
		id.part = admit->job + 1;
	return id;
}

static void
add_gone(struct ruler_admit *admit, const struct ruler_entry *entry)
{
	ruler_batch_word(admit, RULER_GROUP_GONE, entry->id);
	ruler_batch_item(admit, RULER_GROUP_GONE);
}

/* ---- one batch ------------------------------------------------------------------- */

static void
leave_entry(struct ruler_admit *admit)
{
	admit->entry++;
	admit->job = 0;
	admit->open = false;
}

/* Jobs of the entry until it ends or something stops. */
static enum ruler_place
add_entry(struct ruler *ruler, uint64_t now_ms, const struct ruler_page *page,
          struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;
	const struct ruler_entry *entry = &page->entries[admit->entry];
	struct ruler_job job;
	uint32_t count = admit->reader.count;
	bool slim = false;

	if (admit->kills) {
		admit->kills = false;
		admit->buries = true;
		admit->buried_ms = now_ms;
		ruler_place_dead(ruler, entry);
		leave_entry(admit);
		return RULER_PLACE_TAKEN;
	}
	if (!admit->open) {
		/* "+1s" of an id from the future counts from now. */
		count = ruler_job_open(&admit->reader, page->pairs + entry->pairs_from,
		                       entry->pairs_count, MIN(entry->ms, now_ms));
		admit->open = true;
	}
	while (admit->job < count) {
		enum ruler_place verdict;

		if (!ruler_batch_has_room(admit))
			return RULER_PLACE_FULL;
		ruler_job_read(&admit->reader, admit->job, &job);
		verdict = ruler_place_job(ruler, now_ms, job_id(admit, entry),
		                          is_told(admit), &job, &slim, out);
		if (verdict != RULER_PLACE_TAKEN)
			return verdict;
		admit->job++;
		if (admit->job == admit->job_fed && admit->entry == admit->entry_fed)
			return RULER_PLACE_FULL; /* a batch is told to the core as a whole
			                or not at all */
	}
	if (slim)
		add_gone(admit, entry);
	leave_entry(admit);
	return RULER_PLACE_TAKEN;
}

static uint32_t
entry_bytes(const struct ruler_page *page, uint32_t at)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < page->entries[at].pairs_count; i++)
		bytes += page->pairs[page->entries[at].pairs_from + i].value.len;
	return (uint32_t)MIN(bytes, UINT32_MAX / 2);
}

static void
build(struct ruler *ruler, uint64_t now_ms, const struct ruler_page *page,
      struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;

	ruler_intern_undo(ruler); /* of a batch that was begun and not sent */
	ruler_batch_clear(admit);
	while (admit->entry < page->entries_count) {
		if (admit->entry > admit->entry_from &&
		    (admit->isolates || !ruler_batch_has_room(admit) ||
		     admit->parsed_bytes > PARSE_BYTES ||
		     (admit->entry == admit->entry_fed && admit->job_fed == 0)))
			return;
		admit->parsed_bytes += entry_bytes(page, admit->entry);
		if (add_entry(ruler, now_ms, page, out) != RULER_PLACE_TAKEN)
			return;
	}
}

static bool
has_moved(const struct ruler_admit *admit)
{
	return admit->entry != admit->entry_from || admit->job != admit->job_from;
}

static void
set_target(struct ruler_admit *admit, const struct ruler_page *page)
{
	/* n 0 says "all of it": a finished entry is named by its id alone. */
	uint32_t at = admit->job > 0 ? admit->entry : admit->entry - 1;

	admit->to = (struct ruler_cursor){ { 0 }, admit->job };
	ruler_copy(admit->to.entry, sizeof(admit->to.entry), page->entries[at].id);
}

static bool
is_fed(const struct ruler_admit *admit)
{
	return admit->entry_from < admit->entry_fed ||
	       (admit->entry_from == admit->entry_fed &&
	        admit->job_from < admit->job_fed);
}

static void
send(struct ruler *ruler, uint64_t now_ms, const struct ruler_page *page,
     struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;

	set_target(admit, page);
	if (admit->noted) /* whatever ends this rule now, the entry did not kill us */
		write_try(ruler, RULER_CALL_NOTE, "-", out);
	ruler_batch_send(ruler, out);
	admit->sent = true;
	if (!is_fed(admit)) {
		ruler_batch_tell(ruler, now_ms);
		admit->entry_fed = admit->entry;
		admit->job_fed = admit->job;
	}
}

static bool
may_build(const struct ruler *ruler)
{
	const struct ruler_admit *admit = &ruler->admit;

	return ruler->phase == RULER_RULING && ruler->admits && !admit->sent &&
	       admit->waits == 0 && ruler->inbox.pages[ruler->inbox.head].full &&
	       ruler_core_room(ruler) >= RULER_QUEUE_MAX / 2;
}

void
ruler_admit_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;
	const struct ruler_page *page;

	if (!ruler_fits(out, RULER_ARGS, RULER_BYTES))
		return;
	ruler_undecided_step(ruler, now_ms, out);
	if (!may_build(ruler))
		return;
	page = ruler_inbox_page(ruler);
	if (admit->isolates && !admit->noted) {
		admit->waits++;
		admit->survived = admit->stored;
		write_try(ruler, RULER_CALL_TRY, "parsing", out);
		return;
	}
	build(ruler, now_ms, page, out);
	if (admit->waits > 0 && !admit->isolates)
		ruler_scout(ruler, now_ms, page, out);
	if (!has_moved(admit))
		return; /* waits for an answer, or for more room in `out` */
	if (ruler_batch_fits(ruler, out)) {
		send(ruler, now_ms, page, out);
		return;
	}
	VERIFY(out->call_count > 0); /* an empty list has room for the largest batch */
	go_to(admit, admit->entry_from, admit->job_from);
}

uint64_t
ruler_admit_deadline(const struct ruler *ruler, uint64_t now_ms)
{
	return may_build(ruler) || ruler_undecided_is_due(ruler) ? now_ms
	                                                         : RULER_DEADLINE_NONE;
}

/* ---- answers --------------------------------------------------------------------- */

static void
accept(struct ruler *ruler)
{
	struct ruler_admit *admit = &ruler->admit;
	const struct ruler_page *page = ruler_inbox_page(ruler);

	ruler->admitted = true;
	admit->stored = admit->to;
	admit->refusals = 0;
	if (!admit->buries)
		admit->buried_ms = 0;
	admit->buries = false;
	admit->noted = false;
	if (admit->isolates && --admit->isolated == 0)
		admit->isolates = false;
	ruler_intern_stored(ruler);
	admit->entry_from = admit->entry;
	admit->job_from = admit->job;
	VERIFY(page);
	if (admit->entry < page->entries_count)
		return;
	ruler_inbox_next_page(ruler);
	go_to(admit, 0, 0);
	admit->entry_fed = 0;
	admit->job_fed = 0;
}

/* The same jobs again, with everything said that Redis may not know. */
static void
again(struct ruler *ruler)
{
	struct ruler_admit *admit = &ruler->admit;

	ruler_intern_undo(ruler);
	for (uint32_t i = 0; i < admit->families_count; i++)
		ruler->known.families[admit->families[i].family].stored = false;
	go_to(admit, admit->entry_from, admit->job_from);
}

void
ruler_admit_need(struct ruler *ruler, const struct reply *reply)
{
	for (size_t i = 1; i < reply->count; i++) {
		struct id128 id;
		uint32_t at;

		if (id_decode(reply_text(&reply->items[i]), &id) < 0)
			continue;
		at = ruler_shelf_find(&ruler->known.node_shelf, id);
		if (at != RULER_SHELF_NONE)
			ruler->known.nodes[at].flags &= ~(uint32_t)RULER_NODE_STORED;
		at = ruler_shelf_find(&ruler->known.family_shelf, id);
		if (at != RULER_SHELF_NONE)
			ruler->known.families[at].stored = false;
	}
}

static bool
begins_with(struct span text, const char *word)
{
	return text.len >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* Our function looked at the entries and did not like them.  Everything else (a disk that
 * is full, a replica, a script that runs for ever, a library of another release, a key of
 * a wrong type or without rights that was met inside) says nothing about them. */
static bool
is_about_entries(struct span text)
{
	static const char ours[] = "ERR warmq admit: ";
	static const char *const inside[] = {
		"WRONGTYPE ", "OOM ",       "MISCONF ", "READONLY ",
		"NOPERM ",    "NOREPLICAS", "ERR ACL ", "ERR The user ",
	};

	if (!begins_with(text, ours))
		return false;
	text.data += strlen(ours);
	text.len -= strlen(ours);
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		if (begins_with(text, inside[i]))
			return false;
	}
	return true;
}

/* Who is refused right behind one that was buried may be as innocent as that one was:
 * a bug in what all of them need would bury the whole inbox within a second. */
static bool
is_suspect(const struct ruler_admit *admit, uint64_t now_ms)
{
	return admit->buried_ms == 0 || now_ms >= admit->buried_ms + BURIAL_MS;
}

static void
refuse(struct ruler *ruler, uint64_t now_ms, struct span text)
{
	struct ruler_admit *admit = &ruler->admit;
	bool alone = admit->isolates;

	ruler_note(
		ruler, RULER_ERROR,
		"Redis refused to admit entries behind %s, which are tried again: %.*s",
		admit->stored.entry, (int)MIN(text.len, 200), text.data);
	admit->buries = false;
	if (!is_about_entries(text) || ++admit->refusals > REFUSALS_MAX ||
	    (alone && !is_suspect(admit, now_ms))) {
		ruler_rule_retry(ruler, now_ms, 1000);
		return;
	}
	admit->isolates = true;
	admit->isolated = ISOLATED_MAX;
	admit->kills = alone;
	again(ruler);
}

void
ruler_admit_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                      const struct reply *reply)
{
	struct ruler_admit *admit = &ruler->admit;

	VERIFY(index == admit->serial);
	VERIFY(admit->sent);
	admit->sent = false;
	if (ruler->undecided.sent) {
		ruler_undecided_on_admit(ruler, now_ms, reply);
		return;
	}
	switch (protocol_answer_word(reply)) {
	case PROTOCOL_OK:
		accept(ruler);
		return;
	case PROTOCOL_NEED:
		if (++admit->refusals > REFUSALS_MAX) {
			ruler_rule_rebuild(ruler, now_ms);
			return;
		}
		ruler_admit_need(ruler, reply);
		again(ruler);
		return;
	case PROTOCOL_CURSOR: /* another life of Redis, or another ruler before us */
		ruler_note(ruler, RULER_WARNING,
		           "the stored cursor is not ours: reading all of it again");
		ruler_rule_rebuild(ruler, now_ms);
		return;
	default:
		refuse(ruler, now_ms, reply_text(reply));
		return;
	}
}
