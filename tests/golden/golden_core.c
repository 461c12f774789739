/* Traces of the scheduler's core: what goes in, what comes out, beside the script.
 *
 *   ! slots 4                the script: what happens in the small world (core_rig.h)
 *   ! admit S 8
 *        0 > ADMITTED S n=8   the trace: made again by each run and compared
 *        0 < GRANT    S g=0>1 writing lead=1 rank=+0 marks=1
 *
 * Lines that begin with # are for people.  UPDATE=1 rewrites the files. */
#include "tests/golden/golden.h"
#include "tests/lib/core_rig.h"

#include <stdlib.h>

#define FILE_MAX 262144
#define LONG     3600000

static char wanted[FILE_MAX];

struct script {
	struct core_rig *rig; /* made by `slots` */
	FILE *out;
	const char *name;
	uint32_t line;
};

static void
fail(const struct script *script, const char *text)
{
	fprintf(stderr, "%s:%u: %s\n", script->name, script->line, text);
	exit(EXIT_FAILURE);
}

static void
do_slots(struct script *script, const char *first, const char *second)
{
	struct core_config config = core_rig_config();

	config.pace_start = second ? (uint32_t)strtoul(second, NULL, 10) : 32;
	script->rig = core_rig_create(&config, (uint32_t)strtoul(first, NULL, 10));
	script->rig->trace = script->out;
}

static void
do_pool(struct script *script, const char *first, const char *second)
{
	(void)core_rig_pool(script->rig, first, (uint32_t)strtoul(second, NULL, 10));
}

static void
do_admit(struct script *script, const char *first, const char *second)
{
	(void)core_rig_admit(script->rig, first, (uint32_t)strtoul(second, NULL, 10));
}

static void
do_low(struct script *script, const char *first, const char *second)
{
	(void)core_rig_admit_as(script->rig, first, 0, EVENT_LIST_LOW,
	                        (uint32_t)strtoul(second, NULL, 10));
}

static void
do_other(struct script *script, const char *first, const char *second)
{
	(void)core_rig_admit_as(script->rig, first, 1, EVENT_LIST_NORMAL,
	                        (uint32_t)strtoul(second, NULL, 10));
}

static void
do_run(struct script *script, const char *first, const char *second)
{
	core_rig_run(script->rig, strtoull(first, NULL, 10));
}

static void
do_drain(struct script *script, const char *first, const char *second)
{
	if (!core_rig_drain(script->rig, LONG))
		fail(script, "jobs are left after an hour");
}

static void
do_kill(struct script *script, const char *first, const char *second)
{
	core_rig_kill(script->rig);
}

static void
do_restart(struct script *script, const char *first, const char *second)
{
	core_rig_restart(script->rig);
}

static void
do_evict(struct script *script, const char *first, const char *second)
{
	core_rig_evict(script->rig);
}

static void
do_hold(struct script *script, const char *first, const char *second)
{
	core_rig_hold(script->rig, strcmp(first, "on") == 0);
}

static void
do_model(struct script *script, const char *first, const char *second)
{
	struct event event = { .kind = EVENT_MODEL };
	struct event_model *model = &script->rig->model;
	bool on = strcmp(second, "yes") == 0;

	if (strcmp(first, "calls") == 0)
		model->calls = on;
	else if (strcmp(first, "proves") == 0)
		model->proves = on;
	else if (strcmp(first, "markers") == 0)
		model->needs_marker = on;
	else if (strcmp(first, "exact") == 0)
		model->exact = on;
	else if (strcmp(first, "minimum") == 0)
		model->minimum_tokens = (uint32_t)strtoul(second, NULL, 10);
	else
		fail(script, "no such trait of a model");
	event.model = *model;
	core_rig_feed(script->rig, &event);
}

