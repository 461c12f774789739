#include "scheduler/ruler_why.h"

#include "scheduler/ruler_family.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#include <stdio.h>

#define UNHELD " Holding is off for its route: nobody waits for its prefix."

/* Nothing asks its provider to keep the prefix. */
bool
ruler_why_is_unmarked(const struct ruler_family *family,
                      const struct core_lane_view *leaf)
{
	return leaf->gate == LANE_BYPASS && leaf->reason == LANE_REASON_UNCACHEABLE &&
	       !family->markable;
}

static const char *
bucket_text(enum event_bucket bucket)
{
	static const char *const texts[EVENT_BUCKET_COUNT] = { "request", "input",
		                                               "output" };

	return (unsigned)bucket < EVENT_BUCKET_COUNT ? texts[bucket] : "unknown";
}

/* What the tokens of an answer reserve, and what would help. */
static void
put_output_block(const struct ruler_family *family, uint64_t limit, struct buffer *out)
{
	unsigned long long each = family->output;
	bool mixed = family->output_most > each + each / 8;
	uint64_t average =
		family->sum.jobs > 0 ? family->sum.output / family->sum.jobs : 0;
	uint64_t enough = average + average / 2;
	char text[200];

	(void)snprintf(
		text, sizeof(text),
		"output budget (%llu a minute, %llu reserved by each%s: %llu at once)",
		(unsigned long long)limit, each, mixed ? " on average" : "",
		limit / each);
	ruler_view_json_text(out, "blocked_on", span_from(text));
	if (average == 0 || enough >= each)
		return;
	(void)snprintf(
		text, sizeof(text),
		"answers have %llu tokens on average: a max_tokens of %llu would let "
		"%llu run at once",
		(unsigned long long)average, (unsigned long long)enough,
		(unsigned long long)(limit / enough));
	ruler_view_json_text(out, "advice", span_from(text));
}

/* What binds, with its number. */
static void
put_budget_block(const struct ruler_family *family, const struct core_family_view *view,
                 struct buffer *out)
{
	unsigned long long limit = view->blocked_number;
	unsigned long long each = ruler_family_input(family);
	char text[200];

	if (view->blocked_bucket == EVENT_BUCKET_OUTPUT && family->output > 0) {
		put_output_block(family, limit, out);
		return;
	}
	if (view->blocked_bucket == EVENT_BUCKET_INPUT && each > 0)
		(void)snprintf(text, sizeof(text),
		               "input budget (%llu a minute, %llu taken by each)", limit,
		               each);
	else
		(void)snprintf(text, sizeof(text), "%s budget (%llu a minute)",
		               bucket_text(view->blocked_bucket), limit);
	ruler_view_json_text(out, "blocked_on", span_from(text));
	ruler_view_json_text(out, "advice",
	                     SPAN("more workers do not help: a higher limit of the "
	                          "account, or a further account does"));
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

/* Workers of the pool that live and were told to claim nothing. */
static uint32_t
quiet_workers(const struct ruler *ruler, uint32_t pool)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		count += ruler->sessions[i].nonce != 0 && ruler->sessions[i].is_quiet &&
		         ruler->sessions[i].pool == pool;
	return count;
}

static bool
is_by_account(enum core_blocked blocked)
{
	return blocked == CORE_BLOCKED_PARKED || blocked == CORE_BLOCKED_PACE ||
	       blocked == CORE_BLOCKED_WINDOW || blocked == CORE_BLOCKED_BUDGET;
}

/* What its account does to it; "" if nothing. */
static void
print_account_why(const struct ruler *ruler, const struct ruler_family *family,
                  const struct core_family_view *view, char *ret_text, size_t size)
{
	const char *budget = ruler->known.budgets[family->budget].name;
	unsigned long long number = view->blocked_number;

	if (view->blocked_on == CORE_BLOCKED_PARKED)
		(void)snprintf(ret_text, size,
		               "The account %s is parked%s. Nothing starts there "
		               "meanwhile.",
		               budget, parked_text(ruler, family));
	else if (view->blocked_on == CORE_BLOCKED_PACE)
		(void)snprintf(ret_text, size,
		               "The account %s is approached step by step: %llu %s at "
		               "once now, twice as many when their answers come.",
		               budget, number, number == 1 ? "request" : "requests");
	else if (view->blocked_on == CORE_BLOCKED_WINDOW)
		(void)snprintf(ret_text, size,
		               "As many requests run as the account %s may have at once: "
		               "%llu, its configured concurrency.",
		               budget, number);
	else if (view->blocked_on == CORE_BLOCKED_BUDGET)
		(void)snprintf(ret_text, size,
		               "The account %s allows %llu %s a minute, and they are "
		               "used up.",
		               budget, number, unit_text(view->blocked_bucket));
}

