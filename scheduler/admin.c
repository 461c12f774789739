#include "scheduler/admin.h"

#include "common/io/log.h"
#include "common/prometheus.h"
#include "common/text.h"
#include "scheduler/admin_act.h"
#include "scheduler/admin_api.h"
#include "scheduler/admin_ask.h"
#include "scheduler/admin_change.h"
#include "scheduler/admin_drift.h"
#include "scheduler/admin_guard.h"
#include "scheduler/admin_jobs.h"
#include "scheduler/admin_ledger.h"
#include "scheduler/admin_live.h"
#include "scheduler/admin_prefix.h"
#include "scheduler/admin_worker.h"
#include "scheduler/board_store.h"
#include "scheduler/dashboard/dashboard_files.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/metrics.h"
#include "scheduler/metrics_pools.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define RECONNECT_MS    1000
#define SCRAPED_MS      120000 /* somebody scrapes, if he did so lately */
#define CONNECTIONS_MAX 512

/* ---- what all pages share -------------------------------------------------------- */

void
admin_put_error(struct http_server_response *response, unsigned status, const char *text)
{
	response->status = status;
	response->content_type = "application/json";
	ruler_view_json_open(&response->body, NULL, '{');
	ruler_view_json_text(&response->body, "error", span_from(text));
	ruler_view_json_close(&response->body, '}');
	(void)buffer_append_byte(&response->body, '\n');
}

int
admin_query_number(const struct http_server_request *request, const char *name,
                   uint64_t max, uint64_t fallback, uint64_t *ret_value)
{
	const char *text = http_server_query(request, name);

	*ret_value = fallback;
	return text ? text_parse_unsigned(span_from(text), max, ret_value) : 0;
}

struct span
admin_query_text(const struct http_server_request *request, const char *name)
{
	const char *text = http_server_query(request, name);

	return text ? span_from(text) : SPAN("");
}

/* ---- for machines ---------------------------------------------------------------- */

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
		&response->body, "%s: %s, inbox lag %llu ms%s%s%s\n",
		response->status == 200 ? "ready" : "not ready",
		ruler_phase_text(health.phase), (unsigned long long)health.inbox_lag_ms,
		health.admits ? ""
			      : ", the cursor is missing (warmq doctor --repair cursor)",
		health.memory_pressure ? ", Redis is above 90 % of its maxmemory" : "",
		health.evicts ? ", Redis throws jobs away when it is full" : "");
}

static void
serve_metrics(struct admin *admin, const struct http_server_request *request,
              struct http_server_response *response)
{
	(void)request;
	response->content_type = PROMETHEUS_CONTENT_TYPE;
	admin->scraped_ms = uv_hrtime() / 1000000;
	metrics_write(admin->ruler, *admin->now_ms, functions_library_version,
	              &response->body);
}

/* ---- the dashboard --------------------------------------------------------------- */

static const char *const page_headers[] = {
	"Content-Security-Policy",
	dashboard_policy,
	"Referrer-Policy",
	"no-referrer",
	"Cross-Origin-Opener-Policy",
	"same-origin",
	"Cross-Origin-Resource-Policy",
	"same-origin",
	NULL,
};

/* As data of the page, which it may not end: what users wrote stands in it. */
static void
put_first(struct admin *admin, struct buffer *out)
{
	struct buffer json = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct span rest;

	admin_api_put_overview(admin, &json);
	rest = buffer_span(&json);
	(void)buffer_append_text(out, "<script type=\"application/json\" id=\"first\">");
	while (rest.len > 0 && buffer_error(&json) == 0) {
		const char *less = memchr(rest.data, '<', rest.len);
		size_t len = less ? (size_t)(less - rest.data) : rest.len;

		(void)buffer_append(out, (struct span){ rest.data, len });
		if (less)
			(void)buffer_append_text(out, "\\u003c");
		len += less != NULL;
		rest = (struct span){ rest.data + len, rest.len - len };
	}
	(void)buffer_append_text(out, "</script>");
	buffer_fini(&json);
}

/* With the first figures in it, so that nobody has to ask for them. */
static void
serve_index(struct admin *admin, const struct dashboard_file *file,
            struct http_server_response *response)
{
	struct span bytes = file->bytes;

	(void)buffer_append(&response->body,
	                    (struct span){ bytes.data, dashboard_first_at });
	put_first(admin, &response->body);
	(void)buffer_append(&response->body,
	                    (struct span){ bytes.data + dashboard_first_at,
	                                   bytes.len - dashboard_first_at });
}

