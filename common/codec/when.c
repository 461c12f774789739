#include "common/codec/when.h"

#define DAY_MS    UINT64_C(86400000)
#define HOUR_MS   UINT64_C(3600000)
#define MINUTE_MS UINT64_C(60000)

/* Since 1970-01-01; false if there is no such day. */
static bool
count_days(unsigned year, unsigned month, unsigned day, uint32_t *ret_days)
{
	static const unsigned length[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	static const unsigned before[] = { 0,   31,  59,  90,  120, 151,
		                           181, 212, 243, 273, 304, 334 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	unsigned past = year - 1;
	uint32_t days;

	if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1)
		return false;
	if (day > length[month - 1] + (month == 2 && leap ? 1 : 0))
		return false;
	days = (year - 1970) * 365 + (past / 4 - past / 100 + past / 400) - 477;
	days += before[month - 1] + (month > 2 && leap ? 1 : 0) + day - 1;
	*ret_days = days;
	return true;
}

/* Reads exactly `count` digits. */
static bool
take_digits(struct span *text, size_t count, unsigned *ret_value)
{
	unsigned value = 0;

	if (text->len < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (text->data[i] < '0' || text->data[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text->data[i] - '0');
	}
	text->data += count;
	text->len -= count;
	*ret_value = value;
	return true;
}

static bool
take_byte(struct span *text, const char *any_of)
{
	if (text->len == 0 || text->data[0] == '\0' || !strchr(any_of, text->data[0]))
		return false;
	text->data++;
	text->len--;
	return true;
}

static bool
take_clock(struct span *text, uint64_t *ret_ms)
{
	unsigned hour, minute, second;

	if (!take_digits(text, 2, &hour) || !take_byte(text, ":") ||
	    !take_digits(text, 2, &minute) || !take_byte(text, ":") ||
	    !take_digits(text, 2, &second) || hour > 23 || minute > 59 || second > 60)
		return false;
	*ret_ms = hour * HOUR_MS + minute * MINUTE_MS + second * UINT64_C(1000);
	return true;
}

/* A fraction of a second, cut to milliseconds. */
static bool
take_fraction(struct span *text, uint64_t *ret_ms)
{
	uint64_t scale = 100, ms = 0;
	unsigned digit;

	*ret_ms = 0;
	if (!take_byte(text, "."))
		return true;
	if (!take_digits(text, 1, &digit))
		return false;
	do {
		ms += digit * scale;
		scale /= 10;
	} while (take_digits(text, 1, &digit));
	*ret_ms = ms;
	return true;
}

/* "Z" or "+hh:mm": what has to be added to get UTC. */
static bool
take_zone(struct span *text, int64_t *ret_ms)
{
	unsigned hour, minute;
	bool east = text->len > 0 && text->data[0] == '+';
	int64_t ms;

	*ret_ms = 0;
	if (take_byte(text, "Zz"))
		return true;
	if (!take_byte(text, "+-") || !take_digits(text, 2, &hour) ||
	    !take_byte(text, ":") || !take_digits(text, 2, &minute) || hour > 23 ||
	    minute > 59)
		return false;
	ms = (int64_t)(hour * HOUR_MS + minute * MINUTE_MS);
	*ret_ms = east ? -ms : ms;
	return true;
}

int
when_parse_rfc3339(struct span text, uint64_t *ret_ms)
{
	unsigned year, month, day;
	uint64_t clock, fraction;
	int64_t zone, ms;
	uint32_t days;

	if (!take_digits(&text, 4, &year) || !take_byte(&text, "-") ||
	    !take_digits(&text, 2, &month) || !take_byte(&text, "-") ||
	    !take_digits(&text, 2, &day) || !take_byte(&text, "Tt ") ||
	    !count_days(year, month, day, &days) || !take_clock(&text, &clock) ||
	    !take_fraction(&text, &fraction) || !take_zone(&text, &zone) || text.len > 0)
		return ERR_MALFORMED;
	ms = (int64_t)(days * DAY_MS + clock + fraction) + zone;
	if (ms < 0)
		return ERR_MALFORMED;
	*ret_ms = (uint64_t)ms;
	return 0;
}

static bool
take_month(struct span *text, unsigned *ret_month)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	if (text->len < 3)
		return false;
	for (unsigned i = 0; i < 12; i++) {
		if (memcmp(text->data, names + (size_t)3 * i, 3) != 0)
			continue;
		text->data += 3;
		text->len -= 3;
		*ret_month = i + 1;
		return true;
	}
	return false;
}

int
when_parse_http(struct span text, uint64_t *ret_ms)
{
	unsigned year, month, day;
	uint64_t clock;
	uint32_t days;

	if (text.len < 5 || text.data[3] != ',' || text.data[4] != ' ')
		return ERR_MALFORMED; /* only the form that senders must use today */
	text.data += 5;
	text.len -= 5;
	if (!take_digits(&text, 2, &day) || !take_byte(&text, " ") ||
	    !take_month(&text, &month) || !take_byte(&text, " ") ||
	    !take_digits(&text, 4, &year) || !take_byte(&text, " ") ||
	    !count_days(year, month, day, &days) || !take_clock(&text, &clock) ||
	    !span_equals(text, SPAN(" GMT")))
		return ERR_MALFORMED;
	*ret_ms = days * DAY_MS + clock;
	return 0;
}
