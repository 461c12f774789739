/* Jobs in one field: JSON and MessagePack, one or many of them. */
#include "tests/lib/envelope_rig.h"

#include <msgpack.h>

START_TEST(envelope_json_nests_the_body_and_needs_no_second_escaping)
{
	struct entry entry = { .count = 0 };
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	add(&entry, "json",
	    "{\"upstream\":\"cl\\u0061ude\",\"body\":{ \"a\" : [1] },\"attempts\":5,"
	    "\"betas\":[\"b\",\"a\"],\"reply\":null,\"ref\":\"x\\u00e9\"}");
	envelope_init(&reader, NULL);
	ck_assert_msg(read_one(&entry, &reader, &envelope, &error) == 0, "%s",
	              error.text);
	ck_assert(span_equals(envelope.upstream, SPAN("claude")));
	ck_assert(span_equals(envelope.body, SPAN("{ \"a\" : [1] }")));
	ck_assert_uint_eq(envelope.attempts, 5);
	ck_assert(span_equals(envelope.betas, SPAN("a,b")));
	ck_assert_uint_eq(envelope.reply.len, 0);
	ck_assert(span_equals(envelope.ref, SPAN("x\xc3\xa9")));
	envelope_fini(&reader);

	/* or as text */
	entry.count = 0;
	add(&entry, "json", "{\"upstream\":\"c\",\"body\":\"{\\\"a\\\":1}\"}");
	envelope_init(&reader, NULL);
	ck_assert_int_eq(read_one(&entry, &reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.body, SPAN("{\"a\":1}")));
	envelope_fini(&reader);
}
END_TEST

START_TEST(envelope_json_that_is_wrong_says_so)
{
	struct entry entry = { .count = 0 };

	add(&entry, "json", "{");
	refuses(entry, ERR_MALFORMED, "json",
	        "`json` is not JSON: expected a key in quotes at byte 1");
	entry.count = 0;
	add(&entry, "json", "7");
	refuses(entry, ERR_MALFORMED, "json", "a job in `json` is not an object");
	entry.count = 0;
	add(&entry, "json", "[]");
	refuses(entry, ERR_MALFORMED, "json", "the pack is empty");
	entry.count = 0;
	add(&entry, "json", "{\"upstream\":[1]}");
	refuses(entry, ERR_MALFORMED, "upstream",
	        "`upstream` has a value of the wrong kind in `json`");
	entry.count = 0;
	add(&entry, "json", "{\"upstrem\":{}}");
	refuses(entry, ERR_MALFORMED, "upstrem",
	        "there is no field `upstrem`; did you mean `upstream`?");
}
END_TEST

START_TEST(envelope_a_pack_shares_its_flat_fields_and_one_bad_job_harms_no_other)
{
	struct entry entry = { .count = 0 };
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;

	add(&entry, "upstream", "claude");
	add(&entry, "priority", "low");
	add(&entry, "json",
	    "[{\"body\":{\"n\":0}},{\"body\":{\"n\":1},\"priority\":\"urgent\"},"
	    "{\"body\":{\"n\":2},\"upstream\":\"other\",\"priority\":\"high\"}]");
	envelope_init(&reader, NULL);
	ck_assert_int_eq(
		envelope_open(&reader, entry.pairs, entry.count, ENTRY_MS, &error), 3);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.body, SPAN("{\"n\":0}")));
	ck_assert(span_equals(envelope.upstream, SPAN("claude")));
	ck_assert_uint_eq(envelope.priority, ENVELOPE_LOW);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), ERR_MALFORMED);
	ck_assert_str_eq(error.field, "priority");
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.upstream, SPAN("other")));
	ck_assert_uint_eq(envelope.priority, ENVELOPE_HIGH);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), ERR_NOT_FOUND);

	/* the cursor can stand inside a pack */
	ck_assert_int_eq(
		envelope_open(&reader, entry.pairs, entry.count, ENTRY_MS, &error), 3);
	ck_assert_int_eq(envelope_seek(&reader, 2), 0);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.body, SPAN("{\"n\":2}")));
	ck_assert_int_eq(envelope_seek(&reader, 1), ERR_NOT_FOUND);
	ck_assert_int_eq(envelope_seek(&reader, 4), ERR_NOT_FOUND);
	envelope_fini(&reader);
}
END_TEST

