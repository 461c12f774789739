"""The daemon admits: every form of a job, and every way in which one can be wrong."""

import json
import os
import subprocess
import time

import pytest

from daemons import BUILD, CONFIG, Scheduler, body, inbox, scheduler, server  # noqa: F401
from store import Worker, wait_until

WARMQ = os.path.join(BUILD, "cli", "warmq")


def admitted(inbox, last):
    """Waits until the cursor stands at the entry `last`."""
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", f"{last} to be admitted")


def elements(inbox, name="ready:n"):
    """Family -> elements of its list."""
    found = {}
    for key in inbox.redis.keys(inbox.key(f"{name}:*")):
        found[key.rsplit(":", 1)[1]] = inbox.redis.lrange(key, 0, -1)
    return found


def only(found):
    assert len(found) == 1, found
    return next(iter(found.values()))


def check_books(inbox):
    inbox.owner = inbox.meta("owner")
    assert inbox.audit() == []
    assert inbox.is_conserved()
    assert inbox.meta("lane_drift") is None
    assert inbox.meta("function_errors") is None


def tiny(n, **more):
    """A body too small to be split; all of them are one family."""
    return {"model": "claude-x", "messages": [{"role": "user", "content": str(n)}], **more}


def msgpack_text(text):
    data = text.encode()
    return b"\xdb" + len(data).to_bytes(4, "big") + data


def msgpack_map(fields):
    packed = bytes([0x80 | len(fields)])
    for name, value in fields.items():
        packed += msgpack_text(name) + msgpack_text(value)
    return packed


# ---- forms -----------------------------------------------------------------------------


def test_flat_fields_are_one_job(scheduler, inbox):
    id = inbox.add(upstream="claude", body=body("short"))
    admitted(inbox, id)
    assert only(elements(inbox)) == [id], "a small body stays in the stream"
    assert inbox.redis.xlen(inbox.key("jobs")) == 1
    check_books(inbox)


def test_a_json_object_is_one_job(scheduler, inbox):
    id = inbox.add(json=json.dumps({"upstream": "claude", "body": json.loads(body("short")),
                                    "priority": "high"}))
    admitted(inbox, id)
    assert only(elements(inbox, "ready:h")) == [id]


def test_a_json_array_is_a_pack_18(scheduler, inbox):
    jobs = [{"body": json.loads(body("short", f"q{n}"))} for n in range(3)]
    id = inbox.add(json=json.dumps(jobs), upstream="claude")
    admitted(inbox, id)
    assert only(elements(inbox)) == [f"{id}.{n}~" for n in (1, 2, 3)]
    assert inbox.redis.xlen(inbox.key("jobs")) == 0, "the entry is gone with its last job"
    assert inbox.redis.exists(inbox.key(f"slim:{id}.2"))
    check_books(inbox)


def test_a_pack_of_one_is_a_pack_18(scheduler, inbox):
    """Whoever packs what he has, waits for `<entry>.1`, also when he has one."""
    packed = b"\x91" + msgpack_map({"upstream": "claude", "body": body("short")})
    ids = [inbox.add(json=json.dumps([{"body": tiny(1)}]), upstream="claude"),
           inbox.redis.xadd(inbox.key("jobs"), {"m": packed})]
    admitted(inbox, ids[1])
    assert sorted(one for list in elements(inbox).values() for one in list) == [f"{id}.1~" for id in ids]
    assert inbox.redis.xlen(inbox.key("jobs")) == 0
    check_books(inbox)


def test_messagepack_is_a_job_and_a_pack_18(scheduler, inbox):
    one = msgpack_map({"upstream": "claude", "body": body("short")})
    inbox.redis.xadd(inbox.key("jobs"), {"m": one})
    id = inbox.redis.xadd(inbox.key("jobs"), {"m": b"\x92" + one + one})
    admitted(inbox, id)
    waiting = only(elements(inbox))
    assert len(waiting) == 3
    assert waiting[1:] == [f"{id}.1~", f"{id}.2~"]


def test_a_pack_larger_than_one_call_is_admitted_in_order_18(scheduler, inbox):
    jobs = [{"body": tiny(n)} for n in range(1203)]
    id = inbox.add(json=json.dumps(jobs), upstream="claude")
    admitted(inbox, id)
    assert only(elements(inbox)) == [f"{id}.{n + 1}~" for n in range(1203)]
    check_books(inbox)


