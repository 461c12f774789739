"""What the simulated provider answers to a message: its words, its usage, and the noise between."""

import json
import re

import pytest

from provider import FAST, Provider, chat_body, digest, message_body, message_text
from provider_rig import MARK, PREFIX_TOKENS, TOOL, in_threads, marked, provider

# --- messages ------------------------------------------------------------------------


def test_message_answers_its_question_in_the_vendors_shape(provider):
    answer = provider.message(message_body("What is 7?"))
    message = answer.json()
    assert answer.status == 200
    assert answer.headers["request-id"].startswith("req_")
    assert message["type"] == "message" and message["role"] == "assistant"
    assert message["model"] == "claude-sonnet-5"
    assert message["stop_reason"] == "end_turn"
    assert message["content"][0]["text"].startswith("echo " + digest("What is 7?"))
    assert message["usage"] == {
        "input_tokens": 3, "cache_creation_input_tokens": PREFIX_TOKENS,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": PREFIX_TOKENS,
                           "ephemeral_1h_input_tokens": 0},
        "output_tokens": 64, "service_tier": "standard", "inference_geo": "global"}


def test_second_message_reads_what_the_first_wrote(provider):
    provider.usage(message_body())
    usage = provider.usage(message_body("How?"))
    assert usage["cache_read_input_tokens"] == PREFIX_TOKENS
    assert usage["cache_creation_input_tokens"] == 0
    stats = provider.stats()
    assert (stats["writes"], stats["duplicate_writes"], stats["reads"]) == (1, 0, 1)
    assert stats["tokens_read"] + stats["tokens_written"] + stats["tokens_uncached"] == \
        stats["tokens_total"]
    assert stats["prefixes"][0]["tokens"] == PREFIX_TOKENS
    assert stats["prefixes"][0]["readable"]


def test_naive_burst_of_eight_writes_eight_times():
    with Provider(*FAST, "--latency-ms", "300", "--latency-spread-permille", "0") as running:
        in_threads(8, lambda i: running.message(message_body(f"{i}?")).status)
        stats = running.stats()
    assert stats["writes"] == 8
    assert stats["duplicate_writes"] == 7
    assert stats["peak_writers"] == 8
    assert stats["peak_concurrency"] == 8


def test_leader_then_seven_writes_once(provider):
    provider.set(job_ms=300)
    connection = provider.begin(message_body(stream=True))
    leader = connection.getresponse()  # the head comes with the first byte
    reads = in_threads(7, lambda i: provider.read(message_body(f"{i}?")))
    assert reads == [PREFIX_TOKENS] * 7
    assert b"message_stop" in leader.read()
    stats = provider.stats()
    assert (stats["writes"], stats["duplicate_writes"]) == (1, 0)
    assert stats["peak_writers"] == 1


def test_every_one_of_many_gets_the_answer_to_its_own_question(provider):
    def ask(i):
        text = provider.message(message_body(f"Question {i}?")).json()["content"][0]["text"]
        return text.startswith("echo " + digest(f"Question {i}?"))

    assert all(in_threads(40, ask))


