/* splice_parts.h - what rendering a job and rendering a warm-up have in common. */
#ifndef COMMON_CODEC_SPLICE_PARTS_H
#define COMMON_CODEC_SPLICE_PARTS_H

#include "common/codec/splice.h"

/* True iff the px values are a chain of the request's dialect, root first. */
bool splice_parts_fit(const struct splice_request *request);

/* Appends the segments: with the user's own markers where `own` has them, and ours at
 * the nodes of report->plan.insert. */
void splice_parts_put(const struct splice_request *request, const struct part_own *own,
                      struct buffer *out, struct splice_report *report);

#endif
