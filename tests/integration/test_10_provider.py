"""The simulated provider as a program: its command line, its knobs, and its HTTP."""

import http.client
import json
import os
import subprocess

import pytest

from provider import (FAST, PREFIX, PROGRAM, TIMEOUT_S, Provider, digest, message_body,
                      message_text, parse_events)
from provider_rig import provider
from waiting import wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# --- the program ---------------------------------------------------------------------


def run(*options):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)


def test_help_names_every_knob_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    for knob in json.loads(run("--print-knobs").stdout):
        assert "--" + knob.replace("_", "-") in done.stdout
    assert "Exit codes" in done.stdout


def test_manual_lists_every_knob_with_its_default():
    with open(os.path.join(ROOT, "docs", "PROVIDER.md"), encoding="utf-8") as file:
        manual = file.read()
    for knob, value in json.loads(run("--print-knobs").stdout).items():
        default = {True: "true", False: "false"}.get(value, value) \
            if isinstance(value, bool) else value
        assert f"| `{knob}` | {default} |" in manual, knob


@pytest.mark.parametrize("options, words", [
    (["--nope"], "--nope"),
    (["--job-ms", "soon"], "job_ms must be a whole number"),
    (["--usage-shape", "0"], "usage_shape must be a whole number from 1 to 3"),
    (["--fault-status", "399"], "fault_status must be a whole number from 400 to 599"),
    (["--answer", "song"], "answer must be one of"),
    (["--fault-hang-permille", "600", "--fault-cut-permille", "600"], "add up to 1200"),
    (["extra"], "nothing to name"),
    (["--config", "/nonexistent.json"], "/nonexistent.json"),
])
def test_wrong_command_line_ends_with_2_and_a_sentence(options, words):
    done = run(*options)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("config, words", [
    ("{", "line 1"),
    ('{"job_mss": 1}', "did you mean job_ms"),
    ('{"models": [{"name": "x", "class": "y"}]}', 'In models, entry 1'),
    ('{"keys": [{"key": ""}]}', "In keys, entry 1"),
    ('{"classes": [{"name": "a", "rpmm": 1}]}', "not known"),
])
def test_wrong_config_ends_with_2_and_says_where(tmp_path, config, words):
    path = tmp_path / "provider.json"
    path.write_text(config)
    done = run("--config", str(path))
    assert done.returncode == 2
    assert words in done.stderr


def test_port_file_holds_the_port_while_it_runs(tmp_path):
    path = tmp_path / "port"
    with Provider("--port-file", str(path)) as running:
        wait_until(path.exists, "the port file")
        assert int(path.read_text()) == running.port
    assert not path.exists()


def test_a_closed_stream_is_never_a_socket(tmp_path):
    """Its number goes to the next thing that is opened: what is printed would go in there."""
    path = tmp_path / "port"
    with subprocess.Popen(["sh", "-c", 'exec "$0" --port-file "$1" <&- >&- 2>&-', PROGRAM,
                           str(path)]) as process:
        try:
            wait_until(path.exists, "the port file")
            streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        finally:
            process.terminate()
    assert streams == ["/dev/null"] * 3
    assert process.returncode == 0


def test_port_in_use_ends_with_1_and_leaves_the_other_port_file_alone(provider, tmp_path):
    path = tmp_path / "port"
    path.write_text("1\n")
    done = run("--port", str(provider.port), "--port-file", str(path))
    assert done.returncode == 1
    assert "Choose another --port" in done.stderr
    assert path.read_text() == "1\n"


