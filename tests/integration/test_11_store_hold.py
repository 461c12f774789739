"""claim while jobs are held: the hold clock, and holding switched off, for all or for a route."""

import pytest
import redis

from store import BYPASS, CLOSED, OPEN, WRITING, Family, Worker, opened


def test_a_due_hold_starts_one_job_per_call(store):
    family = Family(1, hold_max=1)
    ids = store.enqueue(family, 3)
    worker = Worker(store)
    assert worker.claim().jobs == [], "its clock starts when slots are free"
    since = store.now()
    store.wait_past(since + 2)
    claim = worker.claim()
    assert [(job.id, job.role, job.begin) for job in claim.jobs] == [(ids[0], "h", 1)]
    assert claim.sleep_ms <= 1
    store.wait_past(store.now() + 2)
    assert worker.claim(1, 2, 3).ids == ids[1:2]


def test_the_hold_clock_stands_still_without_free_slots(store):
    family = Family(1, hold_max=300)
    store.enqueue(family)
    store.redis.zadd(store.key("held:main:acme:large"), {family.lane: 1})  # due long ago
    before = store.now()
    claim = Worker(store).claim()  # the first worker after a night
    assert claim.jobs == [] and 0 < claim.sleep_ms <= 300
    assert store.held_set()[family.lane] >= before + 300


def idle(store):
    since, last = store.redis.hget(store.key("idle"), "main").split()
    return int(since), int(last)


def test_the_hold_clock_goes_on_while_a_writer_has_the_last_slot_i8(store):
    family = Family(1, hold_max=10000)
    store.enqueue(family, 3)
    worker = Worker(store, slots=1)
    assert worker.claim(0).jobs == []
    since, _ = idle(store)
    store.grant(family.lane, g=0, g_new=1, gate=WRITING, credits=1, role=1, window=1000)
    before = store.now()
    assert [job.role for job in worker.claim(0).jobs] == ["l"]
    assert idle(store)[0] == since
    assert before + 6000 <= idle(store)[1] <= store.now() + 6000


def test_the_hold_clock_does_not_begin_with_a_writer(store):
    family, _ = opened(store, 1, 1)
    store.grant(family.lane, g=1, g_new=2, gate=WRITING, credits=1, role=1, window=1000)
    worker = Worker(store, slots=1)
    assert [job.role for job in worker.claim(0).jobs] == ["l"]
    assert store.redis.hget(store.key("idle"), "main") is None


def test_plain_jobs_in_the_last_slots_stop_the_hold_clock(store):
    opened(store, 1, 2)
    worker = Worker(store, slots=1)
    store.redis.hset(store.key("idle"), "main", f"{store.now() - 500} {store.now() - 500}")
    was = idle(store)
    assert len(worker.claim(0).jobs) == 1
    assert idle(store) == was


def test_the_hold_clock_stands_still_while_the_budget_is_blocked(store):
    family = Family(1, hold_max=30)
    store.enqueue(family)
    worker = Worker(store)
    store.grant_budget("acme:large", parked=store.now() + 60000)
    worker.claim()
    blocked = int(store.budget()["blocked_at"])
    store.grant_budget("acme:large", parked=0)
    while not worker.claim().jobs:
        assert store.now() < blocked + 60000
    assert store.now() >= blocked + 30


def test_the_hold_clock_begins_anew_when_the_budget_was_blocked(store):
    family = Family(1, hold_max=10000)
    store.enqueue(family)
    worker = Worker(store)
    store.redis.zadd(store.key("held:main:acme:large"), {family.lane: 1})  # due long ago
    store.redis.hset(store.key("idle"), "main", f"{store.now() - 20000} {store.now()}")
    store.grant_budget("acme:large", parked=store.now() + 60000)
    assert worker.claim().jobs == []
    blocked = int(store.budget()["blocked_at"])
    store.grant_budget("acme:large", parked=0)
    assert worker.claim().jobs == []
    assert store.held_set()[family.lane] == blocked + 10000


