/* server.h - the provider's loop: one thread, a listener, the model, all exchanges.
 *
 *   sockets ──► connection ──► router ──► exchange ──► engine (the model)
 *                                 └─────► admin: /stats /knobs /reset /healthz
 *
 * Everything runs on one libuv loop and nothing blocks, so the model needs no lock.  Time
 * is the monotonic clock in microseconds since the server was made. */
#ifndef PROVIDER_SERVER_H
#define PROVIDER_SERVER_H

#include "common/base.h"
#include "common/error.h"
#include "provider/catalog.h"
#include "provider/connection.h"
#include "provider/model/engine.h"
#include "provider/settings.h"

#include <uv.h>

#define SERVER_STATUSES 600

struct exchange;

struct server {
	uv_loop_t loop;
	uv_tcp_t listener;
	uv_signal_t terminate;
	uv_signal_t interrupt;
	struct connection_owner clients;
	struct settings settings;
	struct catalog catalog; /* never changes */
	struct engine *engine;
	uint64_t seed;
	uint64_t started_ns;
	uint64_t last_id;           /* of requests */
	struct exchange *exchanges; /* list kept by exchange.c */
	uint64_t statuses[SERVER_STATUSES];
	uint64_t unanswered; /* requests that never got a status */
};

/* Makes a server from settings, catalog and seed, which are copied.  ERR_MEMORY, ERR_IO.
 * The memory must stay where it is. */
MUST_USE int server_init(struct server *server, const struct settings *settings,
                         const struct catalog *catalog, uint64_t seed);

/* Binds to a loopback port (0: any) and answers it.  ERR_IO: errno says why. */
MUST_USE int server_listen(struct server *server, uint16_t port, uint16_t *ret_port);

/* Serves until SIGTERM or SIGINT; then answers in flight are broken off. */
void server_run(struct server *server);
void server_fini(struct server *server);

uint64_t server_now_us(const struct server *server);

/* Takes new knobs. */
void server_set(struct server *server, const struct settings *settings);

/* The knobs as they are now: the script of faults has counted down. */
struct settings server_settings(const struct server *server);

/* Counts what a request to the provider (not to its admin pages) was answered. */
void server_count_status(struct server *server, int status);

/* Answers with a status, a JSON body and more header lines; the connection goes on. */
void server_answer(struct connection *connection, int status, struct span json,
                   struct span headers);

#endif
