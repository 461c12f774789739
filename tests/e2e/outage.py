#!/usr/bin/python3
"""outage.py - how long it takes until jobs flow again, and what an outage costs.

    tests/e2e/outage.py                 all rows, two minutes
    tests/e2e/outage.py takeover audit  some

    dead worker    killed right behind a beat ──► all its jobs are eligible      <= 45 s
    takeover       ruler killed, another one stands by ──► a new job is admitted <= 10 s
    both           worker and ruler killed in the same instant: both times
    redis          away for 60 s: nothing is reaped, results are delivered once, claims flow
                   again <= 5 s after it answers
    paused         the same for CLIENT PAUSE of 35 s
    hung           a worker whose loop stands still for 40 s: each job ends once
    audit          10,000 leases, as one call or in pieces                       <= 10 ms

Real programs with their default times.  Exit status 1 if a bound is missed."""

import argparse
import concurrent.futures
import contextlib
import signal
import sys
import tempfile
import time

from fleet import Fleet, anthropic_body, end_whole_on_signals, long_text, wait_until

KNOBS = {"latency_ms": 20, "prefill_tokens_per_second": 200000, "job_ms": 600000}
AOF = ("--appendonly", "yes", "--appendfsync", "everysec")
OPTIONS = "    pace_start: 20000"


def bodies(count, word="outage "):
    system = long_text(2000, word)
    return [anthropic_body(f"Question {word}{number}", system) for number in range(count)]


