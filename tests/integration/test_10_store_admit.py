"""admit: from the inbox into the lists, exactly once."""

import pytest
import redis

from store import CLOSED, Family, Worker, opened


def test_one_batch_sent_twice_is_admitted_once_1(store):
    family = Family(1)
    ids = [store.add() for _ in range(5)]
    at = store.cursor()
    groups = {"families": [family], "runs": [(family, "n", ids)]}
    assert store.admit(ids[-1], at=at, **groups)[0] == "OK"
    # The reply was lost; the same leader sends the batch again.
    assert store.admit(ids[-1], at=at, **groups) == ["CURSOR", ids[-1], "0"]
    assert store.list(family, "ready:n") == ids


def test_a_missing_cursor_beside_lanes_stops_admission_1(store):
    family = Family(1)
    store.enqueue(family, 2)
    store.redis.hdel(store.key("meta"), "cursor")
    assert store.rule(nonce="00000000000000aa") == 2
    later = store.add()
    answer = store.admit(later, at=("0-0", "0"), runs=[(family, "n", [later])])
    assert answer == ["CURSOR", "", ""]
    assert len(store.list(family, "ready:n")) == 2


@pytest.mark.parametrize("cursor", [None, "junk"])
def test_a_job_ends_once_while_nobody_knows_the_cursor_1(store, cursor):
    """It was taken for one that nobody had admitted: its worker went on, and it was done, too."""
    family, ids = opened(store, count=2)
    worker = Worker(store)
    [job] = worker.claim(0).jobs
    store.redis.hdel(store.key("meta"), "cursor")
    if cursor:
        store.redis.hset(store.key("meta"), "cursor", cursor)
    assert [store.ok("cancel", id) for id in ids] == [["ended"]] * 2
    assert worker.beat()[3:] == ["0"], "its request is to be stopped"
    assert [one[1] for one in worker.settle([job]).problems] == ["ENDED"]
    assert all('"cancelled"' in store.result(id) for id in ids)
    assert worker.claim().jobs == []
    assert store.list(family, "ready:n") == [] and store.redis.hlen(store.key("ended")) == 0


def test_the_cursor_survives_a_leader_that_expires_1(store):
    store.enqueue(Family(1), 1)
    at = store.cursor()
    store.ok("rule", "00000000000000aa", 0)
    assert store.rule(nonce="00000000000000bb") == 1
    assert store.cursor() == at
    assert store.redis.ttl(store.key("meta")) == -1


def test_a_cursor_can_stand_inside_a_packed_entry_1(store):
    family = Family(1)
    entry = store.add(json="[…]")
    parts = [f"{entry}.{n}~" for n in range(1, 4)]
    slims = [(part[:-1], f"body {part}") for part in parts]
    assert store.admit("0-0", at=("0-0", "0"), families=[family])[0] == "OK"
    assert store.admit(entry, 2, runs=[(family, "n", parts[:2])], slims=slims[:2])[0] == "OK"
    assert store.cursor() == (entry, "2")
    assert store.admit(entry, 3, runs=[(family, "n", parts[2:])], slims=slims[2:],
                       gone=[entry])[0] == "OK"
    assert store.list(family, "ready:n") == parts
    assert store.redis.xlen(store.key("jobs")) == 0
    assert store.is_conserved()


def test_only_the_ruler_admits(store):
    family = Family(1)
    old = store.owner
    store.ok("rule", "00000000000000aa", 0)
    store.rule(nonce="00000000000000bb")
    store.owner, new = old, store.owner
    entry = store.add()
    assert store.admit(entry, families=[family]) == ["EPOCH", new]
    assert store.redis.exists(store.key("families")) == 0


def test_the_owner_is_epoch_and_nonce_10_r9(store):
    store.redis.hset(store.key("meta"), "owner", store.owner[:2] + "00000000000000bb")
    assert store.call("promote", store.owner, 10)[0] == "EPOCH"


def test_a_missing_segment_is_asked_for_before_anything_is_written(store):
    family = Family(2, px=["0" * 31 + "1", "0" * 31 + "2"])
    entry = store.add()
    answer = store.admit(entry, families=[family], segments=[(family.px[1], "x")],
                         runs=[(family, "n", [entry])])
    assert answer == ["NEED", family.px[0]]
    assert store.redis.exists(store.key("families"), store.key("lanes")) == 0
    assert store.cursor() == ("0-0", "0")


def test_a_family_that_is_not_stored_is_asked_for(store):
    family = Family(7)
    entry = store.add()
    assert store.admit(entry, runs=[(family, "n", [entry])]) == ["NEED", family.id]


