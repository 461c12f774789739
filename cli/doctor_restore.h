/* doctor_restore.h - jobs that live and stand nowhere: `warmq doctor --repair jobs`.
 *
 *   1  what stands in lists, `later` and `dead`   ──► a set of ids
 *   2  payloads and marks that are not in it      ──► asked for, some hundred at a time
 *   3  the function `restore` looks again, in one call, and gives each a place or an end
 *
 * The first two are pieces of a queue at work, so a job that moves may be missed by them;
 * that costs a look by the third, which misses nothing.  The set takes some hundred bytes
 * for each job that waits.  A list whose family has no record any more, and no lane that
 * knows it, is deleted first: nobody takes from it, and its jobs are placed anew. */
#ifndef CLI_DOCTOR_RESTORE_H
#define CLI_DOCTOR_RESTORE_H

#include "cli/doctor.h"

MUST_USE int doctor_restore(struct doctor *doctor);

#endif
