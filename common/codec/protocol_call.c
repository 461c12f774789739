#include "common/codec/protocol_call.h"

#include "common/text.h"

/* ---- pieces ---------------------------------------------------------------------- */

void
protocol_call_key(struct call_list *list, struct span ns, const char *name)
{
	char key[PROTOCOL_NAMESPACE_MAX + 1 + PROTOCOL_KEY_MAX];
	size_t len = strlen(name);

	VERIFY(ns.len <= PROTOCOL_NAMESPACE_MAX);
	VERIFY(len <= PROTOCOL_KEY_MAX);
	memcpy(key, ns.data, ns.len);
	key[ns.len] = ':';
	memcpy(key + ns.len + 1, name, len);
	call_word(list, (struct span){ key, ns.len + 1 + len });
}

void
protocol_call_open(struct call_list *list, uint64_t tag, struct span ns,
                   const char *function)
{
	char name[64] = "warmq_";
	size_t len = strlen(function);

	VERIFY(len < sizeof(name) - 6);
	memcpy(name + 6, function, len);
	call_begin(list, tag);
	call_word(list, SPAN("FCALL"));
	call_word(list, (struct span){ name, 6 + len });
	call_word(list, SPAN("1"));
	protocol_call_key(list, ns, "meta");
	call_integer(list, PROTOCOL_VERSION);
}

/* 16 hex digits. */
static void
add_nonce(struct call_list *list, uint64_t nonce)
{
	char digits[ID_HEX_LEN];

	id_encode((struct id128){ 0, nonce }, digits);
	call_word(list, (struct span){ digits + 16, 16 });
}

static void
add_unsigned(struct call_list *list, uint64_t value)
{
	char digits[TEXT_NUMBER_SIZE];
	size_t len = text_print_unsigned(value, digits);

	call_word(list, (struct span){ digits, len });
}

static void
add_kept(struct call_list *list, int64_t value)
{
	if (value < 0)
		call_word(list, SPAN("-"));
	else
		add_unsigned(list, (uint64_t)value);
}

static void
add_usage(struct call_list *list, const struct protocol_usage *usage)
{
	char text[PROTOCOL_USAGE_SIZE];
	size_t len = protocol_print_usage(usage, text);

	call_word(list, (struct span){ text, len });
}

static void
add_delivery(struct call_list *list, const struct protocol_delivery *delivery)
{
	call_word(list, delivery->reply);
	add_unsigned(list, delivery->ttl_ms);
	call_word(list, delivery->result);
}

static void
open_session(struct call_list *list, uint64_t tag, struct span ns, const char *function,
             struct protocol_session session)
{
	protocol_call_open(list, tag, ns, function);
	add_nonce(list, session.nonce);
	add_unsigned(list, session.connection);
}

/* ---- worker ---------------------------------------------------------------------- */

void
protocol_call_hello(struct call_list *list, uint64_t tag, struct span ns,
                    const struct protocol_hello *hello)
{
	protocol_call_open(list, tag, ns, "hello");
	add_nonce(list, hello->nonce);
	call_word(list, hello->label);
	call_word(list, hello->pool);
	add_unsigned(list, hello->slots);
	call_word(list, hello->budgets);
	add_unsigned(list, hello->lease_ms);
	if (hello->replaces == 0)
		call_word(list, SPAN(""));
	else
		add_nonce(list, hello->replaces);
	if (hello->job_ms > 0 || hello->is_quiet)
		add_unsigned(list, hello->job_ms);
	if (hello->is_quiet)
		call_text(list, "quiet");
}

void
protocol_call_attach(struct call_list *list, uint64_t tag, struct span ns, uint64_t nonce,
                     uint64_t lease_ms)
{
	protocol_call_open(list, tag, ns, "attach");
	add_nonce(list, nonce);
	add_unsigned(list, lease_ms);
}

void
protocol_call_beat(struct call_list *list, uint64_t tag, struct span ns,
                   struct protocol_session session, uint32_t busy, uint64_t lease_ms)
{
	open_session(list, tag, ns, "beat", session);
	add_unsigned(list, busy);
	add_unsigned(list, lease_ms);
}

void
protocol_call_claim_into(struct call_list *list, uint64_t q, const uint32_t *slots,
                         uint32_t count)
{
	add_unsigned(list, q);
	for (uint32_t i = 0; i < count; i++)
		add_unsigned(list, slots[i]);
}

void
protocol_call_claim(struct call_list *list, uint64_t tag, struct span ns,
                    struct protocol_session session, uint64_t q, const uint32_t *slots,
                    uint32_t count)
{
	open_session(list, tag, ns, "claim", session);
	protocol_call_claim_into(list, q, slots, count);
}

