#!/usr/bin/env python3
"""mutants.py - break the code on purpose; something must notice each time.

    mutants.py [--seeds N] [--only PATTERN] [--list]

Keeps a copy of the tree in build/mutants and builds there: so each mutant costs one or two
compilations.  A mutant of mutants.txt is killed by the first seed of the simulator that
breaks a promise, or by the test that it names.  Seeds that fail without any mutant prove
nothing: they are left out, by name.  A mutant that survives, does not compile, or whose
text is no longer there exactly once, makes the exit status 1.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TREE = os.path.join(ROOT, "build", "mutants", "tree")
BUILD = os.path.join(ROOT, "build", "mutants", "build")
SIM = "tests/sim/warmq-sim"
FIRST = 1  # seed
RUN_SECONDS = 180  # longer is a loop without end

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import mutant_list  # noqa: E402


# ---- the copy ----------------------------------------------------------------------


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def tracked():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, check=True)
    names = filter(None, listed.stdout.decode().split("\0"))
    return {name for name in names if os.path.isfile(os.path.join(ROOT, name))}


def copy_tree():
    """Only what differs is written: the rest need not be built again."""
    names = tracked()
    for name in names:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        data = content(source)
        if content(target) != data:
            write(target, data)
        os.chmod(target, os.stat(source).st_mode)
    for folder, _, files in os.walk(TREE):
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in names:
                os.unlink(path)


def configure():
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        made = subprocess.run(["meson", "setup", BUILD, TREE, "-Dtests=enabled",
                               "-Doptimization=1", "-Ddebug=false"],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            sys.exit(made.stdout + made.stderr)


def build(target):
    """Answers what the compiler says if it fails."""
    made = subprocess.run(["ninja", "-C", BUILD, target], capture_output=True, text=True,
                          check=False)
    return made.stdout if made.returncode != 0 else None


# ---- the simulator -----------------------------------------------------------------


def stretches(seeds, known):
    """Runs of seeds without the known ones: first, how many."""
    first = None
    for seed in range(FIRST, FIRST + seeds + 1):
        wanted = seed < FIRST + seeds and seed not in known
        if wanted and first is None:
            first = seed
        if not wanted and first is not None:
            yield first, seed - first
            first = None


def play_stretch(first, count):
    """Answers None if every promise was kept, else what was broken."""
    try:
        run = subprocess.run([os.path.join(BUILD, SIM), "--quiet", "--from", str(first),
                              "--seeds", str(count)], capture_output=True, text=True,
                             timeout=RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"seeds {first} to {first + count - 1} do not end"
    if run.returncode == 0:
        return None
    said = run.stderr.strip() or f"seed {first} or later: it fails without a word"
    return said.splitlines()[0]


def play(seeds, known):
    for first, count in stretches(seeds, known):
        what = play_stretch(first, count)
        if what:
            return what
    return None


def known_failures(seeds):
    """The seeds that fail on the tree as it is."""
    known = set()
    while True:
        what = play(seeds, known)
        if what is None:
            return known
        found = re.search(r"seed (\d+)", what)
        if not found:
            sys.exit(f"the tree itself fails: {what}")
        known.add(int(found.group(1)))
        print(f"open without any mutant, left out: {what}", flush=True)


# ---- other tests -------------------------------------------------------------------


def test_command(name):
    """The program of a meson test, and its arguments."""
    listed = subprocess.run(["meson", "introspect", "--tests", BUILD], capture_output=True,
                            check=True).stdout
    for test in json.loads(listed):
        if test["name"] == name:
            return test["cmd"], dict(os.environ, **test["env"])
    sys.exit(f"there is no test {name}")


def run_test(name):
    """As play(), for one test of meson."""
    command, environment = test_command(name)
    target = os.path.relpath(command[0], BUILD)
    if not target.startswith(".."):
        said = build(target)
        if said:
            return f"{name} does not compile"
    try:
        run = subprocess.run(command, cwd=TREE, env=environment, capture_output=True,
                             text=True, timeout=RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{name} does not end"
    if run.returncode == 0:
        return None
    lines = [line for line in (run.stdout + run.stderr).splitlines()
             if re.search(r":[FE]:|not ok|broken invariant|Assert", line)]
    return f"test {name}: {re.sub('^.*/', '', lines[0]) if lines else 'it fails'}"


# ---- mutants -----------------------------------------------------------------------


def look(mutant, seeds, known):
    """Answers how the mutant was killed, or None."""
    if mutant.by:
        return run_test(mutant.by)
    said = build(SIM)
    if said:
        errors = [line for line in said.splitlines() if "error" in line]
        sys.exit(f"{mutant.name}: does not compile: {errors[0] if errors else said[-300:]}")
    for seed in mutant.seeds:
        what = play_stretch(seed, 1)
        if what:
            return what
    return play(seeds, known)


def try_mutant(mutant, seeds, known):
    """Answers whether it was killed, and how."""
    path = os.path.join(TREE, mutant.file)
    text = content(path) or b""
    broken, problem = mutant.apply(text.decode())
    if problem:
        return False, problem
    write(path, broken.encode())
    try:
        how = look(mutant, seeds, known)
    finally:
        write(path, text)
    return how is not None, how or (f"{mutant.by} passes" if mutant.by else
                                    "all promises kept")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=120)
    parser.add_argument("--only", default="", help="mutants whose name has this pattern")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = [mutant for mutant in mutant_list.read(os.path.join(HERE, "mutants.txt"))
               if re.search(options.only, mutant.name)]
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    copy_tree()
    configure()
    said = build(SIM)
    if said:
        sys.exit(said)
    known = known_failures(options.seeds)
    survived = []
    for number, mutant in enumerate(mutants, 1):
        began = time.monotonic()
        killed, how = try_mutant(mutant, options.seeds, known)
        if not killed:
            survived.append(mutant.name)
        print(f"{number:2}/{len(mutants)} {'killed  ' if killed else 'SURVIVED'}  {mutant.name}\n"
              f"      {how} ({time.monotonic() - began:.0f} s)", flush=True)
    for name in survived:
        print(f"survived: {name}")
    print(f"{len(mutants) - len(survived)} killed, {len(survived)} survived")
    return 1 if survived or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
