#include "common/io/http_guests.h"

#include <stdlib.h>
#include <sys/socket.h>

static struct http_guest_queue *
queue_of(struct http_guests *guests, const struct http_guest *guest)
{
	return guest->owed ? &guests->owed : &guests->idle;
}

static void
append(struct http_guests *guests, struct http_guest *guest)
{
	struct http_guest_queue *queue = queue_of(guests, guest);

	guest->older = queue->newest;
	guest->newer = NULL;
	if (queue->newest)
		queue->newest->newer = guest;
	else
		queue->oldest = guest;
	queue->newest = guest;
	queue->count++;
}

static void
take_out(struct http_guests *guests, struct http_guest *guest)
{
	struct http_guest_queue *queue = queue_of(guests, guest);

	if (guest->older)
		guest->older->newer = guest->newer;
	else
		queue->oldest = guest->newer;
	if (guest->newer)
		guest->newer->older = guest->older;
	else
		queue->newest = guest->older;
	queue->count--;
}

struct http_guest *
http_guests_enter(struct http_guests *guests, int fd)
{
	struct http_guest *guest = calloc(1, sizeof *guest);

	if (!guest)
		return NULL;
	guest->fd = fd;
	append(guests, guest);
	return guest;
}

void
http_guests_leave(struct http_guests *guests, struct http_guest *guest)
{
	if (!guest->shown_out)
		take_out(guests, guest);
	free(guest);
}

void
http_guests_move(struct http_guests *guests, struct http_guest *guest, bool owed)
{
	if (guest->shown_out)
		return;
	take_out(guests, guest);
	guest->owed = owed;
	append(guests, guest);
}

struct http_guest *
http_guests_show_out(struct http_guests *guests)
{
	struct http_guest *guest = guests->owed.count > guests->staying_max / 2
	                                   ? guests->owed.oldest
	                                   : guests->idle.oldest;

	if (guests->idle.count + guests->owed.count <= guests->staying_max)
		return NULL;
	take_out(guests, guest);
	guest->shown_out = true;
	(void)shutdown(guest->fd, SHUT_RDWR);
	return guest;
}
