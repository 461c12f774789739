#include "scheduler/admin_ledger.h"

#include "scheduler/admin_change.h"
#include "scheduler/admin_jumps.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view_json.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS    LEDGER_VIEW_HOUR_MS
#define BURSTS_MAX 30
#define NANO       1000000000u

/* ---- pieces ---------------------------------------------------------------------- */

void
admin_ledger_put_money(struct buffer *out, const char *name, uint64_t nanodollars)
{
	char text[64];

	/* A number of JSON, without a detour over floating point. */
	(void)snprintf(text, sizeof(text), "%llu.%09llu",
	               (unsigned long long)(nanodollars / NANO),
	               (unsigned long long)(nanodollars % NANO));
	ruler_view_json_raw(out, name, span_from(text));
}

static void
put_cause(enum ledger_cause cause, const struct ledger_cause_sum *sum, struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "cause", span_from(ledger_cause_text(cause)));
	ruler_view_json_text(out, "meaning", span_from(ledger_cause_meaning(cause)));
	ruler_view_json_bool(out, "avoidable", ledger_cause_is_avoidable(cause));
	ruler_view_json_number(out, "calls", sum->calls);
	ruler_view_json_number(out, "written", sum->written);
	ruler_view_json_number(out, "full", sum->full);
	admin_ledger_put_money(out, "cost", sum->cost);
	admin_ledger_put_money(out, "extra", sum->extra);
	ruler_view_json_close(out, '}');
}

static void
put_sums(const char *name, const struct ledger_sums *sums, struct buffer *out)
{
	ruler_view_json_open(out, name, '{');
	ruler_view_json_number(out, "calls", sums->calls);
	ruler_view_json_number(out, "answers", sums->answers);
	ruler_view_json_number(out, "read", sums->read);
	ruler_view_json_number(out, "written", sums->written);
	ruler_view_json_number(out, "uncached", sums->uncached);
	ruler_view_json_number(out, "output", sums->output);
	ruler_view_json_ratio(out, "prefix_hit_ratio", sums->hits, sums->prefixed);
	ruler_view_json_ratio(out, "token_read_ratio", sums->read,
	                      sums->read + sums->written + sums->uncached);
	admin_ledger_put_money(out, "cost", sums->cost);
	admin_ledger_put_money(out, "avoidable", ledger_view_avoidable(sums));
	admin_ledger_put_money(out, "saved", sums->saved);
	ruler_view_json_number(out, "unpriced", sums->unpriced);
	ruler_view_json_number(out, "unreported", sums->unreported);
	ruler_view_json_number(out, "estimated", sums->estimated);
	ruler_view_json_open(out, "causes", '[');
	for (uint32_t i = 0; i < LEDGER_CAUSE_COUNT; i++)
		if (sums->causes[i].calls > 0)
			put_cause((enum ledger_cause)i, &sums->causes[i], out);
	ruler_view_json_close(out, ']');
	ruler_view_json_close(out, '}');
}

static uint64_t
hour_of(uint64_t ms)
{
	return ms / HOUR_MS * HOUR_MS;
}

struct ledger_sums
admin_ledger_hour(const struct ledger *ledger, uint32_t route, uint64_t now_ms,
                  uint32_t back)
{
	struct ledger_sums sums = { 0 };
	uint64_t hour = hour_of(now_ms), ago = (uint64_t)back * HOUR_MS;

	if (hour >= ago)
		ledger_view_hours(ledger, route, hour - ago, hour - ago + HOUR_MS, &sums);
	return sums;
}

/* ---- hours ----------------------------------------------------------------------- */

