#include "scheduler/core/gate.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/state.h"

/* After a leader's failure the next one waits so long, doubled with each in a row: a
 * provider that answers 500 at once would otherwise burn the queue's attempts. */
#define BACKOFF_MS     250
#define BACKOFF_MS_MAX 5000
#define TWICE_MS       300000 /* for lanes without a lifetime */

/* One request's evidence about one lane. */
struct word {
	struct core *core;
	const struct family *family;
	const struct evidence *evidence;
	uint32_t lane;
	bool credited, recent;
};

static struct lane *
lane_of(const struct word *word)
{
	VERIFY(word->lane < word->core->config.lanes_max);
	return &word->core->lanes[word->lane];
}

static struct model *
model_of(const struct word *word)
{
	VERIFY(lane_of(word)->model < word->core->models_count);
	return &word->core->models[lane_of(word)->model];
}

/* True iff an entry that this request read or wrote is still there, and the misses that
 * closed the lane were sent before it. */
static bool
is_fresh(const struct word *word)
{
	const struct lane *lane = lane_of(word);
	uint64_t sent_ms = word->evidence->sent_ms;

	VERIFY(sent_ms <= word->core->now_ms);
	if (lane->suspect_ms > 0 && sent_ms <= lane->suspect_ms)
		return false;
	return lane_warm_until(word->core, lane, sent_ms) > word->core->now_ms;
}

/* Without a reader: it is trusted, nobody can prove, or proving takes a whole job. */
static bool
needs_no_reader(const struct word *word)
{
	const struct lane *lane = lane_of(word);
	const struct model *model = model_of(word);

	VERIFY(lane->below.count > 0);
	if (!model->traits.proves)
		return true;
	if ((word->family->flags & EVENT_FAMILY_NO_STREAM) || !model->traits.streams)
		return !model->traits.calls || model->call_refused;
	return model_is_trusted(word->core, model) && !lane->careful && !lane->retrying;
}

static void
open_lane(const struct word *word)
{
	struct lane *lane = lane_of(word);
	uint64_t sent_ms = word->evidence->sent_ms;
	uint64_t until_ms;

	VERIFY(lane->gate != LANE_OPEN);
	VERIFY(sent_ms <= word->core->now_ms);
	if (sent_ms == 0) /* nobody knows when it was sent: believe half a life */
		sent_ms = word->core->now_ms -
		          MIN(word->core->now_ms, lane_life(word->core, lane) / 2);
	until_ms = lane_warm_until(word->core, lane, sent_ms);
	/* After a restart nobody knows when it was written: first_ms is then. */
	if (lane->gate == LANE_CHECKING && sent_ms >= lane->first_ms)
		until_ms = MAX(until_ms, lane->until_ms);
	lane->until_ms = until_ms;
	lane->hit_ms = MAX(lane->hit_ms, sent_ms);
	lane_move(word->core, word->lane, LANE_OPEN, LANE_REASON_NONE);
}

static void
start_checking(const struct word *word)
{
	struct lane *lane = lane_of(word);
	const struct evidence *evidence = word->evidence;

	VERIFY(lane->gate == LANE_CLOSED || lane->gate == LANE_WRITING);
	VERIFY(evidence->sent_ms > 0);
	lane->first_ms = evidence->first_ms > 0 ? evidence->first_ms : evidence->sent_ms;
	lane->ready_ms = lane->first_ms + model_check_after(model_of(word));
	lane->until_ms = lane_warm_until(word->core, lane, evidence->sent_ms);
	lane->trusting = needs_no_reader(word);
	lane_move(word->core, word->lane, LANE_CHECKING, LANE_REASON_NONE);
	if (lane->trusting && lane->ready_ms <= word->core->now_ms)
		gate_take_trust(word->core, word->lane);
}

/* The next of the stages 1, 2, 4 that a lane passes after it was closed for misses. */
static void
pass_stage(const struct word *word)
{
	struct lane *lane = lane_of(word);

	VERIFY(lane->stage <= CREDIT_MAX);
	VERIFY(lane->gate == LANE_CHECKING);
	if (++lane->hits < lane->stage)
		return;
	if (lane->stage == CREDIT_MAX) {
		open_lane(word);
		return;
	}
	MARK(gate_passes_a_stage);
	lane->stage *= 2;
	lane->hits = 0;
	pool_plan_all(word->core);
}

