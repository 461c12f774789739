"""After a rollback of Redis the processes outside know more than Redis does.

A failover, or a machine that dies, takes the last writes away: what is left is a prefix of
history, never a mix, since the effects of a function are one transaction of the log.  Each
row here takes back the writes behind a mark, by cutting the append-only file there, and
then does what living processes do: the scheduler rules anew and reads everything, workers
attach and compare.  The rows are R1 to R15 of rule 10.
"""

import glob
import os
import random

import pytest
import redis

from daemons import Server
from ports import free_port
from store import NEVER, OPEN, WRITING, Family, Store, Worker, killed, library, opened, wait_until

DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0",
           "--auto-aof-rewrite-percentage", "0")


class History(Server):
    """A Redis that writes everything down, and can be taken back to a mark."""

    def load(self):
        self.client.execute_command("FUNCTION", "LOAD", "REPLACE", library())

    @property
    def log(self):
        [path] = glob.glob(os.path.join(self.folder, "appendonlydir", "*.incr.aof"))
        return path

    def mark(self):
        return os.path.getsize(self.log)

    def back_to(self, mark):
        self.stop()
        os.truncate(self.log, mark)
        self.start()


@pytest.fixture(scope="module")
def history():
    with History(*DURABLE) as history:
        history.load()
        yield history


@pytest.fixture
def past(history):
    """A ruled, empty namespace with a history: past.back() undoes what came after
    past.mark().  At the end everything that is counted has to be right."""
    history.client.flushall()
    past = Past(history)
    past.rule()
    yield past
    assert past.audit() == []
    assert not past.count()["drained"] or past.is_conserved()
    assert past.meta("lane_drift") is None and past.meta("function_errors") is None


class Past(Store):
    def __init__(self, history):
        super().__init__(history.client)
        self.history, self.at = history, None

    def mark(self):
        self.at = self.history.mark()

    def back(self):
        """What was done since the mark has never happened.  The scheduler takes over with
        a fresh nonce and reads everything, as it does after every reconnect."""
        self.history.back_to(self.at)
        self.redis = self.history.client
        self.known = {id for id in self.known if self.redis.hexists(self.key("families"), id)}
        self.rule_anew("00000000000000bb")

    def rule_anew(self, nonce):
        old = self.meta("owner")
        if old:
            self.ok("rule", old.split(":")[1], 0)
        self.rule(nonce)


def test_an_entry_that_redis_forgot_leaves_nothing_10_r1(past):
    family = Family(1)
    first = past.enqueue(family)
    past.mark()
    past.enqueue(family)  # acknowledged, and lost: not a promise
    past.back()
    again = past.enqueue(family)  # its producer, who waited in vain, sends it again
    past.open(family)
    worker = Worker(past)
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == first + again
    worker.settle(jobs)
    assert past.redis.xlen(past.key("jobs")) == 0


def test_an_admission_undone_is_done_again_once_10_r2(past):
    family = Family(1)
    before = past.enqueue(family, 2)
    past.mark()
    entries = [past.add() for _ in range(3)]
    past.mark()
    at = past.cursor()
    assert past.admit(entries[-1], runs=[(family, "n", entries)])[0] == "OK"
    stale = past.owner
    past.back()
    # What the scheduler still had on its way knows an owner and a cursor that are no more.
    groups = past.admit_words(runs=[(family, "n", entries)])
    assert past.call("admit", stale, *at, entries[-1], 0, *groups)[0] == "EPOCH"
    assert past.admit(entries[-1], at=(entries[-1], "0"),
                      runs=[(family, "n", entries)]) == ["CURSOR", *at]
    assert past.admit(entries[-1], runs=[(family, "n", entries)])[0] == "OK"
    assert past.list(family, "ready:n") == before + entries


def test_a_claim_undone_is_delivered_late_and_run_by_nobody_else_10_r3(past):
    family, ids = opened(past, count=2)
    worker = Worker(past)
    past.mark()
    [job] = worker.claim(0).jobs
    past.back()
    assert past.list(family, "ready:n") == ids
    assert worker.attach() == {}, "the slot that it runs is not in the table"
    assert worker.settle([job], reply="box").problems == [("0", "TOKEN", "")]
    assert past.ok("settle_late", job.id, "box", 60000, "paid for") == ["OK"]
    assert past.replies("box") == ["paid for"]
    other = Worker(past)
    assert other.claim().ids == ids[1:]


