/* ruler_inbox.h - reads of the inbox: pages of entries, one being admitted, one behind.
 *
 *   jobs stream:  ... admitted │ page 0 (admitting) │ page 1 (read ahead) │ not read ...
 *                       cursor ┘              read_to ┘
 *
 * How many entries a read asks for follows the bytes that the last one brought: reads of
 * about config.read_size, whether a body has 200 bytes or 8 MB, and where 8 MB follow 200
 * bytes at most the one read of 64 entries that finds them. */
#ifndef SCHEDULER_RULER_INBOX_H
#define SCHEDULER_RULER_INBOX_H

#include "scheduler/ruler_state.h"

void ruler_inbox_clear(struct ruler *ruler); /* forgets all pages */
void ruler_inbox_close(struct ruler *ruler);

/* Begins to read behind the stored cursor. */
void ruler_inbox_start(struct ruler *ruler, uint64_t now_ms);
void ruler_inbox_step(struct ruler *ruler, uint64_t now_ms, struct call_list *out);
uint64_t ruler_inbox_deadline(const struct ruler *ruler, uint64_t now_ms);

/* The page being admitted, or NULL; and done with it. */
struct ruler_page *ruler_inbox_page(struct ruler *ruler);
void ruler_inbox_next_page(struct ruler *ruler);

/* Age of the oldest entry that was read and not admitted. */
uint64_t ruler_inbox_lag_ms(const struct ruler *ruler, uint64_t now_ms);

void ruler_inbox_on_read(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_inbox_on_rest(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                         const struct reply *reply);
void ruler_inbox_lost_read(struct ruler *ruler, uint64_t now_ms, uint32_t index);

#endif
