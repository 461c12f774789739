"""fail, release: attempts, deferrals, later, dead; and back again by requeue."""

import json

import pytest
import redis

from store import WRITING, Family, Worker, opened

SENT = "1 - - - - -"  # it went out, and nothing came of it


def test_a_retry_counts_and_at_the_limit_is_dead(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    for attempt in (1, 2):
        assert worker.fail(worker.claim(0).jobs[0], "retry", reason="http_500") == "back"
        assert store.past(ids[0])["attempts"] == str(attempt)
    assert worker.fail(worker.claim(0).jobs[0], "retry", reason="http_500", text="it burns",
                       reply="box", result="failed") == "dead"
    assert store.dead() == ids
    past = store.past(ids[0])
    assert (past["reason"], past["why"], past["deliveries"]) == ("http_500", "it burns", "3")
    assert store.replies("box") == ["failed"]
    assert store.redis.xlen(store.key("jobs")) == 0
    assert store.redis.exists(store.key(f"slim:{ids[0]}")) == 1
    assert store.family(family).live == 1, "a dead job keeps its segments"
    assert store.events("dead") == [f"dead {ids[0]} http_500"]
    assert store.meta("retried") == "2", "the third one was the end, not a return"


def test_a_delayed_retry_waits_in_later(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "retry", delay_ms=50000) == "later"
    assert worker.claim().jobs == []
    promoted, due = store.promote()
    assert promoted == 0 and 0 < due - store.now() <= 50000
    store.redis.zadd(store.key("later"), {ids[0]: store.now()})  # 50 seconds later
    assert store.promote() == [1, 0]
    assert store.list(family, "back:n") == ids
    assert store.events("work") == [f"work {family.id}"]
    assert worker.claim().ids == ids


def test_who_waits_long_leaves_the_stream_17(store):
    family, ids = opened(store, count=1, suffix="/900,9")
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "retry", delay_ms=61000) == "later"
    assert store.redis.xlen(store.key("jobs")) == 0
    assert store.past(ids[0])["element"] == f"{ids[0]}~/900,9"
    store.redis.zadd(store.key("later"), {ids[0]: 1})
    store.promote()
    [job] = worker.claim(0).jobs
    assert job.element == f"{ids[0]}~/900,9"
    worker.settle([job])
    assert store.redis.keys(store.key("slim:*")) == []
    assert store.meta("slims") == "0"


def test_a_deferral_is_never_an_attempt_22(store):
    family, ids = opened(store, count=1, input=400)
    since = store.now()
    store.grant_budget("acme:large", r=100, i=1000)
    worker = Worker(store)
    park = store.now() + 5000
    assert worker.fail(worker.claim(0).jobs[0], "defer", park_ms=5000, reason="429") == "back"
    assert int(store.budget()["parked_until"]) >= park
    past = store.past(ids[0])
    assert past["deferrals"] == "1" and "attempts" not in past
    assert float(store.budget()["i.level"]) == 1000, "the tokens come back"
    assert store.is_charged("r", 99, 100, since), "the request does not"
    assert store.list(family, "back:n") == ids, "not in later: its budget holds it"
    assert store.events("pressure")[0].startswith("pressure acme:large 429 ")


def test_from_the_third_deferral_on_a_job_waits_by_itself_23(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "defer") == "back"
    assert worker.fail(worker.claim(0).jobs[0], "defer") == "back"
    before = store.now()
    assert worker.fail(worker.claim(0).jobs[0], "defer") == "later"
    assert before + 900 <= store.redis.zscore(store.key("later"), ids[0]) <= before + 2000


def test_a_day_of_deferrals_is_enough(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "defer")
    store.redis.hset(store.key(f"past:{ids[0]}"), "deferred_at", store.now() - 86400001)
    assert worker.fail(worker.claim(0).jobs[0], "defer") == "dead"
    assert store.past(ids[0])["reason"] == "deferred"


def test_what_was_never_sent_gives_all_back_22(store):
    family = Family(1, input=400)
    ids = store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    store.grant_budget("acme:large", r=100, i=1000)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "unsent") == "back"
    assert store.lane(family.lane).credits == 1
    assert float(store.budget()["i.level"]) == 1000
    assert float(store.budget()["r.level"]) == 100
    assert worker.claim(0).ids == ids


