/* bench_queue.c - a producer, an admitter and a worker with a null executor, to see what
 * a job's whole life costs Redis.
 *
 *   XADD ──► admit ──► settle + claim in one call ──► payload ──► … ──► reply list ──►
 * LPOP
 *
 * In rounds: produce a chunk, admit it, run it dry, collect the replies.  All of it is
 * pipelined, so that Redis is the bottleneck; two sessions take turns, so that it works
 * while we read.  Every job must come back exactly once.
 *
 *   bench_queue SOCKET MODE JOBS      MODE: batch | one | memory
 *
 * batch: settles and claims of 50 jobs.  one: each job with a call of its own, 200 slots.
 * Prints one line of JSON.  The functions must be loaded and the database be empty. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/base.h"

#define FAMILIES     100
#define CHUNK        50000
#define ADMIT_COUNT  500
#define BODY_SIZE    200
#define SESSIONS     2
#define BATCH        50
#define SLOTS        100 /* per session; 200 in all */
#define ID_SIZE      32
#define CALL_ARGS    1024
#define WARM_CHUNKS  1
#define COLLECT      1000
#define REPLY_TTL_MS "3600000"

struct session {
	redisContext *redis;
	char nonce[17];
	char ids[SLOTS][ID_SIZE]; /* empty: the slot is free */
	char tokens[SLOTS][24];
	uint64_t q;
	uint32_t slots, batch;
};

struct bench {
	redisContext *redis;
	struct session sessions[SESSIONS];
	char owner[64], cursor[ID_SIZE], body[BODY_SIZE + 1];
	uint32_t produced;
	uint8_t *seen; /* by serial number */
	uint32_t jobs, answered, twice, strange;
};

/* ---- talking ----------------------------------------------------------------------- */

NORETURN static void
die(const char *what, const redisReply *reply)
{
	fprintf(stderr, "bench_queue: %s: %s\n", what,
	        reply && reply->str ? reply->str : "no answer");
	exit(1);
}

static redisReply *
take_reply(redisContext *redis, const char *what)
{
	void *reply = NULL;

	if (redisGetReply(redis, &reply) != REDIS_OK || !reply)
		die(what, NULL);
	if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
		die(what, reply);
	return reply;
}

static redisReply *
ask(redisContext *redis, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisvAppendCommand(redis, format, args);
	va_end(args);
	return take_reply(redis, format);
}

static void
flush(redisContext *redis)
{
	int done = 0;

	while (!done)
		if (redisBufferWrite(redis, &done) != REDIS_OK)
			die("write", NULL);
}

/* ---- calls, word by word -------------------------------------------------------------
 */

static const char *words[CALL_ARGS + ADMIT_COUNT];
static size_t sizes[CALL_ARGS + ADMIT_COUNT];
static char numbers[CALL_ARGS][24];
static int words_count, numbers_count;

static void
add_bytes(const char *data, size_t size)
{
	VERIFY(words_count < (int)ARRAY_SIZE(words));
	words[words_count] = data;
	sizes[words_count] = size;
	words_count++;
}

static void
add(const char *text)
{
	add_bytes(text, strlen(text));
}

static void
add_number(uint64_t value)
{
	char *text = numbers[numbers_count++];

	VERIFY(numbers_count < CALL_ARGS);
	snprintf(text, sizeof(numbers[0]), "%lu", (unsigned long)value);
	add(text);
}

static void
open_call(const char *function)
{
	words_count = numbers_count = 0;
	add("FCALL");
	add(function);
	add("1");
	add("warmq:meta");
	add("1");
}

static void
send_call(redisContext *redis)
{
	redisAppendCommandArgv(redis, words_count, words, sizes);
}

/* ---- produce and admit ------------------------------------------------------------- */

static const char *
family_of(uint32_t number, char *text)
{
	snprintf(text, 33, "%032x", number + 1);
	return text;
}

static void
produce(struct bench *bench, uint32_t count)
{
	for (uint32_t sent = 0; sent < count; sent += 50) {
		for (int i = 0; i < 50; i++) {
			char serial[9];

			snprintf(serial, sizeof(serial), "%08u", bench->produced++);
			memcpy(bench->body, serial, 8);
			redisAppendCommand(
				bench->redis,
				"XADD warmq:jobs * upstream acme body %b reply bench",
				bench->body, (size_t)BODY_SIZE);
		}
		for (int i = 0; i < 50; i++)
			freeReplyObject(take_reply(bench->redis, "XADD"));
	}
}

/* The serial number at the head of an entry's body. */
static uint32_t
serial_of(const redisReply *entry)
{
	return (uint32_t)strtoul(entry->element[1]->element[3]->str, NULL, 10);
}

