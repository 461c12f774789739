#include "common/codec/when.h"
#include "tests/lib/suite.h"

START_TEST(when_reads_rfc_3339)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2000-02-29T12:34:56Z", UINT64_C(951827696000) },
		{ "2026-11-04T12:00:00Z", UINT64_C(1793793600000) },
		{ "2026-11-04t12:00:00.5z", UINT64_C(1793793600500) },
		{ "2026-11-04 12:00:00.123456Z", UINT64_C(1793793600123) },
		{ "2026-11-04T13:30:00+01:30", UINT64_C(1793793600000) },
		{ "2026-11-04T07:00:00-05:00", UINT64_C(1793793600000) },
		{ "2016-12-31T23:59:60Z", UINT64_C(1483228800000) },
		{ "9999-12-31T23:59:59Z", UINT64_C(253402300799000) },
		{ "2100-03-01T00:00:00Z", UINT64_C(4107542400000) },
	};
	static const char *const bad[] = {
		"",
		"2026",
		"2026-11-04",
		"2026-11-04T12:00Z",
		"2026-11-04T12:00:00",
		"2026-13-04T12:00:00Z",
		"2026-02-29T12:00:00Z",
		"2100-02-29T00:00:00Z",
		"2026-11-31T12:00:00Z",
		"2026-11-00T12:00:00Z",
		"2026-11-04T24:00:00Z",
		"2026-11-04T12:60:00Z",
		"2026-11-04T12:00:00.Z",
		"2026-11-04T12:00:00+1:00",
		"2026-11-04T12:00:00Zx",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00+01:00",
		"26-11-04T12:00:00Z",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		uint64_t ms = 0;

		ck_assert_msg(when_parse_rfc3339(span_from(good[i].text), &ms) == 0, "%s",
		              good[i].text);
		ck_assert_msg(ms == good[i].ms, "%s: %llu", good[i].text,
		              (unsigned long long)ms);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint64_t ms = 7;

		ck_assert_msg(when_parse_rfc3339(span_from(bad[i]), &ms) == ERR_MALFORMED,
		              "%s", bad[i]);
		ck_assert_uint_eq(ms, 7);
	}
}
END_TEST

START_TEST(when_reads_http_dates)
{
	static const char *const bad[] = {
		"",
		"Wed",
		"Wed, 04 Nov 2026 12:00:00",
		"Wed, 4 Nov 2026 12:00:00 GMT",
		"Wed, 04 nov 2026 12:00:00 GMT",
		"Wednesday, 04-Nov-26 12:00:00 GMT",
		"Wed, 31 Nov 2026 12:00:00 GMT",
	};
	uint64_t ms = 0;

	ck_assert_int_eq(when_parse_http(SPAN("Wed, 04 Nov 2026 12:00:00 GMT"), &ms), 0);
	ck_assert_uint_eq(ms, UINT64_C(1793793600000));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(when_parse_http(span_from(bad[i]), &ms) == ERR_MALFORMED,
		              "%s", bad[i]);
}
END_TEST

SUITE_MAIN("when", when_reads_rfc_3339, when_reads_http_dates)
