/* warmq - the command line of operators and producers: finds the verb, reads its
 * options by its table, runs it. */
#include "cli/verbs.h"

#include "common/buffer.h"

#include <stdio.h>
#include <stdlib.h>

static const struct verb *const verbs[] = {
#define X(name) &verb_##name,
	VERB_LIST(X)
#undef X
};

#define ARGS_SIZE_MAX 512 /* of the largest verb's struct */

static void
print_verbs(FILE *out, bool all)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (all || verbs[i]->common)
			fprintf(out, "  %-14s %s\n", verbs[i]->name, verbs[i]->summary);
}

static int
print_help(FILE *out, bool all)
{
	fputs("warmq - a job queue that writes each prompt prefix once\n\n"
	      "  warmq VERB [options]\n\n",
	      out);
	print_verbs(out, all);
	fputs(all ? "\n`warmq VERB --help` explains a verb and its options.\n"
	          : "\n`warmq help` lists all verbs; `warmq VERB --help` explains one.\n",
	      out);
	return CLI_OK;
}

static int
print_verb_help(const struct verb *verb)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	buffer_append_format(&out, "warmq %s\n\n  %s.\n", verb->usage, verb->summary);
	if (verb->details)
		buffer_append_format(&out, "\n%s\n", verb->details);
	buffer_append_text(&out, "\nOptions\n");
	options_help(verb->options, &out);
	fputs(buffer_text(&out), stdout);
	buffer_fini(&out);
	return CLI_OK;
}

/* How many of the words name the verb: 0 = another verb. */
static int
match_words(const char *name, int count, char **words)
{
	const char *blank = strchr(name, ' ');

	if (!blank)
		return count >= 1 && strcmp(words[0], name) == 0 ? 1 : 0;
	if (count < 2 || strlen(words[0]) != (size_t)(blank - name))
		return 0;
	if (strncmp(words[0], name, (size_t)(blank - name)) != 0)
		return 0;
	return strcmp(words[1], blank + 1) == 0 ? 2 : 0;
}

/* "job" alone, or "job nonsense": shows the verbs that begin so. */
static int
refuse_verb(int count, char **words)
{
	const char *names[ARRAY_SIZE(verbs)];
	const char *nearest;
	size_t len = strlen(words[0]);
	bool begun = false;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		names[i] = verbs[i]->name;
		if (strncmp(names[i], words[0], len) != 0 || names[i][len] != ' ')
			continue;
		if (!begun)
			fprintf(stderr, "warmq %s: say what to do:\n", words[0]);
		begun = true;
		fprintf(stderr, "  warmq %-14s %s\n", names[i], verbs[i]->summary);
	}
	if (begun)
		return CLI_USAGE;
	(void)count;
	nearest = options_nearest(words[0], names, ARRAY_SIZE(verbs));
	if (nearest)
		return cli_fail(CLI_USAGE,
		                "There is no verb like that. Did you mean \"%s\"?",
		                nearest);
	return cli_fail(CLI_USAGE, "There is no verb like that. See `warmq help`.");
}

/* What stands alone comes first in a usage, in capitals. */
static bool
takes_words(const struct verb *verb)
{
	const char *rest = verb->usage + strlen(verb->name);

	rest += strspn(rest, " [");
	return *rest >= 'A' && *rest <= 'Z';
}

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	_Alignas(max_align_t) char args[ARGS_SIZE_MAX] = { 0 };
	struct cli *cli = (struct cli *)args;
	struct options_error error;
	int positional;

	VERIFY(verb->args_size <= sizeof args);
	if (options_parse(verb->options, argc, argv, args, &positional, &error) < 0)
		return cli_fail(CLI_USAGE, "%s", error.text);
	if (cli->help)
		return print_verb_help(verb);
	if (positional > 0 && !takes_words(verb))
		return cli_fail(CLI_USAGE,
		                "\"%.60s\" is too much: usage: warmq %s. See --help.",
		                argv[1], verb->usage);
	cli->argc = positional;
	cli->argv = argv + 1;
	if (!cli->redis)
		cli->redis = getenv("WARMQ_REDIS");
	if (!cli->redis || !*cli->redis)
		cli->redis = "redis://127.0.0.1:6379";
	cli_catch_signals();
	return verb->run(cli);
}

int
main(int argc, char **argv)
{
	if (argc < 2)
		return print_help(stderr, false), CLI_USAGE;
	if (strcmp(argv[1], "help") == 0)
		return print_help(stdout, true);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help(stdout, false);
	if (strcmp(argv[1], "--version") == 0)
		argv[1] = "version";
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		int words = match_words(verbs[i]->name, argc - 1, argv + 1);

		if (words > 0)
			return run_verb(verbs[i], argc - words, argv + words);
	}
	return refuse_verb(argc - 1, argv + 1);
}
