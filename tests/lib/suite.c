#include "tests/lib/suite.h"

#include <signal.h>
#include <stdlib.h>

#define TIMEOUT_S 300 /* for one case, on a machine that does other things, too */

int
suite_run(const char *name, struct suite_list tests, struct suite_list deaths,
          suite_fn *before, suite_fn *after)
{
	Suite *suite = suite_create(name);
	TCase *living = tcase_create("promises");
	TCase *dying = tcase_create("deaths");
	SRunner *runner;
	int failed;

	tcase_set_timeout(living, TIMEOUT_S);
	tcase_set_timeout(dying, TIMEOUT_S);
	tcase_set_tags(dying, "death");
	tcase_add_checked_fixture(living, before, after);
	for (size_t i = 0; i < tests.count; i++)
		tcase_add_test(living, tests.tests[i]);
	for (size_t i = 0; i < deaths.count; i++)
		tcase_add_test_raise_signal(dying, deaths.tests[i], SIGABRT);

	suite_add_tcase(suite, living);
	suite_add_tcase(suite, dying);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
