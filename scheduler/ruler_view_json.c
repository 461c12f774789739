#include "scheduler/ruler_view_json.h"

#include "scheduler/ruler_family.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_why.h"

#include <stdio.h>

/* ---- members --------------------------------------------------------------------- */

static void
begin(struct buffer *out, const char *name)
{
	char last = out->len > 0 ? out->data[out->len - 1] : '{';

	if (last != '{' && last != '[')
		(void)buffer_append_byte(out, ',');
	if (name)
		(void)buffer_append_format(out, "\"%s\":", name);
}

void
ruler_view_json_open(struct buffer *out, const char *name, char bracket)
{
	if (name || out->len > 0)
		begin(out, name);
	(void)buffer_append_byte(out, bracket);
}

void
ruler_view_json_close(struct buffer *out, char bracket)
{
	(void)buffer_append_byte(out, bracket);
}

void
ruler_view_json_number(struct buffer *out, const char *name, uint64_t value)
{
	begin(out, name);
	(void)buffer_append_unsigned(out, value);
}

void
ruler_view_json_text(struct buffer *out, const char *name, struct span value)
{
	begin(out, name);
	(void)buffer_append_json(out, value);
}

void
ruler_view_json_bool(struct buffer *out, const char *name, bool value)
{
	begin(out, name);
	(void)buffer_append_text(out, value ? "true" : "false");
}

/* `value` thousandths, as 0.123; null for a negative one. */
static void
put_permille(struct buffer *out, const char *name, int64_t value)
{
	begin(out, name);
	if (value < 0)
		(void)buffer_append(out, SPAN("null"));
	else
		(void)buffer_append_format(out, "%lld.%03lld", (long long)(value / 1000),
		                           (long long)(value % 1000));
}

static int64_t
permille(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (int64_t)(part * 1000 / whole) : -1;
}

void
ruler_view_json_ratio(struct buffer *out, const char *name, uint64_t part, uint64_t whole)
{
	put_permille(out, name, permille(part, whole));
}

void
ruler_view_json_raw(struct buffer *out, const char *name, struct span json)
{
	begin(out, name);
	(void)buffer_append(out, json);
}

void
ruler_view_json_id(struct buffer *out, const char *name, struct id128 id)
{
	char hex[ID_HEX_LEN];

	id_encode(id, hex);
	ruler_view_json_text(out, name, (struct span){ hex, ID_HEX_LEN });
}

void
ruler_view_json_sum(struct buffer *out, const struct ruler_usage_sum *sum)
{
	uint64_t input = sum->read + sum->written + sum->uncached;

	ruler_view_json_number(out, "jobs_done", sum->jobs);
	ruler_view_json_number(out, "read", sum->read);
	ruler_view_json_number(out, "written", sum->written);
	ruler_view_json_number(out, "uncached", sum->uncached);
	ruler_view_json_number(out, "output", sum->output);
	put_permille(out, "prefix_hit_ratio", permille(sum->hits, sum->known));
	put_permille(out, "token_read_ratio", permille(sum->read, input));
}

/* ---- a family in plain words ----------------------------------------------------- */

static uint32_t
minimum_of(const struct ruler *ruler, const struct ruler_family *family)
{
	if (family->model >= ruler->known.models_count)
		return 0;
	return ruler_known_model_event(&ruler->known, family->model).model.minimum_tokens;
}

static void
put_state(const struct ruler *ruler, const struct ruler_family *family,
          const struct core_lane_view *lane, bool elected, struct buffer *out)
{
	char text[96];

	if (lane->gate == LANE_BYPASS && lane->reason == LANE_REASON_OFF) {
		ruler_view_json_text(out, "state", SPAN("off"));
		return;
	}
	switch (lane->gate) {
	case LANE_CLOSED:
		ruler_view_json_text(out, "state", SPAN("cold"));
		return;
	case LANE_WRITING:
		ruler_view_json_text(out, "state",
		                     elected ? SPAN("cold") : SPAN("being written"));
		return;
	case LANE_CHECKING:
		ruler_view_json_text(out, "state", SPAN("checking"));
		return;
	case LANE_OPEN:
		ruler_view_json_text(out, "state", SPAN("warm"));
		ruler_view_json_number(out, "warm_until_ms", lane->until_ms);
		return;
	case LANE_BYPASS:
	case LANE_LEAKY:
	case LANE_GATE_COUNT:
		break;
	}
	if (lane->reason == LANE_REASON_BELOW_MINIMUM)
		(void)snprintf(text, sizeof(text), "not cacheable: below %u tokens",
		               minimum_of(ruler, family));
	else if (lane->reason == LANE_REASON_UNSHARED)
		(void)snprintf(text, sizeof(text), "not shared: one job only so far");
	else if (ruler_why_is_unmarked(family, lane))
		(void)snprintf(text, sizeof(text),
		               "not held: it carries no cache marker");
	else
		(void)snprintf(text, sizeof(text), "not held: %s",
		               lane_reason_text(lane->reason));
	ruler_view_json_text(out, "state", span_from(text));
}

