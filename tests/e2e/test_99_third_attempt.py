"""Attacks by a third one, where nobody had looked yet; each one broke something once."""

from fleet import Fleet, anthropic_body
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
