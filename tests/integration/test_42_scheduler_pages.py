"""The pages: who may ask and act, paging and order, what is escaped, and their limits."""

import base64
import hashlib
import http.client
import json
import os
import re
import socket
import time

import pytest

from daemons import CONFIG, Scheduler, body, inbox, server  # noqa: F401
from store import ROOT, Worker, wait_until

TOKEN = "open-sesame-please"
EVIL = '<img src=x onerror=alert(1)>"\'&'


def start(server, extra="", token=TOKEN, name="scheduler"):
    config = CONFIG.rstrip() + "\n" + extra
    if token:
        path = os.path.join(server.folder, f"{name}.token")
        with open(path, "w", encoding="utf-8") as out:
            out.write(token + "\n")
        config += f"  token_file: {path}\n"
    scheduler = Scheduler(server, config=config, name=name)
    scheduler.start()
    return scheduler


@pytest.fixture
def scheduler(server):
    return start(server)


def ask(scheduler, path, method="GET", data=None, token=None, **headers):
    """Status, headers and body of one request, whatever the Host header says."""
    connection = http.client.HTTPConnection("127.0.0.1", scheduler.port, timeout=120)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        sent.setdefault("Content-Type", "application/json")
        data = "{}" if data is None else data if isinstance(data, str) else json.dumps(data)
    if token:
        sent["Authorization"] = f"Bearer {token}"
    connection.request(method, path, data, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def act(scheduler, path, data=None, token=TOKEN, **headers):
    status, _, text = ask(scheduler, "/api/v1/" + path, "POST", data, token, **headers)
    return status, json.loads(text)


def families(scheduler, query="show=all"):
    return scheduler.json("/api/v1/families?" + query)


def enqueue(inbox, routes, jobs=2):
    """A family for each route: two jobs share its prefix."""
    ids = {}
    for route in routes:
        system = f"{route} " * 1500
        ids[route] = [inbox.add(upstream="claude", route=route, body=body(system, f"q{n}"))
                      for n in range(jobs)]
    last = [id for one in ids.values() for id in one][-1]
    wait_until(lambda: inbox.meta("cursor") == f"{last} 0", "all to be admitted")
    return ids


# ---- who may ask -----------------------------------------------------------------------


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1:9310", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("[::1]:9310", 200),
    ("10.1.2.3:80", 200), ("evil.example", 421), ("evil.example:9310", 421),
    ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421)])
def test_the_host_is_checked_against_rebinding(scheduler, host, status):
    assert ask(scheduler, "/api/v1/overview", Host=host)[0] == status
    assert ask(scheduler, "/", Host=host)[0] == status
    assert ask(scheduler, "/metrics", Host=host)[0] == status, "routes and money"
    assert ask(scheduler, "/healthz", Host=host)[0] == 200, "machines use any name"


def test_further_hosts_come_from_the_configuration(server):
    scheduler = start(server, "  hosts: [warmq.internal]\n")
    assert ask(scheduler, "/", Host="warmq.internal:9310")[0] == 200
    assert ask(scheduler, "/", Host="warmq.external")[0] == 421


def test_the_page_has_a_strict_policy(scheduler):
    status, headers, text = ask(scheduler, "/")
    assert status == 200 and "<title>WarmQ</title>" in text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    inline = re.compile(r"<(script|style)([^>]*)>(.*?)</\1>", re.S)
    for tag, attributes, content in inline.findall(text):
        if "application/json" in attributes:
            assert json.loads(content)["phase"] and tag == "script", "data: it does not run"
            continue
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'self' 'sha256-{digest}'" in policy, "what runs is known by its hash"
    text = inline.sub("", text)
    for name in [*re.findall(r'(?:src|href)="([^"#]+)"', text), "uPlot.iife.min.js", "uPlot.min.css"]:
        if name.startswith("api/"):
            continue
        status, headers, content = ask(scheduler, "/" + name)
        assert status == 200 and content, name
        assert "://" not in name, "nothing is fetched from elsewhere"
    assert not re.search(r"<script|<style|\son\w+=|style=", text), "nothing else inline"


