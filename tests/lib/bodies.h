/* bodies.h - random requests, spelt in random ways, and the undoing of what we add.
 *
 * A body is drawn as a JSON value; spelling it again gives other bytes with the same
 * meaning: white space, escapes, order of top-level keys, `role` behind `content`, a
 * string in place of one text block.  jansson is the judge of equality, so nothing of
 * the product's own JSON is trusted here. */
#ifndef TESTS_LIB_BODIES_H
#define TESTS_LIB_BODIES_H

#include "common/buffer.h"
#include "common/codec/splice.h"
#include "common/prng.h"

#include <jansson.h>

#define BODIES_CACHE_KEY "wq-0123456789abcdef-0" /* what a test gives as cache key */

/* A request an SDK could have sent.  `big` makes the system part pass the split bound. */
json_t *bodies_draw(struct prng *prng, enum dialect dialect, bool big);

/* Appends `body` in one of its spellings. */
void bodies_spell(struct prng *prng, const json_t *body, struct buffer *out);

/* A copy in the one form that all equal requests share: null markers dropped, content of
 * one plain text block as a string. */
json_t *bodies_normal(const json_t *body);

/* Cuts out the edits of a report and sets back what was false or null.  NULL if the rest
 * is not JSON, or an edit is not in the transformation table. */
json_t *bodies_undo(struct span sent, const struct splice_report *report,
                    const struct dialect_traits *traits);

#endif
