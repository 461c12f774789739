"""What a scheduler's core was told is recorded, and can be played again."""

import os
import signal
import subprocess

import pytest

from daemons import BUILD, Scheduler, inbox, server  # noqa: F401
from store import wait_until
from test_41_scheduler_rule import Runner, enqueue

REPLAY = os.path.join(BUILD, "scheduler", "warmq-replay")
SECRET = "the secret of this prompt "


def replay(path, *options):
    if not os.path.exists(REPLAY):
        pytest.skip("warmq-replay is not built")
    return subprocess.run([REPLAY, *options, path], capture_output=True, text=True,
                          timeout=120, check=False)


@pytest.fixture
def record(server):
    """A path, and a scheduler that has ruled over a burst and keeps a record for it."""
    path = os.path.join(server.folder, "scheduler.record")
    with Scheduler(server, "--record", path) as scheduler:
        yield path, scheduler


def burst(server, inbox, count=40):
    with Runner(server) as runner:
        enqueue(inbox, count, system=SECRET * 400)
        runner.wait_done(count)


def dump(path, scheduler):
    scheduler.process.send_signal(signal.SIGUSR1)
    scheduler.wait_for("wrote the record")
    with open(path, "rb") as file:
        return file.read()


def test_a_record_plays_to_the_same_decisions(record, server, inbox):
    path, scheduler = record
    burst(server, inbox)
    dump(path, scheduler)
    played = replay(path)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "all decisions are the same" in played.stdout
    listed = replay(path, "--list").stdout
    for kind in ("MODEL", "RECOVERED_END", "ADMITTED", "GRANTED", "START", "BEGAN", "DONE"):
        assert kind in listed, kind


def test_a_record_holds_no_text_of_a_job(record, server, inbox):
    path, scheduler = record
    burst(server, inbox)
    data = dump(path, scheduler)
    assert len(data) > 3000
    for text in (SECRET, "claude-sonnet", "question", "warmq:"):
        assert text.encode() not in data, text
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_changed_decision_is_noticed(record, server, inbox):
    path, scheduler = record
    burst(server, inbox)
    data = bytearray(dump(path, scheduler))
    data[-1] ^= 1  # of the last decision
    with open(path, "wb") as file:
        file.write(data)
    played = replay(path)
    assert played.returncode == 1, played.stdout + played.stderr
    assert "other decisions" in played.stdout


def test_a_scheduler_that_breaks_leaves_its_record(record, server, inbox):
    path, scheduler = record
    burst(server, inbox)
    scheduler.process.send_signal(signal.SIGABRT)  # as a broken invariant does
    assert scheduler.process.wait(120) == -signal.SIGABRT
    assert "the record was written" in scheduler.log
    played = replay(path)
    assert played.returncode == 0, played.stdout + played.stderr


def test_a_rebuild_begins_a_new_record(record, server, inbox):
    path, scheduler = record
    burst(server, inbox)
    server.client.client_kill_filter(_type="normal", skipme=True)
    scheduler.wait_for("memory is complete", 2)
    burst(server, inbox, 5)
    dump(path, scheduler)
    played = replay(path, "--list")
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.count("RECOVERED_END") == 1


def test_without_a_path_a_signal_is_answered_with_advice(server):
    with Scheduler(server) as scheduler:
        scheduler.process.send_signal(signal.SIGUSR1)
        scheduler.wait_for("start it with --record FILE")
        wait_until(lambda: scheduler.process.poll() is None, "it to go on")


def test_what_is_no_record_is_refused(server):
    path = os.path.join(server.folder, "no.record")
    with open(path, "wb") as file:
        file.write(b"no record " * 100)
    assert replay(path).returncode == 2
    assert replay(os.path.join(server.folder, "absent")).returncode == 2
