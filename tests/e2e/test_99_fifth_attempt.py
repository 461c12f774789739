"""Attacks by a fifth one, who went through what is known to break elsewhere."""

import http.client
import json
import socket

from fleet import Fleet, anthropic_body, long_text, wait_until

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
