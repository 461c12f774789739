/* note.h - what humans should hear: a bounded queue; what does not fit is counted. */
#ifndef SCHEDULER_CORE_NOTE_H
#define SCHEDULER_CORE_NOTE_H

#include "common/base.h"
#include "scheduler/core/command.h"

#define NOTE_MAX 64

struct core;

struct note_queue {
	struct command_note notes[NOTE_MAX];
	uint32_t first, count;
	uint64_t lost;
};

void note_lane(struct core *core, enum command_note_kind kind, uint32_t lane, uint64_t a,
               uint64_t b, uint64_t c);
void note_id(struct core *core, enum command_note_kind kind, struct id128 id, uint64_t a,
             uint64_t b);

/* Moves the oldest note out; false if there is none. */
bool note_pop(struct core *core, struct command_note *ret_note);

#endif
