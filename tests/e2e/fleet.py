"""A whole WarmQ on this machine, for one test: Redis, provider, schedulers, workers.

Everything runs in the test's own directory on a Unix socket, as the installed programs
would; nothing is imported from the project.  Every wait has a deadline."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import waiting  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WARMQ_BUILD", ROOT / "build"))
WARMQ = BUILD / "cli" / "warmq"


IS_LONG = bool(os.environ.get("WARMQ_LONG"))
LONG = pytest.mark.skipif(not IS_LONG, reason="takes minutes; WARMQ_LONG=1 runs it")

# A time that is promised is measured by the long form, on a machine that does nothing else.
# The suite wants it of one that is three times slower: nobody may stand still.
SLOWER = 1 if IS_LONG else 3


def wait_until(claim, what, seconds=30, patience=waiting.PATIENCE):
    """As everywhere; whole fleets run beside it and need the cores."""
    return waiting.wait_until(claim, what, seconds, 0.02, patience)


def end_whole_on_signals():
    """For commands: who stops one stops everything that it has started."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.killpg(0, signal.SIGKILL))


class Redis:
    """A connection that speaks just enough RESP for the tests: no client library."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(out))

    def read(self):
        line = self.file.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))] if int(rest) >= 0 else None
        raise AssertionError(f"not RESP: {line!r}")

    def __call__(self, *words):
        self.send(*words)
        answer = self.read()
        if isinstance(answer, RuntimeError):
            raise answer
        return answer


PLACE = """\
  {name}:
    url: "{url}"
    dialect: {dialect}
    auth: none
    markers: auto
    proof: canary