@pytest.mark.parametrize("usage, left", [
    (SENT, 1000), ("1 2 - - - - b=1", 600), ("1 2 100 200 50 7", 750)])
def test_what_a_provider_refuses_for_good_gives_the_tokens_back_22(store, usage, left):
    opened(store, count=1, input=400)
    since = store.now()
    store.grant_budget("acme:large", r=100, i=1000)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "fatal", usage=usage) == "dead"
    assert store.is_charged("i", left, 1000, since)
    assert store.is_charged("r", 99, 100, since), "the request does not"


def test_a_grant_parks_no_account_for_less_than_a_deferral_has_22(store):
    opened(store, count=2)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "defer", park_ms=60000)
    parked = int(store.budget()["parked_until"])
    store.grant_budget("acme:large", parked=store.now() + 2000)
    assert int(store.budget()["parked_until"]) == parked
    store.grant_budget("acme:large", parked=parked + 5)
    assert int(store.budget()["parked_until"]) == parked + 5
    store.grant_budget("acme:large", parked=0)
    assert int(store.budget()["parked_until"]) == 0


@pytest.mark.parametrize("kind, attempts, why", [
    ("retry", 3, "failed"), ("retry", 1, "exhausted"), ("defer", 3, "deferred"),
    ("fatal", 3, "dead"), ("missing", 3, "failed")])
def test_a_failed_leader_does_not_give_its_credit_back(store, kind, attempts, why):
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], kind, attempts_max=attempts, usage=SENT)
    assert store.lane(family.lane).credits == 0
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l {why}"]


@pytest.mark.parametrize("usage", ["", "- - - - - -", "- - - - - - w=5"])
def test_a_leader_of_which_no_request_could_be_made_was_refused_by_nobody(store, usage):
    family = Family(1, input=400)
    ids = store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    store.grant_budget("acme:large", r=100, i=1000)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "fatal", reason="unsupported", usage=usage) == "dead"
    assert store.past(ids[0])["reason"] == "unsupported"
    assert store.lane(family.lane).credits == 0
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l missing"]
    assert float(store.budget()["r.level"]) == 100, "what was never sent gives all back"
    assert float(store.budget()["i.level"]) == 1000


@pytest.mark.parametrize("kind", ["unsent", "retry"])
def test_one_worker_that_reaches_nobody_parks_no_account_22(store, kind):
    opened(store, count=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], kind, park_ms=60000, reason="unreached")
    assert store.budget().get("parked_until", "0") == "0"
    [line] = store.events("pressure")
    assert line.startswith("pressure acme:large unreached "), "the scheduler hears of it"
    assert len(worker.claim(0).jobs) == 1


def test_a_release_with_another_token_changes_nothing_5(store):
    opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    held = store.leases(worker)[0]
    answer = store.call("release", worker.nonce, worker.c, job.slot, int(job.q) + 1, 1)
    assert "TOKEN" in answer
    assert store.leases(worker)[0].q == held.q and worker.settle([job])
    assert store.flight() == 0


def test_a_leader_that_was_never_sent_for_a_day_leaves_its_credit_and_says_so(store):
    family = Family(1)
    ids = store.enqueue(family, count=1)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "unsent")
    store.redis.hset(store.key(f"past:{ids[0]}"), "deferred_at", store.now() - 86400001)
    again = worker.claim(0).jobs[0]
    ids += store.enqueue(family, count=1)
    assert worker.fail(again, "unsent") == "dead"
    assert store.lane(family.lane).credits == 1
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l unsent"] * 2
    assert worker.claim(0).ids == ids[1:]


@pytest.mark.parametrize("end", ["release", "unsent", "bye"])
def test_a_leader_whose_credit_was_taken_back_brings_none_and_says_so(store, end):
    """Else the scheduler waits until nobody of the family runs before it elects again."""
    family = Family(1)
    store.enqueue(family, count=2)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    store.grant(family.lane, gate=WRITING, g=1, g_new=2)
    if end == "release":
        worker.release([job])
    elif end == "unsent":
        worker.fail(job, "unsent")
    else:
        worker.bye()
    assert store.lane(family.lane).credits == 0
    assert store.events("back") == [f"back {family.lane} {family.id} 1 l failed"]


