#include "scheduler/ruler_grant.h"

#include "common/codec/protocol_record.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_events.h"

#define LANE_BYTES     1000 /* of one lane of a grant, with the longest names */
#define OTHERS_RESERVE 640  /* events of an admit and a glance that are answered too */

/* ---- taking from the queue of commands ------------------------------------------- */

static const struct command *
peek(const struct ruler *ruler)
{
	return ruler->pending_count > 0 ? &ruler->pending[ruler->pending_head] : NULL;
}

static void
pop(struct ruler *ruler)
{
	VERIFY(ruler->pending_count > 0);
	ruler->pending_head = (ruler->pending_head + 1) % ruler->pending_max;
	if (--ruler->pending_count == 0)
		ruler->pending_head = 0; /* stay where memory has been touched */
}

static struct ruler_grant_call *
free_call(struct ruler *ruler)
{
	for (uint32_t i = 0; i < RULER_GRANTS_MAX; i++)
		if (!ruler->grants[i].busy)
			return &ruler->grants[i];
	return NULL;
}

/* ---- writing --------------------------------------------------------------------- */

static int64_t
kept(uint64_t value)
{
	return value == COMMAND_KEEP ? PROTOCOL_KEEP : (int64_t)value;
}

static void
put_px(struct ruler *ruler, const struct command_grant *grant, bool split)
{
	buffer_clear(&ruler->text);
	for (uint32_t i = 0; split && i < grant->chain_count; i++) {
		if (i > 0)
			(void)buffer_append_byte(&ruler->text, ',');
		(void)buffer_append_id(&ruler->text, grant->chain[i]);
	}
}

static struct span
pool_name(const struct ruler *ruler, struct id128 id)
{
	uint32_t place = ruler_known_pool_find(&ruler->known, id);

	return place == UINT32_MAX ? SPAN("") : span_from(ruler->known.pools[place].name);
}

static struct span
budget_name(const struct ruler *ruler, struct id128 id)
{
	uint32_t place = ruler_known_budget_find(&ruler->known, id);

	return place == UINT32_MAX ? SPAN("")
	                           : span_from(ruler->known.budgets[place].name);
}

/* Segments are stored unless it is known that they are not: an ancestor's lane exists
 * only because of families that were split. */
static bool
is_split(const struct ruler *ruler, const struct command_grant *grant)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, grant->lane.node);

	return place == RULER_SHELF_NONE || ruler->known.families[place].split ||
	       !grant->has_family;
}

static void
write_lane(struct ruler *ruler, const struct command_grant *it, struct call_list *out)
{
	char lane[PROTOCOL_LANE_ID_SIZE];
	size_t lane_len = protocol_print_lane_id(
		(struct protocol_lane_id){ it->lane.node, it->lane.domain }, lane);
	struct protocol_grant grant = {
		.lane = { lane, lane_len },
		.family = it->has_family ? (struct span){ lane, ID_HEX_LEN } : SPAN(""),
		.pool = pool_name(ruler, it->pool),
		.budget = budget_name(ruler, it->budget),
		.generation = it->g,
		.generation_new = it->g_new,
		.gate = it->gate,
		.reason = it->reason,
		.credits = it->credits,
		.credit_role = it->role,
		.window = it->window,
		.rank = it->rank,
		.until_ms = kept(it->until_ms),
		.tokens = kept(it->p),
		.life_ms = (int64_t)it->life_ms,
		.ticket = it->ticket,
		.ticket_deadline_ms = (int64_t)it->ticket_deadline_ms,
		.marks = it->marks,
	};

	put_px(ruler, it, is_split(ruler, it));
	grant.px = buffer_span(&ruler->text);
	protocol_call_grant_lane(out, &grant);
}

static void
write_budget(struct ruler *ruler, const struct command_budget *it, struct call_list *out)
{
	const struct protocol_grant_budget budget = {
		.budget = budget_name(ruler, it->id),
		.pace = it->pace,
		.parked_until_ms = kept(it->parked_until_ms),
		.limit_requests = (int64_t)it->limits[EVENT_BUCKET_REQUESTS],
		.limit_input = (int64_t)it->limits[EVENT_BUCKET_INPUT],
		.limit_output = (int64_t)it->limits[EVENT_BUCKET_OUTPUT],
		.learned = it->learned,
	};

	protocol_call_grant_budget(out, &budget);
}

/* ---- one grant ------------------------------------------------------------------- */

/* Lanes come before budgets in the call, so both are picked out first.  Their order
 * among themselves stays; that of a lane and a budget does not matter in one call. */
struct picked {
	uint32_t lanes_count, budgets_count;
	struct command_grant lanes[RULER_GRANT_LANES];
	struct command_budget budgets[RULER_GRANT_BUDGETS];
};