static void
admit(struct bench *bench, const redisReply *entries)
{
	static const redisReply *by_family[FAMILIES][ADMIT_COUNT];
	static int counts[FAMILIES];
	static char family_text[FAMILIES][33];
	int runs = 0;
	const redisReply *last = entries->element[entries->elements - 1];
	const char *groups_before[] = { "F", "0", "X", "0", "R" };
	const char *groups_behind[] = { "S", "0", "L", "0", "D", "0",
		                        "T", "0", "G", "0", "P", "0" };

	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < entries->elements; i++) {
		uint32_t family = serial_of(entries->element[i]) % FAMILIES;

		runs += counts[family] == 0;
		by_family[family][counts[family]++] = entries->element[i];
	}
	open_call("warmq_admit");
	add(bench->owner);
	add(bench->cursor);
	add("0");
	add(last->element[0]->str);
	add("0");
	for (size_t i = 0; i < ARRAY_SIZE(groups_before); i++)
		add(groups_before[i]);
	add_number((uint64_t)runs);
	for (uint32_t family = 0; family < FAMILIES; family++) {
		if (counts[family] == 0)
			continue;
		add(family_of(family, family_text[family]));
		add("n");
		add_number((uint64_t)counts[family]);
	}
	add("E");
	add_number(entries->elements);
	for (uint32_t family = 0; family < FAMILIES; family++)
		for (int i = 0; i < counts[family]; i++)
			add(by_family[family][i]->element[0]->str);
	for (size_t i = 0; i < ARRAY_SIZE(groups_behind); i++)
		add(groups_behind[i]);
	send_call(bench->redis);
	freeReplyObject(take_reply(bench->redis, "admit"));
	snprintf(bench->cursor, sizeof(bench->cursor), "%s", last->element[0]->str);
}

static void
admit_all(struct bench *bench)
{
	for (;;) {
		redisReply *reply =
			ask(bench->redis, "XREAD COUNT %d STREAMS warmq:jobs %s",
		            ADMIT_COUNT, bench->cursor);

		if (reply->type == REDIS_REPLY_NIL) {
			freeReplyObject(reply);
			return;
		}
		admit(bench, reply->element[0]->element[1]);
		freeReplyObject(reply);
	}
}

/* ---- work -----------------------------------------------------------------------------
 */

static void
send_settle(struct session *session, uint32_t first, uint32_t count)
{
	uint32_t held = 0;
	char slots[BATCH][8];

	VERIFY(count <= BATCH);
	for (uint32_t i = 0; i < count; i++)
		held += session->ids[first + i][0] != '\0';
	open_call("warmq_settle");
	add(session->nonce);
	add("1");
	add_number(held);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = first + i;

		snprintf(slots[i], sizeof(slots[i]), "%u", slot);
		if (session->ids[slot][0] == '\0')
			continue;
		add(slots[i]);
		add(session->tokens[slot]);
		add("");
		add("bench");
		add(REPLY_TTL_MS);
		add(session->ids[slot]);
	}
	add_number(session->q);
	for (uint32_t i = 0; i < count; i++)
		add(slots[i]);
	send_call(session->redis);
	for (uint32_t i = 0; i < count;
	     i++) /* only now: the call borrowed the old ones */
		snprintf(session->tokens[first + i], sizeof(session->tokens[0]), "%lu",
		         (unsigned long)session->q++);
}

/* Takes the answer of a settle; fetches the payloads of what it gave.  Answers how many.
 */
static uint32_t
take_settle(struct session *session, uint32_t first, uint32_t count)
{
	redisReply *reply = take_reply(session->redis, "settle");
	uint32_t given = 0;
	char *run = reply->str ? strstr(reply->str, "\n\n") : NULL, *rest;

	if (!run || (run[2] != '\0' && run[2] != '\n'))
		die("a settle was refused", reply);
	for (run = strtok_r(run, "\n", &rest); run; run = strtok_r(NULL, "\n", &rest)) {
		char *behind, *word = strtok_r(run, " ", &behind);

		for (int i = 0; word; i++, word = strtok_r(NULL, " ", &behind))
			if (i >= 9) /* behind the head of the run */
				snprintf(session->ids[first + given++], ID_SIZE, "%s",
				         word);
	}
	VERIFY(given <= count);
	for (uint32_t i = given; i < count; i++)
		session->ids[first + i][0] = '\0';
	freeReplyObject(reply);
	for (uint32_t i = 0; i < given; i++)
		redisAppendCommand(session->redis, "XRANGE warmq:jobs %s %s",
		                   session->ids[first + i], session->ids[first + i]);
	return given;
}

/* The result of a job: its serial number, from the payload we were given. */
static void
take_payload(struct session *session, uint32_t slot)
{
	redisReply *reply = take_reply(session->redis, "XRANGE");

	if (reply->elements != 1)
		die("a payload is missing", NULL);
	snprintf(session->ids[slot], ID_SIZE, "%08u", serial_of(reply->element[0]));
	freeReplyObject(reply);
}

