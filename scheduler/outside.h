/* outside.h - requests of an account that WarmQ did not send.
 *
 *   left  ▲   ╲    what the answers of our own requests say is left of the minute
 *         │    ╲ ╲
 *         │     ╲   ╲ ◄─ expected: refilled at limit / 60 a second, less our own
 *         │      ╲
 *         │       ╲ ◄──── said
 *         └──────────────────► sent
 *
 * Where less is left than refill and our own requests explain, somebody else has sent
 * some.  It is a lower bound: a bucket that is full hides whatever refills at once, so
 * what is seen is what takes from us.  Requests of ours that run and have not reported
 * yet would count as foreign, so as many are taken off; and requests that were sent
 * together reach the provider in any order, so of each second the least that was left
 * counts, and those of the second after a sample are taken as its own.
 *
 * Pure: no clock, no I/O; one ring of seconds for each account and class. */
#ifndef SCHEDULER_OUTSIDE_H
#define SCHEDULER_OUTSIDE_H

#include "common/base.h"

#define OUTSIDE_SECONDS   1024
#define OUTSIDE_WINDOW_MS 900000 /* what is told is of so long */

struct outside_second {
	uint64_t second;  /* since 1970; 0 free */
	uint64_t low_ms;  /* of those that said what was left: sent, the one with least */
	uint64_t last_ms; /* sent, the last one */
	uint32_t own, left; /* `left` is the least: requests overtake each other */
};

struct outside {
	uint64_t limit; /* requests a minute, as was said last; 0 not known */
	struct outside_second seconds[OUTSIDE_SECONDS];
};

/* One request of ours that has ended; `left` and `limit` below 0: it did not say. */
void outside_take(struct outside *outside, uint64_t sent_ms, int64_t left, int64_t limit);

struct outside_sum {
	uint64_t own, foreign; /* requests of the window; `foreign` at least so many */
};

struct outside_sum outside_sum(const struct outside *outside, uint64_t now_ms,
                               uint32_t running);

#endif
