/* state_dir.h - where workers keep paid results that Redis does not take, and what waits.
 *
 *   <state_dir>/worker.<n>/queue        whose results these are: namespace and Redis
 *                          <id>.result  one undelivered result
 *
 * worker/spool writes it; this is for whoever looks at it from outside, without its
 * locks: a worker that is at work may deliver what was counted here. */
#ifndef COMMON_IO_STATE_DIR_H
#define COMMON_IO_STATE_DIR_H

#include "common/base.h"
#include "common/io/redis_url.h"

#define STATE_DIR_DEFAULT     "/var/lib/warmq"
#define STATE_DIR_PATH_SIZE   1024
#define STATE_DIR_QUEUE_SIZE  512
#define STATE_DIR_WORKERS_MAX 1000

/* One directory in which results wait. */
struct state_dir_rest {
	const char *path;
	const char *queue; /* as state_dir_queue prints it; empty: not known */
	uint32_t results;
	uint64_t age_s; /* of the oldest */
};

/* The name of a queue, a line of text: "warmq at redis://127.0.0.1:6379". */
void state_dir_queue(const char *ns, const struct redis_url *url,
                     char ret_queue[STATE_DIR_QUEUE_SIZE]);

/* What the configuration says; but the default only if this user may write there, else a
 * directory of his own.  `ret_path` may be where the answer is. */
const char *state_dir_choose(const char *configured, char ret_path[STATE_DIR_PATH_SIZE]);

/* True for the name of a file that holds an undelivered result. */
bool state_dir_is_result(const char *name);

/* Whose results lie in this directory of a worker; empty if nobody has said. */
void state_dir_read_queue(const char *path, char ret_queue[STATE_DIR_QUEUE_SIZE]);

/* Tells of each directory in which results wait. */
void state_dir_look(const char *state_dir,
                    void (*tell)(const struct state_dir_rest *rest, void *data),
                    void *data);

#endif
