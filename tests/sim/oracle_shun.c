#include "tests/sim/oracle_book.h"

#include <stdio.h>

static struct span
upstream_of(const struct oracle *oracle, uint32_t budget)
{
	const char *name = oracle->budgets[budget].name;

	return (struct span){ name, strcspn(name, "@:") };
}

void
oracle_shun_note(struct oracle *oracle, struct span nonce, struct span shunned)
{
	uint32_t index = oracle_book_session(oracle, nonce);

	VERIFY(shunned.len < sizeof oracle->sessions[index].shunned);
	if (index != ORACLE_NONE)
		(void)snprintf(oracle->sessions[index].shunned,
		               sizeof oracle->sessions[index].shunned, "%.*s",
		               (int)shunned.len, shunned.data ? shunned.data : "");
}

void
oracle_shun_restore(struct oracle *oracle, struct span nonce, struct span head)
{
	struct span word, budgets;

	for (int i = 0; i < 4; i++)
		if (!protocol_cut(&head, '|', &budgets))
			return;
	(void)protocol_cut(&budgets, '!', &word);
	oracle_shun_note(oracle, nonce, budgets);
}

bool
oracle_shun_leaves_out(const struct oracle *oracle, const struct oracle_lease *lease,
                       uint32_t budget)
{
	uint32_t index = oracle_book_session(oracle, span_from(lease->nonce));
	struct span only = oracle_book_word(oracle, ORACLE_WORD_NONCE + 3);
	struct span upstream = upstream_of(oracle, budget), list, name;

	if (oracle_book_runs(oracle, "claim") && only.len > 0 && only.data[0] == '=')
		return only.len - 1 != upstream.len ||
		       memcmp(only.data + 1, upstream.data, upstream.len) != 0;
	list = index == ORACLE_NONE ? (struct span){ 0 }
	                            : span_from(oracle->sessions[index].shunned);
	while (protocol_list_next(&list, &name))
		if (span_equals(name, upstream))
			return true;
	return false;
}

void
oracle_shun_judge(struct oracle *oracle, const struct oracle_lease *lease)
{
	struct span upstream = upstream_of(oracle, lease->budget);

	if (oracle_shun_leaves_out(oracle, lease, lease->budget))
		oracle_fail(oracle, "shun", "%s starts a job of %.*s, which it shuns",
		            lease->nonce, (int)upstream.len, upstream.data);
}
