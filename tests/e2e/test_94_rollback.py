"""Redis comes back with an older past while everything runs: a failover, a lost disk.

The append-only file is cut where it ended a second before Redis is killed.  What is told
here of single functions is row by row in tests/integration/test_16_store_rollback.py."""

import glob
import json
import os
import time

import pytest

import books
from fleet import Fleet, wait_until
from test_93_restarts import KNOBS, bodies_of, check_done

DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage",
           "0")


class Link:
    def __init__(self, fleet):
        self.surely = fleet.redis


def log_size(fleet):
    [path] = glob.glob(str(fleet.directory / "appendonlydir" / "*.incr.aof"))
    return path, os.path.getsize(path)


def roll_back(fleet, mark):
    """What was done since the mark has never happened, says a Redis that was killed."""
    fleet.redis.close()
    os.truncate(*mark)
    fleet.start_redis()


def take_results(fleet, results):
    """A consumer that drops repeats by id; answers how many there were."""
    repeats = 0
    while True:
        popped = fleet.redis("LPOP", "warmq:reply:results", 100)
        if not popped:
            return repeats
        for text in popped:
            result = json.loads(text)
            repeats += result["id"] in results
            results[result["id"]] = result


@pytest.mark.parametrize("at", [80])
def test_jobs_end_once_each_after_redis_lost_its_last_writes_10(tmp_path, at):
    """at: how many results there are when the writes that will be lost begin; at 0 the
    scheduler has not admitted all of them, and the workers know a session that is no more
    in some runs."""
    results = {}
    with Fleet(tmp_path, knobs=KNOBS, redis_options=DURABLE) as fleet:
        fleet.start_all(2, 20)
        ids = fleet.enqueue(bodies_of(0, 200))
        wait_until(lambda: take_results(fleet, results) or len(results) >= at, f"{at} results",
                   20)
        before, mark = fleet.stats()["requests"], log_size(fleet)
        lost_at = time.monotonic() + 1
        wait_until(lambda: take_results(fleet, results) or time.monotonic() > lost_at,
                   "the writes that are lost", 5)
        had = len(results)
        fleet.kill("redis")  # nothing is claimed from now on
        lost = fleet.stats()["requests"] - before
        roll_back(fleet, mark)
        repeats = 0

        def all_ended():
            nonlocal repeats
            repeats += take_results(fleet, results)
            return len(results) == 200

        wait_until(all_ended, "200 results", 90)
        check_done(results, ids)
        assert repeats <= had - at + 40, "only what was lost may come twice (R5)"
        stats = fleet.stats()
        assert stats["requests"] <= 200 + lost + 2 * 40, "nor run twice"
        assert books.check(Link(fleet)) == []
