/* Any status, headers and error body: a kind, a bounded wait and a printable sentence.
 *
 *   bytes 0 and 1: status      lines `name: value`, an empty line, then the body */
#include "common/codec/answer.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer_headers headers;
	struct answer answer;
	struct span rest;

	if (size < 2)
		return 0;
	rest = fuzz_span(data + 2, size - 2);
	answer_headers_init(&headers, UINT64_C(1790000000000));
	while (rest.len > 0) {
		const char *end = memchr(rest.data, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.data) : rest.len;
		const char *colon = memchr(rest.data, ':', len);
		size_t name = colon ? (size_t)(colon - rest.data) : len;
		size_t skip = colon ? name + 1 : name;

		if (len > 0)
			answer_header(&headers, (struct span){ rest.data, name },
			              (struct span){ rest.data + skip, len - skip });
		rest.data += MIN(len + 1, rest.len);
		rest.len -= MIN(len + 1, rest.len);
		if (len == 0)
			break;
	}
	answer_classify(DIALECT_ANTHROPIC, (data[0] << 8 | data[1]) % 1000, &headers,
	                rest, &answer);
	VERIFY(answer.kind < ANSWER_COUNT);
	VERIFY(answer.after_ms >= ANSWER_UNKNOWN && answer.after_ms <= 86400000);
	VERIFY(memchr(answer.text, '\0', sizeof answer.text) != NULL);
	VERIFY(answer.type[0] != '\0');
	for (const char *at = answer.text; *at; at++)
		VERIFY((unsigned char)*at >= 0x20 && *at != 0x7f);
	return 0;
}
