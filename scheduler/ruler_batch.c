#include "scheduler/ruler_batch.h"

#include "scheduler/ruler_core.h"
#include "scheduler/ruler_family.h"
#include "scheduler/ruler_unheld.h"

#include <stdlib.h>

#define FAMILY_WORDS   11
#define FAMILY_BYTES   1400 /* of an F item at most: names, lists of ids, route, model */
#define SLACK_FAMILIES 64   /* families that are only told to be shared now */
#define JOB_WORDS_MAX  16   /* of one job besides its family and segments */

static const char group_letters[RULER_GROUP_COUNT] = {
	[RULER_GROUP_SEGMENTS] = 'X',  [RULER_GROUP_SLIMS] = 'S',
	[RULER_GROUP_LATER] = 'L',     [RULER_GROUP_DEAD] = 'D',
	[RULER_GROUP_DEADLINES] = 'T', [RULER_GROUP_GONE] = 'G',
	[RULER_GROUP_PREFIXES] = 'P',  [RULER_GROUP_DECIDED] = 'U',
};

static const uint32_t group_words[RULER_GROUP_COUNT] = {
	/* of one item */
	[RULER_GROUP_SEGMENTS] = 2, [RULER_GROUP_SLIMS] = 2,     [RULER_GROUP_LATER] = 5,
	[RULER_GROUP_DEAD] = 7,     [RULER_GROUP_DEADLINES] = 2, [RULER_GROUP_GONE] = 1,
	[RULER_GROUP_PREFIXES] = 2, [RULER_GROUP_DECIDED] = 1,
};

int
ruler_batch_open(struct ruler_admit *admit)
{
	buffer_init(&admit->bytes, SIZE_MAX / 2);
	for (size_t i = 0; i < RULER_GROUP_COUNT; i++) {
		struct ruler_words *group = &admit->groups[i];

		group->max = (RULER_BATCH_JOBS + LINEAGE_MAX) * group_words[i];
		if (i == RULER_GROUP_SEGMENTS)
			group->max *= LINEAGE_MAX;
		group->words = calloc(group->max, sizeof(*group->words));
		if (!group->words)
			return ERR_MEMORY;
	}
	admit->jobs = calloc(RULER_BATCH_JOBS, sizeof(*admit->jobs));
	admit->families =
		calloc(RULER_BATCH_JOBS + SLACK_FAMILIES, sizeof(*admit->families));
	admit->pending = calloc(RULER_BATCH_JOBS * LINEAGE_MAX, sizeof(*admit->pending));
	return admit->jobs && admit->families && admit->pending ? 0 : ERR_MEMORY;
}

void
ruler_batch_close(struct ruler_admit *admit)
{
	buffer_fini(&admit->bytes);
	for (size_t i = 0; i < RULER_GROUP_COUNT; i++)
		free(admit->groups[i].words);
	free(admit->jobs);
	free(admit->families);
	free(admit->pending);
}

void
ruler_batch_clear(struct ruler_admit *admit)
{
	buffer_clear(&admit->bytes);
	for (size_t i = 0; i < RULER_GROUP_COUNT; i++) {
		admit->groups[i].items = 0;
		admit->groups[i].count = 0;
	}
	admit->jobs_count = 0;
	admit->families_count = 0;
	admit->pending_count = 0;
	admit->parsed_bytes = 0;
	admit->serial++;
}

static uint32_t
count_words(const struct ruler_admit *admit)
{
	uint32_t words = admit->families_count * (FAMILY_WORDS + 3 * EVENT_LIST_COUNT) +
	                 admit->jobs_count;

	for (size_t i = 0; i < RULER_GROUP_COUNT; i++)
		words += admit->groups[i].count;
	return words;
}

/* Jobs that wait in lists, that wait until later, that are dead, and those that are none:
 * each takes at most one item of every group (but segments: one for each node). */
static uint32_t
count_placed(const struct ruler_admit *admit)
{
	return admit->jobs_count + admit->groups[RULER_GROUP_LATER].items +
	       admit->groups[RULER_GROUP_DEAD].items +
	       admit->groups[RULER_GROUP_PREFIXES].items;
}

