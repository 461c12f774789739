"""reap, and what a worker's death may cost."""

from store import WRITING, Family, Worker, killed, opened, wait_until


def test_a_dead_workers_jobs_come_back_in_order(store):
    family, ids = opened(store, count=5)
    store.reap()
    killed(store, 5)
    assert store.reap() == [5, 0, 0]
    assert store.list(family, "back:n") == ids
    assert store.past(ids[0])["recoveries"] == "1"
    assert store.meta("recovered") == str(len(ids))
    assert "attempts" not in store.past(ids[0])
    assert store.redis.keys(store.key("lease:*")) + store.redis.keys(store.key("session:*")) == []


def test_chunks_hand_back_everything_sorted_20(store):
    family, ids = opened(store, count=23)
    store.reap()
    killed(store, 23)
    answers = [store.reap(chunk=5)]
    while answers[-1][1]:
        answers.append(store.reap(chunk=5))
    assert [answer[0] for answer in answers] == [5, 5, 5, 5, 3]
    assert store.list(family, "back:n") == ids


def test_a_real_lease_runs_out(store):
    opened(store, count=1)
    store.reap()
    worker = Worker(store, lease_ms=20)
    worker.claim(0)
    wait_until(lambda: store.reap()[0] == 1, "the lease to run out")
    assert worker.beat(busy=1) == ["GONE"]


def test_redis_away_for_longer_than_a_lease_reaps_nobody_5(store):
    opened(store, count=200)
    store.reap()
    worker = Worker(store, slots=200)
    worker.claim(*range(200))
    # Redis loads its file for a minute: everything expired, nobody ticked.
    worker.die()
    before = store.now()
    store.redis.hset(store.key("meta"), "tick", before - 60000)
    returned, more, hold = store.reap()
    assert (returned, more) == (0, 0)
    assert before + 29000 < hold <= store.now() + 30000
    assert store.reap() == [0, 0, hold]
    assert worker.beat()[0] == "OK", "it had the time to beat"
    store.redis.hset(store.key("meta"), "reap_hold", store.now() - 1)
    assert store.reap() == [0, 0, 0]


def test_who_expired_within_a_hold_counts_no_recovery_5(store):
    family, ids = opened(store, count=2)
    store.reap()
    killed(store, 2)
    store.redis.hset(store.key("meta"), "reap_hold", store.now())
    store.wait_past(store.now() + 1)
    store.reap_all()
    assert store.list(family, "back:n") == ids
    assert "recoveries" not in store.past(ids[0])


def test_a_clock_that_goes_back_makes_nothing_last_longer_5(store):
    """An account rests for a second, and a job is tried again in two, not in an hour more."""
    family, ids = opened(store, count=3)
    store.grant_budget("acme:large", r=60)
    held = Family(2)
    store.enqueue(held, 1)
    worker = Worker(store)
    retried = worker.claim(0).jobs
    assert worker.fail(retried[0], "retry", delay_ms=1000) == "later"
    delayed = store.add()
    store.admit(delayed, later=[(delayed, store.now() + 5000, family.id, "n", "slim1 own\n\n")],
                gone=[delayed])
    store.reap()
    budget, hour = store.key("budget:acme:large"), 3600000
    now = store.now()
    due = store.redis.zscore(store.key("later"), retried[0].id)
    long = store.redis.zscore(store.key("later"), delayed)
    blocked = store.held_set()[held.lane]
    store.redis.hset(budget, mapping={"parked_until": now + 1000 + hour, "r.at": now + hour,
                                      "r.level": -5, "blocked_at": now + hour})
    store.redis.zadd(store.key("later"), {retried[0].id: due + hour, delayed: long + hour})
    store.redis.zadd(store.key("held:main:acme:large"), {held.lane: blocked + hour})
    store.redis.hset(store.key("meta"), "tick", now + hour)
    assert store.reap()[2] > 0
    took = store.now() - now
    assert now + 1000 <= float(store.budget()["parked_until"]) <= now + 1000 + took
    assert float(store.budget()["blocked_at"]) <= now + took
    assert float(store.budget()["r.at"]) <= now + took
    assert due <= store.redis.zscore(store.key("later"), retried[0].id) <= due + took
    assert store.redis.zscore(store.key("later"), delayed) == long + hour
    assert blocked <= store.held_set()[held.lane] <= blocked + took


def test_a_clock_that_jumps_back_holds_and_cuts_deadlines_5(store):
    store.reap()
    worker = Worker(store)
    store.redis.hset(store.key("meta"), "tick", store.now() + 40000)
    store.redis.zadd(store.key("workers"), {worker.nonce: store.now() + 90000})
    assert store.reap()[2] > 0
    assert store.redis.zscore(store.key("workers"), worker.nonce) <= store.now() + 30000


