#!/usr/bin/python3
"""sweep.py - kills a process at each of its first round trips to Redis, one run for each.

    tests/e2e/sweep.py --all                        200 trips x 3 victims x before and after,
                                                    and 200 x 2 connections x 6 ways
    tests/e2e/sweep.py --victim worker --trip 17 --action after       one run again, kept
    tests/e2e/sweep.py --every 23                   a sample
    tests/e2e/sweep.py --all --log FILE             in pieces: what is fine there is left out

One run: 500 jobs of all kinds wait in the inbox; a scheduler and a worker start, each behind
a proxy of its own (tests/lib/proxy.py).  At the given trip the victim gets SIGKILL, before
its command reaches Redis or after Redis has run it and before the answer is told; it is
started again.  The victim `redis` is killed at a trip of either; a `…-link` only has its
connection cut, or gets answers late.  In the end each job has ended once with its own answer, and the books balance."""

import argparse
import collections
import concurrent.futures
import contextlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import books
import chaos_jobs
from chaos import ChaosFleet
from fleet import BUILD, end_whole_on_signals

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from proxy import Proxy  # noqa: E402

JOBS = 500
TRIPS = 200
END_S = 90
KNOBS = {"latency_ms": 5, "prefill_tokens_per_second": 2000000, "job_ms": 10,
         "job_spread_permille": 500, "fault_server_error_permille": 20,
         "fault_cut_permille": 20}
ACTIONS = {"scheduler": ["before", "after"], "worker": ["before", "after"],
           "redis": ["before", "after"],
           "scheduler-link": ["before", "after", "half", "late", "swap", "freeze"],
           "worker-link": ["before", "after", "half", "late", "swap", "freeze"]}
FREEZE_S = 4  # twice the lease
SIDES = ("scheduler", "worker")  # each has a proxy


class SweepFleet(ChaosFleet):
    def start_scheduler(self, name="scheduler"):
        self.start(name, BUILD / "scheduler" / "warmq-scheduler", "--config", self.config,
                   "--redis", f"unix://{self.directory}/scheduler.sock")

    def start_worker(self, name="worker", slots=20):
        state = self.directory / name
        state.mkdir(exist_ok=True)
        self.start(name, BUILD / "worker" / "warmq-worker", "--config", self.config,
                   "--redis", f"unix://{self.directory}/worker.sock", "--slots", slots,
                   "--label", name, "--state-dir", state, "--lease", "2s")


class Sweep:
    """One run."""

    def __init__(self, directory, victim, trip, action, seed=1):
        self.fleet = SweepFleet(directory, knobs=KNOBS)
        self.victim, self.trip, self.action = victim, trip, action
        self.jobs = chaos_jobs.Jobs(random.Random(seed))
        self.jobs.packs = [1, 2, 30]
        self.ledger = chaos_jobs.Ledger()
        self.seen = collections.Counter()  # results that were read, by reply list
        self.killed = threading.Event()
        self.broken = []

    def enqueue(self):
        while len(self.ledger.jobs) < JOBS:
            for job in self.jobs.draw(20):
                self.ledger.add(job)
                id = self.fleet.link("XADD", "warmq:jobs", "*", *job.words)
                self.ledger.added(job, id.decode())

    def kill(self):
        """In the proxy's thread, while everything on that connection waits."""
        if not self.victim.endswith("-link"):
            self.fleet.processes[self.victim].kill()
        self.killed.set()

    def plan(self, proxies):
        """The trips of `redis` are those of both sides, so each is taken in turn."""
        side = self.victim.split("-")[0]
        number = self.trip
        if side == "redis":
            side, number = SIDES[self.trip % 2], (self.trip + 1) // 2
        proxies[side].at(number, self.action, self.kill, seconds=FREEZE_S)
        return proxies[side]

    def restart_victim(self):
        self.fleet.processes.pop(self.victim).wait(120)
        if self.victim == "redis":
            self.fleet.start_redis()
        elif self.victim == "scheduler":
            self.fleet.start_scheduler()
        else:
            self.fleet.start_worker()

    def read_results(self):
        """They stay in their lists, so that no lost pop blurs the picture."""
        for name in chaos_jobs.REPLIES:
            for text in self.fleet.link.surely("LRANGE", f"warmq:reply:{name}",
                                               self.seen[name], -1):
                self.ledger.take(text)
                self.seen[name] += 1
        for key in self.fleet.link.surely("KEYS", "warmq:result:*"):
            self.ledger.take(self.fleet.link.surely("GET", key), stored=True)

    def finish(self):
        end = time.monotonic() + END_S
        is_back = self.victim.endswith("-link")
        while True:
            if self.killed.is_set() and not is_back:
                self.restart_victim()
                is_back = True
            for name, process in self.fleet.processes.items():
                if process.poll() is not None and not (name == self.victim and not is_back):
                    self.broken.append(f"{name} ended by itself ({process.returncode}):\n" +
                                       self.fleet.log(name)[-2000:])
            if is_back or not self.killed.is_set() and self.victim != "redis":
                self.read_results()
            is_over = self.killed.is_set() and is_back and not self.ledger.waiting()
            if self.broken or is_over or time.monotonic() > end:
                return  # timers go on making trips until the planned one is met
            time.sleep(0.1)

    def verdict(self, proxy):
        if not self.killed.is_set():
            self.broken.append(f"there was no trip {self.trip}: {proxy.count} in all")
        self.broken += self.ledger.faults()
        if not self.broken:
            self.broken += books.check(self.fleet.link)
            self.broken += books.complaints("scheduler", self.fleet.log("scheduler"))

    def run(self):
        with self.fleet, contextlib.ExitStack() as stack:
            try:
                proxies = {side: stack.enter_context(Proxy(
                    self.fleet.directory / f"{side}.sock", self.fleet.socket))
                    for side in SIDES}
                self.enqueue()
                proxy = self.plan(proxies)
                self.fleet.start_scheduler()
                self.fleet.start_worker()
                self.finish()
                self.verdict(proxy)
                self.command = proxy.last
            finally:
                for name in list(self.fleet.processes):
                    self.fleet.kill(name)
        return self.broken


