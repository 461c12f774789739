#include "common/codec/envelope_pack.h"

#include "common/codec/envelope_field.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>

/* What a value's first byte says: how long its header is, then how many bytes follow as
 * data or how many values it contains. */
struct head {
	size_t header;
	size_t data;
	uint64_t children;
};

static uint64_t
big_endian(const unsigned char *at, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count; i++)
		value = value << 8 | at[i];
	return value;
}

/* Strings, binary and extensions with a length of 1, 2 or 4 bytes behind the type. */
static bool
read_sized(const unsigned char *at, size_t left, size_t width, size_t extra,
           struct head *ret_head)
{
	if (left < 1 + width)
		return false;
	ret_head->header = 1 + width;
	ret_head->data = (size_t)big_endian(at + 1, width) + extra;
	return true;
}

static bool
read_container(const unsigned char *at, size_t left, size_t width, uint64_t each,
               struct head *ret_head)
{
	if (left < 1 + width)
		return false;
	ret_head->header = 1 + width;
	ret_head->children = big_endian(at + 1, width) * each;
	return true;
}

static bool
read_head(const unsigned char *at, size_t left, struct head *ret_head)
{
	static const uint8_t fixed[] = {
		[0xca - 0xc0] = 4, [0xcb - 0xc0] = 8, [0xcc - 0xc0] = 1,
		[0xcd - 0xc0] = 2, [0xce - 0xc0] = 4, [0xcf - 0xc0] = 8,
		[0xd0 - 0xc0] = 1, [0xd1 - 0xc0] = 2, [0xd2 - 0xc0] = 4,
		[0xd3 - 0xc0] = 8, [0xd4 - 0xc0] = 2, [0xd5 - 0xc0] = 3,
		[0xd6 - 0xc0] = 5, [0xd7 - 0xc0] = 9, [0xd8 - 0xc0] = 17,
	};

	*ret_head = (struct head){ .header = 1 };
	if (left == 0 || at[0] == 0xc1)
		return false;
	if (at[0] <= 0x7f || at[0] >= 0xe0)
		return true;
	if (at[0] <= 0x8f) {
		ret_head->children = 2 * (uint64_t)(at[0] & 0xf);
		return true;
	}
	if (at[0] <= 0x9f) {
		ret_head->children = at[0] & 0xf;
		return true;
	}
	if (at[0] <= 0xbf) {
		ret_head->data = at[0] & 0x1f;
		return true;
	}
	switch (at[0]) {
	case 0xc4:
	case 0xd9:
		return read_sized(at, left, 1, 0, ret_head);
	case 0xc5:
	case 0xda:
		return read_sized(at, left, 2, 0, ret_head);
	case 0xc6:
	case 0xdb:
		return read_sized(at, left, 4, 0, ret_head);
	case 0xc7:
	case 0xc8:
	case 0xc9:
		return read_sized(at, left, (size_t)1 << (at[0] - 0xc7), 1, ret_head);
	case 0xdc:
	case 0xdd:
		return read_container(at, left, at[0] == 0xdc ? 2 : 4, 1, ret_head);
	case 0xde:
	case 0xdf:
		return read_container(at, left, at[0] == 0xde ? 2 : 4, 2, ret_head);
	default:
		ret_head->data = fixed[at[0] - 0xc0];
		return true;
	}
}

/* Steps over one value and all in it. */
static bool
skip_value(struct span *bytes)
{
	uint64_t due[ENVELOPE_PACK_DEPTH + 1] = { 1 };
	unsigned depth = 0;

	for (;;) {
		struct head head;

		while (due[depth] == 0) {
			if (depth == 0)
				return true;
			depth--;
		}
		due[depth]--;
		if (!read_head((const unsigned char *)bytes->data, bytes->len, &head) ||
		    head.data > bytes->len - head.header)
			return false;
		bytes->data += head.header + head.data;
		bytes->len -= head.header + head.data;
		if (head.children == 0)
			continue;
		if (head.children > bytes->len || depth == ENVELOPE_PACK_DEPTH)
			return false;
		due[++depth] = head.children;
	}
}

static bool
is_map(unsigned char byte)
{
	return (byte & 0xf0) == 0x80 || byte == 0xde || byte == 0xdf;
}

static bool
is_array(unsigned char byte)
{
	return (byte & 0xf0) == 0x90 || byte == 0xdc || byte == 0xdd;
}

