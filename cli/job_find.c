#include "cli/job_find.h"

#include "cli/pack.h"
#include "cli/snapshot.h"
#include "common/codec/protocol_record.h"

/* "1700-0~/40,900" -> "1700-0" */
static struct span
id_of_element(struct span element)
{
	for (size_t i = 0; i < element.len; i++)
		if (element.data[i] == '~' || element.data[i] == '/')
			return (struct span){ element.data, i };
	return element;
}

static json_t *
route_of(const struct snapshot *snapshot, struct span id)
{
	struct protocol_family family;
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)id.len, id.data);
	if (protocol_record_parse_family(snapshot_text(snapshot->families, name),
	                                 &family) < 0)
		return json_string("");
	return cli_json_text(family.route);
}

static json_t *
running_row(const struct snapshot *snapshot, const char *nonce, const char *slot,
            const struct protocol_lease *lease)
{
	const json_t *session = json_object_get(snapshot->sessions, nonce);

	return json_pack("{s:o,s:s,s:o,s:o,s:s,s:o,s:s,s:s,s:I}", "id",
	                 cli_json_text(id_of_element(lease->element)), "state", "running",
	                 "family", cli_json_text(lease->family), "route",
	                 route_of(snapshot, lease->family), "role",
	                 protocol_role_text(lease->role), "worker",
	                 cli_json_text(snapshot_text(session, "label")), "session", nonce,
	                 "slot", slot, "delivery", (json_int_t)lease->delivery);
}

int
job_find_running(struct store *store, const char *id, json_t *rows)
{
	struct snapshot snapshot;
	const char *nonce, *slot;
	json_t *table, *text;
	int code = snapshot_load(store, &snapshot);

	if (code != CLI_OK)
		return code;
	json_object_foreach(snapshot.leases, nonce, table)
	{
		json_object_foreach(table, slot, text)
		{
			struct protocol_lease lease;

			if (protocol_record_parse_lease(snapshot_text(table, slot),
			                                &lease) < 0)
				continue;
			if (id &&
			    !span_equals(id_of_element(lease.element), span_from(id)))
				continue;
			json_array_append_new(
				rows, running_row(&snapshot, nonce, slot, &lease));
		}
	}
	snapshot_fini(&snapshot);
	return CLI_OK;
}

/* ---- one job --------------------------------------------------------------------- */

static int
find_result(struct store *store, const char *id, json_t *job)
{
	const struct reply *reply;
	json_t *result;
	int code = STORE_COMMAND(store, &reply, SPAN("GET"),
	                         store_key(store, "result:", span_from(id)));

	if (code != CLI_OK || reply->kind != REPLY_TEXT)
		return code;
	result = json_loadb(reply->text.data, reply->text.len, JSON_DECODE_ANY, NULL);
	if (!result)
		result = cli_json_text(reply->text);
	json_object_set(job, "state", json_object_get(result, "state"));
	json_object_set_new(job, "result", result);
	return CLI_OK;
}

static int
find_lease(struct store *store, const char *id, json_t *job)
{
	json_t *rows = json_array();
	int code = job_find_running(store, id, rows);

	if (json_array_size(rows) > 0)
		json_object_update(job, json_array_get(rows, 0));
	json_decref(rows);
	return code;
}

static int
find_score(struct store *store, const char *set, const char *id, json_t *job)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("ZSCORE"),
	                         store_key(store, set, SPAN("")), span_from(id));

	if (code == CLI_OK && reply->kind != REPLY_NIL) {
		json_object_set_new(job, "state", json_string(set));
		json_object_set_new(job, "time_ms",
		                    json_integer(reply_integer(reply, 0)));
	}
	return code;
}

static int
find_payload(struct store *store, const char *id, json_t *job)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("EXISTS"),
	                         store_key(store, "slim:", span_from(id)));
	bool is_alive = code == CLI_OK && reply_integer(reply, 0) > 0;

	if (code == CLI_OK && !is_alive && !strchr(id, '.')) {
		code = STORE_COMMAND(store, &reply, SPAN("XRANGE"),
		                     store_key(store, "jobs", SPAN("")), span_from(id),
		                     span_from(id));
		is_alive = code == CLI_OK && reply->count > 0;
	}
	if (is_alive && !json_object_get(job, "state"))
		json_object_set_new(job, "state", json_string("waiting"));
	return code;
}

static int
find_past(struct store *store, const char *id, json_t *job)
{
	json_t *past;
	int code = snapshot_hash(store, store_key(store, "past:", span_from(id)), &past);

	if (code != CLI_OK)
		return code;
	if (json_object_size(past) > 0)
		json_object_set(job, "past", past);
	json_decref(past);
	return CLI_OK;
}

int
job_find(struct store *store, const char *id, json_t *job)
{
	int code = find_result(store, id, job);

	if (code == CLI_OK && !json_object_get(job, "state"))
		code = find_lease(store, id, job);
	if (code == CLI_OK)
		code = find_score(store, "later", id, job);
	if (code == CLI_OK)
		code = find_score(store, "dead", id, job);
	if (code == CLI_OK)
		code = find_payload(store, id, job);
	return code == CLI_OK ? find_past(store, id, job) : code;
}

/* ---- nothing is known ------------------------------------------------------------ */

/* Whether the inbox has not got to its entry. */
static bool
is_of_nobody(const char *id, struct protocol_job_id last)
{
	struct protocol_job_id entry;

	if (protocol_parse_job_id(span_from(id), &entry) < 0)
		return false;
	entry.part = 0;
	return protocol_compare_job_ids(entry, last) > 0;
}

int
job_find_refuse(struct store *store, const char *id)
{
	struct protocol_job_id last;
	size_t jobs = 0;
	bool waits = false;
	int code = store_last_id(store, &last);

	if (code == CLI_OK && !strchr(id, '.'))
		code = pack_last(store, span_from(id), &jobs);
	else if (code == CLI_OK)
		code = pack_waits(store, span_from(id), &waits);
	if (code != CLI_OK)
		return code;
	if (waits)
		return cli_fail(CLI_FAILED,
		                "The entry of %s is still in the inbox: its jobs are "
		                "known once a scheduler has admitted them.",
		                id);
	if (jobs == 1)
		return cli_fail(CLI_NOT_FOUND,
		                "%s is no job, but an entry of one, which is %s.1.", id,
		                id);
	if (jobs > 0)
		return cli_fail(CLI_NOT_FOUND,
		                "%s is no job, but an entry of %zu: they are %s.1 to "
		                "%s.%zu.",
		                id, jobs, id, id, jobs);
	if (last.ms == 0)
		return cli_fail(CLI_NOT_FOUND,
		                "There never was a job %s: nothing was ever enqueued in "
		                "this namespace.",
		                id);
	if (is_of_nobody(id, last))
		return cli_fail(CLI_NOT_FOUND,
		                "There never was a job %s: the last one that was "
		                "enqueued here is %llu-%llu.",
		                id, (unsigned long long)last.ms,
		                (unsigned long long)last.sequence);
	return cli_fail(CLI_NOT_FOUND,
	                "Nothing is known of the job %s: it never was, or it ended and "
	                "its result was delivered or has expired.",
	                id);
}
