/* What was written ahead of jobs, until one of them reads it or its time is over. */
#include "scheduler/ledger/ledger_state.h"

/* Its version knows, too, so that whoever rules next goes on waiting for a reader. */
static struct ledger_version *
version_of(struct ledger *ledger, const struct ledger_ahead *ahead)
{
	return ledger_route_version(ledger, ahead->row, ahead->family);
}

void
ledger_ahead_note(struct ledger *ledger, struct ledger_entry *entry,
                  const struct ledger_ahead *ahead)
{
	struct ledger_version *version = version_of(ledger, ahead);

	VERIFY(ahead->tokens > 0);
	entry->ahead = *ahead;
	if (!version)
		return;
	version->ahead = *ahead;
	version->dirty = true;
}

void
ledger_ahead_forget(struct ledger *ledger, struct ledger_entry *entry)
{
	struct ledger_version *version;

	if (entry->ahead.tokens == 0)
		return;
	version = version_of(ledger, &entry->ahead);
	if (version) {
		version->ahead.tokens = 0;
		version->dirty = true;
	}
	entry->ahead.tokens = 0;
}

void
ledger_ahead_use(struct ledger *ledger, struct ledger_entry *entry)
{
	if (entry->ahead.tokens == 0)
		return;
	ledger->ahead.used++;
	ledger->dirty = true;
	ledger_ahead_forget(ledger, entry);
}

/* In the row of its hour; sums that only grow stay as they were first judged. */
static void
move_cost(struct ledger_sums *hour, const struct ledger_ahead *ahead)
{
	struct ledger_cause_sum *from = &hour->causes[ahead->cause];
	struct ledger_cause_sum *to = &hour->causes[LEDGER_PREWARM_WASTED];

	if (from->written < ahead->tokens || from->calls == 0)
		return;
	from->calls--;
	from->written -= ahead->tokens;
	from->cost -= MIN(from->cost, ahead->cost);
	from->extra -= MIN(from->extra, ahead->extra);
	to->calls++;
	to->written += ahead->tokens;
	to->cost += ahead->cost;
	to->extra += ahead->extra;
}

void
ledger_ahead_waste(struct ledger *ledger, struct ledger_entry *entry)
{
	struct ledger_sums *hour;

	if (entry->ahead.tokens == 0)
		return;
	hour = ledger_sums_hour(ledger, entry->ahead.row, entry->ahead.hour);
	if (hour)
		move_cost(hour, &entry->ahead);
	ledger->ahead.wasted++;
	ledger->dirty = true;
	ledger_ahead_forget(ledger, entry);
}
