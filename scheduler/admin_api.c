#include "scheduler/admin_api.h"

#include "common/text.h"
#include "scheduler/board_places.h"
#include "scheduler/functions/functions_library.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#define LIMIT_DEFAULT 50
#define OFFSET_MAX    1000000
#define NOTES_SHOWN   20

static void
begin(struct http_server_response *response)
{
	response->content_type = "application/json";
	ruler_view_json_open(&response->body, NULL, '{');
}

static void
end(struct http_server_response *response)
{
	ruler_view_json_close(&response->body, '}');
	(void)buffer_append_byte(&response->body, '\n');
}

/* ---- the overview ---------------------------------------------------------------- */

void
admin_api_put_overview(struct admin *admin, struct buffer *out)
{
	uint64_t now_ms = *admin->now_ms;

	board_refresh(&admin->board, now_ms);
	ruler_view_json_open(out, NULL, '{');
	ruler_view_head(admin->ruler, now_ms, out);
	board_put_sums(&admin->board, out);
	ruler_view_names(admin->ruler, now_ms, out);
	board_put_notes(&admin->board, NOTES_SHOWN, out);
	ruler_view_json_number(out, "taken_us", admin->board.took_us);
	ruler_view_json_close(out, '}');
}

void
admin_api_serve_overview(struct admin *admin, const struct http_server_request *request,
                         struct http_server_response *response)
{
	(void)request;
	response->content_type = "application/json";
	admin_api_put_overview(admin, &response->body);
	(void)buffer_append_byte(&response->body, '\n');
}

/* What this visitor may do; the token is not asked for, only whether there is one. */
void
admin_api_serve_session(struct admin *admin, const struct http_server_request *request,
                        struct http_server_response *response)
{
	const struct config_scheduler *config = &admin->config->scheduler;

	(void)request;
	begin(response);
	ruler_view_json_text(&response->body, "version",
	                     span_from(functions_library_version));
	ruler_view_json_text(&response->body, "namespace",
	                     span_from(admin->config->namespace));
	ruler_view_json_open(&response->body, "upstreams", '[');
	for (size_t i = 0; i < admin->config->upstreams_count; i++)
		ruler_view_json_text(&response->body, NULL,
		                     span_from(admin->config->upstreams[i].name));
	ruler_view_json_close(&response->body, ']');
	ruler_view_json_bool(&response->body, "read_only",
	                     config->read_only || !admin->token[0]);
	ruler_view_json_bool(&response->body, "reveal",
	                     config->reveal && admin->token[0]);
	end(response);
}

/* ---- queries --------------------------------------------------------------------- */

