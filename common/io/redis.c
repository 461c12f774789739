#include "common/io/redis.h"

#include "common/io/redis_link.h"
#include "common/io/redis_reply.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_SIZE     384
#define GREETING_WORDS   3
#define CLIENT_NAME_SIZE 64
#define CUTS_MAX         3 /* hung up on so often within CUTS_MS, it is no accident */
#define CUTS_MS          60000

enum state {
	IDLE,
	CONNECTING, /* link exists; the socket or the greeting is not through yet */
	READY,
	FALLEN,  /* the link is gone; on_down is due at the next turn of the loop */
	WAITING, /* the timer runs until the next try */
	CLOSING,
};

/* One unanswered command. */
struct pending {
	redis_reply_fn *fn;
	void *data;
	uint64_t timeout_ms;
};

struct redis {
	uv_loop_t *loop;
	uv_timer_t timer; /* one job at a time, by state: deadline, on_down, next try */
	struct redis_options options;
	enum state state;
	struct redis_link *link; /* NULL unless CONNECTING or READY */

	struct pending *ring; /* in the order of sending */
	uint32_t ring_from;
	uint32_t ring_count;
	uint32_t greetings; /* answers of the greeting that are still due */

	struct redis_reply_nodes nodes;
	bool was_asking;            /* commands were unanswered when it went */
	uint64_t cuts_ms[CUTS_MAX]; /* when Redis last hung up on us, oldest first */
	int down_error;
	char down_message[MESSAGE_SIZE];
	char client_name[CLIENT_NAME_SIZE];
	redis_closed_fn *closed_fn;
	void *closed_data;
};

static void on_timer(uv_timer_t *timer);

static void
arm(struct redis *redis, uint64_t ms)
{
	if (ms == REDIS_NO_TIMEOUT)
		(void)uv_timer_stop(&redis->timer);
	else
		VERIFY(uv_timer_start(&redis->timer, on_timer, ms, 0) == 0);
}

/* The deadline belongs to the oldest command, counted from when it became that. */
static void
arm_for_oldest(struct redis *redis)
{
	if (redis->state != READY)
		return;
	arm(redis, redis->ring_count > 0 ? redis->ring[redis->ring_from].timeout_ms
	                                 : REDIS_NO_TIMEOUT);
}

static void
remember_failure(struct redis *redis, int error, const char *message)
{
	if (redis->down_error != 0)
		return; /* the first cause is the one to report */
	redis->down_error = error;
	(void)snprintf(redis->down_message, sizeof redis->down_message, "%s", message);
}

static struct pending
pop_pending(struct redis *redis)
{
	struct pending pending;

	VERIFY(redis->ring_count > 0);
	pending = redis->ring[redis->ring_from];
	redis->ring_from = (redis->ring_from + 1) % redis->options.pipeline_max;
	redis->ring_count--;
	return pending;
}

/* The link has answered, or will not any more (`from` NULL). */
static void
on_answer(const struct redisReply *from, void *data)
{
	struct redis *redis = data;
	struct pending pending = pop_pending(redis);
	const struct reply *reply = NULL;
	int error = 0;

	if (!from) {
		error = redis->down_error != 0 ? redis->down_error : ERR_CONNECTION;
		redis->was_asking = true;
	} else {
		error = redis_reply_convert(&redis->nodes, from, &reply);
	}
	arm_for_oldest(redis);
	pending.fn(redis, error < 0 ? NULL : reply, error, pending.data);
}

/* Remembers that Redis, which was there, hung up while it was to answer; true if it does
 * so again and again. */
static bool
is_cut_again(struct redis *redis)
{
	uint64_t now_ms = uv_now(redis->loop);

	for (size_t i = 1; i < CUTS_MAX; i++)
		redis->cuts_ms[i - 1] = redis->cuts_ms[i];
	redis->cuts_ms[CUTS_MAX - 1] = now_ms;
	return redis->cuts_ms[0] > 0 && now_ms - redis->cuts_ms[0] <= CUTS_MS;
}

/* Redis tells no client why it hangs up.  Of the reasons to do so at each answer, this is
 * the one that nobody would guess. */
static void
remember_loss(struct redis *redis, int error, const char *message)
{
	char text[MESSAGE_SIZE];
	bool was_cut =
		redis->state == READY && redis->down_error == 0 && redis->was_asking;

	(void)snprintf(text, sizeof text, "%s%s", message,
	               was_cut && is_cut_again(redis)
	                       ? ", again and again while it is to answer. Its log says "
	                         "why: an answer may have outgrown its "
	                         "client-output-buffer-limit, or what all hold "
	                         "maxmemory-clients"
	                       : "");
	remember_failure(redis, error, text);
}

