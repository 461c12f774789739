/* spoil.h - an answer bent to a fault: cut, dripped, stalled, turned into garbage.
 *
 * Works on the script alone, so what a fault does can be read and tested without a
 * socket.  FAULT_LOSE_REPLY is not done here: nothing of its script is sent. */
#ifndef PROVIDER_SPOIL_H
#define PROVIDER_SPOIL_H

#include "provider/ask.h"
#include "provider/model/fault_model.h"
#include "provider/script.h"
#include "provider/settings.h"

struct spoil {
	enum fault fault;
	enum ask_dialect dialect;
	bool stream;
	uint64_t decode_us;
	const struct settings *settings;
};

/* Bends the script and answers the status the answer has now: 200, or 500 for a whole
 * answer that fails late.  Without a fault only the knob sse_split is applied. */
int spoil_apply(const struct spoil *spoil, struct script *script);

#endif
