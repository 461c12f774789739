#include "scheduler/outside.h"

#define APART_MS_LEAST 5000  /* between two samples: roundings are small against it */
#define APART_MS_MOST  60000 /* a bucket is full again by then */
#define SLACK          2     /* both samples are rounded, and clocks differ */

void
outside_take(struct outside *outside, uint64_t sent_ms, int64_t left, int64_t limit)
{
	uint64_t second = sent_ms / 1000;
	struct outside_second *it = &outside->seconds[second % OUTSIDE_SECONDS];

	if (second == 0 || it->second > second)
		return; /* older than the ring */
	if (it->second < second)
		*it = (struct outside_second){ .second = second };
	it->own++;
	if (limit > 0)
		outside->limit = (uint64_t)limit;
	if (left >= 0 && sent_ms >= it->sent_ms) {
		it->sent_ms = sent_ms;
		it->left = (uint32_t)MIN(left, UINT32_MAX);
	}
}

/* From sample `a` to sample `b` with `own` requests of ours behind `a`, up to `b`. */
static uint64_t
foreign_between(const struct outside *outside, const struct outside_second *a,
                const struct outside_second *b, uint64_t own)
{
	uint64_t refill = outside->limit * (b->sent_ms - a->sent_ms) / 60000;
	uint64_t most = MIN(a->left + refill, outside->limit);
	uint64_t expected = most - MIN(most, own);

	return expected > (uint64_t)b->left + SLACK ? expected - b->left - SLACK : 0;
}

struct outside_sum
outside_sum(const struct outside *outside, uint64_t now_ms, uint32_t running)
{
	uint64_t last = now_ms / 1000, span = OUTSIDE_WINDOW_MS / 1000, own = 0;
	const struct outside_second *from = NULL;
	struct outside_sum sum = { 0 };

	for (uint64_t second = last - MIN(last, span); second <= last; second++) {
		const struct outside_second *it =
			&outside->seconds[second % OUTSIDE_SECONDS];

		if (it->second != second)
			continue;
		sum.own += it->own;
		own += it->own;
		if (it->sent_ms == 0 || outside->limit == 0)
			continue;
		if (from && it->sent_ms < from->sent_ms + APART_MS_LEAST)
			continue;
		if (from && it->sent_ms <= from->sent_ms + APART_MS_MOST)
			sum.foreign += foreign_between(outside, from, it, own);
		from = it;
		own = 0;
	}
	sum.foreign -= MIN(sum.foreign, running);
	return sum;
}
