#include "scheduler/admin_worker.h"

#include "common/codec/protocol_record.h"
#include "scheduler/admin_ask.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     100
#define DRAINS_MAX    8 /* families shown of one worker */

/* ---- one worker ------------------------------------------------------------------ */

struct drain {
	struct id128 family;
	uint32_t jobs;
};

struct drains {
	struct drain items[DRAINS_MAX];
	uint32_t count, busy, writing;
};

static void
count_family(struct drains *drains, struct span text)
{
	struct id128 family;

	if (id_decode(text, &family) < 0)
		return;
	for (uint32_t i = 0; i < drains->count; i++) {
		if (id_equals(drains->items[i].family, family)) {
			drains->items[i].jobs++;
			return;
		}
	}
	if (drains->count < DRAINS_MAX)
		drains->items[drains->count++] = (struct drain){ family, 1 };
}

static struct drains
count_leases(const struct reply *leases)
{
	struct drains drains = { 0 };
	struct protocol_lease lease;

	for (size_t i = 0; leases->kind == REPLY_ARRAY && i + 1 < leases->count; i += 2) {
		if (reply_is(&leases->items[i], "s") ||
		    protocol_record_parse_lease(reply_text(&leases->items[i + 1]),
		                                &lease) < 0)
			continue;
		drains.busy++;
		if (lease.role == PROTOCOL_LEAD || lease.role == PROTOCOL_TICKET)
			drains.writing++;
		count_family(&drains, lease.family);
	}
	return drains;
}

static void
put_drains(const struct admin *admin, const struct drains *drains, struct buffer *out)
{
	const struct ruler_known *known = &admin->ruler->known;

	ruler_view_json_number(out, "busy", drains->busy);
	ruler_view_json_number(out, "writing", drains->writing);
	ruler_view_json_open(out, "drains", '[');
	for (uint32_t i = 0; i < drains->count; i++) {
		struct id128 id = drains->items[i].family;
		uint32_t place = ruler_shelf_find(&known->family_shelf, id);
		char hex[ID_HEX_LEN];

		id_encode(id, hex);
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_text(out, "family", (struct span){ hex, ID_HEX_LEN });
		if (place != RULER_SHELF_NONE) {
			ruler_view_json_text(out, "route",
			                     span_from(known->families[place].route));
			ruler_view_json_number(out, "since_ms",
			                       board_drains_since(&admin->board, place));
		}
		ruler_view_json_number(out, "running", drains->items[i].jobs);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

static struct span
member(const struct reply *hash, const char *name)
{
	for (size_t i = 0; hash->kind == REPLY_ARRAY && i + 1 < hash->count; i += 2)
		if (reply_is(&hash->items[i], name))
			return reply_text(&hash->items[i + 1]);
	return SPAN("");
}

static uint64_t
number(struct span text)
{
	struct reply reply = { .kind = REPLY_TEXT, .text = text };
	int64_t value = reply_integer(&reply, 0);

	return value > 0 ? (uint64_t)value : 0;
}

/* A word of the field `s` of its leases: c|pool|job_ms|budgets!unreached|manner. */
static struct span
word_of(const struct reply *leases, int place)
{
	struct span text = member(leases, "s"), word = SPAN("");

	for (int i = 0; i <= place; i++)
		if (!protocol_cut(&text, '|', &word))
			return SPAN("");
	return word;
}

static struct span
state_of(const struct reply *leases)
{
	struct span manner = word_of(leases, 4);

	if (span_equals(manner, SPAN("stop")))
		return SPAN("stopping");
	return manner.len > 0 ? manner : SPAN("running");
}

/* Behind a '!' among its budgets: the upstreams whose jobs it leaves to others. */
static void
put_unreached(const struct reply *leases, struct buffer *out)
{
	struct span names = word_of(leases, 3), name;

	ruler_view_json_open(out, "unreached", '[');
	if (protocol_cut(&names, '!', &name))
		while (protocol_list_next(&names, &name))
			ruler_view_json_text(out, NULL, name);
	ruler_view_json_close(out, ']');
}

static void
put_worker(struct admin_ask *ask, struct span nonce, const struct reply *session,
           const struct reply *leases)
{
	struct buffer *out = &ask->response.body;
	struct drains drains = count_leases(leases);

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "session", nonce);
	ruler_view_json_text(out, "label", member(session, "label"));
	ruler_view_json_text(out, "pool", word_of(leases, 1));
	ruler_view_json_text(out, "state", state_of(leases));
	put_unreached(leases, out);
	ruler_view_json_number(out, "slots", number(member(session, "slots")));
	ruler_view_json_number(out, "since_ms", number(member(session, "since")));
	put_drains(ask->admin, &drains, out);
	ruler_view_json_close(out, '}');
}

/* ---- the page -------------------------------------------------------------------- */

/* Pairs of replies: a session, its leases.  Their nonces are in the scratch. */
static void
put_workers(struct admin_ask *ask)
{
	struct buffer *out = &ask->response.body;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "now_ms", *ask->admin->now_ms);
	ruler_view_json_number(out, "total", ask->total);
	ruler_view_json_number(out, "offset", ask->offset);
	ruler_view_json_number(out, "limit", ask->limit);
	ruler_view_json_open(out, "workers", '[');
	for (uint32_t i = 0; i + 1 < ask->replies_count; i += 2) {
		struct span nonce = { ask->scratch.data + (size_t)i / 2 * 16, 16 };

		if (ask->replies[i]->count > 0) /* it may have left since */
			put_worker(ask, nonce, ask->replies[i], ask->replies[i + 1]);
	}
	ruler_view_json_close(out, ']');
	ruler_view_json_close(out, '}');
	admin_ask_finish(ask);
}

static void
on_nonces(struct admin_ask *ask)
{
	const struct reply *nonces = ask->replies[0];

	ask->total = nonces->count;
	for (uint64_t i = ask->offset; i < nonces->count && i < ask->offset + ask->limit;
	     i++) {
		struct span nonce = reply_text(&nonces->items[i]);

		if (nonce.len != 16)
			continue;
		(void)buffer_append(&ask->scratch, nonce);
		ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "session:", nonce));
		ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "lease:", nonce));
	}
	admin_ask_round(ask, put_workers);
}

void
admin_worker_serve(struct admin *admin, const struct http_server_request *request,
                   struct http_server_response *response)
{
	struct admin_ask *ask;
	uint64_t offset, limit;

	if (admin_query_number(request, "offset", 1000000, 0, &offset) < 0 ||
	    admin_query_number(request, "limit", LIMIT_MAX, LIMIT_DEFAULT, &limit) < 0) {
		admin_put_error(response, 400, "limit is a number up to 100");
		return;
	}
	ask = admin_ask_open(admin, request, response, on_nonces);
	if (!ask)
		return;
	ask->offset = offset;
	ask->limit = limit;
	ADMIN_ASK(ask, SPAN("ZRANGE"), admin_ask_key(ask, "workers", SPAN("")), SPAN("0"),
	          SPAN("-1"));
	admin_ask_round(ask, on_nonces);
}