def test_a_claim_undone_and_claimed_by_another_is_fenced_10_r3(past):
    _, ids = opened(past, count=1)
    worker, other = Worker(past), Worker(past)
    past.mark()
    worker.claim(0)
    past.back()
    jobs = other.claim(0).jobs
    assert [job.id for job in jobs] == ids
    assert past.ok("settle_late", ids[0], "box", 60000, "paid for") == ["FENCED"]
    other.settle(jobs, reply="box")
    assert past.replies("box") == [f"result of {ids[0]}"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_settle_undone_leaves_no_lease_of_a_live_worker_10_r4(past, kept):
    """The lease is in the table of a worker that beats: for ever, if nobody compared."""
    family, ids = opened(past, count=1)
    worker = Worker(past)
    [job] = worker.claim(0).jobs
    past.mark()
    worker.settle([job], reply="box")
    past.back()
    table = worker.attach()
    assert (table[0].id, table[0].q) == (ids[0], job.q)
    if kept:  # within 10 s of its acknowledgement the result is still at hand
        assert worker.settle([job], reply="box").problems == []
        assert past.replies("box") == [f"result of {ids[0]}"]
    else:
        assert worker.release([job])[0] == "OK"
        [again] = worker.claim(0).jobs
        assert again.id == ids[0] and again.q > job.q
        worker.settle([again])
    assert past.lane(family.lane).in_use == past.flight() == 0


def test_a_reply_that_was_read_comes_twice_with_one_id_10_r5(past):
    _, ids = opened(past, count=1)
    worker = Worker(past)
    [job] = worker.claim(0).jobs
    past.mark()
    worker.settle([job], reply="box")
    read = [past.redis.lpop(past.key("reply:box"))]
    past.back()
    worker.attach()
    worker.settle([job], reply="box")
    read.append(past.redis.lpop(past.key("reply:box")))
    assert read == [f"result of {ids[0]}"] * 2, "consumers drop repeats by id"


def test_a_session_undone_is_gone_and_begins_anew_10_r6(past):
    _, ids = opened(past, count=1)
    past.mark()
    worker = Worker(past)
    [job] = worker.claim(0).jobs
    past.back()
    for call in [worker.beat, lambda: worker.settle_raw([job], 9, []),
                 lambda: worker.claim_raw(9, 1), worker.bye]:
        assert call() == ["GONE"]
    successor = Worker(past, replaces=worker.nonce)
    assert past.ok("settle_late", ids[0], "box", 60000, "paid for") == ["OK"]
    assert successor.claim().jobs == []
    assert past.replies("box") == ["paid for"]


def test_a_reap_undone_is_done_again_10_r7(past):
    family, ids = opened(past, count=3)
    past.reap()
    killed(past, 3)
    past.mark()
    past.reap_all()
    early = Worker(past)
    [lost] = early.claim(0).jobs
    past.back()
    past.reap()
    past.redis.hset(past.key("meta"), "reap_hold", past.now() - 1)  # a lease later
    past.reap_all()
    assert past.list(family, "back:n") == ids
    other = Worker(past)
    jobs = other.claim().jobs
    assert [job.id for job in jobs] == ids
    assert early.settle_raw([lost], 9, []) == ["GONE"]
    assert past.ok("settle_late", lost.id, "", 1000, "early") == ["FENCED"]
    assert other.settle(jobs).problems == []
    assert past.result(ids[0]) == f"result of {ids[0]}"


def test_a_grant_undone_is_refused_and_then_granted_anew_10_r8(past):
    family = Family(1)
    past.enqueue(family, 20)
    past.mark()
    past.open(family, window=16)
    past.back()
    assert past.lane(family.lane).gate != OPEN
    assert Worker(past).claim().jobs == []
    # The scheduler believes in generation 1, Redis is at 0: the answer says so.
    row = past.grant(family.lane, g=1, g_new=2, gate=OPEN, window=16, until=NEVER)
    assert (row[1], row[2]) == ("refused", 0)
    assert past.grant(family.lane, gate=OPEN, window=16, until=NEVER)[1] == "done"
    assert len(Worker(past, slots=20).claim().jobs) == 16


def test_an_epoch_given_twice_has_one_owner_10_r9(past):
    past.mark()
    past.rule_anew("00000000000000cc")
    first = past.owner
    past.back()
    second = past.owner
    assert first.split(":")[0] == second.split(":")[0] and first != second
    for name, args in [("promote", [10]), ("reap", [30000, 10000, 10]), ("expire", [10]),
                       ("audit", []), ("grant", ["-", 0, 0])]:
        assert past.call(name, first, *args)[0] == "EPOCH", name
        assert past.call(name, second, *args)[0] == "OK", name


def test_a_cancel_undone_is_cancelled_again_10_r10(past):
    family, ids = opened(past, count=2)
    past.mark()
    assert past.ok("cancel", ids[0]) == ["ended"]
    past.back()
    assert past.list(family, "ready:n") == ids
    assert past.ok("cancel", ids[0]) == ["ended"]
    assert past.ok("cancel", ids[0]) == ["gone"]
    assert Worker(past).claim().ids == ids[1:]
    assert past.count()["ended"] == 0


def test_a_ticket_settled_and_undone_is_settled_again_10_r11(past):
    family = Family(1)
    past.admit("0-0", families=[family])
    past.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=past.now() + 60000)
    worker = Worker(past)
    [job] = worker.claim().jobs
    past.mark()
    worker.settle([job], usage="1 2 0 30000 5 0", result="")
    past.back()
    assert past.lane(family.lane).ticket == 2
    assert worker.attach()[0].role == "t"
    assert worker.settle([job], usage="1 2 0 30000 5 0", result="").problems == []
    lane = past.lane(family.lane)
    assert (lane.ticket, lane.note) == (3, "ok,1 2 0 30000 5 0")


