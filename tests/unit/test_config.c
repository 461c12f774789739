#include "common/io/config.h"
#include "common/io/config_models.h"
#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

static struct config_error error;

static struct config *
fresh(void)
{
	struct config *config = config_create();

	ck_assert_ptr_nonnull(config);
	return config;
}

static struct config *
parsed(const char *text)
{
	struct config *config = fresh();

	ck_assert_msg(config_parse(config, span_from(text), "t", &error) == 0, "%s",
	              error.message);
	ck_assert_msg(config_finish(config, &error) == 0, "%s", error.message);
	return config;
}

/* The text is refused, at `line`, and the message has `words`. */
static void
refused(const char *text, int code, uint32_t line, const char *words)
{
	struct config *config = fresh(), *before = fresh();

	ck_assert_int_eq(config_parse(config, span_from(text), "w.yaml", &error), code);
	ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
	ck_assert_uint_eq(error.line, line);
	ck_assert_mem_eq(config, before, sizeof *config);
	config_destroy(config);
	config_destroy(before);
}

static void
unfinished(const char *text, const char *words)
{
	struct config *config = fresh();

	ck_assert_msg(config_parse(config, span_from(text), "t", &error) == 0, "%s",
	              error.message);
	ck_assert_int_lt(config_finish(config, &error), 0);
	ck_assert_msg(strstr(error.message, words) != NULL, "%s", error.message);
	config_destroy(config);
}

START_TEST(config_without_a_file_has_all_defaults)
{
	struct config *config = parsed("");

	ck_assert_str_eq(config->namespace, "warmq");
	ck_assert_str_eq(config->redis, "redis://127.0.0.1:6379");
	ck_assert_uint_eq(config->scheduler.max_wait_ms, 300000);
	ck_assert_uint_eq(config->worker.slots, 100);
	ck_assert_uint_eq(config->upstreams_count, 0);
	ck_assert_uint_eq(config->pools_count, 0);
	config_destroy(config);
	config_destroy(parsed("# only a comment\n"));
}
END_TEST

static const char whole[] = "namespace: q\n"
			    "redis: unix:///r.sock?db=2\n"
			    "state_dir: /tmp/state\n"
			    "upstreams:\n"
			    "  main:\n"
			    "    url: https://api.anthropic.com/\n"
			    "    key_env: ANTHROPIC_API_KEY\n"
			    "    headers: {anthropic-version: 2023-06-01}\n"
			    "    betas: [a-1, b-2]\n"
			    "    ttl: 1h\n"
			    "    class_limits:\n"
			    "      sonnet-4: {rpm: 50, itpm: 450000, otpm: 90000}\n"
			    "  local:\n"
			    "    url: http://127.0.0.1:8000/base\n"
			    "    dialect: openai-chat\n"
			    "    auth: none\n"
			    "    account: shared\n"
			    "    hold_max: 0s\n"
			    "models:\n"
			    "  - match: claude-x*\n"
			    "    price_input: 3.5\n"
			    "    read_multiplier: 0.025\n"
			    "    breakpoint: true\n"
			    "pools:\n"
			    "  - {name: night, match: [batch-*, main]}\n"
			    "scheduler: {listen: 'off', max_wait: 60s}\n"
			    "worker:\n"
			    "  handler: [python3, run.py]\n";

