#include "scheduler/ledger/ledger_state.h"

#define TOKENS_MAX    ((uint64_t)50000000) /* of one call: no product overflows */
#define LIFE_MS_LEAST 300000

/* One call on its way into the books. */
struct charge {
	struct ledger *ledger;
	const struct ledger_call *call;
	struct ledger_target target;
	struct ledger_version *version; /* NULL: not remembered */
	uint64_t read, written, uncached, output;
	uint64_t write_price; /* of one of its written tokens */
	uint64_t booked;      /* written tokens that have a cause */
	uint64_t full;        /* uncached tokens that have one */
	uint64_t prefix_cost;
	struct ledger_sums part;
};

/* What became of one node of the prefix. */
struct verdict {
	struct ledger_entry *here, *anywhere;
	uint64_t end; /* tokens up to its end */
	bool hit;
	enum ledger_cause cause; /* of a miss */
	uint64_t written, full;
};

static uint64_t
counted(uint64_t tokens)
{
	return tokens == EVENT_UNKNOWN ? 0 : MIN(tokens, TOKENS_MAX);
}

static uint64_t
priced(uint64_t tokens, uint64_t price)
{
	return tokens * price / 1000;
}

bool
ledger_charge_is_reported(const struct ledger_call *call)
{
	return call->read != EVENT_UNKNOWN && call->uncached != EVENT_UNKNOWN;
}

static struct id128
twin_of(const struct ledger_call *call, uint32_t node)
{
	return id_is_none(call->nodes[node].twin) ? call->nodes[node].id
	                                          : call->nodes[node].twin;
}

/* ---- facts ----------------------------------------------------------------------- */

static struct ledger_case
case_of(const struct charge *charge)
{
	return (struct ledger_case){
		.ledger = charge->ledger,
		.call = charge->call,
		.version = charge->version,
		.row = charge->target.row,
	};
}

static uint64_t
here(const struct charge *charge)
{
	return (uint64_t)charge->target.place << 32 | charge->call->domain;
}

static struct ledger_facts
gather(const struct charge *charge, uint32_t node, const struct verdict *verdict)
{
	const struct ledger_call *call = charge->call;
	const struct ledger_entry *entry = verdict->here, *any = verdict->anywhere;
	const struct ledger_case it = case_of(charge);
	bool leaf = node + 1 == call->nodes_count;
	struct ledger_facts facts = {
		.kind = call->kind,
		.purpose = call->purpose,
		.role = call->role,
		.leaf = leaf,
		.shared = call->nodes[node].shared,
		.sent_ms = call->sent_ms,
		.written_ms = entry->written_ms,
		.first_ms = entry->first_ms,
		.hit_ms = entry->hit_ms,
		.used_ms = entry->used_ms,
		.ttl_ms = call->ttl_ms,
		.life_ms = entry->life_ms > 0 ? entry->life_ms : call->ttl_ms,
		.warm_elsewhere = any->used_ms > 0 && any->where != here(charge) &&
		                  call->sent_ms <= any->used_ms + any->life_ms,
		.blind = ledger_facts_are_blind(&it, leaf),
	};

	ledger_facts_look(&it, verdict->end, &facts);
	return facts;
}

/* Its own beginning taught the book: what was found out then holds.  Between the two its
 * worker may have corrected its clock; how long the first event took stays the same. */
static bool
has_begun(const struct ledger_entry *entry, const struct ledger_call *call,
          enum ledger_cause *ret_cause)
{
	for (uint32_t i = 0; i < LEDGER_BEGUN; i++) {
		const struct ledger_begun *begun = &entry->begun[i];

		if (begun->sent_ms == 0 ||
		    !ledger_book_is_near(begun->sent_ms, call->sent_ms) ||
		    begun->first_ms - begun->sent_ms != call->first_ms - call->sent_ms)
			continue;
		*ret_cause = begun->cause;
		return true;
	}
	return false;
}

/* ---- one node -------------------------------------------------------------------- */