/* The link is gone, and every pending command has been answered. */
static void
on_gone(int error, const char *message, void *data)
{
	struct redis *redis = data;

	VERIFY(redis->ring_count == 0);
	redis->link = NULL;
	if (redis->state == CLOSING)
		return;
	remember_loss(redis, error, message);
	redis->state = FALLEN;
	arm(redis, 0);
}

static void
give_up(struct redis *redis, int error, const char *message)
{
	remember_failure(redis, error, message);
	redis_link_abort(redis->link);
}

static int
transmit(struct redis *redis, uint64_t timeout_ms, const struct span *words, size_t count,
         redis_reply_fn *fn, void *data)
{
	uint32_t slot;
	int err;

	if (redis->ring_count == redis->options.pipeline_max)
		return ERR_FULL;
	err = redis_link_send(redis->link, words, count);
	if (err < 0)
		return err;
	slot = (redis->ring_from + redis->ring_count) % redis->options.pipeline_max;
	redis->ring[slot] =
		(struct pending){ .fn = fn, .data = data, .timeout_ms = timeout_ms };
	if (redis->ring_count++ == 0)
		arm_for_oldest(redis);
	return 0;
}

static void
on_greeting(struct redis *redis, const struct reply *reply, int error, void *data)
{
	const char *command = data;
	char message[MESSAGE_SIZE];

	if (error < 0 || redis->state != CONNECTING)
		return; /* on_gone tells the story */
	if (reply->kind == REPLY_ERROR && command) {
		(void)snprintf(message, sizeof message, "%s was refused: %.*s", command,
		               (int)MIN(reply->text.len, 180), reply->text.data);
		give_up(redis, ERR_UNSUPPORTED, message);
		return;
	}
	VERIFY(redis->greetings > 0);
	if (--redis->greetings > 0)
		return;
	redis->state = READY;
	arm_for_oldest(redis);
	redis->options.handlers.on_ready(redis, redis->options.data);
}

static int
greet_with(struct redis *redis, const char *command, const struct span *words,
           size_t count)
{
	union {
		const char *in;
		void *out;
	} name = { .in = command }; /* comes back to on_greeting, which only reads it */
	int err;

	err = transmit(redis, redis->options.connect_timeout_ms, words, count,
	               on_greeting, name.out);
	if (err == 0)
		redis->greetings++;
	return err;
}

/* Sends the greeting in one flight.  PING is always in it: a server that is loading its
 * data or wants a password says so now and not to the first real command; and it is not
 * last, as a server that has no room says so to the first one. */
static int
greet(struct redis *redis)
{
	const struct redis_url *url = &redis->options.url;
	struct span words[GREETING_WORDS] = { SPAN("AUTH") };
	char database[16];
	size_t count = 1;
	int err = 0;

	redis->greetings = 0;
	if (url->password[0]) {
		if (url->user[0])
			words[count++] = span_from(url->user);
		words[count++] = span_from(url->password);
		err = greet_with(redis, "AUTH", words, count);
	}
	if (err == 0 && url->database != 0) {
		(void)snprintf(database, sizeof database, "%u", (unsigned)url->database);
		words[0] = SPAN("SELECT");
		words[1] = span_from(database);
		err = greet_with(redis, "SELECT", words, 2);
	}
	words[0] = SPAN("PING");
	if (err == 0)
		err = greet_with(redis, "PING", words, 1);
	if (err < 0 || !redis->client_name[0])
		return err;
	words[0] = SPAN("CLIENT");
	words[1] = SPAN("SETNAME");
	words[2] = span_from(redis->client_name);
	return greet_with(redis, NULL, words, 3); /* nice to have: may be refused */
}

static void
on_connected(void *data)
{
	struct redis *redis = data;
	int err;

	if (redis->state != CONNECTING)
		return;
	err = greet(redis);
	if (err < 0)
		give_up(redis, err, "the greeting could not be sent");
}

void
redis_connect(struct redis *redis)
{
	static const struct redis_link_handlers handlers = { on_connected, on_answer,
		                                             on_gone };
	char message[MESSAGE_SIZE] = "";
	int err;

	if (redis->state != IDLE && redis->state != WAITING)
		return;
	redis->down_error = 0;
	redis->was_asking = false;
	redis->ring_from = 0;
	redis->state = CONNECTING;
	arm(redis, redis->options.connect_timeout_ms);
	err = redis_link_open(redis->loop, &redis->options.url, &handlers, redis,
	                      &redis->link, message, sizeof message);
	if (err < 0)
		on_gone(err, message, redis);
}

