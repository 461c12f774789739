"""What attacks on the way of a job from its producer to its result have broken, as tests with
real programs."""

import json
import os
import subprocess

import books
from fleet import WARMQ, Fleet, anthropic_body, wait_until


class Surely:
    def __init__(self, fleet):
        self.surely = fleet.redis


def result_of(fleet, id):
    text = fleet.redis("GET", f"warmq:result:{id}")
    return text and json.loads(text)


def test_a_pack_of_one_job_is_a_pack(tmp_path):
    """Its job went by the id of the entry: who had packed what he had, and had one, waited for
    `<entry>.1` for ever, and could not cancel it."""
    body = json.loads(anthropic_body("?"))
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = [fleet.redis("XADD", "warmq:jobs", "*", "upstream", "main", "json",
                           json.dumps([{"body": body}])).decode() for _ in range(2)]
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") == f"{ids[1]} 0".encode(),
                   "admission")
        fleet.warmq("job", "cancel", f"{ids[0]}.1")
        fleet.start_worker("worker-1")
        assert result_of(fleet, f"{ids[0]}.1")["state"] == "cancelled"
        assert json.loads(fleet.warmq("wait", "--json", ids[1]))["id"] == f"{ids[1]}.1"
        assert books.check(Surely(fleet)) == []


def test_times_of_a_job_that_is_retried_count_from_its_own_id(tmp_path):
    """They counted from the id of the first one that this scheduler had looked at anew."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        body = anthropic_body("?")
        ids = [fleet.redis("XADD", "warmq:jobs", id, "upstream", "new", "body", body,
                           *more).decode()
               for id, more in (("1000000000000-0", ()), ("*", ("deadline", "+1h")),
                                ("*", ("not_before", "+1h")))]
        wait_until(lambda: all(result_of(fleet, id) for id in ids), "their ends")
        fleet.end("scheduler")
        fleet.aliases, fleet.urls = ("new",), {"new": fleet.provider}
        fleet.write_config()
        fleet.start_all()
        for id in ids:
            fleet.warmq("job", "retry", id)
            wait_until(lambda: not fleet.redis("HGET", f"warmq:past:{id}", "reason") or
                       fleet.redis("HGET", f"warmq:past:{id}", "reason") == b"delayed",
                       f"{id} in its place")
        wait_until(lambda: result_of(fleet, ids[1]), "a result")
        assert result_of(fleet, ids[1])["state"] == "done"
        due = int(fleet.redis("ZSCORE", "warmq:later", ids[2]))
        assert due == int(ids[2].split("-")[0]) + 3600000
        fleet.warmq("job", "cancel", ids[2])
        assert books.check(Surely(fleet)) == []


def test_all_dead_jobs_are_dropped_by_two_who_say_so_at_once(tmp_path):
    """Each took what the other had dropped for what could not be dropped, and went past as many."""
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        body = json.loads(anthropic_body("?"))
        fleet.redis("XADD", "warmq:jobs", "*", "upstream", "new", "reply", "dead", "json",
                    json.dumps([{"body": body}] * 6000))
        wait_until(lambda: fleet.redis("ZCARD", "warmq:dead") == 6000, "deaths")
        env = {**os.environ, "WARMQ_REDIS": f"unix://{fleet.socket}"}
        both = [subprocess.Popen([str(WARMQ), "job", "drop", "--all", "--json"], env=env,
                                 stdout=subprocess.PIPE) for _ in range(2)]
        said = [json.loads(one.communicate(timeout=60)[0]) for one in both]
        assert fleet.redis("ZCARD", "warmq:dead") == 0, said
        assert sum(one["done"] for one in said) == 6000
        assert books.check(Surely(fleet)) == []


def test_an_account_of_many_pools_is_named_once(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        for pool in ("one", "two"):
            fleet.redis("HSET", "warmq:pools", pool, "main:large")
        fleet.redis("HSET", "warmq:budget:main:large", "parked_until", "4000000000000")
        assert fleet.warmq("doctor").count("the account main:large is parked") == 1
