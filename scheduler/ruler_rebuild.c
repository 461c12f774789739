#include "scheduler/ruler_rebuild.h"

#include "common/codec/protocol_record.h"
#include "scheduler/ruler_address.h"
#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_events.h"
#include "scheduler/ruler_home.h"
#include "scheduler/ruler_inbox.h"
#include "scheduler/ruler_job.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rule.h"
#include "scheduler/ruler_session.h"
#include "scheduler/ruler_unheld.h"

#define SCAN_COUNT 1000 /* records of one HSCAN: about 300 KB */

enum {
	STAGE_META,
	STAGE_ROUTES,
	STAGE_LEDGER,
	STAGE_HOURS,
	STAGE_AUDIT,
	STAGE_FAMILIES,
	STAGE_MOVES,
	STAGE_RECENT,
	STAGE_LANES,
	STAGE_SESSIONS,
	STAGE_BUDGETS,
};

static void
enter(struct ruler *ruler, int stage)
{
	ruler->rebuild.stage = stage;
	ruler->rebuild.sent = false;
	ruler_copy(ruler->rebuild.cursor, sizeof(ruler->rebuild.cursor), SPAN("0"));
}

void
ruler_rebuild_start(struct ruler *ruler, uint64_t now_ms)
{
	ruler->rebuild = (struct ruler_rebuild){ 0 };
	ruler_known_clear(&ruler->known);
	ruler_ledger_restart(ruler, now_ms);
	ruler_session_clear(ruler);
	ruler_inbox_clear(ruler);
	ruler_admit_clear(ruler);
	ruler->prefixes_count = 0;
	ruler_core_restart(ruler);
	ruler_unheld_clear(ruler);
	ruler_clock_audit_anew(ruler);
	enter(ruler, STAGE_META);
}

/* ---- calls ----------------------------------------------------------------------- */

static void
ask_meta(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_META, 0));
	call_text(out, "HMGET");
	protocol_call_key(out, ruler->config->ns, "meta");
	call_text(out, "seed");
	call_text(out, "cursor");
	call_text(out, "events");
	call_text(out, "hold");
	call_text(out, "admit_try");
	call_text(out, "ledger");
	call_text(out, "places");
}

/* Where a scan goes on; empty at its end. */
static void
keep_cursor(struct ruler *ruler, const struct reply *reply)
{
	struct span cursor = reply_text(reply_at(reply, 0));

	if (span_equals(cursor, SPAN("0")))
		cursor = SPAN("");
	ruler_copy(ruler->rebuild.cursor, sizeof(ruler->rebuild.cursor), cursor);
}

/* The next page of `stage`, or what comes behind the last one. */
static void
go_on_scanning(struct ruler *ruler, int stage, int next_stage)
{
	if (ruler->rebuild.cursor[0] == '\0') {
		enter(ruler, next_stage);
		return;
	}
	ruler->rebuild.stage = stage;
	ruler->rebuild.sent = false;
}

static void
ask_scan(struct ruler *ruler, enum ruler_call kind, const char *key,
         struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, kind, 0));
	call_text(out, "HSCAN");
	protocol_call_key(out, ruler->config->ns, key);
	call_text(out, ruler->rebuild.cursor);
	call_text(out, "COUNT");
	call_integer(out, SCAN_COUNT);
}

static void
ask_recent(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_RECENT, 0));
	call_text(out, "HGETALL");
	protocol_call_key(out, ruler->config->ns, "recent");
}

static void
ask_budget(struct ruler *ruler, struct call_list *out)
{
	char name[PROTOCOL_BUDGET_SIZE + 16] = "budget:";

	ruler_copy(name + 7, sizeof(name) - 7,
	           span_from(ruler->known.budgets[ruler->rebuild.budget].name));
	call_begin(out, ruler_tag(ruler, RULER_CALL_BUDGET, ruler->rebuild.budget));
	call_text(out, "HGETALL");
	protocol_call_key(out, ruler->config->ns, name);
}