def test_a_stored_segment_is_not_overwritten(store):
    family = Family(1)
    store.enqueue(family)
    store.admit(store.cursor()[0], families=[family], segments=[(family.id, "other")])
    assert store.redis.get(store.key(f"px:{family.id}")) == "segment " + family.id


def test_a_new_lane_is_closed_and_held(store):
    family = Family(1, hold_max=5000)
    before = store.now()
    store.enqueue(family, 3)
    lane = store.lane(family.lane)
    assert (lane.gate, lane.g, lane.credits, lane.window) == (CLOSED, 0, 0, 99999)
    assert store.open_set() == {}
    due = store.held_set()[family.lane]
    assert before + 5000 <= due <= store.now() + 5000


def test_work_opens_all_lanes_of_its_family_7(store):
    family = Family(1, lanes=4)
    store.enqueue(family)
    worker = Worker(store)
    store.open(family)
    assert sorted(store.open_set()) == family.lanes
    worker.settle(worker.claim().jobs)
    assert store.open_set() == {}, "the last element clears all lanes"
    store.enqueue(family)
    assert sorted(store.open_set()) == family.lanes
    jobs = worker.claim().jobs
    assert store.open_set() == {}
    worker.release(jobs)
    assert sorted(store.open_set()) == family.lanes, "by whichever way work comes back"


def test_bands_give_the_class_of_the_score(store):
    for number, name, klass in [(1, "h", 1), (2, "n", 2), (3, "l", 3)]:
        family = Family(number)
        store.enqueue(family, name=name)
        store.open(family, rank=40)
        assert store.open_set()[family.lane] == klass * 10 ** 9 + 40


def test_the_smallest_hold_max_of_waiting_jobs_counts(store):
    family = Family(1, hold_max=9000)
    store.enqueue(family)
    for hold_max, expected in [(20000, 9000), (4000, 4000)]:
        family.hold_max = hold_max
        entry = store.add()
        store.admit(entry, families=[family], runs=[(family, "n", [entry])])
        assert store.family(family).hold_max == expected
    assert store.held_set()[family.lane] <= store.now() + 4000


def test_a_parent_counts_its_children(store):
    root, leaf = Family(1), Family(2, px=[Family(1).id, Family(2).id])
    store.enqueue(leaf)
    assert store.family(root).live == 1
    store.enqueue(Family(3, px=[root.id, Family(3).id]))
    assert store.family(root).live == 2


def test_a_parent_may_get_jobs_of_its_own(store):
    root = Family(1)
    store.enqueue(Family(2, px=[root.id, Family(2).id]))
    store.enqueue(root)
    assert store.family(root).lanes == root.lane
    assert store.events("drift") == [], "its lane is new, not lost"


def test_delayed_jobs_wait_in_later_and_become_ready(store):
    family = Family(1)
    entry = store.add()
    due = store.now() + 600000
    assert store.admit(entry, families=[family], gone=[entry],
                       later=[(entry, due, family.id, "n", "payload")])[0] == "OK"
    assert store.promote() == [0, due]
    assert store.redis.get(store.key(f"slim:{entry}")) == "payload"
    store.redis.zadd(store.key("later"), {entry: store.now() - 1})
    assert store.promote() == [1, 0]
    assert store.list(family, "ready:n") == [entry + "~"]
    assert store.past(entry) == {}
    assert store.is_conserved()


def test_a_malformed_entry_dies_with_its_bytes_and_answers(store):
    entry = store.add(upstream="nobody", body="{", reply="box", ref="r-1")
    assert store.admit(entry, dead=[(entry, "malformed", "no such upstream", "", "box", 60000,
                                     "")])[0] == "OK"
    assert store.dead() == [entry]
    slim = store.redis.get(store.key(f"slim:{entry}"))
    assert slim == ("entry\n8 upstream\n6 nobody\n4 body\n1 {\n5 reply\n3 box\n3 ref\n3 r-1\n")
    assert store.redis.xlen(store.key("jobs")) == 0
    assert '"state":"dead","reason":"malformed"' in store.replies("box")[0]
    assert store.is_conserved()


def test_prefixes_come_through_the_inbox(store):
    entry = store.add(put_prefix="policy", body="{}")
    assert store.admit(entry, gone=[entry], prefixes=[("policy", "{}")])[0] == "OK"
    assert store.redis.get(store.key("prefix:policy")) == "{}"


