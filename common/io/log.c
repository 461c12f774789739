#include "common/io/log.h"

#include "common/text.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define VALUE_SIZE  1024 /* of one escaped text */
#define PATIENCE_MS 100  /* with a reader who is slow */

/* A line under construction, written by one write() so that lines of several threads do
 * not mix.  A field that does not fit is left out whole: JSON stays valid. */
struct line {
	char text[LOG_LINE_MAX];
	size_t len;
	bool full;
};

static struct log_options settings = { .program = "warmq", .level = LOG_LEVEL_INFO };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const level_names[LOG_LEVEL_COUNT] = {
	[LOG_LEVEL_DEBUG] = "debug",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_ERROR] = "error",
};

void
log_init(const struct log_options *options)
{
	settings = *options;
	VERIFY(settings.program);
	VERIFY(settings.level < LOG_LEVEL_COUNT);
}

int
log_level_parse(struct span text, enum log_level *ret_level)
{
	for (enum log_level level = 0; level < LOG_LEVEL_COUNT; level++) {
		if (!span_equals(text, span_from(level_names[level])))
			continue;
		*ret_level = level;
		return 0;
	}
	return ERR_MALFORMED;
}

bool
log_wants(enum log_level level)
{
	return level >= settings.level;
}

static uint64_t
wall_ms(void)
{
	struct timespec now;

	if (settings.now_ms)
		return settings.now_ms();
	VERIFY(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
add(struct line *line, const char *text, size_t len)
{
	size_t room =
		sizeof line->text - 2 - line->len; /* two bytes for the end: "}\n" */

	line->full |= len > room;
	len = MIN(len, room);
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

static void
add_text(struct line *line, const char *text)
{
	add(line, text, strlen(text));
}

static void
add_number(struct line *line, int64_t number)
{
	char digits[TEXT_NUMBER_SIZE];

	if (number < 0)
		add_text(line, "-");
	(void)text_print_unsigned(number < 0 ? 0 - (uint64_t)number : (uint64_t)number,
	                          digits);
	add_text(line, digits);
}

static void
add_code(struct line *line, uint32_t code)
{
	char text[16];

	if (code < 0x10000)
		(void)snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
	else
		(void)snprintf(text, sizeof text, "\\u%04x\\u%04x",
		               (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
		               (unsigned)(0xdc00 + (code & 0x3ff)));
	add_text(line, text);
}

static int
hex_value(char digit)
{
	return digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

/* Adds what the \xNN at `escaped` say together, if that is a character, else the first
 * byte as if it were one; answers how many of them that were. */
static size_t
add_bytes(struct line *line, const char *escaped)
{
	char bytes[4];
	size_t count = 0, len;
	uint32_t code;

	while (count < sizeof bytes && escaped[0] == '\\' && escaped[1] == 'x') {
		bytes[count++] =
			(char)(hex_value(escaped[2]) << 4 | hex_value(escaped[3]));
		escaped += 4;
	}
	VERIFY(count > 0);
	len = text_character((struct span){ bytes, count }, &code);
	add_code(line, len > 0 ? code : (unsigned char)bytes[0]);
	return MAX(len, 1);
}

/* JSON knows no \x: its \u is for characters. */
static void
add_json_escaped(struct line *line, const char *escaped)
{
	for (const char *at = escaped; *at; at++) {
		if (at[0] == '\\' && at[1] == 'x') {
			at += 4 * add_bytes(line, at) - 1;
		} else if (at[0] == '\\') {
			add(line, at++, 2);
		} else {
			add(line, at, 1);
		}
	}
}

static bool
needs_quotes(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((unsigned char)text.data[i] <= ' ' || text.data[i] == '=' ||
		    text.data[i] == '"' || text.data[i] == '\\' ||
		    (unsigned char)text.data[i] >= 0x7f)
			return true;
	}
	return text.len == 0;
}

static void
add_value(struct line *line, struct span value)
{
	char escaped[VALUE_SIZE];
	bool quotes = settings.json || needs_quotes(value);

	(void)text_escape(value, escaped, sizeof escaped);
	if (quotes)
		add_text(line, "\"");
	if (settings.json)
		add_json_escaped(line, escaped);
	else
		add_text(line, escaped);
	if (quotes)
		add_text(line, "\"");
}

static void
add_key(struct line *line, const char *key)
{
	bool first = line->len == 0;

	if (settings.json) {
		add_text(line, first ? "{\"" : ",\"");
		add_text(line, key);
		add_text(line, "\":");
	} else {
		if (!first)
			add_text(line, " ");
		add_text(line, key);
		add_text(line, "=");
	}
}

static void
add_field(struct line *line, const struct log_field *field)
{
	size_t len_before = line->len;

	add_key(line, field->key);
	switch (field->kind) {
	case LOG_KIND_TEXT:
		add_value(line, field->text);
		break;
	case LOG_KIND_NUMBER:
		add_number(line, field->number);
		break;
	case LOG_KIND_BOOL:
		add_text(line, field->number ? "true" : "false");
		break;
	}
	if (line->full)
		line->len = len_before;
	line->full = false;
}

static void
add_time(struct line *line, uint64_t now_ms)
{
	time_t seconds = (time_t)(now_ms / 1000);
	char text[64];
	struct tm utc;
	size_t len;

	VERIFY(gmtime_r(&seconds, &utc));
	len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text + len, sizeof text - len, ".%03uZ",
	               (unsigned)(now_ms % 1000));
	add_field(line, &LOG_TEXT("time", text));
}

/* Whether this site may speak now; `ret_suppressed` is what it kept to itself before. */
static bool
admit(struct log_site *site, uint64_t now_ms, uint32_t *ret_suppressed)
{
	/* A wall clock that steps back opens a window, too. */
	if (site->lines == 0 || now_ms - site->window_starts_ms >= LOG_WINDOW_MS) {
		site->window_starts_ms = now_ms;
		site->lines = 0;
	}
	if (site->lines >= LOG_BURST) {
		site->suppressed++;
		return false;
	}
	site->lines++;
	*ret_suppressed = site->suppressed;
	site->suppressed = 0;
	return true;
}

static int
log_fd(void)
{
	return settings.fd > 0 ? settings.fd : STDERR_FILENO;
}

/* False: whoever reads the log stands still, as a terminal after Ctrl-S or a collector
 * that hangs.  He gets a moment, once; then lines are counted and not written, until he
 * reads on: beats and leases must not wait for him.  A pipe that can be written takes a
 * whole line. */
static bool
is_read(void)
{
	static bool stands_still;
	struct pollfd out = { .fd = log_fd(), .events = POLLOUT };

	stands_still = poll(&out, 1, stands_still ? 0 : PATIENCE_MS) == 0;
	return !stands_still;
}

static void
put_out(struct line *line)
{
	int fd = log_fd();
	size_t done = 0;

	if (settings.json)
		line->text[line->len++] = '}';
	line->text[line->len++] = '\n';
	while (done < line->len) {
		ssize_t written = write(fd, line->text + done, line->len - done);

		if (written <= 0)
			return; /* nobody listens; there is nowhere to say so */
		done += (size_t)written;
	}
}

void
log_write(enum log_level level, struct log_site *site, const char *event,
          const struct log_field *fields, size_t fields_count)
{
	struct line line = { .len = 0 };
	uint32_t suppressed = 0;
	uint64_t now_ms;

	VERIFY(level < LOG_LEVEL_COUNT);
	VERIFY(fields_count > 0);
	if (!log_wants(level))
		return;

	now_ms = wall_ms();
	pthread_mutex_lock(&lock);
	if (!admit(site, now_ms, &suppressed)) {
		pthread_mutex_unlock(&lock);
		return;
	}
	if (!is_read()) {
		site->suppressed += suppressed + 1;
		pthread_mutex_unlock(&lock);
		return;
	}
	add_time(&line, now_ms);
	add_field(&line, &LOG_TEXT("level", level_names[level]));
	add_field(&line, &LOG_TEXT("program", settings.program));
	add_field(&line, &LOG_TEXT("event", event));
	for (size_t i = 1; i < fields_count; i++)
		add_field(&line, &fields[i]);
	if (suppressed > 0)
		add_field(&line, &LOG_NUMBER("suppressed", suppressed));
	put_out(&line);
	pthread_mutex_unlock(&lock);
}
