#include "cli/store_walk.h"

#define PIECE       "1000"
#define CURSOR_SIZE 24

/* Where the next piece begins; "0" behind the last one. */
static void
take_cursor(const struct reply *reply, char ret_cursor[CURSOR_SIZE])
{
	struct span next = reply_text(reply_at(reply, 0));

	snprintf(ret_cursor, CURSOR_SIZE, "%.*s", (int)next.len, next.data);
}

/* The names of one piece, taken out of the answer. */
static int
load_names(struct store *store, const char *kind, char cursor[CURSOR_SIZE], json_t *names)
{
	const struct reply *reply, *keys;
	int code = STORE_COMMAND(store, &reply, SPAN("SCAN"), span_from(cursor),
	                         SPAN("MATCH"), store_key(store, kind, SPAN("*")),
	                         SPAN("COUNT"), SPAN(PIECE));

	if (code != CLI_OK)
		return code;
	keys = reply_at(reply, 1);
	for (size_t i = 0; i < keys->count; i++)
		json_array_append_new(names, cli_json_text(reply_text(&keys->items[i])));
	take_cursor(reply, cursor);
	return CLI_OK;
}

int
store_walk_keys(struct store *store, const char *kind,
                int (*see)(void *data, const char *key), void *data)
{
	char cursor[CURSOR_SIZE] = "0";
	int code;

	do {
		json_t *names = json_array();
		const json_t *name;
		size_t i;

		code = load_names(store, kind, cursor, names);
		json_array_foreach(names, i, name)
		{
			if (code == CLI_OK)
				code = see(data, json_string_value(name));
		}
		json_decref(names);
	} while (code == CLI_OK && strcmp(cursor, "0") != 0);
	return code;
}

int
store_walk_hash(struct store *store, struct span key,
                void (*see)(void *data, struct span field, struct span value), void *data)
{
	char cursor[CURSOR_SIZE] = "0";

	do {
		const struct reply *reply, *pairs;
		int code = STORE_COMMAND(store, &reply, SPAN("HSCAN"), key,
		                         span_from(cursor), SPAN("COUNT"), SPAN(PIECE));

		if (code != CLI_OK)
			return code;
		pairs = reply_at(reply, 1);
		for (size_t i = 0; i + 1 < pairs->count; i += 2)
			see(data, reply_text(&pairs->items[i]),
			    reply_text(&pairs->items[i + 1]));
		take_cursor(reply, cursor);
	} while (strcmp(cursor, "0") != 0);
	return CLI_OK;
}
