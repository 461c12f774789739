#include "common/codec/envelope.h"

#include "common/codec/envelope_field.h"
#include "common/codec/envelope_pack.h"
#include "common/codec/tape_text.h"
#include "common/text.h"

enum form {
	FORM_FLAT,
	FORM_JSON,
	FORM_PACKED,
};

void
envelope_init(struct envelope_reader *reader, const struct envelope_limits *limits)
{
	static const struct envelope_limits defaults = { ENVELOPE_BODY_MAX,
		                                         ENVELOPE_PACK_MAX };

	*reader = (struct envelope_reader){ .limits = limits ? *limits : defaults };
	buffer_init(&reader->scratch, SIZE_MAX / 2);
	tape_init(&reader->tape);
}

void
envelope_fini(struct envelope_reader *reader)
{
	if (!reader)
		return;
	buffer_fini(&reader->scratch);
	tape_fini(&reader->tape);
	reader->count = 0;
}

static const struct envelope_pair *
find_pair(const struct envelope_pair *pairs, size_t count, struct span name)
{
	for (size_t i = 0; i < count; i++)
		if (span_equals(pairs[i].name, name))
			return &pairs[i];
	return NULL;
}

static bool
is_form(struct span name)
{
	return span_equals(name, SPAN("json")) || span_equals(name, SPAN("m"));
}

static int
open_json(struct envelope_reader *reader, struct span text, struct envelope_error *reterr)
{
	struct tape_error where;
	int err = tape_parse(&reader->tape, text, &where);

	if (err == ERR_MEMORY)
		return err;
	if (err < 0)
		return envelope_field_refuse(reterr, "json",
		                             "`json` is not JSON: %s at byte %zu",
		                             where.what, where.offset);
	reader->form = FORM_JSON;
	reader->count = 1;
	reader->json_at = 0;
	if (tape_is(&reader->tape, 0, TAPE_ARRAY)) {
		reader->is_pack = true;
		reader->count = tape_count(&reader->tape, 0);
		reader->json_at = tape_first(&reader->tape, 0);
	}
	return 0;
}

static int
open_packed(struct envelope_reader *reader, struct span bytes,
            struct envelope_error *reterr)
{
	int err = envelope_pack_open(bytes, &reader->count, &reader->packed);

	reader->form = FORM_PACKED;
	reader->is_pack =
		err == 0 && reader->packed.data != bytes.data; /* behind a head */
	if (err < 0)
		return envelope_field_refuse(reterr, "m",
		                             "`m` is not one MessagePack map or an array "
		                             "of maps, nested at most %d deep",
		                             ENVELOPE_PACK_DEPTH);
	return 0;
}

int
envelope_open(struct envelope_reader *reader, const struct envelope_pair *pairs,
              size_t pairs_count, uint64_t entry_ms, struct envelope_error *reterr)
{
	const struct envelope_pair *json = find_pair(pairs, pairs_count, SPAN("json"));
	const struct envelope_pair *packed = find_pair(pairs, pairs_count, SPAN("m"));
	int err = 0;

	*reterr = (struct envelope_error){ 0 };
	reader->pairs = pairs;
	reader->pairs_count = pairs_count;
	reader->entry_ms = entry_ms;
	reader->form = FORM_FLAT;
	reader->is_pack = false;
	reader->count = 1;
	reader->index = 0;
	if (pairs_count > ENVELOPE_FIELDS_MAX)
		err = envelope_field_refuse(reterr, NULL,
		                            "the entry has more than %d fields",
		                            ENVELOPE_FIELDS_MAX);
	else if (json && packed)
		err = envelope_field_refuse(reterr, "m",
		                            "an entry has `json` or `m`, not both");
	else if (json)
		err = open_json(reader, json->value, reterr);
	else if (packed)
		err = open_packed(reader, packed->value, reterr);
	if (err == 0 && reader->count == 0)
		err = envelope_field_refuse(reterr, json ? "json" : "m",
		                            "the pack is empty");
	if (err == 0 && reader->count > reader->limits.pack_max)
		err = envelope_field_refuse(
			reterr, json ? "json" : "m",
			"the pack has %u jobs; at most %u fit in one entry",
			reader->count, reader->limits.pack_max);
	if (err < 0) {
		reader->count = 0;
		return err;
	}
	return (int)reader->count;
}

