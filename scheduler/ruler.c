#include "scheduler/ruler.h"

#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_events.h"
#include "scheduler/ruler_grant.h"
#include "scheduler/ruler_inbox.h"
#include "scheduler/ruler_intern.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_prefix.h"
#include "scheduler/ruler_rebuild.h"
#include "scheduler/ruler_rule.h"
#include "scheduler/ruler_session.h"
#include "scheduler/ruler_state.h"
#include "scheduler/ruler_undecided.h"
#include "scheduler/ruler_unheld.h"
#include "scheduler/ruler_warm.h"

#include <stdlib.h>

#define EVENTS_PER_STEP 256
#define SEGMENTS_MAX    65536 /* kept for comparison, whatever their size */
#define PREFIXES_SIZE   ((size_t)64 << 20)
#define ERROR_WAIT_MS   1000
#define LOADING_WAIT_MS 200
#define STATUS_SIZE_MAX ((size_t)1 << 20)

struct ruler_config
ruler_config_default(void)
{
	return (struct ruler_config){
		.ns = SPAN("warmq"),
		.core = CORE_CONFIG_DEFAULT,
		.families_max = 200000,
		.job_size_max = ENVELOPE_BODY_MAX,
		.segments_size_max = (size_t)64 << 20,
		.read_size = (size_t)4 << 20,
		.rule_ms = 6000,
		.renew_ms = 2000,
		.lease_ms = 30000,
		.beat_ms = 10000,
		.block_ms = 1000,
		.poll_ms = 20,
		.busy_ms = 10,
		.idle_ms = 200,
		.tick_ms = 1000,
		.audit_ms = 60000,
		.status_ms = 5000,
		.result_ttl_ms = 86400000,
	};
}

void
ruler_copy(char *to, size_t size, struct span text)
{
	size_t len = MIN(text.len, size - 1);

	if (len > 0)
		memcpy(to, text.data, len);
	memset(to + len, 0, size - len);
}

/* ---- life ------------------------------------------------------------------------ */

/* Room for all that the core may have to say at once, as after a take-over: it says more
 * with each answer, and answers must never wait for room that only they can make.  Memory
 * that is not used is not touched. */
static uint32_t
pending_max(const struct core_config *core)
{
	return RULER_PENDING_LEAST + core->lanes_max + core->families_max +
	       core->budgets_max;
}

static int
open_parts(struct ruler *ruler)
{
	const struct ruler_config *config = ruler->config;

	ruler->core_size = core_size(&config->core);
	ruler->core_memory = aligned_alloc(16, (ruler->core_size + 15) & ~(size_t)15);
	ruler->queue = calloc(RULER_QUEUE_MAX, sizeof(*ruler->queue));
	ruler->pending_max = pending_max(&config->core);
	ruler->pending = calloc(ruler->pending_max, sizeof(*ruler->pending));
	ruler->sessions = calloc(RULER_SESSIONS_MAX, sizeof(*ruler->sessions));
	ruler->pools = calloc(config->core.pools_max, sizeof(*ruler->pools));
	ruler->rooms = calloc(core_pools_scratch(&config->core), sizeof(*ruler->rooms));
	buffer_init(&ruler->text, SIZE_MAX / 2);
	buffer_init(&ruler->status, STATUS_SIZE_MAX);
	buffer_init(&ruler->undecided.payload, SIZE_MAX / 2);
	if (!ruler->core_memory || !ruler->queue || !ruler->pending || !ruler->sessions ||
	    !ruler->pools || !ruler->rooms)
		return ERR_MEMORY;
	if (ruler_known_open(&ruler->known, config) < 0 || ruler_ledger_open(ruler) < 0 ||
	    ruler_segments_open(&ruler->segments, SEGMENTS_MAX,
	                        config->segments_size_max) < 0 ||
	    ruler_segments_open(&ruler->prefix_values, RULER_PREFIXES_MAX,
	                        PREFIXES_SIZE) < 0)
		return ERR_MEMORY;
	return ruler_admit_open(ruler);
}

