#include "common/error.h"

#include <check.h>
#include <stdlib.h>

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

int
main(void)
{
	Suite *suite = suite_create("error");
	TCase *tcase = tcase_create("error");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, error_every_code_is_negative_and_has_a_text);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
