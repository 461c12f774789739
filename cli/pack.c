#include "cli/pack.h"

#include <stdio.h>
#include <string.h>

#define PACK_MAX   20000 /* jobs of one entry */
#define LOOK_FIRST 16    /* an id that is no pack should cost little */
#define LOOK_BATCH 500

void
pack_id(struct span entry, size_t n, char ret_id[PACK_ID_SIZE])
{
	(void)snprintf(ret_id, PACK_ID_SIZE, "%.*s.%zu", (int)entry.len, entry.data, n);
}

static int
ask(struct store *store, struct span entry, size_t n)
{
	char id[PACK_ID_SIZE];

	pack_id(entry, n, id);
	return store_append(
		store,
		(const struct span[]){ SPAN("EXISTS"),
	                               store_key(store, "slim:", span_from(id)),
	                               store_key(store, "result:", span_from(id)) },
		3);
}

/* Looks at the jobs from `first` on. */
static int
look(struct store *store, struct span entry, size_t first, size_t count, size_t *last)
{
	int code = CLI_OK;

	for (size_t i = 0; i < count && code == CLI_OK; i++)
		code = ask(store, entry, first + i);
	for (size_t i = 0; i < count && code == CLI_OK; i++) {
		const struct reply *reply;

		code = store_next(store, 0, "EXISTS", "slim:ID result:ID", &reply);
		if (code == CLI_OK && reply_integer(reply, 0) > 0)
			*last = first + i;
	}
	return code;
}

int
pack_last(struct store *store, struct span entry, size_t *ret_last)
{
	size_t first = 1, count = LOOK_FIRST, last = 0, before;
	int code;

	do {
		before = last;
		code = look(store, entry, first, count, &last);
		first += count;
		count = LOOK_BATCH;
	} while (code == CLI_OK && last > before && first <= PACK_MAX);
	if (code == CLI_OK)
		*ret_last = last;
	return code;
}

/* Whether the fields of an entry have an array.  Its first byte says so; what else is
 * wrong with it a scheduler says. */
static bool
has_array(const struct reply *fields)
{
	for (size_t i = 0; i + 1 < fields->count; i += 2) {
		struct span value = reply_text(&fields->items[i + 1]);
		size_t start = 0;

		if (reply_is(&fields->items[i], "json")) {
			while (start < value.len &&
			       memchr(" \t\r\n", value.data[start], 4))
				start++;
			if (start < value.len && value.data[start] == '[')
				return true;
		}
		if (reply_is(&fields->items[i], "m") && value.len > 0) {
			unsigned char first = (unsigned char)value.data[0];

			if ((first & 0xf0U) == 0x90 || first == 0xdc || first == 0xdd)
				return true;
		}
	}
	return false;
}

int
pack_waits(struct store *store, struct span id, bool *ret_waits)
{
	const char *dot = memchr(id.data, '.', id.len);
	struct span entry = { id.data, dot ? (size_t)(dot - id.data) : 0 };
	const struct reply *reply;
	int code;

	*ret_waits = false;
	if (!dot)
		return CLI_OK;
	code = STORE_TRY(store, &reply, SPAN("XRANGE"),
	                 store_key(store, "jobs", SPAN("")), entry, entry);
	*ret_waits = code == CLI_OK && has_array(reply_at(reply_at(reply, 0), 1));
	return code;
}
