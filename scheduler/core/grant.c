#include "scheduler/core/grant.h"

#include "common/mark.h"
#include "scheduler/core/credit.h"
#include "scheduler/core/family.h"
#include "scheduler/core/state.h"

static struct command *
append(struct command_list *out, enum command_kind kind)
{
	struct command *command = &out->commands[out->count];

	VERIFY(kind < COMMAND_KIND_COUNT);
	VERIFY(out->count < COMMAND_MAX);
	out->count++;
	*command = (struct command){ .kind = kind };
	return command;
}

static struct family *
family_of(struct core *core, const struct lane *lane)
{
	VERIFY(lane->family == FAMILY_NONE || lane->family < core->config.families_max);
	return lane->family == FAMILY_NONE ? NULL : &core->families[lane->family];
}

/* True iff it holds somebody, now or past its `until`. */
static bool
gates_by_evidence(enum lane_gate gate)
{
	return gate != LANE_BYPASS && gate != LANE_LEAKY;
}

/* The record as it should be now. */
static struct lane_record
wanted(const struct core *core, const struct lane *lane)
{
	struct lane_record record = {
		.gate = lane->gate,
		.reason = lane->reason,
		.window = LANE_WINDOW,
		.rank = POOL_RANK_LAST,
		.p = lane->p,
		.until_ms = COMMAND_KEEP,
		.life_ms = lane->ttl_ms > 0 ? lane_life(core, lane) : 0,
	};

	VERIFY(lane->model < core->models_count);
	VERIFY(lane->gate < LANE_GATE_COUNT);
	if (!core->models[lane->model].traits.hold) {
		record.gate = LANE_BYPASS;
		record.reason = LANE_REASON_UNHELD;
	} else if (!core->hold && gates_by_evidence(lane->gate)) {
		record.gate = LANE_BYPASS;
		record.reason = LANE_REASON_OFF;
	}
	if (record.gate == LANE_OPEN)
		record.until_ms = lane->until_ms;
	else if (lane_gate_starts(record.gate))
		record.until_ms = LANE_FOREVER;
	if (lane->family != FAMILY_NONE) {
		const struct family *family = &core->families[lane->family];

		record.window = pool_window(core, lane->family);
		record.rank = family->rank;
		record.marks = family_marks(core, family);
		/* Nobody minds the old rank of a family whose own lane holds nobody: it
		 * saves a grant at the end of each one-job family. */
		if (lane->gating == 0 && family->rank == POOL_RANK_LAST &&
		    lane->granted.gate != LANE_GATE_COUNT &&
		    lane->granted.rank != POOL_RANK_NEVER)
			record.rank = lane->granted.rank;
	}
	return record;
}

static bool
differs(const struct lane_record *a, const struct lane_record *b)
{
	VERIFY(a->gate < LANE_GATE_COUNT);
	VERIFY(b->gate < LANE_GATE_COUNT);
	return a->gate != b->gate || a->reason != b->reason || a->window != b->window ||
	       a->rank != b->rank || a->p != b->p || a->marks != b->marks;
}

static bool
has_news(const struct lane *lane, const struct credit *credit,
         const struct lane_record *record)
{
	VERIFY(record->gate < LANE_GATE_COUNT);
	if (lane->bump || (credit && (credit->pending || credit->revoke)))
		return true;
	/* An ancestor that gates nobody needs no record. */
	if (lane->granted.gate == LANE_GATE_COUNT)
		return credit || lane->gating > 0;
	return differs(record, &lane->granted);
}

/* Whether this grant needs a new generation. */
static bool
needs_g(const struct lane *lane, const struct credit *credit,
        const struct lane_record *record)
{
	const struct lane_record *granted = &lane->granted;

	VERIFY(record->gate < LANE_GATE_COUNT);
	if (credit && (credit->pending || credit->revoke))
		return true;
	if (credit && credit->out > 0 && !credit->revoked)
		return false; /* it would take the credit back */
	if (lane->bump || granted->gate == LANE_GATE_COUNT)
		return true;
	if (record->gate == LANE_CHECKING && granted->gate != LANE_CHECKING)
		return true; /* leases of the writing must not give credits back */
	if (lane_gate_starts(record->gate) && record->until_ms < granted->until_ms)
		return true;
	return record->marks != granted->marks;
}

