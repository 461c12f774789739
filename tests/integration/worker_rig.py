"""worker_rig.py - a real worker between a real Redis and a provider that obeys the test.

    provider = Provider()                    a loopback HTTP server
    provider.answers.append(sse(MESSAGE))    the next request gets this
    worker = WorkerProcess(store, provider)  warmq-worker, logging to a file
    worker.stop()                            SIGTERM, and its exit status

Every answer is a function of the request handler, so a test can hold, cut or refuse.
"""

import contextlib
import http.server
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from store import Family, node, wait_until

BUILD = os.environ.get("WARMQ_BUILD") or os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build")
KEY = "sk-secret-of-the-tests"

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
           "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn",
           "stop_sequence": None,
           "usage": {"input_tokens": 7, "cache_creation_input_tokens": 0,
                     "cache_read_input_tokens": 30, "output_tokens": 2}}


def program(name):
    return os.path.join(BUILD, name.split("-")[1], name)


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def events_of(message):
    """The stream that assembles to this message."""
    start = dict(message, content=[], stop_reason=None,
                 usage=dict(message["usage"], output_tokens=1))
    out = [event("message_start", {"type": "message_start", "message": start})]
    for index, block in enumerate(message["content"]):
        empty = dict(block, text="")
        out += [
            event("content_block_start", {"type": "content_block_start", "index": index,
                                          "content_block": empty}),
            event("content_block_delta", {"type": "content_block_delta", "index": index,
                                          "delta": {"type": "text_delta",
                                                    "text": block["text"]}}),
            event("content_block_stop", {"type": "content_block_stop", "index": index})]
    out += [
        event("message_delta", {"type": "message_delta",
                                "delta": {"stop_reason": message["stop_reason"],
                                          "stop_sequence": None},
                                "usage": {"output_tokens":
                                          message["usage"]["output_tokens"]}}),
        event("message_stop", {"type": "message_stop"})]
    return out


def begin_stream(handler):
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("request-id", "req_7")
    handler.send_header("connection", "close")
    handler.end_headers()


def sse(message=None):
    """A whole stream."""
    def answer(handler):
        begin_stream(handler)
        for part in events_of(message or MESSAGE):
            handler.wfile.write(part)
    return answer


def sse_cut(parts):
    """Only the first events, then the connection ends."""
    def answer(handler):
        begin_stream(handler)
        for part in events_of(MESSAGE)[:parts]:
            handler.wfile.write(part)
    return answer


def sse_held(begun, go_on):
    """The first event; the rest once the test lets it."""
    def answer(handler):
        begin_stream(handler)
        parts = events_of(MESSAGE)
        handler.wfile.write(parts[0])
        begun.set()
        go_on.wait(120)
        for part in parts[1:]:
            handler.wfile.write(part)
    return answer


def plain(status, body, **headers):
    """A whole answer that is no stream."""
    def answer(handler):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
    return answer


def later(seconds, answer):
    """An answer so long after the request: it is the provider that takes its time."""
    def slow(handler):
        time.sleep(seconds)
        answer(handler)
    return slow


def error(status, kind, message="No.", **headers):
    return plain(status, {"type": "error", "error": {"type": kind, "message": message}},
                 **headers)


def silence(begun, go_on):
    """Nothing at all until the test lets it."""
    def answer(handler):
        begun.set()
        go_on.wait(120)
    return answer


class Request:
    def __init__(self, handler, body):
        self.path, self.headers, self.body = handler.path, dict(handler.headers), body

    @property
    def json(self):
        return json.loads(self.body)


