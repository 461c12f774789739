#include "provider/admin.h"

#include "common/text.h"

#include <stdlib.h>

#define PREFIXES_DEFAULT 20
#define PREFIXES_MAX     1000

static void
answer_json(struct connection *connection, int status, json_t *json)
{
	char *text = json_dumps(json, JSON_INDENT(2));

	json_decref(json);
	if (text)
		server_answer(connection, status, span_from(text), SPAN(""));
	else
		server_answer(connection, 503, SPAN("{}"), SPAN(""));
	free(text);
}

static void
put(json_t *object, const char *name, uint64_t number)
{
	json_object_set_new(object, name, json_integer((json_int_t)number));
}

/* --- prefixes ---------------------------------------------------------------------- */

/* What a prefix cost to write, all in all. */
static uint64_t
weight_of(const struct cache_node *node)
{
	return node->writes * node->tokens;
}

/* The `count` heaviest prefixes, heaviest first; of equals the one used last. */
static uint32_t
pick_prefixes(const struct server *server, struct cache_node *nodes, uint32_t count)
{
	struct cache_node node;
	uint32_t cursor = 0, found = 0;

	while (cache_model_next(engine_cache(server->engine), &cursor, &node)) {
		uint32_t place = found < count ? found++ : count;

		if (place == count &&
		    (count == 0 || weight_of(&node) <= weight_of(&nodes[count - 1])))
			continue;
		if (place == count)
			place--;
		for (; place > 0 && weight_of(&nodes[place - 1]) < weight_of(&node);
		     place--)
			nodes[place] = nodes[place - 1];
		nodes[place] = node;
	}
	return found;
}

static json_t *
prefix_json(const struct cache_node *node, uint64_t now_us)
{
	char hash[ID_HEX_LEN];
	json_t *json = json_object();

	id_encode(node->hash, hash);
	json_object_set_new(json, "prefix", json_stringn(hash, sizeof hash));
	put(json, "shard", node->shard);
	put(json, "tokens", node->tokens);
	put(json, "writes", node->writes);
	put(json, "duplicate_writes", node->duplicate_writes);
	put(json, "reads", node->reads);
	put(json, "writers", node->writers);
	put(json, "peak_writers", node->writers_max);
	json_object_set_new(
		json, "readable",
		json_boolean(node->readable_us <= now_us && now_us < node->expires_us));
	put(json, "expires_in_ms",
	    node->expires_us > now_us ? (node->expires_us - now_us) / 1000 : 0);
	return json;
}

static json_t *
prefixes_json(struct server *server, uint32_t count)
{
	struct cache_node *nodes = calloc(MAX(count, 1), sizeof *nodes);
	json_t *list = json_array();
	uint64_t now_us = server_now_us(server);

	if (nodes)
		count = pick_prefixes(server, nodes, count);
	for (uint32_t i = 0; nodes && i < count; i++)
		json_array_append_new(list, prefix_json(&nodes[i], now_us));
	free(nodes);
	return list;
}

/* The number after `prefixes=` in the query. */
static uint32_t
wanted_prefixes(const struct connection *connection)
{
	static const char name[] = "prefixes=";
	struct span target = connection_request(connection)->target;
	const char *at = memmem(target.data, target.len, name, sizeof name - 1);
	uint64_t count;
	struct span digits;

	if (!at)
		return PREFIXES_DEFAULT;
	at += sizeof name - 1;
	digits = (struct span){ at, target.len - (size_t)(at - target.data) };
	if (text_parse_unsigned(digits, UINT32_MAX, &count) < 0)
		return PREFIXES_DEFAULT;
	return (uint32_t)MIN(count, PREFIXES_MAX);
}

/* --- stats ------------------------------------------------------------------------- */

static json_t *
statuses_json(const struct server *server)
{
	json_t *json = json_object();

	for (int status = 0; status < SERVER_STATUSES; status++) {
		char name[8] = { (char)('0' + status / 100),
			         (char)('0' + status / 10 % 10),
			         (char)('0' + status % 10) };

		if (server->statuses[status] > 0)
			put(json, name, server->statuses[status]);
	}
	return json;
}