def test_an_id_given_twice_is_told_apart_by_its_ref_10_r12(past):
    family = Family(1)
    past.known.add(family.id)
    past.admit("0-0", families=[family])
    past.mark()
    id = past.add(upstream="acme", body="{}", reply="first", ref="1")
    past.admit(id, runs=[(family, "n", [id])])
    past.back()  # the new master's clock is behind: it gives the same id again
    assert past.redis.xadd(past.key("jobs"), {"body": "{}", "reply": "second", "ref": "2"},
                           id=id) == id
    past.admit(id, runs=[(family, "n", [id])])
    assert past.ok("cancel", id) == ["ended"]
    assert '"ref":"2"' in past.replies("second")[0] and past.replies("first") == []


def test_older_tokens_of_a_budget_refill_within_a_minute_10_r13(past):
    opened(past, count=4, input=400)
    past.grant_budget("acme:large", i=1000)
    past.mark()
    worker = Worker(past)
    assert len(worker.claim().jobs) == 2
    past.back()
    assert past.flight() == 0
    past.redis.hset(past.key("budget:acme:large"),
                    mapping={"i.level": 600, "i.at": past.now() - 3600000})
    jobs = Worker(past).claim().jobs
    assert len(jobs) == 2, "an hour later it is full, and not fuller"
    assert past.flight() == 2


def test_segments_come_and_go_with_their_jobs_10_r15(past):
    family = Family(1)
    entry = past.add()
    past.mark()
    groups = {"runs": [(family, "n", [entry + "~"])], "slims": [(entry, "own part")]}
    assert past.admit(entry, families=[family], gone=[entry], **groups)[0] == "OK"
    past.back()
    assert past.redis.keys(past.key("px:*")) + past.redis.keys(past.key("slim:*")) == []
    assert past.redis.xlen(past.key("jobs")) == 1
    # The scheduler believed both to be stored.
    assert past.admit(entry, gone=[entry], **groups) == ["NEED", family.id]
    assert past.admit(entry, families=[family], segments=[], gone=[entry],
                      **groups) == ["NEED", family.id]
    assert past.admit(entry, families=[family], gone=[entry], **groups)[0] == "OK"
    assert past.redis.get(past.key(f"px:{family.id}")) and past.count()["slims"] == 1


