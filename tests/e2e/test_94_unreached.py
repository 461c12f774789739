"""A worker that does not reach its provider leaves the jobs to others, and comes back."""

import json

from fleet import BUILD, Fleet, anthropic_body, wait_until
from ports import free_port

KNOBS = {"latency_ms": 20, "job_ms": 20}
SLOTS = 50


def bodies(count, word=""):
    return [anthropic_body(f"Question {word}{number}") for number in range(count)]


def start_beside(fleet, name, port, *options):
    """A worker whose configuration names another port; nobody listens there."""
    config, own = fleet.config, fleet.directory / f"{name}.yaml"
    own.write_text(config.read_text().replace(fleet.provider, f"http://127.0.0.1:{port}"))
    fleet.config = own
    fleet.start_worker(name, SLOTS, *options)
    fleet.config = config


def unsent(fleet):
    """How often a job was given back because nothing could be sent."""
    return int(fleet.redis("HGET", "warmq:meta", "unsent") or 0)


def shunned(fleet):
    """What workers do not reach, by label."""
    workers = json.loads(fleet.warmq("worker", "ls", "--json"))
    return {worker["label"]: worker["unreached"] for worker in workers}


def test_a_worker_that_reaches_nobody_leaves_the_jobs_to_others(tmp_path):
    """It takes what fits into its slots, once; then one job now and then."""
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        port = free_port()
        fleet.start_all(1, SLOTS)
        start_beside(fleet, "lost", port)
        fleet.await_workers(2)
        fleet.enqueue(bodies(300))
        fleet.collect(300, 60)
        assert fleet.stats()["requests"] == 300
        assert 0 < unsent(fleet) <= 2 * SLOTS + 20, "jobs were given back again and again"
        assert fleet.log("lost").count("does not reach an upstream") == 1
        assert shunned(fleet) == {"worker-1": [], "lost": ["main"]}

        fleet.kill("worker-1")
        fleet.start("found", BUILD / "provider" / "warmq-provider", "--port", port)
        fleet.enqueue(bodies(20, "later "))
        fleet.collect(20, 60)
        assert "reaches an upstream again" in fleet.log("lost")
        wait_until(lambda: shunned(fleet)["lost"] == [], "beat that says so", 10)
