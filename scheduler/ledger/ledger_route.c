#include "scheduler/ledger/ledger_state.h"

#include "common/text.h"

#define WEEK_MS (LEDGER_HOURS * (uint64_t)LEDGER_HOUR_MS)

static bool
is_named(const char *name, struct span wanted)
{
	return strlen(name) == wanted.len && memcmp(name, wanted.data, wanted.len) == 0;
}

static void
set_name(char *to, struct span name)
{
	size_t len = MIN(name.len, LEDGER_NAME_SIZE - 1);

	memset(to, 0, LEDGER_NAME_SIZE);
	if (len > 0)
		memcpy(to, name.data, len);
}

/* Names are kept whole or not at all. */
static struct span
cut(struct span name)
{
	name.len = MIN(name.len, LEDGER_NAME_SIZE - 1);
	return name;
}

uint32_t
ledger_route_find(const struct ledger *ledger, struct span name)
{
	name = cut(name);
	for (uint32_t i = 0; i < LEDGER_ROUTES && name.len > 0; i++)
		if (is_named(ledger->routes[i].name, name))
			return i;
	return UINT32_MAX;
}

/* A free row, or one whose last call is a week ago. */
static uint32_t
free_row(const struct ledger *ledger, uint64_t at_ms)
{
	for (uint32_t i = 0; i < LEDGER_ROUTES; i++) {
		const struct ledger_route *route = &ledger->routes[i];

		if (route->name[0] == '\0' || route->last_ms + WEEK_MS < at_ms)
			return i;
	}
	return LEDGER_OTHER;
}

static void
clear_hours(struct ledger *ledger, uint32_t row)
{
	for (uint32_t i = 0; i < LEDGER_HOURS; i++)
		if (ledger->hours[i].hour > 0)
			ledger->hours[i].rows[row] = (struct ledger_sums){ 0 };
}

uint32_t
ledger_route_row(struct ledger *ledger, struct span name, uint64_t at_ms)
{
	uint32_t row = ledger_route_find(ledger, name);
	struct ledger_route *route;

	if (row == UINT32_MAX)
		row = name.len > 0 ? free_row(ledger, at_ms) : LEDGER_OTHER;
	route = &ledger->routes[row];
	if (row == LEDGER_OTHER) {
		ledger->hidden += name.len > 0;
		if (route->name[0] == '\0')
			set_name(route->name, SPAN("other"));
	} else if (!is_named(route->name, cut(name))) {
		clear_hours(ledger, row);
		*route = (struct ledger_route){ .first_ms = at_ms };
		set_name(route->name, name);
	}
	if (route->first_ms == 0)
		route->first_ms = at_ms;
	route->last_ms = MAX(route->last_ms, at_ms);
	route->dirty = true;
	return row;
}

uint32_t
ledger_route_place(struct ledger *ledger, struct span name)
{
	name = cut(name);
	for (uint32_t i = 0; i < LEDGER_PLACES && name.len > 0; i++) {
		if (ledger->places[i].name[0] == '\0')
			set_name(ledger->places[i].name, name);
		if (is_named(ledger->places[i].name, name))
			return i;
	}
	set_name(ledger->places[LEDGER_PLACES].name, SPAN("other"));
	return LEDGER_PLACES;
}

struct ledger_version *
ledger_route_version(struct ledger *ledger, uint32_t row, struct id128 family)
{
	struct ledger_version *versions = ledger->routes[row].versions;

	if (row == LEDGER_OTHER || id_is_none(family))
		return NULL;
	for (uint32_t i = 0; i < LEDGER_VERSIONS; i++)
		if (id_equals(versions[i].family, family))
			return &versions[i];
	return NULL;
}

/* Prefixes of one job only go first. */
static bool
goes_before(const struct ledger_version *a, const struct ledger_version *b)
{
	return a->shared != b->shared ? b->shared : a->last_ms < b->last_ms;
}

struct ledger_version *
ledger_route_add_version(struct ledger *ledger, uint32_t row, struct id128 family,
                         uint64_t at_ms)
{
	struct ledger_version *versions = ledger->routes[row].versions;
	struct ledger_version *place = &versions[0];

	if (row == LEDGER_OTHER || id_is_none(family))
		return NULL;
	for (uint32_t i = 1; i < LEDGER_VERSIONS; i++)
		if (goes_before(&versions[i], place))
			place = &versions[i];
	*place = (struct ledger_version){
		.family = family,
		.first_ms = at_ms,
		.last_ms = at_ms,
	};
	return place;
}

void
ledger_route_share(struct ledger *ledger, uint32_t row, struct ledger_version *version)
{
	if (version->shared)
		return;
	version->shared = true;
	version->number = ++ledger->routes[row].versions_seen;
	ledger->has_news = true;
	version->dirty = true;
}
