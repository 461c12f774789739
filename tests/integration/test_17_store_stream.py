"""The inbox as a store of payloads: trimmed by others, ids of others, packs."""

import pytest
import redis

from store import Family, Worker, opened

LAST_ID = f"{2 ** 64 - 1}-{2 ** 64 - 1}"


def test_jobs_whose_entries_a_producer_trimmed_end_dead_and_say_so_17(store):
    """XADD … MAXLEN, out of habit: an access list cannot forbid the argument."""
    store.broken = True  # what was trimmed is missing in the books, until it has ended
    family, ids = opened(store, count=5)
    store.redis.xadd(store.key("jobs"), {"body": "{}"}, maxlen=1, approximate=False)
    last = store.redis.xrange(store.key("jobs"))[0][0]
    store.admit(last, runs=[(family, "n", [last])])
    assert not store.is_conserved(), "the minute's look at the books shows the hole"
    worker = Worker(store)
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == ids + [last]
    for job in jobs[:5]:
        assert worker.fail(job, "missing", reason="payload_missing", result="lost") == "dead"
    worker.settle(jobs[5:])
    assert store.dead() == ids
    assert [store.result(id) for id in ids] == ["lost"] * 5
    assert store.past(ids[0])["reason"] == "payload_missing"
    assert store.is_conserved()
    assert store.flight() == store.lane(family.lane).in_use == 0


def test_a_trimmed_job_can_still_be_cancelled_or_expire_without_harm_17(store):
    family, ids = opened(store, count=3)
    soon = store.now() + 1
    store.admit(store.cursor()[0], deadlines=[(ids[1], soon)])
    store.redis.xtrim(store.key("jobs"), maxlen=0, approximate=False)
    store.wait_past(soon)
    assert store.ok("cancel", ids[0]) == ["gone"], "it is not alive"
    assert store.expire() == 0
    assert store.redis.exists(store.key("ended")) == 0
    worker = Worker(store)
    for job in worker.claim().jobs:
        assert worker.fail(job, "missing", result="lost") == "dead"
    assert store.dead() == ids


def test_an_id_from_the_future_is_as_old_as_now_17(store):
    family = Family(1)
    now = store.now()
    ahead = store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=f"{now + 10 ** 9}-0")
    store.admit(ahead, families=[family], runs=[(family, "n", [ahead])])
    store.open(family)
    row = store.ok("glance", family.id)[0]
    assert now <= row[3] <= store.now()
    worker = Worker(store)
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == [ahead]
    worker.settle(jobs)


def test_an_exhausted_inbox_is_repaired_as_the_manual_says_17(store):
    family, ids = opened(store, count=2)
    store.redis.xadd(store.key("jobs"), {"body": "{}"}, id=LAST_ID)
    with pytest.raises(redis.ResponseError, match="exhausted the last possible ID"):
        store.add()
    # What the last id named runs like any other.
    store.admit(LAST_ID, runs=[(family, "n", [LAST_ID])])
    worker = Worker(store)
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == ids + [LAST_ID]
    worker.settle(jobs)
    assert store.redis.xlen(store.key("jobs")) == 0
    now = store.now()
    store.redis.hset(store.key("meta"), "cursor", f"{now}-0 0")
    store.wait_past(now)
    store.redis.delete(store.key("jobs"))
    assert Worker(store).claim().ids == [] and store.enqueue(family) == \
        [store.redis.xrange(store.key("jobs"))[0][0]]
    assert len(worker.claim().jobs) == 1


def test_a_pack_is_exploded_and_pins_nothing_18(store):
    """50 jobs of 20 KB in one entry: no claim reads the whole of it."""
    family = Family(1)
    entry = store.add(json="[" + "x" * 1000000 + "]")
    parts = [f"{entry}.{n}" for n in range(1, 51)]
    for first in (0, 25):
        some = parts[first:first + 25]
        assert store.admit(entry, first + 25, families=[] if first else [family],
                           runs=[(family, "n", [part + "~" for part in some])],
                           slims=[(part, "y" * 20000) for part in some],
                           gone=[entry] if first else [])[0] == "OK"
    assert store.redis.xlen(store.key("jobs")) == 0
    store.open(family)
    worker = Worker(store)
    read = store.redis.info("stats")["total_net_output_bytes"]
    jobs = worker.claim().jobs
    assert [job.id for job in jobs] == parts[:8]
    assert store.redis.info("stats")["total_net_output_bytes"] - read < 20000
    while jobs:
        jobs = worker.settle(jobs, claim=range(8), reply="box").jobs
    assert len(store.replies("box")) == 50
    assert store.redis.keys(store.key("slim:*")) == []
    assert store.meta("slims") == "0"


def test_one_long_job_of_a_pack_keeps_only_its_own_bytes_18(store):
    family = Family(1)
    entry = store.add(json="[…]")
    parts = [f"{entry}.{n}" for n in range(1, 11)]
    store.admit(entry, 10, families=[family], runs=[(family, "n", [p + "~" for p in parts])],
                slims=[(part, part) for part in parts], gone=[entry])
    store.open(family)
    worker = Worker(store, slots=10)
    jobs = worker.claim().jobs
    worker.settle(jobs[1:])
    assert store.redis.keys(store.key("slim:*")) == [store.key(f"slim:{parts[0]}")]
    assert worker.fail(jobs[0], "retry") == "back"
    [again] = worker.claim().jobs
    assert again.element == parts[0] + "~"
