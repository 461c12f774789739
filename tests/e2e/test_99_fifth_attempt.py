"""Attacks by a fifth one, who went through what is known to break elsewhere."""

import http.client
import json
import signal
import socket

from fleet import BUILD, Fleet, anthropic_body, long_text, wait_until

from ports import free_port

PROMPT = long_text(2000)

SILENT = [b"", b"GET /metrics HTTP/1.1\r\nHo", b"POST /api/v1/hold HTTP/1.1\r\nHost: localhost"
          b"\r\nContent-Length: 9\r\n\r\n", b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"]


def listening(tmp_path):
    """A fleet whose scheduler and worker serve pages, and their two ports."""
    ports = free_port(), free_port()
    fleet = Fleet(tmp_path, settings=f'worker:\n  listen: "127.0.0.1:{ports[1]}"\n')
    write = fleet.write_config

    def write_config(dialect="anthropic"):
        write(dialect)
        text = fleet.config.read_text()
        fleet.config.write_text(text.replace('listen: "off"', f"listen: 127.0.0.1:{ports[0]}", 1))

    fleet.write_config = write_config
    return fleet, ports


def get(port, path, seconds):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


# ---- ports -------------------------------------------------------------------------------

def test_health_is_answered_whatever_sits_idle_on_the_port(tmp_path):
    """1,000 silent connections kept /healthz and /metrics waiting for 50 s."""
    fleet, ports = listening(tmp_path)
    with fleet:
        fleet.start_all()
        for port in ports:
            wait_until(lambda: get(port, "/healthz", 5) == 200, "health")
            seats = []
            try:
                for number in range(700):
                    seats.append(socket.create_connection(("127.0.0.1", port), 10))
                    seats[-1].sendall(SILENT[number % 4])
                for path in ("/healthz", "/metrics"):
                    assert get(port, path, 10) == 200
            finally:
                for seat in seats:
                    seat.close()


# ---- the configuration -------------------------------------------------------------------

def findings(fleet, check, *levels):
    said = json.loads(fleet.warmq("doctor", "--json", check=False))["findings"]
    return [one["text"] for one in said
            if one["check"] == check and one["level"] in (levels or ("warning", "bad"))]


def test_jobs_of_an_upstream_that_has_left_the_configuration_are_named(tmp_path):
    """They waited for ever, and all was said to be fine: they were about to start."""
    with Fleet(tmp_path, aliases=("old",), knobs={"job_ms": 5}) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue([anthropic_body(f"{n}", PROMPT) for n in range(7)], upstream="old")
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "cursor") ==
                   f"{ids[-1]} 0".encode(), "admission")
        fleet.end("scheduler")
        fleet.urls = {}
        fleet.write_config()
        fleet.start_all()
        text = ("7 jobs wait for the upstream old, which is not in the configuration of the "
                "scheduler that rules: nobody will ever send them")
        wait_until(lambda: findings(fleet, "upstreams") == [text], "finding")
        assert "came" in "".join(findings(fleet, "oldest", "fine"))
        family = wait_until(lambda: json.loads(fleet.redis("GET", "warmq:status"))["families"],
                            "status")[0]
        assert family["blocked_kind"] == "no worker"
        assert "old is not in the configuration any more" in family["why"]
        assert family["advice"].startswith("add old to the configuration")
        wait_until(lambda: "no worker reaches old" in fleet.warmq("family", "ls"), "the list")
        fleet.end("scheduler")
        fleet.end("worker-1")
        fleet.urls = {"old": fleet.provider}
        fleet.write_config()
        fleet.start_all()
        assert set(fleet.collect(7)) == set(ids)
        assert findings(fleet, "upstreams") == []


def test_an_upstream_that_no_worker_reaches_is_named(tmp_path):
    with Fleet(tmp_path, aliases=("old",), knobs={"job_ms": 5}) as fleet:
        fleet.urls = {"old": f"http://127.0.0.1:{free_port()}"}
        fleet.write_config()
        fleet.start_all()
        fleet.enqueue([anthropic_body(f"{n}") for n in range(5)], upstream="old")
        text = "5 jobs wait for the upstream old, which no worker of their pool reaches"
        wait_until(lambda: findings(fleet, "upstreams") == [text], "finding")


