/* Calls as Redis is to read them, and the answers of its functions. */
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "tests/lib/suite.h"
#include "tests/lib/written_reply.h"

#define NODE "00112233445566778899aabbccddeeff"
#define LANE NODE ".0"

/* ---- calls ----------------------------------------------------------------------- */

static struct call_list *
list_of_room(void)
{
	static struct call calls[4];
	static struct call_arg args[64];
	static char bytes[4096];
	static struct call_list list = {
		.calls = calls,
		.args = args,
		.bytes = bytes,
		.call_max = ARRAY_SIZE(calls),
		.arg_max = ARRAY_SIZE(args),
		.byte_max = sizeof(bytes),
	};

	call_reset(&list);
	return &list;
}

static void
assert_words(const struct call_list *list, uint32_t call, const char *want)
{
	struct span rest = span_from(want), word;

	for (uint32_t i = 0; i < list->calls[call].arg_count; i++) {
		struct span got = call_arg(list, &list->calls[call], i);

		ck_assert_msg(protocol_cut(&rest, ' ', &word), "no word %u", i);
		ck_assert_msg(span_equals(got, word) ||
		                      (got.len == 0 && span_equals(word, SPAN("''"))),
		              "word %u: '%.*s'", i, (int)got.len, got.data);
	}
	ck_assert(!rest.data);
}

START_TEST(protocol_call_claim_has_the_words_of_the_protocol)
{
	struct call_list *list = list_of_room();
	uint32_t slots[] = { 4, 0 };

	protocol_call_claim(list, 7, SPAN("{warmq}"), (struct protocol_session){ 255, 3 },
	                    90, slots, 2);
	ck_assert_uint_eq(list->calls[0].tag, 7);
	assert_words(list, 0,
	             "FCALL warmq_claim 1 {warmq}:meta 1 00000000000000ff 3 90 4 0");
}
END_TEST

/* One job is settled, of all that a call settles or going on, and a claim is behind it.
 */
static const struct call_list *
settle_one(bool goes_on, const uint32_t *slots, uint32_t slots_count)
{
	struct call_list *list = list_of_room();
	struct protocol_settlement job = {
		.slot = 4,
		.q = 90,
		.usage = protocol_usage_none(),
		.delivery = { SPAN("me"), 60000, SPAN("{}") },
	};

	protocol_call_settle(list, 1, SPAN("w"), (struct protocol_session){ 1, 2 }, 1,
	                     goes_on);
	protocol_call_settle_job(list, &job);
	protocol_call_claim_into(list, 91, slots, slots_count);
	return list;
}

START_TEST(protocol_call_settle_claims_behind_its_jobs)
{
	uint32_t slots[] = { 4 };
	const struct call_list *list = settle_one(false, slots, 1);

	ck_assert_uint_eq(list->calls[0].arg_count, 5 + 3 + 6 + 2);
	SUITE_SPAN(call_arg(list, &list->calls[0], 10), "- - - - - -");
	SUITE_SPAN(call_arg(list, &list->calls[0], 7), "1");
	SUITE_SPAN(call_arg(list, &list->calls[0], 15), "4");
}
END_TEST

START_TEST(protocol_call_settle_that_goes_on_names_no_slot_twice)
{
	const struct call_list *list = settle_one(true, NULL, 0);

	ck_assert_uint_eq(list->calls[0].arg_count, 5 + 3 + 6 + 1);
	SUITE_SPAN(call_arg(list, &list->calls[0], 7), "=1");
	SUITE_SPAN(call_arg(list, &list->calls[0], 14), "91");
}
END_TEST

