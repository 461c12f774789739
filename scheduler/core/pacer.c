#include "scheduler/core/pacer.h"

#include "common/mark.h"
#include "scheduler/core/state.h"

#define TRIP_MS_FIRST 1000  /* round trip to a first byte, until one was seen */
#define BOUND_MS      2000  /* how long "the budget holds" is believed */
#define ASK_MS        2000  /* until another start is asked for its first byte */
#define CLOCK_MS      5     /* how far the clocks of workers may be off */
#define SPEND_MS      60000 /* first park for a spend cap; doubles */
#define SPEND_MS_MAX  1800000
#define AWAY_MS       2000 /* between two that ask whether it is back */

uint32_t
pacer_find(const struct core *core, struct id128 id)
{
	return table_find(&core->pacers_by_id, id);
}

uint64_t
pacer_limit(const struct pacer *pacer, enum event_bucket bucket)
{
	VERIFY(bucket < EVENT_BUCKET_COUNT);
	return pacer->configured[bucket] > 0 ? pacer->configured[bucket]
	                                     : pacer->learned[bucket];
}

uint32_t
pacer_learned(const struct pacer *pacer)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < EVENT_BUCKET_COUNT; i++)
		if (pacer->configured[i] == 0 && pacer->learned[i] > 0)
			bits |= UINT32_C(1) << i;
	return bits;
}

static uint32_t
pace_max(const struct pacer *pacer)
{
	return pacer->pace_max > 0 ? MIN(pacer->pace_max, PACER_PACE_MAX)
	                           : PACER_PACE_MAX;
}

bool
pacer_is_parked(const struct core *core, const struct pacer *pacer)
{
	return core->now_ms < pacer->parked_ms;
}

/* Requests that could be in flight if there were no pace. */
static uint32_t
demand(const struct core *core, const struct pacer *pacer)
{
	VERIFY(pacer->pace > 0);
	return MIN(pacer->load, core->slots);
}

bool
pacer_is_rising(const struct core *core, const struct pacer *pacer)
{
	return demand(core, pacer) > pacer->pace && pacer->pace < pace_max(pacer) &&
	       !pacer_is_parked(core, pacer);
}

bool
pacer_is_full(const struct core *core, const struct pacer *pacer)
{
	return demand(core, pacer) > pacer->pace && pacer->pace >= pace_max(pacer) &&
	       !pacer_is_parked(core, pacer);
}

/* Requests that were sent with less work say nothing about more. */
static bool
is_near(const struct core *core, const struct pacer *pacer)
{
	VERIFY(pacer->pace > 0);
	return demand(core, pacer) > pacer->pace / 2;
}

static void
set_pace(struct core *core, struct pacer *pacer, uint32_t pace)
{
	VERIFY(pace <= PACER_PACE_MAX);
	VERIFY(pace > 0);
	if (pace == pacer->pace)
		return;
	note_id(core, COMMAND_NOTE_PACE, pacer->id, pacer->pace, pace);
	pacer->pace = pace;
	pacer->step_ms = core->now_ms;
	pacer->dirty = true;
	pool_plan_all(core);
}

void
pacer_configure(struct core *core, const struct event_budget *budget)
{
	uint32_t index = pacer_find(core, budget->id);
	struct pacer *pacer;

	if (index == LIST_NONE) {
		index = core->pacers_count;
		if (table_put(&core->pacers_by_id, budget->id, index) < 0)
			return; /* its families run unheld */
		core->pacers_count++;
		core->pacers[index] = (struct pacer){
			.id = budget->id,
			.pace = core->config.pace_start,
			.trip_ms = TRIP_MS_FIRST,
			.warming = LIST_NONE,
			.peak_ms = core->now_ms,
			.step_ms = core->now_ms,
		};
	}
	VERIFY(index < core->pacers_count);
	pacer = &core->pacers[index];
	memcpy(pacer->configured, budget->limits, sizeof pacer->configured);
	pacer->pace_max = budget->pace_max;
	pacer->pace = MIN(pacer->pace, pace_max(pacer));
	pacer->dirty = true;
	pacer_arm(core, index);
}

/* The pace found in Redis was reached on evidence: it need not be earned again, unless
 * requests go elsewhere now. */
void
pacer_recover(struct core *core, const struct event_recovered_budget *budget)
{
	uint32_t index = pacer_find(core, budget->id);
	struct pacer *pacer;

	if (index == LIST_NONE)
		return;
	pacer = &core->pacers[index];
	if (budget->moved) {
		pacer->dirty = pacer->park_dirty = true; /* as somebody unparks it */
		return;
	}
	if (budget->pace > 0)
		pacer->pace = MIN(budget->pace, pace_max(pacer));
	pacer->peak = pacer->pace;
	pacer->peak_ms = core->now_ms;
	pacer->parked_ms = budget->parked_until_ms;
	memcpy(pacer->learned, budget->limits, sizeof pacer->learned);
}

