/* burst.h - the paper's numbers, in virtual time: 200 jobs share one prefix at once.
 *
 *   warmq-sim burst [--jobs N] [--slots N] [--job-ms N] [--seeds N] [--naive]
 *                   [--lag MS | --lag-uniform MS] [--waves N] [--cache-off]
 *                   [--usage-missing] [--limits] [--single] [--shape NAME] [--trace]
 *   warmq-sim numbers [--seeds N]     every row that is promised, checked
 *
 * The real scheduler, worker agent and functions against the provider's models; base
 * latency 0.1 s +-20 %, 10,000 tokens of prefill a second, a job's own time counted from
 * its first byte.  The lower bound is one cold prefill, the lag, and one warm wave.
 * With several waves each has a prefix of its own, and the last one is measured: by then
 * a constant lag has been learned.
 *
 *   shape  plain     a string for a system prompt, no marker, nothing declared
 *          spelled   the same prefix, serialised differently by each job
 *          document  one message: a shared document, then a question
 *          choice    50 values of tool_choice over one system prompt */
#ifndef TESTS_SIM_BURST_H
#define TESTS_SIM_BURST_H

#include "common/base.h"

/* Both take the words behind the verb and answer the exit status. */
int burst_main(int argc, char **argv);
int burst_numbers(int argc, char **argv);

#endif
