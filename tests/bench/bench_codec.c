/* What identity costs: the longest of a job's stops that is pure work.
 *
 *   bench_codec            120 KB of prefix, the sizes of the demo
 *
 * Prints the fastest of 300 runs in microseconds, for one thread. */
#include "common/codec/assemble.h"
#include "common/codec/chain.h"
#include "common/codec/splice.h"
#include "common/codec/tape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUNS        300
#define PREFIX_SIZE 118000

static uint64_t
now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct bench {
	struct buffer body;
	struct buffer prefix;
	struct buffer rest; /* the job's own part, behind the prefix */
	struct buffer out;
	struct buffer stream;
	struct tape tape;
	struct chain chain;
	struct chain_input input;
	struct part_px px[PART_NODES_MAX];
	struct part_own own;
};

static void
put_prefix(struct buffer *out)
{
	(void)buffer_append_text(out, "\"model\":\"m\",\"tools\":[");
	for (int i = 0; i < 60; i++)
		(void)buffer_append_format(
			out,
			"%s{\"name\":\"tool_%d\",\"description\":\"Does a thing, "
			"\\\"quoted\\\"\\nand more to read "
			"here.\",\"input_schema\":{\"type\":"
			"\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{"
			"\"type\":"
			"\"integer\"}},\"required\":[\"a\"]}}",
			i ? "," : "", i);
	(void)buffer_append_text(out, "],\"system\":\"");
	while (out->len < PREFIX_SIZE)
		(void)buffer_append_text(out,
		                         "You are a support agent. Follow the policy. "
		                         "Caf\xc3\xa9. \\n");
	(void)buffer_append_text(out, "\"");
}

static void
fill(struct bench *bench)
{
	static const char rest[] =
		"\"messages\":[{\"role\":\"user\",\"content\":\"Where is my "
		"parcel?\"}],\"max_tokens\":256";

	(void)buffer_append_byte(&bench->body, '{');
	put_prefix(&bench->body);
	(void)buffer_append_format(&bench->body, ",%s}", rest);
	(void)buffer_append_byte(&bench->prefix, '{');
	put_prefix(&bench->prefix);
	(void)buffer_append_byte(&bench->prefix, '}');
	(void)buffer_append_format(&bench->rest, "{%s}", rest);
	(void)buffer_append_text(
		&bench->stream,
		"data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","
		"\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n"
		"data: {\"type\":\"content_block_start\",\"index\":0,"
		"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
	for (int i = 0; i < 1000; i++)
		(void)buffer_append_text(
			&bench->stream,
			"event: content_block_delta\ndata: {\"type\":"
			"\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
			"\"text_delta\",\"text\":\" some words\"}}\n\n");
}

static void
run_tape(struct bench *bench)
{
	struct tape_error where;

	VERIFY(tape_parse(&bench->tape, buffer_span(&bench->body), &where) == 0);
}

static void
run_canonical(struct bench *bench)
{
	buffer_clear(&bench->out);
	tape_canonical(buffer_span(&bench->body), &bench->out);
}

static void
run_chain(struct bench *bench)
{
	struct chain_error error;

	bench->input.body = buffer_span(&bench->body);
	bench->input.prefix = (struct span){ 0 };
	VERIFY(chain_build(&bench->chain, &bench->input, &error) == 0);
}

static void
run_prefix(struct bench *bench)
{
	struct chain_error error;

	bench->input.body = buffer_span(&bench->rest);
	bench->input.prefix = buffer_span(&bench->prefix);
	VERIFY(chain_build(&bench->chain, &bench->input, &error) == 0);
}

static void
run_splice(struct bench *bench)
{
	struct splice_request request = {
		.traits = bench->input.traits,
		.px = bench->px,
		.px_count = bench->chain.count,
		.own = &bench->own,
		.want = 3,
	};
	struct splice_report report;

	buffer_clear(&bench->out);
	VERIFY(splice_render(&request, &bench->out, &report) == 0);
}

static void
run_assemble(struct bench *bench)
{
	struct assemble_options options = { .dialect = DIALECT_ANTHROPIC, .sse = true };
	struct assemble *assemble = assemble_create(&options);
	struct assemble_result result;

	VERIFY(assemble != NULL);
	VERIFY(assemble_feed(assemble, buffer_span(&bench->stream)) == 0);
	VERIFY(assemble_finish(assemble, &result) == 0);
	(void)assemble_destroy(assemble);
}

static void
measure(const char *what, struct bench *bench, void (*run)(struct bench *), size_t bytes)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < RUNS; i++) {
		uint64_t start_ns = now_ns();

		run(bench);
		best_ns = MIN(best_ns, now_ns() - start_ns);
	}
	printf("%-44s %7" PRIu64 ".%" PRIu64 " us  %5" PRIu64 " MB/s\n", what,
	       best_ns / 1000, best_ns / 100 % 10,
	       best_ns ? (uint64_t)bytes * 1000 / best_ns : 0);
}

int
main(void)
{
	static struct bench bench;

	bench.input = (struct chain_input){ .traits = dialect_traits(DIALECT_ANTHROPIC),
		                            .seed = 1,
		                            .upstream = SPAN("claude") };
	buffer_init(&bench.body, BUFFER_SIZE_DEFAULT);
	buffer_init(&bench.prefix, BUFFER_SIZE_DEFAULT);
	buffer_init(&bench.rest, BUFFER_SIZE_DEFAULT);
	buffer_init(&bench.out, BUFFER_SIZE_DEFAULT);
	buffer_init(&bench.stream, BUFFER_SIZE_DEFAULT);
	tape_init(&bench.tape);
	chain_init(&bench.chain);
	fill(&bench);

	printf("a request of %zu bytes, a stream of %zu\n", bench.body.len,
	       bench.stream.len);
	measure("tape: check and list", &bench, run_tape, bench.body.len);
	measure("canonical form", &bench, run_canonical, bench.body.len);
	measure("chain with a named prefix (the same again)", &bench, run_prefix,
	        bench.body.len);
	measure("chain, all of it inline", &bench, run_chain, bench.body.len);
	for (unsigned i = 0; i < bench.chain.count; i++)
		VERIFY(part_px_read(bench.chain.node[i].value, &bench.px[i]) == 0);
	VERIFY(part_own_read(bench.chain.own, &bench.own) == 0);
	measure("splice with two markers", &bench, run_splice, bench.body.len);
	measure("assemble 1,000 deltas", &bench, run_assemble, bench.stream.len);
	return EXIT_SUCCESS;
}
