#include "common/options.h"

#include <check.h>
#include <stdlib.h>

struct args {
	uint64_t slots;
	uint64_t wait_ms;
	uint64_t size;
	const char *name;
	bool json;
};

static const struct option_spec specs[] = {
	{ "slots", OPTION_UNSIGNED, offsetof(struct args, slots), "200", "N", "slots",
	  .min = 1, .max = 500 },
	{ "wait", OPTION_DURATION, offsetof(struct args, wait_ms), "30s", "TIME",
	  "wait" },
	{ "size", OPTION_SIZE, offsetof(struct args, size), NULL, "SIZE", "size" },
	{ "name", OPTION_TEXT, offsetof(struct args, name), NULL, "NAME", "name" },
	{ "json", OPTION_FLAG, offsetof(struct args, json), NULL, NULL, "print JSON" },
};
static const struct options_table table = { specs, ARRAY_SIZE(specs) };

static int
parse(char **argv, struct args *args, int *positional, struct options_error *error)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_parse(table, argc, argv, args, positional, error);
}

START_TEST(options_defaults_come_from_the_table)
{
	char *argv[] = { "x", NULL };
	struct options_error error;
	struct args args;
	int positional;

	ck_assert_int_eq(parse(argv, &args, &positional, &error), 0);
	ck_assert_uint_eq(args.slots, 200);
	ck_assert_uint_eq(args.wait_ms, 30000);
	ck_assert_uint_eq(args.size, 0);
	ck_assert_ptr_null(args.name);
	ck_assert(!args.json);
	ck_assert_int_eq(positional, 0);
}
END_TEST

START_TEST(options_and_positional_words_may_mix)
{
	char *argv[] = { "x",  "a",      "--slots=7", "b",   "--wait",
		         "5m", "--json", "--",        "--c", NULL };
	struct options_error error;
	struct args args;
	int positional;

	ck_assert_int_eq(parse(argv, &args, &positional, &error), 0);
	ck_assert_uint_eq(args.slots, 7);
	ck_assert_uint_eq(args.wait_ms, 300000);
	ck_assert(args.json);
	ck_assert_int_eq(positional, 3);
	ck_assert_str_eq(argv[1], "a");
	ck_assert_str_eq(argv[2], "b");
	ck_assert_str_eq(argv[3], "--c");
}
END_TEST

static const struct {
	char *words[4];
	int err;
	const char *text;
} mistakes[] = {
	{ { "x", "--slot", "3" },
	  ERR_UNKNOWN_KEY,
	  "There is no option --slot. Did you mean --slots?" },
	{ { "x", "--zebra" },
	  ERR_UNKNOWN_KEY,
	  "There is no option --zebra. See --help." },
	{ { "x", "--slots", "0" },
	  ERR_LIMIT,
	  "--slots takes a whole number from 1 to 500, not \"0\"." },
	{ { "x", "--slots", "501" },
	  ERR_LIMIT,
	  "--slots takes a whole number from 1 to 500, not \"501\"." },
	{ { "x", "--slots", "many" },
	  ERR_MALFORMED,
	  "--slots takes a whole number, not \"many\"." },
	{ { "x", "--wait", "30" },
	  ERR_MALFORMED,
	  "--wait takes a duration such as 250ms, 30s or 5m, not \"30\"." },
	{ { "x", "--name" }, ERR_MALFORMED, "--name needs a value: --name NAME." },
	{ { "x", "--json=yes" }, ERR_MALFORMED, "--json takes no value." },
	{ { "x", "-j" },
	  ERR_UNKNOWN_KEY,
	  "There is no option -j: options begin with two dashes. A word that begins with "
	  "one "
	  "goes behind --." },
	{ { "x", "--size", "8" },
	  ERR_MALFORMED,
	  "--size takes a size such as 64k or 8m, not \"8\"." },
};

START_TEST(options_mistakes_say_what_to_do)
{
	struct options_error error;
	struct args args;
	char *argv[5] = { 0 };
	int positional;

	memcpy(argv, mistakes[_i].words, sizeof mistakes[_i].words);
	ck_assert_int_eq(parse(argv, &args, &positional, &error), mistakes[_i].err);
	ck_assert_str_eq(error.text, mistakes[_i].text);
}
END_TEST

START_TEST(options_short_help_and_a_single_dash)
{
	static const struct option_spec own[] = {
		{ "help", OPTION_FLAG, 0, NULL, NULL, "show this page" },
	};
	char *argv[] = { "x", "-", "-h", "--", "-h", NULL };
	struct options_error error;
	bool help = false;
	int positional;

	ck_assert_int_eq(options_parse((struct options_table){ own, 1 }, 5, argv, &help,
	                               &positional, &error),
	                 0);
	ck_assert(help);
	ck_assert_int_eq(positional, 2);
	ck_assert_str_eq(argv[1], "-");
	ck_assert_str_eq(argv[2], "-h");
}
END_TEST

START_TEST(options_help_has_a_line_for_each_with_its_default)
{
	struct buffer out = BUFFER_INIT(4096);

	options_help(table, &out);
	ck_assert_ptr_nonnull(strstr(buffer_text(&out), "--slots N"));
	ck_assert_ptr_nonnull(strstr(buffer_text(&out), "(default 30s)"));
	buffer_fini(&out);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("options");
	TCase *tcase = tcase_create("options");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, options_defaults_come_from_the_table);
	tcase_add_test(tcase, options_and_positional_words_may_mix);
	tcase_add_loop_test(tcase, options_mistakes_say_what_to_do, 0,
	                    ARRAY_SIZE(mistakes));
	tcase_add_test(tcase, options_short_help_and_a_single_dash);
	tcase_add_test(tcase, options_help_has_a_line_for_each_with_its_default);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