int
envelope_pack_open(struct span bytes, uint32_t *ret_count, struct span *ret_maps)
{
	struct span rest = bytes;
	struct head head;

	if (bytes.len == 0 || !skip_value(&rest) || rest.len > 0)
		return ERR_MALFORMED;
	if (is_map((unsigned char)bytes.data[0])) {
		*ret_count = 1;
		*ret_maps = bytes;
		return 0;
	}
	if (!is_array((unsigned char)bytes.data[0]) ||
	    !read_head((const unsigned char *)bytes.data, bytes.len, &head))
		return ERR_MALFORMED;
	*ret_count = (uint32_t)head.children;
	*ret_maps = (struct span){ bytes.data + head.header, bytes.len - head.header };
	return 0;
}

int
envelope_pack_skip(struct span *maps, struct span *ret_map)
{
	struct span rest = *maps;

	if (!skip_value(&rest))
		return ERR_MALFORMED;
	*ret_map = (struct span){ maps->data, maps->len - rest.len };
	*maps = rest;
	return 0;
}

static struct span
keep(struct buffer *scratch, struct span bytes)
{
	size_t from = scratch->len;

	(void)buffer_append(scratch, bytes);
	return (struct span){ scratch->data + from, bytes.len };
}

/* The text of a scalar; false for what no field can be. */
static bool
scalar_text(const msgpack_object *object, struct buffer *scratch, struct span *ret_text)
{
	char number[32];
	int len;

	switch (object->type) {
	case MSGPACK_OBJECT_STR:
		*ret_text = (struct span){ object->via.str.ptr, object->via.str.size };
		return true;
	case MSGPACK_OBJECT_BIN:
		*ret_text = (struct span){ object->via.bin.ptr, object->via.bin.size };
		return true;
	case MSGPACK_OBJECT_BOOLEAN:
		*ret_text = object->via.boolean ? SPAN("true") : SPAN("false");
		return true;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		len = snprintf(number, sizeof number, "%" PRIu64, object->via.u64);
		*ret_text = keep(scratch, (struct span){ number, (size_t)len });
		return true;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		len = snprintf(number, sizeof number, "%" PRId64, object->via.i64);
		*ret_text = keep(scratch, (struct span){ number, (size_t)len });
		return true;
	default:
		return false;
	}
}

static int
read_pairs(const msgpack_object *map, struct buffer *scratch, struct envelope_pair *pairs,
           size_t *ret_count, struct envelope_error *reterr)
{
	size_t count = 0;

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *item = &map->via.map.ptr[i];
		struct envelope_pair pair;

		if (item->key.type != MSGPACK_OBJECT_STR)
			return envelope_field_refuse(reterr, "m",
			                             "a key in `m` is not a string");
		pair.name =
			(struct span){ item->key.via.str.ptr, item->key.via.str.size };
		if (item->val.type == MSGPACK_OBJECT_NIL)
			continue;
		if (!scalar_text(&item->val, scratch, &pair.value))
			return envelope_field_refuse(reterr, "m",
			                             "a value in `m` is not a string, "
			                             "binary, integer or boolean");
		if (count == ENVELOPE_FIELDS_MAX)
			return envelope_field_refuse(reterr, "m",
			                             "a job has more than %d fields",
			                             ENVELOPE_FIELDS_MAX);
		pairs[count++] = pair;
	}
	*ret_count = count;
	return 0;
}

/* msgpack-c may keep strings in its own memory; what does not lie in the input moves to
 * the scratch before that memory goes. */
static int
settle(struct span map, struct buffer *scratch, struct envelope_pair *pairs, size_t count)
{
	for (size_t i = 0; i < 2 * count; i++) {
		struct span *text = i % 2 ? &pairs[i / 2].value : &pairs[i / 2].name;
		bool borrowed = text->data >= map.data && text->data < map.data + map.len;
		bool kept = scratch->data && text->data >= scratch->data &&
		            text->data < scratch->data + scratch->len;

		if (text->len > 0 && !borrowed && !kept)
			*text = keep(scratch, *text);
	}
	return buffer_error(scratch);
}

int
envelope_pack_read(struct span map, struct buffer *scratch, struct envelope_pair *pairs,
                   size_t *ret_count, struct envelope_error *reterr)
{
	msgpack_unpacked unpacked;
	size_t offset = 0, count = 0;
	int err;

	msgpack_unpacked_init(&unpacked);
	if (msgpack_unpack_next(&unpacked, map.data, map.len, &offset) !=
	            MSGPACK_UNPACK_SUCCESS ||
	    unpacked.data.type != MSGPACK_OBJECT_MAP)
		err = envelope_field_refuse(reterr, "m", "a job in `m` is not a map");
	else
		err = read_pairs(&unpacked.data, scratch, pairs, &count, reterr);
	if (err == 0)
		err = settle(map, scratch, pairs, count);
	if (err == 0)
		*ret_count = count;
	msgpack_unpacked_destroy(&unpacked);
	return err;
}
