/* Everything that can happen to two jobs and two workers, up to a length.
 *
 *   small_scope [--length N] [--gate open|lead] [--library FILE]
 *
 * From the first world on every possible act is tried in every world that was found, one
 * act longer each time; worlds that were met before are not gone on from.  Each new one
 * is checked, and must come to an end from where it is.  A fault prints the acts that
 * lead to it: that is the shortest way, since shorter ones come first.  FILE is another
 * function library than the one that was built: a mutant. */
#include "tests/sim/small_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LENGTH_MAX = 12
};

struct path {
	uint8_t acts[LENGTH_MAX];
};

struct search {
	struct small_scope *scope;
	struct small_world first;
	struct small_act acts[SMALL_ACTS_MAX];
	size_t acts_count;
	uint64_t *seen; /* 0: free */
	size_t seen_count, seen_room;
	struct path *now, *next;
	size_t now_count, next_count, next_room;
	uint64_t tried;
};

/* ---- what was met ---------------------------------------------------------------- */

static bool
put_seen(uint64_t *seen, size_t room, uint64_t hash)
{
	size_t at = (size_t)(hash & (room - 1));

	while (seen[at] && seen[at] != hash)
		at = (at + 1) & (room - 1);
	if (seen[at])
		return false;
	seen[at] = hash;
	return true;
}

/* True if this number is new. */
static bool
note_seen(struct search *search, uint64_t hash)
{
	if (search->seen_count * 2 >= search->seen_room) {
		size_t room = search->seen_room ? search->seen_room * 2 : 1 << 16;
		uint64_t *seen = calloc(room, sizeof *seen);

		VERIFY(seen);
		for (size_t i = 0; i < search->seen_room; i++)
			if (search->seen[i])
				(void)put_seen(seen, room, search->seen[i]);
		free(search->seen);
		search->seen = seen;
		search->seen_room = room;
	}
	if (!put_seen(search->seen, search->seen_room, hash ? hash : 1))
		return false;
	search->seen_count++;
	return true;
}

static void
go_on_from(struct search *search, const struct path *path)
{
	if (search->next_count == search->next_room) {
		search->next_room = search->next_room ? search->next_room * 2 : 1024;
		search->next =
			realloc(search->next, search->next_room * sizeof *search->next);
		VERIFY(search->next);
	}
	search->next[search->next_count++] = *path;
}

/* ---- trying ---------------------------------------------------------------------- */

static void
follow(struct search *search, const struct path *path, size_t length,
       struct small_world *ret_world)
{
	small_world_copy(&search->first, ret_world);
	for (size_t i = 0; i < length; i++)
		small_world_act(search->scope, ret_world, search->acts[path->acts[i]]);
}

static void
show(const struct search *search, const struct path *path, size_t length)
{
	char text[100];

	fprintf(stderr, "%s, after\n", small_scope_fault(search->scope));
	for (size_t i = 0; i < length; i++) {
		small_act_print(search->acts[path->acts[i]], text, sizeof text);
		fprintf(stderr, "  %s\n", text);
	}
}

/* False once something is wrong. */
static bool
try_act(struct search *search, const struct small_world *world, struct path *path,
        size_t length)
{
	struct small_world next;

	search->tried++;
	small_world_copy(world, &next);
	small_world_act(search->scope, &next, search->acts[path->acts[length]]);
	if (!small_scope_fault(search->scope) &&
	    note_seen(search, small_world_hash(&next))) {
		small_world_check(search->scope, &next);
		if (!small_scope_fault(search->scope))
			small_world_drain(search->scope, &next);
		go_on_from(search, path);
	}
	small_world_fini(&next);
	if (!small_scope_fault(search->scope))
		return true;
	show(search, path, length + 1);
	return false;
}

/* Both workers are the same until one of them has done something: that is the first. */
static bool
is_mirrored(const struct search *search, const struct path *path, size_t length,
            struct small_act act)
{
	if (act.kind == SMALL_ADMIT || act.kind == SMALL_CANCEL || act.who == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		const struct small_act *before = &search->acts[path->acts[i]];

		if (before->kind != SMALL_ADMIT && before->kind != SMALL_CANCEL)
			return false;
	}
	return true;
}

static bool
expand(struct search *search, struct path path, size_t length)
{
	struct small_world world;
	bool fine = true;

	follow(search, &path, length, &world);
	for (size_t i = 0; i < search->acts_count && fine; i++) {
		if (!small_act_is_possible(&world, search->acts[i]) ||
		    is_mirrored(search, &path, length, search->acts[i]))
			continue;
		path.acts[length] = (uint8_t)i;
		fine = try_act(search, &world, &path, length);
	}
	small_world_fini(&world);
	return fine;
}

static bool
try_all(enum small_gate gate, size_t length_max, const char *library)
{
	struct search search = { .scope = small_scope_create(gate, library) };
	struct path none = { { 0 } };
	bool fine = true;

	search.acts_count = small_acts(search.acts);
	small_world_init(search.scope, &search.first);
	small_world_check(search.scope, &search.first);
	(void)note_seen(&search, small_world_hash(&search.first));
	go_on_from(&search, &none);
	for (size_t length = 0; length < length_max && fine; length++) {
		free(search.now);
		search.now = search.next;
		search.now_count = search.next_count;
		search.next = NULL;
		search.next_count = search.next_room = 0;
		for (size_t i = 0; i < search.now_count && fine; i++)
			fine = expand(&search, search.now[i], length);
	}
	printf("gate %s, length %zu: %zu worlds, %" PRIu64 " acts tried\n",
	       gate == SMALL_OPEN ? "open" : "lead", length_max, search.seen_count,
	       search.tried);
	small_world_fini(&search.first);
	small_scope_destroy(search.scope);
	free(search.now);
	free(search.next);
	free(search.seen);
	return fine;
}

int
main(int argc, char **argv)
{
	size_t length = 4;
	const char *library = NULL;
	bool gates[] = { true, true };
	int failed = 0, passed = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--length") == 0)
			length = MIN((size_t)strtoul(argv[i + 1], NULL, 10), LENGTH_MAX);
		else if (strcmp(argv[i], "--gate") == 0)
			gates[strcmp(argv[i + 1], "open") == 0] = false;
		else if (strcmp(argv[i], "--library") == 0)
			library = argv[i + 1];
	}
	for (int gate = SMALL_OPEN; gate <= SMALL_LEAD; gate++) {
		if (!gates[gate])
			continue;
		if (try_all((enum small_gate)gate, length, library))
			passed++;
		else
			failed++;
	}
	printf("cases: %d passed, %d failed\n", passed, failed);
	return failed > 0;
}
