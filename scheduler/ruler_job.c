#include "scheduler/ruler_job.h"

#include "common/codec/marker.h"
#include "common/text.h"

#include <stdio.h>

#define HINTS_MAX 65536 /* HINTS_MAX of scheduler/functions/finish.lua */

void
ruler_job_init(struct ruler_job_reader *reader, const struct ruler_config *config)
{
	const struct envelope_limits limits = {
		.body_max = config->job_size_max,
		.pack_max = ENVELOPE_PACK_MAX,
	};

	*reader = (struct ruler_job_reader){ .config = config };
	envelope_init(&reader->envelopes, &limits);
	chain_init(&reader->chain);
}

void
ruler_job_fini(struct ruler_job_reader *reader)
{
	envelope_fini(&reader->envelopes);
	chain_fini(&reader->chain);
}

static void
open_entry(struct ruler_job_reader *reader)
{
	int count = envelope_open(&reader->envelopes, reader->pairs, reader->pairs_count,
	                          reader->entry_ms, &reader->fault);

	reader->adopted = false;
	reader->is_open = count > 0;
	reader->is_pack = reader->is_open && reader->envelopes.is_pack;
	reader->count = count > 0 ? (uint32_t)count : 1;
	reader->index = 0;
}

uint32_t
ruler_job_open(struct ruler_job_reader *reader, const struct envelope_pair *pairs,
               size_t pairs_count, uint64_t entry_ms)
{
	reader->pairs = pairs;
	reader->pairs_count = pairs_count;
	reader->entry_ms = entry_ms;
	open_entry(reader);
	return reader->count;
}

/* ---- what is wrong with it ------------------------------------------------------- */

void
ruler_job_bury(struct ruler_job *job, const char *reason, const char *text)
{
	job->kind = RULER_JOB_DEAD;
	job->reason = reason;
	job->text = text;
}

/* A job that cannot be read may still say where its result goes. */
static struct span
find_reply(const struct ruler_job_reader *reader)
{
	for (size_t i = 0; i < reader->pairs_count; i++)
		if (span_equals(reader->pairs[i].name, SPAN("reply")) &&
		    text_is_name(reader->pairs[i].value))
			return reader->pairs[i].value;
	return SPAN("");
}

static void
make_faulty(struct ruler_job_reader *reader, struct ruler_job *job)
{
	bool unsupported = reader->fault.fault == ENVELOPE_UNSUPPORTED;

	job->reply = find_reply(reader);
	(void)snprintf(reader->text, sizeof(reader->text), "%s", reader->fault.text);
	ruler_job_bury(job, unsupported ? "unsupported" : "malformed", reader->text);
}

static int
find_upstream(const struct ruler_config *config, struct span name, size_t *ret_index)
{
	for (size_t i = 0; i < config->upstreams_count; i++) {
		if (span_equals(config->upstreams[i].name, name)) {
			*ret_index = i;
			return 0;
		}
	}
	return ERR_NOT_FOUND;
}

static void
make_homeless(struct ruler_job_reader *reader, struct ruler_job *job)
{
	const struct ruler_config *config = reader->config;
	char name[96];
	size_t len;

	(void)text_escape(reader->envelope.upstream, name, sizeof(name));
	len = (size_t)snprintf(reader->text, sizeof(reader->text),
	                       "There is no upstream \"%s\". warmq.yaml has:", name);
	for (size_t i = 0; i < config->upstreams_count && len < sizeof(reader->text); i++)
		len += (size_t)snprintf(reader->text + len, sizeof(reader->text) - len,
		                        " %.*s", (int)config->upstreams[i].name.len,
		                        config->upstreams[i].name.data);
	ruler_job_bury(job, "malformed", reader->text);
}

/* ---- reading --------------------------------------------------------------------- */

static void
read_envelope(struct ruler_job_reader *reader, struct ruler_job *job)
{
	const struct envelope *envelope = &reader->envelope;

	job->envelope = envelope;
	job->reply = envelope->reply;
	job->band = envelope->priority;
	if (envelope->kind == ENVELOPE_PREFIX) {
		job->kind = RULER_JOB_PREFIX;
		return;
	}
	job->kind = RULER_JOB_RUN;
	if (find_upstream(reader->config, envelope->upstream, &job->upstream) < 0) {
		make_homeless(reader, job);
		return;
	}
	job->hold_max_ms = MIN(envelope->hold_max_ms,
	                       reader->config->upstreams[job->upstream].hold_max_ms);
	job->now = job->hold_max_ms <= RULER_JOB_NOW_MS;
}