/* Keeps the latest misses that were sent after the last hit.  A hit that was sent later
 * outweighs them all, whenever it is reported. */
static void
remember_hit(struct lane *lane, uint64_t sent_ms)
{
	VERIFY(lane->gate == LANE_OPEN);
	VERIFY(sent_ms > 0);
	lane->hit_ms = MAX(lane->hit_ms, sent_ms);
	for (uint32_t i = 0; i < LANE_MISSES; i++)
		if (lane->miss_ms[i] <= lane->hit_ms)
			lane->miss_ms[i] = 0;
}

/* Answers how many there are now. */
static uint32_t
remember_miss(struct lane *lane, uint64_t sent_ms)
{
	uint32_t oldest = 0, count = 0;

	VERIFY(lane->gate == LANE_OPEN);
	VERIFY(sent_ms > lane->hit_ms);
	for (uint32_t i = 1; i < LANE_MISSES; i++)
		if (lane->miss_ms[i] < lane->miss_ms[oldest])
			oldest = i;
	if (sent_ms > lane->hit_ms && sent_ms > lane->miss_ms[oldest])
		lane->miss_ms[oldest] = sent_ms;
	for (uint32_t i = 0; i < LANE_MISSES; i++)
		count += lane->miss_ms[i] > 0;
	return count;
}

static uint64_t
latest_miss(const struct lane *lane)
{
	uint64_t sent_ms = 0;

	for (uint32_t i = 0; i < LANE_MISSES; i++)
		sent_ms = MAX(sent_ms, lane->miss_ms[i]);
	return sent_ms;
}

static void
close_for_misses(const struct word *word)
{
	struct core *core = word->core;
	struct lane *lane = lane_of(word);
	uint64_t twice_ms = lane->ttl_ms > 0 ? lane->ttl_ms : TWICE_MS;
	bool again = lane->closed_ms > 0 && core->now_ms - lane->closed_ms < twice_ms;

	VERIFY(latest_miss(lane) > lane->hit_ms);
	VERIFY(lane->gate == LANE_OPEN);
	lane->suspect_ms = latest_miss(lane);
	model_distrust(core, model_of(word));
	if (again) {
		MARK(gate_closes_twice);
		lane_move(core, word->lane, LANE_LEAKY, LANE_REASON_NEVER_READ);
		return;
	}
	MARK(gate_closes_for_misses);
	lane->closed_ms = core->now_ms;
	lane->careful = true;
	lane_move(core, word->lane, LANE_CLOSED, LANE_REASON_NONE);
}

/* An open lane was missed. */
static void
doubt(const struct word *word)
{
	struct lane *lane = lane_of(word);
	uint32_t misses;

	VERIFY(word->evidence->sent_ms > 0);
	VERIFY(lane->gate == LANE_OPEN);
	if (!word->recent || word->evidence->sent_ms <= lane->hit_ms)
		return;
	if (lane->trusting)
		model_distrust(word->core, model_of(word));
	misses = remember_miss(lane, word->evidence->sent_ms);
	if (model_of(word)->traits.exact && misses >= LANE_MISSES)
		close_for_misses(word);
}

/* Three readers in a row read the same, and it was not nothing: then P was wrong, not
 * the cache. */
static bool
correct_p(const struct word *word)
{
	struct lane *lane = lane_of(word);
	uint64_t read = word->evidence->read;
	uint32_t slack = evidence_slack((uint32_t)read);

	VERIFY(lane->misses == word->core->config.misses_max);
	VERIFY(read != EVENT_UNKNOWN);
	if (lane->retrying || read * 2 < lane->tokens || read <= 128)
		return false;
	for (uint32_t i = 0; i < ARRAY_SIZE(lane->reads); i++)
		if (lane->reads[i] + slack < read || lane->reads[i] > read + slack)
			return false;
	MARK(gate_corrects_p);
	note_lane(word->core, COMMAND_NOTE_CORRECTED, word->lane, lane->p, read, 0);
	lane->p = (uint32_t)read;
	return true;
}

