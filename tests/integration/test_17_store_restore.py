"""restore: jobs whose list, lease or `later` was deleted by hand get a place again, or an end."""

import json

from store import Family, Worker, opened


def restored(store, *ids):
    return dict(zip(ids, store.ok("restore", *ids)))


def lose(store, family, name="ready:n"):
    store.redis.delete(store.key(f"{name}:{family.id}"))


def decide(store, family, *ids):
    """What the scheduler does with jobs that it reads anew."""
    store.promote()
    assert store.events("undecided") == [f"undecided {id}" for id in ids]
    return store.admit(store.cursor()[0], families=[family],
                       slims=[(id, "slim1 whole\n\n{}") for id in ids],
                       runs=[(family, "n", [id + "~" for id in ids])], decided=ids)[0]


def test_a_whole_job_of_a_deleted_list_is_read_anew(store):
    family, ids = opened(store, count=3)
    lose(store, family)
    assert not store.is_conserved()
    assert restored(store, *ids) == dict.fromkeys(ids, "queued")
    assert store.is_conserved()
    assert restored(store, *ids) == dict.fromkeys(ids, "stands"), "once"
    assert decide(store, family, *ids) == "OK"
    store.open(family)
    worker = Worker(store)
    claim = worker.claim()
    assert claim.ids == ids
    worker.settle(claim.jobs)
    assert store.is_conserved() and store.redis.xlen(store.key("jobs")) == 0


def test_who_stands_somewhere_stays_there(store):
    family, ids = opened(store, count=6)
    worker = Worker(store)
    jobs = worker.claim(0, 1, 2, 3).jobs
    worker.fail(jobs[1], "retry", delay_ms=50000)
    worker.fail(jobs[2], "fatal")
    worker.fail(jobs[3], "retry")
    assert restored(store, *ids) == dict.fromkeys(ids, "stands")
    worker.die()
    assert restored(store, ids[0]) == {ids[0]: "stands"}, "its reaper comes"


def test_a_returned_job_goes_back_to_its_family_with_its_attempts(store):
    family, ids = opened(store, count=1, suffix="/900,9")
    worker = Worker(store)
    worker.fail(worker.claim(0).jobs[0], "retry")
    lose(store, family, "back:n")
    assert restored(store, *ids) == {ids[0]: "queued"}
    assert store.family(family).live == 1, "as long as it stands in later"
    store.promote()
    assert store.list(family, "back:n") == [ids[0] + "/900,9"]
    assert store.family(family).live == 0 and store.past(ids[0])["attempts"] == "1"
    assert store.is_conserved()


def test_a_job_of_deleted_leases_is_found(store):
    store.broken = True  # what the functions remember of the leases went unseen
    family, ids = opened(store, count=2)
    worker = Worker(store)
    worker.claim(0, 1)
    store.redis.delete(store.key(f"lease:{worker.nonce}"))
    assert worker.beat() == ["GONE"]
    assert restored(store, *ids) == dict.fromkeys(ids, "queued")
    assert store.is_conserved()


def test_a_split_job_of_a_deleted_list_ends_with_a_result(store):
    """Only its family knew its prefix: it must not wait for ever, nor be sent without."""
    family = Family(1)
    entry = store.add()
    slim = "slim1 own\nupstream acme\nreply box\nref r7\n\nown1 …"
    assert store.admit(entry, families=[family], slims=[(entry, slim)],
                       runs=[(family, "n", [entry + "~"])], gone=[entry])[0] == "OK"
    lose(store, family)
    assert restored(store, entry) == {entry: "dead"}
    [result] = map(json.loads, store.replies("box"))
    assert (result["state"], result["id"], result["ref"]) == ("dead", entry, "r7")
    assert store.past(entry)["reason"] == "lost" and store.is_conserved()
    assert store.ok("requeue", entry) == ["lost"], "nobody could read it anew"
    assert store.ok("drop", entry) == ["dropped"] and store.is_conserved()


def test_a_mark_that_nobody_can_meet_goes(store):
    family, ids = opened(store, count=2)
    assert store.ok("cancel", ids[0]) == ["ended"]
    assert restored(store, ids[0]) == {ids[0]: "stands"}, "its element is met in its list"
    lose(store, family)
    assert restored(store, *ids) == {ids[0]: "gone", ids[1]: "queued"}
    assert store.redis.hkeys(store.key("ended")) == [] and store.is_conserved()


def test_what_is_no_job_of_the_queue_is_left_alone(store):
    store.enqueue(Family(1), 1)
    waiting = store.add(upstream="acme", body="{}")
    pack = store.add(json="[{},{}]")
    assert restored(store, waiting, pack, "1-1", "x", "later") == \
        dict.fromkeys([waiting, pack, "1-1", "x", "later"], "gone")
    assert store.redis.xlen(store.key("jobs")) == 3


def test_who_had_died_is_dead_again_and_not_sent(store):
    """Whoever deletes `dead` to be rid of the dead has not asked for another try."""
    family, ids = opened(store, count=2)
    worker = Worker(store)
    for job, kind in zip(worker.claim(0, 1).jobs, ("fatal", "retry")):
        worker.fail(job, kind, attempts_max=1)
    early = store.add()
    assert store.admit(early, dead=[(early, "malformed", "no", "", "", 9000, "")])[0] == "OK"
    ids.append(early)
    before = {id: store.redis.get(store.key(f"slim:{id}")) for id in ids}
    store.redis.delete(store.key("dead"))
    assert restored(store, *ids) == dict.fromkeys(ids, "died")
    assert store.is_conserved() and store.family(family).live == 2
    assert {id: store.redis.get(store.key(f"slim:{id}")) for id in ids} == before
    assert store.ok("requeue", *ids[:2]) == ["queued"] * 2
    assert store.family(family).live == 0 and worker.claim(0, 1).ids == ids[:2]


def test_who_was_delayed_waits_until_then(store):
    family = Family(1)
    due = store.now() + 3600000
    entry = store.add()
    slim = f"slim1 whole\nupstream acme\nnot_before {due}\n\n{{}}"
    assert store.admit(entry, families=[family], later=[(entry, due, family.id, "n", slim)],
                       gone=[entry])[0] == "OK"
    store.redis.delete(store.key("later"))
    assert restored(store, entry) == {entry: "queued"}
    assert store.redis.zscore(store.key("later"), entry) == due
    assert store.family(family).live == 1, "it was counted there already"
    assert store.is_conserved()


def test_what_has_a_result_is_not_run_again(store):
    family, ids = opened(store, count=1)
    worker = Worker(store)
    worker.settle(worker.claim(0).jobs)
    store.redis.set(store.key(f"slim:{ids[0]}"), "slim1 whole\n\n{}")
    store.redis.hincrby(store.key("meta"), "slims", 1)
    assert restored(store, *ids) == {ids[0]: "ended"}
    assert store.is_conserved() and store.redis.keys(store.key("slim:*")) == []
