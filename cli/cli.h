/* cli.h - what every verb of `warmq` shares: where Redis is, how answers are printed,
 * what the exit codes mean.
 *
 *   stdout  the answer: text for people, one JSON value per line with --json
 *   stderr  progress and errors, never the answer
 *
 * A verb is one file, one table of options and one function; main.c lists them. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "common/base.h"
#include "common/error.h"
#include "common/options.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* it ran, and the answer is bad: a job failed, a check is red */
	CLI_USAGE = 2,  /* the command line is wrong */
	CLI_UNREACHABLE = 3, /* Redis or a program did not answer */
	CLI_NOT_FOUND = 4,
	CLI_TIMEOUT = 5, /* the wait ended first; nothing was cancelled */
	CLI_INTERRUPTED = 130,
};

/* What the options of every verb fill; its own struct starts with this one. */
struct cli {
	const char *redis;      /* URL; --redis, WARMQ_REDIS, redis://127.0.0.1:6379 */
	const char *name_space; /* key prefix without the colon */
	bool json;
	bool help;
	int argc; /* positional words of the verb */
	char **argv;
};

/* For tables: of all verbs; of those that print an answer; of those that ask Redis. */
#define CLI_HELP_OPTION(type)                                              \
	{                                                                  \
		"help", OPTION_FLAG, offsetof(type, cli.help), NULL, NULL, \
			"show this page"                                   \
	}
#define CLI_LOCAL_OPTIONS(type)                                                          \
	{ "json", OPTION_FLAG, offsetof(type, cli.json), NULL, NULL, "answer in JSON" }, \
		CLI_HELP_OPTION(type)
#define CLI_OPTIONS(type)                                                             \
	{ "redis",                                                                    \
	  OPTION_TEXT,                                                                \
	  offsetof(type, cli.redis),                                                  \
	  NULL,                                                                       \
	  "URL",                                                                      \
	  "where Redis is: redis://host:port/db or unix:///path; also WARMQ_REDIS" }, \
		{ "namespace", OPTION_TEXT, offsetof(type, cli.name_space),           \
		  "warmq",     "NAME",      "prefix of all keys" },                   \
		CLI_LOCAL_OPTIONS(type)

struct verb {
	const char *name;
	const char *usage; /* behind "warmq "; what is not typed as it is, in capitals */
	const char *summary;      /* one line */
	const char *details;      /* paragraphs of the help page; may be NULL */
	const char *missing;      /* the sentence if there are fewer than words_min */
	int words_min, words_max; /* words without dashes; INT_MAX: any number */
	const struct options_table options;
	size_t args_size; /* of the verb's struct, which starts with struct cli */
	int (*run)(struct cli *cli); /* answers an enum cli_exit */
	bool common;                 /* shown in the short help */
};

/* Prints "warmq: <sentence>" on stderr and answers `code`.  What a terminal would obey is
 * spelt out. */
int cli_fail(enum cli_exit code, const char *format, ...) PRINTF(2, 3);

/* CLI_OK for what XADD answers, MS-N, or MS-N.K for a job of a pack; else CLI_USAGE, and
 * it was said. */
MUST_USE int cli_check_job_id(const char *text);

/* Prints a value as one line of JSON on stdout and releases it. */
void cli_print_json(json_t *value);

/* Prints untrusted text so that a terminal obeys none of it; it stays on its line. */
void cli_print_escaped(struct span text);

/* The same for sentences of ours with words of somebody else's: line breaks stay. */
void cli_put_safely(FILE *file, struct span text);

/* The same as a JSON string, for a cell of a table. */
json_t *cli_json_safe(struct span text);

/* Text of Redis as a JSON string; what is not UTF-8 is spelt \xNN. */
json_t *cli_json_text(struct span text);

/* "1,234,567" */
const char *cli_grouped(uint64_t value, char ret_text[32]);

/* "1 job", "1,234 jobs" */
#define CLI_COUNT_SIZE 80
const char *cli_count(uint64_t count, const char *one, const char *many,
                      char ret_text[CLI_COUNT_SIZE]);

/* "3.2 s", "410 ms", "12 min": for people. */
const char *cli_duration(uint64_t ms, char ret_text[32]);

/* "14:07:12" and "2026-11-30 14:07:12" of ms since 1970, in local time. */
#define CLI_CLOCK_SIZE 24
const char *cli_clock(uint64_t ms, char ret_text[CLI_CLOCK_SIZE]);
const char *cli_date(uint64_t ms, char ret_text[CLI_CLOCK_SIZE]);

/* Milliseconds of the monotonic clock. */
uint64_t cli_now_ms(void);

/* True after SIGINT or SIGTERM; waits look at it. */
bool cli_is_interrupted(void);
void cli_catch_signals(void);

/* Whether somebody watches stdout. */
bool cli_is_terminal(void);

/* What switches a terminal to this colour; empty if stdout is none, with NO_COLOR, and on
 * a dumb one.  CLI_PLAIN ends it. */
enum cli_style {
	CLI_PLAIN,
	CLI_BOLD,
	CLI_GOOD,
	CLI_WARNING,
	CLI_BAD,
	CLI_STYLE_COUNT
};
const char *cli_style(enum cli_style style);

#endif
