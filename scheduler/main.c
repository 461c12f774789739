/* main.c - warmq-scheduler: admits jobs, decides who writes a cold prefix, grants. */
#include "common/io/daemon.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/shell.h"

struct args {
	struct daemon_args common;
	const char *listen, *record;
};

static const struct option_spec specs[] = {
	DAEMON_OPTIONS_PLACE,
	{ "listen", OPTION_TEXT, offsetof(struct args, listen), NULL, "ADDRESS",
	  "where pages are served, or off; overrides scheduler.listen" },
	{ "record", OPTION_TEXT, offsetof(struct args, record), NULL, "FILE",
	  "keep what it decides on in memory, and write it there on SIGUSR1 and when "
	  "it breaks" },
	DAEMON_OPTIONS_OUTPUT,
};

static const struct daemon_override overrides[] = {
	{ "scheduler.listen", offsetof(struct args, listen) },
};

static const struct daemon program = {
	.name = "scheduler",
	.version = functions_library_version,
	.about = "Admits jobs from the inbox, partitions them by prefix, lets one\n"
		 "request write each cold prefix while the others are held, and paces\n"
		 "all of them. Start two for a warm stand-by: one rules.\n",
	.ending =
		"SIGTERM, SIGINT and SIGHUP: give the rule up and end.\n"
		"SIGUSR1: write the record (--record).\n\n"
		"Exit status: 0 stopped in order, 1 could not start or cannot work with\n"
		"this Redis, 2 wrong command line or configuration.\n",
	.table = { specs, ARRAY_SIZE(specs) },
	.overrides = overrides,
	.overrides_count = ARRAY_SIZE(overrides),
};

int
main(int argc, char **argv)
{
	struct args args;
	struct config *config;
	int status;

	config = daemon_begin(&program, argc, argv, &args, &status);
	if (!config)
		return status;
	status = (int)shell_run(config, args.record);
	(void)config_destroy(config);
	return status;
}