def test_thousands_of_plain_entries_are_admitted_in_order_25(scheduler, inbox):
    pipe = inbox.redis.pipeline(transaction=False)
    for n in range(5000):
        pipe.xadd(inbox.key("jobs"), {"upstream": "claude", "body": json.dumps(tiny(n))})
    ids = pipe.execute()
    admitted(inbox, ids[-1])
    assert only(elements(inbox)) == ids
    check_books(inbox)


# ---- identity --------------------------------------------------------------------------


def test_the_same_prefix_in_other_bytes_is_one_family(scheduler, inbox):
    request = json.loads(body("é" * 4000, "why?"))
    inbox.add(upstream="claude", body=json.dumps(request))
    inbox.add(upstream="claude", body=json.dumps(request, indent=3))
    inbox.add(upstream="claude", body=json.dumps(request, ensure_ascii=False))
    id = inbox.add(upstream="claude", body=json.dumps(dict(reversed(request.items()))))
    admitted(inbox, id)
    assert len(only(elements(inbox))) == 4
    assert len(inbox.redis.keys(inbox.key("px:*"))) == 2, "tools and system, each once"
    assert inbox.redis.xlen(inbox.key("jobs")) == 0, "split bodies leave the stream"
    check_books(inbox)


def test_another_system_prompt_is_another_family(scheduler, inbox):
    inbox.add(upstream="claude", body=body("x" * 8000))
    id = inbox.add(upstream="claude", body=body("y" * 8000))
    admitted(inbox, id)
    assert len(elements(inbox)) == 2


def test_a_body_that_cannot_be_split_runs_opaque(scheduler, inbox):
    text = '{"model":"claude-x","model":"claude-y","messages":[]}'
    id = inbox.add(upstream="claude", body=text, route="odd")
    admitted(inbox, id)
    assert only(elements(inbox)) == [id]
    worker = Worker(inbox, pool="default")
    jobs = []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "the job to start")
    assert jobs[0].role == "p", "nothing holds it"


def test_routes_choose_the_pool(scheduler, inbox):
    inbox.add(upstream="claude", body=body("short"), route="batch-7")
    id = inbox.add(upstream="claude", body=body("other"), route="triage")
    admitted(inbox, id)
    assert set(inbox.redis.hgetall(inbox.key("pools"))) == {"batch", "default"}


def test_a_family_reserves_its_largest_answer_and_smaller_jobs_carry_their_own(scheduler,
                                                                                inbox):
    for n in range(3):
        inbox.add(upstream="claude", body=body("short", f"q{n}", max_tokens=100))
    large = inbox.add(upstream="claude", body=body("short", "q", max_tokens=4000))
    admitted(inbox, large)
    small = inbox.add(upstream="claude", body=body("short", "q4", max_tokens=100))
    admitted(inbox, small)
    waiting = only(elements(inbox))
    assert all("/" not in element for element in waiting[:4])
    assert waiting[4].startswith(f"{small}/") and waiting[4].endswith(",100")
    (family,) = elements(inbox)
    assert int(inbox.redis.hget(inbox.key("families"), family)[32:40]) == 4000


def input_estimate(inbox):
    """Of the only family with jobs: columns 25 to 32 of its record."""
    (family,) = elements(inbox)
    return int(inbox.redis.hget(inbox.key("families"), family)[24:32])


def test_a_prefix_that_nothing_keeps_counts_against_the_input_limit(scheduler, inbox):
    """20,000 bytes are some 5,000 tokens.  The first job pays for them; when a second one
    shares them they are written once, which `claim` charges to whom it lets write."""
    id = inbox.add(upstream="claude", body=body("x" * 20000, "first"))
    admitted(inbox, id)
    assert 4000 < input_estimate(inbox) < 6000
    id = inbox.add(upstream="claude", body=body("x" * 20000, "second"))
    admitted(inbox, id)
    wait_until(lambda: input_estimate(inbox) < 100, "the shared prefix to be left out")
    assert all("/" not in element for element in only(elements(inbox)))


def advised(scheduler, family):
    """What the page says of it, once a worker is there and only advice is left."""
    seen = scheduler.json(f"/api/v1/families/{family}")
    return seen if "markers" in seen.get("advice", "") else None


