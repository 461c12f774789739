#include "tests/sim/oracle_book.h"

#include <stdio.h>

static void
add_job(struct oracle *oracle, struct span id)
{
	uint32_t index = oracle_book_job(oracle, id);

	if (index == ORACLE_NONE)
		index = oracle_book_job_make(oracle, id);
	/* after a lost tail the same id may be issued again: another job */
	oracle->jobs[index].state = ORACLE_JOB_ALIVE;
	oracle->jobs[index].results = 0;
	oracle->jobs[index].dead = false;
	oracle->jobs[index].attempts = 0;
	oracle->jobs[index].added_us = oracle->agenda->now_us;
}

/* Elements of a JSON array; 0: it is none. */
static uint32_t
count_json(struct span text)
{
	uint32_t count = 1;
	bool quoted = false;
	int depth = 0;

	if (text.len < 3 || text.data[0] != '[')
		return 0;
	for (size_t i = 1; i + 1 < text.len; i++) {
		char c = text.data[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '{' || c == '['))
			depth++;
		else if (!quoted && (c == '}' || c == ']'))
			depth--;
		else if (!quoted && depth == 0 && c == ',')
			count++;
	}
	return count;
}

/* The same for MessagePack: an array of a 16 bit size. */
static uint32_t
count_msgpack(struct span text)
{
	const unsigned char *bytes = (const unsigned char *)text.data;

	return text.len < 3 || bytes[0] != 0xdc ? 0 : (uint32_t)bytes[1] << 8 | bytes[2];
}

void
oracle_job_enqueued(struct oracle *oracle, struct span entry)
{
	uint32_t count = 0;

	for (size_t i = 3; i + 1 < oracle->argc; i += 2) {
		if (span_equals(oracle->argv[i], SPAN("json")))
			count = count_json(oracle->argv[i + 1]);
		if (span_equals(oracle->argv[i], SPAN("m")))
			count = count_msgpack(oracle->argv[i + 1]);
	}
	if (count == 0) {
		add_job(oracle, entry);
		return;
	}
	for (uint32_t part = 1; part <= count; part++) {
		char id[ORACLE_NAME_SIZE];

		(void)snprintf(id, sizeof id, "%.*s.%u", (int)entry.len, entry.data,
		               part);
		add_job(oracle, span_from(id));
	}
}

static bool
is_settled_here(const struct oracle *oracle, uint32_t index)
{
	for (uint32_t i = 0; i < oracle->settled_count; i++) {
		if (oracle->settled[i] == index)
			return true;
	}
	return false;
}

/* Whoever says so has taken the place of that session's process. */
static bool
is_of_dead(const struct oracle *oracle, uint32_t lease)
{
	return span_equals(oracle_book_word(oracle, ORACLE_WORD_NONCE), SPAN("of")) &&
	       span_equals(oracle_book_word(oracle, ORACLE_WORD_NONCE + 1),
	                   span_from(oracle->leases[lease].nonce));
}

/* Results come from the lease's holder, from a late worker if nobody has the job, or
 * from whoever ends a job without a worker. */
static void
judge_author(struct oracle *oracle, uint32_t index)
{
	const struct oracle_job *job = &oracle->jobs[index];

	if ((strcmp(oracle->function, "settle") == 0 ||
	     strcmp(oracle->function, "fail") == 0) &&
	    !is_settled_here(oracle, index))
		oracle_fail(oracle, "token", "%s ended %s without holding its lease",
		            oracle->function, job->id);
	if (strcmp(oracle->function, "settle_late") == 0 && job->lease != ORACLE_NONE &&
	    !is_of_dead(oracle, job->lease))
		oracle_fail(oracle, "late",
		            "a late result ended %s, which somebody holds", job->id);
}

void
oracle_job_result(struct oracle *oracle, struct span id)
{
	uint32_t index = oracle_book_job(oracle, id);
	struct oracle_job *job;

	if (index == ORACLE_NONE) {
		/* dead at admission: a pack's job, or an entry that is no job */
		index = oracle_book_job_make(oracle, id);
		oracle->jobs[index].added_us = oracle->agenda->now_us;
	}
	job = &oracle->jobs[index];
	if (job->state == ORACLE_JOB_ENDED)
		oracle_fail(oracle, "I6", "%s ends a second time, by %s", job->id,
		            oracle->function);
	judge_author(oracle, index);
	job->state = ORACLE_JOB_ENDED;
	job->ended_us = oracle->agenda->now_us;
	job->results++;
	oracle->terminal++;
	if (oracle->ended_count < ARRAY_SIZE(oracle->ended))
		oracle->ended[oracle->ended_count++] = index;
}

