/* wire.h - one process's connection to Redis, as unreliable as TCP really is.
 *
 *   client ── calls, in order, after a delay ──► server
 *          ◄─ answers, in order, after a delay ──
 *
 * A connection keeps order and loses nothing, until it is cut.  Then each call that was
 * under way suffers the same fate: it is lost, or it runs on time, or Redis reads the
 * old socket's buffer only seconds later, when the client has long been back on a new
 * one.  Answers of a cut connection never arrive.  The client learns of a cut soon
 * (reset), or never (silence), and then it is its own deadlines that have to notice.
 *
 * A client that was killed or frozen is the host's business: it looks at the life number
 * that comes back with everything. */
#ifndef TESTS_SIM_WIRE_H
#define TESTS_SIM_WIRE_H

#include "common/base.h"
#include "common/prng.h"
#include "common/reply.h"
#include "tests/sim/agenda.h"
#include "tests/sim/redis_answer.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

struct wire_knobs {
	uint64_t delay_us_min, delay_us_max; /* one way */
	uint32_t cut_permille;    /* of calls: the connection dies around this one */
	uint32_t silent_permille; /* of cuts: nobody tells the client */
	uint32_t late_permille;   /* of cuts: what was under way runs late */
	uint32_t lost_permille;   /* of cuts: what was under way is lost */
	uint64_t late_us_max;     /* at most so late */
};

/* The hub all wires of a world share. */
struct wire_hub {
	struct agenda *agenda;
	struct server *server;
	struct trace *trace;
	struct wire_knobs knobs;
	struct prng prng;
	struct wire_connection *connections; /* all there ever were; freed at the end */
	struct wire_message *messages;
	uint64_t clogged_until_us; /* nothing arrives anywhere before */
};

typedef void wire_up_fn(void *context);
typedef void wire_down_fn(void *context);
typedef void wire_answer_fn(void *context, uint64_t tag, const struct reply *reply);

struct wire {
	struct wire_hub *hub;
	const char *name; /* in the trace */
	wire_up_fn *on_up;
	wire_down_fn *on_down; /* a connection was lost, or could not be made */
	wire_answer_fn *on_answer;
	void *context;
	const uint64_t *frozen_until_us;    /* nothing is delivered before; or NULL */
	struct wire_connection *connection; /* NULL: none */
};

void wire_hub_init(struct wire_hub *hub, struct agenda *agenda, struct server *server,
                   struct trace *trace, uint64_t seed);
void wire_hub_fini(struct wire_hub *hub);

/* Begins to connect; on_up or on_down follows.  There is no connection yet. */
void wire_open(struct wire *wire);

/* Gives the connection up, from the client's side: no callback follows. */
void wire_close(struct wire *wire);

bool wire_is_up(const struct wire *wire);

/* Sends one call; copied.  Without a connection it is lost. */
void wire_send(struct wire *wire, uint64_t tag, const struct span *argv, size_t argc);

/* Cuts this wire, as the weather would. */
void wire_cut(struct wire *wire);

/* The server died: all its connections are reset, and all calls under way are lost. */
void wire_reset_all(struct wire_hub *hub);

/* A delay as the links have them now. */
uint64_t wire_delay_us(struct wire_hub *hub);

#endif
