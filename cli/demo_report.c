/* demo_report.c - the two arms side by side, for people and for machines. */
#include "cli/demo.h"

#include <stdio.h>

#define LATENCY_MS          100  /* of the simulated provider, before any prefill */
#define PREFILL_PER_MS      10   /* tokens */
#define WRITE_PERMILLE      1250 /* of the price of an uncached token */
#define READ_PERMILLE       100  /* likewise */
#define DOLLARS_PER_MILLION 3    /* input tokens; a common price, for the picture only */

uint64_t
demo_lower_bound_ms(const struct demo_options *options)
{
	uint64_t cold_ms = LATENCY_MS + options->burst.prefix_tokens / PREFILL_PER_MS;
	uint64_t waves = (options->burst.jobs + options->slots - 1) / options->slots;

	return cold_ms + options->lag_ms + waves * (LATENCY_MS + options->job_ms);
}

/* Thousandths of an uncached token. */
static uint64_t
weigh(const struct demo_arm *arm)
{
	return arm->written * WRITE_PERMILLE + arm->read * READ_PERMILLE +
	       arm->uncached * 1000;
}

uint64_t
demo_price_prefixes(const struct demo_options *options, const struct demo_arm *arm)
{
	return weigh(arm) * 1000 / MAX(options->burst.prefix_tokens, 1);
}

uint64_t
demo_price_dollars(const struct demo_arm *arm)
{
	return weigh(arm) * DOLLARS_PER_MILLION / 100000;
}

static void
print_count(const char *what, uint64_t naive, uint64_t held)
{
	char left[32], right[32];

	printf("  %-34s %14s %14s\n", what, cli_grouped(naive, left),
	       cli_grouped(held, right));
}

static void
print_time(const char *what, uint64_t naive_ms, uint64_t held_ms)
{
	char left[32], right[32];

	printf("  %-34s %14s %14s\n", what, cli_duration(naive_ms, left),
	       cli_duration(held_ms, right));
}

static void
print_price(const struct demo_options *options, const struct demo_arm *naive,
            const struct demo_arm *held)
{
	uint64_t left = demo_price_prefixes(options, naive) / 100000;
	uint64_t right = demo_price_prefixes(options, held) / 100000;
	char text[2][32];

	snprintf(text[0], 32, "%llu.%llu", (unsigned long long)left / 10,
	         (unsigned long long)left % 10);
	snprintf(text[1], 32, "%llu.%llu", (unsigned long long)right / 10,
	         (unsigned long long)right % 10);
	printf("  %-34s %14s %14s\n", "price, in whole prefixes", text[0], text[1]);
	left = demo_price_dollars(naive);
	right = demo_price_dollars(held);
	snprintf(text[0], 32, "$%llu.%02llu", (unsigned long long)left / 10000,
	         (unsigned long long)left % 10000 / 100);
	snprintf(text[1], 32, "$%llu.%02llu", (unsigned long long)right / 10000,
	         (unsigned long long)right % 10000 / 100);
	printf("  %-34s %14s %14s\n", "price, at $3 a million input tokens", text[0],
	       text[1]);
}

void
demo_print(const struct demo_options *options, const struct demo_arm *naive,
           const struct demo_arm *held)
{
	const struct burst *burst = &options->burst;
	char jobs[32], tokens[32], job[32], bound[32];

	printf("\n%s jobs, %llu prefix%s of %s tokens, %s a job, %llu slots\n\n",
	       cli_grouped(burst->jobs, jobs), (unsigned long long)burst->families,
	       burst->families == 1 ? "" : "es",
	       cli_grouped(burst->prefix_tokens, tokens),
	       cli_duration(options->job_ms, job), (unsigned long long)options->slots);
	printf("  %-34s %14s %14s\n", "", "all at once", "with WarmQ");
	print_count("jobs done", naive->done, held->done);
	print_count("requests that wrote a prefix", naive->writes, held->writes);
	print_count("tokens written", naive->written, held->written);
	print_count("tokens read", naive->read, held->read);
	print_price(options, naive, held);
	print_time("time until all were done", naive->makespan_ms, held->makespan_ms);
	print_time("longest wait before a request left", naive->held_ms_max,
	           held->held_ms_max);
	printf("  %-34s %14s %14s\n\n", "lower bound (one writer first)", "",
	       cli_duration(demo_lower_bound_ms(options), bound));
}

static json_t *
arm_json(const struct demo_arm *arm)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "writes",
	                 (json_int_t)arm->writes, "duplicate_writes",
	                 (json_int_t)arm->duplicate_writes, "written",
	                 (json_int_t)arm->written, "read", (json_int_t)arm->read,
	                 "uncached", (json_int_t)arm->uncached, "makespan_ms",
	                 (json_int_t)arm->makespan_ms, "peak_in_flight",
	                 (json_int_t)arm->peak_in_flight, "held_ms_p50",
	                 (json_int_t)arm->held_ms_p50, "held_ms_max",
	                 (json_int_t)arm->held_ms_max);
}

json_t *
demo_json(const struct demo_options *options, const struct demo_arm *naive,
          const struct demo_arm *held)
{
	return json_pack("{s:I,s:I,s:I,s:o,s:o,s:I}", "jobs",
	                 (json_int_t)options->burst.jobs, "done", (json_int_t)held->done,
	                 "failed", (json_int_t)held->failed, "naive", arm_json(naive),
	                 "warmq", arm_json(held), "lower_bound_ms",
	                 (json_int_t)demo_lower_bound_ms(options));
}