void
oracle_job_dead(struct oracle *oracle, struct span id)
{
	uint32_t index = oracle_book_job(oracle, id);

	if (index == ORACLE_NONE) {
		index = oracle_book_job_make(oracle, id);
		oracle->jobs[index].added_us = oracle->agenda->now_us;
	}
	oracle->jobs[index].dead = true;
}

static bool
has_key(struct oracle *oracle, const char *prefix, const char *name)
{
	char key[ORACLE_NAME_SIZE + 32];

	(void)snprintf(key, sizeof key, "%s%s", prefix, name);
	return redis_model_find(oracle->server->model, span_from(key)) != NULL;
}

/* Its entry, or that of its pack. */
static bool
has_entry(struct oracle *oracle, const char *id)
{
	struct span entry = { id, strcspn(id, ".") };
	const struct span argv[] = { SPAN("XRANGE"), SPAN("warmq:jobs"), entry, entry };

	return server_peek(oracle->server, argv, ARRAY_SIZE(argv))->count > 0;
}

static bool
has_payload(struct oracle *oracle, const char *id)
{
	return has_key(oracle, "warmq:slim:", id) ||
	       (!strchr(id, '.') && has_entry(oracle, id));
}

/* Whether any list of any family holds the job. */
static uint32_t
count_in_lists(struct oracle *oracle, const char *id)
{
	const struct redis_value *value;
	struct span name;
	size_t cursor = 0;
	uint32_t count = 0;

	while ((value = redis_model_next(oracle->server->model, &cursor)) != NULL) {
		if (value->type != REDIS_LIST ||
		    strncmp(value->key->data, "warmq:reply:", 12) == 0)
			continue;
		for (size_t i = 0; i < value->items.count; i++) {
			struct span element =
				redis_text_span(*redis_value_text(value, i));

			count += oracle_book_element(element, &name) &&
			         span_equals(name, span_from(id));
		}
	}
	return count;
}

static bool
has_score(struct oracle *oracle, const char *zset, const char *id)
{
	const struct span argv[] = { SPAN("ZSCORE"), span_from(zset), span_from(id) };

	return server_peek(oracle->server, argv, ARRAY_SIZE(argv))->kind == REPLY_TEXT;
}

/* Where an alive job is, besides the lease: in a list, later, or dead. */
static uint32_t
count_places(struct oracle *oracle, const struct oracle_job *job)
{
	return count_in_lists(oracle, job->id) +
	       has_score(oracle, "warmq:later", job->id) +
	       has_score(oracle, "warmq:dead", job->id) + (job->lease != ORACLE_NONE);
}

/* An entry that nobody has admitted yet is behind the cursor. */
static bool
is_in_inbox(struct oracle *oracle, const struct oracle_job *job)
{
	const struct span argv[] = { SPAN("HGET"), SPAN("warmq:meta"), SPAN("cursor") };
	const struct reply *reply;
	unsigned long long ms = 0;
	unsigned long long seq = 0;
	unsigned long long n = 0;
	unsigned long long job_ms = 0;
	unsigned long long job_seq = 0;
	unsigned long long part = 0;

	if (!has_entry(oracle, job->id))
		return false;
	reply = server_peek(oracle->server, argv, ARRAY_SIZE(argv));
	if (reply->kind == REPLY_TEXT)
		(void)sscanf(reply->text.data, "%llu-%llu %llu", &ms, &seq, &n);
	(void)sscanf(job->id, "%llu-%llu.%llu", &job_ms, &job_seq, &part);
	if (job_ms == ms && job_seq == seq)
		return n > 0 && part > n; /* the rest of a pack */
	return job_ms > ms || (job_ms == ms && job_seq > seq);
}

/* A job that lost its lease in this call has ended, or waits somewhere again. */
static void
judge_freed(struct oracle *oracle)
{
	for (uint32_t i = 0; oracle->freed_count > 0 && i < oracle->jobs_count; i++) {
		struct oracle_job *job = &oracle->jobs[i];

		if (!job->given_back)
			continue;
		job->given_back = false;
		oracle->freed_count--;
		if (job->state != ORACLE_JOB_ALIVE || job->dead)
			continue;
		if (count_places(oracle, job) != 1)
			oracle_fail(oracle, "lost", "after %s, %s is in %u places",
			            oracle->function, job->id, count_places(oracle, job));
	}
}

void
oracle_job_after(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->ended_count; i++) {
		const struct oracle_job *job = &oracle->jobs[oracle->ended[i]];

		if (!job->dead && has_payload(oracle, job->id))
			oracle_fail(oracle, "payload",
			            "%s ended by %s, and its payload is there", job->id,
			            oracle->function);
	}
	judge_freed(oracle);
}

