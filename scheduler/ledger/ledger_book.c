#include "scheduler/ledger/ledger_state.h"

#define CLOCK_MS 250 /* so far a worker may correct its measure of Redis's clock */

static size_t
rounded(size_t size)
{
	return (size + 15) & ~(size_t)15;
}

size_t
ledger_book_size(uint32_t nodes_max)
{
	return rounded(table_size(nodes_max)) +
	       rounded((size_t)nodes_max * sizeof(struct ledger_entry)) +
	       rounded((size_t)nodes_max * sizeof(struct link));
}

void
ledger_book_init(struct ledger *ledger, void *memory)
{
	uint32_t nodes_max = ledger->config.nodes_max;
	char *at = memory;

	table_init(&ledger->index, at, nodes_max);
	at += rounded(table_size(nodes_max));
	ledger->entries = (struct ledger_entry *)(void *)at;
	at += rounded((size_t)nodes_max * sizeof(struct ledger_entry));
	ledger->links = (struct link *)(void *)at;
	list_init(&ledger->used);
	ledger->entries_count = 0;
}

/* The place is mixed into the half of a hash that the table does not fold first. */
struct id128
ledger_book_key(struct id128 node, uint32_t place, uint32_t domain)
{
	uint64_t mix = ((uint64_t)place << 32 | domain) + 1;

	node.high ^= mix * 0x9e3779b97f4a7c15u;
	node.low += mix;
	return node;
}

static void
touch(struct ledger *ledger, uint32_t at)
{
	list_remove(&ledger->used, ledger->links, at);
	list_push(&ledger->used, ledger->links, at);
}

struct ledger_entry *
ledger_book_find(struct ledger *ledger, struct id128 key)
{
	uint32_t at = table_find(&ledger->index, key);

	if (at == TABLE_NONE)
		return NULL;
	touch(ledger, at);
	return &ledger->entries[at];
}

/* Memory is touched only as the book grows. */
static uint32_t
fresh(struct ledger *ledger)
{
	uint32_t at;

	if (ledger->entries_count < ledger->config.nodes_max) {
		at = ledger->entries_count++;
		ledger->links[at] = (struct link){ LIST_NONE, LIST_NONE, false };
		return at;
	}
	at = list_pop(&ledger->used, ledger->links);
	VERIFY(at != LIST_NONE);
	VERIFY(table_remove(&ledger->index, ledger->entries[at].key));
	ledger_ahead_forget(ledger, &ledger->entries[at]);
	return at;
}

struct ledger_entry *
ledger_book_obtain(struct ledger *ledger, struct id128 key)
{
	struct ledger_entry *entry = ledger_book_find(ledger, key);
	uint32_t at;
	int err;

	if (entry)
		return entry;
	at = fresh(ledger);
	entry = &ledger->entries[at];
	*entry = (struct ledger_entry){ .key = key };
	err = table_put(&ledger->index, key, at);
	VERIFY(err == 0);
	list_push(&ledger->used, ledger->links, at);
	return entry;
}

void
ledger_book_hit(struct ledger_entry *entry, uint64_t sent_ms)
{
	if (sent_ms >= entry->written_ms &&
	    (entry->hit_ms == 0 || sent_ms < entry->hit_ms))
		entry->hit_ms = sent_ms;
	entry->used_ms = MAX(entry->used_ms, sent_ms);
}

bool
ledger_book_is_near(uint64_t a_ms, uint64_t b_ms)
{
	return (a_ms > b_ms ? a_ms - b_ms : b_ms - a_ms) <= CLOCK_MS;
}

/* These wrote beside another writer: the entry is readable as soon as one of them is. */
static bool
is_same_life(enum ledger_cause cause)
{
	return cause == LEDGER_STAMPEDE || cause == LEDGER_HOLD_LIMIT ||
	       cause == LEDGER_PROOF_MISS || cause == LEDGER_FALSE_SPLIT;
}

void
ledger_book_write(struct ledger_entry *entry, const struct ledger_call *call,
                  enum ledger_cause cause)
{
	uint64_t first_ms = call->first_ms == EVENT_UNKNOWN ? 0 : call->first_ms;
	bool same = entry->written_ms > 0 &&
	            (is_same_life(cause) ||
	             ledger_book_is_near(entry->written_ms, call->sent_ms));

	if (!same && entry->used_ms > call->sent_ms + entry->life_ms)
		return; /* it ended after a later life had begun */
	if (!same) {
		entry->written_ms = call->sent_ms;
		entry->first_ms = first_ms;
		entry->hit_ms = 0;
		entry->used_ms = call->sent_ms;
	} else if (first_ms > 0) {
		entry->first_ms =
			entry->first_ms == 0 ? first_ms : MIN(entry->first_ms, first_ms);
	}
	entry->used_ms = MAX(entry->used_ms, call->sent_ms);
}