def test_without_markers_each_job_counts_whole_also_after_a_restart(server, inbox):
    config = CONFIG.replace("markers: auto", "markers: never")
    with Scheduler(server, config=config) as scheduler:
        for n in range(3):
            id = inbox.add(upstream="claude", body=body("x" * 20000, f"q{n}"))
        admitted(inbox, id)
        before = input_estimate(inbox)
        assert 4000 < before < 6000
        (family,) = elements(inbox)
        Worker(inbox, pool="default")
        seen = wait_until(lambda: advised(scheduler, family), "the advice")
        assert seen["state"] == "not held: it carries no cache marker"
        assert "`markers: auto`" in seen["advice"] and "claude" in seen["advice"]
        scheduler.kill()
    with Scheduler(server, config=config, name="next"):
        for n in range(30):
            id = inbox.add(upstream="claude", body=body("x" * 20000, f"r{n}"))
        admitted(inbox, id)
        assert abs(input_estimate(inbox) - before) < 100
        assert all("/" not in element for element in only(elements(inbox)))
        id = inbox.add(upstream="claude", body=body("x" * 20000, "y" * 8000))
        admitted(inbox, id)
        own, = [e for e in only(elements(inbox)) if e.startswith(id)]
        assert int(own.split("/")[1].split(",")[0]) > before + 1500, "the prefix, and its own"
        text = subprocess.run([WARMQ, "family", "ls", "--redis", server.url], check=True,
                              capture_output=True, text=True).stdout
        assert "not held: no cache marker" in text


# ---- lists and times -------------------------------------------------------------------


def test_priorities_and_short_holds_have_lists_of_their_own(scheduler, inbox):
    high = inbox.add(upstream="claude", body=body("short"), priority="high")
    low = inbox.add(upstream="claude", body=body("short"), priority="low")
    now = inbox.add(upstream="claude", body=body("short"), hold_max="0s")
    admitted(inbox, now)
    assert only(elements(inbox, "ready:h")) == [high]
    assert only(elements(inbox, "ready:l")) == [low]
    assert only(elements(inbox, "now")) == [now]


def test_a_job_is_held_as_long_as_its_upstream_says_or_less(server, inbox):
    config = CONFIG.replace("markers: auto", "markers: auto\n    hold_max: 90s")
    with Scheduler(server, config=config) as scheduler:
        for fields, held_ms in ({}, 90000), ({"hold_max": "20s"}, 20000), ({}, 20000), \
                ({"hold_max": "1d", "route": "other"}, 90000):
            id = inbox.add(upstream="claude", body=body(str(fields.get("route")) * 4000), **fields)
            admitted(inbox, id)
            rows = scheduler.json("/api/v1/families")["families"]
            assert held_ms in [row["hold_max_ms"] for row in rows], (fields, rows)


def test_a_delayed_job_waits_and_then_stands_in_its_list(scheduler, inbox):
    far = inbox.add(upstream="claude", body=body("short"), not_before="+1h")
    admitted(inbox, far)
    assert inbox.redis.zrange(inbox.key("later"), 0, -1) == [far]
    assert elements(inbox) == {}
    check_books(inbox)
    id = inbox.add(upstream="claude", body=body("short"), not_before="+1s")
    wait_until(lambda: elements(inbox), "the job to be due")
    assert only(elements(inbox)) == [f"{id}~"]
    assert int(id.split("-")[0]) + 1000 <= inbox.now()


def test_a_deadline_ends_a_job_that_waits(scheduler, inbox):
    id = inbox.add(upstream="claude", body=body("short"), deadline="+1s", reply="me")
    wait_until(lambda: inbox.replies("me"), "the job to expire")
    result = json.loads(inbox.replies("me")[0])
    assert (result["id"], result["state"]) == (id, "expired")


# ---- what is wrong ---------------------------------------------------------------------


