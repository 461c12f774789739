/* What must be true of every small world. */
#include "tests/sim/redis_model.h"
#include "tests/sim/small_call.h"

#include <stdio.h>
#include <string.h>

/* Where one job can be found. */
struct trace {
	int lists, leases, results; /* `later` is a list, too */
	bool entry, slim, dead, marked, admitted;
};

void
small_world_copy(const struct small_world *world, struct small_world *ret_world)
{
	*ret_world = *world;
	ret_world->redis = redis_model_copy(world->redis);
}

void
small_world_fini(struct small_world *world)
{
	redis_model_destroy(world->redis);
	world->redis = NULL;
}

/* ---- looking --------------------------------------------------------------------- */

static const struct redis_value *
find(const struct small_world *world, const char *key)
{
	return redis_model_find(world->redis, span_from(key));
}

/* The value of a hash's field, or NULL. */
static const struct redis_text *
field(const struct redis_value *hash, const char *name)
{
	bool found = false;
	size_t at;

	if (!hash || hash->type != REDIS_HASH)
		return NULL;
	at = redis_value_seek(hash, span_from(name), &found);
	return found ? redis_value_field(hash, at)->value : NULL;
}

static const struct redis_value *
table(const struct small_world *world, uint8_t who, uint8_t life)
{
	char key[64];

	(void)snprintf(key, sizeof key, "warmq:lease:%014x%02x", who + 1, life);
	return find(world, key);
}

bool
small_call_lives(const struct small_world *world, uint8_t who)
{
	return field(table(world, who, world->workers[who].life), "s") != NULL;
}

uint8_t
small_call_job(struct span element)
{
	for (uint8_t job = 1; job <= SMALL_JOBS; job++)
		if (element.len >= 3 && element.data[0] == '0' + job &&
		    element.data[1] == '-')
			return job;
	return 0;
}

/* q|family|lane|element|… */
uint8_t
small_call_leased(struct span lease, uint8_t *ret_q)
{
	const char *at = lease.data, *end = lease.data + lease.len;

	*ret_q = 0;
	for (int bars = 0; at < end && bars < 3; at++) {
		if (*at == '|')
			bars++;
		else if (bars == 0)
			*ret_q = (uint8_t)(*ret_q * 10 + (*at - '0'));
	}
	return at < end ? small_call_job((struct span){ at, (size_t)(end - at) }) : 0;
}

static bool
starts_with(const struct redis_text *text, const char *start)
{
	return strncmp(text->data, start, strlen(start)) == 0;
}

static void
look_at_list(const struct redis_value *list, uint8_t job, struct trace *trace)
{
	for (size_t i = 0; i < list->items.count; i++) {
		struct redis_text *text = *redis_value_text(list, i);

		trace->lists += small_call_job(redis_text_span(text)) == job;
	}
}

static void
look_at_table(const struct redis_value *leases, uint8_t job, struct trace *trace)
{
	for (size_t i = 0; i < leases->items.count; i++) {
		const struct redis_field *it = redis_value_field(leases, i);
		uint8_t q;

		if (it->name->data[0] != 's')
			trace->leases +=
				small_call_leased(redis_text_span(it->value), &q) == job;
	}
}

/* Every result says whose it is. */
static void
look_at_results(const struct redis_value *box, uint8_t job, struct trace *trace)
{
	char id[16];

	(void)snprintf(id, sizeof id, "\"%u-1\"", job);
	for (size_t i = 0; box && i < box->items.count; i++) {
		const struct redis_text *text = *redis_value_text(box, i);

		trace->results += strstr(text->data, id) != NULL;
	}
}

static bool
has_entry(const struct redis_value *stream, uint8_t job)
{
	for (size_t i = 0; stream && i < stream->items.count; i++)
		if (redis_value_entry(stream, i)->id.ms == job)
			return true;
	return false;
}

static struct trace
look(const struct small_world *world, uint8_t job)
{
	struct trace trace = { 0 };
	const struct redis_value *value, *dead = find(world, "warmq:dead");
	const struct redis_value *later = find(world, "warmq:later");
	const struct redis_text *cursor = field(find(world, "warmq:meta"), "cursor");
	size_t at = 0;
	char key[40];

	while ((value = redis_model_next(world->redis, &at)) != NULL) {
		if (starts_with(value->key, "warmq:ready:") ||
		    starts_with(value->key, "warmq:back:"))
			look_at_list(value, job, &trace);
		else if (starts_with(value->key, "warmq:lease:"))
			look_at_table(value, job, &trace);
	}
	for (size_t i = 0; later && i < later->items.count; i++)
		trace.lists += small_call_job(redis_text_span(
				       redis_value_member(later, i)->name)) == job;
	look_at_results(find(world, "warmq:reply:box"), job, &trace);
	trace.entry = has_entry(find(world, "warmq:jobs"), job);
	(void)snprintf(key, sizeof key, "warmq:slim:%u-1", job);
	trace.slim = find(world, key) != NULL;
	for (size_t i = 0; dead && i < dead->items.count; i++)
		trace.dead |= small_call_job(redis_text_span(
				      redis_value_member(dead, i)->name)) == job;
	(void)snprintf(key, sizeof key, "%u-1", job);
	trace.marked = field(find(world, "warmq:ended"), key) != NULL;
	trace.admitted = cursor && cursor->data[0] >= '0' + job;
	return trace;
}

bool
small_call_all_ended(const struct small_world *world)
{
	for (uint8_t job = 1; job <= SMALL_JOBS; job++) {
		struct trace trace = look(world, job);

		if (trace.results != 1 || trace.entry || trace.lists || trace.leases ||
		    trace.marked || trace.slim != trace.dead)
			return false;
	}
	return true;
}

