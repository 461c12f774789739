"""Single misfortunes; strange.py says what they are."""

import pytest

from strange import IN_OTHERS, ORDEALS, run_ordeal


@pytest.mark.parametrize("name", [name for name, function in ORDEALS.items()
                                  if function not in IN_OTHERS])
def test_jobs_end_once_after_a_misfortune(tmp_path, name):
    run, broken = run_ordeal(name, tmp_path)
    assert broken == []
    assert run.ledger.jobs