START_TEST(config_reads_a_whole_file)
{
	struct config *config = parsed(whole);
	const struct config_upstream *main_ = &config->upstreams[0];
	const struct config_upstream *local = &config->upstreams[1];
	const struct config_class_limit *limit = &main_->class_limits[0];

	ck_assert_str_eq(config->namespace, "q");
	ck_assert_uint_eq(config->upstreams_count, 2);
	ck_assert_str_eq(main_->name, "main");
	ck_assert_str_eq(local->name, "local");
	ck_assert_str_eq(main_->url, "https://api.anthropic.com");
	ck_assert_str_eq(main_->headers[0].value, "2023-06-01");
	ck_assert_uint_eq(main_->betas_count, 2);
	ck_assert_str_eq(main_->betas[1], "b-2");
	ck_assert_uint_eq(main_->ttl_ms, 3600000);
	ck_assert_uint_eq(main_->class_limits_count, 1);
	ck_assert_str_eq(limit->class_name, "sonnet-4");
	ck_assert_uint_eq(limit->itpm, 450000);
	ck_assert_uint_eq(limit->concurrency, 0);
	ck_assert_int_eq(local->dialect, CONFIG_DIALECT_OPENAI_CHAT);
	ck_assert_uint_eq(local->hold_max_ms, 0);
	ck_assert_uint_eq(config->models[0].price_input, 3500000);
	ck_assert_uint_eq(config->models[0].read_multiplier, 25);
	ck_assert(config->models[0].breakpoint);
	ck_assert_str_eq(config->scheduler.listen, "off");
	ck_assert_uint_eq(config->worker.handler_count, 2);
	config_destroy(config);
}
END_TEST

START_TEST(config_derives_by_dialect_and_host_what_is_not_said)
{
	struct config *config = parsed(whole);
	const struct config_upstream *main_ = &config->upstreams[0];
	const struct config_upstream *local = &config->upstreams[1];

	ck_assert_str_eq(main_->path, "/v1/messages");
	ck_assert_str_eq(main_->account, "main");
	ck_assert_int_eq(main_->auth, CONFIG_AUTH_X_API_KEY);
	ck_assert_int_eq(main_->markers, CONFIG_SWITCH_AUTO);
	ck_assert_int_eq(main_->evidence, CONFIG_EVIDENCE_EXACT);
	ck_assert_int_eq(main_->proof, CONFIG_PROOF_CANARY);
	ck_assert_uint_eq(main_->first_byte_ms, 120000);
	ck_assert_uint_eq(local->first_byte_ms, 86400000);
	ck_assert_str_eq(local->path, "/v1/chat/completions");
	ck_assert_str_eq(local->account, "shared");
	ck_assert_int_eq(local->markers, CONFIG_SWITCH_NEVER);
	ck_assert_int_eq(local->evidence, CONFIG_EVIDENCE_BEST_EFFORT);
	ck_assert_int_eq(local->proof, CONFIG_PROOF_NONE);
	config_destroy(config);

	config = parsed("upstreams: {a: {url: 'http://api.anthropic.com.evil.org', "
	                "auth: none}}");
	ck_assert_int_eq(config->upstreams[0].markers, CONFIG_SWITCH_NEVER);
	config_destroy(config);
}
END_TEST

START_TEST(config_unknown_keys_are_errors_with_line_and_nearest_key)
{
	refused("namespace: a\n---\nredis: x\n", ERR_MALFORMED, 3, "second document");
	refused("namespace: a\nredsi: x\n", ERR_UNKNOWN_KEY, 2,
	        "w.yaml:2: redsi is not a known key; did you mean redis?");
	refused("upstreams:\n  main:\n    dialekt: raw\n", ERR_UNKNOWN_KEY, 3,
	        "upstreams.main.dialekt is not a known key; did you mean dialect?");
	refused("scheduler: {completely_different: 1}", ERR_UNKNOWN_KEY, 1,
	        "docs/CONFIG.md");
	refused("models: [{match: x}, {mach: y}]", ERR_UNKNOWN_KEY, 1, "models[2].mach");
}
END_TEST

START_TEST(config_durations_and_sizes_need_units)
{
	refused("scheduler:\n  max_wait: 300\n", ERR_MALFORMED, 2,
	        "scheduler.max_wait must be a duration with its unit");
	refused("scheduler: {job_size_max: 8}", ERR_MALFORMED, 1,
	        "must be a size with its unit");
	refused("scheduler: {max_wait: 1ms}", ERR_LIMIT, 1, "must be from 1s to 7d");
	refused("worker: {slots: 0}", ERR_LIMIT, 1, "must be from 1 to 4096");
	refused("worker: {slots: many}", ERR_MALFORMED, 1, "must be a whole number");
}
END_TEST

