#!/usr/bin/env python3
"""burst.py - the burst of 200 jobs with one long prefix, measured with the real programs.

    ./dev bench burst [--quick] [--seeds N] [--parallel N] [--jobs N] [--json FILE]

Each run is one `warmq demo`: a private Redis, provider, scheduler and two workers, and in
it two bursts with different prefixes. The first meets a provider whose lag is not known,
the second one whose lag was learned. The naive arm, all at once without holding, is run
once per seed: what it pays depends neither on the lag nor on the length of a job, since all
of its requests start before the first answer.

Per cell it prints the median over the seeds, and the smallest and the largest value:

    writes      requests that were charged for writing the prefix
    at once     most requests that were writing it at the same moment
    price       against the naive arm: 1.25 for a token written, 0.1 read, 1 uncached
    makespan    against the bound: cold prefill + lag + one warm wave of jobs, where an
                unknown or a learned lag counts as 2 s (the true one may be shorter)

Base latency 0.1 s +-20 %, prefill 10,000 tokens a second, a job's time counts from its
first byte. It exits with 1 if a cell misses what is promised of it."""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WARMQ_BUILD", ROOT / "build"))
WARMQ = BUILD / "cli" / "warmq"

TOKENS = 30000
LATENCY_MS = 100
PREFILL_MS = TOKENS // 10
UNKNOWN_LAG_MS = 2000
ATTEMPT_S = 600

PRICE_MAX = 0.10
AT_ONCE_MAX = 1


class Cell:
    """One arm: a lag, a length of jobs, whether they ask for a stream."""

    def __init__(self, lag_ms, job_s, stream, learned=False):
        self.lag_ms, self.job_s, self.stream, self.learned = lag_ms, job_s, stream, learned
        known = lag_ms == 0 or learned
        self.writes_max = 1 if known else 2
        self.makespan_max = 1.15 if known else 1.30
        self.writes, self.at_once, self.price, self.makespan = [], [], [], []
        self.misses = []

    @property
    def name(self):
        lag = "no lag" if self.lag_ms == 0 else (
            f"{self.lag_ms} ms {'learned' if self.learned else 'unknown'}")
        return f"{lag:<16} {self.job_s:>3} s  {'stream' if self.stream else 'object'}"

    @property
    def bound_ms(self):
        lag_ms = UNKNOWN_LAG_MS if self.lag_ms else 0
        return LATENCY_MS + PREFILL_MS + lag_ms + LATENCY_MS + self.job_s * 1000

    def add(self, seed, arm, naive_price, slower):
        self.writes.append(arm["writes"])
        self.at_once.append(arm["peak_writers"])
        self.price.append(price_of(arm) / naive_price)
        self.makespan.append(arm["makespan_ms"] / self.bound_ms)
        for what, value, limit in (("writes", self.writes[-1], self.writes_max),
                                   ("at once", self.at_once[-1], AT_ONCE_MAX),
                                   ("price", self.price[-1], PRICE_MAX),
                                   ("makespan", self.makespan[-1], self.makespan_max)):
            if what == "makespan":
                limit *= slower
            if value > limit:
                self.misses.append(f"{self.name}, seed {seed}: {what} {value:.4g} is more "
                                   f"than {limit:g}")
        if self.writes[-1] < 1:
            self.misses.append(f"{self.name}, seed {seed}: nobody wrote the prefix")

    def line(self):
        return (f"{self.name}   {spread(self.writes, 'd'):<10} {spread(self.at_once, 'd'):<8}"
                f" {spread(self.price, '.3f'):<22} {spread(self.makespan, '.2f'):<19}"
                f" {self.makespan_max:.2f}  {'MISSED' if self.misses else 'ok'}")


HEADER = (f"{'lag':<16} {'job':>5}  {'asks':<6}   {'writes':<10} {'at once':<8}"
          f" {'price / naive':<22} {'makespan / bound':<19} max")


def spread(values, form):
    median = statistics.median_low(values)
    if min(values) == max(values):
        return format(median, form)
    return f"{median:{form}} ({min(values):{form}}-{max(values):{form}})"


def price_of(arm):
    return arm["written"] * 1.25 + arm["read"] * 0.1 + arm["uncached"]


