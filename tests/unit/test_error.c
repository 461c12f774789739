#include "common/error.h"
#include "tests/lib/suite.h"

START_TEST(error_every_code_is_negative_and_has_a_text)
{
	for (int error = ERR_FIRST + 1; error < ERR_END; error++) {
		ck_assert_int_lt(error, 0);
		ck_assert_str_ne(error_text(error), "unknown error");
	}
	ck_assert_str_eq(error_text(12345), "unknown error");
	ck_assert_str_eq(error_text(ERR_NONE), "no error");
}
END_TEST

SUITE_MAIN("error", error_every_code_is_negative_and_has_a_text)
