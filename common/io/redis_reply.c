#include "common/io/redis_reply.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#define DEPTH_MAX 16

static int
count_nodes(const redisReply *from, unsigned depth, size_t *count)
{
	int err;

	if (depth > DEPTH_MAX)
		return ERR_LIMIT;
	(*count)++;
	if (from->type != REDIS_REPLY_ARRAY)
		return 0;
	for (size_t i = 0; i < from->elements; i++) {
		err = count_nodes(from->element[i], depth + 1, count);
		if (err < 0)
			return err;
	}
	return 0;
}

static int
make_room(struct redis_reply_nodes *nodes, size_t count)
{
	struct reply *grown;
	size_t room = MAX(nodes->room, 16);

	if (count <= nodes->room)
		return 0;
	while (room < count)
		room *= 2;
	grown = reallocarray(nodes->nodes, room, sizeof *grown);
	if (!grown)
		return ERR_MEMORY;
	nodes->nodes = grown;
	nodes->room = room;
	return 0;
}

/* Fills `to`; children take consecutive nodes from `*next` on. */
static void
fill(struct redis_reply_nodes *nodes, const redisReply *from, struct reply *to,
     size_t *next)
{
	struct span text = { from->str, from->str ? (size_t)from->len : 0 };
	struct reply *items;

	switch (from->type) {
	case REDIS_REPLY_INTEGER:
		*to = (struct reply){ .kind = REPLY_INTEGER, .integer = from->integer };
		return;
	case REDIS_REPLY_ERROR:
		*to = (struct reply){ .kind = REPLY_ERROR, .text = text };
		return;
	case REDIS_REPLY_ARRAY:
		items = nodes->nodes + *next;
		*next += from->elements;
		for (size_t i = 0; i < from->elements; i++)
			fill(nodes, from->element[i], &items[i], next);
		*to = (struct reply){ .kind = REPLY_ARRAY,
			              .count = from->elements,
			              .items = items };
		return;
	case REDIS_REPLY_NIL:
		*to = (struct reply){ .kind = REPLY_NIL };
		return;
	default: /* strings and status; we never ask for RESP3's other kinds */
		*to = (struct reply){ .kind = REPLY_TEXT, .text = text };
		return;
	}
}

int
redis_reply_convert(struct redis_reply_nodes *nodes, const struct redisReply *from,
                    const struct reply **ret_reply)
{
	size_t count = 0, next = 1;
	int err;

	err = count_nodes(from, 0, &count);
	if (err == 0)
		err = make_room(nodes, count);
	if (err < 0)
		return err;
	fill(nodes, from, nodes->nodes, &next);
	VERIFY(next == count);
	*ret_reply = nodes->nodes;
	return 0;
}

void
redis_reply_fini(struct redis_reply_nodes *nodes)
{
	free(nodes->nodes);
	*nodes = (struct redis_reply_nodes){ 0 };
}