/* Envelopes go forward only; the one that was just read is still there. */
static int
step_to(struct ruler_job_reader *reader, uint32_t index)
{
	if (index < reader->index)
		open_entry(reader);
	return envelope_seek(&reader->envelopes, index);
}

void
ruler_job_read(struct ruler_job_reader *reader, uint32_t index, struct ruler_job *ret_job)
{
	struct ruler_job job = { .reply = SPAN("") };
	int err;

	VERIFY(index < reader->count);
	if (reader->index > 0 && index == reader->index - 1) {
		*ret_job = reader->last;
		return;
	}
	err = reader->is_open ? step_to(reader, index) : ERR_MALFORMED;
	if (err == 0) {
		reader->fault = (struct envelope_error){ .text = "it cannot be read" };
		err = envelope_next(&reader->envelopes, &reader->envelope,
		                    &reader->fault);
	}
	if (err < 0)
		make_faulty(reader, &job);
	else
		read_envelope(reader, &job);
	reader->index = index + 1;
	reader->last = job;
	*ret_job = job;
}

/* A pack that could not be taken apart is one dead job, and stays it. */
static int
adopt_entry(struct ruler_job_reader *reader, struct span payload, uint64_t entry_ms)
{
	reader->pairs_count = envelope_read_moved(payload, reader->adopted_pairs);
	reader->pairs = reader->adopted_pairs;
	reader->entry_ms = entry_ms;
	if (envelope_open(&reader->envelopes, reader->pairs, reader->pairs_count,
	                  entry_ms, &reader->fault) != 1)
		return ERR_MALFORMED;
	return envelope_next(&reader->envelopes, &reader->envelope, &reader->fault);
}

void
ruler_job_adopt(struct ruler_job_reader *reader, struct span payload, uint64_t entry_ms,
                struct ruler_job *ret_job)
{
	struct ruler_job job = { .reply = SPAN(""), .raw = payload };
	int err;

	reader->adopted = true;
	reader->is_open = false;
	reader->is_pack = false;
	reader->count = 1;
	reader->pairs_count = 0;
	reader->fault = (struct envelope_error){ .text = "its payload cannot be read" };
	if (envelope_is_moved(payload))
		err = adopt_entry(reader, payload, entry_ms);
	else
		err = envelope_read_slim(payload, &reader->envelope, &reader->fault);
	if (err < 0)
		make_faulty(reader, &job);
	else
		read_envelope(reader, &job);
	*ret_job = job;
}

/* ---- identity -------------------------------------------------------------------- */

size_t
ruler_job_model(const struct ruler_config *config, struct span model)
{
	for (size_t i = 0; i + 1 < config->models_count; i++)
		if (text_matches(config->models[i].match, model))
			return i;
	return config->models_count > 0 ? config->models_count - 1 : 0;
}

struct span
ruler_job_pool(const struct ruler_config *config, struct span route, struct span upstream)
{
	for (size_t i = 0; i < config->pools_count; i++)
		if (text_matches(config->pools[i].match_route, route) &&
		    text_matches(config->pools[i].match_upstream, upstream))
			return config->pools[i].name;
	return SPAN("default");
}

struct dialect_traits
ruler_job_traits(const struct ruler_config *config, size_t upstream, size_t model)
{
	const struct ruler_upstream *it = &config->upstreams[upstream];
	const struct ruler_model *entry = &config->models[model];

	if (model >= config->models_count)
		return it->traits;
	return dialect_for_model(&it->traits, &(struct dialect_model){
						      .ours = it->markers,
						      .cache_key = entry->cache_key,
						      .breakpoint = entry->breakpoint,
						      .tokens_min = entry->tokens_min,
					      });
}