struct ruler *
ruler_create(const struct ruler_config *config)
{
	struct ruler *ruler = calloc(1, sizeof(*ruler));

	if (!ruler)
		return NULL;
	VERIFY(config->ns.len > 0 && config->ns.len <= PROTOCOL_NAMESPACE_MAX);
	VERIFY(config->families_max >= config->core.families_max);
	VERIFY(config->families_max >= RULER_FAMILIES_LEAST);
	VERIFY(config->segments_size_max >= 4 * config->job_size_max);
	ruler->config = config;
	ruler->phase = RULER_DOWN;
	ruler->admits = true;
	ruler->health.hold = true;
	prng_init(&ruler->prng, config->seed);
	if (open_parts(ruler) < 0)
		return ruler_destroy(ruler);
	ruler_core_begin(ruler);
	ruler_inbox_clear(ruler);
	ruler_admit_clear(ruler);
	return ruler;
}

struct ruler *
ruler_destroy(struct ruler *ruler)
{
	if (!ruler)
		return NULL;
	ruler_admit_close(ruler);
	ruler_inbox_close(ruler);
	ruler_segments_close(&ruler->segments);
	ruler_segments_close(&ruler->prefix_values);
	ruler_known_close(&ruler->known);
	ruler_ledger_close(ruler);
	buffer_fini(&ruler->text);
	buffer_fini(&ruler->status);
	buffer_fini(&ruler->undecided.payload);
	free(ruler->pools);
	free(ruler->rooms);
	free(ruler->sessions);
	free(ruler->pending);
	free(ruler->queue);
	free(ruler->core_memory);
	free(ruler);
	return NULL;
}

void
ruler_keep(struct ruler *ruler, const struct ruler_keeper *keeper)
{
	ruler->keeper = *keeper;
}

void
ruler_connected(struct ruler *ruler, uint64_t now_ms)
{
	if (ruler->stopping && ruler->phase == RULER_STOPPED)
		return;
	ruler->is_connected = true;
	ruler_rule_start(ruler, now_ms);
}

void
ruler_lost(struct ruler *ruler, uint64_t now_ms)
{
	ruler->is_connected = false;
	if (ruler->phase == RULER_STOPPED)
		return;
	ruler_rule_retry(ruler, now_ms, 0);
	ruler->phase = ruler->stopping ? RULER_STOPPED : RULER_DOWN;
}

void
ruler_stop(struct ruler *ruler)
{
	ruler->stopping = true;
	if (!ruler->is_connected || ruler->owner[0] == '\0')
		ruler->phase = RULER_STOPPED;
}

bool
ruler_is_stopped(const struct ruler *ruler)
{
	return ruler->phase == RULER_STOPPED;
}

bool
ruler_wants_library(const struct ruler *ruler)
{
	return ruler->wants_library;
}

const char *
ruler_phase_text(enum ruler_phase phase)
{
	static const char *const texts[RULER_PHASE_COUNT] = {
		"down",       "asking", "standing by", "reaping",
		"rebuilding", "ruling", "stopped",
	};

	return (unsigned)phase < RULER_PHASE_COUNT ? texts[phase] : "unknown";
}

/* ---- tags ------------------------------------------------------------------------ */

#define TAG_KIND_SHIFT       56
#define TAG_CONNECTION_SHIFT 32
#define TAG_CONNECTION_MASK  0xffffffu

uint64_t
ruler_tag(const struct ruler *ruler, enum ruler_call kind, uint32_t index)
{
	return (uint64_t)kind << TAG_KIND_SHIFT |
	       (uint64_t)(ruler->connection & TAG_CONNECTION_MASK)
	               << TAG_CONNECTION_SHIFT |
	       index;
}

bool
ruler_tag_blocks(uint64_t tag)
{
	return tag >> TAG_KIND_SHIFT == RULER_CALL_READ_BLOCK;
}

/* ---- answers --------------------------------------------------------------------- */

