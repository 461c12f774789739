/* site.h - the providers of the simulated world: the real models, and requests to them.
 *
 *   client  start ─────► │ accepted ─► first byte ─► last byte │     at the provider
 *             │          │     │           │            │      │
 *             ▼ delay    └─ refused        ▼            ▼ ─────┘
 *           on_first, on_end  ◄── after a delay, unless the client has gone
 *
 * What goes wrong in between is decided by the fault model; this file carries it out:
 * answers that are lost, cut, stalled, garbage.  A request has two ends, and each may
 * die before the other: the provider goes on computing until it notices, and the client
 * waits until its own time-out.
 *
 * A call belongs to the site and lives until the end of the run. */
#ifndef TESTS_SIM_SITE_H
#define TESTS_SIM_SITE_H

#include "common/base.h"
#include "common/prng.h"
#include "provider/model/engine.h"
#include "tests/sim/agenda.h"
#include "tests/sim/trace.h"

enum {
	SITE_BLOCKS_MAX = 4,
	SITE_ID_SIZE = 64,
};

struct site_call;

/* How it ended, as the client sees it. */
struct site_end {
	int status;              /* 200, 4xx, 5xx; 0: the connection was lost */
	bool refused;            /* with status 0: nothing went out */
	bool in_stream;          /* an error event after status 200 */
	bool spend_cap;          /* with 429 */
	uint64_t retry_after_us; /* 0: none */
};

/* Who asked.  The callbacks are not called any more after site_hang_up. */
struct site_client {
	void (*on_first)(void *context, struct site_call *call);
	void (*on_end)(void *context, struct site_call *call, const struct site_end *end);
	void *context;
	const uint64_t *frozen_until_us; /* it hears nothing before; or NULL */
};

/* What is asked, and on whose behalf: the latter for the oracle alone. */
struct site_ask {
	struct cache_block blocks[SITE_BLOCKS_MAX];
	uint32_t blocks_count;
	uint64_t scope;
	enum cache_mode mode;
	uint32_t minimum_tokens;
	uint64_t account;
	uint32_t class;
	uint32_t output_tokens;
	bool streams;

	char id[SITE_ID_SIZE]; /* the job, or "w:…" */
	uint64_t nonce;        /* session, slot and number of the lease */
	uint32_t slot;
	uint64_t q;
	struct id128 pool; /* of the worker */
};

enum site_phase {
	SITE_TRAVELS, /* to the provider */
	SITE_WORKS,   /* accepted, no byte yet */
	SITE_ANSWERS, /* the response began */
	SITE_OVER,
};

struct site_call {
	struct site_call *next;
	struct site *site;
	uint64_t number;
	struct site_ask ask;
	struct site_client client;
	bool open; /* the client still listens */
	enum site_phase phase;
	struct engine_answer answer;
	struct site_end end;
	uint64_t sent_us;
};

struct site {
	struct agenda *agenda;
	struct trace *trace;
	struct engine *engine;
	void *memory;
	struct prng prng;
	struct site_call *calls;
	uint64_t calls_count;
	uint64_t delay_us_min, delay_us_max;
	/* the oracle's ears; `call` says what happened */
	void (*on_accepted)(void *context, struct site_call *call);
	void (*on_responded)(void *context, struct site_call *call);
	void (*on_over)(void *context, struct site_call *call);
	void (*on_refused)(void *context, struct site_call *call);
	void *context;
};

void site_init(struct site *site, struct agenda *agenda, struct trace *trace,
               const struct engine_config *config, uint64_t seed);
void site_fini(struct site *site);

/* New knobs; sizes stay. */
void site_configure(struct site *site, const struct engine_config *config);

struct site_call *site_start(struct site *site, const struct site_ask *ask,
                             struct site_client client);

/* The client closes its connection, or dies. */
void site_hang_up(struct site_call *call);

#endif
