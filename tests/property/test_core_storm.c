/* Random weather over the core, then calm: nothing breaks a rule meanwhile, and after the
 * storm every job finishes. */
#include "common/prng.h"
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define SEEDS   600
#define ACTIONS 60
#define CALM_MS 7200000

/* Chains that share nodes, are not shared, may not be marked, are marked by users. */
static const char *const chains[] = {
	"T/S/A",  "T/S/B", "T/S",    "T/U", "X",     "Y?",
	"T/S/C?", "Z!",    "T/S!/D", "W-",  "T/U/E",
};

static void
change_cache(struct core_rig *rig, struct prng *prng)
{
	rig->knobs.cache_off = prng_chance(prng, 200);
	rig->knobs.usage_unknown = prng_chance(prng, 200);
	rig->knobs.never_read = prng_chance(prng, 200);
	if (prng_chance(prng, 300))
		core_rig_evict(rig);
}

static void
change_weather(struct core_rig *rig, struct prng *prng)
{
	rig->knobs.mute = prng_chance(prng, 300);
	rig->knobs.stopped = prng_chance(prng, 200);
	rig->knobs.deaf = (uint32_t)prng_below(prng, 4);
	rig->knobs.pressure = (uint32_t)prng_below(prng, 5);
	rig->knobs.broken = (uint32_t)prng_below(prng, 5);
	rig->knobs.refused = (uint32_t)prng_below(prng, 5);
}

static void
admit(struct core_rig *rig, struct prng *prng, uint32_t chains_count)
{
	(void)core_rig_admit_as(rig, chains[prng_below(prng, chains_count)],
	                        (uint32_t)prng_below(prng, rig->pools_count),
	                        (enum event_list)prng_below(prng, 3),
	                        (uint32_t)prng_between(prng, 1, 12));
}

/* Nobody but the families of that route may notice. */
static void
flip_route(struct core_rig *rig, struct prng *prng)
{
	bool on = prng_chance(prng, 600);

	if (rig->nodes_count > 0)
		core_rig_hold_route(
			rig, rig->nodes[prng_below(prng, rig->nodes_count)].name, on);
}

static void
warm(struct core_rig *rig, struct prng *prng)
{
	struct event event = { .kind = EVENT_WARM };

	if (rig->nodes_count == 0)
		return;
	event.family.id = rig->nodes[prng_below(prng, rig->nodes_count)].id;
	core_rig_feed(rig, &event);
}

static void
act(struct core_rig *rig, struct prng *prng, uint32_t chains_count, bool fair, bool off)
{
	switch (prng_below(prng, fair ? 6 : off ? 13 : 12)) {
	case 0:
	case 1:
	case 2:
		admit(rig, prng, chains_count);
		break;
	case 3:
		core_rig_run(rig, prng_between(prng, 1, 50));
		break;
	case 4:
		core_rig_run(rig, prng_between(prng, 1, 5000));
		break;
	case 5:
		core_rig_run(rig, prng_between(prng, 1, 400000));
		break;
	case 6:
		change_weather(rig, prng);
		break;
	case 7:
		change_cache(rig, prng);
		break;
	case 8:
		core_rig_kill(rig);
		break;
	case 9:
		core_rig_restart(rig);
		break;
	case 10:
		flip_route(rig, prng);
		break;
	case 11:
		warm(rig, prng);
		break;
	case 12:
		core_rig_hold(rig, prng_chance(prng, 500));
		break;
	}
}

static void
calm_down(struct core_rig *rig)
{
	rig->knobs.mute = rig->knobs.stopped = rig->knobs.cache_off = false;
	rig->knobs.usage_unknown = rig->knobs.never_read = false;
	rig->knobs.deaf = 0;
	rig->knobs.pressure = rig->knobs.broken = rig->knobs.refused = 0;
	core_rig_hold(rig, true);
	for (uint32_t i = 0; i < rig->nodes_count; i++)
		core_rig_hold_route(rig, rig->nodes[i].name, true);
}

static struct core_rig *
set_up(struct prng *prng)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig =
		core_rig_create(&config, (uint32_t)prng_between(prng, 1, 20));

	if (prng_chance(prng, 300))
		(void)core_rig_pool(rig, "q", 3);
	rig->knobs.lag_ms = prng_chance(prng, 500) ? 0 : prng_below(prng, 2500);
	rig->knobs.job_ms = prng_between(prng, 100, 20000);
	rig->knobs.answer_ms = prng_chance(prng, 500) ? 0 : prng_below(prng, 60);
	rig->knobs.line_ms = prng_chance(prng, 500) ? 0 : prng_below(prng, 60);
	return rig;
}

static void
check(const struct core_rig *rig, uint64_t seed)
{
	core_audit(rig->core);
	/* What was started while nobody was held is nobody's promise. */
	ck_assert_msg(rig->was_off || rig->too_many == 0,
	              "seed %llu: %u starts too many while unproven",
	              (unsigned long long)seed, rig->too_many);
	for (uint32_t i = 0; i < rig->families_count; i++) {
		const struct core_rig_family *family = &rig->families[i];

		ck_assert_msg(family->backlog == 0, "seed %llu: jobs left",
		              (unsigned long long)seed);
		ck_assert_uint_eq(family->started, family->done + family->returned);
	}
}

static void
run_seed(uint64_t seed, FILE *trace)
{
	struct prng prng;
	struct core_rig *rig;
	uint32_t chains_count;
	bool fair, off;

	prng_init(&prng, seed);
	rig = set_up(&prng);
	rig->trace = trace;
	chains_count = (uint32_t)prng_between(&prng, 1, ARRAY_SIZE(chains));
	fair = prng_chance(&prng, 200);
	off = prng_chance(&prng, 200);
	for (uint32_t i = 0; i < ACTIONS; i++)
		act(rig, &prng, chains_count, fair, off);
	core_audit(rig->core);
	calm_down(rig);
	(void)core_rig_drain(rig, CALM_MS);
	check(rig, seed);
	core_rig_free(rig);
}

/* CORE_SEEDS=75 runs that one and prints what happens; CORE_SEEDS=0+5000 runs so many. */
START_TEST(core_after_any_storm_every_job_finishes)
{
	const char *wish = getenv("CORE_SEEDS");
	char *rest = NULL;
	uint64_t first = wish ? strtoull(wish, &rest, 10) : 0;
	uint64_t count = !wish ? SEEDS : *rest == '+' ? strtoull(rest + 1, NULL, 10) : 1;

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what happened before it died */
	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, count == 1 ? stdout : NULL);
}
END_TEST

SUITE_MAIN("core_storm", core_after_any_storm_every_job_finishes)
