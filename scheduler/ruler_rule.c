#include "scheduler/ruler_rule.h"

#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rebuild.h"

#define REAP_CHUNK      100  /* DATAPATH 20 */
#define STAND_BY_MS_MAX 1000 /* a take-over within 10 s of a death: 6 s lease + this */

/* Whatever is under way belongs to the memory that goes. */
static void
enter(struct ruler *ruler, enum ruler_phase phase)
{
	ruler->phase = phase;
	ruler->connection++;
	ruler->asked = false;
	ruler->reap_sent = false;
	ruler->renewing = false;
	for (size_t i = 0; i < RULER_TIMER_COUNT; i++)
		ruler->timers[i].busy = false;
}

void
ruler_rule_retry(struct ruler *ruler, uint64_t now_ms, uint64_t wait_ms)
{
	if (ruler->owner[0] != '\0')
		ruler->nonce_old = ruler->nonce;
	ruler->owner[0] = '\0';
	ruler->nonce = prng_next(&ruler->prng);
	ruler->ask_ms = now_ms + wait_ms;
	enter(ruler, RULER_ASKING);
}

void
ruler_rule_start(struct ruler *ruler, uint64_t now_ms)
{
	ruler->wants_library = false;
	ruler_rule_retry(ruler, now_ms, 0);
}

void
ruler_rule_stand_by(struct ruler *ruler, uint64_t now_ms, uint64_t wait_ms)
{
	ruler_rule_retry(ruler, now_ms, MIN(wait_ms, STAND_BY_MS_MAX));
	ruler->nonce_old = 0; /* the rule is somebody else's already */
	ruler->phase = RULER_STANDBY;
}

void
ruler_rule_rebuild(struct ruler *ruler, uint64_t now_ms)
{
	VERIFY(ruler->owner[0] != '\0');
	enter(ruler, RULER_REBUILDING);
	ruler->starting = false;
	ruler_rebuild_start(ruler, now_ms);
}

/* ---- calls ----------------------------------------------------------------------- */

static void
ask(struct ruler *ruler, struct call_list *out)
{
	struct span ns = ruler->config->ns;

	if (ruler->nonce_old != 0) {
		protocol_call_rule(out, ruler_tag(ruler, RULER_CALL_YIELD, 0), ns,
		                   ruler->nonce_old, 0);
		ruler->nonce_old = 0;
	}
	protocol_call_rule(out, ruler_tag(ruler, RULER_CALL_RULE, 0), ns, ruler->nonce,
	                   ruler->config->rule_ms);
	ruler->asked = true;
}

static void
reap(struct ruler *ruler, struct call_list *out)
{
	const struct ruler_config *config = ruler->config;

	protocol_call_reap(out, ruler_tag(ruler, RULER_CALL_REAP, 0), config->ns,
	                   ruler_owner(ruler), config->lease_ms, config->beat_ms,
	                   REAP_CHUNK);
	ruler->reap_sent = true;
}

/* While it rules, the clock renews the rule.  To take over a hundred thousand families
 * takes longer than a lease: unless it is renewed meanwhile, two schedulers take it from
 * each other for ever. */
static bool
takes_over(const struct ruler *ruler)
{
	return ruler->phase == RULER_REAPING || ruler->phase == RULER_REBUILDING;
}

static uint64_t
renew_at(const struct ruler *ruler)
{
	return ruler->rule_until_ms - ruler->config->rule_ms + ruler->config->renew_ms;
}

static void
renew(struct ruler *ruler, struct call_list *out)
{
	protocol_call_rule(out, ruler_tag(ruler, RULER_CALL_RULE, 1), ruler->config->ns,
	                   ruler->nonce, ruler->config->rule_ms);
	ruler->renewing = true;
}

static void
yield(struct ruler *ruler, struct call_list *out)
{
	protocol_call_rule(out, ruler_tag(ruler, RULER_CALL_YIELD, 1), ruler->config->ns,
	                   ruler->nonce, 0);
	ruler->gave_up = true;
}

void
ruler_rule_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	if (!ruler_fits(out, 4 * PROTOCOL_CALL_ARGS, 4 * PROTOCOL_CALL_BYTES))
		return;
	if (ruler->stopping) {
		if (!ruler->gave_up && (ruler->phase != RULER_RULING ||
		                        ruler_ledger_leave(ruler, now_ms, out)))
			yield(ruler, out);
		return;
	}
	if ((ruler->phase == RULER_ASKING || ruler->phase == RULER_STANDBY) &&
	    !ruler->asked && ruler->ask_ms <= now_ms)
		ask(ruler, out);
	if (ruler->phase == RULER_REAPING && !ruler->reap_sent)
		reap(ruler, out);
	if (takes_over(ruler) && !ruler->renewing && renew_at(ruler) <= now_ms)
		renew(ruler, out);
}

