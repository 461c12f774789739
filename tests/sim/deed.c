#include "tests/sim/deed.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND_US UINT64_C(1000000)
#define SWEEPS    24 /* in clear weather: whoever comes back late is resumed, too */

enum deed {
	UNPARK,
	STEER,
	HOLD_ROUTE,
	WARM,
	PAUSE,
};

static uint64_t
draw_us(struct world *world, uint64_t max_us)
{
	return prng_between(&world->prng, 1, MAX(max_us, 2));
}

/* FCALL warmq_<name> with up to three words. */
static void
call(struct world *world, const char *name, struct span a, struct span b, struct span c)
{
	const struct span argv[] = {
		SPAN("FCALL"),
		span_from(name),
		SPAN("1"),
		SPAN("warmq:meta"),
		SPAN("1"),
		a,
		b,
		c,
	};

	trace_line(&world->trace, "somebody calls %s %.*s %.*s", name, (int)a.len, a.data,
	           (int)b.len, b.data);
	(void)server_call(&world->server, argv, ARRAY_SIZE(argv));
}

/* ---- accounts -------------------------------------------------------------------- */

static void
unpark(struct world *world)
{
	static const char *const ACCOUNTS[] = { "anthropic", "openai" };
	size_t which = (size_t)prng_below(&world->prng, ARRAY_SIZE(ACCOUNTS));

	call(world, "warmq_unpark", span_from(ACCOUNTS[which]), SPAN("somebody"),
	     SPAN(""));
}

/* ---- workers --------------------------------------------------------------------- */

static const struct reply *
sessions(struct world *world)
{
	const struct span argv[] = { SPAN("ZRANGE"), SPAN("warmq:workers"), SPAN("0"),
		                     SPAN("-1") };

	return server_peek(&world->server, argv, ARRAY_SIZE(argv));
}

static void
steer(struct world *world, struct span nonce, const char *word)
{
	char text[20] = "";

	memcpy(text, nonce.data, MIN(nonce.len, sizeof text - 1));
	call(world, "warmq_steer", span_from(text), span_from(word), SPAN("somebody"));
}

/* Every session there is claims again. */
static void
on_resume(void *context, uint64_t again)
{
	struct world *world = context;
	char nonces[32][17] = { { 0 } };
	size_t count = 0;

	if (world->server.up) {
		const struct reply *reply = sessions(world);

		for (; count < reply->count && count < ARRAY_SIZE(nonces); count++)
			memcpy(nonces[count], reply->items[count].text.data,
			       MIN(reply->items[count].text.len, sizeof nonces[0] - 1));
	}
	for (size_t i = 0; i < count; i++)
		steer(world, span_from(nonces[i]), "run");
	if (again > 0)
		agenda_in(&world->agenda, 5 * SECOND_US, on_resume, world, again - 1);
}

/* A process that has ended is started again, as by systemd. */
static void
on_look(void *context, uint64_t index)
{
	struct world *world = context;
	struct worker_host *worker = &world->workers[index];

	if (worker->alive && worker->finished) {
		oracle_session_ended(&world->oracle, worker->disk_nonce);
		worker_host_crash(worker);
		worker_host_start(worker);
	}
	agenda_in(&world->agenda, 5 * SECOND_US, on_look, world, index);
}

static void
steer_one(struct world *world)
{
	static const char *const WORDS[] = { "quiet", "quiet", "quiet", "stop", "run" };
	const char *word = WORDS[prng_below(&world->prng, ARRAY_SIZE(WORDS))];
	const struct reply *reply = sessions(world);

	if (reply->count == 0)
		return;
	steer(world, reply->items[prng_below(&world->prng, reply->count)].text, word);
	agenda_in(&world->agenda, draw_us(world, 30 * SECOND_US), on_resume, world, 0);
}

/* ---- routes ---------------------------------------------------------------------- */

/* One of the routes of the producer. */
static void
hold_route(struct world *world, uint64_t number, const char *word)
{
	char route[32];

	(void)snprintf(route, sizeof route, "route-%u-%u", (unsigned)(number / 2),
	               (unsigned)(number % 2));
	call(world, "warmq_hold", span_from(word), SPAN("somebody"), span_from(route));
}

