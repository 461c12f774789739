/* cli_print.c - how answers look: numbers, times, untrusted text, colours. */
#include "cli/cli.h"

#include "common/buffer.h"
#include "common/text.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- untrusted text -------------------------------------------------------------- */

/* What a terminal would obey is spelt out; the characters of `kept` stay as they are. */
static void
append_safely(struct buffer *out, struct span text, const char *kept)
{
	while (text.len > 0) {
		size_t run = 0;

		while (run < text.len &&
		       !(text.data[run] && strchr(kept, text.data[run])))
			run++;
		(void)buffer_append_escaped(out, (struct span){ text.data, run });
		if (run < text.len)
			(void)buffer_append_byte(out, text.data[run++]);
		text = (struct span){ text.data + run, text.len - run };
	}
}

void
cli_put_safely(FILE *file, struct span text)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	append_safely(&out, text, "\"\\\n");
	fputs(buffer_text(&out), file);
	buffer_fini(&out);
}

void
cli_print_escaped(struct span text)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);

	append_safely(&out, text, "\"");
	fputs(buffer_text(&out), stdout);
	buffer_fini(&out);
}

json_t *
cli_json_safe(struct span text)
{
	struct buffer out = BUFFER_INIT(BUFFER_SIZE_DEFAULT);
	json_t *value;

	append_safely(&out, text, "\"");
	value = json_stringn_nocheck(buffer_text(&out), buffer_span(&out).len);
	buffer_fini(&out);
	return value;
}

/* ---- JSON ------------------------------------------------------------------------ */

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

/* ---- numbers and times ----------------------------------------------------------- */

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
cli_count(uint64_t count, const char *one, const char *many,
          char ret_text[CLI_COUNT_SIZE])
{
	char digits[32];

	snprintf(ret_text, CLI_COUNT_SIZE, "%s %s", cli_grouped(count, digits),
	         count == 1 ? one : many);
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

/* ---- the terminal ---------------------------------------------------------------- */

bool
cli_is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}

static bool
has_colours(void)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (!cli_is_terminal() || (none && *none))
		return false;
	return terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

const char *
cli_style(enum cli_style style)
{
	static const char *const codes[CLI_STYLE_COUNT] = {
		[CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",
		[CLI_GOOD] = "\033[32m",  [CLI_WARNING] = "\033[33m",
		[CLI_BAD] = "\033[1;31m",
	};

	return has_colours() ? codes[style] : "";
}
