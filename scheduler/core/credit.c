#include "scheduler/core/credit.h"

#include "common/mark.h"
#include "scheduler/core/gate.h"
#include "scheduler/core/grant.h"
#include "scheduler/core/state.h"

/* A revoked credit whose holder is said to run and says nothing ends here at last: far
 * behind the leader's own deadline, a lease and a reap. */
#define GIVE_UP_MS 120000

/* One credit less: its lanes may elect again. */
static void
conclude(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(credit->started <= credit->out);
	VERIFY(credit->lanes != 0);
	VERIFY(credit->out > 0);
	credit->out--;
	credit->started = MIN(credit->started, credit->out);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		if (!(credit->lanes & 1u << i))
			continue;
		VERIFY(core->lanes[family->lanes[i]].unproven > 0);
		core->lanes[family->lanes[i]].unproven--;
	}
	if (credit->out == 0) {
		/* Whatever Redis still holds of it is taken back by the next grant. */
		if (credit->pending || credit->revoke)
			core->lanes[family_leaf(family)].bump = true;
		credit->pending = credit->revoke = credit->revoke_flight = false;
		credit->look_ms = 0;
	}
	lane_touch(core, family_leaf(family));
	family_weigh(core, index);
	family_settle(core, index);
	family_arm(core, index);
	pool_plan_all(core);
}

/* Concludes all that is out, as failures. */
static void
fail_all(struct core *core, uint32_t index, enum lane_back why)
{
	struct family *family = &core->families[index];
	uint32_t lanes = family->credit.lanes;

	VERIFY(why < LANE_BACK_COUNT);
	while (family->credit.out > 0)
		conclude(core, index);
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (lanes & 1u << i)
			gate_take_failure(core, family->lanes[i], why);
}

/* A start that the core did not elect: a credit that came back in Redis and was taken
 * again.  It may write, so it counts. */
static void
adopt(struct core *core, uint32_t index, const struct event_start *start)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;
	uint32_t places = credit_shut_places(core, family);

	VERIFY(start->role < LANE_ROLE_COUNT);
	VERIFY(credit->started <= credit->out);
	if (places == 0 || credit->out > 0 || start->role == LANE_TICKET)
		return;
	MARK(credit_is_adopted);
	*credit = (struct credit){
		.out = 1,
		.started = 1,
		.lanes = places,
		.role = start->role,
		.g = start->g,
		.elected_ms = core->now_ms,
		.started_ms = core->now_ms,
		.look_ms = core->now_ms + credit_patience(core, family),
	};
	credit_count_on(core, family, 1);
	family_weigh(core, index);
	family_arm(core, index);
}

void
credit_take_start(struct core *core, uint32_t index, const struct event_start *start)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(index < core->config.families_max);
	VERIFY(start->role != LANE_PLAIN);
	if (start->role == LANE_HOLD_LIMIT || start->role == LANE_NOW) {
		credit_take_other(core, index, true);
		return;
	}
	if (credit->out == 0 || start->g != credit->g || credit->started == credit->out) {
		adopt(core, index, start);
		return;
	}
	credit->started++;
	credit->started_ms = MIN(start->at_ms, core->now_ms);
	credit->look_ms = core->now_ms + credit_patience(core, family);
	family_weigh(core, index);
	family_arm(core, index);
}

static bool
had_begun(struct credit *credit, uint64_t sent_ms)
{
	VERIFY(credit->begun_count <= CREDIT_MAX);
	for (uint32_t i = 0; i < credit->begun_count; i++) {
		if (credit->begun_ms[i] != sent_ms)
			continue;
		credit->begun_ms[i] = credit->begun_ms[--credit->begun_count];
		return true;
	}
	return false;
}

bool
credit_take_usage(struct core *core, uint32_t index, uint64_t g, enum lane_role role,
                  uint64_t sent_ms, bool done)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(index < core->config.families_max);
	VERIFY(role < LANE_ROLE_COUNT);
	if (role != LANE_LEAD && role != LANE_CANARY && role != LANE_TICKET)
		return false;
	if (g != credit->g || (done && had_begun(credit, sent_ms)))
		return false;
	if (credit->out == 0)
		return false;
	if (!done && credit->begun_count < CREDIT_MAX)
		credit->begun_ms[credit->begun_count++] = sent_ms;
	if (credit->started_ms > 0 && sent_ms != EVENT_UNKNOWN &&
	    sent_ms > credit->started_ms)
		model_take_send_delay(&core->models[family->model],
		                      sent_ms - credit->started_ms);
	conclude(core, index);
	return true;
}

