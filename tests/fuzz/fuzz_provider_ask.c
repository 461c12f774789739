/* Any body, all the way through the provider without a socket: read in both dialects,
 * judged by the model, answered whole and streamed.  Whatever is accepted has books that
 * sum and an answer that is JSON. */
#include "provider/answer.h"
#include "provider/anthropic.h"
#include "provider/openai.h"
#include "provider/spoil.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static struct engine *
engine_create(const struct settings *settings, const struct catalog *catalog)
{
	struct engine_config config = { .seed = 1 };

	settings_to_engine(settings, &config);
	catalog_to_engine(catalog, &config);
	config.cache.entries_max = 128;
	config.cache.requests_max = 4;
	config.cache.writes_max = 100;
	return engine_init(malloc(engine_size(&config)), engine_size(&config), &config);
}

static void
check_script(struct script *script, bool is_json)
{
	uint64_t due_us = 0;
	size_t end = 0;

	VERIFY(script_error(script) == 0);
	for (uint32_t i = 0; i < script->count; i++) {
		VERIFY(script->pieces[i].end >= end);
		VERIFY(script->pieces[i].due_us >= due_us);
		end = script->pieces[i].end;
		due_us = script->pieces[i].due_us;
	}
	VERIFY(end <= script->bytes.len);
	if (is_json) {
		json_t *tree = json_loadb(script->bytes.data, script->bytes.len, 0, NULL);

		VERIFY(tree != NULL);
		json_decref(tree);
	}
}

static void
check_answer(struct ask *ask, const struct settings *settings,
             const struct engine_answer *model)
{
	struct answer answer = {
		.want = &ask->want,
		.settings = settings,
		.usage = model->usage,
		.output_tokens = answer_tokens(&ask->want, settings),
		.decode_us = 1000,
	};

	for (int stream = 0; stream < 2; stream++)
		for (enum fault fault = FAULT_NONE; fault < FAULT_COUNT; fault++) {
			struct spoil spoil = { .fault = fault,
				               .dialect = ask->want.dialect,
				               .stream = stream,
				               .decode_us = 1000,
				               .settings = settings };
			struct script script;

			ask->want.stream = stream;
			script_init(&script);
			answer_write(&answer, &script);
			check_script(&script, !stream);
			VERIFY(spoil_apply(&spoil, &script) > 0);
			check_script(&script, false);
			script_fini(&script);
		}
}

static void
check_ask(struct ask *ask, const struct settings *settings, const struct catalog *catalog)
{
	struct engine *engine = engine_create(settings, catalog);
	struct engine_request request = {
		.cache = { .scope = ask->scope,
		           .routing = ask->routing,
		           .mode = ask->mode,
		           .minimum_tokens = ask->entry->minimum_tokens,
		           .step_tokens = ask->entry->step_tokens,
		           .blocks = ask->prompt.blocks,
		           .blocks_count = ask->prompt.count },
		.class = ask->entry->class,
		.output_tokens_max = ask->want.output_max,
		.output_tokens = answer_tokens(&ask->want, settings),
	};
	struct engine_answer model;

	engine_start(engine, 1, &request, &model);
	VERIFY(model.accepted || model.status == 529);
	if (model.accepted) {
		VERIFY(model.usage.total_tokens == prompt_tokens(&ask->prompt));
		engine_respond(engine, 2, &model.ticket);
		engine_finish(engine, 3, &model.ticket, request.output_tokens);
		check_answer(ask, settings, &model);
	}
	engine_audit(engine);
	free(engine);
}

static void
check_refusal(const struct ask_refusal *refusal, enum ask_dialect dialect)
{
	struct buffer json = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	json_t *tree;

	VERIFY(refusal->status >= 400);
	answer_error(dialect, refusal->type, refusal->code, span_from(refusal->message),
	             "req_1", &json);
	tree = json_loadb(json.data, json.len, 0, NULL);
	VERIFY(tree != NULL);
	json_decref(tree);
	buffer_fini(&json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct catalog catalog;
	static struct settings settings;
	struct ask_context context = { .catalog = &catalog,
		                       .version = SPAN("2023-06-01"),
		                       .betas = SPAN("a-1, b-2,") };
	struct ask_refusal refusal;
	struct body_error error;
	struct body body;
	struct ask ask;

	catalog_init(&catalog);
	settings_init(&settings);
	context.key = catalog_find_key(&catalog, SPAN(""));
	if (body_load(&body, fuzz_span(data, size), 16, &error) < 0)
		return 0;
	for (int counting = 0; counting < 2; counting++) {
		if (anthropic_read(&body, &context, counting, &ask, &refusal) < 0) {
			check_refusal(&refusal, ASK_ANTHROPIC);
			continue;
		}
		check_ask(&ask, &settings, &catalog);
		ask_fini(&ask);
	}
	if (openai_read(&body, &context, &ask, &refusal) == 0) {
		check_ask(&ask, &settings, &catalog);
		ask_fini(&ask);
	} else {
		check_refusal(&refusal, ASK_OPENAI);
	}
	body_fini(&body);
	return 0;
}
