#include "scheduler/ruler_prefix.h"

#include "scheduler/ruler_admit.h"
#include "scheduler/ruler_note.h"

#include <stdio.h>

#define NAME_SEED 0x707265666978ULL
#define AHEAD_MAX (RULER_PREFIXES_MAX / 2) /* the others stay for those in use */

static bool
is_under_way(const struct ruler_prefix *prefix)
{
	return prefix->state == RULER_PREFIX_MEASURING ||
	       prefix->state == RULER_PREFIX_ASKED;
}

static struct ruler_prefix *
find(struct ruler *ruler, struct id128 id)
{
	for (uint32_t i = 0; i < ruler->prefixes_count; i++)
		if (id_equals(ruler->prefixes[i].name, id))
			return &ruler->prefixes[i];
	return NULL;
}

/* The next place in turn, but none whose answer is on its way. */
static struct ruler_prefix *
give_up(struct ruler *ruler)
{
	for (uint32_t i = 0; i < RULER_PREFIXES_MAX; i++) {
		struct ruler_prefix *prefix = &ruler->prefixes[ruler->prefixes_next];

		ruler->prefixes_next = (ruler->prefixes_next + 1) % RULER_PREFIXES_MAX;
		if (!is_under_way(prefix))
			return prefix;
	}
	VERIFY(!"all of them are asked for");
	return NULL;
}

/* The place of a name, an older one's when all are taken. */
static struct ruler_prefix *
make(struct ruler *ruler, struct span name)
{
	struct id128 id = id_of(name, NAME_SEED);
	struct ruler_prefix *prefix = find(ruler, id);

	if (prefix)
		return prefix;
	prefix = ruler->prefixes_count < RULER_PREFIXES_MAX
	                 ? &ruler->prefixes[ruler->prefixes_count++]
	                 : give_up(ruler);
	*prefix = (struct ruler_prefix){ .name = id };
	ruler_copy(prefix->text, sizeof(prefix->text), name);
	return prefix;
}

int
ruler_prefix_find(struct ruler *ruler, struct span name, struct span *ret_content)
{
	struct ruler_prefix *prefix = find(ruler, id_of(name, NAME_SEED));
	struct span content;

	if (!prefix || prefix->page != ruler->page_serial ||
	    prefix->state != RULER_PREFIX_KNOWN)
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
ruler_prefix_why(struct ruler *ruler, struct span name, bool is_early)
{
	const struct ruler_prefix *prefix = find(ruler, id_of(name, NAME_SEED));

	if (prefix && prefix->why[0])
		return prefix->why;
	if (is_early)
		return "there is no named prefix of this name, and a job whose id is of "
		       "the future does not wait for one";
	return "there is no named prefix of this name, and none came for 10 s";
}

static void
ask(struct ruler *ruler, struct ruler_prefix *prefix, enum ruler_prefix_state state,
    struct call_list *out)
{
	bool measures = state == RULER_PREFIX_MEASURING;
	char key[TEXT_NAME_MAX + 16] = "prefix:";

	ruler_copy(key + 7, sizeof(key) - 7, span_from(prefix->text));
	call_begin(out,
	           ruler_tag(ruler, measures ? RULER_CALL_PREFIX_SIZE : RULER_CALL_PREFIX,
	                     (uint32_t)(prefix - ruler->prefixes)));
	call_text(out, measures ? "STRLEN" : "GET");
	protocol_call_key(out, ruler->config->ns, key);
	prefix->page = ruler->page_serial;
	prefix->state = state;
	ruler->admit.waits++;
}

void
ruler_prefix_ask(struct ruler *ruler, struct span name, struct call_list *out)
{
	VERIFY(name.len <= TEXT_NAME_MAX);
	ask(ruler, make(ruler, name), RULER_PREFIX_ASKED, out);
}

bool
ruler_prefix_ahead(struct ruler *ruler, struct span name, size_t *room,
                   struct call_list *out)
{
	struct ruler_prefix *prefix;

	if (ruler->admit.waits >= AHEAD_MAX || !ruler_fits(out, 4, 512))
		return false;
	prefix = make(ruler, name);
	if (prefix->page != ruler->page_serial || prefix->state == RULER_PREFIX_NEW) {
		ask(ruler, prefix, RULER_PREFIX_MEASURING, out);
	} else if (prefix->state == RULER_PREFIX_MEASURED && prefix->size <= *room) {
		*room -= prefix->size;
		ask(ruler, prefix, RULER_PREFIX_ASKED, out);
	}
	return true;
}

void
ruler_prefix_put(struct ruler *ruler, struct span name, struct span content)
{
	struct ruler_prefix *prefix = make(ruler, name);

	prefix->page = ruler->page_serial;
	prefix->state = RULER_PREFIX_KNOWN;
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
	ruler_admit_answered(ruler);
	prefix->page = ruler->page_serial;
	prefix->state = RULER_PREFIX_KNOWN;
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

void
ruler_prefix_on_size(struct ruler *ruler, uint64_t now_ms, uint32_t index,
                     const struct reply *reply)
{
	struct ruler_prefix *prefix = &ruler->prefixes[index];
	int64_t size = reply_integer(reply, -1);

	(void)now_ms;
	VERIFY(index < ruler->prefixes_count);
	ruler_admit_answered(ruler);
	prefix->page = ruler->page_serial;
	prefix->state = RULER_PREFIX_MEASURED;
	prefix->size = (size_t)MAX(size, 0); /* an error comes again, with the content */
	/* An empty one is as good as none, unless there was a good one before. */
	if (size != 0 || ruler_segments_find(&ruler->prefix_values, prefix->name).data)
		return;
	prefix->state = RULER_PREFIX_KNOWN;
	prefix->missing = true;
	prefix->why[0] = '\0';
}
