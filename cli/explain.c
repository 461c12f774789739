#include "cli/file.h"
#include "cli/verbs.h"

#include "common/buffer.h"
#include "common/codec/chain.h"
#include "common/codec/drift.h"
#include "common/codec/splice.h"
#include "common/io/config.h"

#include <stdio.h>
#include <stdlib.h>

#define BODY_SIZE_MAX ((size_t)64 << 20)

struct args {
	struct cli cli;
	const char *dialect, *shared;
	uint64_t minimum;
};

static const struct option_spec specs[] = {
	{ "dialect", OPTION_TEXT, offsetof(struct args, dialect), "anthropic", "NAME",
	  "anthropic, openai-chat or raw" },
	{ "shared", OPTION_TEXT, offsetof(struct args, shared), NULL, "WHAT",
	  "as the job's field: tools, system, messages:N, marker:K or bytes:N" },
	{ "minimum", OPTION_UNSIGNED, offsetof(struct args, minimum), "0", "TOKENS",
	  "smallest prefix the provider caches; 0: by the model's name" },
	CLI_LOCAL_OPTIONS(struct args),
};

/* One body, taken apart. */
struct subject {
	const char *path;
	struct buffer body;
	struct chain chain;
	struct marker_plan plan;
	struct splice_report report;
	enum splice_refusal refusal;
	uint64_t minimum;
	bool is_raw; /* bytes have no tiers, and are never marked */
};

static int
parse_shared(const char *text, struct chain_shared *ret_shared)
{
	if (!text || chain_shared_parse(span_from(text), ret_shared) == 0)
		return CLI_OK;
	return cli_fail(CLI_USAGE,
	                "--shared takes tools, system, messages:N, marker:K or bytes:N, "
	                "counted from 1, not \"%.40s\".",
	                text);
}

static uint64_t
minimum_of(const struct args *args, struct span model)
{
	struct config *config;
	uint64_t minimum;

	if (args->minimum)
		return args->minimum;
	config = config_create();
	VERIFY(config);
	minimum = config_model_find(config, model)->minimum_tokens;
	config_destroy(config);
	return minimum;
}

/* What the scheduler would plan if reuse pays: all nodes wanted. */
static int
plan(struct subject *subject, const struct dialect_traits *traits)
{
	struct part_px px[PART_NODES_MAX];
	struct splice_request request = {
		.traits = traits,
		.px = px,
		.px_count = subject->chain.count,
		.want = (1U << subject->chain.count) - 1,
	};
	struct buffer scratch = BUFFER_INIT(BODY_SIZE_MAX);
	struct part_own own;
	int err = ERR_MALFORMED;

	for (unsigned i = 0; i < subject->chain.count; i++)
		px[i] = subject->chain.node[i].px;
	if (subject->chain.split && part_own_read(subject->chain.own, &own) == 0) {
		request.own = &own;
		err = splice_render(&request, &scratch, &subject->report);
		subject->plan = subject->report.plan;
	}
	if (err == 0) {
		struct splice_report report;

		buffer_clear(&scratch);
		err = splice_call(&request, &scratch, &report, &subject->refusal);
	}
	buffer_fini(&scratch);
	return err;
}

static bool
has_messages(const struct chain *chain)
{
	return tape_find(&chain->tape, 0, "messages") != TAPE_NONE;
}

/* JSON that is no request at all would only be called opaque. */
static int
check_request(const struct subject *subject, const char *dialect)
{
	const struct chain *chain = &subject->chain;

	if (chain->opaque == CHAIN_NOT_OBJECT)
		return cli_fail(CLI_FAILED, "%s is no request: it is not a JSON object.",
		                subject->path);
	if (chain->opaque == CHAIN_SPLITTABLE && chain->model.len == 0 &&
	    !has_messages(chain))
		return cli_fail(CLI_FAILED,
		                "%s is no request of %s: it has no model and no "
		                "messages.",
		                subject->path, dialect);
	return CLI_OK;
}

