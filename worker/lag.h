/* lag.h - who keeps the loop busy.
 *
 *   lag_mark(&lag, "answers of Redis");    what follows is that, until the next mark
 *
 * One thread does everything, so whatever takes long delays the beat of all leases.  The
 * longest stretch is a metric; one above LAG_ALARM_MS is logged with its name. */
#ifndef WORKER_LAG_H
#define WORKER_LAG_H

#include "common/base.h"

#define LAG_ALARM_MS 5000

struct lag {
	const char *what; /* NULL: the loop waits */
	uint64_t since_ns;
	uint64_t worst_ns;
	const char *worst_what;
	uint64_t busy_ns; /* in all */
};

/* What follows is `what`, a string that lives; NULL: the loop waits. */
void lag_mark(struct lag *lag, const char *what);

#endif
