#include "scheduler/admin_use.h"

#include "common/codec/protocol_record.h"

#include <stdio.h>

static void
on_lanes(struct redis *redis, const struct reply *reply, int error, void *data)
{
	struct admin *admin = data;
	struct admin_use *asked = &admin->use;
	struct protocol_lane lane;

	(void)redis;
	(void)error;
	asked->under_way = false;
	if (admin->closing > 0)
		return;
	for (uint32_t i = 0; reply && i < asked->count && i < reply->count; i++) {
		struct span text = reply_text(&reply->items[i]);

		if (protocol_record_parse_lane(text, &lane) == 0)
			board_set_use(&admin->board, asked->places[i], asked->ids[i],
			              lane.in_use);
	}
	admin->on_use(admin);
}

static uint32_t
collect(struct admin *admin, struct span *words)
{
	struct admin_use *asked = &admin->use;
	const struct board_query query = { .sort = BOARD_SORT_WORK,
		                           .show = BOARD_SHOW_ALL,
		                           .blocked = -1,
		                           .limit = BOARD_LIMIT_MAX };
	const struct board_row *rows[BOARD_LIMIT_MAX];
	struct board_query part = query;
	uint32_t count = BOARD_LIMIT_MAX;

	asked->count = 0;
	while (count == BOARD_LIMIT_MAX && asked->count < ADMIN_USE_MAX) {
		part.offset = asked->count;
		(void)board_select(&admin->board, &part, rows, &count);
		for (uint32_t i = 0; i < count && asked->count < ADMIN_USE_MAX; i++) {
			struct protocol_lane_id lane = { rows[i]->id, 0 };
			uint32_t at = asked->count;

			if (rows[i]->waiting == 0 && rows[i]->running == 0)
				return asked->count;
			words[at].data = asked->texts[at];
			words[at].len = protocol_print_lane_id(lane, asked->texts[at]);
			asked->places[at] = rows[i]->place;
			asked->ids[at] = rows[i]->id;
			asked->count++;
		}
	}
	return asked->count;
}

void
admin_use_look(struct admin *admin)
{
	struct admin_use *asked = &admin->use;
	struct span words[ADMIN_USE_MAX + 2];
	char key[CONFIG_NAME_SIZE + 8];
	uint32_t count;

	if (asked->under_way)
		return; /* Redis is slow: the next second asks again */
	if (admin->board.taken_us == 0)
		board_refresh(&admin->board, *admin->now_ms);
	count = collect(admin, words + 2);
	(void)snprintf(key, sizeof(key), "%s:lanes", admin->config->namespace);
	words[0] = SPAN("HMGET");
	words[1] = span_from(key);
	asked->under_way = count > 0 && redis_command(admin->redis, words, count + 2,
	                                              on_lanes, admin) == 0;
	if (!asked->under_way)
		admin->on_use(admin);
}
