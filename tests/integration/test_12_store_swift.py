"""The swift ways of claim, settle and admit, against the long ones: nothing differs."""

import itertools
import re

import pytest

from store import Family, Store, Worker, opened


def picture(store):
    """Everything that is stored, without the name of the namespace, `look` and times."""
    assert store.audit() == []  # and bits that nobody has looked at are put right

    def plain(value): # in a record a time is a column of fourteen digits
        return re.sub(r"\b1[78]\d{11}\b|01[78]\d{11}", "T", str(value))

    read = {"string": store.redis.get, "hash": store.redis.hgetall,
            "list": lambda key: store.redis.lrange(key, 0, -1), "set": store.redis.smembers,
            "zset": lambda key: store.redis.zrange(key, 0, -1, withscores=True),
            "stream": store.redis.xrange}
    keys = [key for key in store.redis.keys(store.ns + ":*") if not key.endswith(":look")]
    stored = {key.split(":", 1)[1]: plain(read[store.redis.type(key)](key))
              for key in keys if not key.endswith((":meta", ":events", ":stamp"))}
    return stored, sorted(store.events())


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("jobs", [4, 9, 30])
@pytest.mark.parametrize("window", [4, 1000])
@pytest.mark.parametrize("names", ["nn", "nl", "hn", "ln"])
@pytest.mark.parametrize("used", ["", "0 0 5 7", "100 0 5 7"])
def test_the_swift_way_leaves_what_the_long_way_leaves(store, slots, jobs, window, names, used):
    """So do both forms: the long way names its slots at every other turn."""
    sent = store.now() - 500

    def play(store, long):
        families = [Family(1), Family(2)]
        serial = 0
        for family, name in zip(families, names):
            ids = [store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=f"5-{serial + n + 1}")
                   for n in range(jobs)]
            serial += jobs
            assert store.admit(ids[-1], families=[family], runs=[(family, name, ids)])[0] == "OK"
            store.open(family, window=window, rank=int(family.id), until=sent + 3600000,
                       life=3600000 if used else 0)
        worker = Worker(store, slots=6)
        held = {job.slot: job for job in worker.claim().jobs}
        answers = []
        for turn in range(40):
            group = [slot % 6 for slot in range(turn * slots, turn * slots + slots)]
            if long:
                store.redis.hset(store.key("look"), "somebody", "1")
                store.redis.delete(store.key("stamp"))
            claim = worker.settle([held.pop(slot) for slot in group if slot in held],
                                  claim=group, reply="box", named=long and turn % 2 == 0,
                                  usage=used and f"{sent + turn} {sent + turn} {used}")
            store.redis.hdel(store.key("look"), "somebody")
            held.update({job.slot: job for job in claim.jobs})
            answers.append((claim.runs, claim.refused, claim.problems, claim.sleep_ms > 0,
                            [store.lane(family.lane).until for family in families]))
        assert worker.attach().keys() == held.keys()
        return answers

    other = Store(store.redis, "other")
    other.rule()
    serial_nonces = Worker.__init__.__globals__["SERIAL"]
    first = next(serial_nonces)
    swift = play(store, long=False)
    Worker.__init__.__globals__["SERIAL"] = itertools.count(first + 1)
    long = play(other, long=True)
    assert swift == long
    assert picture(store) == picture(other)


@pytest.mark.parametrize("used", ["", "5 5 100 0 5 7"])
@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("reply", ["box", ""])
def test_the_usual_settle_is_swift(store, used, slots, reply):
    opened(store, count=12)
    worker = Worker(store, slots=slots)
    jobs = worker.claim().jobs
    for _ in range(2):
        store.redis.config_resetstat()
        jobs = worker.settle(jobs, claim=range(slots), reply=reply, usage=used).jobs
        stats = store.redis.info("commandstats")
        calls = {name[8:]: stats[name]["calls"] for name in stats}
        assert {"hlen", "zadd", "zrem", "llen", "incrby"}.isdisjoint(calls), calls
    assert sum(calls.values()) <= 12 + slots, calls
    assert len(store.events("done")) == (2 * slots if used else 0)


