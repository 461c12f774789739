/* Which routes have a name of their own: those with most jobs, found without a list of
 * all.  (Metwally et al.: Efficient computation of frequent and top-k elements in data
 * streams, 2005.  A candidate takes the place and the score of the least one.) */
#include "scheduler/tally.h"

#include "common/id.h"

static uint64_t
hash_of(struct span name)
{
	return id_of(name, 0).low;
}

static void
fade(struct tally *tally, uint64_t now_ms)
{
	if (now_ms - tally->faded_ms < TALLY_FADE_MS)
		return;
	tally->faded_ms = now_ms;
	for (uint32_t i = 0; i < tally->routes_count; i++)
		tally->routes[i].score /= 2;
	for (uint32_t i = 0; i < TALLY_CANDIDATES; i++)
		tally->candidates[i].score /= 2;
}

static void
name_route(struct tally *tally, uint32_t place, struct span name, uint64_t score)
{
	struct tally_route *route = &tally->routes[place];
	size_t len = MIN(name.len, TALLY_ROUTE_SIZE - 1);

	*route = (struct tally_route){ .score = score };
	if (len > 0)
		memcpy(route->name, name.data, len);
	for (uint32_t i = 0; i < tally->rows_count;) {
		if (tally->rows[i].route == place)
			tally->rows[i] = tally->rows[--tally->rows_count];
		else
			i++;
	}
}

static struct tally_candidate *
candidate_of(struct tally *tally, uint64_t hash)
{
	struct tally_candidate *least = &tally->candidates[0];

	for (uint32_t i = 0; i < TALLY_CANDIDATES; i++) {
		struct tally_candidate *it = &tally->candidates[i];

		if (it->score > 0 && it->hash == hash)
			return it;
		if (it->score < least->score)
			least = it;
	}
	least->hash = hash;
	return least;
}

static uint32_t
least_route(const struct tally *tally)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < tally->routes_count; i++)
		if (tally->routes[i].score < tally->routes[least].score)
			least = i;
	return least;
}

/* A route without a name: does it deserve one by now? */
static uint32_t
consider(struct tally *tally, uint64_t now_ms, struct span name)
{
	struct tally_candidate *candidate = candidate_of(tally, hash_of(name));
	uint32_t least = least_route(tally);
	uint64_t score = ++candidate->score;

	if (now_ms - tally->swapped_ms < TALLY_SWAP_MS ||
	    score <= 2 * tally->routes[least].score)
		return TALLY_OTHER;
	tally->swapped_ms = now_ms;
	candidate->hash = hash_of(span_from(tally->routes[least].name));
	candidate->score = tally->routes[least].score;
	name_route(tally, least, name, score);
	return least;
}

uint32_t
tally_route(struct tally *tally, uint64_t now_ms, struct span name)
{
	fade(tally, now_ms);
	name.len = MIN(name.len, TALLY_ROUTE_SIZE - 1);
	if (name.len == 0 || span_equals(name, SPAN("other")))
		return TALLY_OTHER; /* that name is taken */
	for (uint32_t i = 0; i < tally->routes_count; i++) {
		if (!span_equals(name, span_from(tally->routes[i].name)))
			continue;
		tally->routes[i].score++;
		return i;
	}
	if (tally->routes_count == TALLY_ROUTES)
		return consider(tally, now_ms, name);
	tally->swapped_ms = now_ms;
	name_route(tally, tally->routes_count, name, 1);
	return tally->routes_count++;
}
