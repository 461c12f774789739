#include "cli/doctor_records.h"

#include "common/codec/protocol_record.h"

#include <stdio.h>

static const char *const hashes[] = { "lanes", "families" };

int
records_walk(struct doctor *doctor, const char *name,
             void (*see)(struct doctor *doctor, struct span id, struct span text,
                         void *data),
             void *data)
{
	char cursor[24] = "0";

	do {
		const struct reply *reply, *pairs;
		struct span next;
		int code = STORE_COMMAND(doctor->store, &reply, SPAN("HSCAN"),
		                         store_key(doctor->store, name, SPAN("")),
		                         span_from(cursor), SPAN("COUNT"), SPAN("1000"));

		if (code != CLI_OK)
			return code;
		next = reply_text(reply_at(reply, 0));
		snprintf(cursor, sizeof cursor, "%.*s", (int)next.len, next.data);
		pairs = reply_at(reply, 1);
		for (size_t i = 0; i + 1 < pairs->count; i += 2)
			see(doctor, reply_text(&pairs->items[i]),
			    reply_text(&pairs->items[i + 1]), data);
	} while (strcmp(cursor, "0") != 0);
	return CLI_OK;
}

static void
gather_lane(struct doctor *doctor, struct span id, struct span text, void *data)
{
	struct protocol_lane record;

	(void)doctor;
	if (protocol_record_parse_lane(text, &record) < 0)
		json_array_append_new(data, json_stringn(id.data, id.len));
}

static void
gather_family(struct doctor *doctor, struct span id, struct span text, void *data)
{
	struct protocol_family record;

	(void)doctor;
	if (protocol_record_parse_family(text, &record) < 0)
		json_array_append_new(data, json_stringn(id.data, id.len));
}

/* Ids of what cannot be read.  One that is no text is not found, and harms nobody: no
 * list and no lease can name it. */
static int
gather(struct doctor *doctor, size_t hash, json_t *ids)
{
	return records_walk(doctor, hashes[hash], hash == 0 ? gather_lane : gather_family,
	                    ids);
}

int
records_look(struct doctor *doctor)
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

static int
delete_one(struct doctor *doctor, const char *hash, const char *id)
{
	const struct reply *reply;
	/* What the functions remember of records holds under this stamp. */
	int code = STORE_COMMAND(doctor->store, &reply, SPAN("MULTI"));

	if (code == CLI_OK)
		code = STORE_COMMAND(doctor->store, &reply, SPAN("HDEL"),
		                     store_key(doctor->store, hash, SPAN("")),
		                     span_from(id));
	if (code == CLI_OK)
		code = STORE_COMMAND(doctor->store, &reply, SPAN("DEL"),
		                     store_key(doctor->store, "stamp", SPAN("")));
	if (code == CLI_OK)
		code = STORE_COMMAND(doctor->store, &reply, SPAN("EXEC"));
	if (code == CLI_OK)
		doctor_say(doctor, DOCTOR_WARNING, "records", NULL,
		           "deleted the record %s of %s: it is written anew when it is "
		           "needed",
		           id, hash);
	return code;
}

int
records_repair(struct doctor *doctor)
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
