#include "provider/ask.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t
ask_digest(struct span text)
{
	uint64_t digest = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < text.len; i++)
		digest = (digest ^ (unsigned char)text.data[i]) * 0x100000001b3ull;
	return digest;
}

int
ask_refuse(struct ask_refusal *refusal, int status, const char *type, const char *format,
           ...)
{
	va_list args;

	*refusal = (struct ask_refusal){ .status = status, .type = type };
	va_start(args, format);
	vsnprintf(refusal->message, sizeof refusal->message, format, args);
	va_end(args);
	return ERR_MALFORMED;
}

uint64_t
ask_scope(const struct span *texts, size_t count)
{
	struct id_hash hash;

	id_hash_init(&hash, 1);
	for (size_t i = 0; i < count; i++)
		id_hash_field(&hash, texts[i]);
	return id_hash_final(&hash).low;
}

void
ask_fini(struct ask *ask)
{
	prompt_fini(&ask->prompt);
}
