#include "scheduler/admin_jumps.h"

#include "scheduler/admin_change.h"
#include "scheduler/admin_ledger.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#define HOUR_MS     LEDGER_VIEW_HOUR_MS
#define DAY_HOURS   24
#define JUMP_LEAST  50000000 /* nanodollars: 5 cents an hour are no incident */
#define JUMP_FACTOR 3        /* halves: dearer by half */
#define JUMPS_MAX   4        /* of a route in a week */

struct costs {
	uint64_t hour[LEDGER_HOURS]; /* of so many hours ago; this one as a whole hour */
	uint32_t known;
};

struct jump {
	uint32_t first, last; /* hours ago; last 0: it goes on */
	uint64_t from, sum;   /* dollars an hour before; of all its hours */
	uint64_t extra;       /* of them, more than before */
};

/* The hour that has begun goes on as it and the one before went. */
static struct costs
costs_of(const struct ledger *ledger, uint32_t route, uint64_t first_ms, uint64_t now_ms)
{
	uint64_t past_ms = now_ms % HOUR_MS, hour = now_ms / HOUR_MS;
	struct costs costs = { 0 };

	costs.known = (uint32_t)MIN(hour - MIN(first_ms / HOUR_MS, hour) + 1,
	                            (uint64_t)LEDGER_HOURS);
	for (uint32_t back = 0; back < costs.known; back++)
		costs.hour[back] = admin_ledger_hour(ledger, route, now_ms, back).cost;
	if (costs.known > 1)
		costs.hour[0] += costs.hour[1] * (HOUR_MS - past_ms) / HOUR_MS;
	return costs;
}

static bool
is_above(uint64_t cost, uint64_t before)
{
	return cost * 2 > before * JUMP_FACTOR && cost > before + JUMP_LEAST;
}

/* What was usual: the mean of the day before, as far as it is known, or the same hour of
 * it, if that was dearer: a nightly batch is no jump. */
static bool
is_dearer(const struct costs *costs, uint32_t back, uint64_t *ret_before)
{
	uint32_t count = MIN(costs->known - MIN(costs->known, back + 1), DAY_HOURS);
	uint64_t sum = 0, before;

	if (count == 0)
		return false;
	for (uint32_t i = 1; i <= count; i++)
		sum += costs->hour[back + i];
	before = sum / count;
	if (count == DAY_HOURS)
		before = MAX(before, costs->hour[back + DAY_HOURS]);
	*ret_before = before;
	return is_above(costs->hour[back], before);
}

/* The next one that began later than `back` hours ago; false: none. */
static bool
next_jump(const struct costs *costs, uint32_t back, struct jump *ret_jump)
{
	uint64_t before = 0;

	while (back > 0 && !is_dearer(costs, back - 1, &before))
		back--;
	if (back == 0)
		return false;
	*ret_jump = (struct jump){ .first = back - 1, .from = before };
	while (back > 0 && is_above(costs->hour[back - 1], before)) {
		back--;
		ret_jump->last = back;
		ret_jump->sum += costs->hour[back];
		ret_jump->extra += costs->hour[back] - before;
	}
	return true;
}

static uint64_t
start_of(uint64_t now_ms, uint32_t back)
{
	return (now_ms / HOUR_MS - back) * HOUR_MS;
}

/* The newest version with a text of its own that came within an hour of a jump. */
static void
put_version(const struct admin *admin, uint32_t route, uint64_t at_ms, uint64_t now_ms,
            struct buffer *out)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct ledger_view_version version;
	const struct admin_change *change;

	for (uint32_t i = 0; ledger_view_version(ledger, route, i, now_ms, &version);
	     i++) {
		if (version.number < 2 || version.twin ||
		    version.first_ms + HOUR_MS < at_ms ||
		    version.first_ms >= at_ms + HOUR_MS)
			continue;
		change = admin_change_find(admin, version.family);
		ruler_view_json_open(out, "version", '{');
		ruler_view_json_number(out, "number", version.number);
		ruler_view_json_id(out, "family", version.family);
		ruler_view_json_number(out, "first_ms", version.first_ms);
		if (change) {
			ruler_view_json_open(out, "change", '{');
			admin_change_put(change, out);
			ruler_view_json_close(out, '}');
		}
		ruler_view_json_close(out, '}');
		return;
	}
}

static void
put_jump(const struct admin *admin, uint32_t route, const struct jump *jump,
         uint64_t now_ms, struct buffer *out)
{
	uint64_t at_ms = start_of(now_ms, jump->first);
	uint32_t hours = jump->first - jump->last + 1;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_number(out, "at_ms", at_ms);
	if (jump->last > 0)
		ruler_view_json_number(out, "until_ms", start_of(now_ms, jump->last - 1));
	admin_ledger_put_money(out, "from", jump->from);
	admin_ledger_put_money(out, "to", jump->sum / hours);
	admin_ledger_put_money(out, "extra", jump->extra);
	put_version(admin, route, at_ms, now_ms, out);
	ruler_view_json_close(out, '}');
}

/* Dearer now: since when, and from what. */
static void
put_now(const struct costs *costs, const struct jump *jump, uint64_t now_ms,
        struct buffer *out)
{
	ruler_view_json_open(out, "jump", '{');
	ruler_view_json_number(out, "at_ms", start_of(now_ms, jump->first));
	admin_ledger_put_money(out, "from", jump->from);
	admin_ledger_put_money(out, "to", costs->hour[0]);
	ruler_view_json_close(out, '}');
}

/* Hours come back one by one: those that are missing yet would look cheap. */
static bool
is_read_back(const struct admin *admin, uint64_t now_ms)
{
	return ruler_view_health(admin->ruler, now_ms).phase != RULER_REBUILDING;
}

void
admin_jumps_put(const struct admin *admin, uint32_t route, uint64_t now_ms,
                struct buffer *out)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct jump jumps[LEDGER_HOURS];
	struct ledger_view_route view;
	struct costs costs;
	uint32_t count = 0, back;

	ledger_view_route(ledger, route, now_ms, &view);
	costs = costs_of(ledger, route, view.first_ms, now_ms);
	back = is_read_back(admin, now_ms) ? costs.known : 0;
	while (back > 0 && next_jump(&costs, back, &jumps[count]))
		back = jumps[count++].last;
	if (count > 0 && jumps[count - 1].last == 0)
		put_now(&costs, &jumps[count - 1], now_ms, out);
	ruler_view_json_open(out, "jumps", '[');
	for (uint32_t i = 0; i < MIN(count, JUMPS_MAX); i++)
		put_jump(admin, route, &jumps[count - 1 - i], now_ms, out);
	ruler_view_json_close(out, ']');
}