static void
finish(struct ruler *ruler, uint64_t now_ms)
{
	const struct event end = { .kind = EVENT_RECOVERED_END };

	ruler->known.nodes_complete = true;
	ruler_session_tell(ruler, now_ms);
	ruler_core_step(ruler, now_ms, &end);
	ruler->phase = RULER_RULING;
	ruler_core_take(ruler, now_ms);
	ruler_inbox_start(ruler, now_ms);
	ruler_clock_start(ruler, now_ms);
	if (ruler->rebuild.moved > 0)
		ruler_note(ruler, RULER_INFO,
		           "%llu families were moved to the pool or the account that the "
		           "configuration has for them now",
		           (unsigned long long)ruler->rebuild.moved);
	ruler_note(ruler, RULER_INFO, "memory is complete: %llu families, %llu prefixes",
	           (unsigned long long)ruler->rebuild.families,
	           (unsigned long long)ruler->rebuild.lanes);
}

bool
ruler_rebuild_is_due(const struct ruler *ruler)
{
	return ruler->phase == RULER_REBUILDING && !ruler->rebuild.sent;
}

void
ruler_rebuild_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	if (!ruler_rebuild_is_due(ruler) || !ruler_fits(out, 16 + RULER_HOME_MOVES, 4096))
		return;
	ruler->rebuild.sent = true;
	switch (ruler->rebuild.stage) {
	case STAGE_META:
		ask_meta(ruler, out);
		return;
	case STAGE_ROUTES:
		ruler_unheld_ask(ruler, out);
		return;
	case STAGE_LEDGER:
		ruler_ledger_ask(ruler, 0, out);
		return;
	case STAGE_HOURS:
		if (!ruler_ledger_ask_hour(ruler, ruler->rebuild.hour, out))
			enter(ruler, STAGE_AUDIT);
		return;
	case STAGE_AUDIT:
		ruler_clock_audit(ruler, out);
		return;
	case STAGE_FAMILIES:
		ask_scan(ruler, RULER_CALL_FAMILIES, "families", out);
		return;
	case STAGE_MOVES:
		if (ruler_home_ask(ruler, out))
			return;
		go_on_scanning(ruler, STAGE_FAMILIES, STAGE_RECENT);
		return;
	case STAGE_RECENT:
		if (ruler->keeper.next)
			ask_recent(ruler, out);
		else
			enter(ruler, STAGE_LANES);
		return;
	case STAGE_LANES:
		ask_scan(ruler, RULER_CALL_LANES, "lanes", out);
		return;
	case STAGE_SESSIONS:
		ruler_session_look(ruler, out);
		return;
	case STAGE_BUDGETS:
		if (ruler->rebuild.budget < ruler->known.budgets_count)
			ask_budget(ruler, out);
		else {
			ruler_address_store(ruler, out);
			finish(ruler, now_ms);
		}
		return;
	}
	VERIFY(!"a stage of rebuilding");
}

void
ruler_rebuild_sessions_done(struct ruler *ruler)
{
	VERIFY(ruler->rebuild.stage == STAGE_SESSIONS);
	enter(ruler, STAGE_BUDGETS);
}

void
ruler_rebuild_routes_done(struct ruler *ruler)
{
	if (ruler->rebuild.stage == STAGE_ROUTES) /* else it was asked before */
		enter(ruler, STAGE_LEDGER);
}

void
ruler_rebuild_audited(struct ruler *ruler, bool is_over)
{
	VERIFY(ruler->rebuild.stage == STAGE_AUDIT);
	if (is_over)
		enter(ruler, STAGE_FAMILIES);
	else
		ruler->rebuild.sent = false;
}

/* ---- meta ------------------------------------------------------------------------ */

