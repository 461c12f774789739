/* Entries as anybody could write them: flat fields, JSON, MessagePack.
 *
 *   byte 0: f, j or m      flat: name, newline, value, newline, …   else the field's
 * bytes
 *
 * Each job is either read or refused with a sentence; what was read survives being slim.
 * A flat entry survives being moved whole; bytes that say they are one are refused or
 * read like any other. */
#include "common/codec/envelope.h"
#include "tests/fuzz/fuzz.h"

#define PAIRS_MAX 80 /* more than an entry may have */

static void
check_slim(const struct envelope *envelope)
{
	struct buffer once = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct buffer twice = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct envelope_error error;
	struct envelope copy;

	envelope_write_slim(envelope, &once);
	VERIFY(envelope_read_slim(buffer_span(&once), &copy, &error) == 0);
	VERIFY(copy.kind == envelope->kind);
	VERIFY(span_equals(copy.body, envelope->body));
	VERIFY(span_equals(copy.betas, envelope->betas));
	VERIFY(copy.deadline_ms == envelope->deadline_ms);
	envelope_write_slim(&copy, &twice);
	VERIFY(span_equals(buffer_span(&once), buffer_span(&twice)));
	buffer_fini(&once);
	buffer_fini(&twice);
}

static void
read_all(const struct envelope_pair *pairs, size_t count)
{
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;
	int jobs, err;

	envelope_init(&reader, NULL);
	jobs = envelope_open(&reader, pairs, count, UINT64_C(1790000000000), &error);
	VERIFY(jobs > 0 || (jobs == ERR_MALFORMED && error.text[0] != '\0'));
	for (int i = 0; i < jobs; i++) {
		err = envelope_next(&reader, &envelope, &error);
		VERIFY(err == 0 || err == ERR_MALFORMED || err == ERR_UNSUPPORTED);
		VERIFY(err == 0 || error.text[0] != '\0');
		if (err == 0)
			check_slim(&envelope);
	}
	if (jobs > 0)
		VERIFY(envelope_next(&reader, &envelope, &error) == ERR_NOT_FOUND);
	envelope_fini(&reader);
}

/* As the functions of Redis write it (payload.to_slim). */
static void
check_moved(const struct envelope_pair *pairs, size_t count)
{
	struct buffer moved = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	struct envelope_pair copies[ENVELOPE_FIELDS_MAX];

	(void)buffer_append(&moved, SPAN("entry\n"));
	for (size_t i = 0; i < count; i++) {
		struct span both[2] = { pairs[i].name, pairs[i].value };

		for (int k = 0; k < 2; k++) {
			(void)buffer_append_format(&moved, "%zu ", both[k].len);
			(void)buffer_append(&moved, both[k]);
			(void)buffer_append(&moved, SPAN("\n"));
		}
	}
	VERIFY(envelope_is_moved(buffer_span(&moved)));
	VERIFY(envelope_read_moved(buffer_span(&moved), copies) ==
	       (count <= ENVELOPE_FIELDS_MAX ? count : 0));
	for (size_t i = 0; i < count && count <= ENVELOPE_FIELDS_MAX; i++) {
		VERIFY(span_equals(copies[i].name, pairs[i].name));
		VERIFY(span_equals(copies[i].value, pairs[i].value));
	}
	buffer_fini(&moved);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct envelope_pair pairs[PAIRS_MAX];
	struct envelope_error error;
	struct envelope envelope;
	struct span rest;
	size_t count = 0;

	if (size == 0)
		return 0;
	rest = fuzz_span(data + 1, size - 1);
	(void)!envelope_read_slim(rest, &envelope, &error);
	if (envelope_is_moved(rest)) {
		count = envelope_read_moved(rest, pairs);
		VERIFY(count <= ENVELOPE_FIELDS_MAX);
		read_all(pairs, count);
		return 0;
	}
	if (data[0] == 'j' || data[0] == 'm') {
		pairs[0] =
			(struct envelope_pair){ data[0] == 'j' ? SPAN("json") : SPAN("m"),
			                        rest };
		pairs[1] = (struct envelope_pair){ SPAN("upstream"), SPAN("claude") };
		read_all(pairs, 2);
		return 0;
	}
	while (rest.len > 0 && count < PAIRS_MAX) {
		pairs[count].name = fuzz_cut(&rest, '\n');
		pairs[count++].value = fuzz_cut(&rest, '\n');
	}
	check_moved(pairs, count);
	read_all(pairs, count);
	return 0;
}
