#include "tests/sim/stranger.h"

#include "common/codec/protocol_answer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND_US   UINT64_C(1000000)
#define PATIENCE_US (5 * SECOND_US)
#define LEASE_MS    "30000"

enum what {
	CLAIM,
	SETTLE,
	SETTLE_AGAIN,
	SETTLE_ALL,
	SETTLE_LATE,
	HAND_BACK,
	FAIL,
	BEGIN,
	BEAT,
	SLEEP,
	WHAT_COUNT,
};

/* The words of one call. */
struct line {
	struct span argv[64];
	size_t argc;
	char bytes[4096];
	size_t used;
};

PRINTF(2, 3)
static void
add(struct line *line, const char *format, ...)
{
	size_t room = sizeof line->bytes - line->used;
	char *text = line->bytes + line->used;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, room, format, args);
	va_end(args);
	VERIFY(len >= 0 && (size_t)len < room && line->argc < ARRAY_SIZE(line->argv));
	line->argv[line->argc++] = (struct span){ text, (size_t)len };
	line->used += (size_t)len + 1;
}

/* FCALL function 1 key protocol nonce c */
static void
begin_call(struct stranger *stranger, struct line *line, const char *function)
{
	line->argc = line->used = 0;
	stranger->claimed_count = 0;
	memset(stranger->ends, 0, sizeof stranger->ends);
	add(line, "FCALL");
	add(line, "warmq_%s", function);
	add(line, "1");
	add(line, "warmq:meta");
	add(line, "1");
	if (strcmp(function, "settle_late") != 0)
		add(line, "%s", stranger->nonce);
}

/* Now and then the connection number is that of yesterday. */
static void
add_c(struct stranger *stranger, struct line *line)
{
	bool is_old = stranger->c > 1 && prng_chance(&stranger->prng, 60);

	add(line, "%" PRIu64, stranger->c - is_old);
}

static void
send(struct stranger *stranger, struct line *line)
{
	stranger->waits = true;
	stranger->asked_us = stranger->agenda->now_us;
	wire_send(&stranger->wire, ++stranger->calls, line->argv, line->argc);
}

static void
say_hello(struct stranger *stranger)
{
	struct line line;

	(void)snprintf(stranger->nonce, sizeof stranger->nonce, "%016" PRIx64,
	               prng_next(&stranger->prng));
	memset(stranger->slots, 0, sizeof stranger->slots);
	stranger->q = 0;
	begin_call(stranger, &line, "hello");
	add(&line, "stranger");
	add(&line, "default");
	add(&line, "%d", STRANGER_SLOTS);
	add(&line, "*");
	add(&line, LEASE_MS);
	add(&line, "%s", "");
	send(stranger, &line);
}

static void
attach(struct stranger *stranger)
{
	struct line line;

	begin_call(stranger, &line, "attach");
	add(&line, LEASE_MS);
	send(stranger, &line);
}

static struct stranger_slot *
any_slot(struct stranger *stranger)
{
	return &stranger->slots[prng_below(&stranger->prng, STRANGER_SLOTS)];
}

static uint32_t
number_of(const struct stranger *stranger, const struct stranger_slot *slot)
{
	return (uint32_t)(slot - stranger->slots);
}

/* Some slots, held ones too: their tokens carry q, q + 1 ... */
static void
add_claims(struct stranger *stranger, struct line *line, uint32_t must)
{
	stranger->claimed_q = stranger->q + 1;
	stranger->claimed_count = 0;
	add(line, "%" PRIu64, stranger->claimed_q);
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++) {
		if (i != must && !prng_chance(&stranger->prng, 500))
			continue;
		add(line, "%u", i);
		stranger->claimed[stranger->claimed_count++] = i;
		stranger->q++;
	}
}

static void
claim(struct stranger *stranger)
{
	struct line line;

	begin_call(stranger, &line, "claim");
	add_c(stranger, &line);
	add_claims(stranger, &line,
	           (uint32_t)prng_below(&stranger->prng, STRANGER_SLOTS));
	send(stranger, &line);
}

