/* Streams as vendors send them, and the objects an SDK makes of them.
 *
 *   golden_assemble FOLDER        <dialect>-<what>.sse beside <dialect>-<what>.json
 *
 * Compared as JSON, for pieces of 1, 2, 3, 7, 64 and all bytes.  The objects were written
 * by hand; UPDATE=1 writes what the assembler makes, and the diff is for eyes. */
#include "common/base.h"
#include "common/codec/assemble.h"
#include "tests/golden/golden.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM_MAX 65536

static char stream[STREAM_MAX];

/* The object made of the stream in pieces of `step` bytes; NULL with a line on stderr. */
static json_t *
assemble_in(const char *name, size_t len, size_t step)
{
	struct assemble_options options = { .sse = true };
	struct assemble *assemble;
	struct assemble_result result;
	json_t *object = NULL;

	options.dialect =
		strncmp(name, "chat-", 5) == 0 ? DIALECT_OPENAI_CHAT : DIALECT_ANTHROPIC;
	assemble = assemble_create(&options);
	VERIFY(assemble != NULL);
	for (size_t at = 0; at < len; at += step)
		VERIFY(assemble_feed(assemble,
		                     (struct span){ stream + at, MIN(step, len - at) }) ==
		       0);
	VERIFY(assemble_finish(assemble, &result) == 0);
	if (result.format != ASSEMBLE_JSON)
		fprintf(stderr, "%s: no object: %s\n", name, result.why_sse);
	else if (!result.complete)
		fprintf(stderr, "%s: not complete\n", name);
	else
		object = json_loadb(result.body.data, result.body.len, 0, NULL);
	(void)assemble_destroy(assemble);
	return object;
}

static bool
check(const char *folder, const char *name)
{
	static const size_t steps[] = { 1, 2, 3, 7, 64, STREAM_MAX };
	char path[4096];
	json_t *wanted;
	size_t len;
	bool good = true;

	(void)snprintf(path, sizeof path, "%s/%s.sse", folder, name);
	len = golden_load(path, stream, sizeof stream).len;
	(void)snprintf(path, sizeof path, "%s/%s.json", folder, name);
	if (golden_updates()) {
		json_t *made = assemble_in(name, len, len);

		VERIFY(json_dump_file(made, path, JSON_INDENT(2)) == 0);
		json_decref(made);
	}
	wanted = json_load_file(path, 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && good; i++) {
		json_t *made = assemble_in(name, len, steps[i]);

		good = made && wanted && json_equal(made, wanted);
		if (!good && made) {
			char *text = json_dumps(made, JSON_INDENT(2));

			fprintf(stderr, "%s, in pieces of %zu, became\n%s\n", name,
			        steps[i], text);
			free(text);
		}
		json_decref(made);
	}
	json_decref(wanted);
	return good;
}

int
main(int argc, char **argv)
{
	return golden_run(argc, argv, ".sse", check);
}
