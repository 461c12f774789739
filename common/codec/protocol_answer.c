#include "common/codec/protocol_answer.h"

#include "common/text.h"

static bool
starts_with(struct span text, const char *word)
{
	size_t len = strlen(word);

	return text.len >= len && memcmp(text.data, word, len) == 0;
}

static bool
contains(struct span text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word)) != NULL;
}

/* Redis says "ERR Function not found"; errors of the library start "ERR warmq". */
static enum protocol_word
error_word(struct span text)
{
	static const char *const passing[] = { "LOADING", "BUSY", "MASTERDOWN",
		                               "TRYAGAIN", "CLUSTERDOWN" };

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (starts_with(text, passing[i]))
			return PROTOCOL_LOADING;
	if (!starts_with(text, "ERR warmq") && contains(text, "Function not found"))
		return PROTOCOL_MISSING;
	return PROTOCOL_ERROR;
}

enum protocol_word
protocol_answer_word(const struct reply *reply)
{
	static const struct {
		const char *text;
		enum protocol_word word;
	} words[] = {
		{ "OK", PROTOCOL_OK },
		{ "EPOCH", PROTOCOL_EPOCH },
		{ "CURSOR", PROTOCOL_CURSOR },
		{ "NEED", PROTOCOL_NEED },
		{ "STALE", PROTOCOL_STALE },
		{ "GONE", PROTOCOL_GONE },
		{ "REATTACH", PROTOCOL_REATTACH },
		{ "HELD", PROTOCOL_HELD },
		{ "TOKEN", PROTOCOL_TOKEN },
	};
	const struct reply *first = reply_at(reply, 0);

	if (reply->kind == REPLY_ERROR)
		return error_word(reply->text);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (reply_is(first, words[i].text))
			return words[i].word;
	return PROTOCOL_STRANGE;
}

uint64_t
protocol_answer_now_ms(const struct reply *reply)
{
	int64_t now;

	if (!reply_is(reply_at(reply, 0), "OK"))
		return 0;
	now = reply_integer(reply_at(reply, 1), 0);
	return now > 0 ? (uint64_t)now : 0;
}

/* ---- numbers out of replies ------------------------------------------------------ */

static uint64_t
take_unsigned(const struct reply *reply, size_t i, uint64_t max, bool *bad)
{
	int64_t value = reply_integer(reply_at(reply, i), -1);

	if (value < 0 || (uint64_t)value > max) {
		*bad = true;
		return 0;
	}
	return (uint64_t)value;
}

static struct id128
take_id(const struct reply *reply, size_t i, bool *bad)
{
	struct id128 id = ID_NONE;

	if (id_decode(reply_text(reply_at(reply, i)), &id) < 0)
		*bad = true;
	return id;
}

/* ---- claim and settle ------------------------------------------------------------ */

static int
take_claim(const struct reply *reply, size_t runs_from, struct protocol_claim *ret_claim)
{
	struct protocol_claim claim = { 0 };
	const struct reply *refused = reply_at(reply, 3);
	bool bad = false;

	if (!reply_is(reply_at(reply, 0), "OK") || refused->kind != REPLY_ARRAY ||
	    refused->count % 2 != 0 || reply->count < runs_from)
		return ERR_MALFORMED;
	claim.now_ms = take_unsigned(reply, 1, INT64_MAX, &bad);
	claim.sleep_ms = take_unsigned(reply, 2, INT64_MAX, &bad);
	if (bad)
		return ERR_MALFORMED;
	claim.refused = refused;
	claim.refused_count = refused->count / 2;
	claim.runs = reply->items + runs_from;
	claim.runs_count = reply->count - runs_from;

	*ret_claim = claim;
	return 0;
}

int
protocol_answer_claim(const struct reply *reply, struct protocol_claim *ret_claim)
{
	return take_claim(reply, 4, ret_claim);
}

int
protocol_answer_settle(const struct reply *reply, struct protocol_claim *ret_claim)
{
	const struct reply *problems = reply_at(reply, 4);
	struct protocol_claim claim;
	int err;

	if (problems->kind != REPLY_ARRAY || problems->count % 3 != 0)
		return ERR_MALFORMED;
	err = take_claim(reply, 5, &claim);
	if (err < 0)
		return err;
	claim.problems = problems;
	claim.problems_count = problems->count / 3;

	*ret_claim = claim;
	return 0;
}

#define RUN_HEAD 9 /* words of a run before its elements */

int
protocol_answer_run(const struct protocol_claim *claim, size_t i,
                    struct protocol_run *ret_run)
{
	const struct reply *reply;
	struct protocol_run run = { 0 };
	struct span role;
	bool bad = false;

