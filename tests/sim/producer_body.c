#include "tests/sim/producer_body.h"

#include <stdio.h>

enum {
	SYSTEM_SIZE = 1300, /* over what is worth a key of its own */
	SINGLE_SIZE = 1200,
	DOCUMENT_SIZE = 1600,
};

/* A text of `size` bytes that only its title tells from others. */
static void
write_text(struct buffer *out, const char *title, size_t size)
{
	size_t end = out->len + size;

	buffer_append_text(out, title);
	while (out->len < end)
		buffer_append_text(out, " Answer with care and to the point.");
}

void
producer_body_system(struct buffer *out, const char *title)
{
	write_text(out, title, SYSTEM_SIZE);
}

/* What only a single job has: its system prompt, or its document. */
static bool
is_single_system(const struct producer *producer, const struct producer_job *job)
{
	return job->kind == PRODUCER_SINGLE &&
	       !(producer->weather->lonely && job->document > 0);
}

static void
write_system(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	char title[64];

	if (is_single_system(producer, job))
		(void)snprintf(title, sizeof title, "A prompt of its own, %u.", number);
	else
		(void)snprintf(title, sizeof title, "System prompt %u.", job->system);
	write_text(&producer->body, title,
	           is_single_system(producer, job) ? SINGLE_SIZE : SYSTEM_SIZE);
}

static void
write_messages(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	struct buffer *out = &producer->body;
	char title[64];

	if (job->document > 0) {
		(void)snprintf(title, sizeof title, "Document %u.",
		               job->kind == PRODUCER_SINGLE && producer->weather->lonely
		                       ? 1000 + number
		                       : job->document);
		buffer_append_text(out, "{\"role\":\"user\",\"content\":\"");
		write_text(out, title, DOCUMENT_SIZE);
		buffer_append_text(out, "\"},");
	}
	buffer_append_format(out, "{\"role\":\"user\",\"content\":\"Question %u?\"}]",
	                     number);
}

/* The same prefix as PRODUCER_PLAIN's, as another serialiser would write it: order of
 * keys, white space, escapes. */
static void
write_spelled(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	static const char *const BLANKS[] = { "", " ", "\n  ", "\t" };
	struct buffer *out = &producer->body;
	const char *blank = BLANKS[number % ARRAY_SIZE(BLANKS)];
	char system[64];

	(void)snprintf(system, sizeof system,
	               number % 3 == 0 ? "\\u0053ystem prompt %u." : "System prompt %u.",
	               job->system);
	buffer_append_format(
		out,
		"{%s\"messages\":%s[{\"role\":\"user\",%s\"content\":%s"
		"\"Question %u?\"}],%s\"max_tokens\"%s:%u,%s\"system\"%s:%s\"",
		blank, blank, blank, blank, number, blank, blank,
		producer->weather->output_tokens, blank, blank, blank);
	write_text(out, system, SYSTEM_SIZE + (number % 3 == 0 ? 5 : 0));
	buffer_append_format(out, "\"%s,%s\"model\":%s\"anthropic-0\"%s}", blank, blank,
	                     blank, blank);
}

/* The vendor's own pattern: one user message, a marked document, then the question. */
static void
write_document(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	struct buffer *out = &producer->body;
	char title[32];

	(void)snprintf(title, sizeof title, "Document %u.", job->system);
	buffer_append_format(
		out,
		"{\"model\":\"anthropic-0\",\"max_tokens\":%u,\"system\":\"You "
		"read.\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
		"\"text\",\"text\":\"",
		producer->weather->output_tokens);
	write_text(out, title, SYSTEM_SIZE);
	buffer_append_format(
		out,
		"\",\"cache_control\":{\"type\":\"ephemeral\"}},{\"type\":\"text\","
		"\"text\":\"Question %u?\"}]}]}",
		number);
}

/* A setting that enters the identity behind the system prompt only. */
static void
write_choice(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	struct buffer *out = &producer->body;
	char title[32];

	(void)snprintf(title, sizeof title, "System prompt %u.", job->system);
	buffer_append_format(
		out,
		"{\"model\":\"anthropic-0\",\"max_tokens\":%u,\"tools\":[{\"name\":"
		"\"look\",\"input_schema\":{\"type\":\"object\"}}],\"tool_choice\":"
		"{\"type\":\"tool\",\"name\":\"look%u\"},\"system\":\"",
		producer->weather->output_tokens, number % 50);
	write_text(out, title, SYSTEM_SIZE);
	buffer_append_format(out,
	                     "\",\"messages\":[{\"role\":\"user\",\"content\":\"Question "
	                     "%u?\"}]}",
	                     number);
}

/* Bodies of the bursts that are measured; false: the usual ones. */
static bool
write_shape(struct producer *producer, const struct producer_job *job, uint32_t number)
{
	switch ((enum producer_shape)producer->weather->shape) {
	case PRODUCER_PLAIN:
		return false;
	case PRODUCER_SPELLED:
		write_spelled(producer, job, number);
		break;
	case PRODUCER_DOCUMENT:
		write_document(producer, job, number);
		break;
	case PRODUCER_CHOICE:
		write_choice(producer, job, number);
		break;
	}
	return true;
}

void
producer_body_write(struct producer *producer, const struct producer_job *job,
                    uint32_t number)
{
	struct buffer *out = &producer->body;
	char model[32];

	buffer_clear(out);
	if (write_shape(producer, job, number))
		return;
	producer_model(job->upstream, job->model, model);
	buffer_append_format(out, "{\"model\":\"%s\",\"max_tokens\":%u,", model,
	                     MAX(producer->weather->output_tokens, 1));
	if (job->kind == PRODUCER_OPAQUE)
		buffer_append_text(out, "\"metadata\":1,\"metadata\":2,");
	if (job->kind != PRODUCER_NAMED && job->upstream == 0) {
		buffer_append_text(out, "\"system\":\"");
		write_system(producer, job, number);
		buffer_append_text(out, "\",");
	}
	buffer_append_text(out, "\"messages\":[");
	if (job->kind != PRODUCER_NAMED && job->upstream != 0) {
		buffer_append_text(out, "{\"role\":\"system\",\"content\":\"");
		write_system(producer, job, number);
		buffer_append_text(out, "\"},");
	}
	write_messages(producer, job, number);
	buffer_append_byte(out, '}');
}