static int
load(struct subject *subject, const struct args *args)
{
	struct dialect_traits traits;
	struct chain_input input = { 0 };
	struct chain_error error;
	enum dialect dialect;
	int code;

	if (dialect_parse(span_from(args->dialect), &dialect) < 0)
		return cli_fail(CLI_USAGE,
		                "--dialect takes anthropic, openai-chat or raw, not "
		                "\"%.40s\".",
		                args->dialect);
	code = parse_shared(args->shared, &input.shared);
	if (code == CLI_OK)
		code = file_read(subject->path, &subject->body);
	if (code != CLI_OK)
		return code;
	subject->is_raw = dialect == DIALECT_RAW;
	traits = *dialect_traits(dialect);
	input.traits = &traits;
	input.upstream = SPAN("explain");
	input.body = buffer_span(&subject->body);
	if (subject->body.len == 0)
		return cli_fail(CLI_FAILED, "%s is empty.", subject->path);
	if (chain_build(&subject->chain, &input, &error) < 0)
		return cli_fail(CLI_FAILED, "%s: %s.", subject->path, error.text);
	code = subject->is_raw ? CLI_OK : check_request(subject, args->dialect);
	if (code != CLI_OK)
		return code;
	subject->minimum =
		subject->is_raw ? args->minimum : minimum_of(args, subject->chain.model);
	traits.tokens_min = (uint32_t)subject->minimum;
	if (subject->chain.opaque == CHAIN_SPLITTABLE && subject->chain.split &&
	    plan(subject, &traits) < 0)
		return cli_fail(CLI_FAILED,
		                "%s: its parts do not fit together again. This "
		                "is a bug; please report it with the body.",
		                subject->path);
	return CLI_OK;
}

static const char *
part_name(const struct subject *subject, enum tier tier)
{
	return subject->is_raw ? "bytes" : dialect_tier_name(tier);
}

static const char *
marker_text(const struct subject *subject, unsigned i)
{
	if (!subject->chain.split)
		return "not marked: too small to split";
	if (subject->is_raw)
		return "not marked: raw bytes go out as they are";
	return marker_reason_text(subject->plan.reason[i]);
}

static void
print_node(const struct subject *subject, unsigned i)
{
	const struct chain_node *node = &subject->chain.node[i];
	char hex[ID_HEX_LEN], bytes[32], tokens[32];

	id_encode(node->id, hex);
	printf("  %-9s %.12s  %10s bytes  about %9s tokens up to its end\n",
	       part_name(subject, node->tier), hex,
	       cli_grouped(node->px.segment.len, bytes),
	       cli_grouped(node->tokens, tokens));
	if (subject->chain.split)
		printf("            %s\n", marker_text(subject, i));
}

static void
print_verdict(const struct subject *subject)
{
	const struct chain *chain = &subject->chain;
	char minimum[32];

	if (!chain->split) {
		printf("  Less than %d bytes are shared: it is sent as it is, and not "
		       "held.\n",
		       CHAIN_SPLIT_MIN);
		return;
	}
	printf("  The boundary is the end of %s; jobs that agree up to there are one "
	       "family.\n",
	       subject->is_raw ? "the shared bytes"
	                       : dialect_tier_name(chain->node[chain->count - 1].tier));
	if (chain->node[chain->count - 1].tokens < subject->minimum)
		printf("  That is below the %s tokens this model caches at least: not "
		       "held, not marked.\n",
		       cli_grouped(subject->minimum, minimum));
	printf("  Warm-up: %s.\n", splice_refusal_text(subject->refusal));
}

static void
print_subject(const struct subject *subject)
{
	const struct chain *chain = &subject->chain;
	char own[32];

	printf("%s", subject->path);
	if (chain->model.len) {
		fputs(": model ", stdout);
		cli_print_escaped(chain->model);
	}
	putchar('\n');
	if (chain->note[0])
		printf("  %s\n", chain->note);
	if (chain->opaque != CHAIN_SPLITTABLE) {
		printf("  opaque: %s\n  It is sent as it is, untouched and not held.\n",
		       chain->why);
		return;
	}
	for (unsigned i = 0; i < chain->count; i++)
		print_node(subject, i);
	printf("  own       about %s tokens that only this job has\n",
	       cli_grouped(chain->own_tokens, own));
	print_verdict(subject);
}

