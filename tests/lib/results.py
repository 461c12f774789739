"""results.py - counts what was really run, case by case, and says it in the last line.

    results.py DIRECTORY [failed step ...]

The directory holds meson's JSON logs (meson-*.json) and pytest's JUnit files.  A Check
program counts each of its cases, a TAP program each of its points, any other program is
one case.  A failed step that left no failed case (a broken build) counts as one failure.
A case of pytest.xml that stands in pytest-again.xml was asked twice: the second answer
counts, and the case is named.
"""

import glob
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

CHECK = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.M)
GROUP = re.compile(r"@[^\]@]*$")  # xdist's, behind the name of a case that has one
TAP = re.compile(r"^(not )?ok \d+\b([^\n]*)$", re.M)
CASES = re.compile(r"^cases: (\d+) passed, (\d+) failed$", re.M)


class Count:
    def __init__(self, name):
        self.name = name
        self.passed = self.failed = 0
        self.skips = []
        self.pardoned = []  # fell beside others, passed alone

    def add_program(self, result, output, program):
        """One entry of a meson log."""
        if result == "SKIP":
            reason = next((l for l in output.splitlines() if "skip" in l.lower()), "")
            self.skips.append(f"{program}: {reason.strip() or 'no reason given'}")
            return
        passed, failed = cases_of(output)
        ok = result in ("OK", "EXPECTEDFAIL")
        if ok and failed == 0:
            self.passed += passed or 1
        elif ok:
            self.failed += failed  # it answered 0 and counted failures: believe the count
            self.passed += passed
        else:
            self.passed += passed
            self.failed += failed or 1


def cases_of(output):
    """(passed, failed) as the program itself counted; (0, 0) if it did not."""
    passed = failed = 0
    for checks, failures, errors in CHECK.findall(output):
        bad = int(failures) + int(errors)
        passed += int(checks) - bad
        failed += bad
    for good, bad in CASES.findall(output):
        passed += int(good)
        failed += int(bad)
    if passed or failed:
        return passed, failed
    for bad, rest in TAP.findall(output):
        if "# SKIP" in rest:
            continue
        if bad:
            failed += 1
        else:
            passed += 1
    return passed, failed


def count_meson(path):
    count = Count(os.path.basename(path)[len("meson-"):-len(".json")])
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            test = json.loads(line)
            output = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
            count.add_program(test["result"], output, test["name"])
    return count


def ungrouped(name):
    """The name by which pytest finds a case that ran in a group: "t.py::a[1]@g" is "t.py::a[1]"."""
    return GROUP.sub("", name)


def cases_in(path):
    for case in xml.parse(path).getroot().iter("testcase"):
        yield ungrouped(f"{case.get('classname')}.{case.get('name')}"), case


def is_bad(case):
    return case.find("failure") is not None or case.find("error") is not None


def asked_again(path):
    """What a second run, if there was one, says of those that fell in the first."""
    again = os.path.join(os.path.dirname(path), "pytest-again.xml")
    return dict(cases_in(again)) if os.path.exists(again) and path != again else {}


def count_pytest(path):
    count = Count(os.path.basename(path)[:-len(".xml")])
    again = asked_again(path)
    for name, case in cases_in(path):
        skipped = case.find("skipped")
        if is_bad(case) and name in again:
            if not is_bad(again[name]):
                count.pardoned.append(name)
        elif is_bad(case):
            count.failed += 1
        elif skipped is not None:
            count.skips.append(f"{name}: {skipped.get('message') or 'no reason given'}")
        else:
            count.passed += 1
    return count


def count_log(path):
    """A step that is no test runner may count cases of its own."""
    count = Count(os.path.basename(path)[:-len(".cases")])
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            match = CASES.match(line)
            if match:
                count.passed += int(match.group(1))
                count.failed += int(match.group(2))
    return count


def main(directory, failed_steps):
    counts = [count_meson(path) for path in sorted(glob.glob(f"{directory}/meson-*.json"))]
    counts += [count_pytest(path) for path in sorted(glob.glob(f"{directory}/pytest*.xml"))]
    for path in sorted(glob.glob(f"{directory}/*.cases")):
        count = count_log(path)
        if count.passed or count.failed:
            counts.append(count)

    passed = sum(count.passed for count in counts)
    failed = sum(count.failed for count in counts)
    skips = [skip for count in counts for skip in count.skips]
    for count in counts:
        print(f"   {count.name:<12} {count.passed} passed, {count.failed} failed, "
              f"{len(count.skips)} skipped")
    for skip in sorted(set(skips)):
        print(f"   skipped: {skip}")
    for name in sorted(name for count in counts for name in count.pardoned):
        print(f"   fell beside other tests, passed alone: {name}")
    for step in failed_steps:
        print(f"   failed step: {step}")

    if failed_steps and failed == 0:
        failed = len(failed_steps)
    if passed == 0 and failed == 0:
        print("   no test ran, which is a failure")
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {len(skips)} skipped" if skips else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