void
ruler_rebuild_on_meta(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                      const struct reply *reply)
{
	struct event hold = { .kind = EVENT_HOLD };
	struct span events = reply_text(reply_at(reply, 2));

	(void)index;
	ruler->admit.reader.identity = chain_seed(reply_text(reply_at(reply, 0)));
	ruler_admit_set_cursor(ruler, reply_text(reply_at(reply, 1)));
	ruler_events_start(ruler, events.len > 0 ? events : SPAN("0-0"),
	                   reply_text(reply_at(reply, 5)));
	ruler->health.hold = !reply_is(reply_at(reply, 3), "off");
	ruler_address_compare(ruler, reply_text(reply_at(reply, 6)));
	hold.hold.on = ruler->health.hold;
	ruler_core_tell(ruler, now_ms, &hold);
	if (ruler->starting)
		ruler_admit_set_tries(ruler, reply_text(reply_at(reply, 4)));
	enter(ruler, STAGE_ROUTES);
}

void
ruler_rebuild_on_ledger(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply)
{
	(void)now_ms;
	ruler_ledger_load(ruler, index, reply);
	if (ruler->rebuild.stage == STAGE_LEDGER) {
		ruler->rebuild.hour = 0;
		enter(ruler, STAGE_HOURS);
		return;
	}
	ruler->rebuild.hour++;
	ruler->rebuild.sent = false;
}

void
ruler_rebuild_on_recent(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply)
{
	(void)index;
	ruler->keeper.load(ruler->keeper.data, now_ms, reply);
	enter(ruler, STAGE_LANES);
}

/* ---- families -------------------------------------------------------------------- */

static bool
list_contains(struct span list, struct id128 node)
{
	struct protocol_lane_id lane;
	struct span item;

	while (protocol_list_next(&list, &item))
		if (protocol_parse_lane_id(item, &lane) == 0 &&
		    id_equals(lane.node, node))
			return true;
	return false;
}

/* Which nodes are shared is not stored as such: those that gate are, and the family's
 * own by its flag; likewise which may be marked.  Sizes come back with the next job. */
static void
recover_lineage(const struct protocol_family *record, struct ruler_family *family)
{
	struct lineage *lineage = &family->lineage;
	struct span px = record->px, item;
	struct lineage_node *leaf;

	*lineage = (struct lineage){ 0 };
	while (lineage->count < LINEAGE_MAX && protocol_list_next(&px, &item)) {
		struct lineage_node node = { 0 };

		if (id_decode(item, &node.id) < 0)
			continue;
		if (list_contains(record->ancestors, node.id)) {
			node.flags = LINEAGE_SHARED | LINEAGE_MARKABLE;
			family->gates |= 1u << lineage->count;
		}
		lineage->nodes[lineage->count++] = node;
	}
	family->split = lineage->count > 0;
	if (!family->split)
		lineage->nodes[lineage->count++].id = family->id;
	leaf = &lineage->nodes[lineage->count - 1];
	if (record->flags & PROTOCOL_SHARED)
		leaf->flags |= LINEAGE_SHARED;
	if (record->flags & PROTOCOL_MARKABLE ||
	    record->marks & (1u << (lineage->count - 1))) /* of an older release */
		leaf->flags |= LINEAGE_MARKABLE;
}

static void
recover_nodes(struct ruler *ruler, uint64_t now_ms, uint32_t place, bool alive)
{
	const struct ruler_family *family = &ruler->known.families[place];

	for (uint32_t i = 0; family->split && i < family->lineage.count; i++) {
		uint32_t at =
			ruler_known_node(&ruler->known, family->lineage.nodes[i].id);
		struct ruler_node *node = &ruler->known.nodes[at];

		node->flags |= RULER_NODE_STORED;
		if (family->lineage.nodes[i].flags & LINEAGE_SHARED)
			node->flags |= RULER_NODE_SHARED;
		if (node->first_family == RULER_SHELF_NONE)
			node->first_family = place;
		if (alive)
			node->seen_ms = now_ms;
	}
}

