/* upstream.h - the providers of the configuration, ready to be called, with their keys.
 *
 * Keys come from the environment or a file and from nowhere else.  They are kept in one
 * locked page that is left out of core dumps, wiped at the end, and stand nowhere else:
 * not in the environment that handlers inherit, not in logs, not in messages. */
#ifndef WORKER_UPSTREAM_H
#define WORKER_UPSTREAM_H

#include "common/base.h"
#include "common/codec/dialect.h"
#include "common/error.h"
#include "common/io/config.h"

#define UPSTREAM_ERROR_SIZE  768
#define UPSTREAM_HEADERS_MAX (2 * CONFIG_HEADERS_MAX + 8)
#define UPSTREAM_KEYS_MAX    (CONFIG_HEADERS_MAX + 1)

struct upstream {
	const struct config_upstream *config;
	enum dialect dialect;
	char url[2 * CONFIG_TEXT_SIZE + CONFIG_TEXT_SIZE + 2]; /* base, path, query */
	const char *lines[UPSTREAM_HEADERS_MAX]; /* "name: value", with the keys */
	size_t lines_count;
	const char *keys[UPSTREAM_KEYS_MAX]; /* what is secret, within its line */
	size_t keys_count;
};

struct upstream_list {
	const struct config *config;
	struct upstream *upstreams;
	size_t count;
	char *texts; /* header lines without secrets */
	size_t texts_size, texts_used;
	char *secrets; /* the locked pages */
	size_t secrets_size, secrets_used;
};

/* Reads all keys; `config` is borrowed until upstream_close.  With `needs_keys` a missing
 * one is ERR_NOT_FOUND, and `reterr` names the variable or file to set; else ERR_MEMORY.
 * Variables that held keys are wiped and unset, whatever is answered. */
MUST_USE int upstream_open(const struct config *config, bool needs_keys,
                           struct upstream_list *ret_list,
                           char reterr[UPSTREAM_ERROR_SIZE]);
void upstream_close(struct upstream_list *list);

/* Overwrites every key that stands in `bytes`, however JSON may escape it: providers say
 * them back in errors. */
void upstream_redact(const struct upstream_list *list, char *bytes, size_t len);

/* NULL if there is none of that name. */
const struct upstream *upstream_find(const struct upstream_list *list, struct span name);

/* What to add to requests for this model. */
struct dialect_traits upstream_traits(const struct upstream_list *list,
                                      const struct upstream *upstream, struct span model);

/* May a job ask for this beta? */
bool upstream_allows_beta(const struct upstream *upstream, struct span beta);

#endif
