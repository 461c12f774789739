/* agent_rig.h - a worker agent on the bench: written calls in, written answers out.
 *
 *   rig_connect(&rig);
 *   ck_assert_str_eq(rig_calls(&rig), "hello w p 4 * 30000 -\n");
 *   rig_answer(&rig, "[OK 5000 1]");
 *
 * Calls are printed one per line without FCALL, key, protocol number and nonce, numbers
 * and words as they are, empty words as '-'.  Commands likewise: "start 0 1 7-1",
 * "abort 0 1", "drop 9", "spool 9", "session", "close", "note gone 0", "finished".
 *
 * Answers are written as nested lists of blank separated words: "[OK 5 0 [] [a b]]".
 * '-' is an empty word.  A word in front of the list makes an error: "!ERR what". */
#ifndef TESTS_LIB_AGENT_RIG_H
#define TESTS_LIB_AGENT_RIG_H

#include "worker/core/agent.h"

#define RIG_TEXT_SIZE 65536
#define RIG_LANE      "0000000000000000000000000000000a.0"
#define RIG_FAMILY    "0000000000000000000000000000000b"
#define RIG_NONE      "- - - - - -" /* usage of which nothing is known */

/* What a late result says of its attempt: its lane, and a token that the seed draws. */
#define RIG_PAID(doubt) \
	RIG_LANE " " RIG_FAMILY " p " doubt "1546998764402558742.2 - - - - - -"

/* Of a test's own `rig`: exactly this was said since the last look. */
#define EXPECT_CALLS(text)    ck_assert_str_eq(rig_calls(&rig), text)
#define EXPECT_COMMANDS(text) ck_assert_str_eq(rig_commands(&rig), text)

enum rig_disk {
	RIG_DISK_WORKS,
	RIG_DISK_FULL,
	RIG_DISK_HANGS
};

struct rig {
	struct agent_config config;
	struct agent *agent;
	void *memory;
	struct call_list calls;
	struct agent_command commands[AGENT_COMMANDS_MIN];
	struct agent_output output;
	uint64_t now_ms;
	enum rig_disk disk;              /* what becomes of "spool" */
	uint64_t run_q[AGENT_SLOTS_MAX]; /* of the run last started in each slot */
	uint64_t tags[1024];             /* of calls not answered yet */
	uint32_t tags_first, tags_count;
	char calls_text[RIG_TEXT_SIZE];
	char commands_text[RIG_TEXT_SIZE];
	char answer[RIG_TEXT_SIZE];
};

struct agent_config rig_config(uint32_t slots);
void rig_init(struct rig *rig, const struct agent_config *config);
void rig_fini(struct rig *rig);

/* Steps until nothing is due now. */
void rig_step(struct rig *rig);

/* Lets time pass in the agent's own paces, stepping at every deadline on the way. */
void rig_pass(struct rig *rig, uint64_t ms);

void rig_connect(struct rig *rig);
void rig_lose(struct rig *rig);

/* Answers the oldest unanswered call, then steps.  "[OK 1 [2 3]]" is an array, "!text" an
 * error, "=text" one text. */
void rig_answer(struct rig *rig, const char *text);

/* The same without a step, for several events in one turn. */
void rig_answer_only(struct rig *rig, const char *text);

/* Connects, greets as connection 1, and swallows the first claim as empty. */
void rig_greet(struct rig *rig);

/* A new agent with so many slots that is greeted, and found nothing to do yet. */
void rig_begin(struct rig *rig, uint32_t slots);

/* Wakes it and answers its claim with plain jobs "1-1", "1-2", … */
void rig_give(struct rig *rig, uint32_t count);

/* The request of the run last started in the slot goes out; the run ends.  Then steps. */
void rig_send(struct rig *rig, uint32_t slot);
void rig_end(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle);

/* The same without a step. */
void rig_end_only(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle);

/* What was emitted since the last look. */
const char *rig_calls(struct rig *rig);
const char *rig_commands(struct rig *rig);

#endif