bool
ruler_batch_has_room(const struct ruler_admit *admit)
{
	uint32_t more = FAMILY_WORDS * 3 + LINEAGE_MAX * 2 + JOB_WORDS_MAX;

	return count_placed(admit) < RULER_BATCH_JOBS &&
	       admit->families_count < RULER_BATCH_JOBS &&
	       admit->bytes.len < RULER_BYTES / 2 &&
	       count_words(admit) + more + 64 <= RULER_ARGS;
}

bool
ruler_batch_puts(const struct ruler_admit *admit)
{
	return admit->groups[RULER_GROUP_PREFIXES].items > 0;
}

/* ---- words ----------------------------------------------------------------------- */

void
ruler_batch_tail(struct ruler_admit *admit, enum ruler_group group, size_t from)
{
	struct ruler_words *it = &admit->groups[group];

	VERIFY(it->count < it->max);
	VERIFY(from <= admit->bytes.len);
	it->words[it->count++] = (struct call_arg){
		.from = (uint32_t)from,
		.len = (uint32_t)(admit->bytes.len - from),
	};
}

void
ruler_batch_word(struct ruler_admit *admit, enum ruler_group group, struct span word)
{
	size_t from = admit->bytes.len;

	(void)buffer_append(&admit->bytes, word);
	ruler_batch_tail(admit, group, from);
}

void
ruler_batch_number(struct ruler_admit *admit, enum ruler_group group, uint64_t value)
{
	size_t from = admit->bytes.len;

	(void)buffer_append_unsigned(&admit->bytes, value);
	ruler_batch_tail(admit, group, from);
}

void
ruler_batch_item(struct ruler_admit *admit, enum ruler_group group)
{
	struct ruler_words *it = &admit->groups[group];

	it->items++;
	VERIFY(it->count == it->items * group_words[group]);
}

/* ---- families and jobs ----------------------------------------------------------- */

struct ruler_batch_family *
ruler_batch_family(struct ruler *ruler, uint32_t place)
{
	struct ruler_admit *admit = &ruler->admit;
	struct ruler_family *family = &ruler->known.families[place];
	struct ruler_batch_family *it;

	if (family->batch == admit->serial &&
	    family->batch_slot < admit->families_count &&
	    admit->families[family->batch_slot].family == place)
		return &admit->families[family->batch_slot];
	VERIFY(admit->families_count < RULER_BATCH_JOBS + SLACK_FAMILIES);
	ruler_shelf_touch(&ruler->known.family_shelf, place);
	family->batch = admit->serial;
	family->batch_slot = admit->families_count;
	it = &admit->families[admit->families_count++];
	*it = (struct ruler_batch_family){
		.family = place,
		.oldest_ms = EVENT_UNKNOWN,
		.record = !family->stored,
	};
	return it;
}

void
ruler_batch_push(struct ruler *ruler, uint32_t place, enum event_list list,
                 const struct protocol_element *element)
{
	struct ruler_admit *admit = &ruler->admit;
	struct ruler_batch_family *family = ruler_batch_family(ruler, place);
	struct ruler_batch_job *job = &admit->jobs[admit->jobs_count];
	char text[PROTOCOL_ELEMENT_SIZE];

	VERIFY(admit->jobs_count < RULER_BATCH_JOBS);
	*job = (struct ruler_batch_job){
		.element = { (uint32_t)admit->bytes.len,
		             (uint32_t)protocol_print_element(element, text) },
		.next = UINT32_MAX,
	};
	(void)buffer_append(&admit->bytes, (struct span){ text, job->element.len });
	if (family->jobs[list] == 0)
		family->first[list] = admit->jobs_count;
	else
		admit->jobs[family->last[list]].next = admit->jobs_count;
	family->last[list] = admit->jobs_count++;
	family->jobs[list]++;
	if (element->id.ms < family->oldest_ms)
		family->oldest_ms = element->id.ms;
}

/* ---- the call -------------------------------------------------------------------- */

bool
ruler_batch_fits(const struct ruler *ruler, const struct call_list *out)
{
	const struct ruler_admit *admit = &ruler->admit;
	size_t bytes = admit->bytes.len + (size_t)admit->families_count * FAMILY_BYTES +
	               (size_t)count_words(admit) * 2 + 1024;

	return bytes <= UINT32_MAX &&
	       ruler_fits(out, count_words(admit) + 64, (uint32_t)bytes);
}

