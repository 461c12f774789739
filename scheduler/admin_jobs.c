#include "scheduler/admin_jobs.h"

#include "common/codec/protocol_record.h"
#include "scheduler/admin_ask.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     200
#define SESSIONS_MAX  1000 /* whose leases are looked at */
#define FAMILIES_MAX  128  /* of one route, whose queues are looked at */
#define SEARCH_CHUNK  500  /* of those that are searched in one round */
#define SEARCH_MAX    10000
#define SEARCH_COST   40 /* commands, as the cache is told: 4 s */

/* What is asked for, in ask->text. */
enum {
	AT_STATE = 0,
	AT_FAMILY = 64,
	AT_ROUTE = 128,
};

const char *const admin_jobs_lists[ADMIN_JOBS_LISTS] = {
	"now:", "back:h:", "ready:h:", "back:n:", "ready:n:", "back:l:", "ready:l:"
};

struct span
admin_jobs_id(struct span element)
{
	for (size_t i = 0; i < element.len; i++)
		if (element.data[i] == '~' || element.data[i] == '/')
			return (struct span){ element.data, i };
	return element;
}

bool
admin_jobs_is_id(const char *text)
{
	struct protocol_job_id id;

	return protocol_parse_job_id(span_from(text), &id) == 0;
}

static uint64_t
enqueued_ms(struct span id)
{
	struct protocol_job_id parsed;

	return protocol_parse_job_id(id, &parsed) == 0 ? parsed.ms : 0;
}

/* ---- a page of jobs -------------------------------------------------------------- */

static void
open_page(struct admin_ask *ask, const char *state)
{
	struct buffer *out = &ask->response.body;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "now_ms", *ask->admin->now_ms);
	ruler_view_json_text(out, "state", span_from(state));
	ruler_view_json_number(out, "offset", ask->offset);
	ruler_view_json_number(out, "limit", ask->limit);
	ruler_view_json_open(out, "jobs", '[');
}

static void
close_page(struct admin_ask *ask)
{
	struct buffer *out = &ask->response.body;

	ruler_view_json_close(out, ']');
	ruler_view_json_number(out, "total", ask->total);
	if (ask->number > 0)
		ruler_view_json_number(out, "searched", ask->number);
	ruler_view_json_close(out, '}');
	admin_ask_finish(ask);
}

/* ---- which ----------------------------------------------------------------------- */

static bool
is_search(const struct admin_ask *ask)
{
	return ask->text[AT_FAMILY] != '\0' || ask->text[AT_ROUTE] != '\0';
}

static const char *
route_of(const struct admin_ask *ask, struct span family)
{
	const struct ruler_known *known = &ask->admin->ruler->known;
	struct id128 id;
	uint32_t place = RULER_SHELF_NONE;

	if (id_decode(family, &id) == 0)
		place = ruler_shelf_find(&known->family_shelf, id);
	return place == RULER_SHELF_NONE ? NULL : known->families[place].route;
}

/* Jobs of families that are not remembered any more are found by no route. */
static bool
is_wanted(const struct admin_ask *ask, struct span family)
{
	struct span wanted = span_from(ask->text + AT_FAMILY);
	const char *route;

	if (wanted.len > 0)
		return span_equals(wanted, family);
	if (ask->text[AT_ROUTE] == '\0')
		return true;
	route = route_of(ask, family);
	return route && strcmp(route, ask->text + AT_ROUTE) == 0;
}

static void
put_family(const struct admin_ask *ask, struct span family, struct buffer *out)
{
	const char *route = route_of(ask, family);

	if (family.len > 0)
		ruler_view_json_text(out, "family", family);
	if (route)
		ruler_view_json_text(out, "route", span_from(route));
}

static void
open_job(struct buffer *out, struct span id)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "id", id);
	ruler_view_json_number(out, "enqueued_ms", enqueued_ms(id));
}

/* ---- dead and later: a sorted set, and what is remembered of each ---------------- */

static void ask_set(struct admin_ask *ask);