@pytest.mark.parametrize("fields, reason, text", [
    ({"body": "{}"}, "malformed", "upstream"),
    ({"upstream": "nobody", "body": "{}"}, "malformed", 'no upstream "nobody"'),
    ({"upstream": "claude"}, "malformed", "body"),
    ({"upstream": "claude", "body": "{"}, "malformed", "JSON"),
    ({"upstream": "claude", "body": "{}", "hold_max": "soon"}, "malformed", "hold_max"),
    ({"upstream": "claude", "body": "{}", "unique": "x"}, "unsupported", "unique"),
    ({"upstream": "claude", "body": "{}", "group": "x"}, "unsupported", "group"),
    ({"upstream": "claude", "body": "{}", "tenant": "x"}, "unsupported", "tenant"),
    ({"json": "["}, "malformed", "json"),
])
def test_a_wrong_job_is_dead_with_its_bytes_and_says_why_33(scheduler, inbox, fields, reason,
                                                            text):
    good = inbox.add(upstream="claude", body=body("short"))
    id = inbox.add(reply="me", ref="7", **fields)
    after = inbox.add(upstream="claude", body=body("short"))
    admitted(inbox, after)
    assert only(elements(inbox)) == [good, after], "the others are not held up"
    assert inbox.dead() == [id]
    assert inbox.past(id)["reason"] == reason
    result = json.loads(inbox.replies("me")[0])
    assert (result["id"], result["state"], result["reason"]) == (id, "dead", reason)
    assert text in result["text"]
    stored = inbox.redis.get(inbox.key(f"slim:{id}"))
    for value in fields.values():
        assert value in stored
    check_books(inbox)


def test_one_wrong_job_of_a_pack_leaves_the_others(scheduler, inbox):
    jobs = [{"body": tiny(1)}, {"body": tiny(2), "priority": "urgent"}, {"body": tiny(3)}]
    id = inbox.add(json=json.dumps(jobs), upstream="claude")
    admitted(inbox, id)
    assert only(elements(inbox)) == [f"{id}.1~", f"{id}.3~"]
    assert inbox.dead() == [f"{id}.2"]
    check_books(inbox)


def test_a_body_above_the_limit_is_moved_inside_redis_25(server, inbox):
    config = CONFIG + "  job_size_max: 100k\n"
    with Scheduler(server, config=config):
        id = inbox.add(upstream="claude", body=body("x" * 200000))
        admitted(inbox, id)
        assert inbox.dead() == [id]
        assert len(inbox.redis.get(inbox.key(f"slim:{id}"))) > 200000
        check_books(inbox)


def test_families_of_one_batch_do_not_make_way_for_each_other(server, inbox):
    """The least memory there is, and a pack of more families: each job in its own list."""
    jobs = [{"body": tiny(n, system=f"Rule {n}.")} for n in range(400)]
    with Scheduler(server, config=CONFIG + "  families_max: 16\n"):
        id = inbox.add(json=json.dumps(jobs), upstream="claude")
        admitted(inbox, id)
        found = elements(inbox)
        assert len(found) == 400 and {len(waiting) for waiting in found.values()} == {1}
        check_books(inbox)


def test_bytes_that_are_not_text_do_no_harm(scheduler, inbox):
    key = inbox.key("jobs")
    inbox.redis.xadd(key, {b"\xff\x00": b"\x00\xff", "upstream": b"\xfe"})
    inbox.redis.xadd(key, {"m": b"\xdf\xff\xff\xff\xff"})
    inbox.redis.xadd(key, {"upstream": "claude", "body": b'{"a":"\xff"}'})
    id = inbox.redis.xadd(key, {"m": b"\xc1"})
    admitted(inbox, id)
    assert len(inbox.dead()) == 4
    check_books(inbox)


def test_an_id_from_the_future_is_told_17(scheduler, inbox):
    id = f"{inbox.now() + 3600000}-0"
    inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "body": body("short")}, id=id)
    admitted(inbox, id)
    scheduler.wait_for("ahead of the clock of Redis")


# ---- named prefixes --------------------------------------------------------------------


def prefix(text):
    return json.dumps({"system": text * 4000})


TAIL = json.dumps({"model": "claude-x", "max_tokens": 9,
                   "messages": [{"role": "user", "content": "q"}]})


def test_a_prefix_through_the_inbox_binds_in_order_19(scheduler, inbox):
    inbox.add(put_prefix="policy", body=prefix("a"))
    inbox.add(upstream="claude", prefix="policy", body=TAIL)
    inbox.add(put_prefix="policy", body=prefix("b"))
    id = inbox.add(upstream="claude", prefix="policy", body=TAIL)
    admitted(inbox, id)
    assert len(elements(inbox)) == 2, "each job has the text that stood before it"
    assert inbox.redis.get(inbox.key("prefix:policy")) == prefix("b")
    assert inbox.redis.xlen(inbox.key("jobs")) == 0
    check_books(inbox)