static void
put_lane(struct buffer *out, struct id128 node)
{
	(void)buffer_append_id(out, node);
	(void)buffer_append(out, SPAN(".0"));
}

static void
put_nodes(struct buffer *out, const struct ruler_family *family, uint32_t bits,
          bool lanes)
{
	bool first = true;

	for (uint32_t i = 0; i < family->lineage.count; i++) {
		if (!(bits & (1u << i)))
			continue;
		if (!first)
			(void)buffer_append_byte(out, ',');
		first = false;
		if (lanes)
			put_lane(out, family->lineage.nodes[i].id);
		else
			(void)buffer_append_id(out, family->lineage.nodes[i].id);
	}
}

static void
write_text(struct ruler *ruler, struct call_list *out)
{
	call_word(out, buffer_span(&ruler->text));
	buffer_clear(&ruler->text);
}

static void
write_family(struct ruler *ruler, const struct ruler_family *family,
             struct call_list *out)
{
	const struct ruler_known *known = &ruler->known;
	uint32_t flags = (family->paused ? PROTOCOL_PAUSED : 0) |
	                 (family->stored_shared ? PROTOCOL_SHARED : 0) |
	                 (family->opaque ? PROTOCOL_OPAQUE : 0) |
	                 (ruler_unheld_has(ruler, family->route) ? PROTOCOL_UNHELD : 0) |
	                 (family->markable ? PROTOCOL_MARKABLE : 0) |
	                 (family->marked ? PROTOCOL_MARKED : 0);
	struct buffer *text = &ruler->text;

	buffer_clear(text);
	(void)buffer_append_id(text, family->id);
	write_text(ruler, out);
	call_text(out, known->pools[family->pool].name);
	call_text(out, known->budgets[family->budget].name);
	call_integer(out, flags);
	call_integer(out, (int64_t)family->hold_max_ms);
	call_integer(out, ruler_family_input(family));
	call_integer(out, family->output_most);
	put_lane(text, family->id);
	write_text(ruler, out);
	put_nodes(text, family, family->gates, true);
	write_text(ruler, out);
	if (family->split)
		put_nodes(text, family, UINT32_MAX, false);
	write_text(ruler, out);
	(void)buffer_append_text(text, family->route);
	if (family->names_model) {
		(void)buffer_append_byte(text, '|');
		(void)buffer_append_text(text, family->model_name);
	}
	write_text(ruler, out);
}

static void
write_families(struct ruler *ruler, struct call_list *out)
{
	const struct ruler_admit *admit = &ruler->admit;
	uint32_t count = 0;

	for (uint32_t i = 0; i < admit->families_count; i++)
		count += admit->families[i].record;
	protocol_call_group(out, 'F', count);
	for (uint32_t i = 0; i < admit->families_count; i++) {
		struct ruler_family *family =
			&ruler->known.families[admit->families[i].family];

		if (!admit->families[i].record)
			continue;
		write_family(ruler, family, out);
		family->stored = true;
		family->stored_markable = family->markable;
		family->stored_marked = family->marked;
		family->stored_input = ruler_family_input(family);
		family->stored_output = family->output_most;
		family->stored_hold_max_ms = family->hold_max_ms;
	}
}

static void
write_runs(struct ruler *ruler, struct call_list *out)
{
	static const char lists[EVENT_LIST_COUNT][4] = { "h", "n", "l", "now" };
	const struct ruler_admit *admit = &ruler->admit;
	uint32_t count = 0;

	for (uint32_t i = 0; i < admit->families_count; i++)
		for (int list = 0; list < EVENT_LIST_COUNT; list++)
			count += admit->families[i].jobs[list] > 0;
	protocol_call_group(out, 'R', count);
	for (uint32_t i = 0; i < admit->families_count; i++) {
		const struct ruler_batch_family *it = &admit->families[i];

		for (int list = 0; list < EVENT_LIST_COUNT; list++) {
			if (it->jobs[list] == 0)
				continue;
			buffer_clear(&ruler->text);
			(void)buffer_append_id(&ruler->text,
			                       ruler->known.families[it->family].id);
			write_text(ruler, out);
			call_text(out, lists[list]);
			call_integer(out, it->jobs[list]);
		}
	}
}

