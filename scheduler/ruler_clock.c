#include "scheduler/ruler_clock.h"

#include "common/info.h"
#include "common/text.h"
#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_events.h"
#include "scheduler/ruler_grant.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_line.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rebuild.h"
#include "scheduler/ruler_rule.h"
#include "scheduler/ruler_session.h"
#include "scheduler/ruler_unheld.h"
#include "scheduler/ruler_view.h"

#define PROMOTE_MAX      500 /* DATAPATH 36 */
#define EXPIRE_MAX       500
#define REAP_CHUNK       100
#define HOLD_MS          1000
#define WORKERS_MS       5000
#define INFO_MS          5000
#define META_FIRST       4 /* what ask_hold asks for before the counters */
#define TRIM_MS          1000
#define LEDGER_MS        5000
#define AUDIT_START      "1:0"
#define AUDIT_REST_MS    20     /* between two pieces: others want Redis as well */
#define AUDIT_SOON_MS    2000   /* between two passes while functions fail */
#define BOOKS_MS         600000 /* DATAPATH 13: at most each 10 minutes */
#define BOOKS_AGAIN_MS   60000  /* a difference has to be seen twice */
#define BOOKS_FAMILIES   20000  /* one LLEN each; above that nobody counts */
#define PRESSURE_PERCENT 90
#define PRESSURE_SECONDS 30
#define STATUS_SECONDS   15 /* a status older than that is nobody's */
#define STATUS_FAMILIES  20 /* and only those with work: it goes into the AOF */

void
ruler_clock_start(struct ruler *ruler, uint64_t now_ms)
{
	for (size_t i = 0; i < RULER_TIMER_COUNT; i++)
		ruler->timers[i] = (struct ruler_timer_state){ now_ms, false };
	ruler->timers[RULER_TIMER_RENEW].due_ms = MIN(
		now_ms + ruler->config->renew_ms,
		ruler->rule_until_ms - ruler->config->rule_ms + ruler->config->renew_ms);
	ruler->timers[RULER_TIMER_REAP].due_ms = now_ms + ruler->config->tick_ms;
	ruler->timers[RULER_TIMER_AUDIT].due_ms = now_ms + ruler->config->audit_ms;
	ruler->timers[RULER_TIMER_HOLD].due_ms = now_ms + HOLD_MS;
	ruler->timers[RULER_TIMER_WORKERS].due_ms = now_ms + WORKERS_MS;
	ruler->timers[RULER_TIMER_TRIM].due_ms = now_ms + TRIM_MS;
	ruler->timers[RULER_TIMER_LEDGER].due_ms = now_ms + LEDGER_MS;
	ruler->timers[RULER_TIMER_BOOKS].due_ms = now_ms + BOOKS_MS;
	ruler->books_difference = 0;
	if (ruler->config->status_ms == 0)
		ruler->timers[RULER_TIMER_STATUS].due_ms = RULER_DEADLINE_NONE;
}

void
ruler_clock_done(struct ruler *ruler, enum ruler_timer timer, uint64_t due_ms)
{
	ruler->timers[timer].busy = false;
	ruler->timers[timer].due_ms = due_ms;
}

void
ruler_clock_hurry(struct ruler *ruler, enum ruler_timer timer, uint64_t now_ms)
{
	ruler->timers[timer].due_ms = MIN(ruler->timers[timer].due_ms, now_ms);
}

/* DECISIONS 22 */
void
ruler_clock_events_done(struct ruler *ruler, uint64_t now_ms, bool more)
{
	uint64_t wait_ms =
		core_busy(ruler->core) ? ruler->config->busy_ms : ruler->config->idle_ms;

	ruler_clock_done(ruler, RULER_TIMER_EVENTS, now_ms + (more ? 0 : wait_ms));
}

/* ---- calls ----------------------------------------------------------------------- */

static const struct {
	const char *field;
	size_t offset; /* in struct ruler_sizes */
} meta_counters[] = {
	{ "retried", offsetof(struct ruler_sizes, retried) },
	{ "deferred", offsetof(struct ruler_sizes, deferred) },
	{ "unsent", offsetof(struct ruler_sizes, unsent) },
	{ "recovered", offsetof(struct ruler_sizes, recovered) },
	{ "late_accepted", offsetof(struct ruler_sizes, late_accepted) },
	{ "late_refused", offsetof(struct ruler_sizes, late_refused) },
	{ "replies_trimmed", offsetof(struct ruler_sizes, replies_trimmed) },
	{ "dead_trimmed", offsetof(struct ruler_sizes, dead_trimmed) },
	{ "slims", offsetof(struct ruler_sizes, slims) },
};

