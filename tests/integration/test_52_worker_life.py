"""Workers that stop, die, lose Redis, and come back."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import pytest
import redis

from redis_process import redis_command, wait_up
from store import NEVER, Store, library, wait_until
from worker_rig import (MESSAGE, WorkerProcess, enqueue, family, provider, silence, sse_held,
                        start, wait_result)

SHORT = ("--lease", "900ms")


def held(count=1):
    return [(threading.Event(), threading.Event()) for _ in range(count)]


class Redis:
    """A redis-server that a test stops and starts; it keeps what it acknowledged."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="warmq-r-")
        self.path = os.path.join(self.folder, "redis.sock")
        self.client = redis.Redis(unix_socket_path=self.path, decode_responses=True)
        self.process = None
        self.up()

    def up(self):
        self.process = subprocess.Popen(
            redis_command(self.path, "--appendonly", "yes", "--appendfsync", "always"),
            stdout=subprocess.DEVNULL)
        wait_up(self.client)

    def down(self):
        self.process.kill()
        self.process.wait()

    def forget(self):
        """What it kept is lost as well."""
        self.down()
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)


@pytest.fixture
def fragile():
    server = Redis()
    server.client.execute_command("FUNCTION", "LOAD", "REPLACE", library())
    yield server
    server.down()
    shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def fragile_store(fragile):
    store = Store(fragile.client)
    store.rule()
    return store


def stop_all(workers):
    for worker in workers:
        if worker.process.poll() is None:
            worker.signal(signal.SIGTERM)
    for worker in workers:
        worker.wait()
        worker.close()


def one_begun(store, begun, **fields):
    """A job whose request has reached the provider: its family, and its id."""
    jobs = family()
    id, = enqueue(store, jobs, **fields)
    store.open(jobs)
    assert begun.wait(120)
    return jobs, id


# ---- stopping ----------------------------------------------------------------------


def test_sigterm_lets_running_jobs_end_and_takes_no_others(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1)
    jobs = family()
    first, second = enqueue(store, jobs, 2)
    store.open(jobs)
    assert begun.wait(120)
    worker.signal(signal.SIGTERM)
    worker.wait_log("stopping")
    go_on.set()
    assert worker.wait() == 0
    assert json.loads(store.result(first))["body"] == MESSAGE
    assert store.result(second) is None and store.list(jobs, "ready:n") == [second]
    assert store.events("bye") and len(provider.requests) == 1


def test_a_second_sigterm_gives_running_jobs_back_at_once(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1)
    jobs, id = one_begun(store, begun)
    worker.signal(signal.SIGTERM)
    worker.wait_log("stopping")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    go_on.set()
    assert store.list(jobs, "back:n") == [id] and store.past(id).get("attempts") is None
    start()
    assert wait_result(store, id)["delivery"] == 2


def test_a_worker_that_is_told_to_stop_drains_and_ends(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1, args=("--lease", "3s"))
    jobs = family()
    first, second = enqueue(store, jobs, 2)
    store.open(jobs)
    assert begun.wait(120)
    nonce, = store.redis.zrange(store.key("workers"), 0, -1)
    assert store.ok("steer", nonce, "stop", "somebody") == ["done"]
    worker.wait_log("told so through Redis")
    go_on.set()
    assert worker.wait() == 0
    assert json.loads(store.result(first))["body"] == MESSAGE
    assert store.result(second) is None and store.list(jobs, "ready:n") == [second]


def test_a_quiet_worker_ends_what_it_has_and_goes_on_when_it_may(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1, args=("--lease", "3s"))
    jobs = family()
    first, second = enqueue(store, jobs, 2)
    store.open(jobs)
    assert begun.wait(120)
    nonce, = store.redis.zrange(store.key("workers"), 0, -1)
    store.ok("steer", nonce, "quiet")
    go_on.set()
    wait_result(store, first)
    worker.wait_log("told to be quiet")
    assert store.list(jobs, "ready:n") == [second]
    store.ok("steer", nonce, "run")
    wait_result(store, second)
    worker.wait_log("told to go on")


def test_what_outlives_the_drain_is_given_back(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1, args=("--drain", "200ms"))
    jobs, id = one_begun(store, begun)
    assert worker.stop() == 0
    go_on.set()
    assert store.list(jobs, "back:n") == [id]


# ---- dying -------------------------------------------------------------------------