START_TEST(config_secrets_never_stand_in_the_file)
{
	static const char *const secret[] = {
		"x-goog-api-key", "Helicone-Auth",        "Ocp-Apim-Subscription-Key",
		"X_Secret",       "cf-aig-authorization", "X-Auth-Token"
	};
	static const char *const plain[] = { "anthropic-version", "x-portkey-config",
		                             "HTTP-Referer", "x-author" };

	refused("upstreams: {a: {headers: {X-Api-Key: sk-1}}}", ERR_UNSUPPORTED, 1,
	        "carries a secret");
	refused("upstreams: {a: {headers: {authorization: Bearer x}}}", ERR_UNSUPPORTED,
	        1, "key_env or key_file");
	for (size_t i = 0; i < ARRAY_SIZE(secret); i++) {
		char text[128];

		(void)snprintf(text, sizeof text, "upstreams: {a: {headers: {%s: x}}}",
		               secret[i]);
		refused(text, ERR_UNSUPPORTED, 1, "carries a secret");
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		char text[128];

		(void)snprintf(text, sizeof text,
		               "upstreams: {a: {url: http://h, headers: {%s: x}, auth: "
		               "none}}",
		               plain[i]);
		config_destroy(parsed(text));
	}
	refused("upstreams: {a: {headers: {x-api-key: x}}}", ERR_UNSUPPORTED, 1,
	        "headers_env");
	refused("upstreams: {a: {headers_env: {x-portkey-api-key: 'sk 1'}}}",
	        ERR_UNSUPPORTED, 1, "name of an environment variable");
	refused("upstreams: {a: {headers_env: {Host: H}}}", ERR_UNSUPPORTED, 1,
	        "set by the worker");
	refused("upstreams: {a: {headers_env: H}}", ERR_MALFORMED, 1, "must be a map");
	unfinished("upstreams: {a: {url: http://x, key_env: A, headers_env: {X-API-Key: "
	           "B}}}",
	           "a second time");
	unfinished("upstreams: {a: {url: http://x, auth: none, headers: {x-v: 1}, "
	           "headers_env: {X-V: B}}}",
	           "a second time");
	unfinished(
		"upstreams: {a: {url: http://x, auth: none, headers_env: {x-v: A, X-V: "
		"B}}}",
		"a second time");
	unfinished("upstreams: {a: {url: 'https://h', query: 'v=1&api-key=sk-1', auth: "
	           "none}}",
	           "a query that carries a secret");
	config_destroy(parsed("upstreams: {a: {url: 'https://h', auth: none, query: "
	                      "'api-version=1&monkey=2'}}"));
	refused("upstreams: {a: {key: sk-1}}", ERR_UNKNOWN_KEY, 1, "did you mean");
	unfinished("upstreams: {a: {url: 'https://user:pw@host'}}", "without user");
}
END_TEST

START_TEST(config_says_what_kind_of_value_it_wants)
{
	refused("upstreams: [a]", ERR_MALFORMED, 1, "upstreams must be a map of names");
	refused("upstreams: {'a b': {}}", ERR_MALFORMED, 1, "must be a name");
	refused("upstreams: {a: {dialect: gemini}}", ERR_MALFORMED, 1,
	        "must be one of anthropic, openai-chat, raw");
	refused("models: {match: x}", ERR_MALFORMED, 1, "models must be a list");
	refused("models: [{breakpoint: yes}]", ERR_MALFORMED, 1, "must be true or false");
	refused("models: [{price_input: 3,5}]", ERR_UNKNOWN_KEY, 1, "models[1].5");
	refused("models: [{price_input: $3}]", ERR_MALFORMED, 1, "must be dollars");
	refused("pools: [{name: a, match: x}]", ERR_MALFORMED, 1, "two patterns");
	refused("pools: [{name: a, match: [x]}]", ERR_MALFORMED, 1, "two patterns");
	refused("redis: [a]", ERR_MALFORMED, 1, "must be a single value");
	refused("redis:\n", ERR_MALFORMED, 1, "has no value");
	refused("redis: ''\n", ERR_MALFORMED, 1, "must not be empty");
	refused("just text", ERR_MALFORMED, 1, "must be a map of keys");
	refused("redis: \"a\\nb\"", ERR_MALFORMED, 1, "without control characters");
}
END_TEST

