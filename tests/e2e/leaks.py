#!/usr/bin/python3
"""leaks.py - many jobs over many prefixes, and then nothing: what is left of them.

    tests/e2e/leaks.py                                  20,000 jobs over 2,000 prefixes
    tests/e2e/leaks.py --jobs 1000000 --prefixes 100000
    tests/e2e/leaks.py --soak 30m --plot docs/soak.svg  a steady load, and a picture of it

A tenth of the jobs go first, and one for each prefix; what stands then is the baseline.
Behind the rest and an idle hour (whose clock is turned forward in `unused`) there are the
same keys, the same open files and about the same memory.  Jobs end as done, by the executor
that does nothing, so that their number is limited by the queue alone; each result is
counted."""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from fleet import Fleet, end_whole_on_signals, wait_until

CHUNK = 200
OUTSTANDING = 4000
SLACK_BYTES = 8 << 20  # of a process; allocators keep what they once had
SLACK_REDIS = 3 << 20
HOUR_MS = 3600000
PROCESSES = ("scheduler", "worker")
# All functions share a heap: what is garbage in it depends on the moment, and is no leak.
COLLECT = """#!lua name=leaks
redis.register_function('leaks_collect', function()
	collectgarbage()
	return collectgarbage('count')
end)
"""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def resident_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