/* Without a new g neither marks may change nor the `until` of an open lane get shorter.
 */
static void
soften(const struct lane *lane, struct lane_record *record)
{
	record->marks = lane->granted.marks;
	if (record->until_ms != COMMAND_KEEP && lane->granted.gate == LANE_OPEN &&
	    record->until_ms < lane->granted.until_ms)
		record->until_ms = COMMAND_KEEP;
}

static void
set_marks(struct family *family, uint32_t marks, uint64_t g)
{
	VERIFY(marks >> family->lanes_count == 0);
	if (family->marks == marks)
		return;
	VERIFY(g >= family->marks_g);
	family->marks_before = family->marks;
	family->marks_before_g = family->marks_g;
	family->marks = marks;
	family->marks_g = g;
}

static void
fill_credit(struct credit *credit, struct command_grant *grant)
{
	VERIFY(credit->out <= CREDIT_MAX);
	credit->revoke_flight = credit->revoke;
	if (credit->revoke || !credit->pending)
		return;
	credit->g = grant->g_new;
	if (credit->role == LANE_TICKET) {
		grant->ticket = true;
		grant->ticket_deadline_ms = credit->ticket_deadline_ms;
		return;
	}
	VERIFY(credit->out > 0);
	grant->credits = credit->out;
	grant->role = credit->role;
}

static void
fill_chain(const struct core *core, uint32_t index, struct command_grant *grant)
{
	VERIFY(grant->chain_count == 0);
	VERIFY(index < core->config.lanes_max);
	for (uint32_t i = index; i != LANE_NONE; i = core->lanes[i].parent)
		grant->chain_count++;
	VERIFY(grant->chain_count <= LINEAGE_MAX);
	for (uint32_t i = index, place = grant->chain_count; i != LANE_NONE;
	     i = core->lanes[i].parent)
		grant->chain[--place] = core->lanes[i].id.node;
}

/* Pool and budget of an ancestor are those of any family below: it is in no open set. */
static const struct family *
any_family(const struct core *core, const struct lane *lane)
{
	VERIFY(lane->below.count > 0);
	if (lane->family != FAMILY_NONE)
		return &core->families[lane->family];
	return &core->families[lane->below.head / LINEAGE_MAX];
}

static void
emit_lane(struct core *core, uint32_t index, struct command_list *out)
{
	struct lane *lane = &core->lanes[index];
	struct family *family = family_of(core, lane);
	struct credit *credit = family ? &family->credit : NULL;
	struct lane_record record = wanted(core, lane);
	const struct family *any = any_family(core, lane);
	struct command_grant *grant;
	bool raises;

	VERIFY(index < core->config.lanes_max);
	VERIFY(!lane->flight);
	if (!has_news(lane, credit, &record))
		return;
	raises = needs_g(lane, credit, &record);
	if (!raises)
		soften(lane, &record);
	if (!raises && lane->granted.gate != LANE_GATE_COUNT &&
	    !differs(&record, &lane->granted)) {
		MARK(grant_waits_for_a_credit);
		return; /* all of it has to wait for the credit */
	}

	grant = &append(out, COMMAND_GRANT)->grant;
	*grant = (struct command_grant){
		.lane = lane->id,
		.has_family = family != NULL,
		.pool = core->pools[any->pool].id,
		.budget = core->pacers[any->budget].id,
		.g = lane->g,
		.g_new = lane->g + raises,
		.gate = record.gate,
		.reason = record.reason,
		.window = record.window,
		.rank = record.rank,
		.until_ms = record.until_ms,
		.p = record.p,
		.life_ms = record.life_ms,
		.marks = record.marks,
	};
	fill_chain(core, index, grant);
	if (credit)
		fill_credit(credit, grant);
	if (family)
		set_marks(family, record.marks, grant->g_new);
	if (record.until_ms == COMMAND_KEEP)
		record.until_ms = lane->granted.until_ms;
	lane->granted = record;
	lane->flight = true;
	lane->flight_g = grant->g_new;
	lane->bump = lane->bump && !raises;
}

