#include "scheduler/ruler_view_json.h"

#include "scheduler/ruler_family.h"

#include <stdio.h>

#define UNHELD " Holding is off for its route: nobody waits for its prefix."

/* ---- members --------------------------------------------------------------------- */

static void
begin(struct buffer *out, const char *name)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '{';

	if (last != '{' && last != '[')
		(void)buffer_append_byte(out, ',');
	if (name)
		(void)buffer_append_format(out, "\"%s\":", name);
}

void
ruler_view_json_open(struct buffer *out, const char *name, char bracket)
{
	if (name || out->len > 0)
		begin(out, name);
	(void)buffer_append_byte(out, bracket);
}

void
ruler_view_json_close(struct buffer *out, char bracket)
{
	(void)buffer_append_byte(out, bracket);
}

void
ruler_view_json_number(struct buffer *out, const char *name, uint64_t value)
{
	begin(out, name);
	(void)buffer_append_unsigned(out, value);
}

void
ruler_view_json_text(struct buffer *out, const char *name, struct span value)
{
	begin(out, name);
	(void)buffer_append_json(out, value);
}

void
ruler_view_json_bool(struct buffer *out, const char *name, bool value)
{
	begin(out, name);
	(void)buffer_append_text(out, value ? "true" : "false");
}

/* `value` thousandths, as 0.123; null for a negative one. */
static void
put_permille(struct buffer *out, const char *name, int64_t value)
{
	begin(out, name);
	if (value < 0)
		(void)buffer_append(out, SPAN("null"));
	else
		(void)buffer_append_format(out, "%lld.%03lld", (long long)(value / 1000),
		                           (long long)(value % 1000));
}

static int64_t
permille(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (int64_t)(part * 1000 / whole) : -1;
}

void
ruler_view_json_ratio(struct buffer *out, const char *name, uint64_t part, uint64_t whole)
{
	put_permille(out, name, permille(part, whole));
}

void
ruler_view_json_raw(struct buffer *out, const char *name, struct span json)
{
	begin(out, name);
	(void)buffer_append(out, json);
}

void
ruler_view_json_id(struct buffer *out, const char *name, struct id128 id)
{
	char hex[ID_HEX_LEN];

	id_encode(id, hex);
	ruler_view_json_text(out, name, (struct span){ hex, ID_HEX_LEN });
}

void
ruler_view_json_sum(struct buffer *out, const struct ruler_usage_sum *sum)
{
	uint64_t input = sum->read + sum->written + sum->uncached;

	ruler_view_json_number(out, "jobs_done", sum->jobs);
	ruler_view_json_number(out, "read", sum->read);
	ruler_view_json_number(out, "written", sum->written);
	ruler_view_json_number(out, "uncached", sum->uncached);
	ruler_view_json_number(out, "output", sum->output);
	put_permille(out, "prefix_hit_ratio", permille(sum->hits, sum->known));
	put_permille(out, "token_read_ratio", permille(sum->read, input));
}

/* ---- a family in plain words ----------------------------------------------------- */

static uint32_t
minimum_of(const struct ruler *ruler, const struct ruler_family *family)
{
	if (family->model >= ruler->known.models_count)
		return 0;
	return ruler_known_model_event(&ruler->known, family->model).model.minimum_tokens;
}

/* Nothing asks its provider to keep the prefix. */
static bool
is_unmarked(const struct ruler_family *family, const struct core_lane_view *leaf)
{
	return leaf->gate == LANE_BYPASS && leaf->reason == LANE_REASON_UNCACHEABLE &&
	       !family->markable;
}

