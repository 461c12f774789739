#include "tests/sim/oracle_book.h"

#include <inttypes.h>

static bool
is_of_session(const struct oracle *oracle)
{
	return oracle_book_runs(oracle, "claim") || oracle_book_runs(oracle, "settle") ||
	       oracle_book_runs(oracle, "begin") || oracle_book_runs(oracle, "fail") ||
	       oracle_book_runs(oracle, "release") || oracle_book_runs(oracle, "bye") ||
	       oracle_book_runs(oracle, "beat");
}

static void
note_settled(struct oracle *oracle)
{
	struct span nonce = oracle_book_word(oracle, ORACLE_WORD_NONCE);

	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[i];

		if (!lease->used || lease->job == ORACLE_NONE ||
		    !span_equals(span_from(lease->nonce), nonce) ||
		    oracle_lease_words(oracle, lease) == 0)
			continue;
		VERIFY(oracle->settled_count < ARRAY_SIZE(oracle->settled));
		oracle->settled[oracle->settled_count++] = lease->job;
	}
}

/* Functions of the scheduler: whoever rules no more changes nothing. */
static bool
is_of_ruler(const struct oracle *oracle)
{
	return oracle_book_runs(oracle, "admit") || oracle_book_runs(oracle, "grant") ||
	       oracle_book_runs(oracle, "reap") || oracle_book_runs(oracle, "promote") ||
	       oracle_book_runs(oracle, "expire") || oracle_book_runs(oracle, "audit");
}

static void
look_for_owner(struct oracle *oracle)
{
	const struct span argv[] = { SPAN("HGET"), SPAN("warmq:meta"), SPAN("owner") };
	struct span owner =
		reply_text(server_peek(oracle->server, argv, ARRAY_SIZE(argv)));

	oracle->rules = span_equals(owner, oracle_book_word(oracle, ORACLE_WORD_FIRST));
}

void
oracle_session_before(struct oracle *oracle)
{
	const struct span argv[] = { SPAN("HGET"), SPAN("warmq:meta"), SPAN("hold") };

	if (is_of_ruler(oracle))
		look_for_owner(oracle);
	if (oracle_book_runs(oracle, "settle") || oracle_book_runs(oracle, "fail"))
		note_settled(oracle);
	if (!oracle_book_runs(oracle, "claim") && !oracle_book_runs(oracle, "settle"))
		return;
	oracle->hold_off =
		reply_is(server_peek(oracle->server, argv, ARRAY_SIZE(argv)), "off");
	for (uint32_t i = 0; i < oracle->families_count; i++)
		oracle->families[i].turns_was = oracle->families[i].turns;
}

/* Rule 22 of the data path: after a gap nobody is reaped for one lease. */
static bool
is_gap(const struct oracle *oracle, uint64_t lease_ms, uint64_t beat_ms)
{
	uint64_t now = oracle_book_now_ms(oracle);

	return oracle->ticked_ms > 0 &&
	       (now < oracle->ticked_ms ||
	        now - oracle->ticked_ms > lease_ms - beat_ms - 5000);
}

static void
note_tick(struct oracle *oracle)
{
	oracle->lease_ms =
		oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_FIRST + 1));
	if (is_gap(oracle, oracle->lease_ms,
	           oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_FIRST + 2))))
		oracle->no_reap_until_ms = oracle_book_now_ms(oracle) + oracle->lease_ms;
	oracle->ticked_ms = oracle_book_now_ms(oracle);
}

void
oracle_session_reaped(struct oracle *oracle, struct span nonce)
{
	uint32_t index = oracle_book_session(oracle, nonce);
	uint64_t lease_ms =
		oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_FIRST + 1));
	struct oracle_session *session;

	if (index == ORACLE_NONE || oracle->sessions[index].gone)
		return;
	session = &oracle->sessions[index];
	session->gone = true;
	if (!oracle_book_runs(oracle, "reap"))
		return;
	if (oracle_book_now_ms(oracle) < session->renewed_ms + lease_ms &&
	    !oracle->clock_stepped)
		oracle_fail(oracle, "reap",
		            "session %s is reaped %" PRIu64 " ms after its last beat",
		            session->nonce,
		            oracle_book_now_ms(oracle) - session->renewed_ms);
	if (oracle_book_now_ms(oracle) < oracle->no_reap_until_ms ||
	    is_gap(oracle, lease_ms,
	           oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_FIRST + 2))))
		oracle_fail(oracle, "reap", "session %s is reaped within a hold",
		            session->nonce);
}

