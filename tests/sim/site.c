#include "tests/sim/site.h"

#include <inttypes.h>
#include <stdlib.h>

void
site_init(struct site *site, struct agenda *agenda, struct trace *trace,
          const struct engine_config *config, uint64_t seed)
{
	struct engine_config own = *config;

	*site = (struct site){ .agenda = agenda, .trace = trace };
	prng_init(&site->prng, seed);
	own.seed = prng_next(&site->prng);
	site->memory = aligned_alloc(64, (engine_size(&own) + 63) & ~(size_t)63);
	VERIFY(site->memory);
	site->engine = engine_init(site->memory, engine_size(&own), &own);
	site->delay_us_min = 1000;
	site->delay_us_max = 5000;
}

void
site_fini(struct site *site)
{
	while (site->calls) {
		struct site_call *next = site->calls->next;

		free(site->calls);
		site->calls = next;
	}
	free(site->memory);
	site->memory = NULL;
}

void
site_configure(struct site *site, const struct engine_config *config)
{
	engine_configure(site->engine, site->agenda->now_us, config);
}

static uint64_t
delay_us(struct site *site)
{
	return prng_between(&site->prng, site->delay_us_min, site->delay_us_max);
}

static bool
is_put_off(struct site_call *call, agenda_fn *run)
{
	const uint64_t *until_us = call->client.frozen_until_us;

	if (!until_us || call->site->agenda->now_us >= *until_us)
		return false;
	agenda_at(call->site->agenda, *until_us, run, call, 0);
	return true;
}

static void
on_client_first(void *context, uint64_t number)
{
	struct site_call *call = context;

	if (call->open && is_put_off(call, on_client_first))
		return;

	if (call->open)
		call->client.on_first(call->client.context, call);
}

static void
on_client_end(void *context, uint64_t number)
{
	struct site_call *call = context;

	if (!call->open || is_put_off(call, on_client_end))
		return;
	call->open = false;
	call->client.on_end(call->client.context, call, &call->end);
}

/* The last thing the client will hear. */
static void
tell_end(struct site_call *call, struct site_end end)
{
	call->end = end;
	agenda_in(call->site->agenda, delay_us(call->site), on_client_end, call, 0);
}

static void
end_work(struct site_call *call)
{
	struct site *site = call->site;
	uint32_t output = call->phase == SITE_ANSWERS ? call->ask.output_tokens : 0;

	engine_finish(site->engine, site->agenda->now_us, &call->answer.ticket, output);
	call->phase = SITE_OVER;
	if (site->on_over)
		site->on_over(site->context, call);
}

static void
on_last_byte(void *context, uint64_t number)
{
	struct site_call *call = context;

	if (call->phase != SITE_ANSWERS)
		return; /* the client had gone */
	end_work(call);
	switch (call->answer.fault) {
	case FAULT_STALL: /* says no more, and does not close either */
		return;
	case FAULT_LOSE_REPLY:
	case FAULT_CUT:
	case FAULT_GARBAGE:
		tell_end(call, (struct site_end){ 0 });
		return;
	case FAULT_STREAM_ERROR:
		tell_end(call, (struct site_end){ .status = 529, .in_stream = true });
		return;
	default:
		tell_end(call, (struct site_end){ .status = 200 });
		return;
	}
}

static void
on_first_byte(void *context, uint64_t number)
{
	struct site_call *call = context;
	struct site *site = call->site;
	enum fault fault = call->answer.fault;
	uint64_t rest_us = call->answer.done_us - call->answer.first_byte_us;

	if (call->phase != SITE_WORKS)
		return; /* the client had gone */
	engine_respond(site->engine, site->agenda->now_us, &call->answer.ticket);
	call->phase = SITE_ANSWERS;
	if (site->on_responded)
		site->on_responded(site->context, call);
	if (fault == FAULT_CUT_USAGE) {
		end_work(call);
		tell_end(call, (struct site_end){ 0 });
		return;
	}
	if (call->ask.streams && fault != FAULT_LOSE_REPLY && fault != FAULT_GARBAGE)
		agenda_in(site->agenda, delay_us(site), on_client_first, call, 0);
	if (fault == FAULT_CUT || fault == FAULT_STREAM_ERROR)
		rest_us /= 2;
	if (fault == FAULT_DRIP)
		rest_us *= 3;
	agenda_in(site->agenda, rest_us, on_last_byte, call, 0);
}

static void
refuse(struct site_call *call)
{
	const struct engine_answer *answer = &call->answer;

	trace_line(call->site->trace, "provider refuses %" PRIu64 ": %d %s", call->number,
	           answer->status, fault_text(answer->fault));
	call->phase = SITE_OVER;
	if (call->site->on_refused)
		call->site->on_refused(call->site->context, call);
	if (answer->fault == FAULT_HANG)
		return;
	tell_end(call, (struct site_end){
			       .status = answer->status,
			       .refused = answer->fault == FAULT_REFUSE,
			       .spend_cap = answer->limit == LIMIT_VERDICT_SPEND,
			       .retry_after_us = answer->retry_after_us,
		       });
}

static void
on_arrival(void *context, uint64_t number)
{
	struct site_call *call = context;
	struct site *site = call->site;
	const struct engine_request request = {
		.cache = {
			.scope = call->ask.scope,
			.routing = call->ask.scope,
			.mode = call->ask.mode,
			.minimum_tokens = call->ask.minimum_tokens,
			.step_tokens = 128,
			.blocks = call->ask.blocks,
			.blocks_count = call->ask.blocks_count,
		},
		.account = call->ask.account,
		.class = call->ask.class,
		.output_tokens_max = call->ask.output_tokens,
		.output_tokens = call->ask.output_tokens,
	};

	if (!call->open) {
		call->phase = SITE_OVER;
		return;
	}
	engine_start(site->engine, site->agenda->now_us, &request, &call->answer);
	if (!call->answer.accepted) {
		refuse(call);
		return;
	}
	call->phase = SITE_WORKS;
	trace_line(site->trace,
	           "provider runs %" PRIu64 " %s: read %u written %u uncached %u%s%s",
	           call->number, call->ask.id, call->answer.usage.read_tokens,
	           call->answer.usage.written_tokens, call->answer.usage.uncached_tokens,
	           call->answer.usage.known ? "" : ", untold",
	           call->answer.fault ? ", with a fault" : "");
	if (site->on_accepted)
		site->on_accepted(site->context, call);
	agenda_at(site->agenda, call->answer.first_byte_us, on_first_byte, call, 0);
}

struct site_call *
site_start(struct site *site, const struct site_ask *ask, struct site_client client)
{
	struct site_call *call = calloc(1, sizeof *call);

	VERIFY(call);
	call->next = site->calls;
	call->site = site;
	call->number = ++site->calls_count;
	call->ask = *ask;
	call->client = client;
	call->open = true;
	call->sent_us = site->agenda->now_us;
	site->calls = call;
	agenda_in(site->agenda, delay_us(site), on_arrival, call, 0);
	return call;
}

static void
on_gone(void *context, uint64_t number)
{
	struct site_call *call = context;

	if (call->phase == SITE_WORKS || call->phase == SITE_ANSWERS)
		end_work(call);
}

void
site_hang_up(struct site_call *call)
{
	if (!call->open)
		return;
	call->open = false;
	agenda_in(call->site->agenda, delay_us(call->site), on_gone, call, 0);
}
