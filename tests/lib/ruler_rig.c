#include "tests/lib/ruler_rig.h"

#include "common/text.h"
#include "tests/lib/written_reply.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- answers --------------------------------------------------------------------- */

void
rig_answer(struct rig *rig, struct rig_call *call, const char *text)
{
	static struct written_reply written;

	ck_assert_ptr_nonnull(call);
	ck_assert(!call->answered);
	call->answered = true;
	ruler_answer(rig->ruler, rig->now_ms, call->tag,
	             written_reply_read(&written, text));
	rig_step(rig);
}

/* ---- calls ----------------------------------------------------------------------- */

static char *
copy_word(struct span word)
{
	char *copy = malloc(word.len + 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, word.data, word.len);
	copy[word.len] = '\0';
	return copy;
}

static const char *
behind_namespace(const char *key)
{
	const char *colon = strchr(key, ':');

	return colon ? colon + 1 : key;
}

/* FCALL warmq_<name> 1 <key> 1 …, or a command whose key says what it is about. */
static void
name_call(struct rig_call *call)
{
	const char *key = NULL;

	if (strcmp(call->words[0], "FCALL") == 0) {
		(void)snprintf(call->name, sizeof(call->name), "%s", call->words[1] + 6);
		for (uint32_t i = 0; i < 5; i++)
			free(call->words[i]);
		call->count -= 5;
		memmove(call->words, call->words + 5, call->count * sizeof(*call->words));
		return;
	}
	for (uint32_t i = 1; i < call->count && !key; i++)
		if (strncmp(call->words[i], "w:", 2) == 0)
			key = call->words[i];
	(void)snprintf(call->name, sizeof(call->name), "%s%s%s", call->words[0],
	               key ? " " : "", key ? behind_namespace(key) : "");
	if (strncmp(call->name, "GET px:", 7) == 0)
		call->name[6] = '\0'; /* whatever the node */
	free(call->words[0]);
	call->count--;
	memmove(call->words, call->words + 1, call->count * sizeof(*call->words));
}

static void
mix_trace(struct rig *rig, struct span word)
{
	for (size_t i = 0; i < word.len; i++)
		rig->trace = (rig->trace ^ (unsigned char)word.data[i]) * 1099511628211u;
	rig->trace = (rig->trace ^ 0x100) * 1099511628211u;
}

static void
drop_call(struct rig_call *call)
{
	for (uint32_t i = 0; i < call->count; i++)
		free(call->words[i]);
	free(call->words);
}

/* Answered calls make room. */
static void
tidy_up(struct rig *rig)
{
	uint32_t kept = 0;

	if (rig->calls_count < RIG_CALLS_MAX / 2)
		return;
	for (uint32_t i = 0; i < rig->calls_count; i++) {
		if (rig->calls[i].answered)
			drop_call(&rig->calls[i]);
		else
			rig->calls[kept++] = rig->calls[i];
	}
	rig->calls_count = kept;
}

static void
keep_call(struct rig *rig, const struct call *call)
{
	struct rig_call *kept;

	ck_assert_uint_lt(rig->calls_count, RIG_CALLS_MAX);
	kept = &rig->calls[rig->calls_count++];
	*kept = (struct rig_call){ .tag = call->tag, .count = call->arg_count };
	kept->words = calloc(call->arg_count, sizeof(*kept->words));
	ck_assert_ptr_nonnull(kept->words);
	for (uint32_t i = 0; i < call->arg_count; i++) {
		struct span word = call_arg(&rig->list, call, i);

		mix_trace(rig, word);
		kept->words[i] = copy_word(word);
	}
	name_call(kept);
}

void
rig_step(struct rig *rig)
{
	tidy_up(rig);
	for (int i = 0; i < 1000; i++) {
		call_reset(&rig->list);
		ruler_step(rig->ruler, rig->now_ms, &rig->list);
		for (uint32_t c = 0; c < rig->list.call_count; c++)
			keep_call(rig, &rig->list.calls[c]);
		if (ruler_deadline(rig->ruler, rig->now_ms) > rig->now_ms)
			return;
	}
	ck_abort_msg("the ruler never rests");
}

void
rig_forget(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->calls_count; i++)
		rig->calls[i].answered = true;
}

