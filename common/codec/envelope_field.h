/* envelope_field.h - one field of a job: from its text to its place in the envelope.
 *
 *   "hold_max", "20s" ── row of envelope_fields[] ──► envelope.hold_max_ms = 20000
 *                              └─► "`hold_max` must be …, not 30"
 *
 * The table is the list that producers read in docs/ENVELOPE.md: a test holds one against
 * the other.  A field that is named there but not built is ERR_UNSUPPORTED, a name that
 * is not there ERR_MALFORMED with the nearest known one: nothing is ignored in silence.
 *
 * Spans of the envelope borrow from the value, or from the scratch where a value had to
 * be written anew (betas in one order). */
#ifndef COMMON_CODEC_ENVELOPE_FIELD_H
#define COMMON_CODEC_ENVELOPE_FIELD_H

#include "common/codec/envelope.h"

/* All defaults. */
void envelope_field_defaults(struct envelope *envelope);

/* The row of that name, or NULL. */
const struct envelope_field *envelope_field_find(struct span name);

/* Parses `value` into its place.  `entry_ms`: base of relative times.  `scratch` has
 * room for the value twice and does not move.  0, ERR_MALFORMED or ERR_UNSUPPORTED. */
MUST_USE int envelope_field_parse(const struct envelope_field *field, struct span value,
                                  uint64_t entry_ms, struct buffer *scratch,
                                  struct envelope *envelope,
                                  struct envelope_error *reterr);

/* The fault "there is no field `hold-max`; did you mean `hold_max`?". */
int envelope_field_unknown(struct span name, struct envelope_error *reterr);

/* Fills an error.  `name` may be NULL. */
int envelope_field_refuse(struct envelope_error *error, const char *name,
                          const char *format, ...) PRINTF(3, 4);

#endif