@pytest.mark.parametrize("change, complaint", [
    (lambda words: words[:-1], "do not add up|expected a number"),
    (lambda words: words[:-4] + ["Q", 0] + words[-2:], "expected this group"),
    (lambda words: [w if w != "n" else "x" for w in words], "expected h, n, l or now"),
    (lambda words: [w if w != "main" else "a|b" for w in words], "not a name"),
])
def test_a_mistake_in_the_call_changes_nothing(store, change, complaint):
    family = Family(1)
    entry = store.add()
    words = store.admit_words(families=[family], runs=[(family, "n", [entry])])
    with pytest.raises(redis.ResponseError, match=complaint):
        store.call("admit", store.owner, *store.cursor(), entry, 0, *change(words))
    assert store.redis.exists(store.key("families"), store.key("lanes")) == 0
    assert store.cursor() == ("0-0", "0")


BAD_ELEMENTS = ["", "~", "x", "5", "5-", "-5", "5-1x", "5-1.0", "5-1.x~", "05-1", "5-1|p|1", "5-1 ",
                "5-1\n", "5-1~/1", "5-1/1,2,3", "5-1/,", "5-1/-1,2", "5-1~~", "w:0.0:1",
                "5-1/999999999999,99999999999", "9" * 70 + "-1", "5-99999999999999999999",
                # Of the millisecond of one that is well.
                "MS-", "MS-x", "MS-05", "MS-1x", "MS-1.0", "MS-1 ", "MS-1\n", "MS-1~~", "MS--1",
                "MS-1/1", "MS-1\0", "MS-99999999999999999999"]


@pytest.mark.parametrize("bad", BAD_ELEMENTS)
def test_an_element_that_is_no_job_gets_into_no_list_13(store, bad):
    family = Family(1)
    good = store.enqueue(family, 2)
    entry = store.add()
    bad = bad.replace("MS", entry.split("-")[0])
    with pytest.raises(redis.ResponseError, match="warmq admit: E: not an id"):
        store.admit(entry, runs=[(family, "n", [entry, bad])])
    assert store.list(family, "ready:n") == good
    assert store.admit(entry, runs=[(family, "n", [entry])])[0] == "OK"
    store.open(family)
    worker = Worker(store)
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == good + [entry], "the others of its family start"
    assert worker.settle(jobs).problems == []


@pytest.mark.parametrize("groups", [
    {"slims": [("x", "bytes")]}, {"later": [("5", 1, "", "n", "x")]}, {"gone": ["5-1.2"]},
    {"dead": [("5-1~", "malformed", "", "x", "", 1, "x")]}, {"deadlines": [("*", 5)]},
    {"decided": ["5-"]}])
def test_what_is_no_id_is_refused_in_every_group_13(store, groups):
    before = store.redis.keys()
    with pytest.raises(redis.ResponseError, match="warmq admit: [SLDTGU]: not an id"):
        store.admit("9-9", **groups)
    with pytest.raises(redis.ResponseError, match="warmq admit: to_entry: not an id"):
        store.admit("latest")
    assert sorted(store.redis.keys()) == sorted(before)
    assert store.cursor() == ("0-0", "0")


def test_another_protocol_is_refused(store):
    with pytest.raises(redis.ResponseError, match="warmq speaks protocol 1, not 2"):
        store.redis.execute_command("FCALL", "warmq_count", 1, store.key("meta"), "2")


def test_admission_wakes_the_pool_at_the_edge_28(store):
    family = Family(1)
    store.enqueue(family)
    store.open(family)
    worker = Worker(store)
    worker.claim()
    channel = store.redis.pubsub()
    channel.subscribe(store.key("wake"))
    channel.get_message(timeout=120)
    store.enqueue(family, 2)
    store.enqueue(family, 2)
    assert channel.get_message(timeout=120)["data"] == "main"
    assert channel.get_message(timeout=0.01) is None, "once: it was open already"
    channel.close()


def undecided(store):
    """A job whose prefix is missing, and where the cursor stands then."""
    id = store.add()
    assert store.admit(id, later=[(id, store.now(), "", "n", "payload")], gone=[id])[0] == "OK"
    return id


def test_an_undecided_job_is_said_to_be_so_until_it_is_placed_19(store):
    id = undecided(store)
    for times in (1, 2):
        store.wait_past(store.redis.zscore(store.key("later"), id))
        store.promote()
        assert store.events("undecided") == [f"undecided {id}"] * times
        store.redis.zadd(store.key("later"), {id: 1})
    family = Family(1)
    at = store.cursor()
    assert store.admit(*at, families=[family], runs=[(family, "n", [id + "~"])],
                       slims=[(id, "split")], decided=[id])[0] == "OK"
    assert store.list(family, "ready:n") == [id + "~"]
    assert store.redis.get(store.key(f"slim:{id}")) == "split"
    assert store.past(id) == {}
    assert store.count()["later"] == 0
    assert store.admit(*at, runs=[(family, "n", [id + "~"])], decided=[id]) == ["GONE", id]