static void
put_state(const struct ruler *ruler, const struct ruler_family *family,
          const struct core_lane_view *lane, bool elected, struct buffer *out)
{
	char text[96];

	if (lane->gate == LANE_BYPASS && lane->reason == LANE_REASON_OFF) {
		ruler_view_json_text(out, "state", SPAN("off"));
		return;
	}
	switch (lane->gate) {
	case LANE_CLOSED:
		ruler_view_json_text(out, "state", SPAN("cold"));
		return;
	case LANE_WRITING:
		ruler_view_json_text(out, "state",
		                     elected ? SPAN("cold") : SPAN("being written"));
		return;
	case LANE_CHECKING:
		ruler_view_json_text(out, "state", SPAN("checking"));
		return;
	case LANE_OPEN:
		ruler_view_json_text(out, "state", SPAN("warm"));
		ruler_view_json_number(out, "warm_until_ms", lane->until_ms);
		return;
	case LANE_BYPASS:
	case LANE_LEAKY:
	case LANE_GATE_COUNT:
		break;
	}
	if (lane->reason == LANE_REASON_BELOW_MINIMUM)
		(void)snprintf(text, sizeof(text), "not cacheable: below %u tokens",
		               minimum_of(ruler, family));
	else if (lane->reason == LANE_REASON_UNSHARED)
		(void)snprintf(text, sizeof(text), "not shared: one job only so far");
	else if (is_unmarked(family, lane))
		(void)snprintf(text, sizeof(text),
		               "not held: it carries no cache marker");
	else
		(void)snprintf(text, sizeof(text), "not held: %s",
		               lane_reason_text(lane->reason));
	ruler_view_json_text(out, "state", span_from(text));
}

static const char *
bucket_text(enum event_bucket bucket)
{
	static const char *const texts[EVENT_BUCKET_COUNT] = { "request", "input",
		                                               "output" };

	return (unsigned)bucket < EVENT_BUCKET_COUNT ? texts[bucket] : "unknown";
}

/* What binds, with its number; for the output budget also what would help. */
static void
put_budget_block(const struct ruler_family *family, const struct core_family_view *view,
                 struct buffer *out)
{
	unsigned long long limit = view->blocked_number, each = family->output;
	bool mixed = family->output_most > each + each / 8;
	uint64_t average =
		family->sum.jobs > 0 ? family->sum.output / family->sum.jobs : 0;
	uint64_t enough = average + average / 2;
	char text[200];

	if (view->blocked_bucket != EVENT_BUCKET_OUTPUT || each == 0) {
		(void)snprintf(text, sizeof(text), "%s budget (%llu a minute)",
		               bucket_text(view->blocked_bucket), limit);
		ruler_view_json_text(out, "blocked_on", span_from(text));
		return;
	}
	(void)snprintf(
		text, sizeof(text),
		"output budget (%llu a minute, %llu reserved by each%s: %llu at once)",
		limit, each, mixed ? " on average" : "", limit / each);
	ruler_view_json_text(out, "blocked_on", span_from(text));
	if (average == 0 || enough >= each)
		return;
	(void)snprintf(
		text, sizeof(text),
		"answers have %llu tokens on average: a max_tokens of %llu would let "
		"%llu run at once",
		(unsigned long long)average, (unsigned long long)enough,
		limit / (unsigned long long)enough);
	ruler_view_json_text(out, "advice", span_from(text));
}

static const char *
unit_text(enum event_bucket bucket)
{
	static const char *const texts[EVENT_BUCKET_COUNT] = { "requests", "input tokens",
		                                               "output tokens" };

	return (unsigned)bucket < EVENT_BUCKET_COUNT ? texts[bucket] : "units";
}

static const char *
parked_text(const struct ruler *ruler, const struct ruler_family *family)
{
	static const char *const texts[] = {
		"", /* by a scheduler before this one */
		": its provider said 429, over the account's limit",
		": its provider said 529, overloaded",
		": its provider answers with errors, or refuses the key",
		": it has reached its spend cap",
		": its provider is not reached, or does not answer",
	};
	uint32_t by = ruler->known.budgets[family->budget].parked_by;

	_Static_assert(ARRAY_SIZE(texts) == EVENT_PRESSURE_COUNT + 1, "each kind");
	return by < ARRAY_SIZE(texts) ? texts[by] : "";
}

/* The same as a sentence, for people who see this for the first time.  `%s` is the pool
 * or the account, `%llu` the number that binds. */
