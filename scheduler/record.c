#include "scheduler/record.h"

#include <stdlib.h>

#define MAGIC "warmq-record-1\n"

enum tag {
	TAG_EVENT = 'E',
	TAG_DECISION = 'D',
};

/* In front of what an event says. */
struct entry {
	uint64_t now_ms;
	uint32_t kind;
};

struct record {
	struct record_header header;
	size_t half_size;
	size_t used[2];
	uint32_t newer; /* the half that is being filled */
	char *halves[2];
};

struct record *
record_create(size_t size, const char *build)
{
	struct record *record = calloc(1, sizeof(*record));
	char *memory = calloc(1, size);

	VERIFY(size >= 2 * (sizeof(struct event) + sizeof(struct entry) + 16));
	if (!record || !memory) {
		free(record);
		free(memory);
		return NULL;
	}
	memcpy(record->header.magic, MAGIC, sizeof(MAGIC));
	memcpy(record->header.build, build, MIN(strlen(build), RECORD_BUILD_SIZE - 1));
	record->header.event_size = sizeof(struct event);
	record->header.config_size = sizeof(struct core_config);
	record->header.command_size = sizeof(struct command);
	record->half_size = size / 2;
	record->halves[0] = memory;
	record->halves[1] = memory + record->half_size;
	return record;
}

struct record *
record_destroy(struct record *record)
{
	if (!record)
		return NULL;
	free(record->halves[0]);
	free(record);
	return NULL;
}

void
record_restart(struct record *record, const struct core_config *config)
{
	record->used[0] = record->used[1] = 0;
	record->newer = 0;
	record->header.torn = 0;
	record->header.steps = 0;
	record->header.config = *config;
}

/* Bytes of what an event of this kind says. */
static size_t
size_of(enum event_kind kind)
{
	static const size_t SIZES[EVENT_KIND_COUNT] = {
		[EVENT_TICK] = 0,
		[EVENT_MODEL] = sizeof(struct event_model),
		[EVENT_POOL] = sizeof(struct event_pool),
		[EVENT_BUDGET] = sizeof(struct event_budget),
		[EVENT_HOLD] = sizeof(struct event_hold),
		[EVENT_PAUSE] = sizeof(struct event_pause),
		[EVENT_RECOVERED_FAMILY] = sizeof(struct event_admitted),
		[EVENT_RECOVERED_LANE] = sizeof(struct event_lane),
		[EVENT_RECOVERED_LEASE] = sizeof(struct event_start),
		[EVENT_RECOVERED_BUDGET] = sizeof(struct event_recovered_budget),
		[EVENT_RECOVERED_END] = 0,
		[EVENT_ADMITTED] = sizeof(struct event_admitted),
		[EVENT_GRANTED] = sizeof(struct event_granted),
		[EVENT_PACED] = sizeof(struct event_paced),
		[EVENT_GLANCED] = sizeof(struct event_glanced),
		[EVENT_START] = sizeof(struct event_start),
		[EVENT_BEGAN] = sizeof(struct event_usage),
		[EVENT_DONE] = sizeof(struct event_usage),
		[EVENT_BACK] = sizeof(struct event_back),
		[EVENT_TICKET] = sizeof(struct event_ticket),
		[EVENT_PRESSURE] = sizeof(struct event_pressure),
		[EVENT_EMPTY] = sizeof(struct event_family),
		[EVENT_WORK] = sizeof(struct event_family),
		[EVENT_EXPIRED] = sizeof(struct event_expired),
		[EVENT_SHORT] = sizeof(struct event_short),
		[EVENT_UNPARK] = sizeof(struct event_unpark),
		[EVENT_WARM] = sizeof(struct event_family),
	};

	VERIFY(kind < EVENT_KIND_COUNT);
	return SIZES[kind];
}

static void
append(struct record *record, const void *bytes, size_t len)
{
	memcpy(record->halves[record->newer] + record->used[record->newer], bytes, len);
	record->used[record->newer] += len;
}

/* Room for an event and the decision behind it, so that none is torn apart. */
static void
make_room(struct record *record, size_t len)
{
	VERIFY(len <= record->half_size);
	if (record->used[record->newer] + len <= record->half_size)
		return;
	record->newer = 1 - record->newer;
	record->header.torn |= record->used[record->newer] > 0;
	record->used[record->newer] = 0;
}

void
record_event(struct record *record, uint64_t now_ms, const struct event *event)
{
	static const char TAG = TAG_EVENT;
	struct entry entry = { now_ms, (uint32_t)event->kind };
	size_t len = size_of(event->kind);

	make_room(record, 1 + sizeof entry + len + 1 + sizeof(uint64_t));
	append(record, &TAG, 1);
	append(record, &entry, sizeof entry);
	append(record, &event->model, len); /* all of them begin there */
	record->header.steps++;
}

void
record_decision(struct record *record, const struct command_list *commands)
{
	static const char TAG = TAG_DECISION;
	uint64_t hash = record_hash(commands);

	append(record, &TAG, 1);
	append(record, &hash, sizeof hash);
}

