/* The fields of a job: each arrives, or is refused with what it should be, and survives
 * being slim; the manual lists them all. */
#include "common/codec/envelope_field.h"
#include "tests/lib/envelope_rig.h"

#include <stdio.h>
#include <stdlib.h>

START_TEST(envelope_the_smallest_job_has_two_fields)
{
	struct entry entry = minimal();
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	envelope_init(&reader, NULL);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.upstream, SPAN("claude")));
	ck_assert(span_equals(envelope.body, SPAN("{}")));
	ck_assert_uint_eq(envelope.kind, ENVELOPE_JOB);
	ck_assert_uint_eq(envelope.priority, ENVELOPE_NORMAL);
	ck_assert_uint_eq(envelope.timeout_ms, 600000);
	ck_assert_uint_eq(envelope.attempts, 3);
	ck_assert_uint_eq(envelope.hold_max_ms, ENVELOPE_DAY_MS);
	ck_assert_uint_eq(envelope.markers, ENVELOPE_MARKERS_UNSET);
	ck_assert_uint_eq(envelope.shared.kind, CHAIN_SHARED_AUTO);
	ck_assert_uint_eq(envelope.deadline_ms, ENVELOPE_NO_TIME);
	ck_assert_uint_eq(envelope.route.len, 0);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), ERR_NOT_FOUND);
	envelope_fini(&reader);
}
END_TEST

/* Every field survives being slim. */
static void
check_slim(const struct envelope *envelope)
{
	struct buffer slim = BUFFER_INIT(1 << 16);
	struct envelope_error error;
	struct envelope copy;

	envelope_write_slim(envelope, &slim);
	ck_assert_msg(envelope_read_slim(buffer_span(&slim), &copy, &error) == 0, "%s",
	              error.text);
#define SAME_SPAN(field) ck_assert(span_equals(copy.field, envelope->field))
	SAME_SPAN(upstream);
	SAME_SPAN(body);
	SAME_SPAN(prefix);
	SAME_SPAN(prefix_pin);
	SAME_SPAN(route);
	SAME_SPAN(conversation);
	SAME_SPAN(betas);
	SAME_SPAN(handler);
	SAME_SPAN(reply);
	SAME_SPAN(ref);
	SAME_SPAN(traceparent);
	ck_assert_uint_eq(copy.shared.kind, envelope->shared.kind);
	ck_assert_uint_eq(copy.shared.n, envelope->shared.n);
	ck_assert_uint_eq(copy.markers, envelope->markers);
	ck_assert_uint_eq(copy.priority, envelope->priority);
	ck_assert_uint_eq(copy.not_before_ms, envelope->not_before_ms);
	ck_assert_uint_eq(copy.deadline_ms, envelope->deadline_ms);
	ck_assert_uint_eq(copy.timeout_ms, envelope->timeout_ms);
	ck_assert_uint_eq(copy.attempts, envelope->attempts);
	ck_assert_uint_eq(copy.hold_max_ms, envelope->hold_max_ms);
	buffer_fini(&slim);
}

