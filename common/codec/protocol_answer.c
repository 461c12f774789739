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
	if (reply->kind == REPLY_TEXT && starts_with(reply->text, "OK "))
		return PROTOCOL_OK;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (reply_is(first, words[i].text))
			return words[i].word;
	return PROTOCOL_STRANGE;
}

/* The numbers behind the OK of a claim or a settle. */
static bool
take_head(struct span line, uint64_t *ret_now_ms, uint64_t *ret_sleep_ms)
{
	struct span ok, now, sleep;

	return protocol_cut(&line, ' ', &ok) && span_equals(ok, SPAN("OK")) &&
	       protocol_cut(&line, ' ', &now) && protocol_cut(&line, ' ', &sleep) &&
	       !line.data && text_parse_unsigned(now, INT64_MAX, ret_now_ms) == 0 &&
	       text_parse_unsigned(sleep, INT64_MAX, ret_sleep_ms) == 0;
}

uint64_t
protocol_answer_now_ms(const struct reply *reply)
{
	uint64_t now_ms = 0, sleep_ms;
	struct span text = reply_text(reply), line;
	int64_t now;

	if (reply->kind == REPLY_TEXT)
		return protocol_cut(&text, '\n', &line) &&
		                       take_head(line, &now_ms, &sleep_ms)
		               ? now_ms
		               : 0;
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

int
protocol_answer_claim(const struct reply *reply, struct protocol_claim *ret_claim)
{
	struct protocol_claim claim = { 0 };
	struct span text = reply_text(reply), line;

	if (!protocol_cut(&text, '\n', &line) ||
	    !take_head(line, &claim.now_ms, &claim.sleep_ms) ||
	    !protocol_cut(&text, '\n', &claim.refused) ||
	    !protocol_cut(&text, '\n', &claim.problems))
		return ERR_MALFORMED;
	claim.runs = text;

	*ret_claim = claim;
	return 0;
}

static bool
next_word(struct span *words, struct span *ret_word)
{
	return words->len > 0 && protocol_cut(words, ' ', ret_word);
}

/* A word that may be empty is a dash then. */
static struct span
dash_to_empty(struct span word)
{
	return span_equals(word, SPAN("-")) ? SPAN("") : word;
}

static uint64_t
take_word(struct span *words, uint64_t max, bool *bad)
{
	struct span word;
	uint64_t value = 0;

	if (!next_word(words, &word) || text_parse_unsigned(word, max, &value) < 0)
		*bad = true;
	return value;
}

/* "lane family role g px marks begin leader_ms p element…" */
static int
run_parse(struct span line, struct protocol_run *ret_run)
{
	struct protocol_run run = { 0 };
	struct span lane, family, role, px;
	bool bad = false;

	if (!next_word(&line, &lane) || !next_word(&line, &family) ||
	    !next_word(&line, &role) || role.len != 1 || !protocol_is_role(role.data[0]))
		return ERR_MALFORMED;
	run.role = (enum protocol_role)role.data[0];
	run.generation = take_word(&line, INT64_MAX, &bad);
	if (!next_word(&line, &px))
		return ERR_MALFORMED;
	run.px = dash_to_empty(px);
	run.marks = (uint32_t)take_word(&line, 9, &bad);
	run.begin = take_word(&line, 1, &bad) == 1;
	run.leader_ms = take_word(&line, INT64_MAX, &bad);
	run.tokens = take_word(&line, INT64_MAX, &bad);
	if (bad || line.len == 0 || protocol_parse_lane_id(lane, &run.lane) < 0)
		return ERR_MALFORMED;
	family = dash_to_empty(family); /* a ticket may belong to no family */
	if (family.len > 0 && id_decode(family, &run.family) < 0)
		return ERR_MALFORMED;
	run.elements = line;

	*ret_run = run;
	return 0;
}

bool
protocol_answer_run(struct span *runs, struct protocol_run *ret_run, bool *ret_is_sound)
{
	struct span line;

	if (runs->len == 0 || !protocol_cut(runs, '\n', &line))
		return false;
	*ret_is_sound = run_parse(line, ret_run) == 0;
	return true;
}

bool
protocol_answer_element(struct span *elements, struct span *ret_element)
{
	return next_word(elements, ret_element);
}

bool
protocol_answer_refusal(struct span *refused, struct protocol_problem *ret_problem)
{
	struct protocol_problem problem = { 0 };
	bool bad = false;

	problem.slot = (uint32_t)take_word(refused, UINT32_MAX, &bad);
	if (bad || !next_word(refused, &problem.held))
		return false;
	*ret_problem = problem;
	return true;
}

bool
protocol_answer_problem(struct span *problems, struct protocol_problem *ret_problem)
{
	struct protocol_problem problem = { 0 };
	bool bad = false;

	problem.slot = (uint32_t)take_word(problems, UINT32_MAX, &bad);
	if (bad || !next_word(problems, &problem.word) ||
	    !next_word(problems, &problem.held))
		return false;
	problem.held = dash_to_empty(problem.held);
	*ret_problem = problem;
	return true;
}

static int
take_problem(const struct reply *items, struct protocol_problem *ret_problem)
{
	int64_t slot = reply_integer(&items[0], -1);

	if (slot < 0 || slot > UINT32_MAX)
		return ERR_MALFORMED;
	*ret_problem = (struct protocol_problem){
		.slot = (uint32_t)slot,
		.word = reply_text(&items[1]),
		.held = reply_text(&items[2]),
	};
	return 0;
}

bool
protocol_answer_problem_next(const struct reply *reply, size_t i,
                             struct protocol_problem *ret_problem)
{
	size_t at = 2 + i * 3;

	if (reply->kind != REPLY_ARRAY || reply->count < at + 3)
		return false;
	return take_problem(&reply->items[at], ret_problem) == 0;
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
