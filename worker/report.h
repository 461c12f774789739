/* report.h - what becomes of a run: the outcome for the agent and the bytes it points to.
 *
 *   run ends ─► report ─► agent ─► settle, fail, settle_late ─► AGENT_DROP ─► freed
 *                 └────────────► spool (a file that outlives the process)
 *
 * The agent knows it by a handle; report_of leads back.  The result is one JSON object,
 * described in docs/WORKER.md. */
#ifndef WORKER_REPORT_H
#define WORKER_REPORT_H

#include "common/buffer.h"
#include "common/codec/protocol.h"
#include "common/text.h"
#include "worker/core/agent.h"

#define REPORT_RESULT_MAX ((size_t)8 << 20)  /* larger bodies are replaced */
#define REPORT_SIZE_MAX   ((size_t)12 << 20) /* of a result with everything around it */
#define REPORT_TEXT_SIZE  512

struct report_list { /* of all that were not destroyed */
	struct report *first;
};

struct report {
	struct report_list *list;
	struct report *previous, *next;
	char id[PROTOCOL_TICKET_SIZE];
	uint32_t id_len;
	char reply[129];
	char missed[TEXT_NAME_MAX + 1]; /* the upstream that was not reached */
	char reason[64];
	char text[REPORT_TEXT_SIZE];
	struct buffer result;
	uint64_t result_ttl_ms;
	bool is_spooled; /* there is a file, or one is being written */
};

/* What a result says besides its body. */
struct report_facts {
	struct span id, ref, upstream, model, request_id, traceparent;
	const char *state;  /* done, dead */
	const char *reason; /* dead: a word */
	const char *text;   /* dead: a sentence */
	int http_status;    /* 0: there was none */
	struct protocol_usage usage;
	uint32_t attempts; /* real failures before this run */
	uint32_t delivery; /* this run's number, from 1 */
	uint64_t sent_ms;  /* when its request left, Redis clock; 0: none did */
	uint64_t first_ms; /* from sending to the first event; 0 unknown */
	uint64_t total_ms;
};

enum report_format {
	REPORT_NONE,
	REPORT_JSON, /* the body is a JSON value */
	REPORT_SSE,  /* the events of a stream, as a string */
	REPORT_TEXT, /* as a string */
	REPORT_BASE64,
};

/* NULL when out of memory. */
struct report *report_create(struct report_list *list, struct span id);
struct report *report_destroy(struct report *report); /* answers NULL; takes NULL */

/* Destroys what is left at the end of the process. */
void report_list_fini(struct report_list *list);

uint64_t report_handle(const struct report *report);
struct report *report_of(uint64_t handle);

/* How bytes of unknown content are best carried. */
enum report_format report_format_of(struct span body);

/* Writes the result.  A body above REPORT_RESULT_MAX is replaced by its size.  ERR_MEMORY
 * or ERR_LIMIT. */
MUST_USE int report_write(struct report *report, const struct report_facts *facts,
                          enum report_format format, struct span body);

/* Cuts `text` to fit and keeps it, for the job's record. */
void report_explain(struct report *report, const char *reason, struct span text);

#endif
