#include "scheduler/admin_prefix.h"

#include "common/codec/protocol_record.h"
#include "scheduler/admin_ask.h"
#include "scheduler/admin_guard.h"
#include "scheduler/ruler_view_json.h"

#include <stdio.h>

#define TEXT_MAX SPAN("65535") /* last byte shown of one segment */

/* Pairs of replies: bytes of the segment, its text; ask->text: the px ids. */
static void
put_segments(struct admin_ask *ask)
{
	struct buffer *out = &ask->response.body;
	struct span rest = span_from(ask->text), id;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_bool(out, "revealed", ask->number > 0);
	ruler_view_json_open(out, "segments", '[');
	for (uint32_t i = 0; i + 1 < ask->replies_count; i += 2) {
		if (!protocol_list_next(&rest, &id))
			break;
		ruler_view_json_open(out, NULL, '{');
		ruler_view_json_text(out, "node", id);
		ruler_view_json_number(
			out, "bytes",
			(uint64_t)MAX(reply_integer(ask->replies[i], 0), 0));
		ruler_view_json_bool(out, "marked", ask->total >> i / 2 & 1);
		if (ask->number > 0)
			ruler_view_json_text(out, "text",
			                     reply_text(ask->replies[i + 1]));
		ruler_view_json_close(out, '}');
	}
	ruler_view_json_close(out, ']');
	ruler_view_json_close(out, '}');
	admin_ask_finish(ask);
}

static void
on_record(struct admin_ask *ask)
{
	struct protocol_family family;
	struct span rest, id;

	if (protocol_record_parse_family(reply_text(ask->replies[0]), &family) < 0 ||
	    family.px.len >= sizeof(ask->text)) {
		admin_ask_fail(ask, 404, "this family has no record in Redis");
		return;
	}
	(void)snprintf(ask->text, sizeof(ask->text), "%.*s", (int)family.px.len,
	               family.px.data);
	ask->total = family.marks;
	rest = span_from(ask->text);
	while (protocol_list_next(&rest, &id)) {
		struct span key = admin_ask_key(ask, "px:", id);

		ADMIN_ASK(ask, SPAN("STRLEN"), key);
		if (ask->number > 0)
			ADMIN_ASK(ask, SPAN("GETRANGE"), key, SPAN("0"), TEXT_MAX);
		else
			ADMIN_ASK(ask, SPAN("EXISTS"), key);
	}
	admin_ask_round(ask, put_segments);
}

void
admin_prefix_serve(struct admin *admin, struct id128 id,
                   const struct http_server_request *request,
                   struct http_server_response *response)
{
	struct admin_ask *ask = admin_ask_open(admin, request, response, on_record);
	char hex[ID_HEX_LEN];

	if (!ask)
		return;
	ask->number =
		admin->config->scheduler.reveal && admin_guard_has_token(admin, request);
	ask->key[0] = '\0'; /* not for everybody */
	id_encode(id, hex);
	ADMIN_ASK(ask, SPAN("HGET"), admin_ask_key(ask, "families", SPAN("")),
	          (struct span){ hex, ID_HEX_LEN });
	admin_ask_round(ask, on_record);
}