static void
put_hours(const struct ledger *ledger, uint32_t route, uint64_t now_ms,
          struct buffer *out)
{
	ruler_view_json_open(out, "hours", '[');
	for (uint32_t back = LEDGER_HOURS; back-- > 0;) {
		struct ledger_sums sums = admin_ledger_hour(ledger, route, now_ms, back);

		if (sums.calls == 0 && back > 0)
			continue; /* a week of rest is a short text */
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_number(out, "at_ms",
		                       hour_of(now_ms) - (uint64_t)back * HOUR_MS);
		ruler_view_json_number(out, "read", sums.read);
		ruler_view_json_number(out, "written", sums.written);
		ruler_view_json_number(out, "uncached", sums.uncached);
		admin_ledger_put_money(out, "cost", sums.cost);
		admin_ledger_put_money(out, "avoidable", ledger_view_avoidable(&sums));
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

/* ---- bursts ---------------------------------------------------------------------- */

static void
put_burst(const struct ledger_view_burst *burst, struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "route", burst->route);
	ruler_view_json_id(out, "family", burst->family);
	ruler_view_json_number(out, "start_ms", burst->start_ms);
	ruler_view_json_number(out, "starts", burst->starts);
	ruler_view_json_number(out, "hits", burst->hits);
	ruler_view_json_number(out, "writes", burst->writes);
	ruler_view_json_number(out, "extra_writes", burst->extra_writes);
	if (burst->readable_ms == EVENT_UNKNOWN)
		ruler_view_json_raw(out, "readable_ms", SPAN("null"));
	else
		ruler_view_json_number(out, "readable_ms", burst->readable_ms);
	ruler_view_json_number(out, "held_ms", burst->held_ms);
	ruler_view_json_number(out, "refusals", burst->refusals);
	admin_ledger_put_money(out, "cost", burst->cost);
	admin_ledger_put_money(out, "naive_cost", burst->naive_cost);
	ruler_view_json_bool(out, "open", burst->open);
	ruler_view_json_bool(out, "spike", burst->spike);
	ruler_view_json_close(out, '}');
}

static void
put_bursts(const struct ledger *ledger, uint32_t route, struct buffer *out)
{
	struct ledger_view_burst burst;

	ruler_view_json_open(out, "bursts", '[');
	for (uint32_t i = 0;
	     i < BURSTS_MAX && ledger_view_burst(ledger, route, i, &burst); i++)
		put_burst(&burst, out);
	ruler_view_json_close(out, ']');
}

/* ---- places ---------------------------------------------------------------------- */

static void
put_rests(const struct ledger_view_place *place, struct buffer *out)
{
	ruler_view_json_open(out, "rests", '[');
	for (uint32_t i = 0; i < LEDGER_VIEW_RESTS; i++) {
		const struct ledger_view_rest *rest = &place->rests[i];

		if (rest->kept + rest->gone == 0)
			continue;
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_number(out, "from_ms", rest->from_ms);
		ruler_view_json_number(out, "to_ms", rest->to_ms);
		ruler_view_json_number(out, "kept", rest->kept);
		ruler_view_json_number(out, "gone", rest->gone);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

static void
put_ahead(const struct ledger *ledger, struct buffer *out)
{
	struct ledger_view_ahead ahead = ledger_view_ahead(ledger);

	ruler_view_json_open(out, "ahead", '{');
	ruler_view_json_number(out, "calls", ahead.calls);
	admin_ledger_put_money(out, "cost", ahead.cost);
	ruler_view_json_number(out, "used", ahead.used);
	ruler_view_json_number(out, "wasted", ahead.wasted);
	ruler_view_json_close(out, '}');
}

static void
put_places(const struct ledger *ledger, struct buffer *out)
{
	struct ledger_view_place place;

	ruler_view_json_open(out, "places", '[');
	for (uint32_t i = 0; ledger_view_place(ledger, i, &place); i++) {
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_text(out, "place", place.name);
		ruler_view_json_number(out, "last_ms", place.last_ms);
		ruler_view_json_number(out, "ttl_ms", place.ttl_ms);
		put_rests(&place, out);
		put_sums("ever", &place.ever, out);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

/* ---- routes and their versions --------------------------------------------------- */

static void
put_change(const struct admin *admin, struct id128 family, struct buffer *out)
{
	const struct admin_change *change = admin_change_find(admin, family);

	if (!change)
		return;
	ruler_view_json_open(out, "change", '{');
	admin_change_put(change, out);
	ruler_view_json_close(out, '}');
}

static void
put_version(const struct admin *admin, const struct ledger_view_version *version,
            struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_id(out, "family", version->family);
	ruler_view_json_text(out, "place", version->place);
	ruler_view_json_number(out, "number", version->number);
	ruler_view_json_number(out, "first_ms", version->first_ms);
	ruler_view_json_number(out, "last_ms", version->last_ms);
	ruler_view_json_number(out, "tokens", version->tokens);
	ruler_view_json_number(out, "answers", version->answers);
	ruler_view_json_number(out, "writes", version->writes);
	ruler_view_json_number(out, "read", version->read);
	ruler_view_json_number(out, "written", version->written);
	ruler_view_json_ratio(out, "prefix_hit_ratio", version->hits, version->prefixed);
	ruler_view_json_ratio(out, "share", version->share_permille, 1000);
	ruler_view_json_bool(out, "alive", version->alive);
	ruler_view_json_bool(out, "variant", version->variant);
	ruler_view_json_bool(out, "twin", version->twin);
	ruler_view_json_bool(out, "split", version->split);
	put_change(admin, version->family, out);
	ruler_view_json_close(out, '}');
}

static void
put_versions(const struct admin *admin, uint32_t route, uint64_t now_ms,
             struct buffer *out)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct ledger_view_version version;

	ruler_view_json_open(out, "versions", '[');
	for (uint32_t i = 0; ledger_view_version(ledger, route, i, now_ms, &version); i++)
		put_version(admin, &version, out);
	ruler_view_json_close(out, ']');
}

/* Prefixes that came to a route that had one, of all routes, the newest first. */
#define CHANGES_MAX 64

struct change {
	struct span route;
	struct ledger_view_version version;
};

static int
by_time(const void *left, const void *right)
{
	const struct change *a = left, *b = right;

	if (a->version.first_ms != b->version.first_ms)
		return a->version.first_ms > b->version.first_ms ? -1 : 1;
	return a->version.number > b->version.number ? -1 : 1;
}

static uint32_t
add_changes(const struct ledger *ledger, uint32_t i, uint64_t now_ms,
            struct change *changes, uint32_t count)
{
	struct ledger_view_version version;
	struct ledger_view_route route;

	ledger_view_route(ledger, i, now_ms, &route);
	for (uint32_t j = 0; ledger_view_version(ledger, i, j, now_ms, &version); j++)
		if (version.number > 1)
			changes[count++] = (struct change){ route.name, version };
	return count;
}

static void
put_changes(const struct admin *admin, uint64_t now_ms, struct buffer *out)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct change changes[(LEDGER_ROUTES + 1) * LEDGER_VERSIONS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < ledger_view_routes(ledger); i++)
		count = add_changes(ledger, i, now_ms, changes, count);
	qsort(changes, count, sizeof(*changes), by_time);
	ruler_view_json_open(out, "changes", '[');
	for (uint32_t i = 0; i < MIN(count, CHANGES_MAX); i++) {
		const struct ledger_view_version *version = &changes[i].version;

		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_number(out, "at_ms", version->first_ms);
		ruler_view_json_text(out, "route", changes[i].route);
		ruler_view_json_id(out, "family", version->family);
		ruler_view_json_number(out, "number", version->number);
		ruler_view_json_number(out, "tokens", version->tokens);
		ruler_view_json_text(out, "place", version->place);
		ruler_view_json_bool(out, "twin", version->twin);
		put_change(admin, version->family, out);
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
}

static void
put_route(const struct admin *admin, uint32_t i, uint64_t now_ms, struct buffer *out)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct ledger_sums last = admin_ledger_hour(ledger, i, now_ms, 1);
	struct ledger_sums yesterday = admin_ledger_hour(ledger, i, now_ms, 24);
	struct ledger_view_route route;

	ledger_view_route(ledger, i, now_ms, &route);
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "route", route.name);
	ruler_view_json_number(out, "first_ms", route.first_ms);
	ruler_view_json_number(out, "last_ms", route.last_ms);
	ruler_view_json_number(out, "versions", route.versions);
	ruler_view_json_number(out, "versions_seen", route.versions_seen);
	ruler_view_json_number(out, "variants", route.variants);
	admin_ledger_put_money(out, "split_cost", route.split_cost);
	admin_ledger_put_money(out, "this_hour", route.this_hour.cost);
	admin_ledger_put_money(out, "last_hour", last.cost);
	admin_ledger_put_money(out, "yesterday", yesterday.cost);
	admin_ledger_put_money(out, "week", route.week.cost);
	admin_ledger_put_money(out, "avoidable", ledger_view_avoidable(&route.week));
	admin_jumps_put(admin, i, now_ms, out);
	ruler_view_json_number(out, "read", route.week.read);
	ruler_view_json_number(out, "written", route.week.written);
	ruler_view_json_close(out, '}');
}

/* ---- the page -------------------------------------------------------------------- */

static void
put_health(const struct ledger *ledger, struct buffer *out)
{
	struct ledger_view_health health;

	ledger_view_health(ledger, &health);
	ruler_view_json_number(out, "since_ms", health.since_ms);
	ruler_view_json_bool(out, "sums_up", health.sums_up);
	ruler_view_json_number(out, "gaps", health.gaps);
	ruler_view_json_number(out, "gap_ms", health.gap_ms);
	ruler_view_json_number(out, "hidden", health.hidden);
}

void
admin_ledger_serve(struct admin *admin, const struct http_server_request *request,
                   struct http_server_response *response)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct span name = admin_query_text(request, "route");
	uint64_t now_ms = *admin->now_ms;
	uint32_t route = name.len > 0 ? ledger_view_find(ledger, name) : LEDGER_VIEW_ALL;
	struct buffer *out = &response->body;
	struct ledger_sums sums;

	if (name.len > 0 && route == LEDGER_VIEW_ALL) {
		admin_put_error(response, 404, "nothing was paid for this route yet");
		return;
	}
	response->content_type = "application/json";
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "now_ms", now_ms);
	put_health(ledger, out);
	sums = admin_ledger_hour(ledger, route, now_ms, 0);
	put_sums("this_hour", &sums, out);
	sums = admin_ledger_hour(ledger, route, now_ms, 1);
	put_sums("last_hour", &sums, out);
	sums = admin_ledger_hour(ledger, route, now_ms, 24);
	put_sums("yesterday", &sums, out);
	ledger_view_hours(ledger, route, 0, now_ms + 1, &sums);
	put_sums("week", &sums, out);
	put_hours(ledger, route, now_ms, out);
	put_bursts(ledger, route, out);
	put_places(ledger, out);
	put_ahead(ledger, out);
	put_changes(admin, now_ms, out);
	board_put_changes(&admin->board, CHANGES_MAX, out);
	if (name.len > 0)
		put_versions(admin, route, now_ms, out);
	ruler_view_json_open(out, "routes", '[');
	for (uint32_t i = 0; i < ledger_view_routes(ledger); i++)
		if (name.len == 0 || i == route)
			put_route(admin, i, now_ms, out);
	ruler_view_json_close(out, ']');
	ruler_view_json_close(out, '}');
	(void)buffer_append_byte(out, '\n');
}