/* Calls over an old connection, or of a session that is gone, change nothing. */
static void
judge_session(struct oracle *oracle, const struct reply *reply)
{
	uint32_t index =
		oracle_book_session(oracle, oracle_book_word(oracle, ORACLE_WORD_NONCE));
	struct oracle_session *session;
	bool ok = reply_is(reply_at(reply, 0), "OK");

	if (index == ORACLE_NONE) {
		if (ok)
			oracle_fail(oracle, "session", "%s of an unknown session is OK",
			            oracle->function);
		return;
	}
	session = &oracle->sessions[index];
	if (oracle_book_runs(oracle, "bye")) {
		if (ok)
			session->gone = true;
		return;
	}
	if ((session->gone ||
	     oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_C)) < session->c) &&
	    (ok || oracle->writes > 0))
		oracle_fail(oracle, "session",
		            "%s over connection %" PRIu64 " of %s, which is %s",
		            oracle->function,
		            oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_C)),
		            session->nonce,
		            session->gone ? "gone" : "older than the newest");
	if (!oracle_book_runs(oracle, "beat") || !ok)
		return;
	session->renewed_ms = oracle_book_now_ms(oracle);
	if (oracle_book_word(oracle, ORACLE_WORD_NONCE + 4).data)
		oracle_shun_note(oracle, span_from(session->nonce),
		                 oracle_book_word(oracle, ORACLE_WORD_NONCE + 4));
}

static void
note_session(struct oracle *oracle, const struct reply *reply)
{
	struct oracle_session *session;
	uint32_t index;

	if (!reply_is(reply_at(reply, 0), "OK"))
		return;
	index = oracle_book_session_make(oracle,
	                                 oracle_book_word(oracle, ORACLE_WORD_NONCE));
	session = &oracle->sessions[index];
	if ((uint64_t)reply_integer(reply_at(reply, 2), 0) <= session->c)
		oracle_fail(oracle, "session",
		            "%s of %s answers connection %" PRIu64 " a second time",
		            oracle->function, session->nonce, session->c);
	session->c = (uint64_t)reply_integer(reply_at(reply, 2), 0);
	session->renewed_ms = oracle_book_now_ms(oracle);
}

/* A clock that went back finds accounts parked whose time had come. */
static bool
is_of_clock(const struct oracle *oracle, struct span what)
{
	return oracle->clock_stepped && span_equals(what, SPAN("look"));
}

static uint64_t
attempts_noted(const struct oracle *oracle, const struct oracle_job *job)
{
	char key[ORACLE_NAME_SIZE + 16];
	const struct redis_value *past;

	(void)snprintf(key, sizeof key, "warmq:past:%s", job->id);
	past = redis_model_find(oracle->server->model, span_from(key));
	for (size_t i = 0; past && i < past->items.count; i++) {
		const struct redis_field *field = redis_value_field(past, i);

		if (span_equals(redis_text_span(field->name), SPAN("attempts")))
			return oracle_book_number(redis_text_span(field->value));
	}
	return 0;
}

/* Real failures count, and nothing else does; the last one is the end.  So does a payload
 * that was not found and is there. */
static void
judge_attempts(struct oracle *oracle, const struct reply *reply)
{
	struct span kind = oracle_book_word(oracle, ORACLE_WORD_NONCE + 4);
	uint64_t most =
		oracle_book_number(oracle_book_word(oracle, ORACLE_WORD_NONCE + 5));
	struct oracle_job *job;
	bool dead = reply_is(reply_at(reply, 2), "dead");

	if (oracle->settled_count != 1 || !reply_is(reply_at(reply, 0), "OK") ||
	    reply_is(reply_at(reply, 2), "ended") || oracle->rolled_back)
		return;
	job = &oracle->jobs[oracle->settled[0]];
	if (span_equals(kind, SPAN("retry")) ||
	    (span_equals(kind, SPAN("missing")) && !dead))
		job->attempts++;
	if (span_equals(kind, SPAN("retry")) && dead != (job->attempts >= most))
		oracle_fail(oracle, "attempts",
		            "%s is %s after %u of %" PRIu64 " failures", job->id,
		            dead ? "dead" : "alive", job->attempts, most);
	if (!dead && attempts_noted(oracle, job) != job->attempts)
		oracle_fail(oracle, "attempts",
		            "%s has failed %u times, and %" PRIu64 " are noted", job->id,
		            job->attempts, attempts_noted(oracle, job));
	if (dead &&
	    (span_equals(kind, SPAN("defer")) || span_equals(kind, SPAN("unsent"))))
		oracle_fail(oracle, "attempts", "%s is dead of a deferral", job->id);
}

