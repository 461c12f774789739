#include "cli/doctor_cursor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/text.h"

#include <stdio.h>

#define AHEAD_MS 60000 /* what clocks may differ by */

int
doctor_cursor_load(struct store *store, uint64_t now_ms, struct doctor_cursor *ret_cursor)
{
	struct doctor_cursor cursor = { .state = CURSOR_GOOD };
	struct protocol_job_id id = { 0 };
	const struct reply *reply;
	struct span text, entry;
	int code = STORE_COMMAND(store, &reply, SPAN("HGET"),
	                         store_key(store, "meta", SPAN("")), SPAN("cursor"));

	if (code != CLI_OK)
		return code;
	if (reply->kind == REPLY_NIL) {
		code = STORE_COMMAND(store, &reply, SPAN("EXISTS"),
		                     store_key(store, "lanes", SPAN("")));
		cursor.state = reply_integer(reply, 0) > 0 ? CURSOR_MISSING : CURSOR_NEW;
		*ret_cursor = cursor;
		return code;
	}
	text = reply_text(reply);
	if (!protocol_cut(&text, ' ', &entry) || entry.len >= sizeof cursor.entry ||
	    protocol_parse_job_id(entry, &id) < 0 || id.part > 0 ||
	    text_parse_unsigned(text, UINT32_MAX, &cursor.n) < 0)
		cursor.state = CURSOR_BROKEN;
	else if (id.ms > now_ms + AHEAD_MS)
		cursor.state = CURSOR_AHEAD;
	if (cursor.state != CURSOR_BROKEN)
		snprintf(cursor.entry, sizeof cursor.entry, "%.*s", (int)entry.len,
		         entry.data);
	*ret_cursor = cursor;
	return CLI_OK;
}

/* ---- where it should stand ------------------------------------------------------- */

static void
raise_to(struct protocol_job_id *greatest, struct span text)
{
	struct protocol_element element;

	if (protocol_parse_element(text, &element) < 0)
		return;
	if (element.id.ms != greatest->ms ? element.id.ms > greatest->ms
	    : element.id.sequence != greatest->sequence
	            ? element.id.sequence > greatest->sequence
	            : element.id.part > greatest->part)
		*greatest = element.id;
}

/* Leases are `q|family|lane|element|…`. */
static void
raise_to_lease(struct protocol_job_id *greatest, struct span lease)
{
	struct span field = SPAN("");

	for (int i = 0; i < 4; i++)
		if (!protocol_cut(&lease, '|', &field))
			return;
	raise_to(greatest, field);
}

struct search {
	struct store *store;
	struct protocol_job_id greatest;
};

static int
see_leases(void *data, const char *key)
{
	struct search *search = data;
	const struct reply *reply;
	int code = STORE_TRY(search->store, &reply, SPAN("HVALS"), span_from(key));

	for (size_t i = 0; code == CLI_OK && i < reply->count; i++)
		raise_to_lease(&search->greatest, reply_text(reply_at(reply, i)));
	return code;
}

static int
see_list(void *data, const char *key)
{
	struct search *search = data;
	const struct reply *reply;
	int code = STORE_TRY(search->store, &reply, SPAN("LRANGE"), span_from(key),
	                     SPAN("0"), SPAN("-1"));

	for (size_t i = 0; code == CLI_OK && i < reply->count; i++)
		raise_to(&search->greatest, reply_text(reply_at(reply, i)));
	return code;
}

static int
see_set(struct search *search, const char *name)
{
	const struct reply *reply;
	int code = STORE_TRY(search->store, &reply, SPAN("ZRANGE"),
	                     store_key(search->store, name, SPAN("")), SPAN("0"),
	                     SPAN("-1"));

	for (size_t i = 0; code == CLI_OK && i < reply->count; i++)
		raise_to(&search->greatest, reply_text(reply_at(reply, i)));
	return code;
}

/* A pack whose entry is still there was admitted up to that part; one that is gone,
 * whole.
 */
static int
settle(struct store *store, struct protocol_job_id id, struct doctor_cursor *cursor)
{
	const struct reply *reply;
	uint32_t part = id.part;
	int code;

	id.part = 0;
	cursor->entry[protocol_print_job_id(id, cursor->entry)] = '\0';
	cursor->n = 0;
	if (part == 0)
		return CLI_OK;
	code = STORE_COMMAND(store, &reply, SPAN("XRANGE"),
	                     store_key(store, "jobs", SPAN("")), span_from(cursor->entry),
	                     span_from(cursor->entry));
	if (code == CLI_OK && reply->count > 0)
		cursor->n = part;
	return code;
}

int
doctor_cursor_find(struct store *store, struct doctor_cursor *ret_cursor)
{
	static const char *const lists[] = { "ready:", "back:", "now:" };
	static const char *const sets[] = { "later", "dead", "deadline" };
	struct search search = { .store = store };
	int code = CLI_OK;

	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(lists); i++)
		code = store_walk_keys(store, lists[i], see_list, &search);
	if (code == CLI_OK)
		code = store_walk_keys(store, "lease:", see_leases, &search);
	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(sets); i++)
		code = see_set(&search, sets[i]);
	*ret_cursor = (struct doctor_cursor){ .state = CURSOR_GOOD };
	return code == CLI_OK ? settle(store, search.greatest, ret_cursor) : code;
}
