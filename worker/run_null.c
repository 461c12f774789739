#include "worker/run_null.h"

static void
begin(struct run *run)
{
	struct protocol_usage usage = protocol_usage_none();
	struct report *report;

	run_sent(run);
	run_began(run, &usage);
	if (run_is_ticket(run)) {
		run_end(run, AGENT_DONE);
		return;
	}
	report = run_report(run);
	if (!report) {
		run_end(run, AGENT_UNSENT);
		return;
	}
	(void)buffer_append_format(&report->result, "{\"id\":\"%.*s\",\"state\":\"done\"",
	                           (int)run->id_len, run->id);
	if (run->envelope.ref.len > 0) {
		(void)buffer_append_text(&report->result, ",\"ref\":");
		(void)buffer_append_json(&report->result, run->envelope.ref);
	}
	(void)buffer_append_byte(&report->result, '}');
	run_end(run, AGENT_DONE);
}

/* It is never at work for longer than begin takes. */
static void
stop(struct run *run)
{
	(void)run;
}

const struct executor run_null_executor = {
	.name = "null",
	.wants = STORE_PAYLOAD,
	.takes_ticket = true,
	.begin = begin,
	.stop = stop,
};