START_TEST(envelope_every_field_arrives)
{
	struct entry entry = minimal();
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	add(&entry, "prefix", "policy@0123abcd");
	add(&entry, "route", "tri\xc3\xa4ge");
	add(&entry, "shared", "messages:4");
	add(&entry, "conversation", "c 1");
	add(&entry, "betas", "zeta-1,alpha-2,zeta-1");
	add(&entry, "markers", "never");
	add(&entry, "handler", "run.py");
	add(&entry, "priority", "high");
	add(&entry, "not_before", "+90s");
	add(&entry, "deadline", "2026-11-04T12:00:00.250Z");
	add(&entry, "timeout", "2m");
	add(&entry, "attempts", "1");
	add(&entry, "hold_max", "0");
	add(&entry, "reply", "box.1");
	add(&entry, "ref", "order 7");
	add(&entry, "traceparent",
	    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	envelope_init(&reader, NULL);
	ck_assert_msg(read_one(&entry, &reader, &envelope, &error) == 0, "%s",
	              error.text);
	ck_assert(span_equals(envelope.prefix, SPAN("policy")));
	ck_assert(span_equals(envelope.prefix_pin, SPAN("0123abcd")));
	ck_assert(span_equals(envelope.route, SPAN("tri\xc3\xa4ge")));
	ck_assert_uint_eq(envelope.shared.kind, CHAIN_SHARED_MESSAGES);
	ck_assert_uint_eq(envelope.shared.n, 4);
	ck_assert(span_equals(envelope.betas, SPAN("alpha-2,zeta-1")));
	ck_assert_uint_eq(envelope.markers, ENVELOPE_MARKERS_NEVER);
	ck_assert_uint_eq(envelope.priority, ENVELOPE_HIGH);
	ck_assert_uint_eq(envelope.not_before_ms, ENTRY_MS + 90000);
	ck_assert_uint_eq(envelope.deadline_ms, UINT64_C(1793793600250));
	ck_assert_uint_eq(envelope.timeout_ms, 120000);
	ck_assert_uint_eq(envelope.attempts, 1);
	ck_assert_uint_eq(envelope.hold_max_ms, 0);
	ck_assert(span_equals(envelope.reply, SPAN("box.1")));
	ck_assert(span_equals(envelope.ref, SPAN("order 7")));
	ck_assert_uint_eq(envelope.traceparent.len, 55);
	check_slim(&envelope);
	envelope_fini(&reader);
}
END_TEST

START_TEST(envelope_one_bad_field_is_named_with_what_it_should_be)
{
	static const struct {
		const char *name;
		const char *value;
		const char *text;
	} cases[] = {
		{ "priority", "urgent",
		  "`priority` must be one of high|normal|low, not \"urgent\"" },
		{ "upstream", "a b",
		  "`upstream` must be 1 to 64 letters, digits, dots, underscores and "
		  "dashes, not "
		  "\"a b\"" },
		{ "reply", "",
		  "`reply` must be 1 to 128 letters, digits, dots, underscores and "
		  "dashes, not "
		  "\"\"" },
		{ "timeout", "5",
		  "`timeout` must be 1s to 1d, as 250ms, 30s, 5m, 2h or plain "
		  "milliseconds, not "
		  "\"5\"" },
		{ "timeout", "2d",
		  "`timeout` must be 1s to 1d, as 250ms, 30s, 5m, 2h or plain "
		  "milliseconds, not "
		  "\"2d\"" },
		{ "attempts", "0",
		  "`attempts` must be a number from 1 to 100, not \"0\"" },
		{ "attempts", "-1",
		  "`attempts` must be a number from 1 to 100, not \"-1\"" },
		{ "shared", "messages:0",
		  "`shared` must be tools, system, messages:N, marker:K or bytes:N, "
		  "counted from "
		  "1, not \"messages:0\"" },
		{ "shared", "tools:1",
		  "`shared` must be tools, system, messages:N, marker:K or bytes:N, "
		  "counted from "
		  "1, not \"tools:1\"" },
		{ "not_before", "1790000000",
		  "`not_before` must be milliseconds since 1970, a time like "
		  "2026-11-04T12:00:00Z, or +30s up to +31d, not \"1790000000\"" },
		{ "deadline", "+32d",
		  "`deadline` must be milliseconds since 1970, a time like "
		  "2026-11-04T12:00:00Z, or +30s up to +31d, not \"+32d\"" },
		{ "prefix", "policy@12",
		  "`prefix` must be a name, or name@version with 8 to 32 hex digits, not "
		  "\"policy@12\"" },
		{ "betas", "A",
		  "`betas` must be at most 16 names of a-z, 0-9 and -, with commas, not "
		  "\"A\"" },
		{ "betas", "a,",
		  "`betas` must be at most 16 names of a-z, 0-9 and -, with commas, not "
		  "\"a,\"" },
		{ "route", "a\nb",
		  "`route` must be 1 to 64 bytes of UTF-8 without control characters, "
		  "not "
		  "\"a\\nb\"" },
		{ "ref", "\xff",
		  "`ref` must be 1 to 256 bytes of UTF-8 without control characters, not "
		  "\"\\xff\"" },
		{ "markers", "yes", "`markers` must be one of auto|never, not \"yes\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct entry entry = { .count = 0 };
		struct envelope_reader reader;
		struct envelope_error error;
		struct envelope envelope;

		if (strcmp(cases[i].name, "upstream") != 0)
			add(&entry, "upstream", "claude");
		add(&entry, "body", "{}");
		add(&entry, cases[i].name, cases[i].value);
		envelope_init(&reader, NULL);
		ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error),
		                 ERR_MALFORMED);
		ck_assert_uint_eq(error.fault, ENVELOPE_MALFORMED);
		ck_assert_str_eq(error.field, cases[i].name);
		ck_assert_str_eq(error.text, cases[i].text);
		envelope_fini(&reader);
	}
}
END_TEST

