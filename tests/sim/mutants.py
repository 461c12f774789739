#!/usr/bin/env python3
"""mutants.py - break the code on purpose; the simulator must notice each time.

    mutants.py [--seeds N] [--only WORDS] [--list]

Copies the tree, builds warmq-sim once, then applies one mutant of mutants.txt after the
other, builds, plays N seeds (300) and expects a failure.  A mutant that survives, or whose
text is no longer there, makes the exit status 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FROM = 1  # the first seed
ROOT = os.path.dirname(os.path.dirname(HERE))


class Mutant:
    def __init__(self, name):
        self.name = name
        self.file = None
        self.old = []
        self.new = []


def read_mutants(path):
    mutants = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("== "):
                mutants.append(Mutant(line[3:]))
            elif not line or line.startswith("#"):
                continue
            elif line.startswith("- "):
                mutants[-1].old.append(line[2:])
            elif line.startswith("+ "):
                mutants[-1].new.append(line[2:])
            else:
                mutants[-1].file = line
    return mutants


def copy_tree(target):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True,
                            check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        source = os.path.join(ROOT, name)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
        shutil.copy2(source, os.path.join(target, name))


def build(target):
    return subprocess.run(["ninja", "-C", os.path.join(target, "build"),
                           "tests/sim/warmq-sim"], capture_output=True, text=True,
                          check=False)


def play(target, seeds, known):
    """Answers None if every promise was kept, else what was broken.  Seeds that fail
    without any mutant prove nothing: they are in `known`, and left out."""
    program = os.path.join(target, "build", "tests", "sim", "warmq-sim")
    first, end = FROM, FROM + seeds
    while first < end:
        skip = min((seed for seed in known if seed >= first), default=end)
        if skip == first:
            first += 1
            continue
        try:
            run = subprocess.run([program, "--quiet", "--from", str(first), "--seeds",
                                  str(min(skip, end) - first)],
                                 capture_output=True, text=True, timeout=900, check=False)
        except subprocess.TimeoutExpired:
            return "the run does not end"
        if run.returncode != 0:
            return (run.stderr.strip() or "it failed without a word").splitlines()[0]
        first = min(skip, end)
    return None


def known_failures(target, seeds):
    """The seeds that fail on the tree as it is."""
    known = set()
    while True:
        what = play(target, seeds, known)
        if what is None:
            return known
        found = re.search(r"seed (\d+)", what)
        if not found:
            sys.exit(f"the tree itself fails: {what}")
        known.add(int(found.group(1)))
        print(f"open without any mutant, left out: {what}", flush=True)


def try_mutant(target, mutant, seeds, known):
    path = os.path.join(target, mutant.file)
    old, new = "\n".join(mutant.old), "\n".join(mutant.new)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        return False, f"its text stands {text.count(old)} times in {mutant.file}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    try:
        made = build(target)
        if made.returncode != 0:
            return False, "it does not compile"
        broken = play(target, seeds, known)
        return broken is not None, broken or "it survived"
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = [mutant for mutant in read_mutants(os.path.join(HERE, "mutants.txt"))
               if options.only in mutant.name]
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="warmq-mutants-") as target:
        copy_tree(target)
        subprocess.run(["meson", "setup", os.path.join(target, "build"), target],
                       capture_output=True, check=True)
        made = build(target)
        if made.returncode != 0:
            print(made.stdout)
            return 1
        known = known_failures(target, options.seeds)
        for mutant in mutants:
            began = time.monotonic()
            caught, what = try_mutant(target, mutant, options.seeds, known)
            failed += not caught
            print(f"{'caught' if caught else 'NOT CAUGHT'}  {mutant.name}: {what} "
                  f"({time.monotonic() - began:.0f} s)", flush=True)
    print(f"cases: {len(mutants) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