def test_what_an_old_master_took_alone_is_lost_like_last_writes_10_r14(history):
    """Two masters for a moment: what the old one was told then never happened."""
    history.client.flushall()
    with Server() as other:
        store = Store(history.client)
        store.rule()
        _, ids = opened(store, count=4)
        worker = Worker(store)
        history.client.config_set("min-replicas-to-write", 1)
        port = 0
        try:
            # A master listens on TCP only for its replica.
            history.client.config_set("port", free_port())
            port = int(history.client.config_get("port")["port"])
            other.client.execute_command("REPLICAOF", "127.0.0.1", port)
            wait_until(lambda: other.client.info("replication")["master_link_status"] == "up",
                       "the replica")
            # A replica has all of it, the library too.
            wait_until(lambda: other.client.hlen("warmq:families") == 1, "the records")
            other.client.execute_command("REPLICAOF", "NO", "ONE")
            wait_until(lambda: history.client.info("replication")["connected_slaves"] == 0,
                       "the split")
            # The recipe for a failover: a master without a replica takes nothing.
            with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
                store.add()
            with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
                worker.claim(0)
            history.client.config_set("min-replicas-to-write", 0)
            worker.claim(0, 1)  # without the recipe: R3
            new = Store(other.client)
            new.ok("rule", "00000000000000aa", 0)
            new.rule("00000000000000cc")
            assert worker_over(worker, new).attach() == {}
            assert new.ok("settle_late", ids[0], "box", 60000, "paid for") == ["OK"]
            assert Worker(new).claim().ids == ids[1:]
            assert new.audit() == [] and new.is_conserved()
        finally:
            history.client.config_set("min-replicas-to-write", 0)
            if port:
                history.client.config_set("port", 0)


def worker_over(worker, store):
    worker.store = store
    return worker


# ---- anywhere ---------------------------------------------------------------------------


def life(past, choose):
    """A little of everything; the bytes of the log are what is wanted of it."""
    root = Family(1)
    families = [Family(2, ancestors=[root.lane], px=[root.id, Family(2).id]), Family(3, lanes=2)]
    for family in families:
        past.enqueue(family, 6, reply="box", body="{}")
        past.open(family, life=60000)
    past.grant(root.lane, gate=OPEN, until=NEVER, life=60000, family="", px=root.id)
    past.grant_budget("acme:large", pace=9, i=1000000)
    past.reap()
    workers = [Worker(past, slots=4) for _ in range(3)]
    for round in range(8):
        for worker in workers:
            jobs = worker.claim(*choose.sample(range(4), 2)).jobs
            for job in jobs:
                verb = choose.choice(["settle", "settle", "retry", "defer", "fatal", "release",
                                      "keep", "cancel"])
                if verb == "settle":
                    worker.settle([job], claim=[job.slot], reply="box")
                elif verb == "release":
                    worker.release([job])
                elif verb == "cancel":
                    past.ok("cancel", job.id)
                elif verb != "keep":
                    worker.fail(job, verb, delay_ms=choose.choice([0, 5]), reply="box")
        past.promote()
        past.enqueue(choose.choice(families), 2, reply="box", body="{}")
        if round % 3 == 2:
            workers[0].die()
            past.reap_all()
            workers[0] = Worker(past, slots=4)


def test_redis_comes_back_sound_from_a_log_cut_anywhere_10(past):
    """Also in the middle of a function's effects: all of them or none."""
    choose = random.Random(10)
    start = past.history.mark()
    life(past, choose)
    cuts = sorted((choose.randrange(start, past.history.mark()) for _ in range(10)),
                  reverse=True)
    for cut in cuts:
        past.at = cut
        past.back()
        assert past.audit() == [], cut
        assert not past.count()["drained"] or past.is_conserved(), cut
    # And everything that is still there ends.
    past.redis.hset(past.key("meta"), "reap_hold", 0)
    for nonce, _ in past.redis.zrange(past.key("workers"), 0, -1, withscores=True):
        past.redis.zadd(past.key("workers"), {nonce: 1})
    past.reap()
    past.redis.hset(past.key("meta"), "reap_hold", past.now() - 1)
    past.reap_all()
    worker = Worker(past)
    past.redis.hset(past.key("meta"), "hold", "off")
    jobs = worker.claim().jobs
    while jobs:
        jobs = worker.settle(jobs, claim=range(8)).jobs
    count = past.count()
    assert count["leases"] + count["ready"] + count["back"] + count["now"] == 0
