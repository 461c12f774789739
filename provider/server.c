#include "provider/server.h"

#include "provider/admin.h"
#include "provider/answer.h"
#include "provider/exchange.h"
#include "provider/http_answer.h"

#include <errno.h>
#include <stdlib.h>

#define BACKLOG      4096
#define ENTRIES_MAX  131072
#define REQUESTS_MAX 16384
#define WRITES_MAX   65536

/* --- routes ------------------------------------------------------------------------ */

static void
on_messages(struct server *server, struct connection *connection)
{
	exchange_begin(server, connection, ASK_ANTHROPIC);
}

static void
on_chat(struct server *server, struct connection *connection)
{
	exchange_begin(server, connection, ASK_OPENAI);
}

static const struct route {
	const char *method;
	const char *path;
	void (*serve)(struct server *server, struct connection *connection);
} routes[] = {
	{ "POST", "/v1/messages", on_messages },
	{ "POST", "/v1/messages/count_tokens", exchange_count },
	{ "POST", "/v1/chat/completions", on_chat },
	{ "GET", "/stats", admin_stats },
	{ "GET", "/knobs", admin_get_knobs },
	{ "POST", "/knobs", admin_set_knobs },
	{ "POST", "/reset", admin_reset },
	{ "GET", "/healthz", admin_health },
};

static void
answer_plainly(struct server *server, struct connection *connection, int status,
               const char *type, const char *message)
{
	struct span path = http_request_path(connection_request(connection));
	bool is_chat = span_equals(path, SPAN("/v1/chat/completions"));
	struct buffer json = BUFFER_INIT(4096);

	answer_error(is_chat ? ASK_OPENAI : ASK_ANTHROPIC, type, NULL, span_from(message),
	             "", &json);
	server_count_status(server, status);
	server_answer(connection, status, buffer_span(&json), SPAN(""));
	buffer_fini(&json);
}

static void
on_request(void *data, struct connection *connection)
{
	const struct http_request *request = connection_request(connection);
	struct span path = http_request_path(request);
	struct server *server = data;
	bool path_known = false;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (!span_equals(path, span_from(routes[i].path)))
			continue;
		path_known = true;
		if (span_equals(request->method, span_from(routes[i].method))) {
			routes[i].serve(server, connection);
			return;
		}
	}
	if (path_known)
		answer_plainly(server, connection, 405, "invalid_request_error",
		               "This path does not take this method.");
	else
		answer_plainly(server, connection, 404, "not_found_error", "Not found");
}

static void
on_bad_request(void *data, struct connection *connection, int status)
{
	struct server *server = data;

	if (status == 413)
		answer_plainly(server, connection, status, "request_too_large",
		               "Request exceeds the maximum size");
	else
		answer_plainly(server, connection, status, "invalid_request_error",
		               "This is not an HTTP request that can be served.");
}

void
server_count_status(struct server *server, int status)
{
	VERIFY(status > 0);
	VERIFY(status < SERVER_STATUSES);
	server->statuses[status]++;
}

void
server_answer(struct connection *connection, int status, struct span json,
              struct span headers)
{
	const struct http_request *request = connection_request(connection);
	bool keep_alive = request->keep_alive && request->state == HTTP_REQUEST_DONE &&
	                  !request->too_large;
	struct buffer *out = connection_output(connection);

	http_answer_head(out, status, "application/json", json.len, keep_alive, headers);
	(void)buffer_append(out, json);
	connection_end(connection, keep_alive);
}

/* --- knobs ------------------------------------------------------------------------- */

static void
fill_config(const struct server *server, struct engine_config *config)
{
	*config = (struct engine_config){ .seed = server->seed };
	settings_to_engine(&server->settings, config);
	catalog_to_engine(&server->catalog, config);
	config->cache.entries_max = ENTRIES_MAX;
	config->cache.requests_max = REQUESTS_MAX;
	config->cache.writes_max = WRITES_MAX;
}

void
server_set(struct server *server, const struct settings *settings)
{
	struct engine_config config;

	server->settings = *settings;
	server->clients.body_max = settings_get(settings, SETTINGS_BODY_MAX);
	fill_config(server, &config);
	engine_configure(server->engine, server_now_us(server), &config);
	exchange_go_on(server);
}

struct settings
server_settings(const struct server *server)
{
	struct settings settings = server->settings;
	const struct fault_knobs *fault = engine_fault_knobs(server->engine);

	settings.values[SETTINGS_FAULT_NEXT] = fault->next;
	settings.values[SETTINGS_FAULT_NEXT_COUNT] = fault->next_count;
	return settings;
}

/* --- life -------------------------------------------------------------------------- */

uint64_t
server_now_us(const struct server *server)
{
	return (uv_hrtime() - server->started_ns) / 1000;
}

static void
on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;

	if (status == 0)
		connection_accept(&server->clients, listener);
}

static void
on_signal(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;

	(void)number;
	uv_close((uv_handle_t *)&server->listener, NULL);
	uv_close((uv_handle_t *)&server->terminate, NULL);
	uv_close((uv_handle_t *)&server->interrupt, NULL);
	connection_close_all(&server->clients);
	exchange_end_all(server);
}

static int
start_engine(struct server *server)
{
	struct engine_config config;
	void *memory;

	fill_config(server, &config);
	memory = malloc(engine_size(&config));
	if (!memory)
		return ERR_MEMORY;
	server->engine = engine_init(memory, engine_size(&config), &config);
	return 0;
}

int
server_init(struct server *server, const struct settings *settings,
            const struct catalog *catalog, uint64_t seed)
{
	*server = (struct server){ .settings = *settings,
		                   .catalog = *catalog,
		                   .seed = seed,
		                   .started_ns = uv_hrtime() };
	server->clients = (struct connection_owner){
		.data = server,
		.body_max = settings_get(settings, SETTINGS_BODY_MAX),
		.on_request = on_request,
		.on_bad_request = on_bad_request,
	};
	if (start_engine(server) < 0)
		return ERR_MEMORY;
	if (uv_loop_init(&server->loop) < 0) {
		free(server->engine);
		return ERR_IO;
	}
	server->listener.data = server;
	server->terminate.data = server;
	server->interrupt.data = server;
	uv_tcp_init(&server->loop, &server->listener);
	uv_signal_init(&server->loop, &server->terminate);
	uv_signal_init(&server->loop, &server->interrupt);
	return 0;
}

int
server_listen(struct server *server, uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in address;
	int len = sizeof address;
	int status;

	uv_ip4_addr("127.0.0.1", port, &address);
	status = uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0);
	if (status == 0)
		status = uv_listen((uv_stream_t *)&server->listener, BACKLOG,
		                   on_connection);
	if (status == 0)
		status = uv_tcp_getsockname(&server->listener,
		                            (struct sockaddr *)&address, &len);
	if (status == 0)
		status = uv_signal_start(&server->terminate, on_signal, SIGTERM);
	if (status == 0)
		status = uv_signal_start(&server->interrupt, on_signal, SIGINT);
	if (status < 0) {
		errno = -status;
		return ERR_IO;
	}
	*ret_port = ntohs(address.sin_port);
	return 0;
}

void
server_run(struct server *server)
{
	uv_run(&server->loop, UV_RUN_DEFAULT);
}

static void
close_handle(uv_handle_t *handle, void *data)
{
	(void)data;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void
server_fini(struct server *server)
{
	/* After server_run only a server that never listened has handles left. */
	uv_walk(&server->loop, close_handle, NULL);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	VERIFY(uv_loop_close(&server->loop) == 0);
	free(server->engine);
	server->engine = NULL;
}
