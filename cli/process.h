/* process.h - child programs of `warmq demo` and `warmq dev`: started, watched, ended.
 *
 * A child writes to one log file, gets SIGKILL when its parent dies, and belongs to its
 * parent's session, so that Ctrl-C reaches the parent alone, which ends the children in
 * the reverse of the order it started them in.  Nothing is left behind: the directory of
 * the run is removed unless something failed. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include "common/base.h"
#include "common/error.h"

#include <sys/types.h>

#define PROCESS_ARGS_MAX 32

struct process {
	pid_t pid; /* 0 = not running */
	char name[32];
	char log[256];
};

/* Starts `argv[0]` (a path, or a name looked up in PATH).  ERR_IO if it cannot be
 * executed; errno then has the cause. */
MUST_USE int process_start(struct process *process, const char *name, const char *log,
                           const char *const argv[]);

/* Whether it still runs.  After its end `ret_status` is its exit code, or 128 + signal.
 */
bool process_is_running(struct process *process, int *ret_status);

/* SIGTERM, then SIGKILL after `grace_ms`.  Harmless on a process that has ended. */
void process_stop(struct process *process, uint64_t grace_ms);

/* Prints the last lines of its log on stderr, for the person who asks why. */
void process_print_log_tail(const struct process *process);

/* Writes the path of one of our own programs: beside this executable, in the build
 * tree's folder of that program, or the bare name for PATH. */
void process_find_program(const char *name, const char *build_folder, char *ret_path,
                          size_t size);

/* Makes a private directory under TMPDIR; removes one with all that is in it. */
MUST_USE int process_make_directory(const char *stem, char *ret_path, size_t size);
void process_remove_directory(const char *path);

/* Sleeps for at most `ms`, less if a signal comes: the pause between two looks at a
 * condition in a loop that has a deadline. */
void process_pause(uint64_t ms);

#endif
