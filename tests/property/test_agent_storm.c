/* test_agent_storm.c - whatever Redis answers and runs report, the agent stays whole.
 *
 * Answers are drawn from all shapes the protocol has, with true and false slots and
 * numbers; connections break at any moment; runs end in every way.  It is not a model of
 * Redis (the simulator has one): it may contradict itself.  What must hold anyway: no
 * claim of the agent's own breaks, each result is dropped exactly once and never used
 * after that, calls are bounded, nothing spins, and a stop always comes to an end. */
#include "tests/lib/agent_rig.h"
#include "tests/lib/suite.h"

#include "common/prng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEDS       300
#define EVENTS      400
#define SLOTS       5
#define HANDLES_MAX 20000

enum handle_state {
	UNUSED,
	HELD,
	SPOOLED,
	DROPPED,
};

struct running {
	bool is_running;
	bool is_aborted;
	uint64_t q;
	char id[PROTOCOL_TICKET_SIZE + 1];
};

struct storm {
	struct rig rig;
	struct prng prng;
	struct running running[SLOTS];
	enum handle_state handles[HANDLES_MAX];
	uint64_t handle_next;
	char names[1024][16]; /* of unanswered calls, beside the rig's tags */
	bool is_connected;
	bool is_finished, is_dismissed;
	char answer[8192];
};

static struct storm storm;

static uint64_t
draw(uint64_t bound)
{
	return prng_below(&storm.prng, bound);
}

static void
obey(const struct agent_command *command)
{
	struct running *running = &storm.running[command->slot];

	switch (command->kind) {
	case AGENT_START:
		ck_assert(!running->is_running);
		*running = (struct running){ .is_running = true, .q = command->q };
		return;
	case AGENT_ABORT:
		ck_assert(running->is_running);
		ck_assert(running->q == command->q);
		ck_assert(!running->is_aborted);
		running->is_aborted = true;
		return;
	case AGENT_SPOOL:
		ck_assert(storm.handles[command->handle] == HELD);
		storm.handles[command->handle] = draw(4) ? SPOOLED : HELD;
		agent_spooled(storm.rig.agent, storm.rig.now_ms, command->text,
		              storm.handles[command->handle] == SPOOLED);
		return;
	case AGENT_DROP:
		ck_assert(storm.handles[command->handle] == HELD ||
		          storm.handles[command->handle] == SPOOLED);
		storm.handles[command->handle] = DROPPED;
		return;
	case AGENT_CLOSE:
		storm.is_connected = false;
		storm.rig.tags_count = 0;
		return;
	case AGENT_DISMISSED:
		ck_assert(!storm.is_dismissed); /* once */
		storm.is_dismissed = true;
		return;
	case AGENT_FINISHED:
		ck_assert(!storm.is_finished);
		storm.is_finished = true;
		return;
	case AGENT_SESSION:
	case AGENT_NOTE:
		return;
	}
}

/* A result in a call is "h<handle>"; it must still be held. */
static void
check_call(const struct call *call)
{
	for (uint32_t i = 0; i < call->arg_count; i++) {
		struct span word = call_arg(&storm.rig.calls, call, i);
		char text[24];
		uint64_t handle;

		if (word.len < 2 || word.len > 20 || word.data[0] != 'h' ||
		    word.data[1] < '0' || word.data[1] > '9')
			continue;
		memcpy(text, word.data + 1, word.len - 1);
		text[word.len - 1] = '\0';
		handle = strtoull(text, NULL, 10);
		ck_assert(storm.handles[handle] == HELD ||
		          storm.handles[handle] == SPOOLED);
	}
}

static void
note_name(const struct call *call)
{
	struct span name = call_arg(&storm.rig.calls, call, 1);
	char *place = storm.names[(storm.rig.tags_first + storm.rig.tags_count) % 1024];

	(void)snprintf(place, sizeof storm.names[0], "%.*s", (int)name.len - 6,
	               name.data + 6);
}

static void
step_all(void)
{
	struct rig *rig = &storm.rig;
	int turns = 0;

	do {
		agent_step(rig->agent, rig->now_ms, &rig->output);
		for (uint32_t i = 0; i < rig->output.commands_count; i++)
			obey(&rig->commands[i]);
		for (uint32_t i = 0; i < rig->calls.call_count; i++) {
			ck_assert(storm.is_connected);
			check_call(&rig->calls.calls[i]);
			note_name(&rig->calls.calls[i]);
			rig->tags[(rig->tags_first + rig->tags_count++) % 1024] =
				rig->calls.calls[i].tag;
		}
		agent_audit(rig->agent);
		ck_assert_uint_le(rig->tags_count, AGENT_CALLS_MAX);
		ck_assert_int_lt(turns++, 100);
	} while (agent_deadline(rig->agent) <= rig->now_ms);
}

