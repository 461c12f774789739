#include "scheduler/admin_change.h"

#include "common/codec/part.h"
#include "common/codec/protocol_record.h"
#include "common/io/log.h"
#include "common/text.h"
#include "scheduler/admin_ask.h"
#include "scheduler/ruler_ledger.h"
#include "scheduler/ruler_view.h"
#include "scheduler/ruler_view_json.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANGES_MAX 256
#define PASTS_MAX   (LEDGER_ROUTES + 1)
#define PAST_BYTES  262144 /* of one version; a larger one is read from Redis again */
#define PART_LAST   SPAN("8388607") /* last byte compared of one part */
#define KEPT_S      SPAN("691200")  /* 8 days, as the hours of the ledger */
#define NEW_MS      3600000 /* what came longer ago is gone from Redis, or was looked at */
#define DOCUMENTS   4       /* so many alive at once are no deploys */

/* The parts of the newest version of a route. */
struct past {
	uint64_t route; /* of its name; 0: free */
	struct id128 family;
	size_t lens[PART_NODES_MAX];
	uint32_t count;
	struct buffer bytes;
};

struct pair { /* that is being compared */
	uint64_t route;
	struct id128 newer, older; /* older: none, if it is the first one */
};

struct admin_changes {
	struct admin_change items[CHANGES_MAX];
	uint32_t count;
	struct past pasts[PASTS_MAX];
	struct pair pair;
	bool is_loaded, is_asking;
};

int
admin_change_open(struct admin *admin)
{
	admin->changes = calloc(1, sizeof(*admin->changes));
	return admin->changes ? 0 : ERR_MEMORY;
}

void
admin_change_close(struct admin *admin)
{
	for (uint32_t i = 0; admin->changes && i < PASTS_MAX; i++)
		buffer_fini(&admin->changes->pasts[i].bytes);
	free(admin->changes);
	admin->changes = NULL;
}

/* ---- what is known --------------------------------------------------------------- */

static struct admin_change *
find(const struct admin *admin, struct id128 newer)
{
	struct admin_changes *changes = admin->changes;

	for (uint32_t i = 0; i < changes->count; i++)
		if (id_equals(changes->items[i].newer, newer))
			return &changes->items[i];
	return NULL;
}

const struct admin_change *
admin_change_find(const struct admin *admin, struct id128 newer)
{
	const struct admin_change *change = find(admin, newer);

	return change && change->kind != DRIFT_KIND_COUNT && change->kind != DRIFT_NONE
	               ? change
	               : NULL;
}

void
admin_change_put(const struct admin_change *change, struct buffer *out)
{
	ruler_view_json_id(out, "older", change->older);
	ruler_view_json_text(out, "kind", span_from(drift_kind_word(change->kind)));
	ruler_view_json_text(out, "fix", span_from(drift_kind_fix(change->kind)));
	if (change->kind == DRIFT_NONE)
		return;
	ruler_view_json_text(out, "part", span_from(dialect_tier_name(change->tier)));
	ruler_view_json_number(out, "byte", change->byte);
}

/* A free place, or that of the oldest one; `ret_gone` is what was there. */
static struct admin_change *
place_for(struct admin_changes *changes, struct admin_change *ret_gone)
{
	struct admin_change *oldest = &changes->items[0];

	*ret_gone = (struct admin_change){ 0 };
	if (changes->count < CHANGES_MAX)
		return &changes->items[changes->count++];
	for (uint32_t i = 1; i < changes->count; i++)
		if (changes->items[i].at_ms < oldest->at_ms)
			oldest = &changes->items[i];
	*ret_gone = *oldest;
	return oldest;
}

/* ---- in Redis: newer -> at_ms|older|kind|tier|byte -------------------------------- */

static void
on_stored(struct redis *redis, const struct reply *reply, int error, void *data)
{
	(void)redis; /* what is not stored is still in memory */
	(void)reply;
	(void)error;
	(void)data;
}

