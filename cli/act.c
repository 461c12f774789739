#include "cli/act.h"

#include "common/codec/protocol_call.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

static const char *
user_name(void)
{
	const struct passwd *user = getpwuid(getuid());

	return user ? user->pw_name : "somebody";
}

int
act_call(struct store *store, const char *function, const char *const *words,
         size_t count, char ret_what[ACT_WORD_SIZE])
{
	return act_call_behind(store, function, words, count, NULL, ret_what);
}

int
act_call_behind(struct store *store, const char *function, const char *const *words,
                size_t count, const char *behind, char ret_what[ACT_WORD_SIZE])
{
	struct call_list *calls = store_calls(store);
	const struct reply *reply;
	struct span what;
	int code;

	protocol_call_open(calls, 0, store_namespace(store), function);
	for (size_t i = 0; i < count; i++)
		call_text(calls, words[i]);
	call_text(calls, user_name());
	if (behind)
		call_text(calls, behind);
	code = store_call(store, &reply);
	if (code != CLI_OK)
		return code;
	if (!reply_is(reply_at(reply, 0), "OK"))
		return cli_fail(CLI_FAILED, "Redis refused the call.");
	what = reply_text(reply_at(reply, 2));
	(void)snprintf(ret_what, ACT_WORD_SIZE, "%.*s", (int)what.len,
	               what.data ? what.data : "");
	return CLI_OK;
}
