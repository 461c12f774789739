"""A provider's key is found nowhere but on the wire to the provider.

The provider here is the worst there is: it says the key back in whatever it answers."""

import json
import os
import re
import signal
import urllib.request

import pytest

from ports import free_port
from store import wait_until
from worker_rig import (KEY, MESSAGE, begin_stream, body, enqueue, events_of, family, plain,
                        provider, sse, start)

NEEDLE = KEY.encode()


def echo_error(status, kind="invalid_request_error", **headers):
    return plain(status, {"type": "error", "error": {
        "type": kind, "message": f"Your key {KEY} (Bearer {KEY}) is not welcome: {KEY}",
        "param": KEY}}, **headers)


def echo_stream_error(handler):
    begin_stream(handler)
    handler.wfile.write(events_of(MESSAGE)[0])
    error = {"type": "error", "error": {"type": "api_error", "message": f"no {KEY}"}}
    handler.wfile.write(f"event: error\ndata: {json.dumps(error)}\n\n".encode())


def echo_answer():
    message = dict(MESSAGE, content=[{"type": "text", "text": f"You sent {KEY}."}])
    return sse(message)


def echo_headers(handler):
    handler.send_response(500, KEY)
    handler.send_header("request-id", KEY)
    handler.send_header("content-type", KEY)
    handler.send_header("content-length", "0")
    handler.end_headers()


def escaped(text, every):
    """JSON may escape any character; some encoders do it with / and + and quotes only."""
    return "".join(f"\\u{ord(letter):04X}" if number % every == 0 else letter
                   for number, letter in enumerate(text))


def unescaped(data):
    return re.sub(rb"\\+u00([0-9A-Fa-f]{2})", lambda found: bytes.fromhex(found[1].decode()),
                  data)


def spell(status, text):
    """The key as other encoders spell it, behind a backslash that is none of it."""
    said = json.dumps(dict(MESSAGE, content=[{"type": "text", "text": "HERE"}], error=None)
                      if status == 200 else
                      {"type": "error", "error": {"type": "invalid_request_error",
                                                  "message": "no HERE"}})
    return plain(status, said.replace("HERE", "\\\\" + text).encode())


# What it answers, and whether the job ends with that.
ANSWERS = {
    "401": (echo_error(401, "authentication_error"), False),
    "400": (echo_error(400), True),
    "400 of a strange type": (echo_error(400, KEY), True),
    "402": (echo_error(402, "billing_error"), False),
    "429": (echo_error(429, "rate_limit_error", retry_after="1"), False),
    "500": (echo_error(500, "api_error"), True),
    "529": (echo_error(529, "overloaded_error"), False),
    "not JSON": (plain(400, NEEDLE * 3), True),
    "an error within a stream": (echo_stream_error, True),
    "headers": (echo_headers, True),
    "an error with the key in escapes": (spell(400, escaped(KEY, 1)), True),
    "an answer with a key that has escapes": (spell(200, escaped(KEY, 3)), True),
    "a good answer": (echo_answer(), True),
    "a good answer that is no stream": (plain(200, dict(MESSAGE, id=KEY)), True),
}


