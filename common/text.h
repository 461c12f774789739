/* text.h - small words of text: numbers, durations, sizes, names; and safe printing.
 *
 * Everything people write in configuration, flags and job fields is read here, and
 * strictly: no sign or blank where none belongs, no overflow, no missing unit.
 *
 *   duration  250ms 30s 5m 24h 7d      in milliseconds
 *   size      200b 64k 32m 1g          in bytes; k is 1024
 *   decimal   1.25                     as an integer of units of 10^-places
 *
 * Printing goes into the caller's memory and always ends with a zero byte.  Nothing here
 * allocates or looks at the locale. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include "common/base.h"
#include "common/error.h"

#define TEXT_NAME_MAX    128 /* bytes of a name */
#define TEXT_SAID_MAX    64  /* of an upstream's or named prefix's, that jobs say */
#define TEXT_NUMBER_SIZE 24  /* room for any number, duration or size, and its zero */

/* Digits only (leading zeros are fine).  ERR_MALFORMED if it is no number, ERR_LIMIT
 * above `max`. */
MUST_USE int text_parse_unsigned(struct span text, uint64_t max, uint64_t *ret_value);

/* A number and one unit.  ERR_MALFORMED without a unit, ERR_LIMIT on overflow. */
MUST_USE int text_parse_duration(struct span text, uint64_t *ret_ms);
MUST_USE int text_parse_size(struct span text, uint64_t *ret_bytes);

/* "3", "0.1", "1.25" as value * 10^places, exactly: "1.25" with 6 places is 1250000.
 * ERR_MALFORMED also for more digits after the point than `places` (at most 9). */
MUST_USE int text_parse_decimal(struct span text, unsigned places, uint64_t *ret_value);

/* "true" or "false", nothing else. */
MUST_USE int text_parse_bool(struct span text, bool *ret_value);

/* The way back, in the largest unit that is exact: 300000 is "5m".  They answer the
 * length without the zero. */
size_t text_print_unsigned(uint64_t value, char ret_text[TEXT_NUMBER_SIZE]);
size_t text_print_duration(uint64_t ms, char ret_text[TEXT_NUMBER_SIZE]);
size_t text_print_size(uint64_t bytes, char ret_text[TEXT_NUMBER_SIZE]);

/* Decimal without trailing zeros: 1250000 with 6 places is "1.25". */
size_t text_print_decimal(uint64_t value, unsigned places,
                          char ret_text[TEXT_NUMBER_SIZE]);

/* A name that may become part of a Redis key: 1 to TEXT_NAME_MAX of A-Z a-z 0-9 . _ - */
bool text_is_name(struct span text);

/* For qsort, of spans: by their bytes, and the shorter first. */
int text_compare_spans(const void *a, const void *b);

/* Whether the bytes are UTF-8 without surrogates, overlong forms or stray bytes. */
bool text_is_utf8(struct span text);

/* The bytes of the first character, and its code point; 0 if no valid one stands there.
 */
size_t text_character(struct span text, uint32_t *ret_code);

/* Without the blanks, tabs and line ends around it. */
struct span text_trim(struct span text);

/* Writes untrusted bytes so that a terminal or a log line shows them and obeys none of
 * them: control characters, quotes, backslashes, direction marks and everything that is
 * not UTF-8 become \n, \", \\ or \xNN.  What does not fit is cut at a whole character
 * and ends with "...".  `size` is at least 8.  Answers the length without the zero. */
size_t text_escape(struct span text, char *ret_text, size_t size);

/* Shell-style pattern: '*' is any run of bytes, '?' any one byte, all else is itself. */
bool text_matches(struct span pattern, struct span text);

#endif
