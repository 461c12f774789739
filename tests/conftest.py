"""A failed test shows the ends of the logs of all that ran for it.

WARMQ_FALLEN: a file that gets the names of the tests that failed, a line each."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

from logs import ends  # noqa: E402
from results import ungrouped  # noqa: E402


def folders_of(item):
    """Its own, and those of the programs that its fixtures have started."""
    found = set()
    for value in getattr(item, "funcargs", {}).values():
        for name in ("folder", "directory"):
            folder = value if isinstance(value, Path) else getattr(value, name, None)
            if isinstance(folder, (str, Path)) and Path(folder).is_dir():
                found.add(Path(folder))
    return sorted(found)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for folder in folders_of(item):
            report.sections += [(f"the end of {path}", text) for path, text in ends(folder)]


def pytest_terminal_summary(terminalreporter):
    if "WARMQ_FALLEN" in os.environ:
        bad = terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", [])
        fallen = dict.fromkeys(ungrouped(report.nodeid) for report in bad if hasattr(report, "nodeid"))
        with open(os.environ["WARMQ_FALLEN"], "w", encoding="utf-8") as out:
            out.writelines(f"{HERE}/{name}\n" for name in fallen)
