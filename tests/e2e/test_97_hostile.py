"""Attacks that were thought up from the documents alone; each one broke something once."""

import signal
import socket

from fleet import Fleet, anthropic_body, long_text, wait_until


class BlackHole:
    """A port that takes no connection and refuses none."""

    def __init__(self):
        self.sockets = [socket.socket()]
        self.sockets[0].bind(("127.0.0.1", 0))
        self.sockets[0].listen(0)
        self.port = self.sockets[0].getsockname()[1]
        for _ in range(4):  # more than its backlog holds
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", self.port))
            self.sockets.append(client)

    def close(self):
        for each in self.sockets:
            each.close()


def test_a_provider_that_is_away_leaves_the_slots_to_the_others(tmp_path):
    hole = BlackHole()
    away = f'  away:\n    url: "http://127.0.0.1:{hole.port}"\n    auth: none\n'
    with Fleet(tmp_path, upstream_options=away, knobs={"job_ms": 50},
               settings="worker:\n  connect_timeout: 300ms\n") as fleet:
        fleet.start_all(slots=4)
        for number in range(200):
            fleet.redis("XADD", "warmq:jobs", "*", "upstream", "away",
                        "body", anthropic_body(f"{number}"))
        wait_until(lambda: fleet.redis("HGET", "warmq:meta", "unsent"), "failure", 10)
        fleet.burst([anthropic_body(f"main {number}") for number in range(20)], seconds=10)
    hole.close()


def test_an_inbox_that_was_deleted_behind_its_cursor_is_read(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 50}) as fleet:
        fleet.start_all()
        fleet.redis("XADD", "warmq:jobs", "99999999999999-1", "upstream", "main",
                    "reply", "results", "body", anthropic_body("of the future"))
        fleet.collect(1)
        fleet.redis("DEL", "warmq:jobs")
        id, = fleet.enqueue([anthropic_body("of the present")])
        fleet.end("scheduler")  # the next one audits at once, not within a minute
        fleet.start_scheduler()
        assert id in fleet.collect(1)
        assert "the audit corrected cursor" in fleet.log("scheduler")


def test_jobs_that_wait_follow_their_route_to_another_pool(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 50}) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.enqueue([anthropic_body(f"early {number}") for number in range(3)])
        wait_until(lambda: fleet.redis("HLEN", "warmq:families"), "family", 10)
        fleet.end("scheduler")
        fleet.config.write_text(fleet.config.read_text() + """
pools:
  - name: special
    match: ["*", "*"]
""")
        fleet.start_scheduler()
        fleet.start_worker("special", 10, "--pool", "special")
        fleet.enqueue([anthropic_body(f"late {number}") for number in range(3)])
        fleet.collect(6)


def test_one_prefix_in_two_pools_waits_in_both(tmp_path):
    pools = """
pools:
  - name: left
    match: [left, "*"]
  - name: right
    match: [right, "*"]
"""
    with Fleet(tmp_path, knobs={"job_ms": 50}) as fleet:
        fleet.config.write_text(fleet.config.read_text() + pools)
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.start_worker("right", 10, "--pool", "right")
        body = anthropic_body("the same", system=long_text(3000))
        fleet.enqueue([body] * 3, route="left", reply="left")
        fleet.burst([body] * 3, route="right")
        fleet.start_worker("left", 10, "--pool", "left")
        fleet.collect(3, reply="left")


def test_a_closed_terminal_ends_everybody_in_order(tmp_path):
    with Fleet(tmp_path) as fleet:
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # we may run under nohup
        fleet.start_all()
        signal.signal(signal.SIGHUP, before)
        for name in ("worker-1", "scheduler"):
            process = fleet.processes.pop(name)
            process.send_signal(signal.SIGHUP)
            assert process.wait(120) == 0, name
        assert fleet.redis("ZCARD", "warmq:workers") == 0


def test_a_job_for_a_handler_is_not_sent_to_a_provider(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.start_all()
        fleet.enqueue([anthropic_body("mine")], handler="summarise")
        result, = fleet.collect(1).values()
        assert (result["state"], result["reason"]) == ("dead", "unsupported")
        assert fleet.stats()["requests"] == 0


def test_a_named_prefix_that_is_not_valid_is_not_called_missing(tmp_path):
    with Fleet(tmp_path) as fleet:
        fleet.start_all()
        fleet.redis("SET", "warmq:prefix:bad", "no JSON")
        fleet.redis("XADD", "warmq:jobs", "1-1", "upstream", "main", "reply", "results",
                    "prefix", "bad", "body", anthropic_body("old enough not to wait"))
        result, = fleet.collect(1).values()
        assert result["reason"] == "prefix_missing"
        assert result["text"].startswith("the named prefix is not valid: the prefix is not JSON")
