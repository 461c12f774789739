"""HTTP/2 where a server offers it: many requests on one connection (through nghttpx)."""

import contextlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from ports import free_port
from store import wait_until
from worker_rig import BUILD, KEY, MESSAGE, enqueue, events_of, family, provider, start, wait_result

OTHER_CLOCK = os.path.join(BUILD, "tests", "lib", "other_clock.so")
NGHTTPX = shutil.which("nghttpx", path=os.environ["PATH"] + ":/usr/sbin")


def certify(folder, names="DNS:localhost,IP:127.0.0.1", made_s=0):
    """A certificate that is its own authority, in `cert` and `key`, for two days from now or
    from then on."""
    (folder / "clock").write_text(str(made_s))
    subprocess.run(
        ["env", f"LD_PRELOAD={OTHER_CLOCK}", f"OTHER_CLOCK={folder / 'clock'}", "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", f"subjectAltName={names}",
         "-keyout", str(folder / "key"), "-out", str(folder / "cert")],
        check=True, capture_output=True)


@pytest.fixture
def proxy(provider, tmp_path):
    """Speaks HTTP/2 over TLS in front of the provider; answers its port and its log."""
    if not NGHTTPX or not shutil.which("openssl"):
        pytest.skip("nghttpx (nghttp2-proxy) or openssl is not installed")
    certify(tmp_path)
    port = free_port()
    with proxy_at(port, provider, tmp_path) as log:
        yield port, log


@contextlib.contextmanager
def proxy_at(port, provider, tmp_path):
    log = tmp_path / "access"
    process = subprocess.Popen(
        [NGHTTPX, f"--frontend=127.0.0.1,{port}", f"--backend=127.0.0.1,{provider.port}",
         "--accesslog-format=$remote_port $alpn", f"--accesslog-file={log}",
         "--workers=1", "--no-server-rewrite", "--conf=/dev/null",
         str(tmp_path / "key"), str(tmp_path / "cert")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "nghttpx to listen")
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def environment(tmp_path):
    return dict(os.environ, WARMQ_TEST_KEY=KEY, SSL_CERT_FILE=str(tmp_path / "cert"))


def test_requests_share_a_connection(store, provider, start, proxy, tmp_path):
    port, log = proxy
    start(slots=20, url=f"https://127.0.0.1:{port}", env=environment(tmp_path))
    jobs = family()
    ids = enqueue(store, jobs, 60)
    store.open(jobs)
    for id in ids:
        assert wait_result(store, id)["body"] == MESSAGE
    wait_until(lambda: len(log.read_text().splitlines()) >= 60, "the access log")
    lines = [line.split() for line in log.read_text().splitlines()]
    assert {alpn for _, alpn in lines} == {"h2"}
    assert len({remote for remote, _ in lines}) == 1
    assert len(provider.requests) == 60


def test_a_certificate_of_nobody_is_refused_before_the_key_is_sent(store, provider, start,
                                                                   proxy, tmp_path):
    port, _ = proxy
    env = environment(tmp_path)
    del env["SSL_CERT_FILE"]
    start(slots=1, url=f"https://127.0.0.1:{port}", env=env)
    jobs = family()
    id, = enqueue(store, jobs)
    store.open(jobs)
    wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")
    assert "certificate" in store.past(id)["why"].lower() and provider.requests == []


@pytest.mark.skipif(not NGHTTPX, reason="nghttpx (nghttp2-proxy) is not installed")
@pytest.mark.parametrize("made_s, word", [(-864000, "expired"), (864000, "not yet valid")])
def test_jobs_wait_until_a_certificate_is_valid_again(store, provider, start, tmp_path, made_s,
                                                      word):
    certify(tmp_path, made_s=made_s)
    port = free_port()
    env = environment(tmp_path)
    env["SSL_CERT_FILE"] = str(tmp_path / "trusted")
    with proxy_at(port, provider, tmp_path):
        shutil.copy(tmp_path / "cert", tmp_path / "trusted")
        start(slots=1, url=f"https://127.0.0.1:{port}", env=env)
        jobs = family()
        id, = enqueue(store, jobs)
        store.open(jobs)
        wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")
        assert word in store.past(id)["why"] and provider.requests == []
    certify(tmp_path)
    with proxy_at(port, provider, tmp_path):
        shutil.copy(tmp_path / "cert", tmp_path / "trusted")
        wait_until(lambda: (store.promote(), store.result(id))[1], "the result", 30)
        assert wait_result(store, id)["attempts"] == 0


# ---- a server of the test's own, frame by frame ------------------------------------------

DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def goaway(last):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, 0))


