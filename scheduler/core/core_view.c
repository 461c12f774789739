/* What pages and the command line may know: the state, and what stands in the way. */
#include "scheduler/core/core.h"

#include "scheduler/core/family.h"
#include "scheduler/core/state.h"

static struct core_lane_view
view_lane(const struct core *core, const struct family *family, uint32_t place)
{
	const struct lane *lane = &core->lanes[family->lanes[place]];
	struct core_lane_view view = {
		.lane = lane->id,
		.gate = lane->gate,
		.reason = lane->reason,
		.until_ms = lane->until_ms,
		.check_ms = lane->gate == LANE_CHECKING ? lane->ready_ms : 0,
		.p = lane->p,
		.tokens = lane->tokens,
		.misses = lane->misses,
		.unproven = lane->unproven,
		.allowed = lane->gate == LANE_CHECKING ? lane->stage : 1,
		.gates = family->gates & 1u << place,
		.marked = family_marks(core, family) & 1u << place,
	};

	VERIFY(place < family->lanes_count);
	VERIFY(family->lanes[place] < core->config.lanes_max);
	if (!core->models[lane->model].traits.hold) {
		view.gate = LANE_BYPASS;
		view.reason = LANE_REASON_UNHELD;
	} else if (!core->hold || family->unheld) {
		view.gate = LANE_BYPASS;
		view.reason = LANE_REASON_OFF;
	}
	return view;
}

/* The bucket that lets the fewest of the family's jobs run: DESIGN's "which limit binds".
 * EVENT_BUCKET_COUNT if none has a limit. */
static enum event_bucket
tightest(const struct family *family, const struct pacer *pacer)
{
	const uint64_t needs[EVENT_BUCKET_COUNT] = {
		[EVENT_BUCKET_REQUESTS] = 1,
		[EVENT_BUCKET_INPUT] = family->input_tokens,
		[EVENT_BUCKET_OUTPUT] = family->output_tokens,
	};
	enum event_bucket best = EVENT_BUCKET_COUNT;
	uint64_t fits_best = UINT64_MAX;

	VERIFY(pacer->pace > 0);
	for (uint32_t i = 0; i < EVENT_BUCKET_COUNT; i++) {
		uint64_t limit = pacer_limit(pacer, i);

		if (limit == 0 || needs[i] == 0 || limit / needs[i] >= fits_best)
			continue;
		fits_best = limit / needs[i];
		best = i;
	}
	return best;
}

/* Slow start, the window or a bucket of the account; false if none of them binds. */
static bool
explain_account(const struct core *core, const struct family *family,
                struct core_family_view *view)
{
	const struct pacer *pacer = &core->pacers[family->budget];
	enum event_bucket bucket = tightest(family, pacer);
	bool bound = pacer_is_bound(core, pacer);

	VERIFY(family->waiting > 0);
	view->blocked_number = pacer->pace;
	if (pacer_is_rising(core, pacer) &&
	    pacer->pace < core->pools[family->pool].slots) {
		view->blocked_on = CORE_BLOCKED_PACE;
	} else if (pacer_is_full(core, pacer) && (!bound || pacer->bound_full)) {
		view->blocked_on = CORE_BLOCKED_WINDOW;
	} else if (bound && bucket < EVENT_BUCKET_COUNT) {
		view->blocked_on = CORE_BLOCKED_BUDGET;
		view->blocked_bucket = bucket;
		view->blocked_number = pacer_limit(pacer, bucket);
	} else {
		view->blocked_number = 0;
		return false;
	}
	return true;
}

/* It waits for its turn, or for a slot to write in; where slots are free, that is the
 * account's fault. */
static void
explain_turn(const struct core *core, const struct family *family,
             struct core_family_view *view)
{
	if (explain_account(core, family, view) && pool_leaves_slots(core, family->pool))
		return;
	view->blocked_number = 0;
	view->blocked_on = family->state == FAMILY_WAITING ? CORE_BLOCKED_ORDER
	                                                   : CORE_BLOCKED_ELECTED;
}

static void
explain_shut(const struct core *core, const struct family *family,
             struct core_family_view *view)
{
	VERIFY(!family_starts(core, family));
	VERIFY(family->waiting > 0);
	view->blocked_on = CORE_BLOCKED_WRITING;
	if (family->state == FAMILY_WAITING ||
	    family->credit.out > family->credit.started) {
		explain_turn(core, family, view);
		return;
	}
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		const struct lane *lane = &core->lanes[family->lanes[i]];

		if (!(family->gates & 1u << i) || lane->gate != LANE_CHECKING)
			continue;
		view->blocked_on = CORE_BLOCKED_CHECKING;
		view->blocked_until_ms = MAX(view->blocked_until_ms, lane->ready_ms);
	}
}

/* Ready, and yet it waits: the account, or others before it. */
static void
explain_ready(const struct core *core, const struct family *family,
              struct core_family_view *view)
{
	const struct pool *pool = &core->pools[family->pool];

