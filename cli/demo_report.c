/* demo_report.c - the two arms side by side, for people and for machines. */
#include "cli/demo.h"

#include "common/io/config_models.h"
#include "common/text.h"

#include <stdio.h>

#define LATENCY_MS     100 /* of the simulated provider, before any prefill */
#define PREFILL_PER_MS 10  /* tokens */

uint64_t
demo_lower_bound_ms(const struct demo_options *options)
{
	uint64_t cold_ms = LATENCY_MS + options->burst.prefix_tokens / PREFILL_PER_MS;
	uint64_t waves = (options->burst.jobs + options->slots - 1) / options->slots;

	if (options->burst.jobs <= options->burst.families) /* nobody has to wait */
		return waves * (cold_ms + options->job_ms);
	return cold_ms + options->lag_ms + waves * (LATENCY_MS + options->job_ms);
}

static const struct config_model *
model_of(const struct demo_options *options)
{
	return config_models_find(span_from(options->burst.model));
}

/* Thousandths of an uncached token. */
static uint64_t
weigh(const struct demo_options *options, const struct demo_arm *arm)
{
	const struct config_model *model = model_of(options);

	return arm->written * model->write_multiplier +
	       arm->read * model->read_multiplier + arm->uncached * 1000;
}

uint64_t
demo_price_prefixes(const struct demo_options *options, const struct demo_arm *arm)
{
	return weigh(options, arm) * 1000 / MAX(options->burst.prefix_tokens, 1);
}

uint64_t
demo_price_dollars(const struct demo_options *options, const struct demo_arm *arm)
{
	return weigh(options, arm) / 1000 * model_of(options)->price_input / 100000000;
}

#define TEXT_SIZE 32

/* The last burst of an arm; NULL if it was not run. */
static const struct demo_arm *
last(const struct demo_bursts *bursts)
{
	return bursts->count > 0 ? &bursts->arms[bursts->count - 1] : NULL;
}

uint64_t
demo_failed(const struct demo_bursts *bursts)
{
	uint64_t failed = 0;

	for (size_t i = 0; i < bursts->count; i++)
		failed += bursts->arms[i].failed;
	return failed;
}

struct table {
	const struct demo_options *options;
	const struct demo_arm *arms[2]; /* NULL: not run */
};

/* A row of the table: what `text` makes of each arm. */
static void
print_row(const struct table *table, const char *what,
          void (*text)(const struct table *table, const struct demo_arm *arm,
                       char ret_text[TEXT_SIZE]))
{
	char cells[2][TEXT_SIZE] = { "-", "-" };

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		if (table->arms[i])
			text(table, table->arms[i], cells[i]);
	printf("  %-36s %14s %14s\n", what, cells[0], cells[1]);
}

static void
print_done(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_grouped(arm->done, text);
}

static void
print_writes(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_grouped(arm->writes, text);
}

static void
print_written(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_grouped(arm->written, text);
}

static void
print_read(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_grouped(arm->read, text);
}

static void
print_prefixes(const struct table *table, const struct demo_arm *arm, char *text)
{
	uint64_t tenths = demo_price_prefixes(table->options, arm) / 100000;

	snprintf(text, TEXT_SIZE, "%llu.%llu", (unsigned long long)tenths / 10,
	         (unsigned long long)tenths % 10);
}

static void
print_dollars(const struct table *table, const struct demo_arm *arm, char *text)
{
	uint64_t price = demo_price_dollars(table->options, arm);

	snprintf(text, TEXT_SIZE, "$%llu.%02llu", (unsigned long long)price / 10000,
	         (unsigned long long)price % 10000 / 100);
}

static void
print_makespan(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_duration(arm->makespan_ms, text);
}

static void
print_held(const struct table *table, const struct demo_arm *arm, char *text)
{
	(void)table;
	cli_duration(arm->held_ms_max, text);
}

void
demo_print(const struct demo_options *options, const struct demo_bursts *naive,
           const struct demo_bursts *held)
{
	const struct burst *burst = &options->burst;
	const struct table table = { options, { last(naive), last(held) } };
	char jobs[32], tokens[32], job[32], bound[32];
	char price[80], million[TEXT_NUMBER_SIZE];

	printf("\n%s jobs, %llu prefix%s of %s tokens, %s a job, %llu slots\n\n",
	       cli_grouped(burst->jobs, jobs), (unsigned long long)burst->families,
	       burst->families == 1 ? "" : "es",
	       cli_grouped(burst->prefix_tokens, tokens),
	       cli_duration(options->job_ms, job), (unsigned long long)options->slots);
	printf("  %-36s %14s %14s\n", "", "all at once", "with WarmQ");
	print_row(&table, "jobs done", print_done);
	print_row(&table, "requests that wrote a prefix", print_writes);
	print_row(&table, "tokens written", print_written);
	print_row(&table, "tokens read", print_read);
	print_row(&table, "price, in whole prefixes", print_prefixes);
	if (model_of(options)->price_input > 0) {
		(void)text_print_decimal(model_of(options)->price_input, 6, million);
		(void)snprintf(price, sizeof(price),
		               "price, at $%s a million input tokens", million);
		print_row(&table, price, print_dollars);
	}
	print_row(&table, "time until all were done", print_makespan);
	print_row(&table, "longest wait before a request left", print_held);
	printf("  %-36s %14s %14s\n\n", "lower bound (one writer first)", "",
	       cli_duration(demo_lower_bound_ms(options), bound));
}

static json_t *
arm_json(const struct demo_arm *arm)
{
	if (!arm)
		return json_null();
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "writes",
	                 (json_int_t)arm->writes, "duplicate_writes",
	                 (json_int_t)arm->duplicate_writes, "written",
	                 (json_int_t)arm->written, "read", (json_int_t)arm->read,
	                 "uncached", (json_int_t)arm->uncached, "makespan_ms",
	                 (json_int_t)arm->makespan_ms, "peak_in_flight",
	                 (json_int_t)arm->peak_in_flight, "peak_writers",
	                 (json_int_t)arm->peak_writers, "held_ms_p50",
	                 (json_int_t)arm->held_ms_p50, "held_ms_max",
	                 (json_int_t)arm->held_ms_max);
}

static json_t *
bursts_json(const struct demo_bursts *bursts)
{
	json_t *list = json_array();

	for (size_t i = 0; i < bursts->count; i++)
		json_array_append_new(list, arm_json(&bursts->arms[i]));
	return list;
}

json_t *
demo_json(const struct demo_options *options, const struct demo_bursts *naive,
          const struct demo_bursts *held)
{
	const struct demo_arm *arms[] = { last(naive), last(held) };
	const struct demo_arm *said = arms[1] ? arms[1] : arms[0];

	return json_pack("{s:I,s:I,s:I,s:o,s:o,s:o,s:I}", "jobs",
	                 (json_int_t)options->burst.jobs, "done", (json_int_t)said->done,
	                 "failed", (json_int_t)said->failed, "naive", arm_json(arms[0]),
	                 "warmq", arm_json(arms[1]), "bursts", bursts_json(held),
	                 "lower_bound_ms", (json_int_t)demo_lower_bound_ms(options));
}
