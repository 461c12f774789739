/* stranger.h - a worker that somebody else wrote, against docs/PROTOCOL.md, and not well.
 *
 *   hello ─► claims, settles, hands back, beats … and now and then:
 *            claims into slots that it holds, settles twice, names tokens of long ago,
 *            speaks over its former connection, miscounts, falls asleep until it is
 * reaped
 *
 * The real agent is careful, so the guards of the functions are hardly ever needed by it.
 * Here they are.  It runs plain jobs only, hands all others back unsent, asks no
 * provider, and knows no usage: what it settles says nothing of caches. */
#ifndef TESTS_SIM_STRANGER_H
#define TESTS_SIM_STRANGER_H

#include "common/base.h"
#include "common/prng.h"
#include "tests/sim/weather.h"
#include "tests/sim/wire.h"

enum {
	STRANGER_SLOTS = 4,
	STRANGER_ID_SIZE = 64,
};

struct stranger_slot {
	bool held;
	char role;
	uint64_t q;
	char id[STRANGER_ID_SIZE];
	uint64_t q_before; /* the token it had before this one; 0: none */
	char id_before[STRANGER_ID_SIZE];
};

struct stranger {
	struct agenda *agenda;
	struct trace *trace;
	struct wire wire;
	struct prng prng;
	bool gone;      /* for good */
	bool connected; /* its session is known */
	bool waits;     /* for an answer */
	uint64_t asked_us;
	char nonce[17];
	uint64_t c, q;
	uint64_t calls; /* tags */
	struct stranger_slot slots[STRANGER_SLOTS];

	/* the call under way */
	uint64_t ends[STRANGER_SLOTS]; /* the token it ends there; 0: none */
	uint64_t claimed_q;
	uint32_t claimed[STRANGER_SLOTS];
	uint32_t claimed_count;
};

void stranger_init(struct stranger *stranger, struct wire_hub *hub, uint64_t seed);
void stranger_start(struct stranger *stranger);

/* It goes without a word; what it holds is reaped. */
void stranger_leave(struct stranger *stranger);

#endif
