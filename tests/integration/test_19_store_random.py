"""Random sequences of calls, also wrong, late and repeated ones, against a book of its own.

At any time each admitted job is in exactly one place: a list, a lease, later, dead, or
ended; each ended one has one result; no start passes a window or a pace; and an audit
finds nothing to correct.  WARMQ_SEEDS=a-b plays other seeds than the default ones.
"""

import collections
import os
import random
import re

import pytest
import redis

from store import (BYPASS, CHECKING, CLOSED, LEAKY, LISTS, NEVER, OPEN, WRITING, Claim, Family,
                   Worker)


def seeds():
    first, last = os.environ.get("WARMQ_SEEDS", "1-12").split("-")
    return range(int(first), int(last) + 1)


class Play:
    def __init__(self, store, seed, steps):
        self.store, self.random, self.steps = store, random.Random(seed), steps
        self.root = Family(900)
        self.families = [
            Family(1, hold_max=1), Family(2, budget="acme:small"), Family(3, lanes=3),
            Family(4, ancestors=[self.root.lane], px=[self.root.id, Family(4).id]),
            Family(5, ancestors=[self.root.lane], px=[self.root.id, Family(5).id],
                   lanes=2, hold_max=2), Family(6, pool="side", budget="acme:small")]
        self.workers = []
        self.held = {}  # worker -> slot -> Job, as the worker believes
        self.old_calls = []  # sent again later
        self.ids = set()
        self.ended = collections.Counter()  # by our own counting: what was answered OK

    # ---- what may happen ----

    def hello(self):
        pool = self.random.choice(["main", "main", "side"])
        worker = Worker(self.store, pool, slots=self.random.choice([1, 3, 12]),
                        budgets=self.random.choice(["*", "acme:large,acme:small"]))
        worker.pool = pool
        self.workers.append(worker)
        self.held[worker] = {}

    def enqueue(self):
        family = self.random.choice(self.families)
        suffix = self.random.choice(["", "", "", "/900,40"])
        name = self.random.choice(["h", "n", "n", "l", "now"])
        self.ids.update(self.store.enqueue(family, self.random.randint(1, 6), name, suffix,
                                           upstream="acme", body="{}", reply="box"))

    def delay(self):
        family = self.random.choice(self.families)
        entry = self.store.add()
        known = family.id in self.store.known
        due = self.store.now() + self.random.choice([-1, 2, 90000])
        assert self.store.admit(entry, families=[] if known else [family], gone=[entry],
                                later=[(entry, due, family.id, "n",
                                        "upstream acme\nreply box\n\n{}")])[0] == "OK"
        self.store.known.add(family.id)
        self.ids.add(entry)

    def started(self, worker, claim):
        for job in claim.jobs:
            assert job.slot not in self.held[worker], "a job in an occupied slot"
            self.held[worker][job.slot] = job
        for lane in {job.lane for job in claim.jobs if job.role != "t"}:
            record = self.store.lane(lane)
            assert record.in_use <= record.window + self.tickets(lane), lane
        for budget in ("acme:large", "acme:small"):
            have = self.store.budget(budget)
            pace = int(have.get("pace", 0))
            assert not claim.jobs or not pace or not any(
                self.store.lane(job.lane).budget == budget for job in claim.jobs) or \
                int(have["in_flight"]) <= pace
        if self.random.random() < 0.1:  # the answer was lost: attach tells
            self.attach(worker)

    def tickets(self, lane):
        return sum(job.role == "t" and job.lane == lane
                   for held in self.held.values() for job in held.values())

    def claim(self):
        worker = self.random.choice(self.workers)
        slots = self.random.sample(range(worker.slots), self.random.randint(1, worker.slots))
        held = self.held[worker]
        claim = worker.claim(*slots)
        assert sorted(map(int, claim.refused)) == sorted(s for s in slots if s in held)
        self.started(worker, claim)

    def some_jobs(self, worker):
        held = list(self.held[worker].values())
        return self.random.sample(held, self.random.randint(0, len(held)))

    def done(self, job):
        if job.role != "t":
            self.ended[job.id] += 1

    def settle(self):
        worker = self.random.choice(self.workers)
        jobs = self.some_jobs(worker)
        self.old_calls.append((worker, list(jobs)))
        now = self.store.now()
        usage = self.random.choice(["", "", f"{now} {now} 500 0 10 10", f"{now} - - - - -"])
        for job in jobs:
            del self.held[worker][job.slot]
        slots = self.random.sample(range(worker.slots), self.random.randint(0, worker.slots))
        claim = worker.settle(jobs, claim=slots, usage=usage, reply=self.random.choice(
            ["box", ""]))
        problems = {int(slot): word for slot, word, _ in claim.problems}
        for job in jobs:
            assert problems.get(job.slot) in (None, "ENDED")
            if job.slot not in problems:
                self.done(job)
        self.started(worker, claim)

    def roll(self):
        """Jobs of one lane end, others start in their slots: what may go the swift way."""
        worker = self.random.choice(self.workers)
        lanes = collections.defaultdict(list)
        for job in self.held[worker].values():
            if job.role != "t":
                lanes[job.lane].append(job)
        for _ in range(6):
            if not lanes:
                return
            lane = self.random.choice(sorted(lanes))
            count = self.random.choice([1, 1, len(lanes[lane])])
            jobs = [lanes[lane].pop() for _ in range(min(count, len(lanes[lane])))]
            if not lanes[lane]:
                del lanes[lane]
            for job in jobs:
                del self.held[worker][job.slot]
            claim = worker.settle(jobs, claim=[job.slot for job in jobs], reply="box")
            problems = {int(slot) for slot, _, _ in claim.problems}
            for job in jobs:
                if job.slot not in problems:
                    self.done(job)
            self.started(worker, claim)

    def repeat(self):
        """An old call read once more: it must change nothing."""
        if self.old_calls:
            worker, jobs = self.random.choice(self.old_calls)
            current = {(job.slot, job.q) for job in self.held.get(worker, {}).values()}
            jobs = [job for job in jobs if (job.slot, job.q) not in current]
            answer = worker.settle_raw(jobs, worker.q, [], reply="twice")
            assert answer in (["GONE"], ["STALE"]) or \
                len(Claim(answer, [], 0).problems) == len(jobs)

    def fail(self):
        worker = self.random.choice(self.workers)
        for job in self.some_jobs(worker)[:2]:
            del self.held[worker][job.slot]
            kind = self.random.choice(["retry", "retry", "defer", "fatal", "unsent", "missing"])
            what = worker.fail(job, kind, attempts_max=3, reason="http_500", reply="box",
                               delay_ms=self.random.choice([0, 0, 3, 70000]),
                               park_ms=self.random.choice([0, 0, 2]))
            assert what in ("back", "later", "dead", "ended", "ticket"), what

    def release(self):
        worker = self.random.choice(self.workers)
        jobs = self.some_jobs(worker)
        for job in jobs:
            del self.held[worker][job.slot]
        assert worker.release(jobs, sent=self.random.randint(0, 1))[0] == "OK"

    def leave(self):
        worker = self.workers.pop(self.random.randrange(len(self.workers)))
        jobs = list(self.held.pop(worker).values())
        way = self.random.choice(["bye", "die", "die", "replaced"])
        if way == "bye":
            assert worker.bye()[0] == "OK"
        elif way == "replaced":
            self.workers.append(Worker(self.store, worker.pool, worker.slots,
                                       replaces=worker.nonce))
            self.workers[-1].pool = worker.pool
            self.held[self.workers[-1]] = {}
        else:
            worker.die()
            while self.store.reap(chunk=self.random.choice([1, 3, 100]))[1]:
                if self.random.random() < 0.5 and jobs:
                    self.late(jobs)
        assert worker.claim_raw(worker.q, 0) == ["GONE"]
        if jobs and self.random.random() < 0.5:
            self.late(jobs)
        if not self.workers:
            self.hello()

    def late(self, jobs):
        job = self.random.choice(jobs)
        if job.role != "t":
            [word] = self.store.ok("settle_late", job.id, "box", 60000, f"late {job.id}")
            assert word in ("OK", "FENCED")
            self.ended[job.id] += word == "OK"

    def attach(self, worker=None):
        worker = worker or self.random.choice(self.workers)
        table = worker.attach()
        assert {(slot, lease.q, lease.id) for slot, lease in table.items()} == {
            (job.slot, job.q, job.id if job.role != "t" else job.element)
            for job in self.held[worker].values()}

    def beat(self):
        worker = self.random.choice(self.workers)
        answer = worker.beat(busy=len(self.held[worker]))
        assert answer[0] == "OK"

    def cancel(self):
        if self.ids:
            id = self.random.choice(sorted(self.ids))
            self.ended[id] += self.store.ok("cancel", id) == ["ended"]

    def requeue(self):
        for id in self.random.sample(self.store.dead(), min(2, len(self.store.dead()))):
            assert self.store.ok("requeue", id)[0] in ("queued", "lost")

    def restore(self):
        """Whoever stands somewhere stays there."""
        ids = self.random.sample(sorted(self.ids), min(20, len(self.ids)))
        assert set(self.store.ok("restore", *ids)) <= {"stands", "gone"}

    def grant(self):
        now = self.store.now()
        until = self.random.choice([NEVER, NEVER, now - 1, now + 2])
        gate = self.random.choice([CLOSED, WRITING, CHECKING, OPEN, OPEN, BYPASS, LEAKY])
        ticket = self.random.random() < 0.15
        values = {"gate": gate, "until": until, "window": self.random.choice([0, 1, 4, 500]),
                  "rank": self.random.randrange(9), "p": 300, "life": 40000,
                  "credits": self.random.choice([0, 0, 1, 2]), "ticket": int(ticket),
                  "role": self.random.choice([1, 2]),
                  "ticket_deadline": now + self.random.choice([1, 60000])}
        if self.random.random() < 0.25:
            self.store.grant(self.root.lane, family="", px=self.root.id, **values)
        else:
            family = self.random.choice([f for f in self.families
                                         if f.id in self.store.known] or [None])
            if family:
                lane = self.random.choice(family.lanes)
                self.store.grant(lane, pool=family.pool, budget=family.budget, **values)

    def budget(self):
        name = self.random.choice(["acme:large", "acme:small"])
        self.store.grant_budget(name, pace=self.random.choice([0, 0, 3, 40]), parked=0,
                                i=self.random.choice([0, 0, 100000, 5000]))

    def switch(self):
        self.store.ok("hold", self.random.choice(["on", "on", "off"]))
        self.store.ok("hold", self.random.choice(["on", "off"]), "x", "triage")
        worker = self.random.choice(self.workers) if self.workers else None
        if worker:
            self.store.ok("steer", worker.nonce, self.random.choice(["quiet", "run", "run"]))
        self.store.ok("unpark", self.random.choice(["acme", "acme:large", "nobody"]))
        family = self.random.choice(self.families)
        self.store.ok("pause", family.id, self.random.choice(["on", "off", "off"]))

    def tick(self):
        self.store.reap()
        self.store.promote(self.random.choice([1, 5, 100]))
        self.store.expire()

    # ---- what must be true ----

    def places(self):
        """id -> all the places where it stands."""
        store, places = self.store, collections.defaultdict(list)
        for family in self.families:
            for name in LISTS:
                for element in store.list(family, name):
                    places[re.match(r"[^~/]+", element).group()].append(name)
        for key in store.redis.keys(store.key("lease:*")):
            for slot, text in store.redis.hgetall(key).items():
                if slot != "s" and "|w:" not in text:
                    places[text.split("|")[3].split("~")[0].split("/")[0]].append("lease")
        for name in ("later", "dead"):
            for id in store.redis.zrange(store.key(name), 0, -1):
                places[id].append(name)
        return places

    def check(self):
        store = self.store
        assert store.audit() == []
        assert store.is_conserved(), store.count()
        places = self.places()
        marked = store.redis.hkeys(store.key("ended"))
        for id in self.ids:
            where = places.pop(id, [])
            alive = store.redis.exists(store.key(f"slim:{id}")) or store.redis.xrange(
                store.key("jobs"), id, id)
            if self.ended[id]:
                assert self.ended[id] == 1, (id, "ended twice")
                assert not alive
                assert len(where) == (id in marked), (id, where)
            else:
                assert len(where) == 1 and alive, (id, where)
        assert not places, "ids that nobody admitted"
        for family in self.families:
            if family.id in store.known:
                assert store.family(family).live == self.counted(family)

    def counted(self, family):
        """Its jobs that wait in later or are dead."""
        ids = [id for name in ("later", "dead")
               for id in self.store.redis.zrange(self.store.key(name), 0, -1)]
        return sum(self.store.past(id)["family"] == family.id for id in ids)

    def run(self):
        self.store.reap()
        self.hello()
        doings = [(self.enqueue, 12), (self.claim, 20), (self.settle, 14), (self.roll, 14), (self.fail, 8),
                  (self.grant, 14), (self.budget, 3), (self.hello, 2), (self.leave, 3),
                  (self.release, 3), (self.cancel, 3), (self.requeue, 2), (self.restore, 2), (self.tick, 5),
                  (self.repeat, 3), (self.attach, 1), (self.beat, 2), (self.switch, 1),
                  (self.delay, 2)]
        names, weights = zip(*doings)
        for step in range(self.steps):
            self.random.choices(names, weights)[0]()
            if step % 25 == 24:
                self.check()

    def drain(self):
        """After the storm everything finishes."""
        store = self.store
        store.ok("hold", "on")
        for budget in ("acme:large", "acme:small"):
            store.grant_budget(budget, pace=0, parked=0, r=0, i=0, o=0)
        for family in self.families:
            if family.id in store.known:
                store.ok("pause", family.id, "off")
                store.open(family, ticket=0, pool=family.pool, budget=family.budget)
        store.grant(self.root.lane, family="", px=self.root.id, gate=OPEN, until=NEVER,
                    credits=0, window=1000, ticket=0)
        for worker in list(self.workers):
            worker.bye()
        self.held = {worker: {} for worker in self.workers}
        self.workers = []
        for pool in ("main", "side"):
            worker = Worker(store, pool, slots=50)
            idle = 0
            while idle < 30:
                for id in store.redis.zrange(store.key("later"), 0, -1):
                    store.redis.zadd(store.key("later"), {id: 1})
                store.promote(1000)
                jobs = worker.claim().jobs
                idle = 0 if jobs else idle + 1
                for job in jobs:
                    self.done(job)
                worker.settle(jobs, reply="box")
            worker.bye()
        self.workers = []
        self.check()
        places = {place for where in self.places().values() for place in where}
        assert places <= {"dead"}, places
        assert store.count()["ended"] == 0
        assert store.replies("twice") == []


@pytest.mark.parametrize("seed", seeds())
def test_whatever_happens_each_job_is_in_one_place(store, seed):
    play = Play(store, seed, 250)
    play.run()
    play.drain()


def test_the_book_notices_a_lost_job(store):
    play = Play(store, 1, 50)
    play.run()
    family = play.families[0]
    play.ids.update(store.enqueue(family, 2))
    play.check()
    store.redis.lpop(store.key(f"ready:n:{family.id}"))
    with pytest.raises((AssertionError, redis.ResponseError)):
        play.check()
    store.broken = True
