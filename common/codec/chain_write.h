/* chain_write.h - the bytes of segments, own part and tail, written from a shape.
 *
 *   {"model":…,"tools":[…]  │ ,"system":…  │ ,"messages":[{…  │ …}]  │ ,"max_tokens":…}
 *            T                     S                M            own        tail
 *
 * All pieces go into one buffer, in this order and without a gap, so their concatenation
 * is the body.  A marker of the user's on a tier's last markable block is left out and
 * noted; null markers are left out everywhere; one plain text block becomes a string. */
#ifndef COMMON_CODEC_CHAIN_WRITE_H
#define COMMON_CODEC_CHAIN_WRITE_H

#include "common/buffer.h"
#include "common/codec/chain_shape.h"

/* What one segment became; offsets are relative to its first byte. */
struct chain_piece {
	size_t from; /* in the buffer */
	size_t len;
	enum part_end end;
	enum part_role role;
	size_t wrap_at;
	size_t mark_at;
	enum part_mark user; /* taken out at the boundary */
	uint32_t boundary;   /* token of the last markable block, or TAPE_NONE */
	bool fixed;          /* that block keeps a marker of the user's */
};

struct chain_writer {
	const struct chain_shape *shape;
	const struct chain_cut *cut;
	struct buffer *out;
	size_t body_from;
	struct chain_piece *piece; /* being written */
	uint32_t strip;            /* marker key to leave out, or TAPE_NONE */
	bool messages_open;        /* the messages array has been begun */
	uint32_t next_message;     /* first message not yet written in full */
	uint32_t next_block;       /* in an open message: first block not yet written, */
	uint32_t blocks_end;       /* and the token behind the last one */
	enum part_end end;         /* how the last piece left the messages */
};

void chain_write_init(struct chain_writer *writer, const struct chain_shape *shape,
                      const struct chain_cut *cut, struct buffer *out);

/* Each once, in this order; a tier that is no node of the chain is skipped. */
void chain_write_tools(struct chain_writer *writer, struct chain_piece *ret_piece);
void chain_write_system(struct chain_writer *writer, struct chain_piece *ret_piece);
void chain_write_messages(struct chain_writer *writer, struct chain_piece *ret_piece);

/* The rest of system and messages, then the tail.  Answers the length of the first. */
size_t chain_write_own(struct chain_writer *writer, bool has_system);
void chain_write_tail(struct chain_writer *writer);

/* The settings object of a tier: members of the tail that its identity depends on. */
void chain_write_settings(const struct chain_shape *shape, enum tier tier,
                          struct buffer *out);

#endif
