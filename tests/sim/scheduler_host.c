#include "tests/sim/scheduler_host.h"

#include <inttypes.h>
#include <stdlib.h>

#define TAG_TIME       UINT64_MAX
#define COMMAND_US     UINT64_C(10000000) /* as common/io/redis.h */
#define DOUBT_US       UINT64_C(500000)
#define MEASURE_US     UINT64_C(10000000)
#define TAG_KIND_SHIFT 56 /* as scheduler/ruler.c */

enum {
	ARGS_MAX = RULER_ARGS + 64,
	STEPS_MAX = 100000, /* of one instant: more is a loop without end */
	BACK_MS = 1000,     /* a clock that is so far behind has been set back */
};

static void pump(struct scheduler_host *scheduler);
static void pump_later(struct scheduler_host *scheduler);

static uint64_t
world_ms(const struct scheduler_host *scheduler)
{
	return scheduler->agenda->now_us / 1000;
}

/* Redis's clock as far as it is known here; never back. */
static uint64_t
now_ms(struct scheduler_host *scheduler)
{
	uint64_t now = world_ms(scheduler) + (uint64_t)scheduler->offset_ms;

	scheduler->last_ms = MAX(scheduler->last_ms, now);
	return scheduler->last_ms;
}

static void
say(void *data, const struct ruler_note *note)
{
	struct scheduler_host *scheduler = data;

	trace_line(scheduler->trace, "%s says: %s %.*s %.*s", scheduler->name, note->text,
	           (int)note->family.len, note->family.data, (int)note->job.len,
	           note->job.data);
}

/* A call that is the oldest one unanswered for too long loses the connection. */
static void
note_sent(struct scheduler_host *scheduler)
{
	if (scheduler->unanswered++ == 0)
		scheduler->oldest_us = scheduler->agenda->now_us;
}

static void
make_ruler(struct scheduler_host *scheduler)
{
	scheduler->ruler = ruler_destroy(scheduler->ruler);
	scheduler->own = *scheduler->config;
	scheduler->own.seed = prng_next(&scheduler->prng);
	scheduler->own.say = say;
	scheduler->own.data = scheduler;
	scheduler->ruler = ruler_create(&scheduler->own);
	VERIFY(scheduler->ruler);
	scheduler->last_ms = 0;
}

static void
on_reconnect(void *context, uint64_t life)
{
	struct scheduler_host *scheduler = context;

	if (!scheduler->alive || scheduler->life != life)
		return;
	scheduler->reconnecting = false;
	if (!scheduler->wire.connection)
		wire_open(&scheduler->wire);
}

static void
reconnect(struct scheduler_host *scheduler)
{
	if (scheduler->reconnecting)
		return;
	scheduler->reconnecting = true;
	agenda_in(scheduler->agenda, prng_between(&scheduler->prng, 50000, 500000),
	          on_reconnect, scheduler, scheduler->life);
}

/* ---- the clock of Redis ---------------------------------------------------------- */

static void
ask_time(struct scheduler_host *scheduler)
{
	const struct span argv[] = { SPAN("TIME") };

	wire_send(&scheduler->wire, TAG_TIME, argv, ARRAY_SIZE(argv));
	note_sent(scheduler);
}

static void
on_measure(void *context, uint64_t life)
{
	struct scheduler_host *scheduler = context;

	if (!scheduler->alive || scheduler->life != life)
		return;
	if (scheduler->greeted && scheduler->agenda->now_us >= scheduler->frozen_until_us)
		ask_time(scheduler);
	agenda_in(scheduler->agenda, MEASURE_US, on_measure, scheduler, life);
}

/* The first TIME of a connection is the greeting; later ones notice a clock that was set
 * back: then everything is read again. */
static void
take_time(struct scheduler_host *scheduler, const struct reply *reply)
{
	uint64_t told_ms = (uint64_t)reply_integer(reply_at(reply, 0), 0) * 1000 +
	                   (uint64_t)reply_integer(reply_at(reply, 1), 0) / 1000;

	scheduler->offset_ms = (int64_t)(told_ms - world_ms(scheduler));
	if (scheduler->greeted && told_ms + BACK_MS >= scheduler->last_ms)
		return;
	if (scheduler->greeted) {
		trace_line(scheduler->trace, "%s sees the clock set back",
		           scheduler->name);
		ruler_lost(scheduler->ruler, scheduler->last_ms);
	}
	scheduler->last_ms = 0; /* nothing is known that time could go back against */
	scheduler->greeted = true;
	ruler_connected(scheduler->ruler, now_ms(scheduler));
}

