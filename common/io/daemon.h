/* daemon.h - how the long-running programs begin: options, configuration, log.
 *
 *   argv ── options ──┐
 *   file ── config ───┼──► struct config ──► log ──► the program's own shell
 *   environment ──────┘      or: help, version, the configuration printed, a complaint
 *
 * Scheduler and worker take the same options for all of that, and the same words mean the
 * same.  Their own come between the two halves, in one table, which prints the help:
 *
 *   struct args {
 *           struct daemon_args common;       first: daemon_begin finds it there
 *           const char *pool;
 *   };
 *   static const struct option_spec specs[] = {
 *           DAEMON_OPTIONS_PLACE,
 *           { "pool", OPTION_TEXT, offsetof(struct args, pool), ... },
 *           DAEMON_OPTIONS_OUTPUT,
 *   };
 *
 * Complaints go to standard error as `warmq-NAME: what is wrong`, before there is a log.
 */
#ifndef COMMON_IO_DAEMON_H
#define COMMON_IO_DAEMON_H

#include "common/io/config.h"
#include "common/options.h"

#include <stddef.h>

struct daemon_args {
	const char *config, *redis, *ns, *log_level;
	bool log_json, print_config, version, help;
};

/* Where things are. */
#define DAEMON_OPTIONS_PLACE                                                           \
	{ "config",                                                                    \
	  OPTION_TEXT,                                                                 \
	  offsetof(struct daemon_args, config),                                        \
	  NULL,                                                                        \
	  "FILE",                                                                      \
	  "configuration; without it $WARMQ_CONFIG, ./warmq.yaml, "                    \
	  "/etc/warmq/warmq.yaml" },                                                   \
		{ "redis",                                                             \
		  OPTION_TEXT,                                                         \
		  offsetof(struct daemon_args, redis),                                 \
		  NULL,                                                                \
		  "URL",                                                               \
		  "where Redis is; without it $WARMQ_REDIS, then the configuration" }, \
	{                                                                              \
		"namespace", OPTION_TEXT, offsetof(struct daemon_args, ns), NULL,      \
			"NAME", "what all keys begin with; overrides namespace"        \
	}

/* What is said, and how. */
#define DAEMON_OPTIONS_OUTPUT                                                        \
	{                                                                            \
		"log-level",                                                         \
		OPTION_TEXT,                                                         \
		offsetof(struct daemon_args, log_level),                             \
		NULL,                                                                \
		"LEVEL",                                                             \
		"debug, info, warning or error; overrides log_level"                 \
	},                                                                           \
		{ "log-json",                                                        \
		  OPTION_FLAG,                                                       \
		  offsetof(struct daemon_args, log_json),                            \
		  NULL,                                                              \
		  NULL,                                                              \
		  "write the log as JSON, whatever log_format says" },               \
		{ "print-config",                                                    \
		  OPTION_FLAG,                                                       \
		  offsetof(struct daemon_args, print_config),                        \
		  NULL,                                                              \
		  NULL,                                                              \
		  "print the whole effective configuration and exit" },              \
		{ "version", OPTION_FLAG, offsetof(struct daemon_args, version),     \
		  NULL,      NULL,        "print the version and exit" },            \
	{                                                                            \
		"help", OPTION_FLAG, offsetof(struct daemon_args, help), NULL, NULL, \
			"print this and exit"                                        \
	}

/* An OPTION_TEXT of the program that overrides a key of the configuration. */
struct daemon_override {
	const char *key; /* "worker.pool" */
	size_t offset;   /* of the text in its struct args */
};

struct daemon {
	const char *name; /* "worker"; the program is warmq-worker, the log says worker */
	const char *version;
	const char *about;  /* what it does: printed above the options */
	const char *ending; /* signals and exit statuses: below them */
	struct options_table table;
	const struct daemon_override *overrides;
	size_t overrides_count;
};

/* Exit statuses that all of them share. */
enum daemon_exit {
	DAEMON_EXIT_OK = 0,
	DAEMON_EXIT_FAILED = 1,
	DAEMON_EXIT_USAGE = 2, /* command line or configuration */
};

/* Call first in main().  Fills `args`, a struct that begins with a struct daemon_args,
 * and answers the finished configuration, with the log open: the caller destroys it.
 * NULL if there is nothing more to do: all has been said, and `ret_status` is what to
 * exit with.  The texts in `args` live as long as argv. */
struct config *daemon_begin(const struct daemon *daemon, int argc, char **argv,
                            void *args, int *ret_status);

/* Says what is wrong with the command line or the configuration; answers
 * DAEMON_EXIT_USAGE. */
int daemon_complain(const struct daemon *daemon, const char *text);

#endif