static struct span
make_route(struct ruler_job_reader *reader)
{
	struct span upstream = reader->envelope.upstream, model = reader->chain.model;
	int len;

	if (reader->envelope.route.len > 0)
		return reader->envelope.route;
	len = snprintf(reader->route, sizeof(reader->route), "%.*s/%.*s",
	               (int)MIN(upstream.len, TEXT_NAME_MAX), upstream.data,
	               (int)MIN(model.len, TEXT_NAME_MAX),
	               model.len > 0 ? model.data : "");
	for (int i = 0; i < len; i++)
		if ((unsigned char)reader->route[i] < 0x20 || reader->route[i] == 0x7f)
			reader->route[i] = '?';
	return (struct span){ reader->route, (size_t)MAX(len, 0) };
}

/* A job without nodes waits with the others of its route that have none. */
static struct id128
opaque_family(const struct ruler_job_reader *reader, const struct ruler_job *job)
{
	const struct envelope *envelope = &reader->envelope;
	const struct ruler_config *config = reader->config;
	struct id_hash hash;

	id_hash_init(&hash, reader->identity);
	id_hash_field(&hash, SPAN("opaque"));
	id_hash_field(&hash, envelope->upstream);
	id_hash_field(&hash, job->route);
	if (job->model < config->models_count)
		id_hash_field(&hash, config->models[job->model].class_name);
	return id_hash_final(&hash);
}

/* Which nodes a marker of ours could go to, each looked at alone. */
static uint32_t
markable_nodes(const struct ruler_job_reader *reader, const struct ruler_job *job)
{
	const struct ruler_upstream *upstream = &reader->config->upstreams[job->upstream];
	const struct dialect_traits traits =
		ruler_job_traits(reader->config, job->upstream, job->model);
	const struct chain *chain = &reader->chain;
	struct part_own own = { .dialect = upstream->traits.dialect };
	struct part_px px[PART_NODES_MAX];
	struct marker_request request = {
		.traits = &traits,
		.px = px,
		.px_count = chain->count,
		.own = &own,
		.never = !upstream->markers ||
		         reader->envelope.markers == ENVELOPE_MARKERS_NEVER,
	};
	struct marker_plan plan;
	uint32_t bits = 0;

	if (chain->own.len > 0 && part_own_read(chain->own, &own) < 0)
		return 0;
	for (unsigned i = 0; i < chain->count; i++)
		px[i] = chain->node[i].px;
	for (unsigned i = 0; i < chain->count; i++) {
		request.want = 1u << i;
		marker_plan(&request, &plan);
		bits |= plan.insert & (1u << i);
	}
	return bits;
}

static bool
has_tail_marker(const struct ruler_job_reader *reader)
{
	const struct chain *chain = &reader->chain;
	struct part_own own;

	if (chain->count == 0 || chain->own.len == 0 ||
	    part_own_read(chain->own, &own) < 0)
		return false;
	return own.automatic != TTL_NONE ||
	       own.later[chain->node[chain->count - 1].tier] != TTL_NONE;
}

static void
copy_lineage(const struct ruler_job_reader *reader, uint32_t markable,
             struct ruler_job *job)
{
	const struct chain *chain = &reader->chain;

	/* What is not stored in segments has no nodes that others could share. */
	if (chain->count == 0 || !chain->split) {
		struct id128 leaf = chain->count > 0 ? chain->node[chain->count - 1].id
		                                     : opaque_family(reader, job);

		job->lineage = (struct lineage){ .count = 1, .nodes[0].id = leaf };
		if (chain->count > 0)
			job->lineage.nodes[0].tokens =
				chain->node[chain->count - 1].tokens;
		job->family = leaf;
		return;
	}
	VERIFY(chain->count <= LINEAGE_MAX);
	job->lineage.count = chain->count;
	for (unsigned i = 0; i < chain->count; i++) {
		const struct chain_node *node = &chain->node[i];
		uint32_t flags = 0;

		flags |= node->declared ? LINEAGE_SHARED : 0;
		flags |= node->user_marked ? LINEAGE_MARKED : 0;
		flags |= markable & (1u << i) ? LINEAGE_MARKABLE : 0;
		job->lineage.nodes[i] =
			(struct lineage_node){ node->id, node->tokens, flags };
	}
	job->family = chain->node[chain->count - 1].id;
}

