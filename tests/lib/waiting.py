"""waiting.py - waiting for a condition; for a time only where the time is the subject."""

import time

# A deadline says how long something takes at most on a machine that has time for it. Other
# machines need longer, and nobody waits longer than it takes: so we are patient.
PATIENCE = 4


def wait_until(claim, what, seconds=30, period=0.002, patience=PATIENCE):
    """Answers the first true value of claim(); fails when the deadline has passed.  Where the
    time itself is what is promised, there is no patience (1)."""
    deadline = time.monotonic() + seconds * patience
    while True:
        value = claim()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds * patience} s for {what}"
        time.sleep(period)


def rest(seconds):
    """Lets something lie still for so long: where that is what is tested, and no state says
    when it is over."""
    time.sleep(seconds)