struct handler {
	void (*on_answer)(struct ruler *ruler, uint64_t now_ms, uint32_t index,
	                  const struct reply *reply);
	bool is_function; /* answers a word of the protocol */
	bool is_optional; /* an error is as good as no answer */
};

static const struct handler handlers[RULER_CALL_COUNT] = {
	[RULER_CALL_YIELD] = { ruler_rule_on_yield, false, true },
	[RULER_CALL_RULE] = { ruler_rule_on_rule, false, false },
	[RULER_CALL_REAP] = { ruler_rule_on_reap, true, false },
	[RULER_CALL_META] = { ruler_rebuild_on_meta, false, false },
	[RULER_CALL_NOTE] = { ruler_clock_on_note, false, true },
	[RULER_CALL_AUDIT] = { ruler_clock_on_audit, true, false },
	[RULER_CALL_FAMILIES] = { ruler_rebuild_on_families, false, false },
	[RULER_CALL_MOVE] = { ruler_rebuild_on_moved, true, false },
	[RULER_CALL_LANES] = { ruler_rebuild_on_lanes, false, false },
	[RULER_CALL_WORKERS] = { ruler_session_on_workers, false, false },
	[RULER_CALL_LEASES] = { ruler_session_on_leases, false, true },
	[RULER_CALL_SLOTS] = { ruler_session_on_slots, false, true },
	[RULER_CALL_BUDGET] = { ruler_rebuild_on_budget, false, true },
	[RULER_CALL_READ] = { ruler_inbox_on_read, false, false },
	[RULER_CALL_READ_BLOCK] = { ruler_inbox_on_read, false, false },
	[RULER_CALL_READ_REST] = { ruler_inbox_on_rest, false, false },
	[RULER_CALL_SEGMENT] = { ruler_intern_on_segment, false, false },
	[RULER_CALL_PREFIX] = { ruler_prefix_on_answer, false, true },
	[RULER_CALL_PREFIX_SIZE] = { ruler_prefix_on_size, false, true },
	[RULER_CALL_ADMIT] = { ruler_admit_on_answer, true, true },
	[RULER_CALL_UNDECIDED] = { ruler_undecided_on_payload, false, true },
	[RULER_CALL_TRY] = { ruler_admit_on_try, false, true },
	[RULER_CALL_EVENTS] = { ruler_events_on_read, false, false },
	[RULER_CALL_GRANT] = { ruler_grant_on_answer, true, false },
	[RULER_CALL_GLANCE] = { ruler_grant_on_glance, false, true },
	[RULER_CALL_PROMOTE] = { ruler_clock_on_promote, true, false },
	[RULER_CALL_EXPIRE] = { ruler_clock_on_expire, true, false },
	[RULER_CALL_HOLD] = { ruler_clock_on_hold, false, true },
	[RULER_CALL_UNHELD] = { ruler_unheld_on_routes, false, true },
	[RULER_CALL_INFO] = { ruler_clock_on_info, false, true },
	[RULER_CALL_SIZE] = { ruler_clock_on_size, false, true },
	[RULER_CALL_LEDGER_HEAD] = { ruler_rebuild_on_ledger, false, false },
	[RULER_CALL_LEDGER_HOUR] = { ruler_rebuild_on_ledger, false, false },
	[RULER_CALL_LEDGER] = { ruler_ledger_on_stored, true, false },
	[RULER_CALL_RECENT] = { ruler_rebuild_on_recent, false, true },
	[RULER_CALL_BOOKS] = { ruler_clock_on_books, false, true },
};

