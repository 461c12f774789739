#include "tests/lib/agent_rig.h"

#include "tests/lib/written_reply.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS_MAX 256
#define ARGS_MAX  8192
#define BYTES_MAX (1 << 20)

struct agent_config
rig_config(uint32_t slots)
{
	struct agent_config config = agent_config_default();

	config.label = SPAN("w");
	config.pool = SPAN("p");
	config.slots = slots;
	config.seed = 42;
	return config;
}

void
rig_init(struct rig *rig, const struct agent_config *config)
{
	*rig = (struct rig){ .config = *config, .now_ms = 1000 };
	rig->memory = malloc(agent_size(config));
	rig->calls = (struct call_list){
		.calls = calloc(CALLS_MAX, sizeof *rig->calls.calls),
		.args = calloc(ARGS_MAX, sizeof *rig->calls.args),
		.bytes = malloc(BYTES_MAX),
		.call_max = CALLS_MAX,
		.arg_max = ARGS_MAX,
		.byte_max = BYTES_MAX,
	};
	rig->output = (struct agent_output){
		.calls = &rig->calls,
		.commands = rig->commands,
		.commands_max = AGENT_COMMANDS_MIN,
	};
	rig->agent = agent_init(rig->memory, agent_size(config), rig->now_ms, config);
}

void
rig_fini(struct rig *rig)
{
	free(rig->memory);
	free(rig->calls.calls);
	free(rig->calls.args);
	free(rig->calls.bytes);
}

static void PRINTF(2, 3) say(char *text, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	len += (size_t)vsnprintf(text + len, RIG_TEXT_SIZE - len, format, args);
	va_end(args);
	ck_assert_uint_lt(len, RIG_TEXT_SIZE);
}

/* FCALL warmq_<name> 1 ns:meta 1 [nonce] … */
static void
print_call(struct rig *rig, const struct call *call)
{
	struct span name = call_arg(&rig->calls, call, 1);
	bool has_nonce = !span_equals(name, SPAN("warmq_settle_late"));

	say(rig->calls_text, "%.*s", (int)name.len - 6, name.data + 6);
	for (uint32_t i = has_nonce ? 6 : 5; i < call->arg_count; i++) {
		struct span word = call_arg(&rig->calls, call, i);

		if (word.len == 0)
			say(rig->calls_text, " -");
		else
			say(rig->calls_text, " %.*s", (int)word.len, word.data);
	}
	say(rig->calls_text, "\n");
}

static void
print_command(struct rig *rig, const struct agent_command *command)
{
	static const char *const notes[AGENT_NOTE_COUNT] = {
		"session", "gone",     "fenced",   "orphan",  "unknown", "resent",
		"refused", "repeated", "accepted", "ended",   "slow",    "quiet",
		"missing", "error",    "timeout",  "shunned", "reached",
	};
	char *text = rig->commands_text;

	switch (command->kind) {
	case AGENT_START:
		rig->run_q[command->slot] = command->q;
		say(text, "start %u %llu %.*s\n", command->slot,
		    (unsigned long long)command->q, (int)command->job->id.len,
		    command->job->id.data);
		return;
	case AGENT_ABORT:
		say(text, "abort %u %llu\n", command->slot,
		    (unsigned long long)command->q);
		return;
	case AGENT_SPOOL:
		say(text, "spool %llu\n", (unsigned long long)command->handle);
		if (rig->disk != RIG_DISK_HANGS)
			agent_spooled(rig->agent, rig->now_ms, command->text,
			              rig->disk == RIG_DISK_WORKS);
		return;
	case AGENT_DROP:
		say(text, "drop %llu\n", (unsigned long long)command->handle);
		return;
	case AGENT_SESSION:
		say(text, "session\n");
		return;
	case AGENT_CLOSE:
		say(text, "close\n");
		return;
	case AGENT_NOTE:
		say(text, "note %s %llu\n", notes[command->note],
		    (unsigned long long)command->number);
		return;
	case AGENT_DISMISSED:
		say(text, "dismissed\n");
		return;
	case AGENT_FINISHED:
		say(text, "finished\n");
		return;
	}
}

void
rig_step(struct rig *rig)
{
	int turns = 0;

	do {
		agent_step(rig->agent, rig->now_ms, &rig->output);
		for (uint32_t i = 0; i < rig->output.commands_count; i++) {
			if (rig->commands[i].kind == AGENT_CLOSE)
				rig->tags_count = 0;
			print_command(rig, &rig->commands[i]);
		}
		for (uint32_t i = 0; i < rig->calls.call_count; i++) {
			print_call(rig, &rig->calls.calls[i]);
			rig->tags[(rig->tags_first + rig->tags_count++) % 1024] =
				rig->calls.calls[i].tag;
		}
		agent_audit(rig->agent);
		ck_assert_int_lt(turns++, 1000);
	} while (agent_deadline(rig->agent) <= rig->now_ms);
}

