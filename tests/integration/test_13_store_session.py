"""hello, attach, beat, bye: a worker's life."""

import pytest
import redis

from store import WRITING, Family, Worker, opened


def test_a_nonce_is_used_once(store):
    worker = Worker(store)
    assert store.call("hello", worker.nonce, "x", "main", 4, "*", 30000, "") == ["GONE"]


def test_a_name_is_only_a_label_20(store):
    opened(store, count=2)
    first, second = Worker(store), Worker(store)
    first.claim(0)
    assert second.attach() == {}
    assert len(store.leases(first)) == 1


def test_a_successor_takes_the_leases_of_its_predecessor_away_20(store):
    family, ids = opened(store, count=2)
    old = Worker(store)
    old.claim()
    new = Worker(store, replaces=old.nonce)
    assert store.list(family, "back:n") == ids
    assert old.beat(busy=0) == ["GONE"]
    assert new.claim().ids == ids
    assert store.past(ids[0])["recoveries"] == "1"


def test_the_table_is_the_truth_2(store):
    _, ids = opened(store, count=2)
    worker = Worker(store)
    worker.claim(3, 5)
    c = worker.c
    table = worker.attach()
    assert worker.c == c + 1
    assert {slot: lease.id for slot, lease in table.items()} == {3: ids[0], 5: ids[1]}


def test_attach_is_a_beat_too_25(store):
    """Who comes back late has a whole lease to look for its results."""
    _, ids = opened(store, count=1)
    worker = Worker(store)
    worker.claim(0)
    store.redis.zadd(store.key("workers"), {worker.nonce: store.now() + 50})
    assert list(worker.attach()) == [0]
    assert store.redis.zscore(store.key("workers"), worker.nonce) > store.now() + 20000


def test_an_unknown_session_is_gone(store):
    nonce = "f" * 16
    assert store.call("attach", nonce, 30000) == ["GONE"]
    assert store.call("claim", nonce, 1, 1, 0) == ["GONE"]
    assert store.call("settle", nonce, 1, 0, 1, 0) == ["GONE"]
    assert store.call("beat", nonce, 1, 0, 30000) == ["GONE"]
    assert store.call("bye", nonce, 1) == ["GONE"]


def test_a_beat_moves_one_deadline(store):
    opened(store, count=2)
    worker = Worker(store, lease_ms=1000)
    worker.claim()
    before = store.redis.zscore(store.key("workers"), worker.nonce)
    answer = worker.beat(lease_ms=30000)
    assert answer[0] == "OK" and answer[2:] == [1]
    assert store.redis.zscore(store.key("workers"), worker.nonce) > before


def test_a_beat_says_that_holding_is_off(store):
    store.ok("hold", "off")
    assert Worker(store).beat()[2] == 0


def test_two_beats_that_differ_ask_to_reattach_20(store):
    opened(store, count=1)
    worker = Worker(store)
    worker.claim(0)
    assert worker.beat(busy=0)[0] == "OK"
    assert worker.beat(busy=1)[0] == "OK", "it agrees again: the count starts anew"
    assert worker.beat(busy=0)[0] == "OK"
    assert worker.beat(busy=0) == ["REATTACH"]


def test_a_beat_names_slots_whose_job_has_ended_15(store):
    _, ids = opened(store, count=3)
    worker = Worker(store)
    worker.claim(0, 1, 2)
    store.ok("cancel", ids[1])
    assert worker.beat()[3:] == ["1"]


def test_bye_releases_unharmed(store):
    family, ids = opened(store, count=2)
    worker = Worker(store)
    worker.claim()
    assert worker.bye()[0] == "OK"
    assert store.list(family, "back:n") == ids
    assert "recoveries" not in store.past(ids[0])
    assert worker.beat(busy=0) == ["GONE"]
    assert store.redis.keys(store.key("lease:*")) == []
    assert store.lane(family.lane).in_use == 0


def test_a_released_leader_gives_its_credit_back(store):
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    first = Worker(store)
    jobs = first.claim().jobs
    assert store.lane(family.lane).credits == 0
    first.release(jobs, sent=0)
    assert store.lane(family.lane).credits == 1
    assert [job.role for job in Worker(store).claim().jobs] == ["l"], "elected again"
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l released"]


def test_a_session_that_is_dying_is_gone_20(store):
    _, ids = opened(store, count=3)
    store.reap()
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    worker.claim(1, 2)
    worker.die()
    assert store.reap(chunk=1) == [1, 1, 0]
    # Half of its jobs are back: it must not settle the others.
    assert store.call("settle", worker.nonce, worker.c, 1, job.slot, job.q, "", "", 1000, "x",
                      9) == ["GONE"]
    assert worker.beat(busy=3) == ["GONE"]
    assert store.call("hello", worker.nonce, "x", "main", 4, "*", 30000, "") == ["GONE"]
    store.reap_all()


def test_mistakes_are_named(store):
    for args, complaint in [(["xyz", "x", "main", 4, "*", 1, ""], "nonce: expected 16 hex"),
                            (["0" * 16, "x", "a b", 4, "*", 1, ""], "pool"),
                            (["0" * 16, "x", "main", "many", "*", 1, ""], "slots"),
                            (["0" * 16, "x", "main", 4, "*", 1, "zz"], "nonce")]:
        with pytest.raises(redis.ResponseError, match=complaint):
            store.call("hello", *args)
    assert store.redis.exists(store.key("workers")) == 0


# ---- quiet and stop --------------------------------------------------------------------


