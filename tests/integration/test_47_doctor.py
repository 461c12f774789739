"""`warmq doctor`: what is broken on purpose is found, and what it says to do helps."""

import json
import os
import subprocess
import types

import pytest
import redis

from daemons import BUILD, Scheduler, Server, body, inbox, scheduler, server  # noqa: F401
from proxy import Proxy
from store import Worker, library_plain, wait_until


def state_dir(server):
    """Of workers that share no disk with others of this machine."""
    return os.path.join(server.folder, "state")


def warmq(server, *words, check=None):
    config = os.path.join(server.folder, "warmq.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"state_dir: {state_dir(server)}\n")
    done = subprocess.run([os.path.join(BUILD, "cli", "warmq"), *words, "--redis", server.url],
                          capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "WARMQ_CONFIG": config})
    if check is not None:
        assert done.returncode == check, (done.stdout, done.stderr)
    return done.stdout


def findings(server):
    """(check, level) -> (text, do), of all that is not fine."""
    answer = json.loads(warmq(server, "doctor", "--json"))
    assert answer["well"] == (answer["bad"] == 0)
    return {(one["check"], one["level"]): (one["text"], one.get("do"))
            for one in answer["findings"] if one["level"] != "fine"}


def do(server, action):
    """Runs what the doctor says, as it stands there."""
    action = action.split(" (")[0]
    if action.startswith("warmq "):
        warmq(server, *action.split()[1:], check=0)
        return
    assert action.startswith("redis-cli "), action
    done = subprocess.run(action, shell=True, capture_output=True, text=True, timeout=120,
                          check=True)
    assert "ERR" not in done.stdout and done.stderr == "", (done.stdout, done.stderr)


def enqueue(inbox, count=1, prefix="a"):
    for n in range(count):
        last = inbox.add(upstream="claude", body=body(prefix * 8000, f"q{n}"))
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "the jobs to be admitted")
    return last


def waiting(inbox):
    """Ids of all jobs in lists, each as often as it stands there."""
    keys = [key for kind in ("ready", "back", "now")
            for key in inbox.redis.keys(inbox.key(f"{kind}:*"))]
    return sorted(one.split("~")[0].split("/")[0] for key in keys
                  for one in inbox.redis.lrange(key, 0, -1))


def test_a_sound_queue_is_well_and_looking_changes_nothing(server, scheduler, inbox):
    enqueue(inbox, 3)
    inbox.redis.config_set("appendonly", "yes")
    worker = Worker(inbox, pool="default")
    worker.claim()
    scheduler.freeze(True)  # for it may not write now, either
    inbox.redis.execute_command("ACL", "SETUSER", "default", "-@all", "+@read", "+acl", "+info",
                                "+time", "+multi", "+exec", "+fcall", "+@connection")
    assert findings(server) == {}
    text = warmq(server, "doctor", check=0)
    assert "0 bad, 0 warnings" in text and "books" in text
    inbox.redis.execute_command("ACL", "SETUSER", "default", "+@all")
    scheduler.freeze(False)


def test_no_redis_no_functions_no_scheduler(tmp_path):
    done = subprocess.run([os.path.join(BUILD, "cli", "warmq"), "doctor", "--redis",
                           f"unix://{tmp_path}/none"], capture_output=True, check=False)
    assert done.returncode == 3
    with Server() as server:
        found = findings(server)
        assert "does not have WarmQ's functions" in found["functions", "bad"][0]
        assert "start warmq-scheduler" in found["rule", "bad"][1]
        warmq(server, "doctor", check=1)


def test_functions_that_cannot_be_called_are_not_called_absent():
    with Server() as server:
        newer = library_plain().replace("local PROTOCOL = '1'", "local PROTOCOL = '2'")
        server.client.execute_command("FUNCTION", "LOAD", newer)
        text, action = findings(server)["functions", "bad"]
        assert "speak protocol 2, this warmq" in text and text.endswith("speaks 1")
        assert action.startswith("upgrade this warmq")
        server.client.execute_command("ACL", "SETUSER", "default", "-fcall")
        text, action = findings(server)["functions", "bad"]
        assert "not let WarmQ's functions be called: NOPERM" in text and "another one" in action


