#include "cli/burst.h"

#include "common/prng.h"

static const char *const words[] = {
	"the",     "ticket",   "refund", "policy",  "order",   "customer", "within",
	"days",    "of",       "a",      "receipt", "is",      "needed",   "unless",
	"carrier", "reports",  "damage", "to",      "parcel",  "escalate", "when",
	"amount",  "exceeds",  "limit",  "set",     "by",      "region",   "manager",
	"reply",   "politely", "and",    "cite",    "section", "number",   "always",
};

void
burst_prefix(const struct burst *burst, uint64_t family, struct buffer *out)
{
	uint64_t size = burst->prefix_tokens * BURST_BYTES_PER_TOKEN;
	uint64_t sentence = 1;
	struct prng prng;

	buffer_clear(out);
	prng_init(&prng, burst->seed + family);
	buffer_append_format(out, "Handbook %llu. ", (unsigned long long)family);
	while (out->len < size && buffer_error(out) == 0) {
		if (prng_below(&prng, 14) == 0)
			buffer_append_format(
				out, "Rule %llu: ", (unsigned long long)sentence++);
		buffer_append_text(out, words[prng_below(&prng, ARRAY_SIZE(words))]);
		buffer_append_byte(out, ' ');
	}
	if (out->len > size)
		buffer_truncate(out, size);
}

static void
append_question(uint64_t i, struct buffer *out)
{
	buffer_append_format(out, "Ticket %llu: my parcel came late and open. What now?",
	                     (unsigned long long)i);
}

void
burst_body(const struct burst *burst, uint64_t i, struct span prefix, struct buffer *out)
{
	bool chat = strcmp(burst->dialect, "openai-chat") == 0;

	buffer_clear(out);
	buffer_append_format(out, "{\"model\":\"%s\",\"max_tokens\":%llu,", burst->model,
	                     (unsigned long long)burst->max_tokens);
	if (burst->stream)
		buffer_append_text(out, "\"stream\":true,");
	if (chat)
		buffer_append_text(out,
		                   "\"messages\":[{\"role\":\"system\",\"content\":\"");
	else
		buffer_append_text(out, "\"system\":\"");
	buffer_append(out, prefix);
	if (chat)
		buffer_append_text(out, "\"},{\"role\":\"user\",\"content\":\"");
	else
		buffer_append_text(out,
		                   "\",\"messages\":[{\"role\":\"user\",\"content\":\"");
	append_question(i, out);
	buffer_append_text(out, "\"}]}");
}
