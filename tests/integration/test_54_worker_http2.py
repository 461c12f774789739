"""HTTP/2 where a server offers it: many requests on one connection (through nghttpx)."""

import os
import shutil
import socket
import subprocess

import pytest

from ports import free_port
from store import wait_until
from worker_rig import (KEY, MESSAGE, enqueue, family, provider,
                        start, wait_result)

NGHTTPX = shutil.which("nghttpx", path=os.environ["PATH"] + ":/usr/sbin")


@pytest.fixture
def proxy(provider, tmp_path):
    """Speaks HTTP/2 over TLS in front of the provider; answers its port and its log."""
    if not NGHTTPX or not shutil.which("openssl"):
        pytest.skip("nghttpx (nghttp2-proxy) or openssl is not installed")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")],
        check=True, capture_output=True)
    port, log = free_port(), tmp_path / "access"
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
    yield port, log
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
