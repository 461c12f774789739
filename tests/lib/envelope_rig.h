/* envelope_rig.h - entries of the inbox, field by field.
 *
 *   struct entry entry = minimal();
 *
 *   add(&entry, "route", "triage");
 *   ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), 0); */
#ifndef TESTS_LIB_ENVELOPE_RIG_H
#define TESTS_LIB_ENVELOPE_RIG_H

#include "common/codec/envelope.h"
#include "tests/lib/suite.h"

#define ENTRY_MS UINT64_C(1790000000000)

struct entry {
	struct envelope_pair pairs[ENVELOPE_FIELDS_MAX + 2];
	size_t count;
};

static inline void
add(struct entry *entry, const char *name, const char *value)
{
	entry->pairs[entry->count++] =
		(struct envelope_pair){ span_from(name), span_from(value) };
}

/* Reads the only job of an entry. */
static inline int
read_one(const struct entry *entry, struct envelope_reader *reader,
         struct envelope *envelope, struct envelope_error *error)
{
	int count = envelope_open(reader, entry->pairs, entry->count, ENTRY_MS, error);

	if (count < 0)
		return count;
	ck_assert_int_eq(count, 1);
	return envelope_next(reader, envelope, error);
}

/* The two fields that every job has. */
static inline struct entry
minimal(void)
{
	struct entry entry = { .count = 0 };

	add(&entry, "upstream", "claude");
	add(&entry, "body", "{}");
	return entry;
}

/* It is refused for this field, in these words. */
static inline void
refuses(struct entry entry, int err, const char *field, const char *text)
{
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	envelope_init(&reader, NULL);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), err);
	ck_assert_str_eq(error.field, field);
	ck_assert_str_eq(error.text, text);
	ck_assert(error.fault ==
	          (err == ERR_UNSUPPORTED ? ENVELOPE_UNSUPPORTED : ENVELOPE_MALFORMED));
	envelope_fini(&reader);
}

#endif
