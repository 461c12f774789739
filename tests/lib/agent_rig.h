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
 * Answers are written in a line (written_reply.h): "[OK 5 0 [] [a b]]", "!ERR what". */
#ifndef TESTS_LIB_AGENT_RIG_H
#define TESTS_LIB_AGENT_RIG_H

#include "worker/core/agent.h"

#define RIG_TEXT_SIZE 65536
#define RIG_LANE      "0000000000000000000000000000000a.0"
#define RIG_FAMILY    "0000000000000000000000000000000b"
#define RIG_NONE      "- - - - - -" /* usage of which nothing is known */

/* Answers to a claim, and in them one run, or a ticket for a warm-up; a row of the table
 * that an attach shows. */
#define RIG_NOTHING     "=OK 501000 1000\n\n\n"
#define RIG_GIVEN(runs) RIG_NOTHING runs
#define RIG_RUN(role, begin, leader, ids) \
	RIG_LANE " " RIG_FAMILY " " role " 1 - 0 " begin " " leader " 0 " ids
#define RIG_TICKET(leader) RIG_RUN("t", "1", leader, "w:" RIG_LANE ":1")
#define RIG_LEASE(slot, q, id) \
	"[" slot " " q "|" RIG_FAMILY "|" RIG_LANE "|" id "|p|0|0,0|0|1|n]"

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

/* Loses it and connects again; what is called then is swallowed. */
void rig_reconnect(struct rig *rig);

/* Answers the oldest unanswered call, then steps. */
void rig_answer(struct rig *rig, const char *text);

/* The same without a step, for several events in one turn. */
void rig_answer_only(struct rig *rig, const char *text);

/* Connects, greets as connection 1, and swallows the first claim as empty. */
void rig_greet(struct rig *rig);

/* A new agent with so many slots that is greeted, and found nothing to do yet. */
void rig_begin(struct rig *rig, uint32_t slots);

/* The same with a job in every slot, whose requests have gone out. */
void rig_begin_busy(struct rig *rig, uint32_t slots);

/* There may be something for it.  Then steps. */
void rig_wake(struct rig *rig);

/* Wakes it and answers its claim with plain jobs "1-1", "1-2", …, or with a RIG_RUN. */
void rig_give(struct rig *rig, uint32_t count);
void rig_give_run(struct rig *rig, const char *run);

/* The request of the run last started in the slot goes out; the run ends.  Then steps. */
void rig_send(struct rig *rig, uint32_t slot);
void rig_end(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle);
void rig_end_with(struct rig *rig, uint32_t slot, const struct agent_outcome *outcome);

/* The same without a step. */
void rig_end_only(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle);

/* What was emitted since the last look. */
const char *rig_calls(struct rig *rig);
const char *rig_commands(struct rig *rig);

#endif
