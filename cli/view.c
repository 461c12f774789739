#include "cli/view.h"

#include "cli/account.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>
#include <stdlib.h>

#define REASON_UNCACHEABLE 1 /* docs/PROTOCOL.md, lane record, column 3 */
#define REASON_SMALL       2
#define REASON_UNSHARED    3
#define TEXT_SIZE          256

static bool
find_lane(const struct snapshot *snapshot, struct span id, struct protocol_lane *ret_lane)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)id.len, id.data);
	return protocol_record_parse_lane(snapshot_text(snapshot->lanes, name),
	                                  ret_lane) == 0;
}

static bool
is_startable(const struct protocol_lane *lane, uint64_t now_ms)
{
	return lane->gate >= PROTOCOL_OPEN && lane->until_ms > now_ms;
}

static void
print_open(const struct protocol_lane *lane, uint64_t now_ms, char *ret_text, size_t size)
{
	char clock[CLI_CLOCK_SIZE];

	if (lane->until_ms <= now_ms) {
		snprintf(ret_text, size, "cold (expired)");
		return;
	}
	if (lane->until_ms == PROTOCOL_UNTIL_NONE) {
		snprintf(ret_text, size, "warm");
		return;
	}
	snprintf(ret_text, size, "warm until %s", cli_clock(lane->until_ms, clock));
}

/* Who writes is chosen: a first job may start, or a warm-up is wanted.  No worker has
 * taken it yet. */
static bool
is_elected(const struct protocol_lane *lane)
{
	return lane->in_use == 0 &&
	       (lane->credits > 0 || lane->ticket == PROTOCOL_TICKET_WANTED);
}

static void
print_state(const struct protocol_lane *lane, uint64_t now_ms, char *ret_text,
            size_t size)
{
	switch (lane->gate) {
	case PROTOCOL_CLOSED:
		snprintf(ret_text, size, "cold");
		return;
	case PROTOCOL_WRITING:
		snprintf(ret_text, size, "%s",
		         is_elected(lane) ? "cold: its writer waits for a slot"
		                          : "being written");
		return;
	case PROTOCOL_CHECKING:
		snprintf(ret_text, size, "checking");
		return;
	case PROTOCOL_OPEN:
		print_open(lane, now_ms, ret_text, size);
		return;
	case PROTOCOL_BYPASS:
		snprintf(ret_text, size, "not held: %s",
		         protocol_reason_text(lane->reason));
		return;
	case PROTOCOL_LEAKY:
		snprintf(ret_text, size, "written but not read back; not held");
		return;
	case PROTOCOL_GATE_COUNT:
		break;
	}
	VERIFY(false);
}

/* The same of a family's own place, whose record says whether a marker can stand there.
 */
static void
print_own_state(const struct protocol_family *family, const struct protocol_lane *lane,
                uint64_t now_ms, char *ret_text, size_t size)
{
	if (lane->gate == PROTOCOL_BYPASS && lane->reason == REASON_UNCACHEABLE &&
	    !(family->flags & PROTOCOL_MARKABLE))
		snprintf(ret_text, size, "not held: no cache marker");
	else
		print_state(lane, now_ms, ret_text, size);
}

/* Slots of the live workers of a pool, and how many are busy. */
static void
sum_slots(const struct snapshot *snapshot, struct span pool, uint64_t *ret_slots,
          uint64_t *ret_busy)
{
	const char *nonce;
	json_t *session;

	*ret_slots = *ret_busy = 0;
	json_object_foreach(snapshot->sessions, nonce, session)
	{
		if (!span_equals(snapshot_text(session, "pool"), pool))
			continue;
		*ret_slots += strtoull(snapshot_text(session, "slots").data, NULL, 10);
		*ret_busy +=
			(uint64_t)json_integer_value(json_object_get(session, "busy"));
	}
}

/* True if the pool has workers, and none of them reaches the upstream. */
static bool
is_out_of_reach(const struct snapshot *snapshot, const struct protocol_family *family,
                struct span *ret_upstream)
{
	struct span rest = family->budget, name;
	json_t *session, *away;
	uint32_t workers = 0, without = 0;
	const char *nonce;
	size_t i;

	(void)protocol_cut(&rest, ':',
	                   &name); /* upstream:class, upstream@account:class */
	(void)protocol_cut(&name, '@', ret_upstream);
	json_object_foreach(snapshot->sessions, nonce, session)
	{
		if (!span_equals(snapshot_text(session, "pool"), family->pool))
			continue;
		workers++;
		json_array_foreach(json_object_get(session, "unreached"), i, away)
		{
			name = span_from(json_string_value(away));
			without += span_equals(name, *ret_upstream);
		}
	}
	return workers > 0 && without == workers;
}

/* Nobody waits for its prefix: holding is off. */
static bool
is_unheld(const struct snapshot *snapshot, const struct protocol_family *family)
{
	return !snapshot->is_held || family->flags & PROTOCOL_UNHELD;
}

