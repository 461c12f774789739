"""The ledger against the provider's own books; its long form is tests/e2e/ledger.py."""

from fleet import Fleet, anthropic_body, long_text, wait_until

from ledger import (FAULTS, KNOBS, OPTIONS, differences, play, settled, total,
                    written_by_cause)


def test_causes_sum_up_to_what_the_provider_has_written(tmp_path):
    """2,000 jobs with retries, cuts and streams; the ruler is killed in the middle."""
    with Fleet(tmp_path, OPTIONS, knobs={**KNOBS, **FAULTS}) as fleet:
        play(fleet, 2000, kills=1)
        sums, stats = settled(fleet), fleet.stats()
        assert stats["faults"].get("cut", 0) > 20, "some attempts had to fail"
        assert differences(sums, stats) == {}
        assert (sums["answers"], sums["unreported"]) == (2000, 0)
        assert sums["calls"] == stats["requests"]
        assert sums["causes"]["retry_waste"][0] > 0
        assert sums["cost"] > 0 and sums["unpriced"] == 0


def test_what_says_nothing_of_its_cost_is_counted_apart(tmp_path):
    faults = {"fault_lose_reply_permille": 50, "fault_cut_usage_permille": 50}
    with Fleet(tmp_path, OPTIONS, knobs={**KNOBS, **faults}) as fleet:
        play(fleet, 200, kills=0)
        wait_until(lambda: total(fleet) and total(fleet)["answers"] == 200, 20, "all answers")
        sums, stats = settled(fleet), fleet.stats()
        silent = stats["requests"] - sums["calls"]
        assert silent > 0
        assert sums["unreported"] == silent
        assert sums["estimated"] > 0
        assert written_by_cause(sums) == sums["written"] <= stats["tokens_written"]
        missing = stats["tokens_total"] - sum(sums[name] for name in
                                              ("read", "written", "uncached"))
        assert missing > 0
        assert missing / 2 < sums["estimated"] < missing * 2


BURST = ["family", "serial", "row", "place", "start", "last", "write", "readable", "starts",
         "hits", "writes", "extra_writes", "held_ms", "refusals", "cost", "naive", "open"]


def newest_burst(fleet):
    rows = fleet.redis("HGETALL", "warmq:ledger")
    bursts = [dict(zip(BURST, value.decode().split())) for name, value
              in zip(rows[::2], rows[1::2]) if name.startswith(b"b:")]
    return max(bursts, key=lambda burst: int(burst["serial"]), default=None)


def test_a_burst_has_its_price_and_what_all_at_once_would_have_paid(tmp_path):
    jobs, tokens = 60, 8000
    knobs = {"latency_ms": 50, "prefill_tokens_per_second": 10000, "job_ms": 100}
    with Fleet(tmp_path, OPTIONS, knobs=knobs) as fleet:
        fleet.start_all()
        system = long_text(tokens)
        fleet.burst([anthropic_body(f"Question {n}", system) for n in range(jobs)])
        sums = settled(fleet)
        stats = fleet.stats()
        assert differences(sums, stats) == {}
        # $3 in and $15 out a million for this model, writes at 1.25, reads at 0.1.
        assert sums["cost"] == (stats["tokens_read"] * 300 + stats["tokens_written"] * 3750 +
                                stats["tokens_uncached"] * 3000 +
                                stats["tokens_output"] * 15000)
        burst = wait_until(lambda: newest_burst(fleet), 15, "burst")
        figures = {name: int(burst[name]) for name in BURST[1:]}
        assert (figures["starts"], figures["writes"], figures["hits"]) == (jobs, 1, jobs - 1)
        assert figures["extra_writes"] == 0
        assert 500 < figures["readable"] - figures["start"] < 10000, "a cold prefix"
        assert figures["held_ms"] > (jobs - 1) * 400, "all waited for it"
        written = (jobs - 1) * tokens * (3750 - 300)
        assert 0.9 * written < figures["naive"] - figures["cost"] < 1.1 * written
        assert sums["saved"] == figures["naive"] - figures["cost"]
        assert list(sums["causes"]) == ["first"]
