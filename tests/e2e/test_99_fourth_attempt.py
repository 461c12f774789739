"""Attacks by a fourth one, where nobody had looked yet; each one broke something once."""

import json

from fleet import Fleet, anthropic_body, long_text, wait_until

PROMPT = long_text(2000)


def bodies(count, prompt=PROMPT):
    return [anthropic_body(f"{number}", prompt) for number in range(count)]


# ---- accounts ----------------------------------------------------------------------------

def test_a_backlog_that_an_account_keeps_leaves_the_slots_to_others(tmp_path):
    """It counted as work for all slots: new prefixes of every other account got no turn, and
    after `hold_max` each of their jobs wrote the prefix for itself."""
    knobs = {"job_ms": 100, "latency_ms": 20, "prefill_tokens_per_second": 0}
    with Fleet(tmp_path, knobs=knobs, aliases=("two",)) as fleet:
        fleet.start_all(slots=20)
        fleet.burst(bodies(5))
        fleet.http("/knobs", {"fault_next": "rate_limit", "fault_next_count": 1,
                              "retry_after_ms": 600000})
        fleet.enqueue(bodies(400), reply="parked")
        wait_until(lambda: fleet.redis("HGET", "warmq:budget:main:sonnet-4", "parked_until"),
                   "429")
        wait_until(lambda: fleet.stats()["concurrency"] == 0, "end of what ran")
        writes = fleet.stats()["writes"]
        fleet.burst(bodies(20, long_text(2000, "other ")), 20, upstream="two")
        assert fleet.stats()["writes"] - writes == 1


# ---- the command line --------------------------------------------------------------------

def test_hundreds_of_dead_jobs_are_retried_and_dropped_at_once(tmp_path):
    """More than 59 ended in "broken invariant"."""
    with Fleet(tmp_path, knobs={"job_ms": 1, "latency_ms": 1,
                                "fault_bad_request_permille": 1000}) as fleet:
        fleet.start_all()
        pack = json.dumps([{"body": json.loads(anthropic_body(f"{number}"))}
                           for number in range(600)])
        fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "reply", "results",
                    "json", pack)
        fleet.collect(600)
        fleet.http("/knobs", {"fault_bad_request_permille": 0})
        assert fleet.warmq("job", "retry", "--all") == "600 jobs queued again.\n"
        assert {result["state"] for result in fleet.collect(600).values()} == {"done"}
        fleet.redis("XADD", "warmq:jobs", "*", "upstream", "nobody", "reply", "results",
                    "json", pack)
        ids = list(fleet.collect(600))
        assert fleet.warmq("job", "drop", *ids[:300]) == "300 jobs forgotten.\n"
        assert fleet.warmq("job", "drop", "--all") == "300 jobs forgotten.\n"


def test_the_doctor_names_a_pool_from_which_nobody_claims(tmp_path):
    """It found all to be fine while jobs waited for a worker that there never was."""
    pools = 'pools:\n  - {name: night, match: ["nightly-*", "*"]}\n'

    def findings():
        said = json.loads(fleet.warmq("doctor", "--json", check=False))["findings"]
        return [finding["text"] for finding in said if finding["check"] == "pools"]

    with Fleet(tmp_path, knobs={"job_ms": 1, "latency_ms": 1}, settings=pools) as fleet:
        fleet.start_all()
        fleet.burst(bodies(3))
        assert findings() == []
        fleet.enqueue(bodies(7), route="nightly-mail")
        wait_until(findings, "finding")
        assert findings() == [
            "7 jobs wait in the pool night, and no worker claims from it"]
        fleet.start_worker("nightly", 5, "--pool", "night")
        fleet.collect(7)
        assert findings() == []


# ---- the configuration -------------------------------------------------------------------

def test_a_dialect_that_is_changed_under_waiting_jobs_is_named(tmp_path):
    """"The request cannot be put together: malformed input." was all that was said."""
    with Fleet(tmp_path, knobs={"job_ms": 1, "latency_ms": 1}) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue(bodies(3))
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") ==
                   f"{ids[-1]} 0".encode(), "the jobs to be admitted")
        fleet.write_config("openai-chat")
        fleet.start_worker()
        for result in fleet.collect(3).values():
            assert result["reason"] == "malformed"
            assert "of the dialect anthropic, and main is of openai-chat" in result["text"]
            assert result["text"].endswith("once this one is as it was.")
        fleet.end("worker")
        fleet.write_config("anthropic")
        fleet.start_worker()
        fleet.warmq("job", "retry", "--all")
        assert {result["state"] for result in fleet.collect(3).values()} == {"done"}


def test_each_of_many_accounts_pays_for_its_own_jobs(tmp_path):
    """The configuration allows 64 upstreams with 16 classes; from the 257th account on, all
    were taken for the 256th, parked with it and paced with it."""
    models = "models:\n" + "".join(f"  - {{match: 'm{number}', class: c{number}}}\n"
                                   for number in range(9))
    upstreams = [f"u{number}" for number in range(30)]
    with Fleet(tmp_path, settings=models, aliases=upstreams) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        for upstream in upstreams:
            fleet.enqueue([anthropic_body(upstream, model=f"m{number}") for number in range(9)],
                          upstream=upstream)
        wait_until(lambda: fleet.redis("HLEN", "warmq:families") == 270, "families")
        paid = {record.split(b"|")[2] for record in fleet.redis("HVALS", "warmq:families")}
        assert len(paid) == 270
