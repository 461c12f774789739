"""settle: what becomes of jobs that ended, of their results and of their usage."""

import socket

import pytest
import redis

from store import OPEN, WRITING, Family, Worker, opened


def test_a_job_ends_with_its_payload_lease_and_counts(store):
    family, ids = opened(store, count=3)
    worker = Worker(store)
    jobs = worker.claim().jobs
    worker.settle(jobs, reply="box")
    assert store.replies("box") == [f"result of {id}" for id in ids]
    assert store.redis.xlen(store.key("jobs")) == 0
    assert store.leases(worker) == {}
    assert (store.lane(family.lane).in_use, store.flight()) == (0, 0)
    assert store.family(family).live == 0


def test_a_result_without_a_reply_list_is_stored_for_its_time_34(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    worker.settle(worker.claim().jobs, ttl=5000)
    assert store.result(ids[0]) == f"result of {ids[0]}"
    assert 0 < store.redis.pttl(store.key(f"result:{ids[0]}")) <= 5000


@pytest.mark.parametrize("words, what", [
    (["=1", 0, 1, "", "", 9, "x", 2, 0], "followed by"), # names a slot
    (["=1", 0, 1, "", "", 9, "x"], "followed by"), # no q
    (["=2", 0, 1, "", "", 9, "x", 2], "followed by"), # announces another job
    (["=1", 0, 1, "", "", 9, "x", "q"], "q: expected a number"),
    (["=2", 0, 1, "", "", 9, "x", 0, 1, "", "", 9, "x", 2], "named twice"),
    (["=", 0, 1, "", "", 9, "x", 2], "count: expected a number"),
    (["==1", 0, 1, "", "", 9, "x", 2], "count: expected a number"),
    (["=1001", 2], "count: at most"), ([], "count: is missing")])
def test_a_settle_that_goes_on_in_its_slots_says_nothing_else_of_them(store, words, what):
    opened(store, count=3)
    worker = Worker(store, slots=1)
    assert worker.claim(0).jobs[0].q == 1
    with pytest.raises(redis.ResponseError, match=what):
        store.call("settle", worker.nonce, worker.c, *words)
    assert store.leases(worker)[0].q == 1


def test_a_settle_that_goes_on_nowhere_says_so_with_and_without_q(store):
    opened(store, count=3)
    worker = Worker(store, slots=2)
    for job, words in zip(worker.claim().jobs, [[50], []]):
        assert store.call("settle", worker.nonce, worker.c, 1, job.slot, job.q, "", "box", 9,
                          "x", *words).startswith("OK")
    assert store.leases(worker) == {}


def test_settle_and_claim_keep_the_lane_in_one_call(store):
    family, ids = opened(store, count=4, window=2)
    worker = Worker(store)
    jobs = worker.claim(0, 1).jobs
    claim = worker.settle(jobs, claim=[0, 1])
    assert claim.ids == ids[2:]
    assert store.lane(family.lane).in_use == 2
    assert store.events("done") == [] and store.events("start") == []


def test_a_settle_with_another_token_changes_nothing_2(store):
    family, ids = opened(store, count=2)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    worker.settle([job], claim=[0])  # this answer was lost
    claim = worker.settle([job], reply="box")
    [(slot, word, held)] = claim.problems
    assert (slot, word) == ("0", "TOKEN")
    assert ids[1] in held, "the slot holds the next job: run it"
    assert store.replies("box") == []
    assert store.lane(family.lane).in_use == 1


def test_a_settle_of_an_empty_slot_says_that_it_was_settled_2(store):
    opened(store, count=1)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    worker.settle(jobs)
    assert worker.settle(jobs).problems == [("0", "TOKEN", "")]


def test_one_slot_cannot_be_settled_twice_in_a_call(store):
    family, _ = opened(store, count=1)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    claim = worker.settle(jobs + jobs, reply="box")
    assert [problem[1] for problem in claim.problems] == ["TOKEN"]
    assert len(store.replies("box")) == 1


def test_calls_over_an_old_connection_are_stale_2(store):
    opened(store, count=2)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    old = worker.c
    assert list(worker.attach()) == [0]
    late = store.call("settle", worker.nonce, old, 1, job.slot, job.q, "", "", 1000, "late",
                      50, 0)
    assert late == ["STALE"]
    for name, args in [("claim", [9, 1]), ("beat", [1, 30000]), ("begin", [0, 1, ""]),
                       ("release", [0, 1, 1]), ("bye", []),
                       ("fail", [0, 1, "retry", 3, 0, 0, "", "", "", "", 0, ""])]:
        assert store.call(name, worker.nonce, old, *args) == ["STALE"], name
    assert store.leases(worker)[0].id == job.id
    assert worker.settle([job]).problems == []


def packed(words):
    """A command as it goes over the wire."""
    words = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


@pytest.mark.parametrize("name", ["claim", "settle", "fail", "release", "beat", "bye"])
def test_a_command_that_redis_reads_late_from_an_old_socket_is_stale_2(store, name):
    """The worker gave up waiting and attached; only then the old socket's bytes arrive."""
    family, ids = opened(store, count=3)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    args = {"claim": [7, 1, 2], "settle": [1, 0, job.q, "", "box", 1000, "late", 7, 0],
            "fail": [0, job.q, "fatal", 3, 0, 0, "", "", "", "box", 1000, "late"],
            "release": [0, job.q, 1], "beat": [1, 1], "bye": []}[name]
    path = store.redis.connection_pool.connection_kwargs["path"]
    with socket.socket(socket.AF_UNIX) as old:
        old.settimeout(120)
        old.connect(path)
        words = packed(["FCALL", f"warmq_{name}", 1, "warmq:meta", 1, worker.nonce, worker.c,
                        *args])
        old.sendall(words[:-5])  # on their way when the worker closes and attaches
        worker.attach()
        table = store.key(f"lease:{worker.nonce}")
        before = store.redis.hgetall(table), store.redis.zrange(store.key("workers"), 0, -1,
                                                                withscores=True)
        old.sendall(words[-5:])
        assert old.recv(100) == b"*1\r\n$5\r\nSTALE\r\n"
    assert before == (store.redis.hgetall(table),
                      store.redis.zrange(store.key("workers"), 0, -1, withscores=True))
    assert store.replies("box") == [] and store.list(family, "ready:n") == ids[1:]
    assert worker.settle([job]).problems == []


def test_the_token_changes_with_every_claim_3(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    [first] = worker.claim(0).jobs
    assert worker.fail(first, "defer") == "back"
    [second] = worker.claim(0).jobs
    assert second.id == first.id == ids[0]
    assert worker.fail(first, "defer")[0] == "TOKEN", "re-sent: it would end the running one"
    assert store.leases(worker)[0].delivery == 2
    assert store.past(ids[0])["deferrals"] == "1"


@pytest.mark.parametrize("damage", ["string", "bad name"])
def test_a_reply_list_that_cannot_be_pushed_to_becomes_stored_results_4(store, damage):
    family, ids = opened(store, count=2)
    name = "box" if damage == "string" else "no/such name"
    store.redis.set(store.key("reply:box"), "somebody else's")
    worker = Worker(store)
    claim = worker.settle(worker.claim().jobs, reply=name)
    assert claim.problems == []
    assert [store.result(id) for id in ids] == [f"result of {id}" for id in ids]
    assert store.meta("delivery_errors") == "2"
    assert store.lane(family.lane).in_use == 0
    assert store.redis.xlen(store.key("jobs")) == 0


def test_a_reply_list_has_an_end_and_a_bound(store):
    _, ids = opened(store, count=1)
    box = store.key("reply:full")
    for start in range(0, 100000, 5000):
        store.redis.rpush(box, *range(start, start + 5000))
    worker = Worker(store)
    worker.settle(worker.claim().jobs, reply="full", ttl=7000)
    assert store.redis.llen(box) == 100000
    assert store.redis.lindex(box, -1) == f"result of {ids[0]}"
    assert 0 < store.redis.pttl(box) <= 7000
    assert store.meta("replies_trimmed") == "1"


def test_a_reply_list_that_goes_on_gets_its_time_again(store):
    opened(store, count=3)
    worker = Worker(store, slots=1)
    jobs = worker.claim(0).jobs
    for name, ttl in [("on", 60000), ("on", 60000)]:
        jobs = worker.settle(jobs, claim=[0], reply=name, ttl=ttl).jobs
        left = store.redis.pttl(store.key("reply:on"))
        assert 60000 * 15 / 16 <= left <= 60000
    worker.settle(jobs, reply="on", ttl=3200)
    given = store.redis.pttl(store.key("reply:on"))
    store.redis.pexpire(store.key("reply:on"), 60000)
    since = store.now()
    store.wait_past(since + 201)
    store.enqueue(Family(1))
    worker.settle(worker.claim(0).jobs, reply="on", ttl=3200)
    assert 0 < store.redis.pttl(store.key("reply:on")) <= 3200, given


def test_a_missing_lane_record_is_zero_4(store):
    store.broken = True
    family, ids = opened(store, count=2)
    worker = Worker(store)
    jobs = worker.claim().jobs
    store.redis.hdel(store.key("lanes"), family.lane)
    assert worker.settle(jobs, reply="box").problems == []
    assert len(store.replies("box")) == 2
    assert store.leases(worker) == {}


def test_usage_corrects_the_budget_and_speaks(store):
    family, _ = opened(store, count=1, input=400, output=100)
    since = store.now()
    store.grant_budget("acme:large", i=10000, o=1000)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    usage = f"{store.now()} {store.now()} 30000 0 150 20"
    worker.settle([job], usage=usage)
    assert store.events("done") == [f"done {family.lane} {family.id} 1 p {usage}"]
    assert store.is_charged("i", 9850, 10000, since)
    assert store.is_charged("o", 980, 1000, since)


def test_usage_of_a_job_that_was_cancelled_is_charged_i10(store):
    _, ids = opened(store, count=1, input=400)
    since = store.now()
    store.grant_budget("acme:large", i=10000)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    assert store.ok("cancel", ids[0]) == ["ended"]
    worker.settle([job], usage=f"{store.now()} {store.now()} 0 4000 150 20")
    assert store.is_charged("i", 5850, 10000, since)


BAD_NUMBERS = ["1e99", "-5", "nan", "-nan", "0x10", " 5", "inf", "9" * 20, "", "5 "]


@pytest.mark.parametrize("more", [0, 3], ids=["long", "swift"])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("ttl", BAD_NUMBERS)
def test_a_time_that_is_no_number_is_refused_before_anything_is_written(store, ttl, n, more):
    """"nan" is a number to Lua, and equal to nothing: a loop over results of the same time
    never ended, and Redis with it."""
    opened(store, count=n + more)
    worker = Worker(store)
    jobs = worker.claim(*range(n)).jobs
    with pytest.raises(redis.ResponseError, match="result_ttl: expected a number"):
        worker.settle_raw(jobs, 50, range(n), reply="box", ttl=ttl)
    assert len(store.leases(worker)) == n
    assert store.replies("box") == []
    assert worker.settle(jobs, reply="box").problems == []


@pytest.mark.parametrize("number", BAD_NUMBERS + ["99999999999999", "1e-9"])
def test_what_a_provider_says_it_used_blocks_nobody_for_ever_22(store, number):
    opened(store, count=30, input=400, output=100)
    store.grant_budget("acme:large", i=10000, o=1000)
    worker = Worker(store)
    number = number.replace(" ", "") or "-"
    for _ in range(3):
        jobs = worker.claim(0, 1).jobs
        now = store.now()
        worker.settle(jobs, usage=f"{now} {number} {number} {number} {number} {number}")
    for bucket, limit in [("i", 10000), ("o", 1000)]:
        level = float(store.budget()[f"{bucket}.level"])
        assert -limit <= level <= limit, level
    store.redis.hset(store.key("budget:acme:large"),
                     mapping={"i.at": store.now() - 120000, "o.at": store.now() - 120000})
    assert worker.claim(0).jobs, "two minutes later it is full"


def test_unknown_usage_corrects_nothing(store):
    opened(store, count=1, input=400)
    since = store.now()
    store.grant_budget("acme:large", i=10000)
    worker = Worker(store)
    worker.settle(worker.claim(0).jobs, usage="1 2 - - - -")
    assert store.is_charged("i", 9600, 10000, since)


def test_a_read_moves_until_without_the_scheduler(store):
    root = Family(1)
    leaf = Family(2, ancestors=[root.lane], px=[root.id, Family(2).id])
    store.enqueue(leaf, 3)
    soon = store.now() + 10000
    store.grant(root.lane, gate=OPEN, until=soon, life=60000, family="", px=root.id)
    store.open(leaf, until=soon, life=60000)
    worker = Worker(store)
    jobs = worker.claim().jobs
    sent = store.now()
    assert worker.begin(jobs[0], f"{sent} {sent} 500 0 - -")[0] == "OK"
    assert store.lane(leaf.lane).until == store.lane(root.lane).until == sent + 60000
    worker.settle(jobs[1:2], usage=f"{sent} {sent} 0 0 5 5")
    assert store.lane(leaf.lane).until == sent + 60000, "nothing read, nothing written"
    worker.settle(jobs[2:], usage=f"{sent + 99999} - - 700 - -")
    assert sent + 60000 <= store.lane(leaf.lane).until <= store.now() + 60000


def test_a_read_of_an_older_generation_does_not_move_until(store):
    family, _ = opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    store.open(family, until=store.now() + 1000, life=60000)
    until = store.lane(family.lane).until
    worker.settle([job], usage=f"{store.now()} - 500 - - -")
    assert store.lane(family.lane).until == until


def test_begin_speaks_and_knows_its_token(store):
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    assert worker.begin(job, "1 2 3 4 - -")[2:] == []
    assert store.events("began") == [f"began {family.lane} {family.id} 1 l 1 2 3 4 - -"]
    job.q += 1
    assert worker.begin(job, "1 2 3 4 - -")[2:4] == ["0", "TOKEN"]


def test_a_ticket_ends_in_the_lane_record_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    worker = Worker(store)
    [job] = worker.claim().jobs
    worker.settle([job], usage="1 2 0 30000 5 0", result="")
    lane = store.lane(family.lane)
    assert (lane.ticket, lane.in_use, lane.note) == (3, 0, "ok,1 2 0 30000 5 0")
    assert store.events("ticket") == [f"ticket {family.lane} 1 ok 1 2 0 30000 5 0"]
    assert store.redis.zcard(store.key("tickets")) == 0
