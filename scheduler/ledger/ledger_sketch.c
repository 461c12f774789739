#include "scheduler/ledger/ledger_sketch.h"

#include "common/id.h"

#define PIECE 64 /* bytes */
#define ENDS  (LEDGER_SKETCH_PIECES / 2)

static uint32_t
piece_of(struct span bytes, size_t from)
{
	return (uint32_t)id_of((struct span){ bytes.data + from, PIECE }, 0).low | 1;
}

static uint32_t
sum_of(struct span bytes)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes.len; i++)
		sum += (unsigned char)bytes.data[i];
	return sum;
}

struct ledger_sketch
ledger_sketch_of(struct span bytes)
{
	struct ledger_sketch sketch = {
		.len = (uint32_t)MIN(bytes.len, UINT32_MAX),
		.sum = sum_of(bytes),
	};
	size_t distance = 256;

	for (uint32_t i = 0; i < ENDS; i++, distance *= 4) {
		if (distance + PIECE > bytes.len)
			break;
		sketch.pieces[i] = piece_of(bytes, distance);
		sketch.pieces[ENDS + i] = piece_of(bytes, bytes.len - distance - PIECE);
	}
	return sketch;
}

bool
ledger_sketch_resembles(const struct ledger_sketch *a, const struct ledger_sketch *b)
{
	uint32_t both = 0, equal = 0;

	if (a->len == 0 || b->len == 0)
		return false;
	if (a->len == b->len && a->sum == b->sum)
		return true;
	for (uint32_t i = 0; i < LEDGER_SKETCH_PIECES; i++) {
		both += a->pieces[i] != 0 && b->pieces[i] != 0;
		equal += a->pieces[i] != 0 && a->pieces[i] == b->pieces[i];
	}
	return both > 0 && equal * 2 >= both;
}
