/* prometheus.h - the text format of Prometheus, as /metrics answers it.
 *
 *   prometheus_head(out, "warmq_backlog", "gauge", "Jobs that wait.");
 *   prometheus_sample(out, "warmq_backlog", PROMETHEUS_LABELS({ "pool", name }), 17);
 *
 *   # HELP warmq_backlog Jobs that wait.
 *   # TYPE warmq_backlog gauge
 *   warmq_backlog{pool="default"} 17
 *
 * Values of labels may be any text: they are escaped.  Errors stay in the buffer. */
#ifndef COMMON_PROMETHEUS_H
#define COMMON_PROMETHEUS_H

#include "common/buffer.h"
#include "common/histogram.h"

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PROMETHEUS_LABELS_MAX   6

struct prometheus_label {
	const char *name; /* NULL ends the list */
	struct span value;
};

struct prometheus_labels {
	struct prometheus_label list[PROMETHEUS_LABELS_MAX + 1];
};

#define PROMETHEUS_LABELS(...) (&(const struct prometheus_labels){ { __VA_ARGS__ } })

void prometheus_head(struct buffer *out, const char *name, const char *type,
                     const char *help);

/* `labels` may be NULL. */
void prometheus_sample(struct buffer *out, const char *name,
                       const struct prometheus_labels *labels, uint64_t value);
void prometheus_seconds(struct buffer *out, const char *name,
                        const struct prometheus_labels *labels, int64_t ms);

/* In units of 10^-9: dollars of nanodollars. */
void prometheus_nano(struct buffer *out, const char *name,
                     const struct prometheus_labels *labels, uint64_t nano);

/* Its buckets, sum and count; seconds. */
void prometheus_histogram(struct buffer *out, const char *name,
                          const struct prometheus_labels *labels,
                          const struct histogram *histogram);

/* Head and sample of a metric without labels. */
void prometheus_single(struct buffer *out, const char *name, const char *type,
                       const char *help, uint64_t value);

#endif