static bool
serve_file(struct admin *admin, const char *path, struct http_server_response *response)
{
	bool index = strcmp(path, "/") == 0 || strcmp(path, "/index.html") == 0;

	for (size_t i = 0; i < dashboard_files_count; i++) {
		const struct dashboard_file *file = &dashboard_files[i];

		if (strcmp(index ? "index.html" : path + 1, file->name) != 0)
			continue;
		response->content_type = file->type;
		response->headers = page_headers;
		if (index)
			serve_index(admin, file, response);
		else
			response->constant = file->bytes;
		return true;
	}
	return false;
}

/* ---- which page ------------------------------------------------------------------ */

struct page {
	const char *path;
	admin_serve_fn *serve;
};

static const struct page machine_pages[] = {
	{ "/healthz", serve_health },
	{ "/readyz", serve_ready },
	{ "/metrics", serve_metrics },
};

static const struct page api_pages[] = {
	{ "/api/v1/overview", admin_api_serve_overview },
	{ "/api/v1/session", admin_api_serve_session },
	{ "/api/v1/events", admin_live_serve },
	{ "/api/v1/families", admin_api_serve_families },
	{ "/api/v1/routes", admin_api_serve_routes },
	{ "/api/v1/places", admin_api_serve_places },
	{ "/api/v1/history", admin_api_serve_history },
	{ "/api/v1/notes", admin_api_serve_notes },
	{ "/api/v1/ledger", admin_ledger_serve },
	{ "/api/v1/drift", admin_drift_serve },
	{ "/api/v1/workers", admin_worker_serve },
	{ "/api/v1/jobs", admin_jobs_serve_list },
};

static const struct page *
find_page(const struct page *pages, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(pages[i].path, path) == 0)
			return &pages[i];
	return NULL;
}

static const char *
behind(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) == 0 ? path + len : NULL;
}

/* /api/v1/families/<id> and /api/v1/families/<id>/<part> */
static void
serve_family(struct admin *admin, const char *rest,
             const struct http_server_request *request,
             struct http_server_response *response)
{
	size_t len = strcspn(rest, "/");
	struct id128 id;

	if (id_decode((struct span){ rest, len }, &id) < 0)
		admin_put_error(response, 400, "the id of a family is 32 hex digits");
	else if (!rest[len])
		admin_api_serve_family(admin, id, request, response);
	else if (strcmp(rest + len, "/writers") == 0)
		admin_api_serve_writers(admin, id, response);
	else if (strcmp(rest + len, "/places") == 0)
		admin_api_serve_family_places(admin, id, response);
	else if (strcmp(rest + len, "/prefix") == 0)
		admin_prefix_serve(admin, id, request, response);
	else
		admin_put_error(response, 404, "a family has no such page");
}

static void
serve_get(struct admin *admin, const struct http_server_request *request,
          struct http_server_response *response)
{
	const struct page *page =
		find_page(api_pages, ARRAY_SIZE(api_pages), request->path);
	const char *rest;

	if (page)
		page->serve(admin, request, response);
	else if ((rest = behind(request->path, "/api/v1/families/")) != NULL)
		serve_family(admin, rest, request, response);
	else if ((rest = behind(request->path, "/api/v1/jobs/")) != NULL)
		admin_jobs_serve_one(admin, rest, request, response);
	else if (!serve_file(admin, request->path, response))
		admin_put_error(response, 404,
		                "there are /, /healthz, /readyz, /metrics, and what "
		                "docs/openapi.json lists under /api/v1");
}

static void
serve(const struct http_server_request *request, struct http_server_response *response,
      void *data)
{
	struct admin *admin = data;
	const struct page *page =
		find_page(machine_pages, ARRAY_SIZE(machine_pages), request->path);
	bool reads = strcmp(request->method, "GET") == 0;

	/* /metrics names routes and what they cost: not for the pages of others. */
	if ((!page || !reads || page->serve == serve_metrics) &&
	    !admin_guard_host(admin, request, response))
		return;
	if (page && reads) {
		page->serve(admin, request, response);
		return;
	}
	admin->looked_ms = uv_hrtime() / 1000000;
	if (reads) {
		serve_get(admin, request, response);
	} else if (strcmp(request->method, "POST") == 0 &&
	           behind(request->path, "/api/v1/")) {
		if (admin_guard_action(admin, request, response))
			admin_act_serve(admin, request, response);
	} else {
		response->allow = "GET, HEAD, POST";
		admin_put_error(response, 405, "pages are read; actions are POSTs");
	}
}

/* ---- start and end --------------------------------------------------------------- */

