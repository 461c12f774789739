"""audit: every drift is found, repaired and reported; full memory drains."""

import pytest
from redis import ResponseError

from store import NEVER, OPEN, WRITING, Family, Store, Worker, node, opened, wait_until


def found(store):
    return {(what, was, now) for what, _, was, now in store.audit()}


def found_at(store):
    return [tuple(row) for row in store.audit()]


def test_a_lane_number_that_drifted_is_set_to_its_leases_13(store):
    family, _ = opened(store, count=5)
    Worker(store).claim(0, 1)
    record = store.redis.hget(store.key("lanes"), family.lane)
    store.redis.hset(store.key("lanes"), family.lane, record[:17] + "00009" + record[22:])
    assert ("in use", "9", "2") in found(store)
    assert store.lane(family.lane).in_use == 2


def test_a_drift_does_not_borrow_from_the_next_column_13(store):
    store.broken = True
    family, _ = opened(store, count=5, window=16)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    record = store.redis.hget(store.key("lanes"), family.lane)
    store.redis.hset(store.key("lanes"), family.lane, record[:17] + "00000" + record[22:])
    worker.settle(jobs)
    lane = store.lane(family.lane)
    assert (lane.in_use, lane.window) == (0, 16)
    assert store.meta("lane_drift") == "1"
    assert store.events("drift") == [f"drift {family.lane}"]
    assert len(worker.claim(0).jobs) == 1


def test_in_flight_is_recounted_13(store):
    opened(store, count=5)
    Worker(store).claim(0, 1)
    store.redis.hset(store.key("budget:acme:large"), "in_flight", 77)
    assert ("in flight", "77", "2") in found(store)
    assert store.flight() == 2


def test_bits_come_from_the_lists_both_ways_13(store):
    family, ids = opened(store, count=2)
    record = store.redis.hget(store.key("families"), family.id)
    store.redis.hset(store.key("families"), family.id, "1000" + record[4:])
    assert ("bits", "0", "8") in found(store)
    assert Worker(store).claim().ids == ids
    store.redis.hset(store.key("families"), family.id,
                     "1063" + store.redis.hget(store.key("families"), family.id)[4:])
    store.audit()
    assert store.family(family).bits == 0


def test_sets_are_made_from_records_13(store):
    family, _ = opened(store, count=2)
    held = Family(2)
    store.enqueue(held)
    store.redis.delete(store.key("open:main:acme:large"), store.key("held:main:acme:large"))
    store.redis.zadd(store.key("open:main:acme:large"), {node(77) + ".0": 1})
    kinds = [what for what, *_ in store.audit()]
    assert sorted(kinds) == ["missing", "missing", "stranger"]
    assert list(store.open_set()) == [family.lane]
    assert list(store.held_set()) == [held.lane]


@pytest.mark.parametrize("lost", ["lanes", "families"])
def test_waiting_jobs_survive_the_record_of_their_place_13(store, lost):
    """`doctor --repair records` deletes what nobody can read, and nothing new may come."""
    store.broken = True
    family, ids = opened(store, count=3, hold_max=1)
    store.redis.delete(store.key(lost))
    assert "record" in {what for what, *_ in found_at(store)}
    assert store.audit() == []
    assert store.lane(family.lane) and store.family(family).bits == 8
    assert store.is_conserved() and sum(store.count()[name] for name in ("ready", "back")) == 3
    worker = Worker(store)
    claimed = []
    wait_until(lambda: claimed.extend(worker.claim(len(claimed)).ids) or claimed == ids,
               "jobs that go on as their place allows")


def test_a_set_of_a_wrong_type_is_made_anew_13(store):
    family, ids = opened(store, count=2)
    store.redis.set(store.key("open:main:acme:large"), "x")
    assert "type" in [what for what, *_ in store.audit()]
    assert Worker(store).claim().ids == ids


