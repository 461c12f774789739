#include "scheduler/ruler_home.h"

#include "scheduler/ruler_core.h"
#include "scheduler/ruler_job.h"
#include "scheduler/ruler_ledger.h"

/* ---- where it belongs ------------------------------------------------------------ */

/* The model of a family: as its record names it; in records of older releases only the
 * class of its budget is known, unless the ledger knows better. */
static size_t
find_model(struct ruler *ruler, struct id128 id, struct span class_name,
           const struct protocol_family *record)
{
	size_t model;

	if (record->model.data)
		return ruler_job_model(ruler->config, record->model);
	model = ruler_ledger_model(ruler, record->route, id);
	return model < ruler->config->models_count
	               ? model
	               : ruler_known_model_of(&ruler->known, class_name);
}

void
ruler_home_find(struct ruler *ruler, uint64_t now_ms, struct ruler_family *family,
                const struct protocol_family *record)
{
	const struct ruler_config *config = ruler->config;
	struct span pool = record->pool, class_name;
	size_t upstream =
		ruler_known_budget_parse(&ruler->known, record->budget, &class_name);
	size_t model = find_model(ruler, family->id, class_name, record);
	bool known = upstream < config->upstreams_count && model < config->models_count;

	if (upstream < config->upstreams_count)
		pool = ruler_job_pool(config, record->route,
		                      config->upstreams[upstream].name);
	family->pool = (uint16_t)ruler_core_pool(ruler, now_ms, pool);
	family->budget =
		(uint16_t)(known ? ruler_core_budget(ruler, now_ms, upstream,
	                                             config->models[model].class_name)
	                         : ruler_core_budget_named(ruler, now_ms,
	                                                   record->budget));
	family->model = (uint16_t)ruler_core_model(
		ruler, now_ms, upstream, MIN(model, MAX(config->models_count, 1) - 1));
	family->names_model = record->model.data != NULL;
	ruler_copy(family->model_name, sizeof(family->model_name), record->model);
}

void
ruler_home_note(struct ruler *ruler, const struct ruler_family *family,
                const struct protocol_family *record)
{
	struct ruler_rebuild *rebuild = &ruler->rebuild;
	const struct ruler_known *known = &ruler->known;

	if (span_equals(record->pool, span_from(known->pools[family->pool].name)) &&
	    span_equals(record->budget, span_from(known->budgets[family->budget].name)))
		return;
	if (rebuild->moves_count == RULER_MOVES_MAX) {
		rebuild->moves_over = true;
		return;
	}
	rebuild->moves[rebuild->moves_count++] =
		(struct ruler_move){ family->id, family->pool, family->budget };
}

/* ---- moving ---------------------------------------------------------------------- */

static void
put_home(struct ruler *ruler, const struct ruler_move *move)
{
	struct buffer *text = &ruler->text;

	buffer_clear(text);
	(void)buffer_append_text(text, ruler->known.pools[move->pool].name);
	(void)buffer_append_byte(text, ' ');
	(void)buffer_append_text(text, ruler->known.budgets[move->budget].name);
}

bool
ruler_home_ask(struct ruler *ruler, struct call_list *out)
{
	struct ruler_rebuild *rebuild = &ruler->rebuild;
	const struct ruler_move *first = &rebuild->moves[rebuild->moves_sent];

	if (rebuild->moves_sent == rebuild->moves_count) {
		rebuild->moves_count = 0;
		rebuild->moves_sent = 0;
		rebuild->moves_over = false;
		return false;
	}
	put_home(ruler, first);
	protocol_call_move(out, ruler_tag(ruler, RULER_CALL_MOVE, 0), ruler->config->ns,
	                   ruler_owner(ruler), buffer_span(&ruler->text));
	for (uint32_t i = 0; i < RULER_HOME_MOVES; i++) {
		const struct ruler_move *move = &rebuild->moves[rebuild->moves_sent];
		char id[ID_HEX_LEN];

		if (rebuild->moves_sent == rebuild->moves_count ||
		    move->pool != first->pool || move->budget != first->budget)
			break;
		id_encode(move->family, id);
		call_word(out, (struct span){ id, sizeof id });
		rebuild->moves_sent++;
	}
	return true;
}