static void
on_sample(uv_timer_t *timer)
{
	struct admin *admin = timer->data;

	board_sample(&admin->board, *admin->now_ms);
	admin_change_look(admin);
	if (uv_hrtime() / 1000000 < admin->scraped_ms + SCRAPED_MS)
		metrics_pools_look(admin->ruler, *admin->now_ms);
}

static void
on_ready(struct redis *redis, void *data)
{
	(void)redis;
	(void)data;
}

static uint64_t
on_down(struct redis *redis, int error, const char *message, void *data)
{
	(void)redis; /* the scheduler's own connection has said so in the log */
	(void)error;
	(void)message;
	return ((struct admin *)data)->closing ? REDIS_STAY_DOWN : RECONNECT_MS;
}

static int
open_board(struct admin *admin)
{
	struct ruler_keeper keeper;
	int err = board_open(&admin->board, admin->ruler);

	if (err == 0)
		err = board_store_know(&admin->board, admin->config);
	if (err < 0)
		return err;
	keeper = board_store_keeper(&admin->board);
	ruler_keep(admin->ruler, &keeper);
	return 0;
}

static int
open_parts(struct admin *admin, uv_loop_t *loop, const struct admin_options *options)
{
	struct redis_options redis = {
		.url = options->url,
		.handlers = { on_ready, on_down },
		.data = admin,
		.client_name = "warmq-scheduler-pages",
	};
	const struct http_server_options http = {
		.address = options->config->scheduler.listen,
		.connections_max = CONNECTIONS_MAX,
		.fn = serve,
		.data = admin,
	};
	char message[HTTP_SERVER_MESSAGE_SIZE];
	int err = admin_guard_open(admin);

	if (err == 0)
		err = open_board(admin);
	if (err == 0)
		err = admin_change_open(admin);
	if (err == 0) {
		err = http_server_open(loop, &http, &admin->server, message);
		if (err < 0)
			log_error("the pages cannot be served",
			          LOG_TEXT("reason", message),
			          LOG_TEXT("advice", "choose another address with "
			                             "--listen, or off"));
	}
	return err < 0 ? err : redis_create(loop, &redis, &admin->redis);
}

static void
release(void *data)
{
	struct admin *admin = data;

	if (--admin->closing > 0)
		return;
	admin_ask_forget(admin);
	admin_change_close(admin);
	board_close(&admin->board);
	free(admin);
}

static void
on_timer_closed(uv_handle_t *handle)
{
	release(handle->data);
}

int
admin_open(uv_loop_t *loop, const struct admin_options *options, struct admin **ret_admin)
{
	struct admin *admin;
	int err;

	*ret_admin = NULL;
	if (strcmp(options->config->scheduler.listen, "off") == 0)
		return 0;
	admin = calloc(1, sizeof(*admin));
	if (!admin)
		return ERR_MEMORY;
	admin->config = options->config;
	admin->ruler = options->ruler;
	admin->now_ms = options->now_ms;
	(void)uv_timer_init(loop, &admin->sample);
	(void)uv_timer_init(loop, &admin->live);
	admin->sample.data = admin;
	admin->live.data = admin;
	err = open_parts(admin, loop, options);
	if (err < 0) {
		(void)admin_close(admin);
		return err;
	}
	(void)uv_timer_start(&admin->sample, on_sample, BOARD_TOTALS_MS, BOARD_TOTALS_MS);
	admin_live_start(admin);
	redis_connect(admin->redis);
	log_info(
		"serving pages", LOG_TEXT("listen", options->config->scheduler.listen),
		LOG_NUMBER("port", http_server_port(admin->server)),
		LOG_TEXT("actions", admin->token[0] && !admin->config->scheduler.read_only
	                                    ? "with the token"
	                                    : "none: read-only"));
	*ret_admin = admin;
	return 0;
}

struct admin *
admin_close(struct admin *admin)
{
	if (!admin)
		return NULL;
	admin->closing = 2u + (admin->redis != NULL) + (admin->server != NULL);
	uv_close((uv_handle_t *)&admin->sample, on_timer_closed);
	uv_close((uv_handle_t *)&admin->live, on_timer_closed);
	if (admin->server) /* first: what Redis still owes finds nobody then */
		http_server_close(admin->server, release, admin);
	if (admin->redis)
		redis_destroy(admin->redis, release, admin);
	return NULL;
}

void
admin_note(struct admin *admin, const struct ruler_note *note)
{
	if (admin)
		board_note(&admin->board, *admin->now_ms, note);
}
