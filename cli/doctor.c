#include "cli/doctor.h"

#include "cli/verbs.h"
#include "common/io/redis_url.h"

#include <stdarg.h>
#include <stdio.h>

struct args {
	struct cli cli;
	const char *repair;
};

static const struct option_spec specs[] = {
	{ "repair", OPTION_TEXT, offsetof(struct args, repair), NULL, "WHAT",
	  "put this right: cursor (where admission goes on), books (counts, sets), "
	  "records (that cannot be read), jobs (that stand nowhere)" },
	CLI_OPTIONS(struct args),
};

static const char *const level_words[DOCTOR_LEVEL_COUNT] = {
	[DOCTOR_FINE] = "fine",
	[DOCTOR_WARNING] = "warning",
	[DOCTOR_BAD] = "bad",
};

/* ---- findings -------------------------------------------------------------------- */

void
doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
           const char *action, const char *format, ...)
{
	char text[1024];
	json_t *finding = json_object();
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	json_object_set_new(finding, "check", json_string(check));
	json_object_set_new(finding, "level", json_string(level_words[level]));
	json_object_set_new(finding, "text", cli_json_text(span_from(text)));
	if (action)
		json_object_set_new(finding, "do", cli_json_text(span_from(action)));
	json_array_append_new(doctor->findings, finding);
	doctor->counts[level]++;
}

const char *
doctor_command(const struct doctor *doctor, char ret_text[DOCTOR_COMMAND_SIZE],
               const char *format, ...)
{
	int len = snprintf(ret_text, DOCTOR_COMMAND_SIZE, "%s ", doctor->redis_cli);
	va_list args;

	va_start(args, format);
	vsnprintf(ret_text + len, DOCTOR_COMMAND_SIZE - (size_t)len, format, args);
	va_end(args);
	return ret_text;
}

/* ---- printing -------------------------------------------------------------------- */

static enum cli_style
style_of(const char *level)
{
	if (strcmp(level, level_words[DOCTOR_BAD]) == 0)
		return CLI_BAD;
	return strcmp(level, level_words[DOCTOR_WARNING]) == 0 ? CLI_WARNING : CLI_GOOD;
}

static void
print_finding(const json_t *finding)
{
	const char *level = json_string_value(json_object_get(finding, "level"));
	const char *action = json_string_value(json_object_get(finding, "do"));

	printf("%s%-8s%s %-10s ", cli_style(style_of(level)),
	       strcmp(level, "fine") == 0 ? "ok" : level, cli_style(CLI_PLAIN),
	       json_string_value(json_object_get(finding, "check")));
	cli_print_escaped(span_from(json_string_value(json_object_get(finding, "text"))));
	putchar('\n');
	if (!action)
		return;
	printf("%-19s do: ", "");
	cli_print_escaped(span_from(action));
	putchar('\n');
}

static void
print(const struct doctor *doctor, bool json)
{
	char warnings[CLI_COUNT_SIZE];
	const json_t *finding;
	size_t i;

	if (json) {
		cli_print_json(json_pack("{s:b, s:i, s:i, s:O}", "well",
		                         doctor->counts[DOCTOR_BAD] == 0, "bad",
		                         (int)doctor->counts[DOCTOR_BAD], "warnings",
		                         (int)doctor->counts[DOCTOR_WARNING], "findings",
		                         doctor->findings));
		return;
	}
	json_array_foreach(doctor->findings, i, finding)
	{
		print_finding(finding);
	}
	printf("%u bad, %s, %u fine\n", doctor->counts[DOCTOR_BAD],
	       cli_count(doctor->counts[DOCTOR_WARNING], "warning", "warnings", warnings),
	       doctor->counts[DOCTOR_FINE]);
}

/* ---- the verb -------------------------------------------------------------------- */

/* Asks for a password where one is needed; it never stands in what is printed. */
static void
name_user(const struct redis_url *url, struct doctor *doctor)
{
	size_t len = strlen(doctor->redis_cli);

	if (url->password[0] == '\0')
		return;
	snprintf(doctor->redis_cli + len, sizeof doctor->redis_cli - len,
	         "%s%s --askpass", url->user[0] ? " --user " : "", url->user);
}

static void
name_redis(const struct cli *cli, struct doctor *doctor)
{
	char message[REDIS_URL_ERROR_SIZE], text[REDIS_URL_TEXT_SIZE];
	struct redis_url url;

	if (redis_url_parse(span_from(cli->redis), &url, message) < 0)
		return; /* store_open has said so */
	redis_url_print(&url, text);
	state_dir_queue(cli->name_space, &url, doctor->queue);
	if (url.path[0] != '\0')
		snprintf(doctor->redis_cli, sizeof doctor->redis_cli,
		         url.database > 0 ? "redis-cli -s %s -n %u" : "redis-cli -s %s",
		         url.path, url.database);
	else
		snprintf(doctor->redis_cli, sizeof doctor->redis_cli, "redis-cli -u %.*s",
		         (int)sizeof doctor->redis_cli - 16, text);
	name_user(&url, doctor);
}

static int
look(struct doctor *doctor)
{
	int code = doctor_look_at_server(doctor);

	if (code == CLI_OK)
		code = doctor_look_at_queue(doctor);
	if (code == CLI_OK)
		code = doctor_look_at_jobs(doctor);
	if (code == CLI_OK)
		doctor_look_at_results(doctor);
	return code;
}

static int
run(struct cli *cli)
{
	const struct args *args = (const struct args *)cli;
	struct doctor doctor = { .findings = json_array() };
	int code;

	if (args->repair && !doctor_can_repair(args->repair))
		return cli_fail(CLI_USAGE,
		                "--repair takes cursor, books, records or jobs.");
	code = store_open(cli, &doctor.store);
	if (code != CLI_OK)
		goto out;
	name_redis(cli, &doctor);
	code = args->repair ? doctor_repair(&doctor, args->repair) : look(&doctor);
	if (code == CLI_OK) {
		print(&doctor, cli->json);
		code = doctor.counts[DOCTOR_BAD] > 0 ? CLI_FAILED : CLI_OK;
	}
	store_close(doctor.store);
out:
	json_decref(doctor.findings);
	return code;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.usage = "doctor [--repair WHAT]",
	.summary = "look for what is wrong, and say what to do about it",
	.details =
		"It looks at Redis, the functions, the books of the queue, workers and "
		"jobs, and\n"
		"changes nothing.  It ends with 0 if nothing is bad (there may be "
		"warnings), with 1\n"
		"if something is, with 3 if Redis does not answer.",
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
