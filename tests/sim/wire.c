#include "tests/sim/wire.h"

#include <stdlib.h>

#define RESET_US 2000 /* from a cut to the client's notice, besides the delay */

enum fate {
	FATE_RUNS,
	FATE_LATE,
	FATE_LOST,
};

struct wire_connection {
	struct wire_connection *next; /* in the hub */
	struct wire *wire;
	uint64_t life; /* of the server it was made to */
	uint64_t call_arrives_us, answer_arrives_us;
	uint64_t late_us;
	enum fate fate; /* of what is under way, once it is cut */
	bool up;        /* the handshake is done */
	bool cut;
};

struct wire_message {
	struct wire_message *next, *previous; /* in the hub */
	struct wire_connection *connection;
	uint64_t tag;
	struct span *argv;
	size_t argc;
	struct redis_arena arena; /* of the answer */
	const struct reply *reply;
};

void
wire_hub_init(struct wire_hub *hub, struct agenda *agenda, struct server *server,
              struct trace *trace, uint64_t seed)
{
	*hub = (struct wire_hub){ .agenda = agenda, .server = server, .trace = trace };
	prng_init(&hub->prng, seed);
}

static void
free_message(struct wire_hub *hub, struct wire_message *message)
{
	if (message->previous)
		message->previous->next = message->next;
	else
		hub->messages = message->next;
	if (message->next)
		message->next->previous = message->previous;
	redis_arena_fini(&message->arena);
	free(message->argv);
	free(message);
}

void
wire_hub_fini(struct wire_hub *hub)
{
	while (hub->messages)
		free_message(hub, hub->messages);
	while (hub->connections) {
		struct wire_connection *next = hub->connections->next;

		free(hub->connections);
		hub->connections = next;
	}
}

uint64_t
wire_delay_us(struct wire_hub *hub)
{
	return prng_between(&hub->prng, hub->knobs.delay_us_min, hub->knobs.delay_us_max);
}

/* When something sent now arrives, behind what is already on this way. */
static uint64_t
arrival(struct wire_hub *hub, uint64_t *last_us)
{
	uint64_t at_us = hub->agenda->now_us + wire_delay_us(hub);

	at_us = MAX(at_us, hub->clogged_until_us);
	at_us = MAX(at_us, *last_us + 1);
	*last_us = at_us;
	return at_us;
}

static bool
is_current(const struct wire_connection *connection)
{
	return connection->wire->connection == connection;
}

/* A frozen client hears nothing: whatever comes is kept for it, in order, even if it
 * thaws before. */
static bool
is_put_off(const struct wire *wire, agenda_fn *run, void *context)
{
	uint64_t now_us = wire->hub->agenda->now_us;

	if (!wire->frozen_until_us || now_us >= *wire->frozen_until_us)
		return false;
	wire->connection->answer_arrives_us =
		MAX(wire->connection->answer_arrives_us, *wire->frozen_until_us);
	agenda_at(wire->hub->agenda, *wire->frozen_until_us, run, context, 0);
	return true;
}

static void
on_reset(void *context, uint64_t number)
{
	struct wire_connection *connection = context;
	struct wire *wire = connection->wire;

	if (!is_current(connection) || is_put_off(wire, on_reset, connection))
		return;
	wire->connection = NULL;
	trace_line(wire->hub->trace, "%s connection lost", wire->name);
	wire->on_down(wire->context);
}

static void
cut(struct wire_connection *connection, bool tell)
{
	struct wire_hub *hub = connection->wire->hub;
	uint64_t coin = prng_below(&hub->prng, 1000);

	if (connection->cut)
		return;
	connection->cut = true;
	connection->fate = FATE_RUNS;
	if (coin < hub->knobs.lost_permille)
		connection->fate = FATE_LOST;
	else if (coin < hub->knobs.lost_permille + hub->knobs.late_permille)
		connection->fate = FATE_LATE;
	if (connection->fate == FATE_LATE)
		connection->late_us = prng_between(&hub->prng, 0, hub->knobs.late_us_max);
	trace_line(hub->trace, "%s cut%s, calls under way %s", connection->wire->name,
	           tell ? "" : " silently",
	           connection->fate == FATE_RUNS   ? "run"
	           : connection->fate == FATE_LATE ? "run late"
	                                           : "are lost");
	if (tell)
		agenda_in(hub->agenda, RESET_US + wire_delay_us(hub), on_reset,
		          connection, 0);
}

void
wire_cut(struct wire *wire)
{
	struct wire_hub *hub = wire->hub;

	if (wire->connection)
		cut(wire->connection,
		    !prng_chance(&hub->prng, hub->knobs.silent_permille));
}

void
wire_close(struct wire *wire)
{
	if (!wire->connection)
		return;
	cut(wire->connection, false);
	wire->connection = NULL;
}

bool
wire_is_up(const struct wire *wire)
{
	return wire->connection && wire->connection->up;
}

