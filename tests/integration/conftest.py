"""Fixtures of the integration tests: throw-away servers on Unix sockets."""

import os
import shutil
import subprocess
import tempfile

import pytest
import redis

from redis_process import redis_command, wait_up
from store import Store, library


@pytest.fixture(scope="module")
def redis_server():
    """One redis-server per module, without persistence; answers its socket's path."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is not installed")
    folder = tempfile.mkdtemp(prefix="warmq-")
    path = os.path.join(folder, "redis.sock")
    process = subprocess.Popen(redis_command(path, "--appendonly", "no"), stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=path)
    try:
        wait_up(client)
        client.execute_command("FUNCTION", "LOAD", "REPLACE", library())
        yield path
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def store(redis_server):
    """An empty namespace, ruled by this test.  After each test everything that is counted
    must be right and no job may be missing, unless the test says `store.broken`."""
    client = redis.Redis(unix_socket_path=redis_server, decode_responses=True)
    client.flushall()
    store = Store(client)
    store.rule()
    yield store
    if not store.broken:
        assert store.call("recalled") == [], "who writes a lease says so to recall.lua"
        store.owner = store.meta("owner")
        assert store.audit() == []
        assert not store.count()["drained"] or store.is_conserved()
        assert store.meta("lane_drift") is None
        assert store.meta("function_errors") is None
    client.close()