def test_what_is_to_be_typed_names_the_user_and_no_password():
    with Server() as server:
        server.client.execute_command("ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "+@all")
        path = server.path
        server.url = f"unix://ann:s3cret@{path}"
        answer = warmq(server, "doctor", "--json")
        assert f"redis-cli -s {path} --user ann --askpass CONFIG SET" in answer
        assert "s3cret" not in answer + warmq(server, "doctor")


def set_wrong_type(inbox):
    inbox.redis.delete(inbox.key("later"))
    inbox.redis.set(inbox.key("later"), "x")


def lose_session(inbox):
    worker = Worker(inbox, pool="default")
    worker.claim()
    inbox.redis.zrem(inbox.key("workers"), worker.nonce)


def pause(inbox):
    records = inbox.redis.hgetall(inbox.key("families"))
    leaf = next(id for id, record in records.items() if record.split("|")[3])  # it has a lane
    assert inbox.ok("pause", leaf, "on") == ["done"]


@pytest.mark.parametrize("check, words, harm", [
    ("memory", "throws jobs away", lambda i: i.redis.config_set("maxmemory-policy",
                                                                "allkeys-lru")),
    ("limits", "maxmemory-clients", lambda i: i.redis.config_set("maxmemory-clients", "1mb")),
    ("replicas", "NOREPLICAS", lambda i: i.redis.config_set("min-replicas-to-write", 1)),
    ("disk", "loses jobs", lambda i: i.redis.config_set("appendonly", "no")),
    ("keys", "should be a zset", set_wrong_type),
    ("workers", "belongs to nobody|no list of sessions has", lose_session),
    ("paused", "is paused", pause),
])
def test_the_command_that_it_gives_helps(server, scheduler, inbox, check, words, harm):
    enqueue(inbox, 3)
    inbox.redis.config_set("appendonly", "yes")
    scheduler.freeze(True)  # so that nobody else repairs it
    harm(inbox)
    found = findings(server)
    level = next(level for name, level in found if name == check and
                 any(word in found[name, level][0] for word in words.split("|")))
    do(server, found[check, level][1])
    scheduler.freeze(False)
    wait_until(lambda: (check, level) not in findings(server), f"{check} to be fine")


def test_what_waits_for_people_is_named(server, scheduler, inbox):
    enqueue(inbox)
    inbox.add(upstream="nobody", body="{}")
    inbox.redis.config_set("appendonly", "yes")
    inbox.ok("hold", "off", "me")
    wait_until(inbox.dead, "the dead job")
    budget = inbox.redis.hvals(inbox.key("pools"))[0].split(",")[0]
    inbox.redis.hset(inbox.key(f"budget:{budget}"), "parked_until", inbox.now() + 600000)
    inbox.redis.hset(inbox.key("meta"), "function_errors", 3)
    found = findings(server)
    assert "1 job is dead" in found["dead", "warning"][0]
    assert found["hold", "warning"][1] == "warmq hold on"
    assert f"unpark {budget}" in found["accounts", "warning"][1]
    assert "no worker is alive" in found["workers", "warning"][0]
    assert "3 errors inside" in found["errors", "warning"][0]
    scheduler.terminate()
    assert "start warmq-scheduler" in findings(server)["rule", "bad"][1]
    inbox.redis.hset(inbox.key("meta"), "rule_until", inbox.now() + 3600000)
    assert "a clock of Redis that has gone back" in findings(server)["rule", "bad"][0]


# ---- repairs ---------------------------------------------------------------------------


def test_results_that_wait_on_disk_are_seen_and_can_be_given_to_this_queue(server, scheduler):
    place = os.path.join(state_dir(server), "worker.3")
    os.makedirs(place)
    for name, text in (("queue", "warmq at redis://old:6379"), ("1-1.result", "paid"),
                       ("1-2.result", "paid"), ("lock", "")):
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(text)
    text, action = findings(server)["results", "warning"]
    assert text == ("2 undelivered results of another queue (warmq at redis://old:6379) wait in "
                    + place)
    subprocess.run(action[action.index("printf"):action.index(", and then")], shell=True,
                   check=True)
    assert ("results", "warning") not in findings(server), "a worker may be at it"
    os.utime(os.path.join(place, "1-1.result"), (1, 1))
    text, action = findings(server)["results", "warning"]
    assert text.startswith(f"2 undelivered results of this queue wait in {place} for 1")
    assert action.startswith("start one more worker here")


@pytest.mark.parametrize("how", ["missing", "unreadable", "ahead", "missing, restarted"])
def test_a_cursor_is_found_again_and_no_job_runs_twice_or_never(server, scheduler, inbox, how):
    enqueue(inbox, 10)
    worker = Worker(inbox, pool="default")
    inbox.ok("hold", "off", "me")
    wait_until(lambda: len(worker.claim().jobs) > 0 or len(inbox.leases(worker)) > 0, "a job")
    if "restarted" in how:
        scheduler.terminate()
    else:
        scheduler.freeze(True)
    if how == "unreadable":
        inbox.redis.hset(inbox.key("meta"), "cursor", "x")
    elif how == "ahead":
        inbox.redis.hset(inbox.key("meta"), "cursor", f"{inbox.now() + 3600000}-0 0")
    else:
        inbox.redis.hdel(inbox.key("meta"), "cursor")
    for n in range(5):
        last = inbox.add(upstream="claude", body=body(question=f"new {n}"))
    if "restarted" in how:
        scheduler.start(wait=False)
        scheduler.wait_for("warmq doctor --repair cursor", seconds=20)
    else:
        scheduler.freeze(False)
    assert "--repair cursor" in findings(server)["inbox", "bad"][1]
    warmq(server, "doctor", "--repair", "cursor", check=0)
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "the new jobs to be admitted", 20)
    ids = waiting(inbox) + [lease.element.split("~")[0]
                            for lease in inbox.leases(worker).values()]
    assert len(ids) == len(set(ids)) == 15
    assert inbox.is_conserved()
    text = warmq(server, "doctor", "--repair", "cursor", check=0)
    assert "nothing was changed" in text