def test_only_get_head_and_post_exist(scheduler):
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        status, headers, _ = ask(scheduler, "/api/v1/overview", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD, POST"
        assert "Access-Control-Allow-Origin" not in headers
    assert ask(scheduler, "/api/v1/nothing")[0] == 404
    assert ask(scheduler, "/../../etc/passwd")[0] == 404


# ---- who may act -----------------------------------------------------------------------


def test_an_action_needs_the_token(scheduler, inbox):
    for token in (None, "", "open-sesame-pleasx", TOKEN + "x", TOKEN[:-1]):
        assert act(scheduler, "hold", {"on": False}, token)[0] == 401
    assert inbox.meta("hold") is None
    assert act(scheduler, "hold", {"on": False}) == (200, {"what": "done"})
    assert inbox.meta("hold") == "off"
    wait_until(lambda: scheduler.json("/api/v1/overview")["hold"] is False, "the ruler to hear")


@pytest.mark.parametrize("headers, status", [
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Content-Type": "text/plain"}, 415),
    ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"Sec-Fetch-Site": "same-origin"}, 200)])
def test_no_other_page_can_act(scheduler, headers, status):
    assert ask(scheduler, "/api/v1/check", "POST", None, TOKEN, **headers)[0] == status


def test_our_own_page_can_act(scheduler):
    own = f"127.0.0.1:{scheduler.port}"
    assert act(scheduler, "check", Origin=f"http://{own}")[0] == 200
    assert act(scheduler, "check", Origin=f"https://{own}", Host=own)[0] == 200


def test_without_a_token_the_pages_are_read_only(server):
    scheduler = start(server, token=None)
    assert scheduler.json("/api/v1/session")["read_only"] is True
    status, answer = act(scheduler, "hold", {"on": False}, "anything")
    assert status == 403 and "read-only" in answer["error"]


def test_read_only_wins_over_the_token(server):
    scheduler = start(server, "  read_only: true\n")
    assert act(scheduler, "hold", {"on": False})[0] == 403
    assert scheduler.json("/api/v1/session")["read_only"] is True


def test_a_short_token_is_refused_at_the_start(server):
    with pytest.raises(AssertionError, match="too short"):
        start(server, token="abc")


@pytest.mark.parametrize("path, data", [
    ("hold", {}), ("hold", {"on": "yes"}), ("hold", "[]"), ("hold", "{"),
    ("dead/retry", {}), ("dead/retry", {"ids": []}), ("dead/retry", {"ids": ["x"]}),
    ("dead/retry", {"ids": ["1-1"] * 251}), ("families/xyz/pause", {}), ("jobs/xyz/cancel", {}),
    ("jobs/" + "1" * 200 + "/cancel", {}), ("unpark", {}), ("unpark", {"budget": 1}),
    ("workers/xyz/quiet", {}), ("hold", {"on": False, "route": ""}),
    ("hold", {"on": False, "route": "a|b"}),
    ("families/xyz/warm", {}),
    ("hold", {"on": False, "rute": "triage"}),  # of one route, and not of all
    ("hold", '{"on": true, "on": false}'), ("unpark", {"budget": "claude", "x": 1}),
    ("dead/drop", {"all": True, "ids": ["1-1"]}), ("dead/drop", {"all": True, "route": "triage"}),
    ("families/" + "0" * 32 + "/cancel", {"limit": 1})])
def test_a_wrong_action_is_told_so(scheduler, path, data):
    status, answer = act(scheduler, path, data)
    assert status == 400 and answer["error"]


def test_an_unknown_action_is_told_so(scheduler):
    assert act(scheduler, "explode")[0] == 404
    assert act(scheduler, "families/" + "0" * 32 + "/explode")[0] == 404
    assert act(scheduler, "families/" + "0" * 32 + "/pause")[0] == 404
    assert act(scheduler, "families/" + "0" * 32 + "/warm")[0] == 404
    assert act(scheduler, "jobs/1-1/cancel")[0] == 404
    assert act(scheduler, "unpark", {"budget": "nobody"})[0] == 404
    assert act(scheduler, "workers/" + "0" * 16 + "/stop")[0] == 404
    assert act(scheduler, "workers/" + "0" * 16 + "/explode")[0] == 404


