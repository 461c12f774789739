#include "common/io/config_table.h"

#include "common/io/config_value.h"
#include "common/io/redis_url.h"

static const char *const dialect_words[] = { "anthropic", "openai-chat", "raw", NULL };
static const char *const auth_words[] = { "none", "x-api-key", "bearer", "api-key",
	                                  NULL };
static const char *const evidence_words[] = { "exact", "best_effort", NULL };
static const char *const proof_words[] = { "none", "canary", NULL };
static const char *const switch_words[] = { "never", "auto", NULL };
static const char *const format_words[] = { "text", "json", NULL };
static const char *const level_words[] = { "debug", "info", "warning", "error", NULL };

#define MINUTE_MS ((uint64_t)60000)
#define DAY_MS    (1440 * MINUTE_MS)

#define FIELD(type, field) \
	.offset = offsetof(struct type, field), .size = sizeof(((struct type *)0)->field)
#define LIST(type, field)                             \
	.offset = offsetof(struct type, field),       \
	.size = sizeof(((struct type *)0)->field[0]), \
	.count_offset = offsetof(struct type, field##_count)
#define ROW(section_, kind_, name_) \
	.section = CONFIG_SECTION_##section_, .kind = CONFIG_KIND_##kind_, .name = name_

/* In the order in which they are printed and explained. */
const struct config_key config_table_keys[] = {
	{ ROW(ROOT, NAME, "namespace"), FIELD(config, namespace), .initial = "warmq",
	  .help = "What every key in Redis begins with." },
	{ ROW(ROOT, TEXT, "redis"), FIELD(config, redis), .min = 1,
	  .initial = REDIS_URL_DEFAULT,
	  .help = "Where Redis is: `redis://[user:password@]host[:port][/db]` or "
	          "`unix://[user:password@]/path[?db=n]`. `WARMQ_REDIS` in the "
	          "environment wins." },
	{ ROW(ROOT, TEXT, "state_dir"), FIELD(config, state_dir), .min = 1,
	  .initial = "/var/lib/warmq",
	  .help = "Where a worker keeps paid-for results that it could not deliver "
	          "yet." },

	{ ROW(ROOT, WORD, "log_format"), FIELD(config, log_format), .initial = "text",
	  .words = format_words,
	  .help = "What lines of the log look like: `key=value`, or an object each. "
	          "`--log-json` wins." },
	{ ROW(ROOT, WORD, "log_level"), FIELD(config, log_level), .initial = "info",
	  .words = level_words,
	  .help = "What is logged: this and what is worse. `--log-level` wins." },

	{ ROW(UPSTREAM, TEXT, "url"), FIELD(config_upstream, url), .min = 1,
	  .depends = "required",
	  .help = "Where requests go: `https://host[:port][/base]`." },
	{ ROW(UPSTREAM, TEXT, "path"), FIELD(config_upstream, path),
	  .depends = "`/v1/messages` (anthropic), `/v1/chat/completions` (openai-chat), "
	             "`/` (raw)",
	  .help = "Appended to the URL." },
	{ ROW(UPSTREAM, TEXT, "query"), FIELD(config_upstream, query), .initial = "",
	  .help = "Query string without its `?`, such as `api-version=2026-01-01`." },
	{ ROW(UPSTREAM, WORD, "dialect"), FIELD(config_upstream, dialect),
	  .initial = "anthropic", .words = dialect_words,
	  .help = "What requests and answers look like." },
	{ ROW(UPSTREAM, WORD, "auth"), FIELD(config_upstream, auth), .words = auth_words,
	  .depends = "`x-api-key` (anthropic), `bearer` (openai-chat), `none` (raw)",
	  .help = "The header that carries the key." },
	{ ROW(UPSTREAM, NAME, "key_env"), FIELD(config_upstream, key_env),
	  .depends = "none",
	  .help = "The environment variable of the worker that has the key." },
	{ ROW(UPSTREAM, TEXT, "key_file"), FIELD(config_upstream, key_file),
	  .initial = "",
	  .help = "The file whose first line is the key. A key never stands in this file "
	          "and never in Redis." },
	{ ROW(UPSTREAM, HEADERS, "headers"), LIST(config_upstream, headers),
	  .max = CONFIG_HEADERS_MAX, .initial = "",
	  .help = "Further headers, name and value. None that carries a secret: with "
	          "`key`, `token`, `auth` or the like as a word of its name: those are "
	          "for "
	          "`headers_env`." },
	{ ROW(UPSTREAM, HEADERS_ENV, "headers_env"), LIST(config_upstream, headers_env),
	  .max = CONFIG_HEADERS_MAX, .initial = "",
	  .help = "Further headers that carry a secret, such as a gateway's own key: "
	          "name, and the environment variable of the worker that has the whole "
	          "value." },
	{ ROW(UPSTREAM, NAME, "account"), FIELD(config_upstream, account),
	  .depends = "the upstream's name",
	  .help = "Upstreams with the same account share their limits." },
	{ ROW(UPSTREAM, LIST, "betas"), LIST(config_upstream, betas),
	  .max = CONFIG_BETAS_MAX, .initial = "",
	  .help = "The `anthropic-beta` values that jobs may ask for." },
	{ ROW(UPSTREAM, WORD, "markers"), FIELD(config_upstream, markers),
	  .words = switch_words,
	  .depends = "`auto` for api.anthropic.com and api.openai.com, else `never`",
	  .help = "`auto`: insert cache markers where they pay. Set it for a compatible "
	          "server that is known to understand them." },
	{ ROW(UPSTREAM, DURATION, "ttl"), FIELD(config_upstream, ttl_ms), .min = 1000,
	  .max = DAY_MS, .initial = "5m",
	  .help = "How long a cache entry lives after the start of its last use. Above "
	          "`5m`, inserted markers ask for an hour." },
	{ ROW(UPSTREAM, WORD, "evidence"), FIELD(config_upstream, evidence),
	  .words = evidence_words, .depends = "`exact` (anthropic), else `best_effort`",
	  .help = "`exact`: reported usage proves a hit and a miss. `best_effort`: a "
	          "miss "
	          "proves nothing." },
	{ ROW(UPSTREAM, TEXT, "usage_path"), FIELD(config_upstream, usage_path),
	  .initial = "",
	  .help = "For `raw`: the path of the usage object in the answer, such as "
	          "`meta.usage`. Empty: usage is unknown." },
	{ ROW(UPSTREAM, WORD, "stream"), FIELD(config_upstream, stream),
	  .words = switch_words, .initial = "auto",
	  .help = "`auto`: always stream from the provider, where the dialect can, and "
	          "give each job the shape it asked for." },
	{ ROW(UPSTREAM, DURATION, "first_byte"), FIELD(config_upstream, first_byte_ms),
	  .min = 1000, .max = DAY_MS, .depends = "`2m` (anthropic), else `24h`",
	  .help = "A streamed request of whose answer no byte has come for so long is "
	          "given up, as by a time-out; a longer one than the job's `timeout` "
	          "is none." },
	{ ROW(UPSTREAM, WORD, "proof"), FIELD(config_upstream, proof),
	  .words = proof_words, .depends = "`canary` (anthropic), else `none`",
	  .help = "`canary`: one job must be seen to read the cache before the others "
	          "start." },
	{ ROW(UPSTREAM, INTEGER, "pace_start"), FIELD(config_upstream, pace_start),
	  .min = 1, .max = 100000, .initial = "32",
	  .help = "Concurrent requests before there is any evidence; doubles on "
	          "success." },
	{ ROW(UPSTREAM, DURATION, "hold_max"), FIELD(config_upstream, hold_max_ms),
	  .max = DAY_MS, .initial = "30s",
	  .help = "How long the cache alone may hold a job back; `0s` = never. A job may "
	          "ask for less." },

	{ ROW(CLASS_LIMIT, INTEGER, "rpm"), FIELD(config_class_limit, rpm),
	  .max = UINT32_MAX, .initial = "0",
	  .help = "Requests per minute; 0 = learn it from the provider's headers, "
	          "and none where they do not tell it." },
	{ ROW(CLASS_LIMIT, INTEGER, "itpm"), FIELD(config_class_limit, itpm),
	  .max = (uint64_t)1 << 40, .initial = "0", .help = "Input tokens per minute." },
	{ ROW(CLASS_LIMIT, INTEGER, "otpm"), FIELD(config_class_limit, otpm),
	  .max = (uint64_t)1 << 40, .initial = "0", .help = "Output tokens per minute." },
	{ ROW(CLASS_LIMIT, INTEGER, "concurrency"),
	  FIELD(config_class_limit, concurrency), .max = 1000000, .initial = "0",
	  .help = "Requests at the same time; 0 = no limit." },

	{ ROW(MODEL, TEXT, "match"), FIELD(config_model, match), .min = 1,
	  .depends = "required",
	  .help = "Pattern of the model's name as the job sends it; `*` and `?`." },
	{ ROW(MODEL, NAME, "class"), FIELD(config_model, class_name),
	  .initial = "default",
	  .help = "Models of one class share the account's limits." },
	{ ROW(MODEL, INTEGER, "minimum_tokens"), FIELD(config_model, minimum_tokens),
	  .max = 1000000, .initial = "1024",
	  .help = "A shorter prefix is never cached." },
	{ ROW(MODEL, PRICE, "price_input"), FIELD(config_model, price_input),
	  .max = (uint64_t)1000000 * 100000, .initial = "0",
	  .help = "Dollars per million input tokens; 0 = unknown, no dollars are "
	          "shown." },
	{ ROW(MODEL, PRICE, "price_output"), FIELD(config_model, price_output),
	  .max = (uint64_t)1000000 * 100000, .initial = "0",
	  .help = "Dollars per million output tokens." },
	{ ROW(MODEL, MULTIPLIER, "write_multiplier"),
	  FIELD(config_model, write_multiplier), .max = 100000, .initial = "1.25",
	  .help = "Price of a written token, in input tokens." },
	{ ROW(MODEL, MULTIPLIER, "write_multiplier_1h"),
	  FIELD(config_model, write_multiplier_1h), .max = 100000, .initial = "2",
	  .help = "The same for an entry that lives an hour." },
	{ ROW(MODEL, MULTIPLIER, "read_multiplier"), FIELD(config_model, read_multiplier),
	  .max = 100000, .initial = "0.1",
	  .help = "Price of a read token, in input tokens." },
	{ ROW(MODEL, BOOL, "cache_key"), FIELD(config_model, cache_key),
	  .initial = "false",
	  .help = "openai-chat: add a `prompt_cache_key` to jobs that have none." },
	{ ROW(MODEL, BOOL, "breakpoint"), FIELD(config_model, breakpoint),
	  .initial = "false", .help = "openai-chat: add a `prompt_cache_breakpoint`." },

	{ ROW(PRICE, DATE, "from"), FIELD(config_price, from_ms), .min = 1,
	  .max = UINT64_MAX, .depends = "required",
	  .help = "The day from which on it counts, such as `2026-10-01` (UTC)." },
	{ ROW(PRICE, PRICE, "price_input"), FIELD(config_price, input),
	  .max = (uint64_t)1000000 * 100000, .initial = "0",
	  .help = "As above, and so are all below." },
	{ ROW(PRICE, PRICE, "price_output"), FIELD(config_price, output),
	  .max = (uint64_t)1000000 * 100000, .initial = "0",
	  .help = "Dollars per million output tokens." },
	{ ROW(PRICE, MULTIPLIER, "write_multiplier"),
	  FIELD(config_price, write_multiplier), .max = 100000, .initial = "1.25",
	  .help = "Price of a written token, in input tokens." },
	{ ROW(PRICE, MULTIPLIER, "write_multiplier_1h"),
	  FIELD(config_price, write_multiplier_1h), .max = 100000, .initial = "2",
	  .help = "The same for an entry that lives an hour." },
	{ ROW(PRICE, MULTIPLIER, "read_multiplier"), FIELD(config_price, read_multiplier),
	  .max = 100000, .initial = "0.1",
	  .help = "Price of a read token, in input tokens." },

	{ ROW(POOL, NAME, "name"), FIELD(config_pool, name), .depends = "required",
	  .help = "What `worker.pool` says. Several entries may have the same name." },
	{ ROW(POOL, PAIR, "match"), FIELD(config_pool, match_route), .initial = "*, *",
	  .help = "Patterns of route and upstream; both must match." },

	{ ROW(SCHEDULER, TEXT, "listen"), FIELD(config_scheduler, listen), .min = 1,
	  .initial = "127.0.0.1:9310",
	  .help = "Address of the HTTP pages; `off` = none." },
	{ ROW(SCHEDULER, DURATION, "max_wait"), FIELD(config_scheduler, max_wait_ms),
	  .min = 1000, .max = 7 * DAY_MS, .initial = "300s",
	  .help = "A family that has waited longer goes next, out of drain order." },
	{ ROW(SCHEDULER, INTEGER, "families_max"), FIELD(config_scheduler, families_max),
	  .min = 16, .max = 1000000, .initial = "20000",
	  .help = "Families in memory at the same time; memory is taken at the start." },
	{ ROW(SCHEDULER, SIZE, "job_size_max"), FIELD(config_scheduler, job_size_max),
	  .min = 1024, .max = (uint64_t)256 << 20, .initial = "8m",
	  .help = "A larger job ends dead." },
	{ ROW(SCHEDULER, DURATION, "result_ttl"), FIELD(config_scheduler, result_ttl_ms),
	  .min = 1000, .max = 30 * DAY_MS, .initial = "24h",
	  .help = "How long a result waits to be fetched." },
	{ ROW(SCHEDULER, NAME, "token_env"), FIELD(config_scheduler, token_env),
	  .initial = "WARMQ_TOKEN",
	  .help = "The environment variable of the scheduler that has the token which "
	          "actions on the pages need. Without a token the pages are only read." },
	{ ROW(SCHEDULER, TEXT, "token_file"), FIELD(config_scheduler, token_file),
	  .initial = "", .help = "The file whose first line is that token." },
	{ ROW(SCHEDULER, BOOL, "read_only"), FIELD(config_scheduler, read_only),
	  .initial = "false", .help = "Refuse actions even with the token." },
	{ ROW(SCHEDULER, BOOL, "reveal"), FIELD(config_scheduler, reveal),
	  .initial = "false",
	  .help = "Let those who have the token read the text of prefixes." },
	{ ROW(SCHEDULER, LIST, "hosts"), LIST(config_scheduler, hosts),
	  .max = CONFIG_HOSTS_MAX, .initial = "",
	  .help = "Host names by which the pages may be asked for, besides "
	          "`localhost` and IP addresses." },

	{ ROW(WORKER, NAME, "pool"), FIELD(config_worker, pool), .initial = "default",
	  .help = "The pool whose jobs this worker runs." },
	{ ROW(WORKER, INTEGER, "slots"), FIELD(config_worker, slots), .min = 1,
	  .max = 4096, .initial = "100", .help = "Jobs at the same time." },
	{ ROW(WORKER, LIST, "handler"), LIST(config_worker, handler),
	  .max = CONFIG_HANDLER_MAX, .initial = "",
	  .help = "Command line of a program that runs jobs in place of the HTTP "
	          "client." },
	{ ROW(WORKER, TEXT, "listen"), FIELD(config_worker, listen), .min = 1,
	  .initial = "off", .help = "Address of the health page; `off` = none." },
	{ ROW(WORKER, DURATION, "connect_timeout"),
	  FIELD(config_worker, connect_timeout_ms), .min = 100, .max = 10 * MINUTE_MS,
	  .initial = "10s", .help = "To reach the provider." },
	{ ROW(WORKER, DURATION, "timeout"), FIELD(config_worker, timeout_ms), .min = 1000,
	  .max = DAY_MS, .initial = "10m",
	  .help = "Time-out of a warm-up.  A job's own `timeout` is cut to this or "
	          "to an hour, whichever is longer." },
	{ ROW(WORKER, DURATION, "drain"), FIELD(config_worker, drain_ms), .max = DAY_MS,
	  .initial = "30s",
	  .help = "After SIGTERM: how long running jobs may go on before they are given "
	          "back." },
	{ ROW(WORKER, SIZE, "response_size_max"), FIELD(config_worker, response_size_max),
	  .min = 1024, .max = (uint64_t)1 << 30, .initial = "32m",
	  .help = "Of a larger answer, or one above 8 MiB, the job gets no body: "
	          "`result_too_large`." },
};
const size_t config_table_keys_count = ARRAY_SIZE(config_table_keys);

#define GROUP(parent_, child_, shape_, name_)                                 \
	.parent = CONFIG_SECTION_##parent_, .child = CONFIG_SECTION_##child_, \
	.shape = CONFIG_SHAPE_##shape_, .name = name_

const struct config_group config_table_groups[] = {
	{ GROUP(ROOT, UPSTREAM, MAP, "upstreams"), LIST(config, upstreams),
	  .count_max = CONFIG_UPSTREAMS_MAX,
	  .help = "Where requests may go, by the name that jobs use." },
	{ GROUP(UPSTREAM, CLASS_LIMIT, MAP, "class_limits"),
	  LIST(config_upstream, class_limits), .count_max = CONFIG_CLASSES_MAX,
	  .help = "What the account may use, by class of models." },
	{ GROUP(ROOT, MODEL, LIST, "models"), LIST(config, models),
	  .count_max = CONFIG_MODELS_MAX,
	  .help = "Models by pattern; the first match counts, then the built-in ones." },
	{ GROUP(MODEL, PRICE, LIST, "prices"), LIST(config_model, prices),
	  .count_max = CONFIG_PRICES_MAX,
	  .help = "What the model costs from a day on, the oldest first; before the "
	          "first "
	          "day its own `price_input` and so on count. Each token is booked at "
	          "the "
	          "price of the moment." },
	{ GROUP(ROOT, POOL, LIST, "pools"), LIST(config, pools),
	  .count_max = CONFIG_POOLS_MAX,
	  .help = "Who drains what; the first match counts, then the pool `default`." },
	{ GROUP(ROOT, SCHEDULER, ONE, "scheduler"), FIELD(config, scheduler),
	  .help = "For `warmq-scheduler`." },
	{ GROUP(ROOT, WORKER, ONE, "worker"), FIELD(config, worker),
	  .help = "For `warmq-worker`." },
};
const size_t config_table_groups_count = ARRAY_SIZE(config_table_groups);

const struct config_key *
config_table_key(enum config_section section, struct span name)
{
	for (size_t i = 0; i < config_table_keys_count; i++) {
		const struct config_key *key = &config_table_keys[i];

		if (key->section == section && span_equals(name, span_from(key->name)))
			return key;
	}
	return NULL;
}

const struct config_group *
config_table_group(enum config_section section, struct span name)
{
	for (size_t i = 0; i < config_table_groups_count; i++) {
		const struct config_group *group = &config_table_groups[i];

		if (group->parent == section && span_equals(name, span_from(group->name)))
			return group;
	}
	return NULL;
}

/* Levenshtein's distance; names of over 31 bytes are far from everything. */
static size_t
distance(struct span a, struct span b)
{
	size_t row[32];

	if (a.len >= ARRAY_SIZE(row) || b.len >= ARRAY_SIZE(row))
		return SIZE_MAX;
	for (size_t j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 0; i < a.len; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < b.len; j++) {
			size_t replace = diagonal + (a.data[i] != b.data[j]);
			size_t shift = MIN(row[j], row[j + 1]) + 1;

			diagonal = row[j + 1];
			row[j + 1] = MIN(replace, shift);
		}
	}
	return row[b.len];
}

