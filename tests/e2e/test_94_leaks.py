"""A small form of leaks.py, which says what it looks for."""

from leaks import Leaks, plot


def test_jobs_and_prefixes_leave_nothing_behind(tmp_path):
    said = []
    leaks = Leaks(tmp_path, jobs=20000, prefixes=2000, say=said.append)
    assert leaks.run() == [], said


def test_a_steady_load_needs_no_more_memory_as_it_goes_on(tmp_path):
    leaks = Leaks(tmp_path, jobs=0, prefixes=100)
    samples = leaks.soak(6, per_second=200)
    assert leaks.broken == [] and len(samples) > 8
    plot(samples, tmp_path / "soak.svg", "title")
    assert (tmp_path / "soak.svg").read_text().count("polyline") == 3
