/* script.h - an answer written before it is sent: pieces of bytes and when they are due.
 *
 *   due_us  0          250,000      500,000        1,000,000
 *           ├ start ───┼ delta ─────┼ delta ───────┼ usage, stop ─┤ ending
 *
 * Times count from the first byte of the answer.  Writing the whole answer at once keeps
 * sending trivial, and lets a fault be a transformation: cut it, drip it, spoil it. */
#ifndef PROVIDER_SCRIPT_H
#define PROVIDER_SCRIPT_H

#include "common/base.h"
#include "common/buffer.h"
#include "common/error.h"

enum script_ending {
	SCRIPT_END,   /* as HTTP wants it */
	SCRIPT_CLOSE, /* the connection goes away without a word */
	SCRIPT_STALL, /* silence until the client goes */
};

struct script_piece {
	size_t end;      /* of its bytes in the script */
	uint64_t due_us; /* never earlier than the piece before */
};

struct script {
	struct buffer bytes;
	struct script_piece *pieces; /* malloc()ed */
	uint32_t count;
	uint32_t room;
	uint32_t usage_piece; /* the first one that carries usage; `count` if none does */
	enum script_ending ending;
	int error; /* the first one sticks */
};

void script_init(struct script *script);
void script_fini(struct script *script);

/* Ends a piece: what was appended to `bytes` since the last one. */
void script_add(struct script *script, uint64_t due_us);

/* Notes that the piece to come is the first with usage; later calls change nothing. */
void script_mark_usage(struct script *script);

/* 0, ERR_MEMORY or ERR_LIMIT. */
MUST_USE int script_error(const struct script *script);

/* Drops pieces from `count` on and ends as told. */
void script_cut(struct script *script, uint32_t count, enum script_ending ending);

/* Cuts all pieces into smaller ones of at most `size` bytes, `gap_us` apart. */
void script_drip(struct script *script, size_t size, uint64_t gap_us);

/* Cuts every piece in two, `gap_us` apart, at a place that depends on its number. */
void script_split(struct script *script, uint64_t gap_us);

#endif
