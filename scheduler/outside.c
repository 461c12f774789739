#include "scheduler/outside.h"

#define APART_MS_LEAST 10000 /* between two samples: what they do not know is small */
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
	if (left < 0)
		return;
	if (it->low_ms == 0 || left < (int64_t)it->left) {
		it->low_ms = sent_ms;
		it->left = (uint32_t)MIN(left, UINT32_MAX);
	}
	it->last_ms = MAX(it->last_ms, sent_ms);
}

static const struct outside_second *
second_at(const struct outside *outside, uint64_t second)
{
	const struct outside_second *it = &outside->seconds[second % OUTSIDE_SECONDS];

	return it->second == second ? it : NULL;
}

/* From sample `a` to sample `b` with `own` requests of ours behind `a`, up to `b`.  Those
 * of the next second may have overtaken: they are taken off here, and of the next sample.
 */
static uint64_t
foreign_between(const struct outside *outside, const struct outside_second *a,
                const struct outside_second *b, uint64_t own)
{
	const struct outside_second *next = second_at(outside, b->second + 1);
	uint64_t refill = outside->limit * (b->low_ms - a->last_ms) / 60000;
	uint64_t most = MIN(a->left + refill, outside->limit);
	uint64_t expected = most - MIN(most, own + (next ? next->own : 0));

	return expected > (uint64_t)b->left + SLACK ? expected - b->left - SLACK : 0;
}

struct outside_sum
outside_sum(const struct outside *outside, uint64_t now_ms, uint32_t running)
{
	uint64_t last = now_ms / 1000, span = OUTSIDE_WINDOW_MS / 1000, own = 0;
	const struct outside_second *from = NULL;
	struct outside_sum sum = { 0 };

	for (uint64_t second = last - MIN(last, span); second <= last; second++) {
		const struct outside_second *it = second_at(outside, second);

		if (!it)
			continue;
		sum.own += it->own;
		own += it->own;
		if (it->low_ms == 0 || outside->limit == 0)
			continue;
		if (from && it->low_ms < from->last_ms + APART_MS_LEAST)
			continue;
		if (from && it->low_ms <= from->last_ms + APART_MS_MOST)
			sum.foreign += foreign_between(outside, from, it, own);
		from = it;
		own = 0;
	}
	sum.foreign -= MIN(sum.foreign, running);
	return sum;
}
