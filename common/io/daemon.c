#include "common/io/daemon.h"

#include "common/io/log.h"
#include "common/io/standard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP_SIZE_MAX 65536

int
daemon_complain(const struct daemon *daemon, const char *text)
{
	(void)fprintf(stderr, "warmq-%s: %s\n", daemon->name, text);
	return DAEMON_EXIT_USAGE;
}

static void
print_help(const struct daemon *daemon)
{
	struct buffer text = BUFFER_INIT(HELP_SIZE_MAX);

	options_help(daemon->table, &text);
	(void)printf("usage: warmq-%s [options]\n\n%s\n%s\n%s", daemon->name,
	             daemon->about, buffer_text(&text), daemon->ending);
	buffer_fini(&text);
}

static int
print_config(const struct config *config)
{
	struct buffer text = BUFFER_INIT(CONFIG_FILE_SIZE_MAX);
	int err = config_print(config, &text);

	if (err == 0)
		(void)fputs(buffer_text(&text), stdout);
	buffer_fini(&text);
	return err < 0 ? DAEMON_EXIT_FAILED : DAEMON_EXIT_OK;
}

static int
set_if_given(struct config *config, const char *key, const char *value,
             struct config_error *reterr)
{
	return value ? config_set(config, key, span_from(value), reterr) : 0;
}

static const char *
text_at(const void *args, size_t offset)
{
	const char *text;

	memcpy(&text, (const char *)args + offset, sizeof text);
	return text;
}

static int
load(const struct daemon *daemon, const void *args, struct config *config)
{
	const struct daemon_args *common = args;
	const char *path = config_find(common->config);
	const char *redis = common->redis ? common->redis : getenv("WARMQ_REDIS");
	struct config_error error;
	int err = 0;

	if (path)
		err = config_load(config, path, &error);
	if (err == 0)
		err = set_if_given(config, "redis", redis, &error);
	if (err == 0)
		err = set_if_given(config, "namespace", common->ns, &error);
	for (size_t i = 0; err == 0 && i < daemon->overrides_count; i++)
		err = set_if_given(config, daemon->overrides[i].key,
		                   text_at(args, daemon->overrides[i].offset), &error);
	if (err == 0)
		err = config_finish(config, &error);
	return err < 0 ? daemon_complain(daemon, error.message) : DAEMON_EXIT_OK;
}

static int
start_log(const struct daemon *daemon, const struct daemon_args *args,
          const struct config *config)
{
	struct log_options options = {
		.program = daemon->name,
		.level = (enum log_level)config->log_level,
		.json = args->log_json || config->log_format > 0,
	};

	if (args->log_level &&
	    log_level_parse(span_from(args->log_level), &options.level) < 0)
		return daemon_complain(daemon, "--log-level is one of debug, info, "
		                               "warning, error.");
	log_init(&options);
	return DAEMON_EXIT_OK;
}

/* True iff the command line asks for no more than a text, or is wrong. */
static bool
is_answered(const struct daemon *daemon, int argc, char **argv, void *args,
            int *ret_status)
{
	const struct daemon_args *common = args;
	struct options_error error;
	int positional;

	*ret_status = DAEMON_EXIT_OK;
	if (options_parse(daemon->table, argc, argv, args, &positional, &error) < 0) {
		*ret_status = daemon_complain(daemon, error.text);
		return true;
	}
	if (common->help)
		print_help(daemon);
	else if (common->version)
		(void)printf("warmq-%s %s\n", daemon->name, daemon->version);
	else if (positional > 0)
		*ret_status =
			daemon_complain(daemon, "It takes options only; see --help.");
	return common->help || common->version || positional > 0;
}

struct config *
daemon_begin(const struct daemon *daemon, int argc, char **argv, void *args,
             int *ret_status)
{
	const struct daemon_args *common = args;
	struct config *config;

	standard_fill();
	if (is_answered(daemon, argc, argv, args, ret_status))
		return NULL;
	config = config_create();
	if (!config) {
		*ret_status = daemon_complain(daemon, "out of memory");
		return NULL;
	}
	*ret_status = load(daemon, args, config);
	if (*ret_status == DAEMON_EXIT_OK)
		*ret_status = start_log(daemon, common, config);
	if (*ret_status == DAEMON_EXIT_OK && !common->print_config)
		return config;
	if (*ret_status == DAEMON_EXIT_OK)
		*ret_status = print_config(config);
	return config_destroy(config);
}
