/* list.h - who is where: doubly linked lists of item numbers, in order of arrival.
 *
 *   item     0    1    2    3         links are an array beside the items, one per kind
 *   links  [ ◄► | out | ◄► | ◄► ]     of home: an item is in at most one list of a kind
 *
 * Joining, leaving and asking are O(1).  The memory is the caller's. */
#ifndef SCHEDULER_CORE_LIST_H
#define SCHEDULER_CORE_LIST_H

#include "common/base.h"

#define LIST_NONE UINT32_MAX

struct link {
	uint32_t next, prev; /* LIST_NONE at the ends */
	bool in;
};

struct list {
	uint32_t head, tail, count;
};

void list_init(struct list *list);
void list_init_links(struct link *links, uint32_t count);

/* Adds an item that is in no list of this kind, at the end. */
void list_push(struct list *list, struct link *links, uint32_t item);

/* Takes an item out of the list it is in. */
void list_remove(struct list *list, struct link *links, uint32_t item);

/* The first item, taken out; or LIST_NONE. */
uint32_t list_pop(struct list *list, struct link *links);

/* VERIFYs the links; O(n). */
void list_audit(const struct list *list, const struct link *links);

#endif
