#include "provider/script.h"

#include <stdlib.h>

void
script_init(struct script *script)
{
	*script = (struct script){ .bytes = BUFFER_INIT(BUFFER_SIZE_DEFAULT),
		                   .usage_piece = UINT32_MAX };
}

void
script_fini(struct script *script)
{
	buffer_fini(&script->bytes);
	free(script->pieces);
	script->pieces = NULL;
	script->count = script->room = 0;
}

static void
add(struct script *script, size_t end, uint64_t due_us)
{
	if (script->count == script->room) {
		uint32_t room = MAX(16, script->room * 2);
		struct script_piece *pieces =
			realloc(script->pieces, room * sizeof *pieces);

		if (!pieces) {
			script->error = ERR_MEMORY;
			return;
		}
		script->pieces = pieces;
		script->room = room;
	}
	script->pieces[script->count++] = (struct script_piece){ end, due_us };
}

void
script_add(struct script *script, uint64_t due_us)
{
	add(script, script->bytes.len, due_us);
}

void
script_mark_usage(struct script *script)
{
	if (script->usage_piece == UINT32_MAX)
		script->usage_piece = script->count;
}

int
script_error(const struct script *script)
{
	return script->error < 0 ? script->error : buffer_error(&script->bytes);
}

void
script_cut(struct script *script, uint32_t count, enum script_ending ending)
{
	script->count = MIN(script->count, count);
	script->ending = ending;
}

/* Takes the pieces away and hands them out again in smaller ones: of `size` bytes, or,
 * with size 0, in two, at a place that depends on the piece's number. */
static void
recut(struct script *script, size_t size, uint64_t gap_us)
{
	struct script_piece *old = script->pieces;
	uint32_t count = script->count, usage = script->usage_piece;
	uint64_t due_us = 0;
	size_t start = 0;

	script->pieces = NULL;
	script->count = script->room = 0;
	for (uint32_t i = 0; i < count && script->error == 0; i++) {
		size_t first = size > 0 ? size : (old[i].end - start) * (1 + i % 7) / 8;

		if (i == usage)
			script->usage_piece = script->count;
		due_us = MAX(old[i].due_us, due_us);
		add(script, MIN(start + MAX(first, 1), old[i].end), due_us);
		while (script->error == 0 &&
		       script->pieces[script->count - 1].end < old[i].end) {
			start = script->pieces[script->count - 1].end;
			due_us += gap_us;
			add(script, size > 0 ? MIN(start + size, old[i].end) : old[i].end,
			    due_us);
		}
		start = old[i].end;
	}
	free(old);
}

void
script_drip(struct script *script, size_t size, uint64_t gap_us)
{
	VERIFY(size > 0);
	recut(script, size, gap_us);
}

void
script_split(struct script *script, uint64_t gap_us)
{
	recut(script, 0, gap_us);
}
