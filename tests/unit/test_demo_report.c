#include "cli/demo.h"
#include "tests/lib/suite.h"
#include "tests/lib/temp.h"

#include <stdio.h>
#include <stdlib.h>

/* The burst that README shows: each question has 13 tokens of its own. */
static const struct demo_options burst = {
	.burst = { .dialect = "anthropic",
	           .model = "claude-sonnet-4-5",
	           .jobs = 200,
	           .families = 1,
	           .prefix_tokens = 30000 },
	.slots = 200,
	.job_ms = 2000,
};

/* One job was alone when it started: without a marker it pays for the prefix in full. */
static const struct demo_bursts naive = {
	.count = 1,
	.arms = { { .done = 200,
	            .writes = 199,
	            .duplicate_writes = 198,
	            .written = 5970000,
	            .uncached = 30000 + 200 * 13,
	            .makespan_ms = 5300,
	            .held_ms_max = 112 } },
};
static const struct demo_bursts held = {
	.count = 1,
	.arms = { { .done = 200,
	            .writes = 1,
	            .written = 30000,
	            .read = 5970000,
	            .uncached = 200 * 13,
	            .makespan_ms = 5700,
	            .peak_in_flight = 200,
	            .peak_writers = 1,
	            .held_ms_p50 = 3300,
	            .held_ms_max = 3400 } },
};

START_TEST(demo_prices_are_those_of_the_provider)
{
	/* 199 x 1.25 + 1, and 1.25 + 199 x 0.1, and 0.087 for the questions */
	ck_assert_uint_eq(demo_price_prefixes(&burst, &naive.arms[0]) / 1000, 249836);
	ck_assert_uint_eq(demo_price_prefixes(&burst, &held.arms[0]) / 1000, 21236);
	ck_assert_uint_eq(demo_price_dollars(&burst, &naive.arms[0]), 224853);
	ck_assert_uint_eq(demo_price_dollars(&burst, &held.arms[0]), 19113);
}
END_TEST

START_TEST(demo_the_lower_bound_is_one_cold_start_and_the_warm_waves)
{
	struct demo_options options = burst;

	ck_assert_uint_eq(demo_lower_bound_ms(&options), 3100 + 2100);
	options.lag_ms = 700;
	ck_assert_uint_eq(demo_lower_bound_ms(&options), 3100 + 700 + 2100);
	options.slots = 199; /* one of them has to wait for the second wave */
	ck_assert_uint_eq(demo_lower_bound_ms(&options), 3100 + 700 + 2 * 2100);
	options.burst.families = 200; /* each has its own, so none waits */
	ck_assert_uint_eq(demo_lower_bound_ms(&options), 2 * (3100 + 2000));
}
END_TEST

START_TEST(demo_json_has_the_figures_under_their_names)
{
	json_t *answer = demo_json(&burst, &naive, &held);
	json_t *arm = json_object_get(answer, "warmq");
	static const struct {
		const char *name;
		json_int_t value;
	} of_arm[] = { { "writes", 1 },          { "duplicate_writes", 0 },
		       { "written", 30000 },     { "read", 5970000 },
		       { "makespan_ms", 5700 },  { "peak_in_flight", 200 },
		       { "held_ms_p50", 3300 },  { "held_ms_max", 3400 },
		       { "uncached", 200 * 13 }, { "peak_writers", 1 } },
	  of_all[] = { { "jobs", 200 },
		       { "done", 200 },
		       { "failed", 0 },
		       { "lower_bound_ms", 5200 } };

	for (size_t i = 0; i < ARRAY_SIZE(of_arm); i++)
		ck_assert_int_eq(json_integer_value(json_object_get(arm, of_arm[i].name)),
		                 of_arm[i].value);
	for (size_t i = 0; i < ARRAY_SIZE(of_all); i++)
		ck_assert_int_eq(
			json_integer_value(json_object_get(answer, of_all[i].name)),
			of_all[i].value);
	arm = json_object_get(answer, "naive");
	ck_assert_int_eq(json_integer_value(json_object_get(arm, "writes")), 199);
	ck_assert_int_eq(json_integer_value(json_object_get(arm, "duplicate_writes")),
	                 198);
	json_decref(answer);
}
END_TEST

START_TEST(demo_an_arm_that_was_not_run_is_null)
{
	const struct demo_bursts none = { 0 };
	json_t *answer = demo_json(&burst, &naive, &none);

	ck_assert(json_is_null(json_object_get(answer, "warmq")));
	ck_assert_int_eq(json_integer_value(json_object_get(answer, "done")), 200);
	json_decref(answer);
}
END_TEST

/* The whole of a file, at most size - 1 bytes. */
static void
read_text(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");

	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	(void)fclose(file);
}

/* The table of README, line by line, in what is printed. */
START_TEST(demo_prints_what_readme_shows)
{
	static char readme[65536], printed[4096];
	const char *root = getenv("SOURCE_ROOT");
	char path[512], table[TEMP_PATH_SIZE];
	char *line, *end;
	size_t lines = 0;

	ck_assert_ptr_nonnull(root);
	temp_path("table", table);
	ck_assert_ptr_nonnull(freopen(table, "w", stdout));
	demo_print(&burst, &naive, &held);
	(void)fflush(stdout);
	read_text(table, printed, sizeof printed);
	(void)snprintf(path, sizeof path, "%s/README.md", root);
	read_text(path, readme, sizeof readme);

	line = strstr(readme, "\n    200 jobs, 1 prefix");
	ck_assert_ptr_nonnull(line);
	for (line++; strncmp(line, "    ", 4) == 0 || *line == '\n'; line = end + 1) {
		end = strchr(line, '\n');
		ck_assert_ptr_nonnull(end);
		*end = '\0';
		if (*line == '\0')
			continue;
		ck_assert_msg(strstr(printed, line + 4), "\"%s\" is not in\n%s", line + 4,
		              printed);
		lines++;
	}
	ck_assert_uint_eq(lines, 11);
}
END_TEST

SUITE_MAIN("demo_report", demo_prices_are_those_of_the_provider,
           demo_the_lower_bound_is_one_cold_start_and_the_warm_waves,
           demo_json_has_the_figures_under_their_names,
           demo_an_arm_that_was_not_run_is_null, demo_prints_what_readme_shows)
