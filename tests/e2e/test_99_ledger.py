"""The ledger against the provider's own books; its long form is tests/e2e/ledger.py."""

from fleet import Fleet, wait_until

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