void
rig_pass(struct rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	while (agent_deadline(rig->agent) <= end_ms) {
		rig->now_ms = MAX(rig->now_ms, agent_deadline(rig->agent));
		rig_step(rig);
	}
	rig->now_ms = end_ms;
}

void
rig_connect(struct rig *rig)
{
	agent_connected(rig->agent, rig->now_ms);
	rig_step(rig);
}

void
rig_lose(struct rig *rig)
{
	rig->tags_count = 0;
	agent_lost(rig->agent, rig->now_ms);
	rig_step(rig);
}

void
rig_reconnect(struct rig *rig)
{
	rig_lose(rig);
	rig_connect(rig);
	(void)rig_calls(rig);
}

void
rig_answer_only(struct rig *rig, const char *text)
{
	static struct written_reply written;
	uint64_t tag;

	ck_assert_uint_gt(rig->tags_count, 0);
	tag = rig->tags[rig->tags_first];
	rig->tags_first = (rig->tags_first + 1) % 1024;
	rig->tags_count--;
	agent_answer(rig->agent, rig->now_ms, tag, written_reply_read(&written, text));
}

void
rig_answer(struct rig *rig, const char *text)
{
	rig_answer_only(rig, text);
	rig_step(rig);
}

void
rig_greet(struct rig *rig)
{
	rig_connect(rig);
	rig_answer(rig, "[OK 501000 1]");
	rig_answer(rig, RIG_NOTHING);
	(void)rig_calls(rig);
	(void)rig_commands(rig);
}

void
rig_begin(struct rig *rig, uint32_t slots)
{
	struct agent_config config = rig_config(slots);

	rig_init(rig, &config);
	rig_greet(rig);
}

void
rig_begin_busy(struct rig *rig, uint32_t slots)
{
	rig_begin(rig, slots);
	rig_give(rig, slots);
	for (uint32_t slot = 0; slot < slots; slot++)
		rig_send(rig, slot);
}

void
rig_wake(struct rig *rig)
{
	agent_wake(rig->agent, rig->now_ms);
	rig_step(rig);
}

void
rig_give_run(struct rig *rig, const char *run)
{
	rig_wake(rig);
	rig->answer[0] = '\0';
	say(rig->answer, "%s%s", RIG_NOTHING, run);
	rig_answer(rig, rig->answer);
	(void)rig_calls(rig);
	(void)rig_commands(rig);
}

void
rig_give(struct rig *rig, uint32_t count)
{
	static char run[RIG_TEXT_SIZE];

	run[0] = '\0';
	say(run, "%s %s p 0 - 0 0 0 0", RIG_LANE, RIG_FAMILY);
	for (uint32_t i = 1; i <= count; i++)
		say(run, " 1-%u", i);
	rig_give_run(rig, run);
}

void
rig_send(struct rig *rig, uint32_t slot)
{
	agent_sent(rig->agent, rig->now_ms, slot, rig->run_q[slot], SPAN("up"), 0);
	rig_step(rig);
}

void
rig_end_only(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle)
{
	struct agent_outcome outcome = {
		.end = end,
		.handle = handle,
		.attempts_max = 3,
		.usage = protocol_usage_none(),
		.result = end == AGENT_DONE ? SPAN("{}") : SPAN(""),
	};

	agent_ended(rig->agent, rig->now_ms, slot, rig->run_q[slot], &outcome);
}

void
rig_end(struct rig *rig, uint32_t slot, enum agent_end end, uint64_t handle)
{
	rig_end_only(rig, slot, end, handle);
	rig_step(rig);
}

void
rig_end_with(struct rig *rig, uint32_t slot, const struct agent_outcome *outcome)
{
	agent_ended(rig->agent, rig->now_ms, slot, rig->run_q[slot], outcome);
	rig_step(rig);
}

const char *
rig_calls(struct rig *rig)
{
	static char text[RIG_TEXT_SIZE];

	memcpy(text, rig->calls_text, sizeof text);
	rig->calls_text[0] = '\0';
	return text;
}

const char *
rig_commands(struct rig *rig)
{
	static char text[RIG_TEXT_SIZE];

	memcpy(text, rig->commands_text, sizeof text);
	rig->commands_text[0] = '\0';
	return text;
}