def places(store, worker, pids, pages):
    """Name and bytes of all that is written, stored or shown."""
    yield "log", worker.log().encode()
    for key in store.redis.keys("*"):
        yield f"Redis {key}", dump(store, key)
    for pid in pids:
        for name in ("environ", "cmdline", "comm", "status", "maps"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                yield f"/proc/{name}", file.read()
    for page in pages:
        with urllib.request.urlopen(page, timeout=120) as answer:
            yield page, answer.read()
    for folder, _, names in os.walk(worker.folder):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                yield name, file.read()


def dump(store, key):
    """All of it, uncompressed."""
    kind = store.redis.type(key)
    read = {"string": lambda: store.redis.get(key), "hash": lambda: store.redis.hgetall(key),
            "list": lambda: store.redis.lrange(key, 0, -1),
            "zset": lambda: store.redis.zrange(key, 0, -1),
            "set": lambda: store.redis.smembers(key),
            "stream": lambda: store.redis.xrange(key)}[kind]
    return repr(read()).encode()


@pytest.mark.parametrize("name", ANSWERS)
def test_the_key_is_nowhere_even_if_the_provider_says_it_back_as(store, provider, start, name):
    answer, ends = ANSWERS[name]
    provider.default = answer
    port = free_port()
    worker = start(worker=f"  listen: 127.0.0.1:{port}\n")
    jobs = family()
    id, = enqueue(store, jobs, attempts="1")
    store.open(jobs)
    wait_until(lambda: provider.requests, "the request")
    assert provider.requests[0].headers["x-api-key"] == KEY

    def is_over():
        return store.result(id) is not None if ends else store.past(id)

    wait_until(is_over, "the end of the run")
    pages = [f"http://127.0.0.1:{port}/{page}" for page in ("metrics", "healthz")]
    found = [place for place, data in places(store, worker, [worker.pid], pages)
             if NEEDLE in unescaped(data)]
    assert found == []


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def test_neither_a_handler_nor_its_guard_has_the_key(store, start, tmp_path):
    handler = tmp_path / "handler.sh"
    handler.write_text("#!/bin/sh\ncat >/dev/null\nsleep 60\n")
    handler.chmod(0o755)
    worker = start(executor="handler", worker=f"  handler: [{handler}]\n")
    jobs = family()
    enqueue(store, jobs)
    store.open(jobs)
    wait_until(lambda: len(children_of(worker.pid)) == 2, "guard and handler")
    pids = [worker.pid, *children_of(worker.pid)]
    assert [name for name, data in places(store, worker, pids, []) if NEEDLE in data] == []
    for pid in pids[1:]:
        assert_not_in_memory(pid)
    worker.signal(signal.SIGKILL)
    worker.wait()


def assert_not_in_memory(pid):
    """Reads what a debugger would see, as far as we may."""
    try:
        memory = open(f"/proc/{pid}/mem", "rb", 0)
    except PermissionError:
        return
    with memory, open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if " r" not in line or last - first > 64 << 20 or "[v" in line:
                continue
            try:
                memory.seek(first)
                assert NEEDLE not in memory.read(last - first), line
            except (OSError, ValueError, OverflowError):
                continue  # a hole


def test_a_worker_that_crashes_leaves_no_core(store, provider, start, tmp_path):
    worker = start()
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    wait_until(lambda: store.result(id) is not None, "the result")
    with open(f"/proc/{worker.pid}/smaps", encoding="ascii") as file:
        flags = [line for line in file if line.startswith("VmFlags") and " dd" in line]
    assert any(" dc" in line for line in flags), "the key's page: no dump, no copy in a fork"
    os.kill(worker.pid, signal.SIGABRT)
    _, status = os.waitpid(worker.pid, 0)
    worker.process.returncode = -signal.SIGABRT
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)


GATEWAY = "gw-secret-of-the-gateway"
GATEWAY_KEY = ("key_env: WARMQ_TEST_KEY\n    headers_env: {cf-aig-authorization: WARMQ_TEST_GATEWAY, "
               "Ocp-Apim-Subscription-Key: WARMQ_TEST_SUBSCRIPTION}")


def gateway_env(**more):
    return dict(os.environ, WARMQ_TEST_KEY=KEY, WARMQ_TEST_GATEWAY=f"Bearer {GATEWAY}",
                WARMQ_TEST_SUBSCRIPTION="su/bscri+ption", **more)


@pytest.mark.parametrize("status", [200, 400])
def test_a_gateways_own_secret_is_sent_and_is_nowhere_else(store, provider, start, status):
    said = f"{GATEWAY} su\\/bscri+ption {KEY}"
    provider.default = plain(status, json.dumps(
        dict(MESSAGE, id="HERE") if status == 200 else
        {"type": "error", "error": {"type": "invalid_request_error", "message": "HERE"}})
        .replace("HERE", said).encode())
    worker = start(key=GATEWAY_KEY, env=gateway_env())
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    wait_until(lambda: store.result(id) is not None, "the result")
    sent = provider.requests[0].headers
    assert (sent["x-api-key"], sent["cf-aig-authorization"], sent["Ocp-Apim-Subscription-Key"]) \
        == (KEY, f"Bearer {GATEWAY}", "su/bscri+ption")
    needles = (NEEDLE, GATEWAY.encode(), b"su/bscri", b"su\\/bscri")
    found = [place for place, data in places(store, worker, [worker.pid], [])
             if any(needle in data for needle in needles)]
    assert found == []


@pytest.mark.parametrize("value", ["", "two\nlines", " blank"])
def test_without_a_gateways_secret_no_worker_starts(store, provider, start, value):
    env = gateway_env()
    env["WARMQ_TEST_GATEWAY"] = value
    worker = start(key=GATEWAY_KEY, env=env)
    assert worker.wait() == 3
    assert "the header cf-aig-authorization" in worker.log()
    assert "WARMQ_TEST_GATEWAY" in worker.log() and "lines" not in worker.log()