static int
step(struct envelope_reader *reader)
{
	struct span ignored;

	reader->index++;
	if (reader->form == FORM_JSON)
		reader->json_at = tape_next(&reader->tape, reader->json_at);
	if (reader->form == FORM_PACKED)
		return envelope_pack_skip(&reader->packed, &ignored);
	return 0;
}

int
envelope_seek(struct envelope_reader *reader, uint32_t index)
{
	while (reader->index < index) {
		if (reader->index == reader->count)
			return ERR_NOT_FOUND;
		if (step(reader) < 0)
			return ERR_MALFORMED;
	}
	return reader->index == index ? 0 : ERR_NOT_FOUND;
}

/* The content of a string; decoded into the scratch, which has room, if it must be. */
static int
string_text(struct envelope_reader *reader, uint32_t at, struct span *ret_text)
{
	struct buffer *scratch = &reader->scratch;
	size_t from = scratch->len;

	*ret_text = tape_inside(&reader->tape, at);
	if (!(reader->tape.tokens[at].flags & TAPE_ESCAPED))
		return 0;
	if (!tape_text_decode(*ret_text, scratch))
		return ERR_MALFORMED;
	*ret_text = (struct span){ scratch->data + from, scratch->len - from };
	return buffer_error(scratch);
}

/* ["a","b"] as a,b. */
static int
array_text(struct envelope_reader *reader, uint32_t at, struct span *ret_text)
{
	const struct tape *tape = &reader->tape;
	struct buffer *scratch = &reader->scratch;
	size_t from = scratch->len;

	for (uint32_t i = tape_first(tape, at); i < tape_end(tape, at);
	     i = tape_next(tape, i)) {
		if (!tape_is(tape, i, TAPE_STRING))
			return ERR_MALFORMED;
		if (scratch->len > from)
			(void)buffer_append_byte(scratch, ',');
		(void)tape_text_decode(tape_inside(tape, i), scratch);
	}
	*ret_text = (struct span){ scratch->data + from, scratch->len - from };
	return buffer_error(scratch);
}

static int
json_value(struct envelope_reader *reader, const struct envelope_field *field,
           uint32_t at, struct span *ret_text)
{
	enum tape_type type = tape_type(&reader->tape, at);

	if (type == TAPE_STRING)
		return string_text(reader, at, ret_text);
	if (type == TAPE_ARRAY && field && field->type == ENVELOPE_TYPE_BETAS)
		return array_text(reader, at, ret_text);
	if ((type == TAPE_OBJECT || type == TAPE_ARRAY) &&
	    (!field || field->type != ENVELOPE_TYPE_BODY))
		return ERR_MALFORMED;
	*ret_text = tape_raw(&reader->tape, at);
	return 0;
}

static int
read_json(struct envelope_reader *reader, struct envelope_error *reterr)
{
	const struct tape *tape = &reader->tape;
	uint32_t object = reader->json_at;

	if (!tape_is(tape, object, TAPE_OBJECT))
		return envelope_field_refuse(reterr, "json",
		                             "a job in `json` is not an object");
	if (tape_count(tape, object) > ENVELOPE_FIELDS_MAX)
		return envelope_field_refuse(reterr, "json",
		                             "a job has more than %d fields",
		                             ENVELOPE_FIELDS_MAX);
	for (uint32_t key = tape_first(tape, object); key < tape_end(tape, object);
	     key = tape_next(tape, key + 1)) {
		struct envelope_pair pair;
		const struct envelope_field *field;

		if (tape_type(tape, key + 1) == TAPE_NULL)
			continue;
		if (string_text(reader, key, &pair.name) < 0)
			return envelope_field_refuse(reterr, "json",
			                             "a key in `json` is no text");
		field = envelope_field_find(pair.name);
		if (json_value(reader, field, key + 1, &pair.value) < 0) {
			if (!field)
				return envelope_field_unknown(pair.name, reterr);
			return envelope_field_refuse(
				reterr, field->name,
				"`%s` has a value of the wrong kind in `json`",
				field->name);
		}
		reader->job[reader->job_count++] = pair;
	}
	return 0;
}

