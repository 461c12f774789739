#include "scheduler/ledger/ledger_view.h"

#include "scheduler/ledger/ledger_state.h"

/* ---- rows ------------------------------------------------------------------------ */

/* Rows are handed out in the order of their places, free ones left out. */
static uint32_t
row_at(const struct ledger *ledger, uint32_t route)
{
	for (uint32_t i = 0; i < LEDGER_ROWS; i++)
		if (ledger->routes[i].name[0] != '\0' && route-- == 0)
			return i;
	return LEDGER_VIEW_ALL;
}

uint32_t
ledger_view_routes(const struct ledger *ledger)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < LEDGER_ROWS; i++)
		count += ledger->routes[i].name[0] != '\0';
	return count;
}

uint32_t
ledger_view_find(const struct ledger *ledger, struct span name)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < LEDGER_ROWS; i++) {
		if (ledger->routes[i].name[0] == '\0')
			continue;
		if (span_equals(span_from(ledger->routes[i].name), name))
			return count;
		count++;
	}
	return LEDGER_VIEW_ALL;
}

/* ---- sums ------------------------------------------------------------------------ */

static void
add_hours(const struct ledger *ledger, uint32_t row, uint64_t from, uint64_t until,
          struct ledger_sums *sums)
{
	uint64_t apart = until - MIN(from, until);
	uint64_t count = MIN(apart, LEDGER_HOURS - 1) + 1;

	/* Of all hours that there are, those between the two: few of them, or a walk. */
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = count == LEDGER_HOURS ? i : (from + i) % LEDGER_HOURS;
		const struct ledger_hour *hour = &ledger->hours[at];

		if (hour->hour > 0 && hour->hour >= from && hour->hour <= until)
			ledger_sums_merge(sums, &hour->rows[row]);
	}
}

uint64_t
ledger_view_avoidable(const struct ledger_sums *sums)
{
	uint64_t extra = 0;

	for (uint32_t i = 0; i < LEDGER_CAUSE_COUNT; i++)
		if (ledger_cause_is_avoidable((enum ledger_cause)i))
			extra += sums->causes[i].extra;
	return extra;
}

void
ledger_view_hours(const struct ledger *ledger, uint32_t route, uint64_t from_ms,
                  uint64_t until_ms, struct ledger_sums *ret_sums)
{
	uint64_t from = from_ms / LEDGER_HOUR_MS;
	uint64_t until = until_ms > 0 ? (until_ms - 1) / LEDGER_HOUR_MS : 0;

	*ret_sums = (struct ledger_sums){ 0 };
	if (route != LEDGER_VIEW_ALL) {
		VERIFY(route < ledger_view_routes(ledger));
		add_hours(ledger, row_at(ledger, route), from, until, ret_sums);
		return;
	}
	for (uint32_t i = 0; i < LEDGER_ROWS; i++)
		add_hours(ledger, i, from, until, ret_sums);
}

/* ---- versions -------------------------------------------------------------------- */

static bool
is_alive(const struct ledger_version *version, uint64_t now_ms)
{
	return !id_is_none(version->family) &&
	       version->last_ms + LEDGER_ALIVE_MS >= now_ms;
}

/* Both lived for ten minutes at the same time. */
static bool
is_beside(const struct ledger_version *a, const struct ledger_version *b)
{
	uint64_t from = MAX(a->first_ms, b->first_ms);
	uint64_t until = MIN(a->last_ms, b->last_ms);

	return a != b && a->shared && b->shared && !id_equals(a->twin, b->twin) &&
	       until >= from + LEDGER_ALIVE_MS;
}

static bool
is_variant(const struct ledger_route *route, const struct ledger_version *version,
           uint64_t now_ms)
{
	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++)
		if (is_alive(version, now_ms) && is_alive(&route->versions[i], now_ms) &&
		    is_beside(version, &route->versions[i]))
			return true;
	return false;
}

static bool
is_twin(const struct ledger_route *route, const struct ledger_version *version)
{
	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++) {
		const struct ledger_version *it = &route->versions[i];

		if (it != version && !id_is_none(it->family) && it->number > 0 &&
		    it->number < version->number && id_equals(it->twin, version->twin))
			return true;
	}
	return false;
}

static uint64_t
answers_alive(const struct ledger_route *route, uint64_t now_ms)
{
	uint64_t answers = 0;

	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++)
		if (is_alive(&route->versions[i], now_ms))
			answers += route->versions[i].answers;
	return answers;
}

