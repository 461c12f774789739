/* warmq-sim - plays whole fleets in virtual time, one seed after the other.
 *
 *   warmq-sim [--first FILE] [--seeds N] [--from S]    many seeds, one line each
 *   warmq-sim --seed S [--trace]                       one seed, line by line
 *   warmq-sim-marks --marks [--seeds N] [--from S]     and how often each mark was passed
 *   warmq-sim burst ... | numbers                      what a burst costs: burst.h
 *
 * FILE lists seeds that go first, one at the beginning of each line; # begins a comment.
 * --unheld takes the gates out of the game; --hash-only prints nothing but seeds and
 * trace hashes, to compare two builds. Exits with 1 as soon as a seed breaks a promise,
 * and says how to see it again. */
#include "common/mark.h"
#include "common/text.h"
#include "tests/sim/burst.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
	uint64_t seeds, from;
	const char *first;
	bool trace, hash_only, quiet, unheld, marks;
};

static uint64_t seed_now;

static void
say_how(FILE *out)
{
	fprintf(out, "To see it again:  ./dev sim --seed %" PRIu64 " --trace\n",
	        seed_now);
}

/* The simulator's end of a broken promise: the seed is all anybody needs. */
void
verify_fail(const char *expression, const char *file, int line)
{
	fflush(stdout);
	fprintf(stderr, "%s:%d: broken invariant: %s, with seed %" PRIu64 ".\n", file,
	        line, expression, seed_now);
	say_how(stderr);
	abort();
}

static void
print_id(FILE *out, struct id128 id)
{
	char hex[ID_HEX_LEN];

	id_encode(id, hex);
	fprintf(out, "%.*s", ID_HEX_LEN, hex);
}

static void
print_text(const struct redis_text *text)
{
	char line[400];

	(void)text_escape(redis_text_span(text), line, sizeof line);
	printf(" %s", line);
}

static void
print_value(const struct redis_value *value)
{
	size_t count = value->items.count;

	printf("%s:", value->key->data);
	if (value->type == REDIS_STRING)
		print_text(value->string);
	for (size_t i = 0; i < count && value->type == REDIS_LIST; i++)
		print_text(*redis_value_text(value, i));
	for (size_t i = 0; i < count && value->type == REDIS_ZSET; i++) {
		print_text(redis_value_member(value, i)->name);
		printf(" %.0f", redis_value_member(value, i)->score);
	}
	for (size_t i = 0; i < count && value->type == REDIS_HASH; i++) {
		printf("\n   ");
		print_text(redis_value_field(value, i)->name);
		print_text(redis_value_field(value, i)->value);
	}
	if (value->type == REDIS_STREAM)
		printf(" %zu entries", count);
	printf("\n");
}

/* What Redis holds when a traced seed has failed. */
static void
print_redis(const struct redis_model *model)
{
	const struct redis_value *value;
	size_t cursor = 0;

	while ((value = redis_model_next(model, &cursor)) != NULL) {
		if (strncmp(value->key->data, "warmq:result:", 13) != 0)
			print_value(value);
	}
}

static bool
play(uint64_t seed, const struct options *options)
{
	struct weather weather;
	struct world *world;
	bool ok;

	seed_now = seed;
	weather_init(&weather, seed);
	weather.unheld = options->unheld;
	world = world_create(&weather, options->trace ? stdout : NULL);
	ok = world_run(world);
	if (!ok && options->trace)
		print_redis(world->server.model);
	if (!options->quiet) {
		printf("seed %" PRIu64 " ", seed);
		print_id(stdout, trace_hash(&world->trace));
	}
	if (!options->quiet && !options->hash_only)
		printf(" %s %" PRIu64 " s, %u jobs, %" PRIu64 " starts, %" PRIu64
		       " ended, %" PRIu64 " calls",
		       ok ? "ok" : "BROKEN", world->agenda.now_us / 1000000,
		       world->oracle.jobs_count, world->oracle.starts,
		       world->oracle.terminal, world->server.calls);
	if (!options->quiet)
		printf("\n");
	if (!ok) {
		fflush(stdout);
		fprintf(stderr, "seed %" PRIu64 " breaks %s\n", seed,
		        world->oracle.failure);
		say_how(stderr);
	}
	world_destroy(world);
	return ok;
}

static int
usage(void)
{
	fprintf(stderr, "usage: warmq-sim [--first FILE] [--seeds N] [--from S] "
	                "[--seed S] [--trace] [--hash-only] [--unheld] [--quiet]\n");
	return 2;
}

static bool
read_options(int argc, char **argv, struct options *options)
{
	*options = (struct options){ .seeds = 200, .from = 1 };
	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;

		if (strcmp(argv[i], "--trace") == 0)
			options->trace = true;
		else if (strcmp(argv[i], "--hash-only") == 0)
			options->hash_only = true;
		else if (strcmp(argv[i], "--unheld") == 0)
			options->unheld = true;
		else if (strcmp(argv[i], "--quiet") == 0)
			options->quiet = true;
		else if (strcmp(argv[i], "--marks") == 0)
			options->marks = true;
		else if (strcmp(argv[i], "--first") == 0 && has_value)
			options->first = argv[++i];
		else if (strcmp(argv[i], "--seeds") == 0 && has_value)
			options->seeds = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--from") == 0 && has_value)
			options->from = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seed") == 0 && has_value) {
			options->from = strtoull(argv[++i], NULL, 10);
			options->seeds = 1;
		} else {
			return false;
		}
	}
	return true;
}

/* One line for each mark, for tests/sim/nightly.py. */
#ifdef WARMQ_MARKS
extern struct mark *const marks_first[] __asm__("__start_marks");
extern struct mark *const marks_end[] __asm__("__stop_marks");

static int
print_marks(void)
{
	for (struct mark *const *place = marks_first; place < marks_end; place++)
		printf("mark %s %s %" PRIu64 "\n", (*place)->name, (*place)->file,
		       (*place)->count);
	return 0;
}
#else
static int
print_marks(void)
{
	fprintf(stderr, "This program has no marks. ./dev sim marks builds one that has "
	                "them.\n");
	return 2;
}
#endif

/* The seeds that have failed before. */
static bool
play_first(const struct options *options)
{
	FILE *file = options->first ? fopen(options->first, "r") : NULL;
	char line[256];
	bool ok = true;

	if (!file && options->first) {
		fprintf(stderr, "cannot read %s\n", options->first);
		return false;
	}
	while (file && ok && fgets(line, sizeof line, file)) {
		if (line[0] >= '0' && line[0] <= '9')
			ok = play(strtoull(line, NULL, 10), options);
	}
	if (file)
		(void)fclose(file);
	return ok;
}

int
main(int argc, char **argv)
{
	struct options options;

	/* Large tables come and go with each scheduler: fresh pages need no clearing. */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
	if (argc > 1 && strcmp(argv[1], "burst") == 0)
		return burst_main(argc - 2, argv + 2);
	if (argc > 1 && strcmp(argv[1], "numbers") == 0)
		return burst_numbers(argc - 2, argv + 2);
	if (!read_options(argc, argv, &options))
		return usage();
	if (!play_first(&options))
		return 1;
	for (uint64_t i = 0; i < options.seeds; i++) {
		if (!play(options.from + i, &options))
			return 1;
	}
	if (options.marks)
		return print_marks();
	printf("%" PRIu64 " seeds from %" PRIu64 " on, and those that failed before: all "
	       "promises kept\n",
	       options.seeds, options.from);
	return 0;
}