/* Whether what was learned of this bucket is another now. */
static bool
learn(struct pacer *pacer, uint32_t bucket, uint64_t limit, bool is_answer)
{
	VERIFY(bucket < EVENT_BUCKET_COUNT);
	VERIFY(pacer->silent[bucket] < PACER_SILENT_MAX);
	if (limit == 0 || limit == EVENT_UNKNOWN) {
		if (!is_answer || pacer->learned[bucket] == 0 ||
		    ++pacer->silent[bucket] < PACER_SILENT_MAX)
			return false;
		limit = 0;
	}
	pacer->silent[bucket] = 0;
	if (limit == pacer->learned[bucket])
		return false;
	pacer->learned[bucket] = limit;
	return true;
}

static void
take_limits(struct core *core, struct pacer *pacer,
            const uint64_t limits[EVENT_BUCKET_COUNT], bool is_answer)
{
	for (uint32_t i = 0; i < EVENT_BUCKET_COUNT; i++) {
		if (!learn(pacer, i, limits[i], is_answer) || pacer->configured[i] > 0)
			continue;
		MARK(pacer_learns_a_limit);
		note_id(core, COMMAND_NOTE_LIMIT, pacer->id, i, pacer->learned[i]);
		pacer->dirty = true;
	}
}

/* Requests sent before saw another pace, or did not need it. */
static uint64_t
since(const struct pacer *pacer)
{
	return MAX(pacer->step_ms, pacer->near_ms);
}

/* A first byte has shown that the provider takes what the pace allows. */
static bool
has_evidence(const struct core *core, const struct pacer *pacer)
{
	return pacer->byte_ms > 0 && pacer->byte_ms + CLOCK_MS >= since(pacer) &&
	       core->now_ms - pacer->byte_ms < core->config.pace_patience_ms;
}

static void
step_up(struct core *core, struct pacer *pacer)
{
	VERIFY(pacer_is_rising(core, pacer));
	VERIFY(pacer->pace > 0);
	set_pace(core, pacer, MIN(2 * pacer->pace, pace_max(pacer)));
}

static void
step_on_evidence(struct core *core, struct pacer *pacer)
{
	if (pacer_is_rising(core, pacer) && has_evidence(core, pacer) &&
	    core->now_ms - pacer->step_ms >= core->config.pace_gap_ms)
		step_up(core, pacer);
}

void
pacer_take_byte(struct core *core, uint32_t index, uint64_t sent_ms, uint64_t first_ms,
                const uint64_t limits[EVENT_BUCKET_COUNT])
{
	struct pacer *pacer = &core->pacers[index];

	VERIFY(index < core->pacers_count);
	VERIFY(first_ms == 0 || first_ms >= sent_ms);
	VERIFY(sent_ms <= core->now_ms);
	take_limits(core, pacer, limits, sent_ms > 0);
	if (sent_ms == 0)
		return;
	pacer->heard_ms = core->now_ms;
	pacer->is_away = false;
	if (first_ms > 0)
		pacer->trip_ms = (pacer->trip_ms * 7 + (first_ms - sent_ms)) / 8;
	if (sent_ms > pacer->parked_ms)
		pacer->spends = 0;
	pacer->byte_ms = MAX(pacer->byte_ms, sent_ms);
	step_on_evidence(core, pacer);
	pacer_arm(core, index);
}

void
pacer_take_asked(struct core *core, uint32_t index)
{
	VERIFY(index < core->pacers_count);
	core->pacers[index].asked_ms = core->now_ms;
	pacer_arm(core, index);
}

static void
park(struct core *core, struct pacer *pacer, uint64_t until_ms,
     enum event_pressure_kind what)
{
	if (until_ms <= pacer->parked_ms || until_ms <= core->now_ms)
		return;
	pacer->parked_ms = until_ms;
	pool_plan_all(core);
	if (what != EVENT_PRESSURE_SPEND)
		note_id(core, COMMAND_NOTE_PARKED, pacer->id, until_ms, what);
}

static void
halve(struct core *core, struct pacer *pacer)
{
	uint64_t gap_ms = MAX(pacer->trip_ms, core->config.pace_gap_ms);

	VERIFY(pacer->pace > 0);
	if (pacer->halved_ms > 0 && core->now_ms - pacer->halved_ms < gap_ms)
		return;
	pacer->halved_ms = core->now_ms;
	/* Bytes of requests sent before now are no evidence against the pressure. */
	pacer->step_ms = core->now_ms;
	MARK(pacer_halves);
	set_pace(core, pacer, MAX(1, pacer->pace / 2));
}