static void
write_word(const struct ruler_admit *admit, struct call_arg word, struct call_list *out)
{
	call_word(out, (struct span){ buffer_text(&admit->bytes) + word.from, word.len });
}

static void
write_elements(const struct ruler_admit *admit, struct call_list *out)
{
	protocol_call_group(out, 'E', admit->jobs_count);
	for (uint32_t i = 0; i < admit->families_count; i++) {
		const struct ruler_batch_family *it = &admit->families[i];

		for (int list = 0; list < EVENT_LIST_COUNT; list++) {
			uint32_t at = it->first[list];

			for (uint32_t n = 0; n < it->jobs[list]; n++) {
				write_word(admit, admit->jobs[at].element, out);
				at = admit->jobs[at].next;
			}
		}
	}
}

static void
write_group(const struct ruler_admit *admit, enum ruler_group group,
            struct call_list *out)
{
	const struct ruler_words *it = &admit->groups[group];

	protocol_call_group(out, group_letters[group], it->items);
	for (uint32_t i = 0; i < it->count; i++)
		write_word(admit, it->words[i], out);
}

void
ruler_batch_send(struct ruler *ruler, struct call_list *out)
{
	const struct ruler_admit *admit = &ruler->admit;

	protocol_call_admit(out, ruler_tag(ruler, RULER_CALL_ADMIT, admit->serial),
	                    ruler->config->ns, ruler_owner(ruler),
	                    span_from(admit->stored.entry), admit->stored.n,
	                    span_from(admit->to.entry), admit->to.n);
	write_families(ruler, out);
	write_group(admit, RULER_GROUP_SEGMENTS, out);
	write_runs(ruler, out);
	write_elements(admit, out);
	write_group(admit, RULER_GROUP_SLIMS, out);
	write_group(admit, RULER_GROUP_LATER, out);
	write_group(admit, RULER_GROUP_DEAD, out);
	write_group(admit, RULER_GROUP_DEADLINES, out);
	write_group(admit, RULER_GROUP_GONE, out);
	write_group(admit, RULER_GROUP_PREFIXES, out);
	if (admit->groups[RULER_GROUP_DECIDED].items > 0)
		write_group(admit, RULER_GROUP_DECIDED, out);
}

/* ---- the core -------------------------------------------------------------------- */

static void
tell_family(struct ruler *ruler, uint64_t now_ms, const struct ruler_batch_family *it)
{
	const struct ruler_known *known = &ruler->known;
	const struct ruler_family *family = &known->families[it->family];
	struct event event = { .kind = EVENT_ADMITTED };
	struct event_admitted *admitted = &event.admitted;

	admitted->pool = known->pools[family->pool].id;
	admitted->budget = known->budgets[family->budget].id;
	admitted->model = known->models[family->model].id;
	admitted->route = ruler_unheld_id(family->route);
	admitted->chain = family->lineage;
	admitted->flags = (family->paused ? EVENT_FAMILY_PAUSED : 0) |
	                  (family->opaque ? EVENT_FAMILY_OPAQUE : 0) |
	                  (family->tail_marked ? EVENT_FAMILY_TAIL_MARKED : 0) |
	                  (family->streams ? 0 : EVENT_FAMILY_NO_STREAM);
	memcpy(admitted->jobs, it->jobs, sizeof(admitted->jobs));
	admitted->oldest_ms = it->oldest_ms;
	admitted->hold_max_ms = family->hold_max_ms;
	admitted->ttl_ms = family->ttl_ms;
	admitted->input_tokens = ruler_family_input(family);
	admitted->output_tokens = family->output;
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_batch_tell(struct ruler *ruler, uint64_t now_ms)
{
	ruler->told++;
	for (uint32_t i = 0; i < ruler->admit.families_count; i++) {
		const struct ruler_batch_family *it = &ruler->admit.families[i];

		ruler->known.families[it->family].told = ruler->told;
		tell_family(ruler, now_ms, it);
	}
}
