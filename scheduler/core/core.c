#include "scheduler/core/core.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/evidence.h"
#include "scheduler/core/family.h"
#include "scheduler/core/gate.h"
#include "scheduler/core/grant.h"
#include "scheduler/core/recover.h"
#include "scheduler/core/state.h"

#define TIMERS_PER_STEP 64
#define PLANS_PER_STEP  4 /* an election may make room for the next */

static void
on_tick(struct core *core, const struct event *event)
{
	VERIFY(event->kind == EVENT_TICK);
	(void)core;
}

static void
on_model(struct core *core, const struct event *event)
{
	model_configure(core, &event->model);
}

static void
on_pool(struct core *core, const struct event *event)
{
	pool_configure(core, &event->pool);
}

static void
on_budget(struct core *core, const struct event *event)
{
	pacer_configure(core, &event->budget);
}

static void
touch_all(struct core *core)
{
	for (uint32_t i = 0; i < core->config.lanes_max; i++)
		if (core->lanes[i].below.count > 0)
			lane_touch(core, i);
}

static uint32_t
find_route(const struct core *core, struct id128 route)
{
	VERIFY(core->unheld_count <= EVENT_UNHELD_MAX);
	for (uint32_t i = 0; i < core->unheld_count; i++)
		if (id_equals(core->unheld_routes[i], route))
			return i;
	return LIST_NONE;
}

bool
core_route_is_unheld(const struct core *core, struct id128 route)
{
	return !id_is_none(route) && find_route(core, route) != LIST_NONE;
}

/* Every family of the route finds its place again; lanes go by evidence as before. */
static void
hold_route(struct core *core, struct id128 route, bool on)
{
	uint32_t at = find_route(core, route);

	if (on == (at == LIST_NONE))
		return;
	if (!on && core->unheld_count == EVENT_UNHELD_MAX)
		return;
	if (on)
		core->unheld_routes[at] = core->unheld_routes[--core->unheld_count];
	else
		core->unheld_routes[core->unheld_count++] = route;
	for (uint32_t i = 0; i < core->config.families_max; i++) {
		struct family *family = &core->families[i];

		if (family->lanes_count == 0 || !id_equals(family->route, route))
			continue;
		family->unheld = !on;
		family_settle(core, i);
	}
	pool_plan_all(core);
}

static void
on_hold(struct core *core, const struct event *event)
{
	VERIFY(event->kind == EVENT_HOLD);
	if (!id_is_none(event->hold.route)) {
		hold_route(core, event->hold.route, event->hold.on);
		return;
	}
	if (core->hold == event->hold.on)
		return;
	core->hold = event->hold.on;
	family_settle_all(core);
	touch_all(core);
	pool_plan_all(core);
}

static void
on_pause(struct core *core, const struct event *event)
{
	uint32_t index = family_find(core, event->pause.family);

	if (index != FAMILY_NONE)
		family_pause(core, index, event->pause.on);
}

static void
on_recovered_family(struct core *core, const struct event *event)
{
	recover_family(core, &event->admitted);
}

static void
on_recovered_lane(struct core *core, const struct event *event)
{
	recover_lane(core, &event->lane);
}

static void
on_recovered_lease(struct core *core, const struct event *event)
{
	recover_lease(core, &event->start);
}

static void
on_recovered_budget(struct core *core, const struct event *event)
{
	pacer_recover(core, &event->recovered_budget);
}

static void
on_recovered_end(struct core *core, const struct event *event)
{
	VERIFY(event->kind == EVENT_RECOVERED_END);
	recover_end(core);
}

static void
on_admitted(struct core *core, const struct event *event)
{
	family_admit(core, &event->admitted);
}

static void
on_granted(struct core *core, const struct event *event)
{
	grant_take(core, &event->granted);
}

static void
on_paced(struct core *core, const struct event *event)
{
	pacer_take_status(core, &event->paced);
}