static const struct {
	const char *command, *key;
	size_t offset;
} key_sizes[] = {
	{ "ZCARD", "later", offsetof(struct ruler_sizes, later) },
	{ "ZCARD", "dead", offsetof(struct ruler_sizes, dead) },
	{ "XLEN", "jobs", offsetof(struct ruler_sizes, entries) },
};

static void
set_size(struct ruler *ruler, size_t offset, int64_t value)
{
	char *at = (char *)&ruler->sizes + offset;

	*(uint64_t *)(void *)at = (uint64_t)MAX(value, 0);
}

static void
ask_hold(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_HOLD, 0));
	call_text(out, "HMGET");
	protocol_call_key(out, ruler->config->ns, "meta");
	call_text(out, "hold");
	call_text(out, "lane_drift");
	call_text(out, "function_errors");
	call_text(out, "delivery_errors");
	for (size_t i = 0; i < ARRAY_SIZE(meta_counters); i++)
		call_text(out, meta_counters[i].field);
	call_text(out, "cursor");
	ruler->sizes.asked_ms = now_ms;
	ruler_unheld_ask(ruler, out);
}

static void
ask_sizes(struct ruler *ruler, struct call_list *out)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(key_sizes); i++) {
		call_begin(out, ruler_tag(ruler, RULER_CALL_SIZE, i));
		call_text(out, key_sizes[i].command);
		protocol_call_key(out, ruler->config->ns, key_sizes[i].key);
	}
}

static void
ask_info(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_INFO, 0));
	call_text(out, "INFO");
	call_text(out, "memory");
}

static void
write_status(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	struct buffer *text = &ruler->status;

	buffer_clear(text);
	ruler_view_status(ruler, now_ms, STATUS_FAMILIES, true, text);
	if (buffer_error(text) < 0 || !ruler_fits(out, 8, (uint32_t)text->len))
		return;
	call_begin(out, ruler_tag(ruler, RULER_CALL_NOTE, RULER_TIMER_STATUS));
	call_text(out, "SET");
	protocol_call_key(out, ruler->config->ns, "status");
	call_word(out, buffer_span(text));
	call_text(out, "EX");
	call_integer(out, STATUS_SECONDS);
}

static void
write_pressure(struct ruler *ruler, uint64_t percent, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_NOTE, 0));
	call_text(out, "SET");
	protocol_call_key(out, ruler->config->ns, "pressure");
	call_integer(out, (int64_t)percent);
	call_text(out, "EX");
	call_integer(out, PRESSURE_SECONDS);
}

/* How full Redis is, and of what; producers look at `pressure`. */
static void
ask_room(struct ruler *ruler, struct call_list *out)
{
	if (ruler->health.memory_pressure)
		write_pressure(ruler, ruler->memory_percent, out);
	ask_sizes(ruler, out);
	ask_info(ruler, out);
}

static bool
ask_events(struct ruler *ruler, struct call_list *out)
{
	if (!ruler_events_are_told(ruler))
		return false;
	ruler->admitted = false;
	ruler_events_ask(ruler, out);
	return true;
}

static void
trim(struct ruler *ruler, struct call_list *out)
{
	if (ruler_grant_has_cursor(ruler))
		ruler_grant_trim(ruler, out);
}

static bool
ask_books(struct ruler *ruler, struct call_list *out)
{
	if (ruler->known.family_shelf.count > BOOKS_FAMILIES)
		return false;
	protocol_call_count(out, ruler_tag(ruler, RULER_CALL_BOOKS, 0),
	                    ruler->config->ns);
	return true;
}

void
ruler_clock_audit_anew(struct ruler *ruler)
{
	ruler->audit_anew = true;
}

void
ruler_clock_audit(struct ruler *ruler, struct call_list *out)
{
	if (ruler->audit_anew)
		ruler_copy(ruler->audit_cursor, sizeof(ruler->audit_cursor),
		           SPAN(AUDIT_START));
	ruler->audit_anew = false;
	if (span_equals(span_from(ruler->audit_cursor), SPAN(AUDIT_START)))
		ruler->audit_soon = false;
	protocol_call_audit(out, ruler_tag(ruler, RULER_CALL_AUDIT, 0), ruler->config->ns,
	                    ruler_owner(ruler), ruler->audit_cursor);
}

