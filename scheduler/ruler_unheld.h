/* ruler_unheld.h - the routes whose holding is switched off, as ns:unheld has them.
 *
 *   hold off <who> <route> ─► ns:unheld, event ─► the core: its families, old and new
 *                                             └─► an audit: the flag in their records
 *
 * Families that are admitted meanwhile carry the flag already; an audit that began before
 * the event was heard is begun anew, so none is left out. */
#ifndef SCHEDULER_RULER_UNHELD_H
#define SCHEDULER_RULER_UNHELD_H

#include "scheduler/ruler_state.h"

/* What the core calls a route. */
struct id128 ruler_unheld_id(const char *route);

bool ruler_unheld_has(const struct ruler *ruler, const char *route);

/* The core is new: it knows of none. */
void ruler_unheld_clear(struct ruler *ruler);

/* Somebody has switched it. */
void ruler_unheld_set(struct ruler *ruler, uint64_t now_ms, bool on, struct span route,
                      struct span who);

/* The names of ns:unheld, and their answer: at a take-over, and every few seconds, since
 * an event may be lost. */
void ruler_unheld_ask(struct ruler *ruler, struct call_list *out);
void ruler_unheld_on_routes(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                            const struct reply *reply);

/* "unheld": [names], for pages. */
void ruler_unheld_put(const struct ruler *ruler, struct buffer *out);

#endif
