#include "common/io/config.h"

#include "common/io/config_models.h"
#include "common/io/config_value.h"
#include "common/io/redis_url.h"
#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The whole prompt has been read when a stream begins: half a minute for the longest.
 * What other servers do with a queue of theirs, nobody knows. */
#define FIRST_BYTE_MS     120000
#define FIRST_BYTE_MS_MAX 86400000

struct config *
config_create(void)
{
	struct config *config = calloc(1, sizeof *config);

	if (!config)
		return NULL;
	config_table_initialise(CONFIG_SECTION_ROOT, config);
	config_table_initialise(CONFIG_SECTION_SCHEDULER, &config->scheduler);
	config_table_initialise(CONFIG_SECTION_WORKER, &config->worker);
	return config;
}

struct config *
config_destroy(struct config *config)
{
	free(config);
	return NULL;
}

const char *
config_find(const char *given)
{
	static const char *const places[] = { "warmq.yaml", "/etc/warmq/warmq.yaml" };
	const char *named = getenv("WARMQ_CONFIG");

	if (given)
		return given;
	if (named && named[0])
		return named;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], F_OK) == 0)
			return places[i];
	return NULL;
}

static int
fail(struct config_error *reterr, int error, const char *what, const char *name,
     const char *reason)
{
	*reterr = (struct config_error){ 0 };
	(void)snprintf(reterr->message, sizeof reterr->message, "%s%s%s %s", what,
	               name ? "." : "", name ? name : "", reason);
	return error;
}

/* `host`, `host:port`, `[address]` or `[address]:port`; what cannot be reached is better
 * refused now than by each job. */
static int
authority_host(struct span authority, struct span *ret_host)
{
	bool bracketed = authority.len > 0 && authority.data[0] == '[';
	const char *end = memchr(authority.data, bracketed ? ']' : ':', authority.len);
	struct span host = authority, rest = { 0 };
	uint64_t port;

	if (bracketed && !end)
		return ERR_MALFORMED;
	if (end) {
		host.len = (size_t)(end - authority.data) + (bracketed ? 1 : 0);
		rest = (struct span){ authority.data + host.len,
			              authority.len - host.len };
	}
	for (size_t i = 0; i < host.len; i++)
		if ((unsigned char)host.data[i] >= 0x80)
			return ERR_MALFORMED;
	if (host.len == 0)
		return ERR_MALFORMED;
	if (rest.len > 0 &&
	    (rest.data[0] != ':' ||
	     text_parse_unsigned((struct span){ rest.data + 1, rest.len - 1 }, 65535,
	                         &port) < 0 ||
	     port == 0))
		return ERR_MALFORMED;
	*ret_host = host;
	return 0;
}

int
config_url_host(struct span url, struct span *ret_host)
{
	static const struct span schemes[] = { { "https://", 8 }, { "http://", 7 } };
	struct span rest = { 0 };
	const char *slash;

	for (size_t i = 0; i < ARRAY_SIZE(schemes) && !rest.data; i++)
		if (url.len > schemes[i].len &&
		    memcmp(url.data, schemes[i].data, schemes[i].len) == 0)
			rest = (struct span){ url.data + schemes[i].len,
				              url.len - schemes[i].len };
	if (!rest.data)
		return ERR_MALFORMED;
	for (size_t i = 0; i < rest.len; i++) {
		if (strchr("@?# \\", rest.data[i]))
			return ERR_MALFORMED;
	}
	slash = memchr(rest.data, '/', rest.len);
	if (slash)
		rest.len = (size_t)(slash - rest.data);
	return authority_host(rest, ret_host);
}

static void
derive_path(struct config_upstream *upstream)
{
	static const char *const paths[CONFIG_DIALECT_COUNT] = {
		[CONFIG_DIALECT_ANTHROPIC] = "/v1/messages",
		[CONFIG_DIALECT_OPENAI_CHAT] = "/v1/chat/completions",
		[CONFIG_DIALECT_RAW] = "/",
	};

	if (upstream->path[0] == '\0')
		(void)snprintf(upstream->path, sizeof upstream->path, "%s",
		               paths[upstream->dialect]);
}

static void
derive_first_byte(struct config_upstream *upstream)
{
	if (upstream->first_byte_ms == 0)
		upstream->first_byte_ms = upstream->dialect == CONFIG_DIALECT_ANTHROPIC
		                                  ? FIRST_BYTE_MS
		                                  : FIRST_BYTE_MS_MAX;
}

static void
derive_words(struct config_upstream *upstream, struct span host)
{
	bool anthropic = upstream->dialect == CONFIG_DIALECT_ANTHROPIC;
	bool known = span_equals(host, SPAN("api.anthropic.com")) ||
	             span_equals(host, SPAN("api.openai.com"));

	if ((unsigned)upstream->auth == CONFIG_VALUE_UNSET_WORD)
		upstream->auth = anthropic ? CONFIG_AUTH_X_API_KEY
		                 : upstream->dialect == CONFIG_DIALECT_RAW
		                         ? CONFIG_AUTH_NONE
		                         : CONFIG_AUTH_BEARER;
	if ((unsigned)upstream->markers == CONFIG_VALUE_UNSET_WORD)
		upstream->markers = known ? CONFIG_SWITCH_AUTO : CONFIG_SWITCH_NEVER;
	if ((unsigned)upstream->evidence == CONFIG_VALUE_UNSET_WORD)
		upstream->evidence =
			anthropic ? CONFIG_EVIDENCE_EXACT : CONFIG_EVIDENCE_BEST_EFFORT;
	if ((unsigned)upstream->proof == CONFIG_VALUE_UNSET_WORD)
		upstream->proof = anthropic ? CONFIG_PROOF_CANARY : CONFIG_PROOF_NONE;
}