def test_the_jobs_of_a_killed_worker_are_run_by_another_after_its_lease(store, provider,
                                                                        start):
    store.reap()  # the first one only notes the time
    pairs = held(3)
    provider.answers = [silence(*pair) for pair in pairs]
    victim = start(slots=3, args=SHORT)
    jobs = family()
    ids = enqueue(store, jobs, 3)
    store.open(jobs)
    for begun, _ in pairs:
        assert begun.wait(120)
    victim.signal(signal.SIGKILL)
    victim.wait()
    start(args=SHORT)
    wait_until(lambda: store.reap()[0] == 3, "the leases to come back")
    for id in ids:
        result = wait_result(store, id)
        assert result["delivery"] == 2 and result["attempts"] == 0
    for _, go_on in pairs:
        go_on.set()
    assert store.past(ids[0]) == {}


def test_a_successor_in_the_same_place_frees_the_jobs_at_once(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [silence(begun, go_on)]
    victim = start(slots=1)
    _, id = one_begun(store, begun)
    victim.signal(signal.SIGKILL)
    victim.wait()
    start(state=victim.state)
    assert wait_result(store, id)["delivery"] == 2
    go_on.set()


def test_two_workers_may_share_a_state_directory(store, provider, start):
    first = start(slots=1)
    first.wait_log("attached")
    second = start(slots=1, state=first.state)
    second.wait_log("attached")
    assert "worker.0" in first.log() and "worker.1" in second.log()


# ---- cancels and leaders -----------------------------------------------------------


def test_a_cancelled_job_is_stopped_and_its_slot_freed(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1, args=SHORT)
    jobs = family()
    first, second = enqueue(store, jobs, 2)
    store.open(jobs)
    assert begun.wait(120)
    assert store.ok("cancel", first) == ["ended"]
    assert wait_result(store, second)["state"] == "done"
    assert json.loads(store.result(first))["state"] == "cancelled"
    assert "ended from outside" in worker.log()
    go_on.set()


def test_a_slow_leader_is_stopped_and_another_is_elected(store, provider, start):
    (begun, go_on), = held()
    provider.answers = [silence(begun, go_on)]
    worker = start(slots=1)
    jobs = family(hold_max=4000)
    id, = enqueue(store, jobs)
    store.grant(jobs.lane, gate=1, credits=1, role=1, window=1, until=NEVER)
    assert begun.wait(120)
    worker.wait_log("too slow")
    result = wait_result(store, id)
    assert result["attempts"] == 0 and result["delivery"] == 2
    assert len(store.events("start")) == 2 and "released" in store.events("back")[0]
    go_on.set()


# ---- losing Redis ------------------------------------------------------------------


def test_a_result_that_comes_while_redis_is_away_is_delivered_after(fragile, fragile_store,
                                                                    provider):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = WorkerProcess(store, provider)
    try:
        _, id = one_begun(store, begun)
        fragile.down()
        go_on.set()
        wait_until(worker.spooled, "the result on disk")
        fragile.up()
        result = wait_result(store, id)
        assert result["body"] == MESSAGE and result["delivery"] == 1
        assert len(provider.requests) == 1
        assert worker.stop() == 0 and not worker.spooled()
    finally:
        stop_all([worker])


def test_a_result_outlives_its_worker_on_disk_16(fragile, fragile_store, provider):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = WorkerProcess(store, provider)
    _, id = one_begun(store, begun, reply="box")
    fragile.down()
    go_on.set()
    wait_until(worker.spooled, "the result on disk")
    worker.signal(signal.SIGKILL)
    worker.wait()
    fragile.up()
    successor = WorkerProcess(store, provider, state=worker.state)
    try:
        wait_until(lambda: store.replies("box"), "the reply")
        assert json.loads(store.replies("box")[0])["body"] == MESSAGE
        wait_until(lambda: not worker.spooled(), "the file to go")
        assert store.ok("cancel", id) == ["gone"]
    finally:
        stop_all([successor])
        worker.close()


def test_half_a_result_is_left_on_no_disk(fragile, fragile_store, provider, tmp_path):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    spool = tmp_path / "worker.0"
    spool.mkdir()
    (spool / "1-1.result.new").write_text("of a process that died")
    worker = WorkerProcess(store, provider, state=str(tmp_path))
    try:
        _, id = one_begun(store, begun)
        assert not list(spool.glob("*.new"))
        (spool / f"{id}.result" / "in the way").mkdir(parents=True)
        fragile.down()
        go_on.set()
        wait_until(lambda: "cannot keep a result" in worker.log(), "the failure")
        assert not list(spool.glob("*.new"))
        fragile.up()
        assert wait_result(store, id)["body"] == MESSAGE
    finally:
        stop_all([worker])


def test_a_worker_that_stops_without_redis_leaves_its_results_on_disk(fragile, fragile_store,
                                                                      provider):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = WorkerProcess(store, provider, args=("--drain", "100ms"))
    one_begun(store, begun)
    fragile.down()
    go_on.set()
    worker.signal(signal.SIGTERM)
    try:
        assert worker.wait(120) == 0
        assert len(worker.spooled()) == 1
    finally:
        worker.close()


def test_a_worker_told_to_stop_without_redis_ends_with_its_last_request(fragile, fragile_store,
                                                                        provider):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = WorkerProcess(store, provider, args=("--drain", "1h"))
    try:
        jobs, id = one_begun(store, begun)
        spool = os.path.join(worker.state, "worker.0")
        os.symlink("/dev/full", os.path.join(spool, f"{id}.result.new"))  # once
        fragile.down()
        worker.signal(signal.SIGTERM)
        worker.wait_log("this worker ends when its running jobs have")
        assert worker.process.poll() is None, "its request is paid for"
        go_on.set()
        worker.wait_log("cannot keep a result on disk")
        assert worker.wait(60) == 0
        assert len(worker.spooled()) == 1
        assert "results wait on disk for Redis" in worker.log()
        fragile.up()
        successor = WorkerProcess(store, provider, state=worker.state)
        try:
            assert wait_result(store, id)["body"] == MESSAGE
            assert len(provider.requests) == 1
        finally:
            stop_all([successor])
    finally:
        worker.close()


def test_a_redis_that_forgot_everything_gets_a_new_session_10_r6(fragile, fragile_store, provider):
    store = fragile_store
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = WorkerProcess(store, provider)
    try:
        one_begun(store, begun)
        fragile.forget()
        fragile.up()
        worker.wait_log("cannot serve yet")
        fragile.client.execute_command("FUNCTION", "LOAD", "REPLACE", library())
        worker.wait_log("a new one begins")
        go_on.set()
        worker.wait_log("not wanted any more")
        again = Store(fragile.client)
        again.rule()
        more = family(2)
        id, = enqueue(again, more)
        again.open(more)
        assert wait_result(again, id)["state"] == "done"
        assert not worker.spooled()
    finally:
        stop_all([worker])


def test_a_run_survives_redis_restarts(fragile, fragile_store, provider):
    store = fragile_store
    worker = WorkerProcess(store, provider, slots=10)
    try:
        jobs = family()
        ids = enqueue(store, jobs, 200)
        store.open(jobs)
        for share in (50, 100, 150):
            wait_until(lambda: sum(store.redis.exists(store.key(f"result:{id}"))
                                   for id in ids) >= share, f"{share} results", 20)
            fragile.down()
            fragile.up()
        for id in ids:
            assert wait_result(store, id, 20)["state"] == "done"
        assert store.is_conserved()
    finally:
        stop_all([worker])


def test_a_worker_that_is_stopped_for_longer_than_its_lease_is_fenced_off_20(store, provider,
                                                                          start):
    store.reap()  # the first one only notes the time
    (begun, go_on), = held()
    provider.answers = [sse_held(begun, go_on)]
    worker = start(slots=1, args=SHORT)
    _, id = one_begun(store, begun)
    worker.signal(signal.SIGSTOP)
    wait_until(lambda: store.reap()[0] == 1, "the lease to come back")
    other = start()
    assert wait_result(store, id)["delivery"] == 2
    worker.signal(signal.SIGCONT)
    go_on.set()
    worker.wait_log("a new one begins")
    worker.wait_log("not wanted any more")
    assert len(store.redis.keys(store.key("result:*"))) == 1
    assert other.process.poll() is None


def test_a_redis_that_refuses_to_give_a_payload_costs_no_attempt(fragile, fragile_store,
                                                                 provider):
    store = fragile_store
    fragile.client.execute_command("ACL", "SETUSER", "default", "-xrange")
    worker = WorkerProcess(store, provider)
    try:
        jobs = family()
        id, = enqueue(store, jobs, attempts="1")
        store.open(jobs)
        wait_until(lambda: store.past(id).get("deferrals") == "1", "the job to come back")
        assert "refused" in store.past(id)["why"] and "cannot be read" in worker.log()
        fragile.client.execute_command("ACL", "SETUSER", "default", "+xrange")
        wait_until(lambda: store.promote()[0] > 0, "the job to be due")
        assert wait_result(store, id)["attempts"] == 0
    finally:
        stop_all([worker])