static void
on_held(void *context, uint64_t number)
{
	struct world *world = context;

	if (world->server.up)
		hold_route(world, number, "on");
	else
		agenda_in(&world->agenda, SECOND_US, on_held, world, number);
}

static void
flip_route(struct world *world)
{
	uint64_t number = prng_below(&world->prng, world->weather.pools_count * 2);

	hold_route(world, number, "off");
	agenda_in(&world->agenda, draw_us(world, 60 * SECOND_US), on_held, world, number);
}

/* ---- families -------------------------------------------------------------------- */

static const struct reply *
families(struct world *world)
{
	const struct span argv[] = { SPAN("HKEYS"), SPAN("warmq:families") };

	return server_peek(&world->server, argv, ARRAY_SIZE(argv));
}

/* Any of them; false if there is none. */
static bool
choose_family(struct world *world, char id[33])
{
	const struct reply *reply = families(world);
	struct span chosen;

	if (reply->count == 0)
		return false;
	chosen = reply->items[prng_below(&world->prng, reply->count)].text;
	(void)snprintf(id, 33, "%.*s", (int)chosen.len, chosen.data);
	return true;
}

/* Some family is to be warm, whatever its state. */
static void
warm(struct world *world)
{
	char id[33];

	if (choose_family(world, id))
		call(world, "warmq_warm", span_from(id), SPAN("somebody"), SPAN(""));
}

/* Every family runs again. */
static void
on_resumed(void *context, uint64_t again)
{
	struct world *world = context;
	const struct reply *reply;
	char(*ids)[33];
	size_t count = 0;

	if (again > 0)
		agenda_in(&world->agenda, 5 * SECOND_US, on_resumed, world, again - 1);
	if (!world->server.up)
		return;
	reply = families(world);
	ids = calloc(reply->count + 1, sizeof *ids);
	VERIFY(ids);
	for (; count < reply->count; count++)
		(void)snprintf(ids[count], sizeof ids[0], "%.*s",
		               (int)reply->items[count].text.len,
		               reply->items[count].text.data);
	for (size_t i = 0; i < count; i++)
		call(world, "warmq_pause", span_from(ids[i]), SPAN("off"), SPAN(""));
	free(ids);
}

static void
pause_one(struct world *world)
{
	char id[33];

	if (!choose_family(world, id))
		return;
	call(world, "warmq_pause", span_from(id), SPAN("on"), SPAN(""));
	agenda_in(&world->agenda, draw_us(world, 60 * SECOND_US), on_resumed, world, 0);
}

/* ---- when ------------------------------------------------------------------------ */

static void
on_deed(void *context, uint64_t deed)
{
	struct world *world = context;

	if (world->calm || !world->server.up)
		return;
	switch ((enum deed)deed) {
	case UNPARK:
		unpark(world);
		break;
	case STEER:
		steer_one(world);
		break;
	case HOLD_ROUTE:
		flip_route(world);
		break;
	case WARM:
		warm(world);
		break;
	case PAUSE:
		pause_one(world);
		break;
	}
}

static bool
stops_workers(const struct weather *weather)
{
	return weather->steers > 0 || weather->worker_stops > 0;
}

void
deed_start(struct world *world)
{
	const struct weather *weather = &world->weather;
	const uint32_t counts[] = {
		[UNPARK] = weather->unparks,         [STEER] = weather->steers,
		[HOLD_ROUTE] = weather->route_flips, [WARM] = weather->warms,
		[PAUSE] = weather->pauses,
	};

	for (size_t kind = 0; kind < ARRAY_SIZE(counts); kind++) {
		for (uint32_t i = 0; i < counts[kind]; i++)
			agenda_at(&world->agenda, draw_us(world, weather->safety_us),
			          on_deed, world, kind);
	}
	for (uint32_t i = 0; stops_workers(weather) && i < weather->workers_count; i++)
		agenda_in(&world->agenda, 5 * SECOND_US, on_look, world, i);
}

void
deed_stop(struct world *world)
{
	if (world->weather.steers > 0)
		on_resume(world, SWEEPS);
	if (world->weather.pauses > 0)
		on_resumed(world, 2);
	for (uint64_t i = 0; world->weather.route_flips > 0 && i < 4; i++)
		on_held(world, i);
}
