#!/usr/bin/env python3
"""test_results.py - the count that CI believes is itself counted right."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(os.path.dirname(HERE), "lib", "results.py")


def meson(result, stdout, name="program"):
    return {"name": name, "result": result, "stdout": stdout, "stderr": None}


def last_line(logs=(), junit=None, again=None, cases=None, failed_steps=()):
    """(exit status, last line, all output) of results.py over these logs."""
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/meson-all.json", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(log) + "\n" for log in logs)
        for name, text in (("pytest.xml", junit), ("pytest-again.xml", again),
                           ("traces.cases", cases)):
            if text:
                with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
                    file.write(text)
        done = subprocess.run([sys.executable, RESULTS, directory, *failed_steps],
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1], done.stdout


CHECK_OK = "Running suite(s): a\n100%: Checks: 14, Failures: 0, Errors: 0\n"
CHECK_BAD = "Running suite(s): a\n85%: Checks: 14, Failures: 1, Errors: 1\n"
JUNIT = ('<testsuites><testsuite><testcase classname="a" name="b"/>'
         '<testcase classname="a" name="c"><failure message="no"/></testcase>'
         '<testcase classname="a" name="d"><skipped message="no npm here"/></testcase>'
         "</testsuite></testsuites>")
JUNIT_GROUP = JUNIT.replace('name="c"', 'name="c@browser-0"')
AGAIN_OK = '<testsuite><testcase classname="a" name="c"/></testsuite>'
AGAIN_BAD = ('<testsuite><testcase classname="a" name="c"><failure message="no"/></testcase>'
             "</testsuite>")

EXPECTED = [
    ("a Check program counts its cases", dict(logs=[meson("OK", CHECK_OK)]),
     0, "14 passed, 0 failed"),
    ("and its failures", dict(logs=[meson("FAIL", CHECK_BAD)]), 1, "12 passed, 2 failed"),
    ("any other program is one case", dict(logs=[meson("OK", "hello")]),
     0, "1 passed, 0 failed"),
    ("one that dies without counting failed once", dict(logs=[meson("FAIL", CHECK_OK)]),
     1, "14 passed, 1 failed"),
    ("a time-out failed", dict(logs=[meson("TIMEOUT", "")]), 1, "0 passed, 1 failed"),
    ("a counted failure is believed, not the exit status",
     dict(logs=[meson("OK", "cases: 3 passed, 1 failed")]), 1, "3 passed, 1 failed"),
    ("TAP points count", dict(logs=[meson("FAIL", "ok 1 a\nnot ok 2 b\nok 3 # SKIP c\n")]),
     1, "1 passed, 1 failed"),
    ("skips are counted apart",
     dict(logs=[meson("OK", ""), meson("SKIP", "skipped: no redis-server\n")]),
     0, "1 passed, 0 failed, 1 skipped"),
    ("pytest counts", dict(junit=JUNIT), 1, "1 passed, 1 failed, 1 skipped"),
    ("whoever falls and passes alone counts once",
     dict(junit=JUNIT, again=AGAIN_OK), 0, "2 passed, 0 failed, 1 skipped"),
    ("whoever falls twice failed once",
     dict(junit=JUNIT, again=AGAIN_BAD), 1, "1 passed, 1 failed, 1 skipped"),
    ("also if it ran in a group", dict(junit=JUNIT_GROUP, again=AGAIN_OK),
     0, "2 passed, 0 failed, 1 skipped"),
    ("steps count", dict(cases="cases: 20 passed, 0 failed\n"), 0, "20 passed, 0 failed"),
    ("a failed step without a failed case is a failure",
     dict(logs=[meson("OK", "")], failed_steps=["build"]), 1, "1 passed, 1 failed"),
    ("no test at all is a failure", {}, 1, "0 passed, 1 failed"),
]


def main():
    failed = 0
    for name, given, status, line in EXPECTED:
        got_status, got_line, output = last_line(**given)
        if (got_status, got_line) != (status, line):
            failed += 1
            print(f"{name}: expected {status} {line!r}, got {got_status} {got_line!r}")
        if "skipped" in line and ": skipped: no redis-server" not in output \
                and ": no npm here" not in output:
            failed += 1
            print(f"{name}: the reason of the skip is missing")
        if ("passed alone: a.c" in output) != (given.get("again") == AGAIN_OK):
            failed += 1
            print(f"{name}: the names of those that were asked again are wrong")
    print(f"cases: {len(EXPECTED) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
