/* ledger_sketch.h - whether two prefixes are nearly the same bytes, without keeping them.
 *
 *   front  256  1k      4k           16k
 *   ├───────▪────▪───────▪────────────▪────── …
 *                   … ──────▪────────────▪───────▪────▪───────┤
 *                          16k           4k      1k  256   back
 *
 * Pieces at fixed distances from both ends, by their hash, and the sum of all bytes.  A
 * clock or an id somewhere leaves most pieces where they are, seen from one end; tools in
 * another order have the same length and sum.  Two documents with the same introduction
 * share a piece or two, and are documents. */
#ifndef SCHEDULER_LEDGER_LEDGER_SKETCH_H
#define SCHEDULER_LEDGER_LEDGER_SKETCH_H

#include "common/base.h"

#define LEDGER_SKETCH_PIECES 8 /* half of them from each end */

struct ledger_sketch {
	uint32_t len, sum;                     /* of bytes; len 0: not known */
	uint32_t pieces[LEDGER_SKETCH_PIECES]; /* 0: beyond the other end */
};

struct ledger_sketch ledger_sketch_of(struct span bytes);

/* False if one of them is not known. */
bool ledger_sketch_resembles(const struct ledger_sketch *a,
                             const struct ledger_sketch *b);

#endif