void
protocol_call_claim_of(struct call_list *list, uint64_t tag, struct span ns,
                       struct protocol_session session, uint64_t q, struct span upstream,
                       uint32_t slot)
{
	char word[1 + TEXT_NAME_MAX] = "=";

	VERIFY(upstream.len <= TEXT_NAME_MAX);
	memcpy(word + 1, upstream.data, upstream.len);
	open_session(list, tag, ns, "claim", session);
	add_unsigned(list, q);
	call_word(list, (struct span){ word, 1 + upstream.len });
	add_unsigned(list, slot);
}

void
protocol_call_settle(struct call_list *list, uint64_t tag, struct span ns,
                     struct protocol_session session, uint32_t count, bool goes_on)
{
	char word[1 + TEXT_NUMBER_SIZE] = "=";
	size_t len = 1 + text_print_unsigned(count, word + 1);

	open_session(list, tag, ns, "settle", session);
	call_word(list, goes_on ? (struct span){ word, len }
	                        : (struct span){ word + 1, len - 1 });
}

void
protocol_call_settle_job(struct call_list *list, const struct protocol_settlement *job)
{
	add_unsigned(list, job->slot);
	add_unsigned(list, job->q);
	add_usage(list, &job->usage);
	add_delivery(list, &job->delivery);
}

void
protocol_call_begin(struct call_list *list, uint64_t tag, struct span ns,
                    struct protocol_session session)
{
	open_session(list, tag, ns, "begin", session);
}

void
protocol_call_begin_slot(struct call_list *list, uint32_t slot, uint64_t q,
                         const struct protocol_usage *usage)
{
	add_unsigned(list, slot);
	add_unsigned(list, q);
	add_usage(list, usage);
}

void
protocol_call_fail(struct call_list *list, uint64_t tag, struct span ns,
                   struct protocol_session session,
                   const struct protocol_failure *failure)
{
	open_session(list, tag, ns, "fail", session);
	add_unsigned(list, failure->slot);
	add_unsigned(list, failure->q);
	call_text(list, failure->kind);
	add_unsigned(list, failure->attempts_max);
	add_unsigned(list, failure->delay_ms);
	add_unsigned(list, failure->park_ms);
	call_word(list, failure->reason);
	call_word(list, failure->text);
	add_usage(list, &failure->usage);
	add_delivery(list, &failure->delivery);
}

void
protocol_call_release(struct call_list *list, uint64_t tag, struct span ns,
                      struct protocol_session session)
{
	open_session(list, tag, ns, "release", session);
}

void
protocol_call_release_slot(struct call_list *list, uint32_t slot, uint64_t q, bool sent,
                           const struct protocol_usage *usage)
{
	char text[PROTOCOL_USAGE_SIZE + 2] = "1 ";

	add_unsigned(list, slot);
	add_unsigned(list, q);
	if (sent && usage->may_bill > 0)
		call_word(list, (struct span){ text, 2 + protocol_print_usage(
								 usage, text + 2) });
	else
		add_unsigned(list, sent);
}

void
protocol_call_bye(struct call_list *list, uint64_t tag, struct span ns,
                  struct protocol_session session)
{
	open_session(list, tag, ns, "bye", session);
}

/* "lane family role nonce.q", with ? before the nonce of a doubtful one */
static void
add_attempt(struct call_list *list, const struct protocol_late *late)
{
	char text[PROTOCOL_LANE_ID_SIZE + 2 * ID_HEX_LEN + 2 * TEXT_NUMBER_SIZE + 8];
	size_t len = protocol_print_lane_id(late->lane, text);

	text[len++] = ' ';
	if (!id_is_none(late->family)) {
		id_encode(late->family, text + len);
		len += ID_HEX_LEN;
	}
	text[len++] = ' ';
	text[len++] = (char)late->role;
	text[len++] = ' ';
	if (late->doubtful)
		text[len++] = '?';
	len += text_print_unsigned(late->nonce, text + len);
	text[len++] = '.';
	len += text_print_unsigned(late->q, text + len);
	call_word(list, (struct span){ text, len });
}

void
protocol_call_settle_late(struct call_list *list, uint64_t tag, struct span ns,
                          uint64_t of)
{
	protocol_call_open(list, tag, ns, "settle_late");
	if (of != 0) {
		call_text(list, "of");
		add_nonce(list, of);
	}
	call_text(list, "usage");
}

void
protocol_call_settle_late_job(struct call_list *list, struct span id,
                              const struct protocol_delivery *delivery,
                              const struct protocol_late *late)
{
	call_word(list, id);
	add_delivery(list, delivery);
	if (!late->known) {
		call_text(list, "");
		call_text(list, "");
		return;
	}
	add_attempt(list, late);
	add_usage(list, &late->usage);
}

/* ---- scheduler ------------------------------------------------------------------- */

static void
open_owner(struct call_list *list, uint64_t tag, struct span ns, const char *function,
           struct span owner)
{
	protocol_call_open(list, tag, ns, function);
	call_word(list, owner);
}

void
protocol_call_rule(struct call_list *list, uint64_t tag, struct span ns, uint64_t nonce,
                   uint64_t lease_ms)
{
	protocol_call_open(list, tag, ns, "rule");
	add_nonce(list, nonce);
	add_unsigned(list, lease_ms);
}