static void
put_one(struct admin_ask *ask, struct span id, struct span time, const struct reply *past)
{
	static const char *const names[] = { "family",   "reason",    "why",
		                             "attempts", "deferrals", "recoveries" };
	struct buffer *out = &ask->response.body;
	const struct reply number = { .kind = REPLY_TEXT, .text = time };

	open_job(out, id);
	ruler_view_json_number(out, "time_ms", (uint64_t)reply_integer(&number, 0));
	put_family(ask, reply_text(reply_at(past, 0)), out);
	for (size_t n = 1; n < ARRAY_SIZE(names); n++)
		if (reply_text(reply_at(past, n)).len > 0)
			ruler_view_json_text(out, names[n],
			                     reply_text(reply_at(past, n)));
	ruler_view_json_close(out, '}');
}

/* A search counts those that it finds, in ask->total, and how many it has looked at, in
 * ask->number. */
static void
put_found(struct admin_ask *ask, struct span id, struct span time,
          const struct reply *past)
{
	if (is_search(ask) && !is_wanted(ask, reply_text(reply_at(past, 0))))
		return;
	if (!is_search(ask) ||
	    (ask->total >= ask->offset && ask->total < ask->offset + ask->limit))
		put_one(ask, id, time, past);
	ask->total += is_search(ask);
}

/* ask->scratch: "<id> <time>\n" of each; replies: its past. */
static void
put_remembered(struct admin_ask *ask)
{
	struct span rest = buffer_span(&ask->scratch), line, id;

	if (ask->response.body.len == 0)
		open_page(ask, ask->text);
	for (uint32_t i = 0; i < ask->replies_count; i++)
		if (protocol_cut(&rest, '\n', &line) && protocol_cut(&line, ' ', &id))
			put_found(ask, id, line, ask->replies[i]);
	if (!is_search(ask)) {
		close_page(ask);
		return;
	}
	ask->number += ask->replies_count;
	if (ask->replies_count == SEARCH_CHUNK && ask->number < SEARCH_MAX) {
		ask_set(ask);
		return;
	}
	ask->commands = MIN(ask->commands, SEARCH_COST);
	close_page(ask);
}

static void
on_set(struct admin_ask *ask)
{
	const struct reply *members = ask->replies[1];

	if (!is_search(ask))
		ask->total = (uint64_t)MAX(reply_integer(ask->replies[0], 0), 0);
	buffer_clear(&ask->scratch);
	for (size_t i = 0; i + 1 < members->count; i += 2) {
		struct span id = reply_text(&members->items[i]);

		(void)buffer_append(&ask->scratch, id);
		(void)buffer_append_byte(&ask->scratch, ' ');
		(void)buffer_append(&ask->scratch, reply_text(&members->items[i + 1]));
		(void)buffer_append_byte(&ask->scratch, '\n');
		ADMIN_ASK(ask, SPAN("HMGET"), admin_ask_key(ask, "past:", id),
		          SPAN("family"), SPAN("reason"), SPAN("why"), SPAN("attempts"),
		          SPAN("deferrals"), SPAN("recoveries"));
	}
	admin_ask_round(ask, put_remembered);
}

static void
ask_set(struct admin_ask *ask)
{
	struct span key = admin_ask_key(ask, ask->text, SPAN(""));
	bool dead = strcmp(ask->text, "dead") == 0; /* the latest first */
	uint64_t from = is_search(ask) ? ask->number : ask->offset;
	uint64_t count = is_search(ask) ? SEARCH_CHUNK : ask->limit;

	ADMIN_ASK(ask, SPAN("ZCARD"), key);
	ADMIN_ASK(ask, dead ? SPAN("ZREVRANGE") : SPAN("ZRANGE"), key,
	          admin_ask_number(from), admin_ask_number(from + count - 1),
	          SPAN("WITHSCORES"));
	admin_ask_round(ask, on_set);
}

/* ---- running: the leases of all sessions ----------------------------------------- */