static void
put_why(const struct ruler *ruler, const struct ruler_family *family,
        const struct core_family_view *view, struct buffer *out)
{
	static const char *const plain[CORE_BLOCKED_COUNT] = {
		[CORE_BLOCKED_NOTHING] = "Jobs start as slots become free.",
		[CORE_BLOCKED_NO_WORK] = "No job waits.",
		[CORE_BLOCKED_PAUSED] =
			"It is paused: nothing starts until it is resumed.",
		[CORE_BLOCKED_CHECKING] = "The prefix was written; one job shows whether "
					  "it can be read, then the others start.",
	};
	const char *pool = ruler->known.pools[family->pool].name;
	const char *budget = ruler->known.budgets[family->budget].name;
	unsigned long long number = view->blocked_number;
	char text[320] = "";

	if (view->blocked_on < CORE_BLOCKED_COUNT && plain[view->blocked_on])
		(void)snprintf(text, sizeof(text), "%s", plain[view->blocked_on]);
	else if (view->blocked_on == CORE_BLOCKED_NO_WORKER)
		(void)snprintf(text, sizeof(text), "No live worker serves the pool %s.",
		               pool);
	else if (view->blocked_on == CORE_BLOCKED_PARKED)
		(void)snprintf(text, sizeof(text),
		               "The account %s is parked%s. Nothing starts there "
		               "meanwhile.",
		               budget, parked_text(ruler, family));
	else if (view->blocked_on == CORE_BLOCKED_WRITING)
		(void)snprintf(text, sizeof(text),
		               "One request is writing the prefix; the others wait until "
		               "they can read it, %llu s at most.",
		               (unsigned long long)family->hold_max_ms / 1000);
	else if (view->blocked_on == CORE_BLOCKED_ELECTED)
		(void)snprintf(
			text, sizeof(text),
			"One job may write the prefix and waits for a free slot in "
			"the pool %s.",
			pool);
	else if (view->blocked_on == CORE_BLOCKED_ORDER)
		(void)snprintf(text, sizeof(text),
		               "It is drained later: the slots of the pool %s work on "
		               "other prefixes first.",
		               pool);
	else if (view->blocked_on == CORE_BLOCKED_SLOTS)
		(void)snprintf(text, sizeof(text),
		               "It is being drained; all %u slots of the pool %s are "
		               "busy.",
		               ruler->known.pools[family->pool].slots, pool);
	else if (view->blocked_on == CORE_BLOCKED_PACE)
		(void)snprintf(text, sizeof(text),
		               "The account %s is approached step by step: %llu requests "
		               "at once now, twice as many as answers come.",
		               budget, number);
	else if (view->blocked_on == CORE_BLOCKED_BUDGET)
		(void)snprintf(text, sizeof(text),
		               "The account %s allows %llu %s a minute, and they are "
		               "used up.",
		               budget, number, unit_text(view->blocked_bucket));
	if (view->unheld && view->blocked_on != CORE_BLOCKED_NO_WORK &&
	    strlen(text) + sizeof(UNHELD) <= sizeof(text))
		memcpy(text + strlen(text), UNHELD, sizeof(UNHELD));
	ruler_view_json_text(out, "why", span_from(text));
}

static void
put_marker_advice(const struct ruler *ruler, size_t upstream, char *ret_text, size_t size)
{
	const struct ruler_upstream *of = upstream < ruler->config->upstreams_count
	                                          ? &ruler->config->upstreams[upstream]
	                                          : NULL;

	if (of && !of->markers)
		(void)snprintf(ret_text, size,
		               "if the server of %.*s knows cache_control, say `markers: "
		               "auto` there: each job pays its whole prompt now",
		               (int)of->name.len, of->name.data);
	else
		(void)snprintf(
			ret_text, size,
			"warmq explain says why no marker can stand in its requests");
}

