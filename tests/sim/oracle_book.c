#include "tests/sim/oracle_book.h"

#include <stdlib.h>

#define IDS_MAX (1 << 15)

void
oracle_book_init(struct oracle *oracle)
{
	oracle->ids_memory = malloc(table_size(IDS_MAX));
	VERIFY(oracle->ids_memory);
	table_init(&oracle->ids, oracle->ids_memory, IDS_MAX);
}

void
oracle_book_fini(struct oracle *oracle)
{
	free(oracle->ids_memory);
	free(oracle->jobs);
	free(oracle->leases);
	free(oracle->lanes);
	free(oracle->families);
	free(oracle->sessions);
	free(oracle->nodes);
	free(oracle->requests);
}

static struct id128
key_of(char kind, struct span name)
{
	struct id_hash hash;

	id_hash_init(&hash, (uint64_t)kind);
	id_hash_update(&hash, name);
	return id_hash_final(&hash);
}

static uint32_t
find(const struct oracle *oracle, char kind, struct span name)
{
	return table_find(&oracle->ids, key_of(kind, name));
}

/* The place for one more of something; the array moves. */
static void *
grow(void *items, uint32_t count, uint32_t *room, size_t size)
{
	char *bytes = items;

	if (count == *room) {
		*room = *room ? *room * 2 : 64;
		bytes = realloc(items, *room * size);
		VERIFY(bytes);
	}
	memset(bytes + count * size, 0, size);
	return bytes;
}

static void
set_name(char ret_name[ORACLE_NAME_SIZE], struct span name)
{
	VERIFY(name.len < ORACLE_NAME_SIZE);
	memcpy(ret_name, name.data, name.len);
	ret_name[name.len] = '\0';
}

static void
file(struct oracle *oracle, char kind, struct span name, uint32_t index)
{
	VERIFY(table_put(&oracle->ids, key_of(kind, name), index) == 0);
}

uint32_t
oracle_book_job(const struct oracle *oracle, struct span id)
{
	return find(oracle, 'j', id);
}

static uint32_t
find_lane(const struct oracle *oracle, struct span id)
{
	return find(oracle, 'l', id);
}

static uint32_t
find_family(const struct oracle *oracle, struct span id)
{
	return find(oracle, 'f', id);
}

uint32_t
oracle_book_session(const struct oracle *oracle, struct span nonce)
{
	return find(oracle, 's', nonce);
}

uint32_t
oracle_book_lease(const struct oracle *oracle, struct span nonce, uint32_t slot)
{
	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[i];

		if (lease->used && lease->slot == slot &&
		    span_equals(span_from(lease->nonce), nonce))
			return i;
	}
	return ORACLE_NONE;
}

uint32_t
oracle_book_job_make(struct oracle *oracle, struct span id)
{
	uint32_t index = oracle->jobs_count;

	oracle->jobs =
		grow(oracle->jobs, index, &oracle->jobs_room, sizeof *oracle->jobs);
	set_name(oracle->jobs[index].id, id);
	oracle->jobs[index].lease = ORACLE_NONE;
	oracle->jobs_count++;
	file(oracle, 'j', id, index);
	return index;
}

uint32_t
oracle_book_lane_make(struct oracle *oracle, struct span id)
{
	uint32_t index = find_lane(oracle, id);

	if (index != ORACLE_NONE)
		return index;
	index = oracle->lanes_count;
	oracle->lanes =
		grow(oracle->lanes, index, &oracle->lanes_room, sizeof *oracle->lanes);
	set_name(oracle->lanes[index].id, id);
	oracle->lanes[index].family = ORACLE_NONE;
	oracle->lanes_count++;
	file(oracle, 'l', id, index);
	return index;
}

uint32_t
oracle_book_family_make(struct oracle *oracle, struct span id)
{
	uint32_t index = find_family(oracle, id);

	if (index != ORACLE_NONE)
		return index;
	index = oracle->families_count;
	oracle->families = grow(oracle->families, index, &oracle->families_room,
	                        sizeof *oracle->families);
	set_name(oracle->families[index].id, id);
	oracle->families[index].is_new = true;
	oracle->families_count++;
	file(oracle, 'f', id, index);
	return index;
}

uint32_t
oracle_book_session_make(struct oracle *oracle, struct span nonce)
{
	uint32_t index = oracle_book_session(oracle, nonce);

	if (index != ORACLE_NONE)
		return index;
	VERIFY(nonce.len == 16);
	index = oracle->sessions_count;
	oracle->sessions = grow(oracle->sessions, index, &oracle->sessions_room,
	                        sizeof *oracle->sessions);
	memcpy(oracle->sessions[index].nonce, nonce.data, nonce.len);
	oracle->sessions_count++;
	file(oracle, 's', nonce, index);
	return index;
}

uint32_t
oracle_book_budget_make(struct oracle *oracle, struct span name)
{
	uint32_t index = 0;

	for (; index < oracle->budgets_count; index++) {
		if (span_equals(span_from(oracle->budgets[index].name), name))
			return index;
	}
	VERIFY(index < ARRAY_SIZE(oracle->budgets));
	set_name(oracle->budgets[index].name, name);
	return oracle->budgets_count++;
}

uint32_t
oracle_book_pool_make(struct oracle *oracle, struct span name)
{
	uint32_t index = 0;

	for (; index < oracle->pools_count; index++) {
		if (span_equals(span_from(oracle->pools[index]), name))
			return index;
	}
	VERIFY(index < ARRAY_SIZE(oracle->pools));
	set_name(oracle->pools[index], name);
	return oracle->pools_count++;
}

uint32_t
oracle_book_lease_make(struct oracle *oracle)
{
	uint32_t index = 0;

	while (index < oracle->leases_count && oracle->leases[index].used)
		index++;
	if (index == oracle->leases_count) {
		oracle->leases = grow(oracle->leases, index, &oracle->leases_room,
		                      sizeof *oracle->leases);
		oracle->leases_count++;
	}
	oracle->leases[index] = (struct oracle_lease){ .used = true };
	return index;
}

uint32_t
oracle_book_node_make(struct oracle *oracle, uint64_t scope, struct id128 hash)
{
	uint32_t index = 0;

	for (; index < oracle->nodes_count; index++) {
		if (oracle->nodes[index].scope == scope &&
		    id_equals(oracle->nodes[index].hash, hash))
			return index;
	}
	oracle->nodes =
		grow(oracle->nodes, index, &oracle->nodes_room, sizeof *oracle->nodes);
	oracle->nodes[index] = (struct oracle_node){ .scope = scope, .hash = hash };
	oracle->nodes_count++;
	return index;
}

bool
oracle_book_element(struct span element, struct span *ret_id)
{
	size_t len = 0;

	if (element.len > 2 && element.data[0] == 'w' && element.data[1] == ':')
		return false;
	while (len < element.len && element.data[len] != '~' && element.data[len] != '/')
		len++;
	*ret_id = (struct span){ element.data, len };
	return true;
}

uint64_t
oracle_book_number(struct span text)
{
	uint64_t value = 0;

	for (size_t i = 0; i < text.len && text.data[i] >= '0' && text.data[i] <= '9';
	     i++)
		value = value * 10 + (uint64_t)(text.data[i] - '0');
	return value;
}