def demo(*options):
    """The object that `warmq demo --json` ends with."""
    command = [str(WARMQ), "demo", "--json", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ATTEMPT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Bench:
    def __init__(self, jobs, cells, slower=1):
        self.jobs, self.slower = jobs, slower
        self.cells = {(c.lag_ms, c.job_s, c.stream, c.learned): c for c in cells}
        self.naive = {}
        self.failures = []

    def run_naive(self, seed):
        answer = demo("--only", "naive", "--jobs", self.jobs, "--slots", self.jobs,
                      "--seed", seed)
        assert answer["failed"] == 0 and answer["done"] == self.jobs
        self.naive[seed] = answer["naive"]

    def run(self, seed, lag_ms, job_s, stream):
        """One fleet, both of its bursts."""
        learned = self.cells.get((lag_ms, job_s, stream, True))
        answer = demo("--only", "warmq", "--bursts", 2 if learned else 1, "--jobs", self.jobs,
                      "--slots", self.jobs, "--seed", seed, "--lag-ms", lag_ms, "--job-ms",
                      job_s * 1000, *(["--stream"] if stream else []))
        arms = answer["bursts"]
        for arm, is_learned in zip(arms, (False, True)):
            cell = self.cells.get((lag_ms, job_s, stream, is_learned))
            if cell:
                cell.add(seed, arm, price_of(self.naive[seed]), self.slower)
        if answer["failed"] or answer["done"] != self.jobs:
            self.failures.append(f"seed {seed}: {answer['done']} of {self.jobs} jobs done")

    def run_all(self, seeds, parallel, say):
        for seed in seeds:
            self.run_naive(seed)
        runs = sorted({(s, c.lag_ms, c.job_s, c.stream) for s in seeds
                       for c in self.cells.values()}, key=lambda run: -run[2])
        with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
            futures = {pool.submit(self.run, *run): run for run in runs}
            for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
                seed, lag_ms, job_s, _ = futures[future]
                say(f"{number} of {len(runs)}: seed {seed}, lag {lag_ms} ms, {job_s} s")
                if future.exception():
                    self.failures.append(str(future.exception()))

    def report(self):
        naive = list(self.naive.values())
        print(f"\n{self.jobs} jobs, one prefix of {TOKENS:,} tokens, {self.jobs} slots, "
              f"{len(naive)} seeds; median (smallest-largest)")
        units = [price_of(arm) / TOKENS for arm in naive]
        print(f"naive: {spread([arm['writes'] for arm in naive], 'd')} writes, "
              f"{spread(units, '.1f')} prefixes paid\n\n{HEADER}")
        for cell in self.cells.values():
            if cell.writes:
                print(cell.line())
        problems = [miss for cell in self.cells.values() for miss in cell.misses]
        problems += self.failures
        problems += [f"{cell.name}: was not measured" for cell in self.cells.values()
                     if not cell.writes]
        for problem in problems:
            print(f"missed: {problem}")
        count = len(self.cells)
        bad = sum(bool(cell.misses) or not cell.writes for cell in self.cells.values())
        print(f"\n{count - bad} of {count} cells keep what is promised")
        return problems

    def as_json(self):
        return [{"lag_ms": c.lag_ms, "job_s": c.job_s, "stream": c.stream,
                 "learned": c.learned, "writes": c.writes, "at_once": c.at_once,
                 "price": c.price, "makespan": c.makespan} for c in self.cells.values()]


def full_matrix():
    cells = []
    for lag_ms in (0, 500, 1000, 2000):
        for learned in ((False,) if lag_ms == 0 else (False, True)):
            for job_s in (2, 10, 30):
                cells += [Cell(lag_ms, job_s, stream, learned) for stream in (False, True)]
    return cells


def quick_matrix():
    """What ./dev test runs: each promise once, in less than a minute."""
    return [Cell(0, 2, False), Cell(0, 2, True), Cell(1000, 2, False),
            Cell(1000, 2, False, True), Cell(2000, 2, True), Cell(2000, 2, True, True)]


def main():
    parser = argparse.ArgumentParser(description="The burst, measured.")
    parser.add_argument("--quick", action="store_true", help="six cells of 2 s jobs")
    parser.add_argument("--seeds", type=int, default=0, help="default 5, quick 1")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=1,
                        help="fleets at once; they disturb each other on few cores")
    parser.add_argument("--slower", type=float, default=1, metavar="N",
                        help="allow N times the makespan: the machine is not ours alone")
    parser.add_argument("--json", metavar="FILE", help="write the raw values here")
    options = parser.parse_args()

    bench = Bench(options.jobs, quick_matrix() if options.quick else full_matrix(),
                  options.slower)
    count = options.seeds or (1 if options.quick else 5)
    seeds = range(options.first_seed, options.first_seed + count)
    bench.run_all(seeds, options.parallel, lambda text: print(text, file=sys.stderr))
    problems = bench.report()
    if options.json:
        Path(options.json).write_text(json.dumps(bench.as_json()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