START_TEST(protocol_call_grant_keeps_what_is_not_named)
{
	struct call_list *list = list_of_room();
	struct protocol_grant grant = {
		.lane = SPAN(LANE),
		.family = SPAN(""),
		.px = SPAN("x"),
		.pool = SPAN("p"),
		.budget = SPAN("b"),
		.generation = 3,
		.generation_new = 4,
		.gate = 1,
		.reason = 0,
		.credits = 1,
		.credit_role = 1,
		.window = PROTOCOL_KEEP,
		.rank = 2,
		.until_ms = PROTOCOL_KEEP,
		.tokens = PROTOCOL_KEEP,
		.life_ms = 5,
		.ticket = 0,
		.ticket_deadline_ms = PROTOCOL_KEEP,
		.marks = 1,
	};
	struct protocol_grant_budget budget = {
		SPAN("b"), 32, PROTOCOL_KEEP, 1, 2, 3, 5
	};

	protocol_call_grant(list, 1, SPAN("w"), SPAN("5:ab"), SPAN("9-0"), 1);
	protocol_call_grant_lane(list, &grant);
	protocol_call_grant_budgets(list, 1);
	protocol_call_grant_budget(list, &budget);
	assert_words(list, 0,
	             "FCALL warmq_grant 1 w:meta 1 5:ab 9-0 1 " LANE
	             " '' x p b 3 4 1 0 1 1 - 2 - - 5 0 - 1 1 b 32 - 1 2 3 5");
}
END_TEST

/* ---- answers --------------------------------------------------------------------- */

START_TEST(protocol_answer_of_a_claim_is_read)
{
	static struct written_reply written;
	const struct reply *reply = written_reply_read(
		&written, "=OK 1700 20\n4 lease 5 other\n6 TOKEN - 7 ENDED x\n" LANE
			  " " NODE " l 3 " NODE " 1 1 18000 30012 1-2 1-3~\n" LANE
			  " - t 3 - 0 1 0 0 w:" LANE ":3");
	struct protocol_claim claim;
	struct protocol_run got;
	struct protocol_problem problem;
	struct span element;
	bool is_sound;

	ck_assert_int_eq(protocol_answer_word(reply), PROTOCOL_OK);
	ck_assert_uint_eq(protocol_answer_now_ms(reply), 1700);
	ck_assert_int_eq(protocol_answer_claim(reply, &claim), 0);
	ck_assert_uint_eq(claim.sleep_ms, 20);
	ck_assert(protocol_answer_run(&claim.runs, &got, &is_sound) && is_sound);
	ck_assert_int_eq(got.role, PROTOCOL_LEAD);
	ck_assert(got.begin);
	ck_assert_uint_eq(got.leader_ms, 18000);
	ck_assert_uint_eq(got.tokens, 30012);
	ck_assert(protocol_answer_element(&got.elements, &element));
	ck_assert(protocol_answer_element(&got.elements, &element));
	SUITE_SPAN(element, "1-3~");
	ck_assert(!protocol_answer_element(&got.elements, &element));
	ck_assert(protocol_answer_run(&claim.runs, &got, &is_sound) && is_sound);
	ck_assert(id_equals(got.family, ID_NONE) && got.px.len == 0);
	ck_assert(!protocol_answer_run(&claim.runs, &got, &is_sound));
	ck_assert(protocol_answer_refusal(&claim.refused, &problem));
	ck_assert_uint_eq(problem.slot, 4);
	SUITE_SPAN(problem.held, "lease");
	ck_assert(protocol_answer_refusal(&claim.refused, &problem));
	ck_assert(!protocol_answer_refusal(&claim.refused, &problem));
	ck_assert(protocol_answer_problem(&claim.problems, &problem));
	SUITE_SPAN(problem.word, "TOKEN");
	ck_assert_uint_eq(problem.held.len, 0);
	ck_assert(protocol_answer_problem(&claim.problems, &problem));
	SUITE_SPAN(problem.held, "x");
	ck_assert(!protocol_answer_problem(&claim.problems, &problem));
}
END_TEST