/* Nothing works until somebody pays: ask less and less often. */
static void
park_for_money(struct core *core, struct pacer *pacer, uint64_t until_ms)
{
	uint64_t wait_ms =
		MIN((uint64_t)SPEND_MS << MIN(pacer->spends, 10), SPEND_MS_MAX);

	VERIFY(wait_ms >= SPEND_MS);
	VERIFY(wait_ms <= SPEND_MS_MAX);
	if (pacer->spends > 0 && core->now_ms < pacer->broke_ms) {
		park(core, pacer, until_ms, EVENT_PRESSURE_SPEND);
		return; /* one of those that were in flight */
	}
	MARK(pacer_is_out_of_money);
	pacer->spends++;
	park(core, pacer, MAX(until_ms, core->now_ms + wait_ms), EVENT_PRESSURE_SPEND);
	pacer->broke_ms = pacer->parked_ms;
	note_id(core, COMMAND_NOTE_SPEND, pacer->id, pacer->parked_ms, pacer->spends);
	pacer->dirty = pacer->park_dirty = true;
}

/* One worker may have lost its network while the others have not. */
static void
leave(struct core *core, struct pacer *pacer)
{
	if (pacer->heard_ms > 0 &&
	    core->now_ms - pacer->heard_ms < core->config.pace_patience_ms)
		return;
	pacer->is_away = true;
	pacer->step_ms = core->now_ms;
	set_pace(core, pacer, 1);
	if (pacer_is_parked(core, pacer))
		return; /* one of those that were in flight */
	park(core, pacer, core->now_ms + AWAY_MS, EVENT_PRESSURE_AWAY);
	pacer->dirty = pacer->park_dirty = true;
}

void
pacer_take_pressure(struct core *core, const struct event_pressure *pressure)
{
	uint32_t index = pacer_find(core, pressure->budget);
	struct pacer *pacer;

	VERIFY(pressure->what < EVENT_PRESSURE_COUNT);
	if (index == LIST_NONE)
		return;
	pacer = &core->pacers[index];
	switch (pressure->what) {
	case EVENT_PRESSURE_BUSY:
	case EVENT_PRESSURE_OVER:
		halve(core, pacer);
		park(core, pacer, pressure->until_ms, pressure->what);
		break;
	case EVENT_PRESSURE_ERROR:
		park(core, pacer, pressure->until_ms, pressure->what);
		break;
	case EVENT_PRESSURE_SPEND:
		park_for_money(core, pacer, pressure->until_ms);
		break;
	case EVENT_PRESSURE_AWAY:
		leave(core, pacer);
		break;
	case EVENT_PRESSURE_COUNT:
		break;
	}
	pacer_arm(core, index);
}

/* A park that is on its way may reach Redis behind the call that ended it: then its end
 * is said once more. */
void
pacer_unpark(struct core *core, const struct event_unpark *unpark)
{
	uint32_t index = pacer_find(core, unpark->budget);
	struct pacer *pacer;

	if (index == LIST_NONE)
		return;
	pacer = &core->pacers[index];
	pacer->parked_ms = 0;
	pacer->spends = 0;
	pacer->park_dirty = pacer->flight && pacer->park_flight;
	pacer->dirty |= pacer->park_dirty;
	VERIFY(!pacer_is_parked(core, pacer));
	pool_plan_all(core);
	pacer_arm(core, index);
}

void
pacer_take_status(struct core *core, const struct event_paced *paced)
{
	uint32_t index = pacer_find(core, paced->budget);

	VERIFY(paced->status <= EVENT_STATUS_UNKNOWN);
	if (index == LIST_NONE || !core->pacers[index].flight)
		return;
	core->pacers[index].flight = false;
	if (paced->status == EVENT_STATUS_DONE)
		return;
	core->pacers[index].dirty = true;
	/* An older end never replaces a later one that `fail` has set. */
	core->pacers[index].park_dirty |= core->pacers[index].park_flight &&
	                                  (core->now_ms < core->pacers[index].parked_ms ||
	                                   core->pacers[index].parked_ms == 0);
}

static uint64_t
in_flight(const struct core *core, uint32_t index)
{
	uint64_t sum = 0;

	VERIFY(index < core->pacers_count);
	for (uint32_t i = 0; i < core->pools_count; i++)
		sum += core->shares[(size_t)i * core->config.budgets_max + index].busy;
	return sum;
}

void
pacer_take_bound(struct core *core, uint32_t index)
{
	VERIFY(index < core->pacers_count);
	core->pacers[index].bound_ms = core->now_ms;
	core->pacers[index].bound_full =
		in_flight(core, index) >= core->pacers[index].pace;
	pool_plan_all(core);
}