/* ---- judging --------------------------------------------------------------------- */

static const char *
judge(const struct trace *trace)
{
	int places = trace->lists + trace->leases;

	if (trace->results > 1)
		return "it has two results";
	if (trace->entry && trace->slim)
		return "it has two payloads";
	if (!trace->admitted) {
		if (places > 0 || trace->marked || trace->dead)
			return "it is somewhere before it was admitted";
		return trace->entry == (trace->results == 0)
		               ? NULL
		               : "it ended without a result";
	}
	if (trace->dead)
		return places == 0 && trace->results == 1 && trace->slim
		               ? NULL
		               : "a dead job has another place, or no result";
	if (trace->entry || trace->slim) {
		if (trace->results > 0 || trace->marked)
			return "it has ended and is alive";
		return places == 1 ? NULL
		       : places    ? "it is in two places"
		                   : "it is in no place";
	}
	if (trace->results != 1)
		return "it ended without a result";
	return places <= 1 && trace->marked == (places == 1)
	               ? NULL
	               : "it ended, and its mark does not go with its place";
}

static void
check_belief(struct small_scope *scope, const struct small_world *world, uint8_t who)
{
	const struct small_worker *worker = &world->workers[who];
	const struct redis_text *lease;
	uint8_t job = 0, q = 0;

	if (worker->unsure || worker->gone || !small_call_lives(world, who))
		return;
	lease = field(table(world, who, worker->life), "0");
	if (lease)
		job = small_call_leased(redis_text_span(lease), &q);
	if (job != worker->held || (job && q != worker->held_q))
		small_scope_blame(scope, "a worker and Redis differ on what he runs");
}

static void
check_counters(struct small_scope *scope, const struct small_world *world)
{
	const struct redis_value *meta = find(world, "warmq:meta");

	if (field(meta, "lane_drift") || field(meta, "function_errors") ||
	    field(meta, "delivery_errors"))
		small_scope_blame(scope, "a counter of what must not happen has moved");
}

/* One credit was granted: it is there, or somebody has started with it. */
static void
check_credit(struct small_scope *scope, const struct small_world *world)
{
	const struct redis_value *lanes = find(world, "warmq:lanes");
	const char *lane = redis_value_field(lanes, 0)->value->data;
	struct trace trace = { 0 };
	int credits = (lane[13] - '0') * 100 + (lane[14] - '0') * 10 + (lane[15] - '0');

	for (uint8_t who = 0; who < SMALL_WORKERS; who++)
		for (uint8_t life = 0; life < SMALL_LIVES; life++)
			for (uint8_t job = 1; job <= SMALL_JOBS; job++)
				if (table(world, who, life))
					look_at_table(table(world, who, life), job,
					              &trace);
	if (small_scope_is_lead(scope) && credits + trace.leases > 1)
		small_scope_blame(scope, "two may write the same prefix");
}

void
small_world_check(struct small_scope *scope, const struct small_world *world)
{
	struct small_world copy;

	for (uint8_t job = 1; job <= SMALL_JOBS; job++) {
		struct trace trace = look(world, job);
		const char *fault = judge(&trace);
		char text[100];

		if (!fault)
			continue;
		(void)snprintf(text, sizeof text, "job %u: %s", job, fault);
		small_scope_blame(scope, text);
	}
	for (uint8_t who = 0; who < SMALL_WORKERS; who++)
		check_belief(scope, world, who);
	check_counters(scope, world);
	check_credit(scope, world);
	small_world_copy(world, &copy);
	if (small_call_audit(scope, &copy)->count != 3) /* OK, the time, no cursor */
		small_scope_blame(scope, "an audit finds something to put right");
	small_world_fini(&copy);
}

/* ---- the number of a world ------------------------------------------------------- */

static uint64_t
mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return (hash ^ size) * 0x100000001b3u;
}

static uint64_t
mix_text(uint64_t hash, const struct redis_text *text)
{
	return text ? mix(hash, text->data, text->len) : mix(hash, "", 0);
}

static uint64_t
mix_value(uint64_t hash, const struct redis_value *value)
{
	hash = mix_text(hash, value->key);
	if (starts_with(value->key, "warmq:stamp"))
		return hash;
	hash = mix_text(hash, value->string);
	for (size_t i = 0; i < value->items.count; i++) {
		switch (value->type) {
		case REDIS_LIST:
			hash = mix_text(hash, *redis_value_text(value, i));
			break;
		case REDIS_HASH:
		case REDIS_SET:
			hash = mix_text(hash, redis_value_field(value, i)->name);
			hash = mix_text(hash, redis_value_field(value, i)->value);
			break;
		case REDIS_ZSET:
			hash = mix(hash, &redis_value_member(value, i)->score,
			           sizeof(double));
			hash = mix_text(hash, redis_value_member(value, i)->name);
			break;
		case REDIS_STREAM:
			hash = mix(hash, &redis_value_entry(value, i)->id,
			           sizeof(struct redis_stream_id));
			break;
		case REDIS_STRING:
		case REDIS_TYPE_COUNT:
			break;
		}
	}
	return hash;
}

/* Events are hints, and grow with what has been: they are no part of it. */
uint64_t
small_world_hash(const struct small_world *world)
{
	uint64_t hash = mix(0xcbf29ce484222325u, world->workers, sizeof world->workers);
	const struct redis_value *value;
	size_t at = 0;

	while ((value = redis_model_next(world->redis, &at)) != NULL)
		if (!starts_with(value->key, "warmq:events"))
			hash = mix_value(hash, value);
	return hash;
}