def test_stream_has_all_events_in_order_and_the_text_of_the_whole(provider):
    whole = provider.message(message_body()).json()
    answer = provider.message(message_body(stream=True))
    events = answer.events()
    assert answer.headers["content-type"].startswith("text/event-stream")
    names = [name for name, _ in events]
    assert names[:3] == ["message_start", "ping", "content_block_start"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(names[3:-3]) == {"content_block_delta"}
    assert all(name == data["type"] for name, data in events)
    start = events[0][1]["message"]
    assert start["content"] == [] and start["stop_reason"] is None
    assert start["usage"]["cache_read_input_tokens"] == PREFIX_TOKENS
    assert message_text(events) == whole["content"][0]["text"]
    assert events[-2][1]["delta"]["stop_reason"] == whole["stop_reason"]
    assert events[-2][1]["usage"] == {"output_tokens": 64}


def assemble(events):
    """A message from its events, as an SDK does it."""
    message, inputs = None, {}
    for _, data in events:
        if data["type"] == "message_start":
            message = data["message"]
        elif data["type"] == "content_block_start":
            message["content"].append(data["content_block"])
        elif data["type"] == "content_block_delta":
            block, delta = message["content"][data["index"]], data["delta"]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            elif delta["type"] == "thinking_delta":
                block["thinking"] += delta["thinking"]
            elif delta["type"] == "signature_delta":
                block["signature"] += delta["signature"]
            elif delta["type"] == "citations_delta":
                block["citations"].append(delta["citation"])
            elif delta["type"] == "input_json_delta":
                inputs[data["index"]] = inputs.get(data["index"], "") + delta["partial_json"]
        elif data["type"] == "message_delta":
            message.update(data["delta"])
    for index, text in inputs.items():
        message["content"][index]["input"] = json.loads(text)
    return message


@pytest.mark.parametrize("answer", ["text", "thinking", "tool_use", "citations",
                                    "server_tool"])
def test_stream_of_every_kind_assembles_to_the_whole_answer(provider, answer):
    provider.set(answer=answer)
    whole = provider.message(message_body()).json()
    streamed = assemble(provider.message(message_body(stream=True)).events())
    for message in (whole, streamed):
        for block in message["content"]:
            block.pop("id", None)
            block.pop("tool_use_id", None)
    assert streamed["content"] == whole["content"]
    assert streamed["stop_reason"] == whole["stop_reason"]


def test_unknown_delta_is_in_the_stream_only_when_asked_for(provider):
    provider.set(answer="unknown_delta")
    events = provider.message(message_body(stream=True)).events()
    assert "hologram_delta" in [data["delta"]["type"] for name, data in events
                                if name == "content_block_delta"]


def test_forced_tool_and_thinking_shape_the_answer(provider):
    tools = [{"name": "look_up", "input_schema": {"type": "object"}}]
    forced = provider.message(message_body(
        tools=tools, tool_choice={"type": "tool", "name": "look_up"})).json()
    assert forced["content"][0]["name"] == "look_up"
    assert forced["content"][0]["input"] == {"echo": digest("Why?")}
    assert forced["stop_reason"] == "tool_use"
    thinking = provider.message(message_body(
        max_tokens=2000, thinking={"type": "enabled", "budget_tokens": 1024})).json()
    assert [block["type"] for block in thinking["content"]] == ["thinking", "text"]


def test_short_max_tokens_cuts_the_answer(provider):
    message = provider.message(message_body(max_tokens=10)).json()
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] == 10


def test_max_tokens_zero_writes_and_says_nothing(provider):
    message = provider.message(message_body(".", max_tokens=0)).json()
    assert message["content"] == []
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] == 0
    assert message["usage"]["cache_creation_input_tokens"] == PREFIX_TOKENS
    assert provider.read(message_body()) == PREFIX_TOKENS


@pytest.mark.parametrize("answer", ["auto", "tool_use", "thinking"])
def test_a_warm_up_stops_at_its_bound_whatever_answers_are_made_of(provider, answer):
    provider.set(answer=answer)
    reply = provider.message(message_body(max_tokens=0)).json()
    assert (reply["content"], reply["stop_reason"]) == ([], "max_tokens")


HOUR = {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize("change, words", [
    ({"model": None}, "model: Field required"),
    ({"messages": []}, "at least one message"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "first message must use"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
    ({"messages": [{"role": "user", "content": " \n"}]}, "must be non-empty"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
     "must be non-empty"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "  "}]}]},
     "non-whitespace"),
    ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "type: Field required"),
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"stream": "yes"}, "stream"),
    ({"temprature": 1}, "temprature: Extra inputs are not permitted"),
    ({"system": [marked(), marked(), marked(), marked(), marked()]}, "maximum of 4"),
    ({"system": [marked(), marked(marker=HOUR)]}, "must not come after"),
    ({"system": [marked(marker={"type": "eternal"})]}, "must be 'ephemeral'"),
    ({"system": [marked(marker={"type": "ephemeral", "ttl": "2h"})]}, "'5m' or '1h'"),
    ({"system": [marked("")]}, "cannot be set for empty text"),
    ({"messages": [{"role": "user", "content": "x"},
                   {"role": "assistant", "content": [
                       {"type": "thinking", "thinking": "x", "signature": "y",
                        "cache_control": MARK}]}]}, "Extra inputs"),
    ({"tools": [dict(TOOL, defer_loading=True, cache_control=MARK)]}, "defer_loading"),
    ({"cache_control": HOUR, "messages": [{"role": "user", "content": [marked()]}]},
     "different ttl"),
    ({"cache_control": MARK, "system": [marked(), marked(), marked(), marked()]},
     "needs one of the 4"),
    ({"tool_choice": {"type": "any"}}, "while providing tools"),
    ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "1024"),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "must be greater"),
    ({"max_tokens": 0, "stream": True}, "stream"),
    ({"max_tokens": 0, "thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
    ({"max_tokens": 0, "output_config": {"format": {"type": "json_schema"}}}, "format"),
    ({"max_tokens": 0, "tools": [TOOL], "tool_choice": {"type": "any"}}, "tool_choice"),
    ({"max_tokens": 0, "tools": [TOOL], "tool_choice": {"type": "tool", "name": "t"}},
     "tool_choice"),
])
def test_wrong_message_is_a_400_that_names_the_place(provider, change, words):
    body = {**message_body(), **change}
    body = {name: value for name, value in body.items() if value is not None}
    answer = provider.message(body)
    assert answer.status == 400, answer.bytes
    error = answer.json()
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert words in error["error"]["message"]
    assert error["request_id"] == answer.headers["request-id"]
    assert provider.stats()["requests"] == 0