static void
add_settled(struct stranger *stranger, struct line *line, uint32_t slot, uint64_t q,
            const char *id)
{
	stranger->ends[slot] = q;
	add(line, "%u", slot);
	add(line, "%" PRIu64, q);
	add(line, "%s", "");
	add(line, "%s", "");
	add(line, "600000");
	add(line, "{\"id\":\"%s\",\"by\":\"stranger\"}", id);
}

/* One job; then its slot is claimed, by name or not, or that and others. */
static void
settle(struct stranger *stranger, uint32_t slot, uint64_t q, const char *id)
{
	struct line line;
	bool takes_others = prng_chance(&stranger->prng, 300);
	bool goes_on = !takes_others && stranger->q % 2 == 0;

	begin_call(stranger, &line, "settle");
	add_c(stranger, &line);
	add(&line, goes_on ? "=1" : "1");
	add_settled(stranger, &line, slot, q, id);
	if (takes_others) {
		add_claims(stranger, &line, slot);
	} else {
		stranger->claimed_q = ++stranger->q;
		stranger->claimed[0] = slot;
		stranger->claimed_count = 1;
		add(&line, "%" PRIu64, stranger->q);
		if (!goes_on)
			add(&line, "%u", slot);
	}
	send(stranger, &line);
}

static void
settle_all(struct stranger *stranger)
{
	struct line line;
	uint32_t count = 0;
	bool goes_on = stranger->q % 2 == 0;

	for (uint32_t i = 0; i < STRANGER_SLOTS; i++)
		count += stranger->slots[i].held;
	begin_call(stranger, &line, "settle");
	add_c(stranger, &line);
	add(&line, goes_on ? "=%u" : "%u", count);
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++) {
		if (stranger->slots[i].held)
			add_settled(stranger, &line, i, stranger->slots[i].q,
			            stranger->slots[i].id);
	}
	stranger->claimed_q = stranger->q + 1;
	stranger->claimed_count = 0;
	add(&line, "%" PRIu64, stranger->claimed_q);
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++) {
		if (!stranger->slots[i].held)
			continue;
		if (!goes_on)
			add(&line, "%u", i);
		stranger->claimed[stranger->claimed_count++] = i;
		stranger->q++;
	}
	send(stranger, &line);
}

static void
settle_late(struct stranger *stranger, const char *id)
{
	struct line line;

	if (id[0] == 'w') /* a ticket has no result */
		return;
	begin_call(stranger, &line, "settle_late");
	add(&line, "%s", id);
	add(&line, "%s", "");
	add(&line, "600000");
	add(&line, "{\"id\":\"%s\",\"by\":\"stranger\"}", id);
	send(stranger, &line);
}

static void
hand_back(struct stranger *stranger, uint32_t slot, uint64_t q)
{
	struct line line;

	begin_call(stranger, &line, "release");
	stranger->ends[slot] = q;
	add_c(stranger, &line);
	add(&line, "%u", slot);
	add(&line, "%" PRIu64, q);
	add(&line, "0");
	send(stranger, &line);
}

static void
fail(struct stranger *stranger, uint32_t slot, uint64_t q)
{
	static const char *const KINDS[] = { "retry", "defer", "unsent" };
	const char *kind = KINDS[prng_below(&stranger->prng, ARRAY_SIZE(KINDS))];
	struct line line;

	begin_call(stranger, &line, "fail");
	stranger->ends[slot] = q;
	add_c(stranger, &line);
	add(&line, "%u", slot);
	add(&line, "%" PRIu64, q);
	add(&line, "%s", kind);
	add(&line, "3");
	add(&line, "%" PRIu64, prng_below(&stranger->prng, 2) * 700);
	add(&line, "%d", prng_chance(&stranger->prng, 400) ? 3000 : 0);
	add(&line, "stranger");
	for (int i = 0; i < 3; i++) /* text usage reply */
		add(&line, "%s", "");
	add(&line, "600000");
	add(&line, "%s", "");
	send(stranger, &line);
}

static void
begin(struct stranger *stranger, uint32_t slot, uint64_t q)
{
	struct line line;

	begin_call(stranger, &line, "begin");
	add_c(stranger, &line);
	add(&line, "%u", slot);
	add(&line, "%" PRIu64, q);
	add(&line, "%s", "");
	send(stranger, &line);
}

