"""Whom the simulated provider refuses, how it fails, and how long it takes."""

import json
import re
import socket
import time

import pytest

from provider import FAST, PREFIX, Answer, Provider, chat_body, digest, message_body, message_text
from provider_rig import PREFIX_TOKENS, in_threads, provider
from waiting import wait_until

# --- limits and keys -----------------------------------------------------------------


def test_input_limit_answers_429_with_the_time_to_wait(provider):
    provider.set(itpm=PREFIX_TOKENS + 1000)
    assert provider.message(message_body()).status == 200
    answer = provider.message(message_body(prefix="b" + PREFIX[1:]))
    assert answer.status == 429
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert "input tokens" in answer.json()["error"]["message"]
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    # What was cached is read for free.
    assert provider.read(message_body()) == PREFIX_TOKENS
    assert provider.stats()["refused"]["input_tokens"] == 1
    assert provider.stats()["requests_by_status"] == {"200": 2, "429": 1}


def test_output_is_reserved_by_max_tokens_and_given_back(provider):
    provider.set(otpm=10000, job_ms=400)
    body = message_body(max_tokens=4000)
    answers = in_threads(4, lambda i: provider.message(body))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200, 200, 429, 429]
    refused = next(a for a in answers if a.status == 429)
    assert "output tokens" in refused.json()["error"]["message"]
    assert provider.message(body).status == 200


def test_limit_headers_have_the_vendors_names_and_roundings(provider):
    provider.set(rpm=1000, itpm=450000, otpm=90000)
    headers = provider.message(message_body(max_tokens=4096)).headers
    assert headers["anthropic-ratelimit-requests-limit"] == "1000"
    assert headers["anthropic-ratelimit-requests-remaining"] == "999"
    assert headers["anthropic-ratelimit-input-tokens-limit"] == "450000"
    assert int(headers["anthropic-ratelimit-input-tokens-remaining"]) % 1000 == 0
    assert headers["anthropic-ratelimit-output-tokens-remaining"] == "86000"
    assert headers["anthropic-ratelimit-tokens-limit"] == "90000"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
                        headers["anthropic-ratelimit-output-tokens-reset"])
    provider.set(limit_headers="negative")
    headers = provider.message(message_body()).headers
    assert headers["anthropic-ratelimit-requests-remaining"] == "-1"
    provider.set(limit_headers="none")
    assert not [name for name in provider.message(message_body()).headers
                if "ratelimit" in name]


def test_spend_cap_is_a_429_without_retry_after(provider):
    provider.set(spend_cap=True)
    answer = provider.message(message_body())
    assert answer.status == 429
    assert "retry-after" not in answer.headers
    assert answer.json()["error"]["details"]["error_code"] == "enforced_spend_limit_reached"
    provider.set(spend_cap=False)
    assert provider.message(message_body()).status == 200


def test_acceleration_limit_refuses_a_sudden_crowd(provider):
    provider.set(acceleration_floor=5)
    statuses = [provider.message(message_body()).status for _ in range(5)]
    refused = [a for a in (provider.message(message_body()) for _ in range(40))
               if a.status == 429]
    assert statuses == [200] * 5
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert "acceleration" in refused[0].json()["error"]["message"]


KEYS = json.dumps({"keys": [{"key": "sk-red-1", "workspace": "red", "account": "acme"},
                            {"key": "sk-red-2", "workspace": "red", "account": "acme"},
                            {"key": "sk-blue", "workspace": "blue", "account": "acme"}]})


def test_keys_are_checked_and_workspaces_kept_apart(tmp_path):
    path = tmp_path / "provider.json"
    path.write_text(KEYS)
    with Provider(*FAST, "--config", str(path)) as running:
        body = message_body()
        for headers in ({}, {"x_api_key": "sk-wrong"},
                        {"x_api_key": "sk-red-1", "authorization": "Bearer sk-red-1"}):
            answer = running.message(body, **headers)
            assert answer.status == 401
            assert answer.json()["error"]["type"] == "authentication_error"
        running.usage(body, x_api_key="sk-red-1")
        assert running.read(body, authorization="Bearer sk-red-2") > 0
        assert running.read(body, x_api_key="sk-blue") == 0
        assert running.chat(chat_body()).json()["error"]["code"] == "invalid_api_key"


def test_classes_have_limits_of_their_own(tmp_path):
    path = tmp_path / "provider.json"
    path.write_text('{"rpm": 3, "classes": [{"name": "opus", "rpm": 1}]}')
    with Provider(*FAST, "--config", str(path)) as running:
        opus = [running.message(message_body(model="claude-opus-5")).status
                for _ in range(2)]
        sonnet = [running.message(message_body()).status for _ in range(4)]
    assert opus == [200, 429]
    assert sonnet == [200, 200, 200, 429]


