"""The main job with the real programs: one writer, then the fleet; nothing is lost."""

import json
import subprocess
import time

from fleet import WARMQ, Fleet, anthropic_body, long_text, wait_until


def demo(*options):
    done = subprocess.run([str(WARMQ), "demo", "--json", *map(str, options)],
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_burst_is_written_once_at_no_lag():
    answer = demo("--jobs", 200, "--job-ms", 2000)
    assert answer["done"] == answer["jobs"] == 200 and answer["failed"] == 0
    assert answer["warmq"]["writes"] == 1
    assert answer["warmq"]["duplicate_writes"] == 0
    assert answer["naive"]["writes"] >= 190
    cost = {arm: answer[arm]["written"] * 1.25 + answer[arm]["read"] * 0.1
            + answer[arm]["uncached"] for arm in ("naive", "warmq")}
    assert cost["warmq"] * 10 <= cost["naive"]
    assert answer["warmq"]["makespan_ms"] <= answer["lower_bound_ms"] * 1.30


def test_burst_with_unknown_lag_is_written_at_most_twice():
    answer = demo("--jobs", 100, "--job-ms", 2000, "--lag-ms", 1000)
    assert answer["done"] == 100
    assert answer["warmq"]["writes"] <= 2


def test_a_stranger_enqueues_from_redis_cli_and_gets_an_answer(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.start_worker()
        fleet.await_workers(1)
        added = subprocess.run(
            ["redis-cli", "-s", str(fleet.socket), "XADD", "warmq:jobs", "*",
             "upstream", "main", "body", anthropic_body("Hello?")],
            capture_output=True, text=True, timeout=10)
        job = added.stdout.strip().strip('"')
        result = json.loads(fleet.warmq("wait", job, "--json", "--timeout", "20s"))
        assert result["state"] == "done"
        assert result["body"]["content"][0]["type"] == "text"
        assert result["body"]["usage"]["output_tokens"] > 0


def enqueue_many(fleet, count, system):
    """All with one reply list; returns the ids in order."""
    ids = []
    for start in range(0, count, 50):
        for i in range(start, start + 50):
            fleet.redis.send("XADD", "warmq:jobs", "*", "upstream", "main", "route", "kill",
                             "reply", "kill", "ref", i, "body",
                             anthropic_body(f"Question {i}", system))
        ids += [fleet.redis.read().decode() for _ in range(50)]
    return ids


def collect(fleet, results):
    """Takes what is on the reply list; fails on a second result for an id."""
    connection = fleet.connect()
    try:
        while True:
            popped = connection("LPOP", "warmq:reply:kill", 100)
            if not popped:
                return
            for text in popped:
                result = json.loads(text)
                assert result["id"] not in results, f"two results for {result['id']}"
                results[result["id"]] = result
    finally:
        connection.close()


def test_kill_9_of_scheduler_and_worker_loses_nothing(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.http("/knobs", {"job_ms": 300})
        fleet.start_scheduler()
        fleet.start_worker("worker-1", 60)
        fleet.start_worker("worker-2", 60)
        fleet.await_workers(2)
        ids = enqueue_many(fleet, 2000, long_text(2000))
        results = {}

        def have(count):
            def look():
                collect(fleet, results)
                return len(results) >= count
            return look

        wait_until(have(300), 60, "first 300 results")
        fleet.kill("scheduler")
        fleet.kill("worker-1")
        killed = time.monotonic()
        fleet.start_scheduler("scheduler-2")
        fleet.start_worker("worker-3", 60)
        wait_until(have(2000), 120, "2,000 results")
        took = time.monotonic() - killed
        assert set(results) == set(ids)
        assert all(result["state"] == "done" for result in results.values())
        assert took < 100
        wait_until(lambda: fleet.redis("XLEN", "warmq:jobs") == 0, 10, "empty inbox")
        count = fleet.redis("FCALL", "warmq_count", 1, "warmq:meta", 1)
        assert count[2:4] == [1, 0], count