def test_a_quiet_worker_gets_nothing_more_at_once(store):
    family, ids = opened(store, count=6)
    worker, other = Worker(store), Worker(store)
    held = worker.claim(0, 1).jobs
    assert store.ok("steer", worker.nonce, "quiet", "a b") == ["done"]
    assert store.events("steer") == [f"steer {worker.nonce} quiet a_b"]
    claim = worker.claim(2)
    assert claim.jobs == [] and claim.sleep_ms == 1000
    done = worker.settle(held[:1], claim=[0, 2])
    assert done.jobs == [] and done.problems == [], "its settles claim nothing, either"
    assert worker.beat()[2:] == [3]
    assert len(other.claim(0, 1, 2, 3).jobs) == 4, "others go on"
    assert store.ok("steer", worker.nonce, "run") == ["done"]
    assert worker.beat()[2:] == [1]
    store.enqueue(family, 1)
    assert len(worker.claim(0, 2).jobs) == 1
    assert store.audit() == []


def test_what_was_told_outlives_the_connection_and_not_the_process(store):
    opened(store, count=3)
    worker = Worker(store)
    store.ok("steer", worker.nonce, "stop")
    worker.attach()
    assert worker.beat()[2:] == [5]
    assert worker.claim(0).jobs == []
    restarted = Worker(store, replaces=worker.nonce)
    assert restarted.beat()[2:] == [1]
    assert len(restarted.claim(0).jobs) == 1
    assert store.ok("steer", worker.nonce, "quiet") == ["gone"]


def test_a_worker_that_was_quiet_says_so_with_its_next_session(store):
    opened(store, count=1)
    nonce = "00000000000000ee"
    assert store.ok("hello", nonce, "label", "main", 4, "*", 30000, "", 1000, "quiet") == [1]
    assert store.events("steer") == [f"steer {nonce} quiet "]
    assert store.call("claim", nonce, 1, 1, 0).split("\n")[3:] == []
    with pytest.raises(redis.ResponseError, match="manner: expected run"):
        store.call("hello", "00000000000000ed", "l", "main", 4, "*", 30000, "", 1000, "loud")
    with pytest.raises(redis.ResponseError, match="word: expected run"):
        store.call("steer", nonce, "loud")
    with pytest.raises(redis.ResponseError, match="budgets: expected names"):
        store.call("hello", "00000000000000ed", "l", "main", 4, "a|b", 30000, "")


def two_upstreams(store, count=3):
    """Jobs of two families, each with an upstream of its own."""
    here, there = Family(1, budget="here:large"), Family(2, budget="there@acme:small")
    both = [store.enqueue(family, count) for family in (here, there)]
    for family in (here, there):
        store.open(family, budget=family.budget)
    return both


def test_a_worker_gets_no_jobs_of_what_it_shuns_until_it_says_so(store):
    here, there = two_upstreams(store)
    worker = Worker(store)
    assert worker.beat(shunned="there")[0] == "OK"
    claim = worker.claim()
    assert claim.ids == here and claim.sleep_ms > 0
    assert worker.beat()[0] == "OK", "a beat that says nothing of it changes nothing"
    assert worker.claim(7).ids == []
    assert Worker(store).claim(0).ids == there[:1], "others get them"
    assert worker.beat(shunned="")[0] == "OK"
    assert worker.claim(6, 7).ids == there[1:]


def test_a_worker_may_try_one_job_of_what_it_shuns(store):
    here, there = two_upstreams(store)
    worker = Worker(store)
    worker.beat(shunned="there,here")
    assert worker.claim().ids == []
    assert worker.claim_of("there", 5).ids == there[:1]
    assert worker.claim_of("here", 6).ids == here[:1]
    assert worker.claim_of("elsewhere", 7).ids == []


def test_a_job_that_was_begun_before_does_not_go_on_with_what_is_shunned_now(store):
    """One that is settled asks for another one of its lane: not of this one."""
    here, there = two_upstreams(store, 9)
    worker = Worker(store)
    job, = worker.claim_of("there", 0).jobs
    worker.beat(shunned="there")
    assert worker.settle([job], [0]).ids == here[:1]
    jobs = [job for slot in (1, 2, 3) for job in worker.claim_of("there", slot).jobs]
    assert worker.settle(jobs[:1], [1]).ids == here[1:2]
    assert worker.settle(jobs[1:], [2, 3]).ids == here[2:4]


def test_what_is_shunned_outlives_a_connection_and_words_of_people(store):
    here, there = two_upstreams(store, 1)
    worker = Worker(store)
    worker.beat(shunned="here,there")
    worker.attach()
    assert store.ok("steer", worker.nonce, "quiet") == ["done"]
    assert store.ok("steer", worker.nonce, "run") == ["done"]
    assert worker.claim().ids == []
    worker.beat(shunned="there")
    assert worker.claim().ids == here


def test_a_session_with_budgets_of_its_own_shuns_among_them(store):
    here, there = two_upstreams(store)
    worker = Worker(store, budgets="there@acme:small")
    assert worker.claim(0).ids == there[:1]
    worker.beat(shunned="there")
    assert worker.claim(1).ids == []


def test_what_is_shunned_are_names(store):
    with pytest.raises(redis.ResponseError, match="shunned: expected names"):
        Worker(store).beat(shunned="a|quiet")


def test_an_unsent_job_answers_what_its_account_may_have(store):
    two_upstreams(store)
    worker = Worker(store)
    store.grant_budget("here:large", pace=1)
    job, = worker.claim_of("here", 0).jobs
    answer = store.call("fail", worker.nonce, worker.c, job.slot, job.q, "unsent", 3, 0, 0,
                        "unreached", "", "", "", 60000, "")
    assert answer[0] == "OK" and answer[2:] == ["back", 1]