static void
pack_text(msgpack_packer *packer, const char *text)
{
	msgpack_pack_str(packer, strlen(text));
	msgpack_pack_str_body(packer, text, strlen(text));
}

static void
pack_job(msgpack_packer *packer, const char *body, int attempts)
{
	msgpack_pack_map(packer, 4);
	pack_text(packer, "upstream");
	pack_text(packer, "claude");
	pack_text(packer, "body");
	msgpack_pack_bin(packer, strlen(body));
	msgpack_pack_bin_body(packer, body, strlen(body));
	pack_text(packer, "attempts");
	msgpack_pack_int(packer, attempts);
	pack_text(packer, "reply");
	msgpack_pack_nil(packer);
}

START_TEST(envelope_messagepack_is_one_map_or_an_array_of_them)
{
	struct envelope_reader reader;
	struct envelope_error error;
	struct envelope envelope;
	struct envelope_pair pair = { .name = SPAN("m") };
	msgpack_sbuffer bytes;
	msgpack_packer packer;

	envelope_init(&reader, NULL);
	msgpack_sbuffer_init(&bytes);
	msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
	pack_job(&packer, "{\"one\":1}", 7);
	pair.value = (struct span){ bytes.data, bytes.size };
	ck_assert_int_eq(envelope_open(&reader, &pair, 1, ENTRY_MS, &error), 1);
	ck_assert_msg(envelope_next(&reader, &envelope, &error) == 0, "%s", error.text);
	ck_assert(span_equals(envelope.body, SPAN("{\"one\":1}")));
	ck_assert_uint_eq(envelope.attempts, 7);
	ck_assert_uint_eq(envelope.reply.len, 0);

	msgpack_sbuffer_clear(&bytes);
	msgpack_pack_array(&packer, 3);
	pack_job(&packer, "{\"n\":0}", 1);
	pack_job(&packer, "{\"n\":1}", 1000);
	pack_job(&packer, "{\"n\":2}", 3);
	pair.value = (struct span){ bytes.data, bytes.size };
	ck_assert_int_eq(envelope_open(&reader, &pair, 1, ENTRY_MS, &error), 3);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), ERR_MALFORMED);
	ck_assert_str_eq(error.field, "attempts");
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.body, SPAN("{\"n\":2}")));
	ck_assert_int_eq(envelope_open(&reader, &pair, 1, ENTRY_MS, &error), 3);
	ck_assert_int_eq(envelope_seek(&reader, 2), 0);
	ck_assert_int_eq(envelope_next(&reader, &envelope, &error), 0);
	ck_assert(span_equals(envelope.body, SPAN("{\"n\":2}")));
	msgpack_sbuffer_destroy(&bytes);
	envelope_fini(&reader);
}
END_TEST

