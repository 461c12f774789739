#include "tests/sim/small_world.h"

#include "common/codec/protocol.h"
#include "tests/sim/small_call.h"

#include <stdio.h>
#include <string.h>

static const char *const VERBS[SMALL_VERB_COUNT] = {
	[SMALL_CLAIM] = "claims",     [SMALL_SETTLE] = "settles",
	[SMALL_RETRY] = "fails",      [SMALL_SETTLE_CLAIM] = "settles and claims",
	[SMALL_DEFER] = "defers",     [SMALL_FATAL] = "gives up",
	[SMALL_RELEASE] = "releases",
};
static const char *const FATES[SMALL_FATE_COUNT] = {
	[SMALL_HEARD] = "",
	[SMALL_LOST] = ", the answer is lost",
	[SMALL_LATE] = ", the bytes lie in an old socket",
};

/* ---- acts ------------------------------------------------------------------------ */

static void
add(struct small_act *acts, size_t *count, uint8_t kind, size_t who)
{
	acts[(*count)++] = (struct small_act){ .kind = kind, .who = (uint8_t)who };
}

size_t
small_acts(struct small_act *ret_acts)
{
	static const uint8_t OF_WORKERS[] = { SMALL_ATTACH, SMALL_ARRIVE, SMALL_HELLO,
		                              SMALL_DELIVER, SMALL_REAP };
	size_t count = 0;

	for (size_t job = 0; job < SMALL_JOBS; job++) {
		add(ret_acts, &count, SMALL_ADMIT, job);
		add(ret_acts, &count, SMALL_CANCEL, job);
	}
	for (size_t who = 0; who < SMALL_WORKERS; who++) {
		for (size_t i = 0; i < ARRAY_SIZE(OF_WORKERS); i++)
			add(ret_acts, &count, OF_WORKERS[i], who);
		for (uint8_t verb = 0; verb < SMALL_VERB_COUNT; verb++) {
			for (uint8_t fate = 0; fate < SMALL_FATE_COUNT; fate++) {
				add(ret_acts, &count, SMALL_CALL, who);
				ret_acts[count - 1].verb = verb;
				ret_acts[count - 1].fate = fate;
			}
		}
	}
	VERIFY(count <= SMALL_ACTS_MAX);
	return count;
}

/* A worker that has lost an answer has to attach.  A rude one claims into the slot that
 * he does not know, or settles again: that is refused, and changes nothing. */
static bool
may_be_rude(const struct small_worker *worker, struct small_act act)
{
	return !worker->late && act.fate == SMALL_HEARD &&
	       (worker->held ? act.verb == SMALL_SETTLE : act.verb == SMALL_CLAIM);
}

static bool
may_call(const struct small_worker *worker, struct small_act act)
{
	if (worker->gone || (act.fate == SMALL_LATE && worker->late))
		return false;
	if (worker->unsure)
		return may_be_rude(worker, act);
	return worker->held ? act.verb != SMALL_CLAIM : act.verb == SMALL_CLAIM;
}

bool
small_act_is_possible(const struct small_world *world, struct small_act act)
{
	const struct small_worker *worker = &world->workers[act.who];

	switch ((enum small_kind)act.kind) {
	case SMALL_ADMIT:
	case SMALL_CANCEL:
		return true;
	case SMALL_CALL:
		return may_call(worker, act);
	case SMALL_ATTACH:
		return worker->unsure && !worker->gone;
	case SMALL_ARRIVE:
		return worker->late && !worker->unsure;
	case SMALL_HELLO:
		return worker->gone && worker->life < SMALL_LIVES - 1;
	case SMALL_DELIVER:
		return worker->orphan != 0;
	case SMALL_REAP:
		return small_call_lives(world, act.who);
	}
	return false;
}