void
oracle_census(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->jobs_count; i++) {
		const struct oracle_job *job = &oracle->jobs[i];
		uint32_t places;

		if (job->state != ORACLE_JOB_ALIVE)
			continue;
		places = count_places(oracle, job);
		if (is_in_inbox(oracle, job) ? places != 0 : places != 1)
			oracle_fail(oracle, "lost",
			            "%s is in %u places, with%s a payload, %s the cursor",
			            job->id, places,
			            has_payload(oracle, job->id) ? "" : "out",
			            is_in_inbox(oracle, job) ? "behind" : "before");
		if (!has_payload(oracle, job->id) && !is_in_inbox(oracle, job))
			oracle_fail(oracle, "lost", "%s has no payload", job->id);
	}
}

bool
oracle_all_ended(const struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->jobs_count; i++) {
		if (oracle->jobs[i].state == ORACLE_JOB_ALIVE)
			return false;
	}
	return true;
}

/* ---- the end ---------------------------------------------------------------------- */

static void
judge_records(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->leases_count; i++) {
		const struct oracle_lease *lease = &oracle->leases[i];

		if (lease->used)
			oracle_fail(oracle, "I12", "slot %u of %s is still leased",
			            lease->slot, lease->nonce);
	}
	for (uint32_t i = 0; i < oracle->lanes_count; i++) {
		const struct oracle_lane *lane = &oracle->lanes[i];

		if (lane->exists && lane->now.in_use != 0)
			oracle_fail(oracle, "I12", "lane %s has %u in use", lane->id,
			            lane->now.in_use);
	}
	/* All routes are held again, and an audit has brought it about. */
	for (uint32_t i = 0; i < oracle->families_count; i++)
		if (oracle->families[i].flags & PROTOCOL_UNHELD)
			oracle_fail(oracle, "unheld", "family %s is still unheld",
			            oracle->families[i].id);
}

static void
judge_budgets(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->budgets_count; i++) {
		char key[ORACLE_NAME_SIZE + 32];
		const struct span argv[] = { SPAN("HGET"), span_from(key),
			                     SPAN("in_flight") };
		int64_t in_flight;

		(void)snprintf(key, sizeof key, "warmq:budget:%s",
		               oracle->budgets[i].name);
		in_flight = reply_integer(
			server_peek(oracle->server, argv, ARRAY_SIZE(argv)), 0);
		if (in_flight != 0)
			oracle_fail(oracle, "I12", "budget %s has %lld in flight",
			            oracle->budgets[i].name, (long long)in_flight);
	}
}

/* Only the dead have a history after their end. */
static bool
is_remembered(struct oracle *oracle, const char *id)
{
	uint32_t index = oracle_book_job(oracle, span_from(id));

	return index != ORACLE_NONE && oracle->jobs[index].dead;
}

/* What may be left once everything has ended: nothing that waits. */
static void
judge_keys(struct oracle *oracle)
{
	const struct redis_value *value;
	size_t cursor = 0;

	while ((value = redis_model_next(oracle->server->model, &cursor)) != NULL) {
		const char *key = value->key->data;

		if (strncmp(key, "warmq:ready:", 12) == 0 ||
		    strncmp(key, "warmq:back:", 11) == 0 ||
		    strncmp(key, "warmq:now:", 10) == 0) {
			for (size_t i = 0; i < value->items.count; i++) {
				struct span id;
				uint32_t job = ORACLE_NONE;

				if (oracle_book_element(
					    redis_text_span(*redis_value_text(value, i)),
					    &id))
					job = oracle_book_job(oracle, id);
				if (job == ORACLE_NONE ||
				    oracle->jobs[job].state == ORACLE_JOB_ALIVE)
					oracle_fail(oracle, "I12", "%s still holds %.*s",
					            key, (int)id.len, id.data);
			}
		}
		if (strncmp(key, "warmq:past:", 11) == 0 &&
		    !is_remembered(oracle, key + 11))
			oracle_fail(oracle, "I12", "%s is left behind", key);
		if (strcmp(key, "warmq:ended") == 0)
			oracle_fail(oracle, "I12", "%s is not empty", key);
		if (strncmp(key, "warmq:later", 11) == 0)
			oracle_fail(oracle, "I12", "%s is not empty", key);
	}
}

void
oracle_check_end(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->jobs_count; i++) {
		const struct oracle_job *job = &oracle->jobs[i];

		if (job->state == ORACLE_JOB_ALIVE)
			oracle_fail(oracle, "I8", "%s has not ended", job->id);
		if (job->state == ORACLE_JOB_ENDED && job->results != 1)
			oracle_fail(oracle, "I6", "%s has %u results", job->id,
			            job->results);
	}
	judge_records(oracle);
	judge_budgets(oracle);
	judge_keys(oracle);
}
