/* catalog.h - the models a simulated provider offers, their limits, and who may ask.
 *
 *   "models":  [{"name": "claude-opus-*", "class": "opus", "minimum_tokens": 4096}]
 *   "classes": [{"name": "opus", "itpm": 450000, "otpm": 90000}]
 *   "keys":    [{"key": "sk-a", "workspace": "red", "account": "acme"}]
 *
 * Models are patterns, first match wins; the built-in table (vendors' pages of autumn
 * 2026) is used if the file lists none.  Without keys everybody is let in, as one
 * account and workspace.  Keys are compared and forgotten: nothing here prints them.
 *
 * Filled at start from the file of --config, never changed after. */
#ifndef PROVIDER_CATALOG_H
#define PROVIDER_CATALOG_H

#include "common/base.h"
#include "common/error.h"
#include "provider/model/engine.h"
#include "provider/settings.h"

#include <jansson.h>

#define CATALOG_MODELS_MAX 64
#define CATALOG_KEYS_MAX   64
#define CATALOG_NAME_SIZE  64
#define CATALOG_KEY_SIZE   256

enum catalog_tier {
	CATALOG_TIER_TOOLS,
	CATALOG_TIER_SYSTEM,
	CATALOG_TIER_MESSAGES,
	CATALOG_TIER_COUNT,
};

struct catalog_model {
	char name[CATALOG_NAME_SIZE]; /* with * and ? */
	uint32_t class;
	uint32_t minimum_tokens;
	uint32_t step_tokens; /* of implicit mode */
	enum cache_mode chat; /* how /v1/chat/completions caches; messages use markers */
	enum catalog_tier thinking; /* where thinking and effort enter the prompt */
	bool strips_thinking;       /* a plain user turn drops earlier thinking blocks */
};

struct catalog_class {
	char name[CATALOG_NAME_SIZE];
	uint32_t per_minute[LIMIT_BUCKET_COUNT]; /* UINT32_MAX: the knob of that name */
	bool reads_charged;
	bool output_joined;
};

struct catalog_key {
	char key[CATALOG_KEY_SIZE];
	char workspace[CATALOG_NAME_SIZE];
	char account[CATALOG_NAME_SIZE];
};

struct catalog {
	struct catalog_model models[CATALOG_MODELS_MAX];
	struct catalog_class classes[ENGINE_CLASSES_MAX];
	struct catalog_key keys[CATALOG_KEYS_MAX];
	uint32_t models_count;
	uint32_t classes_count;
	uint32_t keys_count;
};

void catalog_init(struct catalog *catalog);

/* Takes "models", "classes" and "keys" of a document; other members are ignored.
 * ERR_MALFORMED, ERR_LIMIT or ERR_UNKNOWN_KEY with a sentence; the catalog is then not
 * to be used. */
MUST_USE int catalog_load(struct catalog *catalog, const json_t *object,
                          struct settings_error *reterr);

/* NULL if no pattern matches. */
const struct catalog_model *catalog_find_model(const struct catalog *catalog,
                                               struct span name);

/* The key's entry; an entry for everybody if there are no keys; NULL for a key that is
 * not listed. */
const struct catalog_key *catalog_find_key(const struct catalog *catalog,
                                           struct span key);

/* Puts the limits of the classes over those of the knobs. */
void catalog_to_engine(const struct catalog *catalog, struct engine_config *config);

#endif
