/* ruler_note.h - what a ruler tells people, as sentences.
 *
 *   format, arguments ──► text ──► config.say ──► log, page
 *
 * A note that nobody hears (config.say is NULL) costs nothing.  The text is cut to its
 * buffer and lives until config.say returns; log and page escape what comes from outside.
 */
#ifndef SCHEDULER_RULER_NOTE_H
#define SCHEDULER_RULER_NOTE_H

#include "scheduler/ruler_state.h"

void ruler_note(struct ruler *ruler, enum ruler_level level, const char *format, ...)
	PRINTF(3, 4);
void ruler_note_job(struct ruler *ruler, enum ruler_level level, struct span job,
                    struct span route, const char *format, ...) PRINTF(5, 6);

/* `about` names what it is about; its level and text are not looked at. */
void ruler_note_about(struct ruler *ruler, enum ruler_level level,
                      const struct ruler_note *about, const char *format, ...)
	PRINTF(4, 5);

/* A note of the core, with names in place of its ids. */
void ruler_note_command(struct ruler *ruler, uint64_t now_ms,
                        const struct command_note *note);

#endif
