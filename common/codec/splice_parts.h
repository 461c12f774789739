/* splice_parts.h - what rendering a job and rendering a warm-up have in common.
 *
 *   splice_render (splice.c)     segments + own part + tail
 *   splice_call (splice_call.c)  segments + as little as makes them a request
 *        └─────── both: splice_parts_put ───────┘
 *
 * That the segments of both are written here, from the same px values and the same bits,
 * is what makes a warm-up warm: the provider compares bytes. */
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
