/* progress.h - one line on a terminal that says how far a long wait is.
 *
 *   ████████████░░░░░░░░  124/200 done  1 failed  3.1 s
 *
 * Drawn on stderr, only if that is a terminal and not with --json, at most ten times a
 * second.  Nothing is drawn elsewhere, so logs and pipes stay clean. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "common/base.h"

struct progress {
	const char *label;
	uint64_t total;
	uint64_t started_ms;
	uint64_t drawn_ms;
	bool visible;
};

void progress_begin(struct progress *progress, const char *label, uint64_t total,
                    bool quiet);
void progress_draw(struct progress *progress, uint64_t done, uint64_t failed);

/* Wipes the line, so that the answer stands alone. */
void progress_end(struct progress *progress);

#endif