static void
emit_pacers(struct core *core, struct command_list *out)
{
	VERIFY(out->count <= COMMAND_MAX);
	for (uint32_t i = 0; i < core->pacers_count && out->count < COMMAND_MAX; i++) {
		struct pacer *pacer = &core->pacers[i];
		struct command_budget *budget;

		if (!pacer->dirty || pacer->flight)
			continue;
		budget = &append(out, COMMAND_BUDGET)->budget;
		budget->id = pacer->id;
		budget->pace = pacer->pace;
		budget->parked_until_ms =
			pacer->park_dirty ? pacer->parked_ms : COMMAND_KEEP;
		for (uint32_t bucket = 0; bucket < EVENT_BUCKET_COUNT; bucket++)
			budget->limits[bucket] = pacer_limit(pacer, bucket);
		budget->learned = pacer_learned(pacer);
		pacer->park_flight = pacer->park_dirty;
		pacer->dirty = pacer->park_dirty = false;
		pacer->flight = true;
		pacer_take_asked(core, i);
	}
}

static void
emit_glances(struct core *core, struct command_list *out)
{
	VERIFY(out->count <= COMMAND_MAX);
	while (core->glance.count > 0 && out->count < COMMAND_MAX) {
		uint32_t index = list_pop(&core->glance, core->family_glance);

		VERIFY(!core->families[index].glance_flight);
		core->families[index].glance_flight = true;
		append(out, COMMAND_GLANCE)->glance.family = core->families[index].id;
	}
}

static void
emit_unheld(struct core *core, struct command_list *out)
{
	VERIFY(out->count <= COMMAND_MAX);
	for (uint32_t i = 0; i < STATE_UNHELD_MAX && out->count < COMMAND_MAX; i++) {
		struct unheld *unheld = &core->unheld[i];
		struct command *command;

		if (!unheld->due)
			continue;
		unheld->due = false;
		command = append(out, COMMAND_GRANT);
		command->grant = unheld->grant;
		command->grant.g_new = unheld->grant.g + 1;
	}
}

void
grant_emit(struct core *core, struct command_list *out)
{
	struct command_note note;

	VERIFY(out->count == 0);
	VERIFY(!core->recovering);
	if (core->rebuild) {
		core->rebuild = false;
		append(out, COMMAND_REBUILD);
	}
	emit_unheld(core, out);
	emit_pacers(core, out);
	while (core->dirty.count > 0 && out->count < COMMAND_MAX) {
		uint32_t lane = list_pop(&core->dirty, core->lane_home);

		/* Else its outcome, or its timer, touches it again. */
		if (!core->lanes[lane].flight &&
		    !lane_awaits_company(core, &core->lanes[lane]))
			emit_lane(core, lane, out);
	}
	emit_glances(core, out);
	while (out->count < COMMAND_MAX && note_pop(core, &note))
		append(out, COMMAND_NOTE)->note = note;
}

bool
grant_is_due(const struct core *core)
{
	if (core->rebuild || core->dirty.count > 0 || core->glance.count > 0 ||
	    core->notes.count > 0 || core->notes.lost > 0)
		return true;
	for (uint32_t i = 0; i < core->pacers_count; i++)
		if (core->pacers[i].dirty && !core->pacers[i].flight)
			return true;
	for (uint32_t i = 0; i < STATE_UNHELD_MAX; i++)
		if (core->unheld[i].due)
			return true;
	return false;
}

/* What the answer says about the lists of the lane's family. */
static void
take_family(struct core *core, uint32_t index, const struct event_granted *granted)
{
	struct family *family = &core->families[index];
	/* 64 is the `now` list.  A bit may be set in vain, a head may not. */
	bool empty = (granted->bits & 63) == 0 || granted->head_ms == 0;
	uint32_t waiting = empty ? 0 : MAX(family->waiting, 1);

	VERIFY(index < core->config.families_max);
	family_count(core, index, waiting, granted->in_use);
	credit_take_grant(core, index, granted->in_use, empty);
	if (!empty)
		family_take_head(core, index, granted->head_ms);
}

static void
take_unheld(struct core *core, const struct event_granted *granted)
{
	for (uint32_t i = 0; i < STATE_UNHELD_MAX; i++) {
		struct unheld *unheld = &core->unheld[i];

		if (!unheld->used || unheld->due ||
		    !id_equals(unheld->grant.lane.node, granted->lane.node) ||
		    unheld->grant.lane.domain != granted->lane.domain)
			continue;
		unheld->used = granted->status != EVENT_STATUS_DONE;
		unheld->due = unheld->used;
		if (granted->status == EVENT_STATUS_REFUSED)
			unheld->grant.g = granted->g;
	}
}

