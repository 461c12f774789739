"""provider_rig.py - what the tests of the simulated provider share."""

import threading

import pytest

from provider import FAST, PREFIX, TIMEOUT_S, Provider

PREFIX_TOKENS = (len(PREFIX) + 3) // 4
MARK = {"type": "ephemeral"}
TOOL = {"name": "t", "input_schema": {}}


def marked(text="x", marker=None):
    return {"type": "text", "text": text, "cache_control": marker or MARK}


@pytest.fixture
def provider():
    with Provider(*FAST) as running:
        yield running


def in_threads(count, work):
    """Runs work(i) at once; answers the results in order."""
    results = [None] * count
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, work(i)))
               for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert all(result is not None for result in results)
    return results
