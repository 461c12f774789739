#include "scheduler/ruler_inbox.h"

#include "scheduler/ruler_note.h"

#include <stdlib.h>

#define COUNT_START 8 /* DATAPATH 25 */
/* Redis bounds a read by its count alone: so many of the largest bodies may follow small
 * ones and come in one answer. */
#define COUNT_MAX  64
#define FUTURE_MS  60000 /* DATAPATH 17 */
#define KEEP_SIZES 4     /* a page keeps memory of so many aimed-at reads */

/* ---- pages ----------------------------------------------------------------------- */

static void
empty(struct ruler_page *page, size_t keep)
{
	page->full = false;
	page->len = 0;
	page->entries_count = 0;
	page->pairs_count = 0;
	if (page->room > keep) { /* one giant entry must not be paid for ever */
		free(page->bytes);
		page->bytes = NULL;
		page->room = 0;
	}
}

void
ruler_inbox_clear(struct ruler *ruler)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	for (size_t i = 0; i < ARRAY_SIZE(inbox->pages); i++)
		empty(&inbox->pages[i], KEEP_SIZES * ruler->config->read_size);
	inbox->head = 0;
	inbox->reading = false;
	inbox->rest = false;
	inbox->serial++;
	inbox->read_ms = RULER_DEADLINE_NONE;
	if (inbox->count == 0)
		inbox->count = COUNT_START;
}

void
ruler_inbox_close(struct ruler *ruler)
{
	for (size_t i = 0; i < ARRAY_SIZE(ruler->inbox.pages); i++) {
		struct ruler_page *page = &ruler->inbox.pages[i];

		free(page->bytes);
		free(page->entries);
		free(page->pairs);
		*page = (struct ruler_page){ 0 };
	}
}

struct ruler_page *
ruler_inbox_page(struct ruler *ruler)
{
	struct ruler_page *page = &ruler->inbox.pages[ruler->inbox.head];

	return page->full ? page : NULL;
}

void
ruler_inbox_next_page(struct ruler *ruler)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	empty(&inbox->pages[inbox->head], KEEP_SIZES * ruler->config->read_size);
	inbox->head = (inbox->head + 1) % ARRAY_SIZE(inbox->pages);
	ruler->page_serial++;
}

static struct ruler_page *
free_page(struct ruler_inbox *inbox)
{
	for (size_t i = 0; i < ARRAY_SIZE(inbox->pages); i++) {
		struct ruler_page *page =
			&inbox->pages[(inbox->head + i) % ARRAY_SIZE(inbox->pages)];

		if (!page->full)
			return page;
	}
	return NULL;
}

uint64_t
ruler_inbox_lag_ms(const struct ruler *ruler, uint64_t now_ms)
{
	const struct ruler_inbox *inbox = &ruler->inbox;
	const struct ruler_page *page = &inbox->pages[inbox->head];
	const struct ruler_entry *entry;

	if (!page->full || ruler->admit.entry_from >= page->entries_count)
		return 0;
	entry = &page->entries[ruler->admit.entry_from];
	return now_ms > entry->ms ? now_ms - entry->ms : 0;
}

/* ---- calls ----------------------------------------------------------------------- */

void
ruler_inbox_start(struct ruler *ruler, uint64_t now_ms)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	ruler_copy(inbox->read_to, sizeof(inbox->read_to),
	           span_from(ruler->admit.stored.entry));
	inbox->rest = ruler->admit.stored.n > 0;
	inbox->read_ms = now_ms;
	ruler->page_serial++;
}

static bool
may_read(const struct ruler *ruler)
{
	const struct ruler_inbox *inbox = &ruler->inbox;

	return ruler->phase == RULER_RULING && ruler->admits && !inbox->reading &&
	       (!inbox->pages[0].full || !inbox->pages[1].full);
}

uint64_t
ruler_inbox_deadline(const struct ruler *ruler, uint64_t now_ms)
{
	(void)now_ms;
	return may_read(ruler) ? ruler->inbox.read_ms : RULER_DEADLINE_NONE;
}

