#include "cli/store.h"

#include "common/codec/protocol_answer.h"
#include "common/io/redis_sync.h"
#include "common/io/redis_url.h"
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What Redis 7.0, and what later ones say of a command inside a function; what helps. */
#define UNALLOWED_70 "The user executing the script can't"
#define UNALLOWED    "ACL failure in script"
/* What Redis says before it hangs up on who comes last. */
#define CROWDED      "ERR max number of clients"
#define ANOTHER_USER " This user of Redis may not do that: name another one with --redis."

#define TIMEOUT_MS   5000
#define KEYS_MAX     16
#define KEY_SIZE     320
#define ASKED_SIZE   400 /* a command and its key */
#define CALL_BYTES   ((size_t)1 << 16)
#define CALL_LIST_OF 1

struct store {
	struct redis_sync *redis;
	struct span name_space;
	char keys[KEYS_MAX][KEY_SIZE];
	size_t keys_next;
	struct call_list calls;
	struct call call[CALL_LIST_OF];
	struct call_arg args[STORE_CALL_WORDS];
	char bytes[CALL_BYTES];
};

/* What ends somebody else's sentence, if it does not end by itself. */
static const char *
full_stop(struct span text)
{
	return text.len > 0 && text.data[text.len - 1] == '.' ? "" : ".";
}

int
store_open(const struct cli *cli, struct store **ret_store)
{
	char message[REDIS_SYNC_MESSAGE_SIZE] = "";
	struct redis_url url;
	struct store *store;
	int err;

	if (redis_url_parse(span_from(cli->redis), &url, message) < 0)
		return cli_fail(CLI_USAGE, "%s", message);
	if (strlen(cli->name_space) > PROTOCOL_NAMESPACE_MAX ||
	    !text_is_name(span_from(cli->name_space)))
		return cli_fail(CLI_USAGE,
		                "--namespace takes 1 to %d of A-Z a-z 0-9 . _ -, as "
		                "schedulers and workers do.",
		                PROTOCOL_NAMESPACE_MAX);
	store = calloc(1, sizeof *store);
	VERIFY(store);
	store->name_space = span_from(cli->name_space);
	store->calls = (struct call_list){
		.calls = store->call,
		.args = store->args,
		.bytes = store->bytes,
		.call_max = CALL_LIST_OF,
		.arg_max = STORE_CALL_WORDS,
		.byte_max = CALL_BYTES,
	};
	err = redis_sync_open(&url, TIMEOUT_MS, &store->redis, message);
	if (err < 0) {
		free(store);
		return cli_fail(
			CLI_UNREACHABLE, "%s. %s", message,
			err == ERR_UNSUPPORTED
				? "It takes redis://USER:PASSWORD@HOST:PORT/DATABASE "
				  "in --redis or WARMQ_REDIS."
				: "Is it running? Say where it is with --redis or "
				  "WARMQ_REDIS.");
	}
	*ret_store = store;
	return CLI_OK;
}

struct store *
store_close(struct store *store)
{
	if (store)
		redis_sync_close(store->redis);
	free(store);
	return NULL;
}

struct span
store_namespace(const struct store *store)
{
	return store->name_space;
}

struct span
store_key(struct store *store, const char *name, struct span rest)
{
	char *key = store->keys[store->keys_next++ % KEYS_MAX];
	int len = snprintf(key, KEY_SIZE, "%.*s:%s%.*s", (int)store->name_space.len,
	                   store->name_space.data, name, (int)rest.len,
	                   rest.len ? rest.data : "");

	return (struct span){ key, MIN((size_t)len, KEY_SIZE - 1) };
}

static bool
span_begins(struct span text, const char *word)
{
	size_t len = strlen(word);

	return text.len >= len && memcmp(text.data, word, len) == 0;
}

/* What to do about an error of Redis, by how it begins; "" if nothing is known. */
static const char *
error_advice(struct span text)
{
	static const struct {
		const char *word, *advice;
	} known[] = {
		{ "OOM",
		  " Redis is full: add memory or workers; `warmq doctor` says more." },
		{ "READONLY", " This is a replica: name the master with --redis." },
		{ "NOAUTH", " Name a user: --redis redis://USER:PASSWORD@HOST:PORT." },
		{ "NOPERM", ANOTHER_USER },
		{ CROWDED,
		  " Raise maxclients of Redis, or let others close connections." },
		{ "ERR warmq speaks protocol",
		  " This `warmq` is of another release than the scheduler that rules." },
		{ "MISCONF", " `warmq doctor` says what is wrong with its disk." },
	};

	if (text.len > 0 &&
	    (memmem(text.data, text.len, UNALLOWED, strlen(UNALLOWED)) ||
	     memmem(text.data, text.len, UNALLOWED_70, strlen(UNALLOWED_70))))
		return ANOTHER_USER;
	if (text.len > 0 && memmem(text.data, text.len, "WRONGTYPE", 9))
		return " Somebody wrote that key by hand: `warmq doctor` says what to "
		       "do.";
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (span_begins(text, known[i].word))
			return known[i].advice;
	return "";
}

/* What was asked may have been done, but not of who was not let in. */
static int
lost(const struct store *store)
{
	const char *message = redis_sync_message(store->redis);

	return cli_fail(CLI_UNREACHABLE, "%s.%s", message,
	                strstr(message, CROWDED) ? error_advice(SPAN(CROWDED))
	                                         : " If it stays so, is that a Redis?");
}