START_TEST(envelope_a_trace_that_is_none_costs_no_job)
{
	static const char good[] =
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char *const traces[] = {
		"",
		"00-0af7",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331\r\n1",
	};

	for (size_t i = 0; i <= ARRAY_SIZE(traces); i++) {
		const char *trace = i < ARRAY_SIZE(traces) ? traces[i] : good;
		struct entry entry = minimal();
		struct envelope_reader reader;
		struct envelope_error error;
		struct envelope envelope;

		add(&entry, "traceparent", trace);
		envelope_init(&reader, NULL);
		ck_assert_msg(read_one(&entry, &reader, &envelope, &error) == 0, "%s: %s",
		              trace, error.text);
		ck_assert_uint_eq(envelope.traceparent.len, trace == good ? 55 : 0);
		ck_assert(envelope.trace_ignored == (trace != good && *trace));
		envelope_fini(&reader);
	}
}
END_TEST

START_TEST(envelope_what_is_missing_doubled_or_unknown_is_said)
{
	struct entry entry = { .count = 0 };

	refuses(entry, ERR_MALFORMED, "body", "`body` is missing or empty");
	add(&entry, "body", "{}");
	refuses(entry, ERR_MALFORMED, "upstream", "`upstream` is missing");
	entry = minimal();
	add(&entry, "body", "{}");
	refuses(entry, ERR_MALFORMED, "body", "`body` is given twice");
	entry = minimal();
	add(&entry, "hold-max", "1s");
	refuses(entry, ERR_MALFORMED, "hold-max",
	        "there is no field `hold-max`; did you mean `hold_max`?");
	entry = minimal();
	add(&entry, "colour", "blue");
	refuses(entry, ERR_MALFORMED, "colour",
	        "there is no field `colour`; docs/ENVELOPE.md lists them all");
	entry = minimal();
	add(&entry, "put_prefix", "p");
	add(&entry, "prefix", "q");
	refuses(entry, ERR_MALFORMED, "prefix",
	        "an entry has `put_prefix` or `prefix`, not both");
	entry = minimal();
	add(&entry, "json", "{}");
	add(&entry, "m", "x");
	refuses(entry, ERR_MALFORMED, "m", "an entry has `json` or `m`, not both");
}
END_TEST

