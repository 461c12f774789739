#include "scheduler/ruler_prefix.h"

#include "scheduler/ruler_note.h"

#include <stdio.h>

#define NAME_SEED 0x707265666978ULL

static struct ruler_prefix *
find(struct ruler *ruler, struct id128 id)
{
	for (uint32_t i = 0; i < ruler->prefixes_count; i++)
		if (id_equals(ruler->prefixes[i].name, id))
			return &ruler->prefixes[i];
	return NULL;
}

/* The place of a name; when all are taken, the next one in turn is given up. */
static struct ruler_prefix *
make(struct ruler *ruler, struct span name)
{
	struct id128 id = id_of(name, NAME_SEED);
	struct ruler_prefix *prefix = find(ruler, id);

	if (prefix)
		return prefix;
	if (ruler->prefixes_count < RULER_PREFIXES_MAX) {
		prefix = &ruler->prefixes[ruler->prefixes_count++];
	} else {
		prefix = &ruler->prefixes[ruler->prefixes_next];
		ruler->prefixes_next = (ruler->prefixes_next + 1) % RULER_PREFIXES_MAX;
	}
	*prefix = (struct ruler_prefix){ .name = id };
	ruler_copy(prefix->text, sizeof(prefix->text), name);
	return prefix;
}

int
ruler_prefix_find(struct ruler *ruler, struct span name, struct span *ret_content)
{
	struct ruler_prefix *prefix = find(ruler, id_of(name, NAME_SEED));
	struct span content;

	if (!prefix || prefix->page != ruler->page_serial)
		return ERR_AGAIN;
	if (prefix->missing)
		return ERR_NOT_FOUND;
	content = ruler_segments_find(&ruler->prefix_values, prefix->name);
	if (!content.data)
		return ERR_AGAIN;
	*ret_content = content;
	return 0;
}

const char *
ruler_prefix_why(struct ruler *ruler, struct span name)
{
	const struct ruler_prefix *prefix = find(ruler, id_of(name, NAME_SEED));

	return prefix && prefix->why[0]
	               ? prefix->why
	               : "there is no named prefix of this name, and none came for 10 s";
}

void
ruler_prefix_ask(struct ruler *ruler, struct span name, struct call_list *out)
{
	char key[TEXT_NAME_MAX + 16] = "prefix:";
	uint32_t place = (uint32_t)(make(ruler, name) - ruler->prefixes);

	VERIFY(name.len <= TEXT_NAME_MAX);
	ruler_copy(key + 7, sizeof(key) - 7, name);
	call_begin(out, ruler_tag(ruler, RULER_CALL_PREFIX, place));
	call_text(out, "GET");
	protocol_call_key(out, ruler->config->ns, key);
}

void
ruler_prefix_put(struct ruler *ruler, struct span name, struct span content)
{
	struct ruler_prefix *prefix = make(ruler, name);

	prefix->page = ruler->page_serial;
	prefix->missing = false;
	ruler_segments_put(&ruler->prefix_values, prefix->name, content);
}

/* Any dialect may use it, so it is good if it is good for one of them. */
static bool
is_good(struct span content, struct chain_error *reterr)
{
	struct id128 version;

	return chain_prefix_check(DIALECT_ANTHROPIC, content, &version, reterr) == 0 ||
	       chain_prefix_check(DIALECT_OPENAI_CHAT, content, &version, reterr) == 0;
}

void
ruler_prefix_on_answer(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                       const struct reply *reply)
{
	struct ruler_prefix *prefix = &ruler->prefixes[index];
	struct chain_error error = { "" };

	(void)now_ms;
	VERIFY(index < ruler->prefixes_count);
	ruler->admit.waits = false;
	prefix->page = ruler->page_serial;
	prefix->missing = reply->kind != REPLY_TEXT;
	prefix->why[0] = '\0';
	if (reply->kind == REPLY_ERROR)
		(void)snprintf(prefix->why, sizeof(prefix->why),
		               "the named prefix is no string in Redis");
	if (prefix->missing)
		return;
	if (reply->text.len > ruler->config->job_size_max) {
		(void)snprintf(error.text, sizeof(error.text),
		               "it has %zu bytes, more than a job may have",
		               reply->text.len);
	} else if (is_good(reply->text, &error)) {
		ruler_segments_put(&ruler->prefix_values, prefix->name, reply->text);
		return;
	}
	prefix->missing = !ruler_segments_find(&ruler->prefix_values, prefix->name).data;
	(void)snprintf(prefix->why, sizeof(prefix->why),
	               "the named prefix is not valid: %s", error.text);
	ruler_note(ruler, RULER_ERROR, "the named prefix %s is not valid%s: %s",
	           prefix->text,
	           prefix->missing ? "" : ", the last good one stays in use", error.text);
}