struct rig_call *
rig_find(struct rig *rig, const char *name)
{
	for (uint32_t i = 0; i < rig->calls_count; i++)
		if (!rig->calls[i].answered && strcmp(rig->calls[i].name, name) == 0)
			return &rig->calls[i];
	return NULL;
}

const char *
rig_word(const struct rig_call *call, uint32_t i)
{
	ck_assert_ptr_nonnull(call);
	ck_assert_uint_lt(i, call->count);
	return call->words[i];
}

uint32_t
rig_number(const struct rig_call *call, uint32_t i)
{
	uint64_t number = 0;

	ck_assert_int_eq(
		text_parse_unsigned(span_from(rig_word(call, i)), UINT32_MAX, &number),
		0);
	return (uint32_t)number;
}

uint32_t
rig_position(const struct rig_call *call, const char *word, uint32_t from)
{
	for (uint32_t i = from; i < call->count; i++)
		if (strcmp(call->words[i], word) == 0)
			return i;
	return UINT32_MAX;
}

/* ---- an idle Redis --------------------------------------------------------------- */

/* Every lane of a grant is granted. */
static void
answer_grant(struct rig *rig, struct rig_call *call)
{
	uint32_t lanes = rig_number(call, 2);
	size_t size = 64 + lanes * 128, len;
	char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	len = (size_t)snprintf(text, size, "[OK %llu", (unsigned long long)rig->now_ms);
	for (uint32_t i = 0; i < lanes; i++)
		len += (size_t)snprintf(text + len, size - len, " [%s done %s 0 8 %llu]",
		                        rig_word(call, 3 + i * 19),
		                        rig_word(call, 3 + i * 19 + 6),
		                        (unsigned long long)rig->now_ms);
	(void)snprintf(text + len, size - len, "]");
	rig_answer(rig, call, text);
	free(text);
}

/* Every family has two jobs that wait. */
static void
answer_glance(struct rig *rig, struct rig_call *call)
{
	char text[8192];
	size_t len = (size_t)snprintf(text, sizeof(text), "[OK %llu",
	                              (unsigned long long)rig->now_ms);

	for (uint32_t i = 0; i < call->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " [%s 2 0 %llu]",
		                        rig_word(call, i),
		                        (unsigned long long)rig->now_ms);
	(void)snprintf(text + len, sizeof(text) - len, "]");
	rig_answer(rig, call, text);
}

uint32_t
rig_group(const struct rig_call *admit, char letter, uint32_t *ret_count)
{
	static const struct {
		char letter;
		uint32_t words;
	} widths[] = { { 'F', 11 }, { 'X', 2 }, { 'R', 3 }, { 'E', 1 },
		       { 'S', 2 },  { 'L', 5 }, { 'D', 7 }, { 'T', 2 },
		       { 'G', 1 },  { 'P', 2 }, { 'U', 1 } }; /* U may be left out */
	uint32_t at = 5;

	ck_assert_ptr_nonnull(admit);
	for (size_t i = 0; i < ARRAY_SIZE(widths) && at < admit->count; i++) {
		uint32_t count = rig_number(admit, at + 1);

		ck_assert_int_eq(rig_word(admit, at)[0], widths[i].letter);
		if (widths[i].letter == letter) {
			*ret_count = count;
			return at + 2;
		}
		at += 2 + count * widths[i].words;
	}
	ck_abort_msg("no group %c", letter);
}

uint32_t
rig_group_count(const struct rig_call *admit, char letter)
{
	uint32_t count;

	(void)rig_group(admit, letter, &count);
	return count;
}

uint32_t
rig_count(const struct rig *rig, const char *name)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rig->calls_count; i++)
		count += strcmp(rig->calls[i].name, name) == 0;
	return count;
}

static const struct {
	const char *name, *answer;
} idle_answers[] = {
	{ "rule", "[OK 1000 " RIG_OWNER " 0]" },
	{ "reap", "[OK 1000 0 0 0]" },
	{ "audit", "[OK 1000]" },
	{ "promote", "[OK 1000 0 0]" },
	{ "expire", "[OK 1000 0]" },
	{ "HMGET meta", "[~ ~ ~ ~ ~]" },
	{ "HSET meta", "0" },
	{ "HKEYS unheld", "[]" },
	{ "HSCAN families", "[0 []]" },
	{ "HSCAN lanes", "[0 []]" },
	{ "ZRANGE workers", "[]" },
	{ "INFO", "'used_memory:1\nmaxmemory:0\n'" },
	{ "XREAD jobs", "~" },
	{ "XREAD events", "~" },
	{ "admit", "[OK 1000]" },
	{ "ledger", "[OK 1000]" },
};

