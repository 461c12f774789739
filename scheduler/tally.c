#include "scheduler/tally.h"

/* ---- words ----------------------------------------------------------------------- */

static const char *const starts[] = { "lead", "canary", "ticket", "hold_limit", "now" };
static const char *const dead[] = { "malformed",
	                            "unsupported",
	                            "prefix_missing",
	                            "payload_missing",
	                            "poison",
	                            "lost",
	                            "deferred",
	                            "unsent",
	                            "timeout",
	                            "cut_off",
	                            "refused",
	                            "invalid_request_error",
	                            "not_found_error",
	                            "permission_error",
	                            "request_too_large",
	                            "api_error",
	                            "other" };
static const char *const ended[] = { "cancelled", "expired", "other" };
static const char *const warmups[] = { "ok", "failed" };
static const char *const spent[] = { "failed",  "deferred", "dead",
	                             "dropped", "released", "worker_died",
	                             "overdue", "late",     "other" };

uint32_t
tally_words(enum tally_event event, const char *const **ret_words)
{
	static const struct {
		const char *const *words;
		uint32_t count;
	} table[TALLY_EVENT_COUNT] = {
		[TALLY_STARTS] = { starts, ARRAY_SIZE(starts) },
		[TALLY_DEAD] = { dead, ARRAY_SIZE(dead) },
		[TALLY_ENDED] = { ended, ARRAY_SIZE(ended) },
		[TALLY_WARMUPS] = { warmups, ARRAY_SIZE(warmups) },
		[TALLY_SPENT] = { spent, ARRAY_SIZE(spent) },
	};

	VERIFY((unsigned)event < TALLY_EVENT_COUNT);
	VERIFY(table[event].count <= TALLY_WORDS);
	*ret_words = table[event].words;
	return table[event].count;
}

void
tally_count(struct tally *tally, enum tally_event event, struct span word)
{
	const char *const *words;
	uint32_t count = tally_words(event, &words), i = 0;

	while (i + 1 < count && !span_equals(word, span_from(words[i])))
		i++;
	tally->counts[event][i]++;
}

/* ---- calls ----------------------------------------------------------------------- */

static struct tally_group *
group_of(struct tally *tally, uint32_t pool, uint32_t upstream)
{
	struct tally_group *group;

	for (uint32_t i = 0; i < tally->groups_count; i++) {
		group = &tally->groups[i];
		if (group->pool == pool && group->upstream == upstream)
			return group;
	}
	if (tally->groups_count == TALLY_GROUPS - 1) {
		pool = TALLY_NONE;
		upstream = TALLY_NONE;
	}
	if (tally->groups_count == TALLY_GROUPS)
		return &tally->groups[TALLY_GROUPS - 1];
	group = &tally->groups[tally->groups_count++];
	*group = (struct tally_group){ .pool = pool, .upstream = upstream };
	return group;
}

static struct tally_tokens *
row_of(struct tally *tally, uint32_t upstream, uint32_t domain, uint32_t route)
{
	struct tally_tokens *row;

	for (uint32_t i = 0; i < tally->rows_count; i++) {
		row = &tally->rows[i];
		if (row->upstream == upstream && row->domain == domain &&
		    row->route == route)
			return row;
	}
	if (tally->rows_count == TALLY_ROWS)
		return &tally->rows[TALLY_ROWS - 1];
	row = &tally->rows[tally->rows_count++];
	*row = (struct tally_tokens){ upstream, domain, route, 0, 0, 0, 0 };
	if (tally->rows_count == TALLY_ROWS)
		*row = (struct tally_tokens){ TALLY_NONE, TALLY_NONE, TALLY_OTHER, 0, 0,
			                      0,          0 };
	return row;
}

static uint64_t
known(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

static void
add_times(struct tally *tally, const struct tally_call *call)
{
	struct tally_group *group = group_of(tally, call->pool, call->upstream);
	const struct protocol_usage *usage = call->usage;
	uint64_t sent_ms = known(usage->sent_ms), first_ms = known(usage->first_ms);

	if (usage->wait_ms != PROTOCOL_UNKNOWN)
		histogram_add(&group->times[TALLY_WAIT], known(usage->wait_ms));
	if (call->held_ms > 0)
		histogram_add(&group->times[TALLY_HELD], call->held_ms);
	if (sent_ms == 0)
		return;
	if (first_ms > 0)
		histogram_add(&group->times[TALLY_FIRST],
		              first_ms - MIN(sent_ms, first_ms));
	histogram_add(&group->times[TALLY_RUN], call->at_ms - MIN(sent_ms, call->at_ms));
}

void
tally_call(struct tally *tally, uint64_t now_ms, const struct tally_call *call)
{
	uint32_t place = tally_route(tally, now_ms, call->route);
	struct tally_route *route = &tally->routes[place];
	struct tally_tokens *row = row_of(tally, call->upstream, call->domain, place);
	const struct protocol_usage *usage = call->usage;

	row->read += known(usage->read);
	row->written += known(usage->written);
	row->uncached += known(usage->uncached);
	row->output += known(usage->output);
	if (!call->job)
		return;
	route->done++;
	route->known += usage->read != PROTOCOL_UNKNOWN;
	route->hits += usage->read > 0;
	add_times(tally, call);
}

/* ---- holds ----------------------------------------------------------------------- */

void
tally_hold_begin(struct tally_hold *hold, uint64_t now_ms)
{
	/* Another writer, because the first one failed: the others are held on. */
	if (hold->from_ms > 0 && hold->to_ms == 0)
		return;
	*hold = (struct tally_hold){ .from_ms = now_ms };
}

void
tally_hold_end(struct tally_hold *hold, uint64_t now_ms)
{
	if (hold->from_ms > 0 && hold->to_ms == 0)
		hold->to_ms = MAX(now_ms, hold->from_ms);
}

uint64_t
tally_hold_within(const struct tally_hold *hold, uint64_t from_ms, uint64_t to_ms)
{
	uint64_t from = MAX(hold->from_ms, from_ms);
	uint64_t to = hold->to_ms > 0 ? MIN(hold->to_ms, to_ms) : to_ms;

	return hold->from_ms > 0 && to > from ? to - from : 0;
}
