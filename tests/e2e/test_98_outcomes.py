"""Jobs that end in every way; outcomes.py says how, and plays longer runs."""

from outcomes import Outcomes


def test_two_thousand_jobs_end_in_every_way_and_nothing_stays_in_flight(tmp_path):
    outcomes = Outcomes(tmp_path, 2000, seed=1)
    assert outcomes.run() == []
    assert len(outcomes.faults) >= 8, outcomes.faults
