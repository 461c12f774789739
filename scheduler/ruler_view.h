/* ruler_view.h - what a ruler can say about itself: for pages, tools and monitoring.
 *
 * The status is one JSON object, the same that the ruler writes to ns:status every few
 * seconds, so that tools need Redis alone:
 *
 *   {"now_ms":…,"owner":…,"phase":"ruling","admits":true,"hold":true,"pressure":false,
 *    "evicts":false,"inbox_lag_ms":0,"counts":{…},"upstreams":["main"],"families":[…],"budgets":[…],
 *    "pools":[…]}
 *
 * docs/STATUS.md names every field.  Families with most work come first. */
#ifndef SCHEDULER_RULER_VIEW_H
#define SCHEDULER_RULER_VIEW_H

#include "common/buffer.h"
#include "scheduler/ruler.h"

struct ruler_family;
struct core_family_view;

struct ruler_health ruler_view_health(const struct ruler *ruler, uint64_t now_ms);

/* Members of an object that is open: now_ms to counts; budgets and pools. */
void ruler_view_head(const struct ruler *ruler, uint64_t now_ms, struct buffer *out);
void ruler_view_names(const struct ruler *ruler, uint64_t now_ms, struct buffer *out);

/* Also takes the counts of ruler_view_health anew.  `busy_only`: families with work. */
void ruler_view_status(struct ruler *ruler, uint64_t now_ms, uint32_t families_max,
                       bool busy_only, struct buffer *out);

/* One family as an object; ERR_NOT_FOUND. */
MUST_USE int ruler_view_family(const struct ruler *ruler, struct id128 family,
                               struct buffer *out);

/* What the core says of it; but nobody can send the jobs of an upstream that has left the
 * configuration, of which the core knows nothing: they wait for a worker. */
MUST_USE int ruler_view_core(const struct ruler *ruler, const struct ruler_family *family,
                             struct core_family_view *ret_view);

/* The name of that upstream, or an empty one. */
struct span ruler_view_missing(const struct ruler *ruler,
                               const struct ruler_family *family);

#endif