class Leaks:
    def __init__(self, directory, jobs, prefixes, say=lambda text: None, families_max=None):
        self.fleet = Fleet(directory, "    pace_start: 20000",
                           f"  families_max: {families_max}" if families_max else "")
        self.jobs, self.prefixes, self.say = jobs, prefixes, say
        self.random = random.Random(1)
        self.added = self.done = 0
        self.broken = []

    def start(self):
        self.fleet.start_scheduler()
        self.fleet.await_ruler()
        self.fleet.warmq("hold", "off")
        self.fleet.start_worker("worker", 200, "--executor", "null")
        self.fleet.await_workers(1)
        self.fleet.redis("FUNCTION", "LOAD", COLLECT)

    def body(self):
        prefix = self.added  # each of them once, first
        if prefix >= self.prefixes:
            prefix = self.random.randrange(self.prefixes)
        system = f"Rule {prefix}. " + "Be brief and name the paragraph. " * 40
        return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "system": system,
                           "messages": [{"role": "user", "content": f"Why {self.added}?"}]})

    def add(self, count):
        for _ in range(count):
            self.fleet.redis.send("XADD", "warmq:jobs", "*", "upstream", "main", "reply",
                                  "leaks", "body", self.body())
            self.added += 1
        for _ in range(count):
            answer = self.fleet.redis.read()
            assert isinstance(answer, bytes), answer

    def take(self):
        while True:
            popped = self.fleet.redis("LPOP", "warmq:reply:leaks", 1000) or []
            self.done += len(popped)
            if len(popped) < 1000:
                return

    def spent(self):
        """Seconds of CPU that all of them have had."""
        return sum(cpu_seconds(process.pid) for process in self.fleet.processes.values())

    def check_progress(self, progress, spent):
        """On a machine that does other things a minute may be worth nothing: it counts as a
        standstill if they had time to work and did not, or if one of them is gone."""
        waited = time.monotonic() - progress
        for name, process in self.fleet.processes.items():
            assert process.poll() is None, f"{name} has ended:\n{self.fleet.log(name)[-2000:]}"
        assert waited < 60 or (waited < 600 and self.spent() - spent < 2), \
            f"no end for {waited:.0f} s and {self.spent() - spent:.1f} s of CPU, " \
            f"{self.added - self.done} wait"

    def run_jobs(self, count):
        goal, said = self.added + count, time.monotonic()
        last, progress, spent = self.done, time.monotonic(), self.spent()
        while self.done < goal:
            if self.added < goal and self.added - self.done < OUTSTANDING:
                self.add(min(CHUNK, goal - self.added))
            else:
                time.sleep(0.01)
            self.take()
            now = time.monotonic()
            if self.done > last:
                last, progress, spent = self.done, now, self.spent()
            self.check_progress(progress, spent)
            if now - said > 20:
                said = now
                self.say(f"{self.done:,} jobs are done")
        assert self.done == goal, f"{self.done} results of {goal} jobs"

    def audit(self):
        cursor = "1:0"
        while cursor:
            owner = self.fleet.redis("HGET", "warmq:meta", "owner")
            answer = self.fleet.redis("FCALL", "warmq_audit", 1, "warmq:meta", 1, owner, cursor)
            assert answer[0] == b"OK" and answer[3:] == [], answer
            cursor = answer[2]

    def turn_clock(self):
        """Whatever is unused has been so for an hour."""
        while True:
            rows = self.fleet.redis("ZRANGEBYSCORE", "warmq:unused", HOUR_MS, "+inf", "LIMIT",
                                    0, 1000)
            if not rows:
                return
            # XX: the scheduler's own audit may have forgotten one meanwhile.
            self.fleet.redis("ZADD", "warmq:unused", "XX", *[word for row in rows
                                                             for word in (1, row)])

    def idle(self):
        """Until no prefix is known any more; children go before their parents."""
        for _ in range(10):
            self.audit()
            self.turn_clock()
            if not self.fleet.redis("EXISTS", "warmq:families", "warmq:lanes"):
                break
        self.fleet.redis("XTRIM", "warmq:events", "MAXLEN", 0)

    def state(self):
        redis = self.fleet.redis
        redis("MEMORY", "PURGE")
        redis("FCALL", "leaks_collect", 0)
        info = dict(row.split(":", 1) for row in redis("INFO", "memory").decode().split("\r\n")
                    if ":" in row)
        processes = {name: self.fleet.processes[name].pid for name in PROCESSES}
        # The ledger has a key for each hour of a week, `ends` what the last beat saw run.
        keys = {key.decode() for key in redis("KEYS", "*")}
        return {"keys": sorted(key for key in keys
                               if not key.startswith(("warmq:ledger", "warmq:drift", "warmq:ends"))),
                "redis": int(info["used_memory"]) + int(info.get("used_memory_vm_total", 0)),
                "memory": {name: resident_bytes(pid) for name, pid in processes.items()},
                "files": {name: len(list(Path(f"/proc/{pid}/fd").iterdir()))
                          for name, pid in processes.items()}}

    def compare(self, before, after):
        def want(is_fine, text):
            self.say(("   " if is_fine else "   LEAK ") + text)
            if not is_fine:
                self.broken.append(text)

        more = set(after["keys"]) - set(before["keys"])
        want(not more, f"{len(after['keys'])} keys after {len(before['keys'])} before" +
             (f": {sorted(more)[:10]}" if more else ""))
        want(after["redis"] <= before["redis"] + SLACK_REDIS,
             f"Redis: {before['redis'] / 1e6:.1f} MB before, {after['redis'] / 1e6:.1f} after")
        for name in PROCESSES:
            was, now = before["memory"][name], after["memory"][name]
            want(now <= was + SLACK_BYTES,
                 f"{name}: {was / 1e6:.1f} MB before, {now / 1e6:.1f} after")
            want(after["files"][name] <= before["files"][name],
                 f"{name}: {before['files'][name]} open files before, "
                 f"{after['files'][name]} after")

    def await_files(self, goal):
        """Connections close in their own time."""
        end = time.monotonic() + 20
        while self.state()["files"] != goal and time.monotonic() < end:
            time.sleep(0.2)

    def run(self):
        with self.fleet:
            self.start()
            self.run_jobs(max(self.jobs // 10, min(self.jobs, self.prefixes)))
            self.idle()
            before = self.state()
            started = time.monotonic()
            self.run_jobs(self.jobs)
            took = time.monotonic() - started
            self.idle()
            self.await_files(before["files"])
            self.say(f"{self.jobs:,} jobs over {self.prefixes:,} prefixes in {took:.0f} s")
            self.compare(before, self.state())
        return self.broken

    # ---- a steady load ----

    def soak(self, seconds, per_second=100):
        """Samples of (second, {name: bytes})."""
        samples = []
        with self.fleet:
            self.start()
            self.run_jobs(2 * self.prefixes)  # all prefixes are known
            started = time.monotonic()
            first = self.added
            while True:
                now = time.monotonic() - started
                if not samples or now >= samples[-1][0] + seconds / 300:
                    state = self.state()
                    samples.append((now, {**state["memory"], "Redis": state["redis"]}))
                if now >= seconds and len(samples) > 8:
                    break
                # A machine that is too slow for it gets what it can do, and no backlog.
                late = min(int(now * per_second) - (self.added - first),
                           2 * per_second - (self.added - self.done))
                if late > 0:
                    self.add(min(late, CHUNK))
                self.take()
                time.sleep(0.02)
            wait_until(lambda: self.take() or self.done == self.added, "the last results", 60)
            self.judge_soak(samples)
        self.say(f"{self.added - first:,} jobs in {seconds / 60:.0f} minutes")
        return samples

    def judge_soak(self, samples):
        """The last quarter needs no more than the second one did."""
        quarter = len(samples) // 4
        for name in samples[0][1]:
            early = max(values[name] for _, values in samples[quarter:2 * quarter])
            late = max(values[name] for _, values in samples[-quarter:])
            text = f"{name}: at most {early / 1e6:.1f} MB in the second quarter, " \
                   f"{late / 1e6:.1f} in the last"
            self.say("   " + text)
            if late > early + SLACK_REDIS:
                self.broken.append(text)


# ---- a picture ----

COLOURS = {"Redis": "#b5482c", "scheduler": "#2c5fb5", "worker": "#3a8a4d"}
WIDTH, HEIGHT, EDGE = 720, 300, 50


def plot(samples, path, title):
    """An SVG that needs nobody to read it: text, lines, no script."""
    seconds = samples[-1][0]
    most = max(max(values.values()) for _, values in samples) * 1.15

    def at(second, value):
        return (EDGE + second / seconds * (WIDTH - 2 * EDGE),
                HEIGHT - EDGE - value / most * (HEIGHT - 2 * EDGE))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="{EDGE}" y="24" font-size="14">{title}</text>']
    for part in range(5):
        x, y = at(seconds, most * part / 4)
        out.append(f'<line x1="{EDGE}" x2="{x:.0f}" y1="{y:.0f}" y2="{y:.0f}" '
                   'stroke="#ddd"/>')
        out.append(f'<text x="{EDGE - 6}" y="{y + 4:.0f}" text-anchor="end">'
                   f'{most * part / 4e6:.0f}</text>')
        x, _ = at(seconds * part / 4, 0)
        out.append(f'<text x="{x:.0f}" y="{HEIGHT - EDGE + 18}" text-anchor="middle">'
                   f"{seconds * part / 240:.3g} min</text>")
    out.append(f'<text x="{EDGE - 6}" y="40" text-anchor="end">MB</text>')
    for name in samples[0][1]:
        line = " ".join("{:.1f},{:.1f}".format(*at(second, values[name]))
                        for second, values in samples)
        x, y = at(seconds, samples[-1][1][name])
        out.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[name]}" '
                   'stroke-width="1.5"/>')
        out.append(f'<text x="{x - 4:.0f}" y="{y - 6:.0f}" text-anchor="end" '
                   f'fill="{COLOURS[name]}">{name}</text>')
    out.append("</svg>")
    Path(path).write_text("\n".join(out) + "\n", encoding="utf-8")


def seconds_of(text):
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--prefixes", type=int, default=2000)
    parser.add_argument("--families-max", type=int, help="what the scheduler may remember")
    parser.add_argument("--soak", help="so long (30m) at a steady load instead")
    parser.add_argument("--rate", type=int, default=100, help="jobs a second of a soak")
    parser.add_argument("--plot", help="write the soak's memory into this SVG file")
    args = parser.parse_args()
    end_whole_on_signals()
    with tempfile.TemporaryDirectory(prefix="leaks-") as directory:
        leaks = Leaks(directory, args.jobs, args.prefixes,
                      lambda text: print(text, flush=True), args.families_max)
        if args.soak:
            samples = leaks.soak(seconds_of(args.soak), args.rate)
            if args.plot:
                plot(samples, args.plot, f"{args.rate} jobs a second over {args.prefixes:,} "
                     f"prefixes: memory")
        else:
            leaks.run()
    return 1 if leaks.broken else 0


if __name__ == "__main__":
    sys.exit(main())