uint64_t
ruler_rule_deadline(const struct ruler *ruler, uint64_t now_ms)
{
	if (ruler->stopping)
		return ruler->gave_up ? RULER_DEADLINE_NONE : now_ms;
	if ((ruler->phase == RULER_ASKING || ruler->phase == RULER_STANDBY) &&
	    !ruler->asked)
		return ruler->ask_ms;
	if (ruler->phase == RULER_REAPING && !ruler->reap_sent)
		return now_ms;
	if (takes_over(ruler) && !ruler->renewing)
		return renew_at(ruler);
	return RULER_DEADLINE_NONE;
}

/* ---- answers --------------------------------------------------------------------- */

void
ruler_rule_on_yield(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	(void)now_ms;
	(void)reply;
	if (index == 1)
		ruler->phase = RULER_STOPPED;
}

static void
take_rule(struct ruler *ruler, const struct reply *reply)
{
	int64_t took = reply_integer(reply_at(reply, 3), 1);

	ruler_copy(ruler->owner, sizeof(ruler->owner), reply_text(reply_at(reply, 2)));
	ruler->admits = took != 2;
	ruler->starting = true;
	enter(ruler, RULER_REAPING); /* DATAPATH 26: the first act of a new ruler */
	ruler_note(ruler, RULER_INFO, "this process rules now (owner %s)", ruler->owner);
	if (!ruler->admits)
		ruler_note(ruler, RULER_ERROR,
		           "the cursor of the inbox is missing although there are lanes: "
		           "nothing is admitted until it is set. Say: warmq doctor "
		           "--repair cursor");
}

/* Somebody has set the cursor (warmq doctor --repair cursor). */
static void
admit_again(struct ruler *ruler, uint64_t now_ms)
{
	ruler->admits = true;
	ruler_note(ruler, RULER_WARNING,
	           "the cursor of the inbox is there again: admitting goes on");
	ruler_rule_rebuild(ruler, now_ms);
}

void
ruler_rule_on_rule(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                   const struct reply *reply)
{
	enum protocol_word word = protocol_answer_word(reply);
	bool renews = index == 1;
	int64_t took;

	if (word == PROTOCOL_HELD) {
		int64_t wait_ms = reply_integer(reply_at(reply, 2), STAND_BY_MS_MAX);

		if (ruler->phase != RULER_STANDBY)
			ruler_note(ruler, RULER_INFO,
			           "another scheduler rules: standing by");
		ruler_rule_stand_by(ruler, now_ms, (uint64_t)MAX(wait_ms, 50));
		return;
	}
	if (word != PROTOCOL_OK) {
		ruler_rule_retry(ruler, now_ms, STAND_BY_MS_MAX);
		return;
	}
	took = reply_integer(reply_at(reply, 3), 0);
	ruler->rule_until_ms = now_ms + ruler->config->rule_ms;
	if (renews && (took == 0 || (took == 2 && !ruler->admits))) {
		ruler->renewing = false;
		ruler_clock_done(ruler, RULER_TIMER_RENEW,
		                 now_ms + ruler->config->renew_ms);
		if (took == 0 && !ruler->admits)
			admit_again(ruler, now_ms);
		return;
	}
	/* A renewal that had to take it again: the lease had run out meanwhile. */
	take_rule(ruler, reply);
}

void
ruler_rule_on_reap(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                   const struct reply *reply)
{
	int64_t returned = reply_integer(reply_at(reply, 2), 0);
	bool more = reply_integer(reply_at(reply, 3), 0) > 0;

	(void)index;
	if (returned > 0)
		ruler_note(ruler, RULER_WARNING,
		           "%lld jobs of workers that died, or of leases that ran out, "
		           "wait again",
		           (long long)returned);
	if (ruler->phase == RULER_RULING) {
		ruler_clock_done(ruler, RULER_TIMER_REAP,
		                 more ? now_ms : now_ms + ruler->config->tick_ms);
		return;
	}
	ruler->reap_sent = false;
	if (more || ruler->phase != RULER_REAPING)
		return;
	ruler->phase = RULER_REBUILDING;
	ruler_rebuild_start(ruler, now_ms);
}