static void
put_lane(const struct core_lane_view *lane, struct buffer *out)
{
	char text[PROTOCOL_LANE_ID_SIZE];
	struct protocol_lane_id id = { lane->lane.node, lane->lane.domain };
	size_t len = protocol_print_lane_id(id, text);

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "lane", (struct span){ text, len });
	ruler_view_json_text(out, "gate", span_from(lane_gate_text(lane->gate)));
	ruler_view_json_text(out, "reason", span_from(lane_reason_text(lane->reason)));
	ruler_view_json_number(out, "tokens", lane->p > 0 ? lane->p : lane->tokens);
	ruler_view_json_bool(out, "measured", lane->p > 0);
	ruler_view_json_number(out, "until_ms", lane->until_ms);
	ruler_view_json_number(out, "misses", lane->misses);
	ruler_view_json_bool(out, "holds", lane->gates);
	ruler_view_json_bool(out, "marked", lane->marked);
	ruler_view_json_close(out, '}');
}

/* How many of its account's requests may run at once. */
static void
put_window(const struct ruler *ruler, const struct ruler_family *family,
           struct buffer *out)
{
	struct id128 budget = ruler->known.budgets[family->budget].id;
	struct core_budget_view view;

	if (core_budget_view(ruler->core, budget, &view) == 0)
		ruler_view_json_number(out, "window", view.pace);
}

static void
improve(struct core_family_view *view, const struct ruler_view_use *use)
{
	uint32_t all = view->waiting + view->running;

	view->running = MIN(all, use->running);
	/* What ended meanwhile is not heard of yet: it does not wait, either. */
	view->waiting = view->waiting > 0 ? all - view->running : 0;
	if (view->waiting > 0)
		return;
	view->oldest_ms = 0;
	if (view->blocked_on != CORE_BLOCKED_PAUSED)
		view->blocked_on = CORE_BLOCKED_NO_WORK;
}

static void
put_core(const struct ruler *ruler, const struct ruler_family *family,
         const struct ruler_view_use *use, struct buffer *out)
{
	const struct core_lane_view *leaf;
	struct core_family_view view;

	if (ruler_view_core(ruler, family, &view) < 0) {
		ruler_view_json_text(out, "state", SPAN("idle"));
		return;
	}
	if (use)
		improve(&view, use);
	leaf = &view.lanes[view.lanes_count - 1];
	put_state(ruler, family, leaf, view.elected, out);
	ruler_why_put(ruler, family, &view, out);
	put_window(ruler, family, out);
	ruler_view_json_number(out, "waiting", view.waiting);
	ruler_view_json_number(out, "running", view.running);
	ruler_view_json_number(out, "oldest_ms", view.oldest_ms);
	ruler_view_json_bool(out, "active", view.active);
	ruler_view_json_number(out, "rank", view.rank);
	ruler_view_json_number(out, "tokens", leaf->p > 0 ? leaf->p : leaf->tokens);
	ruler_view_json_open(out, "lanes", '[');
	for (uint32_t i = 0; i < view.lanes_count; i++)
		put_lane(&view.lanes[i], out);
	ruler_view_json_close(out, ']');
}

void
ruler_view_json_members(const struct ruler *ruler, uint32_t place,
                        const struct ruler_view_use *use, struct buffer *out)
{
	const struct ruler_known *known = &ruler->known;
	const struct ruler_family *family = &known->families[place];

	ruler_view_json_id(out, "id", family->id);
	ruler_view_json_text(out, "route", span_from(family->route));
	ruler_view_json_text(out, "pool", span_from(known->pools[family->pool].name));
	ruler_view_json_text(out, "budget",
	                     span_from(known->budgets[family->budget].name));
	ruler_view_json_bool(out, "paused", family->paused);
	put_core(ruler, family, use, out);
	ruler_view_json_number(out, "hold_max_ms", family->hold_max_ms);
	ruler_view_json_number(out, "input_estimate", ruler_family_input(family));
	ruler_view_json_number(out, "output_estimate", family->output);
	ruler_view_json_sum(out, &family->sum);
}

void
ruler_view_json_brief(const struct ruler *ruler, uint32_t place,
                      const struct ruler_view_use *use, struct buffer *out)
{
	const struct ruler_known *known = &ruler->known;
	const struct ruler_family *family = &known->families[place];
	const struct core_lane_view *leaf;
	struct core_family_view view;

	ruler_view_json_id(out, "family", family->id);
	ruler_view_json_text(out, "budget",
	                     span_from(known->budgets[family->budget].name));
	if (ruler_view_core(ruler, family, &view) < 0) {
		ruler_view_json_text(out, "state", SPAN("idle"));
		ruler_view_json_number(out, "waiting", 0);
		ruler_view_json_number(out, "running", 0);
	} else {
		improve(&view, use);
		leaf = &view.lanes[view.lanes_count - 1];
		put_state(ruler, family, leaf, view.elected, out);
		ruler_view_json_number(out, "waiting", view.waiting);
		ruler_view_json_number(out, "running", view.running);
		ruler_view_json_number(out, "tokens",
		                       leaf->p > 0 ? leaf->p : leaf->tokens);
	}
	ruler_view_json_sum(out, &family->sum);
}

void
ruler_view_json_reason(const struct ruler *ruler, uint32_t place, struct buffer *out)
{
	const struct ruler_family *family = &ruler->known.families[place];
	struct core_family_view view;

	ruler_view_json_id(out, "family", family->id);
	ruler_view_json_text(out, "route", span_from(family->route));
	if (ruler_view_core(ruler, family, &view) < 0)
		return; /* it has gone since the table was taken */
	ruler_why_put(ruler, family, &view, out);
}

void
ruler_view_json_family(const struct ruler *ruler, uint32_t place, struct buffer *out)
{
	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_members(ruler, place, NULL, out);
	ruler_view_json_close(out, '}');
}
