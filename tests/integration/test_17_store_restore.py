"""restore: jobs whose list, lease or `later` was deleted by hand get a place again, or an end."""

import json

import pytest

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


def forget_place(store):
    """Somebody deletes the record of each family and of each lane."""
    store.redis.delete(store.key("families"), store.key("lanes"), store.key("stamp"))
    store.broken = True  # told as lane_drift


def delayed(store, count):
    """Jobs of an open family that wait for their retry."""
    family, ids = opened(store, count=count)
    worker = Worker(store, slots=count)
    for job in worker.claim(*range(count)).jobs:
        worker.fail(job, "retry", delay_ms=50000)
    return family, ids


def pass_by(store, *ids):
    """Their time comes."""
    store.redis.zadd(store.key("later"), {id: store.now() for id in ids})


def test_who_waits_for_its_time_without_a_place_is_read_anew(store):
    """Its family came back without pool and lane, where it waited for ever."""
    family, ids = delayed(store, 2)
    forget_place(store)
    pass_by(store, *ids)
    store.promote()
    assert store.redis.hlen(store.key("families")) == 0 and store.is_conserved()
    assert decide(store, family, *ids) == "OK"
    store.open(family)
    worker = Worker(store)
    claim = worker.claim(0, 1)
    assert claim.ids == ids
    worker.settle(claim.jobs)
    assert store.is_conserved() and store.redis.xlen(store.key("jobs")) == 0


def test_a_split_one_that_waits_for_its_time_without_a_place_ends_with_a_result(store):
    family, [id] = delayed(store, 1)
    store.redis.set(store.key(f"slim:{id}"), "slim1 0 0\n\n{}")
    store.redis.xdel(store.key("jobs"), id)
    forget_place(store)
    pass_by(store, id)
    store.promote()
    assert json.loads(store.result(id))["state"] == "dead" and store.dead() == [id]
    assert store.redis.zcard(store.key("later")) == 0


@pytest.mark.parametrize("end", ["retry", "later", "release", "die"])
def test_who_runs_and_has_lost_its_place_is_read_anew(store, end):
    """It went back to a list of a family without a pool, where nobody looks."""
    store.reap()  # somebody rules
    family, [id] = opened(store, count=1)
    worker = Worker(store)
    jobs = worker.claim().jobs
    forget_place(store)
    if end == "release":
        worker.release(jobs)
    elif end == "die":
        worker.die()
        store.reap_all()
    else:
        worker.fail(jobs[0], "retry", text="oops", delay_ms=50000 * (end == "later"))
    assert store.redis.hlen(store.key("families")) == 0 and store.is_conserved()
    store.audit()  # what its account had in flight
    assert decide(store, family, id) == "OK"
    store.open(family)
    assert Worker(store).claim().ids == [id]


def test_who_waits_for_its_time_finds_its_family_by_the_lane(store):
    family, ids = delayed(store, 2)
    store.redis.hdel(store.key("families"), family.id)
    store.broken = True  # told as lane_drift
    pass_by(store, *ids)
    store.promote()
    assert store.redis.hget(store.key("families"), family.id).split("|")[3] == family.lane
    assert Worker(store).claim(0, 1).ids == ids and store.is_conserved()


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
