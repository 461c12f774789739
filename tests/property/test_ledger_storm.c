/* Any calls in any order, sound and absurd: every written token has one cause, nothing is
 * counted twice, and a restart at any moment changes no sum. */
#include "common/prng.h"
#include "scheduler/ledger/ledger_row.h"
#include "scheduler/ledger/ledger_view.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS      150
#define CALLS      300
#define FIELDS_MAX 2048
#define T0         ((uint64_t)1800000000000)

struct books { /* our own */
	uint64_t calls, unreported, read, written, uncached, output;
};

struct storm {
	struct prng prng;
	struct ledger *ledger;
	struct books books;
	uint64_t now_ms;
	uint32_t fields;
	struct ledger_row *redis;
};

static uint64_t
below(struct storm *storm, uint64_t bound)
{
	return prng_below(&storm->prng, bound);
}

static void
begin(struct storm *storm)
{
	const struct ledger_config config = { .nodes_max = 64 };
	size_t size = ledger_size(&config);

	free(storm->ledger);
	storm->ledger = ledger_init(calloc(1, size), size, &config, storm->now_ms);
}

/* A count as providers tell them, and sometimes as nobody should. */
static uint64_t
tokens(struct storm *storm)
{
	switch (below(storm, 12)) {
	case 0:
		return EVENT_UNKNOWN;
	case 1:
		return below(storm, 200);
	case 2:
		return prng_next(&storm->prng) >> below(storm, 64);
	case 3:
	case 4:
	case 5:
		return 0;
	default:
		return 20000 + below(storm, 3) * 5000 + below(storm, 100);
	}
}

static uint64_t
moment(struct storm *storm)
{
	if (prng_chance(&storm->prng, 30))
		return prng_chance(&storm->prng, 500) ? EVENT_UNKNOWN : below(storm, 10);
	return storm->now_ms - below(storm, 30000);
}

static struct ledger_call
draw(struct storm *storm)
{
	static const char *const routes[] = { "triage", "review", "", "a b|c" };
	static const char *const places[] = { "claude", "vllm/1", "vllm/2", "" };
	struct ledger_call call = {
		.kind = (enum ledger_kind)below(storm, 3),
		.purpose = (enum ledger_purpose)(below(storm, 5) ? 0 : below(storm, 3)),
		.role = (enum lane_role)below(storm, LANE_ROLE_COUNT),
		.at_ms = storm->now_ms,
		.route = span_from(routes[below(storm, ARRAY_SIZE(routes))]),
		.place = span_from(places[below(storm, ARRAY_SIZE(places))]),
		.domain = (uint32_t)below(storm, 2),
		.nodes_count = (uint32_t)below(storm, LINEAGE_MAX + 1),
		.sent_ms = moment(storm),
		.first_ms = moment(storm),
		.read = tokens(storm),
		.written = tokens(storm),
		.uncached = tokens(storm),
		.output = tokens(storm),
		.written_1h = tokens(storm),
		.waited_ms = moment(storm) % 100000,
		.ttl_ms = below(storm, 2) ? 300000 : 3600000,
		.estimate = below(storm, 40000),
		.server_tool = below(storm, 20) == 0,
		.explicit = below(storm, 3) > 0,
		.tail_marked = below(storm, 3) == 0,
		.price = { .input = below(storm, 2) * 3000000,
		           .output = 15000000,
		           .write = 3750000,
		           .write_1h = 6000000,
		           .read = 300000 },
	};

	for (uint32_t i = 0; i < call.nodes_count; i++)
		call.nodes[i] = (struct ledger_node){
			.id = { below(storm, 20) + 1, i },
			.tokens = (uint32_t)tokens(storm),
			.cacheable = below(storm, 5) > 0,
			.shared = below(storm, 5) > 0,
			.sketch = { (uint32_t)below(storm, 3),
			            (uint32_t)below(storm, 3) },
		};
	if (call.nodes_count > 0)
		call.family = call.nodes[call.nodes_count - 1].id;
	return call;
}

static uint64_t
counted(uint64_t value)
{
	return value == EVENT_UNKNOWN ? 0 : MIN(value, 50000000);
}

static void
write_down(struct storm *storm, const struct ledger_call *call)
{
	struct books *books = &storm->books;

	if (call->kind == LEDGER_BEGAN)
		return;
	if (call->read == EVENT_UNKNOWN || call->uncached == EVENT_UNKNOWN) {
		books->unreported++;
		return;
	}
	books->calls++;
	books->read += counted(call->read);
	books->written += counted(call->written);
	books->uncached += counted(call->uncached);
	books->output += counted(call->output);
}

