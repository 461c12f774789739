"""provider.py - the simulated provider for tests: start it, ask it, read its answers.

    with Provider("--job-ms", "50") as provider:
        answer = provider.message(message_body())
        assert provider.stats()["writes"] == 1

Every provider listens on a free port of its own and is stopped with its test.
"""

import http.client
import json
import os
import socket
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("WARMQ_BUILD", os.path.join(ROOT, "build"))
PROGRAM = os.path.join(BUILD, "provider", "warmq-provider")
TIMEOUT_S = 120
FAST = ("--latency-ms", "0", "--prefill-tokens-per-second", "0",
        "--decode-tokens-per-second", "0")
VERSION = {"anthropic-version": "2023-06-01"}
PREFIX = "Answer in one sentence and name the paragraph. " * 400  # 4,700 tokens


def digest(text):
    """FNV-1a, 64 bits: what an answer says about its question."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def message_body(question="Why?", prefix=PREFIX, marker="5m", **members):
    system = [{"type": "text", "text": prefix}]
    if marker:
        system[0]["cache_control"] = {"type": "ephemeral", "ttl": marker}
    body = {"model": "claude-sonnet-5", "max_tokens": 100, "system": system,
            "messages": [{"role": "user", "content": question}]}
    body.update(members)
    return body


def chat_body(question="Why?", prefix=PREFIX, model="gpt-5.5", **members):
    body = {"model": model, "max_completion_tokens": 100,
            "messages": [{"role": "system", "content": prefix},
                         {"role": "user", "content": question}]}
    body.update(members)
    return body


class Answer:
    """Status, headers and bytes of one answer; `whole` is false if it was cut off."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.whole = True
        try:
            self.bytes = response.read()
        except http.client.IncompleteRead as cut:
            self.bytes = cut.partial
            self.whole = False

    def json(self):
        return json.loads(self.bytes)

    def events(self):
        return list(parse_events(self.bytes))


def parse_events(data):
    """(event, JSON or text) of a stream, by the standard: comments and CRLF are fine."""
    text = data.decode().replace("\r\n", "\n")
    for frame in text.split("\n\n"):
        name, lines = None, []
        for line in frame.split("\n"):
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "data":
                lines.append(value)
        if lines:
            joined = "\n".join(lines)
            yield name, joined if joined == "[DONE]" else json.loads(joined)


def message_text(events):
    """The text of a message stream."""
    return "".join(data["delta"]["text"] for name, data in events
                   if name == "content_block_delta" and data["delta"]["type"] == "text_delta")


class Provider:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.port = json.loads(line)["port"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop() == 0

    def stop(self):
        """Ends it and answers its exit code; what it said in error is shown."""
        self.process.terminate()
        errors = self.process.communicate(timeout=TIMEOUT_S)[1]
        assert errors == "", errors
        return self.process.returncode

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)

    def ask(self, method, path, body=None, headers=None, connection=None):
        own = connection or self.connect()
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        own.request(method, path, body=body, headers=headers or {})
        answer = Answer(own.getresponse())
        if not connection:
            own.close()
        return answer

    def begin(self, body):
        """A message under way; answers the connection that its answer comes on."""
        connection = self.connect()
        connection.request("POST", "/v1/messages", json.dumps(body), VERSION)
        return connection

    def message(self, body, connection=None, **headers):
        headers = {**VERSION,
                   **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.ask("POST", "/v1/messages", body, headers, connection)

    def chat(self, body, **headers):
        return self.ask("POST", "/v1/chat/completions", body,
                        {name.replace("_", "-"): value for name, value in headers.items()})

    def usage(self, body, **headers):
        answer = self.message(body, **headers)
        assert answer.status == 200, answer.bytes
        return answer.json()["usage"]

    def read(self, body, **headers):
        """The tokens a message read from the cache."""
        return self.usage(body, **headers)["cache_read_input_tokens"]

    def stats(self):
        return self.ask("GET", "/stats").json()

    def set(self, **knobs):
        answer = self.ask("POST", "/knobs", knobs)
        assert answer.status == 200, answer.bytes
        return answer.json()

    def reset(self):
        assert self.ask("POST", "/reset").status == 200
