#include "scheduler/ruler_warm.h"

#include "common/codec/protocol_call.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_note.h"

#define WISH_MS      60000 /* older ones are dropped: nobody waits for them any more */
#define TOLD_SECONDS 60

static const char *const reasons[CORE_WARM_COUNT] = {
	[CORE_WARM_YES] = "one request writes it now, ahead of its jobs",
	[CORE_WARM_UNKNOWN] =
		"nothing is known of its prefix any more: it comes back with "
		"its next job",
	[CORE_WARM_OFF] =
		"its jobs are not held: holding is off for it, or its upstream is "
		"not held, or the scheduler remembers no more families (see its log)",
	[CORE_WARM_SMALL] = "it is too short: its model caches nothing so short",
	[CORE_WARM_UNSHARED] = "one job only has had this prefix so far",
	[CORE_WARM_UNCACHEABLE] =
		"its provider does not cache it, or it was never read back",
	[CORE_WARM_OPEN] = "it is warm already",
	[CORE_WARM_WRITTEN] =
		"it is written already; the next job shows that it can be read",
	[CORE_WARM_WRITING] = "it, or a part it stands on, is being written already",
	[CORE_WARM_PAUSED] = "it is paused: resume it first",
	[CORE_WARM_PARKED] = "its account is parked",
	[CORE_WARM_NO_CALL] =
		"its provider takes no request that only writes: a job has to",
	[CORE_WARM_NO_WORKER] = "no live worker serves its pool",
	[CORE_WARM_WORK] = "its jobs wait already: one of them writes it",
	[CORE_WARM_BUSY] =
		"another prefix of this account is being written ahead: one at a "
		"time",
	[CORE_WARM_LATER] = "it has just failed or changed: ask again in some seconds",
};

const char *
ruler_warm_reason(enum core_warm verdict)
{
	VERIFY(verdict < CORE_WARM_COUNT);
	return reasons[verdict];
}

const char *
ruler_warm_reason_of(struct span word)
{
	for (int i = 0; i < CORE_WARM_COUNT; i++)
		if (span_equals(word, span_from(core_warm_text((enum core_warm)i))))
			return reasons[i];
	return NULL;
}

void
ruler_warm_ask(struct ruler *ruler, uint64_t now_ms, uint64_t at_ms, struct id128 family,
               struct span who)
{
	const struct event event = { .kind = EVENT_WARM, .family.id = family };
	uint32_t place = ruler_shelf_find(&ruler->known.family_shelf, family);
	struct ruler_note about = { 0 };
	char hex[ID_HEX_LEN];

	if (at_ms + WISH_MS < now_ms)
		return;
	id_encode(family, hex);
	about.family = (struct span){ hex, ID_HEX_LEN };
	if (place != RULER_SHELF_NONE)
		about.route = span_from(ruler->known.families[place].route);
	if (who.len == 0)
		who = SPAN("somebody");
	ruler_note_about(ruler, RULER_INFO, &about,
	                 "%.*s asks for its prefix to be written ahead of its jobs",
	                 (int)MIN(who.len, 100), who.data);
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_warm_take(struct ruler *ruler, struct id128 family, enum core_warm verdict)
{
	if (ruler->warms_count < RULER_WARMS_MAX)
		ruler->warms[ruler->warms_count++] =
			(struct ruler_warm){ family, verdict };
}

void
ruler_warm_step(struct ruler *ruler, struct call_list *out)
{
	char name[8 + ID_HEX_LEN] = "warm:";

	while (ruler->warms_count > 0 && ruler_fits(out, 8, 256)) {
		const struct ruler_warm *warm = &ruler->warms[--ruler->warms_count];

		id_encode(warm->family, name + 5);
		name[5 + ID_HEX_LEN] = '\0';
		call_begin(out, ruler_tag(ruler, RULER_CALL_NOTE, 0));
		call_text(out, "SET");
		protocol_call_key(out, ruler->config->ns, name);
		call_text(out, core_warm_text(warm->verdict));
		call_text(out, "EX");
		call_integer(out, TOLD_SECONDS);
	}
}
