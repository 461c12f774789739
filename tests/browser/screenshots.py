#!/usr/bin/env python3
"""Pictures of every view, in the light, in the dark and on a narrow screen, of real programs at
work: Redis, the simulated provider, a scheduler, workers, and bursts of jobs.

usage: screenshots.py DIRECTORY [--readme DIRECTORY]
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

from browser import Browser, missing  # noqa: E402
from fleet import anthropic_body, long_text, wait_until  # noqa: E402
from stack import Stack  # noqa: E402

SECONDS = 75  # of work before the first picture: lines need a past
LIMITS = """    pace_start: 24
    class_limits:
      sonnet:
        rpm: 3000
        itpm: 40000000
"""
KNOBS = {"latency_ms": 120, "prefill_tokens_per_second": 6000, "job_ms": 900}
TALL = {"overview": 1330, "families": 860}  # those of the README: not all of the page
ROUTES = [("support/triage", 14000, 120), ("contracts/review", 30000, 60),
          ("translate-de", 9000, 90), ("reports/summary", 20000, 50)]


class Traffic(threading.Thread):
    """Bursts of the routes, again and again, over a connection of its own."""

    def __init__(self, stack):
        super().__init__(daemon=True)
        self.stack, self.redis, self.stop = stack, stack.connect(), threading.Event()
        self.lock = threading.Lock()  # one connection, two threads

    def add(self, route, system, count, upstream="main", **more):
        with self.lock:
            for n in range(count):
                self.redis("XADD", "warmq:jobs", "*", "upstream", upstream, "reply", "pictures",
                           "route", route, "body", anthropic_body(f"Question {n}", system, **more))

    def run(self):
        turn = 0
        while not self.stop.is_set():
            route, tokens, count = ROUTES[turn % len(ROUTES)]
            # A prompt with a date in it: each day is a new version.
            day = f"You answer for {route}. Today is 2026-11-{20 + turn // 9}. "
            self.add(route, day + long_text(tokens, f"{route} "), count)
            if turn % 3 == 0:  # the same prefix at a second account
                self.add(route, day + long_text(tokens, f"{route} "), count // 4, "backup")
            for n in range(4):
                self.add("ad-hoc", long_text(2500, f"{turn}-{n} "), 1)
            turn += 1
            self.stop.wait(5)


def prepare(stack):
    """A little of everything that can be seen."""
    stack.start_all(2, 16)
    traffic = Traffic(stack)
    traffic.start()
    time.sleep(20)
    for _ in range(4):  # which the provider refuses
        traffic.add("ad-hoc", "Hello", 1, max_tokens="many")
    time.sleep(SECONDS - 32)
    traffic.add("nightly/export", long_text(12000, "export "), 40)
    family = wait_until(lambda: stack.api("families?route=nightly/export")["families"],
                        "the family that is paused", 20)[0]
    stack.act(f"families/{family['id']}/pause")
    time.sleep(10)
    traffic.add("support/triage", long_text(16000, "You answer for support/triage. Be brief. "), 150)
    return traffic


def views(stack):
    family = stack.api("families?route=support/triage&sort=work")["families"][0]["id"]
    jobs = stack.api("jobs?state=dead&limit=1")["jobs"]
    found = [("overview", "overview"), ("week", "overview?range=week"), ("families", "families"), ("family", f"family/{family}"),
             ("routes", "routes"), ("route", "route/support%2Ftriage"), ("places", "places"),
             ("workers", "workers"), ("jobs", "jobs"), ("dead", "dead")]
    return found + [("job", f"job/{jobs[0]['id']}")] if jobs else found


def show_work(stack, traffic, look):
    """Two bursts, so that something is written and something drained in the next picture."""
    traffic.add("contracts/review", long_text(30000, f"You review contracts, {look}. "), 90)
    traffic.add("support/triage", long_text(16000, "You answer for support/triage. Be brief. "), 60)
    wait_until(lambda: stack.api("families?show=busy")["total"] >= 3, "work", 20)


def take(browser, stack, traffic, directory):
    for look, options in (("light", {}), ("dark", {"dark": True}),
                          ("narrow", {"width": 390, "height": 844})):
        browser.open(stack.url, **options)
        for name, hash in views(stack):
            browser.do("hash", hash=f"#/{hash}")
            browser.wait(f"location.hash === '#/{hash}' && document.querySelector('main h1') !== null "
                         "&& document.querySelector('main h1').innerText !== 'WarmQ' "
                         "&& document.querySelector('.badge.go') !== null", 20)
            width, height = options.get("width", 1280), options.get("height", TALL.get(name, 860))
            browser.do("size", width=width, height=height)
            if name == "families":
                show_work(stack, traffic, look)
            time.sleep(1.2)  # a second figure, and the charts
            path = directory / f"{name}-{look}.png"
            browser.do("shot", path=str(path), full=look != "narrow" and name not in TALL)
            print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--readme", type=Path, help="copy the two pictures of the README here")
    args = parser.parse_args()
    args.directory = args.directory.resolve()  # the browser has a folder of its own
    lacks = missing()
    if lacks:
        sys.exit(f"screenshots: {lacks}")
    args.directory.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="warmq-pictures-"))
    try:
        with Stack(folder, LIMITS, KNOBS, places=["backup"]) as stack:
            traffic = prepare(stack)
            browser = Browser()
            take(browser, stack, traffic, args.directory)
            errors = browser.do("errors")
            browser.close()
            traffic.stop.set()
            traffic.join()
        assert errors == [], json.dumps(errors)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if args.readme:
        args.readme.mkdir(parents=True, exist_ok=True)
        for name, to in (("overview-light", "overview"), ("families-dark", "families")):
            shutil.copy(args.directory / f"{name}.png", args.readme / f"{to}.png")


if __name__ == "__main__":
    main()