def test_a_takeover_of_ten_seconds_needs_no_hold_26(store):
    opened(store, count=1)
    store.reap()
    killed(store, 1)
    store.redis.hset(store.key("meta"), "tick", store.now() - 11000)
    store.ok("rule", "00000000000000aa", 0)
    store.rule(nonce="00000000000000bb")
    assert store.reap()[0] == 1


def test_a_missing_lane_record_does_not_multiply_jobs_4(store):
    store.broken = True
    family, ids = opened(store, count=3)
    store.reap()
    killed(store, 3)
    store.redis.hdel(store.key("lanes"), family.lane)
    for _ in range(3):
        store.reap()
    assert store.list(family, "back:n") == ids
    assert store.lane(family.lane).pool == "main", "the family's lane was made again"


def test_a_missing_family_record_loses_no_job(store):
    store.broken = True
    family, ids = opened(store, count=3)
    store.reap()
    killed(store, 3)
    store.redis.hdel(store.key("families"), family.id)
    store.reap_all()
    assert Worker(store).claim().ids == ids


def test_one_killer_takes_no_innocent_along_12(store):
    family, ids = opened(store, count=10)
    killer = ids[3]
    store.reap()
    runs = {id: 0 for id in ids}
    done = set()
    for _ in range(40):
        worker = Worker(store, slots=4)
        jobs = worker.claim(0, 1, 2, 3).jobs
        for job in jobs:
            runs[job.id] += 1
        if killer in [job.id for job in jobs]:
            worker.die()
            store.reap_all()
        else:
            worker.settle(jobs)
            done |= {job.id for job in jobs}
            worker.bye()
    assert store.dead() == [killer]
    assert store.past(killer)["reason"] == "poison"
    assert done == set(ids) - {killer}
    assert runs[killer] == 3


def test_a_session_holds_one_suspect_at_a_time_12(store):
    family, ids = opened(store, count=4)
    store.reap()
    for _ in range(2):
        killed(store, 4)
        store.reap_all()
    worker = Worker(store)
    first = worker.claim().jobs
    assert [job.id for job in first] == ids[:1]
    assert worker.claim(1, 2).jobs == []
    fresh = store.enqueue(family, 2)
    assert worker.claim(1, 2).ids == fresh, "suspects stay, others pass"
    other = Worker(store)
    assert other.claim().ids == ids[1:2]
    assert worker.settle(first, claim=[0]).ids == ids[2:3], "settled: it may take the next"


def test_orderly_stops_make_no_suspects_12(store):
    _, ids = opened(store, count=1)
    for _ in range(5):
        worker = Worker(store)
        assert worker.claim(0).ids == ids
        worker.bye()
    past = store.past(ids[0])
    assert past["deliveries"] == "5" and "recoveries" not in past


def test_a_dead_leader_is_elected_again_without_the_scheduler_8(store):
    family = Family(1)
    ids = store.enqueue(family, 2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    store.reap()
    killed(store, 1)
    store.reap_all()
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l worker_died"]
    [job] = Worker(store).claim().jobs
    assert (job.role, job.id) == ("l", ids[1]), "who may have brought it down leads no more"


def test_a_leader_that_has_begun_gives_no_credit_back_8(store):
    """The scheduler hears of its first event and elects the next one itself."""
    for end in ["release", "reap", "bye"]:
        family = Family(len(end))
        store.enqueue(family, 2)
        store.grant(family.lane, gate=WRITING, credits=1, role=1)
        store.reap()
        worker = Worker(store)
        [job] = worker.claim(0).jobs
        assert worker.begin(job, "1 2 3 4 - -")[0] == "OK"
        assert store.leases(worker)[0].begun and store.leases(worker)[0].role == "l"
        assert worker.begin(job, "1 2 3 4 - -")[0] == "OK"
        if end == "release":
            worker.release([job])
        elif end == "bye":
            worker.bye()
        else:
            worker.die()
            store.reap_all()
        assert store.events("back")[-1] == f"back {family.lane} {family.id} 1 l failed"
        assert store.lane(family.lane).credits == 0
        assert Worker(store).claim().jobs == []


def test_a_leader_that_has_begun_settles_like_all_others(store):
    family = Family(1)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    worker.begin(job, "1 2 3 4 - -")
    worker.settle([job], usage="1 2 3 4 5 6")
    assert store.events("done") == [f"done {family.lane} {family.id} 1 l 1 2 3 4 5 6"]
    assert store.leases(worker) == {} and store.lane(family.lane).in_use == 0


def test_a_credit_of_an_older_generation_does_not_come_back(store):
    family = Family(1)
    store.enqueue(family, 2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    store.grant(family.lane, gate=WRITING, credits=0)
    worker.release(jobs)
    assert store.lane(family.lane).credits == 0


def test_a_dead_workers_ticket_has_failed_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    store.reap()
    killed(store, 1)
    store.reap_all()
    lane = store.lane(family.lane)
    assert (lane.ticket, lane.in_use, lane.note) == (4, 0, "failed,worker_died")
    assert store.events("ticket") == [f"ticket {family.lane} 1 failed worker_died"]


def test_a_wanted_ticket_that_nobody_takes_ends_at_its_deadline_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    deadline = store.now() + 10
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=deadline)
    store.reap()
    store.wait_past(deadline)
    store.reap()
    assert store.lane(family.lane).note == "failed,overdue"


def test_a_taken_ticket_gets_the_time_of_a_leader_and_is_stopped_before_its_end_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    worker, jobs, patience_ms = Worker(store), [], 10
    while not jobs:  # a machine may be slower than the ticket
        patience_ms *= 2
        wanted_until = store.now() + patience_ms
        store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=wanted_until)
        store.reap()
        before = store.now()
        jobs = worker.claim().jobs
    leader_ms = int(jobs[0].leader_ms)
    deadline = store.redis.zscore(store.key("tickets"), family.lane)
    assert leader_ms > 0 and deadline >= before + leader_ms + 4000
    store.wait_past(wanted_until)
    store.reap()
    assert store.lane(family.lane).ticket == 2, "its taker may still be writing"


