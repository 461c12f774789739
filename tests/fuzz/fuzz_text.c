/* The small parsers over any bytes: what is read and printed reads back; what is escaped
 * is harmless, valid UTF-8 and fits; a Redis address never crashes and hides its secret.
 */
#include "common/io/redis_url.h"
#include "common/text.h"
#include "tests/fuzz/fuzz.h"

typedef int parse_fn(struct span text, uint64_t *ret_value);
typedef size_t print_fn(uint64_t value, char ret_text[TEXT_NUMBER_SIZE]);

static void
check_round_trip(struct span text, parse_fn *parse, print_fn *print)
{
	char printed[TEXT_NUMBER_SIZE];
	uint64_t value, again;
	size_t len;

	if (parse(text, &value) < 0)
		return;
	len = print(value, printed);
	VERIFY(len == strlen(printed));
	VERIFY(parse((struct span){ printed, len }, &again) == 0);
	VERIFY(value == again);
}

static int
parse_any(struct span text, uint64_t *ret_value)
{
	return text_parse_unsigned(text, UINT64_MAX, ret_value);
}

static void
check_escape(struct span text, size_t size)
{
	char out[128];
	size_t len = text_escape(text, out, size);

	VERIFY(len < size);
	VERIFY(len == strlen(out));
	VERIFY(text_is_utf8((struct span){ out, len }));
	for (size_t i = 0; i < len; i++) {
		VERIFY((unsigned char)out[i] >= ' ');
		VERIFY(out[i] != 0x7f);
	}
}

static void
check_url(struct span text)
{
	char error[REDIS_URL_ERROR_SIZE] = "", printed[REDIS_URL_TEXT_SIZE];
	struct redis_url url, again;

	if (redis_url_parse(text, &url, error) < 0) {
		VERIFY(error[0] != '\0');
		return;
	}
	redis_url_print(&url, printed);
	/* %XX in a path is undone by reading and not redone by printing. */
	if (strchr(printed, '%') || strchr(url.path, '?'))
		return;
	VERIFY(redis_url_parse(span_from(printed), &again, error) == 0);
	VERIFY(again.port == url.port);
	VERIFY(again.database == url.database);
	VERIFY(again.password[0] == '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = fuzz_span(data, size);

	check_round_trip(text, parse_any, text_print_unsigned);
	check_round_trip(text, text_parse_duration, text_print_duration);
	check_round_trip(text, text_parse_size, text_print_size);
	check_escape(text, 8);
	check_escape(text, 8 + size % 120);
	check_url(text);
	(void)text_is_name(text);
	if (size > 1)
		(void)text_matches(
			(struct span){ text.data, size / 2 },
			(struct span){ text.data + size / 2, size - size / 2 });
	return 0;
}
