/* dashboard_files.h - the files of the page, embedded by embed.py when WarmQ is built. */
#ifndef SCHEDULER_DASHBOARD_DASHBOARD_FILES_H
#define SCHEDULER_DASHBOARD_DASHBOARD_FILES_H

#include "common/base.h"

struct dashboard_file {
	const char *name; /* "app.js" */
	const char *type; /* of its content */
	struct span bytes;
};

extern const struct dashboard_file dashboard_files[];
extern const size_t dashboard_files_count;

#endif
