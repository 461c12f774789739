"""One scheduler rules: take-overs, deaths, freezes, a lost Redis; and whole runs."""

import json
import os
import re
import socket
import subprocess
import threading
import types

import pytest

from daemons import CONFIG, Scheduler, Server, body, inbox, scheduler, server  # noqa: F401
from proxy import Proxy
from store import Store, Worker, library, wait_until
from test_40_scheduler_admit import admitted, check_books, elements, only, tiny

PREFIX_TOKENS = 2010


class Runner(threading.Thread):
    """A tiny worker: claims, pretends to call a provider with a cache, settles."""

    def __init__(self, server, pool="default", slots=16, budgets="*"):
        super().__init__(daemon=True)
        self.store = Store(server.client.__class__(unix_socket_path=server.path,
                                                   decode_responses=True))
        self.pool, self.slots, self.budgets = pool, slots, budgets
        self.done, self.roles, self.warm = [], [], set()
        self.stop = threading.Event()
        self.failure = None

    def usage(self, job):
        """The first marked request of a lane writes, the later ones read."""
        marked = job.marks > 0
        reads = marked and job.lane in self.warm
        if marked:
            self.warm.add(job.lane)
        now = self.store.now()
        read, written = (PREFIX_TOKENS, 0) if reads else (0, PREFIX_TOKENS if marked else 0)
        return f"{now} {now} {read} {written} {10 if marked else PREFIX_TOKENS} -"

    def turn(self, worker, free):
        claim = worker.claim(*free)
        for job in claim.jobs:
            self.roles.append(job.role)
            usage = self.usage(job)
            if job.begin:
                worker.begin(job, usage)
            worker.settle([job], usage=usage[:-1] + "5")
            self.done.append(job.id)
        if not claim.jobs:
            self.stop.wait(0.005)

    def run(self):
        try:
            worker = Worker(self.store, pool=self.pool, slots=self.slots,
                            budgets=self.budgets)
            while not self.stop.is_set():
                self.turn(worker, range(self.slots))
            worker.bye()
        except Exception as error:  # shown by the test
            self.failure = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join(120)
        assert self.failure is None, self.failure

    def wait_done(self, count, seconds=15):
        def enough():
            assert self.failure is None, self.failure
            return len(self.done) >= count

        wait_until(enough, f"{count} jobs to be done, not {len(self.done)}", seconds)


def enqueue(inbox, count, system="x" * 8000, **fields):
    pipe = inbox.redis.pipeline(transaction=False)
    for n in range(count):
        pipe.xadd(inbox.key("jobs"), {"upstream": "claude", "body": body(system, f"q{n}"),
                                      **fields})
    return pipe.execute()


# ---- whole runs ------------------------------------------------------------------------


def test_one_job_writes_one_checks_and_the_rest_follow(scheduler, server, inbox):
    with Runner(server) as runner:
        wait_until(lambda: scheduler.json("/api/v1/families")["pools"] != [], "the worker")
        ids = enqueue(inbox, 60)
        runner.wait_done(60)
    assert sorted(runner.done) == sorted(ids)
    assert runner.roles.count("l") == 1
    assert runner.roles.count("c") == 1
    family = scheduler.json("/api/v1/families")["families"][0]
    wait_until(lambda: scheduler.json("/api/v1/families")["counts"]["done"] == 60, "usage")
    family = scheduler.json("/api/v1/families")["families"][0]
    assert family["state"] == "warm"
    assert family["tokens"] == PREFIX_TOKENS
    assert family["written"] == PREFIX_TOKENS
    check_books(inbox)


def test_families_of_one_request_each_are_not_held(scheduler, server, inbox):
    with Runner(server) as runner:
        ids = [inbox.add(upstream="claude", body=body(f"{n}" * 8000)) for n in range(20)]
        runner.wait_done(20)
    assert sorted(runner.done) == sorted(ids)
    assert set(runner.roles) == {"p"}, "nothing to wait for: each is alone"
    check_books(inbox)


def test_a_parked_budget_and_hold_off_are_heard(scheduler, server, inbox):
    inbox.call("hold", "off", "a test")
    scheduler.wait_for("holding was switched off")
    assert scheduler.json("/api/v1/families")["hold"] is False
    with Runner(server) as runner:
        enqueue(inbox, 10)
        runner.wait_done(10)
    inbox.call("hold", "on", "a test")
    scheduler.wait_for("holding was switched on")


# ---- deaths and take-overs -------------------------------------------------------------