/* One turn of a session in two halves, so that Redis works for one while we read what
 * the other got. */
static void
turn_settle(struct session *session)
{
	for (uint32_t at = 0; at < session->slots; at += session->batch)
		send_settle(session, at, session->batch);
	flush(session->redis);
}

/* Answers how many jobs the session holds now. */
static uint32_t
turn_take(struct session *session)
{
	uint32_t given[SLOTS], sum = 0, groups = 0;

	for (uint32_t at = 0; at < session->slots; at += session->batch) {
		given[groups] = take_settle(session, at, session->batch);
		sum += given[groups++];
	}
	flush(session->redis);
	for (uint32_t i = 0; i < groups; i++)
		for (uint32_t j = 0; j < given[i]; j++)
			take_payload(session, i * session->batch + j);
	return sum;
}

static void
run_dry(struct bench *bench)
{
	uint32_t idle = 0;

	for (int i = 0; i < SESSIONS; i++)
		turn_settle(&bench->sessions[i]);
	while (idle < SESSIONS) {
		for (int i = 0; i < SESSIONS; i++) {
			struct session *session = &bench->sessions[i];

			idle = turn_take(session) == 0 ? idle + 1 : 0;
			turn_settle(session);
		}
	}
	for (int i = 0; i < SESSIONS; i++)
		if (turn_take(&bench->sessions[i]) != 0)
			die("jobs came from nowhere", NULL);
}

/* ---- results
 * ---------------------------------------------------------------------------- */

static void
collect(struct bench *bench)
{
	for (;;) {
		redisReply *reply =
			ask(bench->redis, "LPOP warmq:reply:bench %d", COLLECT);
		size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;

		for (size_t i = 0; i < count; i++) {
			unsigned long serial = strtoul(reply->element[i]->str, NULL, 10);

			if (serial >= bench->jobs) {
				bench->strange++;
				continue;
			}
			bench->twice += bench->seen[serial];
			bench->answered += !bench->seen[serial];
			bench->seen[serial] = 1;
		}
		freeReplyObject(reply);
		if (count < COLLECT)
			return;
	}
}

/* ---- set up and measure
 * ------------------------------------------------------------------ */

static double
info_number(redisContext *redis, const char *section, const char *field)
{
	redisReply *reply = ask(redis, "INFO %s", section);
	const char *at = strstr(reply->str, field);
	double value = at ? strtod(at + strlen(field) + 1, NULL) : 0;

	freeReplyObject(reply);
	return value;
}

static double
cpu_seconds(redisContext *redis)
{
	return info_number(redis, "cpu", "\nused_cpu_sys") +
	       info_number(redis, "cpu", "\nused_cpu_user");
}

static double
clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static redisContext *
connect_to(const char *path)
{
	redisContext *redis = redisConnectUnix(path);

	if (!redis || redis->err) {
		fprintf(stderr, "bench_queue: %s: %s\n", path,
		        redis ? redis->errstr : "no memory");
		exit(1);
	}
	return redis;
}

static void
make_family(struct bench *bench, uint32_t number)
{
	char id[33], lane[40];
	const char *head[] = { "0-0", "0", "0-0", "0", "F", "1" };
	const char *tail[] = { "R", "0", "E", "0", "S", "0", "L", "0",
		               "D", "0", "T", "0", "G", "0", "P", "0" };

	family_of(number, id);
	snprintf(lane, sizeof(lane), "%s.0", id);
	open_call("warmq_admit");
	add(bench->owner);
	for (size_t i = 0; i < ARRAY_SIZE(head); i++)
		add(head[i]);
	add(id);
	add("main");
	add("acme:large");
	add("0");
	add("30000");
	add("100");
	add("50");
	add(lane);
	add("");
	add(id);
	add("bench");
	add("X");
	add("1");
	add(id);
	add("segment");
	for (size_t i = 0; i < ARRAY_SIZE(tail); i++)
		add(tail[i]);
	send_call(bench->redis);
	freeReplyObject(take_reply(bench->redis, "admit a family"));
}

static void
open_lane(struct bench *bench, uint32_t number)
{
	char id[33], lane[40];

	family_of(number, id);
	snprintf(lane, sizeof(lane), "%s.0", id);
	freeReplyObject(ask(bench->redis,
	                    "FCALL warmq_grant 1 warmq:meta 1 %s - 1 %s %s %s main "
	                    "acme:large 0 1 3 0 0 0 1000 %d 99999999999999 0 0 0 0 0 0",
	                    bench->owner, lane, id, id, (int)number));
}

