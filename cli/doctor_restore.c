#include "cli/doctor_restore.h"

#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_call.h"

#include <stdio.h>

#define CHUNK   400 /* ids of one call, below STORE_CALL_WORDS */
#define ID_SIZE 64
#define PAGE    1000  /* elements of one answer */
#define ENTRIES "100" /* of one answer: they come with their bodies */
_Static_assert(CHUNK + 8 <= STORE_CALL_WORDS, "a call has room for its jobs");

struct restore {
	struct doctor *doctor;
	json_t *standing; /* ids that were seen somewhere */
	char ids[CHUNK][ID_SIZE];
	size_t count;
	uint64_t queued, dead, died, ended, lists;
};

/* ---- what stands somewhere ------------------------------------------------------- */

/* "1700-0~/40,900" and "1700-0" alike. */
static void
note_standing(struct restore *restore, struct span element)
{
	size_t len = 0;

	while (len < element.len && element.data[len] != '~' && element.data[len] != '/')
		len++;
	json_object_setn_new_nocheck(restore->standing, element.data, len, json_true());
}

/* Elements of a list, or members of a sorted set, from the first to the last. */
static int
see_range(struct restore *restore, const char *command, struct span key)
{
	struct store *store = restore->doctor->store;
	const struct reply *reply;
	uint64_t from = 0;

	do {
		char first[24], last[24];
		int code;

		snprintf(first, sizeof first, "%llu", (unsigned long long)from);
		snprintf(last, sizeof last, "%llu", (unsigned long long)from + PAGE - 1);
		code = STORE_COMMAND(store, &reply, span_from(command), key,
		                     span_from(first), span_from(last));
		if (code != CLI_OK)
			return code;
		for (size_t i = 0; i < reply->count; i++)
			note_standing(restore, reply_text(&reply->items[i]));
		from += PAGE;
	} while (reply->count == PAGE);
	return CLI_OK;
}

static int
delete_list(struct restore *restore, const char *key)
{
	const struct reply *reply;

	restore->lists++;
	return STORE_COMMAND(restore->doctor->store, &reply, SPAN("DEL"), span_from(key));
}

/* "ns:ready:n:<family>" */
static int
see_list(void *data, const char *key)
{
	struct restore *restore = data;
	struct store *store = restore->doctor->store;
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("HEXISTS"),
	                         store_key(store, "families", SPAN("")),
	                         span_from(strrchr(key, ':') + 1));

	if (code != CLI_OK)
		return code;
	return reply_integer(reply, 0) == 1 ? see_range(restore, "LRANGE", span_from(key))
	                                    : delete_list(restore, key);
}

static int
see_standing(struct restore *restore)
{
	static const char *const lists[] = { "ready:", "back:", "now:" };
	static const char *const sets[] = { "later", "dead" };
	struct store *store = restore->doctor->store;
	int code = CLI_OK;

	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(lists); i++)
		code = store_walk_keys(store, lists[i], see_list, restore);
	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(sets); i++) {
		char key[256];

		snprintf(key, sizeof key, "%.*s:%s", (int)store_namespace(store).len,
		         store_namespace(store).data, sets[i]);
		code = see_range(restore, "ZRANGE", span_from(key));
	}
	return code;
}

/* ---- what does not --------------------------------------------------------------- */

static int
flush(struct restore *restore)
{
	struct store *store = restore->doctor->store;
	struct call_list *calls = store_calls(store);
	const struct reply *reply;
	int code;

	if (restore->count == 0)
		return CLI_OK;
	protocol_call_open(calls, 0, store_namespace(store), "restore");
	for (size_t i = 0; i < restore->count; i++)
		call_word(calls, span_from(restore->ids[i]));
	restore->count = 0;
	code = store_call(store, &reply);
	for (size_t i = 2; code == CLI_OK && i < reply->count; i++) {
		restore->queued += reply_is(reply_at(reply, i), "queued");
		restore->dead += reply_is(reply_at(reply, i), "dead");
		restore->died += reply_is(reply_at(reply, i), "died");
		restore->ended += reply_is(reply_at(reply, i), "ended");
	}
	return code;
}

static int
ask_for(struct restore *restore, struct span id)
{
	if (id.len >= ID_SIZE || json_object_getn(restore->standing, id.data, id.len))
		return CLI_OK;
	snprintf(restore->ids[restore->count++], ID_SIZE, "%.*s", (int)id.len, id.data);
	return restore->count == CHUNK ? flush(restore) : CLI_OK;
}

/* "ns:slim:<id>" */
static int
see_slim(void *data, const char *key)
{
	return ask_for(data, span_from(strrchr(key, ':') + 1));
}