@pytest.mark.parametrize("budgets", ["*", "acme:large"])
def test_holds_of_a_blocked_account_keep_nobody_elses_from_ending(store, budgets):
    """40 lanes of an account that is parked, or for which this worker has no key."""
    for number in range(2, 42):
        store.enqueue(Family(number, hold_max=1, budget="other:large"))
    family = Family(1, hold_max=1)
    [id] = store.enqueue(family)
    if budgets == "*":
        store.grant_budget("other:large", parked=store.now() + 600000)
    worker = Worker(store, budgets=budgets)
    worker.claim()
    store.wait_past(store.now() + 2)
    assert worker.claim().ids == [id]


def test_lanes_that_cannot_start_keep_no_hold_from_ending(store):
    for number in range(2, 42):
        store.enqueue(Family(number, hold_max=1))
        store.grant(Family(number).lane, gate=CLOSED, window=0)
    family = Family(1, hold_max=2)
    [id] = store.enqueue(family)
    worker = Worker(store)
    worker.claim()
    store.wait_past(store.now() + 3)
    assert worker.claim().ids + worker.claim().ids == [id]


def test_hold_off_starts_everything_within_the_pace(store):
    family = Family(1)
    store.enqueue(family, 5)
    store.grant_budget("acme:large", pace=4)
    store.ok("hold", "off", "somebody")
    assert len(Worker(store).claim().jobs) == 4
    assert store.events("hold") == ["hold off somebody"]


def test_hold_on_shuts_at_once_what_was_open_because_it_was_off(store):
    family, ids = opened(store, 1, 4)
    store.ok("hold", "off")
    store.open(family, gate=BYPASS, reason=7)
    worker = Worker(store)
    assert worker.claim(0).ids == ids[:1]
    store.ok("hold", "on")
    assert worker.claim(1).jobs == []
    lane = store.lane(family.lane)
    assert (lane.gate, lane.reason) == (CLOSED, 0)
    assert store.open_set() == {} and family.lane in store.held_set()
    store.open(family)
    assert worker.claim(1).ids == ids[1:2]


def test_hold_on_shuts_an_ancestor_that_was_open_because_it_was_off(store):
    above = Family(1)
    family = Family(2, ancestors=[above.lane])
    store.enqueue(above, 1)
    ids = store.enqueue(family, 2)
    store.open(above, gate=BYPASS, reason=7)
    store.open(family)
    store.ok("hold", "off")
    worker = Worker(store, slots=1)
    assert len(worker.claim(0).jobs) == 1
    store.ok("hold", "on")
    assert worker.claim(1, 2).jobs == []
    assert store.lane(above.lane).gate == CLOSED
    assert len(ids) == 2


def test_hold_on_leaves_open_what_is_not_held_for_other_reasons(store):
    for number, reason in enumerate([1, 2, 3, 4, 6, 8, 9], 1):
        family = Family(number)
        ids = store.enqueue(family, 1)
        store.open(family, gate=BYPASS, reason=reason)
        store.ok("hold", "off")
        store.ok("hold", "on")
        assert Worker(store).claim().ids == ids


def test_a_settle_after_hold_on_starts_nothing_by_what_was_off(store):
    family, ids = opened(store, 1, 4)
    store.ok("hold", "off")
    store.open(family, gate=BYPASS, reason=7)
    worker = Worker(store, slots=1)
    claim = worker.claim(0)
    claim = worker.settle(claim.jobs, claim=[0])
    assert claim.ids == ids[1:2]
    store.ok("hold", "on")
    assert worker.settle(claim.jobs, claim=[0]).ids == []


UNHELD = 2 + 8


def audit_all(store):
    corrections, _ = store.audit_in_pieces()
    assert corrections == []


