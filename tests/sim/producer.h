/* producer.h - those who enqueue in the simulated world, and the list of what they want.
 *
 * All jobs are drawn in advance, so what a seed asks for does not depend on how the run
 * goes.  A job's number is its `ref`.  A producer that does not hear of its XADD sends it
 * again, as producers do: then the same number is enqueued twice, as two jobs. */
#ifndef TESTS_SIM_PRODUCER_H
#define TESTS_SIM_PRODUCER_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/prng.h"
#include "tests/sim/weather.h"
#include "tests/sim/wire.h"

enum producer_kind {
	PRODUCER_DECLARED, /* `shared` says how far the prefix goes */
	PRODUCER_INLINE,   /* found out by its second sighting */
	PRODUCER_NAMED,    /* by name, put through the inbox */
	PRODUCER_SINGLE,   /* a prefix that nobody else has */
	PRODUCER_OPAQUE,   /* cannot be split */
	PRODUCER_BAD,      /* malformed, unknown upstream, or unsupported */
};

enum producer_shape {
	PRODUCER_PLAIN,
	PRODUCER_SPELLED,  /* the same JSON, serialised differently each time */
	PRODUCER_DOCUMENT, /* a shared document and a question in one message */
	PRODUCER_CHOICE,   /* tool_choice takes 50 values */
};

struct producer_job {
	enum producer_kind kind;
	uint32_t upstream, model, system, document; /* document 0: none */
	uint32_t pool;
	uint64_t at_us;
	uint64_t hold_max_ms;     /* 0: not given */
	uint64_t later_ms;        /* not_before, from its entry's time; 0: at once */
	uint64_t deadline_ms;     /* the same; 0: none */
	uint64_t cancel_after_us; /* 0: never */
	char band;                /* h n l */
	bool reply;
	uint32_t attempts;
	uint32_t flaw; /* of a bad one */
	bool packed;   /* comes in one entry with those beside it */
	bool sent, acked;
	uint32_t first; /* the first job of the entry it was sent in, … */
	uint32_t part;  /* … and its place there, from 1; 0: by itself */
	char entry[64]; /* its id, if acked */
};

struct producer {
	struct agenda *agenda;
	struct trace *trace;
	const struct weather *weather;
	struct wire wire;
	struct prng prng;
	struct producer_job *jobs;
	uint32_t jobs_count;
	bool named_put[2][2][8]; /* upstream, model, system */
	uint32_t waiting;        /* not acked yet */
	uint64_t tags;
	struct buffer body, text, pack;
	bool reconnecting;
};

void producer_init(struct producer *producer, struct wire_hub *hub,
                   const struct weather *weather, uint64_t seed);
void producer_fini(struct producer *producer);

/* Puts all arrivals on the agenda. */
void producer_start(struct producer *producer);

/* True once everything was sent and acknowledged. */
bool producer_is_done(const struct producer *producer);

/* Names used by configuration and jobs alike. */
const char *producer_upstream(uint32_t upstream); /* "anthropic", "openai" */
size_t producer_model(uint32_t upstream, uint32_t model, char ret_text[32]);

#endif
