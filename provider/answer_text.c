#include "provider/answer_text.h"

void
answer_text_append(uint64_t digest, uint32_t tokens, struct buffer *out)
{
	static const char words[] =
		" alfa bravo charlie delta echo foxtrot golf hotel india "
		"juliett kilo lima mike november oscar papa";
	size_t want = (size_t)tokens * 4, have = 0;

	(void)buffer_append_format(out, "echo %016llx", (unsigned long long)digest);
	have = sizeof "echo 0123456789abcdef" - 1;
	while (have < want && buffer_error(out) == 0) {
		size_t len = MIN(want - have, sizeof words - 1);

		(void)buffer_append(out, (struct span){ words, len });
		have += len;
	}
}

struct span
answer_text_part(struct span text, uint64_t index, uint64_t count)
{
	size_t start = (size_t)(text.len * index / count);
	size_t end = (size_t)(text.len * (index + 1) / count);

	return (struct span){ text.data + start, end - start };
}
