#include "cli/cli.h"

#include "common/buffer.h"
#include "common/codec/protocol.h"
#include "common/io/hangup.h"
#include "common/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

/* A sentence of ours with words of somebody else's in it: quotes stay, what a terminal
 * would obey does not. */
static void
complain(struct span text)
{
	bool is_utf8 = text_is_utf8(text);

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		bool is_c1 = c == 0xc2 && i + 1 < text.len &&
		             (unsigned char)text.data[i + 1] < 0xa0;

		if ((c < ' ' && c != '\n') || c == 0x7f || is_c1 ||
		    (c > 0x7f && !is_utf8))
			fprintf(stderr, "\\x%02x", c);
		else
			fputc(c, stderr);
		if (is_c1 && is_utf8) /* both of its bytes */
			fprintf(stderr, "\\x%02x", (unsigned char)text.data[++i]);
	}
}

int
cli_fail(enum cli_exit code, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	VERIFY(len >= 0);
	fputs("warmq: ", stderr);
	complain((struct span){ text, (size_t)len });
	fputc('\n', stderr);
	free(text);
	return (int)code;
}

void
cli_print_json(json_t *value)
{
	char *text =
		json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);

	VERIFY(text);
	puts(text);
	free(text);
	json_decref(value);
}

void
cli_print_escaped(struct span text)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	buffer_append_escaped(&out, text);
	fputs(buffer_text(&out), stdout);
	buffer_fini(&out);
}

void
cli_print_cell(const char *text, size_t width)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	const char *at;
	size_t shown = 0;

	buffer_append_escaped(&out, span_from(text));
	for (at = buffer_text(&out); *at; at++) {
		bool begins = (*at & 0xc0) != 0x80; /* a character, not the rest of one */

		if (begins && shown == width)
			break;
		shown += begins;
		putchar(*at);
	}
	printf("%*s", (int)(width - shown + 2), "");
	buffer_fini(&out);
}

json_t *
cli_json_text(struct span text)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	json_t *value;

	if (text_is_utf8(text))
		return json_stringn_nocheck(text.data, text.len);
	buffer_append_escaped(&out, text);
	value = json_stringn_nocheck(buffer_text(&out), buffer_span(&out).len);
	buffer_fini(&out);
	return value;
}

const char *
cli_grouped(uint64_t value, char ret_text[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
	char *to = ret_text;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return ret_text;
}

const char *
cli_duration(uint64_t ms, char ret_text[32])
{
	if (ms < 1000)
		snprintf(ret_text, 32, "%llu ms", (unsigned long long)ms);
	else if (ms < 120000)
		snprintf(ret_text, 32, "%llu.%llu s", (unsigned long long)(ms / 1000),
		         (unsigned long long)(ms % 1000 / 100));
	else if (ms < 7200000)
		snprintf(ret_text, 32, "%llu min", (unsigned long long)(ms / 60000));
	else
		snprintf(ret_text, 32, "%llu h", (unsigned long long)(ms / 3600000));
	return ret_text;
}

static struct tm
local_time(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	localtime_r(&seconds, &parts);
	return parts;
}

const char *
cli_clock(uint64_t ms, char ret_text[CLI_CLOCK_SIZE])
{
	struct tm parts = local_time(ms);

	strftime(ret_text, CLI_CLOCK_SIZE, "%H:%M:%S", &parts);
	return ret_text;
}

const char *
cli_date(uint64_t ms, char ret_text[CLI_CLOCK_SIZE])
{
	struct tm parts = local_time(ms);

	strftime(ret_text, CLI_CLOCK_SIZE, "%F %H:%M:%S", &parts);
	return ret_text;
}

uint64_t
cli_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

bool
cli_is_interrupted(void)
{
	return interrupted != 0;
}

void
cli_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(hangup_number(), &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
cli_check_job_id(const char *text)
{
	struct protocol_job_id id;

	if (protocol_parse_job_id(span_from(text), &id) == 0)
		return CLI_OK;
	return cli_fail(CLI_USAGE,
	                "\"%.60s\" is no id of a job: `warmq enqueue` and XADD answer "
	                "one, such as 1764450000000-0.",
	                text);
}

bool
cli_is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}
