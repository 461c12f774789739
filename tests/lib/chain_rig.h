/* chain_rig.h - chains built in one line, for tests of what they are.
 *
 * A rig owns its chain until chain_rig_free_built.  Bodies are string literals put
 * together from the macros below. */
#ifndef TESTS_LIB_CHAIN_RIG_H
#define TESTS_LIB_CHAIN_RIG_H

#include "common/codec/chain.h"

/* 1,600 bytes of prose, so that a shared part is worth splitting. */
#define P10  "policy text "
#define P100 P10 P10 P10 P10 P10 P10 P10 P10
#define PROSE                                                                           \
	P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 P100 \
		P100

#define DOC(mark) "{\"type\":\"text\",\"text\":\"" PROSE "\"" mark "}"
#define MARK      ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define MARK1     ",\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"
#define USER(text, mark)                                                                \
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"" mark \
	"}]}"
#define SAYS(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

struct chain_rig {
	struct chain chain;
	struct chain_error error;
	int err;
};

/* Builds; the error, if any, is in the rig. */
struct chain_rig chain_rig_build_as(enum dialect dialect, const char *body,
                                    const char *prefix, struct chain_shared shared);

/* The same without a declaration of what is shared. */
struct chain_rig chain_rig_build_auto(enum dialect dialect, const char *body,
                                      const char *prefix);

/* Builds what must be built: anthropic, anthropic with a declaration, openai-chat. */
struct chain_rig chain_rig_build(const char *body);
struct chain_rig chain_rig_build_shared(const char *body, enum chain_shared_kind kind,
                                        uint32_t n);
struct chain_rig chain_rig_build_chat(const char *body);

/* The node of a tier, or NULL. */
const struct chain_node *chain_rig_node(const struct chain_rig *built, enum tier tier);

/* What the job has of its own, read again; it borrows from the chain. */
struct part_own chain_rig_own(const struct chain_rig *built);

/* Whether both have the same node there; if so, its bytes must be the same, too. */
bool chain_rig_same_node(const struct chain_rig *a, const struct chain_rig *b,
                         enum tier tier);

/* Whether the segment is that text; prints it if not. */
bool chain_rig_segment_is(const struct chain_rig *built, enum tier tier,
                          const char *text);

void chain_rig_free_built(struct chain_rig *built);

#endif