def test_of_two_that_repair_the_cursor_none_sets_it_back(server, scheduler, inbox):
    """What was admitted between was admitted again: paid and delivered twice."""
    enqueue(inbox, 3)
    inbox.redis.hset(inbox.key("meta"), "cursor", "x")
    between = os.path.join(server.folder, "between.sock")
    slow = types.SimpleNamespace(url=f"unix://{between}", folder=server.folder)

    def be_faster():
        warmq(server, "doctor", "--repair", "cursor", check=0)
        enqueue(inbox, 4)

    with Proxy(between, server.path) as proxy:
        proxy.next("deadline", "slow", then=be_faster, seconds=0)  # the last it looks at
        text = warmq(slow, "doctor", "--repair", "cursor", check=0)
        assert proxy.done, "it was not made to wait"
    assert "nothing was changed" in text
    enqueue(inbox, 1)
    ids = waiting(inbox)
    assert len(ids) == len(set(ids)) == 8
    assert inbox.is_conserved()


def test_a_cursor_that_follows_ids_of_the_future_is_left_alone(server, scheduler, inbox):
    """All is admitted, and went on being while the place was sought to which it was set back."""
    enqueue(inbox, 3)
    inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "body": body("hello", "why")},
                     id=f"{inbox.now() + 3600000}-0")
    enqueue(inbox, 3)
    between = os.path.join(server.folder, "between.sock")
    slow = types.SimpleNamespace(url=f"unix://{between}", folder=server.folder)
    with Proxy(between, server.path) as proxy:
        proxy.next("deadline", "slow", then=lambda: enqueue(inbox, 4), seconds=0)
        text = warmq(slow, "doctor", "--repair", "cursor", check=0)
    assert "nothing was changed" in text and "ids of the future" in text
    enqueue(inbox, 1 if proxy.done else 5)
    ids = waiting(inbox)
    assert len(ids) == len(set(ids)) == 12
    assert inbox.is_conserved()


