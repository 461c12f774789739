"""claim in order: priorities that age, urgent jobs, and lanes that take turns."""

from store import WRITING, Family, Worker, opened


def test_priority_ages_24(store):
    family = Family(1)
    low, normal, high = (store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=one)
                         for one in ("1000-0", "1001-0", "1002-0"))  # the last is urgent
    store.admit(high, families=[family],
                runs=[(family, "l", [low]), (family, "n", [normal]), (family, "h", [high])])
    store.open(family)
    assert Worker(store).claim().ids == [high, normal, low]


def test_an_old_low_job_passes_a_new_high_one_24(store):
    family = Family(1)
    old = store.redis.xadd(store.key("jobs"), {"body": "{}"}, id="1000-0")
    new = store.add()
    store.admit(new, families=[family], runs=[(family, "l", [old]), (family, "h", [new])])
    store.open(family)
    assert Worker(store).claim().ids == [old, new]


def test_settled_lanes_first_only_within_their_class_24(store):
    family, ids = opened(store, 1, 4)
    worker = Worker(store, slots=2)
    first = worker.claim(0, 1)
    urgent, urgent_ids = opened(store, 2, 1, name="h")
    claim = worker.settle(first.jobs, claim=[0, 1])
    assert claim.ids == urgent_ids + ids[2:3]


def test_settled_lanes_first_in_the_same_class_24(store):
    _, ids = opened(store, 1, 4)
    worker = Worker(store, slots=1)
    first = worker.claim(0)
    opened(store, 2, 1)
    store.open(Family(1), rank=9)
    assert worker.settle(first.jobs, claim=[0]).ids == ids[1:2]


def test_an_urgent_job_does_not_take_its_siblings_along_i4(store):
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 2)
    others = store.enqueue(second, 2)
    urgent = store.enqueue(second, 1, "h")
    store.open(first, rank=5)
    store.open(second, rank=6)
    worker = Worker(store)
    assert worker.claim(0, 1, 2, 3).ids == urgent + ids + others[:1]
    assert worker.claim(4).ids == others[1:]
    assert store.open_set() == {}


def test_an_urgent_job_that_has_ended_takes_nobody_along_i4(store):
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 1)
    others = store.enqueue(second, 2)
    urgent = store.enqueue(second, 1, "h")
    store.open(first, rank=5)
    store.open(second, rank=6)
    store.call("cancel", urgent[0])
    worker = Worker(store)
    assert worker.claim(0).ids == ids
    assert worker.claim(1, 2).ids == others


def test_jobs_that_nothing_holds_do_not_take_their_siblings_along_i4(store):
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 1)
    others = store.enqueue(second, 1)
    now = store.enqueue(second, 1, "now")
    store.open(first, rank=5)
    store.open(second, rank=6)
    assert Worker(store).claim(0, 1, 2).ids == now + ids + others


def test_a_leader_waits_for_its_turn_behind_jobs_that_nothing_holds_i4(store):
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 1)
    others = store.enqueue(second, 1)
    now = store.enqueue(second, 1, "now")
    store.open(first, rank=5)
    store.grant(second.lane, g=0, g_new=1, gate=WRITING, credits=1, role=1, window=1000, rank=6)
    claim = Worker(store).claim(0, 1, 2)
    assert claim.ids == now + ids + others
    assert [job.role for job in claim.jobs] == ["n", "p", "l"]


def test_a_leader_waits_for_its_turn_when_the_urgent_job_has_ended_i4(store):
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 1)
    others = store.enqueue(second, 1)
    urgent = store.enqueue(second, 1, "h")
    store.open(first, rank=5)
    store.grant(second.lane, g=0, g_new=1, gate=WRITING, credits=1, role=1, window=1000, rank=6)
    store.call("cancel", urgent[0])
    claim = Worker(store).claim(0, 1)
    assert claim.ids == ids + others
    assert [job.role for job in claim.jobs] == ["p", "l"]


def test_a_lane_that_takes_another_turn_keeps_slots_and_answers_together(store):
    """Each lane reports a first event: a run of its own, before the others of its lane."""
    first, second = Family(1), Family(2)
    ids = store.enqueue(first, 1)
    others = store.enqueue(second, 2)
    urgent = store.enqueue(second, 2, "h")
    store.open(first, rank=5, life=240000)
    store.open(second, rank=6, life=240000)
    worker = Worker(store)
    claim = worker.claim(4, 3, 2, 1, 0)
    assert claim.ids == urgent + ids + others
    leases = store.leases(worker)
    assert [leases[job.slot].id for job in claim.jobs] == claim.ids
    assert [job.slot for job in claim.jobs] == [4, 3, 2, 1, 0]


def test_settled_slots_go_on_in_order_when_the_urgent_jobs_are_done_i4(store):
    first, second = Family(1), Family(2)
    urgent = store.enqueue(second, 1, "h")
    store.open(second, rank=6)
    worker = Worker(store)
    running = worker.claim(0)
    assert running.ids == urgent
    store.enqueue(second, 1, "h")
    others = store.enqueue(second, 1)
    ids = store.enqueue(first, 1)
    store.open(first, rank=5)
    claim = worker.settle(running.jobs, claim=[0, 1, 2])
    assert claim.ids[1:] == ids + others


def test_a_settled_lane_that_had_been_full_takes_its_turn_i4(store):
    first, second, third = Family(1), Family(2), Family(3)
    ids = store.enqueue(first, 2)
    store.open(first, window=1, rank=5)
    worker = Worker(store)
    running = worker.claim(0)
    others = store.enqueue(second, 1)
    urgent = store.enqueue(third, 1, "h")
    store.open(second, rank=6)
    store.open(third, rank=7)
    assert worker.settle(running.jobs, claim=[0, 1, 2]).ids == urgent + ids[1:] + others
