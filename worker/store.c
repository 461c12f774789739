#include "worker/store.h"

#include "common/codec/protocol_record.h"
#include "worker/segment.h"

#include <stdlib.h>

struct waiter {
	struct load *load;
	struct waiter *next;
};

/* What store_load answers is its first member. */
struct load {
	struct store_load public;
	struct store *store;
	store_loaded_fn *fn;
	void *data;
	uint32_t pending; /* answers to come, one of ours while it is being sent */
	bool is_released;
	char *bytes; /* copy of the payload */
	struct segment *held[PART_NODES_MAX];
	struct waiter waiters[PART_NODES_MAX];
};

struct store {
	struct redis *redis;
	char ns[PROTOCOL_NAMESPACE_MAX + 1];
	struct segment_cache segments;
	uint32_t loads;
};

struct fetch { /* of one segment */
	struct store *store;
	struct segment *segment;
};

int
store_create(struct redis *redis, struct span ns, struct store **ret_store)
{
	struct store *store = calloc(1, sizeof *store);
	int err;

	if (!store)
		return ERR_MEMORY;
	VERIFY(ns.len <= PROTOCOL_NAMESPACE_MAX);
	memcpy(store->ns, ns.data, ns.len);
	store->redis = redis;
	err = segment_init(&store->segments, STORE_PX_MAX, STORE_SIZE_MAX);
	if (err < 0) {
		free(store);
		return err;
	}
	*ret_store = store;
	return 0;
}

struct store *
store_destroy(struct store *store)
{
	if (!store)
		return NULL;
	VERIFY(store->loads == 0);
	segment_fini(&store->segments);
	free(store);
	return NULL;
}

static void
free_load(struct load *load)
{
	for (unsigned i = 0; i < PART_NODES_MAX; i++) {
		if (load->held[i])
			segment_let_go(&load->store->segments, load->held[i]);
	}
	load->store->loads--;
	free(load->public.pairs);
	free(load->bytes);
	free(load);
}

/* The worst news wins: a lost connection says nothing about what is there, and a refusal
 * (an ACL, a server that loads) next to nothing. */
static void
note_error(struct load *load, int error, const char *what)
{
	if (load->public.error == ERR_CONNECTION ||
	    (load->public.error == ERR_IO && error != ERR_CONNECTION))
		return;
	load->public.error = error;
	load->public.missing = what;
}

/* Whether Redis said something about what was asked for; else that is noted. */
static bool
is_answer(struct load *load, const struct reply *reply, int error, const char *what)
{
	if (error < 0)
		note_error(load, ERR_CONNECTION, NULL);
	else if (reply->kind == REPLY_ERROR)
		note_error(load, ERR_IO, what);
	else
		return true;
	return false;
}

static void
take_segments(struct load *load)
{
	for (unsigned i = 0; i < PART_NODES_MAX && load->held[i]; i++) {
		const struct segment *segment = load->held[i];

		if (segment->state != SEGMENT_READY) {
			note_error(load, ERR_NOT_FOUND, "a shared segment of the prefix");
			continue;
		}
		load->public.segments[i] =
			(struct store_segment){ segment->px, segment->model };
		load->public.segments_count = i + 1;
	}
}

static void
answered(struct load *load)
{
	VERIFY(load->pending > 0);
	if (--load->pending > 0)
		return;
	if (load->is_released) {
		free_load(load);
		return;
	}
	take_segments(load);
	load->fn(&load->public, load->data);
}

static int
ask(struct load *load, const struct span *words, size_t count, redis_reply_fn *fn)
{
	int err = redis_command(load->store->redis, words, count, fn, load);

	if (err == 0)
		load->pending++;
	return err;
}

static struct span
copy(struct load *load, struct span bytes)
{
	load->bytes = malloc(bytes.len + 1);
	if (!load->bytes)
		return (struct span){ 0 };
	memcpy(load->bytes, bytes.data, bytes.len);
	load->bytes[bytes.len] = '\0';
	return (struct span){ load->bytes, bytes.len };
}

static void
on_slim(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct load *load = data;

	(void)redis;
	if (!is_answer(load, reply, error, "the payload")) {
		answered(load);
		return;
	}
	if (reply->kind != REPLY_TEXT) {
		note_error(load, ERR_NOT_FOUND, "the payload");
	} else if (!load->is_released) {
		load->public.payload = copy(load, reply->text);
		if (!load->bytes)
			note_error(load, ERR_CONNECTION, NULL);
	}
	answered(load);
}