def test_a_route_that_is_not_held_starts_whatever_the_gates_say(store):
    above = Family(1, route="held")
    free = Family(2, ancestors=[above.lane], flags=2, route="a b/ü")
    held = Family(3, ancestors=[above.lane], flags=2, route="held")
    store.enqueue(above, 1)
    ids = store.enqueue(free, 4, suffix="/100,50")
    store.enqueue(held, 2)
    for family in (above, free, held):
        store.grant(family.lane, gate=WRITING, credits=0, window=1000, rank=7)
    worker = Worker(store)
    assert worker.claim().jobs == []
    assert store.ok("hold", "off", "x y", "a b/ü") == []
    assert store.events("hold_route") == ["hold_route off x_y a b/ü"]
    assert list(store.redis.hgetall(store.key("unheld"))) == ["a b/ü"]
    audit_all(store)
    assert store.family(free).flags == UNHELD and store.family(held).flags == 2
    assert list(store.open_set()) == [free.lane]
    assert set(store.held_set()) == {above.lane, held.lane}
    claim = worker.claim(0, 1)
    assert claim.ids == ids[:2] and {job.role for job in claim.jobs} == {"p"}
    claim = worker.settle(claim.jobs, claim=[0, 1])
    assert claim.ids == ids[2:], "a settle goes on there, too"
    assert worker.settle(claim.jobs, claim=[0, 1]).ids == []
    audit_all(store)


def test_a_route_that_is_held_again_waits(store):
    family = Family(1, flags=UNHELD)
    ids = store.enqueue(family, 3)
    store.redis.hset(store.key("unheld"), "triage", "1 x")
    worker = Worker(store)
    assert worker.claim(0).ids == ids[:1], "it was admitted so"
    store.grant(family.lane, gate=OPEN, until=1, window=1000)
    assert worker.claim(1).ids == ids[1:2], "past its `until`, too"
    assert store.lane(family.lane).gate == CLOSED
    store.ok("hold", "on", "", "triage")
    assert store.events("hold_route") == ["hold_route on - triage"]
    audit_all(store)
    assert store.family(family).flags == 2
    assert worker.claim(2).jobs == [] and store.open_set() == {}
    assert family.lane in store.held_set()
    store.redis.zadd(store.key("held:main:acme:large"), {family.lane: 1})
    assert not store.redis.exists(store.key("unheld"))


def test_an_admission_may_bring_the_flag_along(store):
    family = Family(1, flags=2)
    ids = store.enqueue(family, 1)
    worker = Worker(store)
    assert worker.claim(0).jobs == []
    family.flags = UNHELD
    store.known.discard(family.id)
    store.redis.hset(store.key("unheld"), "triage", "1 x")
    ids += store.enqueue(family, 1)
    assert store.held_set() == {}
    assert worker.claim(0, 1).ids == ids
    audit_all(store)


def test_a_paused_family_that_is_not_held_starts_nothing(store):
    family = Family(1, flags=UNHELD)
    store.redis.hset(store.key("unheld"), "triage", "1 x")
    store.enqueue(family, 2)
    store.ok("pause", family.id, "on")
    assert store.family(family).flags == UNHELD + 1
    assert store.open_set() == {} and store.held_set() == {}
    assert Worker(store).claim().jobs == []
    audit_all(store)
    store.ok("pause", family.id, "off")
    assert len(Worker(store).claim().jobs) == 2


@pytest.mark.parametrize("route", ["", "a|b", "a\nb", "x" * 129])
def test_what_is_no_route_is_refused(store, route):
    with pytest.raises(redis.ResponseError, match="route: expected 1 to 128 bytes"):
        store.call("hold", "off", "x", route)


def test_no_more_than_64_routes_are_unheld(store):
    for n in range(64):
        store.ok("hold", "off", "x", f"route {n}")
    with pytest.raises(redis.ResponseError, match="64 routes already"):
        store.call("hold", "off", "x", "one more")
    store.ok("hold", "off", "x", "route 7")
    store.ok("hold", "on", "x", "route 7")
    store.ok("hold", "off", "x", "one more")
