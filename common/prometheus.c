#include "common/prometheus.h"

void
prometheus_head(struct buffer *out, const char *name, const char *type, const char *help)
{
	(void)buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
	                           type);
}

static void
put_value(struct buffer *out, struct span value)
{
	for (size_t i = 0; i < value.len; i++) {
		char byte = value.data[i];

		if (byte == '\n') {
			(void)buffer_append(out, SPAN("\\n"));
			continue;
		}
		if (byte == '"' || byte == '\\')
			(void)buffer_append_byte(out, '\\');
		(void)buffer_append_byte(out, byte);
	}
}

static void
put_label(struct buffer *out, bool first, const char *name, struct span value)
{
	(void)buffer_append_byte(out, first ? '{' : ',');
	(void)buffer_append_text(out, name);
	(void)buffer_append(out, SPAN("=\""));
	put_value(out, value);
	(void)buffer_append_byte(out, '"');
}

/* `bound`: the label `le` of a bucket, or empty. */
static void
put_name(struct buffer *out, const char *name, const char *suffix,
         const struct prometheus_labels *labels, struct span bound)
{
	bool first = true;

	(void)buffer_append_text(out, name);
	(void)buffer_append_text(out, suffix);
	for (size_t i = 0; labels && labels->list[i].name; i++) {
		put_label(out, first, labels->list[i].name, labels->list[i].value);
		first = false;
	}
	if (bound.len > 0) {
		put_label(out, first, "le", bound);
		first = false;
	}
	(void)buffer_append_text(out, first ? " " : "} ");
}

static void
put_number(struct buffer *out, uint64_t value)
{
	(void)buffer_append_unsigned(out, value);
	(void)buffer_append_byte(out, '\n');
}

static void
put_seconds(struct buffer *out, int64_t ms)
{
	uint64_t positive = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;

	if (ms < 0)
		(void)buffer_append_byte(out, '-');
	(void)buffer_append_unsigned(out, positive / 1000);
	if (positive % 1000 > 0)
		(void)buffer_append_format(out, ".%03u", (unsigned)(positive % 1000));
	(void)buffer_append_byte(out, '\n');
}

void
prometheus_sample(struct buffer *out, const char *name,
                  const struct prometheus_labels *labels, uint64_t value)
{
	put_name(out, name, "", labels, (struct span){ 0 });
	put_number(out, value);
}

void
prometheus_seconds(struct buffer *out, const char *name,
                   const struct prometheus_labels *labels, int64_t ms)
{
	put_name(out, name, "", labels, (struct span){ 0 });
	put_seconds(out, ms);
}

void
prometheus_nano(struct buffer *out, const char *name,
                const struct prometheus_labels *labels, uint64_t nano)
{
	put_name(out, name, "", labels, (struct span){ 0 });
	(void)buffer_append_format(out, "%llu.%09llu\n",
	                           (unsigned long long)(nano / 1000000000),
	                           (unsigned long long)(nano % 1000000000));
}

void
prometheus_histogram(struct buffer *out, const char *name,
                     const struct prometheus_labels *labels,
                     const struct histogram *histogram)
{
	uint64_t below = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += histogram->counts[i];
		put_name(out, name, "_bucket", labels,
		         span_from(histogram_bounds_text[i]));
		put_number(out, below);
	}
	below += histogram->counts[HISTOGRAM_BUCKETS];
	put_name(out, name, "_bucket", labels, SPAN("+Inf"));
	put_number(out, below);
	put_name(out, name, "_sum", labels, (struct span){ 0 });
	put_seconds(out, (int64_t)histogram->sum_ms);
	put_name(out, name, "_count", labels, (struct span){ 0 });
	put_number(out, below);
}

void
prometheus_single(struct buffer *out, const char *name, const char *type,
                  const char *help, uint64_t value)
{
	prometheus_head(out, name, type, help);
	prometheus_sample(out, name, NULL, value);
}
