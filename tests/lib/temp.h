/* temp.h - a directory of one's own for each test process.
 *
 * Made under $TMPDIR or /tmp on first use, with short names so that a Unix socket's path
 * fits; removed with all its content when the process that made it exits. */
#ifndef TESTS_LIB_TEMP_H
#define TESTS_LIB_TEMP_H

#include "common/base.h"

#define TEMP_PATH_SIZE 100

/* Never fails: a test without a directory ends the process. */
const char *temp_dir(void);

/* temp_dir() / name. */
void temp_path(const char *name, char ret_path[TEMP_PATH_SIZE]);

#endif
