"""Single misfortunes; strange.py says what they are."""

import pytest

from strange import ORDEALS, run_ordeal


@pytest.mark.parametrize("name", ORDEALS)
def test_jobs_end_once_after_a_misfortune(tmp_path, name):
    run, broken = run_ordeal(name, tmp_path)
    assert broken == []
    assert run.ledger.jobs