static void
beat(struct stranger *stranger)
{
	struct line line;
	uint32_t busy = 0;

	for (uint32_t i = 0; i < STRANGER_SLOTS; i++)
		busy += stranger->slots[i].held;
	begin_call(stranger, &line, "beat");
	add_c(stranger, &line);
	add(&line, "%u", busy + prng_chance(&stranger->prng, 300));
	add(&line, LEASE_MS);
	send(stranger, &line);
}

/* What is no plain job, nor one that starts at once, is not for it. */
static bool
hands_back_others(struct stranger *stranger)
{
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++) {
		const struct stranger_slot *slot = &stranger->slots[i];

		if (!slot->held || slot->role == 'p' || slot->role == 'n')
			continue;
		hand_back(stranger, i, slot->q);
		return true;
	}
	return false;
}

/* One thing after the other, whatever comes to its mind; answers how long it rests. */
static uint64_t
act(struct stranger *stranger)
{
	struct stranger_slot *slot = any_slot(stranger);
	uint32_t i = number_of(stranger, slot);
	bool is_past = slot->q_before > 0 && prng_chance(&stranger->prng, 300);
	uint64_t q = is_past ? slot->q_before : slot->q;

	if (hands_back_others(stranger))
		return SECOND_US;
	switch ((enum what)prng_below(&stranger->prng, WHAT_COUNT)) {
	case CLAIM:
		claim(stranger);
		break;
	case SETTLE:
		if (slot->held)
			settle(stranger, i, slot->q, slot->id);
		break;
	case SETTLE_AGAIN:
		if (slot->q_before > 0)
			settle(stranger, i, slot->q_before, slot->id_before);
		break;
	case SETTLE_ALL:
		settle_all(stranger);
		break;
	case SETTLE_LATE:
		if (slot->q_before > 0)
			settle_late(stranger,
			            is_past || !slot->held ? slot->id_before : slot->id);
		break;
	case HAND_BACK:
		if (q > 0)
			hand_back(stranger, i, q);
		break;
	case FAIL:
		if (q > 0)
			fail(stranger, i, q);
		break;
	case BEGIN:
		if (q > 0)
			begin(stranger, i, q);
		break;
	case BEAT:
		beat(stranger);
		break;
	case SLEEP:
		if (prng_chance(&stranger->prng, 60))
			return prng_between(&stranger->prng, 10, 60) * SECOND_US;
		break;
	case WHAT_COUNT:
		break;
	}
	return SECOND_US;
}

static void
on_turn(void *context, uint64_t number)
{
	struct stranger *stranger = context;
	uint64_t rest_us = SECOND_US;

	if (stranger->gone)
		return;
	if (stranger->waits &&
	    stranger->agenda->now_us - stranger->asked_us > PATIENCE_US) {
		wire_close(&stranger->wire);
		stranger->waits = false;
		wire_open(&stranger->wire);
	}
	if (!stranger->wire.connection)
		wire_open(&stranger->wire);
	else if (!stranger->waits && wire_is_up(&stranger->wire) && stranger->connected)
		rest_us = act(stranger);
	agenda_in(stranger->agenda,
	          prng_between(&stranger->prng, rest_us / 20, rest_us / 2), on_turn,
	          stranger, 0);
}

/* ---- answers ------------------------------------------------------------------------
 */

static void
take_element(struct stranger *stranger, const struct protocol_run *run, uint32_t number,
             struct span element)
{
	struct stranger_slot *slot = &stranger->slots[stranger->claimed[number]];
	size_t len = 0;

	while (len < element.len && element.data[len] != '~' && element.data[len] != '/')
		len++;
	slot->held = true;
	slot->role = (char)run->role;
	slot->q = stranger->claimed_q + number;
	(void)snprintf(slot->id, sizeof slot->id, "%.*s", (int)len, element.data);
}

static bool
is_refused(struct span refused, uint32_t slot)
{
	struct protocol_problem problem;

	while (protocol_answer_refusal(&refused, &problem))
		if (problem.slot == slot)
			return true;
	return false;
}

