"""What `warmq` does to a queue: the same as the page, without a scheduler's page."""

import json
import os
import re
import subprocess
import threading

from daemons import BUILD, CONFIG, Scheduler, inbox, server  # noqa: F401
from store import ROOT, Worker, wait_until
from test_42_scheduler_pages import act, enqueue, families, scheduler  # noqa: F401
from test_44_cli_page import url_of, warmq


def subprocess_out(*words):
    """What a verb prints, whatever its code."""
    return subprocess.run([os.path.join(BUILD, "cli", "warmq"), *words], capture_output=True,
                          text=True, timeout=120, check=False).stdout


def test_an_account_is_unparked(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    worker, jobs = Worker(inbox, pool="default"), []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "a start")
    worker.fail(jobs[0], "defer", park_ms=900000, reason="spend")
    budget = families(scheduler)["families"][0]["budget"]
    [row] = [one for one in json.loads(warmq("budget", "ls", "--json", "--redis", server.url))
             if one["budget"] == budget]
    assert row["parked_ms"] > 800000
    assert "14 min" in warmq("budget", "ls", "--redis", server.url)
    assert "start again now" in warmq("budget", "unpark", budget, "--redis", server.url)
    wait_until(lambda: worker.claim(0).jobs, "a start")
    assert json.loads(warmq("budget", "unpark", budget.split(":")[0], "--json", "--redis",
                            server.url)) == {"what": "free"}
    assert "`warmq budget ls` lists them" in warmq("budget", "unpark", "nobody", "--redis",
                                                   server.url, check=4)
    assert "Say which" in warmq("budget", "unpark", "--redis", server.url, check=2)


