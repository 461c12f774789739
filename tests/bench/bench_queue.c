/* bench_queue.c - a producer, an admitter and a worker with a null executor, to see what
 * a job's whole life costs Redis.
 *
 *   XADD ─► admit ─► settle + claim in one call ─► payload ─► … ─► reply list ─► LPOP
 *
 * In rounds: produce a chunk, admit it, run it dry, collect the replies.  All of it is
 * pipelined, so that Redis is the bottleneck; the sessions take turns, so that it works
 * for others while we read.  Every job must come back exactly once.
 *
 *   bench_queue SOCKET MODE JOBS      MODE: batch | usage | one | memory
 *
 * batch: settles and claims of 50 jobs.  usage: the same, each telling what it used of a
 * cache.  one: each job with a call of its own.  200 slots in all, always.
 * Prints one line of JSON.  The functions must be loaded and the database be empty. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "common/base.h"
#include "common/text.h"
#include "tests/bench/pipe.h"

#define FAMILIES     100
#define CHUNK        50000
#define PRODUCE      100 /* XADDs of one write */
#define PRODUCE_MOST 4   /* writes under way */
#define ADMIT_COUNT  500
#define SESSIONS     4
#define SLOTS        50 /* of each session: a batch */
#define ID_SIZE      32
#define WARM_CHUNKS  1
#define COLLECT      1000
#define LIFE_MS      300000 /* of a cache entry */

#define BODY_SIZE 200

struct session {
	struct pipe pipe;
	char nonce[17];
	char ids[SLOTS]
		[ID_SIZE]; /* of the jobs in its slots, until their payload is read */
	char results[SLOTS][9]; /* empty: the slot is free */
	uint64_t qs[SLOTS], q;
	uint32_t batch, given;
	bool is_fetching, is_dry;
};

struct bench {
	struct pipe pipe;
	struct session sessions[SESSIONS];
	char owner[64], cursor[ID_SIZE], body[BODY_SIZE];
	char usage[80]; /* of each job; may be empty */
	uint32_t produced;
	uint8_t *seen; /* by serial number */
	uint32_t jobs, answered, twice, strange;
};

NORETURN static void
die(const char *what)
{
	fprintf(stderr, "bench_queue: %s\n", what);
	exit(1);
}

static void
open_call(struct pipe *pipe, const char *function, size_t words)
{
	pipe_open(pipe, words + 5);
	pipe_text(pipe, "FCALL");
	pipe_text(pipe, function);
	pipe_text(pipe, "1");
	pipe_text(pipe, "warmq:meta");
	pipe_text(pipe, "1");
}

static void
copy(char *to, size_t size, struct span from)
{
	VERIFY(from.len < size);
	memcpy(to, from.data, from.len);
	to[from.len] = '\0';
}

/* ---- produce ----------------------------------------------------------------------- */

static void
send_jobs(struct bench *bench)
{
	struct pipe *pipe = &bench->pipe;
	char serial[9];

	for (int i = 0; i < PRODUCE; i++) {
		snprintf(serial, sizeof(serial), "%08u", bench->produced++);
		memcpy(bench->body, serial, 8);
		pipe_open(pipe, 9);
		pipe_text(pipe, "XADD");
		pipe_text(pipe, "warmq:jobs");
		pipe_text(pipe, "*");
		pipe_text(pipe, "upstream");
		pipe_text(pipe, "acme");
		pipe_text(pipe, "reply");
		pipe_text(pipe, "bench");
		pipe_text(pipe, "body");
		pipe_word(pipe, bench->body, BODY_SIZE);
	}
	pipe_flush(&bench->pipe);
}

static void
produce(struct bench *bench, uint32_t count)
{
	uint32_t sent = 0, taken = 0;

	while (taken < count) {
		for (; sent < count && sent - taken < PRODUCE_MOST * PRODUCE;
		     sent += PRODUCE)
			send_jobs(bench);
		for (int i = 0; i < PRODUCE; i++)
			(void)pipe_bulk(&bench->pipe);
		taken += PRODUCE;
	}
}

/* The serial number in the body of the entry whose fields come next. */
static uint32_t
take_serial(struct pipe *pipe)
{
	struct span body;

	if (pipe_array(pipe) != 6)
		die("an entry of another shape");
	for (int i = 0; i < 5; i++)
		(void)pipe_bulk(pipe);
	body = pipe_bulk(pipe);
	if (body.len != BODY_SIZE)
		die("a payload of another size");
	return (uint32_t)strtoul(body.data, NULL, 10);
}

