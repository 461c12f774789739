/* main.c - warmq-worker: claims jobs and runs them. */
#include "common/io/daemon.h"
#include "common/io/log.h"
#include "common/io/state_dir.h"
#include "common/text.h"
#include "worker/core/agent.h"
#include "worker/files.h"
#include "worker/run_handler.h"
#include "worker/run_http.h"
#include "worker/run_null.h"
#include "worker/shell.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* The leak checker of the sanitizers has to look into the process. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAK_CHECKER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAK_CHECKER
#endif
#endif

#define LEASE_MS_MIN 600 /* shorter ones are lost to a busy moment */

struct args {
	struct daemon_args common;
	const char *pool, *label, *executor, *state_dir;
	uint64_t slots, drain_ms, lease_ms;
};

static const struct option_spec specs[] = {
	DAEMON_OPTIONS_PLACE,
	{ "pool", OPTION_TEXT, offsetof(struct args, pool), NULL, "NAME",
	  "the pool whose jobs to run; overrides worker.pool" },
	{ "slots", OPTION_UNSIGNED, offsetof(struct args, slots), NULL, "N",
	  "how many jobs run at once; overrides worker.slots", .min = 1,
	  .max = AGENT_SLOTS_MAX },
	{ "label", OPTION_TEXT, offsetof(struct args, label), NULL, "NAME",
	  "what lists and logs call this worker; without it the host's name" },
	{ "executor", OPTION_TEXT, offsetof(struct args, executor), NULL, "KIND",
	  "http, handler, or null (does nothing); without it handler if one is "
	  "configured, "
	  "else http" },
	{ "state-dir", OPTION_TEXT, offsetof(struct args, state_dir), NULL, "DIR",
	  "where paid results wait that Redis does not take; overrides state_dir" },
	{ "drain", OPTION_DURATION, offsetof(struct args, drain_ms), NULL, "TIME",
	  "how long running jobs may go on after SIGTERM; overrides worker.drain" },
	{ "lease", OPTION_DURATION, offsetof(struct args, lease_ms), "30s", "TIME",
	  "how long Redis waits for a silent worker", .hidden = true },
	DAEMON_OPTIONS_OUTPUT,
};

static const struct daemon_override overrides[] = {
	{ "worker.pool", offsetof(struct args, pool) },
	{ "state_dir", offsetof(struct args, state_dir) },
};

static const struct daemon program = {
	.name = "worker",
	.version = WARMQ_VERSION,
	.about = "Claims jobs of one pool and runs them: requests to the upstreams of\n"
		 "the configuration, or a program of yours. Keys are read from the\n"
		 "variables and files that the configuration names\n"
		 "(upstreams.<name>.key_env, key_file, headers_env), and are never "
		 "written anywhere.\n",
	.ending = "SIGTERM, SIGINT and SIGHUP: take nothing new, let running jobs end,\n"
		  "give the rest back. A second one: give back at once.\n\n"
		  "Exit status: 0 stopped in order, 1 failed, 2 wrong command line or\n"
		  "configuration, 3 a key is missing.\n",
	.table = { specs, ARRAY_SIZE(specs) },
	.overrides = overrides,
	.overrides_count = ARRAY_SIZE(overrides),
};

static const struct executor *const executors[] = {
	&run_http_executor,
	&run_handler_executor,
	&run_null_executor,
};

