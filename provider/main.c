/* warmq-provider: a simulated LLM provider on a loopback port.
 *
 * Exit codes: 0 stopped by SIGTERM or SIGINT, 1 it could not start, 2 the command line or
 * the configuration is wrong. */
#include "common/io/standard.h"
#include "common/options.h"
#include "provider/catalog.h"
#include "provider/server.h"
#include "provider/settings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAME_SIZE 48

enum exit_code {
	EXIT_STOPPED = 0,
	EXIT_TROUBLE = 1,
	EXIT_USAGE = 2,
};

struct arguments {
	uint64_t port;
	uint64_t seed;
	const char *port_file;
	const char *config;
	bool print_knobs;
	bool help;
	bool version;
	const char *knobs[SETTINGS_COUNT]; /* as text; NULL: not given */
};

static const struct option_spec own_options[] = {
	{ "port", OPTION_UNSIGNED, offsetof(struct arguments, port), "0", "N",
	  "loopback port to listen on; 0 takes a free one", 0, 65535 },
	{ "port-file", OPTION_TEXT, offsetof(struct arguments, port_file), NULL, "PATH",
	  "write the port into this file once it is open" },
	{ "config", OPTION_TEXT, offsetof(struct arguments, config), NULL, "PATH",
	  "JSON file with knobs, models, classes and keys" },
	{ "seed", OPTION_UNSIGNED, offsetof(struct arguments, seed), "1", "N",
	  "of everything that is drawn", 0, UINT64_MAX },
	{ "print-knobs", OPTION_FLAG, offsetof(struct arguments, print_knobs), NULL, NULL,
	  "print all knobs as JSON and end" },
	{ "version", OPTION_FLAG, offsetof(struct arguments, version), NULL, NULL,
	  "print the version and end" },
	{ "help", OPTION_FLAG, offsetof(struct arguments, help), NULL, NULL,
	  "print this and end" },
};

enum {
	OPTIONS_COUNT = ARRAY_SIZE(own_options) + SETTINGS_COUNT
};

/* Options of this run: our own, then one per knob, whose texts live here. */
struct command_line {
	struct option_spec options[OPTIONS_COUNT];
	char names[SETTINGS_COUNT][NAME_SIZE];
	char helps[SETTINGS_COUNT][SETTINGS_HELP_SIZE];
};

static int
fail(enum exit_code code, const char *text)
{
	fprintf(stderr, "warmq-provider: %s\n", text);
	return (int)code;
}

/* --- command line ------------------------------------------------------------------ */

/* visibility_lag_ms is --visibility-lag-ms. */
static void
fill_options(struct command_line *line)
{
	memcpy(line->options, own_options, sizeof own_options);
	for (enum settings_id i = 0; i < SETTINGS_COUNT; i++) {
		snprintf(line->names[i], NAME_SIZE, "%s", settings_name(i));
		for (char *c = line->names[i]; *c; c++)
			if (*c == '_')
				*c = '-';
		settings_help(i, line->helps[i]);
		line->options[ARRAY_SIZE(own_options) + i] = (struct option_spec){
			.name = line->names[i],
			.kind = OPTION_TEXT,
			.offset = offsetof(struct arguments, knobs) + i * sizeof(char *),
			.placeholder = "VALUE",
			.help = line->helps[i],
		};
	}
}

static int
print_help(const struct command_line *line)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	(void)buffer_append_text(
		&out, "Usage: warmq-provider [options]\n\n"
		      "A simulated LLM provider: Anthropic messages and OpenAI "
		      "chat completions on a\nloopback port, with the cache, "
		      "the limits and the faults of real ones.\n\n");
	options_help((struct options_table){ line->options, OPTIONS_COUNT }, &out);
	(void)buffer_append_text(
		&out,
		"\nEvery knob is also a member of --config and of POST /knobs, with "
		"underscores.\nGET /stats tells what happened.  Exit codes: 0 stopped by "
		"a signal, 1 could not\nstart, 2 wrong command line or "
		"configuration.\n");
	fputs(buffer_text(&out), stdout);
	buffer_fini(&out);
	return EXIT_STOPPED;
}

/* --- configuration ----------------------------------------------------------------- */

static int
load_config(const char *path, struct settings *settings, struct catalog *catalog,
            struct settings_error *error)
{
	static const char *const lists[] = { "models", "classes", "keys", NULL };
	json_error_t json_error;
	json_t *object;
	int err;