static void
on_glanced(struct core *core, const struct event *event)
{
	family_take_glance(core, &event->glanced);
}

/* The family whose own lane it is, or FAMILY_NONE. */
static uint32_t
family_at(const struct core *core, struct lane_id id)
{
	uint32_t lane = lane_find(core, id);

	return lane == LANE_NONE ? FAMILY_NONE : core->lanes[lane].family;
}

static void
on_start(struct core *core, const struct event *event)
{
	const struct event_start *start = &event->start;
	uint32_t index = family_at(core, start->lane);
	const struct family *family;

	VERIFY(start->role < LANE_ROLE_COUNT);
	if (index == FAMILY_NONE || start->role == LANE_PLAIN)
		return;
	family = &core->families[index];
	grant_take_proof(core, family_leaf(family), start->g);
	credit_take_start(core, index, start);
	if (start->role == LANE_HOLD_LIMIT && family->state == FAMILY_READY &&
	    core->hold && !family->unheld)
		grant_repair(core, index);
	if (start->role == LANE_NOW)
		family_count(core, index, family->waiting, family->running + 1);
	else if (start->role != LANE_TICKET)
		family_started(core, index);
}

/* Whether a first event of this family's requests tells anything: not if they cannot be
 * streamed, then only their end does. */
static bool
is_told_early(const struct core *core, const struct family *family)
{
	VERIFY(family->model < core->models_count);
	return core->models[family->model].traits.streams &&
	       !(family->flags & EVENT_FAMILY_NO_STREAM);
}

/* How much later a first event was told than the worker's clock shows.  It is told at
 * once, so this is how far that clock is behind the clock of Redis, or nearly. */
static uint64_t
lateness(const struct core *core, const struct evidence *evidence,
         const struct event_usage *usage, bool done)
{
	uint64_t at_ms = MIN(usage->at_ms, core->now_ms);

	if (done || evidence->first_ms == 0 || at_ms <= evidence->first_ms)
		return 0;
	return at_ms - evidence->first_ms;
}

static void
take_usage(struct core *core, uint32_t index, const struct event_usage *usage, bool done)
{
	const struct family *family = &core->families[index];
	uint32_t places = family->credit.lanes;
	bool credited = false;
	struct evidence evidence;
	uint64_t late_ms;

	VERIFY(index < core->config.families_max);
	VERIFY(usage->role < LANE_ROLE_COUNT);
	grant_take_proof(core, family_leaf(family), usage->g);
	evidence_judge(core, index, usage, &evidence);
	/* First the pacer: this request started before the gate that it may open. */
	late_ms = lateness(core, &evidence, usage, done);
	pacer_take_byte(core, family->budget, evidence.sent_ms + late_ms,
	                evidence.first_ms + late_ms, usage->limits);
	if (done || is_told_early(core, family))
		credited = credit_take_usage(core, index, usage->g, usage->role,
		                             usage->sent_ms, done);
	gate_take(core, index, &evidence, credited ? places : 0, done);
	if (credited)
		credit_seal(core, index);
	if (done && evidence.sent_ms > 0)
		pool_take_done(core, family->pool, core->now_ms - evidence.sent_ms);
}

static void
on_began(struct core *core, const struct event *event)
{
	uint32_t index = family_at(core, event->usage.lane);

	if (index != FAMILY_NONE)
		take_usage(core, index, &event->usage, false);
}

static void
on_done(struct core *core, const struct event *event)
{
	uint32_t index = family_at(core, event->usage.lane);

	if (index == FAMILY_NONE)
		return;
	take_usage(core, index, &event->usage, true);
	if (event->usage.g != core->families[index].credit.g)
		credit_take_other(core, index, false);
	family_ended(core, index);
}