/* A credited reader came back without the prefix. */
static void
fail_check(const struct word *word)
{
	struct core *core = word->core;
	struct lane *lane = lane_of(word);
	const struct evidence *evidence = word->evidence;

	VERIFY(word->credited);
	VERIFY(lane->misses < core->config.misses_max);
	VERIFY(lane->gate == LANE_CHECKING);
	core->counts.misses++;
	if (evidence->sent_ms >= lane->first_ms)
		model_take_miss(core, model_of(word), evidence->sent_ms - lane->first_ms);
	lane->stage = 1;
	lane->hits = 0;
	if (lane->unproven > 0)
		credit_shrink(core, word->lane);
	if (++lane->misses >= core->config.misses_max) {
		if (correct_p(word))
			open_lane(word);
		else
			lane_move(core, word->lane, LANE_LEAKY, LANE_REASON_NEVER_READ);
		MARK(gate_checks_in_vain);
		return;
	}
	if (lane->misses <= ARRAY_SIZE(lane->reads))
		lane->reads[lane->misses - 1] = (uint32_t)evidence->read;
	lane->ready_ms = lane->first_ms + model_recheck_after(core, model_of(word));
	lane_arm(core, word->lane);
}

static void
take_hit(const struct word *word)
{
	struct core *core = word->core;
	struct lane *lane = lane_of(word);
	uint64_t sent_ms = word->evidence->sent_ms;

	VERIFY(word->evidence->read != EVENT_UNKNOWN);
	VERIFY(sent_ms > 0);
	if (lane->gate == LANE_OPEN) {
		lane_refresh(core, word->lane, sent_ms);
		remember_hit(lane, sent_ms);
		return;
	}
	if (!is_fresh(word))
		return;
	if (lane->gate == LANE_CHECKING && word->credited) {
		core->counts.proofs++;
		if (sent_ms >= lane->first_ms)
			model_take_hit(core, model_of(word), sent_ms - lane->first_ms,
			               lane->misses);
	}
	if (!lane->careful || lane->gate == LANE_BYPASS || lane->gate == LANE_LEAKY) {
		open_lane(word);
		return;
	}
	if (lane->gate != LANE_CHECKING)
		start_checking(word);
	lane_refresh(core, word->lane, sent_ms);
	if (lane->gate == LANE_CHECKING) /* else nobody can look, and it is open */
		pass_stage(word);
}

static void
take_miss(const struct word *word)
{
	struct lane *lane = lane_of(word);
	bool wrote = word->evidence->written != 0; /* or nobody knows */

	VERIFY(word->evidence->read != EVENT_UNKNOWN);
	VERIFY(word->evidence->sent_ms > 0);
	switch (lane->gate) {
	case LANE_CLOSED:
		if (wrote && is_fresh(word))
			start_checking(word);
		break;
	case LANE_WRITING:
		if (!word->credited || !is_fresh(word))
			break;
		if (!wrote) {
			MARK(gate_finds_nothing_cached);
			lane_move(word->core, word->lane, LANE_BYPASS,
			          LANE_REASON_UNCACHEABLE);
			break;
		}
		if (word->evidence->first_ms > 0)
			model_take_leader(model_of(word),
			                  word->evidence->first_ms -
			                          word->evidence->sent_ms);
		start_checking(word);
		break;
	case LANE_CHECKING:
		if (wrote)
			lane_refresh(word->core, word->lane, word->evidence->sent_ms);
		if (word->credited)
			fail_check(word);
		break;
	case LANE_OPEN:
		if (wrote)
			lane_refresh(word->core, word->lane, word->evidence->sent_ms);
		doubt(word);
		break;
	case LANE_BYPASS:
	case LANE_LEAKY:
		break;
	case LANE_GATE_COUNT:
		VERIFY(false);
	}
}

