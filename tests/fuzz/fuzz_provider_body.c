/* Taking long strings out before jansson reads must change nothing: the same bytes are
 * accepted and refused, and what comes back is equal as a JSON value. */
#include "provider/body.h"
#include "tests/fuzz/fuzz.h"

static void
check(const uint8_t *data, size_t size, size_t long_string, const json_t *tree)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct body_error error;
	struct body body;
	json_t *copy;
	int err;

	err = body_load(&body, fuzz_span(data, size), long_string, &error);
	VERIFY((err == 0) == (tree != NULL));
	if (err < 0)
		return;
	VERIFY(body_dump(&body, body.root, NULL, &out) == 0);
	copy = json_loadb(out.data, out.len, 0, NULL);
	VERIFY(copy != NULL);
	VERIFY(json_equal(tree, copy));
	json_decref(copy);
	buffer_fini(&out);
	body_fini(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *tree = json_loadb((const char *)data, size, 0, NULL);

	check(data, size, 0, tree);
	check(data, size, 8, tree);
	check(data, size, BODY_LONG_STRING, tree);
	json_decref(tree);
	return 0;
}
