/* frames.h - server-sent events, and all the noise a parser has to live with.
 *
 *   event: message_start
 *   data: {"type":"message_start", ...   }          padding inside the JSON
 *   (empty line)
 *   : keep-alive                                    comment
 *   event: ping
 *   data: {"type": "ping"}                          blanks where nobody expects them
 *
 * Each event becomes one piece of the script, with the noise the knobs ask for before
 * it.  Without any knob there is one ping, after the first event, as in real life. */
#ifndef PROVIDER_FRAMES_H
#define PROVIDER_FRAMES_H

#include "provider/script.h"
#include "provider/settings.h"

struct frames {
	struct script *script;
	const struct settings *settings;
	bool pings; /* the dialect has them */
	uint64_t count;
};

/* `event` NULL: a data line only.  `json` is one object, or a word like [DONE]. */
void frames_add(struct frames *frames, const char *event, struct span json,
                uint64_t due_us);

#endif