/* ---- admit ------------------------------------------------------------------------- */

static const char *
family_of(uint32_t number, char *text)
{
	snprintf(text, 33, "%032x", number + 1);
	return text;
}

static void
add_texts(struct pipe *pipe, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pipe_text(pipe, texts[i]);
}

static char by_family[FAMILIES][ADMIT_COUNT][ID_SIZE];
static uint32_t counts[FAMILIES];

static void
send_admit(struct bench *bench, uint32_t entries, const char *last)
{
	const char *before[] = { "F", "0", "X", "0", "R" };
	const char *behind[] = { "S", "0", "L", "0", "D", "0",
		                 "T", "0", "G", "0", "P", "0" };
	struct pipe *pipe = &bench->pipe;
	uint32_t runs = 0;
	char text[33];

	for (uint32_t family = 0; family < FAMILIES; family++)
		runs += counts[family] > 0;
	open_call(pipe, "warmq_admit", 5 + 5 + 1 + 3 * runs + 2 + entries + 12);
	pipe_text(pipe, bench->owner);
	pipe_text(pipe, bench->cursor);
	pipe_text(pipe, "0");
	pipe_text(pipe, last);
	pipe_text(pipe, "0");
	add_texts(pipe, before, ARRAY_SIZE(before));
	pipe_unsigned(pipe, runs);
	for (uint32_t family = 0; family < FAMILIES; family++) {
		if (counts[family] == 0)
			continue;
		pipe_text(pipe, family_of(family, text));
		pipe_text(pipe, "n");
		pipe_unsigned(pipe, counts[family]);
	}
	pipe_text(pipe, "E");
	pipe_unsigned(pipe, entries);
	for (uint32_t family = 0; family < FAMILIES; family++)
		for (uint32_t i = 0; i < counts[family]; i++)
			pipe_text(pipe, by_family[family][i]);
	add_texts(pipe, behind, ARRAY_SIZE(behind));
	snprintf(bench->cursor, sizeof(bench->cursor), "%s", last);
}

static void
send_read(struct bench *bench)
{
	pipe_open(&bench->pipe, 6);
	pipe_text(&bench->pipe, "XREAD");
	pipe_text(&bench->pipe, "COUNT");
	pipe_unsigned(&bench->pipe, ADMIT_COUNT);
	pipe_text(&bench->pipe, "STREAMS");
	pipe_text(&bench->pipe, "warmq:jobs");
	pipe_text(&bench->pipe, bench->cursor);
	pipe_flush(&bench->pipe);
}

/* Sorts what was read by family; answers how many there are. */
static uint32_t
take_read(struct bench *bench, char *last)
{
	struct pipe *pipe = &bench->pipe;
	int64_t entries;

	memset(counts, 0, sizeof(counts));
	if (pipe_array(pipe) < 0)
		return 0;
	(void)pipe_array(pipe);
	(void)pipe_bulk(pipe);
	entries = pipe_array(pipe);
	for (int64_t i = 0; i < entries; i++) {
		uint32_t family;

		(void)pipe_array(pipe);
		copy(last, ID_SIZE, pipe_bulk(pipe));
		family = take_serial(pipe) % FAMILIES;
		memcpy(by_family[family][counts[family]++], last, ID_SIZE);
	}
	return (uint32_t)entries;
}

static void
admit_all(struct bench *bench)
{
	char last[ID_SIZE] = "";
	uint32_t entries;

	send_read(bench);
	while ((entries = take_read(bench, last)) > 0) {
		send_admit(bench, entries, last);
		send_read(bench);
		pipe_skip(&bench->pipe);
	}
}

/* ---- work -------------------------------------------------------------------------- */

