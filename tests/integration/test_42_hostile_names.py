"""Names of any bytes - routes, labels, refs, upstreams, prefixes, ids - do no harm in keys,
logs, pages and terminals."""

import json
import os
import subprocess

import redis

from daemons import BUILD, Scheduler, body, server  # noqa: F401
from store import Store
from test_40_scheduler_admit import admitted, check_books

# A terminal's colours and title, a carriage return, quotes of all kinds, braces that Redis
# would take for a hash tag, names of keys, bytes that are no UTF-8, a bidi override.
HOSTILE = [b"\x1b[31mred", b"\x1b]0;title\x07", b"a\r\nb: c", b'"\\\'`$(x)', b"}{x}",
           b"meta", b"..:inflight", b"\xff\xfe\x80", "\u202eabc\u2066".encode(), b"\x00nul",
           b"a|b,c d", b"x" * 300, "\U0001f980".encode(), b"%s%n%x", b"-", b" "]
FIELDS = ["route", "ref", "conversation", "traceparent", "upstream", "prefix", "reply",
          "handler", "priority", "put_prefix", "unknown"]
CALLS = [("cancel", []), ("requeue", []), ("pause", ["on"]), ("glance", []),
         ("unpark", []), ("steer", ["quiet"]),
         ("warm", []),
         ("settle_late", ["", 1000, "x"]), ("attach", [1]), ("claim", [1, 1, 0])]


def check_harmless(text, where):
    """What a terminal may be given: printable lines of UTF-8."""
    for char in text.decode():
        assert char in "\n\t" or ord(char) >= 32, (where, text)
        assert not 127 <= ord(char) < 160, (where, text)


def cli(server, *words):
    got = subprocess.run([os.path.join(BUILD, "cli", "warmq"), *words, "--redis", server.url],
                         capture_output=True, timeout=120, check=False)
    assert got.returncode >= 0, words
    check_harmless(got.stdout, words)
    check_harmless(got.stderr, words)
    if "--json" in words:
        json.loads(got.stdout)


def enqueue_all(raw):
    for name in HOSTILE:
        for field in FIELDS:
            raw.xadd("warmq:jobs", {"upstream": "claude", "body": body("short", field),
                                    field: name})
        id = raw.xadd("warmq:jobs", {name: name, "upstream": "claude", "body": "{}"})
    return id.decode()


def call_all(raw):
    for number, name in enumerate(HOSTILE):
        raw.execute_command("FCALL", "warmq_hello", 1, "warmq:meta", 1, f"{number:016x}", name,
                            "default", 1, "*", 30000, "")
        raw.execute_command("FCALL", "warmq_hold", 1, "warmq:meta", 1, "on", name)
        try:
            raw.execute_command("FCALL", "warmq_hold", 1, "warmq:meta", 1, "off", name, name)
        except redis.ResponseError:
            pass  # names with bars and control characters
        for verb, args in CALLS:
            try:
                raw.execute_command("FCALL", f"warmq_{verb}", 1, "warmq:meta", 1, name, *args)
            except redis.ResponseError as error:
                assert str(error).startswith("warmq "), error


def check_keys(raw):
    """Only what is a name by our rules is part of a key that we make."""
    for key in raw.keys():
        assert key.startswith(b"warmq:prefix:") or \
            all(chr(c).isalnum() or c in b":._-" for c in key), key


def check_pages(scheduler):
    for page in ("/metrics", "/api/v1/families", "/readyz", "/"):
        text = scheduler.get(page)[1]
        check_harmless(text.encode(), page)
        if page.startswith("/api"):
            json.loads(text)


def check_terminal(server, dead):
    for words in (["job", "ls"], ["family", "ls"], ["worker", "ls"], ["prefix", "ls"],
                  ["hold", "status"]):
        cli(server, *words)
        cli(server, *words, "--json")
    for id in dead[::7]:
        cli(server, "job", "show", id)
    for name in HOSTILE:
        for words in (["job", "show"], ["job", "cancel"], ["family", "show"],
                      ["prefix", "show"]):
            if b"\x00" not in name:
                cli(server, *words, name)


def test_names_of_any_bytes_are_harmless_in_keys_logs_pages_and_terminals(server):  # noqa: F811
    raw = redis.Redis(unix_socket_path=server.path)
    inbox = Store(server.client)
    with Scheduler(server) as scheduler:
        admitted(inbox, enqueue_all(raw))
        call_all(raw)
        for name in HOSTILE:  # a plain SET may have any name; it is nobody's prefix then
            raw.set(b"warmq:prefix:" + name, b"{}\x1b\xff")
        check_keys(raw)
        assert inbox.meta("function_errors") is None
        check_pages(scheduler)
        dead = inbox.dead()
        assert len(dead) > 50
        check_terminal(server, dead)
        check_books(inbox)
        with open(scheduler.log_path, "rb") as log:
            check_harmless(log.read(), "the log")
    raw.close()