static void
do_set(struct script *script, const char *first, const char *second)
{
	struct core_rig_knobs *knobs = &script->rig->knobs;
	uint64_t value = strtoull(second, NULL, 10);

	if (strcmp(first, "lag") == 0)
		knobs->lag_ms = value;
	else if (strcmp(first, "job") == 0)
		knobs->job_ms = value;
	else if (strcmp(first, "cold") == 0)
		knobs->cold_ms = value;
	else if (strcmp(first, "hold") == 0)
		knobs->hold_max_ms = value;
	else if (strcmp(first, "answer") == 0)
		knobs->answer_ms = value;
	else if (strcmp(first, "line") == 0)
		knobs->line_ms = value;
	else if (strcmp(first, "off") == 0)
		knobs->cache_off = value;
	else if (strcmp(first, "unknown") == 0)
		knobs->usage_unknown = value;
	else if (strcmp(first, "unread") == 0)
		knobs->never_read = value;
	else if (strcmp(first, "mute") == 0)
		knobs->mute = value;
	else if (strcmp(first, "stopped") == 0)
		knobs->stopped = value;
	else if (strcmp(first, "deaf") == 0)
		knobs->deaf = (uint32_t)value;
	else if (strcmp(first, "pressure") == 0)
		knobs->pressure = (uint32_t)value;
	else if (strcmp(first, "broken") == 0)
		knobs->broken = (uint32_t)value;
	else if (strcmp(first, "refused") == 0)
		knobs->refused = (uint32_t)value;
	else
		fail(script, "no such knob");
}

static const struct {
	const char *word;
	uint32_t arguments; /* at least so many */
	void (*run)(struct script *, const char *first, const char *second);
} commands[] = {
	{ "slots", 1, do_slots }, { "pool", 2, do_pool },   { "admit", 2, do_admit },
	{ "low", 2, do_low },     { "other", 2, do_other }, { "run", 1, do_run },
	{ "drain", 0, do_drain }, { "kill", 0, do_kill },   { "restart", 0, do_restart },
	{ "evict", 0, do_evict }, { "hold", 1, do_hold },   { "model", 2, do_model },
	{ "set", 2, do_set },
};

static void
obey(struct script *script, const char *line)
{
	char words[3][64] = { "", "", "" };
	int count = sscanf(line, "! %63s %63s %63s", words[0], words[1], words[2]);

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(words[0], commands[i].word) != 0)
			continue;
		if (count < 1 + (int)commands[i].arguments)
			fail(script, "too few words");
		if (!script->rig && commands[i].run != do_slots)
			fail(script, "a script begins with `! slots N`");
		commands[i].run(script, words[1], count > 2 ? words[2] : NULL);
		return;
	}
	fail(script, "no such command");
}

/* Runs the script in `text` and writes it with a fresh trace. */
static void
tell(const char *name, const char *text, FILE *out)
{
	struct script script = { .out = out, .name = name };

	while (*text) {
		char line[256] = "";
		size_t len = strcspn(text, "\n");

		VERIFY(len < sizeof line);
		memcpy(line, text, len);
		text += len + (text[len] == '\n');
		script.line++;
		if (*line != '!' && *line != '#')
			continue; /* of the old trace */
		fprintf(out, "%s\n", line);
		if (*line == '!')
			obey(&script, line);
	}
	if (script.rig)
		core_audit(script.rig->core);
	script.rig = core_rig_free(script.rig);
}

/* Shows the first line that differs. */
static void
show(const char *name, const char *made)
{
	const char *a = wanted, *b = made;
	uint32_t line = 1;

	while (*a && *b && strcspn(a, "\n") == strcspn(b, "\n") &&
	       strncmp(a, b, strcspn(a, "\n")) == 0 && a[strcspn(a, "\n")]) {
		a += strcspn(a, "\n") + 1;
		b += strcspn(b, "\n") + 1;
		line++;
	}
	fprintf(stderr, "%s:%u: stored\n  %.*s\nmade\n  %.*s\n", name, line,
	        (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

static bool
check(const char *folder, const char *name)
{
	char path[4096], *made;
	size_t size;
	bool good;
	FILE *out = open_memstream(&made, &size);

	VERIFY(out);
	(void)snprintf(path, sizeof path, "%s/%s.trace", folder, name);
	(void)golden_load(path, wanted, sizeof wanted);
	tell(path, wanted, out);
	VERIFY(fclose(out) == 0);
	if (golden_updates()) {
		golden_save(path, span_from(made));
		(void)golden_load(path, wanted, sizeof wanted);
	}
	good = strcmp(made, wanted) == 0;
	if (!good)
		show(path, made);
	free(made);
	return good;
}

int
main(int argc, char **argv)
{
	return golden_run(argc, argv, ".trace", check);
}