static bool
pick(struct ruler *ruler, struct picked *picked)
{
	const struct command *command;

	picked->lanes_count = 0;
	picked->budgets_count = 0;
	while ((command = peek(ruler)) != NULL) {
		if (command->kind == COMMAND_GRANT) {
			if (picked->lanes_count == RULER_GRANT_LANES)
				break;
			picked->lanes[picked->lanes_count++] = command->grant;
		} else if (command->kind == COMMAND_BUDGET) {
			if (picked->budgets_count == RULER_GRANT_BUDGETS)
				break;
			picked->budgets[picked->budgets_count++] = command->budget;
		} else {
			if (ruler->glances_count == RULER_GLANCES_MAX)
				break;
			ruler->glances[ruler->glances_count++] = command->glance.family;
		}
		pop(ruler);
	}
	return picked->lanes_count + picked->budgets_count > 0;
}

/* Only when nothing of what was told still waits to be sent may earlier events go. */
static const char *
cursor_to_store(const struct ruler *ruler)
{
	return ruler->pending_count == 0 && ruler_events_are_told(ruler)
	               ? ruler->events_told
	               : ruler->events_stored;
}

static void
write_grant(struct ruler *ruler, const struct picked *picked, struct call_list *out)
{
	struct ruler_grant_call *call = free_call(ruler);

	VERIFY(call);
	call->busy = true;
	call->lanes_count = picked->lanes_count;
	call->budgets_count = picked->budgets_count;
	call->told = ruler->told;
	ruler_copy(call->cursor, RULER_CURSOR_SIZE, span_from(cursor_to_store(ruler)));
	protocol_call_grant(
		out, ruler_tag(ruler, RULER_CALL_GRANT, (uint32_t)(call - ruler->grants)),
		ruler->config->ns, ruler_owner(ruler), span_from(call->cursor),
		picked->lanes_count);
	for (uint32_t i = 0; i < picked->lanes_count; i++) {
		call->lanes[i] = (struct ruler_granted_lane){ picked->lanes[i].lane,
			                                      picked->lanes[i].g_new };
		write_lane(ruler, &picked->lanes[i], out);
	}
	protocol_call_grant_budgets(out, picked->budgets_count);
	for (uint32_t i = 0; i < picked->budgets_count; i++) {
		call->budgets[i] = picked->budgets[i].id;
		write_budget(ruler, &picked->budgets[i], out);
	}
}

static bool
has_room(const struct call_list *out)
{
	return ruler_fits(
		out, RULER_GRANT_LANES * PROTOCOL_GRANT_ARGS + RULER_GRANT_BUDGETS * 6,
		RULER_GRANT_LANES * LANE_BYTES + RULER_GRANT_BUDGETS * 600);
}

static void
write_glance(struct ruler *ruler, struct call_list *out)
{
	char hex[ID_HEX_LEN];

	protocol_call_glance(out, ruler_tag(ruler, RULER_CALL_GLANCE, 0),
	                     ruler->config->ns);
	for (uint32_t i = 0; i < ruler->glances_count; i++) {
		id_encode(ruler->glances[i], hex);
		call_word(out, (struct span){ hex, ID_HEX_LEN });
	}
	memcpy(ruler->glanced, ruler->glances,
	       ruler->glances_count * sizeof(*ruler->glances));
	ruler->glanced_count = ruler->glances_count;
	ruler->glanced_told = ruler->told;
	ruler->glances_count = 0;
	ruler->glancing = true;
}

/* The first command that waits can go on.  A look that finds no room among those that are
 * collected has to wait for the answer to the one that is under way. */
static bool
first_may_go(const struct ruler *ruler)
{
	const struct command *command = peek(ruler);
	bool free = false;

	for (uint32_t i = 0; i < RULER_GRANTS_MAX; i++)
		free |= !ruler->grants[i].busy;
	if (!command || !free)
		return false;
	return command->kind != COMMAND_GLANCE ||
	       ruler->glances_count < RULER_GLANCES_MAX;
}

bool
ruler_grant_is_due(const struct ruler *ruler)
{
	return first_may_go(ruler) || (ruler->glances_count > 0 && !ruler->glancing);
}

/* Each lane and budget of a grant comes back as an event: their answers must find room in
 * the queue, however many of them come before the next step.  One grant may always go. */
static bool
answers_fit(const struct ruler *ruler)
{
	uint32_t one = RULER_GRANT_LANES + RULER_GRANT_BUDGETS, events = 0;

	for (uint32_t i = 0; i < RULER_GRANTS_MAX; i++)
		if (ruler->grants[i].busy)
			events += ruler->grants[i].lanes_count +
			          ruler->grants[i].budgets_count;
	return ruler_core_room(ruler) >= events + one + (events > 0 ? OTHERS_RESERVE : 0);
}

