/* warmq - the command line of operators and producers: finds the verb, reads its
 * options by its table, runs it. */
#include "cli/verbs.h"

#include "common/buffer.h"
#include "common/io/redis_url.h"
#include "common/io/standard.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct verb *const verbs[] = {
#define X(name) &verb_##name,
	VERB_LIST(X)
#undef X
};

#define ARGS_SIZE_MAX 512 /* of the largest verb's struct */

/* ---- finding a verb -------------------------------------------------------------- */

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

/* The verb that the first words name, and how many they are; NULL if there is none. */
static const struct verb *
find_verb(int count, char **words, int *ret_used)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		*ret_used = match_words(verbs[i]->name, count, words);
		if (*ret_used > 0)
			return verbs[i];
	}
	return NULL;
}

/* "ls" of "job ls" for the group "job"; NULL if the verb is none of it. */
static const char *
word_in_group(const struct verb *verb, const char *group)
{
	size_t len = strlen(group);

	return strncmp(verb->name, group, len) == 0 && verb->name[len] == ' '
	               ? verb->name + len + 1
	               : NULL;
}

/* Whether verbs of two words begin with this one, as "job" does. */
static bool
is_group(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (word_in_group(verbs[i], word))
			return true;
	return false;
}

/* ---- help ------------------------------------------------------------------------ */

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
	fputs(all ? "\n`warmq help VERB` explains a verb and its options.\n"
	          : "\n`warmq help` lists all verbs; `warmq help VERB` explains one.\n",
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

static void
print_group(FILE *out, const char *group)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (word_in_group(verbs[i], group))
			fprintf(out, "  warmq %-14s %s\n", verbs[i]->name,
			        verbs[i]->summary);
}

static int
refuse_name(const char *group, const char *word, const char *nearest)
{
	const char *blank = *group ? " " : "";

	if (nearest)
		return cli_fail(
			CLI_USAGE,
			"There is no verb \"%s%s%.40s\". Did you mean \"%s%s%s\"?", group,
			blank, word, group, blank, nearest);
	return cli_fail(CLI_USAGE,
	                "There is no verb \"%s%s%.40s\". See `warmq help%s%s`.", group,
	                blank, word, blank, group);
}

/* No verb begins with these words: names the nearest one, or those of the group. */
static int
refuse_verb(int count, char **words)
{
	const char *names[ARRAY_SIZE(verbs)];
	size_t found = 0;

	if (!is_group(words[0])) {
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			names[i] = verbs[i]->name;
		return refuse_name("", words[0],
		                   options_nearest(words[0], names, ARRAY_SIZE(names)));
	}
	if (count < 2 || words[1][0] == '-') {
		fprintf(stderr, "warmq %s: say what to do:\n", words[0]);
		print_group(stderr, words[0]);
		return CLI_USAGE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (word_in_group(verbs[i], words[0]))
			names[found++] = word_in_group(verbs[i], words[0]);
	return refuse_name(words[0], words[1], options_nearest(words[1], names, found));
}

static bool
asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `warmq help`, `warmq help job`, `warmq help job show`, `warmq job --help`. */
static int
explain_words(int count, char **words)
{
	const struct verb *verb;
	int used;

	if (count == 0 || asks_for_help(words[0]))
		return print_help(stdout, true);
	verb = find_verb(count, words, &used);
	if (verb)
		return print_verb_help(verb);
	if (is_group(words[0]) && (count < 2 || words[1][0] == '-')) {
		print_group(stdout, words[0]);
		printf("\n`warmq help %s VERB` explains one.\n", words[0]);
		return CLI_OK;
	}
	return refuse_verb(count, words);
}

/* ---- running --------------------------------------------------------------------- */

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	_Alignas(max_align_t) char args[ARGS_SIZE_MAX] = { 0 };
	struct cli *cli = (struct cli *)args;
	struct options_error error;
	int words;

	VERIFY(verb->args_size <= sizeof args);
	if (options_parse(verb->options, argc, argv, args, &words, &error) < 0)
		return cli_fail(CLI_USAGE, "%s", error.text);
	if (cli->help)
		return print_verb_help(verb);
	if (words < verb->words_min)
		return cli_fail(CLI_USAGE, "%s", verb->missing);
	if (words > verb->words_max)
		return cli_fail(CLI_USAGE,
		                "\"%.60s\" is a word too many: warmq %s. See `warmq help "
		                "%s`.",
		                argv[1 + verb->words_max], verb->usage, verb->name);
	cli->argc = words;
	cli->argv = argv + 1;
	if (!cli->redis)
		cli->redis = getenv("WARMQ_REDIS");
	if (!cli->redis || !*cli->redis)
		cli->redis = REDIS_URL_DEFAULT;
	cli_catch_signals();
	return verb->run(cli);
}

static int
run_words(int argc, char **argv)
{
	const struct verb *verb;
	int used;

	if (argc < 2)
		return print_help(stderr, false), CLI_USAGE;
	if (strcmp(argv[1], "help") == 0)
		return explain_words(argc - 2, argv + 2);
	if (asks_for_help(argv[1]))
		return print_help(stdout, false);
	if (strcmp(argv[1], "--version") == 0)
		argv[1] = "version";
	verb = find_verb(argc - 1, argv + 1, &used);
	if (verb)
		return run_verb(verb, argc - used, argv + used);
	if (argc > 2 && is_group(argv[1]) && asks_for_help(argv[2]))
		return explain_words(1, argv + 1);
	return refuse_verb(argc - 1, argv + 1);
}

/* A pipe whose reader has gone, as `head` goes: he knows it himself. */
static bool
reader_has_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* An answer that a full disk cut off must not look whole: ids of jobs would be lost. */
static int
check_output(int status)
{
	int problem = fflush(stdout) == 0 ? 0 : errno;

	if (problem == 0 && !ferror(stdout))
		return status;
	if (!reader_has_gone())
		fprintf(stderr,
		        "warmq: Cannot write the answer: %s. What it speaks of was done "
		        "all the same.\n",
		        problem != 0 ? strerror(problem) : "a part of it is lost");
	return status == CLI_OK ? CLI_FAILED : status;
}

int
main(int argc, char **argv)
{
	standard_fill();
	return check_output(run_words(argc, argv));
}
