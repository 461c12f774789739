"""Attacks by somebody who had read the documents only; each one broke something once."""

import json
import signal
import subprocess

import pytest
from fleet import BUILD, Fleet, anthropic_body, long_text, wait_until

PROMPT = long_text(2000)


# ---- Redis -------------------------------------------------------------------------------

def test_a_job_that_is_done_leaves_no_deadline_behind(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"{number}", PROMPT) for number in range(30)],
                    deadline="+30d")
        waiting = fleet.enqueue([anthropic_body("later")], deadline="+30d",
                                not_before="+29d")
        fleet.end("scheduler")  # the next one audits at once, not within a minute
        fleet.start_scheduler()
        wait_until(lambda: fleet.redis("ZCARD", "warmq:deadline") == 1, 30, "audit")
        assert fleet.redis("ZRANGE", "warmq:deadline", 0, -1) == [waiting[0].encode()]


def test_the_doctor_speaks_while_redis_is_full(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body("before")])
        fleet.redis("CONFIG", "SET", "maxmemory", "1mb")
        said = json.loads(fleet.warmq("doctor", "--json", check=False))["findings"]
        fleet.redis("CONFIG", "SET", "maxmemory", "0")
        memory = [finding for finding in said if finding["check"] == "memory"]
        assert memory[0]["level"] == "bad"
        assert {"books", "leases", "workers"} <= {finding["check"] for finding in said}


@pytest.mark.parametrize("refusal, on, off", [
    ("OOM", ("maxmemory", "1"), ("maxmemory", "0")),
    ("NOREPLICAS", ("min-replicas-to-write", "1"), ("min-replicas-to-write", "0"))])
def test_a_scheduler_waits_until_redis_takes_its_functions(tmp_path, refusal, on, off):
    with Fleet(tmp_path) as fleet:
        fleet.redis("CONFIG", "SET", *on)
        fleet.start_scheduler()
        wait_until(lambda: refusal in fleet.log("scheduler"), 20, "refusal")
        fleet.redis("CONFIG", "SET", *off)
        fleet.await_ruler()


# ---- programs ----------------------------------------------------------------------------

def test_programs_without_standard_streams_end_in_order(tmp_path):
    """A descriptor 2 that is free becomes a pipe of the loop, and the log goes into it."""
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        for program in ("scheduler", "worker"):
            fleet.processes[program] = subprocess.Popen(
                ["sh", "-c", f"exec {BUILD}/{program}/warmq-{program} --config "
                 f"{fleet.config} --log-level debug <&- >&- 2>&-"], cwd=tmp_path)
        fleet.await_ruler()
        fleet.await_workers(1)
        fleet.burst([anthropic_body(f"{number}", PROMPT) for number in range(50)])
        for program in ("worker", "scheduler"):
            process = fleet.processes[program]
            fleet.end(program, signal.SIGTERM)
            assert process.returncode == 0, program


# ---- the cache ---------------------------------------------------------------------------

def test_a_lifetime_that_is_configured_is_kept_to(tmp_path):
    """An upstream that keeps its entries for 2 s: behind that, one request writes again."""
    with Fleet(tmp_path, upstream_options="    ttl: 2s\n",
               knobs={"job_ms": 20, "ttl_permille": 6}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(f"early {number}", PROMPT) for number in range(5)])
        lane, = (record for record in fleet.redis("HVALS", "warmq:lanes"))
        until_ms = int(lane[35:49])

        def is_over():
            seconds, micros = map(int, fleet.redis("TIME"))
            return seconds * 1000 + micros // 1000 > until_ms + 1000
        wait_until(is_over, 10, "end of the entry's life")
        fleet.burst([anthropic_body(f"late {number}", PROMPT) for number in range(30)])
        stats = fleet.stats()
        assert (stats["writes"], stats["duplicate_writes"]) == (2, 0)
