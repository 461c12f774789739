#!/usr/bin/env python3
"""Whether the ledger sums up to the provider's own totals, and by which causes.

    tests/e2e/ledger.py --jobs 100000        minutes; prints what it costs, and the causes
    tests/e2e/ledger.py --jobs 2000 --rate 8 what it costs where few jobs come (a second)

Jobs of several routes and prefixes, streamed and not, with answers that are cut off, error
events, refusals; the ruling scheduler is killed again and again.  In the end each token that
the provider has read, written or charged in full stands in the ledger once, and all that was
written has a cause."""

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fleet import Fleet, anthropic_body, long_text, wait_until  # noqa: E402

FIELDS = ["calls", "answers", "prefixed", "hits", "read", "written", "uncached", "output",
          "cost", "saved", "unpriced", "unreported", "estimated"]
KNOBS = {"miss_permille": 10, "evict_permille": 5, "latency_ms": 20, "prefill_tokens_per_second": 200000, "job_ms": 20,
         "latency_spread_permille": 0, "usage_shape": 2}

# What ends an attempt after its usage was told, or before anything is charged.  An error in
# a stream is an overload, which parks the account for 5 s: only a few of them.
FAULTS = {"fault_cut_permille": 40, "fault_server_error_permille": 10,
          "fault_rate_limit_permille": 1, "retry_after_ms": 50}
ALLOWED_US = 0.5  # of Redis's time, of the life of a job
OPTIONS = "    pace_start: 200\n    hold_max: 10s\n"


def read_sums(text):
    """A row of sums as docs/LEDGER.md explains it; its causes under their names."""
    words = text.decode().split("|")[0].split()
    sums = dict(zip(FIELDS, map(int, words)))
    sums["causes"] = {}
    for word in words[len(FIELDS):]:
        name, _, figures = word.partition(":")
        sums["causes"][name] = [int(figure) for figure in figures.split(",")]
    return sums


def total(fleet):
    text = fleet.redis("HGET", "warmq:ledger", "total")
    return read_sums(text) if text else None


def written_by_cause(sums):
    return sum(figures[1] for figures in sums["causes"].values())


def differences(sums, stats):
    """What the ledger lacks of the provider's books; all 0 if it is right."""
    wrong = {name: stats[f"tokens_{name}"] - sums[name] for name in
             ("read", "written", "uncached") if stats[f"tokens_{name}"] != sums[name]}
    if written_by_cause(sums) != sums["written"]:
        wrong["causes"] = sums["written"] - written_by_cause(sums)
    return wrong


def settled(fleet):
    """The ledger's total once it has not moved: what rests is stored within 10 s."""
    deadline = time.monotonic() + 240
    last, since = None, time.monotonic()
    while time.monotonic() - since < 80 and time.monotonic() < deadline:
        now = total(fleet)
        if now != last:
            last, since = now, time.monotonic()
        if now and now["calls"] + now["unreported"] >= fleet.stats()["requests"]:
            return now
        time.sleep(0.1)
    return last


def bodies_of(count, seed):
    """(route, fields, body) of each job: two routes with a prefix of their own, one with 8
    documents on one system, one of single jobs."""
    choose = random.Random(seed)
    systems = {"triage": long_text(1500, "triage "), "review": long_text(1100, "review "),
               "documents": long_text(1100, "library ")}
    documents = [long_text(400, f"page {n} ") for n in range(8)]
    for number in range(count):
        route = choose.choice(["triage", "triage", "review", "documents", "single"])
        more = {"stream": True} if choose.random() < 0.3 else {}
        question = f"Question {seed}.{number}"
        if route == "documents":
            content = [{"type": "text", "text": choose.choice(documents),
                        "cache_control": {"type": "ephemeral"}},
                       {"type": "text", "text": question}]
            more["messages"] = [{"role": "user", "content": content}]
        system = systems.get(route) or f"You are number {number}. " + long_text(1100)
        hold = ["hold_max", "0"] if choose.random() < 0.02 else []
        yield route, hold, anthropic_body(question, system, **more)


