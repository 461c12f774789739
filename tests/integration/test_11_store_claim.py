"""claim: from the open sets into free slots, within gates, windows and budgets."""

import pytest
import redis

from store import BYPASS, CHECKING, CLOSED, LEAKY, NEVER, OPEN, WRITING, Family, Worker


def opened(store, number=1, count=5, window=1000, name="n", suffix="", **options):
    family = Family(number, **options)
    ids = store.enqueue(family, count, name, suffix)
    store.open(family, window)
    return family, ids


def test_an_open_lane_fills_the_free_slots_in_order(store):
    family, ids = opened(store)
    worker = Worker(store)
    claim = worker.claim(3, 0, 2)
    assert claim.ids == ids[:3]
    assert [(job.slot, job.q) for job in claim.jobs] == [(3, 1), (0, 2), (2, 3)]
    assert [job.begin for job in claim.jobs] == [0, 0, 0]
    assert claim.sleep_ms == 0
    leases = store.leases(worker)
    assert {slot: lease.id for slot, lease in leases.items()} == dict(zip([3, 0, 2], ids))
    assert leases[3].q == 1 and leases[3].delivery == 1 and leases[3].role == "p"
    assert store.lane(family.lane).in_use == 3
    assert store.flight() == 3


def test_jobs_that_share_a_lone_prefix_do_not_start_before_the_scheduler_decides(store):
    family = Family(1, flags=0)
    store.enqueue(family, 1)
    store.grant(family.lane, g=0, g_new=1, gate=BYPASS, reason=3, window=1000, rank=5)
    worker = Worker(store)
    assert len(worker.claim().jobs) == 1
    family.flags = 2  # shared, by the second job
    store.known.discard(family.id)
    ids = store.enqueue(family, 3)
    assert worker.claim(1, 2, 3).jobs == []
    lane = store.lane(family.lane)
    assert (lane.gate, lane.reason, lane.g) == (CLOSED, 0, 1)
    assert store.open_set() == {} and family.lane in store.held_set()
    store.grant(family.lane, g=1, g_new=2, gate=WRITING, reason=0, credits=1, role=1)
    assert [job.role for job in worker.claim(4, 5).jobs] == ["l"]
    assert len(ids) == 3


def test_a_stale_bypass_does_not_start_what_is_shared_by_now(store):
    family = Family(1, flags=2)
    store.enqueue(family, 2)
    store.grant(family.lane, g=0, g_new=1, gate=BYPASS, reason=3, window=1000)
    assert store.lane(family.lane).gate == CLOSED
    assert Worker(store).claim().jobs == []
    store.grant(family.lane, g=1, g_new=2, gate=BYPASS, reason=2, window=1000)
    assert len(Worker(store).claim().jobs) == 2


def test_a_claim_into_an_occupied_slot_is_refused_2(store):
    _, ids = opened(store)
    worker = Worker(store)
    first = worker.claim(0).jobs[0]  # this answer was lost
    claim = worker.claim(0, 1)
    assert list(claim.refused) == ["0"]
    assert claim.refused["0"].startswith(f"{first.q}|")
    assert claim.ids == [ids[1]], "the q of the refused slot is not used again"
    assert store.leases(worker)[1].q == 3
    assert len(store.leases(worker)) == 2


def test_a_slot_has_one_name(store):
    opened(store)
    worker = Worker(store)
    for slots in [("00",), ("0", "0"), ("x",), ("s",), ("65536000",), ("-1",)]:
        with pytest.raises(redis.ResponseError, match="slot"):
            worker.claim_raw(1, *slots)
    assert store.leases(worker) == {}


def test_no_start_at_in_use_equal_to_window_i3(store):
    family, ids = opened(store, window=2)
    worker = Worker(store)
    claim = worker.claim()
    assert claim.ids == ids[:2]
    assert 0 < claim.sleep_ms <= 1000
    assert store.open_set() == {}
    claim = worker.settle(claim.jobs[:1], claim=[5, 6])
    assert claim.ids == ids[2:3]