def test_an_undecided_job_may_end_dead_or_wait_for_its_time_19(store):
    first, second = undecided(store), undecided(store)
    family = Family(1)
    at = store.cursor()
    assert store.admit(*at, dead=[(first, "prefix_missing", "why", "payload", "", 1000, "x")],
                       decided=[first])[0] == "OK"
    assert store.dead() == [first]
    assert store.past(first)["reason"] == "prefix_missing"
    assert store.redis.get(store.key(f"slim:{first}")) == "payload"
    due = store.now() + 60000
    assert store.admit(*at, families=[family],
                       later=[(second, due, family.id, "n", "payload")],
                       decided=[second])[0] == "OK"
    assert store.redis.zscore(store.key("later"), second) == due
    assert store.past(second)["family"] == family.id


def test_an_undecided_job_that_was_cancelled_is_not_placed_19(store):
    id = undecided(store)
    assert store.ok("cancel", id) == ["ended"]
    family = Family(1)
    answer = store.admit(*store.cursor(), families=[family],
                         runs=[(family, "n", [id + "~"])], slims=[(id, "x")], decided=[id])
    assert answer == ["GONE", id]
    assert store.redis.keys(store.key("slim:*")) == []


def misspelled(store, count, age_ms=0, name="polcy"):
    """Jobs whose prefix nobody puts, so many ms old."""
    first = store.now() - age_ms
    ids = [f"{first}-{n}" for n in range(1, count + 1)]
    for id in ids:
        store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=id)
    payload = f"slim1 whole\nupstream acme\nprefix {name}\nreply box\nref r\n\n{{}}"
    assert store.admit(ids[-1], gone=ids,
                       later=[(id, store.now(), "", "n", payload) for id in ids])[0] == "OK"
    store.wait_past(store.now())
    return ids


def test_nobody_hears_of_a_job_whose_prefix_is_not_there_19(store):
    ids = misspelled(store, 3, age_ms=4000)
    before = store.now()
    store.promote()
    assert store.events("undecided") == []
    due = store.redis.zscore(store.key("later"), ids[0])
    assert due >= before + 3000, "the older it is, the more rarely it is looked for"
    store.redis.set(store.key("prefix:polcy"), "{}")
    store.redis.zadd(store.key("later"), {id: 1 for id in ids})
    before = store.now()
    store.promote()
    assert store.events("undecided") == [f"undecided {id}" for id in ids]
    assert store.redis.zscore(store.key("later"), ids[0]) >= before + 900


def test_a_prefix_that_never_came_ends_its_jobs_without_the_scheduler_19(store):
    ids = misspelled(store, 3, age_ms=10000)
    other = store.enqueue(Family(1))
    store.promote()
    assert store.dead() == ids
    assert store.events("undecided") == []
    assert store.past(ids[0])["reason"] == "prefix_missing"
    assert len(store.replies("box")) == 3
    assert '"ref":"r","state":"dead","reason":"prefix_missing"' in store.replies("box")[0]
    assert '\\"polcy\\"' in store.replies("box")[0], "it says which"
    assert store.redis.zcard(store.key("later")) == 0
    assert store.list(Family(1), "ready:n") == other


def test_a_prefix_that_came_late_is_still_taken_19(store):
    ids = misspelled(store, 1, age_ms=20000)
    store.redis.set(store.key("prefix:polcy"), "{}")
    store.promote()
    assert store.events("undecided") == [f"undecided {id}" for id in ids]
    assert store.dead() == []


def test_a_typo_in_many_jobs_delays_no_retry_19(store):
    family = Family(1)
    [id] = store.enqueue(family)
    store.open(family)
    worker = Worker(store)
    jobs = worker.claim(0).jobs
    misspelled(store, 400)
    worker.fail(jobs[0], "retry", delay_ms=1)
    store.wait_past(store.redis.zscore(store.key("later"), id))
    calls = store.redis.info("commandstats").get("cmdstat_zadd", {"calls": 0})["calls"]
    store.promote(100)
    assert store.list(family, "back:n") == [id]
    assert store.redis.info("commandstats")["cmdstat_zadd"]["calls"] - calls <= 2