"""


class Fleet:
    """start_*() start programs, kill() is SIGKILL, stop() ends all.  Beside the upstream
    `main` there are `places`, each a provider of its own, and `aliases`, which are main's."""

    def __init__(self, directory, upstream_options="", settings="", dialect="anthropic",
                 knobs=None, redis_options=("--appendonly", "no"), places=(), aliases=()):
        self.places, self.aliases, self.urls = places, aliases, {}
        self.directory = Path(directory)
        self.processes = {}
        self.upstream_options = upstream_options
        self.settings = settings
        self.dialect = dialect
        self.knobs = knobs or {}
        self.redis_options = redis_options
        self.socket = self.directory / "redis.sock"
        self.config = self.directory / "warmq.yaml"

    def __enter__(self):
        self.start_redis()
        self.start_provider()
        if self.knobs:
            self.http("/knobs", self.knobs)
        self.write_config(self.dialect)
        return self

    def __exit__(self, kind, value, trace):
        servers = ("provider", "redis")  # last: the others say goodbye to them
        clients = [name for name in self.processes if name not in servers]
        for name in [*reversed(clients), *servers]:
            if name not in self.processes:
                continue
            self.end(name, signal.SIGTERM if kind is None else signal.SIGKILL)

    def start(self, name, *words):
        log = open(self.directory / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            [str(word) for word in words], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, cwd=self.directory)
        log.close()
        return self.processes[name]

    def end(self, name, number=signal.SIGTERM, seconds=60):
        process = self.processes.pop(name)
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(120)

    def kill(self, name):
        self.end(name, signal.SIGKILL)

    def log(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def connect(self):
        return Redis(self.socket)

    def start_redis(self):
        self.start("redis", "redis-server", "--port", 0, "--unixsocket", self.socket,
                   "--save", "", "--dir", self.directory, "--maxmemory-policy",
                   "noeviction", *self.redis_options)
        wait_until(self.is_redis_up, "answer of redis-server", 30)
        self.redis = self.connect()

    def is_redis_up(self):
        try:
            connection = self.connect()
        except OSError:
            return False
        try:
            return connection("PING") == "PONG"
        except (OSError, RuntimeError):
            return False
        finally:
            connection.close()

    def start_provider(self):
        self.provider = self.start_place("provider")
        self.urls = {name: self.provider for name in self.aliases}
        self.urls |= {name: self.start_place(f"provider-{name}") for name in self.places}

    def start_place(self, name):
        port_file = self.directory / f"{name}.port"
        self.start(name, BUILD / "provider" / "warmq-provider", "--port", 0,
                   "--port-file", port_file)
        port = wait_until(lambda: port_file.exists() and port_file.read_text().strip(),
                          f"port of {name}", 10)
        return f"http://127.0.0.1:{port}"

    def http(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.provider + path, data,
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def write_config(self, dialect="anthropic"):
        others = "".join(PLACE.format(name=name, url=url, dialect=dialect) +
                         self.upstream_options.split("\nmodels:")[0]
                         for name, url in self.urls.items())
        self.config.write_text(f"""
redis: "unix://{self.socket}"
state_dir: "{self.directory}"
upstreams:
{others}
  main:
    url: "{self.provider}"
    dialect: {dialect}
    auth: none
    markers: auto
    proof: canary
{self.upstream_options}
scheduler:
  listen: "off"
{self.settings}
""")

    def start_scheduler(self, name="scheduler"):
        self.start(name, BUILD / "scheduler" / "warmq-scheduler", "--config", self.config)

    def await_ruler(self, seconds=30):
        wait_until(lambda: self.redis("HGET", "warmq:meta", "owner"), "ruler", seconds)

    def start_worker(self, name="worker", slots=50, *options):
        state = self.directory / name
        state.mkdir(exist_ok=True)
        self.start(name, BUILD / "worker" / "warmq-worker", "--config", self.config,
                   "--slots", slots, "--label", name, *options)

    def await_workers(self, count, seconds=30):
        wait_until(lambda: self.redis("ZCARD", "warmq:workers") >= count, f"{count} workers",
                   seconds)

    def start_all(self, workers=1, slots=100):
        self.start_scheduler()
        self.await_ruler()
        for number in range(1, workers + 1):
            self.start_worker(f"worker-{number}", slots)
        self.await_workers(workers)

    def enqueue(self, bodies, reply="results", upstream="main", **fields):
        """XADDs all of them, as fast as Redis takes them; returns the ids in order.  50 in a
        transaction, so that however busy the machine is, none comes alone."""
        ids = []
        words = [word for field in fields.items() for word in field]
        for start in range(0, len(bodies), 50):
            chunk = bodies[start:start + 50]
            self.redis.send("MULTI")
            for body in chunk:
                self.redis.send("XADD", "warmq:jobs", "*", "upstream", upstream, "reply",
                                reply, *words, "body", body)
            self.redis.send("EXEC")
            for _ in range(len(chunk) + 1):  # OK, and a "queued" each
                self.redis.read()
            for answer in self.redis.read():
                assert isinstance(answer, bytes), answer
                ids.append(answer.decode())
        return ids

    def pop_results(self, results, reply="results"):
        """Moves what is on the reply list into `results`; fails on a second one for an id."""
        while True:
            popped = self.redis("LPOP", f"warmq:reply:{reply}", 100)
            if not popped:
                return results
            for text in popped:
                result = json.loads(text)
                assert result["id"] not in results, f"two results for {result['id']}"
                results[result["id"]] = result

    def collect(self, count, seconds=60, reply="results"):
        """Waits for `count` results; returns them by id."""
        results = {}
        wait_until(lambda: len(self.pop_results(results, reply)) >= count, f"{count} results",
                   seconds)
        assert len(results) == count, f"{len(results)} results, expected {count}"
        return results

    def burst(self, bodies, seconds=60, **fields):
        """Enqueues and collects; all must be done. Returns (results in order, seconds)."""
        started = time.monotonic()
        ids = self.enqueue(bodies, **fields)
        results = self.collect(len(bodies), seconds)
        took = time.monotonic() - started
        for id in ids:
            assert results[id]["state"] == "done", results[id]
        return [results[id] for id in ids], took

    def stats(self):
        return self.http("/stats")

    def warm_ups(self):
        """Requests that were no job's: a prefix may be written ahead of its jobs' turn."""
        return sum(entry[1][1].count(b"ticket ")
                   for entry in self.redis("XRANGE", "warmq:events", "-", "+"))

    def keep_waiting(self, on=True):
        """No request gets its first byte before this is off again."""
        self.http("/knobs", {"keep_waiting": on})

    def await_requests(self, count):
        """Until so many are under way at the provider."""
        wait_until(lambda: self.stats()["concurrency"] >= count, f"{count} requests under way")

    def warmq(self, *words, check=True, text=None):
        """Runs the command line; returns its standard output."""
        done = subprocess.run([str(WARMQ), *map(str, words)], capture_output=True, text=True,
                              input=text, timeout=120,
                              env={**os.environ, "WARMQ_REDIS": f"unix://{self.socket}"})
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout


def digest(question):
    """What the provider's answer says of the question: it was this one's."""
    value = 0xcbf29ce484222325
    for byte in question.encode():
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return f"{value:016x}"


def anthropic_body(question, system="", **more):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 64,
            "messages": [{"role": "user", "content": question}], **more}
    if system:
        body["system"] = system
    return json.dumps(body)


def long_text(tokens, word="policy "):
    """About `tokens` tokens, at four bytes each."""
    return (word * (tokens * 4 // len(word) + 1))[:tokens * 4]