/* The i-th newest; prefixes of one job (number 0) are none. */
static const struct ledger_version *
version_at(const struct ledger_route *route, uint32_t i)
{
	const struct ledger_version *found = NULL;
	uint32_t below = UINT32_MAX;

	for (uint32_t step = 0; step <= i; step++) {
		found = NULL;
		for (uint32_t j = 0; j < LEDGER_VERSIONS; j++) {
			const struct ledger_version *it = &route->versions[j];

			if (!id_is_none(it->family) && it->number > 0 &&
			    it->number < below && (!found || it->number > found->number))
				found = it;
		}
		if (!found)
			return NULL;
		below = found->number;
	}
	return found;
}

bool
ledger_view_version(const struct ledger *ledger, uint32_t route, uint32_t i,
                    uint64_t now_ms, struct ledger_view_version *ret_version)
{
	const struct ledger_route *it = &ledger->routes[row_at(ledger, route)];
	const struct ledger_version *version = version_at(it, i);
	uint64_t all = answers_alive(it, now_ms);

	if (!version)
		return false;
	*ret_version = (struct ledger_view_version){
		.family = version->family,
		.place = span_from(ledger->places[version->place].name),
		.number = version->number,
		.first_ms = version->first_ms,
		.last_ms = version->last_ms,
		.tokens = version->tokens,
		.answers = version->answers,
		.hits = version->hits,
		.prefixed = version->prefixed,
		.writes = version->writes,
		.read = version->read,
		.written = version->written,
		.alive = is_alive(version, now_ms),
		.variant = is_variant(it, version, now_ms),
		.twin = is_twin(it, version),
		.split = version->split,
	};
	if (ret_version->alive && all > 0)
		ret_version->share_permille = (uint32_t)(version->answers * 1000 / all);
	return true;
}

static bool
is_single(const struct ledger_version *version)
{
	return !id_is_none(version->family) && !version->shared;
}

/* The newest other prefix of one job that is nearly the same bytes and not newer. */
static const struct ledger_version *
find_lookalike(const struct ledger_route *route, const struct ledger_version *like)
{
	const struct ledger_version *found = NULL;

	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++) {
		const struct ledger_version *it = &route->versions[i];

		if (it != like && is_single(it) && it->last_ms <= like->last_ms &&
		    (!found || it->last_ms > found->last_ms) &&
		    ledger_sketch_resembles(&it->sketch, &like->sketch))
			found = it;
	}
	return found;
}

bool
ledger_view_lookalikes(const struct ledger *ledger, uint32_t route,
                       struct id128 ret_families[2])
{
	const struct ledger_route *of = &ledger->routes[row_at(ledger, route)];
	uint64_t newest_ms = 0;

	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++) {
		const struct ledger_version *it = &of->versions[i], *older;

		if (!is_single(it) || it->last_ms <= newest_ms)
			continue;
		older = find_lookalike(of, it);
		if (!older)
			continue;
		newest_ms = it->last_ms;
		ret_families[0] = it->family;
		ret_families[1] = older->family;
	}
	return newest_ms > 0;
}

/* Merged they would have been written as often as the one that was written most. */
static uint64_t
split_cost(const struct ledger_route *route, uint64_t now_ms, uint32_t *ret_variants)
{
	uint64_t cost = 0, most_writes = 0;
	const struct ledger_version *most = NULL;

	*ret_variants = 0;
	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++) {
		const struct ledger_version *it = &route->versions[i];

		if (!is_variant(route, it, now_ms))
			continue;
		++*ret_variants;
		cost += it->writes * it->tokens * it->extra / 1000;
		if (!most || it->writes > most_writes) {
			most = it;
			most_writes = it->writes;
		}
	}
	return most ? cost - most->writes * most->tokens * most->extra / 1000 : 0;
}

void
ledger_view_route(const struct ledger *ledger, uint32_t route, uint64_t now_ms,
                  struct ledger_view_route *ret_route)
{
	uint32_t row = row_at(ledger, route);
	const struct ledger_route *it;

	VERIFY(row < LEDGER_ROWS);
	it = &ledger->routes[row];
	*ret_route = (struct ledger_view_route){
		.name = span_from(it->name),
		.first_ms = it->first_ms,
		.last_ms = it->last_ms,
		.versions_seen = it->versions_seen,
		.ever = it->ever,
	};
	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++)
		ret_route->versions += !id_is_none(it->versions[i].family);
	ret_route->split_cost = split_cost(it, now_ms, &ret_route->variants);
	add_hours(ledger, row, 0, UINT64_MAX, &ret_route->week);
	add_hours(ledger, row, now_ms / LEDGER_HOUR_MS, UINT64_MAX,
	          &ret_route->this_hour);
}

