#include "scheduler/ruler_note.h"

#include "scheduler/ruler_warm.h"

#include <stdarg.h>
#include <stdio.h>

#define NOTE_SIZE 512

static void PRINTF(3, 0) say(struct ruler *ruler, struct ruler_note *note,
                             const char *format, va_list args)
{
	char text[NOTE_SIZE];

	if (!ruler->config->say)
		return;
	(void)vsnprintf(text, sizeof(text), format, args);
	note->text = text;
	ruler->config->say(ruler->config->data, note);
}

void
ruler_note(struct ruler *ruler, enum ruler_level level, const char *format, ...)
{
	struct ruler_note note = { .level = level };
	va_list args;

	va_start(args, format);
	say(ruler, &note, format, args);
	va_end(args);
}

void
ruler_note_job(struct ruler *ruler, enum ruler_level level, struct span job,
               struct span route, const char *format, ...)
{
	struct ruler_note note = { .level = level, .job = job, .route = route };
	va_list args;

	va_start(args, format);
	say(ruler, &note, format, args);
	va_end(args);
}

void
ruler_note_about(struct ruler *ruler, enum ruler_level level,
                 const struct ruler_note *about, const char *format, ...)
{
	struct ruler_note note = *about;
	va_list args;

	note.level = level;
	va_start(args, format);
	say(ruler, &note, format, args);
	va_end(args);
}

PRINTF(3, 4)
static void
say_of(struct ruler *ruler, struct ruler_note *note, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(ruler, note, format, args);
	va_end(args);
}

/* ---- notes of the core ----------------------------------------------------------- */

static const char *
bucket_text(uint64_t bucket)
{
	static const char *const texts[] = { "requests", "input tokens",
		                             "output tokens" };

	return bucket < ARRAY_SIZE(texts) ? texts[bucket] : "units";
}

static const char *
pressure_text(uint64_t what)
{
	static const char *const texts[] = { "429: over our limit", "529: overloaded",
		                             "the provider refuses the key",
		                             "a spend cap",
		                             "it is not reached, or does not answer" };

	return what < ARRAY_SIZE(texts) ? texts[what] : "pressure";
}

static const char *
gate_word(uint64_t gate)
{
	static const char *const words[LANE_GATE_COUNT] = {
		[LANE_CLOSED] = "cold",      [LANE_WRITING] = "being written",
		[LANE_CHECKING] = "checked", [LANE_OPEN] = "warm",
		[LANE_BYPASS] = "not held",  [LANE_LEAKY] = "not held",
	};

	return gate < LANE_GATE_COUNT ? words[gate] : "unknown";
}

/* What it means that a lane's gate moved. */
static void
say_gate(struct ruler *ruler, struct ruler_note *note, uint64_t from, uint64_t to,
         uint64_t reason)
{
	switch ((enum lane_gate)to) {
	case LANE_CLOSED:
		say_of(ruler, note,
		       "the prefix is cold again (it was %s); the next job has to write "
		       "it",
		       gate_word(from));
		return;
	case LANE_WRITING:
		say_of(ruler, note, "one request writes the prefix, the others are held");
		return;
	case LANE_CHECKING:
		say_of(ruler, note, "the prefix was written, checking that it is read");
		return;
	case LANE_OPEN:
		say_of(ruler, note, "the prefix is warm, all jobs may start");
		return;
	case LANE_BYPASS:
		if (reason == LANE_REASON_UNSHARED || reason == LANE_REASON_OPAQUE ||
		    reason == LANE_REASON_BELOW_MINIMUM)
			note->level = RULER_DEBUG;
		say_of(ruler, note, "not held: %s",
		       lane_reason_text((enum lane_reason)reason));
		return;
	case LANE_LEAKY:
		say_of(ruler, note,
		       "not held any more: what is written is never read back");
		return;
	case LANE_GATE_COUNT:
		break;
	}
}

static void
describe_family(struct ruler *ruler, struct id128 id, char hex[ID_HEX_LEN],
                struct ruler_note *note)
{
	uint32_t place;

	if (id_is_none(id))
		return;
	id_encode(id, hex);
	note->family = (struct span){ hex, ID_HEX_LEN };
	place = ruler_shelf_find(&ruler->known.family_shelf, id);
	if (place != RULER_SHELF_NONE)
		note->route = span_from(ruler->known.families[place].route);
}

static void
describe_budget(struct ruler *ruler, struct id128 id, struct ruler_note *note)
{
	uint32_t place = ruler_known_budget_find(&ruler->known, id);

	if (place != UINT32_MAX)
		note->budget = span_from(ruler->known.budgets[place].name);
}

static void
describe_model(struct ruler *ruler, struct id128 id, struct ruler_note *note)
{
	const struct ruler_config *config = ruler->config;

	for (uint32_t i = 0; i < ruler->known.models_count; i++) {
		const struct ruler_model_name *model = &ruler->known.models[i];

		if (id_equals(model->id, id) && model->upstream < config->upstreams_count)
			note->budget = config->upstreams[model->upstream].name;
	}
}