void
record_parts(struct record *record, struct span ret_parts[RECORD_PARTS])
{
	uint32_t older = 1 - record->newer;

	record->header.length = record->used[0] + record->used[1];
	ret_parts[0] =
		(struct span){ (const char *)&record->header, sizeof record->header };
	ret_parts[1] = (struct span){ record->halves[older], record->used[older] };
	ret_parts[2] = (struct span){ record->halves[record->newer],
		                      record->used[record->newer] };
}

/* ---- playing ------------------------------------------------------------------------
 */

int
record_open(struct span file, struct record_header *ret_header, struct span *ret_rest)
{
	struct record_header header;

	if (file.len < sizeof header)
		return ERR_MALFORMED;
	memcpy(&header, file.data, sizeof header);
	if (memcmp(header.magic, MAGIC, sizeof(MAGIC)) != 0)
		return ERR_MALFORMED;
	header.build[RECORD_BUILD_SIZE - 1] = '\0';
	if (header.event_size != sizeof(struct event) ||
	    header.config_size != sizeof(struct core_config) ||
	    header.command_size != sizeof(struct command))
		return ERR_LIMIT;
	if (header.length != file.len - sizeof header)
		return ERR_MALFORMED;
	*ret_header = header;
	*ret_rest = (struct span){ file.data + sizeof header, header.length };
	return 0;
}

static bool
take(struct span *rest, void *bytes, size_t len)
{
	if (rest->len < len)
		return false;
	memcpy(bytes, rest->data, len);
	*rest = (struct span){ rest->data + len, rest->len - len };
	return true;
}

bool
record_next(struct span *rest, struct record_step *ret_step)
{
	struct record_step step = { 0 };
	struct span at = *rest;
	struct entry entry;
	char tag;

	if (!take(&at, &tag, 1) || tag != TAG_EVENT || !take(&at, &entry, sizeof entry) ||
	    entry.kind >= EVENT_KIND_COUNT)
		return false;
	step.now_ms = entry.now_ms;
	step.event.kind = (enum event_kind)entry.kind;
	if (!take(&at, &step.event.model, size_of(step.event.kind)))
		return false;
	if (at.len > 0 && at.data[0] == TAG_DECISION) {
		(void)take(&at, &tag, 1);
		step.decided = take(&at, &step.hash, sizeof step.hash);
	}
	*rest = at;
	*ret_step = step;
	return true;
}

/* ---- decisions ----------------------------------------------------------------------
 */

static void
mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	*hash ^= *hash >> 29;
}

static void
mix_id(uint64_t *hash, struct id128 id)
{
	mix(hash, id.high);
	mix(hash, id.low);
}

static void
mix_lane(uint64_t *hash, struct lane_id lane)
{
	mix_id(hash, lane.node);
	mix(hash, lane.domain);
}

static void
mix_grant(uint64_t *hash, const struct command_grant *grant)
{
	const uint64_t numbers[] = {
		grant->has_family, grant->g,
		grant->g_new,      grant->gate,
		grant->reason,     grant->credits,
		grant->role,       grant->window,
		grant->rank,       grant->until_ms,
		grant->p,          grant->life_ms,
		grant->ticket,     grant->ticket_deadline_ms,
		grant->marks,      grant->chain_count,
	};

	mix_lane(hash, grant->lane);
	mix_id(hash, grant->pool);
	mix_id(hash, grant->budget);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		mix(hash, numbers[i]);
	for (uint32_t i = 0; i < grant->chain_count; i++)
		mix_id(hash, grant->chain[i]);
}

static void
mix_budget(uint64_t *hash, const struct command_budget *budget)
{
	mix_id(hash, budget->id);
	mix(hash, budget->pace);
	mix(hash, budget->parked_until_ms);
	for (int i = 0; i < EVENT_BUCKET_COUNT; i++)
		mix(hash, budget->limits[i]);
	mix(hash, budget->learned);
}

static void
mix_note(uint64_t *hash, const struct command_note *note)
{
	mix(hash, note->kind);
	mix(hash, note->a);
	mix(hash, note->b);
	mix(hash, note->c);
}

uint64_t
record_hash(const struct command_list *commands)
{
	uint64_t hash = commands->count;

	for (uint32_t i = 0; i < commands->count; i++) {
		const struct command *command = &commands->commands[i];

		mix(&hash, command->kind);
		switch (command->kind) {
		case COMMAND_GRANT:
			mix_grant(&hash, &command->grant);
			break;
		case COMMAND_BUDGET:
			mix_budget(&hash, &command->budget);
			break;
		case COMMAND_GLANCE:
			mix_id(&hash, command->glance.family);
			break;
		case COMMAND_NOTE:
			mix_note(&hash, &command->note);
			break;
		case COMMAND_REBUILD:
		case COMMAND_KIND_COUNT:
			break;
		}
	}
	return hash;
}