static void
tell_family(struct ruler *ruler, uint64_t now_ms, const struct protocol_family *record,
            const struct ruler_family *family)
{
	const struct ruler_known *known = &ruler->known;
	uint32_t bits = record->bits;
	struct event event = { .kind = EVENT_RECOVERED_FAMILY };
	struct event_admitted *it = &event.admitted;

	it->pool = known->pools[family->pool].id;
	it->budget = known->budgets[family->budget].id;
	it->model = known->models[family->model].id;
	it->route = ruler_unheld_id(family->route);
	it->chain = family->lineage;
	it->flags = (family->paused ? EVENT_FAMILY_PAUSED : 0) |
	            (family->opaque ? EVENT_FAMILY_OPAQUE : 0);
	it->jobs[EVENT_LIST_HIGH] =
		(bits & (PROTOCOL_BACK_HIGH | PROTOCOL_READY_HIGH)) != 0;
	it->jobs[EVENT_LIST_NORMAL] =
		(bits & (PROTOCOL_BACK_NORMAL | PROTOCOL_READY_NORMAL)) != 0;
	it->jobs[EVENT_LIST_LOW] = (bits & (PROTOCOL_BACK_LOW | PROTOCOL_READY_LOW)) != 0;
	it->jobs[EVENT_LIST_NOW] = (bits & PROTOCOL_LIST_NOW) != 0;
	it->oldest_ms = EVENT_UNKNOWN;
	it->marks = record->marks;
	it->hold_max_ms = family->hold_max_ms;
	it->input_tokens = family->input;
	it->output_tokens = family->output;
	ruler_core_tell(ruler, now_ms, &event);
}

static void
recover_family(struct ruler *ruler, uint64_t now_ms, struct id128 id,
               const struct protocol_family *record)
{
	struct ruler_family *family;
	struct span lanes = record->lanes, item;
	uint32_t place;
	bool fresh;

	/* A node that only has families below it: nothing waits there itself. */
	if (!protocol_list_next(&lanes, &item)) {
		uint32_t node = ruler_known_node(&ruler->known, id);

		ruler->known.nodes[node].flags |= RULER_NODE_STORED;
		return;
	}
	place = ruler_known_family(&ruler->known, id, &fresh);
	family = &ruler->known.families[place];
	if (fresh)
		ruler_home_find(ruler, now_ms, family, record);
	ruler_home_note(ruler, family, record);
	if (!fresh)
		return; /* HSCAN may answer a field twice, and a page is read again */
	ruler->rebuild.families++;
	family->stored = true;
	family->stored_shared = record->flags & PROTOCOL_SHARED;
	family->paused = record->flags & PROTOCOL_PAUSED;
	family->opaque = record->flags & PROTOCOL_OPAQUE;
	family->markable = family->stored_markable = record->flags & PROTOCOL_MARKABLE;
	family->marked = family->stored_marked = record->flags & PROTOCOL_MARKED;
	family->hold_max_ms = family->stored_hold_max_ms = record->hold_max_ms;
	family->input = family->stored_input = (uint32_t)record->input;
	family->input_is_whole = true;
	family->output = family->output_most = family->stored_output =
		(uint32_t)record->output;
	family->samples = 8;
	ruler_copy(family->route, sizeof(family->route), record->route);
	recover_lineage(record, family);
	recover_nodes(ruler, now_ms, place, record->live > 0);
	tell_family(ruler, now_ms, record, family);
}

static void
say_unreadable(struct ruler *ruler, const char *key, const struct reply *field)
{
	char name[80];

	(void)text_escape(reply_text(field), name, sizeof(name));
	ruler_note(ruler, RULER_ERROR,
	           "the record of %s in %s cannot be read and is left alone. Say: warmq "
	           "doctor --repair records",
	           name, key);
}

void
ruler_rebuild_on_families(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                          const struct reply *reply)
{
	const struct reply *items = reply_at(reply, 1);

	(void)index;
	for (size_t i = 0; items->kind == REPLY_ARRAY && i + 1 < items->count; i += 2) {
		struct protocol_family record;
		struct id128 id;

		if (id_decode(reply_text(&items->items[i]), &id) < 0 ||
		    protocol_record_parse_family(reply_text(&items->items[i + 1]),
		                                 &record) < 0) {
			say_unreadable(ruler, "families", &items->items[i]);
			continue;
		}
		recover_family(ruler, now_ms, id, &record);
	}
	ruler->rebuild.stage = STAGE_MOVES;
	ruler->rebuild.sent = false;
	if (!ruler->rebuild.moves_over)
		keep_cursor(ruler, reply);
}