static void
send_settle(struct session *session, uint32_t first, const char *usage)
{
	struct pipe *pipe = &session->pipe;
	uint32_t held = 0, count = session->batch;
	bool goes_on; /* in the slots that end, which need no second name */
	char number[16];

	for (uint32_t i = first; i < first + count; i++)
		held += session->results[i][0] != '\0';
	goes_on = held == count;
	open_call(pipe, "warmq_settle", 3 + 6 * held + 1 + (goes_on ? 0 : count));
	pipe_word(pipe, session->nonce, 16);
	pipe_text(pipe, "1");
	snprintf(number, sizeof(number), "%s%u", goes_on ? "=" : "", held);
	pipe_text(pipe, number);
	for (uint32_t i = first; i < first + count; i++) {
		if (session->results[i][0] == '\0')
			continue;
		pipe_unsigned(pipe, i);
		pipe_unsigned(pipe, session->qs[i]);
		pipe_text(pipe, usage);
		pipe_text(pipe, "bench");
		pipe_text(pipe, "3600000");
		pipe_word(pipe, session->results[i], 8);
	}
	pipe_unsigned(pipe, session->q);
	for (uint32_t i = first; i < first + count; i++) {
		if (!goes_on)
			pipe_unsigned(pipe, i);
		session->qs[i] = session->q++;
		session->results[i][0] = '\0';
	}
}

static struct span
cut(struct span *text, char separator)
{
	const char *end = text->len > 0 ? memchr(text->data, separator, text->len) : NULL;
	struct span word = { text->data, end ? (size_t)(end - text->data) : text->len };
	size_t taken = MIN(word.len + 1, text->len);

	*text = (struct span){ text->data + taken, text->len - taken };
	return word;
}

static void
send_fetch(struct session *session, uint32_t slot, struct span id)
{
	struct pipe *pipe = &session->pipe;

	copy(session->ids[slot], ID_SIZE, id);
	pipe_open(pipe, 4);
	pipe_text(pipe, "XRANGE");
	pipe_text(pipe, "warmq:jobs");
	pipe_word(pipe, id.data, id.len);
	pipe_word(pipe, id.data, id.len);
}

/* Takes the answer of a settle; asks for the payloads of what it gave. */
static void
take_settle(struct session *session, uint32_t first)
{
	struct span text = pipe_bulk(&session->pipe), line = cut(&text, '\n');
	uint32_t slot = first;

	if (line.len < 5 || cut(&text, '\n').len > 0 || cut(&text, '\n').len > 0)
		die("a settle was refused");
	while (text.len > 0) {
		line = cut(&text, '\n');
		for (int i = 0; i < 9; i++) /* the head of the run */
			(void)cut(&line, ' ');
		while (line.len > 0)
			send_fetch(session, slot++, cut(&line, ' '));
	}
	VERIFY(slot <= first + session->batch);
	for (; slot < first + session->batch; slot++)
		session->ids[slot][0] = '\0';
}

/* The result of a job: its serial number, from the payload we were given. */
static void
take_payload(struct session *session, uint32_t slot)
{
	struct pipe *pipe = &session->pipe;
	struct span id;

	if (pipe_array(pipe) != 1 || pipe_array(pipe) != 2)
		die("a payload is missing");
	id = pipe_bulk(pipe);
	if (!span_equals(id, span_from(session->ids[slot])))
		die("another payload");
	snprintf(session->results[slot], 9, "%08u", take_serial(pipe));
}

static void
ask_settles(struct session *session, const char *usage)
{
	for (uint32_t at = 0; at < SLOTS; at += session->batch)
		send_settle(session, at, usage);
	pipe_flush(&session->pipe);
	session->is_fetching = false;
}

/* One of the two halves of a turn; then Redis works for this session while we read what
 * the others got. */
static void
step(struct session *session, const char *usage)
{
	if (session->is_fetching) {
		for (uint32_t i = 0; i < SLOTS; i++)
			if (session->ids[i][0] != '\0')
				take_payload(session, i);
		ask_settles(session, usage);
		return;
	}
	for (uint32_t at = 0; at < SLOTS; at += session->batch)
		take_settle(session, at);
	session->is_dry = true;
	for (uint32_t i = 0; i < SLOTS; i++)
		session->is_dry = session->is_dry && session->ids[i][0] == '\0';
	pipe_flush(&session->pipe);
	session->is_fetching = true;
}

static void
run_dry(struct bench *bench)
{
	uint32_t dry = 0;

	for (int i = 0; i < SESSIONS; i++) {
		bench->sessions[i].is_dry = false;
		ask_settles(&bench->sessions[i], bench->usage);
	}
	while (dry < SESSIONS) {
		for (int i = 0; i < SESSIONS; i++) {
			struct session *session = &bench->sessions[i];

			if (session->is_dry)
				continue;
			step(session, bench->usage);
			dry += session->is_dry;
		}
	}
}

/* ---- results ----------------------------------------------------------------------- */

