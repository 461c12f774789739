#include "scheduler/ruler_session.h"

#include "common/codec/protocol_record.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_line.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rebuild.h"

#define FETCHES_MAX 32 /* sessions looked at by one step */

void
ruler_session_clear(struct ruler *ruler)
{
	ruler->sessions_count = 0;
	ruler->sessions_fetching = 0;
	for (uint32_t i = 0; i < ruler->known.pools_count; i++)
		ruler->known.pools[i].slots = 0;
}

static uint32_t
find(const struct ruler *ruler, uint64_t nonce)
{
	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		if (ruler->sessions[i].nonce == nonce)
			return i;
	return UINT32_MAX;
}

/* A session that is gone leaves nonce 0: answers under way still name places. */
static struct ruler_session *
make(struct ruler *ruler, uint64_t nonce)
{
	uint32_t at = ruler->sessions_fetching == 0 ? find(ruler, 0) : UINT32_MAX;

	if (at == UINT32_MAX) {
		if (ruler->sessions_count == RULER_SESSIONS_MAX)
			return NULL;
		at = ruler->sessions_count++;
	}
	ruler->sessions[at] = (struct ruler_session){
		.nonce = nonce,
		.pool = UINT32_MAX,
		.seen = true,
	};
	return &ruler->sessions[at];
}

/* What the pool may count on. */
static uint32_t
share(const struct ruler_session *session)
{
	return session->is_quiet ? 0 : session->slots;
}

static void
settle_in(struct ruler *ruler, uint64_t now_ms, struct ruler_session *session,
          struct span pool, uint32_t slots)
{
	session->pool = ruler_core_pool(ruler, now_ms, pool);
	session->slots = slots;
	session->fetched = true;
	ruler->known.pools[session->pool].slots += share(session);
}

void
ruler_session_add(struct ruler *ruler, uint64_t now_ms, uint64_t nonce, struct span pool,
                  uint32_t slots)
{
	struct ruler_session *session;

	if (nonce == 0 || find(ruler, nonce) != UINT32_MAX)
		return;
	session = make(ruler, nonce);
	if (session)
		settle_in(ruler, now_ms, session, pool, slots);
	ruler_session_tell(ruler, now_ms);
}

static void
forget(struct ruler *ruler, struct ruler_session *session)
{
	if (session->pool != UINT32_MAX)
		ruler->known.pools[session->pool].slots -= share(session);
	*session = (struct ruler_session){ .pool = UINT32_MAX };
}

void
ruler_session_remove(struct ruler *ruler, uint64_t now_ms, uint64_t nonce)
{
	uint32_t at = nonce == 0 ? UINT32_MAX : find(ruler, nonce);

	if (at == UINT32_MAX)
		return;
	forget(ruler, &ruler->sessions[at]);
	ruler_session_tell(ruler, now_ms);
}

void
ruler_session_steer(struct ruler *ruler, uint64_t now_ms, uint64_t nonce,
                    struct span word, struct span who)
{
	uint32_t at = nonce == 0 ? UINT32_MAX : find(ruler, nonce);
	bool is_quiet = !span_equals(word, SPAN("run"));
	struct ruler_session *session;
	char digits[ID_HEX_LEN];

	id_encode((struct id128){ 0, nonce }, digits);
	ruler_note(ruler, RULER_WARNING, "the worker %.16s was told to %s%.*s%s%.*s",
	           digits + 16, span_equals(word, SPAN("quiet")) ? "be " : "",
	           (int)MIN(word.len, 16), word.data, who.len > 0 ? " by " : "",
	           (int)MIN(who.len, 100), who.data);
	if (at == UINT32_MAX)
		return;
	session = &ruler->sessions[at];
	if (session->pool != UINT32_MAX) {
		ruler->known.pools[session->pool].slots -= share(session);
		session->is_quiet = is_quiet;
		ruler->known.pools[session->pool].slots += share(session);
	}
	ruler_session_tell(ruler, now_ms);
}

void
ruler_session_tell(struct ruler *ruler, uint64_t now_ms)
{
	for (uint32_t i = 0; i < ruler->known.pools_count; i++) {
		struct ruler_pool_name *pool = &ruler->known.pools[i];
		struct event event;

		if (pool->told == pool->slots)
			continue;
		pool->told = pool->slots;
		event = ruler_known_pool_event(&ruler->known, i);
		ruler_core_tell(ruler, now_ms, &event);
	}
}

/* ---- looking --------------------------------------------------------------------- */

void
ruler_session_look(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_WORKERS, 0));
	call_text(out, "ZRANGE");
	protocol_call_key(out, ruler->config->ns, "workers");
	call_integer(out, 0);
	call_integer(out, -1);
}

static void
call_key_of(struct call_list *out, struct span ns, const char *kind, uint64_t nonce)
{
	char name[64], digits[ID_HEX_LEN];
	size_t len = strlen(kind);

	id_encode((struct id128){ 0, nonce }, digits);
	memcpy(name, kind, len);
	memcpy(name + len, digits + 16, 16);
	name[len + 16] = '\0';
	protocol_call_key(out, ns, name);
}