static void
on_back(struct core *core, const struct event *event)
{
	const struct event_back *back = &event->back;
	uint32_t index = family_at(core, back->lane);

	VERIFY(back->why < LANE_BACK_COUNT);
	if (index == FAMILY_NONE)
		return;
	grant_take_proof(core, family_leaf(&core->families[index]), back->g);
	credit_take_back(core, index, back);
	if (back->g != core->families[index].credit.g)
		credit_take_other(core, index, false);
	if (back->why >= LANE_BACK_DEAD)
		family_ended(core, index);
	else
		family_returned(core, index);
}

static void
refuse_calls(struct core *core, struct model *model)
{
	if (model->call_refused)
		return;
	model->call_refused = true;
	note_id(core, COMMAND_NOTE_NO_CALL, model->traits.id, 0, 0);
}

static void
on_ticket(struct core *core, const struct event *event)
{
	const struct event_ticket *ticket = &event->ticket;
	uint32_t index = family_at(core, ticket->usage.lane);

	if (index == FAMILY_NONE)
		return;
	if (ticket->ok) {
		take_usage(core, index, &ticket->usage, true);
		return;
	}
	if (ticket->refused)
		refuse_calls(core, &core->models[core->families[index].model]);
	credit_take_failure(core, index, ticket->usage.g,
	                    ticket->refused ? LANE_BACK_DROPPED : LANE_BACK_FAILED);
}

static void
on_pressure(struct core *core, const struct event *event)
{
	pacer_take_pressure(core, &event->pressure);
}

/* The last list ran empty: what we believed to wait was started, or is gone. */
static void
on_empty(struct core *core, const struct event *event)
{
	uint32_t index = family_find(core, event->family.id), running;
	const struct family *family;

	if (index == FAMILY_NONE)
		return;
	family = &core->families[index];
	running = family->running;
	if (family->state == FAMILY_READY)
		running += family->waiting;
	family_count(core, index, 0, running);
	credit_take_look(core, index, running, 0);
}

static void
on_work(struct core *core, const struct event *event)
{
	uint32_t index = family_find(core, event->family.id);
	struct family *family;

	if (index == FAMILY_NONE)
		return;
	family = &core->families[index];
	if (family->waiting == 0)
		family->oldest_ms = core->now_ms;
	family_count(core, index, MAX(family->waiting, 1), family->running);
	family_look(core, index);
}

/* Redis closed the lane by its `until`.  If we know of a later start, it opens again. */
static void
on_expired(struct core *core, const struct event *event)
{
	uint32_t index = lane_find(core, event->expired.lane);
	struct lane *lane;

	if (index == LANE_NONE || core->lanes[index].g != event->expired.g)
		return;
	lane = &core->lanes[index];
	MARK(core_hears_of_an_end_from_a_claim);
	if (lane->granted.gate != LANE_GATE_COUNT)
		lane->granted.gate = LANE_CLOSED;
	if (lane->gate == LANE_OPEN && lane->until_ms <= core->now_ms)
		lane_move(core, index, LANE_CLOSED, LANE_REASON_NONE);
	else
		lane_touch(core, index);
}

static void
on_short(struct core *core, const struct event *event)
{
	pool_take_short(core, &event->short_pool);
}

static void
on_unpark(struct core *core, const struct event *event)
{
	pacer_unpark(core, &event->unpark);
}

static void
on_warm(struct core *core, const struct event *event)
{
	core_warm(core, event->family.id);
}

static void (*const handlers[EVENT_KIND_COUNT])(struct core *, const struct event *) = {
	[EVENT_TICK] = on_tick,
	[EVENT_MODEL] = on_model,
	[EVENT_POOL] = on_pool,
	[EVENT_BUDGET] = on_budget,
	[EVENT_HOLD] = on_hold,
	[EVENT_PAUSE] = on_pause,
	[EVENT_RECOVERED_FAMILY] = on_recovered_family,
	[EVENT_RECOVERED_LANE] = on_recovered_lane,
	[EVENT_RECOVERED_LEASE] = on_recovered_lease,
	[EVENT_RECOVERED_BUDGET] = on_recovered_budget,
	[EVENT_RECOVERED_END] = on_recovered_end,
	[EVENT_ADMITTED] = on_admitted,
	[EVENT_GRANTED] = on_granted,
	[EVENT_PACED] = on_paced,
	[EVENT_GLANCED] = on_glanced,
	[EVENT_START] = on_start,
	[EVENT_BEGAN] = on_began,
	[EVENT_DONE] = on_done,
	[EVENT_BACK] = on_back,
	[EVENT_TICKET] = on_ticket,
	[EVENT_PRESSURE] = on_pressure,
	[EVENT_EMPTY] = on_empty,
	[EVENT_WORK] = on_work,
	[EVENT_EXPIRED] = on_expired,
	[EVENT_SHORT] = on_short,
	[EVENT_UNPARK] = on_unpark,
	[EVENT_WARM] = on_warm,
};