void
ruler_grant_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct picked picked;

	(void)now_ms;
	if (ruler->phase != RULER_RULING)
		return;
	while (ruler->pending_count > 0 && free_call(ruler) && has_room(out) &&
	       answers_fit(ruler) && pick(ruler, &picked))
		write_grant(ruler, &picked, out);
	if (ruler->glances_count > 0 && !ruler->glancing &&
	    ruler_fits(out, RULER_GLANCES_MAX, RULER_GLANCES_MAX * (ID_HEX_LEN + 1)))
		write_glance(ruler, out);
}

bool
ruler_grant_has_cursor(const struct ruler *ruler)
{
	return strcmp(cursor_to_store(ruler), ruler->events_stored) != 0;
}

void
ruler_grant_trim(struct ruler *ruler, struct call_list *out)
{
	const struct picked nothing = { 0 };

	if (free_call(ruler))
		write_grant(ruler, &nothing, out);
}

/* ---- outcomes -------------------------------------------------------------------- */

/* The id time of jobs that the core was told of after a call went out: an answer that
 * finds no work is older than they are.  0: there are none. */
static uint64_t
younger_work(const struct ruler *ruler, struct id128 id, uint64_t told)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, id);
	const struct ruler_family *family;

	if (place == RULER_SHELF_NONE)
		return 0;
	family = &ruler->known.families[place];
	return family->told > told ? family->seen_ms : 0;
}

static void
tell_lane(struct ruler *ruler, uint64_t now_ms, const struct ruler_granted_lane *lane,
          uint64_t told, const struct reply *reply, uint32_t i)
{
	struct event event = { .kind = EVENT_GRANTED };
	struct protocol_granted granted;

	event.granted.lane = lane->lane;
	event.granted.g_new = lane->g_new;
	event.granted.status = EVENT_STATUS_UNKNOWN;
	if (protocol_answer_granted(reply, i, &granted)) {
		event.granted.status =
			granted.done ? EVENT_STATUS_DONE : EVENT_STATUS_REFUSED;
		event.granted.g = granted.generation;
		event.granted.in_use = granted.in_use;
		event.granted.bits = granted.bits;
		event.granted.head_ms = granted.head_ms;
		if ((granted.bits & ~(uint32_t)PROTOCOL_LIST_NOW) == 0 ||
		    granted.head_ms == 0) {
			event.granted.head_ms =
				younger_work(ruler, lane->lane.node, told);
			if (event.granted.head_ms > 0)
				event.granted.bits |= PROTOCOL_READY_NORMAL;
		}
	}
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_grant_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                      const struct reply *reply)
{
	struct ruler_grant_call *call = &ruler->grants[index];

	VERIFY(index < RULER_GRANTS_MAX);
	VERIFY(call->busy);
	call->busy = false;
	ruler_copy(ruler->events_stored, RULER_CURSOR_SIZE, span_from(call->cursor));
	for (uint32_t i = 0; i < call->lanes_count; i++)
		tell_lane(ruler, now_ms, &call->lanes[i], call->told, reply, i);
	for (uint32_t i = 0; i < call->budgets_count; i++) {
		const struct event event = {
			.kind = EVENT_PACED,
			.paced = { call->budgets[i], EVENT_STATUS_DONE },
		};

		ruler_core_tell(ruler, now_ms, &event);
	}
}

void
ruler_grant_on_glance(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                      const struct reply *reply)
{
	struct protocol_glance glance;

	(void)index;
	VERIFY(ruler->glancing);
	ruler->glancing = false;
	for (uint32_t i = 0; i < ruler->glanced_count; i++) {
		struct event event = { .kind = EVENT_GLANCED };

		event.glanced.family = ruler->glanced[i];
		event.glanced.status = EVENT_STATUS_UNKNOWN;
		if (protocol_answer_glance(reply, i, &glance) &&
		    id_equals(glance.family, ruler->glanced[i])) {
			event.glanced.status = EVENT_STATUS_DONE;
			event.glanced.backlog = (uint32_t)MIN(glance.backlog, UINT32_MAX);
			event.glanced.in_use = glance.in_use;
			event.glanced.head_ms = glance.head_ms;
		}
		if (event.glanced.backlog == 0 &&
		    younger_work(ruler, ruler->glanced[i], ruler->glanced_told) > 0) {
			event.glanced.backlog = 1;
			event.glanced.head_ms = younger_work(ruler, ruler->glanced[i],
			                                     ruler->glanced_told);
		}
		ruler_core_tell(ruler, now_ms, &event);
	}
}
