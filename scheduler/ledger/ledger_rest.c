#include "scheduler/ledger/ledger_state.h"

#define REST_MS_LEAST 5000 /* a burst says nothing of how long an entry lives */

/* Each begins where the one before it ends. */
static const uint64_t rests_s[LEDGER_VIEW_RESTS] = {
	5, 30, 60, 120, 180, 240, 290, 330, 600, 1200, 1800, 3000, 3600, 7200,
};

static uint32_t
index_of(uint64_t rest_ms)
{
	uint32_t i = 0;

	while (i + 1 < LEDGER_VIEW_RESTS && rest_ms >= rests_s[i + 1] * 1000)
		i++;
	return i;
}

void
ledger_rest_take(struct ledger_place *place, const struct ledger_entry *entry,
                 const struct ledger_call *call, bool kept)
{
	uint64_t rest_ms;

	VERIFY(call->sent_ms != EVENT_UNKNOWN);
	place->rests_dirty |= place->ttl_ms != call->ttl_ms;
	place->ttl_ms = call->ttl_ms;
	if (entry->used_ms == 0 || call->sent_ms < entry->used_ms + REST_MS_LEAST)
		return;
	rest_ms = call->sent_ms - entry->used_ms;
	if (kept)
		place->kept[index_of(rest_ms)]++;
	else
		place->gone[index_of(rest_ms)]++;
	place->rests_dirty = true;
}

void
ledger_rest_view(const struct ledger_place *place,
                 struct ledger_view_rest rests[LEDGER_VIEW_RESTS])
{
	for (uint32_t i = 0; i < LEDGER_VIEW_RESTS; i++)
		rests[i] = (struct ledger_view_rest){
			.from_ms = rests_s[i] * 1000,
			.to_ms = i + 1 < LEDGER_VIEW_RESTS ? rests_s[i + 1] * 1000 : 0,
			.kept = place->kept[i],
			.gone = place->gone[i],
		};
}
