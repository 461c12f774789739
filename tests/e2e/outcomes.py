#!/usr/bin/python3
"""outcomes.py - jobs end in every way there is, over an account that allows 3 requests.

    tests/e2e/outcomes.py --jobs 100000        as long as it takes, about half an hour
    tests/e2e/outcomes.py --seed 7             2,000 jobs

The provider refuses, fails, cuts, garbles, hangs and drips; jobs are cancelled, expire, have
bodies that no one can read, time out.  No process dies: what leaks here leaks by itself.  A
leak of one of the three places shows within seconds, since nothing goes on without them.  In
the end each job has ended once, nothing is in flight and the audit corrects nothing."""

import argparse
import collections
import random
import sys
import tempfile
import time

import books
import chaos_jobs
from chaos import ChaosFleet
from fleet import Fleet, end_whole_on_signals

PLACES = 3
CLASS = "sonnet-4"
OUTSTANDING = 500  # the producer waits for results, so that cancels meet all states
IDLE_S = 240  # so long nothing may end before the run is given up
FAULTS = {"server_error": 20, "bad_request": 20, "refuse": 10, "cut": 20, "cut_usage": 20, "lose_reply": 10,
          "garbage": 20, "drip": 10, "hang": 1, "stall": 1}
# Each stops the account for a second or five: one behind so many jobs.
PARKING = [(700, "rate_limit", 2), (1500, "stream_error", 1), (8000, "unavailable", 1),
           (9000, "overloaded", 1)]
KNOBS = {"latency_ms": 1, "latency_spread_permille": 900, "prefill_tokens_per_second": 0,
         "job_ms": 3, "job_spread_permille": 900, "retry_after_ms": 50,
         "usage_unknown_permille": 50,
         **{f"fault_{name}_permille": permille for name, permille in FAULTS.items()}}


class Jobs(chaos_jobs.Jobs):
    def draw(self, count):
        kinds = [self.flat] * 30 + [self.pack, self.bad]
        return [self.random.choice(kinds)() for _ in range(count)]

    def options(self):
        words = ["reply", self.random.choice(chaos_jobs.REPLIES), "timeout", "1s"]
        for chance, name, values in [
                (0.2, "priority", ["high", "low"]), (0.05, "not_before", ["+100ms", "+1s"]),
                (0.05, "deadline", ["+50ms", "+300ms"]), (0.1, "hold_max", ["0", "1s"]),
                (0.3, "attempts", [1, 2]), (0.1, "conversation", ["c1", "c2"])]:
            if self.random.random() < chance:
                words += [name, self.random.choice(values)]
        return words


class OutcomesFleet(ChaosFleet):
    def write_config(self, dialect="anthropic"):
        self.upstream_options = f"""    hold_max: 5s
    class_limits:
      {CLASS}:
        concurrency: {PLACES}"""
        Fleet.write_config(self, dialect)


class Outcomes:
    def __init__(self, directory, jobs, seed=1, say=lambda text: None):
        self.random = random.Random(seed)
        self.count, self.say = jobs, say
        self.fleet = OutcomesFleet(directory, knobs=KNOBS)
        self.jobs = Jobs(self.random)
        self.jobs.packs = [2, 10]
        self.ledger = chaos_jobs.Ledger()
        self.open = {}  # ref -> job
        self.added = collections.deque(maxlen=OUTSTANDING)  # who may be cancelled
        self.parked = collections.Counter()
        self.most = 0  # leases at a time
        self.broken = []

    def produce(self):
        while len(self.ledger.jobs) < self.count and len(self.open) < OUTSTANDING:
            job = self.jobs.draw(1)[0]
            self.ledger.add(job)
            for part in self.ledger.parts(job):
                self.open[part.ref] = part
                self.added.append(part)
            self.ledger.added(job, self.fleet.link("XADD", "warmq:jobs", "*",
                                                   *job.words).decode())
            if self.random.random() < 0.05:
                self.cancel(self.random.choice(self.added))
            self.park()

    def cancel(self, job):
        if job.ref in self.open:
            answer = self.fleet.link("FCALL", "warmq_cancel", 1, "warmq:meta", 1, job.id)
            self.ledger.cancelled(job, answer[2].decode())

    def park(self):
        for every, fault, times in PARKING:
            if len(self.ledger.jobs) // every > self.parked[fault]:
                self.parked[fault] += 1
                self.fleet.http("/knobs", {"fault_next": fault, "fault_next_count": times})

    def collect(self):
        """Pops what is there; by id only where a job named no list."""
        got = 0
        for name in chaos_jobs.REPLIES:
            for text in self.fleet.link("LPOP", f"warmq:reply:{name}", 200) or []:
                self.ledger.take(text)
                got += 1
        ended = [ref for ref, job in self.open.items() if len(job.ends) >= job.runs]
        for ref in ended:
            del self.open[ref]
        return got

    def look(self):
        flight = int(self.fleet.link("HGET", f"warmq:budget:main:{CLASS}", "in_flight") or 0)
        self.most = max(self.most, flight)

    def storm(self):
        last, said = time.monotonic(), time.monotonic()
        while len(self.ledger.jobs) < self.count or self.open:
            self.produce()
            self.look()
            now = time.monotonic()
            if self.collect():
                last = now
            elif now - last > IDLE_S:
                self.broken.append(f"nothing ended for {IDLE_S} s, {len(self.open)} jobs wait")
                return
            if now - said > 30:
                said = now
                self.say(f"{len(self.ledger.jobs) - len(self.open)} jobs have ended")
            time.sleep(0.01)

    def watch(self):
        for name, process in self.fleet.processes.items():
            if process.poll() is not None:
                self.broken.append(f"{name} ended by itself ({process.returncode}):\n" +
                                   self.fleet.log(name)[-2000:])

    def verdict(self):
        self.broken += self.ledger.faults()
        if self.most > PLACES:
            self.broken.append(f"{self.most} were in flight, {PLACES} are allowed")
        if self.most < PLACES:
            self.broken.append(f"never more than {self.most} in flight: the test is too tame")
        if not self.broken:
            self.broken += books.check(self.fleet.link)
            self.broken += books.complaints("scheduler", self.fleet.log("scheduler"))
        kinds = self.kinds()
        for kind in ("done", "cancelled", "expired"):
            if kind not in kinds:
                self.broken.append(f"no job ended as {kind}: the test is too tame")

    def kinds(self):
        count = collections.Counter()
        for job in self.ledger.jobs.values():
            for _, result in job.ends:
                count[result.get("reason") if result["state"] == "dead" else
                      result["state"]] += 1
        return count

    def run(self):
        with self.fleet:
            try:
                self.fleet.start_scheduler("scheduler")
                self.fleet.await_ruler()
                self.fleet.start_worker("worker", slots=20)
                self.storm()
                self.watch()
                self.verdict()
                self.faults = self.fleet.http("/stats")["faults"]
            finally:
                for name in list(self.fleet.processes):
                    self.fleet.kill(name)
        return self.broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    end_whole_on_signals()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="outcomes-") as directory:
        outcomes = Outcomes(directory, args.jobs, args.seed,
                            lambda text: print(text, flush=True))
        broken = outcomes.run()
        print(f"seed {args.seed}: {len(outcomes.ledger.jobs)} jobs in "
              f"{time.monotonic() - started:.0f} s, at most {outcomes.most} at a time: "
              f"{'BROKEN' if broken else 'fine'}")
        print(f"   ends: {dict(outcomes.kinds())}")
        print(f"   faults: {getattr(outcomes, 'faults', {})}")
    for text in broken[:20]:
        print(f"   {text}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