/* Fields and values one behind the other in one block, and pairs that point into it. */
static int
copy_fields(struct load *load, const struct reply *fields)
{
	struct store_load *public = &load->public;
	size_t size = 0, at = 0;

	for (size_t i = 0; i < fields->count; i++)
		size += reply_text(&fields->items[i]).len;
	load->bytes = malloc(size + 1);
	public->pairs = calloc(fields->count / 2 + 1, sizeof *public->pairs);
	if (!load->bytes || !public->pairs)
		return ERR_MEMORY;
	for (size_t i = 0; i + 1 < fields->count; i += 2) {
		struct span name = reply_text(&fields->items[i]);
		struct span value = reply_text(&fields->items[i + 1]);
		char *place = load->bytes + at;

		memcpy(place, name.data ? name.data : "", name.len);
		memcpy(place + name.len, value.data ? value.data : "", value.len);
		public->pairs[public->pairs_count++] =
			(struct envelope_pair){ { place, name.len },
			                        { place + name.len, value.len } };
		at += name.len + value.len;
	}
	return 0;
}

static void
on_entry(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct load *load = data;

	(void)redis;
	if (!is_answer(load, reply, error, "the payload")) {
		answered(load);
		return;
	}
	if (reply_at(reply, 0)->kind != REPLY_ARRAY) {
		note_error(load, ERR_NOT_FOUND, "the payload");
	} else if (!load->is_released &&
	           copy_fields(load, reply_at(reply_at(reply, 0), 1)) < 0) {
		note_error(load, ERR_CONNECTION, NULL);
	}
	answered(load);
}

static void
on_past(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct load *load = data;

	(void)redis;
	if (is_answer(load, reply, error, "the past")) {
		int64_t attempts = reply_integer(reply_at(reply, 0), 0);
		int64_t deliveries = reply_integer(reply_at(reply, 1), 0);

		load->public.attempts = (uint32_t)MAX(0, MIN(attempts, UINT32_MAX));
		load->public.deliveries = (uint32_t)MAX(0, MIN(deliveries, UINT32_MAX));
	}
	answered(load);
}

static void
on_lane(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct load *load = data;
	struct protocol_lane lane;

	(void)redis;
	if (!is_answer(load, reply, error, "the record of the lane")) {
		answered(load);
		return;
	}
	if (protocol_record_parse_lane(reply_text(reply), &lane) < 0 ||
	    lane.budget.len >= sizeof load->public.budget) {
		note_error(load, ERR_NOT_FOUND, "the record of the lane");
	} else {
		memcpy(load->public.budget, lane.budget.data, lane.budget.len);
		load->public.budget[lane.budget.len] = '\0';
	}
	answered(load);
}

/* All who wait for the segment take note; the last answer of a load may free it. */
static void
wake_waiters(struct segment *segment, const struct reply *reply, int error)
{
	struct waiter *waiter = segment->waiters;

	segment->waiters = NULL;
	while (waiter) {
		struct waiter *next = waiter->next;

		(void)is_answer(waiter->load, reply, error, "a shared segment");
		answered(waiter->load);
		waiter = next;
	}
}

static void
on_segment(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct fetch *fetch = data;
	struct segment *segment = fetch->segment;
	struct segment_cache *cache = &fetch->store->segments;

	(void)redis;
	if (error == 0 && reply->kind == REPLY_TEXT)
		segment_fill(cache, segment, reply->text);
	else
		segment_fail(segment);
	wake_waiters(segment, reply, error);
	segment_let_go(cache, segment);
	free(fetch);
}

static struct span
key(const struct store *store, char *text, size_t size, const char *name,
    struct span rest)
{
	int len = snprintf(text, size, "%s:%s%.*s", store->ns, name, (int)rest.len,
	                   rest.data ? rest.data : "");

	VERIFY(len > 0);
	VERIFY((size_t)len < size);
	return (struct span){ text, (size_t)len };
}

static int
fetch_segment(struct store *store, struct segment *segment)
{
	struct fetch *fetch = malloc(sizeof *fetch);
	char text[PROTOCOL_NAMESPACE_MAX + ID_HEX_LEN + 8];
	char hex[ID_HEX_LEN];
	struct span words[2] = { SPAN("GET") };
	int err;

	if (!fetch)
		return ERR_MEMORY;
	*fetch = (struct fetch){ store, segment };
	id_encode(segment->id, hex);
	words[1] = key(store, text, sizeof text, "px:", (struct span){ hex, sizeof hex });
	err = redis_command(store->redis, words, 2, on_segment, fetch);
	if (err < 0)
		free(fetch);
	else
		segment->holders++; /* the fetch itself */
	return err;
}