static void
tell(struct admin *admin, const struct span *words, size_t count)
{
	if (redis_command(admin->redis, words, count, on_stored, admin) < 0)
		log_debug("what a new version changed was not stored");
}

static void
store(struct admin *admin, const struct admin_change *change,
      const struct admin_change *gone)
{
	char key[CONFIG_NAME_SIZE + 8], newer[ID_HEX_LEN], older[ID_HEX_LEN], value[128];
	struct span name;

	(void)snprintf(key, sizeof(key), "%s:drift", admin->config->namespace);
	name = span_from(key);
	id_encode(change->newer, newer);
	id_encode(change->older, older);
	(void)snprintf(value, sizeof(value), "%llu|%.*s|%d|%d|%llu",
	               (unsigned long long)change->at_ms, ID_HEX_LEN, older,
	               (int)change->kind, (int)change->tier,
	               (unsigned long long)change->byte);
	tell(admin,
	     (const struct span[]){ SPAN("HSET"), name,
	                            (struct span){ newer, ID_HEX_LEN },
	                            span_from(value) },
	     4);
	tell(admin, (const struct span[]){ SPAN("EXPIRE"), name, KEPT_S }, 3);
	if (id_is_none(gone->newer))
		return;
	id_encode(gone->newer, newer);
	tell(admin,
	     (const struct span[]){ SPAN("HDEL"), name,
	                            (struct span){ newer, ID_HEX_LEN } },
	     3);
}

static bool
cut_number(struct span *rest, uint64_t max, uint64_t *ret_value)
{
	struct span word;

	return protocol_cut(rest, '|', &word) &&
	       text_parse_unsigned(word, max, ret_value) == 0;
}

static void
load_one(struct admin_changes *changes, struct span name, struct span rest)
{
	struct admin_change change, gone;
	uint64_t kind, tier;
	struct span older;

	if (id_decode(name, &change.newer) < 0 ||
	    !cut_number(&rest, UINT64_MAX, &change.at_ms) ||
	    !protocol_cut(&rest, '|', &older) || id_decode(older, &change.older) < 0 ||
	    !cut_number(&rest, DRIFT_KIND_COUNT - 1, &kind) ||
	    !cut_number(&rest, TIER_COUNT - 1, &tier) ||
	    !cut_number(&rest, UINT64_MAX, &change.byte))
		return; /* of another version, or written by somebody else */
	change.kind = (enum drift_kind)kind;
	change.tier = (enum tier)tier;
	*place_for(changes, &gone) = change;
}

static void
on_loaded(struct admin_ask *ask)
{
	struct admin_changes *changes = ask->admin->changes;
	const struct reply *all = ask->replies[0];

	changes->count = 0;
	for (size_t i = 0; all->kind == REPLY_ARRAY && i + 1 < all->count; i += 2)
		load_one(changes, reply_text(&all->items[i]),
		         reply_text(&all->items[i + 1]));
	changes->is_loaded = true;
	admin_ask_finish(ask);
}

/* ---- the parts of the version before ---------------------------------------------- */

static uint64_t
number_of(struct span text)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < text.len; i++)
		sum = (sum ^ (unsigned char)text.data[i]) * 0x100000001b3;
	return sum | 1;
}

static struct past *
past_of(struct admin_changes *changes, uint64_t route)
{
	for (uint32_t i = 0; i < PASTS_MAX; i++)
		if (changes->pasts[i].route == route)
			return &changes->pasts[i];
	return NULL;
}

static bool
has_past(struct admin_changes *changes, uint64_t route, struct id128 family)
{
	const struct past *past = past_of(changes, route);

	return past && id_equals(past->family, family) && past->count > 0;
}

