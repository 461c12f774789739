/* log.h - what a daemon tells its operator: one line per event, harmless to a terminal.
 *
 *   log_warning("connection lost", LOG_TEXT("address", url), LOG_NUMBER("retry_ms",
 * 500));
 *
 *   time=2026-11-29T20:41:18.123Z level=warning program=worker event="connection lost"
 *   address=unix:///run/redis.sock retry_ms=500                 (one line, on stderr)
 *
 * With `json` the same fields make one JSON object per line.  Every value may come from
 * outside: text is escaped.  An event is a short literal in plain words; the fields say
 * which job, family or address, and what happens next.
 *
 * A call site says at most LOG_BURST lines in LOG_WINDOW_MS; the next one after a silence
 * carries `suppressed=N`.  Errors about different jobs share their site's limit, so a log
 * cannot fill a disk.  Nor does one that nobody reads on stop the program: what a pipe or
 * a terminal does not take is counted there, too.  Safe from any thread. */
#ifndef COMMON_IO_LOG_H
#define COMMON_IO_LOG_H

#include "common/base.h"
#include "common/error.h"

#define LOG_BURST     20
#define LOG_WINDOW_MS 10000
#define LOG_LINE_MAX  4096 /* bytes; fields that do not fit are left out */

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_ERROR,
	LOG_LEVEL_COUNT,
};

struct log_options {
	const char *program; /* borrowed for the life of the process */
	enum log_level level;
	bool json;
	int fd;                   /* where lines go; 0 = stderr */
	uint64_t (*now_ms)(void); /* wall clock, for tests; NULL = the system's */
};

enum log_kind {
	LOG_KIND_TEXT,
	LOG_KIND_NUMBER,
	LOG_KIND_BOOL,
};

struct log_field {
	const char *key;
	enum log_kind kind;
	struct span text;
	int64_t number;
};

/* One per call site, zero at start; log.c owns the content. */
struct log_site {
	uint64_t window_starts_ms;
	uint32_t lines;
	uint32_t suppressed;
};

#define LOG_SPAN(name, value) \
	((struct log_field){ .key = (name), .kind = LOG_KIND_TEXT, .text = (value) })
#define LOG_TEXT(name, value) LOG_SPAN(name, span_from(value)) /* a C string or NULL */
#define LOG_NUMBER(name, value) \
	((struct log_field){    \
		.key = (name), .kind = LOG_KIND_NUMBER, .number = (int64_t)(value) })
#define LOG_BOOL(name, value) \
	((struct log_field){ .key = (name), .kind = LOG_KIND_BOOL, .number = (value) })
#define LOG_ERROR(code) LOG_TEXT("error", error_text(code)) /* a number of error.h */

/* Call once, before the first thread; without it: info and up, to stderr. */
void log_init(const struct log_options *options);

/* "debug", "info", "warning", "error". */
MUST_USE int log_level_parse(struct span text, enum log_level *ret_level);

bool log_wants(enum log_level level);

/* Used by the macros below.  `fields[0]` is a placeholder and is skipped. */
void log_write(enum log_level level, struct log_site *site, const char *event,
               const struct log_field *fields, size_t fields_count);

#define LOG_AT(level, event, ...)                                                \
	do {                                                                     \
		static struct log_site log_site_;                                \
		const struct log_field log_fields_[] = { { 0 }, ##__VA_ARGS__ }; \
		log_write(level, &log_site_, event, log_fields_,                 \
		          ARRAY_SIZE(log_fields_));                              \
	} while (0)

#define log_debug(event, ...)   LOG_AT(LOG_LEVEL_DEBUG, event, ##__VA_ARGS__)
#define log_info(event, ...)    LOG_AT(LOG_LEVEL_INFO, event, ##__VA_ARGS__)
#define log_warning(event, ...) LOG_AT(LOG_LEVEL_WARNING, event, ##__VA_ARGS__)
#define log_error(event, ...)   LOG_AT(LOG_LEVEL_ERROR, event, ##__VA_ARGS__)

#endif
