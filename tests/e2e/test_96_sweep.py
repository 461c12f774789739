"""A sample of the kill points; sweep.py says what they are, and goes through all of them."""

from sweep import points_of, run_points


def test_jobs_end_once_wherever_a_process_dies_between_two_round_trips():
    said = []
    points = list(points_of(every=67, offset=24))
    assert len(points) == 15
    assert run_points(points, parallel=4, say=said.append) == 0, "\n".join(said)
