#include "scheduler/admin_drift.h"

#include "common/codec/drift.h"
#include "common/codec/part.h"
#include "common/codec/protocol_record.h"
#include "scheduler/admin_ask.h"
#include "scheduler/admin_change.h"
#include "scheduler/admin_guard.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view_json.h"

#include <stdlib.h>

#define PART_LAST SPAN("8388607") /* last byte compared of one part */

/* ask->text: the ids of the newer and of the older family; ask->offset: how many of the
 * replies are parts of the newer one; ask->number: 1 if texts may be shown. */

static struct span
newer_id(const struct admin_ask *ask)
{
	return (struct span){ ask->text, ID_HEX_LEN };
}

static struct span
older_id(const struct admin_ask *ask)
{
	return (struct span){ ask->text + ID_HEX_LEN, ID_HEX_LEN };
}

/* ---- the answer ------------------------------------------------------------------ */

static void
put_difference(struct admin_ask *ask, const struct drift *drift)
{
	struct buffer *out = &ask->response.body;

	ruler_view_json_open(out, NULL, '{');
	ruler_view_json_text(out, "newer", newer_id(ask));
	ruler_view_json_text(out, "older", older_id(ask));
	ruler_view_json_text(out, "kind", span_from(drift_kind_word(drift->kind)));
	ruler_view_json_text(out, "fix", span_from(drift_kind_fix(drift->kind)));
	if (drift->kind != DRIFT_NONE) {
		ruler_view_json_text(out, "part",
		                     span_from(dialect_tier_name(drift->tier)));
		ruler_view_json_number(out, "byte", drift->offset);
	}
	if (ask->number > 0) {
		ruler_view_json_text(out, "newer_text", span_from(drift->b));
		ruler_view_json_text(out, "older_text", span_from(drift->a));
	}
	ruler_view_json_close(out, '}');
	admin_ask_finish(ask);
}

static bool
fill(struct chain *chain, const struct reply *const *replies, uint64_t count)
{
	struct span parts[PART_NODES_MAX];

	for (uint64_t i = 0; i < count && i < PART_NODES_MAX; i++)
		parts[i] = reply_text(replies[i]);
	return admin_change_fill(chain, parts, count);
}

/* The parts are gone: what was found while they were there, without their texts. */
static void
put_found(struct admin_ask *ask, const char *missing)
{
	const struct admin_change *change = NULL;
	struct id128 newer, older;

	if (id_decode(newer_id(ask), &newer) == 0)
		change = admin_change_find(ask->admin, newer);
	if (!change || id_decode(older_id(ask), &older) < 0 ||
	    !id_equals(change->older, older)) {
		admin_ask_fail(ask, 404, missing);
		return;
	}
	ruler_view_json_open(&ask->response.body, NULL, '{');
	ruler_view_json_text(&ask->response.body, "newer", newer_id(ask));
	admin_change_put(change, &ask->response.body);
	ruler_view_json_close(&ask->response.body, '}');
	admin_ask_finish(ask);
}

static void
on_parts(struct admin_ask *ask)
{
	struct chain *chains = calloc(2, sizeof(*chains));
	struct drift drift;

	if (!chains || !fill(&chains[1], ask->replies, ask->offset) ||
	    !fill(&chains[0], ask->replies + ask->offset,
	          ask->replies_count - ask->offset)) {
		free(chains);
		put_found(ask, "the parts of these versions are not stored");
		return;
	}
	drift_compare(&chains[0], &chains[1], &drift);
	free(chains); /* they own nothing: their parts are in the replies */
	put_difference(ask, &drift);
}

static void
ask_parts(struct admin_ask *ask, const struct protocol_family *family)
{
	struct span rest = family->px, id;

	while (protocol_list_next(&rest, &id))
		ADMIN_ASK(ask, SPAN("GETRANGE"), admin_ask_key(ask, "px:", id), SPAN("0"),
		          PART_LAST);
}

static void
on_records(struct admin_ask *ask)
{
	struct protocol_family newer, older;
	const struct reply *records = ask->replies[0];

	if (protocol_record_parse_family(reply_text(reply_at(records, 0)), &newer) < 0 ||
	    protocol_record_parse_family(reply_text(reply_at(records, 1)), &older) < 0) {
		put_found(ask, "one of these versions is not stored any more");
		return;
	}
	ask_parts(ask, &newer);
	ask->offset = ask->under_way;
	ask_parts(ask, &older);
	admin_ask_round(ask, on_parts);
}

/* ---- the question ---------------------------------------------------------------- */

/* The newest version of a route with a text of its own, and the one before it; where
 * each job has a version of its own, the last two that are nearly alike. */
static bool
find_versions(struct admin *admin, struct span route, struct id128 ret_ids[2])
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	uint32_t at = ledger_view_find(ledger, route), found = 0;
	struct ledger_view_version version;

	for (uint32_t i = 0; at != LEDGER_VIEW_ALL && found < 2; i++) {
		if (!ledger_view_version(ledger, at, i, *admin->now_ms, &version))
			return ledger_view_lookalikes(ledger, at, ret_ids);
		if (found > 0 || !version.twin)
			ret_ids[found++] = version.family;
	}
	return found == 2;
}

void
admin_drift_serve(struct admin *admin, const struct http_server_request *request,
                  struct http_server_response *response)
{
	struct span route = admin_query_text(request, "route");
	struct admin_ask *ask;
	struct id128 ids[2];

	if (route.len == 0) {
		admin_put_error(response, 400, "whose versions? Say ?route=");
		return;
	}
	if (!find_versions(admin, route, ids)) {
		admin_put_error(response, 404, "this route has no two versions");
		return;
	}
	ask = admin_ask_open(admin, request, response, on_records);
	if (!ask)
		return;
	ask->key[0] = '\0'; /* not for everybody */
	ask->number =
		admin->config->scheduler.reveal && admin_guard_has_token(admin, request);
	id_encode(ids[0], ask->text);
	id_encode(ids[1], ask->text + ID_HEX_LEN);
	ADMIN_ASK(ask, SPAN("HMGET"), admin_ask_key(ask, "families", SPAN("")),
	          newer_id(ask), older_id(ask));
	admin_ask_round(ask, on_records);
}
