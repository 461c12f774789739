#include "scheduler/ruler_ledger.h"

#include "scheduler/ledger/ledger_row.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_line.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_state.h"

#include <stdlib.h>

#define NODES_MAX 32768             /* of the book */
#define TTL_MS    (8 * 86400000ULL) /* of an hour in Redis: a week and a day */
#define LOOK_MS   5000
#define STORE_MS  120000 /* what came meanwhile is read again after a kill */

/* ---- life ------------------------------------------------------------------------ */

static struct ledger_config
config_of(const struct ruler *ruler)
{
	uint32_t families = ruler->config->core.families_max;

	return (struct ledger_config){
		.nodes_max = MIN(MAX(families, 64), NODES_MAX),
	};
}

/* Fresh pages, all zero: nothing is touched before it is needed. */
static struct ledger *
create(const struct ruler *ruler, uint64_t since_ms)
{
	struct ledger_config config = config_of(ruler);
	size_t size = ledger_size(&config);
	void *memory = calloc(1, size);

	return memory ? ledger_init(memory, size, &config, since_ms) : NULL;
}

int
ruler_ledger_open(struct ruler *ruler)
{
	ruler->ledger = create(ruler, 0);
	return ruler->ledger ? 0 : ERR_MEMORY;
}

void
ruler_ledger_close(struct ruler *ruler)
{
	free(ruler->ledger);
	ruler->ledger = NULL;
}

void
ruler_ledger_restart(struct ruler *ruler, uint64_t now_ms)
{
	struct ledger_config config = config_of(ruler);
	struct ledger *fresh = create(ruler, now_ms);

	if (fresh) {
		free(ruler->ledger);
		ruler->ledger = fresh;
		return;
	}
	memset(ruler->ledger, 0, ledger_size(&config));
	ruler->ledger = ledger_init(ruler->ledger, ledger_size(&config), &config, now_ms);
}

const struct ledger *
ruler_ledger(const struct ruler *ruler)
{
	return ruler->ledger;
}

/* ---- who it was ------------------------------------------------------------------ */

static uint64_t
hash_of(const struct ruler_model *model)
{
	return id_of(model->match, 0).low;
}

size_t
ruler_ledger_model(const struct ruler *ruler, struct span route, struct id128 family)
{
	const struct ruler_config *config = ruler->config;
	uint64_t hash = ledger_model(ruler->ledger, route, family);

	for (size_t i = 0; hash != 0 && i < config->models_count; i++)
		if (hash_of(&config->models[i]) == hash)
			return i;
	return SIZE_MAX;
}

static const struct ruler_model *
model_of(const struct ruler *ruler, const struct ruler_family *family)
{
	const struct ruler_config *config = ruler->config;
	size_t index;

	if (family->model >= ruler->known.models_count)
		return NULL;
	index = ruler->known.models[family->model].model;
	return index < config->models_count ? &config->models[index] : NULL;
}

static void
fill_price(const struct ruler *ruler, const struct ruler_family *family,
           struct ledger_call *call)
{
	const struct ruler_model *model = model_of(ruler, family);

	if (!model)
		return;
	call->model = hash_of(model);
	for (size_t i = 0; i < model->prices_count; i++)
		if (i == 0 || model->prices[i].from_ms <= call->at_ms)
			call->price = model->prices[i].price;
}

static bool
is_shared(const struct ruler *ruler, const struct lineage_node *node)
{
	uint32_t place = ruler_shelf_find(&ruler->known.node_shelf, node->id);

	return node->flags & LINEAGE_SHARED ||
	       (place != RULER_SHELF_NONE &&
	        ruler->known.nodes[place].flags & RULER_NODE_SHARED);
}

