/* dashboard_files.h - the files of the page, embedded by embed.py when WarmQ is built:
 * all that it needs at once is one of them. */
#ifndef SCHEDULER_DASHBOARD_DASHBOARD_FILES_H
#define SCHEDULER_DASHBOARD_DASHBOARD_FILES_H

#include "common/base.h"

struct dashboard_file {
	const char *name; /* "index.html" */
	const char *type; /* of its content */
	struct span bytes;
};

extern const struct dashboard_file dashboard_files[];
extern const size_t dashboard_files_count;

/* Of index.html: where the first figures go, and what may run in it. */
extern const size_t dashboard_first_at;
extern const char dashboard_policy[];

#endif
