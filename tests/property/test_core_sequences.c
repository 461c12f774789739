/* All short stories of two families over one shared prefix, told with an odometer: after
 * each of them every job gets a start within its hold_max, and finishes. */
#include "tests/lib/core_rig.h"
#include "tests/lib/suite.h"

#include <stdlib.h>

#define LENGTH  4
#define CALM_MS 3600000
#define HOLD_MS 30000

static void
do_admit_a(struct core_rig *rig)
{
	(void)core_rig_admit(rig, "S/A", 2);
}

static void
do_admit_b(struct core_rig *rig)
{
	(void)core_rig_admit(rig, "S/B?", 2);
}

static void
do_wait_a_little(struct core_rig *rig)
{
	core_rig_run(rig, 600);
}

static void
do_wait_for_a_leader(struct core_rig *rig)
{
	core_rig_run(rig, 3100);
}

static void
do_wait_for_expiry(struct core_rig *rig)
{
	core_rig_run(rig, rig->knobs.ttl_ms);
}

static void
do_kill_the_workers(struct core_rig *rig)
{
	core_rig_kill(rig);
}

static void
do_restart_the_scheduler(struct core_rig *rig)
{
	core_rig_restart(rig);
}

static void
do_lose_events(struct core_rig *rig)
{
	rig->knobs.mute = !rig->knobs.mute;
}

static void
do_lose_an_answer(struct core_rig *rig)
{
	rig->knobs.deaf = 1;
}

static void
do_evict(struct core_rig *rig)
{
	core_rig_evict(rig);
}

static void
do_fail_the_next(struct core_rig *rig)
{
	rig->knobs.pressure = 1;
	rig->knobs.broken = 1;
	rig->knobs.refused = 1;
}

static void
do_stop_the_workers(struct core_rig *rig)
{
	rig->knobs.stopped = !rig->knobs.stopped;
}

static void (*const actions[])(struct core_rig *) = {
	do_admit_a,
	do_admit_b,
	do_wait_a_little,
	do_wait_for_a_leader,
	do_wait_for_expiry,
	do_kill_the_workers,
	do_restart_the_scheduler,
	do_lose_events,
	do_lose_an_answer,
	do_evict,
	do_fail_the_next,
	do_stop_the_workers,
};

/* Counts through all stories whose last action is the same; false at the end. */
static bool
turn(uint32_t odometer[LENGTH])
{
	for (uint32_t i = 0; i + 1 < LENGTH; i++) {
		if (++odometer[i] < ARRAY_SIZE(actions))
			return true;
		odometer[i] = 0;
	}
	return false;
}

static void
print_story(const uint32_t odometer[LENGTH], char *ret_text, size_t size)
{
	size_t len = 0;

	for (uint32_t i = 0; i < LENGTH && len < size; i++)
		len += (size_t)snprintf(ret_text + len, size - len, " %u", odometer[i]);
}

static void
check(struct core_rig *rig, const char *story)
{
	core_audit(rig->core);
	ck_assert_msg(rig->too_many == 0, "story%s: too many unproven", story);
	for (uint32_t i = 0; i < rig->families_count; i++) {
		const struct core_rig_family *family = &rig->families[i];

		ck_assert_msg(family->backlog == 0, "story%s: jobs left", story);
		ck_assert_msg(family->held_ms_max <= HOLD_MS, "story%s: held for %llu ms",
		              story, (unsigned long long)family->held_ms_max);
	}
}

static void
tell(const uint32_t odometer[LENGTH], const char *story)
{
	struct core_config config = core_rig_config();
	struct core_rig *rig = core_rig_create(&config, 3);

	rig->trace = getenv("CORE_STORY") ? stdout : NULL;
	rig->knobs.hold_max_ms = HOLD_MS;
	rig->knobs.lag_ms = 200;
	do_admit_a(rig);
	do_admit_b(rig);
	for (uint32_t i = 0; i < LENGTH; i++)
		actions[odometer[i]](rig);
	rig->knobs.mute = rig->knobs.stopped = false;
	(void)core_rig_drain(rig, CALM_MS);
	check(rig, story);
	core_rig_free(rig);
}

static void
tell_all_that_end_with(uint32_t first, uint32_t end)
{
	for (uint32_t last = first; last < end; last++) {
		uint32_t odometer[LENGTH] = { [LENGTH - 1] = last };
		char story[64] = "";

		do {
			print_story(odometer, story, sizeof story);
			tell(odometer, story);
		} while (turn(odometer));
	}
}

/* CORE_STORY="5 0 7 3" tells that one alone and prints what happens. */
static void
tell_or_obey(uint32_t first, uint32_t end)
{
	const char *wish = getenv("CORE_STORY");
	uint32_t odometer[LENGTH] = { 0 };
	char *rest;

	if (!wish) {
		tell_all_that_end_with(first, end);
		return;
	}
	for (uint32_t i = 0; i < LENGTH; i++, wish = rest)
		odometer[i] = (uint32_t)strtoul(wish, &rest, 10);
	if (odometer[LENGTH - 1] >= first && odometer[LENGTH - 1] < end)
		tell(odometer, getenv("CORE_STORY"));
}

START_TEST(core_every_job_starts_after_stories_that_end_with_work)
{
	tell_or_obey(0, 3);
}
END_TEST

START_TEST(core_every_job_starts_after_stories_that_end_with_time_or_death)
{
	tell_or_obey(3, 6);
}
END_TEST

START_TEST(core_every_job_starts_after_stories_that_end_with_a_loss)
{
	tell_or_obey(6, 9);
}
END_TEST

START_TEST(core_every_job_starts_after_stories_that_end_with_trouble)
{
	tell_or_obey(9, ARRAY_SIZE(actions));
}
END_TEST

SUITE_MAIN("core_sequences", core_every_job_starts_after_stories_that_end_with_work,
           core_every_job_starts_after_stories_that_end_with_time_or_death,
           core_every_job_starts_after_stories_that_end_with_a_loss,
           core_every_job_starts_after_stories_that_end_with_trouble)
