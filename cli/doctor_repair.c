/* What a program may put right by itself: it is found by counting, not by guessing. */
#include "cli/doctor.h"

#include "cli/doctor_cursor.h"
#include "cli/doctor_records.h"
#include "cli/doctor_restore.h"
#include "cli/store_walk.h"
#include "common/codec/protocol.h"
#include "common/codec/protocol_call.h"

#include <stdio.h>

/* ---- the cursor ------------------------------------------------------------------ */

static int
repair_cursor(struct doctor *doctor)
{
	struct doctor_cursor was, cursor;
	bool is_set = false;
	int code = doctor_cursor_load(doctor->store, doctor->now_ms, &was);

	if (code != CLI_OK)
		return code;
	if (was.state == CURSOR_GOOD || was.state == CURSOR_NEW) {
		doctor_say(doctor, DOCTOR_FINE, "cursor", NULL,
		           "nothing is wrong with it: nothing was changed");
		return CLI_OK;
	}
	if (was.state == CURSOR_FUTURE) {
		doctor_say(doctor, DOCTOR_FINE, "cursor", NULL,
		           "new jobs are admitted, with ids of the future: nothing was "
		           "changed");
		return CLI_OK;
	}
	code = doctor_cursor_find(doctor->store, &cursor);
	if (code == CLI_OK)
		code = doctor_cursor_set(doctor->store, &was, &cursor, &is_set);
	if (code != CLI_OK)
		return code;
	if (!is_set)
		doctor_say(doctor, DOCTOR_FINE, "cursor", NULL,
		           "somebody has set it meanwhile: nothing was changed");
	else
		doctor_say(doctor, DOCTOR_FINE, "cursor", NULL,
		           "set to %s: what came after it is admitted within seconds, if "
		           "a scheduler runs",
		           cursor.entry);
	return CLI_OK;
}

/* ---- sessions -------------------------------------------------------------------- */

#define LEASE_MS 30000 /* a worker that lives beats three times meanwhile */

struct listing {
	struct doctor *doctor;
	char until[24];
	uint64_t count;
};

/* "ns:lease:<nonce>" */
static int
list_session(void *data, const char *key)
{
	struct listing *listing = data;
	struct store *store = listing->doctor->store;
	struct span nonce = span_from(strrchr(key, ':') + 1);
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("ZSCORE"),
	                         store_key(store, "dying", SPAN("")), nonce);

	if (code != CLI_OK || reply->kind != REPLY_NIL)
		return code;
	code = STORE_COMMAND(store, &reply, SPAN("ZADD"),
	                     store_key(store, "workers", SPAN("")), SPAN("NX"),
	                     span_from(listing->until), nonce);
	if (code == CLI_OK)
		listing->count += (uint64_t)reply_integer(reply, 0);
	return code;
}

/* What stands in a lease is looked for in the leases of those that are listed: a job that
 * runs must not be taken for one that is nowhere.  Who has died is reaped as ever. */
static int
list_sessions(struct doctor *doctor)
{
	struct listing listing = { .doctor = doctor };
	char count[CLI_COUNT_SIZE];
	int code;

	snprintf(listing.until, sizeof listing.until, "%llu",
	         (unsigned long long)doctor->now_ms + LEASE_MS);
	code = store_walk_keys(doctor->store, "lease:", list_session, &listing);
	if (code == CLI_OK && listing.count > 0)
		doctor_say(doctor, DOCTOR_WARNING, "workers", NULL,
		           "listed %s again: who is alive goes on, and the jobs of "
		           "others are given back in %d s, if a scheduler rules",
		           cli_count(listing.count, "session", "sessions", count),
		           LEASE_MS / 1000);
	return code;
}

/* ---- the books ------------------------------------------------------------------- */

#define PIECES_MAX   1000000
#define OWNER_SIZE   64
#define AUDIT_CURSOR 48
#define SLIMS_TRIES  8