START_TEST(envelope_limits_are_inclusive)
{
	static const struct {
		const char *name;
		const char *good;
		const char *bad;
	} cases[] = {
		{ "timeout", "1d", "86400001" },
		{ "timeout", "1000", "999" },
		{ "hold_max", "24h", "86400001" },
		{ "attempts", "100", "101" },
		{ "not_before", "+31d", "+32d" },
		{ "shared", "messages:100000", "messages:100001" },
	};
	struct entry entry;
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int bad = 0; bad < 2; bad++) {
			entry = minimal();
			add(&entry, cases[i].name, bad ? cases[i].bad : cases[i].good);
			envelope_init(&reader, NULL);
			ck_assert_msg(
				(read_one(&entry, &reader, &envelope, &error) < 0) == bad,
				"%s %s", cases[i].name,
				bad ? cases[i].bad : cases[i].good);
			envelope_fini(&reader);
		}
	}
	/* 64 fields may come, though these are unknown; 65 may not */
	entry = minimal();
	while (entry.count < ENVELOPE_FIELDS_MAX)
		add(&entry, "colour", "blue");
	refuses(entry, ERR_MALFORMED, "colour",
	        "there is no field `colour`; docs/ENVELOPE.md lists them all");
	add(&entry, "colour", "blue");
	refuses(entry, ERR_MALFORMED, "", "the entry has more than 64 fields");
}
END_TEST

START_TEST(envelope_fields_not_built_yet_are_unsupported_not_ignored)
{
	static const char *const names[] = { "unique", "group", "tenant" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct entry entry = minimal();
		char text[128];

		add(&entry, names[i], "x");
		(void)snprintf(
			text, sizeof text,
			"`%s` is not supported by this version; send the job without it",
			names[i]);
		refuses(entry, ERR_UNSUPPORTED, names[i], text);
	}
}
END_TEST

START_TEST(envelope_body_has_a_limit)
{
	struct envelope_limits limits = { .body_max = 4, .pack_max = 10 };
	struct entry entry = { .count = 0 };
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	add(&entry, "upstream", "claude");
	add(&entry, "body", "{\"a\":1}");
	envelope_init(&reader, &limits);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), ERR_MALFORMED);
	ck_assert_str_eq(error.text, "`body` has 7 bytes; the limit is 4");
	envelope_fini(&reader);
}
END_TEST

START_TEST(envelope_a_prefix_can_be_put)
{
	struct entry entry = { .count = 0 };
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	add(&entry, "put_prefix", "policy");
	add(&entry, "body", "{\"system\":\"x\"}");
	envelope_init(&reader, NULL);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), 0);
	ck_assert_uint_eq(envelope.kind, ENVELOPE_PREFIX);
	ck_assert(span_equals(envelope.prefix, SPAN("policy")));
	ck_assert(span_equals(envelope.body, SPAN("{\"system\":\"x\"}")));
	envelope_fini(&reader);
}
END_TEST

START_TEST(envelope_slim_jobs_come_back_as_they_were)
{
	struct entry entry = minimal();
	struct buffer slim = BUFFER_INIT(4096), again = BUFFER_INIT(4096);
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope, copy;

	add(&entry, "prefix", "policy@0123abcd");
	add(&entry, "betas", "b,a");
	add(&entry, "deadline", "+1h");
	add(&entry, "shared", "marker:2");
	add(&entry, "ref", "a b c");
	add(&entry, "priority", "low");
	add(&entry, "timeout", "90s");
	envelope_init(&reader, NULL);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), 0);
	envelope.body_kind = ENVELOPE_OWN;
	envelope.body = SPAN("own1 …\n{}\n\nx");
	envelope_write_slim(&envelope, &slim);
	ck_assert_str_eq(
		buffer_text(&slim),
		"slim1 own\nupstream claude\nprefix policy@0123abcd\nroute policy\n"
		"shared marker:2\nbetas a,b\npriority low\ndeadline 1790003600000\n"
		"timeout 90000\nref a b c\n\nown1 …\n{}\n\nx");
	ck_assert_int_eq(envelope_read_slim(buffer_span(&slim), &copy, &error), 0);
	ck_assert_uint_eq(copy.body_kind, ENVELOPE_OWN);
	ck_assert(span_equals(copy.body, envelope.body));
	ck_assert_uint_eq(copy.deadline_ms, ENTRY_MS + 3600000);
	ck_assert_uint_eq(copy.attempts, 3);
	envelope_write_slim(&copy, &again);
	ck_assert_str_eq(buffer_text(&again), buffer_text(&slim));
	ck_assert_int_eq(envelope_read_slim(SPAN("slim2 own\n\n"), &copy, &error),
	                 ERR_MALFORMED);
	ck_assert_int_eq(envelope_read_slim(SPAN("slim1 own\nupstream x"), &copy, &error),
	                 ERR_MALFORMED);
	ck_assert_int_eq(
		envelope_read_slim(SPAN("slim1 own\ncolour x\n\n"), &copy, &error),
		ERR_MALFORMED);
	buffer_fini(&slim);
	buffer_fini(&again);
	envelope_fini(&reader);
}
END_TEST

