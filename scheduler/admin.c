#include "scheduler/admin.h"

#include "common/io/http_server.h"
#include "common/io/log.h"
#include "common/prometheus.h"
#include "common/text.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/metrics.h"
#include "scheduler/ruler_view.h"

#include <stdlib.h>

#define FAMILIES_DEFAULT 100
#define FAMILIES_MAX     256

struct admin {
	struct http_server *server;
	struct ruler *ruler;
	const uint64_t *now_ms;
};

static void
put_text(struct http_server_response *response, unsigned status, const char *text)
{
	response->status = status;
	(void)buffer_append_text(&response->body, text);
}

static void
serve_health(struct admin *admin, const struct http_server_request *request,
             struct http_server_response *response)
{
	(void)admin;
	(void)request;
	put_text(response, 200, "ok\n");
}

static void
serve_ready(struct admin *admin, const struct http_server_request *request,
            struct http_server_response *response)
{
	struct ruler_health health = ruler_view_health(admin->ruler, *admin->now_ms);
	bool works = health.phase == RULER_RULING || health.phase == RULER_STANDBY;

	(void)request;
	response->status =
		works && health.admits && health.inbox_lag_ms <= ADMIN_LAG_MS_MAX ? 200
										  : 503;
	(void)buffer_append_format(
		&response->body, "%s: %s, inbox lag %llu ms%s%s\n",
		response->status == 200 ? "ready" : "not ready",
		ruler_phase_text(health.phase), (unsigned long long)health.inbox_lag_ms,
		health.admits ? "" : ", the cursor is missing (warmq doctor --repair)",
		health.memory_pressure ? ", Redis is above 90 % of its maxmemory" : "");
}

static void
serve_metrics(struct admin *admin, const struct http_server_request *request,
              struct http_server_response *response)
{
	(void)request;
	response->content_type = PROMETHEUS_CONTENT_TYPE;
	metrics_write(admin->ruler, *admin->now_ms, functions_library_version,
	              &response->body);
}

static void
serve_families(struct admin *admin, const struct http_server_request *request,
               struct http_server_response *response)
{
	const char *max_text = http_server_query(request, "max");
	uint64_t max = FAMILIES_DEFAULT;

	if (max_text &&
	    text_parse_unsigned(span_from(max_text), FAMILIES_MAX, &max) < 0) {
		put_text(response, 400, "max is a number up to 256\n");
		return;
	}
	response->content_type = "application/json";
	ruler_view_status(admin->ruler, *admin->now_ms, (uint32_t)max, false,
	                  &response->body);
	(void)buffer_append_byte(&response->body, '\n');
}

static void
serve_family(struct admin *admin, const char *id_text,
             struct http_server_response *response)
{
	struct id128 id;

	if (id_decode(span_from(id_text), &id) < 0) {
		put_text(response, 400, "the id of a family is 32 hex digits\n");
		return;
	}
	if (ruler_view_family(admin->ruler, id, &response->body) < 0) {
		put_text(response, 404, "this family is not known\n");
		return;
	}
	response->content_type = "application/json";
	(void)buffer_append_byte(&response->body, '\n');
}

static const struct {
	const char *path;
	void (*serve)(struct admin *admin, const struct http_server_request *request,
	              struct http_server_response *response);
} pages[] = {
	{ "/healthz", serve_health },
	{ "/readyz", serve_ready },
	{ "/metrics", serve_metrics },
	{ "/api/v1/families", serve_families },
};

static void
serve(const struct http_server_request *request, struct http_server_response *response,
      void *data)
{
	static const char family_path[] = "/api/v1/families/";
	struct admin *admin = data;

	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
		response->allow = "GET, HEAD";
		put_text(response, 405, "these pages are only read\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		if (strcmp(request->path, pages[i].path) == 0) {
			pages[i].serve(admin, request, response);
			return;
		}
	}
	if (strncmp(request->path, family_path, sizeof(family_path) - 1) == 0)
		serve_family(admin, request->path + sizeof(family_path) - 1, response);
	else
		put_text(response, 404,
		         "there are /healthz, /readyz, /metrics and /api/v1/families\n");
}

int
admin_open(uv_loop_t *loop, const char *address, struct ruler *ruler,
           const uint64_t *now_ms, struct admin **ret_admin)
{
	char message[HTTP_SERVER_MESSAGE_SIZE];
	struct admin *admin;
	int err;

	if (strcmp(address, "off") == 0) {
		*ret_admin = NULL;
		return 0;
	}
	admin = calloc(1, sizeof(*admin));
	if (!admin)
		return ERR_MEMORY;
	*admin = (struct admin){ .ruler = ruler, .now_ms = now_ms };
	err = http_server_open(loop, address, serve, admin, &admin->server, message);
	if (err < 0) {
		log_error("the pages cannot be served", LOG_TEXT("reason", message),
		          LOG_TEXT("advice",
		                   "choose another address with --listen, or off"));
		free(admin);
		return err;
	}
	log_info("serving pages", LOG_TEXT("listen", address),
	         LOG_NUMBER("port", http_server_port(admin->server)));
	*ret_admin = admin;
	return 0;
}

static void
on_closed(void *data)
{
	free(data);
}

struct admin *
admin_close(struct admin *admin)
{
	if (admin)
		http_server_close(admin->server, on_closed, admin);
	return NULL;
}