/* What to do about it, where there is something to do. */
static void
put_advice(const struct ruler *ruler, const struct ruler_family *family,
           const struct core_family_view *view, struct buffer *out)
{
	const struct ruler_budget_name *budget = &ruler->known.budgets[family->budget];
	const char *pool = ruler->known.pools[family->pool].name;
	char text[160 + PROTOCOL_BUDGET_SIZE] = "";

	if (view->blocked_on == CORE_BLOCKED_NO_WORKER)
		(void)snprintf(text, sizeof(text), "start one: warmq-worker --pool %s",
		               pool);
	else if (view->blocked_on == CORE_BLOCKED_PAUSED)
		(void)snprintf(
			text, sizeof(text),
			"resume it: warmq family resume, or the button on its page");
	else if (view->blocked_on == CORE_BLOCKED_ORDER)
		(void)snprintf(text, sizeof(text),
		               "more slots of the pool %s start it sooner", pool);
	else if (view->blocked_on == CORE_BLOCKED_PARKED &&
	         budget->parked_by == EVENT_PRESSURE_SPEND + 1)
		(void)snprintf(text, sizeof(text),
		               "raise the cap at the provider, then say: warmq budget "
		               "unpark %s",
		               budget->name);
	else if (is_unmarked(family, &view->lanes[view->lanes_count - 1]))
		put_marker_advice(ruler, budget->upstream, text, sizeof(text));
	if (text[0])
		ruler_view_json_text(out, "advice", span_from(text));
}

static void
put_block(const struct ruler *ruler, const struct ruler_family *family,
          const struct core_family_view *view, struct buffer *out)
{
	char text[160];

	ruler_view_json_text(out, "blocked_kind",
	                     span_from(core_blocked_text(view->blocked_on)));

	switch (view->blocked_on) {
	case CORE_BLOCKED_BUDGET:
		put_budget_block(family, view, out);
		break;
	case CORE_BLOCKED_PACE:
		(void)snprintf(text, sizeof(text), "%s (%llu at once)",
		               core_blocked_text(view->blocked_on),
		               (unsigned long long)view->blocked_number);
		ruler_view_json_text(out, "blocked_on", span_from(text));
		break;
	default:
		ruler_view_json_text(out, "blocked_on",
		                     span_from(core_blocked_text(view->blocked_on)));
		break;
	}
	put_advice(ruler, family, view, out);
	ruler_view_json_number(out, "blocked_until_ms", view->blocked_until_ms);
}

static void
put_lane(const struct core_lane_view *lane, struct buffer *out)
{
	char text[PROTOCOL_LANE_ID_SIZE];
	struct protocol_lane_id id = { lane->lane.node, lane->lane.domain };
	size_t len = protocol_print_lane_id(id, text);

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "lane", (struct span){ text, len });
	ruler_view_json_text(out, "gate", span_from(lane_gate_text(lane->gate)));
	ruler_view_json_text(out, "reason", span_from(lane_reason_text(lane->reason)));
	ruler_view_json_number(out, "tokens", lane->p > 0 ? lane->p : lane->tokens);
	ruler_view_json_bool(out, "measured", lane->p > 0);
	ruler_view_json_number(out, "until_ms", lane->until_ms);
	ruler_view_json_number(out, "misses", lane->misses);
	ruler_view_json_bool(out, "holds", lane->gates);
	ruler_view_json_bool(out, "marked", lane->marked);
	ruler_view_json_close(out, '}');
}

/* How many of its account's requests may run at once. */
static void
put_window(const struct ruler *ruler, const struct ruler_family *family,
           struct buffer *out)
{
	struct id128 budget = ruler->known.budgets[family->budget].id;
	struct core_budget_view view;

	if (core_budget_view(ruler->core, budget, &view) == 0)
		ruler_view_json_number(out, "window", view.pace);
}

static void
improve(struct core_family_view *view, const struct ruler_view_use *use)
{
	uint32_t all = view->waiting + view->running;

	view->running = MIN(all, use->running);
	/* What ended meanwhile is not heard of yet: it does not wait, either. */
	view->waiting = view->waiting > 0 ? all - view->running : 0;
	if (view->waiting > 0)
		return;
	view->oldest_ms = 0;
	if (view->blocked_on != CORE_BLOCKED_PAUSED)
		view->blocked_on = CORE_BLOCKED_NO_WORK;
}