/* A word out of a list of `count`; `fallback` if it is not given. */
static int
query_word(const struct http_server_request *request, const char *name,
           const char *(*text)(int index), int count, int fallback, int *ret_index)
{
	const char *given = http_server_query(request, name);

	if (!given || !*given) {
		*ret_index = fallback;
		return 0;
	}
	for (int i = 0; i < count; i++) {
		if (strcmp(given, text(i)) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	return ERR_MALFORMED;
}

static const char *
sort_text(int index)
{
	return board_sort_text((enum board_sort)index);
}

static const char *
show_text(int index)
{
	return board_show_text((enum board_show)index);
}

static const char *
blocked_text(int index)
{
	return core_blocked_text((enum core_blocked)index);
}

static const char *
order_text(int index)
{
	return index == 0 ? "desc" : "asc";
}

/* NULL, or what is wrong with the query. */
static const char *
read_query(const struct http_server_request *request, struct board_query *ret_query)
{
	uint64_t offset, limit;
	int sort, show, order, blocked;

	if (admin_query_number(request, "offset", OFFSET_MAX, 0, &offset) < 0)
		return "offset is a number up to 1000000";
	if (admin_query_number(request, "limit", BOARD_LIMIT_MAX, LIMIT_DEFAULT, &limit) <
	    0)
		return "limit is a number up to 200";
	if (query_word(request, "sort", sort_text, BOARD_SORT_COUNT, BOARD_SORT_WORK,
	               &sort) < 0)
		return "sort is one of work, waiting, running, oldest, route, state, "
		       "blocked, tokens, read, written, uncached, prefix_hit_ratio, "
		       "token_read_ratio";
	if (query_word(request, "show", show_text, BOARD_SHOW_COUNT, BOARD_SHOW_ALL,
	               &show) < 0)
		return "show is one of families, busy, held, singles, all";
	if (query_word(request, "order", order_text, 2, 0, &order) < 0)
		return "order is asc or desc";
	if (query_word(request, "blocked", blocked_text, CORE_BLOCKED_COUNT, -1,
	               &blocked) < 0)
		return "blocked is one of the kinds in docs/STATUS.md";
	*ret_query = (struct board_query){
		.sort = (enum board_sort)sort,
		.ascending = order == 1,
		.show = (enum board_show)show,
		.text = admin_query_text(request, "q"),
		.route = admin_query_text(request, "route"),
		.blocked = blocked,
		.offset = (uint32_t)offset,
		.limit = (uint32_t)limit,
	};
	return NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static void
put_page(const struct board_query *query, uint32_t total, struct buffer *out)
{
	ruler_view_json_number(out, "total", total);
	ruler_view_json_number(out, "offset", query->offset);
	ruler_view_json_number(out, "limit", query->limit);
}

void
admin_api_serve_families(struct admin *admin, const struct http_server_request *request,
                         struct http_server_response *response)
{
	const struct board_row *rows[BOARD_LIMIT_MAX];
	struct board *board = &admin->board;
	struct board_query query;
	const char *wrong = read_query(request, &query);
	uint32_t count, total;

	if (wrong) {
		admin_put_error(response, 400, wrong);
		return;
	}
	board_refresh(board, *admin->now_ms);
	total = board_select(board, &query, rows, &count);
	begin(response);
	ruler_view_head(admin->ruler, *admin->now_ms, &response->body);
	put_page(&query, total, &response->body);
	board_put_sums(board, &response->body);
	ruler_view_json_open(&response->body, "families", '[');
	for (uint32_t i = 0; i < count; i++)
		board_put_row(board, rows[i], true, &response->body);
	ruler_view_json_close(&response->body, ']');
	ruler_view_names(admin->ruler, *admin->now_ms, &response->body);
	end(response);
}

void
admin_api_serve_family(struct admin *admin, struct id128 id,
                       const struct http_server_request *request,
                       struct http_server_response *response)
{
	const struct board_row *row;

	(void)request;
	board_refresh(&admin->board, *admin->now_ms);
	row = board_find(&admin->board, id);
	if (row) {
		response->content_type = "application/json";
		board_put_row(&admin->board, row, true, &response->body);
	} else if (ruler_view_family(admin->ruler, id, &response->body) == 0) {
		response->content_type = "application/json"; /* it is new */
	} else {
		admin_put_error(response, 404, "this family is not known");
		return;
	}
	(void)buffer_append_byte(&response->body, '\n');
}

void
admin_api_serve_writers(struct admin *admin, struct id128 id,
                        struct http_server_response *response)
{
	begin(response);
	board_put_writers(&admin->board, id, &response->body);
	end(response);
}

void
admin_api_serve_routes(struct admin *admin, const struct http_server_request *request,
                       struct http_server_response *response)
{
	struct board_query query;
	const char *wrong = read_query(request, &query);

	if (wrong) {
		admin_put_error(response, 400, wrong);
		return;
	}
	board_refresh(&admin->board, *admin->now_ms);
	begin(response);
	ruler_view_json_number(&response->body, "now_ms", *admin->now_ms);
	ruler_view_json_number(&response->body, "offset", query.offset);
	ruler_view_json_number(&response->body, "limit", query.limit);
	board_put_routes(&admin->board, &query, &response->body);
	end(response);
}

/* ---- places ---------------------------------------------------------------------- */

void
admin_api_serve_places(struct admin *admin, const struct http_server_request *request,
                       struct http_server_response *response)
{
	struct span everywhere = admin_query_text(request, "everywhere");
	struct board_query query;
	const char *wrong = read_query(request, &query);

	if (!wrong && everywhere.len > 0 && !span_equals(everywhere, SPAN("1")))
		wrong = "everywhere is 1, or not there";
	if (wrong) {
		admin_put_error(response, 400, wrong);
		return;
	}
	begin(response);
	ruler_view_json_number(&response->body, "now_ms", *admin->now_ms);
	ruler_view_json_number(&response->body, "offset", query.offset);
	ruler_view_json_number(&response->body, "limit", query.limit);
	board_places_put(&admin->board, *admin->now_ms, &query, everywhere.len > 0,
	                 &response->body);
	end(response);
}

void
admin_api_serve_family_places(struct admin *admin, struct id128 id,
                              struct http_server_response *response)
{
	begin(response);
	ruler_view_json_number(&response->body, "now_ms", *admin->now_ms);
	if (board_places_put_family(&admin->board, *admin->now_ms, id, &response->body)) {
		end(response);
		return;
	}
	buffer_clear(&response->body);
	admin_put_error(response, 404, "this family is not known, or has one job only");
}

/* ---- the past -------------------------------------------------------------------- */

void
admin_api_serve_history(struct admin *admin, const struct http_server_request *request,
                        struct http_server_response *response)
{
	(void)request;
	begin(response);
	board_put_totals(&admin->board, &response->body);
	end(response);
}

void
admin_api_serve_notes(struct admin *admin, const struct http_server_request *request,
                      struct http_server_response *response)
{
	uint64_t limit;

	if (admin_query_number(request, "limit", BOARD_NOTES, LIMIT_DEFAULT, &limit) <
	    0) {
		admin_put_error(response, 400, "limit is a number up to 256");
		return;
	}
	begin(response);
	board_put_notes(&admin->board, (uint32_t)limit, &response->body);
	end(response);
}
