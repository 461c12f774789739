#include "scheduler/core/list.h"

void
list_init(struct list *list)
{
	VERIFY(list);
	*list = (struct list){ .head = LIST_NONE, .tail = LIST_NONE };
}

void
list_init_links(struct link *links, uint32_t count)
{
	VERIFY(links);
	for (uint32_t i = 0; i < count; i++)
		links[i] = (struct link){ .next = LIST_NONE, .prev = LIST_NONE };
}

void
list_push(struct list *list, struct link *links, uint32_t item)
{
	struct link *link = &links[item];

	VERIFY(item != LIST_NONE);
	VERIFY(!link->in);
	*link = (struct link){ .next = LIST_NONE, .prev = list->tail, .in = true };
	if (list->tail == LIST_NONE)
		list->head = item;
	else
		links[list->tail].next = item;
	list->tail = item;
	list->count++;
}

void
list_remove(struct list *list, struct link *links, uint32_t item)
{
	struct link *link = &links[item];

	VERIFY(list->head != LIST_NONE);
	VERIFY(link->in);
	VERIFY(list->count > 0);
	if (link->prev == LIST_NONE)
		list->head = link->next;
	else
		links[link->prev].next = link->next;
	if (link->next == LIST_NONE)
		list->tail = link->prev;
	else
		links[link->next].prev = link->prev;
	*link = (struct link){ .next = LIST_NONE, .prev = LIST_NONE };
	list->count--;
}

uint32_t
list_pop(struct list *list, struct link *links)
{
	uint32_t item = list->head;

	if (item != LIST_NONE)
		list_remove(list, links, item);
	return item;
}

void
list_audit(const struct list *list, const struct link *links)
{
	uint32_t count = 0, last = LIST_NONE;

	for (uint32_t i = list->head; i != LIST_NONE; i = links[i].next) {
		VERIFY(links[i].in);
		VERIFY(links[i].prev == last);
		last = i;
		count++;
		VERIFY(count <= list->count);
	}
	VERIFY(count == list->count);
	VERIFY(last == list->tail);
}
