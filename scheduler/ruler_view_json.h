/* ruler_view_json.h - one family as JSON, and the words it takes.
 *
 * Members put a comma before themselves where one is needed: they look at the last byte
 * that was written. */
#ifndef SCHEDULER_RULER_VIEW_JSON_H
#define SCHEDULER_RULER_VIEW_JSON_H

#include "common/buffer.h"
#include "scheduler/ruler_state.h"

void ruler_view_json_open(struct buffer *out, const char *name, char bracket);
void ruler_view_json_close(struct buffer *out, char bracket);
void ruler_view_json_number(struct buffer *out, const char *name, uint64_t value);
void ruler_view_json_text(struct buffer *out, const char *name, struct span value);
void ruler_view_json_bool(struct buffer *out, const char *name, bool value);

void ruler_view_json_id(struct buffer *out, const char *name, struct id128 id);
void ruler_view_json_raw(struct buffer *out, const char *name, struct span json);

/* part / whole, cut to thousandths; null if there is no whole. */
void ruler_view_json_ratio(struct buffer *out, const char *name, uint64_t part,
                           uint64_t whole);

/* jobs, hits and tokens, with their two ratios. */
void ruler_view_json_sum(struct buffer *out, const struct ruler_usage_sum *sum);

/* What is known better than the core's estimates: it counts waiting and running jobs
 * together once a family may start. */
struct ruler_view_use {
	uint32_t running;
};

/* A family as members of an object that is open, and as one. */
void ruler_view_json_members(const struct ruler *ruler, uint32_t place,
                             const struct ruler_view_use *use, struct buffer *out);
/* Of that, what fits into one cell of a table: id, account, state, jobs, tokens. */
void ruler_view_json_brief(const struct ruler *ruler, uint32_t place,
                           const struct ruler_view_use *use, struct buffer *out);

/* What stands between a family and its next start, with the number that binds and what to
 * do: members of an object that is open. */
void ruler_view_json_reason(const struct ruler *ruler, uint32_t place,
                            struct buffer *out);
void ruler_view_json_family(const struct ruler *ruler, uint32_t place,
                            struct buffer *out);

#endif
