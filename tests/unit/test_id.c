#include "common/id.h"
#include "tests/lib/suite.h"

START_TEST(id_hash_is_the_published_xxh128)
{
	char hex[ID_HEX_LEN];

	/* `printf '' | xxh128sum` */
	id_encode(id_of(SPAN(""), 0), hex);
	ck_assert_mem_eq(hex, "99aa06d3014798d86001c324468d497f", ID_HEX_LEN);
}
END_TEST

START_TEST(id_hash_does_not_depend_on_how_bytes_were_cut)
{
	static char bytes[5000];
	struct id_hash hash;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 31 + i / 256);
	for (size_t len = 0; len <= sizeof bytes; len += 97) {
		struct id128 whole = id_of((struct span){ bytes, len }, 42);

		id_hash_init(&hash, 42);
		for (size_t at = 0; at < len; at += 61)
			id_hash_update(&hash,
			               (struct span){ bytes + at, MIN(61, len - at) });
		ck_assert(id_equals(id_hash_final(&hash), whole));
	}
}
END_TEST

START_TEST(id_hash_seed_changes_every_id)
{
	ck_assert(!id_equals(id_of(SPAN("abc"), 1), id_of(SPAN("abc"), 2)));
	ck_assert(!id_equals(id_of(SPAN("abc"), 1), id_of(SPAN("abd"), 1)));
}
END_TEST

START_TEST(id_hash_fields_keep_their_borders)
{
	struct id_hash a, b;

	id_hash_init(&a, 0);
	id_hash_field(&a, SPAN("ab"));
	id_hash_field(&a, SPAN("c"));
	id_hash_init(&b, 0);
	id_hash_field(&b, SPAN("a"));
	id_hash_field(&b, SPAN("bc"));
	ck_assert(!id_equals(id_hash_final(&a), id_hash_final(&b)));
}
END_TEST

START_TEST(id_hash_final_can_be_asked_in_the_middle)
{
	struct id_hash hash;

	id_hash_init(&hash, 9);
	id_hash_update(&hash, SPAN("abc"));
	ck_assert(id_equals(id_hash_final(&hash), id_of(SPAN("abc"), 9)));
	id_hash_update(&hash, SPAN("def"));
	ck_assert(id_equals(id_hash_final(&hash), id_of(SPAN("abcdef"), 9)));
}
END_TEST

START_TEST(id_text_round_trips)
{
	struct id128 id = { 0x0123456789abcdef, 0xfedcba9876543210 }, back;
	char hex[ID_HEX_LEN];

	id_encode(id, hex);
	ck_assert_mem_eq(hex, "0123456789abcdeffedcba9876543210", ID_HEX_LEN);
	ck_assert_int_eq(id_decode((struct span){ hex, ID_HEX_LEN }, &back), 0);
	ck_assert(id_equals(id, back));
}
END_TEST

START_TEST(id_decode_refuses_what_is_no_id_and_leaves_the_result)
{
	struct id128 id = { 1, 2 };

	ck_assert_int_eq(id_decode(SPAN(""), &id), ERR_MALFORMED);
	ck_assert_int_eq(id_decode(SPAN("0123456789abcdef"), &id), ERR_MALFORMED);
	ck_assert_int_eq(id_decode(SPAN("0123456789abcdef0123456789abcdeF"), &id),
	                 ERR_MALFORMED);
	ck_assert_int_eq(id_decode(SPAN("0123456789abcdef0123456789abcde "), &id),
	                 ERR_MALFORMED);
	ck_assert_int_eq(id_decode(SPAN("0123456789abcdef0123456789abcdef0"), &id),
	                 ERR_MALFORMED);
	ck_assert(id_equals(id, (struct id128){ 1, 2 }));
}
END_TEST

START_TEST(id_order_is_the_order_of_the_text)
{
	struct id128 ids[] = {
		{ 0, 0 }, { 0, 1 }, { 0, UINT64_MAX }, { 1, 0 }, { UINT64_MAX, 5 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(ids); j++) {
			char a[ID_HEX_LEN], b[ID_HEX_LEN];
			int text, number = id_compare(ids[i], ids[j]);

			id_encode(ids[i], a);
			id_encode(ids[j], b);
			text = memcmp(a, b, ID_HEX_LEN);
			ck_assert_int_eq((text > 0) - (text < 0), number);
		}
	}
	ck_assert(id_is_none(ID_NONE));
	ck_assert(!id_is_none(ids[1]));
}
END_TEST

SUITE_MAIN("id", id_hash_is_the_published_xxh128,
           id_hash_does_not_depend_on_how_bytes_were_cut, id_hash_seed_changes_every_id,
           id_hash_fields_keep_their_borders, id_hash_final_can_be_asked_in_the_middle,
           id_text_round_trips, id_decode_refuses_what_is_no_id_and_leaves_the_result,
           id_order_is_the_order_of_the_text)
