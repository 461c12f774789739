#include "common/codec/answer.h"
#include "tests/lib/suite.h"

#include <stdio.h>

#define NOW_MS UINT64_C(1793793600000) /* 2026-11-04T12:00:00Z */

static struct answer
classify(int status, const char *body, const char *const *headers)
{
	struct answer_headers read;
	struct answer answer;

	answer_headers_init(&read, NOW_MS);
	for (; headers && *headers; headers += 2)
		answer_header(&read, span_from(headers[0]), span_from(headers[1]));
	answer_classify(DIALECT_ANTHROPIC, status, &read, span_from(body), &answer);
	return answer;
}

#define HEADERS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define FAULT(type) \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"M\"}}"
#define SAID(message)                                                        \
	"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\"," \
	"\"message\":\"" message "\"}}"
#define NUMBER(code) "{\"error\":{\"message\":\"M\",\"code\":" code "}}"
#define CODE(code)   "{\"error\":{\"message\":\"M\",\"type\":\"T\",\"code\":\"" code "\"}}"

START_TEST(answer_kinds_follow_the_type_then_the_status)
{
	static const struct {
		int status;
		const char *body;
		enum answer_kind kind;
		bool overloaded;
	} cases[] = {
		{ 200, "", ANSWER_OK, false },
		{ 200, "{\"type\":\"message\",\"content\":[]}", ANSWER_OK, false },
		{ 200, "{\"error\":null,\"choices\":[]}", ANSWER_OK, false },
		{ 400, FAULT("invalid_request_error"), ANSWER_FATAL, false },
		{ 401, FAULT("authentication_error"), ANSWER_KEY, false },
		{ 402, FAULT("billing_error"), ANSWER_SPEND_CAP, false },
		{ 403, FAULT("billing_error"), ANSWER_SPEND_CAP, false },
		{ 403, FAULT("permission_error"), ANSWER_FATAL, false },
		{ 404, FAULT("not_found_error"), ANSWER_FATAL, false },
		{ 408, "", ANSWER_RETRY, false },
		{ 409, "", ANSWER_RETRY, false },
		{ 413, FAULT("request_too_large"), ANSWER_FATAL, false },
		{ 422, "{\"detail\":\"bad\"}", ANSWER_FATAL, false },
		{ 429, FAULT("rate_limit_error"), ANSWER_DEFER, false },
		{ 429, "", ANSWER_DEFER, false },
		{ 500, FAULT("api_error"), ANSWER_RETRY, false },
		{ 502, "<html>Bad Gateway</html>", ANSWER_RETRY, false },
		{ 503, "", ANSWER_RETRY, false },
		{ 503,
		  "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":"
		  "\"unavailable_error\"}}",
		  ANSWER_DEFER, true },
		{ 504, FAULT("timeout_error"), ANSWER_RETRY, false },
		{ 529, FAULT("overloaded_error"), ANSWER_DEFER, true },
		/* the number alone, where a gateway has eaten the body */
		{ 401, "", ANSWER_KEY, false },
		{ 402, "", ANSWER_SPEND_CAP, false },
		{ 529, "<html>", ANSWER_DEFER, true },
		/* these pass whatever the type says */
		{ 408, FAULT("invalid_request_error"), ANSWER_RETRY, false },
		{ 409, FAULT("invalid_request_error"), ANSWER_RETRY, false },
		/* the type wins over the number */
		{ 500, FAULT("overloaded_error"), ANSWER_DEFER, true },
		{ 400, FAULT("rate_limit_error"), ANSWER_DEFER, false },
		/* openai */
		{ 401, CODE("invalid_api_key"), ANSWER_KEY, false },
		{ 429, CODE("rate_limit_exceeded"), ANSWER_DEFER, false },
		{ 429, CODE("insufficient_quota"), ANSWER_SPEND_CAP, false },
		/* errors inside a stream that began with 200 */
		{ 200, FAULT("overloaded_error"), ANSWER_DEFER, true },
		{ 200, FAULT("api_error"), ANSWER_RETRY, false },
		{ 200, FAULT("invalid_request_error"), ANSWER_FATAL, false },
		{ 200, "{\"error\":{\"message\":\"engine died\"}}", ANSWER_RETRY, false },
		/* of who stands before the provider */
		{ 301, "", ANSWER_FOREIGN, false },
		{ 307, FAULT("api_error"), ANSWER_FOREIGN, false },
		{ 407, "<html>", ANSWER_FOREIGN, false },
		{ 511, "", ANSWER_FOREIGN, false },
		{ 403, " <html>Blocked", ANSWER_FOREIGN, false },
		{ 403, "RBAC: access denied", ANSWER_FOREIGN, false },
		{ 404, "404 page not found", ANSWER_FOREIGN, false },
		{ 404, "", ANSWER_FOREIGN, false },
		{ 400, "<html>The plain HTTP request was sent to HTTPS port",
		  ANSWER_FOREIGN, false },
		/* what any server finds out about this one request */
		{ 400, "Failed to parse the request body", ANSWER_FATAL, false },
		{ 400, "", ANSWER_FATAL, false },
		{ 413, "<html>Request Entity Too Large", ANSWER_FATAL, false },
		{ 422, "missing field `messages`", ANSWER_FATAL, false },
		{ 431, "", ANSWER_FATAL, false },
		/* a provider's word, though broken */
		{ 403, "{\"error\":{\"type\":\"permission_err", ANSWER_FATAL, false },
		/* no answer at all */
		{ 0, "connection reset", ANSWER_RETRY, false },
		/* servers that do not wrap it, or send a text only */
		{ 500, "{\"type\":\"overloaded_error\",\"message\":\"M\"}", ANSWER_DEFER,
		  true },
		{ 500, "{\"error\":\"busy\"}", ANSWER_RETRY, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer answer = classify(cases[i].status, cases[i].body, NULL);

		ck_assert_msg(answer.kind == cases[i].kind, "%d %s: %s", cases[i].status,
		              cases[i].body, answer_kind_name(answer.kind));
		ck_assert(answer.overloaded == cases[i].overloaded);
		ck_assert_str_ne(answer.type, "");
	}
}
END_TEST

START_TEST(answer_a_spend_cap_is_not_a_rate_limit)
{
	struct answer cap = classify(
		429,
		"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
		"\"message\":\"M\","
		"\"details\":{\"error_code\":\"enforced_spend_limit_reached\"}}}",
		NULL);
	struct answer limit =
		classify(429, FAULT("rate_limit_error"), HEADERS("retry-after", "7"));

	ck_assert_uint_eq(cap.kind, ANSWER_SPEND_CAP);
	ck_assert_int_eq(cap.after_ms, ANSWER_UNKNOWN);
	ck_assert_uint_eq(limit.kind, ANSWER_DEFER);
	ck_assert_int_eq(limit.after_ms, 7000);
}
END_TEST

/* An account without money refuses every job alike: none may die of it. */
START_TEST(answer_no_money_is_a_spend_cap_however_it_is_said)
{
	static const struct {
		int status;
		const char *body;
		enum answer_kind kind;
	} cases[] = {
		{ 400,
		  SAID("Your credit balance is too low to access the Anthropic API. "
		       "Please go to Plans & Billing to upgrade or purchase credits."),
		  ANSWER_SPEND_CAP },
		{ 400,
		  SAID("You have reached your specified API usage limits. You will "
		       "regain access on 2026-12-01 at 00:00 UTC."),
		  ANSWER_SPEND_CAP },
		{ 400,
		  SAID("You have reached your specified workspace API usage limits. "
		       "You will regain access on 2026-12-01 at 00:00 UTC."),
		  ANSWER_SPEND_CAP },
		{ 400,
		  SAID("messages.0.content: Your credit balance is too low: no such "
		       "block"),
		  ANSWER_FATAL },
		{ 429, CODE("billing_not_active"), ANSWER_SPEND_CAP },
		{ 429, FAULT("exceeded_current_quota_error"), ANSWER_SPEND_CAP },
		{ 403, CODE("insufficient_user_quota"), ANSWER_SPEND_CAP },
		{ 400, CODE("Arrearage"), ANSWER_SPEND_CAP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer answer = classify(cases[i].status, cases[i].body, NULL);

		ck_assert_msg(answer.kind == cases[i].kind, "%d %s: %s", cases[i].status,
		              cases[i].body, answer_kind_name(answer.kind));
	}
}
END_TEST

/* A gateway that has said 200 before the provider answers tells the status in the body.
 */
START_TEST(answer_a_number_in_an_error_is_its_status)
{
	static const struct {
		int status;
		const char *body;
		enum answer_kind kind;
		bool overloaded;
	} cases[] = {
		{ 200, NUMBER("429"), ANSWER_DEFER, false },
		{ 200, NUMBER("529"), ANSWER_DEFER, true },
		{ 200, NUMBER("402"), ANSWER_SPEND_CAP, false },
		{ 200, NUMBER("401"), ANSWER_KEY, false },
		{ 200, NUMBER("400"), ANSWER_FATAL, false },
		{ 200, NUMBER("403"), ANSWER_FATAL, false },
		{ 200, NUMBER("408"), ANSWER_RETRY, false },
		{ 200, NUMBER("502"), ANSWER_RETRY, false },
		/* as text */
		{ 200, NUMBER("\"429\""), ANSWER_DEFER, false },
		{ 200, NUMBER("\"529\""), ANSWER_DEFER, true },
		{ 200, NUMBER("\"401\""), ANSWER_KEY, false },
		{ 200, NUMBER("\"400\""), ANSWER_FATAL, false },
		/* no status, or none that counts for more than that of the answer */
		{ 200, NUMBER("1234"), ANSWER_RETRY, false },
		{ 200, NUMBER("200"), ANSWER_RETRY, false },
		{ 200, NUMBER("301"), ANSWER_RETRY, false },
		{ 200, NUMBER("-1"), ANSWER_RETRY, false },
		{ 200, NUMBER("42.9"), ANSWER_RETRY, false },
		{ 200, NUMBER("\"42\""), ANSWER_RETRY, false },
		{ 200, NUMBER("\"429x\""), ANSWER_RETRY, false },
		{ 200, NUMBER("\"\""), ANSWER_RETRY, false },
		{ 500, NUMBER("429"), ANSWER_RETRY, false },
		{ 200,
		  "{\"object\":\"error\",\"message\":\"M\",\"type\":\"T\",\"code\":500}",
		  ANSWER_RETRY, false },
		{ 200,
		  "{\"object\":\"error\",\"message\":\"M\",\"type\":\"T\",\"code\":400}",
		  ANSWER_FATAL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer answer = classify(cases[i].status, cases[i].body, NULL);

		ck_assert_msg(answer.kind == cases[i].kind, "%d %s: %s", cases[i].status,
		              cases[i].body, answer_kind_name(answer.kind));
		ck_assert(answer.overloaded == cases[i].overloaded);
	}
	ck_assert_str_eq(classify(200, NUMBER("502"), NULL).type, "http_502");
}
END_TEST

START_TEST(answer_a_400_that_names_what_we_added_is_our_own_doing)
{
	static const struct {
		const char *message;
		enum answer_addition addition;
	} cases[] = {
		{ "cache_control: Extra inputs are not permitted", ANSWER_ADDED_MARKER },
		{ "A maximum of 4 blocks with cache_control may be provided",
		  ANSWER_ADDED_MARKER },
		{ "Unknown parameter: 'prompt_cache_options'", ANSWER_ADDED_MARKER },
		{ "Unrecognized request argument: prompt_cache_key",
		  ANSWER_ADDED_CACHE_KEY },
		{ "stream_options is not supported", ANSWER_ADDED_USAGE },
		{ "stream is not supported by this model", ANSWER_ADDED_STREAM },
	};
	struct answer answer;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char body[256];

		(void)snprintf(body, sizeof body,
		               "{\"error\":{\"type\":\"invalid_request_error\","
		               "\"message\":\"%s\"}}",
		               cases[i].message);
		answer = classify(400, body, NULL);
		ck_assert_uint_eq(answer.kind, ANSWER_BAD_MARKER);
		ck_assert_uint_eq(answer.addition, cases[i].addition);
	}
	answer = classify(400, FAULT("invalid_request_error"), NULL);
	ck_assert_uint_eq(answer.addition, ANSWER_ADDED_NONE);
	answer = classify(500, "{\"error\":{\"message\":\"cache_control\"}}", NULL);
	ck_assert_uint_eq(answer.kind, ANSWER_RETRY);
	answer = classify(404, "{\"error\":{\"message\":\"no model stream-1\"}}", NULL);
	ck_assert_uint_eq(answer.kind, ANSWER_FATAL);
	ck_assert_uint_eq(answer.addition, ANSWER_ADDED_NONE);
}
END_TEST

START_TEST(answer_waits_as_long_as_it_is_told)
{
	static const struct {
		const char *name;
		const char *value;
		int64_t ms;
	} cases[] = {
		{ "Retry-After", "3", 3000 },
		{ "retry-after", " 1.5 ", 1500 },
		{ "retry-after", "0", 0 },
		{ "retry-after", "Wed, 04 Nov 2026 12:00:20 GMT", 20000 },
		{ "retry-after", "Wed, 04 Nov 2026 11:00:00 GMT", 0 },
		{ "retry-after", "soon", ANSWER_UNKNOWN },
		{ "retry-after", "5 s", ANSWER_UNKNOWN },
		{ "retry-after", "-5", ANSWER_UNKNOWN },
		{ "retry-after", "", ANSWER_UNKNOWN },
		{ "retry-after", "99999999999999999999", ANSWER_UNKNOWN },
		{ "retry-after", "31536000", 86400000 },
		{ "retry-after", "Wed, 04 Nov 2099 12:00:20 GMT", 86400000 },
		{ "retry-after-ms", "250", 250 },
		{ "retry-after-ms", "250.9", 250 },
		{ "x-other", "1", ANSWER_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer answer =
			classify(429, "", HEADERS(cases[i].name, cases[i].value));

		ck_assert_msg(answer.after_ms == cases[i].ms, "%s: %s: %lld",
		              cases[i].name, cases[i].value, (long long)answer.after_ms);
	}
	ck_assert_int_eq(
		classify(429, "", HEADERS("retry-after-ms", "40", "retry-after", "9"))
			.after_ms,
		40);
	ck_assert_int_eq(
		classify(429, "", HEADERS("retry-after", "9", "retry-after-ms", "40"))
			.after_ms,
		40);
	ck_assert_int_eq(
		classify(429, "", HEADERS("retry-after-ms", "x", "retry-after", "9"))
			.after_ms,
		9000);
	ck_assert_int_eq(classify(503, "", HEADERS("retry-after", "4")).after_ms, 4000);
}
END_TEST

/* Clocks of workers differ from a provider's by hours; its answers tell its own. */
START_TEST(answer_waits_by_the_clock_of_the_server)
{
	static const struct {
		const char *date, *until;
		int64_t ms;
	} cases[] = {
		{ "Wed, 04 Nov 2026 05:00:00 GMT", "Wed, 04 Nov 2026 05:00:20 GMT",
		  20000 },
		{ "Wed, 04 Nov 2026 23:00:00 GMT", "Wed, 04 Nov 2026 23:00:07 GMT",
		  7000 },
		{ "Wed, 04 Nov 2026 23:00:00 GMT", "Wed, 04 Nov 2026 22:59:00 GMT", 0 },
		{ "Wed, 04 Nov 2026 23:00:00 GMT", "3", 3000 },
		{ "today", "Wed, 04 Nov 2026 12:00:20 GMT", 20000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ck_assert_int_eq(classify(429, "",
		                          HEADERS("date", cases[i].date, "retry-after",
		                                  cases[i].until))
		                         .after_ms,
		                 cases[i].ms);
		ck_assert_int_eq(classify(429, "",
		                          HEADERS("Retry-After", cases[i].until, "Date",
		                                  cases[i].date))
		                         .after_ms,
		                 cases[i].ms);
	}
	ck_assert_int_eq(classify(429, "",
	                          HEADERS("retry-after-ms", "40", "date",
	                                  "Wed, 04 Nov 2026 05:00:00 GMT", "retry-after",
	                                  "Wed, 04 Nov 2026 06:00:00 GMT"))
	                         .after_ms,
	                 40);
}
END_TEST

START_TEST(answer_of_a_gateway_is_what_no_provider_would_say)
{
	struct answer_headers headers;
	struct answer answer;

	ck_assert_uint_eq(
		classify(404, "", HEADERS("Content-Type", "application/json")).kind,
		ANSWER_FATAL);
	ck_assert_uint_eq(
		classify(403, "<p>", HEADERS("Content-Type", "application/json")).kind,
		ANSWER_FOREIGN);
	answer_headers_init(&headers, NOW_MS);
	answer_classify(DIALECT_RAW, 404, &headers, span_from("no such page"), &answer);
	ck_assert_uint_eq(answer.kind, ANSWER_FATAL);
}
END_TEST

START_TEST(answer_obeys_x_should_retry)
{
	ck_assert_uint_eq(classify(500, "", HEADERS("x-should-retry", "false")).kind,
	                  ANSWER_FATAL);
	ck_assert_uint_eq(classify(400, FAULT("invalid_request_error"),
	                           HEADERS("x-should-retry", "true"))
	                          .kind,
	                  ANSWER_RETRY);
	ck_assert_uint_eq(
		classify(403, "<html>", HEADERS("x-should-retry", "false")).kind,
		ANSWER_FATAL);
	/* but a limit stays a limit */
	ck_assert_uint_eq(classify(429, "", HEADERS("x-should-retry", "false")).kind,
	                  ANSWER_DEFER);
	ck_assert_uint_eq(classify(500, "", HEADERS("x-should-retry", "maybe")).kind,
	                  ANSWER_RETRY);
}
END_TEST

static struct answer_headers
read_headers(const char *const *headers)
{
	struct answer_headers read;

	answer_headers_init(&read, NOW_MS);
	for (; *headers; headers += 2)
		answer_header(&read, span_from(headers[0]), span_from(headers[1]));
	return read;
}

START_TEST(answer_reads_the_limits_of_both_vendors)
{
	struct answer_headers a = read_headers(
		HEADERS("anthropic-ratelimit-requests-limit", "1000",
	                "anthropic-ratelimit-requests-remaining", "999",
	                "anthropic-ratelimit-requests-reset", "2026-11-04T12:00:03Z",
	                "Anthropic-RateLimit-Input-Tokens-Limit", "450000",
	                "anthropic-ratelimit-output-tokens-remaining", "80000",
	                "anthropic-ratelimit-tokens-limit", "540000",
	                "anthropic-ratelimit-input-tokens-reset", "2026-11-04T11:00:00Z",
	                "request-id", "req_1", "anthropic-organization-id", "org",
	                "anthropic-workspace-id", "ws", "content-type",
	                "Text/Event-Stream; charset=utf-8"));
	struct answer_headers o = read_headers(HEADERS(
		"x-ratelimit-limit-requests", "5000", "x-ratelimit-remaining-requests",
		"4999", "x-ratelimit-remaining-tokens", "-1", "x-ratelimit-limit-tokens",
		"2000000", "x-ratelimit-reset-requests", "41ms",
		"x-ratelimit-reset-tokens", "6m0s", "x-request-id", "r"));

	ck_assert_int_eq(a.bucket[ANSWER_REQUESTS].limit, 1000);
	ck_assert_int_eq(a.bucket[ANSWER_REQUESTS].remaining, 999);
	ck_assert_int_eq(a.bucket[ANSWER_REQUESTS].reset_ms, 3000);
	ck_assert_int_eq(a.bucket[ANSWER_INPUT].limit, 450000);
	ck_assert_int_eq(a.bucket[ANSWER_INPUT].reset_ms, 0);
	ck_assert_int_eq(a.bucket[ANSWER_INPUT].remaining, ANSWER_UNKNOWN);
	ck_assert_int_eq(a.bucket[ANSWER_OUTPUT].remaining, 80000);
	ck_assert_int_eq(a.bucket[ANSWER_TOKENS].limit, 540000);
	ck_assert_str_eq(a.request_id, "req_1");
	ck_assert_str_eq(a.organization, "org");
	ck_assert_str_eq(a.workspace, "ws");
	ck_assert_str_eq(a.content_type, "text/event-stream");
	ck_assert_int_eq(o.bucket[ANSWER_REQUESTS].limit, 5000);
	ck_assert_int_eq(o.bucket[ANSWER_REQUESTS].remaining, 4999);
	ck_assert_int_eq(o.bucket[ANSWER_REQUESTS].reset_ms, 41);
	ck_assert_int_eq(o.bucket[ANSWER_TOKENS].limit, 2000000);
	ck_assert_int_eq(o.bucket[ANSWER_TOKENS].remaining, ANSWER_UNKNOWN); /* -1 */
	ck_assert_int_eq(o.bucket[ANSWER_TOKENS].reset_ms, 360000);
	ck_assert_str_eq(o.request_id, "r");
}
END_TEST

START_TEST(answer_durations_as_vendors_write_them)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "1s", 1000 },
		{ "6m0s", 360000 },
		{ "41ms", 41 },
		{ "1.5s", 1500 },
		{ "1h2m", 3720000 },
		{ "850us", 0 },
		{ "1d", 86400000 },
		{ "", ANSWER_UNKNOWN },
		{ "5", ANSWER_UNKNOWN },
		{ "s", ANSWER_UNKNOWN },
		{ "-1s", ANSWER_UNKNOWN },
		{ "1s x", ANSWER_UNKNOWN },
		{ "9999999999999999999s", ANSWER_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ck_assert_msg(answer_duration(span_from(cases[i].text)) == cases[i].ms,
		              "%s: %lld", cases[i].text,
		              (long long)answer_duration(span_from(cases[i].text)));
}
END_TEST

START_TEST(answer_texts_say_what_happened_and_what_now)
{
	ck_assert_str_eq(
		classify(529, FAULT("overloaded_error"), NULL).text,
		"529 overloaded_error: M. The provider is overloaded; the job waits.");
	ck_assert_str_eq(classify(0, "connection reset by peer", NULL).text,
	                 "No answer: connection reset by peer. It counts as an attempt.");
	ck_assert_str_eq(classify(502, "<html>\nBad", NULL).text,
	                 "502: <html>\\nBad. It counts as an attempt.");
	ck_assert_str_eq(classify(500, "{\"error\":{\"message\":\"Sorry!\"}}", NULL).text,
	                 "500: Sorry! It counts as an attempt.");
	ck_assert_str_eq(classify(500, "", NULL).text, "500. It counts as an attempt.");
	ck_assert_str_eq(classify(500, "", NULL).type, "http_500"); /* one word */
	ck_assert_str_eq(classify(301, "", NULL).text,
	                 "301. It redirects, and keys are sent nowhere else: set the "
	                 "upstream's url to where it is now. The job waits.");
	for (enum answer_kind i = 0; i < ANSWER_COUNT; i++)
		ck_assert_ptr_nonnull(answer_kind_name(i));
}
END_TEST

START_TEST(answer_that_is_no_json_is_of_something_else_or_broken_or_bytes)
{
	static const struct {
		const char *type, *body;
		enum answer_kind kind;
	} cases[] = {
		{ "text/html", "<html>Log in", ANSWER_FOREIGN },
		{ "application/json", " <html>Log in", ANSWER_FOREIGN },
		{ "text/plain", "healthy", ANSWER_FOREIGN },
		{ "text/plain", "", ANSWER_FOREIGN },
		{ "application/json", "", ANSWER_RETRY },
		{ "text/event-stream", "", ANSWER_RETRY },
		{ "application/problem+json", "nul", ANSWER_RETRY },
		{ "text/plain", "{\"id\":", ANSWER_RETRY },
		{ "audio/mpeg", "\xff\xfb", ANSWER_FATAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer_headers headers;
		struct answer answer;

		answer_headers_init(&headers, NOW_MS);
		answer_header(&headers, SPAN("content-type"), span_from(cases[i].type));
		answer_classify_strange(200, &headers, span_from(cases[i].body), &answer);
		ck_assert_msg(answer.kind == cases[i].kind, "%s %s: %s", cases[i].type,
		              cases[i].body, answer_kind_name(answer.kind));
		ck_assert_str_eq(answer.type, "not_json");
	}
}
END_TEST

START_TEST(answer_of_json_that_says_nothing_is_a_failure)
{
	static const char *const bodies[] = { "{}", "[]", "null", "\"ok\"", " {} " };

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct answer_headers headers;
		struct answer answer;

		answer_headers_init(&headers, NOW_MS);
		answer_header(&headers, SPAN("content-type"), SPAN("application/json"));
		answer_classify_strange(200, &headers, span_from(bodies[i]), &answer);
		ck_assert_int_eq(answer.kind, ANSWER_RETRY);
		ck_assert_str_eq(answer.type, "no_answer");
		ck_assert(strncmp(answer.text, "200, but no answer. ", 20) == 0);
	}
}
END_TEST

START_TEST(answer_a_marker_of_the_job_s_own_is_its_own_fault)
{
	struct answer answer =
		classify(400, "{\"error\":{\"message\":\"5 cache_control\"}}", NULL);

	ck_assert_int_eq(answer.kind, ANSWER_BAD_MARKER);
	answer_blame_job(&answer);
	ck_assert_int_eq(answer.kind, ANSWER_FATAL);
	ck_assert_str_eq(answer.text, "400: 5 cache_control. "
	                              "Sending it again would not help.");
}
END_TEST

SUITE_MAIN("answer", answer_kinds_follow_the_type_then_the_status,
           answer_a_spend_cap_is_not_a_rate_limit,
           answer_no_money_is_a_spend_cap_however_it_is_said,
           answer_a_number_in_an_error_is_its_status,
           answer_a_400_that_names_what_we_added_is_our_own_doing,
           answer_that_is_no_json_is_of_something_else_or_broken_or_bytes,
           answer_of_json_that_says_nothing_is_a_failure,
           answer_a_marker_of_the_job_s_own_is_its_own_fault,
           answer_waits_as_long_as_it_is_told, answer_waits_by_the_clock_of_the_server,
           answer_of_a_gateway_is_what_no_provider_would_say, answer_obeys_x_should_retry,
           answer_reads_the_limits_of_both_vendors,
           answer_durations_as_vendors_write_them,
           answer_texts_say_what_happened_and_what_now)