static void
take_zero(const struct word *word)
{
	const struct lane *lane = lane_of(word);
	bool heard = word->credited && lane->gate != LANE_CLOSED;

	VERIFY(word->evidence->read == 0);
	VERIFY(word->evidence->written == 0);
	if (lane->gate == LANE_OPEN) {
		doubt(word);
		return;
	}
	if (lane_gate_starts(lane->gate))
		return;
	if (heard || (lane->gate == LANE_CLOSED && is_fresh(word)))
		lane_move(word->core, word->lane, LANE_BYPASS, LANE_REASON_UNCACHEABLE);
}

/* A credited request whose usage says nothing of the lane. */
static void
take_silence(const struct word *word)
{
	const struct lane *lane = lane_of(word);

	if (!word->credited || lane_gate_starts(lane->gate) || lane->gate == LANE_CLOSED)
		return;
	if (!model_of(word)->traits.proves)
		open_lane(word);
	else if (word->evidence->read == EVENT_UNKNOWN)
		lane_move(word->core, word->lane, LANE_BYPASS, LANE_REASON_UNKNOWN_USAGE);
	MARK(gate_hears_nothing);
}

void
gate_take(struct core *core, uint32_t index, const struct evidence *evidence,
          uint32_t credited, bool recent)
{
	struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(credited >> family->lanes_count == 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		struct word word = {
			.core = core,
			.family = family,
			.evidence = evidence,
			.lane = family->lanes[i],
			.credited = credited & 1u << i,
			.recent = recent,
		};

		switch (evidence->verdicts[i]) {
		case EVIDENCE_SILENT:
			take_silence(&word);
			break;
		case EVIDENCE_HIT:
			take_hit(&word);
			break;
		case EVIDENCE_MISS:
			take_miss(&word);
			break;
		case EVIDENCE_ZERO:
			take_zero(&word);
			break;
		}
		/* What came too late to count still ends the writing. */
		if (word.credited)
			gate_take_failure(core, word.lane, LANE_BACK_MISSING);
	}
}

/* 5xx, time-out, connection: nothing about the cache, whatever becomes of the job. */
static bool
is_broken(enum lane_back why)
{
	return why == LANE_BACK_FAILED || why == LANE_BACK_EXHAUSTED;
}

/* How long to leave the lane alone after this failure. */
static uint64_t
backoff(const struct lane *lane, enum lane_back why)
{
	if (is_broken(why))
		return MIN((uint64_t)BACKOFF_MS << MIN(lane->failures, 5),
		           BACKOFF_MS_MAX);
	return why == LANE_BACK_DEFERRED ? BACKOFF_MS : 0;
}

void
gate_take_failure(struct core *core, uint32_t index, enum lane_back why)
{
	struct lane *lane = &core->lanes[index];
	uint64_t wait_ms = backoff(lane, why);

	VERIFY(index < core->config.lanes_max);
	VERIFY(why < LANE_BACK_COUNT);
	if (lane->gate != LANE_WRITING && lane->gate != LANE_CHECKING)
		return;
	if (wait_ms > 0)
		lane->ready_ms = MAX(lane->ready_ms, core->now_ms + wait_ms);
	lane->failures += is_broken(why);
	if (lane->gate == LANE_CHECKING || lane->unproven > 0) {
		lane_arm(core, index);
		return;
	}
	if (why == LANE_BACK_DEAD && ++lane->refusals >= core->config.refusals_max) {
		MARK(gate_is_refused_for_good);
		lane_move(core, index, LANE_BYPASS, LANE_REASON_REFUSED);
	} else {
		lane_move(core, index, LANE_CLOSED, LANE_REASON_NONE);
	}
}

void
gate_take_trust(struct core *core, uint32_t index)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(index < core->config.lanes_max);
	if (lane->gate != LANE_CHECKING || !lane->trusting)
		return;
	if (core->now_ms < lane->ready_ms)
		return;
	VERIFY(lane->until_ms > 0);
	MARK(gate_opens_on_trust);
	/* Whatever was sent before is no evidence against what is believed now. */
	lane->hit_ms = MAX(lane->hit_ms, core->now_ms - 1);
	lane_move(core, index, LANE_OPEN, LANE_REASON_NONE);
}
