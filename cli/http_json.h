/* http_json.h - one blocking HTTP request with a JSON answer: for the simulated
 * provider's knobs and books, on loopback. */
#ifndef CLI_HTTP_JSON_H
#define CLI_HTTP_JSON_H

#include "cli/cli.h"
#include "common/error.h"

/* GET if `body` is NULL, else POST.  ERR_CONNECTION or ERR_TIMEOUT (10 s), ERR_IO for a
 * status that is not 2xx, ERR_MALFORMED if the answer is no JSON; `ret_cause` then says
 * it for people, in static memory.  The caller releases the answer. */
MUST_USE int http_json(const char *url, const json_t *body, json_t **ret_answer,
                       const char **ret_cause);

#endif
