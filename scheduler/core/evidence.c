#include "scheduler/core/evidence.h"

#include "scheduler/core/state.h"

uint32_t
evidence_slack(uint32_t p)
{
	return MAX(128, p / 50);
}

bool
evidence_covers(uint64_t read, uint32_t p)
{
	VERIFY(read != EVENT_UNKNOWN);
	return read + evidence_slack(p) >= p;
}

static bool
has_credit(enum lane_role role)
{
	return role == LANE_LEAD || role == LANE_CANARY || role == LANE_TICKET;
}

/* Places whose markers this request carried for certain.  g rises whenever the marks
 * change, so a start of the present g has the present ones.  What was marked before the
 * last change but one, or before a restart, nobody knows; but who had a credit was sent
 * to write or to read what is marked. */
static uint32_t
marked_at(const struct core *core, const struct family *family,
          const struct event_usage *usage)
{
	VERIFY(family->gates >> family->lanes_count == 0);
	VERIFY(family->marks_before_g <= family->marks_g);
	if (!core->models[family->model].traits.needs_marker)
		return family->gates;
	if (usage->g >= family->marks_g)
		return family->gates & family->marks;
	if (usage->g >= family->marks_before_g || has_credit(usage->role))
		return family->gates & family->marks & family->marks_before;
	return 0;
}

/* P of the nearest lane above that is marked and known. */
static uint32_t
p_above(const struct core *core, const struct family *family, uint32_t marked,
        uint32_t place)
{
	VERIFY(place < family->lanes_count);
	while (place-- > 0)
		if ((marked & 1u << place) && core->lanes[family->lanes[place]].p > 0)
			return core->lanes[family->lanes[place]].p;
	return 0;
}

static void
learn(struct core *core, uint32_t lane, uint64_t p)
{
	VERIFY(lane < core->config.lanes_max);
	VERIFY(p > 0);
	core->lanes[lane].p = (uint32_t)MIN(p, 99999999); /* its column */
	VERIFY(core->lanes[lane].p > 0);
	note_lane(core, COMMAND_NOTE_LEARNED, lane, core->lanes[lane].p, 0, 0);
	lane_touch(core, lane);
}

/* A read below half the estimate belongs to something shorter that we do not know. */
static bool
is_plausible(const struct lane *lane, uint64_t read)
{
	return read * 2 >= lane->tokens;
}

/* With nothing marked past the deepest marked node, all that was read or written ends
 * there. */
static void
learn_deepest(struct core *core, struct family *family, uint32_t marked,
              const struct evidence *evidence)
{
	uint32_t place = LINEAGE_MAX;
	bool writes_only_there = core->models[family->model].traits.needs_marker &&
	                         !(family->flags & EVENT_FAMILY_TAIL_MARKED);

	VERIFY((marked & ~family->gates) == 0);
	VERIFY(evidence->read != EVENT_UNKNOWN);
	if (!writes_only_there || evidence->written == EVENT_UNKNOWN)
		return;
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (marked & 1u << i)
			place = i;
	if (place == LINEAGE_MAX || core->lanes[family->lanes[place]].p > 0)
		return;
	if (is_plausible(&core->lanes[family->lanes[place]],
	                 evidence->read + evidence->written))
		learn(core, family->lanes[place], evidence->read + evidence->written);
}

/* Leaf to root: what covers a node covers all above it. */
static void
judge_read(struct core *core, struct family *family, uint32_t marked,
           struct evidence *evidence)
{
	bool covered = false;

	VERIFY(evidence->read != EVENT_UNKNOWN);
	for (uint32_t i = family->lanes_count; i-- > 0;) {
		struct lane *lane = &core->lanes[family->lanes[i]];
		uint32_t above;

		if (!(marked & 1u << i))
			continue;
		above = p_above(core, family, marked, i);
		if (!covered && lane->p == 0 && is_plausible(lane, evidence->read) &&
		    evidence->read > (uint64_t)above + evidence_slack(above))
			learn(core, family->lanes[i], evidence->read);
		if (!covered)
			covered = lane->p > 0 && evidence_covers(evidence->read, lane->p);
		evidence->verdicts[i] = covered ? EVIDENCE_HIT : EVIDENCE_MISS;
	}
}

/* Only who is paid for writing says whether something was written. */
static bool
is_nothing(const struct core *core, const struct family *family,
           const struct evidence *evidence)
{
	return core->models[family->model].traits.needs_marker && evidence->read == 0 &&
	       evidence->written == 0;
}

/* A start with a credit from before a restart was sent to write, but if its prefix was
 * not shared yet, without a marker: nothing read and nothing written is no news then. */
static bool
is_marked_for_certain(const struct family *family, const struct event_usage *usage)
{
	return usage->g >= family->marks_before_g;
}

static void
judge_nothing(const struct family *family, uint32_t marked, struct evidence *evidence)
{
	VERIFY(evidence->read == 0);
	VERIFY(evidence->written == 0);
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (marked & 1u << i)
			evidence->verdicts[i] = EVIDENCE_ZERO;
}

static void
take_times(const struct core *core, const struct event_usage *usage,
           struct evidence *evidence)
{
	VERIFY(core->now_ms > 0 || usage->sent_ms == EVENT_UNKNOWN ||
	       usage->sent_ms == 0);
	/* The worker's clock is another one: what it says is never later than now. */
	uint64_t first = usage->first_ms == EVENT_UNKNOWN ? 0 : usage->first_ms;
	uint64_t sent = usage->sent_ms == EVENT_UNKNOWN ? first : usage->sent_ms;

	evidence->sent_ms = MIN(sent, core->now_ms);
	evidence->first_ms = MIN(first, core->now_ms);
	if (evidence->first_ms > 0)
		evidence->first_ms = MAX(evidence->first_ms, evidence->sent_ms);
}

void
evidence_judge(struct core *core, uint32_t index, const struct event_usage *usage,
               struct evidence *ret_evidence)
{
	struct family *family = &core->families[index];
	struct evidence evidence = { .read = usage->read, .written = usage->written };
	uint32_t marked = marked_at(core, family, usage);

	VERIFY(family->lanes_count > 0);
	VERIFY((marked & ~family->gates) == 0);
	take_times(core, usage, &evidence);
	if (evidence.sent_ms == 0) /* without a time it proves nothing */
		evidence.read = EVENT_UNKNOWN;
	if (evidence.read != EVENT_UNKNOWN) {
		evidence.read = MIN(evidence.read, UINT32_MAX);
		if (evidence.written != EVENT_UNKNOWN)
			evidence.written = MIN(evidence.written, UINT32_MAX);
		if (is_nothing(core, family, &evidence)) {
			if (is_marked_for_certain(family, usage))
				judge_nothing(family, marked, &evidence);
		} else {
			learn_deepest(core, family, marked, &evidence);
			judge_read(core, family, marked, &evidence);
		}
	}
	*ret_evidence = evidence;
}
