#include "tests/sim/oracle_book.h"

#include <stdio.h>

static void
forget(struct oracle *oracle)
{
	oracle->leases_count = 0;
	for (uint32_t i = 0; i < oracle->lanes_count; i++) {
		oracle->lanes[i].in_use = 0;
		oracle->lanes[i].exists = false;
	}
	for (uint32_t i = 0; i < oracle->families_count; i++) {
		oracle->families[i].leases = 0;
		oracle->families[i].turns = 0;
	}
	for (uint32_t i = 0; i < oracle->budgets_count; i++)
		oracle->budgets[i].in_flight = 0;
	for (uint32_t i = 0; i < oracle->sessions_count; i++)
		oracle->sessions[i].gone = true;
	for (uint32_t i = 0; i < oracle->jobs_count; i++)
		oracle->jobs[i].given_back = false;
	oracle->freed_count = 0;
}

static void
read_records(struct oracle *oracle)
{
	const struct redis_value *lanes =
		redis_model_find(oracle->server->model, SPAN("warmq:lanes"));
	const struct redis_value *families =
		redis_model_find(oracle->server->model, SPAN("warmq:families"));

	for (size_t i = 0; lanes && i < lanes->items.count; i++) {
		const struct redis_field *field = redis_value_field(lanes, i);

		oracle_record_lane(oracle, redis_text_span(field->name),
		                   redis_text_span(field->value));
	}
	for (size_t i = 0; families && i < families->items.count; i++) {
		const struct redis_field *field = redis_value_field(families, i);

		oracle_record_family(oracle, redis_text_span(field->name),
		                     redis_text_span(field->value));
	}
}

static void
read_session(struct oracle *oracle, struct span nonce, struct span text)
{
	uint32_t index = oracle_book_session_make(oracle, nonce);
	struct oracle_session *session = &oracle->sessions[index];

	session->gone = false;
	session->c = oracle_book_number(text);
	session->renewed_ms = 0; /* its deadline is Redis's to know */
	oracle_shun_restore(oracle, nonce, text);
}

static void
read_leases(struct oracle *oracle)
{
	static const char PREFIX[] = "warmq:lease:";
	const struct redis_value *table;
	size_t cursor = 0;

	while ((table = redis_model_next(oracle->server->model, &cursor)) != NULL) {
		struct span nonce = redis_text_span(table->key);

		if (strncmp(table->key->data, PREFIX, sizeof PREFIX - 1) != 0)
			continue;
		nonce.data += sizeof PREFIX - 1;
		nonce.len -= sizeof PREFIX - 1;
		for (size_t i = 0; i < table->items.count; i++) {
			const struct redis_field *field = redis_value_field(table, i);
			struct span slot = redis_text_span(field->name);
			struct span text = redis_text_span(field->value);

			if (span_equals(slot, SPAN("s")))
				read_session(oracle, nonce, text);
			else
				oracle_lease_restore(oracle, nonce,
				                     (uint32_t)oracle_book_number(slot),
				                     text);
		}
	}
}

/* The number in one field of a hash; 0 if there is none. */
static uint64_t
peek_number(struct oracle *oracle, const char *key, struct span field)
{
	const struct span argv[] = { SPAN("HGET"), span_from(key), field };

	return oracle_book_number(
		reply_text(server_peek(oracle->server, argv, ARRAY_SIZE(argv))));
}

static void
read_budgets(struct oracle *oracle)
{
	for (uint32_t i = 0; i < oracle->budgets_count; i++) {
		struct oracle_budget *budget = &oracle->budgets[i];
		char key[ORACLE_NAME_SIZE + 32];

		(void)snprintf(key, sizeof key, "warmq:budget:%s", budget->name);
		budget->pace_now = peek_number(oracle, key, SPAN("pace"));
		budget->pace_before = budget->pace_now;
		budget->parked_until_ms = peek_number(oracle, key, SPAN("parked_until"));
	}
}

void
oracle_restore_all(struct oracle *oracle)
{
	oracle->function[0] = '\0';
	forget(oracle);
	read_records(oracle);
	for (uint32_t i = 0; i < oracle->lanes_count; i++) {
		oracle->lanes[i].before = oracle->lanes[i].now;
		oracle->lanes[i].credits_g = oracle->lanes[i].now.generation;
		oracle->lanes[i].credits = oracle->lanes[i].now.credits;
		oracle->lanes[i].changed = false;
	}
	read_leases(oracle);
	read_budgets(oracle);
	oracle->ticked_ms = peek_number(oracle, "warmq:meta", SPAN("tick"));
	oracle->no_reap_until_ms = 0;
}