static void
ask_rest(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_READ_REST, ruler->inbox.serial));
	call_text(out, "XRANGE");
	protocol_call_key(out, ruler->config->ns, "jobs");
	call_text(out, ruler->inbox.read_to);
	call_text(out, ruler->inbox.read_to);
}

static void
ask(struct ruler *ruler, bool block, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, block ? RULER_CALL_READ_BLOCK : RULER_CALL_READ,
	                          ruler->inbox.serial));
	call_text(out, "XREAD");
	call_text(out, "COUNT");
	call_integer(out, ruler->inbox.count);
	if (block) {
		call_text(out, "BLOCK");
		call_integer(out, (int64_t)ruler->config->block_ms);
	}
	call_text(out, "STREAMS");
	protocol_call_key(out, ruler->config->ns, "jobs");
	call_text(out, ruler->inbox.read_to);
}

void
ruler_inbox_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	if (!may_read(ruler) || inbox->read_ms > now_ms || !ruler_fits(out, 16, 512))
		return;
	inbox->reading = true;
	inbox->sent_ms = now_ms;
	inbox->serial++;
	if (inbox->rest)
		ask_rest(ruler, out);
	else
		ask(ruler, ruler->config->block_ms > 0, out);
}

/* ---- answers --------------------------------------------------------------------- */

static bool
entry_is_sound(const struct reply *entry)
{
	const struct reply *fields = reply_at(entry, 1);
	struct protocol_job_id id;

	return protocol_parse_job_id(reply_text(reply_at(entry, 0)), &id) == 0 &&
	       fields->kind == REPLY_ARRAY;
}

static void
measure(const struct reply *entries, size_t *ret_bytes, uint32_t *ret_pairs)
{
	size_t bytes = 0;
	uint32_t pairs = 0;

	for (size_t i = 0; i < entries->count; i++) {
		const struct reply *fields = reply_at(&entries->items[i], 1);

		bytes += reply_text(reply_at(&entries->items[i], 0)).len;
		for (size_t j = 0; fields->kind == REPLY_ARRAY && j < fields->count; j++)
			bytes += reply_text(&fields->items[j]).len;
		pairs += fields->kind == REPLY_ARRAY ? (uint32_t)(fields->count / 2) : 0;
	}
	*ret_bytes = bytes;
	*ret_pairs = pairs;
}

static void *
grow(void *memory, uint32_t *room, uint32_t want, size_t size)
{
	void *larger;

	if (want <= *room)
		return memory;
	larger = realloc(memory, want * size);
	VERIFY(larger); /* a few MB; without them a scheduler is of no use */
	*room = want;
	return larger;
}

static void
make_room(struct ruler_page *page, size_t bytes, uint32_t entries, uint32_t pairs)
{
	if (bytes > page->room) {
		free(page->bytes);
		page->bytes = malloc(bytes);
		VERIFY(page->bytes);
		page->room = bytes;
	}
	page->entries =
		grow(page->entries, &page->entries_room, entries, sizeof(*page->entries));
	page->pairs = grow(page->pairs, &page->pairs_room, pairs, sizeof(*page->pairs));
}

static struct span
copy_in(struct ruler_page *page, struct span text)
{
	struct span copy = { page->bytes + page->len, text.len };

	VERIFY(page->room - page->len >= text.len);
	if (text.len > 0)
		memcpy(page->bytes + page->len, text.data, text.len);
	page->len += text.len;
	return copy;
}

static void
copy_entry(struct ruler_page *page, const struct reply *reply)
{
	const struct reply *fields = reply_at(reply, 1);
	struct ruler_entry *entry = &page->entries[page->entries_count++];
	struct protocol_job_id id = { 0 };

	*entry = (struct ruler_entry){
		.id = copy_in(page, reply_text(reply_at(reply, 0))),
		.pairs_from = page->pairs_count,
		.pairs_count = (uint32_t)(fields->count / 2),
	};
	VERIFY(protocol_parse_job_id(entry->id, &id) == 0);
	entry->ms = id.ms;
	for (uint32_t i = 0; i < entry->pairs_count; i++)
		page->pairs[page->pairs_count++] = (struct envelope_pair){
			.name = copy_in(page, reply_text(&fields->items[i * 2])),
			.value = copy_in(page, reply_text(&fields->items[i * 2 + 1])),
		};
}

