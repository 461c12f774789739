/* protocol.h - the words of docs/PROTOCOL.md as values: ids, elements, records, usage.
 *
 *   "0000…-3/40,900"  ◄── print ── struct protocol_element ◄── parse ── bytes of Redis
 *
 * Shared by scheduler, worker, command line and simulator, so that each format has one
 * reader and one writer in C.  protocol_record.h has the records of families, lanes and
 * leases, protocol_call.h builds the calls, protocol_answer.h reads their answers,
 * protocol_event.h the event lines.
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
#define PROTOCOL_USAGE_SIZE    360
#define PROTOCOL_BUDGET_SIZE   (3 * 128 + 2)
#define PROTOCOL_NAMESPACE_MAX 64
#define PROTOCOL_TOKENS_MAX    99999999 /* of one call; what says more counts as this */
#define PROTOCOL_UNTIL_NONE    99999999999999ULL /* "no end" in `until` */
#define PROTOCOL_UNKNOWN       (-1)              /* of a usage; not the same as 0 */

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
	int64_t wait_ms;     /* from when the job was due until its request left */
	int64_t written_1h;  /* part of `written`, for an hour */
	int64_t billed_read; /* what `read` and `written` would say, where they would be
	                      */
	int64_t billed_written; /* no evidence: the request could not carry the marker */
	int64_t server_tool;    /* 1: the provider ran tools of its own */
	int64_t left_requests;  /* of the account's minute, as the headers say */
	int64_t may_bill;       /* 1: it may be billed, whether or not it said how much */
};

MUST_USE int protocol_parse_lane_id(struct span text, struct protocol_lane_id *ret_id);
size_t protocol_print_lane_id(struct protocol_lane_id id, char *ret_text);

MUST_USE int protocol_parse_job_id(struct span text, struct protocol_job_id *ret_id);
size_t protocol_print_job_id(struct protocol_job_id id, char *ret_text);
/* The order in which the stream gives entries, and a pack its jobs: below, at or above
 * zero.  An entry, whose part is 0, comes before the jobs of it. */
int protocol_compare_job_ids(struct protocol_job_id a, struct protocol_job_id b);

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

/* The name of a budget: "upstream:class", or "upstream@account:class" if the account is
 * called otherwise than its upstream.  Each name is at most 128 bytes of A-Z a-z 0-9 . _
 * - or the answer is 0.  Scheduler and worker must agree on it. */
size_t protocol_print_budget(struct span upstream, struct span account,
                             struct span class_name, char *ret_text);

/* Walks a comma list: start with *list = the field; false at its end. */
bool protocol_list_next(struct span *list, struct span *ret_item);

/* Cuts the next word, ended by `separator` or the end, off *text; false when *text was
 * already used up (data NULL). */
bool protocol_cut(struct span *text, char separator, struct span *ret_word);

char protocol_band_letter(enum protocol_band band);
MUST_USE int protocol_band_of(char letter, enum protocol_band *ret_band);
bool protocol_is_role(char letter);
const char *protocol_gate_text(enum protocol_gate gate); /* "closed" */
const char *protocol_reason_text(uint32_t reason);       /* "below minimum" */
const char *protocol_role_text(enum protocol_role role); /* "lead" */

#endif
