#include "scheduler/ruler_family.h"

#include "scheduler/ruler_batch.h"
#include "scheduler/ruler_core.h"

#define SUFFIX_TIMES  4    /* a job has its own estimate if its input differs so much */
#define SUFFIX_TOKENS 64   /* and is not tiny */
#define OUTPUT_WASTE  8    /* or if an eighth of the output would be reserved in vain */
#define OUTPUT_FORGET 1000 /* after so many such jobs the largest was the exception */
#define SAMPLES_MAX   16   /* weight of the past in an estimate */
#define INPUT_MAX     99999999 /* its column */

static uint32_t
mix(uint32_t mean, uint32_t samples, uint32_t value)
{
	int64_t weight = MIN(samples, SAMPLES_MAX - 1) + 1;

	return (uint32_t)((int64_t)mean + ((int64_t)value - (int64_t)mean) / weight);
}

static bool
differs(uint32_t mean, uint32_t value)
{
	if (MAX(mean, value) < SUFFIX_TOKENS)
		return false;
	return value > (uint64_t)mean * SUFFIX_TIMES ||
	       mean > (uint64_t)value * SUFFIX_TIMES;
}

/* Providers reserve `max_tokens` exactly, and a family may ask for 10 and for 90,000:
 * what we reserve less than they do is answered by a 429.  So a job without an estimate
 * of its own reserves the family's largest.  `counts`: it is admitted for the first time.
 */
static bool
has_own_output(struct ruler_family *family, uint32_t output, bool counts)
{
	uint32_t most = family->output_most;

	if (output >= most - most / OUTPUT_WASTE || most - output < SUFFIX_TOKENS) {
		family->output_most = MAX(most, output);
		family->own_in_a_row = family->own_most = 0;
		return false;
	}
	family->own_most = MAX(family->own_most, output);
	if (counts && ++family->own_in_a_row >= OUTPUT_FORGET) {
		family->output_most = family->own_most;
		family->own_in_a_row = family->own_most = 0;
	}
	return true;
}

/* A stored estimate is corrected when it is off by a quarter. */
static bool
is_off(uint32_t stored, uint32_t value)
{
	uint32_t low = MIN(stored, value), high = MAX(stored, value);

	return high - low > low / 4 + 8;
}