/* Whether others count already as the writer or the readers of one of these lanes. */
static bool
is_taken(const struct core *core, const struct family *family, uint32_t places)
{
	VERIFY(places >> family->lanes_count == 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		const struct lane *lane = &core->lanes[family->lanes[i]];

		if ((places & 1u << i) && lane->unproven >= lane->stage)
			return true;
	}
	return false;
}

/* A credit that nobody holds may be taken any time, so it counts on every shut lane that
 * it could write: also on those that shut after it was granted.  If such a lane has its
 * writer already, the credit is taken back. */
static void
widen(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;
	uint32_t more = credit_shut_places(core, family) & family->gates & ~credit->lanes;

	VERIFY(credit->started <= credit->out);
	if (credit->out == credit->started || credit->revoked || more == 0)
		return;
	if (credit->out > 1 || is_taken(core, family, more)) {
		MARK(credit_meets_another_writer);
		credit->revoke = true;
		lane_touch(core, family_leaf(family));
		return;
	}
	MARK(credit_counts_on_more);
	credit->lanes |= more;
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		if (!(more & 1u << i))
			continue;
		core->lanes[family->lanes[i]].unproven += credit->out;
		if (core->lanes[family->lanes[i]].gate == LANE_CLOSED)
			lane_move(core, family->lanes[i], LANE_WRITING, LANE_REASON_NONE);
	}
}

/* Takes back what counts on the lane and has not started. */
static void
take_back_readers(struct core *core, const struct lane *lane)
{
	VERIFY(lane->unproven > 0);
	for (uint32_t i = lane->below.head; i != LIST_NONE; i = core->below[i].next) {
		struct family *family = &core->families[i / LINEAGE_MAX];

		if (!(family->credit.lanes & 1u << i % LINEAGE_MAX) ||
		    family->credit.out == family->credit.started)
			continue;
		MARK(credit_is_one_reader_too_many);
		family->credit.revoke = true;
		lane_touch(core, family_leaf(family));
	}
}

/* Who has started was let to by a lane that has shut since.  If it came back, its credit
 * would lie beside that of the lane's next writer: so it is not to come back. */
static void
keep_from_returning(struct core *core, uint32_t index, uint32_t at)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(at < family->lanes_count);
	if (credit->started == 0 || credit->revoke || credit->revoked ||
	    !(family->gates & 1u << at) || credit->lanes & 1u << at)
		return;
	MARK(credit_is_not_to_come_back);
	credit->revoke = true;
	lane_touch(core, family_leaf(family));
}

void
credit_join(struct core *core, uint32_t index)
{
	const struct lane *lane = &core->lanes[index];

	VERIFY(lane->gate == LANE_CLOSED);
	if (lane->unproven > 1) /* readers of an entry that is no longer there */
		take_back_readers(core, lane);
	for (uint32_t i = lane->below.head; i != LIST_NONE; i = core->below[i].next) {
		keep_from_returning(core, i / LINEAGE_MAX, i % LINEAGE_MAX);
		widen(core, i / LINEAGE_MAX);
	}
	if (lane->gate == LANE_CLOSED && lane->unproven > 0)
		lane_move(core, index, LANE_WRITING, LANE_REASON_NONE);
}

void
credit_shrink(struct core *core, uint32_t index)
{
	VERIFY(core->lanes[index].gate == LANE_CHECKING);
	VERIFY(core->lanes[index].stage == 1);
	take_back_readers(core, &core->lanes[index]);
}

/* Whatever credits Redis holds for it are void from the next grant on. */
static void
take_back(struct core *core, struct family *family)
{
	VERIFY(family->lanes_count > 0);
	core->lanes[family_leaf(family)].bump = true;
	lane_touch(core, family_leaf(family));
}

void
credit_seal(struct core *core, uint32_t index)
{
	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (core->families[index].credit.out == 0)
		take_back(core, &core->families[index]);
}

void
credit_recall(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(index < core->config.families_max);
	VERIFY(credit->started <= credit->out);
	if (credit->out == credit->started || credit->revoke || credit->revoked)
		return;
	MARK(credit_is_recalled);
	credit->revoke = true;
	lane_touch(core, family_leaf(family));
}

