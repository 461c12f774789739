#include "worker/model_name.h"

#include "common/buffer.h"
#include "common/codec/tape.h"

static bool
parses(struct tape *tape, const struct buffer *text)
{
	struct tape_error where;

	return buffer_error(text) == 0 &&
	       tape_parse(tape, buffer_span(text), &where) == 0;
}

/* Pieces of an object lack its first or its last brace. */
static bool
complete(struct tape *tape, struct buffer *text, struct span json)
{
	if (json.len > 0 && json.data[0] == ',') {
		json.data++;
		json.len--;
	}
	if (json.len == 0 || json.data[0] != '{')
		(void)buffer_append_byte(text, '{');
	(void)buffer_append(text, json);
	if (parses(tape, text))
		return true;
	(void)buffer_append_byte(text, '}');
	return parses(tape, text);
}

char *
model_name_dup(struct span json)
{
	struct buffer text = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct buffer name = BUFFER_INIT(1024);
	struct tape tape;
	char *taken = NULL;
	uint32_t at;
	size_t len;

	tape_init(&tape);
	if (complete(&tape, &text, json)) {
		at = tape_find(&tape, 0, "model");
		if (tape_is(&tape, at, TAPE_STRING) && tape_string(&tape, at, &name) == 0)
			taken = buffer_take(&name, &len);
	}
	tape_fini(&tape);
	buffer_fini(&name);
	buffer_fini(&text);
	return taken;
}
