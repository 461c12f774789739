/* record_file.h - a record goes to disk: when somebody asks, and when the program breaks.
 *
 * The file is written beside its place and then moved there, so that a reader never finds
 * half of it. */
#ifndef SCHEDULER_RECORD_FILE_H
#define SCHEDULER_RECORD_FILE_H

#include "scheduler/record.h"

enum {
	RECORD_FILE_PATH_SIZE = 512
};

/* Writes it; only calls that a signal handler may make.  ERR_LIMIT: the path is too long;
 * ERR_IO: errno says why. */
MUST_USE int record_file_write(struct record *record, const char *path);

/* From now on a program that aborts (a broken invariant) or touches memory that is not
 * its own writes the record first.  One per process; both are borrowed. */
void record_file_on_failure(struct record *record, const char *path);

#endif