/* Answers whether its call went out; otherwise it is due again at `again_ms`. */
static bool
fire(struct ruler *ruler, enum ruler_timer timer, uint64_t now_ms, struct call_list *out,
     uint64_t *again_ms)
{
	const struct ruler_config *config = ruler->config;
	struct span ns = config->ns, owner = ruler_owner(ruler);

	switch (timer) {
	case RULER_TIMER_RENEW:
		protocol_call_rule(out, ruler_tag(ruler, RULER_CALL_RULE, 1), ns,
		                   ruler->nonce, config->rule_ms);
		return true;
	case RULER_TIMER_REAP:
		protocol_call_reap(out, ruler_tag(ruler, RULER_CALL_REAP, 0), ns, owner,
		                   config->lease_ms, config->beat_ms, REAP_CHUNK);
		return true;
	case RULER_TIMER_PROMOTE:
		protocol_call_promote(out, ruler_tag(ruler, RULER_CALL_PROMOTE, 0), ns,
		                      owner, PROMOTE_MAX);
		return true;
	case RULER_TIMER_EXPIRE:
		protocol_call_expire(out, ruler_tag(ruler, RULER_CALL_EXPIRE, 0), ns,
		                     owner, EXPIRE_MAX);
		return true;
	case RULER_TIMER_AUDIT:
		ruler_clock_audit(ruler, out);
		return true;
	case RULER_TIMER_EVENTS:
		*again_ms = now_ms + 1;
		return ask_events(ruler, out);
	case RULER_TIMER_HOLD:
		ask_hold(ruler, now_ms, out);
		return true;
	case RULER_TIMER_WORKERS:
		ruler_session_look(ruler, out);
		return true;
	case RULER_TIMER_INFO:
		ask_room(ruler, out);
		return true;
	case RULER_TIMER_STATUS:
		*again_ms = now_ms + config->status_ms;
		write_status(ruler, now_ms, out);
		return false;
	case RULER_TIMER_TRIM:
		*again_ms = now_ms + TRIM_MS;
		trim(ruler, out);
		return false;
	case RULER_TIMER_LEDGER:
		*again_ms = now_ms + LEDGER_MS;
		return ruler_ledger_step(ruler, now_ms, out);
	case RULER_TIMER_BOOKS:
		*again_ms = now_ms + BOOKS_MS;
		return ask_books(ruler, out);
	case RULER_TIMER_COUNT:
		break;
	}
	VERIFY(!"a timer");
	return false;
}

void
ruler_clock_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	if (ruler->phase != RULER_RULING)
		return;
	if (ruler->starting && ruler_fits(out, 8, 256)) {
		ruler->starting = false;
		ruler_admit_announce(ruler, out);
	}
	/* It may have been idle at the last look; and a worker that came before a burst
	 * has to be known to it. */
	if (core_busy(ruler->core) ||
	    (ruler->admitted && core_lacks_workers(ruler->core)))
		ruler_clock_hurry(ruler, RULER_TIMER_EVENTS,
		                  now_ms + ruler->config->busy_ms);
	for (size_t i = 0; i < RULER_TIMER_COUNT; i++) {
		struct ruler_timer_state *timer = &ruler->timers[i];
		uint64_t again_ms = now_ms;

		if (timer->busy || timer->due_ms > now_ms || !ruler_fits(out, 32, 1024))
			continue;
		timer->busy = fire(ruler, (enum ruler_timer)i, now_ms, out, &again_ms);
		if (!timer->busy)
			timer->due_ms = again_ms;
	}
	(void)ruler_session_fetch(ruler, out);
}

uint64_t
ruler_clock_deadline(const struct ruler *ruler)
{
	uint64_t deadline = RULER_DEADLINE_NONE;

	if (ruler->phase != RULER_RULING)
		return deadline;
	for (size_t i = 0; i < RULER_TIMER_COUNT; i++)
		if (!ruler->timers[i].busy)
			deadline = MIN(deadline, ruler->timers[i].due_ms);
	return deadline;
}

/* ---- answers --------------------------------------------------------------------- */