def run_point(point, keep=False):
    victim, trip, action = point
    directory = tempfile.mkdtemp(prefix="sweep-")
    started = time.monotonic()
    sweep = Sweep(directory, victim, trip, action)
    try:
        broken = sweep.run()
    except Exception as error:  # a harness that fails has proven nothing
        broken = [f"{type(error).__name__}: {error}"]
    took = time.monotonic() - started
    if broken or keep:
        broken.append(f"kept in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return point, getattr(sweep, "command", "?"), took, broken


def points_of(every, offset=1, trips=TRIPS):
    """A sample meets all actions in turn; every = 1 means each trip with each action."""
    for victim, actions in ACTIONS.items():
        for n, trip in enumerate(range(offset, trips + 1, every)):
            for action in actions if every == 1 else [actions[n % len(actions)]]:
                yield victim, trip, action


def run_points(points, parallel, say=print):
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        for point, command, took, broken in pool.map(run_point, points):
            failed += bool(broken)
            say(f"{point[0]} {point[1]} {point[2]} ({command}): "
                f"{'BROKEN' if broken else 'fine'}, {took:.1f} s")
            for text in broken[:12]:
                say(f"   {text}")
    return failed


def fine_points(path):
    """What earlier runs have said in this log."""
    if not path or not Path(path).exists():
        return set()
    lines = re.findall(r"^(\S+) (\d+) (\w+) \(.*\): fine", Path(path).read_text(), re.M)
    return {(victim, int(trip), action) for victim, trip, action in lines}


def say_to(path):
    def say(text):
        print(text, flush=True)
        if path:
            with open(path, "a", encoding="utf-8") as log:
                log.write(text + "\n")
    return say


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every trip in every way")
    parser.add_argument("--every", type=int, default=23, help="one of so many trips")
    parser.add_argument("--offset", type=int, default=1, help="the first trip")
    parser.add_argument("--victim", choices=ACTIONS, help="only this one")
    parser.add_argument("--trip", type=int, help="only this one")
    parser.add_argument("--action", help="only this one")
    parser.add_argument("--parallel", type=int, default=3, help="runs at a time")
    parser.add_argument("--log", help="goes on where this log ends, and adds to it")
    args = parser.parse_args()
    end_whole_on_signals()
    if args.trip:
        point, command, took, broken = run_point((args.victim, args.trip,
                                                  args.action or "after"), keep=True)
        print(point, command, f"{took:.1f} s", *broken, sep="\n")
        return 1 if len(broken) > 1 else 0
    points = [point for point in points_of(1 if args.all else args.every, args.offset)
              if args.victim in (None, point[0]) and args.action in (None, point[2])]
    known = fine_points(args.log)
    points = [point for point in points if point not in known]
    failed = run_points(points, args.parallel, say_to(args.log))
    print(f"cases: {len(points) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
