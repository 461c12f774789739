"""Results that come late: behind a death, an earlier process, or a rollback."""

import pytest
import redis

from store import NEVER, Worker, killed, opened


def test_a_late_result_is_accepted_if_nobody_has_the_job_16(store):
    family, ids = opened(store, count=1)
    store.reap()
    killed(store)
    store.reap_all()
    assert store.ok("settle_late", ids[0], "box", 60000, "paid for") == ["OK"]
    assert store.replies("box") == ["paid for"]
    assert store.list(family, "back:n") == ids, "it stays in its list, as ended"
    assert Worker(store).claim().jobs == []
    assert store.redis.exists(store.key("ended"), store.key(f"past:{ids[0]}")) == 0
    assert store.ok("settle_late", ids[0], "box", 60000, "again") == ["FENCED"]
    assert (store.meta("late_accepted"), store.meta("late_refused")) == ("1", "1")
    assert store.family(family).live == 0


def test_a_late_result_of_a_job_that_runs_again_is_fenced_16(store):
    _, ids = opened(store, count=1)
    store.reap()
    killed(store)
    store.reap_all()
    other = Worker(store)
    jobs = other.claim().jobs
    assert store.ok("settle_late", ids[0], "box", 60000, "late") == ["FENCED"]
    assert store.replies("box") == []
    assert other.settle(jobs, reply="box").problems == []
    assert store.replies("box") == [f"result of {ids[0]}"]


def test_what_a_dead_process_still_leases_is_settled_for_it_before_others_get_it_16(store):
    family, ids = opened(store, count=3)
    store.reap()
    gone = Worker(store)
    gone.claim(0, 1)
    other = Worker(store)
    [job] = other.claim(0).jobs
    assert store.ok("settle_late", "of", gone.nonce, "usage", ids[0], "box", 60000, "paid for",
                    "", "", ids[2], "box", 60000, "fenced", "", "") == ["OK", "FENCED"]
    assert store.ok("settle_late", "of", other.nonce, ids[1], "box", 60000, "x") == ["FENCED"]
    assert store.replies("box") == ["paid for"]
    Worker(store, replaces=gone.nonce)
    assert other.claim(1, 2).ids == [ids[1]], "it comes back without the one that has ended"
    assert store.redis.exists(store.key("ended"), store.key(f"past:{ids[0]}")) == 0
    assert other.settle([job], reply="box").problems == []
    with pytest.raises(redis.ResponseError, match="16 hex digits"):
        store.ok("settle_late", "of", "x", ids[1], "", 60000, "late")


def test_a_claim_undone_by_a_rollback_heals_10_r3(store):
    # The job is in ready again, the worker runs it: attach does not show the slot, and
    # the result is delivered by the late rule.
    family, ids = opened(store, count=1)
    worker = Worker(store)
    assert worker.attach() == {}
    assert store.ok("settle_late", ids[0], "", 60000, "paid for") == ["OK"]
    assert store.result(ids[0]) == "paid for"
    assert worker.claim().jobs == []
    assert store.family(family).live == 0


def test_a_settle_undone_by_a_rollback_heals_10_r4(store):
    # The lease is back in the table of a live worker: attach shows it, the kept result is
    # sent again.
    _, ids = opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    table = worker.attach()
    assert table[0].q == job.q
    assert worker.settle([job], reply="box").problems == []
    assert len(store.replies("box")) == 1


def test_late_results_of_jobs_not_admitted_yet_leave_no_mark_10_r2(store):
    entry = store.add()
    assert store.ok("settle_late", entry, "", 60000, "paid for") == ["OK"]
    assert store.redis.exists(store.key("ended")) == 0
    assert store.redis.xlen(store.key("jobs")) == 0


def test_nothing_of_a_life_is_left_over(store):
    family, ids = opened(store, count=20)
    worker = Worker(store)
    jobs = worker.claim().jobs
    while jobs:
        jobs = worker.settle(jobs, claim=range(8), reply="box").jobs
    worker.bye()
    left = {key.split(":", 1)[1] for key in store.redis.keys()}
    assert left == {"jobs", "events", "meta", "families", "lanes", "pools", "idle",
                    f"px:{family.id}", "reply:box", "budget:acme:large", "stamp"}
    assert NEVER == store.lane(family.lane).until
