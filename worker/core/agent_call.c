#include "worker/core/agent_call.h"

struct flight *
agent_call_open(struct agent *agent, struct call_list *calls, enum flight_kind kind,
                size_t bytes)
{
	if (flight_is_full(&agent->flights))
		return NULL; /* an answer will make room */
	if (!call_fits(calls, AGENT_CALL_ARGS, (uint32_t)(AGENT_CALL_BYTES + bytes))) {
		/* What does not fit behind others fits an empty list. */
		VERIFY(calls->call_count > 0);
		agent->is_dirty = true;
		return NULL;
	}
	return flight_add(&agent->flights, kind, agent->now_ms);
}

struct protocol_usage
agent_call_usage(const struct agent *agent, struct protocol_usage usage)
{
	if (usage.sent_ms != PROTOCOL_UNKNOWN)
		usage.sent_ms =
			(int64_t)offset_redis_ms(&agent->offset, (uint64_t)usage.sent_ms);
	if (usage.first_ms != PROTOCOL_UNKNOWN)
		usage.first_ms = (int64_t)offset_redis_ms(&agent->offset,
		                                          (uint64_t)usage.first_ms);
	return usage;
}

struct protocol_delivery
agent_call_delivery(const struct agent_outcome *outcome)
{
	return (struct protocol_delivery){ outcome->reply, outcome->result_ttl_ms,
		                           outcome->result };
}

size_t
agent_call_bytes(const struct agent_outcome *outcome)
{
	return outcome->reason.len + outcome->text.len + outcome->reply.len +
	       outcome->result.len;
}
