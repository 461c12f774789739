#include "common/codec/part.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

static const char px_text[] =
	"px1 A S c - 1 5 5m 300 0 {\"thinking\":{\"type\":\"x y\"}}\n,\"ab\"";
static const char own_text[] = "own1 A --e 1 1h -5-51- 2 4\n,{}],\"max_tokens\":64}";

START_TEST(part_px_reads_what_it_wrote)
{
	struct buffer out = BUFFER_INIT(4096);
	struct part_px px;

	ck_assert_int_eq(part_px_read(span_from(px_text), &px), 0);
	ck_assert_uint_eq(px.dialect, DIALECT_ANTHROPIC);
	ck_assert_uint_eq(px.tier, TIER_SYSTEM);
	ck_assert_uint_eq(px.end, PART_CLOSED);
	ck_assert_uint_eq(px.role, PART_ROLE_NONE);
	ck_assert_uint_eq(px.wrap_at, 1);
	ck_assert_uint_eq(px.mark_at, 5);
	ck_assert_uint_eq(px.ttl, TTL_5M);
	ck_assert_uint_eq(px.tokens, 300);
	ck_assert(span_equals(px.settings, SPAN("{\"thinking\":{\"type\":\"x y\"}}")));
	ck_assert(span_equals(px.segment, SPAN(",\"ab\"")));
	part_px_write(&out, &px);
	ck_assert_str_eq(buffer_text(&out), px_text);
	buffer_fini(&out);
}
END_TEST

START_TEST(part_own_reads_what_it_wrote)
{
	struct buffer out = BUFFER_INIT(4096);
	struct part_own own;

	ck_assert_int_eq(part_own_read(span_from(own_text), &own), 0);
	ck_assert(!own.opaque);
	ck_assert(own.turns);
	ck_assert_uint_eq(own.user[TIER_MESSAGES], PART_MARK_PLAIN);
	ck_assert_uint_eq(own.user[TIER_TOOLS], PART_MARK_NONE);
	ck_assert_uint_eq(own.explicit_count, 1);
	ck_assert_uint_eq(own.automatic, TTL_1H);
	ck_assert_uint_eq(own.earlier[TIER_TOOLS], TTL_NONE);
	ck_assert_uint_eq(own.later[TIER_TOOLS], TTL_5M);
	ck_assert_uint_eq(own.later[TIER_SYSTEM], TTL_5M);
	ck_assert_uint_eq(own.earlier[TIER_MESSAGES], TTL_1H);
	ck_assert(span_equals(own.own, SPAN(",{}]")));
	ck_assert(span_equals(own.tail, SPAN(",\"max_tokens\":64}")));
	part_own_write(&out, &own);
	ck_assert_str_eq(buffer_text(&out), own_text);
	buffer_fini(&out);
}
END_TEST

START_TEST(part_values_that_are_not_ours_are_refused)
{
	static const char *const px[] = {
		"",
		"px1",
		"px1 A S c - 1 5 5m 300 0 {}",           /* no newline */
		"px2 A S c - 1 5 5m 300 0 {}\n,\"ab\"",  /* a later version */
		"px1 Z S c - 1 5 5m 300 0 {}\n,\"ab\"",  /* unknown dialect */
		"px1 A X c - 1 5 5m 300 0 {}\n,\"ab\"",  /* unknown tier */
		"px1 A S ? - 1 5 5m 300 0 {}\n,\"ab\"",  /* unknown end */
		"px1 A S c ? 1 5 5m 300 0 {}\n,\"ab\"",  /* unknown role */
		"px1 A S c - 1 99 5m 300 0 {}\n,\"ab\"", /* beyond the segment */
		"px1 A S c - 0 5 5m 300 0 {}\n,\"ab\"",  /* not at a quote */
		"px1 A S c - - 3 5m 300 0 {}\n,\"ab\"",  /* not at a brace */
		"px1 A S c - 1 - 5m 300 0 {}\n,\"ab\"",  /* half a place */
		"px1 A S c - 5 1 5m 300 0 {}\n,\"ab\"",  /* backwards */
		"px1 A S c - 1 5 7m 300 0 {}\n,\"ab\"",  /* unknown lifetime */
		"px1 A S c - 1 5 5m -3 0 {}\n,\"ab\"",   /* negative */
		"px1 A S c - 1 5 5m 300 0 \n,\"ab\"",    /* no settings */
	};
	static const char *const own[] = {
		"",
		"own1 A --e 1 1h -5-51- 2 4",
		"own2 A --e 1 1h -5-51- 2 4\n,{}],",
		"own1 A --z 1 1h -5-51- 2 4\n,{}],",
		"own1 A --e 1 1h -5-51 2 4\n,{}],",
		"own1 A --e 1 1h -5-51- 9 4\n,{}],",
		"own1 A --e 1 1h -5-51- 2 99\n,{}],",
		"own1 A --e x 1h -5-51- 2 4\n,{}],",
		"own1 A --e 1 1h -5-51- 2 4 5\n,{}],",
	};
	struct part_px px_out;
	struct part_own own_out;

	for (size_t i = 0; i < ARRAY_SIZE(px); i++)
		ck_assert_msg(part_px_read(span_from(px[i]), &px_out) == ERR_MALFORMED,
		              "%s", px[i]);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		ck_assert_msg(part_own_read(span_from(own[i]), &own_out) == ERR_MALFORMED,
		              "%s", own[i]);
}
END_TEST

START_TEST(part_marks_are_spelt_in_one_way)
{
	ck_assert(span_equals(part_mark_text(PART_MARK_PLAIN),
	                      SPAN("\"cache_control\":{\"type\":\"ephemeral\"}")));
	ck_assert_uint_eq(part_mark_ttl(PART_MARK_PLAIN), TTL_5M);
	ck_assert_uint_eq(part_mark_ttl(PART_MARK_5M), TTL_5M);
	ck_assert_uint_eq(part_mark_ttl(PART_MARK_1H), TTL_1H);
	ck_assert_uint_eq(part_mark_ttl(PART_MARK_BREAKPOINT), TTL_NONE);
	ck_assert_uint_eq(part_mark_text(PART_MARK_NONE).len, 0);
}
END_TEST

SUITE_MAIN("part", part_px_reads_what_it_wrote, part_own_reads_what_it_wrote,
           part_values_that_are_not_ours_are_refused, part_marks_are_spelt_in_one_way)
