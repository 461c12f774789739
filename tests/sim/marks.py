#!/usr/bin/env python3
"""marks.py - which rare branches a stretch of seeds has passed (common/mark.h).

    marks.py [--from S] [--seeds N] [--jobs N] [--sim PROGRAM]

Prints each mark with how often it was passed, and in how many pieces of 50 seeds.  Exits
with 1 if one stayed dark, or a seed broke a promise.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PIECE = 50  # seeds


def play(program, first, count):
    """Answers the marks of these seeds, and what went wrong."""
    run = subprocess.run([program, "--quiet", "--marks", "--from", str(first), "--seeds",
                          str(count)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return [], run.stderr.strip() or f"seeds from {first} on fail without a word"
    found = re.findall(r"^mark (\w+) (\S+) (\d+)$", run.stdout, re.M)
    return [(name, os.path.basename(file), int(times)) for name, file, times in found], None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--seeds", type=int, default=10000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--sim", default=os.path.join(ROOT, "build/tests/sim/warmq-sim-marks"))
    options = parser.parse_args()
    end = options.first + options.seeds
    pieces = [(first, min(PIECE, end - first)) for first in range(options.first, end, PIECE)]
    times, where, broken = collections.Counter(), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for marks, problem in pool.map(lambda piece: play(options.sim, *piece), pieces):
            for name, file, count in marks:
                times[name, file] += count
                where[name, file] += count > 0
            if problem:
                broken += 1
                print(problem, flush=True)
    print(f"{'mark':42} {'file':18} {'times':>9}  in pieces of {len(pieces)}")
    for name, file in sorted(times, key=lambda key: (-times[key], key)):
        print(f"{name:42} {file:18} {times[name, file]:9}  {where[name, file]:5}")
    dark = sorted(name for name, file in times if times[name, file] == 0)
    for name in dark:
        print(f"dark: {name}")
    print(f"cases: {len(times) - len(dark)} passed, {len(dark) + broken} failed")
    return 1 if dark or broken or not times else 0


if __name__ == "__main__":
    sys.exit(main())