START_TEST(config_says_no_thing_twice)
{
	refused("redis: redis://a\nnamespace: b\nredis: redis://c\n", ERR_MALFORMED, 3,
	        "redis is given twice");
	refused("upstreams: {a: {}, a: {}}", ERR_MALFORMED, 1, "is given twice");
}
END_TEST

START_TEST(config_broken_yaml_is_reported_with_its_line)
{
	refused("namespace: a\n  redis: [", ERR_MALFORMED, 2,
	        "w.yaml:2: this is no YAML");
	refused("a: *nothing", ERR_MALFORMED, 1, "this is no YAML");
	refused("namespace: \xff", ERR_MALFORMED, 1, "this is no YAML");
}
END_TEST

/* With 100,000 levels libyaml takes minutes to say that the last one is not closed. */
START_TEST(config_too_deep_a_nesting_is_refused_at_once)
{
	static char text[100000 + 1];

	memset(text, '[', sizeof text - 1);
	refused(text, ERR_LIMIT, 1, "w.yaml:1: column 33: this is nested more than 32");
	memcpy(text, "redis: x\nmodels: ", 17);
	refused(text, ERR_LIMIT, 2, "w.yaml:2: column 40: ");
	memset(text, '[', 32);
	memset(text + 32, ']', 32);
	text[64] = '\0';
	refused(text, ERR_MALFORMED, 1, "must be a map");
}
END_TEST

START_TEST(config_too_many_entries_are_refused_not_dropped)
{
	struct buffer text = BUFFER_INIT(CONFIG_FILE_SIZE_MAX);

	(void)buffer_append_text(&text, "upstreams:\n");
	for (int i = 0; i <= CONFIG_UPSTREAMS_MAX; i++)
		(void)buffer_append_format(&text, "  u%d: {}\n", i);
	refused(buffer_text(&text), ERR_LIMIT, CONFIG_UPSTREAMS_MAX + 2,
	        "is one too many");
	buffer_clear(&text);
	(void)buffer_append_text(&text, "upstreams: {a: {betas: [x");
	for (int i = 0; i < CONFIG_BETAS_MAX; i++)
		(void)buffer_append_text(&text, ", x");
	(void)buffer_append_text(&text, "]}}");
	refused(buffer_text(&text), ERR_LIMIT, 1, "has at most 16 entries");
	buffer_fini(&text);
}
END_TEST

START_TEST(config_finish_checks_what_needs_to_be_seen_whole)
{
	unfinished("redis: localhost", "begins with redis:// or unix://");
	unfinished("redis: rediss://h", "stunnel");
	unfinished("upstreams: {a: {auth: none}}", "upstreams.a needs a url");
	unfinished("upstreams: {a123456789b123456789c123456789d123456789e123456789f123456"
	           "789g1234: {url: http://x, auth: none}}",
	           "has a name that no job can say: 64 bytes at most");
	unfinished("upstreams: {a: {url: ftp://x, auth: none}}", "http(s)://host");
	unfinished("upstreams: {a: {url: 'http://x:99999', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://x:0/v1', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://x:', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://:80', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://[::1', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://[::1]80', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: 'http://h\xc3\xb4te', auth: none}}", "[:port]");
	unfinished("upstreams: {a: {url: http://x}}", "where its key is");
	unfinished("upstreams: {a: {url: http://x, key_env: A, key_file: b}}", "enough");
	unfinished("upstreams: {a: {url: http://x, auth: none, path: v1}}",
	           "begin with /");
	unfinished("upstreams: {a: {url: http://x, auth: none, query: '?a=b'}}",
	           "question mark");
	unfinished("upstreams: {a: {url: http://x, auth: none, usage_path: u}}",
	           "raw only");
	unfinished("models: [{class: a}]", "without match");
	unfinished("pools: [{match: [a, b]}]", "without name");
}
END_TEST

