/* golden.h - stored answers: each file of a folder with that ending is a case.
 *
 *   int main(int argc, char **argv) { return golden_run(argc, argv, ".sse", check); }
 *
 * UPDATE=1 in the environment asks a check to store what it made. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include "common/base.h"

/* Whether a case, named without its ending, is as it was stored; says what is not. */
typedef bool golden_check_fn(const char *folder, const char *name);

/* Checks all of the folder that the only argument names; answers the exit status. */
int golden_run(int argc, char **argv, const char *ending, golden_check_fn *check);

/* The bytes of a file that must be there, with a NUL behind them. */
struct span golden_load(const char *path, char *room, size_t size);

void golden_save(const char *path, struct span bytes);
bool golden_updates(void);

#endif