# ---- families --------------------------------------------------------------------------


def test_families_are_sorted_filtered_and_paged_by_the_server(scheduler, inbox):
    routes = [f"r{n:02}" for n in range(12)]
    for n, route in enumerate(routes):
        enqueue(inbox, [route], n + 2)
    page = families(scheduler, "sort=waiting&limit=5")
    assert page["total"] == 12 and page["all"]["waiting"] == sum(range(2, 14))
    assert [one["waiting"] for one in page["families"]] == [13, 12, 11, 10, 9]
    page = families(scheduler, "sort=waiting&order=asc&limit=5&offset=10")
    assert [one["waiting"] for one in page["families"]] == [12, 13]
    page = families(scheduler, "sort=route&order=asc&limit=200")
    assert [one["route"] for one in page["families"]] == sorted(routes, reverse=True)
    assert [one["route"] for one in families(scheduler, "q=R03")["families"]] == ["r03"]
    assert families(scheduler, "route=r0")["total"] == 0
    assert families(scheduler, "route=r04")["total"] == 1
    assert families(scheduler, "blocked=no+worker")["total"] == 12
    assert families(scheduler, "blocked=parked")["total"] == 0
    assert families(scheduler, "show=held")["total"] == 12
    found = scheduler.json("/api/v1/routes?limit=3")
    assert found["total"] == 12 and [one["route"] for one in found["routes"]] == ["r11", "r10", "r09"]


@pytest.mark.parametrize("query", ["limit=201", "limit=x", "offset=-1", "sort=price", "show=some",
                                   "order=up", "blocked=luck"])
def test_a_wrong_query_is_told_so(scheduler, query):
    status, text = scheduler.get("/api/v1/families?" + query)
    assert status == 400 and json.loads(text)["error"]


def test_families_of_one_job_are_one_line(scheduler, inbox):
    for n in range(7):
        inbox.add(upstream="claude", route="one-offs", body=body(f"{n} " * 4000))
    enqueue(inbox, ["shared"], 3)
    page = families(scheduler, "show=families")
    assert [one["route"] for one in page["families"]] == ["shared"]
    assert page["singles"]["families"] == 7 and page["singles"]["waiting"] == 7
    assert families(scheduler, "show=singles")["total"] == 7
    assert families(scheduler, "show=all")["total"] == 8


def flags(record):
    """Of a family: 1 paused, 8 unheld."""
    return int(record[4:6])


def test_a_family_is_paused_and_resumed_and_the_ruler_hears_of_it(scheduler, inbox):
    enqueue(inbox, ["triage"])
    id = families(scheduler)["families"][0]["id"]
    assert act(scheduler, f"families/{id}/pause") == (200, {"what": "done"})

    def is_(word):
        return lambda: scheduler.json(f"/api/v1/families/{id}")["blocked_on"] == word

    wait_until(is_("paused"), "the pause")
    worker = Worker(inbox, pool="default")
    assert worker.claim().jobs == []
    enqueue(inbox, ["triage"], 3)
    assert flags(inbox.redis.hget(inbox.key("families"), id)) & 1, "an admission keeps it"
    assert act(scheduler, f"families/{id}/resume") == (200, {"what": "done"})
    wait_until(lambda: not is_("paused")(), "the end of the pause")
    wait_until(lambda: worker.claim().jobs != [], "a start")


def test_a_pause_by_the_function_itself_is_heard(scheduler, inbox):
    enqueue(inbox, ["triage"])
    id = families(scheduler)["families"][0]["id"]
    assert inbox.ok("pause", id, "on") == ["done"]
    wait_until(lambda: families(scheduler)["families"][0]["paused"], "the pause")