def test_jobs_come_back_in_the_order_of_their_return_24(store):
    family, ids = opened(store, count=8)
    worker = Worker(store)
    jobs = worker.claim(*range(6)).jobs
    for job in jobs:
        worker.fail(job, "defer")
    assert store.list(family, "back:n") == ids[:6]
    assert worker.claim(*range(8)).ids == ids, "returned ones first, then the fresh"


def test_a_fatal_failure_answers_for_the_job(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "fatal", reason="http_400", text='say "no"') \
        == "dead"
    assert store.result(ids[0]) == (f'{{"id":"{ids[0]}","state":"dead","reason":"http_400",'
                                    '"text":"say \\"no\\""}')


def test_a_lost_payload_ends_as_payload_missing_14(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    store.redis.xdel(store.key("jobs"), ids[0])
    assert worker.fail(job, "missing") == "dead"
    assert store.past(ids[0])["reason"] == "payload_missing"
    assert store.ok("requeue", ids[0]) == ["lost"]


def test_a_payload_that_is_there_after_all_is_an_ordinary_failure_14(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    assert worker.fail(worker.claim(0).jobs[0], "missing") == "back"
    assert store.past(ids[0])["attempts"] == "1"


def test_a_job_that_has_a_result_does_not_die_of_its_payload(store):
    """A list of an older dump was restored: what was done, and paid for, became dead."""
    family, ids = opened(store, count=2)
    ready = store.key(f"ready:n:{family.id}")
    older = store.redis.lrange(ready, 0, -1)
    worker = Worker(store)
    worker.settle(worker.claim().jobs, result="done")
    store.redis.rpush(ready, *older)
    store.audit()
    for job in worker.claim().jobs:
        assert worker.fail(job, "missing") == "ended"
    assert [store.result(id) for id in ids] == ["done", "done"]
    assert store.dead() == [] and store.redis.keys(store.key("past:*")) == []
    assert store.is_conserved() and store.flight() == 0


def test_a_missing_payload_of_a_cancelled_job_is_not_dead_14(store):
    _, ids = opened(store, count=1)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    store.ok("cancel", ids[0])
    assert worker.fail(job, "missing") == "ended"
    assert store.dead() == []


def test_a_failed_ticket_says_why(store):
    family = Family(1)
    store.admit("0-0", families=[family])
    store.grant(family.lane, gate=WRITING, ticket=1, ticket_deadline=store.now() + 60000)
    worker = Worker(store)
    assert worker.fail(worker.claim().jobs[0], "defer", reason="529", park_ms=10) == "ticket"
    assert store.lane(family.lane).ticket == 4
    assert store.events("ticket") == [f"ticket {family.lane} 1 failed deferred"]


def test_a_dead_job_can_be_dropped(store):
    family, ids = opened(store, count=2)
    worker = Worker(store)
    jobs = worker.claim(0, 1).jobs
    for job in jobs:
        worker.fail(job, "fatal")
    assert store.family(family).live == 2
    assert store.ok("drop", ids[0], ids[0], "1-1", "x") == ["dropped", "gone", "gone", "gone"]
    assert store.dead() == [ids[1]]
    assert store.past(ids[0]) == {} and store.family(family).live == 1
    assert store.ok("requeue", ids[0]) == ["gone"]
    assert not store.redis.exists(store.key(f"slim:{ids[0]}"))


def test_a_dead_job_can_be_requeued(store):
    family, ids = opened(store, count=1, suffix="/800,8")
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "fatal", result="no")
    assert store.result(ids[0]) == "no"
    assert store.ok("requeue", ids[0], ids[0], "1-1", "x") == ["queued", "gone", "gone", "gone"]
    assert not store.result(ids[0]), "who waits for it would take the end of before for the end"
    [job] = worker.claim(0).jobs
    assert job.element == f"{ids[0]}~/800,8"
    assert store.past(ids[0]) == {}
    worker.settle([job])
    assert store.family(family).live == 0


def test_a_job_that_died_at_admission_is_decided_anew(store):
    """Its upstream was not configured yet: `job retry` said that its payload is lost."""
    entry, large = store.add(upstream="acme"), store.add(upstream="acme")
    store.admit(large, dead=[(id, "malformed", "There is no upstream", "", "", 60000, "no")
                             for id in (entry, large)])
    store.redis.setrange(store.key(f"slim:{large}"), 16777216, "x")
    assert store.ok("requeue", entry, large) == ["queued", "lost"]
    assert store.dead() == [large] and not store.result(entry) and store.result(large)
    assert store.redis.get(store.key(f"slim:{entry}")).startswith("entry\n")
    store.promote()
    assert store.events("undecided") == [f"undecided {entry}"]
    family = Family(1)
    assert store.admit(store.cursor()[0], families=[family], slims=[(entry, "slim1 whole\n\n{}")],
                       runs=[(family, "n", [entry + "~"])], decided=[entry])[0] == "OK"
    assert store.past(entry) == {} and not store.redis.exists(store.key("later"))
    store.open(family)
    assert Worker(store).claim().ids == [entry]


def test_cancel_ends_a_waiting_job_at_once_15(store):
    family = Family(1)
    [id] = store.enqueue(family, upstream="acme", body="{}", reply="box", ref="r 1")
    assert store.ok("cancel", id) == ["ended"]
    assert store.ok("cancel", id) == ["gone"]
    assert store.replies("box") == [f'{{"id":"{id}","ref":"r 1","state":"cancelled",'
                                    '"reason":"cancelled","text":""}']
    assert store.redis.hgetall(store.key("ended")) == {id: "cancelled"}
    store.open(family)
    assert Worker(store).claim().jobs == []
    assert store.redis.exists(store.key("ended")) == 0
    assert store.family(family).live == 0


def test_cancel_of_an_unknown_id_leaves_no_mark_15(store):
    assert store.ok("cancel", "5-5") == ["gone"]
    assert store.redis.exists(store.key("ended")) == 0


def test_cancel_ends_a_delayed_job_without_a_mark_15(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "retry", delay_ms=60000)
    assert store.ok("cancel", ids[0]) == ["ended"]
    assert store.redis.exists(store.key("later"), store.key("ended")) == 0
    assert store.family(family).live == 0


def test_a_result_for_a_cancelled_job_changes_nothing_15(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    store.ok("cancel", ids[0])
    claim = worker.settle(jobs, reply="box")
    assert claim.problems == [("0", "ENDED", "")]
    assert store.replies("box") == []
    assert store.leases(worker) == {}
    assert store.lane(family.lane).in_use == 0


def test_a_cancelled_job_that_is_not_admitted_yet_leaves_no_mark_15(store):
    entry = store.add()
    assert store.ok("cancel", entry) == ["ended"]
    assert store.redis.exists(store.key("ended")) == 0


def test_a_job_whose_history_is_lost_says_so_to_its_producer(store):
    family = Family(1)
    entry = store.add()
    slim = "upstream acme\nreply box\nref abc\n\n{}"
    store.admit(entry, families=[family], gone=[entry],
                later=[(entry, store.now() - 1, family.id, "n", slim)])
    store.redis.delete(store.key(f"past:{entry}"))
    store.promote()
    assert store.dead() == [entry]
    assert '"ref":"abc","state":"dead","reason":"lost"' in store.replies("box")[0]
    assert store.is_conserved()


@pytest.mark.parametrize("slim", [False, True])
def test_a_job_cancelled_on_its_way_into_a_list_does_not_come_back_15(store, slim):
    """The scheduler has read the entry; the cancel comes before its `admit`."""
    family = Family(1)
    entry, other = store.add(reply="box"), store.add()
    element = entry + ("~" if slim else "")
    assert store.ok("cancel", entry) == ["ended"]
    slims = [(entry, "the payload")] if slim else []
    gone = [entry] if slim else []
    assert store.admit(other, families=[family], slims=slims, gone=gone,
                       runs=[(family, "n", [element, other])])[0] == "OK"
    assert store.is_conserved()
    assert store.redis.exists(store.key(f"slim:{entry}"), store.key("early")) == 0
    store.open(family)
    worker = Worker(store)
    assert worker.claim().ids == [other]
    assert store.redis.exists(store.key("ended")) == 0
    assert len(store.replies("box")) == 1


def test_a_delayed_or_dead_job_cancelled_on_its_way_is_left_out_15(store):
    family = Family(1)
    delayed, dead = store.add(), store.add(reply="box")
    assert store.ok("cancel", delayed) == store.ok("cancel", dead) == ["ended"]
    assert store.admit(dead, families=[family], gone=[delayed],
                       later=[(delayed, store.now() + 5, family.id, "n", "payload")],
                       deadlines=[(delayed, store.now() + 9)],
                       dead=[(dead, "malformed", "no", "", "box", 60000, "")])[0] == "OK"
    for name in ("later", "dead", "deadline", "early", "ended"):
        assert store.redis.exists(store.key(name)) == 0, name
    assert len(store.replies("box")) == 1, "it was cancelled, and is not dead as well"
    assert store.family(family).live == 0


@pytest.mark.parametrize("form", ["entry", "slim", "later", "pack"])
def test_a_job_is_not_started_whose_deadline_has_passed_when_it_is_admitted(store, form):
    """As after a night without a scheduler; a claim would be faster than `expire`."""
    family = Family(1)
    entry = store.add(reply="box", ref="mine")
    other = store.add()
    id = entry + (".1" if form == "pack" else "")
    slim = "slim1 whole\nreply box\nref mine\n\n{}"
    runs = [] if form == "later" else [id + ("" if form == "entry" else "~")]
    assert store.admit(
        other, families=[family], runs=[(family, "n", [*runs, other])],
        slims=[(id, slim)] if form in ("slim", "pack") else [],
        later=[(id, store.now() - 1, family.id, "n", slim)] if form == "later" else [],
        gone=[] if form == "entry" else [entry],
        deadlines=[(id, store.now() - 1), (other, store.now() + 60000)])[0] == "OK"
    assert store.redis.exists(store.key(f"slim:{id}"), store.key("later")) == 0
    [result] = store.replies("box")
    assert json.loads(result) == {"id": id, "ref": "mine", "state": "expired",
                                  "reason": "expired", "text": ""}
    assert store.redis.zrange(store.key("deadline"), 0, -1) == [other]
    store.open(family)
    store.promote()
    assert Worker(store).claim().ids == [other]
    assert store.redis.exists(store.key("ended")) == 0
    assert store.events("ended") == [f"ended {id} expired"]


def test_the_mark_of_an_entry_that_nobody_read_goes_with_the_cursor_15(store):
    entry = store.add()
    assert store.ok("cancel", entry) == ["ended"]
    store.wait_past(int(entry.split("-")[0]))
    for _ in range(2):
        store.enqueue(Family(1))
    assert store.redis.exists(store.key("early")) == 0


def test_a_packed_job_is_cancelled_though_its_entry_was_the_last_15(store):
    family = Family(1)
    entry = store.add(json="[{},{}]")
    parts = [f"{entry}.{n}" for n in (1, 2)]
    store.admit(entry, families=[family], slims=[(part, "x") for part in parts],
                gone=[entry], runs=[(family, "n", [part + "~" for part in parts])])
    assert store.ok("cancel", parts[0]) == ["ended"]
    assert store.is_conserved()
    store.open(family)
    assert Worker(store).claim().ids == [parts[1]]


@pytest.mark.parametrize("fields", [{"json": " [{},{}]"}, {"m": b"\x92\x80\x80"},
                                    {"m": b"\xdc\x00\x11" + 17 * b"\x80"}])
def test_a_pack_is_no_job_15(store, fields):
    family = Family(1)
    entry = store.add(**fields)
    assert store.ok("cancel", entry) == ["gone"]
    store.admit(entry, 1, families=[family], slims=[(f"{entry}.1", "x")],
                runs=[(family, "n", [f"{entry}.1~"])])
    assert store.ok("cancel", entry) == ["gone"], "in the middle of it"
    assert store.redis.xlen(store.key("jobs")) == 1
    store.admit(entry, families=[family], slims=[(f"{entry}.2", "x")], gone=[entry],
                runs=[(family, "n", [f"{entry}.2~"])])


@pytest.mark.parametrize("zeros", ["0{ms}-{seq}", "{ms}-0{seq}", "{ms}-{seq}.", "{ms}-{seq}.0",
                                   "{ms}-{seq}.01", "18446744073709551616-{seq}",
                                   "{ms}-18446744073709551616"])
def test_an_id_has_one_spelling(store, zeros):
    """Redis finds the entry under all of them, the mark would be met under one."""
    [id] = store.enqueue(Family(1))
    ms, seq = id.split("-")
    with pytest.raises(redis.ResponseError, match="expected a job id"):
        store.ok("cancel", zeros.format(ms=ms, seq=seq))
    assert store.redis.xlen(store.key("jobs")) == 1


def test_a_parked_account_starts_again_when_it_is_unparked(store):
    family, ids = opened(store, count=3, budget="acme@team:large")
    worker, idle = Worker(store), Worker(store)
    worker.fail(worker.claim(0).jobs[0], "defer", park_ms=900000, reason="spend")
    assert idle.claim(0).jobs == []
    wakes = store.redis.pubsub()
    wakes.subscribe(store.key("wake"))
    wakes.get_message(timeout=120)
    assert store.ok("unpark", "acme@team", "a b") == ["done"]
    assert wakes.get_message(timeout=120)["data"] in ("main", b"main")
    wakes.close()
    assert store.events("unpark") == ["unpark acme@team:large a_b"]
    assert len(idle.claim(0, 1, 2).jobs) == 3
    assert store.ok("unpark", "acme@team:large") == ["free"]
    assert store.audit() == []


@pytest.mark.parametrize("name", ["acme@team:larg", "acme@tea", "large", "nobody", ":"])
def test_what_is_no_account_is_not_unparked(store, name):
    opened(store, count=1, budget="acme@team:large")
    assert store.ok("unpark", name) == ["gone"]
    assert store.events("unpark") == []


def test_deadlines_end_jobs_that_nobody_pops_15(store):
    family = Family(1)
    entry = store.add(upstream="acme", body="{}", reply="box")
    store.admit(entry, families=[family], runs=[(family, "n", [entry])],
                deadlines=[(entry, store.now() + 600000)])
    soon = store.now()
    store.redis.zadd(store.key("deadline"), {entry: soon})
    store.ok("pause", family.id, "on")
    store.wait_past(soon)
    assert store.expire() == 1
    assert '"state":"expired"' in store.replies("box")[0]
    assert store.expire() == 0


def test_a_deadline_of_a_finished_job_ends_nothing(store):
    family = Family(1)
    entry = store.add()
    store.admit(entry, families=[family], runs=[(family, "n", [entry])],
                deadlines=[(entry, store.now() + 600000)])
    soon = store.now()
    store.redis.zadd(store.key("deadline"), {entry: soon})
    store.open(family)
    worker = Worker(store)
    worker.settle(worker.claim().jobs)
    store.wait_past(soon)
    assert store.expire() == 0
    assert store.redis.exists(store.key("deadline")) == 0


@pytest.mark.parametrize("fields, ref", [
    ({"json": '{"upstream":"acme","reply":"box","ref":"7"}'}, True),
    ({"upstream": "acme", "reply": "box", "body": "{}"}, False),
])
def test_the_reply_of_an_ended_job_is_found_in_its_payload(store, fields, ref):
    [id] = store.enqueue(Family(1), **fields)
    store.ok("cancel", id)
    assert len(store.replies("box")) == 1
    assert ('"ref":"7"' in store.replies("box")[0]) == ref


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("fields", [
    {"json": json.dumps({"upstream": "acme", "reply": "box", "traceparent": TRACE})},
    {"upstream": "acme", "reply": "box", "body": "{}", "traceparent": TRACE},
])
def test_the_trace_of_an_ended_job_is_told_in_its_result(store, fields):
    [id] = store.enqueue(Family(1), **fields)
    store.ok("cancel", id)
    assert json.loads(store.replies("box")[0])["traceparent"] == TRACE


def test_the_reply_of_an_ended_slim_job_is_found_in_its_head(store):
    family = Family(1)
    entry = store.add()
    slim = f"upstream acme\nreply box\nref abc\ntraceparent {TRACE}\n\nreply other\n"
    store.admit(entry, families=[family], runs=[(family, "n", [entry + "~"])],
                slims=[(entry, slim)], gone=[entry])
    store.ok("cancel", entry)
    assert '"ref":"abc"' in store.replies("box")[0]
    assert json.loads(store.replies("box")[0])["traceparent"] == TRACE


def test_what_comes_back_alive_is_counted_by_why(store):
    opened(store, count=3)
    worker = Worker(store)
    jobs = worker.claim(0, 1, 2).jobs
    for job, kind in zip(jobs, ("retry", "defer", "unsent")):
        assert worker.fail(job, kind) == "back"
    assert [store.meta(name) for name in ("retried", "deferred", "unsent")] == ["1"] * 3
    worker.fail(worker.claim(0).jobs[0], "fatal")
    assert [store.meta(name) for name in ("retried", "deferred", "unsent")] == ["1"] * 3
