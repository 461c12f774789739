/* fake_server.h - a peer that misbehaves on purpose, on the test's own loop.
 *
 * It listens on a Unix socket, answers the first `answers` commands with +OK and then
 * does what its manner says. */
#ifndef TESTS_LIB_FAKE_SERVER_H
#define TESTS_LIB_FAKE_SERVER_H

#include "common/base.h"

#include <uv.h>

enum fake_manner {
	FAKE_SILENT,  /* reads on, never answers: a dead peer behind a live socket */
	FAKE_CLOSES,  /* closes at the next command */
	FAKE_HALVES,  /* sends half a reply and closes */
	FAKE_GARBAGE, /* sends what is no RESP */
};

struct fake_server {
	uv_pipe_t listener;
	uv_pipe_t client;
	bool has_client;
	enum fake_manner manner;
	uint32_t answers;
	uint32_t commands; /* seen so far, on all connections */
	uint32_t connections;
	char buffer[4096];
	char path[108];
};

void fake_server_start(struct fake_server *fake, uv_loop_t *loop, const char *path,
                       enum fake_manner manner, uint32_t answers);
void fake_server_stop(struct fake_server *fake);

#endif
