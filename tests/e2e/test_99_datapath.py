"""What attacks on the way of a job from its producer to its result have broken, as tests with
real programs."""

import json

import books
from fleet import Fleet, anthropic_body, wait_until


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
