"""A scheduler that is never told what became of its grants.

Its connection is cut behind them: Redis has done it, or will do it later, or never hears of
it.  No capacity may be lost by that, and none doubled; and each prefix is written once."""

import time

import pytest

from fleet import BUILD, LONG, Fleet, anthropic_body, long_text, wait_until
from proxy import Proxy

CONCURRENCY = 6
OPTIONS = f"""    pace_start: 2
    class_limits:
      sonnet-4:
        concurrency: {CONCURRENCY}
"""
KNOBS = {"latency_ms": 30, "prefill_tokens_per_second": 20000, "job_ms": 60}
PREFIXES, JOBS = 4, 25  # of each


class Behind(Fleet):
    """The scheduler reaches Redis through a proxy."""

    def start_scheduler(self, name="scheduler"):
        self.start(name, BUILD / "scheduler" / "warmq-scheduler", "--config", self.config,
                   "--redis", f"unix://{self.directory}/proxy.sock")


def bodies(first=0):
    return [anthropic_body(f"Question {n}", long_text(1500, f"policy {prefix} "))
            for prefix in range(first, first + PREFIXES) for n in range(JOBS)]


def full_speed(fleet, first):
    """Jobs that run for as long as it takes: the account is used to its limit."""
    fleet.http("/reset", {})
    results = {}
    fleet.keep_waiting()
    ids = fleet.enqueue([anthropic_body(f"Alone {n}") for n in range(2 * CONCURRENCY)])
    ids += fleet.enqueue(bodies(first))
    fleet.await_requests(CONCURRENCY)
    fleet.keep_waiting(False)
    wait_until(lambda: len(fleet.pop_results(results)) >= len(ids), "all results", 60)
    assert {one["state"] for one in results.values()} == {"done"}
    return fleet.stats()


def storm(fleet, proxy, action, count, results):
    """Until all jobs are done.  Some decisions are heard of between two that are not."""
    cuts, deadline = 0, time.monotonic() + 90
    while len(fleet.pop_results(results)) < count:
        assert time.monotonic() < deadline, f"{len(results)} results after {cuts} cuts"
        if not proxy.wanted and len(results) < 0.9 * count:
            proxy.next("warmq_grant", action, spared=cuts % 4, trips=30, seconds=1)
            cuts += 1
        time.sleep(0.01)
    return cuts


def test_who_dies_before_its_first_grant_leaves_prefixes_that_are_held(tmp_path):
    """Whether a prefix may carry a marker is known from its jobs, which nobody reads again."""
    with Proxy(tmp_path / "proxy.sock", tmp_path / "redis.sock") as proxy, \
            Behind(tmp_path, OPTIONS, knobs=KNOBS) as fleet:
        ids = fleet.enqueue(bodies()[:8])  # all of them are admitted at once
        proxy.next("warmq_grant", "before", then=lambda: fleet.processes["scheduler"].kill())
        fleet.start_scheduler()
        fleet.processes["scheduler"].wait(120)
        fleet.processes.pop("scheduler")
        fleet.start_scheduler("heir")
        fleet.start_worker("worker", 20)
        results = fleet.collect(len(ids), 90)
        assert {one["state"] for one in results.values()} == {"done"}
        stats = fleet.stats()
        assert (stats["writes"], stats["reads"]) == (1, len(ids) - 1)


@pytest.mark.parametrize("action", ["after", "late", pytest.param("before", marks=LONG),
                                    pytest.param("half", marks=LONG)])
def test_no_capacity_is_lost_or_doubled_by_lost_answers(tmp_path, action):
    with Proxy(tmp_path / "proxy.sock", tmp_path / "redis.sock") as proxy, \
            Behind(tmp_path, OPTIONS, knobs=KNOBS) as fleet:
        fleet.start_all(2, 20)
        ids, results = fleet.enqueue(bodies()), {}
        cuts = storm(fleet, proxy, action, len(ids), results)
        assert cuts > 3
        assert {one["state"] for one in results.values()} == {"done"}
        stats = fleet.stats()
        assert stats["requests"] == len(ids) + fleet.warm_ups(), "each job was sent once"
        assert stats["peak_concurrency"] <= CONCURRENCY
        assert (stats["writes"], stats["peak_writers"]) == (PREFIXES, 1), \
            fleet.redis("HGETALL", "warmq:lanes")

        proxy.wanted.clear()
        stats = full_speed(fleet, PREFIXES)
        assert stats["peak_concurrency"] == CONCURRENCY
        assert "corrected" not in fleet.log("scheduler")
        flight = fleet.redis("HGET", "warmq:budget:main:sonnet-4", "in_flight")
        assert flight == b"0", "nothing runs"
