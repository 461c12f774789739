"""Programs that stop, die, freeze and come back while jobs run."""

import signal
import time

import pytest

from fleet import LONG, SLOWER, Fleet, anthropic_body, digest, long_text, wait_until

KNOBS = {"latency_ms": 30, "prefill_tokens_per_second": 20000, "job_ms": 400}


def question_of(number):
    return f"Question {number}"


def bodies_of(first, count, word="policy "):
    system = long_text(3000, word)
    return [anthropic_body(question_of(number), system)
            for number in range(first, first + count)]


def gather(fleet, results, count, seconds, what):
    wait_until(lambda: len(fleet.pop_results(results)) >= count, what, seconds)


def check_done(results, ids):
    assert set(results) == set(ids)
    for number, id in enumerate(ids):
        assert results[id]["state"] == "done", results[id]
        assert digest(question_of(number)) in results[id]["body"]["content"][0]["text"]


def test_sigterm_of_a_worker_loses_nothing_and_starts_nothing_twice(tmp_path):
    results = {}
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all(2, 20)
        ids = fleet.enqueue(bodies_of(0, 200))
        gather(fleet, results, 50, 20, "50 results")
        fleet.end("worker-1", signal.SIGTERM)
        assert "stopped" in fleet.log("worker-1")
        gather(fleet, results, 200, 30, "200 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["requests"] == 200, "each job was sent once"
        assert stats["writes"] == 1


def restart_redis(fleet, number):
    fleet.end("redis", number)
    fleet.redis.close()
    fleet.start_redis()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_redis_that_comes_back_with_its_log_has_lost_nothing_35(tmp_path, number):
    """appendfsync always: what was acknowledged is on disk, also when it is killed."""
    results = {}
    with Fleet(tmp_path, knobs=KNOBS,
               redis_options=("--appendonly", "yes", "--appendfsync", "always")) as fleet:
        fleet.start_all(2, 20)
        ids = fleet.enqueue(bodies_of(0, 200))
        gather(fleet, results, 50, 20, "50 results")
        restart_redis(fleet, number)
        gather(fleet, results, 200, 60, "200 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["requests"] <= 200 + 2, "at most what was claimed as Redis went"
        assert stats["writes"] == 1


def test_a_frozen_scheduler_is_replaced_and_does_no_harm_when_it_wakes_38(tmp_path):
    results = {}
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all(1, 40)
        first = fleet.redis("HGET", "warmq:meta", "owner")
        fleet.start_scheduler("standby")
        ids = fleet.enqueue(bodies_of(0, 100))
        gather(fleet, results, 20, 20, "20 results")

        fleet.processes["scheduler"].send_signal(signal.SIGSTOP)
        frozen = time.monotonic()
        ids += fleet.enqueue(bodies_of(100, 100, "other "))
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "owner") != first, "another ruler",
                   15)
        assert time.monotonic() - frozen < SLOWER * 10
        gather(fleet, results, 150, 30, "150 results")

        fleet.processes["scheduler"].send_signal(signal.SIGCONT)
        ids += fleet.enqueue(bodies_of(200, 100, "third "))
        gather(fleet, results, 300, 30, "300 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["requests"] == 300 + fleet.warm_ups(), "each job was sent once"
        assert stats["writes"] == 3 and stats["peak_writers"] == 1
        assert fleet.redis("HGET", "warmq:meta", "owner") != first
        assert fleet.processes["scheduler"].poll() is None, "it stands by"


def await_writer(fleet):
    wait_until(lambda: sum(prefix["writers"] for prefix in fleet.stats()["prefixes"]) == 1,
               "writer", 10)


def test_a_scheduler_that_dies_while_a_prefix_is_written_has_it_written_once(tmp_path):
    results = {}
    with Fleet(tmp_path, knobs={**KNOBS, "keep_waiting": True}) as fleet:
        fleet.start_all(1, 60)
        owner = fleet.redis("HGET", "warmq:meta", "owner")
        ids = fleet.enqueue(bodies_of(0, 60))
        await_writer(fleet)
        fleet.kill("scheduler")
        fleet.start_scheduler("successor")
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "owner") != owner, "the next ruler")
        fleet.keep_waiting(False)
        gather(fleet, results, 60, 40, "60 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["requests"] == 60


def test_a_worker_that_dies_while_it_writes_is_followed_by_one_other_writer(tmp_path):
    """A worker that starts in its place gives its leases back at once."""
    results = {}
    with Fleet(tmp_path, knobs={**KNOBS, "keep_waiting": True}) as fleet:
        fleet.start_all(1, 60)
        ids = fleet.enqueue(bodies_of(0, 60))
        await_writer(fleet)
        fleet.kill("worker-1")
        wait_until(lambda: fleet.stats()["concurrency"] == 0, "the end of its request")
        fleet.keep_waiting(False)
        fleet.start_worker("worker-2", 60)
        gather(fleet, results, 60, 40, "60 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["writes"] <= 2 and stats["peak_writers"] == 1
        assert stats["requests"] == 1 + 60


@pytest.mark.parametrize("fault", ["rate_limit", "overloaded", "server_error"])
def test_a_provider_in_trouble_makes_nobody_start_cold(tmp_path, fault):
    results = {}
    with Fleet(tmp_path, knobs={**KNOBS, "fault_next": fault, "fault_next_count": 2,
                                "retry_after_ms": 300}) as fleet:
        fleet.start_all(1, 60)
        ids = fleet.enqueue(bodies_of(0, 60))
        gather(fleet, results, 60, 40, "60 results")
        check_done(results, ids)
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["tokens_uncached"] < 3000, stats


@LONG
def test_jobs_of_a_dead_worker_are_done_by_others_within_45_seconds_and_a_run_26(tmp_path):
    results = {}
    with Fleet(tmp_path, knobs={**KNOBS, "job_ms": 3000}) as fleet:
        fleet.start_all(2, 20)
        ids = fleet.enqueue(bodies_of(0, 100))
        gather(fleet, results, 10, 20, "10 results")
        fleet.kill("worker-1")
        died = time.monotonic()
        gather(fleet, results, 100, 70, "100 results")
        assert time.monotonic() - died <= 45 + 2 * 3
        check_done(results, ids)