static void
on_connected(void *context, uint64_t number)
{
	struct wire_connection *connection = context;
	struct wire *wire = connection->wire;
	struct wire_hub *hub = wire->hub;

	if (!is_current(connection) || is_put_off(wire, on_connected, connection))
		return;
	if (!hub->server->up || connection->cut ||
	    connection->life != hub->server->lives) {
		wire->connection = NULL;
		wire->on_down(wire->context);
		return;
	}
	connection->up = true;
	wire->on_up(wire->context);
}

void
wire_open(struct wire *wire)
{
	struct wire_hub *hub = wire->hub;
	struct wire_connection *connection = calloc(1, sizeof *connection);

	VERIFY(!wire->connection);
	VERIFY(connection);
	*connection = (struct wire_connection){
		.next = hub->connections,
		.wire = wire,
		.life = hub->server->lives,
	};
	hub->connections = connection;
	wire->connection = connection;
	agenda_at(hub->agenda,
	          arrival(hub, &connection->call_arrives_us) + wire_delay_us(hub),
	          on_connected, connection, 0);
}

static void
on_answer(void *context, uint64_t number)
{
	struct wire_message *message = context;
	struct wire_connection *connection = message->connection;
	struct wire *wire = connection->wire;

	if (is_current(connection) && is_put_off(wire, on_answer, message))
		return;
	if (is_current(connection) && !connection->cut)
		wire->on_answer(wire->context, message->tag, message->reply);
	free_message(wire->hub, message);
}

/* Copies an answer out of the server's arena: it travels while others are made. */
static void
copy_reply(struct redis_arena *arena, const struct reply *from, struct reply *to)
{
	struct reply *items;
	const struct reply *array;

	*to = *from;
	switch (from->kind) {
	case REPLY_NIL:
	case REPLY_INTEGER:
		break;
	case REPLY_TEXT:
	case REPLY_ERROR:
		to->text = redis_answer_text(arena, from->text)->text;
		break;
	case REPLY_ARRAY:
		array = redis_answer_array(arena, from->count, &items);
		for (size_t i = 0; i < from->count; i++)
			copy_reply(arena, &from->items[i], &items[i]);
		to->items = array->items;
		break;
	}
}

/* The call reaches the server, or what is left of it. */
static void
on_call(void *context, uint64_t number)
{
	struct wire_message *message = context;
	struct wire_connection *connection = message->connection;
	struct wire_hub *hub = connection->wire->hub;
	bool dies = !connection->cut && prng_chance(&hub->prng, hub->knobs.cut_permille);
	struct reply *reply;

	if (dies && prng_chance(&hub->prng, 500)) {
		/* before it is read: the fate of the connection is its fate */
		cut(connection, !prng_chance(&hub->prng, hub->knobs.silent_permille));
		dies = false;
	}
	if (connection->cut && connection->fate == FATE_LATE && number == 0) {
		agenda_in(hub->agenda, connection->late_us, on_call, message, 1);
		return;
	}
	if (!hub->server->up || connection->life != hub->server->lives ||
	    (connection->cut && connection->fate == FATE_LOST)) {
		free_message(hub, message);
		return;
	}
	reply = redis_arena_take(&message->arena, sizeof *reply);
	copy_reply(&message->arena,
	           server_call(hub->server, message->argv, message->argc), reply);
	message->reply = reply;
	if (dies) /* the effect stays, the answer is gone */
		cut(connection, !prng_chance(&hub->prng, hub->knobs.silent_permille));
	agenda_at(hub->agenda, arrival(hub, &connection->answer_arrives_us), on_answer,
	          message, 0);
}

static struct wire_message *
make_message(struct wire_hub *hub, const struct span *argv, size_t argc)
{
	struct wire_message *message = calloc(1, sizeof *message);
	size_t bytes = 0;
	char *at;

	VERIFY(message);
	for (size_t i = 0; i < argc; i++)
		bytes += argv[i].len;
	message->argc = argc;
	message->argv = malloc(argc * sizeof *argv + bytes + 1);
	VERIFY(message->argv);
	at = (char *)(message->argv + argc);
	for (size_t i = 0; i < argc; i++) {
		message->argv[i] = (struct span){ at, argv[i].len };
		if (argv[i].len > 0)
			memcpy(at, argv[i].data, argv[i].len);
		at += argv[i].len;
	}
	message->next = hub->messages;
	if (hub->messages)
		hub->messages->previous = message;
	hub->messages = message;
	return message;
}

void
wire_send(struct wire *wire, uint64_t tag, const struct span *argv, size_t argc)
{
	struct wire_hub *hub = wire->hub;
	struct wire_message *message;

	if (!wire_is_up(wire) || wire->connection->cut)
		return;
	message = make_message(hub, argv, argc);
	message->connection = wire->connection;
	message->tag = tag;
	agenda_at(hub->agenda, arrival(hub, &wire->connection->call_arrives_us), on_call,
	          message, 0);
}

void
wire_reset_all(struct wire_hub *hub)
{
	for (struct wire_connection *c = hub->connections; c; c = c->next) {
		if (is_current(c) && !c->cut) {
			c->cut = true;
			c->fate = FATE_LOST;
			agenda_in(hub->agenda, RESET_US + wire_delay_us(hub), on_reset, c,
			          0);
		}
	}
}
