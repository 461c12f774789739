"""Attacks by a third one, where nobody had looked yet; each one broke something once."""

import os
import subprocess

from fleet import WARMQ, Fleet, anthropic_body
from test_98_fresh_eyes import STREAM, WHOLE, Answerer


# ---- answers -----------------------------------------------------------------------------

def test_a_reset_behind_an_answer_leaves_the_answer(tmp_path):
    """Whoever closes with bytes unread resets.  The answers were thrown away, and half of
    the jobs were paid for again."""
    odd = Answerer("odd", STREAM + b"content-length: %d\r\n" % len(WHOLE), WHOLE, "reset")
    with Fleet(tmp_path, upstream_options=odd.yaml()) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"{number}") for number in range(50)], upstream="odd")
    odd.close()
    assert odd.requests == 50


# ---- programs ----------------------------------------------------------------------------

def test_an_answer_that_a_full_disk_cuts_off_does_not_look_whole(tmp_path):
    """Jobs were enqueued, their ids were lost, and the status was 0."""
    with Fleet(tmp_path) as fleet:
        words = [WARMQ, "enqueue", "--redis", f"unix://{fleet.socket}", "--upstream", "main",
                 "--body", anthropic_body("hi")]
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert fleet.redis("XLEN", "warmq:jobs") == 1
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")  # who reads it has had enough
