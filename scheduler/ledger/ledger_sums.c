#include "scheduler/ledger/ledger_state.h"

void
ledger_sums_merge(struct ledger_sums *to, const struct ledger_sums *part)
{
	to->calls += part->calls;
	to->answers += part->answers;
	to->prefixed += part->prefixed;
	to->hits += part->hits;
	to->read += part->read;
	to->written += part->written;
	to->uncached += part->uncached;
	to->output += part->output;
	to->cost += part->cost;
	to->saved += part->saved;
	to->unpriced += part->unpriced;
	to->unreported += part->unreported;
	to->estimated += part->estimated;
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		to->causes[i].calls += part->causes[i].calls;
		to->causes[i].written += part->causes[i].written;
		to->causes[i].full += part->causes[i].full;
		to->causes[i].cost += part->causes[i].cost;
		to->causes[i].extra += part->causes[i].extra;
	}
}

struct ledger_sums *
ledger_sums_hour(struct ledger *ledger, uint32_t row, uint64_t hour)
{
	struct ledger_hour *slot = &ledger->hours[hour % LEDGER_HOURS];

	if (slot->hour > hour)
		return NULL;
	if (slot->hour < hour) {
		memset(slot, 0, sizeof(*slot));
		slot->hour = hour;
		slot->fresh = true;
	}
	slot->dirty[row] = true;
	slot->any_dirty = true;
	return &slot->rows[row];
}

void
ledger_sums_add(struct ledger *ledger, const struct ledger_target *target,
                const struct ledger_sums *part)
{
	struct ledger_sums *hour =
		ledger_sums_hour(ledger, target->row, target->at_ms / LEDGER_HOUR_MS);
	struct ledger_place *place = &ledger->places[target->place];

	if (hour)
		ledger_sums_merge(hour, part);
	ledger_sums_merge(&ledger->routes[target->row].ever, part);
	ledger->routes[target->row].dirty = true;
	ledger_sums_merge(&place->ever, part);
	place->last_ms = MAX(place->last_ms, target->at_ms);
	place->dirty = true;
	ledger_sums_merge(&ledger->total, part);
	ledger->dirty = true;
}