/* What its pool does to it, likewise. */
static void
print_pool_why(const struct ruler *ruler, const struct ruler_family *family,
               const struct core_family_view *view, char *ret_text, size_t size)
{
	const struct ruler_pool_name *pool = &ruler->known.pools[family->pool];
	struct span missing = ruler_view_missing(ruler, family);

	if (view->blocked_on == CORE_BLOCKED_NO_WORKER && missing.len > 0)
		(void)snprintf(ret_text, size,
		               "The upstream %.*s is not in the configuration any more: "
		               "nobody will send these jobs.",
		               (int)missing.len, missing.data);
	else if (view->blocked_on == CORE_BLOCKED_NO_WORKER)
		(void)snprintf(ret_text, size,
		               quiet_workers(ruler, family->pool) > 0
		                       ? "All workers of the pool %s are quiet: they "
		                         "were told to start nothing more."
		                       : "No live worker serves the pool %s.",
		               pool->name);
	else if (view->blocked_on == CORE_BLOCKED_ELECTED)
		(void)snprintf(ret_text, size,
		               "One job may write the prefix and waits for a free slot "
		               "in the pool %s.",
		               pool->name);
	else if (view->blocked_on == CORE_BLOCKED_ORDER)
		(void)snprintf(ret_text, size,
		               "It is drained later: the slots of the pool %s work on "
		               "other prefixes first.",
		               pool->name);
	else if (view->blocked_on == CORE_BLOCKED_SLOTS)
		(void)snprintf(
			ret_text, size,
			"It is being drained; all %u slots of the pool %s are busy.",
			pool->slots, pool->name);
}

/* The same as a sentence, for people who see this for the first time. */
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
	char text[320] = "";

	if (view->blocked_on < CORE_BLOCKED_COUNT && plain[view->blocked_on])
		(void)snprintf(text, sizeof(text), "%s", plain[view->blocked_on]);
	else if (view->blocked_on == CORE_BLOCKED_WRITING)
		(void)snprintf(text, sizeof(text),
		               "One request is writing the prefix; the others wait until "
		               "they can read it, %llu s at most.",
		               (unsigned long long)family->hold_max_ms / 1000);
	else if (is_by_account(view->blocked_on))
		print_account_why(ruler, family, view, text, sizeof(text));
	else
		print_pool_why(ruler, family, view, text, sizeof(text));
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

static void
print_parked_advice(const struct ruler_budget_name *budget, char *ret_text, size_t size)
{
	switch (budget->parked_by) {
	case EVENT_PRESSURE_SPEND + 1:
		(void)snprintf(ret_text, size,
		               "raise the cap at the provider, then say: warmq budget "
		               "unpark %s",
		               budget->name);
		break;
	case EVENT_PRESSURE_AWAY + 1:
		(void)snprintf(ret_text, size,
		               "check its url and the network; the log of a worker has "
		               "what it heard");
		break;
	case EVENT_PRESSURE_ERROR + 1:
		(void)snprintf(ret_text, size,
		               "check its key; the log of a worker has its answer");
		break;
	default: /* a limit: it ends by itself */
		break;
	}
}

/* What to do about it, where there is something to do. */
static void
put_advice(const struct ruler *ruler, const struct ruler_family *family,
           const struct core_family_view *view, struct buffer *out)
{
	const struct ruler_budget_name *budget = &ruler->known.budgets[family->budget];
	const char *pool = ruler->known.pools[family->pool].name;
	struct span missing = ruler_view_missing(ruler, family);
	char text[160 + PROTOCOL_BUDGET_SIZE] = "";

	if (view->blocked_on == CORE_BLOCKED_NO_WORKER && missing.len > 0)
		(void)snprintf(text, sizeof(text),
		               "add %.*s to the configuration of scheduler and workers "
		               "again, or cancel these jobs",
		               (int)missing.len, missing.data);
	else if (view->blocked_on == CORE_BLOCKED_NO_WORKER)
		(void)snprintf(text, sizeof(text), "%sstart one: warmq-worker --pool %s",
		               quiet_workers(ruler, family->pool) > 0
		                       ? "say `warmq worker resume`, or "
		                       : "",
		               pool);
	else if (view->blocked_on == CORE_BLOCKED_PAUSED)
		(void)snprintf(
			text, sizeof(text),
			"resume it: warmq family resume, or the button on its page");
	else if (view->blocked_on == CORE_BLOCKED_ORDER)
		(void)snprintf(text, sizeof(text),
		               "more slots of the pool %s start it sooner", pool);
	else if (view->blocked_on == CORE_BLOCKED_PARKED)
		print_parked_advice(budget, text, sizeof(text));
	else if (view->blocked_on == CORE_BLOCKED_WINDOW)
		(void)snprintf(text, sizeof(text),
		               "more workers do not help; if its provider takes more, "
		               "raise concurrency in class_limits of the upstream");
	else if (view->blocked_on != CORE_BLOCKED_BUDGET && /* which has its own */
	         ruler_why_is_unmarked(family, &view->lanes[view->lanes_count - 1]))
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
	case CORE_BLOCKED_WINDOW:
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

void
ruler_why_put(const struct ruler *ruler, const struct ruler_family *family,
              const struct core_family_view *view, struct buffer *out)
{
	put_block(ruler, family, view, out);
	put_why(ruler, family, view, out);
}