def test_a_ticket_ends_at_its_deadline_even_if_its_worker_lives_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    store.reap()
    worker = Worker(store)
    [job] = worker.claim().jobs
    store.redis.zadd(store.key("tickets"), {family.lane: store.now() - 1})
    store.reap()
    lane = store.lane(family.lane)
    assert (lane.ticket, lane.in_use, lane.note) == (4, 0, "failed,overdue")
    assert store.leases(worker) == {}, "who has no lease any more is nobody's second writer"
    assert store.events("ticket") == [f"ticket {family.lane} 1 failed overdue"]


def test_a_released_ticket_is_wanted_again_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    first = Worker(store)
    first.release(first.claim().jobs, sent=0)
    assert store.lane(family.lane).ticket == 1
    assert len(Worker(store).claim().jobs) == 1


def test_a_released_ticket_that_has_begun_has_failed_8(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    worker = Worker(store)
    [job] = worker.claim().jobs
    worker.begin(job, "1 2 3 4 - -")
    worker.release([job])
    assert store.lane(family.lane).ticket == 4
    assert store.events("ticket")[-1].endswith("1 failed released")
    assert Worker(store).claim().jobs == []


def test_a_live_sessions_lease_has_a_hard_end_20(store):
    family, ids = opened(store, count=2)
    store.reap()
    worker = Worker(store, job_ms=1000)
    before = store.now()
    worker.claim(0)
    lease = store.leases(worker)[0]
    assert before + 61000 < lease.end <= store.now() + 62000
    overdue = store.redis.hget(store.key(f"lease:{worker.nonce}"), 0).replace(
        f"|{lease.end}|", f"|{store.now() - 1}|")
    store.redis.hset(store.key(f"lease:{worker.nonce}"), 0, overdue)
    worker.claim(1)
    worker.beat()
    assert store.reap()[0] == 1
    assert store.list(family, "back:n") == ids[:1]
    assert list(store.leases(worker)) == [1]
    assert store.redis.zscore(store.key("ends"), worker.nonce) == store.leases(worker)[1].end


def test_reaped_jobs_give_no_tokens_back_22(store):
    opened(store, count=1, input=400)
    since = store.now()
    store.grant_budget("acme:large", i=1000)
    store.reap()
    killed(store, 1)
    store.reap_all()
    assert store.is_charged("i", 600, 1000, since)
    assert store.flight() == 0


def test_cancelled_jobs_of_a_dead_worker_are_only_dropped_15(store):
    family, ids = opened(store, count=2)
    store.reap()
    worker, _ = killed(store, 2)
    store.ok("cancel", ids[0])
    store.reap_all()
    assert store.list(family, "back:n") == ids[1:]
    assert store.redis.exists(store.key("ended")) == 0


def test_jobs_that_return_wake_the_pool_28(store):
    opened(store, count=1)
    store.reap()
    killed(store, 1)
    channel = store.redis.pubsub()
    channel.subscribe(store.key("wake"))
    channel.get_message(timeout=120)
    store.reap_all()
    assert channel.get_message(timeout=120)["data"] == "main"
    channel.close()


def test_a_million_due_jobs_do_not_delay_a_retry_36(store):
    family = Family(1)
    entries = [store.add() for _ in range(40)]
    old = store.now() - 100000
    store.admit(entries[-1], families=[family], gone=entries,
                later=[(id, old + i, family.id, "n", "x") for i, id in enumerate(entries)])
    retry = Family(2)
    [id] = store.enqueue(retry)
    store.open(retry)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "retry", delay_ms=1)
    store.wait_past(store.redis.zscore(store.key("later"), id))
    store.promote(8)
    assert store.list(retry, "back:n") == [id]
