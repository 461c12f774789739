/* protocol.h - the words of docs/PROTOCOL.md as values: ids, elements, records, usage.
 *
 *   "0000…-3/40,900"  ◄── print ── struct protocol_element ◄── parse ── bytes of Redis
 *
 * Shared by scheduler, worker, command line and simulator, so that each format has one
 * reader and one writer in C.  protocol_call.h builds the calls, protocol_answer.h reads
 * their answers, protocol_event.h the event lines.
 *
 * Parsers take bytes that anybody may have written: they answer ERR_MALFORMED or, for a
 * record of another format, ERR_UNSUPPORTED, and write nothing then.  Spans in what they
 * return point into the bytes parsed.  Printers clamp numbers to their columns, write no
 * zero byte and answer the length; the sizes below are enough for every value.
 *
 * Times are milliseconds of the Redis clock, durations milliseconds, tokens integers.
 * No malloc, no I/O. */
#ifndef COMMON_CODEC_PROTOCOL_H
#define COMMON_CODEC_PROTOCOL_H

#include "common/base.h"
#include "common/error.h"
#include "common/id.h"

#define PROTOCOL_VERSION       1
#define PROTOCOL_LANE_ID_SIZE  43 /* 32 digits, '.', domain */
#define PROTOCOL_JOB_ID_SIZE   52 /* two 64-bit numbers, '-', '.', and a 32-bit one */
#define PROTOCOL_ELEMENT_SIZE  (PROTOCOL_JOB_ID_SIZE + 2 + 41)
#define PROTOCOL_TICKET_SIZE   (2 + PROTOCOL_LANE_ID_SIZE + 1 + 20)
#define PROTOCOL_USAGE_SIZE    220
#define PROTOCOL_NAMESPACE_MAX 64
#define PROTOCOL_UNTIL_NONE    99999999999999ULL /* "no end" in `until` */
#define PROTOCOL_UNKNOWN       (-1)              /* of a usage; not the same as 0 */
#define PROTOCOL_ANCESTORS_MAX 3

enum protocol_band {
	PROTOCOL_HIGH,
	PROTOCOL_NORMAL,
	PROTOCOL_LOW,
	PROTOCOL_BAND_COUNT
};

enum protocol_gate {
	PROTOCOL_CLOSED,
	PROTOCOL_WRITING,
	PROTOCOL_CHECKING,
	PROTOCOL_OPEN,
	PROTOCOL_BYPASS,
	PROTOCOL_LEAKY,
	PROTOCOL_GATE_COUNT,
};

enum protocol_role { /* the letter in the protocol is the value */
	PROTOCOL_PLAIN = 'p',
	PROTOCOL_LEAD = 'l',
	PROTOCOL_CANARY = 'c',
	PROTOCOL_HOLD_LIMIT = 'h',
	PROTOCOL_NOW = 'n',
	PROTOCOL_TICKET = 't',
};

enum protocol_ticket {
	PROTOCOL_TICKET_NONE,
	PROTOCOL_TICKET_WANTED,
	PROTOCOL_TICKET_TAKEN,
	PROTOCOL_TICKET_OK,
	PROTOCOL_TICKET_FAILED,
	PROTOCOL_TICKET_COUNT,
};

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
	PROTOCOL_OPAQUE = 4
};

struct protocol_lane_id {
	struct id128 node;
	uint32_t domain; /* 0 for a hosted account */
};

struct protocol_job_id {
	uint64_t ms;
	uint64_t sequence;
	uint32_t part; /* n of the n-th job of a packed entry, from 1; 0: not packed */
};

struct protocol_element {
	struct protocol_job_id id;
	bool slim;         /* the payload is slim:<id>, not the stream entry */
	bool has_estimate; /* the two below are its own */
	uint64_t input, output;
};

struct protocol_usage { /* PROTOCOL_UNKNOWN where not known */
	int64_t sent_ms, first_ms;
	int64_t read, written, uncached, output;
	int64_t limit_requests, limit_input, limit_output; /* per minute, from headers */
};

struct protocol_family {
	uint32_t bits;  /* enum protocol_list */
	uint32_t flags; /* enum protocol_flag */
	uint64_t live;
	uint64_t hold_max_ms;
	uint64_t input, output; /* estimate of one job */
	uint32_t marks; /* bit i: the i-th px segment carries a marker; 1 is root */
	struct span pool, budget;
	struct span lanes, ancestors, px; /* comma lists: protocol_list_next */
	struct span route;
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
	uint64_t generation;
	uint64_t input, output; /* what the budget was charged */
	uint64_t end_ms;
	uint64_t delivery;
	char band; /* h n l */
};

MUST_USE int protocol_parse_lane_id(struct span text, struct protocol_lane_id *ret_id);
size_t protocol_print_lane_id(struct protocol_lane_id id, char *ret_text);

MUST_USE int protocol_parse_job_id(struct span text, struct protocol_job_id *ret_id);
size_t protocol_print_job_id(struct protocol_job_id id, char *ret_text);

/* A ticket ("w:…") is not an element: ERR_UNSUPPORTED. */
MUST_USE int protocol_parse_element(struct span text,
                                    struct protocol_element *ret_element);
size_t protocol_print_element(const struct protocol_element *element, char *ret_text);

MUST_USE int protocol_parse_ticket(struct span text, struct protocol_lane_id *ret_lane,
                                   uint64_t *ret_generation);
size_t protocol_print_ticket(struct protocol_lane_id lane, uint64_t generation,
                             char *ret_text);

/* Empty text is a usage of which nothing is known. */
MUST_USE int protocol_parse_usage(struct span text, struct protocol_usage *ret_usage);
size_t protocol_print_usage(const struct protocol_usage *usage, char *ret_text);
struct protocol_usage protocol_usage_none(void);

MUST_USE int protocol_parse_family(struct span text, struct protocol_family *ret_family);
MUST_USE int protocol_parse_lane(struct span text, struct protocol_lane *ret_lane);
MUST_USE int protocol_parse_lease(struct span text, struct protocol_lease *ret_lease);

/* These need `size` bytes at least: ERR_FULL if the fields do not fit. */
MUST_USE int protocol_print_family(const struct protocol_family *family, char *ret_text,
                                   size_t size, size_t *ret_len);
MUST_USE int protocol_print_lane(const struct protocol_lane *lane, char *ret_text,
                                 size_t size, size_t *ret_len);
MUST_USE int protocol_print_lease(const struct protocol_lease *lease, char *ret_text,
                                  size_t size, size_t *ret_len);

/* Walks a comma list: start with *list = the field; false at its end. */
bool protocol_list_next(struct span *list, struct span *ret_item);

/* Cuts the next word, ended by `separator` or the end, off *text; false when *text was
 * already used up (data NULL). */
bool protocol_cut(struct span *text, char separator, struct span *ret_word);

char protocol_band_letter(enum protocol_band band);
MUST_USE int protocol_band_of(char letter, enum protocol_band *ret_band);
bool protocol_is_role(char letter);
const char *protocol_gate_text(enum protocol_gate gate);     /* "closed" */
const char *protocol_reason_text(uint32_t reason);           /* "below minimum" */
const char *protocol_role_text(enum protocol_role role);     /* "lead" */
const char *protocol_ticket_text(enum protocol_ticket what); /* "wanted" */

#endif
