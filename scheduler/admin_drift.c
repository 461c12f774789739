#include "scheduler/admin_drift.h"

#include "common/codec/drift.h"
#include "common/codec/part.h"
#include "common/codec/protocol_record.h"
#include "scheduler/admin_ask.h"
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

static uint64_t
sum_of(struct span text)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < text.len; i++)
		sum = (sum ^ (unsigned char)text.data[i]) * 0x100000001b3;
	return sum;
}

/* Makes nodes of stored parts; false if one of them is gone. */
static bool
fill(struct chain *chain, const struct reply *const *parts, uint64_t count)
{
	for (uint64_t i = 0; i < count && i < PART_NODES_MAX; i++) {
		struct chain_node *node = &chain->node[chain->count];

		if (part_px_read(reply_text(parts[i]), &node->px) < 0)
			return false;
		node->tier = node->px.tier;
		/* Equal parts with equal settings are one node here. */
		node->id = (struct id128){ sum_of(node->px.settings), i + 1 };
		chain->count++;
	}
	return count > 0;
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
		admin_ask_fail(ask, 404, "the parts of these versions are not stored");
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
		admin_ask_fail(ask, 404, "one of these versions is not stored any more");
		return;
	}
	ask_parts(ask, &newer);
	ask->offset = ask->under_way;
	ask_parts(ask, &older);
	admin_ask_round(ask, on_parts);
}

/* ---- the question ---------------------------------------------------------------- */

/* The two versions of a route that were used last. */
static bool
find_versions(struct admin *admin, struct span route, struct id128 ret_ids[2])
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	uint32_t at = ledger_view_find(ledger, route);
	struct ledger_view_version version;

	for (uint32_t i = 0; i < 2; i++) {
		if (at == LEDGER_VIEW_ALL ||
		    !ledger_view_version(ledger, at, i, *admin->now_ms, &version))
			return false;
		ret_ids[i] = version.family;
	}
	return true;
}

void
admin_drift_serve(struct admin *admin, const struct http_server_request *request,
                  struct http_server_response *response)
{
	struct admin_ask *ask;
	struct id128 ids[2];

	if (!find_versions(admin, admin_query_text(request, "route"), ids)) {
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