START_TEST(config_first_match_wins_and_the_built_in_table_ends_in_everything)
{
	struct config *config = parsed("models: [{match: 'claude-sonnet-4-5*', "
	                               "minimum_tokens: 7}]\n"
	                               "pools:\n"
	                               "  - {name: a, match: ['x-*', '*']}\n"
	                               "  - {name: b, match: ['*', up]}\n");

	ck_assert_uint_eq(config_model_find(config, SPAN("claude-sonnet-4-5-20250929"))
	                          ->minimum_tokens,
	                  7);
	ck_assert_uint_eq(
		config_model_find(config, SPAN("claude-opus-4-6"))->minimum_tokens, 4096);
	ck_assert_uint_eq(
		config_model_find(config, SPAN("claude-opus-5"))->minimum_tokens, 512);
	ck_assert_str_eq(config_model_find(config, SPAN("claude-sonnet-4"))->class_name,
	                 "sonnet-4");
	ck_assert(config_model_find(config, SPAN("gpt-5.6"))->breakpoint);
	ck_assert(!config_model_find(config, SPAN("gpt-5.5"))->breakpoint);
	ck_assert_str_eq(config_model_find(config, SPAN("llama"))->class_name, "default");
	ck_assert_uint_eq(config->pools_count, 2);
	ck_assert_str_eq(config->pools[0].match_route, "x-*");
	ck_assert_str_eq(config->pools[0].match_upstream, "*");
	ck_assert_str_eq(config->pools[1].match_upstream, "up");
	config_destroy(config);
}
END_TEST

START_TEST(config_no_built_in_model_hides_a_later_one)
{
	const struct config_model *model;

	for (size_t i = 0; (model = config_models_at(i)) != NULL; i++)
		ck_assert_ptr_eq(config_models_find(span_from(model->match)), model);
}
END_TEST

START_TEST(config_set_takes_flags_by_path)
{
	struct config *config = fresh();

	ck_assert_int_eq(config_set(config, "redis", SPAN("redis://h"), &error), 0);
	ck_assert_int_eq(config_set(config, "scheduler.max_wait", SPAN("10s"), &error),
	                 0);
	ck_assert_uint_eq(config->scheduler.max_wait_ms, 10000);
	ck_assert_int_eq(
		config_set(config, "upstreams.my.host.url", SPAN("http://h"), &error), 0);
	ck_assert_int_eq(
		config_set(config, "upstreams.my.host.auth", SPAN("none"), &error), 0);
	ck_assert_uint_eq(config->upstreams_count, 1);
	ck_assert_str_eq(config->upstreams[0].name, "my.host");
	ck_assert_int_eq(config_finish(config, &error), 0);

	ck_assert_int_eq(config_set(config, "upstreams.x", SPAN("1"), &error),
	                 ERR_MALFORMED);
	ck_assert_int_eq(config_set(config, "nothing", SPAN("1"), &error),
	                 ERR_UNKNOWN_KEY);
	ck_assert_int_eq(config_set(config, "models.x", SPAN("1"), &error),
	                 ERR_UNKNOWN_KEY);
	ck_assert_int_eq(config_set(config, "worker.slots", SPAN("0"), &error),
	                 ERR_LIMIT);
	ck_assert_str_eq(error.message, "worker.slots must be from 1 to 4096");
	config_destroy(config);
}
END_TEST