	VERIFY(family_starts(core, family));
	VERIFY(family->waiting > 0);
	if (!explain_account(core, family, view) && pool->load > pool->slots &&
	    !pool_leaves_slots(core, family->pool))
		view->blocked_on = CORE_BLOCKED_SLOTS;
}

static void
explain(const struct core *core, const struct family *family,
        struct core_family_view *view)
{
	const struct pacer *pacer = &core->pacers[family->budget];

	VERIFY(family->budget < core->pacers_count);
	view->blocked_on = CORE_BLOCKED_NOTHING;
	if (family->state == FAMILY_PAUSED) {
		view->blocked_on = CORE_BLOCKED_PAUSED;
	} else if (family->waiting == 0) {
		view->blocked_on = CORE_BLOCKED_NO_WORK;
	} else if (core->pools[family->pool].slots == 0) {
		view->blocked_on = CORE_BLOCKED_NO_WORKER;
	} else if (pacer_is_parked(core, pacer) || pacer->is_away) {
		view->blocked_on = CORE_BLOCKED_PARKED;
		view->blocked_until_ms =
			pacer_is_parked(core, pacer) ? pacer->parked_ms : 0;
	} else if (!family_starts(core, family)) {
		explain_shut(core, family, view);
	} else {
		explain_ready(core, family, view);
	}
}

enum core_blocked
core_blocked_by(const struct core *core, const struct family *family)
{
	struct core_family_view view;

	view.blocked_until_ms = 0;
	explain(core, family, &view);
	return view.blocked_on;
}

int
core_family_view(const struct core *core, struct id128 id,
                 struct core_family_view *ret_view)
{
	uint32_t index = family_find(core, id);
	const struct family *family;
	struct core_family_view view;

	if (index == FAMILY_NONE)
		return ERR_NOT_FOUND;
	family = &core->families[index];
	view = (struct core_family_view){
		.id = family->id,
		.pool = core->pools[family->pool].id,
		.budget = core->pacers[family->budget].id,
		.model = core->models[family->model].traits.id,
		.lanes_count = family->lanes_count,
		.waiting = family->waiting,
		.running = family->running,
		.oldest_ms = family->oldest_ms,
		.unheld = family->unheld,
		.elected = family->credit.out > family->credit.started,
		.active = family->state == FAMILY_COLD || family->state == FAMILY_READY,
		.rank = family->rank,
	};
	for (uint32_t i = 0; i < family->lanes_count; i++)
		view.lanes[i] = view_lane(core, family, i);
	explain(core, family, &view);
	*ret_view = view;
	return 0;
}

int
core_budget_view(const struct core *core, struct id128 id,
                 struct core_budget_view *ret_view)
{
	uint32_t index = pacer_find(core, id);
	const struct pacer *pacer;

	if (index == LIST_NONE)
		return ERR_NOT_FOUND;
	pacer = &core->pacers[index];
	*ret_view = (struct core_budget_view){
		.pace = pacer->pace,
		.rising = pacer_is_rising(core, pacer),
		.parked_until_ms = pacer->parked_ms,
		.pending = pacer->load,
	};
	for (uint32_t i = 0; i < EVENT_BUCKET_COUNT; i++)
		ret_view->limits[i] = pacer_limit(pacer, i);
	return 0;
}

int
core_model_view(const struct core *core, struct id128 id,
                struct core_model_view *ret_view)
{
	uint32_t index = model_find(core, id);
	const struct model *model;

	if (index == LIST_NONE)
		return ERR_NOT_FOUND;
	model = &core->models[index];
	*ret_view = (struct core_model_view){
		.lag_ms = model->lag_ms,
		.proofs = model->proofs,
		.trusted = model_is_trusted(core, model),
		.call_refused = model->call_refused,
		.leader_ms = model_patience(core, model, core->config.hold_max_ms),
	};
	return 0;
}

struct core_counts
core_counts(const struct core *core)
{
	return core->counts;
}

const char *
core_blocked_text(enum core_blocked blocked)
{
	static const char *const texts[] = {
		[CORE_BLOCKED_NOTHING] = "nothing",
		[CORE_BLOCKED_NO_WORK] = "no work",
		[CORE_BLOCKED_PAUSED] = "paused",
		[CORE_BLOCKED_NO_WORKER] = "no worker",
		[CORE_BLOCKED_PARKED] = "parked",
		[CORE_BLOCKED_WRITING] = "being written",
		[CORE_BLOCKED_CHECKING] = "checking",
		[CORE_BLOCKED_ELECTED] = "elected",
		[CORE_BLOCKED_ORDER] = "drain order",
		[CORE_BLOCKED_SLOTS] = "slots",
		[CORE_BLOCKED_PACE] = "pace",
		[CORE_BLOCKED_WINDOW] = "window",
		[CORE_BLOCKED_BUDGET] = "budget",
	};

	VERIFY(blocked < CORE_BLOCKED_COUNT);
	return texts[blocked];
}
