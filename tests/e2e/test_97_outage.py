"""Outages with short leases; outage.py takes the default times, and prints the figures."""

import pytest

from fleet import LONG, SLOWER
from outage import ROWS, Outage, run_row


def run(row, tmp_path, lease=None, **options):
    rows = []
    row(Outage(tmp_path, lambda *values: rows.append(values), lease), **options)
    assert rows
    for text, value, bound, unit in rows:
        slower = SLOWER if unit.endswith("s") else 1
        assert bound is None or value <= slower * bound, f"{text}: {value} {unit}, bound {bound}"


def test_a_stand_by_rules_within_10_seconds_of_a_death_26(tmp_path):
    run(Outage.takeover, tmp_path)


def test_jobs_are_eligible_again_when_ruler_and_worker_die_together_26(tmp_path):
    """The takeover is not worth more than a lease: 3 s, 10 s, a tick."""
    run(Outage.both, tmp_path, lease="3s", bound=3 + 10 + 2)


def test_an_outage_of_redis_costs_nobody_his_jobs_and_delivers_results_once_5(tmp_path):
    run(Outage.redis_away, tmp_path, seconds=8)


def test_a_worker_whose_loop_hung_comes_back_and_doubles_nothing_20(tmp_path):
    run(Outage.hung, tmp_path, lease="3s", seconds=6)


@pytest.mark.alone
def test_ten_thousand_leases_are_audited_in_pieces_13(tmp_path):
    """Threads that share a core share its caches: its clock runs on meanwhile."""
    run(Outage.audit, tmp_path)


@LONG
@pytest.mark.parametrize("name", ROWS)
def test_the_figures_with_default_times(name):
    _, rows, problem = run_row(name)
    assert problem is None and rows
    assert [row for row in rows if row[2] is not None and row[1] > row[2]] == []