/* Elements fill the free ones of the slots that were named, in their order. */
static void
take_runs(struct stranger *stranger, const struct reply *reply)
{
	struct protocol_claim claim;
	struct protocol_run run;
	struct span element;
	uint32_t at = 0;
	bool is_sound;

	VERIFY(protocol_answer_claim(reply, &claim) == 0);
	while (protocol_answer_run(&claim.runs, &run, &is_sound)) {
		VERIFY(is_sound);
		for (; protocol_answer_element(&run.elements, &element); at++) {
			while (at < stranger->claimed_count &&
			       is_refused(claim.refused, stranger->claimed[at]))
				at++;
			VERIFY(at < stranger->claimed_count);
			take_element(stranger, &run, at, element);
		}
	}
}

static void
take_ends(struct stranger *stranger)
{
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++) {
		struct stranger_slot *slot = &stranger->slots[i];

		if (!slot->held || stranger->ends[i] != slot->q)
			continue;
		slot->held = false;
		slot->q_before = slot->q;
		memcpy(slot->id_before, slot->id, sizeof slot->id);
	}
}

/* After any doubt it asks what it holds. */
static void
take_table(struct stranger *stranger, const struct reply *reply)
{
	for (uint32_t i = 0; i < STRANGER_SLOTS; i++)
		stranger->slots[i].held = false;
	for (size_t i = 3; i < reply->count; i++) {
		struct span text = reply_text(reply_at(&reply->items[i], 1));
		int64_t number = reply_integer(reply_at(&reply->items[i], 0), 0);
		struct stranger_slot *slot = &stranger->slots[number % STRANGER_SLOTS];
		struct span part[5] = { 0 };

		for (size_t k = 0; k < ARRAY_SIZE(part); k++)
			(void)protocol_cut(&text, '|', &part[k]);
		slot->held = true;
		slot->q = strtoull(part[0].data, NULL, 10);
		slot->role = part[4].len > 0 ? part[4].data[0] : '?';
		(void)snprintf(slot->id, sizeof slot->id, "%.*s",
		               (int)strcspn(part[3].data, "~/|"), part[3].data);
	}
}

static void
on_answer(void *context, uint64_t tag, const struct reply *reply)
{
	struct stranger *stranger = context;
	bool ok = protocol_answer_word(reply) == PROTOCOL_OK;

	if (stranger->gone || tag != stranger->calls)
		return;
	stranger->waits = false;
	if (reply_is(reply_at(reply, 0), "GONE")) {
		stranger->connected = false;
		say_hello(stranger);
	} else if (reply_is(reply_at(reply, 0), "STALE") ||
	           reply_is(reply_at(reply, 0), "REATTACH")) {
		stranger->connected = false;
		attach(stranger);
	} else if (!stranger->connected && ok) {
		stranger->connected = true;
		stranger->c = (uint64_t)reply_integer(reply_at(reply, 2), 1);
		take_table(stranger, reply);
	} else if (ok) {
		take_ends(stranger);
	}
	if (ok && stranger->connected && stranger->claimed_count > 0)
		take_runs(stranger, reply);
}

static void
on_up(void *context)
{
	struct stranger *stranger = context;

	stranger->connected = false;
	if (stranger->nonce[0] == '\0')
		say_hello(stranger);
	else
		attach(stranger);
}

static void
on_down(void *context)
{
	struct stranger *stranger = context;

	stranger->connected = false;
	stranger->waits = false;
}

void
stranger_init(struct stranger *stranger, struct wire_hub *hub, uint64_t seed)
{
	*stranger = (struct stranger){
		.agenda = hub->agenda,
		.trace = hub->trace,
		.wire = {
			.hub = hub,
			.name = "stranger",
			.on_up = on_up,
			.on_down = on_down,
			.on_answer = on_answer,
			.context = stranger,
		},
	};
	prng_init(&stranger->prng, seed);
}

void
stranger_start(struct stranger *stranger)
{
	wire_open(&stranger->wire);
	agenda_in(stranger->agenda, SECOND_US, on_turn, stranger, 0);
}

void
stranger_leave(struct stranger *stranger)
{
	stranger->gone = true;
	wire_close(&stranger->wire);
}
