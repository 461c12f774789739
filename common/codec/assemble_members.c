#include "common/codec/assemble_members.h"

#include <stdlib.h>

#define VALUE_MAX ((size_t)64 << 20)

void
assemble_members_fini(struct assemble_members *members)
{
	for (unsigned i = 0; i < members->count; i++) {
		buffer_fini(&members->list[i].key);
		buffer_fini(&members->list[i].value);
	}
	free(members->list);
	*members = (struct assemble_members){ 0 };
}

static struct assemble_member *
find(const struct assemble_members *members, struct span key)
{
	for (unsigned i = 0; i < members->count; i++)
		if (span_equals(buffer_span(&members->list[i].key), key))
			return &members->list[i];
	return NULL;
}

static int
find_or_add(struct assemble_members *members, struct span key,
            struct assemble_member **ret_member)
{
	struct assemble_member *member = find(members, key);

	if (member) {
		*ret_member = member;
		return 0;
	}
	if (members->count == ASSEMBLE_MEMBERS_MAX)
		return ERR_LIMIT;
	if (members->count == members->room) {
		unsigned room = members->room ? members->room * 2 : 8;
		struct assemble_member *list =
			realloc(members->list, room * sizeof *list);

		if (!list)
			return ERR_MEMORY;
		members->list = list;
		members->room = room;
	}
	member = &members->list[members->count++];
	*member = (struct assemble_member){ 0 };
	buffer_init(&member->key, VALUE_MAX);
	buffer_init(&member->value, VALUE_MAX);
	*ret_member = member;
	return buffer_append(&member->key, key);
}

static void
close_string(struct assemble_member *member)
{
	if (member->open)
		(void)buffer_append_byte(&member->value, '"');
	member->open = false;
}

struct span
assemble_members_get(struct assemble_members *members, struct span key)
{
	struct assemble_member *member = find(members, key);

	if (!member)
		return (struct span){ 0 };
	close_string(member);
	return buffer_span(&member->value);
}

int
assemble_members_set(struct assemble_members *members, struct span key, struct span value)
{
	struct assemble_member *member;
	int err = find_or_add(members, key, &member);

	if (err < 0)
		return err;
	member->open = false;
	buffer_clear(&member->value);
	return buffer_append(&member->value, value);
}

static bool
is_null(const struct assemble_member *member)
{
	return member->value.len == 0 ||
	       span_equals(buffer_span(&member->value), SPAN("null"));
}

int
assemble_members_extend(struct assemble_members *members, struct span key,
                        struct span inside)
{
	struct assemble_member *member;
	int err = find_or_add(members, key, &member);

	if (err < 0)
		return err;
	if (!member->open && is_null(member)) {
		buffer_clear(&member->value);
		(void)buffer_append_byte(&member->value, '"');
	} else if (!member->open) {
		if (member->value.data[0] != '"')
			return ERR_MALFORMED;
		buffer_truncate(&member->value, member->value.len - 1);
	}
	member->open = true;
	return buffer_append(&member->value, inside);
}

int
assemble_members_add(struct assemble_members *members, struct span key,
                     struct span elements)
{
	struct assemble_member *member;
	int err = find_or_add(members, key, &member);

	if (err < 0)
		return err;
	if (is_null(member)) {
		buffer_clear(&member->value);
		(void)buffer_append_byte(&member->value, '[');
	} else {
		if (member->open || member->value.data[0] != '[')
			return ERR_MALFORMED;
		buffer_truncate(&member->value, member->value.len - 1);
		if (member->value.len > 1 && elements.len > 0)
			(void)buffer_append_byte(&member->value, ',');
	}
	(void)buffer_append(&member->value, elements);
	return buffer_append_byte(&member->value, ']');
}

int
assemble_members_take(struct assemble_members *members, const struct tape *tape,
                      uint32_t object, bool nulls)
{
	if (!tape_is(tape, object, TAPE_OBJECT))
		return 0;
	for (uint32_t key = tape_first(tape, object); key < tape_end(tape, object);
	     key = tape_next(tape, key + 1)) {
		struct span name = tape_inside(tape, key);
		int err;

		if (tape_type(tape, key + 1) == TAPE_NULL &&
		    (!nulls || find(members, name)))
			continue;
		err = assemble_members_set(members, name, tape_raw(tape, key + 1));
		if (err < 0)
			return err;
	}
	return 0;
}

void
assemble_members_write(struct assemble_members *members, struct buffer *out)
{
	(void)buffer_append_byte(out, '{');
	for (unsigned i = 0; i < members->count; i++) {
		struct assemble_member *member = &members->list[i];

		close_string(member);
		if (i > 0)
			(void)buffer_append_byte(out, ',');
		(void)buffer_append_byte(out, '"');
		(void)buffer_append(out, buffer_span(&member->key));
		(void)buffer_append(out, SPAN("\":"));
		(void)buffer_append(out, buffer_span(&member->value));
	}
	(void)buffer_append_byte(out, '}');
}