def test_kill_9_in_the_middle_loses_and_doubles_nothing(server, inbox):
    with Scheduler(server) as scheduler, Runner(server) as runner:
        ids = []
        for _ in range(6):
            for system in "abc":
                ids += enqueue(inbox, 40, system * 8000)
            scheduler.kill()
            ids += enqueue(inbox, 10)
            scheduler.start(wait=False)
        runner.wait_done(len(ids), 30)
        assert sorted(runner.done) == sorted(ids)
        wait_until(lambda: inbox.redis.hget(inbox.key("meta"), "cursor") == f"{ids[-1]} 0",
                   "the cursor")
    check_books(inbox)


def test_thousands_of_families_are_taken_over(server, inbox):
    """More lanes are granted at once than answers or commands ever wait in a queue."""
    with Scheduler(server) as scheduler:
        for start in range(0, 6000, 1000):
            pipe = inbox.redis.pipeline(transaction=False)
            for n in range(start, start + 1000):
                pipe.xadd(inbox.key("jobs"), {"upstream": "claude",
                                              "body": body(f"{n} " + "x" * 1200)})
            ids = pipe.execute()
        wait_until(lambda: inbox.meta("cursor") == f"{ids[-1]} 0", "admission", 60)
        scheduler.kill()
        scheduler.start(wait=False)
        scheduler.wait_for("memory is complete: 6000 families", seconds=60)
        with Runner(server) as runner:
            runner.wait_done(300, 60)
        assert scheduler.process.poll() is None, scheduler.log


def test_a_pack_survives_kill_9_between_its_calls_1_18(server, inbox):
    jobs = json.dumps([{"body": tiny(n)} for n in range(3000)])
    between = os.path.join(server.folder, "proxy.sock")
    behind = types.SimpleNamespace(url=f"unix://{between}", folder=server.folder,
                                   schedulers=server.schedulers)
    with Proxy(between, server.path) as proxy, Scheduler(behind) as scheduler:
        proxy.next("warmq_admit", "after", spared=1, then=scheduler.process.kill)
        id = inbox.add(json=jobs, upstream="claude")
        scheduler.process.wait(120)
        assert inbox.meta("cursor") not in ("0-0 0", f"{id} 0"), "it was killed in the middle"
        scheduler.start(wait=False)
        admitted(inbox, id)
        waiting = only(elements(inbox))
        assert len(waiting) == 3000
        assert len(set(waiting)) == 3000
        check_books(inbox)


def test_the_one_that_stands_by_takes_over(server, inbox):
    with Scheduler(server, name="one") as one:
        two = Scheduler(server, name="two")
        two.start(wait=False)
        two.wait_for("standing by")
        assert two.get("/readyz")[0] == 200
        owner = inbox.meta("owner")
        assert one.terminate() == 0
        assert inbox.meta("owner") != owner or int(inbox.meta("rule_until")) <= inbox.now(), \
            "it has left the place to others"
        two.wait_for("memory is complete")
        id = inbox.add(upstream="claude", body=body())
        admitted(inbox, id)
        three = Scheduler(server, name="three")
        three.start(wait=False)
        three.wait_for("standing by")
        two.kill()
        three.wait_for("memory is complete", seconds=10)
        id = inbox.add(upstream="claude", body=body())
        admitted(inbox, id)
        assert len(only(elements(inbox))) == 2
        assert three.terminate() == 0
        one.start()
    check_books(inbox)


def test_a_frozen_scheduler_wakes_up_deposed_9_38(server, inbox):
    with Scheduler(server, name="one") as one:
        one.freeze(True)
        two = Scheduler(server, name="two")
        two.start(wait=False)
        two.wait_for("memory is complete", seconds=12)
        ids = enqueue(inbox, 20)
        admitted(inbox, ids[-1])
        one.freeze(False)
        one.wait_for("another scheduler")
        ids += enqueue(inbox, 20)
        admitted(inbox, ids[-1])
        assert [e.rstrip("~") for e in only(elements(inbox))] == ids
        assert two.terminate() == 0
    check_books(inbox)


def test_a_restarted_redis_is_read_anew():
    with Server("--appendonly", "yes", "--appendfsync", "always") as server:
        inbox = Store(server.client)
        with Scheduler(server) as scheduler:
            ids = enqueue(inbox, 30)
            admitted(inbox, ids[-1])
            server.stop()
            scheduler.wait_for("no connection to Redis")
            scheduler.wait_for("Connection refused")
            server.start()
            inbox = Store(server.client)
            scheduler.wait_for("memory is complete", count=2)
            assert scheduler.json("/api/v1/families")["counts"]["families"] == 1
            ids += enqueue(inbox, 30)
            admitted(inbox, ids[-1])
            assert [e.rstrip("~") for e in only(elements(inbox))] == ids
            check_books(inbox)


