/* The function library answers the same and leaves the same on the small Redis and on a
 * real one.
 *
 *   conformance_functions [--sequences N] [--from S]
 *
 * Each sequence is a little life of a queue (queue_life.h): rulers, families, grants,
 * sessions, claims, ends.  The library's clock is taken from a list in both, so that the
 * same call sees the same time.  At the end the two keyspaces are compared, all
 * but the ids of events.  Without redis-server on the PATH it is skipped (77). */
#include "scheduler/functions/functions_library.h"
#include "tests/sim/lua_host.h"
#include "tests/sim/queue_life.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 120

/* A key with a spoilt, tiny lifetime may end between two looks: then a third one. */
static bool
same_names(struct queue_life *life)
{
	bool same = false;

	for (int i = 0; i < 3 && !same; i++) {
		redis_model_set_time(life->model, real_redis_time(life->real));
		same = queue_life_agrees(life, true, "KEYS", "*", NULL);
	}
	return same;
}

static bool
same_keys(struct queue_life *life)
{
	const struct redis_value *value;
	size_t cursor = 0;

	if (!same_names(life)) {
		fprintf(stderr, "keys: %s\nand:  %s\n", buffer_text(&life->ours),
		        buffer_text(&life->theirs));
		return false;
	}
	while ((value = redis_model_next(life->model, &cursor)) != NULL) {
		static const char *const READS[REDIS_TYPE_COUNT][4] = {
			{ "GET", NULL, NULL, NULL },
			{ "LRANGE", "0", "-1", NULL },
			{ "HGETALL", NULL, NULL, NULL },
			{ "SMEMBERS", NULL, NULL, NULL },
			{ "ZRANGE", "0", "-1", "WITHSCORES" },
			{ "XLEN", NULL, NULL, NULL },
		};
		const char *const *read = READS[value->type];

		if (!queue_life_agrees(life, true, read[0], value->key->data, read[1],
		                       read[2], read[3], NULL)) {
			fprintf(stderr, "%s\n  model: %s\n  redis: %s\n", life->texts[1],
			        buffer_text(&life->ours), buffer_text(&life->theirs));
			return false;
		}
	}
	return true;
}

/* The library as it is, but for its clock: what Redis calls the time, and what it thinks
 * is left of the stamp. */
static struct span
library_text(void)
{
	static char text[1 << 19];
	static const char *const SWAPS[][2] = {
		{ "call('TIME')", "call('LRANGE', 'warmq_clock', 0, 1)" },
		{ "call('PTTL', key.stamp)",
		  "(function() local time, ends = call('LRANGE', 'warmq_clock', 0, 1), "
		  "call('PEXPIRETIME', key.stamp) return ends < 0 and ends or "
		  "ends - time[1] * 1000 - floor(time[2] / 1000) end)()" },
	};
	bool swapped[ARRAY_SIZE(SWAPS)] = { false };
	size_t len = 0;

	for (const char *at = functions_library; *at;) {
		size_t i = 0;

		while (i < ARRAY_SIZE(SWAPS) &&
		       strncmp(at, SWAPS[i][0], strlen(SWAPS[i][0])) != 0)
			i++;
		if (i < ARRAY_SIZE(SWAPS)) {
			memcpy(text + len, SWAPS[i][1], strlen(SWAPS[i][1]));
			len += strlen(SWAPS[i][1]);
			at += strlen(SWAPS[i][0]);
			swapped[i] = true;
		} else {
			text[len++] = *at++;
		}
		VERIFY(len < sizeof text - 256);
	}
	VERIFY(swapped[0]);
	VERIFY(swapped[1]);
	return (struct span){ text, len };
}

static bool
run_sequence(struct real_redis *real, uint64_t seed, bool show)
{
	struct queue_life *life = calloc(1, sizeof *life);
	struct lua_host *host = lua_host_create();
	const char *error;
	bool same = true;

	VERIFY(life);
	life->real = real;
	life->model = redis_model_create();
	error = lua_host_load(host, library_text());
	VERIFY(!error);
	lua_host_attach(host, life->model);
	prng_init(&life->prng, seed);
	buffer_init(&life->ours, 1 << 22);
	buffer_init(&life->theirs, 1 << 22);
	life->now_ms = 1800000000000;
	life->show = show;
	real_redis_text(real, "FLUSHALL");
	redis_model_set_time(life->model, real_redis_time(real));
	same = queue_life_begin(life);
	for (int i = 0; i < STEPS && same; i++)
		same = queue_life_step(life);
	same = same && same_keys(life);
	if (!same)
		fprintf(stderr, "seed %" PRIu64 " differs\n", seed);
	buffer_fini(&life->ours);
	buffer_fini(&life->theirs);
	redis_model_destroy(life->model);
	lua_host_destroy(host);
	free(life);
	return same;
}

int
main(int argc, char **argv)
{
	uint64_t count = 150;
	uint64_t from = 1;
	bool show = false;
	struct real_redis *real;
	uint64_t failed = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--show") == 0)
			show = true;
		else if (strcmp(argv[i], "--sequences") == 0 && i + 1 < argc)
			count = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc)
			from = strtoull(argv[++i], NULL, 10);
	}
	real = real_redis_open();
	if (!real) {
		fprintf(stderr, "There is no redis-server to compare with; skipped.\n");
		return 77;
	}
	real_redis_load(real, library_text());
	for (uint64_t seed = from; seed < from + count && failed < 3; seed++)
		failed += !run_sequence(real, seed, show);
	real_redis_close(real);
	printf("%" PRIu64 " sequences of %d calls, %" PRIu64 " differ\n", count, STEPS,
	       failed);
	return failed > 0;
}
