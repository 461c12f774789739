/* ask.h - one request, read: what it wants, and what the cache sees of it.
 *
 *   body ── anthropic_read / openai_read ──► struct ask ──► engine, answer
 *        └── refused: status, error type, a message as the vendor would word it
 *
 * Everything here is a copy: the body may go once an ask is read. */
#ifndef PROVIDER_ASK_H
#define PROVIDER_ASK_H

#include "common/base.h"
#include "common/error.h"
#include "provider/body.h"
#include "provider/catalog.h"
#include "provider/prompt.h"

#define ASK_NAME_SIZE 128 /* of models and tools, with the zero */

enum ask_dialect {
	ASK_ANTHROPIC,
	ASK_OPENAI,
};

/* What the answer is made of when the request decides. */
enum ask_answer {
	ASK_ANSWER_TEXT,
	ASK_ANSWER_THINKING, /* then text */
	ASK_ANSWER_TOOL,
};

/* What the answer has to look like: plain data, may be copied anywhere. */
struct ask_want {
	enum ask_dialect dialect;
	char model[ASK_NAME_SIZE];
	bool stream;
	bool include_usage; /* chat: a last chunk with usage */
	bool warm_only;     /* max_tokens 0: prefill and nothing else */
	uint32_t choices;   /* chat: n */
	uint32_t output_max;
	uint64_t digest; /* of the final user text; see ask_digest */
	enum ask_answer answer;
	char tool[ASK_NAME_SIZE];
};

struct ask {
	struct ask_want want;
	const struct catalog_model *entry; /* of the catalog */
	struct prompt prompt;              /* owned */
	uint64_t scope;
	uint64_t routing;
	enum cache_mode mode;
};

/* Headers and key that take part in the reading. */
struct ask_context {
	const struct catalog *catalog;
	const struct catalog_key *key;
	struct span version; /* anthropic-version */
	struct span betas;   /* anthropic-beta */
};

/* Why a request is not taken. */
struct ask_refusal {
	int status;
	const char *type; /* error type, static */
	const char *code; /* chat: error code, static; or NULL */
	char message[256];
};

/* FNV-1a, 64 bits: three lines in any language, so that a test can check that it got the
 * answer to its own question. */
uint64_t ask_digest(struct span text);

/* Fills the refusal and answers ERR_MALFORMED, for `return ask_refuse(...)`. */
int ask_refuse(struct ask_refusal *refusal, int status, const char *type,
               const char *format, ...) PRINTF(4, 5);

/* A number of 64 bits that names all the texts in order. */
uint64_t ask_scope(const struct span *texts, size_t count);

void ask_fini(struct ask *ask);

#endif