# --- faults --------------------------------------------------------------------------


@pytest.mark.parametrize("fault, status, kind", [
    ("bad_request", 400, "invalid_request_error"),
    ("rate_limit", 429, "rate_limit_error"),
    ("server_error", 500, "api_error"),
    ("unavailable", 503, "overloaded_error"),
    ("overloaded", 529, "overloaded_error"),
])
def test_fault_with_a_status_does_no_work(provider, fault, status, kind):
    provider.set(fault_next=fault, fault_next_count=2, retry_after_ms=2500)
    for _ in range(2):
        answer = provider.message(message_body())
        assert answer.status == status
        assert answer.json()["error"]["type"] == kind
        if status in (429, 529):
            assert answer.headers["retry-after"] == "3"
    assert provider.message(message_body()).status == 200
    stats = provider.stats()
    assert stats["requests"] == 1
    assert stats["faults"] == {fault: 2}


@pytest.mark.parametrize("status, kind", [
    (401, "authentication_error"), (402, "billing_error"), (403, "permission_error"),
    (404, "not_found_error"), (409, "invalid_request_error"), (413, "request_too_large"),
    (504, "timeout_error"), (599, "api_error")])
def test_fault_status_is_whatever_was_asked_for(provider, status, kind):
    provider.set(fault_next="status", fault_next_count=2, fault_status=status)
    answer = provider.message(message_body())
    assert (answer.status, answer.json()["error"]["type"]) == (status, kind)
    chat = provider.chat(chat_body())
    assert chat.status == status
    assert chat.json()["error"]["type"] == \
        ("server_error" if status >= 500 else "invalid_request_error")


def test_an_overloaded_chat_is_a_503(provider):
    provider.set(fault_next="overloaded", fault_next_count=1)
    answer = provider.chat(chat_body())
    assert (answer.status, answer.json()["error"]["type"]) == (503, "server_error")


def test_script_of_faults_counts_down_and_survives_other_knobs(provider):
    provider.set(fault_next="server_error", fault_next_count=3)
    assert provider.message(message_body()).status == 500
    assert provider.set(job_ms=1)["fault_next_count"] == 2
    statuses = [provider.message(message_body()).status for _ in range(3)]
    assert statuses == [500, 500, 200]


def test_fault_refuse_resets_without_a_byte(provider):
    provider.set(fault_next="refuse", fault_next_count=1)
    with pytest.raises(ConnectionError):
        provider.message(message_body())
    assert provider.stats()["unanswered"] == 1
    assert provider.message(message_body()).status == 200


def test_fault_hang_says_nothing_until_the_client_goes(provider):
    provider.set(fault_next="hang", fault_next_count=1)
    connection = provider.begin(message_body())
    wait_until(lambda: provider.stats()["faults"] == {"hang": 1}, "the fault")
    connection.sock.settimeout(0.05)
    with pytest.raises(socket.timeout):
        connection.sock.recv(1)
    connection.close()
    wait_until(lambda: provider.stats()["connections"] == 1, "its end")


@pytest.mark.parametrize("stream", [True, False])
def test_fault_lose_reply_does_the_work(provider, stream):
    provider.set(fault_next="lose_reply", fault_next_count=1)
    with pytest.raises(ConnectionError):
        provider.message(message_body(stream=stream))
    assert provider.read(message_body()) == PREFIX_TOKENS
    assert provider.stats()["tokens_output"] == 128


@pytest.mark.parametrize("stream", [True, False])
def test_fault_cut_ends_in_the_middle(provider, stream):
    provider.set(fault_next="cut", fault_next_count=1)
    answer = provider.message(message_body(stream=stream))
    assert answer.status == 200
    assert not answer.whole
    assert b"message" in answer.bytes
    assert b"message_stop" not in answer.bytes
    assert provider.read(message_body()) == PREFIX_TOKENS


def test_fault_cut_usage_shows_no_usage(provider):
    provider.set(fault_next="cut_usage", fault_next_count=2)
    assert provider.message(message_body(stream=True)).bytes == b""
    answer = provider.chat(chat_body(stream=True, stream_options={"include_usage": True}))
    assert not answer.whole
    assert b"finish_reason\":\"stop" in answer.bytes
    assert b"prompt_tokens" not in answer.bytes


def test_fault_stream_error_is_an_event_after_200(provider):
    provider.set(fault_next="stream_error", fault_next_count=2)
    answer = provider.message(message_body(stream=True))
    assert answer.status == 200
    name, data = answer.events()[-1]
    assert name == "error"
    assert data["error"]["type"] == "overloaded_error"
    last = provider.chat(chat_body(stream=True)).events()[-1][1]
    assert last["error"]["type"] == "server_error"


