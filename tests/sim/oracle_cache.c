#include "tests/sim/oracle_book.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	MISSES_MAX = 3,    /* after so many a lane may give holding up */
	REFUSALS_MAX = 3,  /* and after so many leaders refused */
	TRUST_PROOFS = 20, /* so many in a row, and a model needs no reader to prove */

	SEND_US_MAX =
		9000000, /* from claim to sending: what the margin of `until` covers */
};

/* What the provider knows of the prefix that ends with this block. */
static bool
look_up(const struct oracle *oracle, const struct site_call *call, uint32_t block,
        struct cache_node *ret_node)
{
	return cache_model_find(engine_cache(oracle->site->engine), call->ask.scope, 0,
	                        call->ask.blocks[block].hash, ret_node) == 0;
}

/* Each pool writes a prefix for itself: its jobs wait apart from those of others. */
static uint32_t
node_of(struct oracle *oracle, const struct site_call *call, uint32_t block)
{
	return oracle_book_node_make(oracle, call->ask.scope ^ call->ask.pool.low,
	                             call->ask.blocks[block].hash);
}

/* The lease on whose behalf the request runs; ORACLE_NONE if it has ended meanwhile. */
static uint32_t
lease_of(const struct oracle *oracle, const struct site_call *call)
{
	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[i];
		const char *id =
			lease->job == ORACLE_NONE ? NULL : oracle->jobs[lease->job].id;

		if (lease->used && lease->slot == call->ask.slot &&
		    lease->q == call->ask.q &&
		    (id ? strcmp(id, call->ask.id) == 0 : call->ask.id[0] == 'w'))
			return i;
	}
	return ORACLE_NONE;
}

/* How long ago it was claimed. */
static uint64_t
age_us(const struct oracle *oracle, const struct oracle_lease *lease)
{
	uint64_t now_ms = server_now_ms(oracle->server);

	return (now_ms - MIN(now_ms, lease->at_ms)) * 1000;
}

/* Held by nobody's gate: its own hold had ended, or holding was off, or the answer to its
 * claim came when the gate that had let it pass may be shut again. */
static bool
is_exempt(const struct oracle *oracle, const struct oracle_lease *lease)
{
	if (lease->role == PROTOCOL_PLAIN && age_us(oracle, lease) >= SEND_US_MAX)
		return true;
	return lease->unheld || lease->role == PROTOCOL_HOLD_LIMIT ||
	       lease->role == PROTOCOL_NOW;
}

static void
excuse(struct oracle *oracle, uint32_t node, const char *why)
{
	if (oracle->nodes[node].excuse)
		return;
	oracle->nodes[node].excuse = why;
	trace_line(oracle->trace, "oracle: a prefix is excused: %s", why);
}

/* Other requests that may be writing this node: leased, gated, no byte yet. */
static uint32_t
count_writers(const struct oracle *oracle, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < oracle->requests_count; i++) {
		const struct oracle_request *request = &oracle->requests[i];
		uint32_t lease = lease_of(oracle, request->call);

		if (request->responded || !request->call->open || lease == ORACLE_NONE ||
		    is_exempt(oracle, &oracle->leases[lease]))
			continue;
		for (uint32_t k = 0; k < request->nodes_count; k++)
			count += request->nodes[k] == node;
	}
	return count;
}

/* The provider has not got an entry that it should have. */
static void
learn_loss(struct oracle *oracle, uint32_t index, const struct cache_node *seen,
           bool is_known)
{
	struct oracle_node *node = &oracle->nodes[index];
	uint64_t now_us = oracle->agenda->now_us;

	if (node->readable_since_us == 0)
		return;
	if (is_known && seen->readable_us != CACHE_MODEL_NEVER_US &&
	    now_us >= seen->expires_us && oracle->clock_stepped)
		excuse(oracle, index, "it lived its time, and the clock was set");
	else if (is_known && seen->readable_us != CACHE_MODEL_NEVER_US &&
	         now_us >= seen->expires_us)
		node->readable_since_us = node->was_written = 0; /* it lived its time */
	else
		excuse(oracle, index, "its entry vanished");
}

/* A reader that came too early, or whom the provider did not let read. */
static void
learn_miss(struct oracle *oracle, uint32_t index)
{
	struct oracle_node *node = &oracle->nodes[index];

	if (++node->misses >= MISSES_MAX)
		excuse(oracle, index, "three readers missed it");
}

/* So many prefixes were read by their first reader that nobody checks any more: then a
 * lag that has changed meanwhile is learned by a miss. */
static bool
may_be_trusted(const struct oracle *oracle)
{
	uint32_t read = 0;

	for (uint32_t i = 0; i < oracle->nodes_count; i++)
		read += oracle->nodes[i].readable_since_us > 0;
	return read >= TRUST_PROOFS;
}

static void
judge_plain(struct oracle *oracle, const struct oracle_lease *lease,
            const struct site_call *call, uint32_t index, const struct cache_node *seen,
            bool is_known)
{
	bool expired = is_known && seen->readable_us != CACHE_MODEL_NEVER_US &&
	               oracle->agenda->now_us >= seen->expires_us;

	if (lease->role != PROTOCOL_PLAIN || oracle->nodes[index].excuse)
		return;
	if (!expired && is_known && oracle->provider_changed && may_be_trusted(oracle)) {
		excuse(oracle, index, "its lag has changed, and it was trusted");
		return;
	}
	if (!expired)
		oracle_fail(oracle, "I2", "%s starts while its prefix cannot be read",
		            call->ask.id);
	else if (!oracle->clock_stepped && !oracle->rolled_back)
		oracle_fail(oracle, "I7", "%s starts on a prefix that has expired",
		            call->ask.id);
}