static bool
query_has_secret(struct span query)
{
	while (query.len > 0) {
		const char *end = memchr(query.data, '&', query.len);
		size_t len = end ? (size_t)(end - query.data) : query.len;
		const char *equals = memchr(query.data, '=', len);
		size_t name_len = equals ? (size_t)(equals - query.data) : len;

		if (config_value_names_secret((struct span){ query.data, name_len }))
			return true;
		len = MIN(len + 1, query.len);
		query = (struct span){ query.data + len, query.len - len };
	}
	return false;
}

const char *
config_auth_header(enum config_auth auth)
{
	static const char *const names[] = {
		[CONFIG_AUTH_NONE] = "",
		[CONFIG_AUTH_X_API_KEY] = "x-api-key",
		[CONFIG_AUTH_BEARER] = "authorization",
		[CONFIG_AUTH_API_KEY] = "api-key",
	};

	return names[auth];
}

/* True if a header with a secret would be sent twice. */
static bool
has_header_twice(const struct config_upstream *upstream)
{
	for (size_t i = 0; i < upstream->headers_env_count; i++) {
		const char *name = upstream->headers_env[i].name;

		if (strcasecmp(name, config_auth_header(upstream->auth)) == 0)
			return true;
		for (size_t j = 0; j < upstream->headers_count; j++)
			if (strcasecmp(name, upstream->headers[j].name) == 0)
				return true;
		for (size_t j = 0; j < i; j++)
			if (strcasecmp(name, upstream->headers_env[j].name) == 0)
				return true;
	}
	return false;
}

/* What is wrong with an upstream as a whole, or NULL. */
static const char *
upstream_complaint(const struct config_upstream *upstream)
{
	bool has_env = upstream->key_env[0] != '\0',
	     has_file = upstream->key_file[0] != '\0';

	if (upstream->path[0] != '/')
		return "has a path that does not begin with /";
	if (upstream->query[0] == '?')
		return "has a query that begins with a question mark; leave that out";
	if (has_env && has_file)
		return "has key_env and key_file; one of them is enough";
	if (upstream->auth != CONFIG_AUTH_NONE && !has_env && !has_file)
		return "needs to know where its key is: set key_env or key_file, or "
		       "auth: none";
	if (query_has_secret(span_from(upstream->query)))
		return "has a query that carries a secret, which never stands in this "
		       "file; use auth with key_env or key_file, or headers_env";
	if (has_header_twice(upstream))
		return "has a header of headers_env a second time, or auth sets it";
	if (upstream->usage_path[0] && upstream->dialect != CONFIG_DIALECT_RAW)
		return "has a usage_path, which is for dialect raw only";
	return NULL;
}

static int
finish_upstream(struct config_upstream *upstream, struct config_error *reterr)
{
	const char *complaint;
	struct span host;
	size_t len;

	if (strlen(upstream->name) > TEXT_SAID_MAX)
		return fail(reterr, ERR_LIMIT, "upstreams", upstream->name,
		            "has a name that no job can say: 64 bytes at most");
	if (upstream->url[0] == '\0')
		return fail(reterr, ERR_MALFORMED, "upstreams", upstream->name,
		            "needs a url, such as https://api.anthropic.com");
	if (config_url_host(span_from(upstream->url), &host) < 0)
		return fail(
			reterr, ERR_MALFORMED, "upstreams", upstream->name,
			"needs a url of the form http(s)://host[:port][/base], without "
			"user, query or fragment");
	len = strlen(upstream->url);
	while (upstream->url[len - 1] == '/')
		upstream->url[--len] = '\0';

	derive_path(upstream);
	derive_first_byte(upstream);
	derive_words(upstream, host);
	if (upstream->account[0] == '\0')
		memcpy(upstream->account, upstream->name, sizeof upstream->account);
	complaint = upstream_complaint(upstream);
	if (complaint)
		return fail(reterr, ERR_MALFORMED, "upstreams", upstream->name,
		            complaint);
	return 0;
}

static const char *
model_complaint(const struct config_model *model)
{
	uint64_t last_ms = 0;

	if (model->match[0] == '\0')
		return "has an entry without match";
	for (size_t i = 0; i < model->prices_count; i++) {
		if (model->prices[i].from_ms == 0)
			return "has a price without from";
		if (model->prices[i].from_ms <= last_ms)
			return "has prices that are not in the order of their days";
		last_ms = model->prices[i].from_ms;
	}
	return NULL;
}

static int
finish_lists(const struct config *config, struct config_error *reterr)
{
	for (size_t i = 0; i < config->models_count; i++) {
		const char *complaint = model_complaint(&config->models[i]);

		if (complaint)
			return fail(reterr, ERR_MALFORMED, "models", NULL, complaint);
	}
	for (size_t i = 0; i < config->pools_count; i++)
		if (config->pools[i].name[0] == '\0')
			return fail(reterr, ERR_MALFORMED, "pools", NULL,
			            "has an entry without name");
	return 0;
}

int
config_finish(struct config *config, struct config_error *reterr)
{
	char reason[REDIS_URL_ERROR_SIZE];
	struct redis_url url;
	int err;

	*reterr = (struct config_error){ 0 };
	err = redis_url_parse(span_from(config->redis), &url, reason);
	if (err < 0)
		return fail(reterr, err, "redis:", NULL, reason);
	for (size_t i = 0; i < config->upstreams_count; i++) {
		err = finish_upstream(&config->upstreams[i], reterr);
		if (err < 0)
			return err;
	}
	return finish_lists(config, reterr);
}

const struct config_model *
config_model_find(const struct config *config, struct span model)
{
	for (size_t i = 0; i < config->models_count; i++)
		if (text_matches(span_from(config->models[i].match), model))
			return &config->models[i];
	return config_models_find(model);
}