def test_fault_stream_error_of_a_whole_answer_is_a_late_500(provider):
    provider.set(fault_next="stream_error", fault_next_count=1)
    answer = provider.message(message_body())
    assert answer.status == 500
    assert provider.read(message_body()) == PREFIX_TOKENS


@pytest.mark.parametrize("stream", [True, False])
def test_fault_stall_holds_the_line(provider, stream):
    provider.set(fault_next="stall", fault_next_count=1)
    connection = provider.begin(message_body(stream=stream))
    response = connection.getresponse()
    assert response.status == 200
    sock = connection.sock or response.fp.raw._sock
    sock.settimeout(120 if stream else 0.05)
    if stream:
        first = response.read1()
        assert b"message_start" in first and b"content_block" not in first
        sock.settimeout(0.05)
    with pytest.raises(socket.timeout):
        response.read1()
    assert provider.stats()["concurrency"] == 1
    response.close()
    connection.close()
    wait_until(lambda: provider.stats()["concurrency"] == 0, "its end")


@pytest.mark.parametrize("stream", [True, False])
def test_fault_drip_is_slow_and_whole(provider, stream):
    provider.set(fault_next="drip", fault_next_count=1, drip_bytes=40, drip_ms=5)
    began = time.monotonic()
    answer = provider.message(message_body(stream=stream))
    assert answer.whole
    assert time.monotonic() - began >= len(answer.bytes) // 40 * 0.003 > 0.02
    if stream:
        assert message_text(answer.events()).startswith("echo " + digest("Why?"))
    else:
        assert answer.json()["content"][0]["text"].startswith("echo " + digest("Why?"))


@pytest.mark.parametrize("stream", [True, False])
def test_fault_garbage_is_not_the_protocol(provider, stream):
    provider.set(fault_next="garbage", fault_next_count=1)
    answer = provider.message(message_body(stream=stream))
    assert answer.status == 200
    with pytest.raises(ValueError):
        if stream:
            answer.events()
        else:
            answer.json()


def test_fault_rates_hit_about_their_share(provider):
    provider.set(fault_overloaded_permille=500)
    statuses = [provider.message(message_body()).status for _ in range(100)]
    assert 20 < statuses.count(529) < 80
    assert statuses.count(200) + statuses.count(529) == 100


# --- time ----------------------------------------------------------------------------


def test_answers_that_are_kept_waiting_begin_when_they_are_told(provider):
    provider.set(keep_waiting=True, job_ms=300)
    asked = [provider.begin(message_body(question)) for question in ("One?", "Two?")]
    wait_until(lambda: provider.stats()["concurrency"] == 2, "both requests")
    provider.set(deltas=2)  # another knob tells nobody to go on
    assert (provider.stats()["concurrency"], provider.stats()["duplicate_writes"]) == (2, 1)
    began = time.monotonic()
    provider.set(keep_waiting=False)
    for connection in asked:
        assert Answer(connection.getresponse()).json()["usage"]["output_tokens"] == 64
        connection.close()
    assert time.monotonic() - began > 0.298, "the job takes its time after its first byte"
    assert provider.read(message_body()) == PREFIX_TOKENS


def test_first_byte_waits_for_prefill_and_the_last_for_the_job():
    with Provider("--latency-ms", "100", "--latency-spread-permille", "0",
                  "--prefill-tokens-per-second", "20000", "--job-ms", "300") as running:
        def timeline(body):
            start = time.monotonic()
            connection = running.begin(body)
            response = connection.getresponse()
            first = time.monotonic() - start
            response.read()
            return first, time.monotonic() - start

        cold = timeline(message_body(stream=True))
        running.set(prefill_tokens_per_second=1)  # an hour, for what is not read
        warm = timeline(message_body(stream=True))
    prefill = PREFIX_TOKENS / 20000
    # Lower bounds are exact; a machine may always be slower.
    assert cold[0] > 0.1 + prefill - 0.002
    assert cold[1] > 0.4 + prefill - 0.002
    assert warm[0] > 0.1 - 0.002
    assert warm[1] > 0.4 - 0.002


def test_five_hundred_streams_at_once():
    with Provider(*FAST, "--job-ms", "1500") as running:
        body = json.dumps(message_body(prefix="x" * 8000, stream=True)).encode()
        request = (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
                   b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)) + body
        sockets = [running.socket() for _ in range(500)]
        for sock in sockets:
            sock.sendall(request)
        for sock in sockets:
            data = b""
            while True:
                part = sock.recv(65536)
                if not part:
                    break
                data += part
            sock.close()
            assert b"message_stop" in data
        stats = running.stats()
    assert stats["peak_concurrency"] == 500
    assert stats["requests_by_status"] == {"200": 500}