def hang_up(path, times):
    """Stands where Redis stood, and ends so many connections without a word."""
    with socket.socket(socket.AF_UNIX) as there:
        there.settimeout(120)
        there.bind(path + ".new")
        there.listen()
        os.rename(path + ".new", path)  # there is always something there
        for _ in range(times):
            with there.accept()[0] as asks:
                asks.settimeout(120)
                assert asks.recv(1)


def test_an_outage_is_told_once_for_each_reason(server):
    with Scheduler(server) as scheduler:
        server.stop()
        hang_up(server.path, 6)
        server.start()
        scheduler.wait_for("memory is complete", count=2)
        told = re.findall(r'event="no connection to Redis.*? reason=("[^"]*"|\S+)', scheduler.log)
        assert told and all(one != following for one, following in zip(told, told[1:])), told


def test_a_cursor_that_was_turned_back_is_a_rollback_10_r2(scheduler, inbox):
    text = json.dumps(tiny(1))
    ids = [inbox.add(upstream="claude", body=text) for _ in range(3)]
    admitted(inbox, ids[-1])
    inbox.redis.hset(inbox.key("meta"), "cursor", f"{ids[1]} 0")
    ids.append(inbox.add(upstream="claude", body=text))
    scheduler.wait_for("the stored cursor is not ours")
    admitted(inbox, ids[-1])
    assert only(elements(inbox)) == ids[:3] + ids[2:], "what Redis forgot is admitted again"


# ---- the library and the server --------------------------------------------------------


def test_functions_that_vanish_are_loaded_again_27(scheduler, inbox):
    inbox.redis.execute_command("FUNCTION", "FLUSH")
    id = inbox.add(upstream="claude", body=body())
    scheduler.wait_for("memory is complete", count=2)
    admitted(inbox, id)


def test_an_older_library_is_replaced_and_a_newer_one_is_kept_27(server):
    code = """#!lua name=warmq
redis.register_function{function_name='warmq_version', flags={'no-writes'},
callback=function() return {'OK', 1, '%s'} end}"""
    for version, stays in [("0.0.9-aaaa", False), ("99.0.0-aaaa", True)]:
        server.client.execute_command("FUNCTION", "LOAD", "REPLACE", code % version)
        scheduler = Scheduler(server)
        scheduler.start(wait=False)
        if stays:
            scheduler.wait_for("the functions are missing")
        else:
            scheduler.wait_for("memory is complete")
        answer = server.client.execute_command("FCALL", "warmq_version", 1, "warmq:meta", "1")
        assert (answer[2] == version) == stays
        scheduler.kill()


def test_a_redis_that_evicts_is_refused_with_advice_11(server):
    server.client.config_set("maxmemory-policy", "allkeys-lru")
    scheduler = Scheduler(server)
    scheduler.start(wait=False)
    assert scheduler.process.wait(timeout=120) == 1
    assert "CONFIG SET maxmemory-policy noeviction" in scheduler.log


def test_memory_pressure_is_told_to_producers_11(server, inbox):
    with Scheduler(server) as scheduler:
        inbox.redis.setrange("filler", 30000000, "x")
        used = server.client.info()["used_memory"]
        server.client.config_set("maxmemory", int(used * 1.05))
        scheduler.wait_for("producers are asked to wait", seconds=15)
        wait_until(lambda: inbox.redis.get(inbox.key("pressure")), "the key", 15)
        assert "90 %" in scheduler.get("/readyz")[1]


def test_a_policy_that_is_changed_under_a_scheduler_is_told_11(server):
    with Scheduler(server) as scheduler:
        server.client.config_set("maxmemory-policy", "volatile-lru")
        scheduler.wait_for("throws jobs away when it is full (maxmemory-policy volatile-lru)")
        assert "throws jobs away" in scheduler.get("/readyz")[1]
        assert "warmq_redis_evicts 1" in scheduler.get("/metrics")[1]
        server.client.config_set("maxmemory-policy", "noeviction")
        scheduler.wait_for("throws nothing away any more")
        assert "throws jobs away" not in scheduler.get("/readyz")[1]
        assert scheduler.log.count("throws jobs away") == 1, "once for each change"


# ---- an entry that kills ---------------------------------------------------------------


def begin_rule(inbox):
    """An empty namespace with a cursor, ruled by nobody."""
    inbox.redis.execute_command("FUNCTION", "LOAD", "REPLACE", library())
    inbox.rule(lease_ms=1)


def test_entries_go_one_by_one_after_deaths_at_one_cursor_25(server, inbox):
    begin_rule(inbox)
    ids = enqueue(inbox, 5)
    inbox.redis.hset(inbox.key("meta"), "admit_try", "0-0 0 2 -")
    with Scheduler(server) as scheduler:
        admitted(inbox, ids[-1])
        assert "entries go one by one" in scheduler.log
        assert len(only(elements(inbox))) == 5


