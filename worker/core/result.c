#include "worker/core/result.h"

size_t
result_pool_size(uint32_t results_max)
{
	return (size_t)results_max * sizeof(struct result);
}

static void
push(struct result_pool *pool, uint32_t index, enum result_list list)
{
	struct result *result = &pool->results[index];
	struct result_queue *queue = &pool->lists[list];

	result->list = list;
	result->previous = queue->last;
	result->next = RESULT_NONE;
	if (queue->last == RESULT_NONE)
		queue->first = index;
	else
		pool->results[queue->last].next = index;
	queue->last = index;
	queue->count++;
	if (list == RESULT_KEPT)
		pool->kept_bytes += result->outcome.result.len;
}

static void
unlink_from(struct result_pool *pool, uint32_t index)
{
	struct result *result = &pool->results[index];
	struct result_queue *queue = &pool->lists[result->list];

	if (result->previous == RESULT_NONE)
		queue->first = result->next;
	else
		pool->results[result->previous].next = result->next;
	if (result->next == RESULT_NONE)
		queue->last = result->previous;
	else
		pool->results[result->next].previous = result->previous;
	queue->count--;
	if (result->list == RESULT_KEPT)
		pool->kept_bytes -= result->outcome.result.len;
}

void
result_pool_init(struct result_pool *pool, void *memory, uint32_t results_max)
{
	*pool = (struct result_pool){ .results = memory, .results_max = results_max };
	for (int list = 0; list < RESULT_LIST_COUNT; list++)
		pool->lists[list] = (struct result_queue){ RESULT_NONE, RESULT_NONE, 0 };
	for (uint32_t i = 0; i < results_max; i++) {
		pool->results[i] = (struct result){ 0 };
		push(pool, i, RESULT_FREE);
	}
}

uint32_t
result_take(struct result_pool *pool, enum result_list list)
{
	uint32_t index = pool->lists[RESULT_FREE].first;

	VERIFY(index != RESULT_NONE);
	VERIFY(list != RESULT_FREE);
	unlink_from(pool, index);
	pool->results[index] = (struct result){ 0 };
	push(pool, index, list);
	return index;
}

void
result_move(struct result_pool *pool, uint32_t index, enum result_list list)
{
	VERIFY(index < pool->results_max);
	VERIFY(pool->results[index].list != RESULT_FREE);
	unlink_from(pool, index);
	push(pool, index, list);
}

uint32_t
result_first(const struct result_pool *pool, enum result_list list)
{
	return pool->lists[list].first;
}

uint32_t
result_next(const struct result_pool *pool, uint32_t index)
{
	return pool->results[index].next;
}

bool
result_is_paid(const struct result *result)
{
	return result->outcome.end == AGENT_DONE && result->outcome.handle != 0 &&
	       result->id_len > 0;
}

uint32_t
result_find_kept(const struct result_pool *pool, uint32_t slot, uint64_t q)
{
	uint32_t i = pool->lists[RESULT_KEPT].first;

	for (; i != RESULT_NONE; i = pool->results[i].next) {
		if (pool->results[i].slot == slot && pool->results[i].q == q)
			break;
	}
	return i;
}

void
result_audit(const struct result_pool *pool)
{
	uint32_t total = 0;
	size_t kept_bytes = 0;

	for (int list = 0; list < RESULT_LIST_COUNT; list++) {
		uint32_t count = 0, previous = RESULT_NONE;

		for (uint32_t i = pool->lists[list].first; i != RESULT_NONE;
		     i = pool->results[i].next) {
			VERIFY(pool->results[i].list == (enum result_list)list);
			VERIFY(pool->results[i].previous == previous);
			VERIFY(count < pool->results_max);
			if (list == RESULT_KEPT)
				kept_bytes += pool->results[i].outcome.result.len;
			previous = i;
			count++;
		}
		VERIFY(pool->lists[list].last == previous);
		VERIFY(pool->lists[list].count == count);
		total += count;
	}
	VERIFY(total == pool->results_max);
	VERIFY(kept_bytes == pool->kept_bytes);
}