static uint64_t
end_of(const struct charge *charge, uint32_t node, const struct ledger_entry *entry)
{
	const struct ledger_call *call = charge->call;
	uint64_t end = entry->tokens > 0 ? entry->tokens : call->nodes[node].tokens;
	uint64_t marked = charge->read + charge->written;

	if (node + 1 < call->nodes_count || charge->written == 0)
		return end > 0 ? end : charge->read;
	/* Who read all of it has written something else. */
	if (end > 0 && charge->read + ledger_facts_slack(end) >= end)
		return end;
	/* With nothing marked behind it, all that was written belongs to it; and what is
	 * off by a rounding is no tail. */
	if ((call->explicit && !call->tail_marked && !call->server_tool) || end == 0 ||
	    (marked <= end + ledger_facts_slack(end) &&
	     end <= marked + ledger_facts_slack(end)))
		return marked;
	return end;
}

static void
learn(const struct charge *charge, uint32_t node, const struct verdict *verdict)
{
	const struct ledger_call *call = charge->call;
	struct ledger_entry *entry = verdict->here;
	uint64_t guess = call->nodes[node].tokens;

	if (node + 1 < call->nodes_count || call->tail_marked || !call->explicit)
		return;
	if (verdict->hit && charge->written == 0 && charge->read >= guess * 3 / 4)
		entry->tokens = (uint32_t)charge->read;
	else if (!verdict->hit && charge->written > 0)
		entry->tokens = (uint32_t)(charge->read + charge->written);
}

static void
open_verdict(const struct charge *charge, uint32_t node, struct verdict *verdict)
{
	struct ledger *ledger = charge->ledger;
	struct id128 id = charge->call->nodes[node].id;
	struct id128 twin = twin_of(charge->call, node);
	struct ledger_facts facts;

	verdict->anywhere = ledger_book_obtain(
		ledger, ledger_book_key(twin, UINT32_MAX, LEDGER_NOWHERE));
	verdict->here = ledger_book_obtain(
		ledger, ledger_book_key(id, charge->target.place, charge->call->domain));
	verdict->end = end_of(charge, node, verdict->here);
	verdict->hit = charge->read > 0 &&
	               charge->read + ledger_facts_slack(verdict->end) >= verdict->end;
	verdict->cause = LEDGER_UNKNOWN;
	if (verdict->hit || (charge->call->kind != LEDGER_SPENT &&
	                     has_begun(verdict->here, charge->call, &verdict->cause)))
		return;
	facts = gather(charge, node, verdict);
	verdict->cause = ledger_judge(&facts);
}

/* The part of [from, end) that was written, and the part that was paid in full.  Where
 * only what is marked is cached, the rest is no miss; but what drifts would have been
 * marked. */
static void
measure(const struct charge *charge, uint64_t from, struct verdict *verdict)
{
	bool explicit = charge->call->explicit && verdict->cause != LEDGER_DRIFT;
	uint64_t marked = charge->read + charge->written;
	uint64_t begin = MAX(from, charge->read), stop = MIN(verdict->end, marked);

	verdict->written = stop > begin ? stop - begin : 0;
	begin = MAX(from, marked);
	verdict->full =
		!explicit && verdict->end > begin
			? MIN(verdict->end - begin, charge->uncached - charge->full)
			: 0;
}

/* What the provider says it has written for five minutes does not live for an hour. */
static uint64_t
life_of(const struct ledger_call *call)
{
	return call->ttl_ms > LIFE_MS_LEAST && call->written_1h == 0 ? LIFE_MS_LEAST
	                                                             : call->ttl_ms;
}

static void
teach(const struct charge *charge, const struct verdict *verdict)
{
	const struct ledger_call *call = charge->call;
	struct ledger_entry *entry = verdict->here;

	if (call->sent_ms == EVENT_UNKNOWN ||
	    (!verdict->hit && verdict->written + verdict->full == 0))
		return;
	ledger_rest_take(&charge->ledger->places[charge->target.place], entry, call,
	                 verdict->hit);
	if (verdict->hit) {
		ledger_book_hit(entry, call->sent_ms);
		if (call->role != LANE_TICKET)
			ledger_ahead_use(charge->ledger, entry);
	} else {
		ledger_book_write(entry, call, verdict->cause);
		entry->life_ms = life_of(call);
	}
	if (entry->life_ms == 0)
		entry->life_ms = call->ttl_ms;
	if (verdict->anywhere->used_ms <= call->sent_ms)
		verdict->anywhere->where = here(charge);
	verdict->anywhere->used_ms = MAX(verdict->anywhere->used_ms, call->sent_ms);
	verdict->anywhere->life_ms = entry->life_ms;
}

