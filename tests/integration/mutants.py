#!/usr/bin/env python3
"""mutants.py - take a rule of the store out; the tests of that rule must fail.

    mutants.py [--only WORDS] [--list] [--jobs N]

Each mutant of mutants.txt is applied to the text of the function library, in memory, and
the test that it names is run against the library as it is then: nothing is compiled but
tests/sim/small_scope, which some name.  A mutant that survives, does not load, or whose text does not stand there exactly once, makes
the exit status 1.  The same tests are run once without any mutant, and must pass.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FUNCTIONS = os.path.join(ROOT, "scheduler", "functions")
SCOPE_NAME = "small_scope"  # the test, and where its program is built
SCOPE = f"tests/sim/{SCOPE_NAME}"
RUN_SECONDS = 300  # longer is a loop without end, on a busy machine, too
DOES_NOT_LOAD = re.compile(r"Error (compiling|registering|loading)|Function .* already exists")

sys.path.insert(0, FUNCTIONS)
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import embed  # noqa: E402
import mutant_list  # noqa: E402
import store  # noqa: E402


def rules_of(mutant):
    """The numbers of DATAPATH it is about: what its name begins with."""
    return re.findall(r"^\d+(?: r\d+)?", mutant.name)


def library_of(mutant):
    """The library with this mutant, or what is wrong with it."""
    texts = {}
    for path in store.library_files():
        with open(path, encoding="utf-8") as source:
            texts[os.path.relpath(path, ROOT)] = source.read()
    texts[mutant.file], problem = mutant.apply(texts[mutant.file])
    if problem:
        return None, problem
    return embed.join_texts(texts.values(), "mutant")[0], None


def run_scope(library=None):
    program = os.path.join(store.ROOT, "build", SCOPE)
    return subprocess.run([program, "--length", "5", *(["--library", library] if library else [])],
                          capture_output=True, text=True, timeout=RUN_SECONDS, check=False)


def run(tests, library=None):
    """Exit status and words of a run of these tests over that library."""
    if tests == [SCOPE_NAME]:
        got = run_scope(library)
        return got.returncode, got.stderr + got.stdout
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if library:
        environment["WARMQ_LIBRARY"] = library
    try:
        got = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=HERE, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS,
            check=False)
    except subprocess.TimeoutExpired:
        return 1, "the run does not end"
    return got.returncode, got.stdout + got.stderr


def verdict(status, words):
    if DOES_NOT_LOAD.search(words):
        return False, "the library does not load"
    if status == 0:
        return False, "it survived"
    if status != 1:
        return False, f"its test cannot be run: {words.strip().splitlines()[-1]}"
    if status == 1 and "worlds" in words:
        return True, words.strip().splitlines()[0]
    said = re.findall(r"^E +(.+)$", words, re.M) or words.strip().splitlines()
    return True, said[0][:100]


def try_mutant(mutant):
    began = time.monotonic()
    library, problem = library_of(mutant)
    if problem:
        return mutant, False, problem, 0
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as file:
        file.write(library)
        file.flush()
        caught, what = verdict(*run([mutant.by], file.name))
    return mutant, caught, what, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    mutants = [mutant for mutant in mutant_list.read(os.path.join(HERE, "mutants.txt"))
               if options.only in mutant.name]
    if options.list:
        print("\n".join(mutant.name for mutant in mutants))
        return 0
    tests = {mutant.by for mutant in mutants}
    if SCOPE_NAME in tests:
        subprocess.run(["ninja", "-C", os.path.join(ROOT, "build"), SCOPE], check=True,
                       stdout=subprocess.DEVNULL)
    status, words = run(sorted(tests - {SCOPE_NAME}) or [SCOPE_NAME])
    if status != 0:
        print(words)
        print("the tests fail without any mutant")
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, caught, what, seconds in pool.map(try_mutant, mutants):
            failed += not caught
            print(f"{'caught' if caught else 'NOT CAUGHT'}  {mutant.name}: {what} "
                  f"({seconds:.0f} s)", flush=True)
    rules = {rule for mutant in mutants for rule in rules_of(mutant)}
    print("rules:", ", ".join(sorted(rules, key=lambda rule: [
        int(number) for number in re.findall(r"\d+", rule)])))
    print(f"cases: {len(mutants) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