def test_adaptive_thinking_goes_with_max_tokens_zero(provider):
    body = message_body(max_tokens=0, thinking={"type": "adaptive"})
    assert provider.message(body).status == 200


def test_missing_version_and_broken_json_are_400(provider):
    assert provider.ask("POST", "/v1/messages", message_body()).status == 400
    for body in ("", "{", '{"model":"x"}}', '"text"', '{"a":"\ud800"}'.encode(
            "utf-8", "surrogatepass"), b'{"a":"\\ud800"}', b'{"a":"\xff"}',
            b'{"a":"' + b"x" * 600 + b'\\q"}', b'{"a":"' + b"x" * 600 + b'\n"}'):
        assert provider.message(body).status == 400, body


def test_unknown_model_is_404_when_models_are_listed(tmp_path):
    path = tmp_path / "provider.json"
    path.write_text('{"models": [{"name": "claude-*"}]}')
    with Provider(*FAST, "--config", str(path)) as running:
        assert running.message(message_body()).status == 200
        answer = running.message(message_body(model="parrot-1"))
        assert answer.status == 404
        assert answer.json()["error"]["type"] == "not_found_error"


# --- usage ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1, 2, 3])
def test_usage_shapes_of_a_stream(provider, shape):
    provider.usage(message_body())
    provider.set(usage_shape=shape)
    events = provider.message(message_body(stream=True)).events()
    start, late = events[0][1]["message"]["usage"], events[-2][1]["usage"]
    assert late["output_tokens"] == 64
    if shape == 3:
        assert start["input_tokens"] == PREFIX_TOKENS + 1
        assert "cache_read_input_tokens" not in start
    else:
        assert start["input_tokens"] == 1
        assert start["cache_read_input_tokens"] == PREFIX_TOKENS
    if shape == 1:
        assert late == {"output_tokens": 64}
    else:
        assert late["input_tokens"] == 1
        assert late["cache_read_input_tokens"] == PREFIX_TOKENS
    if shape == 2:
        assert late["iterations"][0]["cache_read_input_tokens"] == PREFIX_TOKENS


@pytest.mark.parametrize("way", ["null", "absent", "zero"])
def test_usage_may_be_unknown_in_three_ways(provider, way):
    provider.set(usage_unknown_permille=1000, usage_unknown_as=way)
    provider.usage(message_body())
    usage = provider.usage(message_body())
    assert usage["input_tokens"] == PREFIX_TOKENS + 1
    if way == "absent":
        assert "cache_read_input_tokens" not in usage
        assert "cache_creation" not in usage
    else:
        value = None if way == "null" else 0
        assert usage["cache_read_input_tokens"] == value
        assert usage["cache_creation_input_tokens"] == value
    assert provider.stats()["reads"] == 1  # it was read, and nobody is told


# --- noise ---------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [
    {"sse_ping_every": 1}, {"sse_comments": True}, {"sse_unknown": True},
    {"sse_padding": True}, {"sse_crlf": True}, {"sse_split": True},
    {"sse_ping_every": 2, "sse_comments": True, "sse_unknown": True, "sse_padding": True,
     "sse_crlf": True, "sse_split": True},
])
def test_noise_changes_no_answer(provider, noise):
    quiet = message_text(provider.message(message_body(stream=True)).events())
    quiet_bytes = provider.message(message_body(stream=True)).bytes
    provider.set(**noise)
    answer = provider.message(message_body(stream=True))
    assert message_text(answer.events()) == quiet
    if noise != {"sse_split": True}:
        assert answer.bytes != quiet_bytes
    known = [name for name, _ in answer.events() if name not in ("ping", "weather_report")]
    assert known[0] == "message_start" and known[-1] == "message_stop"
    chat = provider.chat(chat_body(stream=True))
    assert chat.events()[-1][1] == "[DONE]"


def test_split_sends_events_in_pieces(provider):
    provider.set(sse_split=True)
    with provider.socket() as sock:
        body = json.dumps(message_body(stream=True)).encode()
        sock.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
                     b"content-length: %d\r\n\r\n" % len(body) + body)
        data = b""
        while not data.endswith(b"\r\n0\r\n\r\n"):
            data += sock.recv(65536)
    sizes = re.findall(rb"\r\n([0-9a-f]+)\r\n", data)
    assert len(sizes) >= 2 * 12  # twelve events and more, each in two chunks