/* Whether there is an answer: who is not let in may read why, or find the line cut. */
static int
receive(const struct store *store, int err, const struct reply *reply,
        const struct reply **ret_reply)
{
	if (err < 0)
		return lost(store);
	if (reply->kind == REPLY_ERROR && span_begins(reply->text, CROWDED))
		return cli_fail(CLI_UNREACHABLE, "Redis answered: %.*s.%s",
		                (int)reply->text.len, reply->text.data,
		                error_advice(reply->text));
	*ret_reply = reply;
	return CLI_OK;
}

/* Prints an error reply, to what was asked; `ret_reply` is written only for the others.
 */
static int PRINTF(3, 4) take(const struct reply *reply, const struct reply **ret_reply,
                             const char *format, ...)
{
	char asked[ASKED_SIZE];
	va_list args;

	if (protocol_answer_word(reply) == PROTOCOL_MISSING)
		return cli_fail(CLI_UNREACHABLE,
		                "This Redis does not have WarmQ's functions yet. Start "
		                "warmq-scheduler once; it loads them.");
	if (reply->kind != REPLY_ERROR) {
		*ret_reply = reply;
		return CLI_OK;
	}
	va_start(args, format);
	(void)vsnprintf(asked, sizeof asked, format, args);
	va_end(args);
	return cli_fail(CLI_FAILED, "Redis answered to %s: %.*s%s%s", asked,
	                (int)reply->text.len, reply->text.data, full_stop(reply->text),
	                error_advice(reply->text));
}

int
store_command(struct store *store, const struct span *words, size_t count,
              const struct reply **ret_reply)
{
	const struct reply *reply;
	int code = store_try(store, words, count, &reply);

	if (code != CLI_OK)
		return code;
	return take(reply, ret_reply, "%.*s%s%.*s", (int)words[0].len, words[0].data,
	            count > 1 ? " " : "", count > 1 ? (int)words[1].len : 0,
	            count > 1 ? words[1].data : "");
}

int
store_try(struct store *store, const struct span *words, size_t count,
          const struct reply **ret_reply)
{
	const struct reply *reply = NULL;
	int err = redis_sync_command(store->redis, words, count, 0, &reply);

	return receive(store, err, reply, ret_reply);
}

int
store_append(struct store *store, const struct span *words, size_t count)
{
	return redis_sync_append(store->redis, words, count) < 0 ? lost(store) : CLI_OK;
}

int
store_next(struct store *store, uint64_t timeout_ms, const char *command, const char *key,
           const struct reply **ret_reply)
{
	const struct reply *reply;
	int code = store_next_try(store, timeout_ms, &reply);

	if (code != CLI_OK)
		return code;
	return take(reply, ret_reply, "%s %.*s:%s", command, (int)store->name_space.len,
	            store->name_space.data, key);
}

int
store_next_try(struct store *store, uint64_t timeout_ms, const struct reply **ret_reply)
{
	const struct reply *reply = NULL;
	int err = redis_sync_next(store->redis, timeout_ms, &reply);

	return receive(store, err, reply, ret_reply);
}

struct call_list *
store_calls(struct store *store)
{
	call_reset(&store->calls);
	return &store->calls;
}

int
store_call_try(struct store *store, const struct reply **ret_reply)
{
	const struct call *call = &store->call[0];
	struct span words[STORE_CALL_WORDS];

	VERIFY(store->calls.call_count == 1);
	for (uint32_t i = 0; i < call->arg_count; i++)
		words[i] = call_arg(&store->calls, call, i);
	return store_try(store, words, call->arg_count, ret_reply);
}

int
store_call(struct store *store, const struct reply **ret_reply)
{
	const struct reply *reply;
	struct span function;
	int code = store_call_try(store, &reply);

	if (code != CLI_OK)
		return code;
	function = call_arg(&store->calls, &store->call[0], 1);
	return take(reply, ret_reply, "%.*s", (int)function.len, function.data);
}

int
store_last_id(struct store *store, struct protocol_job_id *ret_id)
{
	const struct reply *reply;
	int code = STORE_TRY(store, &reply, SPAN("XINFO"), SPAN("STREAM"),
	                     store_key(store, "jobs", SPAN("")));

	*ret_id = (struct protocol_job_id){ 0 };
	if (code != CLI_OK || reply->kind != REPLY_ARRAY)
		return code;
	for (size_t i = 0; i + 1 < reply->count; i += 2)
		if (reply_is(&reply->items[i], "last-generated-id") &&
		    protocol_parse_job_id(reply_text(&reply->items[i + 1]), ret_id) < 0)
			*ret_id = (struct protocol_job_id){ .ms = UINT64_MAX };
	return CLI_OK;
}

int
store_now(struct store *store, uint64_t *ret_ms)
{
	const struct reply *reply;
	int code = STORE_COMMAND(store, &reply, SPAN("TIME"));

	if (code == CLI_OK)
		*ret_ms = (uint64_t)reply_integer(reply_at(reply, 0), 0) * 1000 +
		          (uint64_t)reply_integer(reply_at(reply, 1), 0) / 1000;
	return code;
}