def test_workers_are_told_to_be_quiet_and_to_go_on(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    worker = Worker(inbox, pool="default", slots=4)
    assert "what runs goes on" in warmq("worker", "quiet", worker.nonce[:6], "--redis", server.url)
    [row] = json.loads(warmq("worker", "ls", "--json", "--redis", server.url))
    assert (row["state"], row["pool"]) == ("quiet", "default")
    assert " quiet " in warmq("worker", "ls", "--redis", server.url)
    assert worker.claim(0).jobs == []
    assert json.loads(warmq("worker", "resume", row["label"], "--json", "--redis", server.url)) == {
        "told": [worker.nonce]}
    wait_until(lambda: worker.claim(0).jobs, "a start")
    warmq("worker", "stop", worker.nonce, "--redis", server.url)
    assert worker.beat()[2:] == [5]
    assert "no live worker \"nobody\"" in warmq("worker", "stop", "nobody", "--redis", server.url,
                                               check=4)


def test_a_name_of_one_worker_stops_no_other_one(server, scheduler, inbox):
    """A label that looks like the begin of a session stopped that one's worker, too."""
    workers = [Worker(inbox, pool="default") for _ in range(3)]
    begin = workers[0].nonce[:4]
    assert all(one.nonce.startswith(begin) for one in workers)
    said = warmq("worker", "stop", begin, "--redis", server.url, check=1)
    assert f'Sessions of several workers begin with "{begin}"' in said
    inbox.redis.hset(inbox.key(f"session:{workers[1].nonce}"), "label", begin)
    assert json.loads(warmq("worker", "stop", begin, "--json", "--redis", server.url)) == {
        "told": [workers[1].nonce]}
    assert [one.beat()[2] & 4 for one in workers] == [0, 4, 0]


def test_holding_is_switched_off_for_one_route(server, scheduler, inbox):
    enqueue(inbox, ["triage", "other"], 3)
    worker = Worker(inbox, pool="default", slots=10)
    text = warmq("hold", "off", "--route", "triage", "--redis", server.url)
    assert "Holding is on:" in text and "Holding is off for the route triage." in text
    jobs = []
    wait_until(lambda: jobs.extend(worker.claim(*range(len(jobs), 10)).jobs) or len(jobs) >= 4, "four starts")
    assert json.loads(warmq("hold", "status", "--json", "--redis", server.url)) == {
        "hold": True, "unheld": ["triage"]}
    wait_until(lambda: scheduler.json("/api/v1/overview")["unheld"] == ["triage"], "the scheduler")
    text = warmq("why", "triage", url=url_of(scheduler))
    assert "Holding is off for the route triage." in text
    assert json.loads(warmq("hold", "on", "--route", "triage", "--json", "--redis",
                            server.url))["unheld"] == []
    wait_until(lambda: scheduler.json("/api/v1/overview")["unheld"] == [], "the scheduler")


def test_a_family_is_warmed_or_the_reason_is_said(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    text = warmq("family", "warm", "triage", "--redis", server.url, check=1)
    assert "Nothing is written: no live worker serves its pool." in text
    answer = json.loads(subprocess_out("family", "warm", "triage", "--json", "--redis", server.url))
    assert answer["what"] == "no_worker"
    assert "There is no family or route \"nobody\"" in warmq("family", "warm", "nobody", "--redis",
                                                   server.url, check=4)
    scheduler.end()
    inbox.redis.delete(inbox.key("warm:" + answer["family"]))
    id = answer["family"]
    inbox.ok("pause", id, "on")
    assert "it is paused" in warmq("family", "warm", id, "--redis", server.url, check=1)


def warm_word(server, route):
    return json.loads(subprocess_out("family", "warm", route, "--json", "--redis",
                                     server.url))["what"]


def spoil_lane(inbox, gate, reason):
    """The only lane that there is, by hand; the scheduler knows better."""
    [lane] = inbox.redis.hkeys(inbox.key("lanes"))
    record = inbox.redis.hget(inbox.key("lanes"), lane)
    assert record[1:3] == f"{gate}{reason}"
    inbox.redis.hset(inbox.key("lanes"), lane, record[0] + "00" + record[3:])
    inbox.redis.delete(inbox.key("stamp"))


def test_a_family_of_a_parked_account_is_not_warmed(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    worker, jobs = Worker(inbox, pool="default"), []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "a start")
    worker.fail(jobs[0], "defer", park_ms=900000, reason="spend")
    family = families(scheduler)["families"][0]
    wait_until(lambda: families(scheduler)["families"][0]["blocked_kind"] == "parked",
               "the scheduler")
    text = warmq("family", "warm", "triage", "--redis", server.url, check=1)
    assert "Nothing is written: its account is parked: see `warmq budget ls`." in text
    assert warm_word(server, "triage") == "parked"
    assert not inbox.redis.exists(inbox.key(f"warm:{family['id']}")), "the function has said so"
    # The scheduler parks by itself as well, before Redis knows of it.
    inbox.redis.hset(inbox.key("budget:" + family["budget"]), "parked_until", 0)
    assert warm_word(server, "triage") == "parked"
    assert inbox.redis.get(inbox.key(f"warm:{family['id']}")) == "parked", "the scheduler has"


def test_a_family_that_is_too_short_is_not_warmed(server, scheduler, inbox):
    enqueue(inbox, ["t"], 2)  # 750 tokens of 1,024
    worker, jobs = Worker(inbox, pool="default"), []
    wait_until(lambda: jobs.extend(worker.claim(*range(len(jobs), 2)).jobs) or len(jobs) == 2,
               "both starts")
    worker.settle(jobs)
    [family] = families(scheduler)["families"]
    text = warmq("family", "warm", "t", "--redis", server.url, check=1)
    assert "Nothing is written: it is too short: its model caches nothing so short." in text
    assert warm_word(server, "t") == "small"
    assert not inbox.redis.exists(inbox.key(f"warm:{family['id']}")), "the function has said so"
    spoil_lane(inbox, 4, 2)
    assert warm_word(server, "t") == "small"
    assert inbox.redis.get(inbox.key(f"warm:{family['id']}")) == "small", "the scheduler has"
    assert worker.claim(0).jobs == [], "no ticket"


def test_a_family_that_nobody_remembers_is_not_said_to_be_switched_off(server, inbox):
    """Holding was on, for all and for its route, and "off for it"."""
    config = CONFIG.replace("scheduler:", "scheduler:\n  families_max: 64")
    with Scheduler(server, config=config) as scheduler:
        enqueue(inbox, [f"r{n}" for n in range(70)])
        wait_until(lambda: "too many families" in scheduler.log, "one of too many")
        unheld = re.search(r"too many families.* route=(r\d+)", scheduler.log)[1]
        wait_until(lambda: state_of(server, unheld) == "not held: not held here", "its lane")
        text = warmq("family", "warm", unheld, "--redis", server.url, check=1)
        assert "or the scheduler remembers no more families" in text


def state_of(server, route):
    [row] = json.loads(warmq("family", "ls", route, "--json", "--redis", server.url))
    return row["state"]


def test_a_prefix_is_being_written_from_when_a_worker_has_its_writer(server, scheduler, inbox):
    """Overview and page say `elected` until then."""
    worker = Worker(inbox, pool="default")
    enqueue(inbox, ["triage"], 2)
    wait_until(lambda: state_of(server, "triage") != "cold", "the choice")
    assert state_of(server, "triage") == "cold: its writer waits for a slot"
    wait_until(lambda: families(scheduler)["families"][0]["blocked_on"] == "elected", "the scheduler")
    assert worker.claim(0).jobs
    assert state_of(server, "triage") == "being written"


def test_a_family_that_is_not_held_says_so_whatever_its_lane_says(server, scheduler, inbox):
    enqueue(inbox, ["triage", "other"], 2)
    assert state_of(server, "triage") == "cold"
    warmq("hold", "off", "--route", "triage", "--redis", server.url)
    wait_until(lambda: state_of(server, "triage") != "cold", "the audit")
    assert state_of(server, "triage") == "not held: holding is off for its route"
    assert state_of(server, "other") == "cold"
    assert "not held: holding is off for its route" in warmq("family", "show", "triage", "--redis",
                                                             server.url)
    warmq("hold", "off", "--redis", server.url)
    assert state_of(server, "other") == state_of(server, "triage") == "not held: holding is off"
    warmq("hold", "on", "--redis", server.url)
    assert state_of(server, "triage") == "not held: holding is off for its route"
    warmq("hold", "on", "--route", "triage", "--redis", server.url)
    wait_until(lambda: state_of(server, "triage") == "cold", "the audit")


def test_a_family_that_comes_to_a_route_switched_off_says_so_at_once(server, scheduler, inbox):
    warmq("hold", "off", "--route", "late", "--redis", server.url)
    wait_until(lambda: "route was switched off" in scheduler.log, "the scheduler")
    enqueue(inbox, ["late"], 2)
    assert state_of(server, "late") == "not held: holding is off for its route", "no audit yet"


def test_a_family_is_paused_and_resumed(server, scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    worker = Worker(inbox, pool="default")
    assert "Nothing of it starts" in warmq("family", "pause", "triage", "--redis", server.url)
    assert worker.claim().jobs == []
    wait_until(lambda: families(scheduler)["families"][0]["paused"], "the scheduler")
    answer = json.loads(warmq("family", "resume", "triage", "--json", "--redis", server.url))
    assert answer["paused"] is False
    wait_until(lambda: worker.claim().jobs, "a start")
    assert "no family or route" in warmq("family", "pause", "x", "--redis", server.url, check=4)


def test_dead_jobs_are_queued_again_or_forgotten(server, scheduler, inbox):
    ids = enqueue(inbox, ["triage"], 4)["triage"]
    worker, dead = Worker(inbox, pool="default", slots=1), []
    while len(dead) < 4:
        wait_until(lambda: dead.extend(worker.claim(0).jobs) or len(dead) > inbox.redis.zcard(
            inbox.key("dead")), "a start")
        assert worker.fail(dead[-1], "fatal", reason="bad") == "dead"
    assert "1 job queued again." in warmq("job", "retry", ids[0], "--redis", server.url)
    text = subprocess_out("job", "drop", ids[1], ids[1], "1-1", "--json", "--redis", server.url)
    assert json.loads(text) == {"done": 1, "left": 2}
    assert "2 jobs queued again." in warmq("job", "retry", "--all", "--redis", server.url)
    assert inbox.dead() == []
    assert json.loads(warmq("job", "drop", "--all", "--json", "--redis", server.url)) == {
        "done": 0, "left": 0}
    assert "Say which" in warmq("job", "retry", "--redis", server.url, check=2)


def test_all_dead_jobs_are_those_of_the_beginning(server, scheduler):
    """Whoever died again meanwhile was retried again, for as long as that went on."""
    client, ended = server.client, threading.Event()

    def die():
        n = 1
        while not ended.is_set():
            client.zadd("warmq:dead", {f"{n + i}-1": 1000000 + n + i for i in range(2000)})
            n += 2000

    thread = threading.Thread(target=die)
    thread.start()
    try:
        wait_until(lambda: client.zcard("warmq:dead") > 2000, "the first deaths")
        answer = json.loads(warmq("job", "retry", "--all", "--json", "--redis", server.url, check=0))
        assert 2000 <= answer["left"] + answer["done"] < client.zcard("warmq:dead")
        status, answer = act(scheduler, "dead/retry", {"all": True})
        assert status == 200 and answer["left"] < client.zcard("warmq:dead")
    finally:
        ended.set()
        thread.join()
        client.delete("warmq:dead")


def test_every_verb_stands_in_the_manual():
    with open(os.path.join(ROOT, "docs", "man", "warmq.1.scd"), encoding="utf-8") as page:
        manual = page.read()
    listed = [line[2:16].strip() for line in subprocess_out("help").splitlines()
              if line.startswith("  ") and not line.startswith("  warmq")]
    assert len(listed) > 20
    assert [verb for verb in listed if f"*{verb}*" not in manual] == []