static void
print_unheld(const struct snapshot *snapshot, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "not held: holding is off%s",
	         snapshot->is_held ? " for its route" : "");
}

/* The gate's part of the answer: the family's own place, then those before it. */
static bool
print_gate(const struct snapshot *snapshot, const struct protocol_family *family,
           const struct protocol_lane *lane, char *ret_text, size_t size)
{
	struct span ancestors = family->ancestors, id;
	struct protocol_lane ancestor;
	char state[TEXT_SIZE];

	if (is_unheld(snapshot, family))
		return false;
	if (!is_startable(lane, snapshot->now_ms)) {
		print_state(lane, snapshot->now_ms, state, sizeof state);
		snprintf(ret_text, size, "%s",
		         lane->gate == PROTOCOL_CLOSED
		                 ? "its turn: other prefixes are drained first"
		                 : state);
		return true;
	}
	while (protocol_list_next(&ancestors, &id)) {
		if (!find_lane(snapshot, id, &ancestor) ||
		    is_startable(&ancestor, snapshot->now_ms))
			continue;
		print_state(&ancestor, snapshot->now_ms, state, sizeof state);
		snprintf(ret_text, size, "the shared part before it is %s", state);
		return true;
	}
	return false;
}

static void
print_blocked(const struct snapshot *snapshot, const struct protocol_family *family,
              const struct protocol_lane *lane, char *ret_text, size_t size)
{
	struct account account;
	char clock[CLI_CLOCK_SIZE];
	struct span upstream;
	uint64_t slots, busy;

	account_read(snapshot, family->budget, &account);
	sum_slots(snapshot, family->pool, &slots, &busy);
	if (family->flags & PROTOCOL_PAUSED) {
		snprintf(ret_text, size, "paused");
	} else if (slots == 0) {
		snprintf(ret_text, size, "no worker in pool %.*s", (int)family->pool.len,
		         family->pool.data);
	} else if (is_out_of_reach(snapshot, family, &upstream)) {
		snprintf(ret_text, size, "no worker reaches %.*s: their logs say why",
		         (int)upstream.len, upstream.data);
	} else if (account.parked_until_ms > snapshot->now_ms) {
		snprintf(ret_text, size, "account parked until %s",
		         cli_clock(account.parked_until_ms, clock));
	} else if (print_gate(snapshot, family, lane, ret_text, size)) {
		return;
	} else if (account_print_limit(&account, family->input, family->output, ret_text,
	                               size)) {
		return;
	} else if (lane->in_use >= lane->window) {
		snprintf(ret_text, size, "window: %u at once", lane->window);
	} else if (busy >= slots) {
		snprintf(ret_text, size, "slots: all %llu are busy",
		         (unsigned long long)slots);
	} else {
		snprintf(ret_text, size, "nothing: it is about to start");
	}
}

static json_int_t
glance_of(const struct snapshot *snapshot, const char *family, const char *member)
{
	return json_integer_value(
		json_object_get(json_object_get(snapshot->glances, family), member));
}

/* NULL if its record cannot be read, or if no job has ended there. */
static json_t *
family_row(const struct snapshot *snapshot, const char *family)
{
	json_int_t backlog = glance_of(snapshot, family, "backlog");
	json_int_t head_ms = glance_of(snapshot, family, "head_ms");
	json_int_t age_ms = head_ms ? (json_int_t)snapshot->now_ms - head_ms : 0;
	char state[TEXT_SIZE] = "cold", blocked[TEXT_SIZE] = "";
	struct protocol_lane lane = { .gate = PROTOCOL_CLOSED };
	struct protocol_family record;
	struct span lanes, id;

	if (protocol_record_parse_family(snapshot_text(snapshot->families, family),
	                                 &record) < 0)
		return NULL;
	if (record.route.len == 0) /* a shared part that no job ends at */
		return NULL;
	lanes = record.lanes;
	if (protocol_list_next(&lanes, &id) && find_lane(snapshot, id, &lane))
		print_own_state(&record, &lane, snapshot->now_ms, state, sizeof state);
	if (is_unheld(snapshot, &record)) /* whatever its lane says */
		print_unheld(snapshot, state, sizeof state);
	if (backlog > 0)
		print_blocked(snapshot, &record, &lane, blocked, sizeof blocked);
	return json_pack(
		"{s:s,s:o,s:o,s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:I}", "family", family,
		"route", cli_json_text(record.route), "pool", cli_json_text(record.pool),
		"budget", cli_json_text(record.budget), "state", state, "blocked_on",
		blocked, "backlog", backlog, "in_flight",
		glance_of(snapshot, family, "in_use"), "window", (json_int_t)lane.window,
		"prefix_tokens", (json_int_t)lane.tokens, "oldest_ms", MAX(age_ms, 0));
}