static json_t *
refusals_json(const struct engine_stats *stats)
{
	static const char *const names[LIMIT_VERDICT_COUNT] = {
		[LIMIT_VERDICT_REQUESTS] = "requests",
		[LIMIT_VERDICT_INPUT] = "input_tokens",
		[LIMIT_VERDICT_OUTPUT] = "output_tokens",
		[LIMIT_VERDICT_ACCELERATION] = "acceleration",
		[LIMIT_VERDICT_SPEND] = "spend_cap",
	};
	json_t *json = json_object();

	for (int i = LIMIT_VERDICT_OK + 1; i < LIMIT_VERDICT_COUNT; i++)
		put(json, names[i], stats->refused_limit[i]);
	put(json, "no_room", stats->refused_full);
	return json;
}

static json_t *
faults_json(const struct engine_stats *stats)
{
	json_t *json = json_object();

	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++)
		if (stats->faults[fault] > 0)
			put(json, fault_text((enum fault)fault), stats->faults[fault]);
	return json;
}

static void
put_cache(json_t *json, const struct cache_stats *stats)
{
	put(json, "requests", stats->requests);
	put(json, "writes", stats->writes);
	put(json, "duplicate_writes", stats->duplicate_writes);
	put(json, "reads", stats->reads);
	put(json, "node_writes", stats->node_writes);
	put(json, "node_duplicate_writes", stats->node_duplicates);
	put(json, "tokens_total", stats->total_tokens);
	put(json, "tokens_read", stats->read_tokens);
	put(json, "tokens_written", stats->written_tokens);
	put(json, "tokens_uncached", stats->uncached_tokens);
	put(json, "concurrency", stats->in_flight);
	put(json, "peak_concurrency", stats->in_flight_max);
	put(json, "peak_writers", stats->writers_max);
	put(json, "aborted", stats->aborted);
	put(json, "missed", stats->missed);
	put(json, "evicted", stats->evicted);
	put(json, "forgotten", stats->forgotten);
}

void
admin_stats(struct server *server, struct connection *connection)
{
	const struct engine_stats *stats = engine_stats(server->engine);
	struct cache_stats cache = cache_model_stats(engine_cache(server->engine));
	json_t *json = json_object();

	put_cache(json, &cache);
	put(json, "tokens_output", stats->output_tokens);
	put(json, "uptime_ms", server_now_us(server) / 1000);
	put(json, "connections", server->clients.count);
	put(json, "unanswered", server->unanswered);
	json_object_set_new(json, "requests_by_status", statuses_json(server));
	json_object_set_new(json, "refused", refusals_json(stats));
	json_object_set_new(json, "faults", faults_json(stats));
	json_object_set_new(json, "prefixes",
	                    prefixes_json(server, wanted_prefixes(connection)));
	answer_json(connection, 200, json);
}

/* --- the others -------------------------------------------------------------------- */

void
admin_get_knobs(struct server *server, struct connection *connection)
{
	struct settings settings = server_settings(server);

	answer_json(connection, 200, settings_to_json(&settings));
}

static void
refuse(struct connection *connection, const char *message)
{
	answer_json(connection, 400, json_pack("{s:s}", "error", message));
}

void
admin_set_knobs(struct server *server, struct connection *connection)
{
	struct span body = buffer_span(&connection_request(connection)->body);
	struct settings settings = server_settings(server);
	struct settings_error error;
	json_error_t json_error;
	json_t *object = json_loadb(body.data ? body.data : "", body.len,
	                            JSON_REJECT_DUPLICATES, &json_error);
	int err;

	if (!object) {
		refuse(connection, "The body is not JSON; send one object of knobs.");
		return;
	}
	err = settings_set_json(&settings, object, NULL, &error);
	json_decref(object);
	if (err < 0) {
		refuse(connection, error.text);
		return;
	}
	server_set(server, &settings);
	admin_get_knobs(server, connection);
}

void
admin_reset(struct server *server, struct connection *connection)
{
	engine_reset(server->engine, server_now_us(server));
	memset(server->statuses, 0, sizeof server->statuses);
	server->unanswered = 0;
	answer_json(connection, 200, json_pack("{s:b}", "ok", 1));
}

void
admin_health(struct server *server, struct connection *connection)
{
	answer_json(connection, 200, json_pack("{s:b}", "ok", 1));
}