START_TEST(protocol_answer_of_a_claim_that_is_none_is_refused)
{
	static const char *const broken[] = {
		"",           "OK",         "OK 1 2",         "OK 1 2\n",
		"OK x 2\n\n", "OK 1\n\n\n", "OK 1 2 3\n\n\n", "KO 1 2\n\n\n",
	};
	static const char *const runs[] = {
		"x",
		LANE " - p 1 - 0 0 0 0",
		LANE " - pp 1 - 0 0 0 0 1-1",
		LANE " - p 1 - 0 2 0 0 1-1",
		LANE " - p 1 - 10 0 0 0 1-1",
		"x - p 1 - 0 0 0 0 1-1",
		LANE " x p 1 - 0 0 0 0 1-1",
	};
	struct protocol_claim claim;
	struct protocol_run run;
	bool is_sound;

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		const struct reply reply = { .kind = REPLY_TEXT,
			                     .text = span_from(broken[i]) };

		ck_assert_int_eq(protocol_answer_claim(&reply, &claim), ERR_MALFORMED);
	}
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct span text = span_from(runs[i]);

		ck_assert(protocol_answer_run(&text, &run, &is_sound));
		ck_assert(!is_sound);
	}
}
END_TEST

START_TEST(protocol_answer_words_are_told_apart)
{
	static const struct {
		const char *text;
		enum protocol_word word;
	} errors[] = {
		{ "ERR Function not found", PROTOCOL_MISSING },
		{ "LOADING Redis is loading the dataset in memory", PROTOCOL_LOADING },
		{ "ERR warmq claim: q: Function not found", PROTOCOL_ERROR },
		{ "OOM command not allowed", PROTOCOL_ERROR },
	};
	static struct written_reply written;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct reply reply = { .kind = REPLY_ERROR,
			               .text = span_from(errors[i].text) };

		ck_assert_int_eq(protocol_answer_word(&reply), errors[i].word);
	}
	ck_assert_int_eq(protocol_answer_word(written_reply_read(&written, "[GONE]")),
	                 PROTOCOL_GONE);
	ck_assert_int_eq(protocol_answer_word(written_reply_read(&written, "[HELLO]")),
	                 PROTOCOL_STRANGE);
	ck_assert_int_eq(protocol_answer_word(written_reply_read(&written, "[]")),
	                 PROTOCOL_STRANGE);
}
END_TEST

START_TEST(protocol_answer_of_attach_lists_the_slots)
{
	static struct written_reply written;
	const struct reply *reply =
		written_reply_read(&written, "[OK :1 :8 [:0 17|" NODE "|" LANE
	                                     "|1-2|p|1|1,1|9|1|n] [:5 junk]]");
	struct protocol_lease lease;
	uint64_t connection;
	uint32_t slot;

	ck_assert_int_eq(protocol_answer_attach(reply, &connection), 0);
	ck_assert_uint_eq(connection, 8);
	ck_assert(protocol_answer_slot(reply, 0, &slot, &lease));
	ck_assert_uint_eq(lease.q, 17);
	ck_assert(protocol_answer_slot(reply, 1, &slot, &lease));
	ck_assert_uint_eq(slot, 5);
	ck_assert_uint_eq(lease.q, 0);
	ck_assert(!protocol_answer_slot(reply, 2, &slot, &lease));
}
END_TEST

START_TEST(protocol_answer_of_grant_and_glance_is_read)
{
	static struct written_reply written;
	const struct reply *reply = written_reply_read(
		&written,
		"[OK :1 [" LANE " refused :4 :2 :8 :1700] [" NODE " :55 :2 :1700]]");
	struct protocol_granted granted;
	struct protocol_glance glance;

	ck_assert(protocol_answer_granted(reply, 0, &granted));
	ck_assert(!granted.done);
	ck_assert_uint_eq(granted.generation, 4);
	ck_assert(!protocol_answer_granted(reply, 2, &granted));
	ck_assert(protocol_answer_glance(reply, 1, &glance));
	ck_assert_uint_eq(glance.backlog, 55);
	ck_assert(!protocol_answer_glance(reply, 0, &glance));
}
END_TEST

SUITE_MAIN("protocol_call", protocol_call_claim_has_the_words_of_the_protocol,
           protocol_call_settle_claims_behind_its_jobs,
           protocol_call_settle_that_goes_on_names_no_slot_twice,
           protocol_call_grant_keeps_what_is_not_named,
           protocol_answer_of_a_claim_is_read,
           protocol_answer_of_a_claim_that_is_none_is_refused,
           protocol_answer_words_are_told_apart,
           protocol_answer_of_attach_lists_the_slots,
           protocol_answer_of_grant_and_glance_is_read)
