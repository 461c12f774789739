#include "common/codec/marker.h"
#include "tests/lib/suite.h"

static const struct part_px px_template[PART_NODES_MAX] = {
	{ .tier = TIER_TOOLS,
	  .wrap_at = PART_NOWHERE,
	  .mark_at = 1,
	  .ttl = TTL_5M,
	  .tokens = 2000 },
	{ .tier = TIER_SYSTEM,
	  .wrap_at = PART_NOWHERE,
	  .mark_at = 1,
	  .ttl = TTL_5M,
	  .tokens = 8000 },
	{ .tier = TIER_MESSAGES,
	  .wrap_at = PART_NOWHERE,
	  .mark_at = 1,
	  .ttl = TTL_5M,
	  .tokens = 900 },
};

struct setting {
	struct dialect_traits traits;
	struct part_px px[PART_NODES_MAX];
	struct part_own own;
	struct marker_request request;
};

static void
prepare(struct setting *setting, unsigned want)
{
	*setting = (struct setting){ .traits = *dialect_traits(DIALECT_ANTHROPIC) };
	memcpy(setting->px, px_template, sizeof px_template);
	setting->request = (struct marker_request){
		.traits = &setting->traits,
		.px = setting->px,
		.px_count = PART_NODES_MAX,
		.own = &setting->own,
		.want = want,
	};
}

static struct marker_plan
plan(const struct setting *setting)
{
	struct marker_plan made;

	marker_plan(&setting->request, &made);
	ck_assert_uint_eq(made.insert & ~made.wire, 0);
	return made;
}

START_TEST(marker_at_most_two_the_boundary_and_the_deepest_ancestor)
{
	struct setting setting;
	struct marker_plan made;

	prepare(&setting, 7);
	made = plan(&setting);
	ck_assert_uint_eq(made.insert, 6);
	ck_assert_uint_eq(made.reason[0], MARKER_COVERED);

	prepare(&setting, 5);
	ck_assert_uint_eq(plan(&setting).insert, 5);

	prepare(&setting, 3); /* the boundary itself is not shared: its ancestors are */
	made = plan(&setting);
	ck_assert_uint_eq(made.insert, 2);
	ck_assert_uint_eq(made.reason[2], MARKER_NOT_WANTED);

	prepare(&setting, 0);
	ck_assert_uint_eq(plan(&setting).insert, 0);
}
END_TEST

START_TEST(marker_a_users_marker_counts_as_the_ancestors)
{
	struct setting setting;
	struct marker_plan made;

	prepare(&setting, 7);
	setting.own.user[TIER_SYSTEM] = PART_MARK_PLAIN;
	setting.own.explicit_count = 1;
	made = plan(&setting);
	ck_assert_uint_eq(made.insert, 4);
	ck_assert_uint_eq(made.wire, 6);
	ck_assert_uint_eq(made.reason[0], MARKER_COVERED);
	ck_assert_uint_eq(made.reason[1], MARKER_USERS);

	prepare(&setting, 7);
	setting.px[2].flags = PART_FIXED;
	setting.px[2].mark_at = PART_NOWHERE;
	setting.own.explicit_count = 1;
	made = plan(&setting);
	ck_assert_uint_eq(made.wire, 6);
	ck_assert_uint_eq(made.insert, 2);
}
END_TEST

START_TEST(marker_never_a_fifth)
{
	struct setting setting;

	prepare(&setting, 7);
	setting.own.explicit_count = 3;
	ck_assert_uint_eq(plan(&setting).insert, 4);
	setting.own.explicit_count = 4;
	ck_assert_uint_eq(plan(&setting).insert, 0);
	ck_assert_uint_eq(plan(&setting).reason[2], MARKER_NO_SLOT);
	setting.own.explicit_count = 3;
	setting.own.automatic = TTL_5M;
	ck_assert_uint_eq(plan(&setting).insert, 0);
	setting.own.explicit_count = 2;
	ck_assert_uint_eq(plan(&setting).insert, 4);
}
END_TEST

START_TEST(marker_lifetimes_fall_along_the_request)
{
	struct setting setting;

	prepare(&setting, 4);
	setting.own.earlier[TIER_MESSAGES] = TTL_5M;
	setting.px[2].ttl = TTL_1H;
	ck_assert_uint_eq(plan(&setting).insert, 0);
	ck_assert_uint_eq(plan(&setting).reason[2], MARKER_TTL_ORDER);
	setting.own.earlier[TIER_MESSAGES] = TTL_1H;
	ck_assert_uint_eq(plan(&setting).insert, 4);

	prepare(&setting, 2);
	setting.own.later[TIER_SYSTEM] = TTL_1H;
	ck_assert_uint_eq(plan(&setting).insert, 0);
	setting.px[1].ttl = TTL_1H;
	ck_assert_uint_eq(plan(&setting).insert, 2);

	/* ours among themselves, too */
	prepare(&setting, 6);
	setting.px[2].ttl = TTL_1H;
	ck_assert_uint_eq(plan(&setting).insert, 4);
	ck_assert_uint_eq(plan(&setting).reason[1], MARKER_TTL_ORDER);
}
END_TEST

START_TEST(marker_not_below_the_minimum_by_a_safe_estimate)
{
	struct setting setting;

	prepare(&setting, 1);
	setting.traits.tokens_min = 3001; /* 2,000 estimated, 3,000 at most */
	ck_assert_uint_eq(plan(&setting).insert, 0);
	ck_assert_uint_eq(plan(&setting).reason[0], MARKER_SMALL);
	setting.traits.tokens_min = 3000;
	ck_assert_uint_eq(plan(&setting).insert, 1);
	prepare(&setting, 2); /* counted from the root */
	setting.traits.tokens_min = 15000;
	ck_assert_uint_eq(plan(&setting).insert, 2);
}
END_TEST

START_TEST(marker_other_reasons_are_named)
{
	struct setting setting;

	prepare(&setting, 7);
	setting.request.never = true;
	ck_assert_uint_eq(plan(&setting).reason[2], MARKER_FORBIDDEN);
	ck_assert_uint_eq(plan(&setting).insert, 0);

	prepare(&setting, 7);
	setting.traits.markers = MARKER_NONE;
	ck_assert_uint_eq(plan(&setting).reason[2], MARKER_NOT_NEEDED);
	ck_assert_uint_eq(plan(&setting).wire, 0);

	prepare(&setting, 7);
	setting.px[2].mark_at = PART_NOWHERE;
	ck_assert_uint_eq(plan(&setting).reason[2], MARKER_NO_PLACE);
	ck_assert_uint_eq(plan(&setting).insert, 2);

	for (enum marker_reason i = 0; i < MARKER_REASON_COUNT; i++)
		ck_assert_str_ne(marker_reason_text(i), "unknown");
}
END_TEST

SUITE_MAIN("marker", marker_at_most_two_the_boundary_and_the_deepest_ancestor,
           marker_a_users_marker_counts_as_the_ancestors, marker_never_a_fifth,
           marker_lifetimes_fall_along_the_request,
           marker_not_below_the_minimum_by_a_safe_estimate,
           marker_other_reasons_are_named)