static void
set_up(struct bench *bench, const char *path, bool one)
{
	redisReply *reply;

	bench->redis = connect_to(path);
	memset(bench->body, 'x', BODY_SIZE);
	snprintf(bench->cursor, sizeof(bench->cursor), "0-0");
	reply = ask(bench->redis, "FCALL warmq_rule 1 warmq:meta 1 %s 3600000",
	            "00000000000000aa");
	if (reply->elements < 3)
		die("rule", reply);
	snprintf(bench->owner, sizeof(bench->owner), "%s", reply->element[2]->str);
	freeReplyObject(reply);
	for (uint32_t i = 0; i < FAMILIES; i++) {
		make_family(bench, i);
		open_lane(bench, i);
	}
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct session *session = &bench->sessions[i];

		session->redis = connect_to(path);
		session->slots = one ? SLOTS : BATCH;
		session->batch = one ? 1 : BATCH;
		session->q = 1;
		snprintf(session->nonce, sizeof(session->nonce), "%016x", i + 1);
		open_call("warmq_hello");
		add(session->nonce);
		add("bench");
		add("main");
		add_number(session->slots);
		add("*");
		add("3600000");
		add("");
		send_call(session->redis);
		freeReplyObject(take_reply(session->redis, "hello"));
	}
}

/* CPU seconds of Redis by part of a life, summed over the rounds. */
struct parts {
	double produce, admit, work, collect;
};

static double
lap(struct bench *bench, double *since)
{
	double now = cpu_seconds(bench->redis), spent = now - *since;

	*since = now;
	return spent;
}

static void
rounds(struct bench *bench, uint32_t jobs, struct parts *parts)
{
	double since = cpu_seconds(bench->redis);

	for (uint32_t done = 0; done < jobs; done += CHUNK) {
		produce(bench, CHUNK);
		parts->produce += lap(bench, &since);
		admit_all(bench);
		parts->admit += lap(bench, &since);
		run_dry(bench);
		parts->work += lap(bench, &since);
		collect(bench);
		parts->collect += lap(bench, &since);
	}
}

static void
measure_life(struct bench *bench, const char *mode, uint32_t jobs)
{
	uint32_t warm = WARM_CHUNKS * CHUNK;
	struct parts parts = { 0 }, ignored = { 0 };
	double cpu, wall, scale = 1e6 / jobs;

	rounds(bench, warm, &ignored);
	wall = clock_seconds();
	rounds(bench, jobs, &parts);
	wall = clock_seconds() - wall;
	cpu = parts.produce + parts.admit + parts.work + parts.collect;
	printf("{\"mode\":\"%s\",\"jobs\":%u,\"jobs_per_s\":%.0f,\"cpu_us\":%.2f,"
	       "\"produce_us\":%.2f,\"admit_us\":%.2f,\"work_us\":%.2f,\"collect_us\":%."
	       "2f,"
	       "\"once\":%u,\"twice\":%u,\"missing\":%u,\"strange\":%u}\n",
	       mode, jobs, jobs / wall, cpu * scale, parts.produce * scale,
	       parts.admit * scale, parts.work * scale, parts.collect * scale,
	       bench->answered, bench->twice, bench->jobs - bench->answered,
	       bench->strange);
}

static void
measure_memory(struct bench *bench, uint32_t jobs)
{
	double before = info_number(bench->redis, "memory", "\nused_memory"), after;

	for (uint32_t done = 0; done < jobs; done += CHUNK) {
		produce(bench, CHUNK);
		admit_all(bench);
	}
	after = info_number(bench->redis, "memory", "\nused_memory");
	printf("{\"mode\":\"memory\",\"jobs\":%u,\"bytes_per_job\":%.1f}\n", jobs,
	       (after - before) / jobs);
}

int
main(int argc, char **argv)
{
	static struct bench bench;
	uint32_t jobs = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	bool one, memory;

	if (jobs == 0 || jobs % CHUNK != 0) {
		fprintf(stderr,
		        "usage: bench_queue SOCKET batch|one|memory JOBS "
		        "(a multiple of %d)\n",
		        CHUNK);
		return 2;
	}
	one = strcmp(argv[2], "one") == 0;
	memory = strcmp(argv[2], "memory") == 0;
	bench.jobs = jobs + (memory ? 0 : WARM_CHUNKS * CHUNK);
	bench.seen = calloc(bench.jobs, 1);
	if (!bench.seen)
		die("no memory", NULL);
	set_up(&bench, argv[1], one);
	if (memory)
		measure_memory(&bench, jobs);
	else
		measure_life(&bench, argv[2], jobs);
	free(bench.seen);
	return bench.twice + bench.strange == 0 &&
	                       (memory || bench.answered == bench.jobs)
	               ? 0
	               : 1;
}