def test_one_route_is_not_held_and_a_restart_remembers_it(scheduler, inbox):
    enqueue(inbox, ["free", "held"], 20)
    worker = Worker(inbox, pool="default", slots=100)
    assert act(scheduler, "hold", {"on": False, "route": "free"}) == (200, {"what": "done"})
    wait_until(lambda: scheduler.json("/api/v1/overview")["unheld"] == ["free"], "the scheduler")
    free = families(scheduler, "route=free")["families"][0]
    jobs = []
    wait_until(lambda: jobs.extend(worker.claim(*range(len(jobs), 100)).jobs)
               or len([one for one in jobs if one.family == free["id"]]) == 20, "all of one route")
    assert len(jobs) <= 21, "and one writer of the other"
    wait_until(lambda: families(scheduler, "route=free")["families"][0]["state"] == "off", "its state")
    assert families(scheduler, "route=held")["families"][0]["state"] != "off"
    scheduler.terminate()
    scheduler.start(wait=False)
    scheduler.wait_for("memory is complete", 2)
    enqueue(inbox, ["free"], 3)
    family = families(scheduler, "route=free")["families"][0]
    assert family["state"] == "off" and "Holding is off for its route" in family["why"]
    inbox.add(upstream="claude", route="free", body=body("another version " * 1000, "q"))
    wait_until(lambda: worker.claim(*range(40, 60)).jobs, "a start of a new version")
    assert act(scheduler, "hold", {"on": True, "route": "free"})[0] == 200
    wait_until(lambda: not any(flags(record) & 8 for record in
                               inbox.redis.hvals(inbox.key("families"))), "all flags to go")


def test_a_family_is_warmed_by_one_request_or_told_why_not(scheduler, inbox):
    enqueue(inbox, ["triage"], 2)
    id = families(scheduler)["families"][0]["id"]
    status, answer = act(scheduler, f"families/{id}/warm")
    assert status == 409 and answer["error"] == "no live worker serves its pool"
    worker, jobs = Worker(inbox, pool="default", slots=4), []
    wait_until(lambda: families(scheduler)["families"][0]["blocked_kind"] != "no worker", "the worker")
    status, answer = act(scheduler, f"families/{id}/warm")
    assert status == 409 and "being written" in answer["error"]
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "the leader")
    worker.fail(jobs.pop(), "fatal", reason="bad")
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "another one")
    worker.fail(jobs.pop(), "fatal", reason="bad")
    wait_until(lambda: families(scheduler)["families"][0]["blocked_kind"] == "no work", "the end")
    assert families(scheduler)["families"][0]["state"] == "cold"
    assert act(scheduler, f"families/{id}/warm") == (200, {"what": "asked"})
    wait_until(lambda: jobs.extend(worker.claim(0, 1).jobs) or jobs, "the ticket")
    [ticket] = jobs
    assert ticket.role == "t" and ticket.element.startswith("w:") and ticket.family == id
    assert inbox.redis.get(inbox.key(f"warm:{id}")) == "asked"
    assert act(scheduler, f"families/{id}/warm")[0] == 409
    now = inbox.now()
    worker.settle([ticket], usage=f"{now} {now} 0 4000 3 1")
    wait_until(lambda: families(scheduler)["families"][0]["state"] == "checking", "the entry")
    enqueue(inbox, ["triage"], 1)
    wait_until(lambda: worker.claim(0).jobs, "the reader")
    assert worker.claim(1, 2).jobs == []


def test_an_account_is_unparked_and_its_jobs_start_at_once(scheduler, inbox):
    enqueue(inbox, ["triage"], 3)
    worker = Worker(inbox, pool="default", slots=4)
    jobs = []
    wait_until(lambda: jobs.extend(worker.claim(0).jobs) or jobs, "a start")
    worker.fail(jobs[0], "defer", park_ms=1000, reason="spend")
    family = families(scheduler)["families"][0]

    def account():
        return next(one for one in scheduler.json("/api/v1/overview")["budgets"] if one["name"] == family["budget"])

    wait_until(lambda: account()["parked_until_ms"] > inbox.now() + 30000, "the park for money")
    wait_until(lambda: int(inbox.redis.hget(inbox.key("budget:" + family["budget"]), "parked_until"))
               > inbox.now() + 30000, "the scheduler's longer park")
    assert act(scheduler, "unpark", {"budget": family["budget"].rsplit(":", 1)[0]}) == (200, {"what": "done"})
    wait_until(lambda: account()["parked_until_ms"] == 0, "the end of the park")
    wait_until(lambda: worker.claim(0).jobs, "a start")
    assert any("was unparked by the_dashboard" in one["text"]
               for one in scheduler.json("/api/v1/notes")["notes"])


