#include "scheduler/ruler_intern.h"

#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_note.h"

#define SALTS_MAX 16 /* collisions of 128 bits in a row: somebody breaks the hash */

static int
ask(struct ruler *ruler, struct id128 id, size_t size, struct call_list *out)
{
	struct ruler_admit *admit = &ruler->admit;
	char key[3 + ID_HEX_LEN + 1] = "px:";

	if (admit->wanted_count == RULER_WANTED_MAX || !ruler_fits(out, 4, 256))
		return ERR_FULL;
	id_encode(id, key + 3);
	key[3 + ID_HEX_LEN] = '\0';
	call_begin(out, ruler_tag(ruler, RULER_CALL_SEGMENT, admit->wanted_count));
	admit->wanted[admit->wanted_count++] = id;
	admit->wanted_bytes += size;
	admit->waits++;
	call_text(out, "GET");
	protocol_call_key(out, ruler->config->ns, key);
	return ERR_AGAIN;
}

void
ruler_intern_forget(struct ruler_admit *admit)
{
	admit->wanted_count = 0;
	admit->wanted_answered = 0;
	admit->wanted_bytes = 0;
}

void
ruler_intern_on_segment(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                        const struct reply *reply)
{
	struct ruler_admit *admit = &ruler->admit;
	struct id128 id;
	uint32_t node;

	(void)now_ms;
	VERIFY(index < admit->wanted_count);
	id = admit->wanted[index];
	node = ruler_known_node(&ruler->known, id);
	ruler_admit_answered(ruler);
	if (++admit->wanted_answered == admit->wanted_count)
		ruler_intern_forget(admit);
	if (reply->kind != REPLY_TEXT) {
		ruler->known.nodes[node].flags &= ~(uint32_t)RULER_NODE_STORED;
		return;
	}
	ruler->known.nodes[node].flags |= RULER_NODE_STORED;
	ruler_segments_put(&ruler->segments, id, reply->text);
}

static void
add_segment(struct ruler *ruler, uint32_t node, struct id128 id, struct span value)
{
	struct ruler_admit *admit = &ruler->admit;
	size_t from = admit->bytes.len;

	VERIFY(admit->pending_count < RULER_BATCH_JOBS * LINEAGE_MAX);
	(void)buffer_append_id(&admit->bytes, id);
	ruler_batch_tail(admit, RULER_GROUP_SEGMENTS, from);
	ruler_batch_word(admit, RULER_GROUP_SEGMENTS, value);
	ruler_batch_item(admit, RULER_GROUP_SEGMENTS);
	ruler->known.nodes[node].flags |= RULER_NODE_PENDING;
	admit->pending[admit->pending_count++] = id;
	ruler_segments_put(&ruler->segments, id, value);
}

enum match {
	MATCH_EQUAL,
	MATCH_OTHER,
	MATCH_NEW,
	MATCH_UNKNOWN,
};

static enum match
compare(struct ruler *ruler, struct id128 id, struct span value)
{
	uint32_t node = ruler_shelf_find(&ruler->known.node_shelf, id);
	uint32_t flags;
	struct span stored;

	if (node == RULER_SHELF_NONE)
		return ruler->known.nodes_complete ? MATCH_NEW : MATCH_UNKNOWN;
	flags = ruler->known.nodes[node].flags;
	if (!(flags & (RULER_NODE_STORED | RULER_NODE_PENDING)))
		return MATCH_NEW;
	stored = ruler_segments_find(&ruler->segments, id);
	if (!stored.data)
		return MATCH_UNKNOWN;
	return span_equals(stored, value) ? MATCH_EQUAL : MATCH_OTHER;
}

static int
intern_node(struct ruler *ruler, struct ruler_job *job, uint32_t i, struct call_list *out)
{
	struct ruler_job_reader *reader = &ruler->admit.reader;

	for (uint32_t salt = 0; salt < SALTS_MAX; salt++) {
		struct span value = ruler_job_segment(reader, i);
		struct id128 id = job->lineage.nodes[i].id;
		uint32_t node;

		switch (compare(ruler, id, value)) {
		case MATCH_EQUAL:
			return 0;
		case MATCH_NEW:
			node = ruler_known_node(&ruler->known, id);
			add_segment(ruler, node, id, value);
			return 0;
		case MATCH_UNKNOWN:
			node = ruler_shelf_find(&ruler->known.node_shelf, id);
			if (node != RULER_SHELF_NONE &&
			    ruler->known.nodes[node].flags & RULER_NODE_PENDING)
				return ERR_FULL; /* it is on its way; ask when it is there
				                  */
			return ask(ruler, id, value.len, out);
		case MATCH_OTHER:
			ruler_note_job(
				ruler, RULER_WARNING, SPAN(""),
				job->envelope ? job->envelope->route : SPAN(""),
				"two different prefixes have the same hash; one of them "
				"gets another id");
			ruler_job_salt(reader, i, salt + 1, job);
			break;
		}
	}
	VERIFY(!"sixteen collisions in a row");
	return ERR_FULL;
}

