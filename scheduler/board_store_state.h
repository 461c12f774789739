/* board_store_state.h - what the two halves of board_store share.
 *
 * The board owns it.  What was stored last is remembered where that is less than a flag
 * at everything that changes. */
#ifndef SCHEDULER_BOARD_STORE_STATE_H
#define SCHEDULER_BOARD_STORE_STATE_H

#include "scheduler/board_past.h"
#include "scheduler/board_store.h"

struct board_store {
	struct buffer text;           /* of the value that was printed last */
	struct ruler_counts counts;   /* as stored, likewise all below */
	struct ruler_usage_sum *sums; /* by budget */
	uint64_t writers;
	struct buffer settings; /* board_settings.h, of this process */
	bool settings_stored, settings_told;
};

/* Reads everything back; what is in memory of it goes, but for newer notes. */
void board_store_load(void *data, uint64_t now_ms, const struct reply *reply);

#endif
