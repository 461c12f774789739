/* wait.h - waiting for results by id.
 *
 * Each look asks for all that have not ended, 500 ids in one go, 20 ms apart at first and
 * 250 ms while nothing happens. */
#ifndef CLI_WAIT_H
#define CLI_WAIT_H

#include "cli/store.h"

/* Waits until each id of the array has an end, prints the results in the order of the
 * array (with --json one object a line), and answers CLI_OK if all are done, CLI_FAILED
 * if one is not, CLI_TIMEOUT if the time ended first. */
MUST_USE int wait_for(struct store *store, const struct cli *cli, const json_t *ids,
                      uint64_t timeout_ms);

#endif
