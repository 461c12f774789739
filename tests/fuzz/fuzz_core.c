/* Bytes as events: whatever is told to the scheduler's core, in whatever order and with
 * whatever numbers, its state stays sound, it asks for nothing impossible, it comes to
 * rest, and a second core that is told the same says the same.
 *
 *   the first event's kind decides what follows: each event takes the bytes it needs, a
 *   missing byte is 0      numbers: a byte names an edge, or says that 1 to 8 follow
 *
 * What the shell guarantees is kept: kinds and words are known ones, a chain is a path in
 * one tree, recovery comes first, and an answer answers a command that is under way. */
#include "scheduler/core/core.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

enum {
	FAMILIES = 12,
	LANES = 16,
	UNDER_WAY = 256,
	STEPS_MAX = 300,   /* events of one input */
	REST_MAX = 100000, /* steps until the core must be at rest */
};

struct input {
	const uint8_t *data;
	size_t size;
	uint64_t now_ms;
};

struct pair {
	struct core *core[2];
	void *memory[2];
	struct command_list *out; /* two of them */
	struct command under_way[UNDER_WAY];
	size_t under_way_count;
	bool recovering;
};

/* ---- reading --------------------------------------------------------------------- */

static uint8_t
byte(struct input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* Below `bound`. */
static uint32_t
choice(struct input *input, uint32_t bound)
{
	return byte(input) % bound;
}

static uint64_t
number(struct input *input)
{
	uint64_t edges[] = { 0,
		             1,
		             2,
		             3,
		             100,
		             1000,
		             30000,
		             300000,
		             99999,
		             LANE_FOREVER,
		             UINT32_MAX,
		             UINT64_MAX - 1,
		             EVENT_UNKNOWN,
		             input->now_ms,
		             input->now_ms + 1,
		             input->now_ms + 30000,
		             input->now_ms > 500 ? input->now_ms - 500 : 0 };
	uint8_t first = byte(input);
	uint64_t value = 0;

	if (first < 200)
		return edges[first % ARRAY_SIZE(edges)];
	for (unsigned i = 0; i <= first % 8u; i++)
		value = value << 8 | byte(input);
	return value;
}

static uint32_t
small_number(struct input *input)
{
	uint64_t value = number(input);

	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* A generation has ten digits in its record. */
static uint64_t
generation(struct input *input)
{
	return number(input) % 10000000000;
}

/* As many digits as the column of a record has. */
static uint32_t
column(struct input *input, uint32_t bound)
{
	return (uint32_t)(number(input) % bound);
}

/* One of a few pools, budgets, models; some are never named. */
static struct id128
thing(struct input *input, uint64_t kind)
{
	return (struct id128){ kind, 1 + choice(input, 3) };
}

/* A path in a tree: a node's id says how it is reached, as a hash of its bytes does. */
static struct lineage
path(struct input *input)
{
	struct lineage chain = { .count = 1 + choice(input, LINEAGE_MAX) };
	uint64_t way = 1;

	for (uint32_t i = 0; i < chain.count; i++) {
		uint8_t turn = byte(input);

		way = way * 4 + turn % 3;
		chain.nodes[i].id = (struct id128){ 7, way };
		chain.nodes[i].tokens = turn & 64 ? small_number(input) : 3000 * (i + 1);
		chain.nodes[i].flags = turn >> 3 & 7;
	}
	return chain;
}

static struct lane_id
lane(struct input *input)
{
	struct lineage chain = path(input);
	struct id128 node = chain.nodes[chain.count - 1].id;

	return (struct lane_id){ node, choice(input, 2) };
}

static void
read_limits(struct input *input, uint64_t limits[EVENT_BUCKET_COUNT])
{
	for (int i = 0; i < EVENT_BUCKET_COUNT; i++)
		limits[i] = number(input);
}

/* ---- events ---------------------------------------------------------------------- */

static void
read_model(struct input *input, struct event_model *model)
{
	uint8_t flags = byte(input);

	model->id = thing(input, 3);
	model->hold = !(flags & 1);
	model->needs_marker = flags & 2;
	model->exact = !(flags & 4);
	model->proves = !(flags & 8);
	model->streams = !(flags & 16);
	model->calls = flags & 32;
	model->minimum_tokens = flags & 64 ? small_number(input) : 1024;
	model->ttl_ms = flags & 128 ? number(input) : 300000;
}

static void
read_admitted(struct input *input, struct event_admitted *admitted)
{
	admitted->pool = thing(input, 1);
	admitted->budget = thing(input, 2);
	admitted->chain = path(input);
	/* The model is part of what makes two prefixes the same. */
	admitted->model = (struct id128){ 3, 1 + admitted->chain.nodes[0].id.low % 4 };
	admitted->domain = choice(input, 2);
	admitted->flags = choice(input, 16);
	admitted->oldest_ms = number(input);
	admitted->hold_max_ms = number(input);
	admitted->ttl_ms = number(input);
	admitted->input_tokens = small_number(input);
	admitted->output_tokens = small_number(input);
	admitted->marks = choice(input, 16);
	for (int i = 0; i < EVENT_LIST_COUNT; i++)
		admitted->jobs[i] = byte(input) % 5;
}

static void
read_lane(struct input *input, struct event_lane *it)
{
	it->lane = lane(input);
	it->gate = (enum lane_gate)choice(input, LANE_GATE_COUNT);
	it->reason = (enum lane_reason)choice(input, LANE_REASON_COUNT);
	it->g = generation(input);
	it->credits = choice(input, 5);
	it->role = choice(input, 2) ? LANE_CANARY : LANE_LEAD;
	it->in_use = column(input, 100000);
	it->until_ms = number(input);
	it->life_ms = number(input);
	it->p = column(input, 100000000);
	it->ticket = (enum lane_ticket)choice(input, LANE_TICKET_COUNT);
	it->window = column(input, 100000);
	it->rank = column(input, 100000000);
	it->moved = it->life_ms % 8 == 7;
}

static void
read_usage(struct input *input, struct event_usage *usage)
{
	usage->lane = lane(input);
	usage->g = generation(input);
	usage->role = (enum lane_role)choice(input, LANE_ROLE_COUNT);
	usage->at_ms = number(input);
	usage->sent_ms = number(input);
	usage->first_ms = number(input);
	usage->read = number(input);
	usage->written = number(input);
	usage->uncached = number(input);
	usage->output = number(input);
	read_limits(input, usage->limits);
}

/* An answer to one of the commands under way; false if there is none. */
static bool
read_answer(struct input *input, struct pair *pair, struct event *event)
{
	struct command command;
	size_t at;

	if (pair->under_way_count == 0)
		return false;
	at = choice(input, 255) % pair->under_way_count;
	command = pair->under_way[at];
	pair->under_way[at] = pair->under_way[--pair->under_way_count];
	if (command.kind == COMMAND_BUDGET) {
		event->kind = EVENT_PACED;
		event->paced.budget = command.budget.id;
		event->paced.status =
			choice(input, 4) ? EVENT_STATUS_DONE : EVENT_STATUS_UNKNOWN;
	} else if (command.kind == COMMAND_GLANCE) {
		event->kind = EVENT_GLANCED;
		event->glanced.family = command.glance.family;
		event->glanced.status =
			choice(input, 4) ? EVENT_STATUS_DONE : EVENT_STATUS_UNKNOWN;
		event->glanced.backlog = column(input, 100000000);
		event->glanced.in_use = column(input, 100000);
		event->glanced.head_ms = number(input);
	} else {
		event->kind = EVENT_GRANTED;
		event->granted.lane = command.grant.lane;
		event->granted.g_new = command.grant.g_new;
		event->granted.status = (enum event_status)choice(input, 3);
		event->granted.g = generation(input);
		if (event->granted.status == EVENT_STATUS_DONE)
			event->granted.g = command.grant.g_new;
		event->granted.in_use = column(input, 100000);
		event->granted.bits = choice(input, 128);
		event->granted.head_ms = number(input);
	}
	return true;
}

static void
read_recovery(struct input *input, struct event *event)
{
	switch (event->kind) {
	case EVENT_RECOVERED_FAMILY:
		read_admitted(input, &event->admitted);
		break;
	case EVENT_RECOVERED_LANE:
		read_lane(input, &event->lane);
		break;
	case EVENT_RECOVERED_LEASE:
		event->start.lane = lane(input);
		event->start.g = generation(input);
		event->start.role = (enum lane_role[]){ LANE_LEAD, LANE_CANARY,
			                                LANE_TICKET }[choice(input, 3)];
		event->start.at_ms = number(input);
		break;
	case EVENT_RECOVERED_BUDGET:
		event->recovered_budget.id = thing(input, 2);
		event->recovered_budget.pace = small_number(input);
		event->recovered_budget.in_flight = column(input, 100000);
		event->recovered_budget.parked_until_ms = number(input);
		read_limits(input, event->recovered_budget.limits);
		event->recovered_budget.moved =
			event->recovered_budget.parked_until_ms % 8 == 7;
		break;
	default:
		break;
	}
}

static void
read_line(struct input *input, struct event *event)
{
	switch (event->kind) {
	case EVENT_START:
		event->start.lane = lane(input);
		event->start.g = generation(input);
		event->start.role = (enum lane_role)choice(input, LANE_ROLE_COUNT);
		event->start.at_ms = number(input);
		break;
	case EVENT_BEGAN:
	case EVENT_DONE:
		read_usage(input, &event->usage);
		break;
	case EVENT_BACK:
		event->back.lane = lane(input);
		event->back.g = generation(input);
		event->back.role = (enum lane_role)choice(input, LANE_ROLE_COUNT);
		event->back.why = (enum lane_back)choice(input, LANE_BACK_COUNT);
		break;
	case EVENT_TICKET:
		read_usage(input, &event->ticket.usage);
		event->ticket.usage.role = LANE_TICKET;
		event->ticket.ok = choice(input, 2);
		event->ticket.refused = !event->ticket.ok && choice(input, 2);
		break;
	case EVENT_PRESSURE:
		event->pressure.budget = thing(input, 2);
		event->pressure.what = (enum event_pressure_kind)choice(input, 4);
		event->pressure.until_ms = number(input);
		break;
	case EVENT_EMPTY:
	case EVENT_WORK:
	case EVENT_WARM:
		event->family.id = lane(input).node;
		break;
	case EVENT_EXPIRED:
		event->expired.lane = lane(input);
		event->expired.g = generation(input);
		break;
	default:
		event->short_pool.pool = thing(input, 1);
		event->short_pool.free = column(input, 65536);
		break;
	}
}

/* False if there is nothing to tell now. */
static bool
read_event(struct input *input, struct pair *pair, struct event *event)
{
	event->kind = (enum event_kind)choice(input, EVENT_KIND_COUNT);
	if (event->kind >= EVENT_RECOVERED_FAMILY && event->kind <= EVENT_RECOVERED_END) {
		if (!pair->recovering)
			return false;
		read_recovery(input, event);
		pair->recovering = event->kind != EVENT_RECOVERED_END;
		return true;
	}
	switch (event->kind) {
	case EVENT_TICK:
		return true;
	case EVENT_MODEL:
		read_model(input, &event->model);
		return true;
	case EVENT_POOL:
		event->pool.id = thing(input, 1);
		event->pool.slots = choice(input, 40);
		event->pool.max_wait_ms = number(input);
		return true;
	case EVENT_BUDGET:
		event->budget.id = thing(input, 2);
		read_limits(input, event->budget.limits);
		event->budget.pace_max = choice(input, 64);
		return true;
	case EVENT_HOLD:
		event->hold.on = choice(input, 2);
		event->hold.route =
			choice(input, 2) ? thing(input, 4) : (struct id128){ 0 };
		return true;
	case EVENT_PAUSE:
		event->pause.family = lane(input).node;
		event->pause.on = choice(input, 2);
		return true;
	case EVENT_UNPARK:
		event->unpark.budget = thing(input, 2);
		return true;
	default:
		break;
	}
	if (pair->recovering)
		return false;
	if (event->kind == EVENT_ADMITTED)
		read_admitted(input, &event->admitted);
	else if (event->kind >= EVENT_GRANTED && event->kind <= EVENT_GLANCED)
		return read_answer(input, pair, event);
	else
		read_line(input, event);
	return true;
}

/* ---- judging --------------------------------------------------------------------- */

static bool
is_same(const struct command *a, const struct command *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case COMMAND_GRANT:
		return id_equals(a->grant.lane.node, b->grant.lane.node) &&
		       a->grant.g_new == b->grant.g_new &&
		       a->grant.gate == b->grant.gate &&
		       a->grant.credits == b->grant.credits &&
		       a->grant.until_ms == b->grant.until_ms &&
		       a->grant.rank == b->grant.rank;
	case COMMAND_BUDGET:
		return id_equals(a->budget.id, b->budget.id) &&
		       a->budget.pace == b->budget.pace;
	case COMMAND_GLANCE:
		return id_equals(a->glance.family, b->glance.family);
	case COMMAND_NOTE:
		return a->note.kind == b->note.kind && a->note.a == b->note.a;
	case COMMAND_REBUILD:
	case COMMAND_KIND_COUNT:
		break;
	}
	return true;
}

/* A budget is never forgotten, so a second command about it waits for the answer to the
 * first.  (A lane may be forgotten and known again meanwhile.) */
static bool
is_under_way(const struct pair *pair, const struct command *command)
{
	for (size_t i = 0; i < pair->under_way_count; i++)
		if (pair->under_way[i].kind == COMMAND_BUDGET &&
		    command->kind == COMMAND_BUDGET &&
		    id_equals(pair->under_way[i].budget.id, command->budget.id))
			return true;
	return false;
}

static void
check_grant(const struct command_grant *grant)
{
	VERIFY(grant->gate < LANE_GATE_COUNT);
	VERIFY(grant->reason < LANE_REASON_COUNT);
	VERIFY(grant->g_new >= grant->g);
	VERIFY(grant->chain_count >= 1 && grant->chain_count <= LINEAGE_MAX);
	VERIFY(grant->credits <= 999);
	VERIFY(grant->window <= LANE_WINDOW);
	VERIFY(grant->credits == 0 || grant->role == LANE_LEAD ||
	       grant->role == LANE_CANARY);
}

/* Answers whether it asked for a new beginning. */
static bool
take_commands(struct pair *pair)
{
	const struct command_list *out = &pair->out[0];
	bool rebuild = false;

	VERIFY(out->count <= COMMAND_MAX);
	VERIFY(out->count == pair->out[1].count);
	VERIFY(!pair->recovering || out->count == 0);
	for (uint32_t i = 0; i < out->count; i++) {
		const struct command *command = &out->commands[i];

		VERIFY(is_same(command, &pair->out[1].commands[i]));
		if (command->kind == COMMAND_REBUILD)
			rebuild = true;
		if (command->kind == COMMAND_GRANT)
			check_grant(&command->grant);
		if (command->kind == COMMAND_NOTE || command->kind == COMMAND_REBUILD)
			continue;
		VERIFY(!is_under_way(pair, command));
		if (pair->under_way_count < UNDER_WAY)
			pair->under_way[pair->under_way_count++] = *command;
	}
	return rebuild;
}

static bool
step(struct pair *pair, uint64_t now_ms, const struct event *event)
{
	for (int i = 0; i < 2; i++)
		core_step(pair->core[i], now_ms, event, &pair->out[i]);
	return take_commands(pair);
}

/* ---- the run --------------------------------------------------------------------- */

static struct core_config
limits(void)
{
	struct core_config config = CORE_CONFIG_DEFAULT;

	config.families_max = FAMILIES;
	config.lanes_max = LANES;
	config.pools_max = config.budgets_max = config.models_max = 2;
	return config;
}

/* What was in the memory before must not matter. */
static void
begin(struct pair *pair)
{
	struct core_config config = limits();
	size_t size = core_size(&config);

	for (int i = 0; i < 2; i++) {
		if (!pair->memory[i])
			pair->memory[i] = aligned_alloc(16, (size + 15) / 16 * 16);
		VERIFY(pair->memory[i]);
		memset(pair->memory[i], i ? 0x55 : 0xaa, size);
		pair->core[i] = core_init(pair->memory[i], size, &config);
	}
	pair->recovering = true;
	pair->under_way_count = 0;
}

/* Work that remains is done at once; it ends. */
static bool
rest(struct pair *pair, uint64_t now_ms)
{
	struct event tick = { .kind = EVENT_TICK };

	for (int i = 0; core_deadline(pair->core[0]) <= now_ms; i++) {
		VERIFY(i < REST_MAX);
		if (step(pair, now_ms, &tick))
			return true;
	}
	VERIFY(core_deadline(pair->core[0]) == core_deadline(pair->core[1]));
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t PAUSES[] = { 0, 0, 0, 1, 20, 1000, 31000, 400000 };
	struct input input = { data, size, 1000000 };
	struct pair *pair = calloc(1, sizeof *pair);
	struct event event;

	VERIFY(pair);
	pair->out = calloc(2, sizeof *pair->out);
	VERIFY(pair->out);
	begin(pair);
	for (int i = 0; input.size > 0 && i < STEPS_MAX; i++) {
		input.now_ms += PAUSES[choice(&input, ARRAY_SIZE(PAUSES))];
		if (!read_event(&input, pair, &event))
			continue;
		if (step(pair, input.now_ms, &event) || rest(pair, input.now_ms)) {
			begin(pair);
			continue;
		}
		if (i % 16 == 0)
			core_audit(pair->core[0]);
	}
	core_audit(pair->core[0]);
	for (int i = 0; i < 2; i++)
		free(pair->memory[i]);
	free(pair->out);
	free(pair);
	return 0;
}