/* Who has the provider cache up to this place: `i` from the root, `is_own` the last. */
static const char *
marker_of(const struct protocol_family *family, const struct protocol_lane *lane,
          unsigned i, bool is_own)
{
	if (family->marks & 1u << i)
		return is_own && family->flags & PROTOCOL_MARKED ? "by its jobs"
		                                                 : "by WarmQ";
	if (is_own && family->flags & PROTOCOL_MARKED)
		return "by its jobs";
	if (lane->gate == PROTOCOL_LEAKY)
		return "none: it was never read back";
	if (lane->gate == PROTOCOL_BYPASS && lane->reason == REASON_SMALL)
		return "none: below the minimum";
	if (is_own && !(family->flags & PROTOCOL_MARKABLE))
		return "none: not needed, no place for one, or off";
	if (lane->gate == PROTOCOL_BYPASS && lane->reason == REASON_UNSHARED)
		return "none: one job only so far";
	return "none: not needed here";
}

static json_t *
place_of(const struct snapshot *snapshot, const char *lane_id,
         const struct protocol_lane *lane, const char *marker)
{
	char state[TEXT_SIZE];

	print_state(lane, snapshot->now_ms, state, sizeof state);
	return json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I}", "place", lane_id, "state",
	                 state, "marker", marker, "generation",
	                 (json_int_t)lane->generation, "prefix_tokens",
	                 (json_int_t)lane->tokens, "in_flight", (json_int_t)lane->in_use,
	                 "credits", (json_int_t)lane->credits);
}

void
view_add_details(const struct snapshot *snapshot, json_t *row)
{
	const char *family = json_string_value(json_object_get(row, "family"));
	json_t *places = json_array();
	struct protocol_family record;
	struct account account;
	struct span px, node;
	unsigned i = 0;

	VERIFY(protocol_record_parse_family(snapshot_text(snapshot->families, family),
	                                    &record) == 0);
	px = record.px.len ? record.px : span_from(family);
	for (; protocol_list_next(&px, &node); i++) {
		struct protocol_lane lane;
		char lane_id[64];

		snprintf(lane_id, sizeof lane_id, "%.*s.0", (int)node.len, node.data);
		if (find_lane(snapshot, span_from(lane_id), &lane))
			json_array_append_new(
				places, place_of(snapshot, lane_id, &lane,
			                         marker_of(&record, &lane, i, !px.data)));
	}
	json_object_set_new(row, "places", places);
	account_read(snapshot, record.budget, &account);
	json_object_set_new(row, "account", account_json(&account));
	json_object_set_new(row, "job_input", json_integer((json_int_t)record.input));
	json_object_set_new(row, "job_output", json_integer((json_int_t)record.output));
}

static int
compare_backlog(const void *a, const void *b)
{
	json_int_t left =
		json_integer_value(json_object_get(*(json_t *const *)a, "backlog"));
	json_int_t right =
		json_integer_value(json_object_get(*(json_t *const *)b, "backlog"));

	if (left != right)
		return left < right ? 1 : -1;
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "family")),
	              json_string_value(json_object_get(*(json_t *const *)b, "family")));
}

static bool
matches(const char *family, const json_t *row, const char *filter)
{
	if (!filter || strncmp(family, filter, strlen(filter)) == 0)
		return true;
	return strcmp(json_string_value(json_object_get(row, "route")), filter) == 0;
}

json_t *
view_families(const struct snapshot *snapshot, const char *filter)
{
	size_t count = 0, room = json_object_size(snapshot->families);
	json_t **rows = calloc(room + 1, sizeof(*rows));
	json_t *sorted = json_array();
	const char *family;
	json_t *record;

	VERIFY(rows);
	json_object_foreach(snapshot->families, family, record)
	{
		json_t *row = family_row(snapshot, family);

		if (row && matches(family, row, filter))
			rows[count++] = row;
		else
			json_decref(row);
	}
	qsort(rows, count, sizeof(*rows), compare_backlog);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(sorted, rows[i]);
	free(rows);
	return sorted;
}

json_t *
view_workers(const struct snapshot *snapshot)
{
	json_t *rows = json_array();
	const char *nonce;
	json_t *session;

	json_object_foreach(snapshot->sessions, nonce, session)
	{
		struct span slots = snapshot_text(session, "slots");
		json_int_t lease_ms =
			json_integer_value(json_object_get(session, "deadline_ms")) -
			(json_int_t)snapshot->now_ms;

		json_array_append_new(
			rows,
			json_pack("{s:o,s:s,s:o,s:o,s:O,s:I,s:O,s:I}", "label",
		                  cli_json_text(snapshot_text(session, "label")),
		                  "session", nonce, "pool",
		                  cli_json_text(snapshot_text(session, "pool")), "state",
		                  cli_json_text(snapshot_text(session, "state")),
		                  "unreached", json_object_get(session, "unreached"),
		                  "slots", (json_int_t)strtoll(slots.data, NULL, 10),
		                  "busy", json_object_get(session, "busy"), "lease_ms",
		                  lease_ms));
	}
	return rows;
}
