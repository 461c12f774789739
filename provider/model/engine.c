#include "provider/model/engine.h"

struct account {
	uint64_t number;
	struct limit_model limits[ENGINE_CLASSES_MAX];
};

struct engine {
	struct engine_config config;
	struct engine_stats stats;
	struct cache_model *cache;
	struct timing_model timing;
	struct fault_model fault;
	struct account accounts[ENGINE_ACCOUNTS_MAX];
	uint32_t accounts_count;
};

static size_t
header_size(void)
{
	return (sizeof(struct engine) + 15) & ~(size_t)15;
}

/* The parts draw from streams of their own, so that a change of one does not shift
 * the others. */
static void
seed_parts(struct engine *engine)
{
	struct prng prng;

	prng_init(&prng, engine->config.seed);
	engine->config.cache.seed = prng_next(&prng);
	timing_model_init(&engine->timing, prng_next(&prng), &engine->config.timing);
	fault_model_init(&engine->fault, prng_next(&prng), &engine->config.fault);
}

static struct limit_model *
limits_of(struct engine *engine, uint64_t now_us, uint64_t number, uint32_t class)
{
	struct account *account;

	VERIFY(class < ENGINE_CLASSES_MAX);
	for (uint32_t i = 0; i < engine->accounts_count; i++)
		if (engine->accounts[i].number == number)
			return &engine->accounts[i].limits[class];
	if (engine->accounts_count == ENGINE_ACCOUNTS_MAX)
		return &engine->accounts[ENGINE_ACCOUNTS_MAX - 1].limits[class];

	account = &engine->accounts[engine->accounts_count++];
	account->number = number;
	for (int i = 0; i < ENGINE_CLASSES_MAX; i++)
		limit_model_init(&account->limits[i], now_us, &engine->config.limits[i]);
	return &account->limits[class];
}

size_t
engine_size(const struct engine_config *config)
{
	return header_size() + cache_model_size(&config->cache);
}

struct engine *
engine_init(void *memory, size_t size, const struct engine_config *config)
{
	struct engine *engine = memory;

	VERIFY(size >= engine_size(config));
	memset(engine, 0, sizeof *engine);
	engine->config = *config;
	seed_parts(engine);
	engine->cache = cache_model_init((char *)memory + header_size(),
	                                 size - header_size(), &engine->config.cache);
	return engine;
}

void
engine_configure(struct engine *engine, uint64_t now_us,
                 const struct engine_config *config)
{
	engine->config.cache.knobs = config->cache.knobs;
	engine->config.timing = config->timing;
	engine->config.fault = config->fault;
	engine->config.retry_after_ms = config->retry_after_ms;
	engine->config.fault_status = config->fault_status;
	memcpy(engine->config.limits, config->limits, sizeof config->limits);

	cache_model_set_knobs(engine->cache, &config->cache.knobs);
	engine->timing.knobs = config->timing;
	engine->fault.knobs = config->fault;
	for (uint32_t i = 0; i < engine->accounts_count; i++)
		for (int class = 0; class < ENGINE_CLASSES_MAX; class ++)
			limit_model_set_knobs(&engine->accounts[i].limits[class], now_us,
			                      &config->limits[class]);
}

void
engine_reset(struct engine *engine, uint64_t now_us)
{
	seed_parts(engine);
	engine->stats = (struct engine_stats){ 0 };
	for (uint32_t i = 0; i < engine->accounts_count; i++)
		for (int class = 0; class < ENGINE_CLASSES_MAX; class ++) {
			struct limit_model *limit = &engine->accounts[i].limits[class];
			uint32_t reserved = limit->output_reserved;

			limit_model_init(limit, now_us, &engine->config.limits[class]);
			limit->output_reserved = reserved;
		}
	cache_model_reset(engine->cache);
}

/* The status of a fault that comes before any work; 0: no answer at all. */
static int
status_of(const struct engine *engine, enum fault fault)
{
	switch (fault) {
	case FAULT_BAD_REQUEST:
		return 400;
	case FAULT_RATE_LIMIT:
		return 429;
	case FAULT_SERVER_ERROR:
		return 500;
	case FAULT_UNAVAILABLE:
		return 503;
	case FAULT_OVERLOADED:
		return 529;
	case FAULT_STATUS:
		return engine->config.fault_status > 0 ? engine->config.fault_status
		                                       : 504;
	default:
		return 0;
	}
}