def test_a_shut_gate_starts_nothing(store):
    family = Family(1)
    store.enqueue(family)
    worker = Worker(store)
    for gate in [CLOSED, WRITING, CHECKING]:
        store.grant(family.lane, gate=gate, credits=0)
        assert worker.claim().jobs == []


@pytest.mark.parametrize("gate", [OPEN, BYPASS, LEAKY])
def test_a_startable_gate_starts_plain(store, gate):
    family = Family(1)
    ids = store.enqueue(family, 2)
    store.open(family, gate=gate)
    assert [(j.id, j.role) for j in Worker(store).claim().jobs] == [(i, "p") for i in ids]


def test_a_credit_starts_one_job_and_is_taken(store):
    family = Family(1, hold_max=10000)
    ids = store.enqueue(family, 3)
    store.grant(family.lane, gate=WRITING, credits=1, role=1, until=1, window=50)
    worker = Worker(store)
    claim = worker.claim()
    [job] = claim.jobs
    assert (job.id, job.role, job.begin, job.leader_ms, job.g) == (ids[0], "l", 1, 6000, 1)
    assert store.lane(family.lane).credits == 0
    assert store.open_set() == {} and family.lane in store.held_set()
    assert worker.claim().jobs == []
    assert store.events("start") == [
        f"start {family.lane} {family.id} 1 l {worker.nonce} 0 1"]


@pytest.mark.parametrize("own", ["", "/64,2", "/400,9000"])
def test_a_leader_is_the_first_whose_own_input_is_not_large(store, own):
    family = Family(1, input=100)
    store.enqueue(family, 2, suffix="/9000,10")
    small = store.enqueue(family, 1, suffix=own)
    store.grant(family.lane, gate=WRITING, credits=1, role=2)
    claim = Worker(store).claim()
    assert [(job.id, job.role) for job in claim.jobs] == [(small[0], "c")]
    assert len(store.list(family, "ready:n")) == 2


def test_a_leader_is_one_that_has_not_failed_if_there_is_any(store):
    family, (first, second, third) = opened(store, count=3)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "retry")
    worker.release(worker.claim(0).jobs)
    assert store.list(family, "back:n")[0].startswith(first)
    for leader in (second, third, first):
        store.grant(family.lane, gate=WRITING, credits=1, role=1)
        assert worker.claim().ids == [leader]


def test_a_leader_with_a_size_is_better_than_none(store):
    family = Family(1)
    ids = store.enqueue(family, 1, suffix="/9000,10")
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    assert Worker(store).claim().ids == ids
    assert store.family(family).bits == 0


def test_a_lane_past_its_until_is_closed_by_who_sees_it_21(store):
    family, ids = opened(store)
    store.open(family, until=store.now() - 1)
    worker = Worker(store)
    assert worker.claim().jobs == []
    lane = store.lane(family.lane)
    assert (lane.gate, lane.g) == (CLOSED, 2)
    assert store.events("expired") == [f"expired {family.lane} 2"]
    assert store.open_set() == {} and family.lane in store.held_set()
    assert worker.claim().jobs == []
    assert len(store.events("expired")) == 1


def test_an_ancestor_that_is_shut_shuts_its_descendants(store):
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    ids = store.enqueue(leaf, 2)
    store.open(leaf)
    worker = Worker(store)
    assert worker.claim().jobs == []
    assert store.open_set() == {}
    assert leaf.lane in store.held_set()
    store.grant(root.lane, gate=OPEN, until=NEVER, family="", px=root.id)
    assert leaf.lane in store.open_set(), "the grant writes the descendants back"
    assert store.held_set() == {}
    claim = worker.claim()
    assert claim.ids == ids
    assert claim.jobs[0].px == f"{root.id},{leaf.id}"


def test_a_credit_does_not_look_at_ancestors(store):
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    store.enqueue(leaf, 2)
    store.grant(leaf.lane, gate=BYPASS, reason=3, credits=1, role=1, until=NEVER)
    assert [job.role for job in Worker(store).claim().jobs] == ["l"]


