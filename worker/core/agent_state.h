/* agent_state.h - what an agent remembers; for the agent's own files.
 *
 *   agent.c          what the shell calls; order of a step
 *   agent_receive.c  reads answers
 *   agent_lease.c    how leases and runs begin, end and part; the table after attach
 *   agent_timer.c    what time alone does
 *   agent_send.c     builds calls from what the slots are filed under
 *   agent_claim.c    of these, those that ask for work
 *   agent_call.c     what every call needs
 *   agent_command.c  and commands
 *
 *   down ─ connected ─► up ─ hello or attach ─► greeting ─► ready ─ bye ─► leaving
 *     ▲                 ▲                                     │
 *     └─ lost, closed   └──── gone, reattach, refused slots ──┘      (its phase) */
#ifndef WORKER_CORE_AGENT_STATE_H
#define WORKER_CORE_AGENT_STATE_H

#include "common/codec/protocol_call.h"
#include "common/heap.h"
#include "common/offset.h"
#include "common/prng.h"
#include "worker/core/flight.h"
#include "worker/core/result.h"
#include "worker/core/shun.h"
#include "worker/core/slot.h"

#define AGENT_NOTES_MAX     32
#define AGENT_NOTE_TEXT     200
#define AGENT_QUIET_MS      100  /* a beat waits so long for a moment without calls */
#define AGENT_SPOOL_MS      1000 /* an undelivered result of this age goes to disk */
#define AGENT_DISK_MS       2000 /* and is tried again so long after the disk refused it */
#define AGENT_SLEEP_MS_MAX  10000
#define AGENT_KEPT_SIZE_MAX ((size_t)64 << 20)

enum agent_phase {
	AGENT_DOWN,
	AGENT_UP,
	AGENT_GREETING,
	AGENT_READY,
	AGENT_LEAVING,
	AGENT_OVER,
};

struct agent_note_entry {
	enum agent_note note;
	uint64_t number;
	uint32_t text_len;
	char text[AGENT_NOTE_TEXT];
};

struct agent {
	struct agent_config config;
	enum agent_phase phase;
	uint64_t now_ms;
	struct prng prng;
	struct offset offset;
	struct protocol_session session;
	uint64_t replaces;    /* still to be named by hello */
	bool has_session;     /* a hello of this nonce was sent */
	bool session_told;    /* AGENT_SESSION was said */
	bool missing_told;    /* that Redis has no functions; once is enough */
	bool close_due;       /* AGENT_CLOSE is to be said */
	bool attach_due;      /* the table has to be read again on this connection */
	bool is_dirty;        /* something may be due right now */
	uint64_t greet_at_ms; /* not before this, after an error */
	uint64_t heard_ms;    /* the last sign of life of a Redis that serves */
	uint64_t q_next;

	uint64_t renewed_ms; /* when the last beat, hello or attach that was answered left
	                      */
	uint64_t beat_at_ms;
	bool is_fenced;

	bool wake_pending;
	uint64_t poll_at_ms;

	struct shun_list shuns;
	bool shuns_told; /* Redis leaves their jobs out of our claims */
	bool shuns_ever; /* it may know some of this session, even if there are none now
	                  */

	uint64_t late_at_ms;
	uint32_t late_inherited; /* late results of an earlier process */
	bool late_more;          /* the shell has more of them */
	bool late_is_refused;    /* ahead of a greeting: by functions that are older */
	uint64_t spool_at_ms;
	uint64_t names_until_ms; /* settle names its slots: functions may be older */

	bool is_quiet;       /* told to claim nothing; outlives the session */
	bool is_dismissed;   /* told to stop */
	bool dismissed_told; /* AGENT_DISMISSED was said */

	bool is_stopping;
	uint64_t drain_until_ms;
	bool is_drained;  /* its runs were told to stop */
	bool is_finished; /* AGENT_FINISHED was said */

	struct slot_set slots;
	struct result_pool results;
	struct flight_ring flights;
	struct heap leaders; /* slot -> when its first event is overdue */
	struct agent_note_entry notes[AGENT_NOTES_MAX];
	uint32_t notes_first, notes_count;
	struct agent_job jobs[AGENT_BATCH]; /* handed out with AGENT_START */
	struct agent_stats stats;
};

/* Remembers something for the log; the oldest goes when there are too many. */
void agent_state_note(struct agent *agent, enum agent_note note, uint64_t number,
                      struct span text);

/* What is shunned has changed: the next beat says so, at once. */
void agent_state_tell_shuns(struct agent *agent);

/* May jobs be asked for, and runs begin? */
bool agent_state_is_willing(const struct agent *agent);

#endif
