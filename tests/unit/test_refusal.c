#include "tests/lib/suite.h"
#include "worker/model_name.h"
#include "worker/refusal.h"

#include <stdio.h>
#include <stdlib.h>

static struct refusal_list list;
static int acme, other;

START_TEST(refusal_is_remembered_per_upstream_and_model)
{
	ck_assert_uint_eq(refusal_of(&list, &acme, SPAN("m")), 0);
	refusal_add(&list, &acme, SPAN("m"), REFUSAL_MARKERS);
	refusal_add(&list, &acme, SPAN("m"), REFUSAL_STREAM);
	ck_assert_uint_eq(refusal_of(&list, &acme, SPAN("m")),
	                  REFUSAL_MARKERS | REFUSAL_STREAM);
	ck_assert_uint_eq(refusal_of(&list, &acme, SPAN("n")), 0);
	ck_assert_uint_eq(refusal_of(&list, &other, SPAN("m")), 0);
}
END_TEST

START_TEST(refusal_list_forgets_the_oldest_when_it_is_full)
{
	char name[16];

	for (int i = 0; i <= REFUSAL_MAX; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		refusal_add(&list, &acme, span_from(name), REFUSAL_USAGE);
	}
	ck_assert_uint_eq(refusal_of(&list, &acme, SPAN("m0")), 0);
	ck_assert_uint_eq(refusal_of(&list, &acme, SPAN("m1")), REFUSAL_USAGE);
	ck_assert_uint_eq(refusal_of(&list, &acme, span_from(name)), REFUSAL_USAGE);
}
END_TEST

START_TEST(refusal_takes_names_of_any_length)
{
	char name[300];

	memset(name, 'm', sizeof name);
	refusal_add(&list, &acme, (struct span){ name, sizeof name }, REFUSAL_MARKERS);
	ck_assert_uint_eq(refusal_of(&list, &acme, (struct span){ name, sizeof name }),
	                  REFUSAL_MARKERS);
	refusal_add(&list, &acme, (struct span){ 0 }, REFUSAL_USAGE);
	ck_assert_uint_eq(refusal_of(&list, &acme, (struct span){ 0 }), REFUSAL_USAGE);
}
END_TEST

START_TEST(model_name_is_found_in_whole_bodies_and_in_pieces)
{
	static const struct {
		const char *json;
		const char *name; /* NULL: none */
	} rows[] = {
		{ "{\"model\":\"m\",\"x\":1}", "m" },
		{ "{\"model\":\"m\",\"tools\":[]", "m" },
		{ ",\"max_tokens\":1,\"model\":\"m\\/n\"}", "m/n" },
		{ "{\"x\":{\"model\":\"m\"}}", NULL },
		{ "{\"model\":7}", NULL },
		{ "{\"model\"", NULL },
		{ "", NULL },
		{ "no json", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *name = model_name_dup(span_from(rows[i].json));

		if (rows[i].name)
			ck_assert_str_eq(name, rows[i].name);
		else
			ck_assert_ptr_null(name);
		free(name);
	}
}
END_TEST

SUITE_MAIN("refusal", refusal_is_remembered_per_upstream_and_model,
           refusal_list_forgets_the_oldest_when_it_is_full,
           refusal_takes_names_of_any_length,
           model_name_is_found_in_whole_bodies_and_in_pieces)
