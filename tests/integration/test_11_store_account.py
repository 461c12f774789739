"""claim within accounts: budgets of a session, parked ones, pace, and buckets of tokens."""

from store import CLOSED, WRITING, Family, Worker, opened


def test_best_score_first_over_all_budgets(store):
    first, first_ids = opened(store, 1, 1, budget="b:one")
    second, second_ids = opened(store, 2, 1, name="h", budget="b:two")
    assert Worker(store).claim().ids == second_ids + first_ids


def test_a_session_takes_only_from_its_budgets_23(store):
    opened(store, 1, 1, budget="b:one")
    _, ids = opened(store, 2, 1, budget="b:two")
    assert Worker(store, budgets="b:two").claim().ids == ids


def test_a_parked_budget_costs_one_read_and_says_until_when_23(store):
    for number in range(2, 50):
        opened(store, number, 1, budget="b:parked")
    _, ids = opened(store, 1, 1, budget="b:fine")
    store.grant_budget("b:parked", parked=store.now() + 5000)
    worker = Worker(store)
    before = store.redis.info("commandstats")["cmdstat_hget"]["calls"]
    assert worker.claim(0).ids == ids
    assert store.redis.info("commandstats")["cmdstat_hget"]["calls"] - before < 8
    claim = worker.claim(1)
    assert claim.jobs == []
    assert 0 < claim.sleep_ms <= 1000


def test_when_every_budget_is_parked_the_answer_says_how_long_23(store):
    opened(store, 1, 1)
    store.grant_budget("acme:large", parked=store.now() + 5000)
    assert 4000 < Worker(store).claim().sleep_ms <= 5000


def test_the_pace_bounds_what_is_in_flight(store):
    opened(store, count=10)
    store.grant_budget("acme:large", pace=3)
    worker = Worker(store)
    claim = worker.claim()
    assert len(claim.jobs) == 3
    assert len(worker.settle(claim.jobs[:2], claim=[6, 7]).jobs) == 2
    assert store.flight() == 3


def test_the_pace_bounds_what_is_in_flight_where_buckets_would_have_room(store):
    opened(store, count=10, input=1, output=1)
    store.grant_budget("acme:large", pace=3, r=1000, i=100000, o=100000)
    assert len(Worker(store).claim().jobs) == 3
    assert store.flight() == 3


def test_a_bucket_holds_a_minute_however_long_nobody_asks(store):
    opened(store, count=2, input=400)
    store.grant_budget("acme:large", i=1000)
    store.redis.hset(store.key("budget:acme:large"), mapping={"i.level": 0, "i.at": 1})
    assert len(Worker(store).claim(0).jobs) == 1
    assert 600 <= float(store.budget()["i.level"]) <= 610


def test_an_account_that_drifted_is_at_none_in_flight_and_counted_13(store):
    store.broken = True
    opened(store, count=2)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    store.redis.hset(store.key("budget:acme:large"), "in_flight", 0)
    worker.settle(jobs)
    assert store.flight() == 0
    assert store.meta("lane_drift") == "1"


def test_a_start_needs_level_for_its_estimate_and_may_not_push_below_22(store):
    opened(store, count=10, input=400, output=10)
    since = store.now()
    store.grant_budget("acme:large", i=1000)
    claim = Worker(store).claim()
    assert len(claim.jobs) == 2, "400 + 400 of 1000 a minute"
    assert claim.sleep_ms > 0
    assert store.leases
    assert store.is_charged("i", 200, 1000, since)


def test_a_job_larger_than_the_bucket_starts_when_it_is_full_22(store):
    opened(store, count=2, input=5000)
    store.grant_budget("acme:large", i=1000)
    assert len(Worker(store).claim().jobs) == 1


def test_what_a_job_asks_for_blocks_nobody_for_longer_than_a_minute_22(store):
    opened(store, count=2, input=99999999, output=99999999)
    since = store.now()
    store.grant_budget("acme:large", i=1000, o=500)
    worker = Worker(store)
    jobs = worker.claim(0, 1).jobs
    assert len(jobs) == 1
    assert (store.leases(worker)[0].input, store.leases(worker)[0].output) == (2000, 1000)
    assert store.is_charged("i", -1000, 1000, since)
    assert store.is_charged("o", -500, 500, since)
    worker.release(jobs, 0)
    assert float(store.budget()["i.level"]) == 1000
    assert float(store.budget()["o.level"]) == 500


def test_an_estimate_in_the_element_is_used_instead_22(store):
    _, ids = opened(store, count=3, input=10, suffix="/600,1")
    store.grant_budget("acme:large", i=1000)
    worker = Worker(store)
    assert len(worker.claim().jobs) == 1
    assert store.leases(worker)[0].input == 600


def test_a_start_that_may_write_pays_for_the_prefix_22(store):
    family = Family(1, input=10)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1, p=30000)
    store.grant_budget("acme:large", i=50000)
    worker = Worker(store)
    worker.claim()
    assert store.leases(worker)[0].input == 30010


def test_a_start_past_its_hold_limit_pays_for_the_prefix_22(store):
    family = Family(1, input=10, hold_max=1)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=CLOSED, p=30000)
    store.grant_budget("acme:large", i=50000)
    worker = Worker(store)
    assert worker.claim().jobs == []
    store.wait_past(store.now() + 2)
    assert [job.role for job in worker.claim().jobs] == ["h"]
    assert store.leases(worker)[0].input == 30010
