"""claim: from the open sets into free slots, within gates, windows, credits and tickets."""

import pytest
import redis

from store import BYPASS, CHECKING, CLOSED, LEAKY, NEVER, OPEN, WRITING, Family, Worker, opened


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


def test_a_leader_that_came_back_alone_does_not_lead_again_before_others(store):
    """It may be one that says nothing for ever: it led, was stopped, and led again."""
    family = Family(1)
    first, second, _ = store.enqueue(family, 3)
    worker = Worker(store)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    for leader in (first, second, first):  # of two that came back neither is to blame
        [job] = worker.claim(0).jobs
        assert (job.id, job.role) == (leader, "l")
        worker.release([job])


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


def test_a_paused_family_starts_nothing(store):
    family, ids = opened(store, 1, 2)
    assert store.ok("pause", family.id, "on") == ["done"]
    assert store.open_set() == {} and store.held_set() == {}
    worker = Worker(store)
    assert worker.claim().jobs == []
    store.ok("pause", family.id, "off")
    assert worker.claim().ids == ids


def test_a_part_without_jobs_of_its_own_is_not_paused(store):
    """`Nothing of it starts`, it was said, and all that have it in common went on."""
    root = Family(1)
    store.enqueue(Family(2, ancestors=[root.lane], px=[root.id, Family(2).id]), 1)
    assert store.family(root) and store.ok("pause", root.id, "on") == ["gone"]
    store.enqueue(root, 1)
    assert store.ok("pause", root.id, "on") == ["done"]


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
