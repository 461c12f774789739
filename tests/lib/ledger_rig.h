/* ledger_rig.h - a ledger on the bench, and calls in one line each.
 *
 *   set_up(); take(writer(1, T0)); written_for(LEDGER_FIRST) == PREFIX
 *
 * One per program.  Times are ms, T0 is a full hour; `n` names a prefix of PREFIX tokens.
 * Behind each call that is taken the sums are compared with the causes. */
#ifndef TESTS_LIB_LEDGER_RIG_H
#define TESTS_LIB_LEDGER_RIG_H

#include "scheduler/ledger/ledger_view.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define T0     ((uint64_t)1800000000000) /* a full hour */
#define TTL    ((uint64_t)300000)
#define HOUR   ((uint64_t)3600000)
#define PREFIX 30000

static struct ledger *ledger;

/* Fresh for each test; what was before goes. */
static inline void
set_up(void)
{
	const struct ledger_config config = { .nodes_max = 256 };
	size_t size = ledger_size(&config);

	free(ledger);
	ledger = ledger_init(calloc(1, size), size, &config, T0);
}

static inline struct id128
node(uint64_t n)
{
	return (struct id128){ n * 0x9e3779b97f4a7c15u, n };
}

/* A call over family `n` of route "triage": $3 a million, as Anthropic weighs it. */
static inline struct ledger_call
call_of(uint64_t n, uint64_t sent_ms)
{
	return (struct ledger_call){
		.kind = LEDGER_DONE,
		.role = LANE_PLAIN,
		.at_ms = sent_ms + 10000,
		.route = SPAN("triage"),
		.place = SPAN("claude"),
		.family = node(n),
		.nodes = { { node(n), PREFIX, true, true } },
		.nodes_count = 1,
		.sent_ms = sent_ms,
		.first_ms = sent_ms + 3000,
		.read = 0,
		.written = 0,
		.uncached = 20,
		.output = 64,
		.written_1h = EVENT_UNKNOWN,
		.waited_ms = EVENT_UNKNOWN,
		.ttl_ms = TTL,
		.explicit = true,
		.price = { .input = 3000000,
		           .output = 15000000,
		           .write = 3750000,
		           .write_1h = 6000000,
		           .read = 300000 },
	};
}

static inline struct ledger_call
writer(uint64_t n, uint64_t sent_ms)
{
	struct ledger_call call = call_of(n, sent_ms);

	call.written = PREFIX;
	return call;
}

static inline struct ledger_call
reader(uint64_t n, uint64_t sent_ms)
{
	struct ledger_call call = call_of(n, sent_ms);

	call.read = PREFIX;
	return call;
}

static inline void
take(struct ledger_call call)
{
	struct ledger_view_health health;

	ledger_take(ledger, &call);
	ledger_view_health(ledger, &health);
	ck_assert(health.sums_up);
}

static inline struct ledger_sums
hour_at(uint64_t at_ms)
{
	struct ledger_sums sums;

	ledger_view_hours(ledger, LEDGER_VIEW_ALL, at_ms, at_ms + 1, &sums);
	return sums;
}

static inline uint64_t
written_for(enum ledger_cause cause)
{
	struct ledger_sums sums = { 0 };

	ledger_view_hours(ledger, LEDGER_VIEW_ALL, 0, UINT64_MAX, &sums);
	return sums.causes[cause].written;
}

static inline uint64_t
full_for(enum ledger_cause cause)
{
	struct ledger_sums sums = { 0 };

	ledger_view_hours(ledger, LEDGER_VIEW_ALL, 0, UINT64_MAX, &sums);
	return sums.causes[cause].full;
}

static inline struct ledger_call
twinned(struct ledger_call call)
{
	call.nodes[0].twin = node(1000);
	return call;
}

/* One text at two upstreams: families of their own, and one twin. */
static inline struct ledger_call
elsewhere(struct ledger_call call)
{
	call.place = SPAN("backup");
	call.family = call.nodes[0].id = node(77);
	call.nodes[0].twin = node(1000);
	return call;
}

/* The `n`-th prompt of 8 KB: a clock at byte 20, or another text altogether. */
static inline struct ledger_sketch
prompt(uint64_t n, bool alike)
{
	char text[8192];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + (i * i + (alike ? 0 : n * (i % 89))) % 26);
	(void)snprintf(text + 20, 24, "%012llu", (unsigned long long)n);
	return ledger_sketch_of((struct span){ text, sizeof(text) });
}

static inline struct ledger_call
single(struct ledger_call call, uint64_t n, bool alike)
{
	call.nodes[0].shared = false;
	call.nodes[0].sketch = prompt(n, alike);
	return call;
}

#endif
