#include "cli/tail_writes.h"

#include "common/codec/protocol.h"
#include "common/text.h"

#include <stdio.h>

#define HOUR_MS UINT64_C(3600000)

/* Words of a row of sums, docs/LEDGER.md: read, written, uncached; causes come behind. */
#define WORD_READ   4
#define WORD_CAUSES 13

struct sums {
	uint64_t input, tail;
};

/* "tail:calls,written,full,…" */
static void
add_cause(struct sums *sums, struct span cause)
{
	struct span name, figure;
	uint64_t value = 0;

	if (!protocol_cut(&cause, ':', &name) || !span_equals(name, SPAN("tail")))
		return;
	if (protocol_cut(&cause, ',', &figure) && protocol_cut(&cause, ',', &figure) &&
	    text_parse_unsigned(figure, INT64_MAX, &value) == 0)
		sums->tail += value;
}

static void
add_row(struct sums *sums, struct span row)
{
	struct span word;

	for (unsigned i = 0; protocol_cut(&row, ' ', &word); i++) {
		uint64_t value = 0;

		if (i >= WORD_CAUSES)
			add_cause(sums, word);
		else if (i >= WORD_READ && i < WORD_READ + 3 &&
		         text_parse_unsigned(word, INT64_MAX, &value) == 0)
			sums->input += value;
	}
}

int
tail_writes_share(struct store *store, uint64_t now_ms, struct span route,
                  uint64_t *ret_permille)
{
	struct sums sums = { 0 };

	for (uint64_t back = 0; back < 2; back++) {
		const struct reply *reply;
		char hour[32];
		int code;

		(void)snprintf(hour, sizeof hour, "ledger:%llu",
		               (unsigned long long)(now_ms / HOUR_MS - back));
		code = STORE_COMMAND(store, &reply, SPAN("HGET"),
		                     store_key(store, hour, SPAN("")), route);
		if (code != CLI_OK)
			return code;
		add_row(&sums, reply_text(reply));
	}
	*ret_permille = sums.input > 0 ? MIN(sums.tail * 1000 / sums.input, 1000) : 0;
	return CLI_OK;
}