static void
refuse_by_fault(const struct engine *engine, struct engine_answer *answer)
{
	answer->status = status_of(engine, answer->fault);
	if (answer->fault == FAULT_RATE_LIMIT || answer->fault == FAULT_OVERLOADED)
		answer->retry_after_us = engine->config.retry_after_ms * 1000ull;
}

static void
accept(struct engine *engine, uint64_t now_us, const struct engine_request *request,
       const struct limit_need *need, struct engine_answer *answer)
{
	struct timing_plan plan;

	plan = timing_model_plan(&engine->timing,
	                         answer->usage.total_tokens - answer->usage.read_tokens,
	                         request->output_tokens);
	answer->accepted = true;
	answer->status = 200;
	answer->ticket.need = *need;
	answer->ticket.account = request->account;
	answer->ticket.class = request->class;
	answer->first_byte_us = now_us + plan.first_byte_us;
	answer->done_us = answer->first_byte_us + plan.decode_us;
	engine->stats.accepted++;
}

void
engine_start(struct engine *engine, uint64_t now_us, const struct engine_request *request,
             struct engine_answer *ret_answer)
{
	struct engine_answer answer = { .fault = fault_model_draw(&engine->fault) };
	struct limit_model *limits =
		limits_of(engine, now_us, request->account, request->class);
	struct cache_look look;
	struct limit_need need;

	VERIFY(request->output_tokens <= request->output_tokens_max);
	engine->stats.faults[answer.fault]++;
	if (fault_is_before(answer.fault)) {
		refuse_by_fault(engine, &answer);
		*ret_answer = answer;
		return;
	}

	cache_model_look(engine->cache, now_us, &request->cache, &look);
	answer.usage = look.usage;
	need = (struct limit_need){
		.input_tokens = look.usage.uncached_tokens + look.usage.written_tokens,
		.read_tokens = look.usage.read_tokens,
		.output_tokens = request->output_tokens_max,
	};
	answer.limit = limit_model_start(limits, now_us, &need, &answer.retry_after_us);
	if (answer.limit != LIMIT_VERDICT_OK) {
		answer.status = 429;
		engine->stats.refused_limit[answer.limit]++;
	} else if (cache_model_start(engine->cache, now_us, &request->cache, &look,
	                             &answer.ticket.cache) < 0) {
		/* The input charge stays, as it does with a provider that fails late. */
		limit_model_finish(limits, now_us, &need, 0);
		answer.status = 529;
		engine->stats.refused_full++;
	} else {
		accept(engine, now_us, request, &need, &answer);
	}
	*ret_answer = answer;
}

void
engine_respond(struct engine *engine, uint64_t now_us, struct engine_ticket *ticket)
{
	VERIFY(!ticket->responded);
	ticket->responded = true;
	cache_model_respond(engine->cache, now_us, ticket->cache);
	limit_model_respond(limits_of(engine, now_us, ticket->account, ticket->class),
	                    now_us, &ticket->need);
}

void
engine_finish(struct engine *engine, uint64_t now_us, struct engine_ticket *ticket,
              uint32_t output_tokens_used)
{
	cache_model_finish(engine->cache, now_us, ticket->cache);
	limit_model_finish(limits_of(engine, now_us, ticket->account, ticket->class),
	                   now_us, &ticket->need, output_tokens_used);
	engine->stats.output_tokens += output_tokens_used;
}

struct limit_level
engine_level(struct engine *engine, uint64_t now_us, uint64_t account, uint32_t class,
             enum limit_bucket bucket)
{
	return limit_model_level(limits_of(engine, now_us, account, class), now_us,
	                         bucket);
}

const struct engine_stats *
engine_stats(const struct engine *engine)
{
	return &engine->stats;
}

struct cache_model *
engine_cache(struct engine *engine)
{
	return engine->cache;
}

const struct fault_knobs *
engine_fault_knobs(const struct engine *engine)
{
	return &engine->fault.knobs;
}

void
engine_audit(const struct engine *engine)
{
	cache_model_audit(engine->cache);
	VERIFY(cache_model_stats(engine->cache).requests == engine->stats.accepted);
}