/* ---- causes ---------------------------------------------------------------------- */

static void
add_cause(struct charge *charge, enum ledger_cause cause, uint64_t written, uint64_t full)
{
	const struct ledger_price *price = &charge->call->price;
	struct ledger_cause_sum *sum = &charge->part.causes[cause];
	uint64_t cost = priced(written, charge->write_price) + priced(full, price->input);
	uint64_t read = priced(written + full, price->read);

	if (written + full == 0)
		return;
	sum->calls = 1;
	sum->written += written;
	sum->full += full;
	sum->cost += cost;
	sum->extra += cost > read ? cost - read : 0;
	charge->booked += written;
	charge->full += full;
}

static enum ledger_cause
tail_cause(const struct ledger_call *call)
{
	if (call->kind == LEDGER_SPENT)
		return LEDGER_RETRY_WASTE;
	return call->server_tool ? LEDGER_SERVER_TOOL : LEDGER_TAIL;
}

static void
note_ahead(struct charge *charge, const struct verdict *verdict)
{
	struct ledger_entry *entry = verdict->here;
	uint64_t cost = priced(verdict->written, charge->write_price);
	uint64_t read = priced(verdict->written, charge->call->price.read);
	const struct ledger_ahead ahead = {
		.tokens = verdict->written,
		.cost = cost,
		.extra = cost > read ? cost - read : 0,
		.family = charge->call->family,
		.row = charge->target.row,
		.place = charge->target.place,
		.domain = charge->call->domain,
		.hour = charge->target.at_ms / LEDGER_HOUR_MS,
		.cause = verdict->cause,
	};

	ledger_ahead_waste(charge->ledger, entry);
	if (charge->call->purpose == LEDGER_FOR_WARMTH &&
	    charge->call->kind == LEDGER_DONE)
		ledger_ahead_note(charge->ledger, entry, &ahead);
}

/* ---- the whole prefix ------------------------------------------------------------ */

/* Reading what nobody has written under this id: the provider keys on less than we do. */
static void
look_for_split(struct charge *charge, const struct verdict *verdict, uint32_t node)
{
	const struct ledger_entry *entry = verdict->here;
	const struct ledger_case it = case_of(charge);

	if (!charge->version || !verdict->hit || entry->written_ms > 0 ||
	    entry->used_ms > 0 ||
	    (verdict->anywhere->used_ms > 0 &&
	     verdict->anywhere->where == here(charge)) ||
	    charge->ledger->routes[charge->target.row].versions_seen < 2 ||
	    ledger_facts_are_blind(&it, true) || charge->call->nodes_count != node + 1)
		return;
	charge->version->split = true;
}

static void
count_version(struct charge *charge, const struct verdict *leaf)
{
	const struct ledger_call *call = charge->call;
	struct ledger_version *version = charge->version;
	bool answer = call->kind == LEDGER_DONE && call->purpose == LEDGER_FOR_JOB;

	if (!version)
		return;
	version->answers += answer;
	version->read += charge->read;
	version->written += charge->written;
	version->place = charge->target.place;
	version->domain = call->domain;
	version->last_ms = MAX(version->last_ms, charge->target.at_ms);
	version->dirty = true;
	version->model = call->model;
	version->extra = charge->write_price > call->price.read
	                         ? charge->write_price - call->price.read
	                         : 0;
	if (!leaf->here) {
		version->tokens = call->nodes_count > 0
		                          ? call->nodes[call->nodes_count - 1].tokens
		                          : 0;
		return;
	}
	version->tokens = (uint32_t)leaf->end;
	version->prefixed += answer;
	version->hits += answer && leaf->hit;
	version->writes += !leaf->hit && leaf->written + leaf->full > 0;
	version->written_ms = leaf->here->written_ms;
	version->readable_ms = leaf->here->first_ms;
	version->hit_ms = leaf->here->hit_ms;
	version->used_ms = leaf->here->used_ms;
	version->life_ms = leaf->here->life_ms;
}

