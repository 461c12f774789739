/* protocol_record.h - families, lanes and leases as Redis keeps them.
 *
 *   1  8 012 …  |pool|budget|…      fixed columns of digits, then fields behind bars
 *
 * Redis's functions are the only writers; these readers are for everybody else, the
 * printers for the simulator's store and for tests.  Columns and owners of each field
 * are in docs/PROTOCOL.md.  Printers clamp numbers to their columns. */
#ifndef COMMON_CODEC_PROTOCOL_RECORD_H
#define COMMON_CODEC_PROTOCOL_RECORD_H

#include "common/codec/protocol.h"

/* Bits of a family's non-empty lists; (bits & (3 << 2 * band)) is one band. */
enum protocol_list {
	PROTOCOL_BACK_HIGH = 1,
	PROTOCOL_READY_HIGH = 2,
	PROTOCOL_BACK_NORMAL = 4,
	PROTOCOL_READY_NORMAL = 8,
	PROTOCOL_BACK_LOW = 16,
	PROTOCOL_READY_LOW = 32,
	PROTOCOL_LIST_NOW = 64,
};

enum protocol_flag {
	PROTOCOL_PAUSED = 1,
	PROTOCOL_SHARED = 2,
	PROTOCOL_OPAQUE = 4,
	PROTOCOL_UNHELD = 8,
	PROTOCOL_MARKABLE = 16, /* a marker at its own end can pay, once it is shared */
	PROTOCOL_MARKED = 32    /* jobs of it have marked its end themselves */
};

struct protocol_family {
	uint32_t bits;  /* enum protocol_list */
	uint32_t flags; /* enum protocol_flag */
	uint64_t live;
	uint64_t hold_max_ms;
	uint64_t input, output; /* estimate of one job */
	uint32_t marks; /* px segments rendered with a marker: 1 the root, 2 the next */
	struct span pool, budget;
	struct span lanes, ancestors, px; /* comma lists: protocol_list_next */
	struct span route;
	struct span model; /* as its first job named it; .data NULL: not known */
};

struct protocol_lane {
	enum protocol_gate gate;
	uint32_t reason; /* of bypass and leaky, see the protocol */
	uint64_t generation;
	uint32_t credits;
	uint32_t credit_role; /* 1 lead, 2 canary */
	uint32_t in_use, window;
	uint64_t rank;
	uint64_t until_ms;
	uint64_t tokens; /* P; 0 unknown */
	uint64_t life_ms;
	enum protocol_ticket ticket;
	uint64_t ticket_deadline_ms;
	uint64_t must_begin_ms;
	struct span pool, budget, family, px, ticket_note;
};

struct protocol_lease {
	uint64_t q;
	struct span family;
	struct span lane;
	struct span element; /* or a ticket */
	enum protocol_role role;
	bool begun; /* of a credit or a ticket: its first event was told */
	uint64_t generation;
	uint64_t input, output; /* what the budget was charged */
	uint64_t end_ms;
	uint64_t delivery;
	char band; /* h n l */
};

MUST_USE int protocol_record_parse_family(struct span text,
                                          struct protocol_family *ret_family);
MUST_USE int protocol_record_parse_lane(struct span text, struct protocol_lane *ret_lane);
MUST_USE int protocol_record_parse_lease(struct span text,
                                         struct protocol_lease *ret_lease);

/* These need `size` bytes at least: ERR_FULL if the fields do not fit. */
MUST_USE int protocol_record_print_family(const struct protocol_family *family,
                                          char *ret_text, size_t size, size_t *ret_len);
MUST_USE int protocol_record_print_lane(const struct protocol_lane *lane, char *ret_text,
                                        size_t size, size_t *ret_len);
MUST_USE int protocol_record_print_lease(const struct protocol_lease *lease,
                                         char *ret_text, size_t size, size_t *ret_len);

#endif
