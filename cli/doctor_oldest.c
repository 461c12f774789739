/* The job that has waited longest. */
#include "cli/doctor.h"

#include "cli/store_walk.h"
#include "common/codec/protocol_answer.h"
#include "common/codec/protocol_call.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>

#define FAMILIES_MAX 5000 /* that are looked at */
#define AT_ONCE      100

struct oldest {
	uint64_t ms; /* 0: none yet */
	struct id128 family;
};

/* Route of each family that may have work, by its id. */
static void
see_family(void *data, struct span id, struct span text)
{
	json_t *routes = data;
	struct protocol_family record;

	if (protocol_record_parse_family(text, &record) == 0 && record.bits != 0 &&
	    json_object_size(routes) < FAMILIES_MAX)
		json_object_setn_new(routes, id.data, id.len,
		                     cli_json_text(record.route));
}

/* Sends what was asked for so far. */
static int
see_heads(struct doctor *doctor, struct oldest *oldest)
{
	struct protocol_glance glance;
	const struct reply *reply;
	int code = store_call(doctor->store, &reply);

	for (size_t i = 0; code == CLI_OK && protocol_answer_glance(reply, i, &glance);
	     i++) {
		if (glance.head_ms == 0 ||
		    (oldest->ms > 0 && glance.head_ms >= oldest->ms))
			continue;
		oldest->ms = glance.head_ms;
		oldest->family = glance.family;
	}
	return code;
}

static int
find_oldest(struct doctor *doctor, json_t *routes, struct oldest *oldest)
{
	struct call_list *calls = store_calls(doctor->store);
	int code = CLI_OK;
	size_t asked = 0;
	const char *id;
	json_t *route;

	json_object_foreach(routes, id, route)
	{
		if (code != CLI_OK)
			break;
		if (asked++ % AT_ONCE == 0)
			protocol_call_glance(calls, 0, store_namespace(doctor->store));
		call_text(calls, id);
		if (asked % AT_ONCE == 0 || asked == json_object_size(routes))
			code = see_heads(doctor, oldest);
	}
	return code;
}

/* How long a job may wait is for its people to say: this is no fault, but it is what they
 * ask first, as of one of low priority under an endless stream of others. */
int
doctor_look_at_oldest(struct doctor *doctor)
{
	struct oldest oldest = { 0 };
	json_t *routes = json_object();
	char id[ID_HEX_LEN], age[32];
	const json_t *route;
	int code = CLI_OK;

	if (doctor->has_functions)
		code = store_walk_hash(doctor->store,
		                       store_key(doctor->store, "families", SPAN("")),
		                       see_family, routes);
	if (code == CLI_OK)
		code = find_oldest(doctor, routes, &oldest);
	if (code == CLI_OK && oldest.ms > 0) {
		id_encode(oldest.family, id);
		route = json_object_getn(routes, id, sizeof id);
		doctor_say(
			doctor, DOCTOR_FINE, "oldest", NULL,
			"the job that has waited longest came %s ago, for the route %s",
			cli_duration(doctor->now_ms - MIN(oldest.ms, doctor->now_ms),
		                     age),
			route ? json_string_value(route) : "?");
	}
	json_decref(routes);
	return code;
}
