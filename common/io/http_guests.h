/* http_guests.h - who is connected to a server, and who leaves when it gets crowded.
 *
 *   enter ──► idle ──(we owe an answer)──► owed ──(it is written)──► idle ──► leave
 *              └── too many stay: the oldest ──┘
 *                  is shown out
 *
 * A health check has to be answered whatever else sits on the port.  So whoever comes
 * when it is crowded is let in, and who has been there longest leaves: one of the owed
 * while these are more than half, else one of the idle.  Neither streams nor a wall of
 * silent connections can then keep out who has just come and is about to ask.  Idle is
 * who has asked nothing, or only half a question; a stream is owed as long as it lasts.
 *
 * Showing out is shutdown() of the socket: whoever serves it finds the end of the stream
 * in its next turn, and closes.  Memory is one small piece for each guest. */
#ifndef COMMON_IO_HTTP_GUESTS_H
#define COMMON_IO_HTTP_GUESTS_H

#include "common/base.h"

struct http_guest {
	struct http_guest *older, *newer; /* in one of the two queues */
	int fd;
	bool owed;
	bool shown_out; /* and in no queue */
	void *data;     /* the caller's; NULL at first */
};

struct http_guest_queue {
	struct http_guest *oldest, *newest;
	unsigned count;
};

struct http_guests {
	struct http_guest_queue idle, owed;
	unsigned staying_max; /* in both */
};

/* NULL if memory is out: such a guest is not counted. */
struct http_guest *http_guests_enter(struct http_guests *guests, int fd);
void http_guests_leave(struct http_guests *guests, struct http_guest *guest);

/* A question is complete (`owed`), or its answer is written: the youngest of its queue.
 */
void http_guests_move(struct http_guests *guests, struct http_guest *guest, bool owed);

/* Shows out one guest if too many stay; answers it, or NULL. */
struct http_guest *http_guests_show_out(struct http_guests *guests);

#endif