static void
count_burst(struct charge *charge, const struct verdict *leaf)
{
	const struct ledger_call *call = charge->call;
	const struct ledger_price *price = &call->price;
	bool wrote = !leaf->hit && leaf->written + leaf->full > 0;
	const struct ledger_started started = {
		.call = call,
		.target = charge->target,
		.hit = leaf->hit,
		.wrote = wrote,
		/* Holding writes once at each place, and cannot do better. */
		.extra = wrote && leaf->cause != LEDGER_OTHER_PLACE &&
		         ledger_cause_is_avoidable(leaf->cause),
		.cost = priced(charge->read, price->read) +
		        priced(charge->written, charge->write_price) +
		        priced(charge->uncached, price->input),
		.prefix_cost = priced(MIN(charge->read, leaf->end), price->read) +
		               charge->prefix_cost,
		.prefix = leaf->end,
		.write = call->explicit || charge->written > 0 ? price->write
		                                               : price->input,
		.read = price->read,
	};

	if (call->sent_ms != EVENT_UNKNOWN && call->purpose == LEDGER_FOR_JOB)
		ledger_burst_take(charge->ledger, leaf->here, &started);
}

/* What was missed between `from` and the end of a node gets its cause. */
static void
charge_miss(struct charge *charge, uint64_t *from, struct verdict *verdict)
{
	measure(charge, *from, verdict);
	*from = MAX(*from, verdict->end);
	add_cause(charge, verdict->cause, verdict->written, verdict->full);
	charge->prefix_cost += priced(verdict->written, charge->write_price) +
	                       priced(verdict->full, charge->call->price.input);
}

/* A prefix of one job: nobody can read it, and it costs only where others look like it.
 */
static void
charge_single(struct charge *charge, uint32_t node, uint64_t from)
{
	const struct ledger_call *call = charge->call;
	const struct ledger_case it = case_of(charge);
	struct ledger_facts facts = {
		.kind = call->kind,
		.purpose = call->purpose,
		.role = call->role,
		.leaf = node + 1 == call->nodes_count,
		.sent_ms = call->sent_ms,
	};
	struct verdict verdict = { .end = call->nodes[node].tokens };

	ledger_facts_look(&it, verdict.end, &facts);
	verdict.cause = ledger_judge(&facts);
	if (verdict.cause == LEDGER_DRIFT)
		charge_miss(charge, &from, &verdict);
}

/* Cuts the prefix at its nodes; answers what became of the last one. */
static struct verdict
walk(struct charge *charge)
{
	const struct ledger_call *call = charge->call;
	struct verdict leaf = { 0 };
	uint64_t from = 0;

	for (uint32_t i = 0; i < call->nodes_count; i++) {
		bool is_leaf = i + 1 == call->nodes_count;
		struct verdict verdict = { 0 };

		if (!call->nodes[i].cacheable)
			continue;
		if (!call->nodes[i].shared) {
			charge_single(charge, i, from);
			continue;
		}
		open_verdict(charge, i, &verdict);
		look_for_split(charge, &verdict, i);
		if (!verdict.hit)
			charge_miss(charge, &from, &verdict);
		if (!verdict.hit && is_leaf && verdict.written > 0)
			note_ahead(charge, &verdict);
		teach(charge, &verdict);
		learn(charge, i, &verdict);
		if (is_leaf)
			leaf = verdict;
	}
	return leaf;
}

