#include "worker/core/slot.h"

void
slot_set_init(struct slot_set *set, struct slot *memory, uint32_t count)
{
	*set = (struct slot_set){ .slots = memory, .count = count };
	for (int queue = 0; queue < SLOT_QUEUE_COUNT; queue++)
		set->lists[queue] = (struct slot_list){ SLOT_NONE, SLOT_NONE, 0 };
	for (uint32_t i = 0; i < count; i++) {
		memory[i] = (struct slot){ .result = UINT32_MAX };
		slot_file(set, i);
	}
}

static enum slot_queue
calls_queue(const struct slot *slot)
{
	switch (slot->lease) {
	case SLOT_LEASE_NONE:
		return slot->run == SLOT_RUN_IDLE ? SLOT_QUEUE_FREE : SLOT_QUEUE_NONE;
	case SLOT_LEASE_OURS:
		if (slot->run == SLOT_RUN_OVER)
			return slot->end == AGENT_DONE ? SLOT_QUEUE_SETTLE
			                               : SLOT_QUEUE_FAIL;
		if (slot->run == SLOT_RUN_RUNNING && slot->begin_due)
			return SLOT_QUEUE_BEGIN;
		return SLOT_QUEUE_NONE;
	case SLOT_LEASE_LEAVING:
		return SLOT_QUEUE_RELEASE;
	case SLOT_LEASE_ASKED:
	case SLOT_LEASE_SETTLING:
	case SLOT_LEASE_RELEASING:
		return SLOT_QUEUE_NONE;
	}
	VERIFY(false);
}

static enum slot_queue
commands_queue(const struct slot *slot)
{
	if (slot->run == SLOT_RUN_STOPPING)
		return SLOT_QUEUE_ABORT;
	if (slot->run == SLOT_RUN_WAITING && slot->lease == SLOT_LEASE_OURS)
		return SLOT_QUEUE_START;
	return SLOT_QUEUE_NONE;
}

static void
take_out(struct slot_set *set, uint32_t index, enum slot_chain chain)
{
	struct slot_link *link = &set->slots[index].links[chain];
	struct slot_list *list = &set->lists[link->queue];

	if (link->queue == SLOT_QUEUE_NONE)
		return;
	if (link->previous == SLOT_NONE)
		list->first = link->next;
	else
		set->slots[link->previous].links[chain].next = link->next;
	if (link->next == SLOT_NONE)
		list->last = link->previous;
	else
		set->slots[link->next].links[chain].previous = link->previous;
	list->count--;
	link->queue = SLOT_QUEUE_NONE;
}

static void
put_in(struct slot_set *set, uint32_t index, enum slot_chain chain, enum slot_queue queue)
{
	struct slot_link *link = &set->slots[index].links[chain];
	struct slot_list *list = &set->lists[queue];

	if (link->queue == queue)
		return; /* keeps its place */
	take_out(set, index, chain);
	if (queue == SLOT_QUEUE_NONE)
		return;
	*link = (struct slot_link){ queue, list->last, SLOT_NONE };
	if (list->last == SLOT_NONE)
		list->first = index;
	else
		set->slots[list->last].links[chain].next = index;
	list->last = index;
	list->count++;
}

void
slot_file(struct slot_set *set, uint32_t index)
{
	const struct slot *slot = &set->slots[index];

	put_in(set, index, SLOT_CHAIN_CALLS, calls_queue(slot));
	put_in(set, index, SLOT_CHAIN_COMMANDS, commands_queue(slot));
}

static bool
is_leased(const struct slot *slot)
{
	return slot->lease != SLOT_LEASE_NONE && slot->lease != SLOT_LEASE_ASKED;
}

static bool
is_working(const struct slot *slot)
{
	return slot->lease != SLOT_LEASE_NONE || slot->run != SLOT_RUN_IDLE;
}

bool
slot_is_active(const struct slot *slot)
{
	return slot->run == SLOT_RUN_LOADING || slot->run == SLOT_RUN_RUNNING ||
	       slot->run == SLOT_RUN_STOPPING || slot->run == SLOT_RUN_STOPPED;
}

void
slot_set(struct slot_set *set, uint32_t index, enum slot_lease lease, enum slot_run run)
{
	struct slot *slot;

	VERIFY(index < set->count);
	slot = &set->slots[index];
	set->leased -= is_leased(slot);
	set->running -= slot_is_active(slot);
	set->working -= is_working(slot);
	slot->lease = lease;
	slot->run = run;
	set->leased += is_leased(slot);
	set->running += slot_is_active(slot);
	set->working += is_working(slot);
	slot_file(set, index);
}

uint32_t
slot_first(const struct slot_set *set, enum slot_queue queue)
{
	return set->lists[queue].first;
}

bool
slot_is_ticket(const struct slot *slot)
{
	return slot->role == PROTOCOL_TICKET;
}

bool
slot_must_be_alone(const struct slot *slot)
{
	return slot->role == PROTOCOL_TICKET || slot->role == PROTOCOL_LEAD ||
	       slot->role == PROTOCOL_CANARY;
}

void
slot_wipe(struct slot *slot)
{
	slot->was_sent = false;
	slot->has_begun = false;
	slot->begin_due = false;
	slot->begin_acked = false;
	slot->why = SLOT_WHY_NONE;
	slot->deliveries = 0;
	slot->result = UINT32_MAX;
	slot->next_q = 0;
}

static void
audit_list(const struct slot_set *set, enum slot_queue queue, enum slot_chain chain)
{
	uint32_t count = 0, previous = SLOT_NONE;

	for (uint32_t i = set->lists[queue].first; i != SLOT_NONE;
	     i = set->slots[i].links[chain].next) {
		VERIFY(set->slots[i].links[chain].queue == queue);
		VERIFY(set->slots[i].links[chain].previous == previous);
		VERIFY(count < set->count);
		previous = i;
		count++;
	}
	VERIFY(set->lists[queue].last == previous);
	VERIFY(set->lists[queue].count == count);
}

void
slot_audit(const struct slot_set *set)
{
	uint32_t leased = 0, running = 0, working = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		const struct slot *slot = &set->slots[i];

		VERIFY(slot->links[SLOT_CHAIN_CALLS].queue == calls_queue(slot));
		VERIFY(slot->links[SLOT_CHAIN_COMMANDS].queue == commands_queue(slot));
		if (slot->lease == SLOT_LEASE_ASKED)
			VERIFY(slot->run == SLOT_RUN_IDLE);
		if (slot->lease == SLOT_LEASE_OURS) {
			VERIFY(slot->run != SLOT_RUN_IDLE);
			VERIFY(slot->lease_q == slot->run_q);
		}
		if (slot->lease == SLOT_LEASE_SETTLING)
			VERIFY(slot->run == SLOT_RUN_OVER);
		if (slot->run == SLOT_RUN_OVER)
			VERIFY(slot->result != UINT32_MAX);
		leased += is_leased(slot);
		running += slot_is_active(slot);
		working += is_working(slot);
	}
	VERIFY(set->leased == leased);
	VERIFY(set->running == running);
	VERIFY(set->working == working);
	for (enum slot_queue queue = SLOT_QUEUE_FREE; queue <= SLOT_QUEUE_BEGIN; queue++)
		audit_list(set, queue, SLOT_CHAIN_CALLS);
	audit_list(set, SLOT_QUEUE_START, SLOT_CHAIN_COMMANDS);
	audit_list(set, SLOT_QUEUE_ABORT, SLOT_CHAIN_COMMANDS);
}