/* True if the answer ends what this memory stands for. */
static bool
ends_it(struct ruler *ruler, uint64_t now_ms, const struct handler *handler,
        const struct reply *reply)
{
	enum protocol_word word = protocol_answer_word(reply);

	if (handler->is_function && word == PROTOCOL_EPOCH) {
		ruler_note(ruler, RULER_WARNING,
		           "another scheduler took the rule over: this one stands by");
		ruler_rule_stand_by(ruler, now_ms, ERROR_WAIT_MS);
		return true;
	}
	if (reply->kind != REPLY_ERROR)
		return false;
	if (word == PROTOCOL_MISSING) {
		ruler_rule_retry(ruler, now_ms, 0);
		ruler->phase = RULER_DOWN;
		ruler->wants_library = true;
		return true;
	}
	if (word == PROTOCOL_LOADING) {
		ruler_rule_retry(ruler, now_ms, LOADING_WAIT_MS);
		return true;
	}
	if (handler->is_optional)
		return false;
	ruler_note(
		ruler, RULER_ERROR, "Redis answered: %.*s. Memory is read again in %d s",
		(int)MIN(reply->text.len, 300), reply->text.data, ERROR_WAIT_MS / 1000);
	ruler_rule_retry(ruler, now_ms, ERROR_WAIT_MS);
	return true;
}

void
ruler_answer(struct ruler *ruler, uint64_t now_ms, uint64_t tag,
             const struct reply *reply)
{
	uint64_t kind = tag >> TAG_KIND_SHIFT;
	uint32_t connection =
		(uint32_t)(tag >> TAG_CONNECTION_SHIFT) & TAG_CONNECTION_MASK;
	uint32_t index = (uint32_t)tag;

	VERIFY(kind > RULER_CALL_NONE && kind < RULER_CALL_COUNT);
	if (connection != (ruler->connection & TAG_CONNECTION_MASK))
		return;
	if (!reply) {
		if (kind == RULER_CALL_READ_BLOCK)
			ruler_inbox_lost_read(ruler, now_ms, index);
		return; /* the others end with ruler_lost */
	}
	if (ends_it(ruler, now_ms, &handlers[kind], reply))
		return;
	handlers[kind].on_answer(ruler, now_ms, index, reply);
}

/* ---- steps ----------------------------------------------------------------------- */

void
ruler_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out)
{
	if (!ruler->is_connected || ruler->phase == RULER_STOPPED)
		return;
	ruler_rule_step(ruler, now_ms, out);
	if (ruler->stopping)
		return;
	ruler_rebuild_step(ruler, now_ms, out);
	if (ruler->phase == RULER_REBUILDING)
		(void)ruler_session_fetch(ruler, out);
	if (ruler->phase != RULER_RULING)
		return;
	ruler_admit_step(ruler, now_ms, out);
	ruler_core_run(ruler, now_ms, EVENTS_PER_STEP);
	if (ruler->phase != RULER_RULING)
		return;
	ruler_grant_step(ruler, now_ms, out);
	ruler_clock_step(ruler, now_ms, out);
	ruler_warm_step(ruler, out);
	ruler_inbox_step(ruler, now_ms, out);
}

static bool
fetches_are_due(const struct ruler *ruler)
{
	if (ruler->sessions_fetching > 0)
		return false;
	for (uint32_t i = 0; i < ruler->sessions_count; i++)
		if (ruler->sessions[i].nonce != 0 && !ruler->sessions[i].fetched)
			return true;
	return false;
}

uint64_t
ruler_deadline(const struct ruler *ruler, uint64_t now_ms)
{
	uint64_t deadline;

	if (!ruler->is_connected || ruler->phase == RULER_STOPPED ||
	    ruler->phase == RULER_DOWN)
		return RULER_DEADLINE_NONE;
	deadline = ruler_rule_deadline(ruler, now_ms);
	if (ruler->stopping)
		return deadline;
	if (ruler_rebuild_is_due(ruler))
		return now_ms;
	if ((ruler->phase == RULER_REBUILDING || ruler->phase == RULER_RULING) &&
	    fetches_are_due(ruler))
		return now_ms;
	if (ruler->phase != RULER_RULING)
		return deadline;
	if (ruler->starting || ruler_grant_is_due(ruler))
		return now_ms;
	deadline = MIN(deadline, ruler_admit_deadline(ruler, now_ms));
	deadline = MIN(deadline, ruler_core_deadline(ruler, now_ms));
	deadline = MIN(deadline, ruler_clock_deadline(ruler));
	return MIN(deadline, ruler_inbox_deadline(ruler, now_ms));
}
