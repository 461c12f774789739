/* Requests and what becomes of them: nodes, stored values, the rendered body, the
 * warm-up.  A change of an id here means that every prefix is cold after an upgrade.
 *
 *   golden_chain FOLDER      <dialect>-<what>.json beside <dialect>-<what>.txt
 *
 * UPDATE=1 rewrites the texts; the diff is for eyes. */
#include "common/base.h"
#include "common/codec/chain.h"
#include "common/codec/splice.h"
#include "tests/golden/golden.h"

#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX 65536

static void
put_line(struct buffer *out, const char *label, struct span text)
{
	(void)buffer_append_text(out, label);
	(void)buffer_append(out, text);
	(void)buffer_append_byte(out, '\n');
}

static void
put_node(struct buffer *out, const struct chain_node *node)
{
	(void)buffer_append_format(out, "%s ", dialect_tier_name(node->tier));
	(void)buffer_append_id(out, node->id);
	(void)buffer_append_format(out, " tokens %u%s%s\n", node->tokens,
	                           node->declared ? " declared" : "",
	                           node->user_marked ? " marked" : "");
	if (node->value.len > 0)
		put_line(out, "", node->value);
}

static void
put_render(struct buffer *out, const struct splice_request *request)
{
	struct buffer body = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct splice_report report;

	VERIFY(splice_render(request, &body, &report) == 0);
	for (unsigned i = 0; i < request->px_count; i++)
		(void)buffer_append_format(out, "%s: %s\n",
		                           dialect_tier_name(request->px[i].tier),
		                           marker_reason_text(report.plan.reason[i]));
	put_line(out, "sent ", buffer_span(&body));
	buffer_fini(&body);
}

static void
put_call(struct buffer *out, struct splice_request *request)
{
	struct buffer body = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	enum splice_refusal refusal;
	struct splice_report report;

	VERIFY(splice_call(request, &body, &report, &refusal) == 0);
	(void)buffer_append_format(out, "warm-up: %s\n", splice_refusal_text(refusal));
	if (body.len > 0)
		put_line(out, "call ", buffer_span(&body));
	buffer_fini(&body);
}

static void
describe(const char *name, struct span body, struct buffer *out)
{
	enum dialect dialect = strncmp(name, "chat-", 5) == 0  ? DIALECT_OPENAI_CHAT
	                       : strncmp(name, "raw-", 4) == 0 ? DIALECT_RAW
	                                                       : DIALECT_ANTHROPIC;
	struct chain_input input = { .traits = dialect_traits(dialect),
		                     .seed = 1,
		                     .upstream = SPAN("golden"),
		                     .body = body };
	struct splice_request request = { .traits = input.traits, .want = 7 };
	struct part_px px[PART_NODES_MAX];
	struct chain_error error;
	struct part_own own;
	struct chain chain;

	chain_init(&chain);
	if (chain_build(&chain, &input, &error) < 0) {
		(void)buffer_append_format(out, "malformed: %s\n", error.text);
		chain_fini(&chain);
		return;
	}
	if (chain.opaque != CHAIN_SPLITTABLE)
		(void)buffer_append_format(out, "opaque: %s\n", chain.why);
	for (unsigned i = 0; i < chain.count; i++)
		put_node(out, &chain.node[i]);
	if (chain.split) {
		for (unsigned i = 0; i < chain.count; i++)
			VERIFY(part_px_read(chain.node[i].value, &px[i]) == 0);
		VERIFY(part_own_read(chain.own, &own) == 0);
		put_line(out, "", chain.own);
		request.px = px;
		request.px_count = chain.count;
		request.own = &own;
		put_render(out, &request);
		put_call(out, &request);
	}
	chain_fini(&chain);
}

static bool
check(const char *folder, const char *name)
{
	static char body[FILE_MAX], stored[FILE_MAX];
	struct buffer made = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	char path[4096];
	bool good;

	(void)snprintf(path, sizeof path, "%s/%s.json", folder, name);
	describe(name, golden_load(path, body, sizeof body), &made);
	(void)snprintf(path, sizeof path, "%s/%s.txt", folder, name);
	if (golden_updates())
		golden_save(path, buffer_span(&made));
	good = span_equals(buffer_span(&made), golden_load(path, stored, sizeof stored));
	if (!good)
		fprintf(stderr, "%s is not what is stored, but\n%s", name,
		        buffer_text(&made));
	buffer_fini(&made);
	return good;
}

int
main(int argc, char **argv)
{
	return golden_run(argc, argv, ".json", check);
}
