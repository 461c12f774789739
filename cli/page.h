/* page.h - what the scheduler's page says, for a terminal: the same figures and words,
 * from the same API (docs/openapi.json). */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "cli/cli.h"

/* What every verb that reads the page has, behind its struct cli. */
#define PAGE_OPTION(type)                                                                \
	{                                                                                \
		"url", OPTION_TEXT, offsetof(type, url), NULL, "URL",                    \
			"where the scheduler serves its pages; also WARMQ_URL; without " \
			"both http://127.0.0.1:9310"                                     \
	}

/* GET api/v1/<path>; `url` NULL as above.  CLI_OK and an answer that the caller releases,
 * or a code after it was said why. */
MUST_USE int page_get(const char *url, const char *path, json_t **ret_answer);

/* Appends text to a path, percent-encoded where it has to be. */
void page_escape(struct span text, char *ret_text, size_t size);

/* Members as long as the object lives, or "" and 0. */
const char *page_text(const json_t *object, const char *member);
uint64_t page_number(const json_t *object, const char *member);

/* "95.3 %", or "-" where nothing is known. */
const char *page_percent(const json_t *object, const char *member, char ret_text[16]);
const char *page_money(double dollars, char ret_text[32]);

/* The head line; false if this scheduler knows nothing more: another one rules. */
bool page_print_head(const json_t *overview);

/* Of it, what matters to one route: no figures of others. */
bool page_print_state(const json_t *overview, const char *route);

/* One line for each kind of block that jobs wait for. */
void page_print_reasons(const json_t *overview);

#endif