/* Of one lane. */
static void
say_lane(struct ruler *ruler, const struct command_note *it, struct ruler_note *note)
{
	unsigned long long a = it->a, b = it->b;

	switch (it->kind) {
	case COMMAND_NOTE_GATE:
		say_gate(ruler, note, it->a, it->b, it->c);
		return;
	case COMMAND_NOTE_LEARNED:
		say_of(ruler, note, "the prefix has %llu tokens", a);
		return;
	case COMMAND_NOTE_CORRECTED:
		say_of(ruler, note,
		       "the prefix was taken for %llu tokens, three readers say %llu", a,
		       b);
		return;
	case COMMAND_NOTE_LATE:
		note->level = RULER_WARNING;
		say_of(ruler, note,
		       "the writing request said nothing for %llu ms; another one will "
		       "be chosen",
		       a);
		return;
	case COMMAND_NOTE_REVOKED:
		say_of(ruler, note,
		       "the turn to write is taken back: no request was heard of for "
		       "%llu ms",
		       a);
		return;
	default:
		return;
	}
}

static unsigned long long
seconds_to(uint64_t at_ms, uint64_t now_ms)
{
	return (at_ms - MIN(at_ms, now_ms) + 999) / 1000;
}

static void
say_limit(struct ruler *ruler, struct ruler_note *note, const char *what,
          unsigned long long limit)
{
	if (limit > 0)
		say_of(ruler, note, "the provider allows %llu %s a minute", limit, what);
	else
		say_of(ruler, note, "no limit of %s is kept: answers tell none any more",
		       what);
}

/* Of a model, a budget or a family. */
static void
say_other(struct ruler *ruler, uint64_t now_ms, const struct command_note *it,
          struct ruler_note *note)
{
	unsigned long long a = it->a, b = it->b, seconds = seconds_to(it->a, now_ms);

	switch (it->kind) {
	case COMMAND_NOTE_LAG:
		say_of(ruler, note, "entries are readable %llu ms after the first event",
		       a);
		return;
	case COMMAND_NOTE_TRUST:
		if (a)
			say_of(ruler, note,
			       "%llu entries in a row were readable at once: not "
			       "checking "
			       "any more",
			       b);
		else
			say_of(ruler, note, "an entry was not read: checking again");
		return;
	case COMMAND_NOTE_NO_CALL:
		say_of(ruler, note,
		       "the provider refuses our warm-up request; a job writes instead");
		return;
	case COMMAND_NOTE_PACE:
		say_of(ruler, note, "pace: %llu -> %llu requests at once", a, b);
		return;
	case COMMAND_NOTE_PARKED:
		note->level = RULER_WARNING;
		say_of(ruler, note, "nothing starts for %llu s: %s", seconds,
		       pressure_text(b));
		return;
	case COMMAND_NOTE_SPEND:
		note->level = RULER_ERROR;
		say_of(ruler, note,
		       "the account has reached its spend cap; nothing starts for %llu s "
		       "(%llu times so far). Raise the cap at the provider, then say: "
		       "warmq budget unpark",
		       seconds, b);
		return;
	case COMMAND_NOTE_LIMIT:
		say_limit(ruler, note, bucket_text(a), b);
		return;
	case COMMAND_NOTE_OVERDUE:
		note->level = RULER_WARNING;
		say_of(ruler, note, "its jobs go first: one waits for %llu ms, over %llu",
		       a, b);
		return;
	case COMMAND_NOTE_FULL:
		note->level = RULER_WARNING;
		say_of(ruler, note,
		       "too many families to hold this one too; its jobs run unheld. "
		       "Raise scheduler.families_max");
		return;
	case COMMAND_NOTE_WARM:
		if (it->a == CORE_WARM_YES)
			return; /* its gate says so */
		note->level = RULER_WARNING;
		say_of(ruler, note, "not written ahead of its jobs: %s",
		       ruler_warm_reason((enum core_warm)it->a));
		return;
	case COMMAND_NOTE_LOST:
		say_of(ruler, note, "%llu more notes were left out", a);
		return;
	default:
		return;
	}
}

static bool
is_of_family(const struct command_note *it)
{
	return it->kind == COMMAND_NOTE_OVERDUE || it->kind == COMMAND_NOTE_FULL ||
	       it->kind == COMMAND_NOTE_WARM;
}

void
ruler_note_command(struct ruler *ruler, uint64_t now_ms, const struct command_note *it)
{
	struct ruler_note note = { .level = RULER_INFO };
	char hex[ID_HEX_LEN];

	describe_family(ruler, is_of_family(it) ? it->id : it->lane.node, hex, &note);
	describe_budget(ruler, it->id, &note);
	describe_model(ruler, it->id, &note);
	say_lane(ruler, it, &note);
	say_other(ruler, now_ms, it, &note);
}