@pytest.mark.parametrize("kind", ["credit", "ticket"])
def test_who_may_write_does_not_start_below_what_has_expired_i1(store, kind):
    """The credit was given while the lane above was open, and nobody is its writer."""
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    store.enqueue(root, 1)
    store.enqueue(leaf, 2)
    store.open(root, until=store.now() + 30)
    store.grant(leaf.lane, gate=WRITING, credits=1 if kind == "credit" else 0, role=1,
                ticket=int(kind == "ticket"), ticket_deadline=store.now() + 60000)
    store.wait_past(store.now() + 31)
    worker = Worker(store)
    for _ in range(2):
        assert worker.claim().jobs == []
        assert store.lane(root.lane).gate == CLOSED
    assert len(store.events("expired")) == 1
    store.grant(root.lane, gate=WRITING)
    assert [job.role for job in worker.claim().jobs] == ["l" if kind == "credit" else "t"]


def test_the_now_list_needs_no_gate(store):
    family = Family(1)
    held = store.enqueue(family, 1)
    quick = store.enqueue(family, 2, name="now")
    claim = Worker(store).claim()
    assert [(job.id, job.role, job.begin) for job in claim.jobs] == [
        (id, "n", 1) for id in quick]
    assert held[0] in store.list(family, "ready:n")


def test_members_that_are_not_open_are_removed_6(store):
    store.broken = True
    family, ids = opened(store, count=5)
    open_key = store.key("open:main:acme:large")
    store.redis.zadd(open_key, {f"{'f' * 32}.0": 1})  # no record
    shut = Family(2)
    store.enqueue(shut)
    store.redis.zadd(open_key, {shut.lane: 2})  # not open
    empty = Family(3)
    store.enqueue(empty)
    store.redis.delete(store.key(f"ready:n:{empty.id}"))  # a false bit
    store.open(empty, rank=0)
    store.open(family, rank=9)
    assert Worker(store).claim(0).ids == ids[:1]
    assert list(store.open_set()) == [family.lane]


def test_a_wall_of_dead_members_does_not_block_a_pool_6(store):
    store.broken = True
    _, ids = opened(store, count=1)
    store.redis.zadd(store.key("open:main:acme:large"),
                     {f"{n:032x}.9": n for n in range(100)})
    worker = Worker(store)
    claim = worker.claim(0)
    assert (claim.ids, claim.sleep_ms) == ([], 0), "again, not: sleep"
    assert worker.claim(0).ids == ids


def test_best_score_first_over_all_budgets(store):
    first, first_ids = opened(store, 1, 1, budget="b:one")
    second, second_ids = opened(store, 2, 1, name="h", budget="b:two")
    assert Worker(store).claim().ids == second_ids + first_ids


def test_a_session_takes_only_from_its_budgets_23(store):
    opened(store, 1, 1, budget="b:one")
    _, ids = opened(store, 2, 1, budget="b:two")
    assert Worker(store, budgets="b:two").claim().ids == ids


def test_a_parked_budget_costs_one_read_and_says_until_when_23(store):
    for number in range(2, 50):
        opened(store, number, 1, budget="b:parked")
    _, ids = opened(store, 1, 1, budget="b:fine")
    store.grant_budget("b:parked", parked=store.now() + 5000)
    worker = Worker(store)
    before = store.redis.info("commandstats")["cmdstat_hget"]["calls"]
    assert worker.claim(0).ids == ids
    assert store.redis.info("commandstats")["cmdstat_hget"]["calls"] - before < 8
    claim = worker.claim(1)
    assert claim.jobs == []
    assert 0 < claim.sleep_ms <= 1000


def test_when_every_budget_is_parked_the_answer_says_how_long_23(store):
    opened(store, 1, 1)
    store.grant_budget("acme:large", parked=store.now() + 5000)
    assert 4000 < Worker(store).claim().sleep_ms <= 5000


def test_the_pace_bounds_what_is_in_flight(store):
    opened(store, count=10)
    store.grant_budget("acme:large", pace=3)
    worker = Worker(store)
    claim = worker.claim()
    assert len(claim.jobs) == 3
    assert len(worker.settle(claim.jobs[:2], claim=[6, 7]).jobs) == 2
    assert store.flight() == 3


