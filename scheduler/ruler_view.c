#include "scheduler/ruler_view.h"

#include "scheduler/ruler_inbox.h"
#include "scheduler/ruler_state.h"
#include "scheduler/ruler_unheld.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define WALK_MAX 4000 /* families looked at for one status, the latest first */
#define TOP_MAX  256

/* ---- which families -------------------------------------------------------------- */

struct top {
	uint32_t count, max;
	struct {
		uint32_t place;
		uint64_t work;
	} items[TOP_MAX];
};

/* Keeps the best, most work first; among equals the latest. */
static void
offer(struct top *top, uint32_t place, uint64_t work)
{
	uint32_t at = top->count;

	if (top->count == top->max) {
		if (top->max == 0 || top->items[top->max - 1].work >= work)
			return;
		at = top->max - 1;
	} else {
		top->count++;
	}
	while (at > 0 && top->items[at - 1].work < work) {
		top->items[at] = top->items[at - 1];
		at--;
	}
	top->items[at].place = place;
	top->items[at].work = work;
}

static void
count_family(struct ruler_health *health, const struct core_family_view *view)
{
	health->backlog += view->waiting;
	health->in_flight += view->running;
	if (view->blocked_on == CORE_BLOCKED_NOTHING)
		health->runnable += view->waiting;
}

struct span
ruler_view_missing(const struct ruler *ruler, const struct ruler_family *family)
{
	const struct ruler_budget_name *budget = &ruler->known.budgets[family->budget];
	struct span rest = span_from(budget->name), name = { "", 0 };

	if (budget->upstream < ruler->config->upstreams_count)
		return name;
	(void)protocol_cut(&rest, ':', &name);
	rest = name;
	(void)protocol_cut(&rest, '@', &name);
	return name;
}

int
ruler_view_core(const struct ruler *ruler, const struct ruler_family *family,
                struct core_family_view *ret_view)
{
	int err = core_family_view(ruler->core, family->id, ret_view);

	if (err == 0 && ret_view->blocked_on != CORE_BLOCKED_PAUSED &&
	    ret_view->waiting > 0 && ruler_view_missing(ruler, family).len > 0)
		ret_view->blocked_on = CORE_BLOCKED_NO_WORKER;
	return err;
}

static void
walk(struct ruler *ruler, struct top *top)
{
	const struct ruler_shelf *shelf = &ruler->known.family_shelf;
	struct core_family_view view;
	uint32_t place = shelf->newest;

	ruler->health.backlog = 0;
	ruler->health.in_flight = 0;
	ruler->health.runnable = 0;
	for (uint32_t i = 0; i < WALK_MAX && place != RULER_SHELF_NONE; i++) {
		uint64_t work = 0;

		if (ruler_view_core(ruler, &ruler->known.families[place], &view) == 0) {
			count_family(&ruler->health, &view);
			work = (uint64_t)view.waiting + view.running;
		}
		offer(top, place, work);
		place = shelf->places[place].older;
	}
}

/* ---- the status ------------------------------------------------------------------ */

struct ruler_health
ruler_view_health(const struct ruler *ruler, uint64_t now_ms)
{
	struct ruler_health health = ruler->health;

	health.phase = ruler->phase;
	health.admits = ruler->admits;
	health.families = ruler->known.family_shelf.count;
	health.inbox_lag_ms = ruler_inbox_lag_ms(ruler, now_ms);
	health.ever = (struct ruler_counts){
		.admitted = health.admitted + ruler->before.admitted,
		.done = health.done + ruler->before.done,
		.dead = health.dead + ruler->before.dead,
	};
	return health;
}

