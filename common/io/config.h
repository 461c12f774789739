/* config.h - one warmq.yaml: what may be reached, how it is paced, who drains what.
 *
 *   file ── config_load ──┐
 *   defaults ─────────────┼──► struct config ── config_finish ──► checked, derived
 *   flags ── config_set ──┘
 *
 * Scheduler and worker read the same file.  It never holds a secret: an upstream names
 * the environment variable (`key_env`, `headers_env`) or the file (`key_file`) that has
 * its key.  A missing file is fine: defaults plus flags must be enough.
 *
 * One table (config_table.c) lists every key with type, limits, default as text, unit
 * and help.  It feeds the parser, the defaults, config_print and the tables in
 * docs/CONFIG.md.  Unknown keys are errors with line and nearest key; durations and sizes
 * need units.  docs/CONFIG.md is the manual.
 *
 * The struct is large (about a megabyte) and plain: config_create, config_destroy.  After
 * config_finish nothing changes it. */
#ifndef COMMON_IO_CONFIG_H
#define COMMON_IO_CONFIG_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

#define CONFIG_UPSTREAMS_MAX 64
#define CONFIG_MODELS_MAX    128 /* of the file; built-in ones come on top */
#define CONFIG_POOLS_MAX     64
#define CONFIG_CLASSES_MAX   16 /* limits per upstream */
#define CONFIG_PRICES_MAX    8  /* of a model, by date */
#define CONFIG_HEADERS_MAX   16
#define CONFIG_BETAS_MAX     16
#define CONFIG_HOSTS_MAX     16
#define CONFIG_HANDLER_MAX   32 /* words of the handler's command line */
#define CONFIG_FILE_SIZE_MAX ((size_t)1 << 20)

#define CONFIG_NAME_SIZE      129 /* with the zero */
#define CONFIG_NAMESPACE_SIZE 65
#define CONFIG_TEXT_SIZE      513
#define CONFIG_HEADER_SIZE    513

enum config_dialect {
	CONFIG_DIALECT_ANTHROPIC,
	CONFIG_DIALECT_OPENAI_CHAT,
	CONFIG_DIALECT_RAW,
	CONFIG_DIALECT_COUNT,
};

enum config_auth {
	CONFIG_AUTH_NONE,
	CONFIG_AUTH_X_API_KEY, /* x-api-key: KEY */
	CONFIG_AUTH_BEARER,    /* authorization: Bearer KEY */
	CONFIG_AUTH_API_KEY,   /* api-key: KEY */
	CONFIG_AUTH_COUNT,
};

enum config_evidence {
	CONFIG_EVIDENCE_EXACT,       /* usage is proof, in both directions */
	CONFIG_EVIDENCE_BEST_EFFORT, /* a miss proves nothing */
	CONFIG_EVIDENCE_COUNT,
};

enum config_proof {
	CONFIG_PROOF_NONE,   /* open when the writer's first event arrives */
	CONFIG_PROOF_CANARY, /* one job must be seen to read before the others start */
	CONFIG_PROOF_COUNT,
};

enum config_switch {
	CONFIG_SWITCH_NEVER,
	CONFIG_SWITCH_AUTO,
	CONFIG_SWITCH_COUNT,
};

/* What the account may use per minute for one class of models; 0 = not known, and then
 * learned from the provider's headers. */
struct config_class_limit {
	char class_name[CONFIG_NAME_SIZE];
	uint64_t rpm;  /* requests */
	uint64_t itpm; /* input tokens */
	uint64_t otpm; /* output tokens */
	uint64_t concurrency;
};

struct config_header {
	char name[CONFIG_NAME_SIZE];
	char value[CONFIG_HEADER_SIZE];
};

struct config_upstream {
	char name[CONFIG_NAME_SIZE];
	char url[CONFIG_TEXT_SIZE];  /* http(s)://host[:port][/base], without a final / */
	char path[CONFIG_TEXT_SIZE]; /* begins with / */
	char query[CONFIG_TEXT_SIZE]; /* without the ?; may be empty */
	enum config_dialect dialect;
	enum config_auth auth;
	char key_env[CONFIG_NAME_SIZE];
	char key_file[CONFIG_TEXT_SIZE];
	struct config_header headers[CONFIG_HEADERS_MAX];
	size_t headers_count;
	struct config_header headers_env[CONFIG_HEADERS_MAX]; /* value: of a variable */
	size_t headers_env_count;
	char account[CONFIG_NAME_SIZE]; /* budgets are per account and class */
	char betas[CONFIG_BETAS_MAX][CONFIG_NAME_SIZE]; /* what jobs may ask for */
	size_t betas_count;
	enum config_switch markers; /* may we insert cache markers? */
	uint64_t ttl_ms; /* life of a cache entry from the start of its last use */
	struct config_class_limit class_limits[CONFIG_CLASSES_MAX];
	size_t class_limits_count;
	enum config_evidence evidence;
	char usage_path[CONFIG_TEXT_SIZE]; /* raw: where the answer has its usage */
	enum config_switch stream;         /* always stream upstream? */
	uint64_t first_byte_ms;            /* of a streamed answer, at the latest */
	enum config_proof proof;
	uint64_t pace_start; /* concurrent starts before any evidence */
	uint64_t hold_max_ms;
};