static void
copy(char *to, size_t size, struct span text)
{
	snprintf(to, size, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

static void
say_correction(struct doctor *doctor, const struct reply *item)
{
	struct span what = reply_text(reply_at(item, 0)),
		    key = reply_text(reply_at(item, 1)),
		    was = reply_text(reply_at(item, 2)),
		    is = reply_text(reply_at(item, 3));

	doctor_say(doctor, DOCTOR_WARNING, "books", NULL,
	           "corrected %.*s of %.*s: it was %.*s, is %.*s", (int)what.len,
	           what.data, (int)MIN(key.len, 200), key.data, (int)MIN(was.len, 80),
	           was.len > 0 ? was.data : "", (int)MIN(is.len, 80),
	           is.len > 0 ? is.data : "");
}

/* One piece; the cursor becomes empty with the last one. */
static int
audit_piece(struct doctor *doctor, char cursor[AUDIT_CURSOR])
{
	struct call_list *calls;
	const struct reply *reply;
	char owner[OWNER_SIZE];
	int code =
		STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                      store_key(doctor->store, "meta", SPAN("")), SPAN("owner"));

	if (code != CLI_OK)
		return code;
	copy(owner, sizeof owner, reply_text(reply));
	calls = store_calls(doctor->store);
	protocol_call_audit(calls, 0, store_namespace(doctor->store), span_from(owner),
	                    cursor);
	code = store_call(doctor->store, &reply);
	if (code != CLI_OK)
		return code;
	if (!reply_is(reply_at(reply, 0), "OK"))
		return CLI_OK; /* another scheduler took over: the same piece in its name
		                */
	for (size_t i = 3; i < reply->count; i++)
		say_correction(doctor, reply_at(reply, i));
	copy(cursor, AUDIT_CURSOR, reply_text(reply_at(reply, 2)));
	return CLI_OK;
}

static int
count_key(void *data, const char *key)
{
	int64_t *count = data;

	(void)key;
	++*count;
	return CLI_OK;
}

/* How many payloads there are by the counter, before and behind a walk, and by the walk.
 */
struct slims {
	int64_t stored, stored_then, counted;
};

static int
read_slims(struct doctor *doctor, int64_t *ret_stored)
{
	const struct reply *reply;
	int code =
		STORE_COMMAND(doctor->store, &reply, SPAN("HGET"),
	                      store_key(doctor->store, "meta", SPAN("")), SPAN("slims"));

	*ret_stored = code == CLI_OK ? reply_integer(reply, 0) : 0;
	return code;
}

static int
count_slims(struct doctor *doctor, struct slims *slims)
{
	int code = read_slims(doctor, &slims->stored);

	slims->counted = 0;
	if (code == CLI_OK)
		code = store_walk_keys(doctor->store, "slim:", count_key,
		                       &slims->counted);
	return code == CLI_OK ? read_slims(doctor, &slims->stored_then) : code;
}

static int
set_slims(struct doctor *doctor, const struct slims *slims)
{
	const struct reply *reply;
	char by[24];

	/* By the difference: jobs may have come and ended since. */
	snprintf(by, sizeof by, "%lld", (long long)(slims->counted - slims->stored));
	doctor_say(doctor, DOCTOR_WARNING, "books", NULL,
	           "corrected the number of stored payloads: it was %lld, is %lld",
	           (long long)slims->stored, (long long)slims->counted);
	return STORE_COMMAND(doctor->store, &reply, SPAN("HINCRBY"),
	                     store_key(doctor->store, "meta", SPAN("")), SPAN("slims"),
	                     span_from(by));
}

/* Nothing of it can be derived inside Redis: it is gone with `meta`.  Two looks that
 * agree are needed, for jobs come and end meanwhile. */
static int
repair_slims(struct doctor *doctor)
{
	struct slims last = { .counted = -1 }, slims;
	int code = CLI_OK;

	for (int i = 0; code == CLI_OK && i < SLIMS_TRIES; i++) {
		code = count_slims(doctor, &slims);
		if (code != CLI_OK ||
		    (slims.counted >= MIN(slims.stored, slims.stored_then) &&
		     slims.counted <= MAX(slims.stored, slims.stored_then)))
			return code;
		if (slims.stored == slims.stored_then && slims.stored == last.stored &&
		    slims.counted == last.counted)
			return set_slims(doctor, &slims);
		last = slims;
	}
	if (code == CLI_OK)
		doctor_say(doctor, DOCTOR_WARNING, "books",
		           "say it again when fewer jobs come and end",
		           "the stored payloads could not be counted while jobs change");
	return code;
}

static int
repair_books(struct doctor *doctor)
{
	char cursor[AUDIT_CURSOR] = "1:0";
	const struct reply *reply;
	int code =
		STORE_COMMAND(doctor->store, &reply, SPAN("HEXISTS"),
	                      store_key(doctor->store, "meta", SPAN("")), SPAN("owner"));

	if (code == CLI_OK && reply_integer(reply, 0) == 0)
		return cli_fail(CLI_FAILED,
		                "No scheduler has ever ruled here: there are no "
		                "books yet. Start warmq-scheduler.");
	if (code == CLI_OK)
		code = list_sessions(doctor);
	for (uint32_t i = 0; code == CLI_OK && cursor[0] != '\0' && i < PIECES_MAX; i++)
		code = audit_piece(doctor, cursor);
	if (code == CLI_OK)
		code = repair_slims(doctor);
	if (code == CLI_OK && doctor->counts[DOCTOR_WARNING] == 0)
		doctor_say(doctor, DOCTOR_FINE, "books", NULL,
		           "everything was counted anew, and nothing was wrong");
	return code;
}

/* ---- the jobs -------------------------------------------------------------------- */

/* First the books, which make lost records of families anew where a lane knows them. */
static int
repair_jobs(struct doctor *doctor)
{
	int code = repair_books(doctor);

	return code == CLI_OK ? doctor_restore(doctor) : code;
}

static const struct {
	const char *what;
	int (*repair)(struct doctor *doctor);
} repairs[] = {
	{ "cursor", repair_cursor },
	{ "books", repair_books },
	{ "records", doctor_records_repair },
	{ "jobs", repair_jobs },
};

bool
doctor_can_repair(const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(repairs); i++)
		if (strcmp(what, repairs[i].what) == 0)
			return true;
	return false;
}

int
doctor_repair(struct doctor *doctor, const char *what)
{
	int code = store_now(doctor->store, &doctor->now_ms);

	for (size_t i = 0; code == CLI_OK && i < ARRAY_SIZE(repairs); i++)
		if (strcmp(what, repairs[i].what) == 0)
			return repairs[i].repair(doctor);
	return code;
}