def test_the_pace_bounds_what_is_in_flight_where_buckets_would_have_room(store):
    opened(store, count=10, input=1, output=1)
    store.grant_budget("acme:large", pace=3, r=1000, i=100000, o=100000)
    assert len(Worker(store).claim().jobs) == 3
    assert store.flight() == 3


def test_a_bucket_holds_a_minute_however_long_nobody_asks(store):
    opened(store, count=2, input=400)
    store.grant_budget("acme:large", i=1000)
    store.redis.hset(store.key("budget:acme:large"), mapping={"i.level": 0, "i.at": 1})
    assert len(Worker(store).claim(0).jobs) == 1
    assert 600 <= float(store.budget()["i.level"]) <= 610


def test_an_account_that_drifted_is_at_none_in_flight_and_counted_13(store):
    store.broken = True
    opened(store, count=2)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    store.redis.hset(store.key("budget:acme:large"), "in_flight", 0)
    worker.settle(jobs)
    assert store.flight() == 0
    assert store.meta("lane_drift") == "1"


def test_a_start_needs_level_for_its_estimate_and_may_not_push_below_22(store):
    opened(store, count=10, input=400, output=10)
    since = store.now()
    store.grant_budget("acme:large", i=1000)
    claim = Worker(store).claim()
    assert len(claim.jobs) == 2, "400 + 400 of 1000 a minute"
    assert claim.sleep_ms > 0
    assert store.leases
    assert store.is_charged("i", 200, 1000, since)


def test_a_job_larger_than_the_bucket_starts_when_it_is_full_22(store):
    opened(store, count=2, input=5000)
    store.grant_budget("acme:large", i=1000)
    assert len(Worker(store).claim().jobs) == 1


def test_what_a_job_asks_for_blocks_nobody_for_longer_than_a_minute_22(store):
    opened(store, count=2, input=99999999, output=99999999)
    since = store.now()
    store.grant_budget("acme:large", i=1000, o=500)
    worker = Worker(store)
    jobs = worker.claim(0, 1).jobs
    assert len(jobs) == 1
    assert (store.leases(worker)[0].input, store.leases(worker)[0].output) == (2000, 1000)
    assert store.is_charged("i", -1000, 1000, since)
    assert store.is_charged("o", -500, 500, since)
    worker.release(jobs, 0)
    assert float(store.budget()["i.level"]) == 1000
    assert float(store.budget()["o.level"]) == 500


def test_an_estimate_in_the_element_is_used_instead_22(store):
    _, ids = opened(store, count=3, input=10, suffix="/600,1")
    store.grant_budget("acme:large", i=1000)
    worker = Worker(store)
    assert len(worker.claim().jobs) == 1
    assert store.leases(worker)[0].input == 600


def test_a_start_that_may_write_pays_for_the_prefix_22(store):
    family = Family(1, input=10)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1, p=30000)
    store.grant_budget("acme:large", i=50000)
    worker = Worker(store)
    worker.claim()
    assert store.leases(worker)[0].input == 30010


def test_a_start_past_its_hold_limit_pays_for_the_prefix_22(store):
    family = Family(1, input=10, hold_max=1)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=CLOSED, p=30000)
    store.grant_budget("acme:large", i=50000)
    worker = Worker(store)
    assert worker.claim().jobs == []
    store.wait_past(store.now() + 2)
    assert [job.role for job in worker.claim().jobs] == ["h"]
    assert store.leases(worker)[0].input == 30010


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


def test_one_start_per_quarter_of_a_life_reports_its_first_event_29(store):
    family, _ = opened(store, count=6)
    store.open(family, life=240000)
    worker = Worker(store)
    assert [job.begin for job in worker.claim(0, 1, 2).jobs] == [1, 0, 0]
    assert [job.begin for job in worker.claim(3, 4, 5).jobs] == [0, 0, 0]
    assert store.now() + 50000 < store.lane(family.lane).must_begin <= store.now() + 60000