static void
report_down(struct redis *redis)
{
	uint64_t wait_ms;

	/* IDLE first: the handler may call redis_connect or redis_destroy. */
	redis->state = IDLE;
	wait_ms = redis->options.handlers.on_down(
		redis, redis->down_error, redis->down_message, redis->options.data);
	if (redis->state != IDLE || wait_ms == REDIS_STAY_DOWN)
		return;
	redis->state = WAITING;
	arm(redis, wait_ms);
}

static void
on_timer(uv_timer_t *timer)
{
	struct redis *redis = timer->data;
	char message[MESSAGE_SIZE];

	switch (redis->state) {
	case CONNECTING:
		(void)snprintf(message, sizeof message, "no connection within %llu ms",
		               (unsigned long long)redis->options.connect_timeout_ms);
		give_up(redis, ERR_TIMEOUT, message);
		break;
	case READY:
		(void)snprintf(
			message, sizeof message,
			"no answer for %llu ms; the connection is given up",
			(unsigned long long)redis->ring[redis->ring_from].timeout_ms);
		give_up(redis, ERR_TIMEOUT, message);
		break;
	case FALLEN:
		report_down(redis);
		break;
	case WAITING:
		redis_connect(redis);
		break;
	case IDLE:
	case CLOSING:
		break;
	}
}

int
redis_create(uv_loop_t *loop, const struct redis_options *options,
             struct redis **ret_redis)
{
	struct redis *redis = calloc(1, sizeof *redis);

	VERIFY(options->handlers.on_ready);
	VERIFY(options->handlers.on_down);
	(void)signal(SIGPIPE, SIG_IGN);
	if (!redis)
		return ERR_MEMORY;
	redis->loop = loop;
	redis->options = *options;
	if (options->client_name)
		(void)snprintf(redis->client_name, sizeof redis->client_name, "%s",
		               options->client_name);
	redis->options.client_name = NULL; /* ours is the copy */
	if (redis->options.connect_timeout_ms == 0)
		redis->options.connect_timeout_ms = REDIS_CONNECT_MS;
	if (redis->options.command_timeout_ms == 0)
		redis->options.command_timeout_ms = REDIS_COMMAND_MS;
	if (redis->options.pipeline_max == 0)
		redis->options.pipeline_max = REDIS_PIPELINE_COUNT;

	redis->ring = calloc(redis->options.pipeline_max, sizeof *redis->ring);
	if (!redis->ring) {
		free(redis);
		return ERR_MEMORY;
	}
	VERIFY(uv_timer_init(loop, &redis->timer) == 0);
	redis->timer.data = redis;
	*ret_redis = redis;
	return 0;
}

void
redis_drop(struct redis *redis, const char *message)
{
	if (redis->link && redis->state != CLOSING)
		give_up(redis, ERR_CONNECTION, message);
}

bool
redis_is_ready(const struct redis *redis)
{
	return redis->state == READY && !redis_link_is_ending(redis->link);
}

uint32_t
redis_pending(const struct redis *redis)
{
	return redis->ring_count;
}

void *
redis_data(const struct redis *redis)
{
	return redis->options.data;
}

int
redis_command_within(struct redis *redis, uint64_t timeout_ms, const struct span *words,
                     size_t count, redis_reply_fn *fn, void *data)
{
	VERIFY(count > 0);
	VERIFY(count <= REDIS_WORDS_MAX);
	VERIFY(fn);
	if (!redis_is_ready(redis))
		return ERR_CONNECTION;
	return transmit(redis, timeout_ms, words, count, fn, data);
}

int
redis_command(struct redis *redis, const struct span *words, size_t count,
              redis_reply_fn *fn, void *data)
{
	return redis_command_within(redis, redis->options.command_timeout_ms, words,
	                            count, fn, data);
}

static void
on_closed(uv_handle_t *handle)
{
	struct redis *redis = handle->data;
	redis_closed_fn *fn = redis->closed_fn;
	void *data = redis->closed_data;

	VERIFY(!redis->link);
	redis_reply_fini(&redis->nodes);
	free(redis->ring);
	free(redis);
	if (fn)
		fn(data);
}

void
redis_destroy(struct redis *redis, redis_closed_fn *fn, void *data)
{
	VERIFY(redis->state != CLOSING);
	redis->closed_fn = fn;
	redis->closed_data = data;
	redis->state = CLOSING;
	if (redis->link)
		redis_link_abort(redis->link);
	uv_close((uv_handle_t *)&redis->timer, on_closed);
}
