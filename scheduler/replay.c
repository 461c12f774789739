/* replay.c - warmq-replay: tells a core again what a scheduler's core was told.
 *
 * The decisions must be the same; if the scheduler broke on an event, so does this. */
#include "common/buffer.h"
#include "common/options.h"
#include "scheduler/record.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	EXIT_SAME = 0,
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_TORN = 3,
};

struct args {
	bool list, help;
};

static const struct option_spec specs[] = {
	{ "list", OPTION_FLAG, offsetof(struct args, list), NULL, NULL,
	  "print every event, with its time and how many commands it led to" },
	{ "help", OPTION_FLAG, offsetof(struct args, help), NULL, NULL,
	  "print this and exit" },
};
static const struct options_table table = { specs, ARRAY_SIZE(specs) };

static int
complain(const char *text)
{
	(void)fprintf(stderr, "warmq-replay: %s\n", text);
	return EXIT_USAGE;
}

static int
read_file(const char *path, struct buffer *out)
{
	FILE *file = fopen(path, "rb");
	char bytes[65536];
	size_t len;

	if (!file)
		return ERR_NOT_FOUND;
	while ((len = fread(bytes, 1, sizeof bytes, file)) > 0)
		buffer_append(out, (struct span){ bytes, len });
	(void)fclose(file);
	return buffer_error(out);
}

static void
print_step(uint64_t number, const struct record_step *step, const char *what)
{
	(void)printf("%8" PRIu64 "  %" PRIu64 "  %-16s %s\n", number, step->now_ms,
	             event_kind_text(step->event.kind), what);
}

/* A record without its beginning: what happened last, and nothing to compare. */
static int
show_torn(struct span rest, bool list)
{
	struct record_step step;
	uint64_t count = 0;

	while (record_next(&rest, &step)) {
		count++;
		if (list)
			print_step(count, &step,
			           step.decided ? "" : "the step never ended");
	}
	(void)printf("the beginning was dropped: %" PRIu64 " events are left to read "
	             "(--list), and none can be played\n",
	             count);
	return EXIT_TORN;
}

static int
play(struct core *core, struct span rest, bool list)
{
	static struct command_list commands;
	struct record_step step;
	uint64_t count = 0;
	char what[64];

	while (record_next(&rest, &step)) {
		count++;
		if (!step.decided) {
			(void)printf("the step of event %" PRIu64 ", %s, never ended; "
			             "playing it now\n",
			             count, event_kind_text(step.event.kind));
			(void)fflush(stdout);
		}
		core_step(core, step.now_ms, &step.event, &commands);
		(void)snprintf(what, sizeof what, "%u commands", commands.count);
		if (list)
			print_step(count, &step, what);
		if (step.decided && record_hash(&commands) != step.hash) {
			print_step(count, &step, "led to other decisions than recorded");
			return EXIT_OTHER;
		}
	}
	if (rest.len > 0)
		return complain("the file is damaged behind what was played");
	core_audit(core);
	(void)printf("%" PRIu64 " events played: all decisions are the same\n", count);
	return EXIT_SAME;
}

static int
replay(struct span file, bool list)
{
	struct record_header header;
	struct span rest;
	size_t size;
	void *memory;
	int err = record_open(file, &header, &rest);
	int result;

	if (err == ERR_LIMIT)
		return complain(
			"another build wrote this record; replay it with that one");
	if (err < 0)
		return complain("this is no record of warmq-scheduler");
	(void)printf("recorded by warmq-scheduler %s: %" PRIu64 " events since its core "
	             "began\n",
	             header.build, header.steps);
	if (header.torn)
		return show_torn(rest, list);
	size = core_size(&header.config);
	memory = aligned_alloc(16, (size + 15) & ~(size_t)15);
	if (!memory)
		return complain("out of memory");
	result = play(core_init(memory, size, &header.config), rest, list);
	free(memory);
	return result;
}

int
main(int argc, char **argv)
{
	struct buffer file = BUFFER_INIT(2 * RECORD_SIZE);
	struct options_error error;
	struct args args;
	int positional, result;

	if (options_parse(table, argc, argv, &args, &positional, &error) < 0)
		return complain(error.text);
	if (args.help || positional != 1) {
		struct buffer text = BUFFER_INIT(65536);

		options_help(table, &text);
		(void)printf(
			"usage: warmq-replay [options] FILE\n\n%s\n"
			"Exit status: 0 the same decisions, 1 others, 2 no record, 3 a "
			"record without its beginning.\n",
			buffer_text(&text));
		buffer_fini(&text);
		return args.help ? EXIT_SAME : EXIT_USAGE;
	}
	if (read_file(argv[1], &file) < 0)
		result = complain("cannot read the file");
	else
		result = replay(buffer_span(&file), args.list);
	buffer_fini(&file);
	return result;
}
