"""waiting.py - waiting for a condition, never for a time."""

import time


def wait_until(claim, what, seconds=30, period=0.002):
    """Answers the first true value of claim(); fails when the deadline has passed."""
    deadline = time.monotonic() + seconds
    while True:
        value = claim()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(period)