static int
want_segment(struct load *load, unsigned place, struct span hex)
{
	struct store *store = load->store;
	struct segment *segment;
	struct id128 id;

	if (place == PART_NODES_MAX || id_decode(hex, &id) < 0)
		return ERR_MALFORMED;
	segment = segment_find(&store->segments, id);
	if (!segment) {
		int err;

		segment = segment_add(&store->segments, id);
		if (!segment)
			return ERR_MEMORY;
		err = fetch_segment(store, segment);
		if (err < 0) {
			segment_fail(segment);
			segment_let_go(&store->segments, segment);
			return err;
		}
	}
	load->held[place] = segment;
	if (segment->state != SEGMENT_LOADING)
		return 0;
	load->waiters[place] = (struct waiter){ load, segment->waiters };
	segment->waiters = &load->waiters[place];
	load->pending++;
	return 0;
}

static int
want_segments(struct load *load, struct span list)
{
	struct span hex;
	unsigned place = 0;

	while (protocol_list_next(&list, &hex)) {
		int err = want_segment(load, place++, hex);

		if (err < 0)
			return err;
	}
	return 0;
}

static int
want_payload(struct load *load, const struct store_request *request)
{
	char text[PROTOCOL_NAMESPACE_MAX + PROTOCOL_JOB_ID_SIZE + 8];
	struct span words[4];

	load->public.slim = request->slim;
	if (request->slim) {
		words[0] = SPAN("GET");
		words[1] = key(load->store, text, sizeof text, "slim:", request->id);
		return ask(load, words, 2, on_slim);
	}
	words[0] = SPAN("XRANGE");
	words[1] = key(load->store, text, sizeof text, "jobs", (struct span){ 0 });
	words[2] = request->id;
	words[3] = request->id;
	return ask(load, words, 4, on_entry);
}

static int
want_past(struct load *load, struct span id)
{
	char text[PROTOCOL_NAMESPACE_MAX + PROTOCOL_JOB_ID_SIZE + 8];
	struct span words[4] = {
		SPAN("HMGET"), { 0 }, SPAN("attempts"), SPAN("deliveries")
	};

	words[1] = key(load->store, text, sizeof text, "past:", id);
	return ask(load, words, 4, on_past);
}

static int
want_lane(struct load *load, struct span lane)
{
	char text[PROTOCOL_NAMESPACE_MAX + 8];
	struct span words[3] = { SPAN("HGET"), { 0 }, lane };

	words[1] = key(load->store, text, sizeof text, "lanes", (struct span){ 0 });
	return ask(load, words, 3, on_lane);
}

static int
want_all(struct load *load, const struct store_request *request)
{
	int err = 0;

	if (request->want & STORE_PAYLOAD)
		err = want_payload(load, request);
	if (err == 0 && request->want & STORE_PAST)
		err = want_past(load, request->id);
	if (err == 0 && request->want & STORE_BUDGET)
		err = want_lane(load, request->lane);
	if (err == 0 && request->want & STORE_SEGMENTS)
		err = want_segments(load, request->px);
	return err;
}

static uint64_t
ms_of(struct span id)
{
	struct protocol_job_id parsed;

	return protocol_parse_job_id(id, &parsed) == 0 ? parsed.ms : 0;
}

int
store_load(struct store *store, const struct store_request *request, store_loaded_fn *fn,
           void *data, struct store_load **ret_load)
{
	struct load *load = calloc(1, sizeof *load);
	int err;

	if (!load)
		return ERR_MEMORY;
	load->store = store;
	load->fn = fn;
	load->data = data;
	load->public.entry_ms = ms_of(request->id);
	store->loads++;
	load->pending = 1;
	err = want_all(load, request);
	load->pending--;
	if (err == 0 && load->pending == 0)
		err = ERR_MALFORMED; /* nothing was asked of Redis */
	if (err < 0) {
		(void)store_release(&load->public);
		return err;
	}
	*ret_load = &load->public;
	return 0;
}

struct store_load *
store_release(struct store_load *public)
{
	struct load *load = (struct load *)(void *)public;

	if (!load)
		return NULL;
	if (load->pending > 0)
		load->is_released = true; /* its answers are still to come */
	else
		free_load(load);
	return NULL;
}
