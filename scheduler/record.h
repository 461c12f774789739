/* record.h - what the core was told since it began, so that it can be told again.
 *
 *   restart ─► event, decision, event, decision, ...        bounded, newest kept
 *                 │        └ a hash of the commands
 *                 └ the time, and what the event says
 *
 * The core is a function of its events, and a new one begins with each rebuild: so the
 * events since then are all there is to its decisions (docs/decisions/0041, 0061).  They
 * hold ids, counts and times; no body, no text of a job and no key ever reaches the core.
 *
 * The memory has two halves.  When both are full the older one is dropped: what is left
 * tells what happened last, but cannot be played any more (`torn`), until the next
 * restart.  RECORD_SIZE is an hour of a thousand warm jobs a minute, or five minutes of a
 * thousand events a second.
 *
 * A record is for the program that wrote it: it holds structs as they are in memory. */
#ifndef SCHEDULER_RECORD_H
#define SCHEDULER_RECORD_H

#include "common/base.h"
#include "scheduler/core/core.h"

#define RECORD_SIZE ((size_t)32 << 20)

enum {
	RECORD_PARTS = 3, /* header, older half, newer half */
	RECORD_BUILD_SIZE = 32,
};

struct record_header {
	char magic[16];
	char build[RECORD_BUILD_SIZE]; /* version of the program */
	uint32_t event_size, config_size, command_size;
	uint32_t torn;
	uint64_t steps; /* since the core began, those that were dropped too */
	uint64_t length;
	struct core_config config;
};

struct record;

/* `size` is shared by both halves.  NULL when memory is out. */
struct record *record_create(size_t size, const char *build);
struct record *record_destroy(struct record *record); /* answers NULL, takes NULL */

/* A core begins with this configuration: what was kept of the former one goes. */
void record_restart(struct record *record, const struct core_config *config);

/* Around each step; the event is kept even if the step never ends. */
void record_event(struct record *record, uint64_t now_ms, const struct event *event);
void record_decision(struct record *record, const struct command_list *commands);

/* What a file of it consists of, one behind the other; borrowed until the next call.
 * Allocates nothing and calls nobody, so a signal handler may use it. */
void record_parts(struct record *record, struct span ret_parts[RECORD_PARTS]);

/* ---- playing ------------------------------------------------------------------------
 */

struct record_step {
	uint64_t now_ms;
	struct event event;
	bool decided; /* false: the step never ended */
	uint64_t hash;
};

/* Reads the header; `ret_rest` is where the steps begin.  ERR_MALFORMED if it is none of
 * ours, ERR_LIMIT if another build wrote it. */
MUST_USE int record_open(struct span file, struct record_header *ret_header,
                         struct span *ret_rest);

/* The next step; false at the end. */
bool record_next(struct span *rest, struct record_step *ret_step);

uint64_t record_hash(const struct command_list *commands);

#endif