static json_t *
subject_json(const struct subject *subject)
{
	const struct chain *chain = &subject->chain;
	json_t *nodes = json_array();

	for (unsigned i = 0; i < chain->count; i++) {
		char hex[ID_HEX_LEN];

		id_encode(chain->node[i].id, hex);
		json_array_append_new(
			nodes, json_pack("{s:s,s:s%,s:I,s:I,s:s}", "tier",
		                         part_name(subject, chain->node[i].tier), "id",
		                         hex, (size_t)ID_HEX_LEN, "bytes",
		                         (json_int_t)chain->node[i].px.segment.len,
		                         "tokens", (json_int_t)chain->node[i].tokens,
		                         "marker", marker_text(subject, i)));
	}
	return json_pack("{s:s,s:s%,s:b,s:s,s:s,s:o,s:b,s:I,s:s?}", "file", subject->path,
	                 "model", chain->model.len ? chain->model.data : "",
	                 chain->model.len, "opaque", chain->opaque != CHAIN_SPLITTABLE,
	                 "why", chain->why, "note", chain->note, "nodes", nodes, "split",
	                 chain->split, "minimum_tokens", (json_int_t)subject->minimum,
	                 "warm_up",
	                 chain->split ? splice_refusal_text(subject->refusal) : NULL);
}

static void
print_drift(const struct drift *drift, const char *part)
{
	if (drift->kind == DRIFT_NONE) {
		puts("\nBoth have the same shared parts: one family.");
		return;
	}
	printf("\nThey differ in %s, at byte %zu of that part: %s.\n", part,
	       drift->offset, drift_kind_word(drift->kind));
	if (!drift->setting) {
		printf("  first   %s\n          %*s^\n", drift->a, (int)drift->a_caret,
		       "");
		printf("  second  %s\n          %*s^\n", drift->b, (int)drift->b_caret,
		       "");
	} else {
		printf("  first   %s\n  second  %s\n", drift->a, drift->b);
	}
	printf("  %s\n", drift_kind_fix(drift->kind));
}

static json_t *
drift_json(const struct drift *drift, const char *part)
{
	return json_pack("{s:s,s:s,s:I,s:s,s:s,s:s}", "kind",
	                 drift_kind_word(drift->kind), "tier", part, "offset",
	                 (json_int_t)drift->offset, "first", drift->a, "second", drift->b,
	                 "fix", drift_kind_fix(drift->kind));
}

static int
tell(const struct cli *cli, const struct subject *subjects, int count)
{
	bool comparable = count == 2 && subjects[0].chain.opaque == CHAIN_SPLITTABLE &&
	                  subjects[1].chain.opaque == CHAIN_SPLITTABLE;
	json_t *bodies = json_array(), *answer;
	struct drift drift;

	if (comparable)
		drift_compare(&subjects[0].chain, &subjects[1].chain, &drift);
	for (int i = 0; i < count; i++) {
		json_array_append_new(bodies, subject_json(&subjects[i]));
		if (!cli->json)
			print_subject(&subjects[i]);
	}
	answer = json_pack("{s:o}", "bodies", bodies);
	if (comparable) {
		const char *part = part_name(&subjects[0], drift.tier);

		json_object_set_new(answer, "difference", drift_json(&drift, part));
		if (!cli->json)
			print_drift(&drift, part);
	}
	if (cli->json)
		cli_print_json(answer);
	else
		json_decref(answer);
	return CLI_OK;
}

static int
run(struct cli *cli)
{
	struct subject *subjects = calloc(2, sizeof *subjects);
	int code = CLI_OK;

	VERIFY(subjects);
	for (int i = 0; i < 2; i++) {
		buffer_init(&subjects[i].body, BODY_SIZE_MAX);
		chain_init(&subjects[i].chain);
	}
	for (int i = 0; i < cli->argc && code == CLI_OK; i++) {
		subjects[i].path = cli->argv[i];
		code = load(&subjects[i], (struct args *)cli);
	}
	if (code == CLI_OK)
		code = tell(cli, subjects, cli->argc);
	for (int i = 0; i < 2; i++) {
		chain_fini(&subjects[i].chain);
		buffer_fini(&subjects[i].body);
	}
	free(subjects);
	return code;
}

static const char details[] =
	"Reads request bodies as a producer sends them. With two, names the first\n"
	"byte that differs in their shared parts, its kind, and the fix. Needs no\n"
	"Redis and sends nothing.";

const struct verb verb_explain = {
	.name = "explain",
	.usage = "explain A.json [B.json] [--dialect NAME] [--shared WHAT]",
	.words_min = 1,
	.words_max = 2,
	.missing = "Say which: warmq explain A.json [B.json], files with the body of a "
		   "request.",
	.summary = "show a request's shared parts and markers, or why two do not share",
	.details = details,
	.options = { specs, ARRAY_SIZE(specs) },
	.args_size = sizeof(struct args),
	.run = run,
	.common = true,
};