/* No core file, no debugger of another process: keys are in this memory. */
static void
harden(void)
{
	struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
#ifndef LEAK_CHECKER
	(void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

static int
complain(const char *text)
{
	return daemon_complain(&program, text);
}

static const struct executor *
find_executor(const struct args *args, const struct config *config)
{
	const char *name = args->executor;

	if (!name)
		name = config->worker.handler_count > 0 ? "handler" : "http";
	for (size_t i = 0; i < ARRAY_SIZE(executors); i++) {
		if (strcmp(executors[i]->name, name) == 0)
			return executors[i];
	}
	return NULL;
}

static const char *
choose_label(const struct args *args, char ret_label[HOST_NAME_MAX + 1])
{
	if (args->label)
		return args->label;
	if (gethostname(ret_label, HOST_NAME_MAX + 1) < 0)
		return "worker";
	ret_label[HOST_NAME_MAX] = '\0';
	return text_is_name(span_from(ret_label)) ? ret_label : "worker";
}

/* Fewer slots than were asked for, if there are too few files for them; 0: for none. */
static uint32_t
fit_slots(uint32_t slots, const struct executor *executor, uint64_t files)
{
	uint32_t fitting = files_slots(files, slots, executor->files_per_slot);

	if (fitting < slots)
		log_warning(
			"the limit of open files is too low for all slots; raise "
			"LimitNOFILE (ulimit -n), or lower worker.slots",
			LOG_NUMBER("limit", files),
			LOG_NUMBER("needed", (uint64_t)slots * executor->files_per_slot +
		                                     FILES_OWN),
			LOG_NUMBER("slots", slots), LOG_NUMBER("used", fitting));
	return fitting;
}

/* What is wrong with them, or NULL. */
static const char *
options_complaint(const struct shell_options *options)
{
	const struct config *config = options->config;

	if (!options->executor)
		return "--executor is one of http, handler, null.";
	if (options->lease_ms < LEASE_MS_MIN)
		return "--lease must be at least 600ms.";
	if (!text_is_name(span_from(options->label)))
		return "--label may have letters, digits, '.', '_' and '-' only.";
	if (options->executor == &run_handler_executor &&
	    config->worker.handler_count == 0)
		return "--executor handler needs worker.handler in the configuration: "
		       "the command line of your program.";
	if (options->executor == &run_http_executor && config->upstreams_count == 0)
		return "The configuration has no upstreams. Name one with "
		       "upstreams.<name>.url, or run with --executor null.";
	if (options->slots == 0 || options->slots > AGENT_SLOTS_MAX)
		return "worker.slots must be from 1 to 4096.";
	return NULL;
}

/* Behind the keys, which are not handed on to it, and before any thread. */
static int
run_guarded(const struct shell_options *options, struct guard *guard)
{
	enum shell_exit status;

	if (options->executor == &run_handler_executor && guard_open(guard) < 0)
		log_warning("handlers will outlive this worker if it is killed",
		            LOG_TEXT("cause", strerror(errno)));
	status = shell_run(options);
	guard_close(guard);
	return (int)status;
}

static int
run(const struct args *args, const struct config *config)
{
	struct files files = files_raise();
	char state_dir[STATE_DIR_PATH_SIZE], label[HOST_NAME_MAX + 1],
		why[UPSTREAM_ERROR_SIZE];
	struct upstream_list upstreams;
	struct guard guard = { .fd = -1 };
	struct shell_options options = {
		.config = config,
		.executor = find_executor(args, config),
		.upstreams = &upstreams,
		.guard = &guard,
		.files_inherited = files.inherited,
		.version = WARMQ_VERSION,
		.pool = config->worker.pool,
		.label = choose_label(args, label),
		.slots = (uint32_t)(args->slots ? args->slots : config->worker.slots),
		.lease_ms = args->lease_ms,
		.drain_ms = args->drain_ms ? args->drain_ms : config->worker.drain_ms,
		.state_dir = state_dir_choose(config->state_dir, state_dir),
	};
	const char *complaint = options_complaint(&options);
	int status;

	if (!complaint &&
	    redis_url_parse(span_from(config->redis), &options.url, why) < 0)
		complaint = why;
	if (complaint)
		return complain(complaint);
	options.slots = fit_slots(options.slots, options.executor, files.limit);
	if (options.slots == 0)
		return complain("The limit of open files is too low for a single slot: "
		                "raise LimitNOFILE (ulimit -n).");
	harden();
	if (upstream_open(config, options.executor->needs_keys, &upstreams, why) < 0) {
		(void)complain(why);
		return SHELL_EXIT_KEYS;
	}
	status = run_guarded(&options, &guard);
	upstream_close(&upstreams);
	return (int)status;
}

int
main(int argc, char **argv)
{
	struct args args;
	struct config *config;
	int status;

	config = daemon_begin(&program, argc, argv, &args, &status);
	if (!config)
		return status;
	status = run(&args, config);
	(void)config_destroy(config);
	return status;
}
