#include "scheduler/ruler_unheld.h"

#include "scheduler/ruler_clock.h"
#include "scheduler/ruler_core.h"
#include "scheduler/ruler_note.h"
#include "scheduler/ruler_rebuild.h"
#include "scheduler/ruler_view_json.h"

#define ROUTE_SEED 0x726f757465 /* "route" */

struct id128
ruler_unheld_id(const char *route)
{
	struct id_hash hash;

	id_hash_init(&hash, ROUTE_SEED);
	id_hash_field(&hash, span_from(route));
	return id_hash_final(&hash);
}

static uint32_t
find(const struct ruler *ruler, struct span route)
{
	for (uint32_t i = 0; i < ruler->unheld_count; i++)
		if (span_equals(route, span_from(ruler->unheld[i])))
			return i;
	return UINT32_MAX;
}

bool
ruler_unheld_has(const struct ruler *ruler, const char *route)
{
	return find(ruler, span_from(route)) != UINT32_MAX;
}

/* False if it is no news, or one too many. */
static bool
keep(struct ruler *ruler, bool on, struct span route)
{
	uint32_t at = find(ruler, route);

	if (on == (at == UINT32_MAX))
		return false;
	if (!on && ruler->unheld_count == EVENT_UNHELD_MAX)
		return false;
	if (on) {
		ruler->unheld_count--;
		memmove(ruler->unheld[at], ruler->unheld[ruler->unheld_count],
		        sizeof(ruler->unheld[0]));
	} else {
		ruler_copy(ruler->unheld[ruler->unheld_count++], RULER_ROUTE_SIZE, route);
	}
	return true;
}

static void
tell(struct ruler *ruler, uint64_t now_ms, bool on, const char *route)
{
	struct event event = { .kind = EVENT_HOLD };

	event.hold.on = on;
	event.hold.route = ruler_unheld_id(route);
	ruler_core_tell(ruler, now_ms, &event);
}

void
ruler_unheld_set(struct ruler *ruler, uint64_t now_ms, bool on, struct span route,
                 struct span who)
{
	char name[RULER_ROUTE_SIZE];

	ruler_copy(name, sizeof(name), route); /* it may be one of ours */
	if (!keep(ruler, on, span_from(name)))
		return;
	ruler_note_job(ruler, RULER_WARNING, SPAN(""), span_from(name),
	               "holding of this route was switched %s by %.*s", on ? "on" : "off",
	               (int)MIN(who.len, 100), who.data);
	tell(ruler, now_ms, on, name);
	ruler_clock_audit_anew(ruler);
	ruler_clock_hurry(ruler, RULER_TIMER_AUDIT, now_ms);
}

/* ---- a look ---------------------------------------------------------------------- */

void
ruler_unheld_ask(struct ruler *ruler, struct call_list *out)
{
	call_begin(out, ruler_tag(ruler, RULER_CALL_UNHELD, 0));
	call_text(out, "HKEYS");
	protocol_call_key(out, ruler->config->ns, "unheld");
}

static bool
is_listed(const struct reply *reply, const char *route)
{
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i < reply->count; i++)
		if (reply_is(&reply->items[i], route))
			return true;
	return false;
}

void
ruler_unheld_on_routes(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	(void)index;
	for (uint32_t i = ruler->unheld_count; i-- > 0;)
		if (!is_listed(reply, ruler->unheld[i]))
			ruler_unheld_set(ruler, now_ms, true, span_from(ruler->unheld[i]),
			                 SPAN("somebody"));
	for (size_t i = 0; reply->kind == REPLY_ARRAY && i < reply->count; i++)
		ruler_unheld_set(ruler, now_ms, false, reply_text(&reply->items[i]),
		                 SPAN("somebody"));
	if (ruler->phase == RULER_REBUILDING)
		ruler_rebuild_routes_done(ruler);
}

void
ruler_unheld_clear(struct ruler *ruler)
{
	ruler->unheld_count = 0;
}

/* ---- pages ----------------------------------------------------------------------- */

void
ruler_unheld_put(const struct ruler *ruler, struct buffer *out)
{
	ruler_view_json_open(out, "unheld", '[');
	for (uint32_t i = 0; i < ruler->unheld_count; i++)
		ruler_view_json_text(out, NULL, span_from(ruler->unheld[i]));
	ruler_view_json_close(out, ']');
}