void
credit_take_back(struct core *core, uint32_t index, const struct event_back *back)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(back->why < LANE_BACK_COUNT);
	VERIFY(back->role < LANE_ROLE_COUNT);
	if (back->role == LANE_HOLD_LIMIT || back->role == LANE_NOW)
		return;
	if (credit->out == 0 || back->g != credit->g) {
		if (back->why <= LANE_BACK_OVERDUE) {
			MARK(credit_comes_back_to_nobody);
			take_back(core, family); /* it is nobody's to take again */
		}
		return;
	}
	if (back->why <= LANE_BACK_OVERDUE) {
		/* The credit lies in the lane again, for the next one. */
		credit->started -= MIN(credit->started, 1);
		credit->look_ms = core->now_ms + core->config.look_ms;
		if (credit->revoked) { /* who may have had it before it was taken back */
			MARK(credit_comes_back_revoked);
			family_look(core, index);
		} else {
			widen(core, index);
		}
		family_weigh(core, index);
		family_arm(core, index);
		return;
	}
	credit_take_failure(core, index, back->g, back->why);
}

void
credit_take_other(struct core *core, uint32_t index, bool began)
{
	struct credit *credit = &core->families[index].credit;

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	if (began)
		credit->others++;
	else
		credit->others -= MIN(credit->others, 1);
}

void
credit_take_failure(struct core *core, uint32_t index, uint64_t g, enum lane_back why)
{
	struct family *family = &core->families[index];
	uint32_t lanes = family->credit.lanes;

	VERIFY(index < core->config.families_max);
	VERIFY(why < LANE_BACK_COUNT);
	if (family->credit.out == 0 || g != family->credit.g)
		return;
	conclude(core, index);
	for (uint32_t i = 0; i < family->lanes_count; i++)
		if (lanes & 1u << i)
			gate_take_failure(core, family->lanes[i], why);
}

void
credit_take_grant(struct core *core, uint32_t index, uint32_t in_use, bool empty)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(credit->started <= credit->out);
	VERIFY(!credit->revoke_flight || credit->revoke);
	if (credit->out == 0)
		return;
	if (credit->revoke && credit->revoke_flight) {
		credit->revoke = false;
		credit->revoked = true;
		credit->revoked_ms = core->now_ms;
		note_lane(core, COMMAND_NOTE_REVOKED, family_leaf(family),
		          core->now_ms - credit->elected_ms, 0, 0);
		core->counts.revoked++;
	}
	credit->revoke_flight = false;
	if (credit->pending)
		credit->others = in_use; /* nobody had it then */
	credit->pending = false;
	if (credit->revoked && in_use == 0) {
		MARK(credit_is_revoked_untaken);
		fail_all(core, index, LANE_BACK_DROPPED);
	} else if (empty && !credit->revoked && credit->started == 0 &&
	           credit->role != LANE_TICKET) {
		MARK(credit_has_nobody_left);
		credit->revoke = true; /* nobody is left to take it */
		lane_touch(core, family_leaf(family));
	}
}

/* Whether an unstarted credit should be taken back, by what a look has shown. */
static bool
is_lost(const struct core *core, const struct family *family, uint32_t in_use,
        uint32_t backlog)
{
	const struct credit *credit = &family->credit;

	VERIFY(credit->out > 0);
	VERIFY(credit->started == 0);
	if (credit->role == LANE_TICKET)
		return core->now_ms > credit->ticket_deadline_ms;
	/* Nobody is left to take it; or somebody has, and the event was lost. */
	if (backlog == 0 || in_use > credit->others)
		return true;
	/* It has lain there so long that another family should have it: but only if it
	 * is certain that nobody holds it. */
	return in_use == 0 &&
	       core->now_ms - credit->elected_ms >= credit_patience(core, family);
}

void
credit_take_look(struct core *core, uint32_t index, uint32_t in_use, uint32_t backlog)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(index < core->config.families_max);
	if (credit->out == 0 || credit->pending || credit->revoke)
		return;
	if (credit->revoked) {
		if (in_use == 0) {
			MARK(credit_is_seen_to_have_ended);
			fail_all(core, index, LANE_BACK_DROPPED);
		}
	} else if (credit->started == 0 && is_lost(core, family, in_use, backlog)) {
		MARK(credit_lies_there_too_long);
		credit->revoke = true;
		lane_touch(core, family_leaf(family));
	}
}

void
credit_expire(struct core *core, uint32_t index)
{
	struct family *family = &core->families[index];
	struct credit *credit = &family->credit;

	VERIFY(index < core->config.families_max);
	VERIFY(family->lanes_count > 0);
	VERIFY(credit->out > 0);
	VERIFY(credit->look_ms <= core->now_ms);
	credit->look_ms = core->now_ms + core->config.look_ms;
	family_arm(core, index);
	if (credit->revoked && core->now_ms - credit->revoked_ms >= GIVE_UP_MS) {
		MARK(credit_is_given_up);
		fail_all(core, index, LANE_BACK_FAILED);
	} else if (credit->revoked || credit->started == 0) {
		if (credit->revoked || credit_can_run(core, family))
			family_look(core, index);
	} else if (!credit->revoke) {
		MARK(credit_is_late);
		note_lane(core, COMMAND_NOTE_LATE, family_leaf(family),
		          core->now_ms - credit->started_ms, 0, 0);
		credit->revoke = true;
		lane_touch(core, family_leaf(family));
	}
}