void
small_act_print(struct small_act act, char *ret_text, size_t size)
{
	static const char *const WORDS[] = {
		[SMALL_ATTACH] = "attaches",   [SMALL_ARRIVE] = "is heard late",
		[SMALL_HELLO] = "begins anew", [SMALL_DELIVER] = "delivers late",
		[SMALL_REAP] = "is reaped",
	};

	if (act.kind == SMALL_ADMIT || act.kind == SMALL_CANCEL)
		(void)snprintf(ret_text, size, "job %u is %s", act.who + 1,
		               act.kind == SMALL_ADMIT ? "admitted" : "cancelled");
	else if (act.kind == SMALL_CALL)
		(void)snprintf(ret_text, size, "worker %u %s%s", act.who + 1,
		               VERBS[act.verb], FATES[act.fate]);
	else
		(void)snprintf(ret_text, size, "worker %u %s", act.who + 1,
		               WORDS[act.kind]);
}

/* ---- what a worker makes of an answer -------------------------------------------- */

static void
adopt(struct small_worker *worker, struct span lease)
{
	worker->held = small_call_leased(lease, &worker->held_q);
}

static void
on_gone(struct small_worker *worker, enum small_verb verb)
{
	bool paid = verb == SMALL_SETTLE || verb == SMALL_SETTLE_CLAIM;

	worker->gone = 1;
	if (worker->held && paid)
		worker->orphan = worker->held;
	worker->held = 0;
}

/* The word at this place, from 0; empty if there is none. */
static struct span
word_at(struct span text, size_t line, size_t place)
{
	struct span word = { NULL, 0 };

	for (size_t i = 0; i <= line; i++)
		if (!protocol_cut(&text, '\n', &word))
			return SPAN("");
	text = word;
	for (size_t i = 0; i <= place; i++)
		if (!protocol_cut(&text, ' ', &word))
			return SPAN("");
	return word;
}

/* Lines: OK now sleep; refused slots; problems of a settle; a run. */
static void
on_claimed(struct small_worker *worker, struct span text)
{
	worker->held = 0;
	if (word_at(text, 1, 1).len > 0)
		adopt(worker, word_at(text, 1, 1));
	else if (word_at(text, 3, 9).len > 0)
		worker->held = small_call_job(word_at(text, 3, 9));
	else if (span_equals(word_at(text, 2, 1), SPAN("TOKEN")))
		adopt(worker, word_at(text, 2, 2));
}

static void
on_answer(struct small_scope *scope, struct small_worker *worker, struct small_act act,
          const struct reply *reply)
{
	const struct reply *first = reply_at(reply, 0);

	if (reply->kind == REPLY_TEXT) {
		worker->held_q = worker->q;
		on_claimed(worker, reply->text);
	} else if (reply_is(first, "GONE")) {
		on_gone(worker, act.verb);
	} else if (reply_is(first, "TOKEN")) {
		adopt(worker, reply_text(reply_at(reply, 1)));
	} else if (!reply_is(first, "OK")) {
		small_scope_blame(scope,
		                  "a call over the newest connection is not heard");
	} else if (act.verb == SMALL_RELEASE && reply_is(reply_at(reply, 3), "TOKEN")) {
		adopt(worker, reply_text(reply_at(reply, 4)));
	} else {
		worker->held = 0;
	}
}

/* ---- acting ---------------------------------------------------------------------- */

static void
call(struct small_scope *scope, struct small_world *world, struct small_act act)
{
	struct small_worker *worker = &world->workers[act.who];
	struct small_word word = { .worker = act.who,
		                   .verb = act.verb,
		                   .life = worker->life,
		                   .c = worker->c,
		                   .job = worker->held,
		                   .slot_q = worker->held_q,
		                   .q = worker->q };

	if (act.fate == SMALL_LATE) {
		worker->late = 1;
		worker->late_verb = act.verb;
		worker->late_life = worker->life;
		worker->late_c = worker->c;
		worker->late_job = worker->held;
		worker->late_slot_q = worker->held_q;
		worker->late_q = worker->q++;
		worker->unsure = 1;
		return;
	}
	const struct reply *reply = small_call_worker(scope, world, word);

	if (act.fate == SMALL_HEARD)
		on_answer(scope, worker, act, reply);
	else
		worker->unsure = 1;
	worker->q++;
}

