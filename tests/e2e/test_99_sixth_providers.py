"""Attacks by a sixth one: providers that say what is true in words of their own."""

import http.server
import json
import threading
from contextlib import contextmanager

from fleet import Fleet, anthropic_body, long_text, wait_until


class Answers(http.server.BaseHTTPRequestHandler):
    """Each request gets what the server's `answer` makes of it: status, type, bytes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        status, kind, answer = self.server.answer(len(self.server.bodies), body)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@contextmanager
def provider(answer):
    """A server of ours in the provider's place; `bodies` are those of its requests."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.answer, server.bodies, server.daemon_threads = answer, [], True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class StrangeFleet(Fleet):
    """Its provider is one of ours."""

    def __init__(self, directory, server, *options, **more):
        super().__init__(directory, *options, **more)
        self.server = server

    def start_provider(self):
        self.provider = f"http://127.0.0.1:{self.server.server_port}"


def as_json(status, body):
    return status, "application/json", json.dumps(body).encode()


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
           "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn",
           "usage": {"input_tokens": 9, "cache_creation_input_tokens": 0,
                     "cache_read_input_tokens": 0, "output_tokens": 1}}


def test_an_account_without_money_kills_no_job(tmp_path):
    """It is a 400 of type invalid_request_error, and only its sentence says it: each job of
    the queue was sent, refused and dead within seconds."""
    poor = {"type": "error", "error": {
        "type": "invalid_request_error", "message": "Your credit balance is too low to access "
        "the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}
    rich = threading.Event()

    def answer(_, __):
        return as_json(200, MESSAGE) if rich.is_set() else as_json(400, poor)

    with provider(answer) as server, StrangeFleet(tmp_path, server) as fleet:
        fleet.start_all(slots=4)
        fleet.enqueue([anthropic_body(f"{n}") for n in range(40)])
        wait_until(lambda: "spend" in fleet.log("scheduler"), "the account to be parked")
        asked = len(server.bodies)
        assert asked <= 8, asked
        assert fleet.pop_results({}) == {}
        rich.set()
        budget = fleet.redis("HGET", "warmq:pools", "default").decode()
        fleet.warmq("budget", "unpark", budget)
        results = fleet.collect(40)
        assert {one["state"] for one in results.values()} == {"done"}


def test_a_limit_that_a_gateway_tells_in_a_200_costs_no_attempt(tmp_path):
    """It has said 200 before the provider answers, and gives the status as a number in the
    body: jobs were dead after two attempts in a second."""
    limited = {"error": {"code": 429, "message": "rate limited upstream", "metadata": {}}}
    chat = {"id": "c", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "yes"},
         "finish_reason": "stop"}]}
    stream = b"data: " + json.dumps(limited).encode() + b"\n\n"

    def answer(number, _):
        if number <= 4:
            return as_json(200, limited) if number % 2 else (200, "text/event-stream", stream)
        return as_json(200, chat)

    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Why?"}]})
    with provider(answer) as server, StrangeFleet(tmp_path, server,
                                                  dialect="openai-chat") as fleet:
        fleet.start_all()
        fleet.enqueue([body], attempts="2")
        (result,) = fleet.collect(1).values()
        assert (result["state"], result["attempts"]) == ("done", 0), result


def test_a_job_may_be_as_large_as_the_configuration_says(tmp_path):
    """Above 8 MiB the scheduler let it in, and the worker refused it by a limit of its own."""
    with provider(lambda *_: as_json(200, MESSAGE)) as server, StrangeFleet(
            tmp_path, server, settings="  job_size_max: 64m\n") as fleet:
        fleet.start_all()
        bodies = [anthropic_body("x" * (size << 20)) for size in (9, 42)]
        fleet.enqueue(bodies)
        results = fleet.collect(2)
        assert {one["state"] for one in results.values()} == {"done"}, results
        assert sorted(map(len, server.bodies)) >= sorted(map(len, bodies))


def test_a_request_that_hangs_does_not_lead_its_family_for_ever(tmp_path):
    """It led, was stopped, and was the first in its queue again: it led until all others
    had waited for their hold_max and started cold."""
    awake, written = threading.Event(), []

    def answer(_, body):
        if b"hang" in body:
            awake.wait()
        usage = dict(MESSAGE["usage"], cache_read_input_tokens=3000)
        if not written:
            usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 3000}
            written.append(body)
        return as_json(200, dict(MESSAGE, usage=usage))

    prompt = long_text(3000)
    with provider(answer) as server, StrangeFleet(
            tmp_path, server, upstream_options="    hold_max: 20s\n") as fleet:
        try:
            fleet.start_all()
            fleet.enqueue([anthropic_body("hang" if n == 0 else f"{n}", prompt)
                           for n in range(20)], shared="system")
            results = fleet.collect(19)
            leaders = [b"hang" in body for body in server.bodies[:3]]
            assert leaders == [True, False, False], "another one leads, and one looks"
        finally:
            awake.set()
        assert len(fleet.pop_results(results)) == 20 or len(fleet.collect(1)) == 1