def test_a_quiet_worker_does_not_count_and_starts_nothing(scheduler, inbox):
    enqueue(inbox, ["triage"], 3)
    worker, other = Worker(inbox, pool="default", slots=4), Worker(inbox, pool="default", slots=2)

    def slots():
        return [one["slots"] for one in scheduler.json("/api/v1/overview")["pools"]
                if one["name"] == "default"]

    wait_until(lambda: slots() == [6], "two workers")
    assert act(scheduler, f"workers/{worker.nonce}/quiet") == (200, {"what": "done"})
    assert worker.claim(0).jobs == []
    wait_until(lambda: slots() == [2], "one worker")
    states = {one["session"]: one["state"] for one in scheduler.json("/api/v1/workers")["workers"]}
    assert states == {worker.nonce: "quiet", other.nonce: "running"}
    assert act(scheduler, f"workers/{other.nonce}/stop")[0] == 200
    wait_until(lambda: families(scheduler)["families"][0]["blocked_kind"] == "no worker", "nobody")
    assert act(scheduler, f"workers/{worker.nonce}/resume")[0] == 200
    wait_until(lambda: slots() == [4], "the first one")
    wait_until(lambda: worker.claim(0).jobs, "a start")
    assert any(f"the worker {other.nonce} was told to stop by the_dashboard" in one["text"]
               for one in scheduler.json("/api/v1/notes")["notes"])


def test_a_new_ruler_knows_who_is_quiet(server, scheduler, inbox):
    worker = Worker(inbox, pool="default", slots=4)
    Worker(inbox, pool="default", slots=2)
    inbox.ok("steer", worker.nonce, "quiet")
    scheduler.terminate()
    scheduler.start(wait=False)
    scheduler.wait_for("memory is complete", 2)
    wait_until(lambda: [one["slots"] for one in scheduler.json("/api/v1/overview")["pools"]] == [2],
               "the loud one")


def test_all_waiting_jobs_of_a_family_are_cancelled(scheduler, inbox):
    ids = enqueue(inbox, ["gone", "kept"], 300)
    gone = next(one["id"] for one in families(scheduler)["families"] if one["route"] == "gone")
    assert act(scheduler, f"families/{gone}/cancel") == (200, {"cancelled": 300})
    assert scheduler.json(f"/api/v1/jobs/{ids['gone'][7]}")["state"] == "cancelled"
    assert scheduler.json(f"/api/v1/jobs/{ids['kept'][7]}")["state"] == "waiting"
    assert act(scheduler, f"families/{gone}/cancel") == (200, {"cancelled": 0})


def test_waiting_and_running_are_told_apart(scheduler, inbox):
    worker = Worker(inbox, pool="default", slots=20)
    wait_until(lambda: scheduler.json("/api/v1/overview")["pools"] != [], "the worker")
    enqueue(inbox, ["triage"], 10)
    jobs = []
    wait_until(lambda: jobs.extend(worker.claim().jobs) or jobs, "a start")
    wait_until(lambda: families(scheduler)["families"], "the family")
    id = families(scheduler)["families"][0]["id"]
    wait_until(lambda: scheduler.json(f"/api/v1/families/{id}")["running"] == len(jobs), "its figure")
    assert scheduler.json(f"/api/v1/families/{id}")["waiting"] == 10 - len(jobs)
    [row] = scheduler.json("/api/v1/workers")["workers"]
    assert row["slots"] == 20 and row["busy"] == len(jobs) and row["pool"] == "default"
    [drain] = row["drains"]
    assert row["since_ms"] <= drain.pop("since_ms") <= scheduler.json("/api/v1/overview")["now_ms"]
    assert drain == {"family": id, "route": "triage", "running": len(jobs)}
    running = scheduler.json(f"/api/v1/jobs?state=running&family={id}")
    assert running["total"] == len(jobs) and running["jobs"][0]["id"] == jobs[0].id


# ---- what is shown of prompts ----------------------------------------------------------