static void
arrive(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	struct small_worker *worker = &world->workers[who];
	struct small_word word = { .worker = who,
		                   .verb = worker->late_verb,
		                   .life = worker->late_life,
		                   .c = worker->late_c,
		                   .job = worker->late_job,
		                   .slot_q = worker->late_slot_q,
		                   .q = worker->late_q };
	uint64_t before = small_world_hash(world);
	const struct reply *reply = small_call_worker(scope, world, word);

	if (!reply_is(reply_at(reply, 0), "STALE") &&
	    !reply_is(reply_at(reply, 0), "GONE"))
		small_scope_blame(scope, "a late call was heard");
	if (before != small_world_hash(world))
		small_scope_blame(scope, "a late call changed something");
	worker->late = worker->late_verb = worker->late_life = worker->late_c = 0;
	worker->late_job = worker->late_slot_q = worker->late_q = 0;
}

static void
attach(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	struct small_worker *worker = &world->workers[who];
	const struct reply *reply = small_call_attach(scope, world, who);

	worker->unsure = 0;
	if (reply_is(reply_at(reply, 0), "GONE")) {
		on_gone(worker, SMALL_SETTLE);
		return;
	}
	worker->c = (uint8_t)reply_integer(reply_at(reply, 2), 0);
	worker->held = 0;
	if (reply->count > 3)
		adopt(worker, reply_text(reply_at(reply_at(reply, 3), 1)));
}

static void
hello(struct small_scope *scope, struct small_world *world, uint8_t who)
{
	struct small_worker *worker = &world->workers[who];

	worker->life++;
	worker->gone = worker->unsure = 0;
	worker->c = 1;
	small_call_hello(scope, world, who);
}

void
small_world_act(struct small_scope *scope, struct small_world *world,
                struct small_act act)
{
	switch ((enum small_kind)act.kind) {
	case SMALL_ADMIT:
		small_call_admit(scope, world, act.who);
		break;
	case SMALL_CANCEL:
		small_call_cancel(scope, world, act.who);
		break;
	case SMALL_CALL:
		call(scope, world, act);
		break;
	case SMALL_ATTACH:
		attach(scope, world, act.who);
		break;
	case SMALL_ARRIVE:
		arrive(scope, world, act.who);
		break;
	case SMALL_HELLO:
		hello(scope, world, act.who);
		break;
	case SMALL_DELIVER:
		small_call_late(scope, world, world->workers[act.who].orphan);
		world->workers[act.who].orphan = 0;
		break;
	case SMALL_REAP:
		small_call_reap(scope, world, act.who);
		break;
	}
}

/* A worker nobody hears of again; then one that hears everything. */
void
small_world_drain(struct small_scope *scope, struct small_world *world)
{
	struct small_worker *last = &world->workers[0];

	for (uint8_t job = 0; job < SMALL_JOBS; job++)
		small_call_admit(scope, world, job);
	for (uint8_t who = 0; who < SMALL_WORKERS; who++)
		if (small_call_lives(world, who))
			small_call_reap(scope, world, who);
	small_call_promote(scope, world);
	small_call_hold_off(scope, world);
	*last = (struct small_worker){ .life = SMALL_LIVES, .c = 1, .q = 1 };
	small_call_hello(scope, world, 0);
	for (int turn = 0; turn < 4 * SMALL_JOBS && !small_call_all_ended(world);
	     turn++) {
		struct small_act act = { .kind = SMALL_CALL,
			                 .verb = last->held ? SMALL_SETTLE_CLAIM
			                                    : SMALL_CLAIM };

		call(scope, world, act);
	}
	if (!small_call_all_ended(world))
		small_scope_blame(scope, "a job is stuck");
}
