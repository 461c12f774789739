#include "worker/note.h"

#include "worker/run_log.h"

/* Of a run, or of what was one: the slot says which. */
static bool
say_run(const struct agent_command *command, const struct run *run)
{
	static const struct {
		enum log_level level;
		const char *event;
	} lines[AGENT_NOTE_COUNT] = {
		[AGENT_NOTE_ORPHAN] = { LOG_LEVEL_WARNING,
		                        "the lease of a running job is gone; its result "
		                        "is offered when it comes" },
		[AGENT_NOTE_UNKNOWN] = { LOG_LEVEL_INFO,
		                         "a lease that nobody here knows is given back" },
		[AGENT_NOTE_RESENT] = { LOG_LEVEL_WARNING,
		                        "Redis forgot a result; it is sent again" },
		[AGENT_NOTE_ENDED] = { LOG_LEVEL_INFO,
		                       "a running job was ended from outside; its "
		                       "request is stopped" },
		[AGENT_NOTE_SLOW] = { LOG_LEVEL_WARNING,
		                      "a leader was too slow and was stopped; its job "
		                      "goes back to its queue" },
	};
	static struct log_site sites[AGENT_NOTE_COUNT];
	struct log_field fields[RUN_LOG_WHO_MAX + 3] = { { 0 } };
	size_t count;

	if (!lines[command->note].event)
		return false;
	/* A note that names its job is about none that runs in the slot by now. */
	count = run_log_who(command->text.len > 0 ? NULL : run, fields);
	if (command->text.len > 0)
		fields[count++] = LOG_SPAN("job", command->text);
	fields[count++] = LOG_NUMBER("slot", command->number);
	log_write(lines[command->note].level, &sites[command->note],
	          lines[command->note].event, fields, count);
	return true;
}

/* An upstream, a blank, the cause. */
static void
say_shunned(struct span text)
{
	struct span upstream = text;
	const char *blank = memchr(text.data, ' ', text.len);

	VERIFY(blank);
	upstream.len = (size_t)(blank - text.data);
	text.data += upstream.len + 1;
	text.len -= upstream.len + 1;
	log_error("this worker does not reach an upstream: it leaves its jobs to others "
	          "and "
	          "tries one now and then; check its configuration, network and proxy",
	          LOG_SPAN("upstream", upstream), LOG_SPAN("cause", text));
}

/* "ERR Protocol error: invalid bulk length": a value above proto-max-bulk-len. */
static void
say_error(struct span answer)
{
	if (memmem(answer.data, answer.len, "invalid bulk length", 19))
		log_error("Redis takes no value as large as a result that is to be "
		          "delivered; nothing is until its proto-max-bulk-len is raised",
		          LOG_SPAN("answer", answer));
	else
		log_error("Redis answered what was not expected; what is held is read "
		          "again",
		          LOG_SPAN("answer", answer));
}

void
note_log(const struct agent_command *command, const struct run *run)
{
	uint64_t number = command->number;

	if (say_run(command, run))
		return;
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
	case AGENT_NOTE_REFUSED:
		log_warning("a late result was not wanted any more; it was paid in vain",
		            LOG_SPAN("job", command->text));
		return;
	case AGENT_NOTE_REPEATED:
		log_info("a late result was refused: it had been delivered before its "
		         "answer "
		         "was lost, or another run has its job",
		         LOG_SPAN("job", command->text));
		return;
	case AGENT_NOTE_ACCEPTED:
		log_info("a late result was accepted", LOG_SPAN("job", command->text));
		return;
	case AGENT_NOTE_QUIET:
		log_info(number ? "told to be quiet: no new jobs, running ones go on"
		                : "told to go on: claiming jobs");
		return;
	case AGENT_NOTE_MISSING:
		log_warning("Redis cannot serve yet; waiting for the scheduler",
		            LOG_SPAN("answer", command->text));
		return;
	case AGENT_NOTE_ERROR:
		say_error(command->text);
		return;
	case AGENT_NOTE_TIMEOUT:
		log_warning("Redis did not answer; the connection is made anew",
		            LOG_NUMBER("waited_ms", number));
		return;
	case AGENT_NOTE_SHUNNED:
		say_shunned(command->text);
		return;
	case AGENT_NOTE_REACHED:
		log_info("this worker reaches an upstream again: it claims its jobs",
		         LOG_SPAN("upstream", command->text));
		return;
	case AGENT_NOTE_ORPHAN:
	case AGENT_NOTE_UNKNOWN:
	case AGENT_NOTE_RESENT:
	case AGENT_NOTE_ENDED:
	case AGENT_NOTE_SLOW:
	case AGENT_NOTE_COUNT:
		break;
	}
}

void
note_farewell(const struct agent *agent, const struct lag *lag, const char *state)
{
	struct agent_stats stats;

	agent_stats(agent, &stats);
	if (stats.on_disk > 0)
		log_warning(
			"results wait on disk for Redis; the next worker in this place "
			"delivers them",
			LOG_NUMBER("results", stats.on_disk), LOG_TEXT("state", state));
	log_info("stopped", LOG_NUMBER("claimed", stats.claimed),
	         LOG_NUMBER("settled", stats.settled), LOG_NUMBER("failed", stats.failed),
	         LOG_NUMBER("given_back", stats.released),
	         LOG_NUMBER("longest_hold_up_ms", lag->worst_ns / 1000000),
	         LOG_TEXT("of", lag->worst_what));
}
