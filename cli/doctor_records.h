/* doctor_records.h - the records of lanes and families, and those that cannot be read.
 *
 * The functions refuse to touch a record of a format that they do not know, so one that
 * somebody wrote by hand stops whoever meets it: claims, admissions, the audit.  A record
 * that is missing stops nobody: it counts as zero and is written anew. */
#ifndef CLI_DOCTOR_RECORDS_H
#define CLI_DOCTOR_RECORDS_H

#include "cli/doctor.h"

MUST_USE int
doctor_records_look(struct doctor *doctor); /* says how many cannot be read */
MUST_USE int doctor_records_repair(struct doctor *doctor); /* deletes those */

#endif
