#include "worker/core/shun.h"

#include "common/mark.h"

static bool
is_shunned(const struct shun *shun)
{
	return shun->upstream_len > 0 && shun->misses >= SHUN_MISSES;
}

struct span
shun_upstream(const struct shun_list *list, uint32_t index)
{
	VERIFY(index < SHUN_MAX);
	return (struct span){ list->shuns[index].upstream,
		              list->shuns[index].upstream_len };
}

/* SHUN_NONE if nothing is known of it.  An empty name finds a free place. */
static uint32_t
find(const struct shun_list *list, struct span upstream)
{
	for (uint32_t i = 0; i < SHUN_MAX; i++) {
		if (span_equals(shun_upstream(list, i), upstream))
			return i;
	}
	return SHUN_NONE;
}

static uint32_t
find_or_add(struct shun_list *list, struct span upstream)
{
	uint32_t index;

	if (!text_is_name(upstream))
		return SHUN_NONE;
	index = find(list, upstream);
	if (index != SHUN_NONE)
		return index;
	index = find(list, (struct span){ "", 0 });
	if (index == SHUN_NONE)
		return SHUN_NONE;
	list->shuns[index] = (struct shun){ .upstream_len = (uint32_t)upstream.len };
	memcpy(list->shuns[index].upstream, upstream.data, upstream.len);
	list->count++;
	return index;
}

static void
pause(struct shun *shun, uint64_t now_ms, uint64_t jitter)
{
	VERIFY(shun->pause_ms >= SHUN_MS);
	VERIFY(shun->pause_ms <= SHUN_MS_MAX);
	shun->due_ms = now_ms + shun->pause_ms - jitter % (shun->pause_ms / 4 + 1);
}

bool
shun_miss(struct shun_list *list, uint64_t now_ms, struct span upstream, uint64_t jitter,
          bool by_another)
{
	uint32_t index = find_or_add(list, upstream);
	struct shun *shun;

	if (index == SHUN_NONE)
		return false;
	shun = &list->shuns[index];
	shun->by_another = by_another;
	if (!is_shunned(shun)) {
		if (++shun->misses < SHUN_MISSES)
			return false;
		MARK(shun_shuns_an_upstream);
		shun->since_ms = now_ms;
		shun->pause_ms = SHUN_MS;
		pause(shun, now_ms, jitter);
		return true;
	}
	if (!shun->is_tried)
		return false; /* one of those that were claimed before */
	shun->is_tried = false;
	if (!shun->is_away && now_ms - shun->since_ms >= SHUN_PATIENCE_MS) {
		MARK(shun_pauses_for_longer);
		shun->pause_ms = MIN(2 * shun->pause_ms, SHUN_MS_MAX);
	}
	pause(shun, now_ms, jitter);
	return false;
}

bool
shun_reach(struct shun_list *list, struct span upstream, bool is_answered)
{
	uint32_t index;
	bool was_shunned;

	if (list->count == 0 || upstream.len == 0)
		return false;
	index = find(list, upstream);
	if (index == SHUN_NONE || (list->shuns[index].by_another && !is_answered))
		return false;
	was_shunned = is_shunned(&list->shuns[index]);
	list->shuns[index] = (struct shun){ 0 };
	list->count--;
	return was_shunned;
}

void
shun_pace(struct shun_list *list, uint64_t now_ms, struct span upstream, uint64_t pace)
{
	uint32_t index = upstream.len > 0 ? find(list, upstream) : SHUN_NONE;
	struct shun *shun;

	if (index == SHUN_NONE || !is_shunned(&list->shuns[index]))
		return;
	shun = &list->shuns[index];
	shun->is_away = pace == 1;
	if (!shun->is_away || shun->pause_ms == SHUN_MS)
		return;
	MARK(shun_hears_that_it_is_away);
	shun->pause_ms = SHUN_MS;
	shun->due_ms = MIN(shun->due_ms, now_ms + SHUN_MS);
}

uint32_t
shun_due(const struct shun_list *list, uint64_t now_ms)
{
	uint32_t due = SHUN_NONE;

	for (uint32_t i = 0; list->count > 0 && i < SHUN_MAX; i++) {
		const struct shun *shun = &list->shuns[i];

		if (is_shunned(shun) && shun->due_ms <= now_ms &&
		    (due == SHUN_NONE || shun->due_ms < list->shuns[due].due_ms))
			due = i;
	}
	return due;
}

uint64_t
shun_due_ms(const struct shun_list *list)
{
	uint64_t due_ms = UINT64_MAX;

	for (uint32_t i = 0; list->count > 0 && i < SHUN_MAX; i++) {
		if (is_shunned(&list->shuns[i]))
			due_ms = MIN(due_ms, list->shuns[i].due_ms);
	}
	return due_ms;
}

void
shun_try(struct shun_list *list, uint64_t now_ms, uint32_t index)
{
	VERIFY(index < SHUN_MAX);
	VERIFY(is_shunned(&list->shuns[index]));
	list->shuns[index].due_ms = now_ms + SHUN_TRY_MS;
}

/* Meanwhile it may have been reached, and its place may be another one's: then that one
 * is tried a little earlier or later, and that is all. */
void
shun_tried(struct shun_list *list, uint64_t now_ms, uint32_t index, bool has_job,
           uint64_t sleep_ms)
{
	struct shun *shun = &list->shuns[index];

	VERIFY(index < SHUN_MAX);
	if (!is_shunned(shun))
		return;
	shun->is_tried = has_job;
	if (!has_job)
		shun->due_ms = now_ms + MIN(MAX(sleep_ms, SHUN_MS / 2), SHUN_MS);
}

uint32_t
shun_count(const struct shun_list *list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; list->count > 0 && i < SHUN_MAX; i++)
		count += is_shunned(&list->shuns[i]);
	return count;
}

size_t
shun_print(const struct shun_list *list, char ret_words[SHUN_WORDS_SIZE])
{
	size_t len = 0;

	for (uint32_t i = 0; list->count > 0 && i < SHUN_MAX; i++) {
		const struct shun *shun = &list->shuns[i];

		if (!is_shunned(shun))
			continue;
		if (len > 0)
			ret_words[len++] = ',';
		memcpy(ret_words + len, shun->upstream, shun->upstream_len);
		len += shun->upstream_len;
	}
	VERIFY(len <= SHUN_WORDS_SIZE);
	return len;
}