static struct charge
open_charge(struct ledger *ledger, const struct ledger_call *call)
{
	struct charge charge = {
		.ledger = ledger,
		.call = call,
		.target = { .row = ledger_route_row(ledger, call->route, call->at_ms),
		            .place = ledger_route_place(ledger, call->place),
		            .at_ms = call->at_ms },
		.read = counted(call->read),
		.written = counted(call->written),
		.uncached = counted(call->uncached),
		.output = counted(call->output),
		.write_price = call->price.write,
	};
	uint64_t hour = MIN(counted(call->written_1h), charge.written);

	if (charge.written > 0)
		charge.write_price = ((charge.written - hour) * call->price.write +
		                      hour * call->price.write_1h) /
		                     charge.written;
	charge.version = ledger_route_version(ledger, charge.target.row, call->family);
	if (!charge.version)
		charge.version = ledger_route_add_version(ledger, charge.target.row,
		                                          call->family, call->at_ms);
	if (charge.version && call->nodes_count > 0) {
		const struct ledger_node *leaf = &call->nodes[call->nodes_count - 1];

		charge.version->twin = twin_of(call, call->nodes_count - 1);
		if (leaf->sketch.len > 0) /* else what was known of it holds */
			charge.version->sketch = leaf->sketch;
		if (leaf->shared)
			ledger_route_share(ledger, charge.target.row, charge.version);
	}
	return charge;
}

static void
count_call(struct charge *charge, const struct verdict *leaf)
{
	const struct ledger_call *call = charge->call;
	const struct ledger_price *price = &call->price;
	struct ledger_sums *part = &charge->part;
	bool answer = call->kind == LEDGER_DONE && call->purpose == LEDGER_FOR_JOB;

	part->calls = 1;
	part->answers = answer;
	part->prefixed = answer && leaf->here;
	part->hits = answer && leaf->here && leaf->hit;
	part->read = charge->read;
	part->written = charge->written;
	part->uncached = charge->uncached;
	part->output = charge->output;
	part->unpriced = price->input == 0;
	part->cost = priced(charge->read, price->read) +
	             priced(charge->written, charge->write_price) +
	             priced(charge->uncached, price->input) +
	             priced(charge->output, price->output);
	if (call->purpose != LEDGER_FOR_JOB) {
		charge->ledger->ahead.calls++; /* ledger_sums_add marks it dirty */
		charge->ledger->ahead.cost += part->cost;
	}
}

void
ledger_charge(struct ledger *ledger, const struct ledger_call *call)
{
	struct charge charge = open_charge(ledger, call);
	struct verdict leaf = walk(&charge);

	VERIFY(charge.booked <= charge.written);
	add_cause(&charge, tail_cause(call), charge.written - charge.booked, 0);
	VERIFY(charge.booked == charge.written);
	VERIFY(charge.full <= charge.uncached);
	count_call(&charge, &leaf);
	ledger_sums_add(ledger, &charge.target, &charge.part);
	count_version(&charge, &leaf);
	if (leaf.here)
		count_burst(&charge, &leaf);
}

/* ---- a first event --------------------------------------------------------------- */

static void
remember(struct ledger_entry *entry, const struct ledger_call *call,
         enum ledger_cause cause)
{
	entry->begun[entry->begun_next] = (struct ledger_begun){
		.sent_ms = call->sent_ms,
		.first_ms = call->first_ms,
		.cause = cause,
	};
	entry->begun_next = (entry->begun_next + 1) % LEDGER_BEGUN;
}

/* The causes are judged now, before the book learns of this very call. */
void
ledger_charge_begun(struct ledger *ledger, const struct ledger_call *call)
{
	struct charge charge;
	uint64_t from = 0;

	if (call->read == EVENT_UNKNOWN || call->sent_ms == EVENT_UNKNOWN)
		return;
	charge = open_charge(ledger, call);
	for (uint32_t i = 0; i < call->nodes_count; i++) {
		struct verdict verdict = { 0 };

		if (!call->nodes[i].cacheable || !call->nodes[i].shared)
			continue;
		open_verdict(&charge, i, &verdict);
		look_for_split(&charge, &verdict, i);
		if (!verdict.hit) {
			measure(&charge, from, &verdict);
			from = MAX(from, verdict.end);
			remember(verdict.here, call, verdict.cause);
		}
		teach(&charge, &verdict);
		learn(&charge, i, &verdict);
	}
}