static void
put_lease(struct admin_ask *ask, struct span nonce, struct span slot,
          const struct protocol_lease *lease)
{
	struct buffer *out = &ask->response.body;

	open_job(out, admin_jobs_id(lease->element));
	put_family(ask, lease->family, out);
	ruler_view_json_text(out, "role", span_from(protocol_role_text(lease->role)));
	ruler_view_json_text(out, "session", nonce);
	ruler_view_json_text(out, "slot", slot);
	ruler_view_json_number(out, "delivery", lease->delivery);
	ruler_view_json_close(out, '}');
}

/* ask->scratch: the nonces.  Puts those in the page, and counts all. */
static uint64_t
walk_leases(struct admin_ask *ask, bool put)
{
	struct protocol_lease lease;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < ask->replies_count; i++) {
		const struct reply *table = ask->replies[i];
		struct span nonce = { ask->scratch.data + (size_t)i * 16, 16 };

		for (size_t j = 0; table->kind == REPLY_ARRAY && j + 1 < table->count;
		     j += 2) {
			if (reply_is(&table->items[j], "s") ||
			    protocol_record_parse_lease(reply_text(&table->items[j + 1]),
			                                &lease) < 0)
				continue;
			if (!is_wanted(ask, lease.family))
				continue;
			if (put && seen >= ask->offset && seen < ask->offset + ask->limit)
				put_lease(ask, nonce, reply_text(&table->items[j]),
				          &lease);
			seen++;
		}
	}
	return seen;
}

static void
put_running(struct admin_ask *ask)
{
	ask->total = walk_leases(ask, false);
	open_page(ask, "running");
	(void)walk_leases(ask, true);
	close_page(ask);
}

static void
ask_leases(struct admin_ask *ask, const struct reply *nonces, admin_ask_fn *done)
{
	for (size_t i = 0; i < nonces->count && i < SESSIONS_MAX; i++) {
		struct span nonce = reply_text(&nonces->items[i]);

		if (nonce.len != 16)
			continue;
		(void)buffer_append(&ask->scratch, nonce);
		ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "lease:", nonce));
	}
	admin_ask_round(ask, done);
}

static void
on_sessions(struct admin_ask *ask)
{
	ask_leases(ask, ask->replies[0], put_running);
}

static void
ask_workers(struct admin_ask *ask)
{
	ADMIN_ASK(ask, SPAN("ZRANGE"), admin_ask_key(ask, "workers", SPAN("")), SPAN("0"),
	          SPAN("-1"));
}

/* ---- waiting: the lists of one family, or of those of a route -------------------- */

static struct span
family_at(const struct admin_ask *ask, size_t i)
{
	return (struct span){ ask->scratch.data + i * ID_HEX_LEN, ID_HEX_LEN };
}

/* ask->words: the family of each list. */
static void
put_waiting(struct admin_ask *ask)
{
	struct buffer *out = &ask->response.body;

	open_page(ask, "waiting");
	for (uint32_t i = 0; i < ask->replies_count; i++) {
		const struct reply *list = ask->replies[i];

		for (size_t j = 0; list->kind == REPLY_ARRAY && j < list->count; j++) {
			open_job(out, admin_jobs_id(reply_text(&list->items[j])));
			put_family(ask, ask->words[i], out);
			ruler_view_json_close(out, '}');
		}
	}
	close_page(ask);
}

/* Which part of each list falls into the page. */
static void
on_lengths(struct admin_ask *ask)
{
	uint64_t from = 0, first = ask->offset, end = ask->offset + ask->limit;
	uint32_t lists = 0;

	for (size_t i = 0; i < ask->replies_count; i++) {
		uint64_t len = (uint64_t)MAX(reply_integer(ask->replies[i], 0), 0);
		uint64_t a = MAX(first, from), b = MIN(end, from + len);
		struct span family = family_at(ask, i / ADMIN_JOBS_LISTS);

		from += len;
		if (a >= b)
			continue;
		ask->words[lists++] = family;
		ADMIN_ASK(ask, SPAN("LRANGE"),
		          admin_ask_key(ask, admin_jobs_lists[i % ADMIN_JOBS_LISTS],
		                        family),
		          admin_ask_number(a - (from - len)),
		          admin_ask_number(b - (from - len) - 1));
	}
	ask->total = from;
	admin_ask_round(ask, put_waiting);
}