/* Flat fields beside a pack are defaults: a job's own field wins. */
static int
add_defaults(struct envelope_reader *reader, struct envelope_error *reterr)
{
	size_t own = reader->job_count;

	for (size_t i = 0; i < reader->pairs_count; i++) {
		const struct envelope_pair *pair = &reader->pairs[i];

		if (is_form(pair->name) || find_pair(reader->job, own, pair->name))
			continue;
		if (reader->job_count == ENVELOPE_FIELDS_MAX)
			return envelope_field_refuse(reterr, NULL,
			                             "a job has more than %d fields",
			                             ENVELOPE_FIELDS_MAX);
		reader->job[reader->job_count++] = *pair;
	}
	return 0;
}

static int
parse_fields(struct envelope_reader *reader, struct envelope *envelope,
             struct envelope_error *reterr)
{
	for (size_t i = 0; i < reader->job_count; i++) {
		const struct envelope_pair *pair = &reader->job[i];
		const struct envelope_field *field = envelope_field_find(pair->name);
		int err;

		if (!field)
			return envelope_field_unknown(pair->name, reterr);
		if (find_pair(reader->job, i, pair->name))
			return envelope_field_refuse(reterr, field->name,
			                             "`%s` is given twice", field->name);
		err = envelope_field_parse(field, pair->value, reader->entry_ms,
		                           &reader->scratch, envelope, reterr);
		if (err < 0)
			return err;
	}
	return 0;
}

static int
check_whole(const struct envelope_reader *reader, struct envelope *envelope,
            struct envelope_error *reterr)
{
	const struct envelope_pair *put =
		find_pair(reader->job, reader->job_count, SPAN("put_prefix"));

	if (envelope->body.len == 0)
		return envelope_field_refuse(reterr, "body",
		                             "`body` is missing or empty");
	if (envelope->body.len > reader->limits.body_max)
		return envelope_field_refuse(reterr, "body",
		                             "`body` has %zu bytes; the limit is %zu",
		                             envelope->body.len, reader->limits.body_max);
	if (put) {
		envelope->kind = ENVELOPE_PREFIX;
		if (find_pair(reader->job, reader->job_count, SPAN("prefix")))
			return envelope_field_refuse(
				reterr, "prefix",
				"an entry has `put_prefix` or `prefix`, not both");
		return 0;
	}
	if (envelope->upstream.len == 0)
		return envelope_field_refuse(reterr, "upstream", "`upstream` is missing");
	if (envelope->route.len == 0)
		envelope->route = envelope->prefix;
	return 0;
}

/* Room for every value decoded, so that spans into the scratch stay where they are. */
static int
make_room(struct envelope_reader *reader, size_t bytes)
{
	size_t flat = 0;

	for (size_t i = 0; i < reader->pairs_count; i++)
		if (!is_form(reader->pairs[i].name))
			flat += reader->pairs[i].value.len < 4096
			                ? reader->pairs[i].value.len
			                : 0;
	buffer_clear(&reader->scratch);
	return buffer_reserve(&reader->scratch,
	                      2 * bytes + 2 * flat + 24 * (size_t)ENVELOPE_FIELDS_MAX)
	               ? 0
	               : ERR_MEMORY;
}

static int
read_job(struct envelope_reader *reader, struct envelope_error *reterr)
{
	struct span rest = reader->packed, map = { 0 };
	int err;

	reader->job_count = 0;
	switch ((enum form)reader->form) {
	case FORM_FLAT:
		return make_room(reader, 0);
	case FORM_JSON:
		err = make_room(reader, tape_raw(&reader->tape, reader->json_at).len);
		return err < 0 ? err : read_json(reader, reterr);
	case FORM_PACKED:
		break;
	}
	err = envelope_pack_skip(&rest, &map);
	if (err == 0)
		err = make_room(reader, map.len);
	if (err == 0)
		err = envelope_pack_read(map, &reader->scratch, reader->job,
		                         &reader->job_count, reterr);
	return err;
}

int
envelope_next(struct envelope_reader *reader, struct envelope *ret_envelope,
              struct envelope_error *reterr)
{
	struct envelope envelope;
	int err;

	if (reader->index >= reader->count)
		return ERR_NOT_FOUND;
	*reterr = (struct envelope_error){ 0 };
	envelope_field_defaults(&envelope);
	err = read_job(reader, reterr);
	if (err == 0)
		err = add_defaults(reader, reterr);
	if (err == 0)
		err = parse_fields(reader, &envelope, reterr);
	if (err == 0)
		err = check_whole(reader, &envelope, reterr);
	if (step(reader) < 0 && err == 0)
		err = ERR_MALFORMED;
	if (err == 0)
		*ret_envelope = envelope;
	return err;
}
