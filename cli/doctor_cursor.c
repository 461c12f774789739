#include "cli/doctor_cursor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

#define AHEAD_MS  60000 /* what clocks may differ by */
#define SET_TRIES 1000  /* other fields of `meta` are written all the time */

static int
load_text(struct store *store, struct doctor_cursor *cursor)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("HGET"),
	                         store_key(store, "meta", SPAN("")), SPAN("cursor"));
	struct span text;

	if (code != CLI_OK)
		return code;
	cursor->text_size = -1;
	if (reply->kind == REPLY_NIL)
		return CLI_OK;
	text = reply_text(reply);
	cursor->text_size = (int64_t)text.len;
	if (text.len > 0)
		memcpy(cursor->text, text.data, MIN(text.len, sizeof cursor->text));
	return CLI_OK;
}

int
doctor_cursor_load(struct store *store, uint64_t now_ms, struct doctor_cursor *ret_cursor)
{
	struct doctor_cursor cursor = { .state = CURSOR_GOOD };
	struct protocol_job_id id = { 0 };
	struct protocol_job_id last;
	const struct reply *reply;
	struct span text, entry;
	int code = load_text(store, &cursor);

	if (code != CLI_OK)
		return code;
	if (cursor.text_size < 0) {
		code = STORE_COMMAND(store, &reply, SPAN("EXISTS"),
		                     store_key(store, "lanes", SPAN("")));
		cursor.state = reply_integer(reply, 0) > 0 ? CURSOR_MISSING : CURSOR_NEW;
		*ret_cursor = cursor;
		return code;
	}
	text = (struct span){ cursor.text,
		              MIN((size_t)cursor.text_size, sizeof cursor.text) };
	if (!protocol_cut(&text, ' ', &entry) || entry.len >= sizeof cursor.entry ||
	    protocol_parse_job_id(entry, &id) < 0 || id.part > 0 ||
	    text_parse_unsigned(text, UINT32_MAX, &cursor.n) < 0)
		cursor.state = CURSOR_BROKEN;
	else if (id.ms > now_ms + AHEAD_MS)
		cursor.state = CURSOR_AHEAD;
	if (cursor.state != CURSOR_BROKEN)
		snprintf(cursor.entry, sizeof cursor.entry, "%.*s", (int)entry.len,
		         entry.data);
	if (cursor.state == CURSOR_AHEAD) {
		code = store_last_id(store, &last);
		if (code == CLI_OK && protocol_compare_job_ids(last, id) >= 0)
			cursor.state = CURSOR_FUTURE;
	}
	*ret_cursor = cursor;
	return code;
}

/* ---- where it should stand ------------------------------------------------------- */

struct search {
	struct store *store;
	struct protocol_job_id greatest;
	struct protocol_job_id last; /* of the inbox; zeros: none, all of it is new */
};

static void
raise_to(struct search *search, struct span text)
{
	struct protocol_element element;
	struct protocol_job_id entry;

	if (protocol_parse_element(text, &element) < 0)
		return;
	entry = element.id;
	entry.part = 0;
	if (protocol_compare_job_ids(entry, search->last) > 0)
		return;
	if (protocol_compare_job_ids(element.id, search->greatest) > 0)
		search->greatest = element.id;
}

/* Leases are `q|family|lane|element|…`. */
static void
raise_to_lease(struct search *search, struct span lease)
{
	struct span field = SPAN("");

	for (int i = 0; i < 4; i++)
		if (!protocol_cut(&lease, '|', &field))
			return;
	raise_to(search, field);
}

static int
see_leases(void *data, const char *key)
{
	struct search *search = data;
	const struct reply *reply;
	int code = STORE_TRY(search->store, &reply, SPAN("HVALS"), span_from(key));

	for (size_t i = 0; code == CLI_OK && i < reply->count; i++)
		raise_to_lease(search, reply_text(reply_at(reply, i)));
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
		raise_to(search, reply_text(reply_at(reply, i)));
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
		raise_to(search, reply_text(reply_at(reply, i)));
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

static int
look_everywhere(struct search *search)
{
	static const char *const lists[] = { "ready:", "back:", "now:" };
	static const char *const sets[] = { "later", "dead", "deadline" };
	int code = CLI_OK;

	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(lists); i++)
		code = store_walk_keys(search->store, lists[i], see_list, search);
	if (code == CLI_OK)
		code = store_walk_keys(search->store, "lease:", see_leases, search);
	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(sets); i++)
		code = see_set(search, sets[i]);
	return code;
}

/* Jobs go on from lists to leases to `later`, in the order in which all is read.  Who
 * goes back, as a retry that is due, is there when it is read again: its next rest is
 * longer. */
int
doctor_cursor_find(struct store *store, struct doctor_cursor *ret_cursor)
{
	struct search search = { .store = store };
	int code = store_last_id(store, &search.last);

	for (int round = 0; code == CLI_OK && round < 2; round++)
		code = look_everywhere(&search);
	*ret_cursor = (struct doctor_cursor){ .state = CURSOR_GOOD };
	return code == CLI_OK ? settle(store, search.greatest, ret_cursor) : code;
}

/* ---- setting it ------------------------------------------------------------------ */

static bool
reads_as(const struct doctor_cursor *a, const struct doctor_cursor *b)
{
	return a->text_size == b->text_size &&
	       (a->text_size <= 0 ||
	        memcmp(a->text, b->text, MIN((size_t)a->text_size, sizeof a->text)) == 0);
}

/* Once: `ret_is_done` is false if something of `meta` was written meanwhile. */
static int
try_to_set(struct store *store, const struct doctor_cursor *was, struct span value,
           bool *ret_is_done, bool *ret_is_set)
{
	struct doctor_cursor is = { 0 };
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("WATCH"),
	                         store_key(store, "meta", SPAN("")));

	*ret_is_done = *ret_is_set = false;
	if (code == CLI_OK)
		code = load_text(store, &is);
	if (code == CLI_OK && !reads_as(was, &is)) {
		*ret_is_done = true;
		return STORE_COMMAND(store, &reply, SPAN("UNWATCH"));
	}
	if (code == CLI_OK)
		code = STORE_COMMAND(store, &reply, SPAN("MULTI"));
	if (code == CLI_OK)
		code = STORE_COMMAND(store, &reply, SPAN("HSET"),
		                     store_key(store, "meta", SPAN("")), SPAN("cursor"),
		                     value);
	if (code == CLI_OK)
		code = STORE_COMMAND(store, &reply, SPAN("EXEC"));
	if (code == CLI_OK)
		*ret_is_done = *ret_is_set = reply->kind != REPLY_NIL;
	return code;
}

int
doctor_cursor_set(struct store *store, const struct doctor_cursor *was,
                  const struct doctor_cursor *cursor, bool *ret_is_set)
{
	char value[96];
	bool is_done = false;
	int code = CLI_OK;

	snprintf(value, sizeof value, "%s %llu", cursor->entry,
	         (unsigned long long)cursor->n);
	*ret_is_set = false;
	for (int i = 0; code == CLI_OK && !is_done && i < SET_TRIES; i++)
		code = try_to_set(store, was, span_from(value), &is_done, ret_is_set);
	if (code == CLI_OK && !is_done)
		return cli_fail(CLI_FAILED, "The cursor was not set: too much goes on in "
		                            "Redis. Say it again.");
	return code;
}
