#include "scheduler/core/note.h"

#include "scheduler/core/state.h"

static void
put(struct core *core, struct command_note note)
{
	struct note_queue *queue = &core->notes;

	VERIFY(note.kind < COMMAND_NOTE_KIND_COUNT);
	if (core->recovering)
		return; /* old news */
	if (queue->count == NOTE_MAX) {
		queue->lost++;
		return;
	}
	queue->notes[(queue->first + queue->count) % NOTE_MAX] = note;
	queue->count++;
}

void
note_lane(struct core *core, enum command_note_kind kind, uint32_t lane, uint64_t a,
          uint64_t b, uint64_t c)
{
	VERIFY(lane < core->config.lanes_max);
	put(core,
	    (struct command_note){
		    .kind = kind, .lane = core->lanes[lane].id, .a = a, .b = b, .c = c });
}

void
note_id(struct core *core, enum command_note_kind kind, struct id128 id, uint64_t a,
        uint64_t b)
{
	put(core, (struct command_note){ .kind = kind, .id = id, .a = a, .b = b });
}

bool
note_pop(struct core *core, struct command_note *ret_note)
{
	struct note_queue *queue = &core->notes;

	VERIFY(queue->first < NOTE_MAX);
	VERIFY(queue->count <= NOTE_MAX);
	if (queue->count == 0) {
		if (queue->lost == 0)
			return false;
		*ret_note = (struct command_note){ .kind = COMMAND_NOTE_LOST,
			                           .a = queue->lost };
		queue->lost = 0;
		return true;
	}
	*ret_note = queue->notes[queue->first];
	queue->first = (queue->first + 1) % NOTE_MAX;
	queue->count--;
	return true;
}
