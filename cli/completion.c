/* completion.c - `warmq completion`: what bash completes, written from the tables of the
 * verbs, so that it knows each verb and each option. */
#include "cli/verbs.h"

#include <stdio.h>

struct args {
	struct cli cli;
};

static const struct option_spec specs[] = { CLI_HELP_OPTION(struct args) };

static const struct verb *const verbs[] = {
#define X(name) &verb_##name,
	VERB_LIST(X)
#undef X
};

/* The first word of a verb's name. */
static struct span
first_word(const struct verb *verb)
{
	return (struct span){ verb->name, strcspn(verb->name, " ") };
}

static bool
is_group(const struct verb *verb)
{
	return strchr(verb->name, ' ') != NULL;
}

/* Whether a verb before this one has the same first word. */
static bool
is_repeated(size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (span_equals(first_word(verbs[i]), first_word(verbs[at])))
			return true;
	return false;
}

static void
print_first_words(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!is_repeated(i))
			printf("%.*s ", (int)first_word(verbs[i]).len, verbs[i]->name);
}

/* "	job) words='ls show cancel' ;;" for each group. */
static void
print_groups(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		struct span group = first_word(verbs[i]);

		if (!is_group(verbs[i]) || is_repeated(i))
			continue;
		printf("\t%.*s) words='", (int)group.len, group.data);
		for (size_t j = i; j < ARRAY_SIZE(verbs); j++)
			if (span_equals(first_word(verbs[j]), group))
				printf("%s ", verbs[j]->name + group.len + 1);
		puts("' ;;");
	}
}

static void
print_options(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		/* What stands behind a verb of one word may be anything. */
		if (is_group(verbs[i]))
			printf("\t'%s') words='", verbs[i]->name);
		else
			printf("\t%s | '%s '*) words='", verbs[i]->name, verbs[i]->name);
		for (size_t j = 0; j < verbs[i]->options.count; j++)
			if (!verbs[i]->options.specs[j].hidden)
				printf("--%s ", verbs[i]->options.specs[j].name);
		puts("' ;;");
	}
}

static int
run(struct cli *cli)
{
	(void)cli;
	puts("# bash completion of warmq, as `warmq completion` prints it.\n"
	     "_warmq()\n"
	     "{\n"
	     "\tlocal at=1 verb words=\n\n"
	     "\tif [ \"${COMP_WORDS[1]}\" = help ] && [ \"$COMP_CWORD\" -gt 1 ]; then\n"
	     "\t\tat=2\n"
	     "\tfi\n"
	     "\tverb=${COMP_WORDS[at]}\n"
	     "\tif [ \"$COMP_CWORD\" -eq $at ]; then\n"
	     "\t\tverb=\n"
	     "\telif [ \"$COMP_CWORD\" -gt $((at + 1)) ]; then\n"
	     "\t\tcase ${COMP_WORDS[at + 1]} in\n"
	     "\t\t-*) ;;\n"
	     "\t\t*) verb=\"$verb ${COMP_WORDS[at + 1]}\" ;;\n"
	     "\t\tesac\n"
	     "\tfi\n"
	     "\tcase $verb in");
	fputs("\t'') words='help ", stdout);
	print_first_words();
	puts("' ;;");
	print_groups();
	print_options();
	puts("\tesac\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
	     "\"${COMP_WORDS[COMP_CWORD]}\")\n"
	     "}\n"
	     "complete -o default -F _warmq warmq");
	return CLI_OK;
}

const struct verb verb_completion = {
	.name = "completion",
	.usage = "completion",
	.summary = "print what lets bash complete verbs and options",
	.details = "For this shell:  source <(warmq completion)\n"
		   "For all:         warmq completion "
		   ">/usr/share/bash-completion/completions/warmq\n"
		   "where the package has not done so.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
};
