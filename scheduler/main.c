/* main.c - warmq-scheduler: admits jobs, decides who writes a cold prefix, grants. */
#include "common/codec/protocol.h"
#include "common/io/config.h"
#include "common/io/log.h"
#include "common/io/standard.h"
#include "common/options.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/shell.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct args {
	const char *config, *redis, *ns, *listen, *log_level, *record;
	bool log_json, print_config, version, help;
};

static const struct option_spec specs[] = {
	{ "config", OPTION_TEXT, offsetof(struct args, config), NULL, "FILE",
	  "configuration; without it $WARMQ_CONFIG, ./warmq.yaml, "
	  "/etc/warmq/warmq.yaml" },
	{ "redis", OPTION_TEXT, offsetof(struct args, redis), NULL, "URL",
	  "where Redis is; without it $WARMQ_REDIS, then the configuration" },
	{ "namespace", OPTION_TEXT, offsetof(struct args, ns), NULL, "NAME",
	  "what all keys begin with; overrides namespace" },
	{ "listen", OPTION_TEXT, offsetof(struct args, listen), NULL, "ADDRESS",
	  "where pages are served, or off; overrides scheduler.listen" },
	{ "log-level", OPTION_TEXT, offsetof(struct args, log_level), NULL, "LEVEL",
	  "debug, info, warning or error; overrides log_level" },
	{ "log-json", OPTION_FLAG, offsetof(struct args, log_json), NULL, NULL,
	  "write the log as JSON, whatever log_format says" },
	{ "record", OPTION_TEXT, offsetof(struct args, record), NULL, "FILE",
	  "keep what it decides on in memory, and write it there on SIGUSR1 and when "
	  "it breaks" },
	{ "print-config", OPTION_FLAG, offsetof(struct args, print_config), NULL, NULL,
	  "print the whole effective configuration and exit" },
	{ "version", OPTION_FLAG, offsetof(struct args, version), NULL, NULL,
	  "print the version and exit" },
	{ "help", OPTION_FLAG, offsetof(struct args, help), NULL, NULL,
	  "print this and exit" },
};
static const struct options_table table = { specs, ARRAY_SIZE(specs) };

static void
print_help(void)
{
	struct buffer text = BUFFER_INIT(65536);

	options_help(table, &text);
	(void)printf("usage: warmq-scheduler [options]\n\n"
	             "Admits jobs from the inbox, partitions them by prefix, lets one\n"
	             "request write each cold prefix while the others are held, and\n"
	             "paces all of them. Start two for a warm stand-by: one rules.\n\n"
	             "%s\n"
	             "SIGTERM and SIGINT: give the rule up and end.\n"
	             "SIGUSR1: write the record (--record).\n\n"
	             "Exit status: 0 stopped in order, 1 could not start or cannot work\n"
	             "with this Redis, 2 wrong command line or configuration.\n",
	             buffer_text(&text));
	buffer_fini(&text);
}

static int
complain(const char *text)
{
	(void)fprintf(stderr, "warmq-scheduler: %s\n", text);
	return SHELL_USAGE;
}

static int
set_if_given(struct config *config, const char *key, const char *value,
             struct config_error *reterr)
{
	return value ? config_set(config, key, span_from(value), reterr) : 0;
}

static int
load_config(const struct args *args, struct config *config)
{
	const char *path = config_find(args->config);
	const char *redis = args->redis ? args->redis : getenv("WARMQ_REDIS");
	struct config_error error;
	int err = 0;

	if (path)
		err = config_load(config, path, &error);
	if (err == 0)
		err = set_if_given(config, "redis", redis, &error);
	if (err == 0)
		err = set_if_given(config, "namespace", args->ns, &error);
	if (err == 0)
		err = set_if_given(config, "scheduler.listen", args->listen, &error);
	if (err == 0)
		err = config_finish(config, &error);
	if (err < 0)
		return complain(error.message);
	return 0;
}

static int
print_config(const struct config *config)
{
	struct buffer text = BUFFER_INIT(CONFIG_FILE_SIZE_MAX);
	int err = config_print(config, &text);

	if (err == 0)
		(void)fputs(buffer_text(&text), stdout);
	buffer_fini(&text);
	return err < 0 ? SHELL_TROUBLE : SHELL_STOPPED;
}

static int
start_log(const struct args *args, const struct config *config)
{
	struct log_options options = {
		.program = "scheduler",
		.level = (enum log_level)config->log_level,
		.json = args->log_json || config->log_format > 0,
	};

	if (args->log_level &&
	    log_level_parse(span_from(args->log_level), &options.level) < 0)
		return complain("--log-level is debug, info, warning or error");
	log_init(&options);
	return 0;
}

int
main(int argc, char **argv)
{
	struct options_error error;
	struct args args;
	struct config *config;
	int positional, result;

	standard_fill();
	if (options_parse(table, argc, argv, &args, &positional, &error) < 0)
		return complain(error.text);
	if (positional > 0)
		return complain("It takes options only; see --help.");
	if (args.help) {
		print_help();
		return SHELL_STOPPED;
	}
	if (args.version) {
		(void)printf("warmq-scheduler %s\n", functions_library_version);
		return SHELL_STOPPED;
	}
	config = config_create();
	if (!config)
		return complain("out of memory");
	result = load_config(&args, config);
	if (result == 0)
		result = start_log(&args, config);
	if (result == 0)
		result = args.print_config ? print_config(config)
		                           : (int)shell_run(config, args.record);
	config = config_destroy(config);
	return result;
}
