#include "scheduler/ledger/ledger_state.h"

#define STARTS_LEAST 10
#define STARTS_MS    10000 /* within which they arrive */
#define IDLE_MS      60000 /* before them */
#define MINUTE_MS    60000 /* that a burst is looked at */

static uint64_t
arrival(const struct ledger_call *call)
{
	uint64_t waited = call->waited_ms == EVENT_UNKNOWN ? 0 : call->waited_ms;

	return call->sent_ms - MIN(call->sent_ms, waited);
}

/* All at once would have written whatever arrived before the first one could be read. */
static uint64_t
naive_cost(const struct ledger_burst *burst, const struct ledger_started *it)
{
	uint64_t cold_ms = burst->readable_ms > burst->write_ms
	                           ? burst->readable_ms - burst->write_ms
	                           : UINT64_MAX / 2;
	bool writes =
		burst->write_ms > 0 && arrival(it->call) < burst->start_ms + cold_ms;

	return it->cost - MIN(it->cost, it->prefix_cost) +
	       it->prefix * (writes ? it->write : it->read) / 1000;
}

static uint64_t
held_ms(const struct ledger_burst *burst, const struct ledger_started *it)
{
	uint64_t from = arrival(it->call), until = it->call->sent_ms;

	if (burst->readable_ms > 0)
		until = MIN(until, burst->readable_ms);
	return until > from ? until - from : 0;
}

/* Answers what holding has saved of this call. */
static uint64_t
add(struct ledger_burst *burst, const struct ledger_entry *entry,
    const struct ledger_started *it)
{
	uint64_t naive;

	if (it->wrote && (burst->write_ms == 0 || it->call->sent_ms < burst->write_ms))
		burst->write_ms = it->call->sent_ms;
	if (burst->write_ms == 0 && entry->written_ms >= burst->start_ms)
		burst->write_ms = entry->written_ms;
	if (burst->write_ms > 0 && entry->first_ms >= burst->write_ms &&
	    (burst->readable_ms == 0 || entry->first_ms < burst->readable_ms))
		burst->readable_ms = entry->first_ms;
	naive = it->hit || it->wrote ? naive_cost(burst, it) : it->cost;
	burst->starts++;
	burst->hits += it->hit;
	burst->writes += it->wrote;
	burst->extra_writes += it->extra;
	burst->held_ms += held_ms(burst, it);
	burst->cost += it->cost;
	burst->naive_cost += naive;
	burst->last_ms = MAX(burst->last_ms, arrival(it->call));
	burst->dirty = true;
	return naive > it->cost ? naive - it->cost : 0;
}

static struct ledger_burst *
find(struct ledger *ledger, const struct ledger_burst *own)
{
	struct ledger_burst *burst = &ledger->bursts[own->serial % LEDGER_BURSTS];

	return own->serial > 0 && burst->serial == own->serial ? burst : NULL;
}

static void
begin(struct ledger_entry *entry, const struct ledger_started *it)
{
	uint64_t at_ms = arrival(it->call);

	entry->burst = (struct ledger_burst){
		.row = it->target.row,
		.place = it->target.place,
		.family = it->call->family,
		.start_ms = at_ms,
		.last_ms = at_ms,
		.open = true,
	};
}

static void
save(struct ledger *ledger, const struct ledger_started *it, uint64_t saved)
{
	const struct ledger_sums part = { .saved = saved };

	if (saved > 0)
		ledger_sums_add(ledger, &it->target, &part);
}

static void
promote(struct ledger *ledger, struct ledger_entry *entry,
        const struct ledger_started *it)
{
	struct ledger_burst *own = &entry->burst;

	own->serial = ++ledger->bursts_serial;
	ledger->bursts[own->serial % LEDGER_BURSTS] = *own;
	if (own->naive_cost > own->cost)
		save(ledger, it, own->naive_cost - own->cost);
	ledger->dirty = true;
}

void
ledger_burst_take(struct ledger *ledger, struct ledger_entry *entry,
                  const struct ledger_started *it)
{
	struct ledger_burst *own = &entry->burst;
	struct ledger_burst *burst = find(ledger, own);
	uint64_t at_ms = arrival(it->call);
	uint64_t from_ms = own->start_ms - MIN(own->start_ms, STARTS_MS);

	if (own->start_ms == 0 || at_ms > own->last_ms + IDLE_MS) {
		begin(entry, it);
		(void)add(own, entry, it);
		return;
	}
	own->last_ms = MAX(own->last_ms, at_ms);
	if (burst && at_ms >= from_ms && at_ms < burst->start_ms + MINUTE_MS) {
		save(ledger, it, add(burst, entry, it));
		return;
	}
	if (burst || own->serial > 0 || at_ms < from_ms ||
	    at_ms > own->start_ms + STARTS_MS)
		return;
	own->start_ms = MIN(own->start_ms, at_ms);
	(void)add(own, entry, it);
	if (own->starts >= STARTS_LEAST)
		promote(ledger, entry, it);
}

void
ledger_burst_tick(struct ledger *ledger, uint64_t now_ms)
{
	for (uint32_t i = 0; i < LEDGER_BURSTS; i++) {
		struct ledger_burst *burst = &ledger->bursts[i];

		if (burst->open && now_ms > burst->start_ms + MINUTE_MS) {
			burst->open = false;
			burst->dirty = true;
		}
	}
}