# ---- clocks ------------------------------------------------------------------------------

class WrongClocks(Fleet):
    """Each program has a wall clock of its own, which can be set at any time."""

    def start(self, name, *words):
        if name != "provider":
            clock = self.directory / f"{name}.clock"
            if not clock.exists():
                self.step(name, 0)
            words = ("env", f"LD_PRELOAD={BUILD}/tests/lib/other_clock.so",
                     f"OTHER_CLOCK={clock}", *words)
        return super().start(name, *words)

    def end(self, name, number=signal.SIGTERM, seconds=15):
        """A Redis whose clock went back takes hours to stop in order."""
        super().end(name, signal.SIGKILL if name == "redis" else number, seconds)

    def step(self, name, seconds):
        (self.directory / f"{name}.clock").write_text(f"{seconds:<12}")


def test_clocks_that_differ_by_hours_and_step_cost_nothing(tmp_path):
    """Of all programs, also while jobs are held for a prefix that is being written."""
    knobs = {"latency_ms": 400, "job_ms": 50, "prefill_tokens_per_second": 0}
    with WrongClocks(tmp_path, knobs=knobs) as fleet:
        fleet.step("worker-1", 5 * 3600)
        fleet.step("worker-2", -7 * 3600)
        fleet.step("scheduler", 2 * 3600)
        fleet.kill("redis")
        fleet.step("redis", 4 * 3600)
        fleet.start_redis()
        fleet.start_all(workers=2, slots=20)
        steps = [("scheduler", 12 * 3600), ("scheduler", -10 * 3600), ("worker-1", -90000),
                 ("redis", 0)]
        for number, step in enumerate(steps):
            before = fleet.stats()
            fleet.enqueue([anthropic_body(f"{n}", long_text(2000, f"part {number} "))
                           for n in range(20)])
            wait_until(lambda: fleet.stats()["concurrency"] > 0, "the one that writes")
            fleet.step(*step)
            results = fleet.collect(20, 30).values()
            assert {result["state"] for result in results} == {"done"}, step
            assert {result["delivery"] for result in results} == {1}, step
            assert {result["attempts"] for result in results} == {0}, step
            assert all(300 < result["total_ms"] < 20000 for result in results), step
            assert fleet.stats()["writes"] - before["writes"] == 1, step


# ---- Redis -------------------------------------------------------------------------------

def test_a_redis_that_takes_no_large_value_is_named_and_gets_the_result_later(tmp_path):
    """It hangs up on whoever says one, so the worker delivers nothing else; nobody said so."""
    with Fleet(tmp_path, knobs={"job_ms": 5, "output_tokens": 300000}) as fleet:
        fleet.start_all()
        fleet.redis("CONFIG", "SET", "proto-max-bulk-len", "1mb")
        ids = fleet.enqueue([anthropic_body("large", max_tokens=300000)])
        wait_until(lambda: "no value as large as a result" in fleet.log("worker-1"), "the log")
        assert "Redis takes no value above 1024 KiB (proto-max-bulk-len)" in findings(
            fleet, "limits")[0]
        fleet.redis("CONFIG", "SET", "proto-max-bulk-len", "16mb")
        assert len(json.dumps(fleet.collect(1)[ids[0]]["body"])) > 1 << 20
        assert findings(fleet, "limits") == []
        assert fleet.stats()["requests"] == 1, "it is paid for once"


def test_a_function_of_ours_that_another_library_has_is_named(tmp_path):
    """The rights of the user were blamed."""
    with Fleet(tmp_path) as fleet:
        fleet.redis("FUNCTION", "LOAD", "#!lua name=theirs\nredis.register_function("
                    "'warmq_claim', function() return 1 end)")
        fleet.start_scheduler()
        wait_until(lambda: fleet.processes["scheduler"].poll() is not None, "its end")
        assert "FUNCTION DELETE removes it" in fleet.log("scheduler")
        fleet.redis("FUNCTION", "DELETE", "theirs")
        fleet.start_scheduler()
        fleet.await_ruler()