def test_a_prefix_that_was_set_is_found(scheduler, inbox):
    inbox.redis.set(inbox.key("prefix:policy"), prefix("a"))
    first = inbox.add(upstream="claude", prefix="policy", body=TAIL)
    admitted(inbox, first)
    inbox.redis.set(inbox.key("prefix:policy"), prefix("b"))
    second = inbox.add(upstream="claude", prefix="policy", body=TAIL)
    admitted(inbox, second)
    assert sorted(elements(inbox).values()) == [[f"{first}~"], [f"{second}~"]]


def test_a_named_prefix_and_an_inline_one_are_the_same_family(scheduler, inbox):
    inbox.add(put_prefix="policy", body=prefix("a"))
    inbox.add(upstream="claude", prefix="policy", body=TAIL)
    whole = dict(json.loads(TAIL), **json.loads(prefix("a")))
    id = inbox.add(upstream="claude", body=json.dumps(whole))
    admitted(inbox, id)
    assert len(only(elements(inbox))) == 2


def test_a_job_waits_for_its_prefix_but_the_inbox_does_not_19(scheduler, inbox):
    early = inbox.add(upstream="claude", prefix="policy", body=TAIL, priority="high")
    other = inbox.add(upstream="claude", body=json.dumps(tiny(1)))
    admitted(inbox, other)
    assert only(elements(inbox)) == [other]
    assert inbox.redis.zrange(inbox.key("later"), 0, -1) == [early]
    check_books(inbox)
    inbox.redis.set(inbox.key("prefix:policy"), prefix("a"))
    wait_until(lambda: elements(inbox, "ready:h"), "the prefix to be seen")
    assert only(elements(inbox, "ready:h")) == [f"{early}~"]
    assert inbox.redis.zcard(inbox.key("later")) == 0
    assert inbox.past(early) == {}
    check_books(inbox)


def test_a_prefix_that_never_comes_ends_its_jobs_dead_19(server, scheduler, inbox):
    old = inbox.now() - 9000  # as if the scheduler had been away
    inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "prefix": "policy",
                                         "body": TAIL, "reply": "me", "ref": "r"},
                     id=f"{old}-0")
    wait_until(lambda: inbox.replies("me"), "the job to end")
    result = json.loads(inbox.replies("me")[0])
    assert (result["reason"], result["ref"]) == ("prefix_missing", "r")
    assert inbox.dead() == [f"{old}-0"]
    assert "policy" in inbox.redis.get(inbox.key(f"slim:{old}-0"))
    check_books(inbox)


def test_undecided_jobs_survive_the_scheduler(server, inbox):
    with Scheduler(server) as scheduler:
        early = inbox.add(upstream="claude", prefix="policy", body=TAIL)
        admitted(inbox, early)
        scheduler.kill()
        inbox.redis.set(inbox.key("prefix:policy"), prefix("a"))
        scheduler.start(wait=False)
        wait_until(lambda: elements(inbox), "the job to be placed", 12)
        assert only(elements(inbox)) == [f"{early}~"]
        check_books(inbox)


def test_a_pinned_job_takes_one_version_only_19(scheduler, inbox):
    inbox.add(put_prefix="policy", body=prefix("a"))
    wrong = inbox.add(upstream="claude", prefix="policy@" + "0" * 32, body=TAIL)
    admitted(inbox, wrong)
    assert inbox.dead() == [wrong]
    assert "prefix changed" in inbox.past(wrong)["why"]


def test_a_prefix_that_contradicts_the_body_is_malformed(scheduler, inbox):
    inbox.add(put_prefix="policy", body=prefix("a"))
    both = json.dumps(dict(json.loads(TAIL), system="mine"))
    id = inbox.add(upstream="claude", prefix="policy", body=both)
    admitted(inbox, id)
    assert inbox.dead() == [id]
    assert "system" in inbox.past(id)["why"]


def test_a_prefix_that_is_no_object_is_refused(scheduler, inbox):
    id = inbox.add(put_prefix="policy", body='["a"]', reply="me")
    admitted(inbox, id)
    assert json.loads(inbox.replies("me")[0])["reason"] == "malformed"
    assert not inbox.redis.exists(inbox.key("prefix:policy"))