void
ruler_view_head(const struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	struct ruler_health health = ruler_view_health(ruler, now_ms);

	ruler_view_json_number(out, "now_ms", now_ms);
	ruler_view_json_text(out, "owner", span_from(ruler->owner));
	ruler_view_json_text(out, "phase", span_from(ruler_phase_text(health.phase)));
	ruler_view_json_bool(out, "admits", health.admits);
	ruler_view_json_bool(out, "hold", health.hold);
	ruler_unheld_put(ruler, out);
	ruler_view_json_bool(out, "pressure", health.memory_pressure);
	ruler_view_json_bool(out, "evicts", health.evicts);
	ruler_view_json_number(out, "inbox_lag_ms", health.inbox_lag_ms);
	ruler_view_json_open(out, "counts", '{');
	ruler_view_json_number(out, "families", health.families);
	ruler_view_json_number(out, "waiting", health.backlog);
	ruler_view_json_number(out, "running", health.in_flight);
	ruler_view_json_number(out, "runnable", health.runnable);
	ruler_view_json_number(out, "admitted", health.ever.admitted);
	ruler_view_json_number(out, "done", health.ever.done);
	ruler_view_json_number(out, "dead", health.ever.dead);
	ruler_view_json_number(out, "corrections", health.drift);
	ruler_view_json_number(out, "dead_letters", ruler->sizes.dead);
	ruler_view_json_number(out, "retried", ruler->sizes.retried);
	ruler_view_json_number(out, "deferred", ruler->sizes.deferred);
	ruler_view_json_number(out, "unsent", ruler->sizes.unsent);
	ruler_view_json_number(out, "recovered", ruler->sizes.recovered);
	ruler_view_json_close(out, '}');
}

static void
put_upstreams(const struct ruler *ruler, struct buffer *out)
{
	ruler_view_json_open(out, "upstreams", '[');
	for (size_t i = 0; i < ruler->config->upstreams_count; i++)
		ruler_view_json_text(out, NULL, ruler->config->upstreams[i].name);
	ruler_view_json_close(out, ']');
}

static void
put_budget(const struct ruler *ruler, uint64_t now_ms,
           const struct ruler_budget_name *budget, struct buffer *out)
{
	struct core_budget_view view;
	struct outside_sum outside;
	uint32_t running = 0;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "name", span_from(budget->name));
	if (core_budget_view(ruler->core, budget->id, &view) == 0) {
		ruler_view_json_number(out, "pace", view.pace);
		ruler_view_json_bool(out, "rising", view.rising);
		ruler_view_json_number(out, "parked_until_ms", view.parked_until_ms);
		ruler_view_json_number(out, "pending", view.pending);
		ruler_view_json_open(out, "limits", '{');
		ruler_view_json_number(out, "requests",
		                       view.limits[EVENT_BUCKET_REQUESTS]);
		ruler_view_json_number(out, "input", view.limits[EVENT_BUCKET_INPUT]);
		ruler_view_json_number(out, "output", view.limits[EVENT_BUCKET_OUTPUT]);
		ruler_view_json_close(out, '}');
		running = MIN(view.pending, view.pace);
	}
	outside = outside_sum(&budget->outside, now_ms, running);
	ruler_view_json_number(out, "requests_own", outside.own);
	ruler_view_json_number(out, "requests_foreign", outside.foreign);
	ruler_view_json_sum(out, &budget->sum);
	ruler_view_json_close(out, '}');
}

void
ruler_view_names(const struct ruler *ruler, uint64_t now_ms, struct buffer *out)
{
	const struct ruler_known *known = &ruler->known;

	ruler_view_json_open(out, "budgets", '[');
	for (uint32_t i = 0; i < known->budgets_count; i++)
		put_budget(ruler, now_ms, &known->budgets[i], out);
	ruler_view_json_close(out, ']');
	ruler_view_json_open(out, "pools", '[');
	for (uint32_t i = 0; i < known->pools_count; i++) {
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_text(out, "name", span_from(known->pools[i].name));
		ruler_view_json_number(out, "slots", known->pools[i].slots);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

void
ruler_view_status(struct ruler *ruler, uint64_t now_ms, uint32_t families_max,
                  bool busy_only, struct buffer *out)
{
	struct top top = { .max = MIN(families_max, TOP_MAX) };

	walk(ruler, &top);
	ruler_view_json_open(out, NULL, '{');
	ruler_view_head(ruler, now_ms, out);
	put_upstreams(ruler, out);
	ruler_view_json_open(out, "families", '[');
	for (uint32_t i = 0; i < top.count && (top.items[i].work > 0 || !busy_only); i++)
		ruler_view_json_family(ruler, top.items[i].place, out);
	ruler_view_json_close(out, ']');
	ruler_view_names(ruler, now_ms, out);
	ruler_view_json_close(out, '}');
}

int
ruler_view_family(const struct ruler *ruler, struct id128 family, struct buffer *out)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, family);

	if (place == RULER_SHELF_NONE)
		return ERR_NOT_FOUND;
	ruler_view_json_family(ruler, place, out);
	return 0;
}
