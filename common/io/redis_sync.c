#include "common/io/redis_sync.h"

#include "common/io/redis_reply.h"
#include "common/io/redis_words.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct redis_sync {
	redisContext *context;
	redisReply *held; /* what the caller may still look at */
	struct redis_reply_nodes nodes;
	uint64_t timeout_ms;
	char address[REDIS_URL_TEXT_SIZE];
	char message[REDIS_SYNC_MESSAGE_SIZE];
};

static struct timeval
timeval_from(uint64_t ms)
{
	return (struct timeval){ .tv_sec = (time_t)(ms / 1000),
		                 .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
}

/* What a server said before it hung up says why, as "max number of clients reached"; that
 * our command could not be written says nothing.  False: it said nothing. */
static bool
read_refusal(const redisContext *context, char *ret_text, size_t size)
{
	ssize_t len;

	if (context->err != REDIS_ERR_IO || context->fd < 0)
		return false;
	len = recv(context->fd, ret_text, size - 1, MSG_DONTWAIT);
	if (len < 2 || ret_text[0] != '-')
		return false;
	ret_text[len] = '\0';
	memmove(ret_text, ret_text + 1, (size_t)len);
	ret_text[strcspn(ret_text, "\r\n")] = '\0';
	return true;
}

/* hiredis reports a passed SO_RCVTIMEO as an I/O error with EAGAIN. */
static int
note_failure(struct redis_sync *sync)
{
	const redisContext *context = sync->context;
	bool late =
		context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT);
	char refusal[80];

	if (context->err == 0)
		(void)snprintf(sync->message, sizeof sync->message,
		               "Redis at %s: out of memory", sync->address);
	else if (!late && read_refusal(context, refusal, sizeof refusal))
		(void)snprintf(sync->message, sizeof sync->message, "Redis at %s: %s",
		               sync->address, refusal);
	else
		(void)snprintf(sync->message, sizeof sync->message, "Redis at %s: %.80s",
		               sync->address,
		               late ? "no answer in time" : context->errstr);
	return late ? ERR_TIMEOUT : ERR_CONNECTION;
}

int
redis_sync_append(struct redis_sync *sync, const struct span *spans, size_t count)
{
	struct redis_words words;
	int err;

	VERIFY(count > 0);
	if (sync->context->err)
		return ERR_CONNECTION;
	err = redis_words_init(&words, spans, count);
	if (err == 0 && redisAppendCommandArgv(sync->context, (int)count, words.texts,
	                                       words.lens) != REDIS_OK)
		err = note_failure(sync);
	redis_words_fini(&words);
	return err;
}

static void
drop_held(struct redis_sync *sync)
{
	if (sync->held)
		freeReplyObject(sync->held);
	sync->held = NULL;
}

int
redis_sync_next(struct redis_sync *sync, uint64_t timeout_ms,
                const struct reply **ret_reply)
{
	struct timeval timeout =
		timeval_from(timeout_ms > 0 ? timeout_ms : sync->timeout_ms);
	void *reply = NULL;

	drop_held(sync);
	if (sync->context->err)
		return ERR_CONNECTION;
	errno = 0;
	if (redisSetTimeout(sync->context, timeout) != REDIS_OK ||
	    redisGetReply(sync->context, &reply) != REDIS_OK)
		return note_failure(sync);
	sync->held = reply;
	return redis_reply_convert(&sync->nodes, sync->held, ret_reply);
}

int
redis_sync_command(struct redis_sync *sync, const struct span *words, size_t count,
                   uint64_t timeout_ms, const struct reply **ret_reply)
{
	int err;

	err = redis_sync_append(sync, words, count);
	if (err < 0)
		return err;
	return redis_sync_next(sync, timeout_ms, ret_reply);
}

/* One command of the greeting: an error answer is a failure here. */
static int
greet_with(struct redis_sync *sync, const struct span *words, size_t count)
{
	const struct reply *reply;
	int err;

	err = redis_sync_command(sync, words, count, 0, &reply);
	if (err < 0)
		return err;
	if (reply->kind != REPLY_ERROR)
		return 0;
	(void)snprintf(sync->message, sizeof sync->message,
	               "Redis at %s refused %.*s: %.*s", sync->address, (int)words[0].len,
	               words[0].data, (int)MIN(reply->text.len, 160), reply->text.data);
	return ERR_UNSUPPORTED;
}

static int
greet(struct redis_sync *sync, const struct redis_url *url)
{
	char database[16];
	struct span words[3] = { SPAN("AUTH") };
	size_t count = 1;
	int err;

	if (url->password[0]) {
		if (url->user[0])
			words[count++] = span_from(url->user);
		words[count++] = span_from(url->password);
		err = greet_with(sync, words, count);
		if (err < 0)
			return err;
	}
	if (url->database == 0)
		return 0;
	(void)snprintf(database, sizeof database, "%u", (unsigned)url->database);
	words[0] = SPAN("SELECT");
	words[1] = span_from(database);
	return greet_with(sync, words, 2);
}

static redisContext *
connect_to(const struct redis_url *url, uint64_t timeout_ms)
{
	struct timeval timeout = timeval_from(timeout_ms);
	redisContext *context =
		url->path[0] ? redisConnectUnixWithTimeout(url->path, timeout)
			     : redisConnectWithTimeout(url->host, url->port, timeout);

	/* hiredis leaves it open for the programs we start. */
	if (context && context->err == 0)
		(void)fcntl(context->fd, F_SETFD, FD_CLOEXEC);
	return context;
}

int
redis_sync_open(const struct redis_url *url, uint64_t timeout_ms,
                struct redis_sync **ret_sync, char ret_message[REDIS_SYNC_MESSAGE_SIZE])
{
	struct redis_sync *sync = calloc(1, sizeof *sync);
	int err = ERR_MEMORY;

	VERIFY(timeout_ms > 0);
	(void)signal(SIGPIPE, SIG_IGN);
	if (!sync || !(sync->context = connect_to(url, timeout_ms))) {
		(void)snprintf(ret_message, REDIS_SYNC_MESSAGE_SIZE, "out of memory");
		redis_sync_close(sync);
		return ERR_MEMORY;
	}
	sync->timeout_ms = timeout_ms;
	redis_url_print(url, sync->address);
	err = sync->context->err ? note_failure(sync) : greet(sync, url);
	if (err < 0) {
		memcpy(ret_message, sync->message, sizeof sync->message);
		redis_sync_close(sync);
		return err;
	}
	*ret_sync = sync;
	return 0;
}

const char *
redis_sync_message(const struct redis_sync *sync)
{
	return sync->message;
}

struct redis_sync *
redis_sync_close(struct redis_sync *sync)
{
	if (!sync)
		return NULL;
	drop_held(sync);
	redis_reply_fini(&sync->nodes);
	if (sync->context)
		redisFree(sync->context);
	free(sync);
	return NULL;
}