@pytest.mark.parametrize("is_begun", [True, False], ids=["begun", "gone"])
def test_a_dead_job_of_the_future_does_not_keep_the_cursor_there(server, scheduler, inbox, is_begun):
    """It was set to where it stood, and said to be well."""
    enqueue(inbox, 1)
    future = f"{inbox.now() + 3600000}-0"
    inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "body": "no JSON"}, id=future)
    wait_until(lambda: future in inbox.dead(), "its end")
    scheduler.freeze(True)
    inbox.redis.delete(inbox.key("jobs"))
    add = lambda: inbox.add(upstream="claude", body=body(question="new"))
    last = add() if is_begun else None
    assert "--repair cursor" in findings(server)["inbox", "bad"][1]
    warmq(server, "doctor", "--repair", "cursor", check=0)
    assert inbox.meta("cursor") != f"{future} 0"
    last = last or add()
    scheduler.freeze(False)
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "the new job to be admitted", 20)
    assert ("inbox", "bad") not in findings(server)


def test_an_inbox_that_takes_no_more_is_said(server, scheduler, inbox):
    """It was told that new jobs are admitted."""
    last = "18446744073709551615-18446744073709551615"
    inbox.redis.xadd(inbox.key("jobs"), {"upstream": "claude", "body": body("hello", "why")}, id=last)
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "its admission", 20)
    with pytest.raises(redis.ResponseError, match="last possible ID"):
        inbox.add(upstream="claude", body=body(question="new"))
    text, action = findings(server)["inbox", "bad"]
    assert "last possible id" in text and "An exhausted inbox" in action


def test_books_are_counted_anew(server, scheduler, inbox):
    enqueue(inbox, 3)
    budget = inbox.redis.hvals(inbox.key("pools"))[0].split(",")[0]
    inbox.redis.hincrby(inbox.key(f"budget:{budget}"), "in_flight", 7)
    found = findings(server)["leases", "bad"]
    assert "0 requests run by the leases" in found[0] and "--repair books" in found[1]
    text = warmq(server, "doctor", "--repair", "books", check=0)
    assert f"corrected in flight of {budget}: it was 7, is 0" in text
    assert ("leases", "bad") not in findings(server)
    assert "nothing was wrong" in warmq(server, "doctor", "--repair", "books", check=0)


def test_stored_payloads_are_counted_anew(server, scheduler, inbox):
    """Their number went with `meta`, and all that ran was called bad from then on."""
    enqueue(inbox, 3)
    slims = inbox.count()["slims"]
    assert slims > 0 and ("books", "bad") not in findings(server)
    inbox.redis.hdel(inbox.key("meta"), "slims")
    found = findings(server)["books", "bad"]
    assert "--repair books" in found[1]
    text = warmq(server, "doctor", "--repair", "books", check=0)
    assert f"corrected the number of stored payloads: it was 0, is {slims}" in text
    assert inbox.count()["slims"] == slims and inbox.is_conserved()
    assert ("books", "bad") not in findings(server)
    assert "nothing was wrong" in warmq(server, "doctor", "--repair", "books", check=0)


