#include "tests/sim/server.h"

#include <stdio.h>
#include <stdlib.h>

struct server_record {
	uint64_t at_us; /* world time */
	uint64_t clock_us;
	size_t argc;
	struct span *argv; /* one block, with the bytes behind */
};

uint64_t
server_now_us(const struct server *server)
{
	return SERVER_EPOCH_US + server->agenda->now_us + (uint64_t)server->offset_us;
}

uint64_t
server_now_ms(const struct server *server)
{
	return server_now_us(server) / 1000;
}

static void
open_model(struct server *server)
{
	const char *error;

	server->model = redis_model_create();
	server->host = lua_host_create();
	error = lua_host_load(server->host, server->library);
	if (error) {
		fprintf(stderr, "the function library does not load: %s\n", error);
		exit(1);
	}
	lua_host_attach(server->host, server->model);
}

static void
close_model(struct server *server)
{
	redis_model_destroy(server->model);
	lua_host_destroy(server->host);
	server->model = NULL;
	server->host = NULL;
}

void
server_init(struct server *server, const struct agenda *agenda, struct span library)
{
	*server = (struct server){
		.agenda = agenda, .library = library, .up = true, .lives = 1
	};
	open_model(server);
}

static void
forget(struct server *server, size_t from)
{
	for (size_t i = from; i < server->records_count; i++)
		free(server->records[i].argv);
	server->records_count = from;
}

void
server_fini(struct server *server)
{
	forget(server, 0);
	free(server->records);
	close_model(server);
}

static void
keep(struct server *server, const struct span *argv, size_t argc)
{
	struct server_record *record;
	size_t bytes = 0;
	char *at;

	if (server->records_count == server->records_room) {
		server->records_room =
			server->records_room ? server->records_room * 2 : 256;
		server->records = realloc(server->records,
		                          server->records_room * sizeof *server->records);
		VERIFY(server->records);
	}
	for (size_t i = 0; i < argc; i++)
		bytes += argv[i].len;
	record = &server->records[server->records_count++];
	*record = (struct server_record){
		.at_us = server->agenda->now_us,
		.clock_us = server_now_us(server),
		.argc = argc,
		.argv = malloc(argc * sizeof *record->argv + bytes),
	};
	VERIFY(record->argv);
	at = (char *)(record->argv + argc);
	for (size_t i = 0; i < argc; i++) {
		record->argv[i] = (struct span){ at, argv[i].len };
		if (argv[i].len > 0)
			memcpy(at, argv[i].data, argv[i].len);
		at += argv[i].len;
	}
}

static void
set_watches(struct server *server, bool on)
{
	struct server_watch *watch = &server->watch;

	redis_model_set_watch(server->model, on ? watch->inside : NULL, watch->context);
	redis_model_set_publish(server->model, on ? watch->publish : NULL,
	                        watch->publish_context);
}

const struct reply *
server_call(struct server *server, const struct span *argv, size_t argc)
{
	struct server_watch *watch = &server->watch;
	const struct reply *reply;

	VERIFY(server->up);
	server->calls++;
	redis_model_set_time(server->model, server_now_us(server));
	if (redis_model_writes(argv[0]))
		keep(server, argv, argc);
	if (watch->before)
		watch->before(watch->context, argv, argc);
	set_watches(server, true);
	reply = redis_model_call(server->model, argv, argc);
	set_watches(server, false);
	if (watch->after)
		watch->after(watch->context, argv, argc, reply);
	return reply;
}

const struct reply *
server_peek(struct server *server, const struct span *argv, size_t argc)
{
	redis_model_set_time(server->model, server_now_us(server));
	return redis_model_call(server->model, argv, argc);
}

void
server_crash(struct server *server)
{
	VERIFY(server->up);
	server->up = false;
	server->died_us = server->agenda->now_us;
}

void
server_start(struct server *server, uint64_t kept_us)
{
	size_t kept = 0;

	VERIFY(!server->up);
	while (kept < server->records_count && server->records[kept].at_us <= kept_us)
		kept++;
	forget(server, kept);
	close_model(server);
	open_model(server);
	for (size_t i = 0; i < kept; i++) {
		const struct server_record *record = &server->records[i];

		redis_model_set_time(server->model, record->clock_us);
		(void)redis_model_call(server->model, record->argv, record->argc);
	}
	server->up = true;
	server->lives++;
}
