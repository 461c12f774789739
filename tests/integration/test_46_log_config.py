"""What the log looks like can stand in the configuration, for scheduler and worker alike."""

import json
import os
import subprocess

import pytest
from daemons import BUILD, CONFIG, Scheduler, server  # noqa: F401
from store import wait_until

JSON = "log_format: json\nlog_level: warning\n"


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_scheduler_logs_json_when_its_configuration_says_so(server):
    scheduler = Scheduler(server, config="log_format: json\n" + CONFIG)
    scheduler.start()
    events = lines(scheduler.log)
    assert {one["program"] for one in events} == {"scheduler"}
    assert any("rules now" in one["event"] for one in events)


def test_a_level_of_the_configuration_leaves_lines_out_and_the_command_line_wins(server):
    quiet = Scheduler(server, config=JSON + CONFIG, name="quiet")
    quiet.start(wait=False)
    wait_until(lambda: server.client.hget("warmq:meta", "owner"), "the quiet one to rule")
    loud = Scheduler(server, "--log-level", "info", config=JSON + CONFIG, name="loud")
    loud.start(wait=False)
    loud.wait_for("another scheduler rules")
    assert {one["level"] for one in lines(loud.log)} >= {"info"}
    assert lines(quiet.log) == []


@pytest.mark.parametrize("words", [(), ("--log-json",)])
def test_the_worker_does_as_well(tmp_path, words):
    """It cannot reach Redis, says so, and ends on SIGTERM."""
    config = tmp_path / "warmq.yaml"
    config.write_text(("log_format: json\n" if not words else "") +
                      f'redis: "unix://{tmp_path}/nowhere.sock"\nstate_dir: "{tmp_path}"\n')
    with subprocess.Popen([os.path.join(BUILD, "worker", "warmq-worker"), "--config", config,
                           "--executor", "null", *words], stderr=subprocess.PIPE,
                          text=True) as worker:
        try:
            first = json.loads(worker.stderr.readline())
        finally:
            worker.terminate()
        worker.communicate(timeout=120)
    assert first["program"] == "worker"


def test_another_word_is_refused_with_its_line(tmp_path):
    config = tmp_path / "warmq.yaml"
    config.write_text("log_format: xml\n")
    done = subprocess.run([os.path.join(BUILD, "scheduler", "warmq-scheduler"), "--config",
                           config], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "log_format" in done.stderr and "json" in done.stderr
    assert ":1:" in done.stderr