static void
expire(struct core *core, uint32_t timer)
{
	uint32_t lanes = core->config.lanes_max, families = core->config.families_max;

	VERIFY(timer < core->config.lanes_max + core->config.families_max +
	                       core->config.budgets_max);
	if (timer < lanes)
		lane_expire(core, timer);
	else if (timer < lanes + families)
		family_expire(core, timer - lanes);
	else
		pacer_expire(core, timer - lanes - families);
}

static void
run_timers(struct core *core)
{
	VERIFY(!core->recovering);
	for (uint32_t i = 0; i < TIMERS_PER_STEP; i++) {
		uint32_t timer = heap_peek(&core->timers);

		if (timer == HEAP_NONE || heap_key(&core->timers, timer) > core->now_ms)
			return;
		(void)heap_pop(&core->timers);
		expire(core, timer);
	}
}

/* Pools take turns: a prefix that two of them wait for is not always the first one's. */
static bool
plan(struct core *core)
{
	bool planned = false;

	VERIFY(core->plan_first == 0 || core->plan_first < core->pools_count);
	for (uint32_t i = 0; i < core->pools_count; i++) {
		uint32_t index = (core->plan_first + i) % core->pools_count;

		if (!core->pools[index].plan)
			continue;
		pool_plan(core, index);
		planned = true;
	}
	return planned;
}

void
core_step(struct core *core, uint64_t now_ms, const struct event *event,
          struct command_list *out)
{
	VERIFY(now_ms >= core->now_ms);
	VERIFY(event->kind < EVENT_KIND_COUNT);
	core->now_ms = now_ms;
	core->counts.steps++;
	out->count = 0;

	handlers[event->kind](core, event);
	if (core->recovering)
		return;
	run_timers(core);
	if (core->pools_count > 0)
		core->plan_first = (core->plan_first + 1) % core->pools_count;
	for (uint32_t i = 0; i < PLANS_PER_STEP && plan(core); i++)
		;
	grant_emit(core, out);
}

uint64_t
core_deadline(const struct core *core)
{
	uint32_t timer = heap_peek(&core->timers);

	VERIFY(timer == HEAP_NONE || heap_contains(&core->timers, timer));
	if (core->recovering)
		return CORE_DEADLINE_NONE;
	if (grant_is_due(core))
		return core->now_ms;
	for (uint32_t i = 0; i < core->pools_count; i++)
		if (core->pools[i].plan)
			return core->now_ms;
	if (timer == HEAP_NONE)
		return CORE_DEADLINE_NONE;
	return MAX(core->now_ms, heap_key(&core->timers, timer));
}

bool
core_busy(const struct core *core)
{
	if (core->cold_count > 0)
		return true;
	for (uint32_t i = 0; i < core->pacers_count; i++)
		if (pacer_is_rising(core, &core->pacers[i]))
			return true;
	return false;
}

bool
core_lacks_workers(const struct core *core)
{
	for (uint32_t i = 0; i < core->pools_count; i++)
		for (uint32_t band = 0; band < POOL_BANDS; band++)
			if (core->pools[i].slots == 0 &&
			    core->pools[i].waiting[band].count > 0)
				return true;
	return false;
}
