#include "scheduler/ruler_tally.h"

#include "scheduler/ruler_line.h"
#include "scheduler/ruler_state.h"

static struct tally_hold *
hold_of(struct ruler *ruler, struct id128 node)
{
	uint32_t place = ruler_shelf_find(&ruler->known.node_shelf, node);

	return place == RULER_SHELF_NONE ? NULL : &ruler->known.nodes[place].hold;
}

/* ---- starts ---------------------------------------------------------------------- */

static struct span
role_word(enum protocol_role role)
{
	switch (role) {
	case PROTOCOL_LEAD:
		return SPAN("lead");
	case PROTOCOL_CANARY:
		return SPAN("canary");
	case PROTOCOL_TICKET:
		return SPAN("ticket");
	case PROTOCOL_HOLD_LIMIT:
		return SPAN("hold_limit");
	case PROTOCOL_NOW:
	case PROTOCOL_PLAIN: /* says nothing */
		break;
	}
	return SPAN("now");
}

/* Whoever waits for this prefix is held from here on. */
static void
take_start(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	struct tally_hold *hold = hold_of(ruler, line->lane.node);

	tally_count(&ruler->tally, TALLY_STARTS, role_word(line->role));
	if (hold && (line->role == PROTOCOL_LEAD || line->role == PROTOCOL_TICKET))
		tally_hold_begin(hold, at_ms);
}

void
ruler_tally_note(struct ruler *ruler, uint64_t now_ms, const struct command_note *note)
{
	struct tally_hold *hold;

	if (note->kind != COMMAND_NOTE_GATE || note->b == LANE_CLOSED ||
	    note->b == LANE_WRITING || note->b == LANE_CHECKING)
		return;
	hold = hold_of(ruler, note->lane.node);
	if (hold)
		tally_hold_end(hold, now_ms);
}

/* ---- ends ------------------------------------------------------------------------ */

/* How long a job that was sent at `sent_ms` was held: while its own prefix, or one above
 * it, was being written by another request. */
static uint64_t
held_ms(struct ruler *ruler, const struct ruler_family *family,
        const struct protocol_event *line)
{
	const struct protocol_usage *usage = &line->usage;
	uint64_t from_ms, to_ms, held = 0;

	if (line->role == PROTOCOL_LEAD || line->role == PROTOCOL_NOW ||
	    usage->wait_ms <= 0 || usage->sent_ms <= usage->wait_ms)
		return 0;
	to_ms = (uint64_t)usage->sent_ms;
	from_ms = to_ms - (uint64_t)usage->wait_ms;
	for (uint32_t i = 0; i < family->lineage.count; i++) {
		const struct tally_hold *hold = NULL;

		if (i + 1 == family->lineage.count || family->gates & 1u << i)
			hold = hold_of(ruler, family->lineage.nodes[i].id);
		if (hold)
			held = MAX(held, tally_hold_within(hold, from_ms, to_ms));
	}
	return held;
}

static uint32_t
upstream_of(const struct ruler *ruler, uint32_t budget)
{
	size_t upstream = ruler->known.budgets[budget].upstream;

	return upstream < ruler->config->upstreams_count ? (uint32_t)upstream
	                                                 : TALLY_NONE;
}

static void
take_call(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms, bool job, struct id128 id,
          const struct protocol_event *line)
{
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, id);
	struct tally_call call = {
		.pool = TALLY_NONE,
		.upstream = TALLY_NONE,
		.domain = line->lane.domain,
		.at_ms = at_ms,
		.usage = &line->usage,
		.job = job,
	};

	if (place != RULER_SHELF_NONE) {
		const struct ruler_family *family = &ruler->known.families[place];

		if (line->usage.sent_ms > 0)
			outside_take(&ruler->known.budgets[family->budget].outside,
			             (uint64_t)line->usage.sent_ms,
			             line->usage.left_requests,
			             line->usage.limit_requests);
		call.pool = family->pool;
		call.upstream = upstream_of(ruler, family->budget);
		call.route = span_from(family->route);
		call.held_ms = job ? held_ms(ruler, family, line) : 0;
	}
	tally_call(&ruler->tally, now_ms, &call);
}

static void
take_pressure(struct ruler *ruler, const struct protocol_event *line)
{
	for (uint32_t i = 0; i < ruler->known.budgets_count; i++) {
		struct ruler_budget_name *budget = &ruler->known.budgets[i];

		if (span_equals(line->name, span_from(budget->name)))
			budget->pressures[ruler_line_pressure(line->word)]++;
	}
}

void
ruler_tally_line(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                 const struct protocol_event *line)
{
	bool accepted;

	switch (line->kind) {
	case PROTOCOL_EVENT_START:
		take_start(ruler, at_ms, line);
		return;
	case PROTOCOL_EVENT_DONE:
		take_call(ruler, now_ms, at_ms, true, line->family, line);
		return;
	case PROTOCOL_EVENT_SPENT:
		accepted = span_equals(line->word, SPAN("accepted")); /* late, but good */
		take_call(ruler, now_ms, at_ms, accepted, line->family, line);
		if (!accepted)
			tally_count(&ruler->tally, TALLY_SPENT, line->word);
		return;
	case PROTOCOL_EVENT_TICKET:
		tally_count(&ruler->tally, TALLY_WARMUPS,
		            line->ok ? SPAN("ok") : SPAN("failed"));
		if (line->ok)
			take_call(ruler, now_ms, at_ms, false, line->lane.node, line);
		return;
	case PROTOCOL_EVENT_PRESSURE:
		take_pressure(ruler, line);
		return;
	case PROTOCOL_EVENT_DEAD:
		tally_count(&ruler->tally, TALLY_DEAD, line->word);
		return;
	case PROTOCOL_EVENT_ENDED:
		tally_count(&ruler->tally, TALLY_ENDED, line->word);
		return;
	default:
		return;
	}
}