static void
fetch_one(struct ruler *ruler, uint32_t at, struct call_list *out)
{
	uint64_t nonce = ruler->sessions[at].nonce;

	call_begin(out, ruler_tag(ruler, RULER_CALL_SLOTS, at));
	call_text(out, "HGET");
	call_key_of(out, ruler->config->ns, "session:", nonce);
	call_text(out, "slots");
	call_begin(out, ruler_tag(ruler, RULER_CALL_LEASES, at));
	call_text(out, "HGETALL");
	call_key_of(out, ruler->config->ns, "lease:", nonce);
	ruler->sessions[at].fetched = true;
	ruler->sessions_fetching++;
}

bool
ruler_session_fetch(struct ruler *ruler, struct call_list *out)
{
	bool more = false;

	for (uint32_t i = 0; i < ruler->sessions_count; i++) {
		if (ruler->sessions[i].nonce == 0 || ruler->sessions[i].fetched)
			continue;
		more = true;
		if (ruler->sessions_fetching >= FETCHES_MAX ||
		    !ruler_fits(out, 16, 512) || out->call_max - out->call_count < 2)
			break;
		fetch_one(ruler, i, out);
	}
	return more;
}

/* ---- answers --------------------------------------------------------------------- */

static uint64_t
parse_nonce(struct span text)
{
	char digits[ID_HEX_LEN];
	struct id128 id;

	if (text.len != 16)
		return 0;
	memset(digits, '0', 16);
	memcpy(digits + 16, text.data, 16);
	if (id_decode((struct span){ digits, ID_HEX_LEN }, &id) < 0)
		return 0;
	return id.low;
}

static void
look_done(struct ruler *ruler, uint64_t now_ms)
{
	if (ruler->phase == RULER_REBUILDING)
		ruler_rebuild_sessions_done(ruler);
	else
		ruler_session_tell(ruler, now_ms);
}

static bool
fetches_wait(const struct ruler *ruler)
{
	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		if (ruler->sessions[i].nonce != 0 && !ruler->sessions[i].fetched)
			return true;
	return ruler->sessions_fetching > 0;
}

void
ruler_session_on_workers(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply)
{
	(void)index;
	ruler_clock_done(ruler, RULER_TIMER_WORKERS, now_ms + 5000);
	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		ruler->sessions[i].seen = false;
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i < reply->count; i++) {
		uint64_t nonce = parse_nonce(reply_text(&reply->items[i]));
		uint32_t at = nonce == 0 ? UINT32_MAX : find(ruler, nonce);

		if (at != UINT32_MAX)
			ruler->sessions[at].seen = true;
		else if (nonce != 0)
			(void)make(ruler, nonce); /* full: its slots go uncounted */
	}
	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		if (ruler->sessions[i].nonce != 0 && !ruler->sessions[i].seen)
			forget(ruler, &ruler->sessions[i]);
	if (!fetches_wait(ruler))
		look_done(ruler, now_ms);
}

void
ruler_session_on_slots(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	int64_t slots = reply_integer(reply, 0);

	(void)now_ms;
	if (index < ruler->sessions_count && ruler->sessions[index].pool == UINT32_MAX)
		ruler->sessions[index].slots = (uint32_t)MIN(MAX(slots, 0), 1000000);
}

/* A lease that the core has to know of: somebody may be writing. */
static void
recover_lease(struct ruler *ruler, uint64_t now_ms, struct span text)
{
	struct event event = { .kind = EVENT_RECOVERED_LEASE };
	struct protocol_lane_id lane;
	struct protocol_lease lease;

	if (protocol_record_parse_lease(text, &lease) < 0 ||
	    protocol_parse_lane_id(lease.lane, &lane) < 0)
		return;
	event.start = (struct event_start){
		.lane = { lane.node, lane.domain },
		.g = lease.generation,
		.role = ruler_line_role(lease.role),
		.at_ms = now_ms,
	};
	if (event.start.role == LANE_LEAD || event.start.role == LANE_CANARY ||
	    event.start.role == LANE_TICKET)
		ruler_core_tell(ruler, now_ms, &event);
}

/* Whether a session, as stored behind its pool, was told to claim nothing. */
static bool
is_quiet(struct span text)
{
	struct span word;

	for (int i = 0; i < 2; i++) /* job_ms, budgets */
		if (!protocol_cut(&text, '|', &word))
			return false;
	return text.len > 0;
}

/* The field `s` is the session: c|pool|job_ms|budgets, and |quiet or |stop. */
void
ruler_session_on_leases(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply)
{
	struct ruler_session *session = &ruler->sessions[index];
	struct span text = { NULL, 0 }, word, pool = SPAN("");

	VERIFY(index < ruler->sessions_count);
	VERIFY(ruler->sessions_fetching > 0);
	ruler->sessions_fetching--;
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i + 1 < reply->count; i += 2) {
		if (reply_is(&reply->items[i], "s"))
			text = reply_text(&reply->items[i + 1]);
		else if (ruler->phase == RULER_REBUILDING)
			recover_lease(ruler, now_ms, reply_text(&reply->items[i + 1]));
	}
	if (session->nonce != 0 && session->pool == UINT32_MAX &&
	    protocol_cut(&text, '|', &word) && protocol_cut(&text, '|', &pool)) {
		session->is_quiet = is_quiet(text);
		settle_in(ruler, now_ms, session, pool, session->slots);
	}
	if (!fetches_wait(ruler))
		look_done(ruler, now_ms);
}
