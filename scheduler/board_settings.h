/* board_settings.h - which parts of the configuration are others than before.
 *
 *   upstreams:                "pools=5ad0… upstreams.main=91c4… …"
 *     main:          ──►        stored in ns:recent; the next scheduler reads it back
 *       ttl: 1h                                │
 *   pools: …                                   ▼
 *                             "the configuration has changed: upstreams.main"
 *
 * A part is a top key, or one upstream; of each a hash is kept, of what the file means
 * and not of how it is written.  Nothing of its text is stored. */
#ifndef SCHEDULER_BOARD_SETTINGS_H
#define SCHEDULER_BOARD_SETTINGS_H

#include "common/buffer.h"
#include "common/error.h"
#include "common/io/config.h"

/* Appends a word for each part: its name, `=`, sixteen hex digits. */
MUST_USE int board_settings_print(const struct config *config, struct buffer *out);

/* Appends the names of parts that differ, `, ` between them: nothing if none does. */
void board_settings_differ(struct span before, struct span now, struct buffer *out);

#endif