def test_jobs_of_deleted_lists_get_a_place_or_an_end(server, scheduler, inbox):
    """They waited for ever, and all that was left was to enqueue them again, one by one."""
    enqueue(inbox, 2)  # split: their family knew the rest of them
    whole = [inbox.add(upstream="claude", body=body("hello", "why")) for _ in range(3)]
    wait_until(lambda: inbox.meta("cursor") == f"{whole[-1]} 0", "the jobs to be admitted")
    ids = waiting(inbox)
    assert len(ids) == 5
    for key in inbox.redis.keys(inbox.key("ready:*")):
        inbox.redis.delete(key)
    text, action = findings(server)["books", "bad"]
    assert "5 jobs stand in no list" in text
    said = warmq(server, *action.split()[1:], check=0)
    assert "put 3 jobs back" in said and "ended 2 jobs as lost" in said
    wait_until(lambda: sorted(waiting(inbox)) == sorted(whole), "the scheduler to place them")
    assert sorted(inbox.dead()) == sorted(set(ids) - set(whole))
    assert all('"lost"' in inbox.result(id) for id in inbox.dead())
    assert ("books", "bad") not in findings(server) and inbox.is_conserved()
    assert "nothing was changed" in warmq(server, "doctor", "--repair", "jobs", check=0)


def test_jobs_that_run_are_not_lost_with_the_list_of_workers(server, scheduler, inbox):
    """They stood nowhere for as long as no worker beat: dead as lost, and done a moment later."""
    enqueue(inbox, 3)
    inbox.ok("hold", "off", "me")
    worker, gone = Worker(inbox, pool="default", slots=2), Worker(inbox, pool="default", slots=1)
    jobs = worker.claim().jobs
    [lost] = gone.claim().ids
    inbox.redis.delete(inbox.key("workers"))
    level = findings(server)["workers", "bad"]
    assert "--repair books" in level[1]
    said = warmq(server, "doctor", "--repair", "jobs", check=0)
    assert "listed 2 sessions again" in said and "every job that lives stands somewhere" in said
    assert inbox.dead() == [] and worker.beat()[0] == "OK"
    assert worker.settle(jobs).problems == []
    inbox.redis.zadd(inbox.key("workers"), {gone.nonce: inbox.now()})  # 30 s later
    wait_until(lambda: waiting(inbox) == [lost], "the scheduler to give its job back")
    assert ("books", "bad") not in findings(server) and inbox.is_conserved()


def test_a_list_of_which_nobody_knows_the_family_is_placed_anew(server, scheduler, inbox):
    """Neither its record nor its lane is left: nobody would ever take from it."""
    whole = [inbox.add(upstream="claude", body=body("hello", "why")) for _ in range(3)]
    wait_until(lambda: inbox.meta("cursor") == f"{whole[-1]} 0", "the jobs to be admitted")
    inbox.redis.delete(inbox.key("families"), inbox.key("lanes"), inbox.key("stamp"))
    assert "3 jobs stand in no list" in findings(server)["books", "bad"][0]
    said = warmq(server, "doctor", "--repair", "jobs", check=0)
    assert "deleted 1 list of" in said and "put 3 jobs back" in said
    wait_until(lambda: sorted(waiting(inbox)) == sorted(whole), "the scheduler to place them")
    wait_until(lambda: inbox.redis.hlen(inbox.key("families")) == 1, "their family")
    assert inbox.is_conserved()


def test_records_that_nobody_can_read_are_written_anew(server, scheduler, inbox):
    """Without it neither claim nor audit nor admission get past them."""
    enqueue(inbox, 4)
    for name in ("lanes", "families"):
        for id in inbox.redis.hkeys(inbox.key(name)):
            inbox.redis.hset(inbox.key(name), id, "junk")
    inbox.redis.delete(inbox.key("stamp"))
    assert "--repair records" in findings(server)["records", "bad"][1]
    inbox.redis.config_set("maxmemory", 1)  # it has to work while Redis is full, too
    assert "deleted the record" in warmq(server, "doctor", "--repair", "records", check=0)
    inbox.redis.config_set("maxmemory", 0)
    assert ("records", "bad") not in findings(server)
    inbox.ok("hold", "off", "me")
    enqueue(inbox, 1)
    worker = Worker(inbox, pool="default", slots=10)
    wait_until(lambda: worker.claim() and len(inbox.leases(worker)) == 5, "all jobs to run", 30)