/* ---- a step ---------------------------------------------------------------------------
 */

/* Tags of one kind of call begin alike. */
static void
note_kind(struct scheduler_host *scheduler, uint64_t tag, struct span function)
{
	if (span_equals(function, SPAN("warmq_grant")))
		scheduler->kinds[0] = tag >> TAG_KIND_SHIFT;
	else if (span_equals(function, SPAN("warmq_glance")))
		scheduler->kinds[1] = tag >> TAG_KIND_SHIFT;
}

/* What was done is done, but its answer says nothing that anybody understands. */
static bool
is_garbled(struct scheduler_host *scheduler, uint64_t tag)
{
	uint64_t kind = tag >> TAG_KIND_SHIFT;
	uint32_t permille = scheduler->weather->deaf_permille;

	if (permille == 0 || (kind != scheduler->kinds[0] && kind != scheduler->kinds[1]))
		return false;
	return prng_chance(&scheduler->prng, permille);
}

static void
send_calls(struct scheduler_host *scheduler)
{
	static struct span argv[ARGS_MAX];

	for (uint32_t i = 0; i < scheduler->calls.call_count; i++) {
		const struct call *call = &scheduler->calls.calls[i];

		VERIFY(call->arg_count <= ARGS_MAX);
		for (uint32_t k = 0; k < call->arg_count; k++)
			argv[k] = call_arg(&scheduler->calls, call, k);
		trace_line(scheduler->trace, "%s > %.*s %.*s", scheduler->name,
		           (int)argv[0].len, argv[0].data, (int)argv[1].len,
		           argv[1].data);
		note_kind(scheduler, call->tag, argv[1]);
		wire_send(&scheduler->wire, call->tag, argv, call->arg_count);
		note_sent(scheduler);
	}
}

static void
pump(struct scheduler_host *scheduler)
{
	int steps = 0;

	if (!scheduler->alive || scheduler->pumping || !scheduler->greeted)
		return;
	if (scheduler->agenda->now_us < scheduler->frozen_until_us) {
		pump_later(scheduler);
		return;
	}
	scheduler->pumping = true;
	do {
		VERIFY(steps++ < STEPS_MAX);
		call_reset(&scheduler->calls);
		ruler_step(scheduler->ruler, now_ms(scheduler), &scheduler->calls);
		send_calls(scheduler);
	} while (ruler_deadline(scheduler->ruler, now_ms(scheduler)) <=
	         now_ms(scheduler));
	scheduler->pumping = false;
	pump_later(scheduler);
}

static void
on_wake(void *context, uint64_t number)
{
	struct scheduler_host *scheduler = context;

	if (scheduler->alive && number == scheduler->wake_number) {
		scheduler->wake_at_us = UINT64_MAX;
		pump(scheduler);
	}
}

static void
pump_later(struct scheduler_host *scheduler)
{
	uint64_t deadline = ruler_deadline(scheduler->ruler, now_ms(scheduler));
	uint64_t rest_ms;
	uint64_t at_us;

	if (deadline == RULER_DEADLINE_NONE)
		return;
	rest_ms = deadline - MIN(deadline, now_ms(scheduler));
	at_us = scheduler->agenda->now_us + MIN(rest_ms, 3600000ull) * 1000;
	at_us = MAX(at_us, scheduler->frozen_until_us);
	if (at_us >= scheduler->wake_at_us)
		return;
	scheduler->wake_at_us = at_us;
	agenda_at(scheduler->agenda, at_us, on_wake, scheduler, ++scheduler->wake_number);
}

static void
on_up(void *context)
{
	struct scheduler_host *scheduler = context;

	scheduler->unanswered = 0;
	scheduler->greeted = false;
	ask_time(scheduler);
}

static void
on_down(void *context)
{
	struct scheduler_host *scheduler = context;

	if (scheduler->greeted)
		ruler_lost(scheduler->ruler, now_ms(scheduler));
	scheduler->greeted = false;
	scheduler->unanswered = 0;
	reconnect(scheduler);
}

