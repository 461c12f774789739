"""What attempts without an answer have cost: lines `spent`, once each, for the ledger."""

import pytest

from store import Worker, killed, opened

PAID = "1 2 0 30000 5 0"


def spent(store, family, why, words, role="p", g=1):
    return f"spent {family.lane} {family.id} {g} {role} {why} {words}"


@pytest.mark.parametrize("kind, why", [("retry", "failed"), ("fatal", "dead"),
                                       ("defer", "deferred")])
def test_a_failure_says_what_it_cost(store, kind, why):
    family, _ = opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim().jobs
    worker.fail(job, kind, usage=PAID, delay_ms=0)
    assert store.events("spent") == [spent(store, family, why, PAID)]


def test_a_failure_that_may_be_billed_says_so_and_a_refusal_says_nothing(store):
    family, _ = opened(store, count=2)
    worker = Worker(store)
    first, second = worker.claim(0, 1).jobs
    worker.fail(first, "defer", usage="1 - - - - - r=100")
    assert store.events("spent") == []
    worker.fail(second, "retry", usage="1 - - - - - b=1")
    assert store.events("spent") == [spent(store, family, "failed", "1 - - - - - b=1")]


def test_a_dead_worker_may_have_spent_something_for_each_lease(store):
    family, _ = opened(store, count=2)
    store.reap()
    killed(store, 2)
    store.reap_all()
    assert store.events("spent") == 2 * [spent(store, family, "worker_died",
                                               "- - - - - - b=1")]


def test_the_result_of_a_cancelled_job_was_paid_for(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    jobs = worker.claim().jobs
    store.ok("cancel", ids[0])
    worker.settle(jobs, usage=PAID)
    assert store.events("done") == []
    assert store.events("spent") == [spent(store, family, "dropped", PAID)]


def test_a_request_that_was_stopped_says_what_it_had_cost(store):
    family, ids = opened(store, count=2)
    worker = Worker(store)
    first, second = worker.claim(0, 1).jobs
    worker.release([first], sent=f"1 {PAID}")
    store.ok("cancel", ids[1])
    worker.release([second], sent="1 1 - - - - - b=1")
    assert store.events("spent") == [spent(store, family, "released", PAID),
                                     spent(store, family, "dropped", "1 - - - - - b=1")]


@pytest.mark.parametrize("sent", ["2", "", "1x", "yes"])
def test_sent_is_a_bit_and_perhaps_a_usage(store, sent):
    _, _ = opened(store, count=1)
    worker = Worker(store)
    with pytest.raises(Exception, match="sent: expected 0, 1, or 1 and a usage"):
        worker.release(worker.claim(0).jobs, sent=sent)


def late(store, id, family, token, usage=PAID):
    attempt = f"{family.lane} {family.id} p {token}"
    return store.ok("settle_late", "usage", id, "box", 60000, "late", attempt, usage)


def test_a_late_result_is_booked_once_whatever_becomes_of_it(store):
    family, ids = opened(store, count=1)
    store.reap()
    killed(store)
    store.reap_all()
    assert late(store, ids[0], family, "77.1") == ["OK"]
    assert late(store, ids[0], family, "77.1") == ["FENCED"]
    assert late(store, ids[0], family, "88.1") == ["FENCED"]
    assert store.replies("box") == ["late"]
    assert store.events("spent")[1:] == [
        spent(store, family, "accepted", PAID, g=0), spent(store, family, "late", PAID, g=0)]
    assert 0 < store.redis.pttl(store.key("paid:77.1")) <= 86400000


def test_a_late_result_that_may_have_been_settled_is_booked_only_if_it_is_taken(store):
    family, ids = opened(store, count=2)
    worker = Worker(store)
    job, _ = worker.claim(0, 1).jobs
    worker.settle([job], usage=PAID)  # its answer was lost
    assert late(store, ids[0], family, "?77.1") == ["FENCED"]
    assert not store.meta("late_refused")  # it had arrived: nothing was paid twice
    assert store.events("spent") == []
    store.broken = True  # a rollback: nobody leases it any more
    store.redis.delete(store.key(f"lease:{worker.nonce}"))
    assert late(store, ids[1], family, "?77.2") == ["OK"]
    assert store.events("spent") == [spent(store, family, "accepted", PAID, g=0)]


def test_a_late_result_of_a_job_that_another_run_has_ended_was_in_vain(store):
    """A settle that was in flight when the connection went is not one that was run."""
    family, ids = opened(store, count=2)
    worker = Worker(store)
    first, second = worker.claim(0, 1).jobs
    worker.settle([first, second], usage=PAID, result="theirs")
    attempt = f"{family.lane} {family.id} p ?77.1"
    assert store.ok("settle_late", "usage", ids[0], "", 60000, "ours", attempt, PAID,
                    ids[1], "", 60000, "theirs", attempt.replace("77.1", "77.2"),
                    PAID) == ["FENCED", "FENCED"]
    assert store.meta("late_refused") == "1"
    assert store.events("spent") == [spent(store, family, "late", PAID, g=0)]


@pytest.mark.parametrize("attempt", ["", "x", "0.0 p 1", "../../x p 1.1"])
def test_a_late_result_without_an_attempt_is_delivered_all_the_same(store, attempt):
    _, ids = opened(store, count=1)
    assert store.ok("settle_late", "usage", ids[0], "box", 60000, "late", attempt,
                    PAID) == ["OK"]
    assert store.events("spent") == []
