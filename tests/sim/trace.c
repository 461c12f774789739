#include "tests/sim/trace.h"

#include <inttypes.h>
#include <stdarg.h>

#define LINE_SIZE 1024 /* what is longer is cut */

void
trace_init(struct trace *trace, const struct agenda *agenda, FILE *out)
{
	*trace = (struct trace){ .agenda = agenda, .out = out };
	id_hash_init(&trace->hash, 0);
}

void
trace_line(struct trace *trace, const char *format, ...)
{
	char line[LINE_SIZE];
	uint64_t now_us = trace->agenda->now_us;
	int len = snprintf(line, sizeof line, "%" PRIu64 ".%06" PRIu64 " ",
	                   now_us / 1000000, now_us % 1000000);
	va_list args;

	VERIFY(len > 0);
	va_start(args, format);
	(void)vsnprintf(line + len, sizeof line - (size_t)len, format, args);
	va_end(args);
	id_hash_field(&trace->hash, span_from(line));
	trace->lines++;
	if (trace->out)
		fprintf(trace->out, "%s\n", line);
}

void
trace_detail(struct trace *trace, struct span text)
{
	if (trace->out)
		fprintf(trace->out, "          %.*s\n", (int)text.len, text.data);
}

struct id128
trace_hash(const struct trace *trace)
{
	return id_hash_final(&trace->hash);
}