def test_a_bad_set_keeps_the_last_good_prefix(scheduler, inbox):
    inbox.add(put_prefix="policy", body=prefix("a"))
    first = inbox.add(upstream="claude", prefix="policy", body=TAIL)
    admitted(inbox, first)
    inbox.redis.set(inbox.key("prefix:policy"), "oops")
    second = inbox.add(upstream="claude", prefix="policy", body=TAIL)
    admitted(inbox, second)
    assert only(elements(inbox)) == [f"{first}~", f"{second}~"]
    assert "last good one" in scheduler.log


def test_a_named_prefix_larger_than_a_job_may_be_is_not_valid(server, inbox):
    config = CONFIG + "  job_size_max: 100k\n"
    with Scheduler(server, config=config) as scheduler:
        inbox.add(put_prefix="policy", body=prefix("a"))
        first = inbox.add(upstream="claude", prefix="policy", body=TAIL)
        admitted(inbox, first)
        inbox.redis.set(inbox.key("prefix:policy"), prefix("x" * 30))
        second = inbox.add(upstream="claude", prefix="policy", body=TAIL)
        admitted(inbox, second)
        assert only(elements(inbox)) == [f"{first}~", f"{second}~"], "the last good one"
        assert "more than a job may have" in scheduler.log


def test_who_is_dead_at_admission_is_named_with_its_route_and_trace(scheduler, inbox):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    id = inbox.add(upstream="claude", body="{", route="triage", reply="me",
                   traceparent=trace)
    wait_until(lambda: inbox.replies("me"), "the result")
    assert json.loads(inbox.replies("me")[0])["traceparent"] == trace
    line, = [line for line in scheduler.log.splitlines() if "dead at admission" in line]
    assert f"job={id}" in line and "route=triage" in line and f"traceparent={trace}" in line


def test_a_trace_that_is_none_is_left_out_with_a_warning_and_the_job_goes_on(scheduler, inbox):
    id = inbox.add(upstream="claude", body=body(), route="triage", traceparent="00-0af7\r\nx-evil: 1")
    none = inbox.add(upstream="claude", body=body(), route="triage", traceparent="")
    admitted(inbox, none)
    line, = [line for line in scheduler.log.splitlines() if "traceparent" in line]
    assert f"job={id}" in line and "route=triage" in line and "goes on without a trace" in line
    assert "evil" not in scheduler.log and inbox.redis.zcard(inbox.key("dead")) == 0


# ---- what it says ----------------------------------------------------------------------


def test_pages_and_the_status_key_say_the_same(scheduler, inbox):
    id = inbox.add(upstream="claude", body=body(), route="triage")
    admitted(inbox, id)
    wait_until(lambda: '"triage"' in (inbox.redis.get(inbox.key("status")) or ""),
               "the status to be written", 12)
    stored = json.loads(inbox.redis.get(inbox.key("status")))
    served = scheduler.json("/api/v1/families")
    assert stored["families"][0]["id"] == served["families"][0]["id"]
    assert served["families"][0]["waiting"] == 1
    assert served["families"][0]["blocked_on"] == "no worker"
    assert inbox.redis.ttl(inbox.key("status")) > 0, "nobody reads a dead scheduler's words"
    one = scheduler.json("/api/v1/families/" + served["families"][0]["id"])
    assert one["route"] == "triage"
    assert scheduler.get("/api/v1/families/" + "0" * 32)[0] == 404
    assert scheduler.get("/api/v1/families/xyz")[0] == 400
    assert scheduler.get("/healthz") == (200, "ok\n")
    assert scheduler.get("/readyz")[0] == 200
    pool = served["families"][0]["pool"]
    assert f'warmq_backlog{{pool="{pool}"}} 1\n' in scheduler.get("/metrics")[1]


def test_an_inbox_that_is_not_read_turns_readyz_red_25(server, inbox):
    old = int((time.time() - 100) * 1000)
    with Scheduler(server) as scheduler:
        inbox.redis.delete(inbox.key("jobs"))
        assert scheduler.get("/readyz")[0] == 200
        inbox.redis.hset(inbox.key("lanes"), "0" * 32 + ".0", "x")
        inbox.redis.hdel(inbox.key("meta"), "cursor")
        scheduler.kill()
        scheduler.start(wait=False)
        scheduler.wait_for("cursor of the inbox is missing")
        inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "body": "{}"},
                         id=f"{old}-1")
        status, text = scheduler.get("/readyz")
        assert status == 503 and "the cursor is missing" in text
        assert inbox.redis.keys(inbox.key("ready:*")) == [], "a lost cursor is not zero"
