#!/usr/bin/env python3
"""nightly.py - hunts seeds of the simulator, goes on after failures, and can be resumed.

    nightly.py [--from S] [--seeds N] [--jobs N] [--minutes N] [--unheld] [--sim PROGRAM]
    nightly.py --marks ...        with warmq-sim-marks: also, which marks were passed

The seeds that failed before go first.  The program is copied to build/nightly/NAME, where
NAME says which program it is: a rebuild does not disturb a hunt, and the same program takes
up its hunt where it was stopped.  There `done` lists the pieces that were played, `failed` the seeds that broke a promise, and in
which words, `marks` how often each mark of common/mark.h was passed.  Exits with 1 if any
seed has failed, this time or before, or if all were played and a mark stayed dark.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PIECE = 50  # seeds
SEED_SECONDS = 600  # longer is a loop without end


class Hunt:
    """What was played of one program, in files that only grow."""

    def __init__(self, program, options):
        with open(program, "rb") as file:
            name = hashlib.sha256(file.read()).hexdigest()[:12]
        self.folder = os.path.join(ROOT, "build", "nightly",
                                   name + ("-unheld" if options.unheld else ""))
        os.makedirs(self.folder, exist_ok=True)
        self.program = os.path.join(self.folder, "warmq-sim")
        if not os.path.exists(self.program):
            shutil.copy2(program, self.program + ".new")
            os.rename(self.program + ".new", self.program)
        self.first = options.first
        self.words = ["--unheld"] * options.unheld + ["--marks"] * options.marks
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.played = self.read("done", r"(\d+) (\d+)")
        self.failed = {seed: what for seed, what in self.read("failed", r"(\d+) (.*)")}
        self.running = set()

    def read(self, name, pattern):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as lines:
            found = [re.match(pattern, line) for line in lines]
        return [tuple(int(word) if word.isdigit() else word for word in match.groups())
                for match in found if match]

    def note(self, name, line):
        with self.lock, open(os.path.join(self.folder, name), "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def left(self, first, last):
        """The seeds from first to last that were never played, in pieces."""
        seed = first
        for start, end in sorted(self.played) + [(last + 1, last + 1)]:
            while seed < min(start, last + 1):
                stop = min(seed + PIECE - 1, start - 1, last)
                yield seed, stop
                seed = stop + 1
            seed = max(seed, end + 1)

    def run(self, first, last):
        """Plays until a seed fails.  Answers that seed and its words, or (None, None)."""
        command = [self.program, "--from", str(first), "--seeds", str(last - first + 1)]
        if first == self.first:
            command += ["--first", os.path.join(HERE, "seeds.txt")]
        with self.lock:
            if self.stop.is_set():
                return None, "stopped"
            process = subprocess.Popen(command + self.words, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.running.add(process)
        try:
            out, err = process.communicate(timeout=SEED_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err = f"no end after {SEED_SECONDS} s"
        with self.lock:
            self.running.discard(process)
            if self.stop.is_set() and process.returncode < 0:
                return None, "stopped"
        if process.returncode == 0:
            for mark in re.findall(r"^mark (.*)$", out, re.M):
                self.note("marks", mark)
            return None, None
        seeds = [int(seed) for seed in re.findall(r"^seed (\d+) \w+ ok", out, re.M)]
        words = err.strip().splitlines() or [f"exit status {process.returncode}"]
        named = re.search(r"\bseed (\d+)\b", words[0])
        return int(named.group(1)) if named else max(seeds, default=first - 1) + 1, words[0]

    def play(self, piece):
        first, last = piece
        while first <= last:
            seed, words = self.run(first, last)
            if words == "stopped":
                return
            if seed is None:
                break
            self.failed[seed] = words
            self.note("failed", f"{seed} {words}")
            print(f"seed {seed} fails: {words}", flush=True)
            if not first <= seed <= last:
                self.first = None  # one that failed before; now those after it
                continue
            if seed > first:
                self.note("done", f"{first} {seed}")
            first = seed + 1
        self.note("done", f"{piece[0]} {last}")
        self.played.append((piece[0], last))

    def marks(self):
        """How often each was passed, and in how many pieces."""
        times, pieces = collections.Counter(), collections.Counter()
        for name, file, count in self.read("marks", r"(\w+) (\S+) (\d+)"):
            times[name, os.path.basename(file)] += count
            pieces[name, os.path.basename(file)] += count > 0
        return times, pieces

    def end(self):
        with self.lock:
            self.stop.set()
            for process in self.running:
                process.terminate()


def report_marks(hunt):
    """Answers how many stayed dark."""
    times, pieces = hunt.marks()
    for name, file in sorted(times, key=lambda key: (-times[key], key)):
        print(f"{name:42} {file:18} {times[name, file]:9} times in {pieces[name, file]} pieces")
    dark = sorted(name for name, file in times if times[name, file] == 0)
    for name in dark:
        print(f"dark: {name}")
    return len(dark) if times else 1


def report(hunt, options, last):
    """Answers how many seeds are left."""
    left = sum(end - start + 1 for start, end in hunt.left(options.first, last))
    unheld = " --unheld" if options.unheld else ""
    for seed in sorted(hunt.failed):
        print(f"seed {seed}: {hunt.failed[seed]}\n"
              f"    ./dev sim{unheld} --seed {seed} --trace")
    print(f"{options.seeds - left} of {options.seeds} seeds from {options.first} on were "
          f"played{unheld}; {len(hunt.failed)} failed; see {os.path.relpath(hunt.folder)}")
    if left:
        print("the same command goes on with the others")
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--seeds", type=int, help="a million; with --marks ten thousand")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long")
    parser.add_argument("--unheld", action="store_true")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--sim")
    options = parser.parse_args()
    options.seeds = options.seeds or (10000 if options.marks else 1000000)
    if not options.sim:
        name = "warmq-sim-marks" if options.marks else "warmq-sim"
        options.sim = os.path.join(ROOT, "build/tests/sim", name)
    hunt = Hunt(options.sim, options)
    last = options.first + options.seeds - 1
    until = time.monotonic() + options.minutes * 60 if options.minutes else None
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: hunt.end())
    pieces = list(hunt.left(options.first, last))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def play(piece):
            if not hunt.stop.is_set() and (until is None or time.monotonic() < until):
                hunt.play(piece)
        for number, _ in enumerate(pool.map(play, pieces), 1):
            if number % 200 == 0:
                print(f"{number} of {len(pieces)} pieces", flush=True)
    dark = report_marks(hunt) if options.marks else 0
    left = report(hunt, options, last)
    return 1 if hunt.failed or (dark and not left) else 0


if __name__ == "__main__":
    sys.exit(main())