static void
note_mark(void *data, struct span id, struct span text)
{
	(void)text;
	json_array_append_new(data, cli_json_text(id));
}

static int
see_marks(struct restore *restore)
{
	struct store *store = restore->doctor->store;
	json_t *ids = json_array();
	const json_t *id;
	size_t i;
	int code = store_walk_hash(store, store_key(store, "ended", SPAN("")), note_mark,
	                           ids);

	json_array_foreach(ids, i, id)
	{
		if (code == CLI_OK)
			code = ask_for(restore, span_from(json_string_value(id)));
	}
	json_decref(ids);
	return code;
}

/* One answer of entries; `from` moves behind the last, and becomes empty at the end. */
static int
see_entries(struct restore *restore, char from[ID_SIZE])
{
	static char ids[100][ID_SIZE];
	struct store *store = restore->doctor->store;
	const struct reply *reply;
	size_t count = 0;
	int code = STORE_COMMAND(store, &reply, SPAN("XRANGE"),
	                         store_key(store, "jobs", SPAN("")), span_from(from),
	                         SPAN("+"), SPAN("COUNT"), SPAN(ENTRIES));

	for (size_t i = 0; code == CLI_OK && i < MIN(reply->count, ARRAY_SIZE(ids));
	     i++) {
		struct span id = reply_text(reply_at(reply_at(reply, i), 0));

		snprintf(ids[count++], ID_SIZE, "%.*s", (int)MIN(id.len, ID_SIZE - 2),
		         id.data);
	}
	from[0] = '\0';
	for (size_t i = 0; code == CLI_OK && i < count; i++)
		code = ask_for(restore, span_from(ids[i])); /* the answer is gone now */
	if (count == ARRAY_SIZE(ids))
		snprintf(from, ID_SIZE, "(%s", ids[count - 1]);
	return code;
}

static int
see_alive(struct restore *restore)
{
	char from[ID_SIZE] = "-";
	int code = CLI_OK;

	while (code == CLI_OK && from[0] != '\0')
		code = see_entries(restore, from);
	if (code == CLI_OK)
		code = store_walk_keys(restore->doctor->store, "slim:", see_slim,
		                       restore);
	if (code == CLI_OK)
		code = see_marks(restore);
	return code == CLI_OK ? flush(restore) : code;
}

/* ---- all of it ------------------------------------------------------------------- */

static void
say_what_was_done(const struct restore *restore)
{
	struct doctor *doctor = restore->doctor;
	char count[CLI_COUNT_SIZE];

	if (restore->lists > 0)
		doctor_say(doctor, DOCTOR_WARNING, "jobs", NULL,
		           "deleted %s of families of which nothing else is left",
		           cli_count(restore->lists, "list", "lists", count));
	if (restore->queued > 0)
		doctor_say(doctor, DOCTOR_WARNING, "jobs", NULL,
		           "put %s back that stood nowhere: they start as any other, if "
		           "a scheduler runs",
		           cli_count(restore->queued, "job", "jobs", count));
	if (restore->dead > 0)
		doctor_say(
			doctor, DOCTOR_WARNING, "jobs",
			"warmq job ls --state dead; enqueue them again",
			"ended %s as lost: their prefix was kept once for their family, "
			"and which one that was is gone",
			cli_count(restore->dead, "job", "jobs", count));
	if (restore->died > 0)
		doctor_say(doctor, DOCTOR_WARNING, "jobs",
		           "warmq job ls --state dead; warmq job retry, or drop",
		           "put %s back among the dead ones, where they had been",
		           cli_count(restore->died, "job", "jobs", count));
	if (restore->ended > 0)
		doctor_say(
			doctor, DOCTOR_WARNING, "jobs", NULL,
			"deleted what was left of %s that had ended: the results stand",
			cli_count(restore->ended, "job", "jobs", count));
	if (restore->lists + restore->queued + restore->dead + restore->died +
	            restore->ended ==
	    0)
		doctor_say(doctor, DOCTOR_FINE, "jobs", NULL,
		           "every job that lives stands somewhere: nothing was changed");
}

int
doctor_restore(struct doctor *doctor)
{
	struct restore *restore = calloc(1, sizeof *restore);
	int code;

	VERIFY(restore);
	restore->doctor = doctor;
	restore->standing = json_object();
	code = see_standing(restore);
	if (code == CLI_OK)
		code = see_alive(restore);
	if (code == CLI_OK)
		say_what_was_done(restore);
	json_decref(restore->standing);
	free(restore);
	return code;
}