START_TEST(config_prints_what_it_reads_back)
{
	struct buffer first = BUFFER_INIT(1 << 20), second = BUFFER_INIT(1 << 20);
	struct config *config = parsed(whole), *again;

	ck_assert_int_eq(config_print(config, &first), 0);
	again = parsed(buffer_text(&first));
	ck_assert_int_eq(config_print(again, &second), 0);
	ck_assert_str_eq(buffer_text(&first), buffer_text(&second));
	ck_assert_mem_eq(config, again, sizeof *config);
	config_destroy(config);
	config_destroy(again);
	buffer_fini(&first);
	buffer_fini(&second);
}
END_TEST

START_TEST(config_missing_file_is_an_error_with_its_path)
{
	struct config *config = fresh();

	ck_assert_int_eq(config_load(config, "/nonexistent/warmq.yaml", &error), ERR_IO);
	ck_assert_str_eq(error.message,
	                 "/nonexistent/warmq.yaml: No such file or directory");
	config_destroy(config);
}
END_TEST

static void
source_path(const char *name, char *path, size_t size)
{
	const char *root = getenv("SOURCE_ROOT");

	(void)snprintf(path, size, "%s/%s", root ? root : ".", name);
}

START_TEST(config_the_sample_is_valid_and_names_every_section)
{
	struct config *config = fresh();
	char path[512];

	source_path("deploy/warmq.yaml", path, sizeof path);
	ck_assert_msg(config_load(config, path, &error) == 0, "%s", error.message);
	ck_assert_msg(config_finish(config, &error) == 0, "%s", error.message);
	ck_assert_uint_gt(config->upstreams_count, 0);
	ck_assert_uint_gt(config->upstreams[0].class_limits_count, 0);
	ck_assert_uint_gt(config->models_count, 0);
	ck_assert_uint_gt(config->pools_count, 0);
	config_destroy(config);
}
END_TEST

#define REFERENCE_BEGIN "<!-- reference: begin -->\n"
#define REFERENCE_END   "<!-- reference: end -->\n"

static void
read_file(const char *path, struct buffer *out)
{
	FILE *file = fopen(path, "re");
	char *to = buffer_reserve(out, 1 << 19);

	ck_assert_msg(file != NULL, "%s", path);
	buffer_commit(out, fread(to, 1, 1 << 19, file));
	ck_assert_int_eq(fclose(file), 0);
}

/* UPDATE=1 writes the tables anew. */
START_TEST(config_the_manual_has_the_table_as_it_is)
{
	struct buffer manual = BUFFER_INIT(1 << 20), reference = BUFFER_INIT(1 << 20);
	const char *begin, *end;
	char path[512];
	FILE *file;

	source_path("docs/CONFIG.md", path, sizeof path);
	read_file(path, &manual);
	ck_assert_int_eq(config_print_reference(&reference), 0);
	begin = strstr(buffer_text(&manual), REFERENCE_BEGIN);
	end = strstr(buffer_text(&manual), REFERENCE_END);
	ck_assert_ptr_nonnull(begin);
	ck_assert_ptr_nonnull(end);
	begin += strlen(REFERENCE_BEGIN);
	if (getenv("UPDATE")) {
		file = fopen(path, "we");
		ck_assert_ptr_nonnull(file);
		(void)fprintf(file, "%.*s%s%s", (int)(begin - buffer_text(&manual)),
		              buffer_text(&manual), buffer_text(&reference), end);
		ck_assert_int_eq(fclose(file), 0);
	} else {
		ck_assert_msg(
			reference.len == (size_t)(end - begin) &&
				memcmp(begin, reference.data, reference.len) == 0,
			"docs/CONFIG.md is out of date: UPDATE=1 meson test config");
	}
	buffer_fini(&manual);
	buffer_fini(&reference);
}
END_TEST

/* ---- prices by date -------------------------------------------------------------- */

