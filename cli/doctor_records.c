#include "cli/doctor_records.h"

#include "cli/store_walk.h"
#include "common/codec/protocol_record.h"

#include <stdio.h>

static const char *const hashes[] = { "lanes", "families" };

static void
gather_lane(void *ids, struct span id, struct span text)
{
	struct protocol_lane record;

	if (protocol_record_parse_lane(text, &record) < 0)
		json_array_append_new(ids, json_stringn(id.data, id.len));
}

static void
gather_family(void *ids, struct span id, struct span text)
{
	struct protocol_family record;

	if (protocol_record_parse_family(text, &record) < 0)
		json_array_append_new(ids, json_stringn(id.data, id.len));
}

/* Ids of what cannot be read.  One that is no text is not found, and harms nobody: no
 * list and no lease can name it. */
static int
gather(struct doctor *doctor, size_t hash, json_t *ids)
{
	return store_walk_hash(doctor->store,
	                       store_key(doctor->store, hashes[hash], SPAN("")),
	                       hash == 0 ? gather_lane : gather_family, ids);
}

int
doctor_records_look(struct doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		json_t *ids = json_array();
		int code = gather(doctor, i, ids);
		size_t count = json_array_size(ids);

		if (code == CLI_OK && count > 0)
			doctor_say(
				doctor, DOCTOR_BAD, "records",
				"warmq doctor --repair records; then warmq job retry for "
				"jobs that died of it",
				"%zu records of %s cannot be read, the first is %s: what "
				"meets them fails, and admission stands still",
				count, hashes[i],
				json_string_value(json_array_get(ids, 0)));
		json_decref(ids);
		if (code != CLI_OK)
			return code;
	}
	return CLI_OK;
}

/* Two commands that a full Redis takes; it takes no MULTI.  A call between them may work
 * with what the functions remember of the record, and then writes it anew; what they
 * remember holds under the stamp, so that goes behind it. */
static int
delete_one(struct doctor *doctor, const char *hash, const char *id)
{
	const struct reply *reply;
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("HDEL"),
	                         store_key(doctor->store, hash, SPAN("")), span_from(id));

	if (code == CLI_OK)
		code = STORE_COMMAND(doctor->store, &reply, SPAN("DEL"),
		                     store_key(doctor->store, "stamp", SPAN("")));
	if (code == CLI_OK)
		doctor_say(doctor, DOCTOR_WARNING, "records", NULL,
		           "deleted the record %s of %s: it is written anew when it is "
		           "needed",
		           id, hash);
	return code;
}

int
doctor_records_repair(struct doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++) {
		json_t *ids = json_array();
		const json_t *id;
		size_t at;
		int code = gather(doctor, i, ids);

		json_array_foreach(ids, at, id)
		{
			if (code == CLI_OK)
				code = delete_one(doctor, hashes[i],
				                  json_string_value(id));
		}
		json_decref(ids);
		if (code != CLI_OK)
			return code;
	}
	if (doctor->counts[DOCTOR_WARNING] == 0)
		doctor_say(doctor, DOCTOR_FINE, "records", NULL,
		           "all can be read: nothing was changed");
	return CLI_OK;
}