def test_listens_on_loopback_only(provider):
    with open("/proc/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file if line.split()[3] == "0A"]
    bound = [line[1] for line in lines if line[1].endswith(f":{provider.port:04X}")]
    assert bound == [f"0100007F:{provider.port:04X}"]


def test_flags_win_over_the_file_and_both_over_defaults(tmp_path):
    path = tmp_path / "provider.json"
    path.write_text('{"job_ms": 10, "otpm": 20}')
    done = run("--config", str(path), "--otpm", "30", "--print-knobs")
    knobs = json.loads(done.stdout)
    assert (knobs["job_ms"], knobs["otpm"], knobs["itpm"]) == (10, 30, 0)


def test_sigterm_breaks_off_what_is_in_flight():
    with Provider(*FAST, "--job-ms", "60000") as running:
        connection = running.begin(message_body(stream=True))
        response = connection.getresponse()
        assert response.status == 200
        assert running.stop() == 0
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while response.read1():
                pass


# --- knobs ---------------------------------------------------------------------------


def test_knobs_read_back_what_was_set(provider):
    provider.set(visibility_lag="uniform", visibility_lag_ms=7, fault_next="hang")
    knobs = provider.ask("GET", "/knobs").json()
    assert knobs["visibility_lag"] == "uniform"
    assert knobs["visibility_lag_ms"] == 7
    assert provider.set(**knobs) == knobs


@pytest.mark.parametrize("knobs", [
    {"job_ms": 5, "nope": 1}, {"job_ms": 5, "otpm": -1}, {"job_ms": 5, "caching": 1},
    {"job_ms": 5, "answer": "song"}, {"job_ms": 5, "shards": 0}, {"job_ms": 1e3},
    {"job_ms": 5, "fault_cut_permille": 600, "fault_hang_permille": 600}, [1],
])
def test_document_with_one_wrong_knob_changes_none(provider, knobs):
    answer = provider.ask("POST", "/knobs", knobs)
    assert answer.status == 400
    assert answer.json()["error"].endswith(".")
    assert provider.ask("GET", "/knobs").json()["job_ms"] == 0


def test_stats_lists_as_many_prefixes_as_asked(provider):
    for i in range(5):
        provider.usage(message_body(prefix=f"{i}" + PREFIX))
    for count in (0, 2, 5):
        rows = provider.ask("GET", f"/stats?prefixes={count}").json()["prefixes"]
        assert len(rows) == count


# --- HTTP itself ---------------------------------------------------------------------


def exchange(provider, request):
    """Sends bytes, reads until the provider closes."""
    with provider.socket() as sock:
        sock.sendall(request)
        data = b""
        while True:
            part = sock.recv(65536)
            if not part:
                return data
            data += part


def test_connection_serves_many_requests(provider):
    connection = provider.connect()
    for i in range(5):
        answer = provider.message(message_body(f"{i}?"), connection=connection)
        assert answer.json()["content"][0]["text"].startswith("echo " + digest(f"{i}?"))
    assert provider.stats()["connections"] == 2


def test_requests_in_one_packet_are_answered_in_order(provider):
    one = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    last = b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    data = exchange(provider, one * 300 + last)
    assert data.count(b"HTTP/1.1 200 OK") == 301
    assert b'"requests_by_status"' in data[data.rfind(b"HTTP/1.1"):]


def test_early_requests_wait_for_the_one_before(provider):
    provider.set(job_ms=100)
    body = json.dumps(message_body(prefix="x" * 100000)).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
    length = b"content-length: %d\r\n\r\n" % len(body)
    data = exchange(provider, (head + length + body) * 3 +
                    head + b"connection: close\r\n" + length + body)
    assert data.count(b"HTTP/1.1 200 OK") == 4
    assert provider.stats()["peak_concurrency"] == 1


def test_chunked_request_in_small_pieces(provider):
    body = json.dumps(message_body()).encode()
    chunks = b"".join(b"%x;x=y\r\n%s\r\n" % (len(body[i:i + 1000]), body[i:i + 1000])
                      for i in range(0, len(body), 1000)) + b"0\r\nx-trailer: 1\r\n\r\n"
    request = (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
               b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n") + chunks
    with provider.socket() as sock:
        for i in range(0, len(request), 777):
            sock.sendall(request[i:i + 777])
        data = b""
        while True:
            part = sock.recv(65536)
            if not part:
                break
            data += part
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert digest("Why?").encode() in data


def test_expect_continue_is_answered_before_the_body(provider):
    body = json.dumps(message_body()).encode()
    with provider.socket() as sock:
        sock.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
                     b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body))
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"])
def test_too_large_a_body_is_413_and_can_be_read(provider, expect):
    provider.set(body_max_bytes=100000)
    head = (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n" + expect +
            b"content-length: 150000\r\n\r\n")
    data = exchange(provider, head + (b"" if expect else b"x" * 150000))
    assert data.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in data


def test_http_1_0_gets_a_stream_without_chunks(provider):
    body = json.dumps(message_body(stream=True)).encode()
    data = exchange(provider, b"POST /v1/messages HTTP/1.0\r\nanthropic-version: 1\r\n"
                    b"content-length: %d\r\n\r\n" % len(body) + body)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert message_text(list(parse_events(rest))).startswith("echo ")


@pytest.mark.parametrize("request_bytes, status", [
    (b"nonsense\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\na : b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\na: b\n c\r\n\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", 400),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n", 400),
    (b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 70 + b"\r\n", 431),
    (b"GET /nowhere HTTP/1.0\r\n\r\n", 404),
    (b"GET /v1/messages HTTP/1.0\r\n\r\n", 405),
])
def test_wrong_http_is_told_so_and_closed(provider, request_bytes, status):
    data = exchange(provider, request_bytes)
    assert data.startswith(b"HTTP/1.1 %d " % status), data[:80]
    assert provider.ask("GET", "/healthz").json() == {"ok": True}