void
grant_take(struct core *core, const struct event_granted *granted)
{
	uint32_t index = lane_find(core, granted->lane);
	struct lane *lane;

	VERIFY(granted->status <= EVENT_STATUS_UNKNOWN);
	if (index == LANE_NONE) {
		take_unheld(core, granted);
		return;
	}
	lane = &core->lanes[index];
	if (!lane->flight || granted->g_new != lane->flight_g)
		return; /* of a lane that was forgotten meanwhile */
	lane->flight = false;
	lane_touch(core, index);
	pool_plan_all(core); /* who waited for the answer may be elected */
	if (granted->status == EVENT_STATUS_UNKNOWN) {
		lane->unsure = true;
		lane->granted.gate = LANE_GATE_COUNT;
		return;
	}
	if (granted->status == EVENT_STATUS_REFUSED) {
		/* Redis came back with an older past; or the record had been deleted. */
		if (granted->g > 0 && granted->g < lane->g)
			core->rebuild = true;
		lane->granted.gate = LANE_GATE_COUNT;
		lane->g = granted->g;
		if (lane->family != FAMILY_NONE) {
			struct family *family = &core->families[lane->family];

			family->marks_g = MIN(family->marks_g, granted->g);
			family->marks_before_g = MIN(family->marks_before_g, granted->g);
		}
		if (!lane->unsure || granted->g != lane->flight_g)
			return;
		/* The one before, whose answer was lost, had been done; it may have said
		 * something else, so nothing of this one counts as done. */
		if (lane->family != FAMILY_NONE)
			core->families[lane->family].credit.revoke_flight = false;
	}
	lane->g = granted->g;
	lane->unsure = false;
	if (lane->family != FAMILY_NONE)
		take_family(core, lane->family, granted);
}

void
grant_take_proof(struct core *core, uint32_t index, uint64_t g)
{
	struct lane *lane = &core->lanes[index];

	VERIFY(index < core->config.lanes_max);
	VERIFY(core->lanes[index].below.count > 0);
	if ((!lane->unsure && !lane->flight) || g != lane->flight_g || g == lane->g)
		return;
	if (lane->family != FAMILY_NONE && core->families[lane->family].credit.g == g)
		core->families[lane->family].credit.pending = false;
	if (lane->flight)
		return; /* the answer is still to come */
	lane->g = g;
	lane->unsure = false;
	lane_touch(core, index);
}

void
grant_repair(struct core *core, uint32_t index)
{
	const struct family *family = &core->families[index];

	VERIFY(index < core->config.families_max);
	VERIFY(core->families[index].lanes_count > 0);
	for (uint32_t i = 0; i < family->lanes_count; i++) {
		struct lane *lane = &core->lanes[family->lanes[i]];

		if (lane->flight)
			continue; /* it may be just that */
		lane->granted.gate = LANE_GATE_COUNT;
		lane_touch(core, family->lanes[i]);
	}
}

void
grant_unheld(struct core *core, const struct event_admitted *admitted, uint64_t g)
{
	const struct lineage *chain = &admitted->chain;
	struct unheld *unheld = &core->unheld[core->unheld_next];

	VERIFY(core->unheld_next < STATE_UNHELD_MAX);
	VERIFY(chain->count > 0);
	core->unheld_next = (core->unheld_next + 1) % STATE_UNHELD_MAX;
	*unheld = (struct unheld){ .used = true, .due = true };
	unheld->grant = (struct command_grant){
		.lane = { chain->nodes[chain->count - 1].id, admitted->domain },
		.has_family = true,
		.pool = admitted->pool,
		.budget = admitted->budget,
		.chain_count = chain->count,
		.g = g,
		.gate = LANE_BYPASS,
		.reason = LANE_REASON_UNHELD,
		.window = LANE_WINDOW,
		.rank = POOL_RANK_FIRST,
		.until_ms = LANE_FOREVER,
		.p = COMMAND_KEEP,
	};
	for (uint32_t i = 0; i < chain->count; i++)
		unheld->grant.chain[i] = chain->nodes[i].id;
	note_id(core, COMMAND_NOTE_FULL, unheld->grant.lane.node, 0, 0);
}