static void
take_results(struct bench *bench)
{
	for (int64_t left = pipe_array(&bench->pipe); left > 0; left--) {
		struct span result = pipe_bulk(&bench->pipe);
		unsigned long serial = strtoul(result.data, NULL, 10);

		if (serial >= bench->jobs) {
			bench->strange++;
			continue;
		}
		bench->twice += bench->seen[serial];
		bench->answered += !bench->seen[serial];
		bench->seen[serial] = 1;
	}
}

static void
collect(struct bench *bench)
{
	for (int i = 0; i <= CHUNK / COLLECT;
	     i++) { /* the last finds nothing, or too much */
		pipe_open(&bench->pipe, 3);
		pipe_text(&bench->pipe, "LPOP");
		pipe_text(&bench->pipe, "warmq:reply:bench");
		pipe_unsigned(&bench->pipe, COLLECT);
	}
	pipe_flush(&bench->pipe);
	for (int i = 0; i <= CHUNK / COLLECT; i++)
		take_results(bench);
}

/* ---- set up ------------------------------------------------------------------------ */

static void
make_family(struct bench *bench, uint32_t number)
{
	char id[33], lane[40];
	const char *words[] = {
		bench->owner, "0-0",        "0", "0-0",   "0",   "F",       "1",  id,
		"main",       "acme:large", "0", "30000", "100", "50",      lane, "",
		id,           "bench",      "X", "1",     id,    "segment", "R",  "0",
		"E",          "0",          "S", "0",     "L",   "0",       "D",  "0",
		"T",          "0",          "G", "0",     "P",   "0",
	};

	family_of(number, id);
	snprintf(lane, sizeof(lane), "%s.0", id);
	open_call(&bench->pipe, "warmq_admit", ARRAY_SIZE(words));
	add_texts(&bench->pipe, words, ARRAY_SIZE(words));
	pipe_flush(&bench->pipe);
	pipe_skip(&bench->pipe);
}

static void
open_lane(struct bench *bench, uint32_t number, uint64_t until_ms, uint64_t life_ms)
{
	char id[33], lane[40], until[24], life[24], rank[24];
	const char *words[] = {
		bench->owner, "-", "1",  lane, id,  id,  "main", "acme:large",
		"0",          "1", "3",  "0",  "0", "0", "1000", rank,
		until,        "0", life, "0",  "0", "0", "0",
	};

	family_of(number, id);
	snprintf(lane, sizeof(lane), "%s.0", id);
	text_print_unsigned(until_ms, until);
	text_print_unsigned(life_ms, life);
	text_print_unsigned(number, rank);
	open_call(&bench->pipe, "warmq_grant", ARRAY_SIZE(words));
	add_texts(&bench->pipe, words, ARRAY_SIZE(words));
	pipe_flush(&bench->pipe);
	pipe_skip(&bench->pipe);
}

static void
say_hello(struct session *session)
{
	const char *words[] = {
		session->nonce, "bench", "main", "50", "*", "3600000", ""
	};

	open_call(&session->pipe, "warmq_hello", ARRAY_SIZE(words));
	add_texts(&session->pipe, words, ARRAY_SIZE(words));
	pipe_flush(&session->pipe);
	pipe_skip(&session->pipe);
}

static void
take_rule(struct bench *bench)
{
	open_call(&bench->pipe, "warmq_rule", 2);
	pipe_text(&bench->pipe, "00000000000000aa");
	pipe_text(&bench->pipe, "3600000");
	pipe_flush(&bench->pipe);
	if (pipe_array(&bench->pipe) != 4)
		die("rule was refused");
	(void)pipe_bulk(&bench->pipe);
	(void)pipe_number(&bench->pipe);
	copy(bench->owner, sizeof(bench->owner), pipe_bulk(&bench->pipe));
	(void)pipe_number(&bench->pipe);
}

static void
set_up(struct bench *bench, const char *path, const char *mode)
{
	bool has_usage = strcmp(mode, "usage") == 0, is_one = strcmp(mode, "one") == 0;
	uint64_t now_ms = (uint64_t)time(NULL) * 1000;

	pipe_connect(&bench->pipe, path);
	memset(bench->body, 'x', BODY_SIZE);
	snprintf(bench->cursor, sizeof(bench->cursor), "0-0");
	if (has_usage) /* read 30,000 tokens of a cache, paid 200, answered 150 */
		snprintf(bench->usage, sizeof(bench->usage), "%lu %lu 30000 0 200 150",
		         (unsigned long)now_ms, (unsigned long)now_ms + 800);
	take_rule(bench);
	for (uint32_t i = 0; i < FAMILIES; i++) {
		make_family(bench, i);
		open_lane(bench, i, has_usage ? now_ms + LIFE_MS : 99999999999999,
		          has_usage ? LIFE_MS : 0);
	}
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct session *session = &bench->sessions[i];

		pipe_connect(&session->pipe, path);
		session->batch = is_one ? 1 : SLOTS;
		session->q = 1;
		snprintf(session->nonce, sizeof(session->nonce), "%016x", i + 1);
		say_hello(session);
	}
}

