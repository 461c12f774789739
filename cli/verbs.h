/* verbs.h - every verb of `warmq`, in the order of the reference page. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "cli/cli.h"

/* clang-format off */
#define VERB_LIST(X) \
	X(dev) X(demo) \
	X(enqueue) X(wait) \
	X(job_ls) X(job_show) X(job_cancel) X(job_retry) X(job_drop) \
	X(family_ls) X(family_show) X(family_pause) X(family_resume) X(family_warm) \
	X(prefix_put) X(prefix_ls) X(prefix_show) \
	X(worker_ls) X(worker_quiet) X(worker_resume) X(worker_stop) \
	X(budget_ls) X(budget_unpark) \
	X(why) X(top) X(explain) X(doctor) \
	X(hold_on) X(hold_off) X(hold_status) \
	X(completion) X(version)
/* clang-format on */

#define X(name) extern const struct verb verb_##name;
VERB_LIST(X)
#undef X

#endif