/* Nothing is ever put right that was not wrong before. */
static void
judge_audit(struct oracle *oracle, const struct reply *reply)
{
	for (size_t i = 3; i < reply->count; i++) {
		const struct reply *correction = &reply->items[i];
		struct span what = reply_text(reply_at(correction, 0));
		struct span key = reply_text(reply_at(correction, 1));
		struct span is = reply_text(reply_at(correction, 3));

		oracle->corrections++;
		if (is_of_clock(oracle, what))
			continue;
		oracle_fail(oracle, "I12", "an audit corrects %.*s of %.*s to %.*s",
		            (int)what.len, what.data, (int)key.len, key.data, (int)is.len,
		            is.data);
	}
}

/* Somebody steers a worker, or it comes back as it was told. */
static void
note_manner(struct oracle *oracle, size_t word)
{
	uint32_t index =
		oracle_book_session(oracle, oracle_book_word(oracle, ORACLE_WORD_NONCE));
	struct span manner = oracle_book_word(oracle, word);

	if (index != ORACLE_NONE)
		oracle->sessions[index].quiet =
			manner.len > 0 && !span_equals(manner, SPAN("run"));
}

void
oracle_session_after(struct oracle *oracle, const struct reply *reply)
{
	if (is_of_session(oracle))
		judge_session(oracle, reply);
	if (is_of_ruler(oracle) && !oracle->rules &&
	    (reply_is(reply_at(reply, 0), "OK") || oracle->writes > 0))
		oracle_fail(oracle, "owner", "%s of a scheduler that does not rule",
		            oracle->function);
	if (oracle_book_runs(oracle, "hello") || oracle_book_runs(oracle, "attach"))
		note_session(oracle, reply);
	if (reply_is(reply_at(reply, 0), "OK") && oracle_book_runs(oracle, "hello"))
		note_manner(oracle, ORACLE_WORD_NONCE + 8);
	if (reply_is(reply_at(reply, 2), "done") && oracle_book_runs(oracle, "steer"))
		note_manner(oracle, ORACLE_WORD_NONCE + 1);
	if (oracle_book_runs(oracle, "reap") && reply_is(reply_at(reply, 0), "OK"))
		note_tick(oracle);
	if (oracle_book_runs(oracle, "fail")) {
		oracle_budget_park(oracle, reply);
		judge_attempts(oracle, reply);
	}
	if (oracle_book_runs(oracle, "audit") && reply_is(reply_at(reply, 0), "OK"))
		judge_audit(oracle, reply);
	oracle_start_judge(oracle);
	for (uint32_t i = 0; i < oracle->lanes_count; i++) {
		if (oracle->lanes[i].changed) {
			oracle->lanes[i].before = oracle->lanes[i].now;
			oracle->lanes[i].changed = false;
		}
	}
	for (uint32_t i = 0; i < oracle->budgets_count; i++)
		oracle->budgets[i].pace_before = oracle->budgets[i].pace_now;
}

/* Its calls arrive, and are answered. */
static bool
is_reached(const struct weather *weather)
{
	return weather->wire.cut_permille == 0 && weather->worker_freezes == 0 &&
	       weather->redis_restarts == 0 && weather->clogs == 0 &&
	       weather->partitions == 0 && weather->outage_us == 0;
}

void
oracle_session_ended(struct oracle *oracle, uint64_t nonce)
{
	char text[17];
	uint32_t index;

	(void)snprintf(text, sizeof text, "%016" PRIx64, nonce);
	index = oracle_book_session(oracle, span_from(text));
	if (index == ORACLE_NONE || !is_reached(oracle->weather))
		return;
	if (!oracle->sessions[index].gone)
		oracle_fail(oracle, "stop", "%s has ended without a word", text);
	for (uint32_t i = 0; i < oracle->leases_count; i++)
		if (oracle->leases[i].used && strcmp(oracle->leases[i].nonce, text) == 0)
			oracle_fail(oracle, "stop", "%s has ended and holds slot %u",
			            text, oracle->leases[i].slot);
}