def test_prefixes_are_sizes_and_their_text_needs_reveal_and_token(server, inbox):
    scheduler = start(server)
    enqueue(inbox, ["triage"])
    id = families(scheduler)["families"][0]["id"]
    path = f"/api/v1/families/{id}/prefix"
    for token in (None, TOKEN):
        answer = json.loads(ask(scheduler, path, token=token)[2])
        assert answer["revealed"] is False
        assert sum(one["bytes"] for one in answer["segments"]) > 8000
        assert "triage triage" not in json.dumps(answer)
    scheduler.kill()
    scheduler = start(server, "  reveal: true\n", name="second")
    wait_until(lambda: families(scheduler)["total"] == 1, "the family")
    assert "triage triage" not in ask(scheduler, path)[2], "no token, no text"
    assert "triage triage" in ask(scheduler, path, token=TOKEN)[2]


def test_labels_of_users_are_escaped_and_harmless(scheduler, inbox):
    enqueue(inbox, [EVIL[:60]])
    status, headers, text = ask(scheduler, "/api/v1/families?show=all")
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(text)["families"][0]["route"] in (EVIL[:60], "claude/claude-sonnet-4-5")


# ---- jobs ------------------------------------------------------------------------------


def test_dead_jobs_are_listed_retried_and_dropped(scheduler, inbox):
    worker = Worker(inbox, pool="default", slots=10)
    wait_until(lambda: scheduler.json("/api/v1/overview")["pools"] != [], "the worker")
    ids = enqueue(inbox, ["triage"], 6)["triage"]
    dead = []

    def die():
        for job in worker.claim().jobs:
            worker.fail(job, "fatal", reason="http_400", text=EVIL)
            dead.append(job.id)
        return len(dead) == 6

    wait_until(die, "six deaths")
    page = scheduler.json("/api/v1/jobs?state=dead&limit=4")
    assert page["total"] == 6 and len(page["jobs"]) == 4
    assert page["jobs"][0]["reason"] == "http_400" and page["jobs"][0]["route"] == "triage"
    story = scheduler.json(f"/api/v1/jobs/{ids[0]}")
    assert story["state"] == "dead" and story["past"]["reason"] == "http_400"
    assert act(scheduler, f"jobs/{ids[0]}/retry") == (200, {"what": "queued"})
    assert act(scheduler, "dead/retry", {"ids": ids[:3]}) == (200, {"done": 2, "left": 1})
    assert act(scheduler, "dead/drop", {"ids": [ids[3]]}) == (200, {"done": 1, "left": 0})
    assert scheduler.get(f"/api/v1/jobs/{ids[3]}")[0] in (200, 404), "its result may remain"
    assert act(scheduler, "dead/retry", {"all": True}) == (200, {"done": 2, "left": 0})
    assert scheduler.json("/api/v1/jobs?state=dead")["total"] == 0
    inbox.owner = inbox.meta("owner")
    assert inbox.is_conserved()


def test_waiting_jobs_are_paged_in_the_order_of_their_queue(scheduler, inbox):
    ids = enqueue(inbox, ["triage"], 25)["triage"]
    high = inbox.add(upstream="claude", route="triage", priority="high",
                     body=body("triage " * 1500, "now"))
    wait_until(lambda: inbox.meta("cursor") == f"{high} 0", "the last one")
    id = families(scheduler)["families"][0]["id"]
    got, path = [], f"/api/v1/jobs?state=waiting&family={id}&limit=10&offset="
    for offset in (0, 10, 20):
        page = scheduler.json(path + str(offset))
        assert page["total"] == 26
        got += [one["id"] for one in page["jobs"]]
    assert got == [high, *ids]
    assert scheduler.get("/api/v1/jobs?state=waiting")[0] == 400
    assert scheduler.get("/api/v1/jobs?state=asleep")[0] == 400
    assert scheduler.get("/api/v1/jobs/nonsense")[0] == 400
    assert scheduler.get("/api/v1/jobs/1-1")[0] == 404


def test_a_body_is_not_shown(scheduler, inbox):
    id = enqueue(inbox, ["secret"], 1)["secret"][0]
    story = scheduler.json(f"/api/v1/jobs/{id}")
    assert "secret secret" not in json.dumps(story)