/* ---- bursts, places -------------------------------------------------------------- */

static void
show_burst(const struct ledger *ledger, const struct ledger_burst *burst,
           struct ledger_view_burst *ret_burst)
{
	*ret_burst = (struct ledger_view_burst){
		.route = span_from(ledger->routes[burst->row].name),
		.family = burst->family,
		.start_ms = burst->start_ms,
		.starts = burst->starts,
		.hits = burst->hits,
		.writes = burst->writes,
		.extra_writes = burst->extra_writes,
		.readable_ms = burst->readable_ms > burst->start_ms
		                       ? burst->readable_ms - burst->start_ms
		                       : EVENT_UNKNOWN,
		.held_ms = burst->held_ms,
		.refusals = burst->refusals,
		.cost = burst->cost,
		.naive_cost = burst->naive_cost,
		.open = burst->open,
		.spike = burst->extra_writes > 0,
	};
}

bool
ledger_view_burst(const struct ledger *ledger, uint32_t route, uint32_t i,
                  struct ledger_view_burst *ret_burst)
{
	uint32_t row = route == LEDGER_VIEW_ALL ? LEDGER_VIEW_ALL : row_at(ledger, route);
	uint64_t serial = ledger->bursts_serial;

	for (uint32_t step = 0; step < LEDGER_BURSTS && serial > 0; step++, serial--) {
		const struct ledger_burst *burst =
			&ledger->bursts[serial % LEDGER_BURSTS];

		if (burst->serial != serial ||
		    (row != LEDGER_VIEW_ALL && burst->row != row) || i-- > 0)
			continue;
		show_burst(ledger, burst, ret_burst);
		return true;
	}
	return false;
}

bool
ledger_view_place(const struct ledger *ledger, uint32_t i,
                  struct ledger_view_place *ret_place)
{
	for (uint32_t at = 0; at <= LEDGER_PLACES; at++) {
		const struct ledger_place *place = &ledger->places[at];

		if (place->name[0] == '\0' || i-- > 0)
			continue;
		*ret_place = (struct ledger_view_place){
			.name = span_from(place->name),
			.last_ms = place->last_ms,
			.ttl_ms = place->ttl_ms,
			.ever = place->ever,
		};
		ledger_rest_view(place, ret_place->rests);
		return true;
	}
	return false;
}

static uint32_t
find_place(const struct ledger *ledger, struct span name)
{
	for (uint32_t i = 0; i < LEDGER_PLACES; i++)
		if (span_equals(span_from(ledger->places[i].name), name))
			return i;
	return LEDGER_PLACES;
}

bool
ledger_view_entry(const struct ledger *ledger, struct id128 node, struct span place,
                  uint32_t domain, struct ledger_view_entry *ret_entry)
{
	struct id128 key = ledger_book_key(node, find_place(ledger, place), domain);
	uint32_t at = table_find(&ledger->index, key);
	const struct ledger_entry *entry;

	if (at == TABLE_NONE || ledger->entries[at].used_ms == 0)
		return false;
	entry = &ledger->entries[at];
	*ret_entry = (struct ledger_view_entry){
		.written_ms = entry->written_ms,
		.used_ms = entry->used_ms,
		.life_ms = entry->life_ms,
	};
	return true;
}

struct ledger_view_ahead
ledger_view_ahead(const struct ledger *ledger)
{
	return ledger->ahead;
}

/* ---- is it true? ----------------------------------------------------------------- */

static bool
adds_up(const struct ledger_sums *sums)
{
	uint64_t written = 0, full = 0;

	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++) {
		written += sums->causes[i].written;
		full += sums->causes[i].full;
	}
	return written == sums->written && full <= sums->uncached;
}

void
ledger_view_health(const struct ledger *ledger, struct ledger_view_health *ret_health)
{
	*ret_health = (struct ledger_view_health){
		.since_ms = ledger->first_ms,
		.sums_up = ledger->gaps == 0 && adds_up(&ledger->total),
		.gaps = ledger->gaps,
		.gap_ms = ledger->gap_ms,
		.hidden = ledger->hidden,
		.total = ledger->total,
	};
	for (uint32_t i = 0; i < LEDGER_ROWS; i++)
		ret_health->sums_up &= adds_up(&ledger->routes[i].ever);
}
