#include "scheduler/admin_ask.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- copies of replies ----------------------------------------------------------- */

static size_t
size_of(const struct reply *reply)
{
	size_t size = (reply->text.len + 16) & ~(size_t)15;

	for (size_t i = 0; reply->kind == REPLY_ARRAY && i < reply->count; i++)
		size += sizeof(struct reply) + size_of(&reply->items[i]);
	return size;
}

/* Fills `to` and takes what it points to from `*room`. */
static void
fill(struct reply *to, const struct reply *from, char **room)
{
	*to = *from;
	if (from->kind == REPLY_ARRAY && from->count > 0) {
		struct reply *items = (struct reply *)(void *)*room;

		*room += from->count * sizeof(struct reply);
		to->items = items;
		for (size_t i = 0; i < from->count; i++)
			fill(&items[i], &from->items[i], room);
	} else if (from->text.len > 0) {
		memcpy(*room, from->text.data, from->text.len);
		to->text.data = *room;
		*room += (from->text.len + 16) & ~(size_t)15;
	}
}

static struct reply *
copy(const struct reply *reply)
{
	struct reply *out = malloc(sizeof(*out) + size_of(reply));
	char *room = (char *)(out + 1);

	if (out)
		fill(out, reply, &room);
	return out;
}

static void
forget_replies(struct admin_ask *ask)
{
	for (uint32_t i = 0; i < ask->replies_count; i++)
		free((void *)(uintptr_t)ask->replies[i]);
	ask->replies_count = 0;
}

/* What has arrived is what `done` reads; what it asks for arrives anew. */
static void
turn_over(struct admin_ask *ask)
{
	forget_replies(ask);
	for (uint32_t i = 0; i < ask->next_count; i++)
		ask->replies[i] = ask->next[i];
	ask->replies_count = ask->next_count;
	ask->next_count = 0;
}

/* ---- the cache ------------------------------------------------------------------- */

static uint64_t
monotonic_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* Path and the parts of the query that pages know. */
static void
make_key(const struct http_server_request *request, char ret_key[ADMIN_KEY_SIZE])
{
	static const char *const names[] = { "state", "family", "route", "offset",
		                             "limit" };
	size_t len;
	int printed = snprintf(ret_key, ADMIN_KEY_SIZE, "%s", request->path);

	if (printed >= ADMIN_KEY_SIZE) {
		ret_key[0] = '\0'; /* too long to be kept */
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = http_server_query(request, names[i]);

		if (!value)
			continue;
		len = strlen(ret_key);
		printed = snprintf(ret_key + len, ADMIN_KEY_SIZE - len, "&%s=%zu:%s",
		                   names[i], strlen(value), value);
		if ((size_t)printed >= ADMIN_KEY_SIZE - len) {
			ret_key[0] = '\0';
			return;
		}
	}
}

static bool
serve_cached(struct admin *admin, const char *key, struct http_server_response *response)
{
	for (size_t i = 0; i < ADMIN_CACHE_MAX && *key; i++) {
		const struct admin_cached *it = &admin->cache[i];

		if (strcmp(it->key, key) != 0 || monotonic_ms() >= it->until_ms)
			continue;
		response->content_type = "application/json";
		(void)buffer_append(&response->body, buffer_span(&it->body));
		return true;
	}
	return false;
}

static void
keep(struct admin_ask *ask)
{
	struct admin *admin = ask->admin;
	struct admin_cached *it = &admin->cache[0];

	for (size_t i = 1; i < ADMIN_CACHE_MAX; i++)
		if (admin->cache[i].until_ms < it->until_ms)
			it = &admin->cache[i];
	buffer_fini(&it->body);
	buffer_init(&it->body, BUFFER_SIZE_DEFAULT);
	memcpy(it->key, ask->key, sizeof(it->key));
	it->until_ms = monotonic_ms() + ask->commands * 1000 / ADMIN_ASK_RATE;
	(void)buffer_append(&it->body, buffer_span(&ask->response.body));
}

void
admin_ask_forget(struct admin *admin)
{
	for (size_t i = 0; i < ADMIN_CACHE_MAX; i++) {
		buffer_fini(&admin->cache[i].body);
		admin->cache[i] = (struct admin_cached){ 0 };
	}
}

/* ---- an ask ---------------------------------------------------------------------- */