static void
keep_nearer(struct span name, const char *candidate, size_t *best, const char **nearest)
{
	size_t far = distance(name, span_from(candidate));

	if (name.len >= 3 && strncmp(candidate, name.data, name.len) == 0)
		far = MIN(far, 2); /* "key" for key_env is near, too */
	if (far >= *best)
		return;
	*best = far;
	*nearest = candidate;
}

const char *
config_table_nearest(enum config_section section, struct span name)
{
	size_t best = name.len / 3 + 2; /* further off is no typing error */
	const char *nearest = NULL;

	for (size_t i = 0; i < config_table_keys_count; i++)
		if (config_table_keys[i].section == section)
			keep_nearer(name, config_table_keys[i].name, &best, &nearest);
	for (size_t i = 0; i < config_table_groups_count; i++)
		if (config_table_groups[i].parent == section)
			keep_nearer(name, config_table_groups[i].name, &best, &nearest);
	return nearest;
}

void
config_table_initialise(enum config_section section, void *base)
{
	for (size_t i = 0; i < config_table_keys_count; i++)
		if (config_table_keys[i].section == section)
			config_value_initialise(&config_table_keys[i], base);
}

void *
config_table_add_child(const struct config_group *group, void *base)
{
	size_t *count = (size_t *)(void *)((char *)base + group->count_offset);
	char *child;

	if (*count == group->count_max)
		return NULL;
	child = (char *)base + group->offset + *count * group->size;
	memset(child, 0, group->size);
	config_table_initialise(group->child, child);
	(*count)++;
	return child;
}

/* A map's children begin with their name. */
static void *
find_child(const struct config_group *group, void *base, struct span name)
{
	size_t count = *(size_t *)(void *)((char *)base + group->count_offset);

	for (size_t i = 0; i < count; i++) {
		char *child = (char *)base + group->offset + i * group->size;

		if (span_equals(name, span_from(child)))
			return child;
	}
	return NULL;
}

void *
config_table_child(const struct config_group *group, void *base, struct span name)
{
	char *child = find_child(group, base, name);

	if (child)
		return child;
	child = config_table_add_child(group, base);
	if (child)
		memcpy(child, name.data, name.len);
	return child;
}