	object = json_load_file(path, JSON_REJECT_DUPLICATES, &json_error);
	if (!object) {
		snprintf(error->text, sizeof error->text, "%.100s, line %d: %.120s", path,
		         json_error.line, json_error.text);
		return ERR_MALFORMED;
	}
	err = settings_set_json(settings, object, lists, error);
	if (err == 0)
		err = catalog_load(catalog, object, error);
	json_decref(object);
	return err;
}

/* Defaults, then the file, then the flags. */
static int
configure(const struct arguments *arguments, struct settings *settings,
          struct catalog *catalog, struct settings_error *error)
{
	int err = 0;

	settings_init(settings);
	catalog_init(catalog);
	if (arguments->config)
		err = load_config(arguments->config, settings, catalog, error);
	for (enum settings_id i = 0; i < SETTINGS_COUNT && err == 0; i++)
		if (arguments->knobs[i])
			err = settings_set(settings, i, span_from(arguments->knobs[i]),
			                   error);
	return err;
}

static int
print_knobs(const struct settings *settings)
{
	json_t *json = settings_to_json(settings);
	int err = json ? json_dumpf(json, stdout, JSON_INDENT(2)) : -1;

	json_decref(json);
	putchar('\n');
	return err == 0 ? EXIT_STOPPED : EXIT_TROUBLE;
}

/* --- running ----------------------------------------------------------------------- */

/* Written under another name first, so that who sees the file sees all of it. */
static int
write_port_file(const char *path, unsigned port)
{
	char draft[4096];
	FILE *file;
	bool good;

	if ((size_t)snprintf(draft, sizeof draft, "%s.new", path) >= sizeof draft)
		return ERR_LIMIT;
	file = fopen(draft, "we");
	if (!file)
		return ERR_IO;
	good = fprintf(file, "%u\n", port) > 0;
	good = fclose(file) == 0 && good;
	return good && rename(draft, path) == 0 ? 0 : ERR_IO;
}

/* One descriptor per client. */
static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int
serve(struct server *server, const struct arguments *arguments)
{
	char text[256];
	uint16_t port;

	if (server_listen(server, (uint16_t)arguments->port, &port) < 0) {
		snprintf(text, sizeof text,
		         "Cannot listen on 127.0.0.1:%u: %s.  Choose another --port.",
		         (unsigned)arguments->port, strerror(errno));
		return fail(EXIT_TROUBLE, text);
	}
	if (arguments->port_file && write_port_file(arguments->port_file, port) < 0) {
		snprintf(text, sizeof text, "Cannot write %.128s: %s.",
		         arguments->port_file, strerror(errno));
		return fail(EXIT_TROUBLE, text);
	}
	printf("{\"port\":%u,\"url\":\"http://127.0.0.1:%u\"}\n", port, port);
	fflush(stdout);
	server_run(server);
	if (arguments->port_file)
		(void)unlink(arguments->port_file);
	return EXIT_STOPPED;
}

static int
run(const struct arguments *arguments)
{
	static struct settings settings; /* static: they are large */
	static struct catalog catalog;
	static struct server server;
	struct settings_error error;
	int code;

	if (configure(arguments, &settings, &catalog, &error) < 0)
		return fail(EXIT_USAGE, error.text);
	if (arguments->print_knobs)
		return print_knobs(&settings);
	raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);
	if (server_init(&server, &settings, &catalog, arguments->seed) < 0)
		return fail(EXIT_TROUBLE, "There is not enough memory.");
	code = serve(&server, arguments);
	server_fini(&server);
	return code;
}

int
main(int argc, char **argv)
{
	static struct command_line line;
	struct arguments arguments = { 0 };
	struct options_error error;
	int positional;

	standard_fill();
	fill_options(&line);
	if (options_parse((struct options_table){ line.options, OPTIONS_COUNT }, argc,
	                  argv, &arguments, &positional, &error) < 0)
		return fail(EXIT_USAGE, error.text);
	if (positional > 0)
		return fail(EXIT_USAGE,
		            "There is nothing to name but options; see --help.");
	if (arguments.help)
		return print_help(&line);
	if (arguments.version) {
		puts("warmq-provider " WARMQ_VERSION);
		return EXIT_STOPPED;
	}
	return run(&arguments);
}
