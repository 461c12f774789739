#include "worker/refusal.h"

#include "common/buffer.h"

static struct span
cut(struct span model)
{
	model.len = MIN(model.len, sizeof((struct refusal_entry *)0)->model - 1);
	return model;
}

static uint32_t
find(const struct refusal_list *list, const void *upstream, struct span model)
{
	uint32_t count = MIN(list->count, REFUSAL_MAX);

	for (uint32_t i = 0; i < count; i++) {
		const struct refusal_entry *entry = &list->entries[i];

		if (entry->upstream == upstream &&
		    span_equals(span_from(entry->model), cut(model)))
			return i;
	}
	return REFUSAL_MAX;
}

unsigned
refusal_of(const struct refusal_list *list, const void *upstream, struct span model)
{
	uint32_t at = find(list, upstream, model);

	return at == REFUSAL_MAX ? 0 : list->entries[at].what;
}

void
refusal_add(struct refusal_list *list, const void *upstream, struct span model,
            unsigned what)
{
	uint32_t at = find(list, upstream, model);
	struct refusal_entry *entry;

	if (at != REFUSAL_MAX) {
		list->entries[at].what |= what;
		return;
	}
	model = cut(model);
	entry = &list->entries[list->count++ % REFUSAL_MAX];
	*entry = (struct refusal_entry){ .upstream = upstream, .what = what };
	if (model.len > 0)
		memcpy(entry->model, model.data, model.len);
}
