#include "worker/http_poll.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct watch {
	uv_poll_t poll;
	struct http_poll *owner;
	curl_socket_t fd;
	int registered; /* UV_READABLE, UV_WRITABLE; 0: not in the loop */
	int wanted;     /* by curl; 0: idle */
};

struct http_poll {
	uv_loop_t *loop;
	http_poll_fn *fn;
	void *data;
	struct watch **watches; /* by fd */
	bool *is_ours;          /* by fd: opened by http_poll_open */
	size_t room;
	uint32_t handles; /* not closed yet */
	bool is_closing;
	void (*closed_fn)(void *data);
	void *closed_data;
};

int
http_poll_create(uv_loop_t *loop, http_poll_fn *fn, void *data,
                 struct http_poll **ret_poll)
{
	struct http_poll *poll = calloc(1, sizeof *poll);

	if (!poll)
		return ERR_MEMORY;
	poll->loop = loop;
	poll->fn = fn;
	poll->data = data;
	*ret_poll = poll;
	return 0;
}

static void
finish(struct http_poll *poll)
{
	if (!poll->is_closing || poll->handles > 0)
		return;
	if (poll->closed_fn)
		poll->closed_fn(poll->closed_data);
	free(poll->watches);
	free(poll->is_ours);
	free(poll);
}

static bool
make_room(struct http_poll *poll, curl_socket_t fd)
{
	size_t room = MAX(poll->room, 64);
	struct watch **watches;
	bool *is_ours;

	if ((size_t)fd < poll->room)
		return true;
	while (room <= (size_t)fd)
		room *= 2;
	watches = realloc(poll->watches, room * sizeof(struct watch *));
	if (!watches)
		return false;
	poll->watches = watches;
	is_ours = realloc(poll->is_ours, room * sizeof *is_ours);
	if (!is_ours)
		return false;
	poll->is_ours = is_ours;
	for (size_t i = poll->room; i < room; i++) {
		watches[i] = NULL;
		is_ours[i] = false;
	}
	poll->room = room;
	return true;
}

static void on_poll(uv_poll_t *handle, int status, int events);

static void
set_registered(struct watch *watch, int events)
{
	if (watch->registered == events)
		return;
	watch->registered = events;
	if (events == 0)
		(void)uv_poll_stop(&watch->poll);
	else
		(void)uv_poll_start(&watch->poll, events, on_poll);
}

/* A reset.  An answer may have come before it: curl reads on, and finds the error behind
 * it by itself; told of an error it would throw the answer away. */
static void
read_to_the_end(struct watch *watch)
{
	struct http_poll *poll = watch->owner;
	curl_socket_t fd = watch->fd;

	set_registered(watch, 0); /* libuv has stopped it already */
	poll->fn(fd, CURL_CSELECT_IN | CURL_CSELECT_OUT, poll->data);
	if ((size_t)fd < poll->room && poll->watches[fd] == watch && watch->wanted != 0)
		set_registered(watch, watch->wanted);
}

static void
on_poll(uv_poll_t *handle, int status, int events)
{
	struct watch *watch = handle->data;
	int curl_events = 0;

	if (watch->wanted == 0) {
		/* The peer closed an idle connection; curl sees that when it wants it
		 * again.  Until then there is nothing to hear. */
		set_registered(watch, 0);
		return;
	}
	if (status < 0) {
		read_to_the_end(watch);
		return;
	}
	if (events & UV_READABLE)
		curl_events |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		curl_events |= CURL_CSELECT_OUT;
	watch->owner->fn(watch->fd, curl_events, watch->owner->data);
}

static void
on_watch_closed(uv_handle_t *handle)
{
	struct watch *watch = handle->data;
	struct http_poll *poll = watch->owner;

	free(watch);
	poll->handles--;
	finish(poll);
}

static void
forget(struct http_poll *poll, curl_socket_t fd)
{
	struct watch *watch;

	if (fd < 0 || (size_t)fd >= poll->room || !poll->watches[fd])
		return;
	watch = poll->watches[fd];
	poll->watches[fd] = NULL;
	set_registered(watch, 0);
	uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static struct watch *
find_or_add(struct http_poll *poll, curl_socket_t fd)
{
	struct watch *watch;

	if (!make_room(poll, fd))
		return NULL;
	if (poll->watches[fd])
		return poll->watches[fd];
	watch = calloc(1, sizeof *watch);
	if (!watch)
		return NULL;
	if (uv_poll_init(poll->loop, &watch->poll, fd) < 0) {
		free(watch);
		return NULL;
	}
	watch->owner = poll;
	watch->fd = fd;
	watch->poll.data = watch;
	poll->watches[fd] = watch;
	poll->handles++;
	return watch;
}

/* A socket whose connect never ended is closed by curl itself, behind our back, before it
 * says that it needs no watching.  libuv aborts when it polls what is closed. */
static bool
is_kept(const struct http_poll *poll, curl_socket_t fd)
{
	return (size_t)fd < poll->room && poll->is_ours[fd] && fcntl(fd, F_GETFD) >= 0;
}

void
http_poll_want(struct http_poll *poll, curl_socket_t fd, int what)
{
	struct watch *watch;

	if (what == CURL_POLL_REMOVE && !is_kept(poll, fd)) {
		forget(poll, fd);
		if ((size_t)fd < poll->room)
			poll->is_ours[fd] = false;
		return;
	}
	/* Without memory the request runs into its time-out: nothing better to do. */
	watch = find_or_add(poll, fd);
	if (!watch)
		return;
	watch->wanted = 0;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		watch->wanted |= UV_WRITABLE;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		watch->wanted |= UV_READABLE;
	/* Reading stays registered: a superset costs nothing while the peer is silent. */
	set_registered(watch, watch->wanted | UV_READABLE);
}

curl_socket_t
http_poll_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_poll *poll = data;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
	                address->protocol);

	(void)purpose;
	if (fd < 0)
		return CURL_SOCKET_BAD;
	if (!make_room(poll, fd)) {
		(void)close(fd);
		return CURL_SOCKET_BAD;
	}
	poll->is_ours[fd] = true;
	return fd;
}

int
http_poll_close(void *data, curl_socket_t fd)
{
	struct http_poll *poll = data;

	forget(poll, fd);
	if ((size_t)fd < poll->room)
		poll->is_ours[fd] = false;
	return close(fd);
}

void
http_poll_destroy(struct http_poll *poll, void (*fn)(void *data), void *data)
{
	poll->closed_fn = fn;
	poll->closed_data = data;
	poll->is_closing = true;
	for (size_t fd = 0; fd < poll->room; fd++)
		forget(poll, (curl_socket_t)fd);
	finish(poll);
}