void
credit_find(struct core *core, uint32_t index, enum lane_role role, uint64_t g,
            uint32_t unclaimed, uint32_t started)
{
	struct credit *credit = &core->families[index].credit;

	VERIFY(index < core->config.families_max);
	VERIFY(role == LANE_LEAD || role == LANE_CANARY || role == LANE_TICKET);
	VERIFY(core->recovering);
	if (credit->found_started > 0 && g < credit->g)
		return; /* of two generations, the newer may still write */
	if (g > credit->g)
		credit->found_started = 0;
	if (started > 0 && credit->found_unclaimed > 0 && g != credit->g) {
		core->lanes[family_leaf(&core->families[index])].bump = true;
		credit->found_unclaimed = 0;
	}
	credit->role = role;
	credit->g = g;
	credit->found_unclaimed += unclaimed;
	credit->found_started += started;
}

/* A leader of lanes that are all checked by now was heard before the restart, and so was
 * a reader of lanes that are being written again.  A ticket may be either, and it ends
 * when it was heard. */
static bool
still_counts(const struct core *core, const struct family *family, uint32_t places,
             enum lane_role role)
{
	VERIFY(places >> family->lanes_count == 0);
	if (role == LANE_TICKET)
		return true;
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		enum lane_gate gate = core->lanes[family->lanes[i]].gate;

		if (!(places & 1u << i))
			continue;
		if (gate != (role == LANE_CANARY ? LANE_WRITING : LANE_CHECKING))
			return true;
	}
	return false;
}

/* More than one at once is only given after a close for misses: go on there. */
static void
restore_stage(struct core *core, const struct family *family)
{
	VERIFY(family->credit.out > 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		struct lane *lane = &core->lanes[family->lanes[i]];

		if (!(family->credit.lanes & 1u << i) || family->credit.out < 2 ||
		    lane->gate != LANE_CHECKING)
			continue;
		MARK(credit_found_several_readers);
		lane->careful = true;
		lane->stage = MAX(lane->stage, family->credit.out > 2 ? 4 : 2);
	}
}

void
credit_recover(struct core *core, uint32_t index, bool started_only)
{
	struct family *family = &core->families[index];
	struct credit found = family->credit;
	uint32_t places = credit_shut_places(core, family), started = found.found_started;
	bool is_revoked = core->lanes[family_leaf(family)].g > found.g;
	bool taken;

	VERIFY(core->recovering);
	VERIFY(index < core->config.families_max);
	if (found.out > 0 || (started_only && started == 0))
		return;
	family->credit = (struct credit){ .g = found.g };
	if (!still_counts(core, family, places, found.role)) {
		MARK(credit_found_was_heard_before);
		started = 0;
	}
	/* What lies unclaimed in the lane is taken back, unless it counts. */
	core->lanes[family_leaf(family)].bump |= found.found_unclaimed > 0;
	if (places == 0 || found.found_unclaimed + started == 0)
		return;
	taken = is_taken(core, family, places);
	if (started == 0 && taken)
		return;
	MARK(credit_goes_on_after_a_restart);
	if (found.found_unclaimed > 0)
		core->lanes[family_leaf(family)].bump = false;
	family->credit = (struct credit){
		.out = MIN(found.found_unclaimed + started, CREDIT_MAX),
		.started = MIN(started, CREDIT_MAX),
		.lanes = places,
		.role = found.role,
		.g = found.g,
		.revoked = is_revoked,
		.revoked_ms = core->now_ms,
		.elected_ms = core->now_ms,
		.started_ms = started > 0 ? core->now_ms : 0,
		.look_ms = core->now_ms + credit_patience(core, family),
		.ticket_deadline_ms = core->now_ms + credit_patience(core, family),
	};
	/* Both were sent when a lane above was open, and it has expired since.  One that
	 * is handed back must not be taken again beside the other. */
	if (taken && !family->credit.revoked) {
		MARK(credit_found_beside_another);
		family->credit.revoke = true;
	}
	credit_count_on(core, family, family->credit.out);
	restore_stage(core, family);
}
