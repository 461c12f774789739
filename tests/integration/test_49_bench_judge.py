"""What `./dev bench queue` makes of its figures, without running it."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))

from bench_queue import ceiling  # noqa: E402


def runs(*us):
    return [{"cpu_us": figure} for figure in us]


@pytest.mark.parametrize("own, peers, fine, says", [
    ([11.9], [], True, "11.90 us of Redis CPU per job, at most 12"),
    ([12.1], [], False, "12.10 us of Redis CPU per job, at most 12"),
    ([12.5], [72], True, "11.28 where BullMQ takes 65, which decides: here it takes 72"),
    ([13.4], [72], False, "12.10 where BullMQ takes 65, which decides: here it takes 72"),
    ([11.9], [52], True, "14.88 where BullMQ takes 65, not 52"),
    ([12.1], [65], False, "12.10 where BullMQ takes 65, not 65"),
    # Rounds are compared with their own hour, and the one in the middle counts.
    ([10, 13, 20], [60, 78, 120], True, "10.83 where BullMQ takes 65"),
])
def test_a_ceiling_is_scaled_on_a_slower_machine_only(own, peers, fine, says):
    assert ceiling(runs(*own), runs(*peers), 12.0)[0] is fine
    assert says in ceiling(runs(*own), runs(*peers), 12.0)[1]