/* What would end a field of the record, or must not stand in it. */
static void
copy_field(char *to, size_t size, struct span text)
{
	ruler_copy(to, size, text);
	for (char *at = to; *at; at++) {
		if (*at == '|')
			*at = '/';
		else if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
}

/* Who pays for it: by the model of its first job, and so by the last configuration. */
static void
fill_home(struct ruler *ruler, uint64_t now_ms, struct ruler_family *family,
          const struct ruler_job *job)
{
	const struct ruler_config *config = ruler->config;
	struct span class_name = job->model < config->models_count
	                                 ? config->models[job->model].class_name
	                                 : SPAN("default");

	family->pool = (uint16_t)ruler_core_pool(ruler, now_ms, job->pool);
	family->budget =
		(uint16_t)ruler_core_budget(ruler, now_ms, job->upstream, class_name);
	family->names_model = true;
	copy_field(family->model_name, sizeof(family->model_name), job->model_name);
}

static void
fill_family(struct ruler *ruler, uint64_t now_ms, struct ruler_family *family,
            const struct ruler_job *job)
{
	fill_home(ruler, now_ms, family, job);
	family->split = job->split;
	family->opaque = job->opaque;
	copy_field(family->route, sizeof(family->route), job->route);
}

uint32_t
ruler_family_input(const struct ruler_family *family)
{
	return (uint32_t)MIN((uint64_t)family->input + family->ungated, INPUT_MAX);
}

/* What gates, were its leaf shared: that is for the next ruler, who sees no job. */
static uint32_t
gates_if_shared(const struct ruler_family *family, const struct event_model *model)
{
	struct lineage lineage = family->lineage;

	lineage.nodes[lineage.count - 1].flags |= LINEAGE_SHARED;
	return lineage_gates(&lineage, model->needs_marker, model->minimum_tokens);
}

/* What holds the family back, and what is paid for in full because nothing does. */
static void
set_gates(struct ruler_family *family, const struct event_model *model)
{
	uint32_t gates = lineage_gates(&family->lineage, model->needs_marker,
	                               model->minimum_tokens);

	family->gates = gates & ~(1u << (family->lineage.count - 1));
	family->ungated = lineage_ungated(&family->lineage, gates);
}

/* The lineage as this job has it, with what is known of its nodes. */
static void
merge_lineage(struct ruler *ruler, struct ruler_family *family,
              const struct ruler_job *job)
{
	struct event model = ruler_known_model_event(&ruler->known, family->model);

	family->lineage = job->lineage;
	for (uint32_t i = 0; job->split && i < family->lineage.count; i++) {
		struct lineage_node *node = &family->lineage.nodes[i];
		uint32_t at = ruler_known_node(&ruler->known, node->id);

		if (node->flags & LINEAGE_SHARED)
			ruler->known.nodes[at].flags |= RULER_NODE_SHARED;
		if (ruler->known.nodes[at].flags & RULER_NODE_SHARED)
			node->flags |= LINEAGE_SHARED;
	}
	set_gates(family, &model.model);
	family->marked |=
		(job->lineage.nodes[job->lineage.count - 1].flags & LINEAGE_MARKED) != 0;
	family->markable =
		gates_if_shared(family, &model.model) & 1u << (family->lineage.count - 1);
}

/* The first job after a rebuild tells again how large the prefix is. */
static void
take_apart(struct ruler_family *family)
{
	if (!family->input_is_whole)
		return;
	family->input_is_whole = false;
	family->input -= MIN(family->input, family->ungated);
}

/* Another family's lineage knows a node that is shared since now. */
static void
spread_shared(struct ruler *ruler, uint32_t node, struct id128 id)
{
	uint32_t place = ruler->known.nodes[node].first_family;
	struct ruler_family *family;
	struct event model;
	bool found = false;

	if (place == RULER_SHELF_NONE)
		return;
	family = &ruler->known.families[place];
	for (uint32_t i = 0; i < family->lineage.count; i++) {
		if (id_equals(family->lineage.nodes[i].id, id)) {
			family->lineage.nodes[i].flags |= LINEAGE_SHARED;
			found = true;
		}
	}
	if (!found) /* its place was given to another one */
		return;
	model = ruler_known_model_event(&ruler->known, family->model);
	set_gates(family, &model.model);
	family->stored_shared =
		family->lineage.nodes[family->lineage.count - 1].flags & LINEAGE_SHARED;
	ruler_batch_family(ruler, place)->record = true;
}

static void
sight_nodes(struct ruler *ruler, uint64_t now_ms, uint32_t place,
            const struct ruler_job *job)
{
	uint64_t ttl_ms = ruler_known_ttl_ms(&ruler->known, job->upstream);

	for (uint32_t i = 0; job->split && i < job->lineage.count; i++) {
		struct id128 id = job->lineage.nodes[i].id;
		uint32_t node = ruler_known_node(&ruler->known, id);

		if (ruler_known_sight(&ruler->known, node, place, now_ms, ttl_ms))
			spread_shared(ruler, node, id);
	}
}

bool
ruler_family_update(struct ruler *ruler, uint64_t now_ms, uint32_t place,
                    const struct ruler_job *job, bool fresh, bool told)
{
	struct ruler_family *family = &ruler->known.families[place];
	uint32_t gates = family->gates;
	bool shared, odd, was_named = fresh || family->names_model;

	if (fresh)
		fill_family(ruler, now_ms, family, job);
	else if (!was_named)
		fill_home(ruler, now_ms, family, job);
	family->model =
		(uint16_t)ruler_core_model(ruler, now_ms, job->upstream, job->model);
	family->tail_marked |= job->tail_marked;
	family->streams = job->streams;
	family->ttl_ms = job->ttl_ms;
	family->seen_ms = now_ms;
	if (!told) /* else it was counted the first time */
		sight_nodes(ruler, now_ms, place, job);
	merge_lineage(ruler, family, job);
	take_apart(family);
	odd = has_own_output(family, job->output_tokens, !told) ||
	      (!fresh && differs(family->input, job->input_tokens));
	if (!told) {
		family->input = mix(family->input, family->samples, job->input_tokens);
		family->output = mix(family->output, family->samples, job->output_tokens);
		family->samples++;
		ruler->health.admitted++;
	}
	if (!job->now &&
	    (family->hold_max_ms == 0 || job->hold_max_ms < family->hold_max_ms))
		family->hold_max_ms = job->hold_max_ms;

	shared = family->lineage.nodes[family->lineage.count - 1].flags & LINEAGE_SHARED;
	if (!was_named || family->markable != family->stored_markable ||
	    family->marked != family->stored_marked || gates != family->gates ||
	    shared != family->stored_shared ||
	    family->hold_max_ms != family->stored_hold_max_ms ||
	    is_off(family->stored_input, ruler_family_input(family)) ||
	    family->stored_output != family->output_most)
		ruler_batch_family(ruler, place)->record = true;
	family->stored_shared = shared;
	return odd;
}
