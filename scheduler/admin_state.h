/* admin_state.h - the memory of the pages; only the admin_*.c files look into it.
 *
 *   admin         server, timers, which page
 *   admin_api     answered at once      admin_ask   answered by Redis, later
 *   admin_live    the overview, each second, to all that look (admin_use: what runs)
 *   admin_act     what people do        admin_guard who may
 *   board*        the table of families and the recent past, what is stored of it
 *
 * It has a connection to Redis of its own, so that no page waits behind the queue, and
 * the queue behind none.  The ruler is borrowed and only looked at; it lives longer.
 * Memory goes with the last closed handle (admin.closing counts them). */
#ifndef SCHEDULER_ADMIN_STATE_H
#define SCHEDULER_ADMIN_STATE_H

#include "common/io/http_server.h"
#include "common/io/redis.h"
#include "scheduler/admin.h"
#include "scheduler/board.h"

#define ADMIN_TOKEN_SIZE  256
#define ADMIN_STREAMS_MAX 128
#define ADMIN_CACHE_MAX   16
#define ADMIN_KEY_SIZE    384
#define ADMIN_USE_MAX     1000 /* families asked about; those with most work */

struct admin_stream {
	struct admin *admin;
	struct http_server_stream *stream; /* NULL: free */
};

/* An answer of Redis that several pages may be given. */
struct admin_cached {
	char key[ADMIN_KEY_SIZE]; /* path and query; empty: free */
	uint64_t until_ms;        /* monotonic */
	struct buffer body;
};

/* Whose lanes are under way, in the order of the question. */
struct admin_use {
	bool under_way;
	uint32_t count;
	uint32_t places[ADMIN_USE_MAX];
	struct id128 ids[ADMIN_USE_MAX];
	char texts[ADMIN_USE_MAX][PROTOCOL_LANE_ID_SIZE];
};

struct admin {
	const struct config *config;
	struct ruler *ruler;
	const uint64_t *now_ms;
	struct http_server *server;
	struct redis *redis;
	struct board board;
	uv_timer_t sample, live;
	struct admin_stream streams[ADMIN_STREAMS_MAX];
	uint32_t streams_count;
	struct admin_use use;
	struct admin_changes *changes; /* admin_change.c */
	void (*on_use)(struct admin *admin);
	uint64_t looked_ms;  /* monotonic: when somebody last looked */
	uint64_t scraped_ms; /* likewise, at the metrics */
	uint32_t turns;      /* of the live timer */
	struct admin_cached cache[ADMIN_CACHE_MAX];
	char token[ADMIN_TOKEN_SIZE]; /* empty: no actions */
	unsigned closing;             /* so many parts are still there */
};

typedef void admin_serve_fn(struct admin *admin,
                            const struct http_server_request *request,
                            struct http_server_response *response);

/* Text, or {"error": text} for the API. */
void admin_put_error(struct http_server_response *response, unsigned status,
                     const char *text);

/* A number of the query, `fallback` if it is not given; ERR_MALFORMED. */
MUST_USE int admin_query_number(const struct http_server_request *request,
                                const char *name, uint64_t max, uint64_t fallback,
                                uint64_t *ret_value);

/* A text of the query, or an empty span. */
struct span admin_query_text(const struct http_server_request *request, const char *name);

#endif