START_TEST(envelope_messagepack_values_of_every_width_are_stepped_over)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool good;
	} cases[] = {
#define JOB(extra) \
	"\x83\xa4" \
	"body"     \
	"\xa2{}"   \
	"\xa8"     \
	"upstream" \
	"\xa1"     \
	"c"        \
	"\xa3"     \
	"ref" extra
#define CASE(extra, good) { JOB(extra), sizeof(JOB(extra)) - 1, good }
		CASE("\xa1"
		     "x",
		     true),
		CASE("\xd9\x01"
		     "x",
		     true),
		CASE("\xda\x00\x01"
		     "x",
		     true),
		CASE("\xdb\x00\x00\x00\x01"
		     "x",
		     true),
		CASE("\xc4\x01"
		     "x",
		     true),
		CASE("\xc5\x00\x01"
		     "x",
		     true),
		CASE("\xc6\x00\x00\x00\x01"
		     "x",
		     true),
		CASE("\xc0", true),
		CASE("\xc2", true),
		CASE("\x7f", true),
		CASE("\xff", true),
		CASE("\xcc\x01", true),
		CASE("\xcd\x00\x01", true),
		CASE("\xce\x00\x00\x00\x01", true),
		CASE("\xcf\x00\x00\x00\x00\x00\x00\x00\x01", true),
		CASE("\xd0\x81", true),
		CASE("\xd3\xff\xff\xff\xff\xff\xff\xff\xff", true),
		CASE("\xca\x00\x00\x00\x00", false), /* a float */
		CASE("\xcb\x00\x00\x00\x00\x00\x00\x00\x00", false),
		CASE("\xd4\x01"
		     "x",
		     false), /* extensions */
		CASE("\xd8\x01"
		     "0123456789abcdef",
		     false),
		CASE("\xc7\x01\x05"
		     "x",
		     false),
		CASE("\xc8\x00\x01\x05"
		     "x",
		     false),
		CASE("\xc9\x00\x00\x00\x01\x05"
		     "x",
		     false),
		CASE("\x91\x01", false), /* an array */
		CASE("\xdc\x00\x01\x01", false),
		CASE("\x81\x01\x02", false),
		CASE("\xde\x00\x01\x01\x02", false),
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char pack[256] = "\x92";
		struct envelope_pair pair = { SPAN("m"), { pack, 1 + 2 * cases[i].len } };
		struct envelope_reader reader;
		struct envelope_error error;
		struct envelope envelope;

		memcpy(pack + 1, cases[i].bytes, cases[i].len);
		memcpy(pack + 1 + cases[i].len, cases[i].bytes, cases[i].len);
		envelope_init(&reader, NULL);
		ck_assert_msg(envelope_open(&reader, &pair, 1, ENTRY_MS, &error) == 2,
		              "case %zu", i);
		for (int k = 0; k < 2; k++)
			ck_assert_msg((envelope_next(&reader, &envelope, &error) == 0) ==
			                      cases[i].good,
			              "case %zu: %s", i, error.text);
		envelope_fini(&reader);
		/* and never beyond the end */
		for (size_t len = 0; len < pair.value.len; len++) {
			struct envelope_pair cut = { SPAN("m"), { pack, len } };

			envelope_init(&reader, NULL);
			ck_assert_int_eq(
				envelope_open(&reader, &cut, 1, ENTRY_MS, &error),
				ERR_MALFORMED);
			envelope_fini(&reader);
		}
	}
}
END_TEST

START_TEST(envelope_messagepack_cannot_promise_more_than_it_sends)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "", 0 },
		{ "\xdd\xff\xff\xff\xff", 5 },     /* four billion elements */
		{ "\xdf\xff\xff\xff\xff\x01", 6 }, /* as many pairs */
		{ "\xdb\xff\xff\xff\xff"
		  "abc",
		  8 }, /* a string of 4 GB */
		{ "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x80", 11 }, /* deep */
		{ "\x81\xa1"
		  "a",
		  3 },             /* a key and no value */
		{ "\x80\x80", 2 }, /* two values */
		{ "\xc1", 1 },     /* a byte that is never used */
		{ "\x01", 1 },     /* a number */
		{ "\xc7", 1 },
		{ "\xd9\x05"
		  "ab",
		  4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct envelope_pair pair = { SPAN("m"), { bad[i].bytes, bad[i].len } };
		struct envelope_reader reader;
		struct envelope_error error;

		envelope_init(&reader, NULL);
		ck_assert_msg(envelope_open(&reader, &pair, 1, ENTRY_MS, &error) ==
		                      ERR_MALFORMED,
		              "case %zu", i);
		ck_assert_str_eq(error.field, "m");
		envelope_fini(&reader);
	}
}
END_TEST

SUITE_MAIN("envelope_pack", envelope_json_nests_the_body_and_needs_no_second_escaping,
           envelope_json_that_is_wrong_says_so,
           envelope_a_pack_shares_its_flat_fields_and_one_bad_job_harms_no_other,
           envelope_messagepack_is_one_map_or_an_array_of_them,
           envelope_messagepack_values_of_every_width_are_stepped_over,
           envelope_messagepack_cannot_promise_more_than_it_sends)