static void
report_correction(struct ruler *ruler, const struct reply *item)
{
	char key[200], was[80], is[80];

	(void)text_escape(reply_text(reply_at(item, 1)), key, sizeof(key));
	(void)text_escape(reply_text(reply_at(item, 2)), was, sizeof(was));
	(void)text_escape(reply_text(reply_at(item, 3)), is, sizeof(is));
	ruler->health.drift++;
	ruler_note(ruler, RULER_ERROR,
	           "the audit corrected %.*s of %s: it was %s, is %s. Please report it, "
	           "if nobody wrote keys by hand",
	           (int)MIN(reply_text(reply_at(item, 0)).len, 60),
	           reply_text(reply_at(item, 0)).data, key, was, is);
}

void
ruler_clock_on_audit(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                     const struct reply *reply)
{
	struct span cursor = reply_text(reply_at(reply, 2));
	bool is_over = cursor.len == 0, is_inbox_new = false;
	uint64_t wait_ms = AUDIT_REST_MS;

	(void)index;
	for (size_t i = 3; i < reply->count; i++) {
		report_correction(ruler, &reply->items[i]);
		is_inbox_new |= span_equals(reply_text(reply_at(&reply->items[i], 0)),
		                            SPAN("cursor"));
	}
	ruler_copy(ruler->audit_cursor, sizeof(ruler->audit_cursor),
	           is_over ? SPAN(AUDIT_START) : cursor);
	if (is_over && !ruler->audit_anew)
		wait_ms = ruler->audit_soon ? AUDIT_SOON_MS : ruler->config->audit_ms;
	ruler_clock_done(ruler, RULER_TIMER_AUDIT, now_ms + wait_ms);
	if (is_inbox_new) /* it is read from a cursor that was read before */
		ruler_rule_rebuild(ruler, now_ms);
	else if (ruler->phase == RULER_REBUILDING)
		ruler_rebuild_audited(ruler, is_over);
}

static void
go_on(struct ruler *ruler, enum ruler_timer timer, uint64_t now_ms,
      const struct reply *reply, int64_t max)
{
	bool more = reply_integer(reply_at(reply, 2), 0) >= max;

	ruler_clock_done(ruler, timer, more ? now_ms : now_ms + ruler->config->tick_ms);
}

void
ruler_clock_on_promote(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	int64_t due_ms = reply_integer(reply_at(reply, 3), 0);
	uint64_t *next_ms = &ruler->timers[RULER_TIMER_PROMOTE].due_ms;

	(void)index;
	go_on(ruler, RULER_TIMER_PROMOTE, now_ms, reply, PROMOTE_MAX);
	if (due_ms > 0 && (uint64_t)due_ms < *next_ms)
		*next_ms = MAX((uint64_t)due_ms, now_ms);
}

void
ruler_clock_on_expire(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                      const struct reply *reply)
{
	(void)index;
	go_on(ruler, RULER_TIMER_EXPIRE, now_ms, reply, EXPIRE_MAX);
}

/* What made a function fail may have been put right by hand, and with it what is derived
 * may be gone: a key of a wrong type is deleted.  Only a pass that begins behind the last
 * failure has seen that. */
static void
audit_soon(struct ruler *ruler, uint64_t now_ms)
{
	ruler->audit_soon = true;
	ruler_clock_hurry(ruler, RULER_TIMER_AUDIT, now_ms + AUDIT_SOON_MS);
}

static void
count_errors(struct ruler *ruler, const struct reply *reply, size_t i, uint64_t *last,
             const char *what)
{
	uint64_t now = (uint64_t)MAX(reply_integer(reply_at(reply, i), 0), 0);

	if (now > *last)
		ruler_note(ruler, RULER_WARNING, "%s: %llu so far", what,
		           (unsigned long long)now);
	*last = now;
}

void
ruler_clock_on_hold(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	uint64_t drift = ruler->lane_drift, errors = ruler->function_errors;

	(void)index;
	ruler_clock_done(ruler, RULER_TIMER_HOLD, now_ms + HOLD_MS);
	ruler_line_set_hold(ruler, now_ms, !reply_is(reply_at(reply, 0), "off"),
	                    SPAN(""));
	count_errors(ruler, reply, 1, &ruler->lane_drift,
	             "numbers were clamped; an audit looks at them");
	count_errors(ruler, reply, 2, &ruler->function_errors,
	             "errors inside the functions of Redis; an audit looks at the books. "
	             "warmq doctor finds keys of a wrong type; please report others");
	count_errors(ruler, reply, 3, &ruler->delivery_errors,
	             "results could not be delivered; they are kept by id");
	for (size_t i = 0; i < ARRAY_SIZE(meta_counters); i++)
		set_size(ruler, meta_counters[i].offset,
		         reply_integer(reply_at(reply, META_FIRST + i), 0));
	ruler->sizes.known = true;
	ruler->sizes.round_trip_ms = now_ms - MIN(ruler->sizes.asked_ms, now_ms);
	if (ruler->lane_drift > drift)
		ruler_clock_hurry(ruler, RULER_TIMER_AUDIT, now_ms);
	if (ruler->function_errors > errors)
		audit_soon(ruler, now_ms);
	if (ruler_admit_is_elsewhere(
		    ruler, reply_text(reply_at(
				   reply, META_FIRST + ARRAY_SIZE(meta_counters))))) {
		ruler_note(
			ruler, RULER_WARNING,
			"somebody has moved the cursor of the inbox: reading all of it "
			"again");
		ruler_rule_rebuild(ruler, now_ms);
	}
}

