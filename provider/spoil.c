#include "provider/spoil.h"

#include "provider/answer.h"

#define SPLIT_GAP_US 2000

#define STREAM_GARBAGE                     \
	"\xff\xfe event::: data\r\rdata: " \
	"{\"type\":\"content_blo\n\n<html>502</html>\n\n"
#define WHOLE_GARBAGE "<html>\xff\xfe{\"type\":\"mess</html>"

/* Keeps the first piece; something else follows when the answer should have ended. */
static void
garble_stream(const struct spoil *spoil, struct script *script)
{
	script_cut(script, 1, SCRIPT_END);
	buffer_truncate(&script->bytes, script->pieces[0].end);
	(void)buffer_append(&script->bytes, SPAN(STREAM_GARBAGE));
	script_add(script, spoil->decode_us);
}

/* Puts other bytes in the place of a whole answer. */
static void
replace_whole(struct script *script, struct span bytes)
{
	uint64_t due_us = script->pieces[0].due_us;

	script->count = 0;
	buffer_clear(&script->bytes);
	(void)buffer_append(&script->bytes, bytes);
	script_add(script, due_us);
}

static void
break_stream(const struct spoil *spoil, struct script *script)
{
	uint32_t half = MAX(1, script->count / 2);

	script_cut(script, half, SCRIPT_END);
	buffer_truncate(&script->bytes, script->pieces[half - 1].end);
	answer_stream_error(spoil->dialect, spoil->settings, script,
	                    script->pieces[half - 1].due_us);
}

static void
fail_whole(const struct spoil *spoil, struct script *script)
{
	struct buffer json = BUFFER_INIT(4096);

	answer_error(spoil->dialect,
	             spoil->dialect == ASK_OPENAI ? "server_error" : "api_error", NULL,
	             SPAN("Internal server error"), "", &json);
	replace_whole(script, buffer_span(&json));
	buffer_fini(&json);
}

static int
apply_stream(const struct spoil *spoil, struct script *script)
{
	switch (spoil->fault) {
	case FAULT_CUT:
		script_cut(script, MAX(1, script->count / 2), SCRIPT_CLOSE);
		break;
	case FAULT_STREAM_ERROR:
		break_stream(spoil, script);
		break;
	case FAULT_STALL:
		script_cut(script, 1, SCRIPT_STALL);
		break;
	case FAULT_GARBAGE:
		garble_stream(spoil, script);
		break;
	default:
		if (settings_get(spoil->settings, SETTINGS_SSE_SPLIT))
			script_split(script, SPLIT_GAP_US);
	}
	return 200;
}

static int
apply_whole(const struct spoil *spoil, struct script *script)
{
	switch (spoil->fault) {
	case FAULT_CUT:
		script_split(script, 0);
		script_cut(script, 1, SCRIPT_CLOSE);
		break;
	case FAULT_STREAM_ERROR:
		fail_whole(spoil, script);
		return 500;
	case FAULT_STALL:
		script_cut(script, 0, SCRIPT_STALL);
		break;
	case FAULT_GARBAGE:
		replace_whole(script, SPAN(WHOLE_GARBAGE));
		break;
	default:
		break;
	}
	return 200;
}

int
spoil_apply(const struct spoil *spoil, struct script *script)
{
	if (spoil->fault == FAULT_CUT_USAGE) {
		script_cut(script, script->usage_piece, SCRIPT_CLOSE);
		return 200;
	}
	if (spoil->fault == FAULT_DRIP) {
		script_drip(script, settings_get(spoil->settings, SETTINGS_DRIP_BYTES),
		            settings_get(spoil->settings, SETTINGS_DRIP_MS) * 1000);
		return 200;
	}
	return spoil->stream ? apply_stream(spoil, script) : apply_whole(spoil, script);
}