/* A node without a known size comes from Redis; that it was gated tells enough. */
static void
fill_nodes(const struct ruler *ruler, const struct ruler_family *family,
           const struct event_model *model, struct ledger_call *call)
{
	struct lineage lineage = family->lineage;
	uint32_t gates;

	for (uint32_t i = 0; i < lineage.count; i++) {
		struct lineage_node *node = &lineage.nodes[i];

		if (is_shared(ruler, node))
			node->flags |= LINEAGE_SHARED;
		call->nodes[i] = (struct ledger_node){
			.id = node->id,
			.twin = ruler_known_twin(&ruler->known, node->id),
			.sketch = ruler_known_sketch(&ruler->known, node->id),
			.tokens = node->tokens,
			.shared = node->flags & LINEAGE_SHARED,
		};
		if (node->tokens == 0)
			node->tokens = model->minimum_tokens;
	}
	gates = lineage_gates(&lineage, model->needs_marker, model->minimum_tokens);
	for (uint32_t i = 0; i < lineage.count; i++)
		call->nodes[i].cacheable =
			call->nodes[i].shared
				? gates & 1u << i
				: lineage.nodes[i].tokens >= model->minimum_tokens;
	call->nodes_count = lineage.count;
}

static void
fill_family(const struct ruler *ruler, const struct ruler_family *family,
            struct ledger_call *call)
{
	struct event_model model = { 0 };
	const struct lineage_node *leaf =
		&family->lineage.nodes[MAX(family->lineage.count, 1) - 1];

	if (family->model < ruler->known.models_count)
		model = ruler_known_model_event(&ruler->known, family->model).model;
	call->route = span_from(family->route);
	call->family = family->id;
	call->explicit = model.needs_marker;
	call->tail_marked = family->tail_marked;
	call->ttl_ms = family->ttl_ms > 0 ? family->ttl_ms : model.ttl_ms;
	call->estimate = (uint64_t)leaf->tokens + family->input;
	fill_price(ruler, family, call);
	if (!family->opaque)
		fill_nodes(ruler, family, &model, call);
}

/* "vllm", or "vllm/3" for one of its replicas or shards. */
static void
fill_place(const struct ruler *ruler, const struct ruler_family *family, uint32_t domain,
           char name[LEDGER_NAME_SIZE + 16], struct ledger_call *call)
{
	size_t upstream = ruler->known.budgets[family->budget].upstream;
	char digits[TEXT_NUMBER_SIZE];
	size_t len;

	if (upstream >= ruler->config->upstreams_count)
		return;
	call->place = ruler->config->upstreams[upstream].name;
	if (domain == 0)
		return;
	len = MIN(call->place.len, LEDGER_NAME_SIZE - 16);
	memcpy(name, call->place.data, len);
	name[len++] = '/';
	(void)text_print_unsigned(domain, digits);
	memcpy(name + len, digits, strlen(digits));
	call->place = (struct span){ name, len + strlen(digits) };
}

/* ---- lines ----------------------------------------------------------------------- */

static uint64_t
known(int64_t value)
{
	return value < 0 ? EVENT_UNKNOWN : (uint64_t)value;
}

static void
fill_usage(const struct protocol_usage *usage, struct ledger_call *call)
{
	call->sent_ms = known(usage->sent_ms);
	call->first_ms = known(usage->first_ms);
	/* What is no evidence was billed all the same. */
	call->read = known(MAX(usage->read, usage->billed_read));
	call->written = known(MAX(usage->written, usage->billed_written));
	call->uncached = known(usage->uncached);
	call->output = known(usage->output);
	call->written_1h = known(usage->written_1h);
	call->waited_ms = known(usage->wait_ms);
	call->server_tool = usage->server_tool > 0;
}

static bool
kind_of(const struct protocol_event *line, enum ledger_kind *ret_kind)
{
	switch (line->kind) {
	case PROTOCOL_EVENT_BEGAN:
		*ret_kind = LEDGER_BEGAN;
		return true;
	case PROTOCOL_EVENT_DONE:
		*ret_kind = LEDGER_DONE;
		return true;
	case PROTOCOL_EVENT_SPENT: /* accepted: late, but it ended its job */
		*ret_kind = span_equals(line->word, SPAN("accepted")) ? LEDGER_DONE
		                                                      : LEDGER_SPENT;
		return true;
	case PROTOCOL_EVENT_TICKET:
		*ret_kind = LEDGER_DONE;
		return line->ok;
	default:
		return false;
	}
}