static void PRINTF(1, 2) write_more(const char *format, ...)
{
	size_t len = strlen(storm.answer);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(storm.answer + len, sizeof storm.answer - len, format, args);
	va_end(args);
}

static uint64_t
some_q(uint32_t slot)
{
	return draw(4) == 0 ? 1 + draw(200) : storm.running[slot % SLOTS].q;
}

static void
write_runs(void)
{
	static const char roles[] = "plchnt";

	for (uint64_t runs = draw(3); runs > 0; runs--) {
		char role = roles[draw(6)];

		write_more("\n%s %s %c 1 - 0 %d %d 0", RIG_LANE, RIG_FAMILY, role,
		           (int)draw(2), (int)(draw(2) * draw(3000)));
		for (uint64_t jobs = 1 + draw(3); jobs > 0; jobs--)
			write_more(role == 't' ? " w:" RIG_LANE ":%u" : " 7-%u",
			           (unsigned)draw(50));
	}
}

static void
write_problems(const char *before, const char *behind)
{
	for (uint64_t i = draw(4) == 0 ? draw(3) : 0; i > 0; i--)
		write_more("%s%u %s %s%s", before, (unsigned)draw(SLOTS + 1),
		           draw(2) ? "TOKEN" : "ENDED", draw(2) ? "-" : "9|x", behind);
}

/* Mostly the shape that belongs to the call, sometimes another one. */
static uint64_t
draw_shape(void)
{
	static const struct {
		const char *name;
		uint64_t shape;
	} shapes[] = { { "hello", 3 },   { "attach", 3 },      { "begin", 4 },
		       { "release", 4 }, { "settle_late", 4 }, { "bye", 4 },
		       { "fail", 4 },    { "beat", 6 },        { "claim", 7 },
		       { "settle", 8 } };
	const char *name = storm.names[storm.rig.tags_first];

	for (size_t i = 0; draw(30) > 0 && i < ARRAY_SIZE(shapes); i++) {
		if (strcmp(name, shapes[i].name) == 0)
			return shapes[i].shape;
	}
	return draw(9);
}

static void
write_answer(void)
{
	storm.answer[0] = '\0';
	switch (draw_shape()) {
	case 0:
		write_more("[GONE]");
		return;
	case 1:
		write_more("[%s]", draw(2) ? "STALE" : "REATTACH");
		return;
	case 2:
		write_more(draw(2) ? "!ERR Function not found" : "!LOADING wait");
		return;
	case 3: /* attach */
		write_more("[OK 501000 2");
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			if (storm.running[slot].is_running ? draw(5) : !draw(8))
				write_more(" [%u %llu|%s|%s|7-1|p|0|0,0|0|1|n]", slot,
				           (unsigned long long)some_q(slot), RIG_FAMILY,
				           RIG_LANE);
		}
		write_more("]");
		return;
	case 4: /* begin, release, late, beat, fail */
		write_more("[OK 501000");
		write_problems(" ", "");
		write_more(draw(2) ? " OK FENCED OK OK]" : " back]");
		return;
	case 5:
		write_more("[TOKEN %s]", draw(2) ? "-" : "9|x");
		return;
	case 6:
		write_more("[OK 501000 %u %u %u]",
		           draw(8) ? 1 : (unsigned)draw(8), /* hold, quiet, stop */
		           (unsigned)draw(SLOTS + 1), (unsigned)draw(SLOTS + 1));
		return;
	case 7: /* claim */
		write_more("=OK 501000 %u\n", (unsigned)draw(2) * 500);
		if (draw(4) == 0)
			write_more("%u 9|x", (unsigned)draw(SLOTS + 1));
		write_more("\n");
		write_runs();
		return;
	default: /* settle */
		write_more("=OK 501000 %u\n\n", (unsigned)draw(2) * 500);
		write_problems("", " ");
		write_runs();
		return;
	}
}

static const struct span upstreams[] = { { "up", 2 }, { "down", 4 }, { "off", 3 } };

static void
end_run(uint32_t slot)
{
	static const enum agent_end ends[] = { AGENT_DONE,   AGENT_DONE,
		                               AGENT_RETRY,  AGENT_DEFER,
		                               AGENT_FATAL,  AGENT_MISSING,
		                               AGENT_UNSENT, AGENT_UNFETCHED };
	struct running *running = &storm.running[slot];
	struct agent_outcome outcome = {
		.end = ends[draw(ARRAY_SIZE(ends))],
		.attempts_max = 3,
		.usage = protocol_usage_none(),
	};
	static char texts[HANDLES_MAX][12];

	if (running->is_aborted && draw(4) > 0)
		outcome.end = AGENT_STOPPED;
	if (outcome.end == AGENT_UNSENT && draw(4) > 0)
		outcome.missed = upstreams[1 + draw(ARRAY_SIZE(upstreams) - 1)];
	if (outcome.end != AGENT_UNFETCHED && outcome.end != AGENT_STOPPED) {
		uint64_t handle = ++storm.handle_next;

		ck_assert_uint_lt(handle, HANDLES_MAX);
		storm.handles[handle] = HELD;
		(void)snprintf(texts[handle], sizeof texts[handle], "h%u",
		               (unsigned)handle);
		outcome.handle = handle;
		outcome.result = span_from(texts[handle]);
	}
	running->is_running = false;
	agent_ended(storm.rig.agent, storm.rig.now_ms, slot, running->q, &outcome);
}