static void
copy_entries(struct ruler_page *page, const struct reply *entries)
{
	size_t bytes;
	uint32_t pairs;

	measure(entries, &bytes, &pairs);
	make_room(page, bytes, (uint32_t)entries->count, pairs);
	for (size_t i = 0; i < entries->count; i++)
		if (entry_is_sound(&entries->items[i]))
			copy_entry(page, &entries->items[i]);
	page->full = page->entries_count > 0;
}

static void
adapt_count(struct ruler *ruler, size_t bytes, size_t entries)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	if (bytes > ruler->config->read_size)
		inbox->count = MAX(
			(uint32_t)(inbox->count * ruler->config->read_size / bytes), 1);
	else if (entries >= inbox->count && bytes < ruler->config->read_size / 2)
		inbox->count = MIN(inbox->count * 2, COUNT_MAX);
}

/* An id far in the future distorts every age, and the last one possible ends the inbox.
 */
static void
check_clock(struct ruler *ruler, uint64_t now_ms, const struct ruler_entry *last)
{
	if (last->ms > now_ms + FUTURE_MS)
		ruler_note_job(
			ruler, RULER_ERROR, last->id, SPAN(""),
			"an entry of the inbox has an id %llu s ahead of the clock of "
			"Redis: that clock went back, or somebody writes ids of his own "
			"and must use *",
			(unsigned long long)(last->ms - now_ms) / 1000);
}

static void
take_entries(struct ruler *ruler, uint64_t now_ms, const struct reply *entries)
{
	struct ruler_inbox *inbox = &ruler->inbox;
	struct ruler_page *page = free_page(inbox);
	const struct ruler_entry *last;

	VERIFY(page);
	copy_entries(page, entries);
	if (!page->full)
		return;
	last = &page->entries[page->entries_count - 1];
	ruler_copy(inbox->read_to, sizeof(inbox->read_to), last->id);
	check_clock(ruler, now_ms, last);
	adapt_count(ruler, page->len, entries->count);
}

void
ruler_inbox_on_read(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	const struct reply *entries = reply_at(reply_at(reply, 0), 1);
	struct ruler_inbox *inbox = &ruler->inbox;

	if (index != inbox->serial || !inbox->reading)
		return;
	inbox->reading = false;
	inbox->read_ms = now_ms;
	if (entries->kind == REPLY_ARRAY && entries->count > 0)
		take_entries(ruler, now_ms, entries);
	else if (now_ms < inbox->sent_ms + ruler->config->block_ms / 2 ||
	         ruler->config->block_ms == 0) /* it did not wait inside Redis */
		inbox->read_ms = now_ms + ruler->config->poll_ms;
}

void
ruler_inbox_on_rest(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	struct ruler_inbox *inbox = &ruler->inbox;

	if (index != inbox->serial || !inbox->reading)
		return;
	inbox->reading = false;
	inbox->rest = false;
	inbox->read_ms = now_ms;
	if (reply->kind == REPLY_ARRAY && reply->count > 0) {
		take_entries(ruler, now_ms, reply);
		ruler->admit.job = ruler->admit.job_from = ruler->admit.job_fed =
			(uint32_t)ruler->admit.stored.n;
		return;
	}
	ruler_note(ruler, RULER_WARNING,
	           "the entry %s of the inbox is gone, of which %llu jobs were admitted: "
	           "enqueue the others again",
	           ruler->admit.stored.entry, (unsigned long long)ruler->admit.stored.n);
}

void
ruler_inbox_lost_read(struct ruler *ruler, uint64_t now_ms, uint32_t index)
{
	if (index != ruler->inbox.serial || !ruler->inbox.reading)
		return;
	ruler->inbox.reading = false;
	ruler->inbox.read_ms = now_ms + ruler->config->poll_ms;
}