/* 429 and 529, not what else may go wrong. */
static void
take_pressure(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	size_t count = ruler->known.budgets_count;

	if (!span_equals(line->word, SPAN("429")) &&
	    !span_equals(line->word, SPAN("529")))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct ruler_budget_name *budget = &ruler->known.budgets[i];

		if (span_equals(line->name, span_from(budget->name)) &&
		    budget->upstream < ruler->config->upstreams_count)
			ledger_take_pressure(
				ruler->ledger,
				ruler->config->upstreams[budget->upstream].name, at_ms);
	}
}

void
ruler_ledger_take(struct ruler *ruler, uint64_t at_ms, const struct protocol_event *line)
{
	char name[LEDGER_NAME_SIZE + 16];
	struct ledger_call call = { .at_ms = at_ms };
	uint32_t place;

	if (line->kind == PROTOCOL_EVENT_PRESSURE)
		take_pressure(ruler, at_ms, line);
	if (!kind_of(line, &call.kind))
		return;
	call.role = line->kind == PROTOCOL_EVENT_TICKET ? LANE_TICKET
	                                                : ruler_line_role(line->role);
	call.purpose = call.role == LANE_TICKET ? LEDGER_FOR_WARMTH : LEDGER_FOR_JOB;
	call.domain = line->lane.domain;
	fill_usage(&line->usage, &call);
	place = ruler_shelf_find(&ruler->known.family_shelf, id_is_none(line->family)
	                                                             ? line->lane.node
	                                                             : line->family);
	if (place != RULER_SHELF_NONE) {
		fill_family(ruler, &ruler->known.families[place], &call);
		fill_place(ruler, &ruler->known.families[place], call.domain, name,
		           &call);
	}
	ledger_take(ruler->ledger, &call);
	ruler->ledger_calls++;
}

void
ruler_ledger_gap(struct ruler *ruler, uint64_t now_ms)
{
	ledger_take_gap(ruler->ledger, now_ms);
	ruler_note(
		ruler, RULER_ERROR,
		"lines of the event stream were trimmed before they were read: what the "
		"ledger says of the time before now is too little. Was the scheduler "
		"away for long, or the stream deleted?");
}

/* ---- to Redis -------------------------------------------------------------------- */

/* How many rows have changed, and how many bytes they are. */
static uint32_t
measure(const struct ledger *ledger, struct ledger_row *row, size_t *ret_bytes)
{
	uint32_t cursor = 0, rows = 0;

	*ret_bytes = 0;
	while (ledger_row_next(ledger, &cursor, row)) {
		*ret_bytes += row->value_len + strlen(row->field) + TEXT_NUMBER_SIZE;
		rows++;
	}
	return rows;
}

/* The same for what is kept beside it. */
static uint32_t
measure_kept(const struct ruler_keeper *keeper, size_t *ret_bytes)
{
	struct ruler_kept kept;
	uint32_t cursor = 0, rows = 0;

	*ret_bytes = 0;
	while (keeper->next && keeper->next(keeper->data, &cursor, &kept)) {
		*ret_bytes += kept.value.len + strlen(kept.field) + TEXT_NUMBER_SIZE;
		rows++;
	}
	return rows;
}

static void
write_kept(const struct ruler_keeper *keeper, struct call_list *out)
{
	struct ruler_kept kept;
	uint32_t cursor = 0;

	if (!keeper->next)
		return;
	while (keeper->next(keeper->data, &cursor, &kept))
		protocol_call_ledger_recent(out, span_from(kept.field), kept.value);
	keeper->mark_clean(keeper->data);
}