/* The families of a route that have most waiting jobs. */
static void
add_families(struct admin_ask *ask)
{
	struct board *board = &ask->admin->board;
	const struct board_query query = {
		.sort = BOARD_SORT_WAITING,
		.show = BOARD_SHOW_ALL,
		.route = span_from(ask->text + AT_ROUTE),
		.blocked = -1,
		.limit = FAMILIES_MAX,
	};
	const struct board_row *rows[BOARD_LIMIT_MAX];
	uint32_t count;

	board_refresh(board, *ask->admin->now_ms);
	(void)board_select(board, &query, rows, &count);
	for (uint32_t i = 0; i < count && rows[i]->waiting > 0; i++)
		(void)buffer_append_id(&ask->scratch, rows[i]->id);
}

static void
ask_lists(struct admin_ask *ask)
{
	if (ask->text[AT_FAMILY] != '\0')
		(void)buffer_append_text(&ask->scratch, ask->text + AT_FAMILY);
	else
		add_families(ask);
	for (size_t i = 0; i < ask->scratch.len / ID_HEX_LEN; i++)
		for (size_t j = 0; j < ADMIN_JOBS_LISTS; j++)
			ADMIN_ASK(ask, SPAN("LLEN"),
			          admin_ask_key(ask, admin_jobs_lists[j],
			                        family_at(ask, i)));
	admin_ask_round(ask, on_lengths);
}

/* ---- the list of them ------------------------------------------------------------ */

static const char *
check_query(struct span state, struct span family, struct span route)
{
	struct id128 id;

	if (family.len > 0 && id_decode(family, &id) < 0)
		return "the id of a family is 32 hex digits";
	if (route.len >= RULER_ROUTE_SIZE)
		return "a route has at most 128 bytes";
	if (span_equals(state, SPAN("waiting")))
		return family.len > 0 || route.len > 0
		               ? NULL
		               : "waiting jobs are listed by family or route: add "
		                 "&family= or &route=";
	if (!span_equals(state, SPAN("running")) && !span_equals(state, SPAN("dead")) &&
	    !span_equals(state, SPAN("later")))
		return "state is one of waiting, running, later, dead";
	return NULL;
}

static void
copy(struct admin_ask *ask, size_t at, struct span text)
{
	if (text.len > 0) /* checked to be short; the rest is zero */
		memcpy(ask->text + at, text.data, text.len);
}

void
admin_jobs_serve_list(struct admin *admin, const struct http_server_request *request,
                      struct http_server_response *response)
{
	struct span state = admin_query_text(request, "state");
	struct span family = admin_query_text(request, "family");
	struct span route = admin_query_text(request, "route");
	const char *wrong = check_query(state, family, route);
	struct admin_ask *ask;
	uint64_t offset, limit;

	if (!wrong &&
	    (admin_query_number(request, "offset", 100000000, 0, &offset) < 0 ||
	     admin_query_number(request, "limit", LIMIT_MAX, LIMIT_DEFAULT, &limit) < 0 ||
	     limit == 0))
		wrong = "limit is a number from 1 to 200, offset one up to 100000000";
	if (wrong) {
		admin_put_error(response, 400, wrong);
		return;
	}
	ask = admin_ask_open(admin, request, response, on_sessions);
	if (!ask)
		return;
	ask->offset = offset;
	ask->limit = limit;
	copy(ask, AT_STATE, state);
	copy(ask, AT_FAMILY, family);
	copy(ask, AT_ROUTE, route);
	if (span_equals(state, SPAN("waiting"))) {
		ask_lists(ask);
	} else if (span_equals(state, SPAN("running"))) {
		ask_workers(ask);
		admin_ask_round(ask, on_sessions);
	} else {
		ask_set(ask);
	}
}
