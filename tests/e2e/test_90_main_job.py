"""The main job with the real programs: one writer, then the fleet; nothing is lost."""

import json
import subprocess

from fleet import IS_LONG, WARMQ, Fleet, anthropic_body, long_text, wait_until


def demo(*options):
    done = subprocess.run([str(WARMQ), "demo", "--json", *map(str, options)],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_the_demo_shows_one_write_where_all_at_once_would_write_a_hundred_times():
    answer = demo("--jobs", 100, "--job-ms", 500)
    assert answer["done"] == answer["jobs"] == 100 and answer["failed"] == 0
    assert answer["warmq"]["writes"] == 1
    assert answer["warmq"]["duplicate_writes"] == 0
    # How many start before the first one is answered is for the machine to say.
    times = 10 if IS_LONG else 3
    assert answer["naive"]["writes"] >= 9.5 * times
    cost = {arm: answer[arm]["written"] * 1.25 + answer[arm]["read"] * 0.1
            + answer[arm]["uncached"] for arm in ("naive", "warmq")}
    assert cost["warmq"] * times <= cost["naive"]
    assert answer["lower_bound_ms"] == 100 + 3000 + 100 + 500


def test_a_stranger_enqueues_from_redis_cli_and_gets_an_answer(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.start_worker()
        fleet.await_workers(1)
        added = subprocess.run(
            ["redis-cli", "-s", str(fleet.socket), "XADD", "warmq:jobs", "*",
             "upstream", "main", "body", anthropic_body("Hello?")],
            capture_output=True, text=True, timeout=120)
        job = added.stdout.strip().strip('"')
        result = json.loads(fleet.warmq("wait", job, "--json", "--timeout", "20s"))
        assert result["state"] == "done"
        assert result["body"]["content"][0]["type"] == "text"
        assert result["body"]["usage"]["output_tokens"] > 0


def test_kill_9_of_scheduler_and_worker_loses_nothing(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.http("/knobs", {"job_ms": 300})
        fleet.start_all(2, 60)
        system = long_text(2000)
        ids = fleet.enqueue([anthropic_body(f"Question {i}", system) for i in range(2000)])
        results = {}

        def have(count):
            return lambda: len(fleet.pop_results(results)) >= count

        wait_until(have(300), "first 300 results", 60)
        fleet.kill("scheduler")
        fleet.kill("worker-1")
        fleet.start_scheduler("scheduler-2")
        fleet.start_worker("worker-3", 60)
        wait_until(have(2000), "2,000 results", 120)
        assert set(results) == set(ids)
        assert all(result["state"] == "done" for result in results.values())
        wait_until(lambda: fleet.redis("XLEN", "warmq:jobs") == 0, "empty inbox", 10)
        count = fleet.redis("FCALL", "warmq_count", 1, "warmq:meta", 1)
        assert count[2:4] == [1, 0], count
