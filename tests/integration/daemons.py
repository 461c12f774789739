"""daemons.py - real processes for the integration tests: Redis, and the scheduler.

    with Server() as server, Scheduler(server) as scheduler: ...

Each has a folder of its own and a Unix socket; ports are chosen by the system.  What a
daemon logs is kept and shown when a test fails.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest
import redis

from logs import print_ends
from redis_process import redis_command, wait_up
from store import ROOT, Store, wait_until

BUILD = os.environ.get("WARMQ_BUILD", os.path.join(ROOT, "build"))
CONFIG = """
namespace: warmq
upstreams:
  claude:
    url: http://127.0.0.1:9
    dialect: anthropic
    auth: none
    markers: auto
  gpt:
    url: http://127.0.0.1:9
    dialect: openai-chat
    auth: none
models:
  - match: "claude-*"
    class: sonnet
    minimum_tokens: 1024
pools:
  - name: batch
    match: ["batch-*", "*"]
scheduler:
  listen: 127.0.0.1:0
"""


class Server:
    """A redis-server that can be killed and started again over the same socket."""

    def __init__(self, *arguments):
        if not shutil.which("redis-server"):
            pytest.skip("redis-server is not installed")
        self.folder = tempfile.mkdtemp(prefix="warmq-")
        self.path = os.path.join(self.folder, "redis.sock")
        self.url = f"unix://{self.path}"
        self.arguments = arguments
        self.process = None
        self.schedulers = []  # whoever was started over it ends with it

    def start(self):
        self.process = subprocess.Popen(redis_command(self.path, *self.arguments),
                                        stdout=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=self.path, decode_responses=True)
        wait_up(self.client)

    def stop(self):
        self.client.close()
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        for scheduler in self.schedulers:
            scheduler.end()
        if kind:
            print_ends(self.folder)
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Scheduler:
    """warmq-scheduler over a server."""

    def __init__(self, server, *arguments, config=CONFIG, name="scheduler"):
        self.server, self.arguments = server, arguments
        self.program = os.path.join(BUILD, "scheduler", "warmq-scheduler")
        if not os.path.exists(self.program):
            pytest.skip("warmq-scheduler is not built")
        self.config = os.path.join(server.folder, f"{name}.yaml")
        self.log_path = os.path.join(server.folder, f"{name}.log")
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(config)
        self.process = None
        server.schedulers.append(self)

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--config", self.config, "--redis", self.server.url,
                 *self.arguments], stderr=log)
        if wait:
            self.wait_for("memory is complete")

    @property
    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def wait_for(self, text, count=1, seconds=30):
        def said():
            assert self.process.poll() is None, f"the scheduler ended:\n{self.log}"
            return self.log.count(text) >= count

        try:
            wait_until(said, f'the log to say "{text}"', seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log}") from None

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def freeze(self, on):
        self.process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    @property
    def port(self):
        return int(re.findall(r'event="serving pages".* port=(\d+)', self.log)[-1])

    def get(self, path):
        """Status and body of a page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}",
                                        timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path):
        status, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end()


def body(system="x" * 8000, question="why?", **more):
    """A request with a long system prompt."""
    return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system,
                       "messages": [{"role": "user", "content": question}], **more})


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def scheduler(server):
    with Scheduler(server) as scheduler:
        yield scheduler


@pytest.fixture
def inbox(server):
    """A Store that rules nothing: it enqueues with XADD and looks."""
    return Store(server.client)