static void
put_core(const struct ruler *ruler, const struct ruler_family *family,
         const struct ruler_view_use *use, struct buffer *out)
{
	const struct core_lane_view *leaf;
	struct core_family_view view;

	if (core_family_view(ruler->core, family->id, &view) < 0) {
		ruler_view_json_text(out, "state", SPAN("idle"));
		return;
	}
	if (use)
		improve(&view, use);
	leaf = &view.lanes[view.lanes_count - 1];
	put_state(ruler, family, leaf, view.blocked_on == CORE_BLOCKED_ELECTED, out);
	put_block(ruler, family, &view, out);
	put_why(ruler, family, &view, out);
	put_window(ruler, family, out);
	ruler_view_json_number(out, "waiting", view.waiting);
	ruler_view_json_number(out, "running", view.running);
	ruler_view_json_number(out, "oldest_ms", view.oldest_ms);
	ruler_view_json_bool(out, "active", view.active);
	ruler_view_json_number(out, "rank", view.rank);
	ruler_view_json_number(out, "tokens", leaf->p > 0 ? leaf->p : leaf->tokens);
	ruler_view_json_open(out, "lanes", '[');
	for (uint32_t i = 0; i < view.lanes_count; i++)
		put_lane(&view.lanes[i], out);
	ruler_view_json_close(out, ']');
}

void
ruler_view_json_members(const struct ruler *ruler, uint32_t place,
                        const struct ruler_view_use *use, struct buffer *out)
{
	const struct ruler_known *known = &ruler->known;
	const struct ruler_family *family = &known->families[place];

	ruler_view_json_id(out, "id", family->id);
	ruler_view_json_text(out, "route", span_from(family->route));
	ruler_view_json_text(out, "pool", span_from(known->pools[family->pool].name));
	ruler_view_json_text(out, "budget",
	                     span_from(known->budgets[family->budget].name));
	ruler_view_json_bool(out, "paused", family->paused);
	put_core(ruler, family, use, out);
	ruler_view_json_number(out, "hold_max_ms", family->hold_max_ms);
	ruler_view_json_number(out, "input_estimate", ruler_family_input(family));
	ruler_view_json_number(out, "output_estimate", family->output);
	ruler_view_json_sum(out, &family->sum);
}

void
ruler_view_json_brief(const struct ruler *ruler, uint32_t place,
                      const struct ruler_view_use *use, struct buffer *out)
{
	const struct ruler_known *known = &ruler->known;
	const struct ruler_family *family = &known->families[place];
	const struct core_lane_view *leaf;
	struct core_family_view view;

	ruler_view_json_id(out, "family", family->id);
	ruler_view_json_text(out, "budget",
	                     span_from(known->budgets[family->budget].name));
	if (core_family_view(ruler->core, family->id, &view) < 0) {
		ruler_view_json_text(out, "state", SPAN("idle"));
		ruler_view_json_number(out, "waiting", 0);
		ruler_view_json_number(out, "running", 0);
	} else {
		improve(&view, use);
		leaf = &view.lanes[view.lanes_count - 1];
		put_state(ruler, family, leaf, view.blocked_on == CORE_BLOCKED_ELECTED,
		          out);
		ruler_view_json_number(out, "waiting", view.waiting);
		ruler_view_json_number(out, "running", view.running);
		ruler_view_json_number(out, "tokens",
		                       leaf->p > 0 ? leaf->p : leaf->tokens);
	}
	ruler_view_json_sum(out, &family->sum);
}

void
ruler_view_json_reason(const struct ruler *ruler, uint32_t place, struct buffer *out)
{
	const struct ruler_family *family = &ruler->known.families[place];
	struct core_family_view view;

	ruler_view_json_id(out, "family", family->id);
	ruler_view_json_text(out, "route", span_from(family->route));
	if (core_family_view(ruler->core, family->id, &view) < 0)
		return; /* it has gone since the table was taken */
	put_block(ruler, family, &view, out);
	put_why(ruler, family, &view, out);
}

void
ruler_view_json_family(const struct ruler *ruler, uint32_t place, struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_members(ruler, place, NULL, out);
	ruler_view_json_close(out, '}');
}