/* What a model costs from a day on, midnight UTC. */
struct config_price {
	uint64_t from_ms; /* since 1970; 0 = not given */
	uint64_t input, output;
	uint64_t write_multiplier;
	uint64_t write_multiplier_1h;
	uint64_t read_multiplier;
};

/* Prices are in millionths of a dollar per million tokens ("3" is 3000000), multipliers
 * in thousandths (1.25 is 1250).  0 as a price = unknown: no dollars are shown. */
struct config_model {
	char match[CONFIG_NAME_SIZE]; /* pattern of the model's name as sent */
	char class_name[CONFIG_NAME_SIZE];
	uint64_t minimum_tokens; /* below it nothing is cached */
	uint64_t price_input;
	uint64_t price_output;
	uint64_t write_multiplier;
	uint64_t write_multiplier_1h;
	uint64_t read_multiplier;
	bool cache_key;  /* openai-chat: add prompt_cache_key where the job has none */
	bool breakpoint; /* openai-chat: add a prompt_cache_breakpoint */
	struct config_price prices[CONFIG_PRICES_MAX]; /* later ones, by date */
	size_t prices_count;
};

/* Routes and upstreams whose jobs this pool drains; both patterns must match. */
struct config_pool {
	char name[CONFIG_NAME_SIZE];
	char match_route[CONFIG_NAME_SIZE];
	char match_upstream[CONFIG_NAME_SIZE];
};

struct config_scheduler {
	char listen[CONFIG_NAME_SIZE]; /* address:port, or "off" */
	uint64_t max_wait_ms;          /* a family that waits longer goes next */
	uint64_t families_max;
	uint64_t job_size_max;
	uint64_t result_ttl_ms;
	char token_env[CONFIG_NAME_SIZE];  /* whose value the pages' actions need */
	char token_file[CONFIG_TEXT_SIZE]; /* or the first line of this file */
	bool read_only;                    /* no actions, whatever the token */
	bool reveal;                       /* with the token, prompts may be read */
	char hosts[CONFIG_HOSTS_MAX][CONFIG_NAME_SIZE]; /* names the pages go by */
	size_t hosts_count;
};

struct config_worker {
	char pool[CONFIG_NAME_SIZE];
	uint64_t slots;
	char handler[CONFIG_HANDLER_MAX]
		    [CONFIG_TEXT_SIZE]; /* command of your own program */
	size_t handler_count;           /* 0 = none */
	char listen[CONFIG_NAME_SIZE];  /* health; "off" */
	uint64_t connect_timeout_ms;
	uint64_t timeout_ms; /* of a warm-up; a job's own is cut to this or 1 h */
	uint64_t drain_ms;   /* after SIGTERM, before the rest is given back */
	uint64_t response_size_max;
};

struct config {
	char namespace[CONFIG_NAMESPACE_SIZE]; /* what all keys in Redis begin with */
	char redis[CONFIG_TEXT_SIZE];          /* see redis_url.h */
	char state_dir[CONFIG_TEXT_SIZE];
	int log_format;                                         /* 1: json */
	int log_level;                                          /* enum log_level */
	struct config_upstream upstreams[CONFIG_UPSTREAMS_MAX]; /* in order of the file */
	size_t upstreams_count;
	struct config_model models[CONFIG_MODELS_MAX];
	size_t models_count;
	struct config_pool pools[CONFIG_POOLS_MAX];
	size_t pools_count;
	struct config_scheduler scheduler;
	struct config_worker worker;
};

struct config_error {
	uint32_t line;     /* 1-based; 0 = not about a line */
	char message[512]; /* a sentence for people, with file and line in front */
};

/* All defaults, no upstreams.  NULL only when memory is out.  destroy takes NULL and
 * answers NULL. */
struct config *config_create(void);
struct config *config_destroy(struct config *config);

/* Reads on top of what is there.  On any error the config is as before. */
MUST_USE int config_load(struct config *config, const char *path,
                         struct config_error *reterr);
MUST_USE int config_parse(struct config *config, struct span text, const char *name,
                          struct config_error *reterr);

/* The file to read: `given` if not NULL, else $WARMQ_CONFIG, ./warmq.yaml,
 * /etc/warmq/warmq.yaml, whichever exists first; NULL = none, go on with defaults. */
const char *config_find(const char *given);

/* One value from a flag or the environment: "scheduler.max_wait" and "10s", or
 * "upstreams.local.url"; an upstream not yet there is added. */
MUST_USE int config_set(struct config *config, const char *path, struct span value,
                        struct config_error *reterr);

/* Fills what depends on other keys (path by dialect, account by name, ...) and checks
 * what needs to be seen whole.  Call once, last. */
MUST_USE int config_finish(struct config *config, struct config_error *reterr);

/* The header that carries the key; "" if there is none. */
const char *config_auth_header(enum config_auth auth);

/* The host of http(s)://host[:port][/base]; ERR_MALFORMED of anything else, such as a URL
 * with a user, a query or a fragment. */
MUST_USE int config_url_host(struct span url, struct span *ret_host);

/* First match in the file, then the built-in table, whose last entry is "*". */
const struct config_model *config_model_find(const struct config *config,
                                             struct span model);

/* The whole effective configuration as YAML that config_parse reads back; the table of
 * all keys as Markdown, as docs/CONFIG.md has it. */
int config_print(const struct config *config, struct buffer *out);
int config_print_reference(struct buffer *out);

#endif
