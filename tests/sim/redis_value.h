/* redis_value.h - what a key of the small Redis holds, in plain sorted arrays.
 *
 *   string   text                     list     texts in order
 *   hash     fields sorted by name    set      fields without values
 *   zset     members by (score, name) stream   entries by id
 *
 * Everything is a vector that is searched by halving or walked: a simulated queue holds
 * hundreds of things, and an order that depends on nothing but the content is worth
 * more here than speed.  Whoever gets a text out of these structures borrows it until
 * the next command.  Memory comes from malloc; running out of it ends the test. */
#ifndef TESTS_SIM_REDIS_VALUE_H
#define TESTS_SIM_REDIS_VALUE_H

#include "common/base.h"

enum redis_type {
	REDIS_STRING,
	REDIS_LIST,
	REDIS_HASH,
	REDIS_SET,
	REDIS_ZSET,
	REDIS_STREAM,
	REDIS_TYPE_COUNT,
};

/* Bytes with a length and, behind them, a zero. */
struct redis_text {
	size_t len;
	char data[];
};

struct redis_field {
	struct redis_text *name;
	struct redis_text *value; /* NULL in sets */
};

struct redis_member {
	double score;
	struct redis_text *name;
};

struct redis_stream_id {
	uint64_t ms;
	uint64_t seq;
};

struct redis_entry {
	struct redis_stream_id id;
	struct redis_text **words; /* field, value, field, value ... */
	size_t words_count;
};

/* Items of one size, in one block. */
struct redis_vector {
	char *data;
	size_t count;
	size_t room;
	size_t item_size;
};

struct redis_stream {
	struct redis_stream_id last;
	struct redis_stream_id deleted_max;
	uint64_t added;
};

struct redis_value {
	struct redis_text *key;
	enum redis_type type;
	uint64_t expires_ms;       /* 0: never */
	struct redis_text *string; /* REDIS_STRING */
	struct redis_vector items; /* of redis_text *, _field, _member or _entry */
	struct redis_stream stream;
};

struct redis_text *redis_text_create(struct span bytes);
struct span redis_text_span(const struct redis_text *text);

/* <0, 0, >0 as memcmp orders them, the shorter first. */
int redis_text_compare(const struct redis_text *text, struct span bytes);

/* Opens a zeroed place before item `at` (at most `count`). */
void *redis_vector_insert(struct redis_vector *vector, size_t at);
void redis_vector_remove(struct redis_vector *vector, size_t at, size_t count);
void redis_vector_fini(struct redis_vector *vector);

struct redis_value *redis_value_create(struct span key, enum redis_type type);
void redis_value_destroy(struct redis_value *value);
struct redis_value *redis_value_copy(const struct redis_value *value);

/* True iff it holds nothing; Redis has no empty lists, hashes, sets and zsets. */
bool redis_value_is_empty(const struct redis_value *value);

/* The typed i-th item. */
struct redis_text **redis_value_text(const struct redis_value *list, size_t i);
struct redis_field *redis_value_field(const struct redis_value *hash, size_t i);
struct redis_member *redis_value_member(const struct redis_value *zset, size_t i);
struct redis_entry *redis_value_entry(const struct redis_value *stream, size_t i);

/* Frees what items [at, at + count) own and removes them. */
void redis_value_cut(struct redis_value *value, size_t at, size_t count);

/* The place of `name` in a hash or set; if it is not there, where it belongs. */
size_t redis_value_seek(const struct redis_value *value, struct span name,
                        bool *ret_found);

/* The place of the first entry with an id at or above `id`. */
size_t redis_value_seek_entry(const struct redis_value *stream,
                              struct redis_stream_id id);

int redis_stream_id_compare(struct redis_stream_id a, struct redis_stream_id b);

#endif