static void
compare(const struct storm *storm, const struct ledger_sums *sums)
{
	uint64_t written = 0, full = 0;

	ck_assert_uint_eq(sums->calls, storm->books.calls);
	ck_assert_uint_eq(sums->unreported, storm->books.unreported);
	ck_assert_uint_eq(sums->read, storm->books.read);
	ck_assert_uint_eq(sums->written, storm->books.written);
	ck_assert_uint_eq(sums->uncached, storm->books.uncached);
	ck_assert_uint_eq(sums->output, storm->books.output);
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		written += sums->causes[i].written;
		full += sums->causes[i].full;
	}
	ck_assert_uint_eq(written, sums->written);
	ck_assert_uint_le(full, sums->uncached);
}

static void
check(const struct storm *storm)
{
	struct ledger_view_health health;
	struct ledger_sums week, places = { 0 };
	struct ledger_view_place place;

	ledger_view_health(storm->ledger, &health);
	compare(storm, &health.total);
	ck_assert(health.sums_up);
	ledger_view_hours(storm->ledger, LEDGER_VIEW_ALL, 0, UINT64_MAX, &week);
	compare(storm, &week);
	for (uint32_t i = 0; ledger_view_place(storm->ledger, i, &place); i++)
		places.written += place.ever.written;
	ck_assert_uint_eq(places.written, health.total.written);
}

static void
store(struct storm *storm)
{
	struct ledger_row row;
	uint32_t cursor = 0;

	while (ledger_row_next(storm->ledger, &cursor, &row)) {
		uint32_t at = 0;

		while (at < storm->fields &&
		       (storm->redis[at].hour != row.hour ||
		        strcmp(storm->redis[at].field, row.field) != 0))
			at++;
		ck_assert_uint_lt(at, FIELDS_MAX);
		storm->redis[at] = row;
		storm->fields = MAX(storm->fields, at + 1);
	}
	ledger_row_mark_clean(storm->ledger);
}

static void
restart(struct storm *storm)
{
	struct ledger_view_ahead before = ledger_view_ahead(storm->ledger), after;

	store(storm);
	begin(storm);
	for (int hours = 0; hours < 2; hours++) {
		for (uint32_t i = 0; i < storm->fields; i++) {
			const struct ledger_row *row = &storm->redis[i];

			if ((row->hour > 0) == hours)
				ck_assert_int_eq(
					ledger_row_load(storm->ledger, row->hour,
				                        span_from(row->field),
				                        (struct span){ row->value,
				                                       row->value_len }),
					0);
		}
		if (hours == 0)
			ledger_row_settle(storm->ledger);
	}
	after = ledger_view_ahead(storm->ledger);
	ck_assert_int_eq(memcmp(&before, &after, sizeof(before)), 0);
}

static void
run_seed(uint64_t seed)
{
	struct storm storm = { .now_ms = T0,
		               .redis = calloc(FIELDS_MAX, sizeof(struct ledger_row)) };

	prng_init(&storm.prng, seed);
	begin(&storm);
	for (int i = 0; i < CALLS; i++) {
		struct ledger_call call = draw(&storm);

		ledger_take(storm.ledger, &call);
		write_down(&storm, &call);
		storm.now_ms += below(&storm, 60000);
		if (prng_chance(&storm.prng, 100))
			ledger_tick(storm.ledger, storm.now_ms);
		if (prng_chance(&storm.prng, 100))
			ledger_take_pressure(storm.ledger, SPAN("claude"), storm.now_ms);
		if (prng_chance(&storm.prng, 50))
			store(&storm);
		if (prng_chance(&storm.prng, 10))
			restart(&storm);
		if (i % 50 == 0)
			check(&storm);
	}
	check(&storm);
	free(storm.ledger);
	free(storm.redis);
}

START_TEST(ledger_of_any_calls_sums_up_over_any_restarts)
{
	const char *wish = getenv("LEDGER_SEEDS");
	uint64_t count = wish ? strtoull(wish, NULL, 10) : SEEDS;

	for (uint64_t seed = 0; seed < count; seed++)
		run_seed(seed);
}
END_TEST

SUITE_MAIN("ledger_storm", ledger_of_any_calls_sums_up_over_any_restarts)