void
ruler_rebuild_on_moved(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	(void)now_ms;
	(void)index;
	ruler->rebuild.moved += (uint64_t)MAX(reply_integer(reply_at(reply, 2), 0), 0);
	ruler->rebuild.sent = false;
}

/* ---- lanes and budgets ----------------------------------------------------------- */

static void
recover_lane(struct ruler *ruler, uint64_t now_ms, struct protocol_lane_id id,
             const struct protocol_lane *record)
{
	const struct event event = {
		.kind = EVENT_RECOVERED_LANE,
		.lane = {
			.lane = { id.node, id.domain },
			.gate = (enum lane_gate)record->gate,
			.reason = (enum lane_reason)record->reason,
			.g = record->generation,
			.credits = record->credits,
			.role = (enum lane_role)record->credit_role,
			.in_use = record->in_use,
			.until_ms = record->until_ms,
			.life_ms = record->life_ms,
			.p = (uint32_t)record->tokens,
			.ticket = (enum lane_ticket)record->ticket,
			.rank = (uint32_t)record->rank,
			.moved = ruler_address_is_new(ruler, record->budget),
		},
	};

	ruler->rebuild.lanes++;
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_rebuild_on_lanes(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	const struct reply *items = reply_at(reply, 1);

	(void)index;
	for (size_t i = 0; items->kind == REPLY_ARRAY && i + 1 < items->count; i += 2) {
		struct protocol_lane record;
		struct protocol_lane_id id;

		if (protocol_parse_lane_id(reply_text(&items->items[i]), &id) == 0 &&
		    protocol_record_parse_lane(reply_text(&items->items[i + 1]),
		                               &record) == 0)
			recover_lane(ruler, now_ms, id, &record);
		else
			say_unreadable(ruler, "lanes", &items->items[i]);
	}
	keep_cursor(ruler, reply);
	go_on_scanning(ruler, STAGE_LANES, STAGE_SESSIONS);
}

static uint64_t
field_of(const struct reply *reply, const char *name)
{
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i + 1 < reply->count; i += 2)
		if (reply_is(&reply->items[i], name))
			return (uint64_t)MAX(reply_integer(&reply->items[i + 1], 0), 0);
	return 0;
}

/* Those that were configured are not: another configuration may rule now. */
static void
read_learned(const struct reply *reply, uint64_t limits[EVENT_BUCKET_COUNT])
{
	static const char *const FIELDS[EVENT_BUCKET_COUNT] = {
		[EVENT_BUCKET_REQUESTS] = "r.limit",
		[EVENT_BUCKET_INPUT] = "i.limit",
		[EVENT_BUCKET_OUTPUT] = "o.limit",
	};
	uint64_t learned = field_of(reply, "learned");

	for (uint32_t i = 0; i < EVENT_BUCKET_COUNT; i++)
		if (learned >> i & 1)
			limits[i] = field_of(reply, FIELDS[i]);
}

void
ruler_rebuild_on_budget(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply)
{
	struct event event = { .kind = EVENT_RECOVERED_BUDGET };
	struct event_recovered_budget *it = &event.recovered_budget;

	VERIFY(index < ruler->known.budgets_count);
	it->id = ruler->known.budgets[index].id;
	it->pace = (uint32_t)MIN(field_of(reply, "pace"), UINT32_MAX);
	it->in_flight = (uint32_t)MIN(field_of(reply, "in_flight"), UINT32_MAX);
	it->parked_until_ms = field_of(reply, "parked_until");
	read_learned(reply, it->limits);
	it->moved =
		ruler_address_is_new(ruler, span_from(ruler->known.budgets[index].name));
	if (reply->kind == REPLY_ARRAY && reply->count > 0)
		ruler_core_tell(ruler, now_ms, &event);
	ruler->rebuild.budget++;
	ruler->rebuild.sent = false;
}