def test_the_entry_that_killed_its_reader_is_dead_unread_25(server, inbox):
    begin_rule(inbox)
    ids = enqueue(inbox, 3)
    inbox.redis.hset(inbox.key("meta"), "admit_try", "0-0 0 3 parsing")
    with Scheduler(server):
        admitted(inbox, ids[-1])
        assert inbox.dead() == ids[:1]
        assert "parser" in inbox.past(ids[0])["why"]
        assert [e.rstrip("~") for e in only(elements(inbox))] == ids[1:]
        check_books(inbox)


# ---- the command line ------------------------------------------------------------------


def run(server, *arguments):
    program = Scheduler(server).program
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)


def test_the_command_line_explains_itself(server):
    help = run(server, "--help")
    assert help.returncode == 0 and "--redis URL" in help.stdout
    assert run(server, "--version").stdout.startswith("warmq-scheduler ")
    wrong = run(server, "--confg", "x")
    assert wrong.returncode == 2 and "--config" in wrong.stderr
    missing = run(server, "--config", "/nowhere/warmq.yaml")
    assert missing.returncode == 2 and "/nowhere/warmq.yaml" in missing.stderr
    assert run(server, "--redis", "http://x").returncode != 0
    long = run(server, "--namespace", "n" * 65)
    assert long.returncode == 2 and "64" in long.stderr


def test_a_taken_port_is_told_with_advice(server, scheduler):
    config = CONFIG.replace("127.0.0.1:0", f"127.0.0.1:{scheduler.port}")
    second = Scheduler(server, config=config, name="second")
    second.start(wait=False)
    assert second.process.wait(timeout=120) == 1
    assert "--listen" in second.log


def budget_of(inbox):
    keys = "limited", "r.limit", "i.limit", "learned", "parked_until"
    return dict(zip(keys, inbox.redis.hmget(inbox.key("budget:claude:sonnet"), keys)))


def test_a_limit_that_is_not_configured_any_more_is_none_and_a_learned_one_stays(server, inbox):
    """A ruler took what it found in Redis for learned: 6 a minute for ever."""
    limits = "markers: auto\n    class_limits:\n      sonnet: {rpm: 6}"
    with Scheduler(server, config=CONFIG.replace("markers: auto", limits)) as first:
        admitted(inbox, inbox.add(upstream="claude", body=body("short")))
        wait_until(lambda: budget_of(inbox)["r.limit"] == "6", "the limit to be told")
        worker = Worker(inbox, pool="default")
        job, = worker.claim(0).jobs
        worker.begin(job, f"{inbox.now()} {inbox.now()} 0 0 10 - i=45000")
        wait_until(lambda: budget_of(inbox)["i.limit"] == "45000", "the other one to be learned")
        assert budget_of(inbox)["learned"] == "2"
        first.terminate()
    with Scheduler(server):
        wait_until(lambda: budget_of(inbox)["r.limit"] == "0", "the limit to be gone")
        assert budget_of(inbox) == {"limited": "1", "r.limit": "0", "i.limit": "45000",
                                    "learned": "2", "parked_until": None}
        worker.settle([job], usage=f"{inbox.now()} {inbox.now()} 0 0 10 5")


@pytest.mark.parametrize("auth, other", [("bearer", "key_env: B"),
                                         ("none", "headers_env: {x-gateway: B}")])
def test_what_an_account_was_told_at_another_address_is_forgotten(server, inbox, auth, other):
    """A new key was parked for half an hour, since the old one had reached its spend cap."""
    with Scheduler(server) as first:
        ids = [inbox.add(upstream="claude", body=body("short")) for _ in range(2)]
        admitted(inbox, ids[-1])
        worker = Worker(inbox, pool="default")
        job, = worker.claim(0).jobs
        worker.begin(job, f"{inbox.now()} {inbox.now()} 0 0 10 - i=45000")
        wait_until(lambda: budget_of(inbox)["i.limit"] == "45000", "the limit to be learned")
        first.terminate()
    inbox.redis.hset(inbox.key("budget:claude:sonnet"), "parked_until", inbox.now() + 1800000)
    assert worker.claim(1).jobs == []
    config = CONFIG.replace("markers: auto", f"markers: auto\n    {other}", 1)
    with Scheduler(server, config=config.replace("auth: none", f"auth: {auth}", 1)):
        wait_until(lambda: budget_of(inbox)["parked_until"] == "0", "the account to be free")
        assert budget_of(inbox) == {"limited": "0", "r.limit": "0", "i.limit": "0",
                                    "learned": "0", "parked_until": "0"}
        assert [job.id for job in worker.claim(1).jobs] == ids[1:]
