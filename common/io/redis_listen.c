#include "common/io/redis_listen.h"

#include "common/io/log.h"
#include "common/io/redis_link.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_SIZE 160

struct redis_listen {
	uv_loop_t *loop;
	struct redis_url url;
	char channel[NAME_SIZE];
	redis_listen_fn *fn;
	void *data;
	struct redis_link *link;
	uv_timer_t timer; /* to the next try, or to the refresh */
	uint64_t heard_ms;
	uint32_t greetings; /* answers to come before the subscription's */
	bool is_destroyed;
};

static void connect_now(struct redis_listen *listen);

static void
on_timer(uv_timer_t *timer)
{
	struct redis_listen *listen = timer->data;

	if (!listen->link)
		connect_now(listen);
	else if (uv_now(listen->loop) - listen->heard_ms >= REDIS_LISTEN_REFRESH_MS)
		redis_link_abort(listen->link);
}

static void
send_words(struct redis_listen *listen, const struct span *words, size_t count)
{
	if (redis_link_send(listen->link, words, count) < 0)
		redis_link_abort(listen->link);
}

static void
on_connected(void *data)
{
	struct redis_listen *listen = data;
	const struct span subscribe[] = { SPAN("SUBSCRIBE"), span_from(listen->channel) };
	struct span login[3] = { SPAN("AUTH") };
	size_t count = 1;

	listen->greetings = 0;
	listen->heard_ms = uv_now(listen->loop);
	if (listen->url.password[0]) {
		listen->greetings = 1;
		if (listen->url.user[0])
			login[count++] = span_from(listen->url.user);
		login[count++] = span_from(listen->url.password);
		send_words(listen, login, count);
	}
	send_words(listen, subscribe, ARRAY_SIZE(subscribe));
}

/* ["message", channel, text]; the answer to SUBSCRIBE ends in a number. */
static void
hand_on(const struct redis_listen *listen, const struct redisReply *reply)
{
	const struct redisReply *text;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return;
	text = reply->element[2];
	if (text->type == REDIS_REPLY_STRING)
		listen->fn((struct span){ text->str, (size_t)text->len }, listen->data);
}

static void
on_answer(const struct redisReply *reply, void *data)
{
	struct redis_listen *listen = data;

	if (!reply || listen->is_destroyed)
		return;
	listen->heard_ms = uv_now(listen->loop);
	if (reply->type == REDIS_REPLY_ERROR) {
		log_warning("Redis refuses a subscription; its messages are missed",
		            LOG_TEXT("channel", listen->channel),
		            LOG_TEXT("answer", reply->str));
		redis_link_abort(listen->link);
		return;
	}
	if (listen->greetings > 0) {
		listen->greetings--;
		return;
	}
	hand_on(listen, reply);
}

static void
on_gone(int error, const char *message, void *data)
{
	struct redis_listen *listen = data;

	(void)error;
	(void)message; /* the other connection tells people */
	listen->link = NULL;
	if (!listen->is_destroyed)
		(void)uv_timer_start(&listen->timer, on_timer, REDIS_LISTEN_RETRY_MS,
		                     REDIS_LISTEN_REFRESH_MS / 4);
}

static void
connect_now(struct redis_listen *listen)
{
	static const struct redis_link_handlers handlers = {
		.on_connected = on_connected,
		.on_answer = on_answer,
		.on_gone = on_gone,
	};
	char message[256];

	if (redis_link_open(listen->loop, &listen->url, &handlers, listen, &listen->link,
	                    message, sizeof message) < 0)
		listen->link = NULL; /* the timer tries again */
	(void)uv_timer_start(&listen->timer, on_timer,
	                     listen->link ? REDIS_LISTEN_REFRESH_MS / 4
	                                  : REDIS_LISTEN_RETRY_MS,
	                     REDIS_LISTEN_REFRESH_MS / 4);
}

int
redis_listen_create(uv_loop_t *loop, const struct redis_url *url, struct span channel,
                    redis_listen_fn *fn, void *data, struct redis_listen **ret_listen)
{
	struct redis_listen *listen = calloc(1, sizeof *listen);

	if (!listen)
		return ERR_MEMORY;
	if (channel.len >= sizeof listen->channel) {
		free(listen);
		return ERR_LIMIT;
	}
	memcpy(listen->channel, channel.data, channel.len);
	listen->loop = loop;
	listen->url = *url;
	listen->fn = fn;
	listen->data = data;
	(void)uv_timer_init(loop, &listen->timer);
	listen->timer.data = listen;
	connect_now(listen);
	*ret_listen = listen;
	return 0;
}

static void
on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void
redis_listen_destroy(struct redis_listen *listen)
{
	if (!listen)
		return;
	listen->is_destroyed = true;
	if (listen->link)
		redis_link_abort(listen->link);
	uv_close((uv_handle_t *)&listen->timer, on_closed);
}