static void
keep(struct admin_changes *changes, const struct pair *pair, const struct span *parts,
     uint32_t count)
{
	struct past *past = past_of(changes, pair->route);
	size_t bytes = 0;

	past = past ? past : past_of(changes, 0);
	past = past ? past : &changes->pasts[pair->route % PASTS_MAX];
	buffer_fini(&past->bytes);
	*past = (struct past){ .route = pair->route, .family = pair->newer };
	buffer_init(&past->bytes, BUFFER_SIZE_DEFAULT);
	for (uint32_t i = 0; i < count; i++)
		bytes += parts[i].len;
	if (bytes > PAST_BYTES)
		return;
	for (uint32_t i = 0; i < count; i++) {
		(void)buffer_append(&past->bytes, parts[i]);
		past->lens[i] = parts[i].len;
	}
	past->count = buffer_error(&past->bytes) == 0 ? count : 0;
}

static uint32_t
parts_of_past(const struct past *past, struct span parts[PART_NODES_MAX])
{
	const char *at = past->bytes.data;

	for (uint32_t i = 0; i < past->count; i++) {
		parts[i] = (struct span){ at, past->lens[i] };
		at += past->lens[i];
	}
	return past->count;
}

/* ---- comparing ------------------------------------------------------------------- */

bool
admin_change_fill(struct chain *chain, const struct span *parts, uint64_t count)
{
	for (uint64_t i = 0; i < count && i < PART_NODES_MAX; i++) {
		struct chain_node *node = &chain->node[chain->count];

		if (part_px_read(parts[i], &node->px) < 0)
			return false;
		node->tier = node->px.tier;
		/* Equal parts with equal settings are one node here. */
		node->id = (struct id128){ number_of(node->px.settings), i + 1 };
		chain->count++;
	}
	return count > 0;
}

static void
compare(struct admin *admin, const struct pair *pair, const struct span *newer,
        uint32_t newer_count, const struct span *older, uint32_t older_count)
{
	struct chain *chains = calloc(2, sizeof(*chains));
	struct drift drift = { .kind = DRIFT_KIND_COUNT };
	struct admin_change *change, gone;

	if (chains && admin_change_fill(&chains[0], older, older_count) &&
	    admin_change_fill(&chains[1], newer, newer_count))
		drift_compare(&chains[0], &chains[1], &drift);
	free(chains); /* they own nothing: their parts are the caller's */
	change = place_for(admin->changes, &gone);
	*change = (struct admin_change){
		.newer = pair->newer,
		.older = pair->older,
		.at_ms = *admin->now_ms,
		.kind = drift.kind,
		.tier = drift.tier,
		.byte = drift.offset,
	};
	if (change->kind != DRIFT_KIND_COUNT)
		store(admin, change, &gone);
}

static void
on_parts(struct admin_ask *ask)
{
	struct admin_changes *changes = ask->admin->changes;
	const struct pair *pair = &changes->pair;
	const struct past *past = past_of(changes, pair->route);
	struct span newer[PART_NODES_MAX], older[PART_NODES_MAX];
	uint32_t newer_count = 0, older_count = 0;

	for (uint32_t i = 0; i < ask->replies_count; i++) {
		struct span text = reply_text(ask->replies[i]);

		if (i < ask->offset && newer_count < PART_NODES_MAX)
			newer[newer_count++] = text;
		else if (i >= ask->offset && older_count < PART_NODES_MAX)
			older[older_count++] = text;
	}
	if (has_past(changes, pair->route, pair->older))
		older_count = parts_of_past(past, older);
	if (!id_is_none(pair->older))
		compare(ask->admin, pair, newer, newer_count, older, older_count);
	keep(changes, pair, newer, newer_count);
	admin_ask_finish(ask);
}

static void
ask_parts(struct admin_ask *ask, const struct reply *record)
{
	struct protocol_family family;
	struct span rest, id;

	if (protocol_record_parse_family(reply_text(record), &family) < 0)
		return; /* it is not stored any more */
	rest = family.px;
	while (protocol_list_next(&rest, &id))
		ADMIN_ASK(ask, SPAN("GETRANGE"), admin_ask_key(ask, "px:", id), SPAN("0"),
		          PART_LAST);
}