void
protocol_call_admit(struct call_list *list, uint64_t tag, struct span ns,
                    struct span owner, struct span from, uint64_t from_n, struct span to,
                    uint64_t to_n)
{
	open_owner(list, tag, ns, "admit", owner);
	call_word(list, from);
	add_unsigned(list, from_n);
	call_word(list, to);
	add_unsigned(list, to_n);
}

void
protocol_call_group(struct call_list *list, char letter, uint32_t count)
{
	call_word(list, (struct span){ &letter, 1 });
	add_unsigned(list, count);
}

void
protocol_call_grant(struct call_list *list, uint64_t tag, struct span ns,
                    struct span owner, struct span events_cursor, uint32_t lanes)
{
	open_owner(list, tag, ns, "grant", owner);
	call_word(list, events_cursor);
	add_unsigned(list, lanes);
}

void
protocol_call_ledger(struct call_list *list, uint64_t tag, struct span ns,
                     struct span owner, struct span cursor, uint64_t ttl_ms,
                     uint32_t rows)
{
	open_owner(list, tag, ns, "ledger", owner);
	call_word(list, cursor);
	add_unsigned(list, ttl_ms);
	add_unsigned(list, rows);
}

void
protocol_call_ledger_row(struct call_list *list, uint64_t hour, struct span field,
                         struct span value)
{
	if (hour > 0)
		add_unsigned(list, hour);
	else
		call_text(list, "");
	call_word(list, field);
	call_word(list, value);
}

void
protocol_call_ledger_recent(struct call_list *list, struct span field, struct span value)
{
	call_text(list, "recent");
	call_word(list, field);
	call_word(list, value);
}

void
protocol_call_grant_lane(struct call_list *list, const struct protocol_grant *grant)
{
	const int64_t values[] = {
		grant->gate,
		grant->reason,
		grant->credits,
		grant->credit_role,
		grant->window,
		grant->rank,
		grant->until_ms,
		grant->tokens,
		grant->life_ms,
		grant->ticket,
		grant->ticket_deadline_ms,
		grant->marks,
	};

	call_word(list, grant->lane);
	call_word(list, grant->family);
	call_word(list, grant->px);
	call_word(list, grant->pool);
	call_word(list, grant->budget);
	add_unsigned(list, grant->generation);
	add_unsigned(list, grant->generation_new);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		add_kept(list, values[i]);
}

void
protocol_call_grant_budgets(struct call_list *list, uint32_t count)
{
	add_unsigned(list, count);
}

void
protocol_call_grant_budget(struct call_list *list,
                           const struct protocol_grant_budget *budget)
{
	call_word(list, budget->budget);
	add_kept(list, budget->pace);
	add_kept(list, budget->parked_until_ms);
	add_kept(list, budget->limit_requests);
	add_kept(list, budget->limit_input);
	add_kept(list, budget->limit_output);
	add_unsigned(list, budget->learned);
}

void
protocol_call_reap(struct call_list *list, uint64_t tag, struct span ns,
                   struct span owner, uint64_t lease_ms, uint64_t beat_ms, uint32_t chunk)
{
	open_owner(list, tag, ns, "reap", owner);
	add_unsigned(list, lease_ms);
	add_unsigned(list, beat_ms);
	add_unsigned(list, chunk);
}

void
protocol_call_promote(struct call_list *list, uint64_t tag, struct span ns,
                      struct span owner, uint32_t max)
{
	open_owner(list, tag, ns, "promote", owner);
	add_unsigned(list, max);
}

void
protocol_call_expire(struct call_list *list, uint64_t tag, struct span ns,
                     struct span owner, uint32_t max)
{
	open_owner(list, tag, ns, "expire", owner);
	add_unsigned(list, max);
}

void
protocol_call_audit(struct call_list *list, uint64_t tag, struct span ns,
                    struct span owner, const char *cursor)
{
	open_owner(list, tag, ns, "audit", owner);
	call_text(list, cursor);
}

void
protocol_call_move(struct call_list *list, uint64_t tag, struct span ns,
                   struct span owner, struct span home)
{
	open_owner(list, tag, ns, "move", owner);
	call_word(list, home);
}

/* ---- everybody ------------------------------------------------------------------- */

void
protocol_call_glance(struct call_list *list, uint64_t tag, struct span ns)
{
	protocol_call_open(list, tag, ns, "glance");
}

void
protocol_call_cancel(struct call_list *list, uint64_t tag, struct span ns, struct span id)
{
	protocol_call_open(list, tag, ns, "cancel");
	call_word(list, id);
}

void
protocol_call_count(struct call_list *list, uint64_t tag, struct span ns)
{
	protocol_call_open(list, tag, ns, "count");
}

void
protocol_call_version(struct call_list *list, uint64_t tag, struct span ns)
{
	protocol_call_open(list, tag, ns, "version");
}
