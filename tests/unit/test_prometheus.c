#include "common/prometheus.h"

#include "tests/lib/suite.h"

#include <stdio.h>

static void
expect(struct buffer *buffer, const char *text)
{
	ck_assert_int_eq(buffer_error(buffer), 0);
	ck_assert_str_eq(buffer_text(buffer), text);
	buffer_fini(buffer);
}

START_TEST(prometheus_a_metric_has_a_head_and_samples)
{
	struct buffer out = BUFFER_INIT(1000);

	prometheus_head(&out, "warmq_backlog", "gauge", "Jobs that wait.");
	prometheus_sample(&out, "warmq_backlog",
	                  PROMETHEUS_LABELS({ "pool", SPAN("a") }, { "on", SPAN("") }),
	                  UINT64_MAX);
	prometheus_single(&out, "warmq_x_total", "counter", "X.", 7);
	expect(&out, "# HELP warmq_backlog Jobs that wait.\n"
	             "# TYPE warmq_backlog gauge\n"
	             "warmq_backlog{pool=\"a\",on=\"\"} 18446744073709551615\n"
	             "# HELP warmq_x_total X.\n"
	             "# TYPE warmq_x_total counter\n"
	             "warmq_x_total 7\n");
}
END_TEST

START_TEST(prometheus_values_of_labels_are_escaped)
{
	struct buffer out = BUFFER_INIT(1000);

	prometheus_sample(&out, "x",
	                  PROMETHEUS_LABELS({ "route", SPAN("a\"b\\c\nd\xc3\xa9") }), 1);
	expect(&out, "x{route=\"a\\\"b\\\\c\\nd\xc3\xa9\"} 1\n");
}
END_TEST

START_TEST(prometheus_seconds_and_dollars_are_decimals)
{
	struct buffer out = BUFFER_INIT(1000);

	prometheus_seconds(&out, "s", NULL, 1);
	prometheus_seconds(&out, "s", NULL, 61000);
	prometheus_seconds(&out, "s", NULL, -1250);
	prometheus_nano(&out, "d", NULL, 1);
	prometheus_nano(&out, "d", NULL, 22480000000);
	expect(&out, "s 0.001\ns 61\ns -1.250\nd 0.000000001\nd 22.480000000\n");
}
END_TEST

START_TEST(prometheus_bounds_are_told_as_they_are_compared)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		char want[64];

		(void)snprintf(want, sizeof(want), "%g",
		               (double)histogram_bounds_ms[i] / 1000);
		ck_assert_str_eq(histogram_bounds_text[i], want);
		ck_assert(i == 0 || histogram_bounds_ms[i] > histogram_bounds_ms[i - 1]);
	}
}
END_TEST

START_TEST(prometheus_buckets_of_a_histogram_add_up)
{
	struct histogram histogram = { 0 };
	struct buffer out = BUFFER_INIT(4000);

	histogram_add(&histogram, 10); /* the bound belongs to its bucket */
	histogram_add(&histogram, 11);
	histogram_add(&histogram, 3600001);
	ck_assert_uint_eq(histogram_count(&histogram), 3);
	prometheus_histogram(&out, "w", PROMETHEUS_LABELS({ "pool", SPAN("p") }),
	                     &histogram);
	ck_assert_ptr_nonnull(strstr(buffer_text(&out),
	                             "w_bucket{pool=\"p\",le=\"0.01\"} 1\n"
	                             "w_bucket{pool=\"p\",le=\"0.05\"} 2\n"));
	ck_assert_ptr_nonnull(strstr(buffer_text(&out),
	                             "w_bucket{pool=\"p\",le=\"3600\"} 2\n"
	                             "w_bucket{pool=\"p\",le=\"+Inf\"} 3\n"
	                             "w_sum{pool=\"p\"} 3600.022\n"
	                             "w_count{pool=\"p\"} 3\n"));
	buffer_fini(&out);
}
END_TEST

SUITE_MAIN("prometheus", prometheus_a_metric_has_a_head_and_samples,
           prometheus_values_of_labels_are_escaped,
           prometheus_seconds_and_dollars_are_decimals,
           prometheus_bounds_are_told_as_they_are_compared,
           prometheus_buckets_of_a_histogram_add_up)