static void
on_records(struct admin_ask *ask)
{
	struct admin_changes *changes = ask->admin->changes;
	const struct pair *pair = &changes->pair;

	ask_parts(ask, reply_at(ask->replies[0], 0));
	ask->offset = ask->under_way;
	if (!has_past(changes, pair->route, pair->older))
		ask_parts(ask, reply_at(ask->replies[0], 1));
	admin_ask_round(ask, on_parts);
}

/* ---- what to look at -------------------------------------------------------------- */

static uint32_t
count_alive(const struct ledger *ledger, uint32_t route, uint64_t now_ms)
{
	struct ledger_view_version version;
	uint32_t alive = 0;

	for (uint32_t i = 0; ledger_view_version(ledger, route, i, now_ms, &version); i++)
		alive += version.alive && !version.twin;
	return alive;
}

/* The newest version of a route that nobody has looked at, and the one before it. */
static bool
find_new(const struct admin *admin, uint32_t route, struct pair *ret_pair)
{
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct ledger_view_version version, before;
	uint64_t now_ms = *admin->now_ms;
	struct ledger_view_route view;
	uint32_t i = 0;

	while (ledger_view_version(ledger, route, i, now_ms, &version) && version.twin)
		i++;
	if (!ledger_view_version(ledger, route, i, now_ms, &version) ||
	    version.last_ms + NEW_MS < now_ms || version.tokens == 0)
		return false;
	ledger_view_route(ledger, route, now_ms, &view);
	*ret_pair =
		(struct pair){ .route = number_of(view.name), .newer = version.family };
	if (!ledger_view_version(ledger, route, i + 1, now_ms, &before))
		return !past_of(admin->changes, ret_pair->route);
	ret_pair->older = before.family;
	if (find(admin, version.family))
		return !past_of(admin->changes, ret_pair->route);
	return count_alive(ledger, route, now_ms) < DOCUMENTS;
}

static void
on_end(struct admin_ask *ask)
{
	ask->admin->changes->is_asking = false;
}

static struct admin_ask *
begin(struct admin *admin, admin_ask_fn *done)
{
	struct admin_ask *ask = admin_ask_begin(admin, done);

	if (ask)
		ask->end = on_end;
	admin->changes->is_asking = ask != NULL;
	return ask;
}

static void
ask_records(struct admin *admin)
{
	const struct pair *pair = &admin->changes->pair;
	struct admin_ask *ask = begin(admin, on_records);
	char newer[ID_HEX_LEN], older[ID_HEX_LEN];

	if (!ask)
		return;
	id_encode(pair->newer, newer);
	id_encode(pair->older, older);
	ADMIN_ASK(ask, SPAN("HMGET"), admin_ask_key(ask, "families", SPAN("")),
	          (struct span){ newer, ID_HEX_LEN }, (struct span){ older, ID_HEX_LEN });
	admin_ask_round(ask, on_records);
}

void
admin_change_look(struct admin *admin)
{
	struct admin_changes *changes = admin->changes;
	const struct ledger *ledger = ruler_ledger(admin->ruler);
	struct admin_ask *ask;

	if (ruler_view_health(admin->ruler, *admin->now_ms).phase != RULER_RULING) {
		changes->is_loaded = false; /* somebody else may find something */
		return;
	}
	if (changes->is_asking)
		return;
	if (!changes->is_loaded) {
		ask = begin(admin, on_loaded);
		if (!ask)
			return;
		ADMIN_ASK(ask, SPAN("HGETALL"), admin_ask_key(ask, "drift", SPAN("")));
		admin_ask_round(ask, on_loaded);
		return;
	}
	for (uint32_t i = 0; i < ledger_view_routes(ledger); i++) {
		if (!find_new(admin, i, &changes->pair))
			continue;
		ask_records(admin);
		return;
	}
}