/* Upstreams have nodes of their own; what is the same text at two of them is known by
 * this. */
static void
name_twin(struct ruler *ruler, const struct ruler_job *job, uint32_t i)
{
	const struct ruler_job_reader *reader = &ruler->admit.reader;
	struct ruler_known *known = &ruler->known;
	uint32_t at = ruler_shelf_find(&known->node_shelf, job->lineage.nodes[i].id);
	struct id128 above = ID_NONE;
	struct id_hash hash;

	if (at == RULER_SHELF_NONE || !id_is_none(known->nodes[at].twin))
		return;
	if (i > 0) {
		uint32_t parent = ruler_shelf_find(&known->node_shelf,
		                                   job->lineage.nodes[i - 1].id);

		if (parent != RULER_SHELF_NONE)
			above = known->nodes[parent].twin;
	}
	id_hash_init(&hash, reader->identity);
	id_hash_number(&hash, above.high);
	id_hash_number(&hash, above.low);
	id_hash_field(&hash, ruler_job_segment(reader, i));
	known->nodes[at].twin = id_hash_final(&hash);
	known->nodes[at].sketch = ledger_sketch_of(reader->chain.node[i].px.segment);
}

int
ruler_intern_job(struct ruler *ruler, struct ruler_job *job, struct call_list *out)
{
	for (uint32_t i = 0; job->split && i < job->lineage.count; i++) {
		int err = intern_node(ruler, job, i, out);

		if (err < 0)
			return err;
		name_twin(ruler, job, i);
	}
	return 0;
}

static bool
is_wanted(const struct ruler_admit *admit, struct id128 id)
{
	for (uint32_t i = 0; i < admit->wanted_count; i++)
		if (id_equals(admit->wanted[i], id))
			return true;
	return false;
}

/* What comes must not push out what came for the job that waits. */
static size_t
room_ahead(const struct ruler_config *config)
{
	return MIN(config->read_size, config->segments_size_max / 4);
}

bool
ruler_intern_ahead(struct ruler *ruler, const struct ruler_job_reader *reader,
                   const struct ruler_job *job, struct call_list *out)
{
	for (uint32_t i = 0; job->split && i < job->lineage.count; i++) {
		struct id128 id = job->lineage.nodes[i].id;
		struct span value = ruler_job_segment(reader, i);
		uint32_t node = ruler_shelf_find(&ruler->known.node_shelf, id);

		if (compare(ruler, id, value) != MATCH_UNKNOWN ||
		    is_wanted(&ruler->admit, id) ||
		    (node != RULER_SHELF_NONE &&
		     ruler->known.nodes[node].flags & RULER_NODE_PENDING))
			continue;
		if (ruler->admit.wanted_bytes + value.len > room_ahead(ruler->config) ||
		    ask(ruler, id, value.len, out) != ERR_AGAIN)
			return false;
	}
	return true;
}

static void
settle(struct ruler *ruler, uint32_t set)
{
	struct ruler_admit *admit = &ruler->admit;

	for (uint32_t i = 0; i < admit->pending_count; i++) {
		uint32_t node =
			ruler_shelf_find(&ruler->known.node_shelf, admit->pending[i]);

		if (node == RULER_SHELF_NONE)
			continue;
		ruler->known.nodes[node].flags &= ~(uint32_t)RULER_NODE_PENDING;
		ruler->known.nodes[node].flags |= set;
	}
	admit->pending_count = 0;
}

void
ruler_intern_stored(struct ruler *ruler)
{
	settle(ruler, RULER_NODE_STORED);
}

void
ruler_intern_undo(struct ruler *ruler)
{
	settle(ruler, 0);
}
