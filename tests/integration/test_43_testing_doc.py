"""docs/TESTING.md speaks of tests that exist, and no numbered rule is without one."""

import glob
import os
import re

import mutant_list
from mutants import SCOPE_NAME, library_of
from store import ROOT

NOT_BUILT = {30, 31}  # bucket lanes were left out; there is no take and give yet


def texts(*patterns):
    for pattern in patterns:
        for path in glob.glob(os.path.join(ROOT, "tests", pattern)):
            with open(path, encoding="utf-8") as file:
                yield file.read()


def test_every_test_that_the_manual_names_exists():
    tests = set()
    for text in texts("*/*.py", "*/*.c"):
        tests.update(re.findall(r"^def (test_\w+)\(|^START_TEST\((\w+)\)", text, re.M))
    tests = {name for pair in tests for name in pair}
    with open(os.path.join(ROOT, "docs", "TESTING.md"), encoding="utf-8") as file:
        named = set(re.findall(r"`((?:test|gate|pool|pacer)_\w{20,})`", file.read()))
    assert len(named) > 50
    assert named - tests == set()


def test_every_mutant_of_the_store_applies_and_names_a_test():
    folder = os.path.join(ROOT, "tests", "integration")
    mutants = mutant_list.read(os.path.join(folder, "mutants.txt"))
    assert len(mutants) > 100
    for mutant in mutants:
        problem = library_of(mutant)[1]
        assert problem is None, f"{mutant.name}: {problem}"
        if mutant.by != SCOPE_NAME:
            file, test = mutant.by.split("::")
            with open(os.path.join(folder, file), encoding="utf-8") as source:
                assert f"def {test.partition('[')[0]}(" in source.read(), mutant.name


def test_every_rule_that_is_built_is_played():
    numbers = set()
    for text in texts("integration/*.py", "e2e/*.py"):
        for name in re.findall(r"^def (test_\w+)\(", text, re.M):
            numbers.update(int(n) for n in re.findall(r"_(\d+)(?=_\d|_r\d|$)", name))
    assert set(range(1, 39)) - numbers == NOT_BUILT
