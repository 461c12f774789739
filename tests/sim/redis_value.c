#include "tests/sim/redis_value.h"

#include <stdlib.h>

static const size_t ITEM_SIZES[REDIS_TYPE_COUNT] = {
	[REDIS_STRING] = 1,
	[REDIS_LIST] = sizeof(struct redis_text *),
	[REDIS_HASH] = sizeof(struct redis_field),
	[REDIS_SET] = sizeof(struct redis_field),
	[REDIS_ZSET] = sizeof(struct redis_member),
	[REDIS_STREAM] = sizeof(struct redis_entry),
};

struct redis_text *
redis_text_create(struct span bytes)
{
	struct redis_text *text = malloc(sizeof *text + bytes.len + 1);

	VERIFY(text);
	text->len = bytes.len;
	if (bytes.len > 0)
		memcpy(text->data, bytes.data, bytes.len);
	text->data[bytes.len] = '\0';
	return text;
}

struct span
redis_text_span(const struct redis_text *text)
{
	return (struct span){ text->data, text->len };
}

int
redis_text_compare(const struct redis_text *text, struct span bytes)
{
	size_t len = MIN(text->len, bytes.len);
	int order = len > 0 ? memcmp(text->data, bytes.data, len) : 0;

	if (order != 0)
		return order;
	return text->len < bytes.len ? -1 : text->len > bytes.len;
}

int
redis_stream_id_compare(struct redis_stream_id a, struct redis_stream_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return a.seq < b.seq ? -1 : a.seq > b.seq;
}

static void *
item_at(const struct redis_vector *vector, size_t i)
{
	VERIFY(i < vector->count);
	return vector->data + i * vector->item_size;
}

void *
redis_vector_insert(struct redis_vector *vector, size_t at)
{
	size_t size = vector->item_size;
	char *place;

	VERIFY(at <= vector->count);
	if (vector->count == vector->room) {
		vector->room = vector->room ? vector->room * 2 : 4;
		vector->data = realloc(vector->data, vector->room * size);
		VERIFY(vector->data);
	}
	place = vector->data + at * size;
	memmove(place + size, place, (vector->count - at) * size);
	vector->count++;
	return memset(place, 0, size);
}

void
redis_vector_remove(struct redis_vector *vector, size_t at, size_t count)
{
	size_t size = vector->item_size;
	char *place = vector->data + at * size;

	VERIFY(at + count <= vector->count);
	if (count == 0)
		return;
	memmove(place, place + count * size, (vector->count - at - count) * size);
	vector->count -= count;
}

void
redis_vector_fini(struct redis_vector *vector)
{
	free(vector->data);
	*vector = (struct redis_vector){ .item_size = vector->item_size };
}

struct redis_value *
redis_value_create(struct span key, enum redis_type type)
{
	struct redis_value *value = calloc(1, sizeof *value);

	VERIFY(value);
	value->key = redis_text_create(key);
	value->type = type;
	value->items.item_size = ITEM_SIZES[type];
	return value;
}

void
redis_value_destroy(struct redis_value *value)
{
	if (!value)
		return;
	if (value->items.count > 0)
		redis_value_cut(value, 0, value->items.count);
	redis_vector_fini(&value->items);
	free(value->string);
	free(value->key);
	free(value);
}

bool
redis_value_is_empty(const struct redis_value *value)
{
	if (value->type == REDIS_STRING || value->type == REDIS_STREAM)
		return false;
	return value->items.count == 0;
}

struct redis_text **
redis_value_text(const struct redis_value *list, size_t i)
{
	VERIFY(list->type == REDIS_LIST);
	return item_at(&list->items, i);
}

struct redis_field *
redis_value_field(const struct redis_value *hash, size_t i)
{
	VERIFY(hash->type == REDIS_HASH || hash->type == REDIS_SET);
	return item_at(&hash->items, i);
}

struct redis_member *
redis_value_member(const struct redis_value *zset, size_t i)
{
	VERIFY(zset->type == REDIS_ZSET);
	return item_at(&zset->items, i);
}

struct redis_entry *
redis_value_entry(const struct redis_value *stream, size_t i)
{
	VERIFY(stream->type == REDIS_STREAM);
	return item_at(&stream->items, i);
}

static void
free_item(struct redis_value *value, size_t i)
{
	struct redis_entry *entry;

	switch (value->type) {
	case REDIS_STRING:
	case REDIS_TYPE_COUNT:
		break;
	case REDIS_LIST:
		free(*redis_value_text(value, i));
		break;
	case REDIS_HASH:
	case REDIS_SET:
		free(redis_value_field(value, i)->name);
		free(redis_value_field(value, i)->value);
		break;
	case REDIS_ZSET:
		free(redis_value_member(value, i)->name);
		break;
	case REDIS_STREAM:
		entry = redis_value_entry(value, i);
		for (size_t k = 0; k < entry->words_count; k++)
			free(entry->words[k]);
		free(entry->words);
		break;
	}
}

void
redis_value_cut(struct redis_value *value, size_t at, size_t count)
{
	for (size_t i = at; i < at + count; i++)
		free_item(value, i);
	redis_vector_remove(&value->items, at, count);
}

size_t
redis_value_seek(const struct redis_value *value, struct span name, bool *ret_found)
{
	size_t low = 0;
	size_t high = value->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order =
			redis_text_compare(redis_value_field(value, middle)->name, name);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

size_t
redis_value_seek_entry(const struct redis_value *stream, struct redis_stream_id id)
{
	size_t low = 0;
	size_t high = stream->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (redis_stream_id_compare(redis_value_entry(stream, middle)->id, id) <
		    0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct redis_text *
text_copy(const struct redis_text *text)
{
	return text ? redis_text_create(redis_text_span(text)) : NULL;
}

static void
copy_entry(struct redis_entry *entry)
{
	struct redis_text **words =
		calloc(entry->words_count, sizeof(struct redis_text *));

	VERIFY(words || entry->words_count == 0);
	for (size_t i = 0; i < entry->words_count; i++)
		words[i] = text_copy(entry->words[i]);
	entry->words = words;
}

/* The item is a copy of another one's bytes: gives it texts of its own. */
static void
own_item(struct redis_value *value, size_t i)
{
	struct redis_field *field;

	switch (value->type) {
	case REDIS_STRING:
	case REDIS_TYPE_COUNT:
		break;
	case REDIS_LIST:
		*redis_value_text(value, i) = text_copy(*redis_value_text(value, i));
		break;
	case REDIS_HASH:
	case REDIS_SET:
		field = redis_value_field(value, i);
		field->name = text_copy(field->name);
		field->value = text_copy(field->value);
		break;
	case REDIS_ZSET:
		redis_value_member(value, i)->name =
			text_copy(redis_value_member(value, i)->name);
		break;
	case REDIS_STREAM:
		copy_entry(redis_value_entry(value, i));
		break;
	}
}

struct redis_value *
redis_value_copy(const struct redis_value *value)
{
	struct redis_value *copy =
		redis_value_create(redis_text_span(value->key), value->type);
	size_t size = value->items.count * value->items.item_size;

	copy->expires_ms = value->expires_ms;
	copy->stream = value->stream;
	copy->string = text_copy(value->string);
	if (size == 0)
		return copy;
	copy->items.data = malloc(size);
	VERIFY(copy->items.data);
	memcpy(copy->items.data, value->items.data, size);
	copy->items.count = copy->items.room = value->items.count;
	for (size_t i = 0; i < copy->items.count; i++)
		own_item(copy, i);
	return copy;
}