void
ruler_clock_on_size(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	(void)now_ms;
	if (index < ARRAY_SIZE(key_sizes))
		set_size(ruler, key_sizes[index].offset, reply_integer(reply, 0));
}

/* A Redis that evicts is refused at the start (greet.h); this one was changed since. */
static void
look_at_policy(struct ruler *ruler, struct span policy)
{
	bool evicts = policy.len > 0 && !span_equals(policy, SPAN("noeviction"));

	if (evicts && !ruler->health.evicts)
		ruler_note(ruler, RULER_ERROR,
		           "Redis throws jobs away when it is full (maxmemory-policy "
		           "%.*s). Say: redis-cli CONFIG SET maxmemory-policy noeviction",
		           (int)MIN(policy.len, 40), policy.data);
	else if (!evicts && ruler->health.evicts)
		ruler_note(ruler, RULER_INFO,
		           "Redis throws nothing away any more (maxmemory-policy "
		           "noeviction)");
	ruler->health.evicts = evicts;
}

void
ruler_clock_on_info(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	struct span info = reply_text(reply);
	uint64_t used = info_number(info, "used_memory");
	uint64_t limit = info_number(info, "maxmemory");
	uint64_t percent = limit > 0 ? used / MAX(limit / 100, 1) : 0;
	bool pressure = percent >= PRESSURE_PERCENT;

	(void)index;
	ruler_clock_done(ruler, RULER_TIMER_INFO, now_ms + INFO_MS);
	if (pressure && !ruler->health.memory_pressure) {
		ruler_clock_hurry(ruler, RULER_TIMER_INFO, now_ms); /* to say so */
		ruler_note(ruler, RULER_WARNING,
		           "Redis uses %llu %% of its maxmemory: producers are asked to "
		           "wait. Raise maxmemory or let the queue drain",
		           (unsigned long long)percent);
	}
	ruler->health.memory_pressure = pressure;
	ruler->memory_percent = percent;
	look_at_policy(ruler, info_find(info, "maxmemory_policy"));
}

/* drained stream slims ready back now_list leases later dead ended */
static int64_t
books_difference(const struct reply *reply)
{
	int64_t jobs = reply_integer(reply_at(reply, 3), 0) +
	               reply_integer(reply_at(reply, 4), 0);
	int64_t places = -reply_integer(reply_at(reply, 11), 0);

	for (size_t i = 5; i <= 10; i++)
		places += reply_integer(reply_at(reply, i), 0);
	return jobs - places;
}

void
ruler_clock_on_books(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                     const struct reply *reply)
{
	bool drained = reply_integer(reply_at(reply, 2), 0) == 1;
	int64_t difference = drained ? books_difference(reply) : 0;

	(void)index;
	ruler_clock_done(
		ruler, RULER_TIMER_BOOKS,
		now_ms + (drained && difference == 0 ? BOOKS_MS : BOOKS_AGAIN_MS));
	if (difference != 0 && difference == ruler->books_difference) {
		ruler->health.drift++;
		ruler_note(ruler, RULER_ERROR,
		           "the books do not balance: %lld jobs %s. Say: warmq doctor "
		           "--repair %s",
		           (long long)(difference > 0 ? difference : -difference),
		           difference > 0 ? "stand in no list" : "stand in two places",
		           difference > 0 ? "jobs" : "books");
	}
	ruler->books_difference = difference;
}

void
ruler_clock_on_note(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                    const struct reply *reply)
{
	(void)ruler;
	(void)now_ms;
	(void)index;
	(void)reply;
}
