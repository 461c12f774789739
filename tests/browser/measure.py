#!/usr/bin/env python3
"""What the page costs with many families: time to its first figures, and what an open page
takes from the scheduler and from Redis.

usage: measure.py [FAMILIES] [--against SCHEDULER]

With another build of the scheduler the two are measured in turns over the same families,
first figures only: what the machine does meanwhile, it does to both.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from browser import Browser, missing  # noqa: E402
from fleet import anthropic_body, long_text, wait_until  # noqa: E402
from stack import Stack  # noqa: E402

SECONDS = 15


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands(stack):
    text = stack.redis("INFO", "stats").decode()
    return int(next(line for line in text.splitlines()
                    if line.startswith("total_commands_processed:")).split(":")[1])


def cost(stack, label):
    """Commands: of the median second, since an audit of all families, page or not, is one of
    tens of thousands."""
    pid = stack.processes["scheduler"].pid
    began, cpu, seconds = time.monotonic(), cpu_seconds(pid), []
    while len(seconds) < SECONDS:
        at, done = time.monotonic(), commands(stack)
        time.sleep(1)
        seconds.append((commands(stack) - done) / (time.monotonic() - at))
    cpu = (cpu_seconds(pid) - cpu) / (time.monotonic() - began) * 100
    print(f"{label:32} {cpu:6.1f} % of a core {statistics.median(seconds):8.1f} commands/s",
          flush=True)


def fill(stack, families):
    """Two jobs of each: their prefix is shared, and nobody works."""
    padding = long_text(300, "policy ")
    for start in range(0, families, 500):
        stack.enqueue([anthropic_body(f"Question {n}", f"Version {number}. {padding}")
                       for number in range(start, min(start + 500, families)) for n in range(2)],
                      route="many")
    wait_until(lambda: stack.api("overview")["counts"]["families"] >= families, "families", 180)
    wait_until(lambda: stack.api("overview")["inbox_lag_ms"] == 0, "an empty inbox", 60)
    time.sleep(3)


VIEWS = ("#/families", "#/overview", "#/families", "#/overview", "#/families")


def first(browser, stack, hash):
    """First paint and first data of a fresh page, in ms."""
    browser.open(stack.url + hash)
    browser.wait("performance.getEntriesByName('warmq-data').length > 0 && "
                 "performance.getEntriesByName('first-contentful-paint').length > 0")
    return (browser.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
            browser.eval("performance.getEntriesByName('warmq-data')[0].startTime"))


def in_turns(stack, other):
    """Both builds, six times each; every time a scheduler that has just read its memory."""
    seen = {}
    browser = Browser()
    for turn in range(12):
        name = "this build" if turn % 2 == 0 else "the other"
        if "scheduler" in stack.processes:
            stack.end("scheduler")
        stack.program = None if turn % 2 == 0 else other
        stack.start_scheduler()
        wait_until(lambda: stack.api("overview")["counts"]["families"] > 0 and
                   stack.api("overview")["phase"] == "ruling", "its memory", 60)
        time.sleep(2)
        for hash in VIEWS:
            seen.setdefault((name, hash), []).append(first(browser, stack, hash))
    browser.close()
    for (name, hash), times in sorted(seen.items()):
        paint, data = zip(*times)
        print(f"{name:12} {hash:12} first paint {statistics.median(paint):6.0f} ms, first data "
              f"{statistics.median(data):6.0f} ms (median of {len(times)}; {min(data):.0f} to "
              f"{max(data):.0f}), load {os.getloadavg()[0]:.1f}", flush=True)


def alone(stack):
    print(f"one look at all of them takes {stack.api('overview')['taken_us'] / 1000:.1f} ms",
          flush=True)
    time.sleep(12)  # until nobody looks any more
    cost(stack, "no page is open")
    browser = Browser()
    for hash in VIEWS:
        paint, data = first(browser, stack, hash)
        print(f"{hash:32} first paint {paint:6.0f} ms, first data {data:6.0f} ms", flush=True)
    cost(stack, "one page, families")
    others = [Browser() for _ in range(4)]
    for other in others:
        other.open(stack.url + "#/families?sort=waiting")
    time.sleep(2)
    cost(stack, "five pages, families")
    for other in [browser, *others]:
        other.close()


class Measured(Stack):
    program = None

    def start(self, name, *words):
        if name == "scheduler" and self.program:
            words = (self.program, *words[1:])
        return super().start(name, *words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("families", type=int, nargs="?", default=10000)
    parser.add_argument("--against", type=Path, help="another build's warmq-scheduler")
    args = parser.parse_args()
    lacks = missing()
    if lacks:
        sys.exit(f"measure: {lacks}")
    folder = Path(tempfile.mkdtemp(prefix="warmq-measure-"))
    try:
        with Measured(folder) as stack:
            stack.start_scheduler()
            stack.await_ruler()
            fill(stack, args.families)
            print(f"{args.families} families", flush=True)
            if args.against:
                in_turns(stack, args.against.resolve())
            else:
                alone(stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
