#include "common/io/redis_link.h"

#include "common/io/redis_words.h"

#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

struct redis_link {
	redisAsyncContext *context; /* not to be touched once detached */
	uv_poll_t poll;
	int events; /* UV_READABLE | UV_WRITABLE, what hiredis wants to hear of */
	bool aborted;
	bool connecting; /* inside on_connect, where hiredis must not be freed */
	bool detached;   /* hiredis frees the context, or has */
	bool told;       /* on_gone was called */
	char message[160];
	struct redis_link_handlers handlers;
	void *data;
};

/* Called when hiredis has returned to us.  Before 1.0 it answers the pending commands and
 * then calls the clean-up hook, later versions do it the other way round; here both are
 * done. */
static void
tell_if_gone(struct redis_link *link)
{
	if (!link->detached || link->told)
		return;
	link->told = true;
	link->handlers.on_gone(ERR_CONNECTION, link->message, link->data);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
	struct redis_link *link = poll->data;

	/* A poll error (UV_EBADF for a refused connection) means: something is to be
	 * read or written, and it will fail.  hiredis finds out what it was. */
	if (status < 0)
		events = UV_READABLE | UV_WRITABLE;
	/* What it said before it hung up says why: "max number of clients reached". */
	if (events & UV_READABLE)
		redisAsyncHandleRead(link->context);
	if ((events & UV_WRITABLE) && !link->detached)
		redisAsyncHandleWrite(link->context);
	if (status < 0)
		link->aborted = true;
	if (link->aborted && !link->detached)
		redisAsyncFree(link->context); /* also if asked for inside on_connect */
	tell_if_gone(link);
}

static void
watch(struct redis_link *link, int events)
{
	if (events == link->events)
		return;
	link->events = events;
	if (events == 0)
		(void)uv_poll_stop(&link->poll);
	else
		VERIFY(uv_poll_start(&link->poll, events, on_poll) == 0);
}

static void
add_read(void *data)
{
	struct redis_link *link = data;

	watch(link, link->events | UV_READABLE);
}

static void
del_read(void *data)
{
	struct redis_link *link = data;

	watch(link, link->events & ~UV_READABLE);
}

static void
add_write(void *data)
{
	struct redis_link *link = data;

	watch(link, link->events | UV_WRITABLE);
}

static void
del_write(void *data)
{
	struct redis_link *link = data;

	watch(link, link->events & ~UV_WRITABLE);
}

static void
on_poll_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* hiredis frees the context.  The socket is still open, so the poll handle can be taken
 * off it; the link lives until that is closed, in a later phase of the loop. */
static void
clean_up(void *data)
{
	struct redis_link *link = data;
	const redisContext *context = &link->context->c;

	if (link->detached)
		return;
	link->detached = true;
	(void)snprintf(link->message, sizeof link->message, "%s",
	               context->err ? context->errstr : "closed");
	uv_close((uv_handle_t *)&link->poll, on_poll_closed);
}

static void
on_connect(const redisAsyncContext *context, int status)
{
	struct redis_link *link = context->data;

	/* A failed connect is followed by clean_up, which tells.  hiredis 0.14 goes on to
	 * use the context after this callback, whatever happened in it. */
	if (status != REDIS_OK || link->aborted)
		return;
	link->connecting = true;
	link->handlers.on_connected(link->data);
	link->connecting = false;
}

static void
on_reply(redisAsyncContext *context, void *reply, void *data)
{
	struct redis_link *link = data;

	(void)context;
	link->handlers.on_answer(reply, link->data);
}

static int
attach(uv_loop_t *loop, struct redis_link *link)
{
	redisAsyncContext *context = link->context;

	/* hiredis leaves it open for the programs we start: a handler would be logged in.
	 */
	if (fcntl(context->c.fd, F_SETFD, FD_CLOEXEC) < 0)
		return ERR_IO;
	if (uv_poll_init(loop, &link->poll, context->c.fd) < 0)
		return ERR_IO;
	link->poll.data = link;
	context->data = link;
	context->ev.data = link;
	context->ev.addRead = add_read;
	context->ev.delRead = del_read;
	context->ev.addWrite = add_write;
	context->ev.delWrite = del_write;
	context->ev.cleanup = clean_up;
	/* Asks for the first write event, which is the end of connect(2). */
	(void)redisAsyncSetConnectCallback(context, on_connect);
	return 0;
}

int
redis_link_open(uv_loop_t *loop, const struct redis_url *url,
                const struct redis_link_handlers *handlers, void *data,
                struct redis_link **ret_link, char *ret_message, size_t message_size)
{
	struct redis_link *link = calloc(1, sizeof *link);
	int err = ERR_MEMORY;

	if (!link)
		return ERR_MEMORY;
	link->handlers = *handlers;
	link->data = data;
	link->context = url->path[0] ? redisAsyncConnectUnix(url->path)
	                             : redisAsyncConnect(url->host, url->port);
	if (!link->context)
		goto fail;
	if (link->context->err) {
		(void)snprintf(ret_message, message_size, "%s", link->context->errstr);
		err = ERR_CONNECTION;
		goto fail;
	}
	err = attach(loop, link);
	if (err < 0)
		goto fail;
	*ret_link = link;
	return 0;

fail: /* no hook is set yet: freeing the context calls nobody */
	if (link->context)
		redisAsyncFree(link->context);
	free(link);
	return err;
}

int
redis_link_send(struct redis_link *link, const struct span *spans, size_t count)
{
	struct redis_words words;
	int err;

	if (redis_link_is_ending(link))
		return ERR_CONNECTION;
	err = redis_words_init(&words, spans, count);
	if (err == 0 && redisAsyncCommandArgv(link->context, on_reply, link, (int)count,
	                                      words.texts, words.lens) != REDIS_OK)
		err = ERR_CONNECTION;
	redis_words_fini(&words);
	return err;
}

void
redis_link_abort(struct redis_link *link)
{
	if (link->detached || link->aborted)
		return;
	link->aborted = true;
	if (link->connecting)
		return;
	redisAsyncFree(link->context); /* inside a callback it only notes the wish */
	tell_if_gone(link);
}

bool
redis_link_is_ending(const struct redis_link *link)
{
	return link->detached || link->aborted ||
	       (link->context->c.flags & (REDIS_DISCONNECTING | REDIS_FREEING)) != 0;
}
