#include "common/buffer.h"
#include "common/codec/dialect.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

START_TEST(dialect_names_and_letters_go_both_ways)
{
	enum dialect dialect;

	for (enum dialect i = 0; i < DIALECT_COUNT; i++) {
		ck_assert_int_eq(dialect_parse(span_from(dialect_name(i)), &dialect), 0);
		ck_assert_uint_eq(dialect, i);
		ck_assert_uint_eq(dialect_from_letter(dialect_letter(i)), i);
		ck_assert_uint_eq(dialect_traits(i)->dialect, i);
	}
	ck_assert_int_eq(dialect_parse(SPAN("gemini"), &dialect), ERR_UNKNOWN_KEY);
	ck_assert_uint_eq(dialect_from_letter('x'), DIALECT_COUNT);
}
END_TEST

START_TEST(dialect_unknown_keys_enter_at_the_tools)
{
	ck_assert_uint_eq(dialect_key_tier(DIALECT_ANTHROPIC, SPAN("brand_new")),
	                  TIER_TOOLS);
	ck_assert_uint_eq(dialect_key_tier(DIALECT_OPENAI_CHAT, SPAN("brand_new")),
	                  TIER_TOOLS);
	ck_assert_uint_eq(dialect_key_tier(DIALECT_ANTHROPIC, SPAN("max_tokens")),
	                  TIER_NEVER);
	ck_assert_uint_eq(dialect_key_tier(DIALECT_ANTHROPIC, SPAN("system")),
	                  TIER_SYSTEM);
	ck_assert_uint_eq(dialect_key_tier(DIALECT_OPENAI_CHAT, SPAN("system")),
	                  TIER_TOOLS);
	ck_assert_uint_eq(dialect_key_tier(DIALECT_RAW, SPAN("system")), TIER_NEVER);
	ck_assert_uint_eq(
		dialect_key_held(DIALECT_OPENAI_CHAT, SPAN("previous_response_id")),
		DIALECT_HELD_ALL);
	ck_assert_uint_eq(dialect_key_held(DIALECT_ANTHROPIC, SPAN("mcp_servers")),
	                  DIALECT_HELD_TOOLS);
	ck_assert_uint_eq(dialect_key_held(DIALECT_RAW, SPAN("prompt")), DIALECT_HELD_NO);
}
END_TEST

START_TEST(dialect_lifetimes_are_ordered_by_length)
{
	for (enum ttl i = TTL_5M; i < TTL_COUNT; i++) {
		ck_assert_uint_gt(dialect_ttl_ms(i), dialect_ttl_ms(i - 1));
		ck_assert_uint_eq(dialect_ttl_parse(span_from(dialect_ttl_name(i))), i);
	}
	ck_assert_uint_eq(dialect_ttl_parse(SPAN("2h")), TTL_NONE);
}
END_TEST

/* The row of a dialect in docs/IDENTITY.md names each key in the column of its tier. */
START_TEST(dialect_the_manual_lists_every_key_at_its_node)
{
	static const char *const rows[] = { "\n| anthropic |", "\n| openai-chat |" };
	const char *root = getenv("SOURCE_ROOT");
	struct buffer page = BUFFER_INIT(1 << 20);
	enum tier tier;
	char text[4096];
	char *room;
	FILE *file;

	ck_assert_ptr_nonnull(root);
	(void)snprintf(text, sizeof text, "%s/docs/IDENTITY.md", root);
	file = fopen(text, "rb");
	ck_assert_msg(file != NULL, "%s cannot be read", text);
	room = buffer_reserve(&page, 100000);
	buffer_commit(&page, fread(room, 1, 100000, file));
	(void)fclose(file);
	for (enum dialect dialect = 0; dialect < DIALECT_RAW; dialect++) {
		const char *row = strstr(buffer_text(&page), rows[dialect]);
		const char *key;

		ck_assert_ptr_nonnull(row);
		row += strlen(rows[dialect]); /* stands at the column of S */
		for (unsigned i = 0; (key = dialect_key(dialect, i, &tier)) != NULL;
		     i++) {
			const char *cell = row, *found, *end;

			if (tier == TIER_TOOLS)
				continue;
			for (enum tier at = TIER_SYSTEM; at < tier; at++)
				cell = strchr(cell, '|') + 1;
			end = strchr(cell, '|');
			(void)snprintf(text, sizeof text, "`%s`", key);
			found = memmem(cell, (size_t)(end - cell), text, strlen(text));
			ck_assert_msg(found != NULL,
			              "docs/IDENTITY.md: `%s` of %s is not in its column",
			              key, dialect_name(dialect));
		}
	}
	buffer_fini(&page);
}
END_TEST

START_TEST(dialect_a_chat_model_gets_only_what_its_table_row_allows)
{
	struct dialect_traits upstream =
		dialect_for_upstream(DIALECT_OPENAI_CHAT, true, 1800000);
	struct dialect_model model = { .ours = true, .cache_key = true };
	struct dialect_traits traits = dialect_for_model(&upstream, &model);

	ck_assert(traits.stream && traits.cache_key && !traits.cache_mode);
	ck_assert_int_eq(traits.markers, MARKER_NONE);
	model.breakpoint = true;
	model.tokens_min = 1024;
	traits = dialect_for_model(&upstream, &model);
	ck_assert_int_eq(traits.markers, MARKER_BREAKPOINT);
	ck_assert_uint_eq(traits.tokens_min, 1024);
	model.ours = false; /* markers: never */
	traits = dialect_for_model(&upstream, &model);
	ck_assert(!traits.cache_key && !traits.cache_mode);
	ck_assert_int_eq(traits.markers, MARKER_NONE);
}
END_TEST

START_TEST(dialect_an_anthropic_upstream_marks_for_an_hour_only_if_told)
{
	struct dialect_traits short_lived =
		dialect_for_upstream(DIALECT_ANTHROPIC, true, 300000);
	struct dialect_traits long_lived =
		dialect_for_upstream(DIALECT_ANTHROPIC, false, 3600000);

	ck_assert_int_eq(short_lived.ttl, TTL_5M);
	ck_assert(short_lived.stream);
	ck_assert_int_eq(long_lived.ttl, TTL_1H);
	ck_assert(!long_lived.stream);
}
END_TEST

SUITE_MAIN("dialect", dialect_the_manual_lists_every_key_at_its_node,
           dialect_names_and_letters_go_both_ways,
           dialect_unknown_keys_enter_at_the_tools,
           dialect_lifetimes_are_ordered_by_length,
           dialect_a_chat_model_gets_only_what_its_table_row_allows,
           dialect_an_anthropic_upstream_marks_for_an_hour_only_if_told)
