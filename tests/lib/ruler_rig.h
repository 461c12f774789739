/* ruler_rig.h - a ruler on the bench: its calls by name, answers written by hand.
 *
 *   rig_rule(&rig);                            until it rules, in an empty namespace
 *   rig_inbox(&rig, "[[7-0 [upstream claude body {}]]]");
 *   call = rig_expect(&rig, "admit");          steps until that call is out
 *   ck_assert_str_eq(rig_word(call, 2), "7-0");
 *   rig_answer(&rig, call, "[OK 1000]");
 *
 * Calls of functions go by the function's name, others by their command and, for reads,
 * what they read: "XREAD jobs", "HSCAN families".  Words are those behind the protocol
 * number, or behind the command.
 *
 * Answers are written in a line (written_reply.h): "[OK 5 [] [a b]]", "!ERR what".
 *
 * What a test does not answer itself is answered as an idle Redis would (rig_idle). */
#ifndef TESTS_LIB_RULER_RIG_H
#define TESTS_LIB_RULER_RIG_H

#include "scheduler/ruler.h"
#include "scheduler/ruler_view.h"

#define RIG_CALLS_MAX 512
#define RIG_OWNER     "3:00000000000000ab"

/* What HMGET meta finds: the inbox was read up to 5-0, the events up to 1-0. */
#define RIG_META "[0123456789abcdef0123456789abcdef '5-0 0' 1-0 on ~]"

/* The fields of an entry that has no prefix to speak of. */
#define RIG_SMALL "[upstream claude body '{\"model\":\"m\",\"messages\":[]}']"

/* A program's main function (suite.h), with its own `rig` anew for each test. */
#define RIG_SUITE_MAIN(name, ...)   \
	static void open_rig(void)  \
	{                           \
		rig_init(&rig);     \
	}                           \
	static void close_rig(void) \
	{                           \
		rig_fini(&rig);     \
	}                           \
	SUITE_MAIN_AROUND(name, open_rig, close_rig, __VA_ARGS__)

struct rig_call {
	uint64_t tag;
	char name[48];
	char **words;
	uint32_t count;
	bool answered;
};

struct rig {
	struct ruler_config config;
	struct ruler_upstream upstream;
	struct ruler_model model;
	struct ruler *ruler;
	struct call_list list;
	struct rig_call calls[RIG_CALLS_MAX];
	uint32_t calls_count;
	uint64_t now_ms;
	uint64_t trace; /* hash of all words ever sent */
	char *quiet[8]; /* calls that rig_idle leaves alone */
	uint32_t quiet_count;
	char notes[16384];
};

void rig_init(struct rig *rig);
void rig_fini(struct rig *rig);
void rig_anew(struct rig *rig); /* one after the other: as after a restart */

/* Steps until there is nothing left to do now. */
void rig_step(struct rig *rig);

/* Lets time pass in steps of the ruler's own deadlines, answering as an idle Redis. */
void rig_pass(struct rig *rig, uint64_t ms);

/* Answers what an idle Redis would, except calls named by rig_hold. */
void rig_idle(struct rig *rig);
bool rig_answer_idly(struct rig *rig, struct rig_call *call); /* this one */
void rig_hold(struct rig *rig, const char *name);

/* The oldest unanswered call of that name, or NULL. */
struct rig_call *rig_find(struct rig *rig, const char *name);

/* The counted group of an admit: how many items, and where they begin. */
uint32_t rig_group(const struct rig_call *admit, char letter, uint32_t *ret_count);
uint32_t rig_group_count(const struct rig_call *admit, char letter);

/* How many of that name went out so far, answered or not. */
uint32_t rig_count(const struct rig *rig, const char *name);

/* Calls that are out now will never be answered. */
void rig_forget(struct rig *rig);

/* The same as rig_find, letting up to 5 s pass; fails the test if it does not come. */
struct rig_call *rig_expect(struct rig *rig, const char *name);
const char *rig_word(const struct rig_call *call, uint32_t i);
uint32_t rig_number(const struct rig_call *call, uint32_t i);

/* The position of a word at or behind `from`, or UINT32_MAX. */
uint32_t rig_position(const struct rig_call *call, const char *word, uint32_t from);

void rig_answer(struct rig *rig, struct rig_call *call, const char *text);

/* Connects, and gives it the rule; it reaps first. */
void rig_take_rule(struct rig *rig);

/* Connects and answers until it rules; `families` and `lanes` are what HSCAN finds. */
void rig_rule(struct rig *rig);
void rig_rule_over(struct rig *rig, const char *families, const char *lanes);

/* Answers the next read of the inbox with these entries: "[[id [field value …]] …]". */
void rig_inbox(struct rig *rig, const char *entries);

/* Answers the next read of events with these: "[id [e lines]] …"; with one that says that
 * a worker of the pool `default` is there, with 8 slots. */
void rig_events(struct rig *rig, const char *entries);
void rig_hello(struct rig *rig);

/* An entry whose system prompt, 2,000 times that letter, is worth its own segment; and
 * the same in the inbox. */
const char *rig_large_entry(const char *id, char letter);
void rig_send_large(struct rig *rig, const char *id, char letter);

/* How far it is, and whether a note ever said that. */
enum ruler_phase rig_phase(const struct rig *rig);
bool rig_has_said(const struct rig *rig, const char *text);

#endif