START_TEST(config_prices_have_a_day_from_which_they_count)
{
	struct config *config = parsed("models:\n"
	                               "  - match: claude-x*\n"
	                               "    price_input: 3\n"
	                               "    prices:\n"
	                               "      - from: 2026-10-01\n"
	                               "        price_input: 2.5\n"
	                               "        read_multiplier: 0.05\n"
	                               "      - from: 2027-02-28\n"
	                               "        price_input: 2\n");
	const struct config_model *model = &config->models[0];

	ck_assert_uint_eq(model->prices_count, 2);
	ck_assert_uint_eq(model->prices[0].from_ms, 1790812800000);
	ck_assert_uint_eq(model->prices[0].input, 2500000);
	ck_assert_uint_eq(model->prices[0].read_multiplier, 50);
	ck_assert_uint_eq(model->prices[0].write_multiplier, 1250);
	ck_assert_uint_eq(model->prices[1].from_ms, 1803772800000);
	config_destroy(config);
}
END_TEST

START_TEST(config_every_day_reads_back_as_it_was_written)
{
	static const struct {
		const char *text;
		uint64_t days;
	} days[] = {
		{ "1970-01-02", 1 },     { "1972-02-29", 789 },
		{ "2000-02-29", 11016 }, { "2000-03-01", 11017 },
		{ "2026-12-31", 20818 }, { "2100-02-28", 47540 },
		{ "2100-03-01", 47541 }, { "9999-12-31", 2932896 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(days); i++) {
		char text[200];
		struct buffer out = BUFFER_INIT(1 << 20);
		struct config *config;

		(void)snprintf(text, sizeof(text),
		               "models:\n  - match: a\n    prices:\n      - from: %s\n",
		               days[i].text);
		config = parsed(text);
		ck_assert_uint_eq(config->models[0].prices[0].from_ms,
		                  days[i].days * 86400000);
		ck_assert_int_eq(config_print(config, &out), 0);
		ck_assert_ptr_nonnull(strstr(buffer_text(&out), days[i].text));
		buffer_fini(&out);
		config_destroy(config);
	}
}
END_TEST

START_TEST(config_prices_stand_in_the_order_of_their_days)
{
	unfinished("models: [{match: a, prices: [{price_input: 3}]}]",
	           "has a price without from");
	unfinished(
		"models: [{match: a, prices: [{from: 2026-02-01}, {from: 2026-02-01}]}]",
		"in the order of their days");
}
END_TEST

START_TEST(config_refuses_days_that_there_are_not)
{
	static const char *const bad[] = { "2026-02-29", "2026-13-01", "2026-00-01",
		                           "2026-1-1",   "26-01-01",   "today",
		                           "2026-04-31", "1969-12-31", "2100-02-29" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text),
		               "models: [{match: a, prices: [{from: %s}]}]", bad[i]);
		refused(text, ERR_MALFORMED, 1, "must be a day of the calendar");
	}
}
END_TEST

SUITE_MAIN("config", config_without_a_file_has_all_defaults, config_reads_a_whole_file,
           config_derives_by_dialect_and_host_what_is_not_said,
           config_unknown_keys_are_errors_with_line_and_nearest_key,
           config_durations_and_sizes_need_units, config_secrets_never_stand_in_the_file,
           config_says_what_kind_of_value_it_wants, config_says_no_thing_twice,
           config_broken_yaml_is_reported_with_its_line,
           config_too_deep_a_nesting_is_refused_at_once,
           config_too_many_entries_are_refused_not_dropped,
           config_finish_checks_what_needs_to_be_seen_whole,
           config_first_match_wins_and_the_built_in_table_ends_in_everything,
           config_no_built_in_model_hides_a_later_one, config_set_takes_flags_by_path,
           config_prints_what_it_reads_back,
           config_missing_file_is_an_error_with_its_path,
           config_the_sample_is_valid_and_names_every_section,
           config_the_manual_has_the_table_as_it_is,
           config_prices_have_a_day_from_which_they_count,
           config_every_day_reads_back_as_it_was_written,
           config_refuses_days_that_there_are_not,
           config_prices_stand_in_the_order_of_their_days)
