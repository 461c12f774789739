#include "worker/note.h"

#include "common/io/log.h"

void
note_log(const struct agent_command *command)
{
	uint64_t number = command->number;

	switch (command->note) {
	case AGENT_NOTE_SESSION:
		log_info("attached to Redis; claiming jobs");
		return;
	case AGENT_NOTE_GONE:
		log_warning("Redis no longer knows this session; a new one begins");
		return;
	case AGENT_NOTE_FENCED:
		log_warning("no beat reached Redis for too long; leaders are stopped",
		            LOG_NUMBER("silent_ms", number));
		return;
	case AGENT_NOTE_ORPHAN:
		log_warning("the lease of a running job is gone; its result is offered "
		            "when it comes",
		            LOG_NUMBER("slot", number));
		return;
	case AGENT_NOTE_UNKNOWN:
		log_info("a lease that nobody here knows is given back",
		         LOG_NUMBER("slot", number));
		return;
	case AGENT_NOTE_RESENT:
		log_warning("Redis forgot a result; it is sent again",
		            LOG_NUMBER("slot", number));
		return;
	case AGENT_NOTE_REFUSED:
		log_info("a late result was not wanted any more",
		         LOG_SPAN("job", command->text));
		return;
	case AGENT_NOTE_ACCEPTED:
		log_info("a late result was accepted", LOG_SPAN("job", command->text));
		return;
	case AGENT_NOTE_ENDED:
		log_info("a running job was ended from outside",
		         LOG_NUMBER("slot", number));
		return;
	case AGENT_NOTE_SLOW:
		log_warning("a leader was too slow and was stopped",
		            LOG_NUMBER("slot", number));
		return;
	case AGENT_NOTE_MISSING:
		log_warning("Redis cannot serve yet; waiting for the scheduler",
		            LOG_SPAN("answer", command->text));
		return;
	case AGENT_NOTE_ERROR:
		log_error("Redis answered what was not expected",
		          LOG_SPAN("answer", command->text));
		return;
	case AGENT_NOTE_TIMEOUT:
		log_warning("Redis did not answer; the connection is made anew",
		            LOG_NUMBER("waited_ms", number));
		return;
	case AGENT_NOTE_COUNT:
		break;
	}
}

void
note_farewell(const struct agent *agent, const struct lag *lag)
{
	struct agent_stats stats;

	agent_stats(agent, &stats);
	log_info("stopped", LOG_NUMBER("claimed", stats.claimed),
	         LOG_NUMBER("settled", stats.settled), LOG_NUMBER("failed", stats.failed),
	         LOG_NUMBER("given_back", stats.released),
	         LOG_NUMBER("longest_hold_up_ms", lag->worst_ns / 1000000),
	         LOG_TEXT("of", lag->worst_what));
}