@pytest.mark.parametrize("slots", [1, 3])
def test_a_settle_goes_on_with_the_next_family_swiftly(store, slots):
    families = [Family(1), Family(2)]
    ids = [store.enqueue(family, 2 * slots) for family in families]
    for family in families:
        store.open(family, window=99, rank=int(family.id))
    worker = Worker(store, slots=slots)
    jobs = worker.claim().jobs
    store.redis.config_resetstat()
    for expected in [ids[0][slots:], ids[1][:slots], ids[1][slots:]]:
        claim = worker.settle(jobs, claim=range(slots), reply="box")
        jobs = claim.jobs
        assert claim.ids == expected and claim.problems == []
    assert "cmdstat_hlen" not in store.redis.info("commandstats"), "not the swift way"
    assert store.events("empty") == [f"empty {families[0].id}"]
    assert list(store.open_set()) == [families[1].lane]
    assert [store.family(family).bits for family in families] == [0, 8]
    assert [store.lane(family.lane).in_use for family in families] == [0, slots]


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("how", ["attach", "fail", "release", "reap", "claim", "flush", "other"])
def test_what_is_remembered_of_slots_is_forgotten_when_others_write(store, how, low):
    """`low`: its family comes behind another one, whose jobs would start the swift way; and
    a job of it runs elsewhere, so that its lane can be counted down."""
    worker = Worker(store, slots=1)
    if low:
        last = Family(2)
        store.enqueue(last, 2, name="l")
        store.open(last)
        [job] = worker.claim(0).jobs
        Worker(store).claim(0)
        opened(store, count=9)
    else:
        opened(store, count=9)
        [job] = worker.settle(worker.claim(0).jobs, claim=[0], reply="box").jobs
    if how == "attach":
        old = worker.c
        worker.attach()
        assert store.call("settle", worker.nonce, old, 1, 0, job.q, "", "box", 9, "x", 50,
                          0) == ["STALE"]
        assert worker.settle([job], claim=[0], reply="box").problems == []
        return
    if how == "fail":
        assert worker.fail(job, "retry") == "back"
    elif how == "release":
        worker.release([job], sent=0)
    elif how == "reap":
        store.reap()
        store.redis.hset(store.key("meta"), "reap_hold", store.now() - 1)
        worker.die()
        store.reap_all()
        assert worker.settle_raw([job], 50, [0]) == ["GONE"]
        return
    elif how == "claim":
        worker.release([job], sent=0)
        worker.claim(0)
    elif how == "flush":
        copy = store.redis.dump(store.key(f"lease:{worker.nonce}"))
        store.redis.flushall()
        store.redis.restore(store.key(f"lease:{worker.nonce}"), 0, copy)
        store.broken = True
        assert worker.settle([job], claim=[0]).problems == []
        return
    else: # somebody's hand, which has deleted the stamp as it should
        store.redis.hdel(store.key(f"lease:{worker.nonce}"), "0")
        store.redis.delete(store.key("stamp"))
        store.broken = True
    [(slot, word, _)] = worker.settle([job], claim=[0]).problems
    assert (slot, word) == ("0", "TOKEN")


def test_admission_into_a_busy_family_leaves_what_the_long_way_leaves(store):
    def play(store, long):
        family = Family(1, lanes=2)
        for turn in range(5):
            ids = [store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=f"{turn + 1}-{n}")
                   for n in range(4)]
            runs = [(family, "n", ids[:3]), (family, "h" if turn > 2 else "n", ids[3:])]
            assert store.admit(ids[-1], families=[family] if long or turn == 0 else [],
                               runs=runs)[0] == "OK"
            if turn == 1:
                store.open(family)

    other = Store(store.redis, "other")
    other.rule()
    play(store, long=False)
    play(other, long=True)
    assert picture(store) == picture(other)


def test_admission_puts_a_lost_member_back_6(store):
    family, _ = opened(store, count=3)
    store.redis.delete(store.key("open:main:acme:large"))
    store.enqueue(family)
    assert list(store.open_set()) == [family.lane]


def test_a_list_that_ran_empty_unnoticed_wakes_again_28(store):
    family, _ = opened(store, count=2)
    worker = Worker(store, slots=1)
    worker.settle(worker.claim(0).jobs, claim=[0], reply="box")
    assert store.family(family).bits == 8, "nobody has looked since the last one was taken"
    channel = store.redis.pubsub()
    channel.subscribe(store.key("wake"))
    channel.get_message(timeout=120)
    store.enqueue(family)
    assert channel.get_message(timeout=120)["data"] == "main"
    channel.close()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("more", ["/30,40", "~", "~/30,40"])
def test_a_swift_settle_knows_elements_that_are_more_than_an_id(store, count, more):
    """Their estimate is their own, their payload stands elsewhere: the result is the id's."""
    family = Family(1)
    first = store.enqueue(family, count)
    others = [store.add() for _ in range(2 * count + 1)]
    slims = [(id, "{}") for id in others if more[0] == "~"]
    assert store.admit(others[-1], runs=[(family, "n", [id + more for id in others])],
                       slims=slims, gone=[id for id, _ in slims])[0] == "OK"
    store.open(family)
    worker = Worker(store, slots=count)
    slots = list(range(count))
    claim = worker.claim(*slots)
    assert claim.ids == first
    for start in (0, count):
        store.redis.config_resetstat()
        claim = worker.settle(claim.jobs, claim=slots)
        assert claim.ids == others[start:start + count]
        assert "cmdstat_hlen" not in store.redis.info("commandstats"), "not the swift way"
    worker.settle(claim.jobs)
    assert (store.redis.xlen(store.key("jobs")), store.meta("slims")) == (
        (0, "1") if slims else (1, None))
    for id in first + others[:2 * count]:
        assert store.redis.exists(store.key(f"result:{id}")) == 1
    assert store.leases(worker) == {}