struct admin_ask *
admin_ask_begin(struct admin *admin, admin_ask_fn *done)
{
	struct admin_ask *ask =
		redis_is_ready(admin->redis) ? calloc(1, sizeof(*ask)) : NULL;

	if (!ask)
		return NULL;
	ask->admin = admin;
	ask->done = done;
	ask->response = http_server_response();
	ask->response.content_type = "application/json";
	buffer_init(&ask->scratch, BUFFER_SIZE_DEFAULT);
	return ask;
}

struct admin_ask *
admin_ask_open(struct admin *admin, const struct http_server_request *request,
               struct http_server_response *response, admin_ask_fn *done)
{
	bool reads = strcmp(request->method, "GET") == 0;
	struct admin_ask *ask;
	char key[ADMIN_KEY_SIZE] = "";

	if (reads)
		make_key(request, key);
	else
		admin_ask_forget(admin);
	if (reads && serve_cached(admin, key, response))
		return NULL;
	ask = admin_ask_begin(admin, done);
	if (!ask) {
		admin_put_error(response, 503, "Redis does not answer now");
		return NULL;
	}
	ask->later = http_server_defer(request);
	memcpy(ask->key, key, sizeof(key));
	return ask;
}

static void
end(struct admin_ask *ask)
{
	VERIFY(ask->under_way == 0);
	(void)buffer_append_byte(&ask->response.body, '\n');
	if (ask->later)
		http_server_answer(ask->later, &ask->response);
	else
		buffer_fini(&ask->response.body);
	if (ask->end)
		ask->end(ask);
	turn_over(ask);
	forget_replies(ask);
	buffer_fini(&ask->scratch);
	free(ask);
}

void
admin_ask_finish(struct admin_ask *ask)
{
	if (ask->key[0] && ask->response.status == 200)
		keep(ask);
	end(ask);
}

void
admin_ask_fail(struct admin_ask *ask, unsigned status, const char *text)
{
	buffer_clear(&ask->response.body);
	admin_put_error(&ask->response, status, text);
	end(ask);
}

/* All answers of a round are here. */
static void
go_on(struct admin_ask *ask)
{
	VERIFY(ask->under_way == 0);
	if (ask->lost) {
		admin_ask_fail(ask, 503, "Redis does not answer now");
		return;
	}
	turn_over(ask);
	ask->done(ask);
}

static void
on_reply(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct admin_ask *ask = data;

	(void)redis;
	(void)error;
	ask->under_way--;
	/* Answers come in the order of the commands. */
	ask->next[ask->next_count] = reply && !ask->lost ? copy(reply) : NULL;
	if (ask->next[ask->next_count])
		ask->next_count++;
	else
		ask->lost = true;
	if (ask->under_way == 0)
		go_on(ask);
}

void
admin_ask_words(struct admin_ask *ask, const struct span *words, size_t count)
{
	VERIFY(ask->next_count + ask->under_way < ADMIN_ASK_MAX);
	if (redis_command(ask->admin->redis, words, count, on_reply, ask) < 0) {
		ask->lost = true;
		return;
	}
	ask->commands++;
	ask->under_way++;
}

void
admin_ask_function(struct admin_ask *ask, const char *function, const struct span *words,
                   size_t count)
{
	struct span all[1024];
	char name[64];

	VERIFY(count + 5 <= ARRAY_SIZE(all));
	(void)snprintf(name, sizeof(name), "warmq_%s", function);
	all[0] = SPAN("FCALL");
	all[1] = span_from(name);
	all[2] = SPAN("1");
	all[3] = admin_ask_key(ask, "meta", SPAN(""));
	all[4] = SPAN("1");
	for (size_t i = 0; i < count; i++)
		all[5 + i] = words[i];
	admin_ask_words(ask, all, count + 5);
}

struct span
admin_ask_key(struct admin_ask *ask, const char *name, struct span rest)
{
	static char texts[8][512];
	static unsigned turn;
	char *text = texts[turn++ % ARRAY_SIZE(texts)];

	(void)snprintf(text, sizeof(texts[0]), "%s:%s%.*s", ask->admin->config->namespace,
	               name, (int)rest.len, rest.data);
	return span_from(text);
}

struct span
admin_ask_number(uint64_t value)
{
	static char texts[8][24];
	static unsigned turn;
	char *text = texts[turn++ % ARRAY_SIZE(texts)];

	(void)snprintf(text, sizeof(texts[0]), "%llu", (unsigned long long)value);
	return span_from(text);
}

void
admin_ask_round(struct admin_ask *ask, admin_ask_fn *done)
{
	ask->done = done;
	if (ask->under_way == 0) /* else the last answer goes on */
		go_on(ask);
}