class Provider:
    """Answers requests in turn by `answers`; when they are used up, by `default`."""

    def __init__(self, port=0):
        self.requests, self.answers, self.default = [], [], sse()
        self.lock = threading.Lock()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with provider.lock:
                    provider.requests.append(Request(self, body))
                    answer = provider.answers.pop(0) if provider.answers else provider.default
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    answer(self)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01},
                         daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class WorkerProcess:
    """warmq-worker with a state directory of its own; `state` shares another one's."""

    def __init__(self, store, provider=None, slots=4, pool="main", args=(), upstream="",
                 worker="", dialect="anthropic", state=None, redis_path=None,
                 url=None, executor="http", env=None, key="key_env: WARMQ_TEST_KEY",
                 files=None, markers="auto"):
        self.store = store
        self.folder = tempfile.mkdtemp(prefix="warmq-w-")
        self.state = state or os.path.join(self.folder, "state")
        self.log_path = os.path.join(self.folder, "log")
        path = redis_path or store.redis.connection_pool.connection_kwargs["path"]
        url = url or (provider.url if provider else "http://127.0.0.1:1")
        config = os.path.join(self.folder, "warmq.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"redis: unix://{path}\nstate_dir: {self.state}\n"
                       f"upstreams:\n  prov:\n    url: {url}\n    dialect: {dialect}\n"
                       f"    {key}\n    markers: {markers}\n{upstream}"
                       f"worker:\n  pool: {pool}\n  slots: {slots}\n{worker}")
        self.env = dict(os.environ, WARMQ_TEST_KEY=KEY) if env is None else env
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program("warmq-worker"), "--config", config, "--executor", executor,
                 "--log-level", "debug", *args],
                stdout=log, stderr=log, env=self.env,
                preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                 files)))

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_log(self, text, seconds=30):
        wait_until(lambda: text in self.log(), f"the worker to log {text!r}", seconds)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=30):
        return self.process.wait(seconds)

    def stop(self, seconds=30):
        """SIGTERM; answers the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def spooled(self):
        found = []
        for folder, _, names in os.walk(self.state):
            found += [os.path.join(folder, n) for n in names if n.endswith(".result")]
        return found


def family(number=1, **options):
    """Jobs of one family whose bodies are not split."""
    return Family(number, **{"budget": "prov:default", "px": [], **options})


def body(text="Hello", **members):
    return json.dumps({"model": "m", "max_tokens": 9,
                       "messages": [{"role": "user", "content": text}], **members})


def enqueue(store, what, count=1, **fields):
    return store.enqueue(what, count, **{"upstream": "prov", "body": body(), **fields})


# Stored parts as the scheduler writes them: the tools tier names the model, the system
# tier is shared, the job's own part holds the messages and the tail.
TOOLS = 'px1 A T c - - - 5m 4 0 {}\n{"model":"m"'
SYSTEM = 'px1 A S c - 10 21 5m 5000 0 {}\n,"system":"Be brief."'
MARKED = ('{"model":"m","system":[{"type":"text","text":"Be brief.",'
          '"cache_control":{"type":"ephemeral"}}]')


def split_jobs(store, count, marks=2, head=""):
    """Jobs whose bodies are stored in parts; answers their family and ids."""
    jobs = Family(7, budget="prov:default", px=[node(6), node(7)])
    own, tail = ',"messages":[{"role":"user","content":"Why?"}]', ',"max_tokens":9}'
    slim = f"slim1 own\nupstream prov\n{head}\nown1 A --- 0 - ------ 0 {len(own)}\n{own}{tail}"
    ids = [store.add(upstream="prov", body="x") for _ in range(count)]
    answer = store.admit(ids[-1], families=[jobs], slims=[(id, slim) for id in ids],
                         segments=[(node(6), TOOLS), (node(7), SYSTEM)],
                         runs=[(jobs, "n", [id + "~" for id in ids])], gone=ids)
    assert answer[0] == "OK", answer
    store.grant(jobs.lane, marks=marks)
    return jobs, ids


def wait_result(store, id, seconds=30):
    wait_until(lambda: store.result(id) is not None, f"the result of {id}", seconds)
    return json.loads(store.result(id))


@pytest.fixture
def provider():
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture
def start(store, provider):
    """Starts workers.  At the end of the test those still alive must stop in order."""
    workers = []

    def start_worker(**options):
        workers.append(WorkerProcess(store, provider, **options))
        return workers[-1]

    yield start_worker
    try:
        for worker in workers:
            if worker.process.poll() is None:
                assert worker.stop() == 0, worker.log()
    finally:
        for worker in workers:
            worker.close()