/* False if there is no room yet. */
static bool
store(struct ruler *ruler, uint64_t now_ms, struct call_list *out, bool *ret_sent)
{
	const struct ruler_keeper *keeper = &ruler->keeper;
	struct ledger_row row;
	uint32_t cursor = 0, rows;
	size_t bytes, kept_bytes;

	if (keeper->prepare)
		keeper->prepare(keeper->data, now_ms);
	rows = measure(ruler->ledger, &row, &bytes) + measure_kept(keeper, &kept_bytes);
	bytes += kept_bytes;
	if (rows == 0 && strcmp(ruler->ledger_told, ruler->ledger_stored) == 0)
		return true;
	if (!ruler_fits(out, 3 * rows + 8, (uint32_t)bytes + 256))
		return false;
	ruler_copy(ruler->ledger_sent, RULER_CURSOR_SIZE, span_from(ruler->ledger_told));
	ruler->ledger_entries = 0;
	ruler->ledger_stored_ms = now_ms;
	protocol_call_ledger(out, ruler_tag(ruler, RULER_CALL_LEDGER, 0),
	                     ruler->config->ns, ruler_owner(ruler),
	                     span_from(ruler->ledger_sent), TTL_MS, rows);
	while (ledger_row_next(ruler->ledger, &cursor, &row))
		protocol_call_ledger_row(out, row.hour, span_from(row.field),
		                         (struct span){ row.value, row.value_len });
	ledger_row_mark_clean(ruler->ledger);
	write_kept(keeper, out);
	*ret_sent = true;
	return true;
}

static bool
has_rows(const struct ledger *ledger)
{
	struct ledger_row row;
	uint32_t cursor = 0;

	return ledger_row_next(ledger, &cursor, &row);
}

/* Is what has come since worth its call by now? */
static bool
is_time(const struct ruler *ruler, uint64_t now_ms)
{
	const struct ruler_keeper *keeper = &ruler->keeper;
	bool rests = ruler->ledger_calls == ruler->ledger_calls_seen;

	return (rests && has_rows(ruler->ledger)) || ledger_row_has_news(ruler->ledger) ||
	       ruler->ledger_entries >= RULER_LEDGER_ENTRIES ||
	       now_ms - ruler->ledger_stored_ms >= STORE_MS ||
	       (keeper->has_news && keeper->has_news(keeper->data));
}

bool
ruler_ledger_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	bool sent = false;

	ledger_tick(ruler->ledger, now_ms);
	if (is_time(ruler, now_ms))
		(void)store(ruler, now_ms, out, &sent);
	ruler->ledger_calls_seen = ruler->ledger_calls;
	return sent;
}

bool
ruler_ledger_leave(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	bool sent = false;

	return store(ruler, now_ms, out, &sent);
}

void
ruler_ledger_on_stored(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	(void)index;
	(void)reply;
	ruler_copy(ruler->ledger_stored, RULER_CURSOR_SIZE,
	           span_from(ruler->ledger_sent));
	ruler_clock_done(ruler, RULER_TIMER_LEDGER, now_ms + LOOK_MS);
}

/* ---- and back -------------------------------------------------------------------- */

void
ruler_ledger_ask(struct ruler *ruler, uint64_t hour, struct call_list *out)
{
	char name[TEXT_NUMBER_SIZE + 8] = "ledger";

	call_begin(out,
	           ruler_tag(ruler,
	                     hour > 0 ? RULER_CALL_LEDGER_HOUR : RULER_CALL_LEDGER_HEAD,
	                     (uint32_t)hour));
	call_text(out, "HGETALL");
	if (hour > 0) {
		name[6] = ':';
		(void)text_print_unsigned(hour, name + 7);
	}
	protocol_call_key(out, ruler->config->ns, name);
}

bool
ruler_ledger_ask_hour(struct ruler *ruler, uint32_t i, struct call_list *out)
{
	uint64_t hour = ledger_row_hour(ruler->ledger, i);

	if (hour > 0)
		ruler_ledger_ask(ruler, hour, out);
	return hour > 0;
}

void
ruler_ledger_load(struct ruler *ruler, uint32_t hour, const struct reply *reply)
{
	uint32_t bad = 0;

	for (size_t i = 0; reply->kind == REPLY_ARRAY && i + 1 < reply->count; i += 2)
		if (ledger_row_load(ruler->ledger, hour, reply_text(&reply->items[i]),
		                    reply_text(&reply->items[i + 1])) < 0)
			bad++;
	if (bad > 0)
		ruler_note(ruler, RULER_ERROR,
		           "%u fields of the ledger cannot be read: its sums are too "
		           "small by them",
		           bad);
	if (hour == 0)
		ledger_row_settle(ruler->ledger);
}
