/* ruler_tally.h - feeds the tally with what the ruler hears. */
#ifndef SCHEDULER_RULER_TALLY_H
#define SCHEDULER_RULER_TALLY_H

#include "common/codec/protocol_event.h"
#include "scheduler/ruler.h"

/* One line of the event stream, of the entry written at `at_ms`. */
void ruler_tally_line(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms,
                      const struct protocol_event *line);

/* The core moved a gate. */
void ruler_tally_note(struct ruler *ruler, uint64_t now_ms,
                      const struct command_note *note);

#endif
