#include "common/codec/drift.h"
#include "tests/lib/suite.h"

static struct drift
drift_of(const char *a, const char *b)
{
	const char *text[2] = { a, b };
	struct chain chain[2];
	struct chain_error error;
	struct drift drift;

	for (int i = 0; i < 2; i++) {
		struct chain_input input = { .traits = dialect_traits(DIALECT_ANTHROPIC),
			                     .body = span_from(text[i]) };

		chain_init(&chain[i]);
		ck_assert_int_eq(chain_build(&chain[i], &input, &error), 0);
	}
	drift_compare(&chain[0], &chain[1], &drift);
	chain_fini(&chain[0]);
	chain_fini(&chain[1]);
	return drift;
}

#define SYSTEM(text) "{\"model\":\"m\",\"system\":\"" text "\"}"

static void
kind_is(const char *a, const char *b, enum drift_kind kind)
{
	struct drift drift = drift_of(a, b);

	ck_assert_msg(drift.kind == kind, "%s instead of %s:\n%s\n%s",
	              drift_kind_word(drift.kind), drift_kind_word(kind), drift.a,
	              drift.b);
}

START_TEST(drift_points_at_the_first_byte_that_differs)
{
	struct drift drift =
		drift_of(SYSTEM("You are kind. Today is 2026-11-04. Be brief."),
	                 SYSTEM("You are kind. Today is 2026-11-05. Be brief."));

	ck_assert_uint_eq(drift.kind, DRIFT_DATE);
	ck_assert_uint_eq(drift.tier, TIER_SYSTEM);
	ck_assert_uint_eq(drift.offset,
	                  strlen(",\"system\":\"You are kind. Today is 2026-11-0"));
	ck_assert_uint_eq(drift.body_offset, strlen("{\"model\":\"m\"") + drift.offset);
	ck_assert_str_eq(drift.a, "kind. Today is 2026-11-04. Be brief.\\\"");
	ck_assert_str_eq(drift.b, "kind. Today is 2026-11-05. Be brief.\\\"");
	ck_assert_int_eq(drift.a[drift.a_caret], '4');
	ck_assert_int_eq(drift.b[drift.b_caret], '5');
}
END_TEST

START_TEST(drift_nothing_differs_when_only_the_spelling_does)
{
	kind_is("{\"model\":\"m\",\"system\":\"caf\\u00e9\"}",
	        "{ \"system\":\"caf\xc3\xa9\", \"model\":\"m\",\"max_tokens\":1 }",
	        DRIFT_NONE);
}
END_TEST

START_TEST(drift_kinds_are_told_apart)
{
	kind_is(SYSTEM("Now 12:03:04 go"), SYSTEM("Now 12:03:05 go"), DRIFT_CLOCK);
	kind_is(SYSTEM("t=1790000000 go"), SYSTEM("t=1790000001 go"), DRIFT_CLOCK);
	kind_is(SYSTEM("at 2026-11-04T12:00:00Z"), SYSTEM("at 2026-11-04T12:00:01Z"),
	        DRIFT_CLOCK);
	kind_is(SYSTEM("It is 4 November 2026."), SYSTEM("It is 5 November 2026."),
	        DRIFT_DATE);
	kind_is(SYSTEM("It is Monday, all day"), SYSTEM("It is Friday, all day"),
	        DRIFT_DATE);
	kind_is(SYSTEM("id 3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
	        SYSTEM("id 3f2504e0-4f89-11d3-9a0c-0305e82c3302"), DRIFT_ID);
	kind_is(SYSTEM("session req_01ABcd9f for you"),
	        SYSTEM("session req_01ABce0a for you"), DRIFT_ID);
	kind_is(SYSTEM("You have 17 messages"), SYSTEM("You have 18 messages"),
	        DRIFT_COUNTER);
	kind_is(SYSTEM("Be kind"), SYSTEM("Be rude"), DRIFT_OTHER);
	kind_is(SYSTEM("Be kind"), SYSTEM("Be kind and brief"), DRIFT_OTHER);
	kind_is("{\"tools\":[{\"name\":\"alpha\"},{\"name\":\"beta\"}]}",
	        "{\"tools\":[{\"name\":\"beta\"},{\"name\":\"alpha\"}]}",
	        DRIFT_TOOL_ORDER);
	kind_is("{\"tools\":[{\"name\":\"alpha\"}]}",
	        "{\"tools\":[{\"name\":\"alpha\"},{\"name\":\"beta\"}]}", DRIFT_TOOLS);
	kind_is("{\"tools\":[{\"name\":\"alpha\",\"desc\":\"x\"}]}",
	        "{\"tools\":[{\"desc\":\"x\",\"name\":\"alpha\"}]}", DRIFT_KEY_ORDER);
	kind_is("{\"model\":\"m-one\"}", "{\"model\":\"m-two\"}", DRIFT_SETTING);
	kind_is("{\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: "
	        "v=1; "
	        "cch=0af1;\"},{\"type\":\"text\",\"text\":\"rest\"}]}",
	        "{\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: "
	        "v=1; "
	        "cch=9bc2;\"},{\"type\":\"text\",\"text\":\"rest\"}]}",
	        DRIFT_BILLING);
	kind_is("{\"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{"
	        "\"type\":"
	        "\"ephemeral\"}},{\"type\":\"text\",\"text\":\"b\"}]}",
	        "{\"system\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
	        "\"text\":\"b\"}]}",
	        DRIFT_MARKER);
	kind_is("{\"model\":\"m\",\"system\":\"a\"}", "{\"model\":\"m\"}", DRIFT_LENGTH);
	for (enum drift_kind i = 0; i < DRIFT_KIND_COUNT; i++)
		ck_assert_str_ne(drift_kind_fix(i), "");
}
END_TEST

START_TEST(drift_a_setting_that_is_in_no_segment_is_found)
{
	struct drift drift =
		drift_of("{\"system\":\"s\",\"thinking\":{\"type\":\"adaptive\"}}",
	                 "{\"system\":\"s\",\"thinking\":{\"type\":\"disabled\"}}");

	ck_assert_uint_eq(drift.kind, DRIFT_SETTING);
	ck_assert(drift.setting);
	ck_assert_uint_eq(drift.tier, TIER_TOOLS);
	ck_assert_ptr_nonnull(strstr(drift.a, "adaptive"));
}
END_TEST

START_TEST(drift_shows_whole_characters_only)
{
	struct drift drift =
		drift_of(SYSTEM("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82"
	                        "\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac x "
	                        "\xe2\x82\xac"),
	                 SYSTEM("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82"
	                        "\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac x "
	                        "\xe2\x82\xad"));

	ck_assert_ptr_null(strstr(drift.a, "\\x"));
	ck_assert_ptr_nonnull(strstr(drift.b, "x \xe2\x82\xad"));
	ck_assert_mem_eq(drift.b + drift.b_caret, "\xe2\x82\xad", 3);
}
END_TEST

SUITE_MAIN("drift", drift_points_at_the_first_byte_that_differs,
           drift_nothing_differs_when_only_the_spelling_does, drift_kinds_are_told_apart,
           drift_a_setting_that_is_in_no_segment_is_found,
           drift_shows_whole_characters_only)