static bool
is_quiet(const struct rig *rig, const char *name)
{
	for (uint32_t i = 0; i < rig->quiet_count; i++)
		if (strcmp(rig->quiet[i], name) == 0)
			return true;
	return false;
}

bool
rig_answer_idly(struct rig *rig, struct rig_call *call)
{
	if (strcmp(call->name, "grant") == 0) {
		answer_grant(rig, call);
		return true;
	}
	if (strcmp(call->name, "glance") == 0) {
		answer_glance(rig, call);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(idle_answers); i++) {
		if (strcmp(call->name, idle_answers[i].name) != 0)
			continue;
		rig_answer(rig, call, idle_answers[i].answer);
		return true;
	}
	if (strncmp(call->name, "HGETALL", 7) == 0) {
		rig_answer(rig, call, "[]");
		return true;
	}
	return false;
}

void
rig_idle(struct rig *rig)
{
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t i = 0; i < rig->calls_count; i++)
			if (!rig->calls[i].answered && !is_quiet(rig, rig->calls[i].name))
				any |= rig_answer_idly(rig, &rig->calls[i]);
	}
}

void
rig_hold(struct rig *rig, const char *name)
{
	ck_assert_uint_lt(rig->quiet_count, ARRAY_SIZE(rig->quiet));
	rig->quiet[rig->quiet_count++] = copy_word(span_from(name));
}

/* Holds nothing any more. */
static void
let_go(struct rig *rig)
{
	while (rig->quiet_count > 0)
		free(rig->quiet[--rig->quiet_count]);
}

void
rig_pass(struct rig *rig, uint64_t ms)
{
	uint64_t end_ms = rig->now_ms + ms;

	rig_step(rig);
	rig_idle(rig);
	while (rig->now_ms < end_ms) {
		uint64_t deadline_ms = ruler_deadline(rig->ruler, rig->now_ms);

		rig->now_ms = MIN(MAX(deadline_ms, rig->now_ms + 1), end_ms);
		rig_step(rig);
		rig_idle(rig);
	}
}

struct rig_call *
rig_expect(struct rig *rig, const char *name)
{
	bool held = is_quiet(rig, name);

	if (!held)
		rig_hold(rig, name);
	rig_step(rig);
	for (int i = 0; i < 500 && !rig_find(rig, name); i++)
		rig_pass(rig, 10);
	if (!held)
		free(rig->quiet[--rig->quiet_count]);
	ck_assert_msg(rig_find(rig, name) != NULL, "no call of %s in 5 s\n%s", name,
	              rig->notes);
	return rig_find(rig, name);
}

/* ---- life ------------------------------------------------------------------------ */

static void
on_note(void *data, const struct ruler_note *note)
{
	struct rig *rig = data;
	size_t len = strlen(rig->notes);

	(void)snprintf(rig->notes + len, sizeof(rig->notes) - len, "%s\n", note->text);
}

void
rig_init(struct rig *rig)
{
	*rig = (struct rig){ .config = ruler_config_default(), .now_ms = 1000000 };
	rig->upstream = (struct ruler_upstream){
		.name = SPAN("claude"),
		.account = SPAN("claude"),
		.traits = *dialect_traits(DIALECT_ANTHROPIC),
		.markers = true,
		.exact = true,
		.proves = true,
		.hold_max_ms = 30000,
	};
	rig->model = (struct ruler_model){ SPAN("*"), SPAN("large"), 100, false };
	rig->config.ns = SPAN("w");
	rig->config.seed = 7;
	rig->config.upstreams = &rig->upstream;
	rig->config.upstreams_count = 1;
	rig->config.models = &rig->model;
	rig->config.models_count = 1;
	rig->config.core.families_max = 64;
	rig->config.core.lanes_max = 128;
	rig->config.families_max = RULER_FAMILIES_LEAST;
	rig->config.job_size_max = 100000;
	rig->config.segments_size_max = 1000000;
	rig->config.read_size = 10000;
	rig->config.block_ms = 0;
	rig->config.status_ms = 0;
	rig->config.say = on_note;
	rig->config.data = rig;
	rig->ruler = ruler_create(&rig->config);
	ck_assert_ptr_nonnull(rig->ruler);
	rig->list.call_max = RULER_CALLS;
	rig->list.arg_max = 2 * RULER_ARGS;
	rig->list.byte_max = 2 * RULER_BYTES;
	rig->list.calls = calloc(rig->list.call_max, sizeof(*rig->list.calls));
	rig->list.args = calloc(rig->list.arg_max, sizeof(*rig->list.args));
	rig->list.bytes = malloc(rig->list.byte_max);
	ck_assert(rig->list.calls && rig->list.args && rig->list.bytes);
}