static uint32_t
tokens_up_to(const struct site_call *call, uint32_t block)
{
	uint32_t tokens = 0;

	for (uint32_t i = 0; i <= block; i++)
		tokens += call->ask.blocks[i].tokens;
	return tokens;
}

/* One marked block of a request that begins. */
static void
judge_block(struct oracle *oracle, struct oracle_request *request, uint32_t block,
            const struct oracle_lease *lease)
{
	const struct site_call *call = request->call;
	struct cache_node seen = { 0 };
	bool is_known = look_up(oracle, call, block, &seen);
	bool is_readable = is_known && seen.readable_us <= oracle->agenda->now_us &&
	                   oracle->agenda->now_us < seen.expires_us;
	uint32_t index = node_of(oracle, call, block);
	uint32_t writers;

	if (is_readable) {
		oracle->nodes[index].readable_since_us = MAX(seen.readable_us, 1);
		return;
	}
	/* What covers a node covers all above it, to all who hear of it. */
	if (call->answer.usage.known &&
	    call->answer.usage.read_tokens >= tokens_up_to(call, block))
		excuse(oracle, index, "a longer one was read before it");
	learn_loss(oracle, index, &seen, is_known);
	if (oracle->nodes[index].was_written)
		learn_miss(oracle, index);
	request->nodes[request->nodes_count++] = index;
	if (!lease || is_exempt(oracle, lease))
		return;
	writers = count_writers(oracle, index);
	oracle->writers_max = MAX(oracle->writers_max, writers + 1);
	if (writers > 0 && !oracle->nodes[index].excuse)
		oracle_fail(oracle, "I1",
		            "%s may write a prefix that %u others are writing",
		            call->ask.id, writers);
	judge_plain(oracle, lease, call, index, &seen, is_known);
}

static void
on_accepted(void *context, struct site_call *call)
{
	struct oracle *oracle = context;
	const struct cache_usage *usage = &call->answer.usage;
	uint32_t lease = lease_of(oracle, call);
	struct oracle_request *request;

	if (oracle->requests_count == oracle->requests_room) {
		oracle->requests_room =
			oracle->requests_room ? oracle->requests_room * 2 : 64;
		oracle->requests =
			realloc(oracle->requests,
		                oracle->requests_room * sizeof *oracle->requests);
		VERIFY(oracle->requests);
	}
	/* judged before it counts itself */
	request = &oracle->requests[oracle->requests_count];
	*request = (struct oracle_request){ .call = call };
	for (uint32_t i = 0; i < call->ask.blocks_count; i++) {
		const struct cache_block *block = &call->ask.blocks[i];
		uint32_t node;

		if (block->marker == CACHE_MARKER_NONE ||
		    tokens_up_to(call, i) < call->ask.minimum_tokens)
			continue;
		node = node_of(oracle, call, i);
		if (!usage->known)
			excuse(oracle, node, "its usage was not told");
		if (usage->read_tokens == 0 && usage->written_tokens == 0)
			excuse(oracle, node, "the provider does not cache it");
		if (oracle->nodes[node].readable_since_us > 0 &&
		    usage->read_tokens < tokens_up_to(call, i))
			learn_miss(oracle, node);
		judge_block(oracle, request, i,
		            lease == ORACLE_NONE ? NULL : &oracle->leases[lease]);
	}
	oracle->requests_count++;
}

static struct oracle_request *
find_request(struct oracle *oracle, const struct site_call *call)
{
	for (uint32_t i = 0; i < oracle->requests_count; i++) {
		if (oracle->requests[i].call == call)
			return &oracle->requests[i];
	}
	return NULL;
}

static void
on_responded(void *context, struct site_call *call)
{
	struct oracle *oracle = context;
	struct oracle_request *request = find_request(oracle, call);
	uint32_t lease = lease_of(oracle, call);

	if (lease != ORACLE_NONE)
		oracle_budget_served(oracle, oracle->leases[lease].budget);
	if (!request)
		return;
	request->responded = true;
	for (uint32_t i = 0; i < request->nodes_count; i++)
		oracle->nodes[request->nodes[i]].was_written = true;
}

static void
on_over(void *context, struct site_call *call)
{
	struct oracle *oracle = context;
	struct oracle_request *request = find_request(oracle, call);

	if (request)
		*request = oracle->requests[--oracle->requests_count];
}

static void
take_broke(struct oracle *oracle, const struct site_call *call)
{
	uint32_t lease = lease_of(oracle, call);

	if (lease != ORACLE_NONE)
		oracle_budget_broke(oracle, oracle->leases[lease].budget);
}

static void
on_refused(void *context, struct site_call *call)
{
	struct oracle *oracle = context;

	if (call->answer.limit == LIMIT_VERDICT_SPEND)
		take_broke(oracle, call);
	if (call->answer.status != 400)
		return;
	for (uint32_t i = 0; i < call->ask.blocks_count; i++) {
		uint32_t node;

		if (call->ask.blocks[i].marker == CACHE_MARKER_NONE)
			continue;
		node = node_of(oracle, call, i);
		if (++oracle->nodes[node].refusals >= REFUSALS_MAX)
			excuse(oracle, node, "three of its leaders were refused");
	}
}

void
oracle_cache_attach(struct oracle *oracle)
{
	oracle->site->on_accepted = on_accepted;
	oracle->site->on_responded = on_responded;
	oracle->site->on_over = on_over;
	oracle->site->on_refused = on_refused;
	oracle->site->context = oracle;
}