def enqueue(fleet, jobs):
    words = []
    for route, hold, body in jobs:
        fleet.redis.send("XADD", "warmq:jobs", "*", "upstream", "main", "reply", "results",
                         "route", route, "attempts", "10", *hold, "body", body)
        words.append(route)
    for _ in words:
        answer = fleet.redis.read()
        assert isinstance(answer, bytes), answer


def play(fleet, count, seed=1, kills=3, say=lambda text: None, rate=None):
    """Runs `count` jobs to their end, at most `rate` a second; kills the ruler `kills` times
    while they run."""
    jobs = bodies_of(count, seed)
    results, sent, killed = {}, 0, 0
    fleet.start_all(workers=2, slots=100)
    if not rate:
        fleet.http("/knobs", {"fault_next": "stream_error", "fault_next_count": 3})
    began = said = time.monotonic()
    deadline = began + 480 + count / min(10, rate or 10)
    while len(results) < count:
        if time.monotonic() - said > 20:
            said = time.monotonic()
            say(f"{len(results)} of {count} jobs ended, {len(results) / (said - began):.0f} a "
                f"second; the ruler was killed {killed} times")
        assert time.monotonic() < deadline, f"{len(results)} of {count} jobs ended"
        due = int(min(count, (time.monotonic() - began) * rate)) if rate else count
        while sent < due and sent - len(results) < 400:
            chunk = list(itertools.islice(jobs, min(50, due - sent)))
            enqueue(fleet, chunk)
            sent += len(chunk)
        fleet.pop_results(results)
        if killed < kills and len(results) > (killed + 1) * count / (kills + 1):
            killed += 1
            fleet.kill("scheduler")
            fleet.start_scheduler()
        time.sleep(0.01)
    fleet.http("/knobs", {name: 0 for name in FAULTS})
    wait_until(lambda: fleet.stats()["concurrency"] == 0, "end of all requests", 30)
    return results


class Cost(threading.Thread):
    """What storing the ledger takes of Redis, by its own slow log: microseconds of each call.
    The median counts: a call in which Redis lost its core took long for another reason."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.redis, self.stop = fleet.connect(), threading.Event()
        self.calls = []
        self.redis("CONFIG", "SET", "slowlog-max-len", 100000)
        self.redis("CONFIG", "SET", "slowlog-log-slower-than", 5)

    def look(self):
        for entry in self.redis("SLOWLOG", "GET", -1):
            if entry[3][:2] == [b"FCALL", b"warmq_ledger"]:
                self.calls.append(entry[2])
        self.redis("SLOWLOG", "RESET")

    def run(self):
        while not self.stop.wait(0.5):
            self.look()

    def end(self):
        self.stop.set()
        self.join()
        self.look()
        return statistics.median(self.calls) * len(self.calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, help="jobs a second; nothing is killed then, and nothing fails")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmq-ledger-") as directory:
        faults = {} if options.rate else FAULTS
        with Fleet(directory, OPTIONS, knobs={**KNOBS, **faults}) as fleet:
            started, cost = time.monotonic(), Cost(fleet)
            cost.start()
            kills = 0 if options.rate else max(3, options.jobs // 5000)
            play(fleet, options.jobs, options.seed, kills, rate=options.rate,
                 say=lambda text: print(text, flush=True))
            took = time.monotonic() - started
            sums, stats = settled(fleet), fleet.stats()
            us = cost.end()
    wrong = differences(sums, stats)
    print(f"{options.jobs} jobs, {stats['requests']} requests in {took:.0f} s; read "
          f"{stats['tokens_read']}, written {stats['tokens_written']}, uncached "
          f"{stats['tokens_uncached']}; unreported {sums['unreported']}; differences: "
          f"{wrong or 'none'}")
    print(f"stored in {len(cost.calls)} calls; at {options.jobs / took:.0f} jobs a second "
          f"that is {us / options.jobs:.2f} us of Redis a job (allowed: {ALLOWED_US})")
    if options.rate:  # the first minute has a call for each new version
        us = statistics.median(cost.calls)
        print(f"a call takes {us:.0f} us; each two minutes, in the long run, that is "
              f"{us / 120 / options.rate:.2f} us a job")
    for name, figures in sums["causes"].items():
        print(f"  {name:16} {figures[0]:8} calls {figures[1]:12} written "
              f"{figures[2]:12} in full  ${figures[3] / 1e9:.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
