#include "scheduler/core/command.h"

const char *
command_kind_text(enum command_kind kind)
{
	static const char *const texts[] = {
		[COMMAND_GRANT] = "GRANT",   [COMMAND_BUDGET] = "BUDGET",
		[COMMAND_GLANCE] = "GLANCE", [COMMAND_REBUILD] = "REBUILD",
		[COMMAND_NOTE] = "NOTE",
	};

	VERIFY(kind < COMMAND_KIND_COUNT);
	return texts[kind];
}

const char *
command_note_text(enum command_note_kind kind)
{
	static const char *const texts[] = {
		[COMMAND_NOTE_GATE] = "gate",
		[COMMAND_NOTE_LEARNED] = "learned",
		[COMMAND_NOTE_CORRECTED] = "corrected",
		[COMMAND_NOTE_LAG] = "lag",
		[COMMAND_NOTE_TRUST] = "trust",
		[COMMAND_NOTE_LATE] = "late",
		[COMMAND_NOTE_REVOKED] = "revoked",
		[COMMAND_NOTE_NO_CALL] = "no call",
		[COMMAND_NOTE_PACE] = "pace",
		[COMMAND_NOTE_PARKED] = "parked",
		[COMMAND_NOTE_SPEND] = "spend",
		[COMMAND_NOTE_LIMIT] = "limit",
		[COMMAND_NOTE_OVERDUE] = "overdue",
		[COMMAND_NOTE_FULL] = "full",
		[COMMAND_NOTE_WARM] = "warm",
		[COMMAND_NOTE_LOST] = "lost",
	};

	VERIFY(kind < COMMAND_NOTE_KIND_COUNT);
	return texts[kind];
}
