#include "tests/sim/agenda.h"

#include <stdlib.h>

void
agenda_fini(struct agenda *agenda)
{
	free(agenda->entries);
	*agenda = (struct agenda){ 0 };
}

static bool
precedes(const struct agenda_entry *a, const struct agenda_entry *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->sequence < b->sequence;
}

static void
sift_up(struct agenda *agenda, size_t at)
{
	struct agenda_entry moving = agenda->entries[at];

	while (at > 0 && precedes(&moving, &agenda->entries[(at - 1) / 2])) {
		agenda->entries[at] = agenda->entries[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	agenda->entries[at] = moving;
}

static void
sift_down(struct agenda *agenda)
{
	struct agenda_entry moving = agenda->entries[0];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= agenda->count)
			break;
		if (child + 1 < agenda->count &&
		    precedes(&agenda->entries[child + 1], &agenda->entries[child]))
			child++;
		if (!precedes(&agenda->entries[child], &moving))
			break;
		agenda->entries[at] = agenda->entries[child];
		at = child;
	}
	agenda->entries[at] = moving;
}

void
agenda_at(struct agenda *agenda, uint64_t at_us, agenda_fn *run, void *context,
          uint64_t number)
{
	if (agenda->count == agenda->room) {
		agenda->room = agenda->room ? agenda->room * 2 : 256;
		agenda->entries =
			realloc(agenda->entries, agenda->room * sizeof *agenda->entries);
		VERIFY(agenda->entries);
	}
	agenda->entries[agenda->count++] = (struct agenda_entry){
		.at_us = MAX(at_us, agenda->now_us),
		.sequence = agenda->sequence++,
		.run = run,
		.context = context,
		.number = number,
	};
	sift_up(agenda, agenda->count - 1);
}

void
agenda_in(struct agenda *agenda, uint64_t delay_us, agenda_fn *run, void *context,
          uint64_t number)
{
	agenda_at(agenda, agenda->now_us + delay_us, run, context, number);
}

bool
agenda_step(struct agenda *agenda)
{
	struct agenda_entry entry;

	if (agenda->count == 0)
		return false;
	entry = agenda->entries[0];
	agenda->entries[0] = agenda->entries[--agenda->count];
	if (agenda->count > 0)
		sift_down(agenda);
	VERIFY(entry.at_us >= agenda->now_us);
	agenda->now_us = entry.at_us;
	agenda->steps++;
	entry.run(entry.context, entry.number);
	return true;
}