bool
pacer_is_bound(const struct core *core, const struct pacer *pacer)
{
	return pacer->bound_ms > 0 && core->now_ms - pacer->bound_ms < BOUND_MS;
}

/* What the work was to the pace before a change of either. */
struct before {
	bool rising, near;
};

static struct before
remember(const struct core *core, const struct pacer *pacer)
{
	return (struct before){ pacer_is_rising(core, pacer), is_near(core, pacer) };
}

static void
compare(struct core *core, uint32_t index, struct before before)
{
	struct pacer *pacer = &core->pacers[index];

	VERIFY(index < core->pacers_count);
	VERIFY(pacer->pace > 0);
	pacer->peak = MAX(pacer->peak, MIN(demand(core, pacer), pacer->pace));
	if (!before.near && is_near(core, pacer)) {
		pacer->near_ms = core->now_ms;
		if (core->now_ms - pacer->asked_ms >= ASK_MS)
			pacer->dirty = true; /* asks the next start for its first byte */
	}
	if (before.rising == pacer_is_rising(core, pacer))
		return;
	if (!before.rising) {
		pacer->dirty = true; /* likewise */
		step_on_evidence(core, pacer);
	}
	pacer_arm(core, index);
}

void
pacer_weigh(struct core *core, uint32_t index, uint32_t before, uint32_t after)
{
	struct pacer *pacer = &core->pacers[index];
	struct before remembered = remember(core, pacer);

	VERIFY(index < core->pacers_count);
	VERIFY(pacer->load >= before);
	pacer->load = pacer->load - before + after;
	compare(core, index, remembered);
}

void
pacer_set_slots(struct core *core, uint32_t slots)
{
	uint32_t before = core->slots;

	for (uint32_t i = 0; i < core->pacers_count; i++) {
		struct before remembered;

		core->slots = before;
		remembered = remember(core, &core->pacers[i]);
		core->slots = slots;
		compare(core, i, remembered);
	}
	core->slots = slots;
}

/* When the pace doubles without evidence: never while nobody hears of the provider. */
static uint64_t
patience_ends_ms(const struct core *core, const struct pacer *pacer)
{
	return pacer->is_away ? UINT64_MAX : since(pacer) + core->config.pace_patience_ms;
}

void
pacer_arm(struct core *core, uint32_t index)
{
	const struct pacer *pacer = &core->pacers[index];
	uint64_t due_ms = pacer->peak_ms + core->config.pace_memory_ms;

	VERIFY(index < core->pacers_count);
	VERIFY(due_ms > 0);
	if (pacer_is_parked(core, pacer))
		due_ms = MIN(due_ms, pacer->parked_ms);
	else if (pacer_is_rising(core, pacer) && has_evidence(core, pacer))
		due_ms = MIN(due_ms, pacer->step_ms + core->config.pace_gap_ms);
	else if (pacer_is_rising(core, pacer))
		due_ms = MIN(due_ms, MIN(patience_ends_ms(core, pacer),
		                         MAX(since(pacer), pacer->asked_ms) + ASK_MS));
	if (pacer->bound_ms > 0 && pacer_is_bound(core, pacer))
		due_ms = MIN(due_ms, pacer->bound_ms + BOUND_MS);
	state_arm(core, state_pacer_timer(core, index), due_ms);
}

/* What was reached longer ago than the memory is no reason to start so high again. */
static void
forget_peak(struct core *core, struct pacer *pacer)
{
	uint32_t start = MIN(core->config.pace_start, pace_max(pacer));

	VERIFY(start > 0);
	pacer->peak_before = pacer->peak;
	pacer->peak = MIN(demand(core, pacer), pacer->pace);
	pacer->peak_ms = core->now_ms;
	start = MAX(start, MAX(pacer->peak, pacer->peak_before));
	if (pacer->pace > start)
		set_pace(core, pacer, start);
}

void
pacer_expire(struct core *core, uint32_t index)
{
	struct pacer *pacer = &core->pacers[index];

	VERIFY(index < core->pacers_count);
	VERIFY(pacer->pace > 0);
	if (core->now_ms - pacer->peak_ms >= core->config.pace_memory_ms)
		forget_peak(core, pacer);
	step_on_evidence(core, pacer);
	if (pacer_is_rising(core, pacer)) {
		if (core->now_ms >= patience_ends_ms(core, pacer))
			step_up(core, pacer);
		if (core->now_ms >= MAX(since(pacer), pacer->asked_ms) + ASK_MS) {
			pacer->asked_ms = core->now_ms;
			pacer->dirty = true;
		}
	}
	pool_plan_all(core);
	pacer_arm(core, index);
}
