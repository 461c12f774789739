#include "scheduler/ledger/ledger.h"

#include "scheduler/ledger/ledger_state.h"

#define SWEEP 256 /* entries of the book that one tick looks at */

static size_t
head_size(void)
{
	return (sizeof(struct ledger) + 63) & ~(size_t)63;
}

size_t
ledger_size(const struct ledger_config *config)
{
	return head_size() + ledger_book_size(config->nodes_max);
}

struct ledger *
ledger_init(void *memory, size_t memory_size, const struct ledger_config *config,
            uint64_t since_ms)
{
	struct ledger *ledger = memory;

	VERIFY(memory_size >= ledger_size(config));
	VERIFY(config->nodes_max > 4 * LINEAGE_MAX); /* one call must not evict its own */
	VERIFY(ledger->now_ms == 0); /* all zero: nothing is cleared here */
	ledger->config = *config;
	ledger->since_ms = since_ms;
	ledger->now_ms = since_ms;
	ledger_book_init(ledger, (char *)memory + head_size());
	return ledger;
}

/* ---- what happens ---------------------------------------------------------------- */

static void
take_silent(struct ledger *ledger, const struct ledger_call *call)
{
	const struct ledger_target target = {
		.row = ledger_route_row(ledger, call->route, call->at_ms),
		.place = ledger_route_place(ledger, call->place),
		.at_ms = call->at_ms,
	};
	const struct ledger_sums part = {
		.unreported = 1,
		.estimated = call->estimate,
	};

	ledger_sums_add(ledger, &target, &part);
}

void
ledger_take(struct ledger *ledger, const struct ledger_call *call)
{
	VERIFY(call->nodes_count <= LINEAGE_MAX);
	ledger->now_ms = MAX(ledger->now_ms, call->at_ms);
	if (ledger->first_ms == 0)
		ledger->first_ms = call->at_ms;
	if (call->kind == LEDGER_BEGAN)
		ledger_charge_begun(ledger, call);
	else if (ledger_charge_is_reported(call))
		ledger_charge(ledger, call);
	else
		take_silent(ledger, call);
}

uint64_t
ledger_model(struct ledger *ledger, struct span route, struct id128 family)
{
	uint32_t row = ledger_route_find(ledger, route);
	const struct ledger_version *version;

	if (row == UINT32_MAX)
		return 0;
	version = ledger_route_version(ledger, row, family);
	return version ? version->model : 0;
}

void
ledger_take_pressure(struct ledger *ledger, struct span name, uint64_t at_ms)
{
	uint32_t place = ledger_route_place(ledger, name);

	ledger->now_ms = MAX(ledger->now_ms, at_ms);
	for (uint32_t i = 0; i < LEDGER_BURSTS; i++) {
		struct ledger_burst *burst = &ledger->bursts[i];

		if (burst->serial == 0 || !burst->open || burst->place != place)
			continue;
		burst->refusals++;
		burst->dirty = true;
	}
}

void
ledger_take_gap(struct ledger *ledger, uint64_t at_ms)
{
	ledger->gaps++;
	ledger->gap_ms = at_ms;
	ledger->dirty = true;
}

/* ---- time ------------------------------------------------------------------------ */

static void
sweep_one(struct ledger *ledger, struct ledger_entry *entry)
{
	if (entry->used_ms + entry->life_ms < ledger->now_ms)
		ledger_ahead_waste(ledger, entry);
}

void
ledger_tick(struct ledger *ledger, uint64_t now_ms)
{
	ledger->now_ms = MAX(ledger->now_ms, now_ms);
	for (uint32_t i = 0; i < MIN(SWEEP, ledger->entries_count); i++) {
		ledger->sweep = (ledger->sweep + 1) % ledger->entries_count;
		sweep_one(ledger, &ledger->entries[ledger->sweep]);
	}
	ledger_burst_tick(ledger, ledger->now_ms);
}