/* The defaults in the table are those of envelope_field_defaults. */
START_TEST(envelope_defaults_are_those_of_the_table)
{
	struct envelope plain, parsed;
	struct buffer scratch = BUFFER_INIT(4096);
	struct envelope_error error;

	envelope_field_defaults(&plain);
	envelope_field_defaults(&parsed);
	for (size_t i = 0; i < envelope_fields_count; i++) {
		if (!envelope_fields[i].fallback)
			continue;
		ck_assert_int_eq(
			envelope_field_parse(&envelope_fields[i],
		                             span_from(envelope_fields[i].fallback), 0,
		                             &scratch, &parsed, &error),
			0);
	}
	ck_assert_mem_eq(&plain, &parsed, sizeof plain);
	buffer_fini(&scratch);
}
END_TEST

/* docs/ENVELOPE.md has one row per field, with its default, in the order of the table. */
START_TEST(envelope_the_manual_lists_every_field)
{
	const char *root = getenv("SOURCE_ROOT");
	struct buffer page = BUFFER_INIT(1 << 20);
	char path[4096];
	const char *at;
	FILE *file;
	char *room;

	ck_assert_ptr_nonnull(root);
	(void)snprintf(path, sizeof path, "%s/docs/ENVELOPE.md", root);
	file = fopen(path, "rb");
	ck_assert_msg(file != NULL, "%s cannot be read", path);
	room = buffer_reserve(&page, 200000);
	buffer_commit(&page, fread(room, 1, 200000, file));
	(void)fclose(file);
	at = buffer_text(&page);
	for (size_t i = 0; i < envelope_fields_count; i++) {
		const struct envelope_field *field = &envelope_fields[i];
		char row[64];
		const char *end;

		(void)snprintf(row, sizeof row, "\n| `%s` |", field->name);
		at = strstr(at, row);
		ck_assert_msg(at != NULL,
		              "docs/ENVELOPE.md has no row for `%s` in its place",
		              field->name);
		end = strchr(at + 1, '\n');
		ck_assert_ptr_nonnull(end);
		if (field->fallback) {
			(void)snprintf(row, sizeof row, "| `%s` |", field->fallback);
			ck_assert_msg(
				memmem(at, (size_t)(end - at), row, strlen(row)) != NULL,
				"the row of `%s` does not say that its default is `%s`",
				field->name, field->fallback);
		}
		at = end - 1;
	}
	buffer_fini(&page);
}
END_TEST

SUITE_MAIN("envelope", envelope_the_smallest_job_has_two_fields,
           envelope_every_field_arrives,
           envelope_one_bad_field_is_named_with_what_it_should_be,
           envelope_a_trace_that_is_none_costs_no_job,
           envelope_what_is_missing_doubled_or_unknown_is_said,
           envelope_limits_are_inclusive,
           envelope_fields_not_built_yet_are_unsupported_not_ignored,
           envelope_body_has_a_limit, envelope_a_prefix_can_be_put,
           envelope_slim_jobs_come_back_as_they_were,
           envelope_defaults_are_those_of_the_table,
           envelope_the_manual_lists_every_field)