def test_after_a_grant_of_its_budget_the_next_start_reports(store):
    opened(store, count=3)
    store.grant_budget("acme:large", pace=100)
    worker = Worker(store)
    assert [job.begin for job in worker.claim(0, 1).jobs] == [1, 0]
    assert [job.begin for job in worker.claim(2).jobs] == [0]


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


def test_a_paused_family_starts_nothing(store):
    family, ids = opened(store, 1, 2)
    assert store.ok("pause", family.id, "on") == ["done"]
    assert store.open_set() == {} and store.held_set() == {}
    worker = Worker(store)
    assert worker.claim().jobs == []
    store.ok("pause", family.id, "off")
    assert worker.claim().ids == ids


def test_whoever_admits_to_a_paused_family_hears_that_it_is(store):
    """A scheduler that has no memory of it, or knew only what stands below it."""
    family, _ = opened(store, 1, 1)
    store.ok("pause", family.id, "on")
    before = store.events("pause")

    def admit():
        id = store.add()
        assert store.admit(id, families=[family], runs=[(family, "n", [id])])[0] == "OK"

    family.flags = 0  # what it believes
    admit()
    assert store.events("pause")[len(before):] == [f"pause on {family.id}"]
    family.flags = 1
    admit()
    assert store.events("pause")[len(before) + 1:] == []
    store.ok("pause", family.id, "off")
    admit()
    assert store.events("pause")[-1] == f"pause off {family.id}"
    assert store.events("pause").count(f"pause off {family.id}") == 2


def test_a_ticket_is_handed_out_before_all_bands_8(store):
    family, ids = opened(store, 1, 2, name="h")
    warm = Family(2)
    store.admit(store.cursor()[0], families=[warm])
    store.grant(warm.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000,
                px=warm.id)
    worker = Worker(store)
    jobs = worker.claim().jobs
    assert [job.element for job in jobs] == [f"w:{warm.lane}:1"] + ids
    assert (jobs[0].role, jobs[0].begin, jobs[0].px) == ("t", 1, warm.id)
    lane = store.lane(warm.lane)
    assert (lane.ticket, lane.in_use, lane.note) == (2, 1, f"{worker.nonce},0,{jobs[0].q}")


def test_a_ticket_waits_for_room_in_its_window_i3(store):
    family, _ = opened(store, 1, 1, window=1)
    worker = Worker(store)
    job = worker.claim(0).jobs[0]
    store.grant(family.lane, g_new=2, gate=WRITING, window=1, ticket=1,
                ticket_deadline=store.now() + 60000)
    assert worker.claim(1).jobs == [] and store.open_set() == {}
    worker.settle([job])
    assert store.open_set() == {family.lane: 0}
    assert [job.role for job in worker.claim(1).jobs] == ["t"]


def test_a_ticket_is_wanted_once_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    wish = {"gate": WRITING, "ticket": 1, "ticket_deadline": store.now() + 60000}
    assert store.grant(family.lane, g=0, g_new=1, **wish)[1] == "done"
    # The scheduler dies; a second one, or a repetition, wants the same.
    assert store.grant(family.lane, g=0, g_new=1, **wish)[1] == "refused"
    Worker(store).claim()
    assert store.grant(family.lane, g=1, g_new=2, **wish)[1] == "refused", "it is taken"


def test_ended_ids_in_the_way_do_not_make_workers_sleep_15(store):
    family, ids = opened(store, 1, 1500)
    for id in ids[:1499]:
        assert store.ok("cancel", id) == ["ended"]
    worker = Worker(store)
    claim = worker.claim(0)
    assert (claim.ids, claim.sleep_ms) == ([], 0)
    assert worker.claim(0).ids == ids[1499:]
    assert store.count()["ended"] == 0
    assert store.family(family).live == 0


def test_an_empty_family_says_so_once(store):
    family, ids = opened(store, 1, 2)
    Worker(store).claim()
    assert store.family(family).bits == 0
    assert store.events("empty") == [f"empty {family.id}"]


def test_a_claim_that_finds_too_little_says_so(store):
    opened(store, 1, 2)
    Worker(store).claim(0, 1, 2)
    assert store.events("short") == ["short main 1"]