	VERIFY(i < claim->runs_count);
	reply = &claim->runs[i];
	if (reply->kind != REPLY_ARRAY || reply->count <= RUN_HEAD)
		return ERR_MALFORMED;
	if (protocol_parse_lane_id(reply_text(reply_at(reply, 0)), &run.lane) < 0)
		return ERR_MALFORMED;
	if (reply_text(reply_at(reply, 1)).len > 0) /* a ticket may belong to no family */
		run.family = take_id(reply, 1, &bad);
	role = reply_text(reply_at(reply, 2));
	run.generation = take_unsigned(reply, 3, INT64_MAX, &bad);
	run.px = reply_text(reply_at(reply, 4));
	run.marks = (uint32_t)take_unsigned(reply, 5, 9, &bad);
	run.begin = take_unsigned(reply, 6, 1, &bad) == 1;
	run.leader_ms = take_unsigned(reply, 7, INT64_MAX, &bad);
	run.tokens = take_unsigned(reply, 8, INT64_MAX, &bad);
	if (bad || role.len != 1 || !protocol_is_role(role.data[0]))
		return ERR_MALFORMED;
	run.role = (enum protocol_role)role.data[0];
	run.elements = reply->items + RUN_HEAD;
	run.elements_count = reply->count - RUN_HEAD;

	*ret_run = run;
	return 0;
}

static int
take_problem(const struct reply *items, bool has_word,
             struct protocol_problem *ret_problem)
{
	int64_t slot = reply_integer(&items[0], -1);

	if (slot < 0 || slot > UINT32_MAX)
		return ERR_MALFORMED;
	*ret_problem = (struct protocol_problem){
		.slot = (uint32_t)slot,
		.word = has_word ? reply_text(&items[1]) : SPAN(""),
		.held = reply_text(&items[has_word ? 2 : 1]),
	};
	return 0;
}

int
protocol_answer_refusal(const struct protocol_claim *claim, size_t i,
                        struct protocol_problem *ret_problem)
{
	VERIFY(i < claim->refused_count);
	return take_problem(&claim->refused->items[i * 2], false, ret_problem);
}

int
protocol_answer_problem(const struct protocol_claim *claim, size_t i,
                        struct protocol_problem *ret_problem)
{
	VERIFY(i < claim->problems_count);
	return take_problem(&claim->problems->items[i * 3], true, ret_problem);
}

bool
protocol_answer_problem_next(const struct reply *reply, size_t i,
                             struct protocol_problem *ret_problem)
{
	size_t at = 2 + i * 3;

	if (reply->kind != REPLY_ARRAY || reply->count < at + 3)
		return false;
	return take_problem(&reply->items[at], true, ret_problem) == 0;
}

/* ---- attach ---------------------------------------------------------------------- */

int
protocol_answer_attach(const struct reply *reply, uint64_t *ret_connection)
{
	int64_t connection = reply_integer(reply_at(reply, 2), -1);

	if (!reply_is(reply_at(reply, 0), "OK") || connection < 0)
		return ERR_MALFORMED;
	*ret_connection = (uint64_t)connection;
	return 0;
}

bool
protocol_answer_slot(const struct reply *reply, size_t i, uint32_t *ret_slot,
                     struct protocol_lease *ret_lease)
{
	const struct reply *item = reply_at(reply, 3 + i);
	int64_t slot = reply_integer(reply_at(item, 0), -1);

	if (slot < 0 || slot > UINT32_MAX)
		return false;
	if (protocol_record_parse_lease(reply_text(reply_at(item, 1)), ret_lease) < 0)
		*ret_lease =
			(struct protocol_lease){ .role = PROTOCOL_PLAIN, .band = 'n' };
	*ret_slot = (uint32_t)slot;
	return true;
}

/* ---- grant and glance ------------------------------------------------------------ */

bool
protocol_answer_granted(const struct reply *reply, size_t i,
                        struct protocol_granted *ret_granted)
{
	const struct reply *item = reply_at(reply, 2 + i);
	bool bad = false;
	struct protocol_granted granted = {
		.lane = reply_text(reply_at(item, 0)),
		.done = reply_is(reply_at(item, 1), "done"),
		.generation = take_unsigned(item, 2, INT64_MAX, &bad),
		.in_use = (uint32_t)take_unsigned(item, 3, UINT32_MAX, &bad),
		.bits = (uint32_t)take_unsigned(item, 4, UINT32_MAX, &bad),
		.head_ms = take_unsigned(item, 5, INT64_MAX, &bad),
	};

	if (bad)
		return false;
	*ret_granted = granted;
	return true;
}

bool
protocol_answer_glance(const struct reply *reply, size_t i,
                       struct protocol_glance *ret_glance)
{
	const struct reply *item = reply_at(reply, 2 + i);
	bool bad = false;
	struct protocol_glance glance = {
		.family = take_id(item, 0, &bad),
		.backlog = take_unsigned(item, 1, INT64_MAX, &bad),
		.in_use = (uint32_t)take_unsigned(item, 2, UINT32_MAX, &bad),
		.head_ms = take_unsigned(item, 3, INT64_MAX, &bad),
	};

	if (bad)
		return false;
	*ret_glance = glance;
	return true;
}
