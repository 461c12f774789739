"""Two short storms over everything; chaos.py says what they are, and plays longer ones."""

import pytest

from chaos import Chaos


@pytest.mark.parametrize("seed", [2, 9])
def test_jobs_end_once_whatever_happens_to_the_processes(tmp_path, seed):
    chaos = Chaos(tmp_path, seed, seconds=4)
    assert chaos.run() == []
    assert chaos.ledger.jobs and chaos.done
