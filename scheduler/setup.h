/* setup.h - from warmq.yaml to what a ruler is told.
 *
 * The ruler knows no files; it gets plain arrays that point into the configuration. */
#ifndef SCHEDULER_SETUP_H
#define SCHEDULER_SETUP_H

#include "common/io/config.h"
#include "scheduler/ruler.h"

struct setup {
	struct ruler_config ruler;
	struct ruler_upstream upstreams[CONFIG_UPSTREAMS_MAX];
	struct ruler_model *models;
	struct ruler_price *prices;
	struct ruler_pool pools[CONFIG_POOLS_MAX];
};

/* `config` was finished and outlives the setup.  ERR_MEMORY. */
MUST_USE int setup_open(struct setup *setup, const struct config *config);
void setup_close(struct setup *setup);

#endif
