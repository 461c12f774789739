/* store.h - a verb's talk with Redis: one blocking connection, plain commands and the
 * functions of docs/PROTOCOL.md.
 *
 * Failures of the connection are printed here, once, with what to do; a verb only
 * passes the exit code on. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include "cli/cli.h"
#include "common/call.h"
#include "common/codec/protocol.h"
#include "common/reply.h"

struct store;

/* Connects within five seconds.  CLI_OK, or the code to leave with. */
MUST_USE int store_open(const struct cli *cli, struct store **ret_store);

/* Takes NULL and answers NULL. */
struct store *store_close(struct store *store);

struct span store_namespace(const struct store *store);

/* "ns:name" or "ns:name<rest>", in memory that lives until the sixteenth call later. */
struct span store_key(struct store *store, const char *name, struct span rest);

/* Sends one command and answers CLI_OK with its reply, which lives until the next call.
 * An error reply is printed with the command and its key, and answered as CLI_FAILED. */
MUST_USE int store_command(struct store *store, const struct span *words, size_t count,
                           const struct reply **ret_reply);
#define STORE_COMMAND(store, ret_reply, ...)                       \
	store_command(store, (const struct span[]){ __VA_ARGS__ }, \
	              ARRAY_SIZE(((const struct span[]){ __VA_ARGS__ })), ret_reply)

/* The same for verbs that judge errors themselves: CLI_OK with whatever was answered. */
MUST_USE int store_try(struct store *store, const struct span *words, size_t count,
                       const struct reply **ret_reply);
#define STORE_TRY(store, ret_reply, ...)                       \
	store_try(store, (const struct span[]){ __VA_ARGS__ }, \
	          ARRAY_SIZE(((const struct span[]){ __VA_ARGS__ })), ret_reply)

/* Sends without waiting; answers are fetched in order.  An error says which
 * command was refused for which key, "XADD" for "jobs": both are words for people. */
MUST_USE int store_append(struct store *store, const struct span *words, size_t count);
MUST_USE int store_next(struct store *store, uint64_t timeout_ms, const char *command,
                        const char *key, const struct reply **ret_reply);
/* The same without a word: CLI_OK with whatever was answered. */
MUST_USE int store_next_try(struct store *store, uint64_t timeout_ms,
                            const struct reply **ret_reply);

/* The last id that the inbox has given out; zeros if it has given none. */
MUST_USE int store_last_id(struct store *store, struct protocol_job_id *ret_id);

/* The clock of Redis, in ms since 1970. */
MUST_USE int store_now(struct store *store, uint64_t *ret_ms);

#define STORE_CALL_WORDS 512

/* An empty list whose calls store_call sends; one call of so many words at a time. */
struct call_list *store_calls(struct store *store);

/* Sends the one call in the list.  Unknown functions are explained: no scheduler has
 * been here yet. */
MUST_USE int store_call(struct store *store, const struct reply **ret_reply);
MUST_USE int store_call_try(struct store *store, const struct reply **ret_reply);

#endif