def test_a_taken_ticket_without_a_lease_has_failed_13(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    worker = Worker(store)
    worker.claim(0)
    store.redis.hdel(store.key(f"lease:{worker.nonce}"), 0)
    assert {("ticket", "taken", "failed"), ("in use", "1", "0")} <= found(store)
    assert store.lane(family.lane).ticket == 4


def test_an_audit_of_a_sound_store_finds_nothing_13(store):
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    store.enqueue(leaf, 3)
    store.open(leaf)
    worker = Worker(store)
    worker.claim()
    assert store.audit() == []
    store.grant(root.lane, gate=OPEN, until=NEVER, family="", px=root.id)
    assert store.audit() == []
    worker.claim()
    assert store.audit() == []


def test_a_pool_that_lost_its_budgets_finds_them_again_13(store):
    _, ids = opened(store, count=2)
    store.redis.delete(store.key("pools"))
    assert Worker(store).claim().ids == []
    assert ("pool", "", "acme:large") in found(store)
    assert Worker(store).claim().ids == ids
    assert store.audit() == []


def test_an_inbox_that_was_deleted_behind_its_cursor_is_new(store):
    store.broken = True  # the job went with its inbox
    family = Family(1)
    entry = store.redis.xadd(store.key("jobs"), {"upstream": "acme"}, id="99999999999999-7")
    store.admit(entry, families=[family], runs=[(family, "n", [entry])])
    assert store.audit() == []
    store.redis.delete(store.key("jobs"))
    assert store.audit() == [], "there is no inbox yet"
    fresh = store.add()
    assert ("cursor", f"{entry} 0", "0-0 0") in found(store)
    assert store.cursor() == ("0-0", "0")
    store.admit(fresh, families=[family], runs=[(family, "n", [fresh])])
    assert store.audit() == []


def test_an_inbox_out_of_which_something_was_taken_keeps_its_cursor(store):
    store.broken = True
    _, ids = opened(store, count=2)
    store.redis.hset(store.key("meta"), "cursor", "99999999999999-7 0")
    store.redis.xdel(store.key("jobs"), ids[0])
    store.audit()
    assert store.cursor() == ("99999999999999-7", "0"), "who knows what of it was admitted"


def many_families(store):
    """400 families with a job each in one pool and a few leases; more than a piece holds."""
    families = [Family(1 + i, budget=f"acme:{'large' if i % 2 else 'small'}")
                for i in range(400)]
    for start in range(0, len(families), 100):
        chunk = families[start:start + 100]
        ids = [store.add(upstream="acme", body="x") for _ in chunk]
        store.admit(ids[-1], families=chunk,
                    runs=[(family, "n", [id]) for family, id in zip(chunk, ids)])
    store.grant(families[7].lane, gate=OPEN, until=NEVER, family=families[7].id,
                budget=families[7].budget)
    Worker(store).claim()
    return families


def test_a_sound_store_is_sound_in_pieces_13(store):
    many_families(store)
    corrections, calls = store.audit_in_pieces()
    assert corrections == [] and calls > 4
    assert store.audit() == []


def spoil(store, families):
    """One of each kind, at both ends and in the middle."""
    lanes, records = store.key("lanes"), store.key("families")
    for i in (0, 150, 399):
        record = store.redis.hget(lanes, families[i].lane)
        store.redis.hset(lanes, families[i].lane, record[:17] + "00003" + record[22:])
    record = store.redis.hget(lanes, families[7].lane)  # it has a lease
    store.redis.hset(lanes, families[7].lane, record[:17] + "00000" + record[22:])
    record = store.redis.hget(records, families[200].id)
    store.redis.hset(records, families[200].id, "1000" + record[4:])
    store.redis.zrem(store.key("held:main:acme:small"), families[300].lane)
    store.redis.zadd(store.key("open:main:acme:large"), {node(999) + ".0": 1,
                                                         families[20].lane: 5})
    store.redis.hset(store.key("budget:acme:large"), "in_flight", 44)


def test_pieces_find_what_one_call_finds_13(store):
    store.broken = True
    families = many_families(store)
    spoil(store, families)
    whole = sorted(map(tuple, store.audit()))
    assert len(whole) == 3 + 1 + 1 + 1 + 2 + 1
    assert store.audit() == []
    spoil(store, families)
    pieces, _ = store.audit_in_pieces()
    assert sorted(map(tuple, pieces)) == whole
    assert store.audit() == [] and store.audit_in_pieces()[0] == []


def test_a_cursor_of_nobody_is_refused_13(store):
    for cursor in ("", "1", "5:0", "2:x", "0"):
        with pytest.raises(ResponseError, match="cursor"):
            store.ok("audit", store.owner, cursor)


def test_unused_records_go_after_an_hour_and_not_before_14(store):
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    store.enqueue(leaf, 1)
    store.grant(root.lane, gate=OPEN, until=NEVER, family="", px=root.id)
    store.open(leaf)
    worker = Worker(store)
    jobs = worker.claim().jobs

    def an_hour_passes():
        store.audit()
        for member in store.redis.zrange(store.key("unused"), 0, -1):
            store.redis.zadd(store.key("unused"), {member: store.now() - 3600001})
        store.audit()

    an_hour_passes()
    assert store.family(leaf), "it runs"
    assert worker.fail(jobs[0], "fatal") == "dead"
    an_hour_passes()
    assert store.family(leaf), "a dead letter needs its segments"
    store.ok("requeue", jobs[0].id)
    worker.settle(worker.claim().jobs)
    store.audit()
    assert store.family(leaf), "idle, but not for an hour"
    an_hour_passes()
    assert store.family(leaf) is None and store.lane(leaf.lane) is None
    assert store.family(root), "its last child went only now"
    an_hour_passes()
    an_hour_passes()
    assert store.redis.keys(store.key("px:*")) == []
    assert store.redis.exists(store.key("families"), store.key("lanes"),
                              store.key("unused")) == 0
    assert store.redis.keys(store.key("under:*")) == []
    assert f"forgot {leaf.id}" in store.events("forgot")


def an_hour_passes(store):
    for member in store.redis.zrange(store.key("unused"), 0, -1):
        store.redis.zadd(store.key("unused"), {member: store.now() - 3600001})


def test_a_paused_family_is_not_forgotten_14(store):
    """An hour without a job, and the next one started, though nobody had resumed it."""
    family = Family(1)
    store.enqueue(family)
    store.open(family)
    finish_all(Worker(store))
    assert store.ok("pause", family.id, "on") == ["done"]
    for _ in range(2):
        store.audit()
        an_hour_passes(store)
    store.enqueue(family)
    assert Worker(store).claim().jobs == []
    assert store.ok("pause", family.id, "off") == ["done"]
    finish_all(Worker(store))
    for _ in range(2):
        store.audit()
        an_hour_passes(store)
    store.audit()
    assert store.family(family) is None


def finish_all(worker):
    while True:
        claim = worker.claim()
        if not claim.jobs:
            return
        worker.settle(claim.jobs)


@pytest.mark.parametrize("audit", [Store.audit, lambda store: store.audit_in_pieces()[0]])
def test_a_set_full_of_strangers_is_emptied(store, audit):
    family, _ = opened(store, count=2)
    strangers = {f"{node(1000 + n)}.0": n for n in range(1000)}
    store.redis.zadd(store.key("open:main:acme:large"), strangers)
    kinds = [what for what, *_ in audit(store)]
    assert len(kinds) >= 1000 and set(kinds) == {"stranger"}
    assert list(store.open_set()) == [family.lane]


@pytest.mark.parametrize("audit", [Store.audit, Store.audit_in_pieces])
def test_what_was_unused_is_not_when_its_family_comes_back(store, audit):
    """A grant that was on its way when the family was forgotten makes its lane anew; then the
    family comes back, answers for the lane, and is forgotten once more."""
    family = Family(1)
    store.enqueue(family)
    store.open(family)
    finish_all(Worker(store))
    audit(store)
    an_hour_passes(store)
    audit(store)
    assert store.family(family) is None and store.lane(family.lane) is None

    store.grant(family.lane, gate=OPEN, until=NEVER, credits=0, family=family.id)
    audit(store)
    assert store.redis.zrange(store.key("unused"), 0, -1) == [family.lane]

    store.known.clear()
    store.enqueue(family)
    audit(store)
    assert store.redis.zrange(store.key("unused"), 0, -1) == [], "it has a job"
    finish_all(Worker(store))
    audit(store)
    an_hour_passes(store)
    audit(store)
    assert store.redis.exists(store.key("families"), store.key("lanes"),
                              store.key("unused")) == 0


@pytest.mark.parametrize("audit", [Store.audit, Store.audit_in_pieces])
def test_nothing_is_unused_for_ever_that_is_not_there(store, audit):
    """Records that somebody deleted (`warmq doctor --repair records`)."""
    store.broken = True
    families = [Family(1 + n) for n in range(900)]
    for start in range(0, len(families), 100):
        store.admit("0-0", families=families[start:start + 100])
    audit(store)
    assert store.redis.zcard(store.key("unused")) == 900
    store.redis.hdel(store.key("families"), *[family.id for family in families[:700]])
    store.redis.hdel(store.key("lanes"), *[family.lane for family in families[:700]])
    audit(store)
    assert set(store.redis.zrange(store.key("unused"), 0, -1)) == \
        {family.id for family in families[700:]}


def test_segments_of_a_job_that_waits_for_tomorrow_stay_14(store):
    family = Family(1)
    entry = store.add()
    store.admit(entry, families=[family], gone=[entry],
                later=[(entry, store.now() + 10 ** 8, family.id, "n", "own part")])
    for _ in range(3):
        store.audit()
        for member in store.redis.zrange(store.key("unused"), 0, -1):
            store.redis.zadd(store.key("unused"), {member: store.now() - 3600001})
    assert store.redis.get(store.key(f"px:{family.id}")) == "segment " + family.id
    assert store.family(family).live == 1
    store.redis.zadd(store.key("later"), {entry: 1})
    store.promote()
    store.open(family)
    [job] = Worker(store).claim().jobs
    assert (job.element, job.px) == (entry + "~", family.id)


def test_a_full_redis_drains_11(store):
    family, ids = opened(store, count=40)
    store.reap()
    try:
        store.redis.config_set("maxmemory", "1mb")
        worker = Worker(store)
        assert worker.beat()[0] == "OK"
        jobs = worker.claim().jobs
        assert len(jobs) == 8
        assert worker.fail(jobs[0], "fatal") == "dead"
        worker.settle(jobs[1:4], reply="box")
        worker.beat(lease_ms=1)
        wait_until(lambda: store.reap()[0] == 4, "its lease to run out")
        store.grant(family.lane, gate=OPEN)
        assert store.audit() == []
        assert store.ok("glance", family.id)[0][1] == 36
        assert store.count()["dead"] == 1
        other = Worker(store)
        jobs = other.claim().jobs
        while jobs:
            jobs = other.settle(jobs, claim=range(8)).jobs
        assert store.family(family).live == 1
    finally:
        store.redis.config_set("maxmemory", "0")


def test_nothing_that_is_counted_has_an_end(store):
    """A limit whose key expires in mid-flight lets twice as many start."""
    family, _ = opened(store, count=20)
    store.grant_budget("acme:large", pace=9, i=1000000)
    store.reap()
    worker = Worker(store)
    jobs = worker.claim().jobs
    worker.fail(jobs[0], "retry", delay_ms=100000)
    worker.fail(jobs[1], "fatal", reply="box")
    store.ok("cancel", jobs[2].id)
    worker.settle(jobs[3:5])
    worker.beat()
    ends = {key.split(":")[1] for key in store.redis.keys() if store.redis.pttl(key) >= 0}
    assert ends <= {"result", "reply", "stamp"}


def test_leases_that_were_deleted_by_hand_show_in_the_books(store):
    store.broken = True
    family, ids = opened(store, count=4)
    worker = Worker(store)
    worker.claim(0, 1)
    store.redis.delete(store.key(f"lease:{worker.nonce}"))
    assert worker.beat() == ["GONE"]
    assert not store.is_conserved(), "two jobs are nowhere: the scheduler says so"
    assert ("in use", "2", "0") in found(store), "nobody waits for their places"
    assert Worker(store).claim().ids == ids[2:]


def test_dead_letters_are_bounded_and_counted(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "fatal")
    store.redis.zadd(store.key("dead"), {ids[0]: 1})
    store.redis.eval("for i = 1, 100000 do redis.call('ZADD', KEYS[1], ARGV[1], i .. '-1') end",
                     1, store.key("dead"), store.now())
    assert store.audit() == []
    assert store.redis.zcard(store.key("dead")) == 100000
    assert store.meta("dead_trimmed") == "1"
    assert store.redis.exists(store.key(f"slim:{ids[0]}"), store.key(f"past:{ids[0]}")) == 0
    assert store.family(family).live == 0
    store.redis.delete(store.key("dead"))


def test_what_has_ended_waits_in_no_list_from_which_nobody_claims_15(store):
    """A pool without workers, a paused family, an upstream that is gone: everything that had been
    cancelled or had expired there counted as waiting, for ever."""
    family, ids = opened(store, count=2345)
    other, rest = opened(store, 2, count=3)
    for id in ids + rest[1:]:
        assert store.ok("cancel", id) == ["ended"]
    assert store.audit_in_pieces()[0] == []
    assert store.list(family, "ready:n") == [] and store.list(other, "ready:n") == rest[:1]
    assert store.redis.exists(store.key("ended")) == 0 and store.is_conserved()
    assert store.family(family).bits == 0 and store.events("empty") == [f"empty {family.id}"]
    assert Worker(store).claim(0, 1).ids == rest[:1]


def test_what_has_ended_is_met_by_an_audit_in_one_call_15(store):
    family, ids = opened(store, count=120)
    store.ok("pause", family.id, "on")
    for id in ids[:115]:
        store.ok("cancel", id)
    assert store.audit() == [] and store.list(family, "ready:n") == ids[115:]
    assert store.is_conserved() and store.count()["ended"] == 0
    store.ok("pause", family.id, "off")
    assert Worker(store).claim(*range(8)).ids == ids[115:]
