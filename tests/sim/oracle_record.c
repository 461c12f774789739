#include "tests/sim/oracle_book.h"

void
oracle_record_lane(struct oracle *oracle, struct span id, struct span record)
{
	uint32_t index = oracle_book_lane_make(oracle, id);
	struct oracle_lane *lane = &oracle->lanes[index];
	struct protocol_lane parsed;

	lane->changed = true;
	if (record.len == 0) {
		lane->exists = false;
		lane->now = (struct protocol_lane){ 0 };
		return;
	}
	if (protocol_record_parse_lane(record, &parsed) < 0) {
		oracle_fail(oracle, "record", "lane %s: %.*s", lane->id, (int)record.len,
		            record.data);
		return;
	}
	lane->pool = oracle_book_pool_make(oracle, parsed.pool);
	if (parsed.budget.len > 0)
		lane->budget = oracle_book_budget_make(oracle, parsed.budget);
	if (parsed.family.len > 0)
		lane->family = oracle_book_family_make(oracle, parsed.family);
	if (lane->exists && parsed.generation != lane->now.generation &&
	    !oracle_book_runs(oracle, "grant"))
		oracle_fail(oracle, "record", "%s changed the generation of %s",
		            oracle->function, lane->id);
	if (lane->exists && parsed.generation < lane->now.generation)
		oracle_fail(oracle, "record", "the generation of %s falls", lane->id);
	if (!lane->exists || parsed.generation != lane->now.generation) {
		lane->credits_g = parsed.generation;
		lane->credits = parsed.credits;
	}
	lane->exists = true;
	lane->now = parsed;
}

void
oracle_record_family(struct oracle *oracle, struct span id, struct span record)
{
	uint32_t index = oracle_book_family_make(oracle, id);
	struct oracle_family *family;
	struct protocol_family parsed;
	struct span list;
	struct span item;

	if (protocol_record_parse_family(record, &parsed) < 0) {
		oracle_fail(oracle, "record", "family %.*s: %.*s", (int)id.len, id.data,
		            (int)record.len, record.data);
		return;
	}
	family = &oracle->families[index];
	family->touched = true;
	family->bits = parsed.bits;
	family->flags = parsed.flags;
	/* A shared part without jobs of its own is nobody's to hear of. */
	if ((parsed.flags & PROTOCOL_PAUSED) == 0 || parsed.lanes.len == 0)
		family->paused_us = 0;
	else if (family->paused_us == 0)
		family->paused_us = MAX(oracle->agenda->now_us, 1);
	family->ancestors_count = 0;
	if (parsed.pool.len > 0)
		family->pool = oracle_book_pool_make(oracle, parsed.pool);
	if (parsed.budget.len > 0)
		family->budget = oracle_book_budget_make(oracle, parsed.budget);
	list = parsed.ancestors;
	while (protocol_list_next(&list, &item) &&
	       family->ancestors_count < ORACLE_ANCESTORS_MAX)
		family->ancestors[family->ancestors_count++] =
			oracle_book_lane_make(oracle, item);
	list = parsed.lanes;
	if (protocol_list_next(&list, &item))
		family->lane = oracle_book_lane_make(oracle, item);
}