def head(stream):
    """:status 200, content-type text/event-stream, both without a table."""
    kind = b"text/event-stream"
    return frame(HEADERS, END_HEADERS, stream, b"\x88\x0f\x10" + bytes([len(kind)]) + kind)


class Frames:
    """Speaks HTTP/2 over TLS; answers each request with what `answers` says in turn, a function of
    the stream's number and of the events, then with all of them."""

    def __init__(self, folder):
        self.answers, self.requests, self.connections = [], 0, 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "cert", folder / "key")
        self.context.set_alpn_protocols(["h2"])
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError, EOFError), \
                self.context.wrap_socket(client, server_side=True) as tls:
            self.connections += 1
            file = tls.makefile("rb")
            file.read(24)  # the preface
            tls.sendall(frame(SETTINGS, 0, 0, b""))
            while True:
                start = file.read(9)
                if len(start) < 9:
                    return
                kind, flags, stream = struct.unpack(">BBI", start[3:])
                file.read(int.from_bytes(start[:3], "big"))
                if kind == SETTINGS and not flags & ACK:
                    tls.sendall(frame(SETTINGS, ACK, 0, b""))
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    self.requests += 1
                    answer = self.answers.pop(0) if self.answers else whole
                    tls.sendall(b"".join(answer(stream, events_of(MESSAGE))))

    def close(self):
        self.server.close()


def whole(stream, events):
    yield head(stream)
    yield frame(DATA, END_STREAM, stream, b"".join(events))


def leave_behind(stream, events):
    """Says behind its answer that this connection takes no more."""
    yield from whole(stream, events)
    yield goaway(stream)


def leave_within(stream, events):
    """Says so in the middle of its answer, and goes on with it."""
    yield head(stream)
    yield frame(DATA, 0, stream, b"".join(events[:2]))
    yield goaway(stream)
    yield frame(DATA, END_STREAM, stream, b"".join(events[2:]))


def leave_before(stream, events):
    """Has not looked at the request."""
    yield goaway(0)


@pytest.fixture
def frames(tmp_path):
    certify(tmp_path)
    server = Frames(tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize("leave, requests, attempts", [
    (leave_behind, 2, 0), (leave_within, 2, 0), (leave_before, 3, 1)])
def test_a_server_that_leaves_its_connection_costs_no_answer(store, start, frames, tmp_path, leave,
                                                             requests, attempts):
    """Only a request that it refuses to look at is asked for again."""
    frames.answers = [leave]
    start(slots=1, url=f"https://127.0.0.1:{frames.port}", env=environment(tmp_path))
    jobs = family()
    ids = enqueue(store, jobs, 2, attempts="2")
    store.open(jobs)
    wait_until(lambda: store.promote() and all(store.result(id) for id in ids), "the results")
    results = [wait_result(store, id) for id in ids]
    assert [each["body"] for each in results] == [MESSAGE, MESSAGE]
    assert sum(each["attempts"] for each in results) == attempts
    assert frames.requests == requests and frames.connections >= 2


def test_a_certificate_of_another_host_costs_nothing_and_is_explained(store, start, tmp_path):
    certify(tmp_path, "DNS:else.where")
    server = Frames(tmp_path)
    start(slots=1, url=f"https://127.0.0.1:{server.port}", env=environment(tmp_path))
    jobs = family()
    id, = enqueue(store, jobs, attempts="1")
    store.open(jobs)
    wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")
    why = store.past(id)["why"]
    assert "SSL" in why and "name a file with its authority in SSL_CERT_FILE" in why
    assert server.requests == 0
    server.close()