# ---- live ------------------------------------------------------------------------------


class Stream:
    """A reader of the events."""

    def __init__(self, scheduler):
        self.socket = socket.create_connection(("127.0.0.1", scheduler.port), timeout=120)
        self.socket.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.file = self.socket.makefile("rb")

    def next(self):
        for line in self.file:
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        raise AssertionError("the stream has ended")

    def close(self):
        self.file.close()
        self.socket.close()


def commands_a_second(server, wait):
    """What Redis does meanwhile."""
    before, started = server.client.info("stats")["total_commands_processed"], time.monotonic()
    wait()
    seconds = time.monotonic() - started
    return (server.client.info("stats")["total_commands_processed"] - before) / seconds, seconds


def test_pages_are_fed_once_a_second_and_cost_no_more_when_they_are_many(scheduler, inbox, server):
    enqueue(inbox, ["triage"], 4)
    rates = []
    for _ in range(4):  # what the ruler itself asks goes up and down on a busy machine
        first = Stream(scheduler)
        one, _ = commands_a_second(server, lambda: [first.next() for _ in range(4)])
        streams = [first] + [Stream(scheduler) for _ in range(29)]
        for stream in streams:
            assert stream.next()["all"]["waiting"] == 4
        many, seconds = commands_a_second(server, lambda: [
            stream.next() for _ in range(3) for stream in streams])
        for stream in streams:
            stream.close()
        assert 1.5 < seconds, "one a second"
        rates.append((one, many, seconds))
        if many < one * 1.3 + 15 and seconds < 18:
            return
    pytest.fail(f"more than the ruler's own, and one command for all of them: {rates}")


def test_there_is_an_end_to_open_pages(scheduler):
    streams = [Stream(scheduler) for _ in range(128)]
    for stream in streams:
        stream.next()
    assert ask(scheduler, "/api/v1/events")[0] == 503
    for stream in streams:
        stream.close()

    def is_free():
        stream = Stream(scheduler)
        fine = stream.file.readline().startswith(b"HTTP/1.1 200")
        stream.close()
        return fine

    wait_until(is_free, "room again")


def test_without_redis_the_pages_say_so_and_come_back(scheduler, server, inbox):
    enqueue(inbox, ["triage"])
    server.stop()
    wait_until(lambda: scheduler.get("/api/v1/workers")[0] == 503, "the loss to be seen")
    assert scheduler.get("/api/v1/overview")[0] == 200
    server.start()
    wait_until(lambda: scheduler.get("/api/v1/workers")[0] == 200, "Redis again", 15)


# ---- the configuration -----------------------------------------------------------------


def test_a_changed_configuration_is_an_event_and_an_unchanged_one_is_none(server):
    """A file is read at the start only: the next scheduler names the parts that differ."""
    changes = lambda scheduler: [one["text"] for one in scheduler.json("/api/v1/ledger")["notes"]
                                 if one["text"].startswith("the configuration has changed")]
    first = Scheduler(server)
    first.start()
    stored = lambda: server.client.hget("warmq:recent", "g:0")
    before = wait_until(stored, "its parts to be stored")
    assert {word.split("=")[0] for word in before.split()} >= {
        "upstreams.claude", "upstreams.gpt", "models", "pools", "scheduler", "log_level"}
    assert changes(first) == []
    first.terminate()

    other = CONFIG.replace("markers: auto", "markers: auto\n    ttl: 1h").replace(
        "class: sonnet", "class: sonnet\n    price_input: 3")
    second = Scheduler(server, config=other, name="second")
    second.start()
    wait_until(lambda: changes(second), "the change")
    assert changes(second) == ["the configuration has changed: upstreams.claude, models"]
    assert "level=warning" in next(line for line in second.log.splitlines()
                                   if "configuration has changed" in line)
    wait_until(lambda: stored() != before, "the new parts to be stored")
    second.terminate()

    third = Scheduler(server, config="# the same, with a remark\n" + other, name="third")
    third.start()
    wait_until(lambda: changes(third), "the notes of its predecessor")
    assert len(changes(third)) == 1 and "configuration has changed" not in third.log