static void
on_doubt(void *context, uint64_t life)
{
	struct scheduler_host *scheduler = context;
	uint64_t now_us = scheduler->agenda->now_us;

	if (!scheduler->alive || scheduler->life != life)
		return;
	if (scheduler->unanswered > 0 && now_us >= scheduler->frozen_until_us &&
	    now_us - scheduler->oldest_us > COMMAND_US) {
		trace_line(scheduler->trace, "%s gives its connection up",
		           scheduler->name);
		wire_close(&scheduler->wire);
		on_down(scheduler);
	}
	agenda_in(scheduler->agenda, DOUBT_US, on_doubt, scheduler, life);
}

static void
on_answer(void *context, uint64_t tag, const struct reply *reply)
{
	struct scheduler_host *scheduler = context;
	static const struct reply nothing = { .kind = REPLY_NIL };

	scheduler->unanswered--;
	scheduler->oldest_us = scheduler->agenda->now_us;
	if (tag == TAG_TIME)
		take_time(scheduler, reply);
	else if (scheduler->greeted)
		ruler_answer(scheduler->ruler, now_ms(scheduler), tag,
		             is_garbled(scheduler, tag) ? &nothing : reply);
	pump(scheduler);
}

void
scheduler_host_init(struct scheduler_host *scheduler, uint32_t index,
                    struct wire_hub *hub, const struct weather *weather,
                    const struct ruler_config *config, uint64_t seed)
{
	*scheduler = (struct scheduler_host){
		.agenda = hub->agenda,
		.trace = hub->trace,
		.weather = weather,
		.config = config,
		.wire = {
			.hub = hub,
			.name = scheduler->name,
			.on_up = on_up,
			.on_down = on_down,
			.on_answer = on_answer,
			.context = scheduler,
			.frozen_until_us = &scheduler->frozen_until_us,
		},
	};
	prng_init(&scheduler->prng, seed);
	(void)snprintf(scheduler->name, sizeof scheduler->name, "scheduler%u", index);
	scheduler->calls = (struct call_list){
		.calls = calloc(RULER_CALLS, sizeof *scheduler->calls.calls),
		.args = calloc(ARGS_MAX, sizeof *scheduler->calls.args),
		.bytes = malloc(2 * RULER_BYTES),
		.call_max = RULER_CALLS,
		.arg_max = ARGS_MAX,
		.byte_max = 2 * RULER_BYTES,
	};
	VERIFY(scheduler->calls.calls && scheduler->calls.args && scheduler->calls.bytes);
}

void
scheduler_host_fini(struct scheduler_host *scheduler)
{
	scheduler->ruler = ruler_destroy(scheduler->ruler);
	free(scheduler->calls.calls);
	free(scheduler->calls.args);
	free(scheduler->calls.bytes);
}

void
scheduler_host_start(struct scheduler_host *scheduler)
{
	VERIFY(!scheduler->alive);
	scheduler->alive = true;
	scheduler->life++;
	scheduler->frozen_until_us = 0;
	scheduler->wake_at_us = UINT64_MAX;
	scheduler->reconnecting = false;
	scheduler->greeted = false;
	scheduler->unanswered = 0;
	make_ruler(scheduler);
	trace_line(scheduler->trace, "%s starts", scheduler->name);
	wire_open(&scheduler->wire);
	agenda_in(scheduler->agenda, DOUBT_US, on_doubt, scheduler, scheduler->life);
	agenda_in(scheduler->agenda, MEASURE_US, on_measure, scheduler, scheduler->life);
}

void
scheduler_host_crash(struct scheduler_host *scheduler)
{
	if (!scheduler->alive)
		return;
	trace_line(scheduler->trace, "%s dies", scheduler->name);
	scheduler->alive = false;
	scheduler->life++;
	wire_close(&scheduler->wire);
	scheduler->ruler = ruler_destroy(scheduler->ruler);
}

void
scheduler_host_freeze(struct scheduler_host *scheduler, uint64_t until_us)
{
	if (!scheduler->alive)
		return;
	trace_line(scheduler->trace, "%s freezes until %" PRIu64, scheduler->name,
	           until_us / 1000000);
	scheduler->frozen_until_us = MAX(scheduler->frozen_until_us, until_us);
}
