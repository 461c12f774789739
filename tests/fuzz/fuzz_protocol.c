/* The words of the protocol, as anybody could have written them into Redis: each is
 * refused, or read; and what was read, printed and read again prints the same. */
#include "common/codec/protocol_event.h"
#include "common/codec/protocol_record.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#define ROOM (1 << 16)

static void
check_same(struct span first, struct span second)
{
	VERIFY(span_equals(first, second));
}

static void
check_ids(struct span text)
{
	char one[PROTOCOL_ELEMENT_SIZE + 1], two[PROTOCOL_ELEMENT_SIZE + 1];
	struct protocol_element element, again;
	struct protocol_job_id id;
	size_t len;

	if (protocol_parse_job_id(text, &id) == 0) {
		len = protocol_print_job_id(id, one);
		VERIFY(len <= PROTOCOL_JOB_ID_SIZE);
		check_same((struct span){ one, len }, text); /* an id has one spelling */
	}
	if (protocol_parse_element(text, &element) < 0)
		return;
	len = protocol_print_element(&element, one);
	VERIFY(len <= PROTOCOL_ELEMENT_SIZE);
	VERIFY(protocol_parse_element((struct span){ one, len }, &again) == 0);
	VERIFY(again.slim == element.slim && again.input == element.input);
	check_same((struct span){ one, len },
	           (struct span){ two, protocol_print_element(&again, two) });
}

static void
check_lanes(struct span text)
{
	char one[PROTOCOL_TICKET_SIZE + 1];
	struct protocol_lane_id lane, again;
	uint64_t generation, generation_again;
	size_t len;

	if (protocol_parse_lane_id(text, &lane) == 0) {
		len = protocol_print_lane_id(lane, one);
		VERIFY(len <= PROTOCOL_LANE_ID_SIZE);
		VERIFY(protocol_parse_lane_id((struct span){ one, len }, &again) == 0);
		VERIFY(id_equals(lane.node, again.node) && lane.domain == again.domain);
	}
	if (protocol_parse_ticket(text, &lane, &generation) < 0)
		return;
	len = protocol_print_ticket(lane, generation, one);
	VERIFY(len <= PROTOCOL_TICKET_SIZE);
	VERIFY(protocol_parse_ticket((struct span){ one, len }, &again,
	                             &generation_again) == 0);
	VERIFY(id_equals(lane.node, again.node) && generation == generation_again);
}

static void
check_usage(struct span text)
{
	char one[PROTOCOL_USAGE_SIZE + 1], two[PROTOCOL_USAGE_SIZE + 1];
	struct protocol_usage usage, again;
	size_t len;

	if (protocol_parse_usage(text, &usage) < 0)
		return;
	len = protocol_print_usage(&usage, one);
	VERIFY(len <= PROTOCOL_USAGE_SIZE);
	VERIFY(protocol_parse_usage((struct span){ one, len }, &again) == 0);
	VERIFY(again.read == usage.read && again.written == usage.written);
	check_same((struct span){ one, len },
	           (struct span){ two, protocol_print_usage(&again, two) });
}

static void
check_event(struct span text, char *one, char *two)
{
	struct protocol_event event, again;
	size_t len, len_again;

	if (protocol_event_parse(text, &event) < 0)
		return;
	VERIFY(event.kind < PROTOCOL_EVENT_COUNT);
	if (protocol_event_print(&event, one, ROOM, &len) < 0)
		return;
	VERIFY(protocol_event_parse((struct span){ one, len }, &again) == 0);
	VERIFY(again.kind == event.kind);
	VERIFY(protocol_event_print(&again, two, ROOM, &len_again) == 0);
	check_same((struct span){ one, len }, (struct span){ two, len_again });
}

static void
check_records(struct span text, char *one, char *two)
{
	struct protocol_family family;
	struct protocol_lane lane;
	struct protocol_lease lease;
	size_t len, again;

	if (protocol_record_parse_family(text, &family) == 0 &&
	    protocol_record_print_family(&family, one, ROOM, &len) == 0) {
		VERIFY(protocol_record_parse_family((struct span){ one, len }, &family) ==
		       0);
		VERIFY(protocol_record_print_family(&family, two, ROOM, &again) == 0);
		check_same((struct span){ one, len }, (struct span){ two, again });
	}
	if (protocol_record_parse_lane(text, &lane) == 0 &&
	    protocol_record_print_lane(&lane, one, ROOM, &len) == 0) {
		VERIFY(lane.gate < PROTOCOL_GATE_COUNT);
		VERIFY(protocol_record_parse_lane((struct span){ one, len }, &lane) == 0);
		VERIFY(protocol_record_print_lane(&lane, two, ROOM, &again) == 0);
		check_same((struct span){ one, len }, (struct span){ two, again });
	}
	if (protocol_record_parse_lease(text, &lease) == 0 &&
	    protocol_record_print_lease(&lease, one, ROOM, &len) == 0) {
		VERIFY(protocol_is_role((char)lease.role));
		VERIFY(protocol_record_parse_lease((struct span){ one, len }, &lease) ==
		       0);
		VERIFY(protocol_record_print_lease(&lease, two, ROOM, &again) == 0);
		check_same((struct span){ one, len }, (struct span){ two, again });
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In a block of its own, so that a read behind it is seen. */
	char *copy = malloc(size + 1), *one = malloc(ROOM), *two = malloc(ROOM);
	struct span text = { copy, size };

	VERIFY(copy && one && two);
	if (size > 0)
		memcpy(copy, data, size);
	check_ids(text);
	check_lanes(text);
	check_usage(text);
	check_event(text, one, two);
	check_records(text, one, two);
	free(copy);
	free(one);
	free(two);
	return 0;
}
