#include "common/codec/marker.h"

static bool
is_users(const struct marker_request *request, unsigned i)
{
	const struct part_px *px = &request->px[i];

	return (px->flags & PART_FIXED) || request->own->user[px->tier] != PART_MARK_NONE;
}

/* Tokens up to the end of px i, a third on the safe side: the estimate is for English,
 * and a marker below the minimum costs nothing. */
static uint64_t
tokens_at_most(const struct marker_request *request, unsigned i)
{
	uint64_t tokens = 0;

	for (unsigned k = 0; k <= i; k++)
		tokens += request->px[k].tokens;
	return tokens + tokens / 2;
}

static unsigned
slots_used(const struct marker_request *request)
{
	return request->own->explicit_count +
	       (request->own->automatic != TTL_NONE ? 1 : 0);
}

/* Providers want lifetimes to fall along the request. */
static bool
order_holds(const struct marker_request *request, unsigned i)
{
	const struct part_px *px = &request->px[i];
	enum ttl earlier = request->own->earlier[px->tier];
	enum ttl later = request->own->later[px->tier];

	return (earlier == TTL_NONE || px->ttl <= earlier) &&
	       (later == TTL_NONE || px->ttl >= later);
}

static enum marker_reason
judge(const struct marker_request *request, unsigned i, unsigned inserted)
{
	if (request->traits->markers == MARKER_NONE)
		return MARKER_NOT_NEEDED;
	if (is_users(request, i))
		return MARKER_USERS;
	if (request->never)
		return MARKER_FORBIDDEN;
	if (!(request->want & 1u << i))
		return MARKER_NOT_WANTED;
	if (request->px[i].mark_at == PART_NOWHERE)
		return MARKER_NO_PLACE;
	if (tokens_at_most(request, i) < request->traits->tokens_min)
		return MARKER_SMALL;
	if (slots_used(request) + inserted >= request->traits->markers_max)
		return MARKER_NO_SLOT;
	if (!order_holds(request, i))
		return MARKER_TTL_ORDER;
	return MARKER_INSERTED;
}

void
marker_plan(const struct marker_request *request, struct marker_plan *ret_plan)
{
	struct marker_plan plan = { 0 };
	unsigned inserted = 0;
	bool boundary = true, ancestor_done = false;

	VERIFY(request->px_count <= PART_NODES_MAX);
	for (unsigned i = request->px_count; i-- > 0; boundary = false) {
		enum marker_reason reason = judge(request, i, inserted);
		bool wanted = (request->want & 1u << i) != 0;

		/* One ancestor is enough: the deepest wanted one, whoever marks it. */
		if (!boundary && ancestor_done && reason == MARKER_INSERTED)
			reason = MARKER_COVERED;
		if (!boundary && wanted &&
		    (reason == MARKER_INSERTED || reason == MARKER_USERS))
			ancestor_done = true;
		/* Ours must not outlive one of ours before it. */
		if (reason == MARKER_INSERTED && !boundary &&
		    (plan.insert & ~(1u << i)) &&
		    request->px[i].ttl < request->px[request->px_count - 1].ttl)
			reason = MARKER_TTL_ORDER;

		plan.reason[i] = reason;
		if (reason == MARKER_INSERTED) {
			plan.insert |= 1u << i;
			inserted++;
		}
		if (reason == MARKER_INSERTED || (is_users(request, i)))
			plan.wire |= 1u << i;
	}
	*ret_plan = plan;
}

const char *
marker_reason_text(enum marker_reason reason)
{
	switch (reason) {
#define X(name, text) \
	case name:    \
		return text;
		MARKER_REASON_LIST(X)
#undef X
	case MARKER_REASON_COUNT:
		break;
	}
	return "unknown";
}