/* ---- measure ----------------------------------------------------------------------- */

static double
info_number(struct pipe *pipe, const char *section, const char *field)
{
	static char text[65536];
	const char *at;

	pipe_open(pipe, 2);
	pipe_text(pipe, "INFO");
	pipe_text(pipe, section);
	pipe_flush(pipe);
	copy(text, sizeof(text), pipe_bulk(pipe));
	at = strstr(text, field);
	return at ? strtod(at + strlen(field) + 1, NULL) : 0;
}

static double
cpu_seconds(struct pipe *pipe)
{
	return info_number(pipe, "cpu", "\nused_cpu_sys") +
	       info_number(pipe, "cpu", "\nused_cpu_user");
}

static double
own_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double
clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* CPU seconds of Redis by part of a life, summed over the rounds. */
struct parts {
	double produce, admit, work, collect;
};

static double
lap(struct bench *bench, double *since)
{
	double now = cpu_seconds(&bench->pipe), spent = now - *since;

	*since = now;
	return spent;
}

static void
rounds(struct bench *bench, uint32_t jobs, struct parts *parts)
{
	double since = cpu_seconds(&bench->pipe);

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
	struct parts parts = { 0 }, ignored = { 0 };
	double cpu, wall, own, scale = 1e6 / jobs;

	rounds(bench, WARM_CHUNKS * CHUNK, &ignored);
	wall = clock_seconds();
	own = own_seconds();
	rounds(bench, jobs, &parts);
	wall = clock_seconds() - wall;
	own = own_seconds() - own;
	cpu = parts.produce + parts.admit + parts.work + parts.collect;
	printf("{\"mode\":\"%s\",\"jobs\":%u,\"jobs_per_s\":%.0f,\"cpu_us\":%.2f,"
	       "\"produce_us\":%.2f,\"admit_us\":%.2f,\"work_us\":%.2f,"
	       "\"collect_us\":%.2f,\"client_us\":%.2f,"
	       "\"once\":%u,\"twice\":%u,\"missing\":%u,\"strange\":%u}\n",
	       mode, jobs, jobs / wall, cpu * scale, parts.produce * scale,
	       parts.admit * scale, parts.work * scale, parts.collect * scale,
	       own * scale, bench->answered, bench->twice, bench->jobs - bench->answered,
	       bench->strange);
}

static void
measure_memory(struct bench *bench, uint32_t jobs)
{
	double before = info_number(&bench->pipe, "memory", "\nused_memory"), after;

	for (uint32_t done = 0; done < jobs; done += CHUNK) {
		produce(bench, CHUNK);
		admit_all(bench);
	}
	after = info_number(&bench->pipe, "memory", "\nused_memory");
	printf("{\"mode\":\"memory\",\"jobs\":%u,\"bytes_per_job\":%.1f}\n", jobs,
	       (after - before) / jobs);
}

int
main(int argc, char **argv)
{
	static struct bench bench;
	uint32_t jobs = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	bool is_memory;

	if (jobs == 0 || jobs % CHUNK != 0) {
		fprintf(stderr,
		        "usage: bench_queue SOCKET batch|usage|one|memory JOBS "
		        "(a multiple of %d)\n",
		        CHUNK);
		return 2;
	}
	is_memory = strcmp(argv[2], "memory") == 0;
	bench.jobs = jobs + (is_memory ? 0 : WARM_CHUNKS * CHUNK);
	bench.seen = calloc(bench.jobs, 1);
	if (!bench.seen)
		die("no memory");
	set_up(&bench, argv[1], argv[2]);
	if (is_memory)
		measure_memory(&bench, jobs);
	else
		measure_life(&bench, argv[2], jobs);
	free(bench.seen);
	return bench.twice + bench.strange == 0 &&
	                       (is_memory || bench.answered == bench.jobs)
	               ? 0
	               : 1;
}