void
rig_fini(struct rig *rig)
{
	for (uint32_t i = 0; i < rig->calls_count; i++)
		drop_call(&rig->calls[i]);
	let_go(rig);
	free(rig->list.calls);
	free(rig->list.args);
	free(rig->list.bytes);
	rig->ruler = ruler_destroy(rig->ruler);
}

void
rig_anew(struct rig *rig)
{
	rig_fini(rig);
	rig_init(rig);
}

void
rig_take_rule(struct rig *rig)
{
	ruler_connected(rig->ruler, rig->now_ms);
	rig_answer(rig, rig_expect(rig, "rule"), "[OK 1000 " RIG_OWNER " 1]");
}

void
rig_rule_over(struct rig *rig, const char *families, const char *lanes)
{
	rig_take_rule(rig);
	rig_answer(rig, rig_expect(rig, "reap"), "[OK 1000 0 0 0]");
	rig_answer(rig, rig_expect(rig, "HMGET meta"), RIG_META);
	rig_answer(rig, rig_expect(rig, "HKEYS unheld"), "[]");
	rig_answer(rig, rig_expect(rig, "audit"), "[OK 1000]");
	rig_answer(rig, rig_expect(rig, "HSCAN families"), families);
	rig_answer(rig, rig_expect(rig, "HSCAN lanes"), lanes);
	rig_answer(rig, rig_expect(rig, "ZRANGE workers"), "[]");
	rig_step(rig);
	rig_idle(rig);
}

void
rig_rule(struct rig *rig)
{
	rig_rule_over(rig, "[0 []]", "[0 []]");
}

static void
answer_read(struct rig *rig, const char *read, const char *before, const char *entries,
            const char *behind)
{
	size_t size = strlen(before) + strlen(entries) + strlen(behind) + 1;
	char *text = malloc(size);

	ck_assert_ptr_nonnull(text);
	(void)snprintf(text, size, "%s%s%s", before, entries, behind);
	rig_answer(rig, rig_expect(rig, read), text);
	free(text);
}

void
rig_inbox(struct rig *rig, const char *entries)
{
	answer_read(rig, "XREAD jobs", "[[w:jobs ", entries, "]]");
}

void
rig_events(struct rig *rig, const char *entries)
{
	answer_read(rig, "XREAD events", "[[w:events [", entries, "]]]");
}

void
rig_hello(struct rig *rig)
{
	rig_events(rig, "[2-0 [e 'hello 0123456789abcdef default 8']]");
}

const char *
rig_large_entry(const char *id, char letter)
{
	static char text[4096];
	char system[2001];

	memset(system, letter, 2000);
	system[2000] = '\0';
	(void)snprintf(text, sizeof(text),
	               "[%s [upstream claude body '{\"model\":\"m\",\"system\":\"%s\","
	               "\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}']]",
	               id, system);
	return text;
}

void
rig_send_large(struct rig *rig, const char *id, char letter)
{
	char text[4200];

	(void)snprintf(text, sizeof(text), "[%s]", rig_large_entry(id, letter));
	rig_inbox(rig, text);
}

enum ruler_phase
rig_phase(const struct rig *rig)
{
	return ruler_view_health(rig->ruler, rig->now_ms).phase;
}

bool
rig_has_said(const struct rig *rig, const char *text)
{
	return strstr(rig->notes, text) != NULL;
}