/* Of the class that its prefix is marked with.  An upstream may keep those of its own
 * class for another time than providers do. */
static uint64_t
ttl_of(const struct ruler_upstream *upstream, const struct chain *chain)
{
	enum ttl ttl = chain->node[chain->count - 1].px.ttl;

	return ttl == upstream->traits.ttl && upstream->ttl_ms > 0 ? upstream->ttl_ms
	                                                           : dialect_ttl_ms(ttl);
}

static uint32_t
clamp_tokens(int64_t tokens)
{
	return (uint32_t)MIN(MAX(tokens, 0), 99999999);
}

/* Whether the functions would have to read a large `json` or `m` to find where an end of
 * the job goes (they do not: scheduler/functions/finish.lua).  A slim payload has it in
 * its first lines. */
static bool
hides_reply(const struct ruler_job_reader *reader)
{
	const struct envelope *envelope = &reader->envelope;

	if (envelope->reply.len + envelope->ref.len + envelope->traceparent.len == 0)
		return false;
	for (size_t i = 0; i < reader->pairs_count; i++) {
		const struct envelope_pair *pair = &reader->pairs[i];

		if (pair->value.len >= HINTS_MAX &&
		    (span_equals(pair->name, SPAN("json")) ||
		     span_equals(pair->name, SPAN("m"))))
			return true;
	}
	return false;
}

void
ruler_job_identify(struct ruler_job_reader *reader, struct span prefix,
                   struct ruler_job *job)
{
	const struct ruler_config *config = reader->config;
	const struct ruler_upstream *upstream = &config->upstreams[job->upstream];
	const struct envelope *envelope = &reader->envelope;
	struct chain *chain = &reader->chain;
	struct chain_error error;
	const struct chain_input input = {
		.traits = &upstream->traits,
		.seed = reader->identity,
		.upstream = envelope->upstream,
		.betas = envelope->betas,
		.body = envelope->body,
		.prefix = prefix,
		.shared = envelope->shared,
	};

	VERIFY(job->kind == RULER_JOB_RUN);
	if (chain_build(chain, &input, &error) < 0) {
		(void)snprintf(reader->text, sizeof(reader->text), "%s", error.text);
		ruler_job_bury(job, "malformed", reader->text);
		return;
	}
	job->model = ruler_job_model(config, chain->model);
	job->model_name = chain->model;
	job->route = make_route(reader);
	job->pool = ruler_job_pool(config, job->route, envelope->upstream);
	if (!span_equals(job->pool, SPAN("default")))
		chain_place(chain, job->pool);
	job->opaque = chain->opaque != CHAIN_SPLITTABLE;
	job->split = chain->split;
	job->slim = reader->adopted || reader->is_pack || chain->own.len > 0 ||
	            hides_reply(reader);
	job->streams = upstream->traits.stream;
	job->tail_marked = has_tail_marker(reader);
	if (chain->count > 0)
		job->ttl_ms = ttl_of(upstream, chain);
	job->input_tokens = clamp_tokens(chain->own_tokens);
	job->output_tokens = chain->max_tokens < 0 ? RULER_JOB_OUTPUT_GUESS
	                                           : clamp_tokens(chain->max_tokens);
	copy_lineage(reader, markable_nodes(reader, job), job);
	job->identified = true;
}

struct span
ruler_job_segment(const struct ruler_job_reader *reader, uint32_t node)
{
	VERIFY(node < reader->chain.count);
	return reader->chain.node[node].value;
}

void
ruler_job_salt(struct ruler_job_reader *reader, uint32_t node, uint32_t salt,
               struct ruler_job *job)
{
	chain_salt(&reader->chain, node, salt);
	for (uint32_t i = node; i < job->lineage.count; i++)
		job->lineage.nodes[i].id = reader->chain.node[i].id;
	job->family = job->lineage.nodes[job->lineage.count - 1].id;
}

void
ruler_job_payload(const struct ruler_job_reader *reader, const struct ruler_job *job,
                  struct buffer *out)
{
	struct envelope envelope = reader->envelope;

	if (job->identified && reader->chain.own.len > 0) {
		envelope.body = reader->chain.own;
		envelope.body_kind = ENVELOPE_OWN;
	}
	envelope_write_slim(&envelope, out);
}
