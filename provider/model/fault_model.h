/* fault_model.h - what goes wrong at a provider, drawn from a seed.
 *
 * Each request draws at most one fault.  Two sources, the first wins: a script
 * ("the next 3 requests get fault F"), exact, for tests; and a rate in permille per
 * fault, for weather.  The fault says *what* happens; status lines and bytes are the
 * server's business, loss of the reply the simulator's. */
#ifndef PROVIDER_MODEL_FAULT_MODEL_H
#define PROVIDER_MODEL_FAULT_MODEL_H

#include "common/base.h"
#include "common/prng.h"

/* Before any work: no cache entry, no tokens.  During work: the request was
 * started, its prefix is cached once the response began. */
/* clang-format off */
#define FAULT_LIST(X) \
	X(FAULT_NONE,          "none")           \
	X(FAULT_BAD_REQUEST,   "bad_request")    /* before: 400 */ \
	X(FAULT_RATE_LIMIT,    "rate_limit")     /* before: 429 with retry-after */ \
	X(FAULT_SERVER_ERROR,  "server_error")   /* before: 500 */ \
	X(FAULT_UNAVAILABLE,   "unavailable")    /* before: 503 */ \
	X(FAULT_OVERLOADED,    "overloaded")     /* before: 529 */ \
	X(FAULT_STATUS,        "status")         /* before: whatever status is configured */ \
	X(FAULT_REFUSE,        "refuse")         /* before: connection closed, no byte */ \
	X(FAULT_HANG,          "hang")           /* before: nothing, until the client goes */ \
	X(FAULT_LOSE_REPLY,    "lose_reply")     /* during: done, then closed, no byte */ \
	X(FAULT_CUT,           "cut")            /* during: closed in mid-answer */ \
	X(FAULT_CUT_USAGE,     "cut_usage")      /* during: closed before the first usage */ \
	X(FAULT_STREAM_ERROR,  "stream_error")   /* during: an error event after 200 */ \
	X(FAULT_STALL,         "stall")          /* during: first event, then silence */ \
	X(FAULT_DRIP,          "drip")           /* during: a few bytes at a time */ \
	X(FAULT_GARBAGE,       "garbage")        /* during: bytes that are not the protocol */
/* clang-format on */

enum fault {
#define X(name, text) name,
	FAULT_LIST(X)
#undef X
	FAULT_COUNT,
};

struct fault_knobs {
	enum fault next;                /* the script: this fault ... */
	uint32_t next_count;            /* ... for so many requests; counts down */
	uint32_t permille[FAULT_COUNT]; /* [FAULT_NONE] is ignored; the sum is <= 1,000 */
};

struct fault_model {
	struct fault_knobs knobs;
	struct prng prng;
};

void fault_model_init(struct fault_model *model, uint64_t seed,
                      const struct fault_knobs *knobs);

enum fault fault_model_draw(struct fault_model *model);

/* Answers whether the provider has refused before doing any work. */
bool fault_is_before(enum fault fault);

const char *fault_text(enum fault fault);

#endif