class Outage:
    """One fleet in which something goes away; `say` gets each row: name, value, bound."""

    def __init__(self, directory, say, lease=None):
        self.fleet = Fleet(directory, OPTIONS, knobs=KNOBS, redis_options=AOF)
        self.say = say
        self.worker_options = ("--lease", lease) if lease else ()
        self.results = {}

    @contextlib.contextmanager
    def running(self):
        """Nobody waits for jobs that never end."""
        with self.fleet:
            try:
                yield
            finally:
                for name in list(self.fleet.processes):
                    self.fleet.kill(name)

    def start(self, workers=1, slots=20, schedulers=2):
        for number in range(1, schedulers + 1):
            self.fleet.start_scheduler(f"scheduler-{number}")
            self.fleet.await_ruler()
        for number in range(1, workers + 1):
            self.start_worker(number, slots)
        self.fleet.await_workers(workers)

    def start_worker(self, number, slots=20):
        self.fleet.start_worker(f"worker-{number}", slots, *self.worker_options)

    def leases(self):
        """nonce -> how many jobs it has."""
        return {nonce: self.fleet.redis("HLEN", b"warmq:lease:" + nonce) - 1
                for nonce in self.fleet.redis("ZRANGE", "warmq:workers", 0, -1)}

    def hold_jobs(self, count):
        """Runs so many jobs, of which none has begun to be answered; answers their worker's
        nonce."""
        self.fleet.keep_waiting()
        self.fleet.warmq("hold", "off")
        ids = self.fleet.enqueue(bodies(count))
        wait_until(lambda: sum(self.leases().values()) == count, "leases", 30)
        return ids, next(iter(self.leases()))

    def waiting(self):
        """Elements in the lists of returned jobs."""
        return sum(self.fleet.redis("LLEN", name)
                   for name in self.fleet.redis("KEYS", "warmq:back:*"))

    def await_beat(self, nonce):
        before = self.fleet.redis("ZSCORE", "warmq:workers", nonce)
        wait_until(lambda: self.fleet.redis("ZSCORE", "warmq:workers", nonce) != before, "a beat",
                   20)

    def await_takeover(self, owner, since, name):
        """Until another one rules and has admitted a job that came after the death."""
        self.fleet.enqueue(bodies(1, "after "))
        wait_until(lambda: self.fleet.redis("HGET", "warmq:meta", "owner") != owner,
                   "another ruler", 30)
        wait_until(lambda: self.fleet.redis("HGET", "warmq:meta", "cursor").split()[0] ==
                   self.fleet.redis("XINFO", "STREAM", "warmq:jobs")[7], "admission", 30)
        self.say(name, time.monotonic() - since, 10, "s")

    # ---- rows ----

    def takeover(self):
        with self.running():
            self.start()
            owner = self.fleet.redis("HGET", "warmq:meta", "owner")
            self.fleet.kill("scheduler-1")
            self.await_takeover(owner, time.monotonic(), "takeover")

    def dead_worker(self, bound=45):
        with self.running():
            self.start()
            _, nonce = self.hold_jobs(20)
            self.await_beat(nonce)
            died = time.monotonic()
            self.fleet.kill("worker-1")
            wait_until(lambda: self.waiting() == 20, "eligible jobs", bound + 30)
            self.say("jobs of a dead worker eligible", time.monotonic() - died, bound, "s")

    def both(self, bound=45):
        with self.running():
            self.start()
            _, nonce = self.hold_jobs(20)
            owner = self.fleet.redis("HGET", "warmq:meta", "owner")
            self.await_beat(nonce)
            died = time.monotonic()
            for name in ("worker-1", "scheduler-1"):
                self.fleet.processes[name].send_signal(signal.SIGKILL)
            self.await_takeover(owner, died, "both killed: takeover")
            wait_until(lambda: self.waiting() >= 20, "eligible jobs", bound + 30)
            self.say("both killed: jobs eligible", time.monotonic() - died, bound, "s")

    def recoveries(self, ids):
        return [id for id in ids
                if int(self.fleet.redis("HGET", f"warmq:past:{id}", "recoveries") or 0)]

    def kill_redis(self, seconds):
        time.sleep(1.1)  # what everysec may lose is another test's
        self.fleet.kill("redis")
        time.sleep(seconds)
        self.fleet.redis.close()
        self.fleet.start_redis()

    def pause_redis(self, seconds):
        self.fleet.redis("CLIENT", "PAUSE", seconds * 1000, "ALL")
        time.sleep(seconds)
        self.fleet.redis("PING")

    def paused(self, seconds=35):
        self.redis_away(seconds, self.pause_redis, "paused")

    def redis_away(self, seconds=60, go_away=None, what="away"):
        with self.running():
            self.start(slots=40)
            self.fleet.http("/knobs", {"job_ms": int(seconds * 1000 / 3)})
            short, nonce = self.hold_jobs(10)  # they end while Redis is away
            self.fleet.http("/knobs", {"job_ms": int(seconds * 1000 * 1.5)})
            long = self.fleet.enqueue(bodies(10, "long "))
            wait_until(lambda: sum(self.leases().values()) == 20, "leases", 30)
            wait_until(lambda: self.fleet.stats()["requests"] == 20, "requests", 30)
            self.fleet.keep_waiting(False)
            (go_away or self.kill_redis)(seconds)
            back = time.monotonic()
            self.fleet.http("/knobs", {"job_ms": 10})
            new = self.fleet.enqueue(bodies(10, "new "), reply="new")
            self.fleet.collect(10, 60, reply="new")
            self.say(f"Redis {what} for {seconds} s: new jobs done", time.monotonic() - back,
                     5, "s")
            wait_until(lambda: len(self.fleet.pop_results(self.results)) >= 10,
                       "results that were spooled", 30)
            self.say("and what ended meanwhile is delivered", time.monotonic() - back, 30,
                     "s")
            wait_until(lambda: len(self.fleet.pop_results(self.results)) >= 20,
                       "results of jobs that ran on", seconds * 1.5 + 30)
            self.check_done(short + long)
            self.say("jobs that were taken for dead", len(self.recoveries(short + long)), 0,
                     "")
            assert list(self.leases()) == [nonce], "the same session"
            # A writer gives up when its lease may be over: nobody may write beside it.
            self.say("requests that were sent again",
                     self.fleet.stats()["requests"] - len(short + long + new), 1, "")

    def check_done(self, ids):
        assert set(self.results) == set(ids)
        for id in ids:
            assert self.results[id]["state"] == "done", self.results[id]

    def hung(self, seconds=40):
        with self.running():
            self.start(workers=1, schedulers=1)
            self.fleet.http("/knobs", {"job_ms": 100 * seconds})
            ids, _ = self.hold_jobs(20)
            self.fleet.processes["worker-1"].send_signal(signal.SIGSTOP)
            self.fleet.keep_waiting(False)
            self.start_worker(2)
            stopped = time.monotonic()
            wait_until(lambda: time.monotonic() > stopped + seconds, "the hang", seconds + 5)
            self.fleet.processes["worker-1"].send_signal(signal.SIGCONT)
            wait_until(lambda: len(self.fleet.pop_results(self.results)) >= 20, "results", 60)
            more = self.fleet.enqueue(bodies(60, "more "))
            wait_until(lambda: len(self.fleet.pop_results(self.results)) >= 80, "results", 60)
            self.check_done(ids + more)
            assert len(self.leases()) == 2, "it has come back"
            self.say(f"a worker hung for {seconds} s: jobs without one end",
                     80 - len(self.results), 0, "")

    # ---- audit ----

    def claim_all(self, sessions, slots):
        for number in range(sessions):
            nonce = f"{number + 1:016x}"
            assert self.fleet.redis("FCALL", "warmq_hello", 1, "warmq:meta", 1, nonce, "l",
                                    "default", slots, "*", 3600000, "")[0] == b"OK"
            for first in range(0, slots, 50):
                self.fleet.redis("FCALL", "warmq_claim", 1, "warmq:meta", 1, nonce, 1, first,
                                 *range(first, first + 50))

    def redis_cpu_s(self):
        path = f"/proc/{self.fleet.processes['redis'].pid}/schedstat"
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9

    def audit_pieces(self):
        """Seconds of Redis's CPU by call: the wall clock of a shared machine says little."""
        owner, cursor, times = self.fleet.redis("HGET", "warmq:meta", "owner"), "1:0", []
        while cursor:
            before = self.redis_cpu_s()
            answer = self.fleet.redis("FCALL", "warmq_audit", 1, "warmq:meta", 1, owner,
                                      cursor)
            times.append(self.redis_cpu_s() - before)
            assert answer[0] == b"OK" and answer[3:] == [], answer
            cursor = answer[2]
        return times

    def audit(self, sessions=50, slots=200, families=100):
        with self.running():
            self.fleet.start_scheduler()
            self.fleet.await_ruler()
            self.fleet.warmq("hold", "off")
            self.fleet.enqueue([body for number in range(families) for body in
                                bodies(sessions * slots // families, f"family {number} ")])
            self.claim_until_leased(sessions, slots)
            runs = [self.audit_pieces() for _ in range(5)]
            worst = min(max(times) for times in runs)
            self.say(f"audit of {sessions * slots:,} leases: its longest piece", worst * 1000,
                     10, "ms")
            self.say(f"and all {len(runs[0])} pieces",
                     min(sum(times) for times in runs) * 1000, None, "ms")

    def claim_until_leased(self, sessions, slots):
        wait_until(lambda: self.fleet.redis("HGET", "warmq:meta", "cursor").split()[0] ==
                   self.fleet.redis("XINFO", "STREAM", "warmq:jobs")[7], "admission", 60)
        self.claim_all(sessions, slots)
        count = sum(self.leases().values())
        assert count == sessions * slots, f"{count} leases"


ROWS = {"takeover": Outage.takeover, "dead_worker": Outage.dead_worker, "both": Outage.both,
        "redis": Outage.redis_away, "paused": Outage.paused, "hung": Outage.hung,
        "audit": Outage.audit}


def run_row(name):
    rows, problem = [], None
    with tempfile.TemporaryDirectory(prefix="outage-") as directory:
        try:
            ROWS[name](Outage(directory, lambda *row: rows.append(row)))
        except Exception as error:  # shown with the others
            problem = f"{type(error).__name__}: {error}"
    return name, rows, problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    names = parser.parse_args().rows or list(ROWS)
    end_whole_on_signals()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        for name, rows, problem in pool.map(run_row, names):
            for text, value, bound, unit in rows:
                missed = bound is not None and value > bound
                failed += missed
                limit = f"   bound {bound} {unit}" if bound is not None else ""
                print(f"  {text:<52} {value:8.1f} {unit:<2}{limit}"
                      f"{'   MISSED' if missed else ''}", flush=True)
            if problem:
                failed += 1
                print(f"  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
