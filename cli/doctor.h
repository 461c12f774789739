/* doctor.h - `warmq doctor`: what is wrong with a queue, where, and what to do now.
 *
 *   doctor_server   Redis itself: version, disk, memory, clock, the functions
 *   doctor_queue    the books: types of keys, cursor, rule, counts, sessions
 *   doctor_jobs     what people did or have to do: dead, parked, paused, switched off
 *   doctor_pools    jobs without a worker, or an upstream, that could run them
 *   doctor_oldest   what has waited longest
 *   doctor_results  paid results that wait on this machine
 *   doctor_repair   the few things that a program may put right by itself
 *
 * Looking changes nothing.  Each look is plain commands, so a queue at work may move
 * between two of them: what must agree is read in one transaction or in one function. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "cli/store.h"
#include "common/io/state_dir.h"

#define DOCTOR_COMMAND_SIZE 512

enum doctor_level {
	DOCTOR_FINE,
	DOCTOR_WARNING, /* it works; somebody should look */
	DOCTOR_BAD,     /* work is lost, wrong, or stands still */
	DOCTOR_LEVEL_COUNT,
};

struct doctor {
	struct store *store;
	char redis_cli[DOCTOR_COMMAND_SIZE /
	               2];                /* "redis-cli -s …", without a password */
	char queue[STATE_DIR_QUEUE_SIZE]; /* as the files of workers name it */
	uint64_t now_ms;                  /* of Redis */
	bool is_replica, has_functions, is_sound; /* sound: all keys have their type */
	json_t *findings;
	uint32_t counts[DOCTOR_LEVEL_COUNT];
};

/* Adds a finding.  `action` says what to do, and is NULL where nothing has to be done. */
void doctor_say(struct doctor *doctor, enum doctor_level level, const char *check,
                const char *action, const char *format, ...) PRINTF(5, 6);

/* A command line of redis-cli for this Redis, as an action. */
const char *doctor_command(const struct doctor *doctor,
                           char ret_text[DOCTOR_COMMAND_SIZE], const char *format, ...)
	PRINTF(3, 4);

/* CLI_OK, or the code to leave with: the connection is gone. */
MUST_USE int doctor_look_at_server(struct doctor *doctor);
MUST_USE int doctor_look_at_queue(struct doctor *doctor);
MUST_USE int doctor_look_at_jobs(struct doctor *doctor);

/* Jobs that wait in a pool without a worker, or for an upstream; also a part of the look
 * at jobs. */
MUST_USE int doctor_look_at_pools(struct doctor *doctor);

/* What has waited longest; likewise. */
MUST_USE int doctor_look_at_oldest(struct doctor *doctor);

/* Of this machine's files only; Redis is not asked. */
void doctor_look_at_results(struct doctor *doctor);

bool doctor_can_repair(const char *what);

/* `what`: "cursor", "books", "records" or "jobs". */
MUST_USE int doctor_repair(struct doctor *doctor, const char *what);

#endif