static void
happen(void)
{
	struct protocol_usage usage = protocol_usage_none();
	struct rig *rig = &storm.rig;
	uint32_t slot = (uint32_t)draw(SLOTS);
	struct running *running = &storm.running[slot];

	switch (draw(14)) {
	case 0:
		if (storm.is_connected && draw(5) == 0) {
			storm.is_connected = false;
			rig->tags_count = 0;
			agent_lost(rig->agent, rig->now_ms);
		}
		return;
	case 1:
		if (!storm.is_connected) {
			storm.is_connected = true;
			agent_connected(rig->agent, rig->now_ms);
		}
		return;
	case 2:
		agent_wake(rig->agent, rig->now_ms);
		return;
	case 3:
		if (running->is_running)
			agent_sent(rig->agent, rig->now_ms, slot, running->q,
			           upstreams[draw(ARRAY_SIZE(upstreams))],
			           (uint32_t)draw(4));
		return;
	case 4:
		if (running->is_running)
			agent_began(rig->agent, rig->now_ms, slot, running->q, &usage);
		return;
	case 5:
	case 6:
	case 7:
		if (running->is_running)
			end_run(slot);
		return;
	default:
		if (rig->tags_count > 0) {
			write_answer();
			rig_answer_only(rig, storm.answer);
		}
		return;
	}
}

/* Everything runs to its end, and Redis is there and says yes or nothing. */
static void
come_to_an_end(void)
{
	struct rig *rig = &storm.rig;

	agent_stop(rig->agent, rig->now_ms, draw(2) * 3000);
	for (int i = 0; i < 100 && !storm.is_finished; i++) {
		step_all();
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			if (storm.running[slot].is_running)
				end_run(slot);
		}
		rig->now_ms += 500;
	}
	ck_assert(storm.is_finished);
}

static void
check_handles(void)
{
	uint64_t held = 0;

	for (uint64_t i = 1; i <= storm.handle_next; i++)
		held += storm.handles[i] != DROPPED;
	/* What was settled may be kept, what was not must be on disk or at hand. */
	ck_assert_uint_le(held, storm.rig.config.kept_max + 4 * SLOTS + 3 * AGENT_BATCH);
}

/* A storm in which nothing happens proves nothing. */
static struct agent_stats total;

static void
add_stats(void)
{
	struct agent_stats stats;

	agent_stats(storm.rig.agent, &stats);
	total.claimed += stats.claimed;
	total.settled += stats.settled;
	total.failed += stats.failed;
	total.released += stats.released;
	total.late_accepted += stats.late_accepted;
	total.late_refused += stats.late_refused;
	total.fenced += stats.fenced;
	total.orphans += stats.orphans;
	total.resent += stats.resent;
	total.unknown += stats.unknown;
	total.timeouts += stats.timeouts;
}

START_TEST(agent_stays_whole_in_any_storm)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct agent_config config = rig_config(SLOTS);

		memset(&storm, 0, sizeof storm);
		config.seed = seed;
		config.kept_max = (uint32_t)(seed % 7);
		prng_init(&storm.prng, seed);
		rig_init(&storm.rig, &config);
		for (int i = 0; i < EVENTS; i++) {
			for (uint64_t n = draw(4); n > 0; n--)
				happen();
			step_all();
			storm.rig.now_ms += draw(3) * draw(700);
		}
		come_to_an_end();
		check_handles();
		add_stats();
		rig_fini(&storm.rig);
	}
	ck_assert_uint_gt(total.claimed, 10000);
	ck_assert_uint_gt(total.settled, 300);
	ck_assert_uint_gt(total.failed, 500);
	ck_assert_uint_gt(total.released, 1000);
	ck_assert_uint_gt(total.late_accepted, 100);
	ck_assert_uint_gt(total.late_refused, 100);
	ck_assert_uint_gt(total.fenced, 10);
	ck_assert_uint_gt(total.orphans, 100);
	ck_assert_uint_gt(total.resent, 10);
	ck_assert_uint_gt(total.unknown, 100);
	ck_assert_uint_gt(total.timeouts, 10);
}
END_TEST

SUITE_MAIN("agent_storm", agent_stays_whole_in_any_storm)
