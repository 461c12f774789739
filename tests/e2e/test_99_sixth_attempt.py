"""Attacks by a sixth one, on Redis, on processes, and by what producers and people may do."""

import json
import subprocess

import books
import pytest

from fleet import WARMQ, Fleet, anthropic_body, long_text, wait_until

PROMPT = long_text(2000)


class Surely:
    """What books.py asks through."""

    def __init__(self, fleet):
        self.surely = fleet.redis


def admitted(fleet, id):
    wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") == f"{id} 0".encode(),
               "admission")


def test_jobs_that_a_night_without_a_scheduler_made_worthless_are_not_paid_for(tmp_path):
    """300 of 300 were sent, and done, 2 s behind their deadline."""
    with Fleet(tmp_path, knobs={"job_ms": 20}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body("first", PROMPT)])
        fleet.kill("scheduler")
        before = fleet.stats()["requests"]
        ids = fleet.enqueue([anthropic_body(f"{n}", PROMPT) for n in range(100)],
                            deadline="+1s")
        pack = json.dumps([{"body": json.loads(anthropic_body(f"p{n}"))} for n in range(20)])
        entry = fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "reply", "results",
                            "deadline", "+1s", "json", pack).decode()
        last = int(entry.split("-")[0])
        wait_until(lambda: int(fleet.redis("TIME")[0]) * 1000 > last + 1000, "their deadline")
        fleet.start_scheduler()
        results = fleet.collect(len(ids) + 20)
        assert {result["state"] for result in results.values()} == {"expired"}
        assert fleet.stats()["requests"] == before
        assert books.check(Surely(fleet)) == []


def test_a_dead_job_that_is_retried_has_not_ended(tmp_path):
    """`warmq job retry ID && warmq wait ID` said at once that it was dead, as before."""
    with Fleet(tmp_path, knobs={"fault_bad_request_permille": 1000}) as fleet:
        fleet.start_all()
        id = fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "body",
                         anthropic_body("?", PROMPT)).decode()
        assert json.loads(fleet.warmq("wait", id, check=False))["state"] == "dead"
        fleet.http("/knobs", {"fault_bad_request_permille": 0})
        fleet.keep_waiting()
        fleet.warmq("job", "retry", id)
        assert json.loads(fleet.warmq("job", "show", id))["state"] in ("waiting", "running")
        waiter = subprocess.Popen([str(WARMQ), "wait", id, "--redis", f"unix://{fleet.socket}"],
                                  stdout=subprocess.PIPE)
        fleet.await_requests(1)
        fleet.keep_waiting(False)
        text, _ = waiter.communicate(timeout=60)
        assert json.loads(text)["state"] == "done"


@pytest.mark.parametrize("lost", ["lanes", "families"])
def test_jobs_go_on_when_the_records_of_their_place_are_lost(tmp_path, lost):
    """Nothing came that would have made them anew: the jobs waited for ever, and with their
    family all books said that they were nowhere."""
    with Fleet(tmp_path, upstream_options="    hold_max: 1s") as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue([anthropic_body(f"{n}", PROMPT) for n in range(30)])
        admitted(fleet, ids[-1])
        wait_until(lambda: fleet.redis("HLEN", "warmq:lanes"), "its lane")
        fleet.redis("DEL", f"warmq:{lost}")
        fleet.warmq("doctor", "--repair", "books")
        fleet.start_worker("worker", 50)
        results = fleet.collect(30, 90)
        assert {result["state"] for result in results.values()} == {"done"}


def test_jobs_of_an_upstream_that_is_configured_later_can_be_retried(tmp_path):
    """They are dead at once; `job retry` said that their payload is lost, and it is there."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue([anthropic_body(f"{n}", PROMPT) for n in range(5)], upstream="new")
        pack = fleet.redis("XADD", "warmq:jobs", "*", "json", json.dumps(
            2 * [{"upstream": "new", "reply": "results",
                  "body": json.loads(anthropic_body("p"))}])).decode()
        ids += [f"{pack}.1", f"{pack}.2", *fleet.enqueue([anthropic_body("wrong")], shared="nothing")]
        assert {one["state"] for one in fleet.collect(8).values()} == {"dead"}
        fleet.end("scheduler")
        fleet.aliases = ("new",)
        fleet.urls = {"new": fleet.provider}
        fleet.write_config()
        fleet.start_all()
        assert "8 jobs queued again" in fleet.warmq("job", "retry", "--all")
        results = fleet.collect(8)
        assert [results[id]["state"] for id in ids] == ["done"] * 7 + ["dead"]
        assert results[ids[7]]["reason"] == "malformed"
        assert books.check(Surely(fleet)) == []


def test_a_packed_job_is_waited_for_before_its_entry_is_admitted(tmp_path):
    """Nothing was known of it: it never was, or its result had expired."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.end("scheduler")
        pack = fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "json", json.dumps(
            2 * [{"body": json.loads(anthropic_body("?"))}])).decode()
        command = [str(WARMQ), "job", "cancel", f"{pack}.2", "--redis", f"unix://{fleet.socket}"]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 1 and "is still in the inbox" in refused.stderr
        command[1:3] = ["wait"]
        waiter = subprocess.Popen(command, stdout=subprocess.PIPE)
        wait_until(lambda: b"cmd=xrange" in fleet.redis("CLIENT", "LIST"), "a look at it")
        fleet.start_all()
        text, _ = waiter.communicate(timeout=60)
        assert json.loads(text)["state"] == "done"
