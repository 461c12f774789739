"""The simulated provider over HTTP: what its manual says, said by the real program."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time

import pytest

from provider import (FAST, PREFIX, PROGRAM, TIMEOUT_S, Answer, Provider, chat_body, digest,
                      message_body, message_text, parse_events)
from waiting import wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PREFIX_TOKENS = (len(PREFIX) + 3) // 4


@pytest.fixture
def provider():
    with Provider(*FAST) as running:
        yield running


def in_threads(count, work):
    """Runs work(i) at once; answers the results in order."""
    results = [None] * count
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, work(i)))
               for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert all(result is not None for result in results)
    return results


# --- the program ---------------------------------------------------------------------


def run(*options):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)


def test_help_names_every_knob_and_the_exit_codes():
    done = run("--help")
    assert done.returncode == 0
    for knob in json.loads(run("--print-knobs").stdout):
        assert "--" + knob.replace("_", "-") in done.stdout
    assert "Exit codes" in done.stdout


def test_manual_lists_every_knob_with_its_default():
    with open(os.path.join(ROOT, "docs", "PROVIDER.md"), encoding="utf-8") as file:
        manual = file.read()
    for knob, value in json.loads(run("--print-knobs").stdout).items():
        default = {True: "true", False: "false"}.get(value, value) \
            if isinstance(value, bool) else value
        assert f"| `{knob}` | {default} |" in manual, knob


@pytest.mark.parametrize("options, words", [
    (["--nope"], "--nope"),
    (["--job-ms", "soon"], "job_ms must be a whole number"),
    (["--usage-shape", "0"], "usage_shape must be a whole number from 1 to 3"),
    (["--fault-status", "399"], "fault_status must be a whole number from 400 to 599"),
    (["--answer", "song"], "answer must be one of"),
    (["--fault-hang-permille", "600", "--fault-cut-permille", "600"], "add up to 1200"),
    (["extra"], "nothing to name"),
    (["--config", "/nonexistent.json"], "/nonexistent.json"),
])
def test_wrong_command_line_ends_with_2_and_a_sentence(options, words):
    done = run(*options)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("config, words", [
    ("{", "line 1"),
    ('{"job_mss": 1}', "did you mean job_ms"),
    ('{"models": [{"name": "x", "class": "y"}]}', 'In models, entry 1'),
    ('{"keys": [{"key": ""}]}', "In keys, entry 1"),
    ('{"classes": [{"name": "a", "rpmm": 1}]}', "not known"),
])
def test_wrong_config_ends_with_2_and_says_where(tmp_path, config, words):
    path = tmp_path / "provider.json"
    path.write_text(config)
    done = run("--config", str(path))
    assert done.returncode == 2
    assert words in done.stderr


def test_port_file_holds_the_port_while_it_runs(tmp_path):
    path = tmp_path / "port"
    with Provider("--port-file", str(path)) as running:
        wait_until(path.exists, "the port file")
        assert int(path.read_text()) == running.port
    assert not path.exists()


def test_a_closed_stream_is_never_a_socket(tmp_path):
    """Its number goes to the next thing that is opened: what is printed would go in there."""
    path = tmp_path / "port"
    with subprocess.Popen(["sh", "-c", 'exec "$0" --port-file "$1" <&- >&- 2>&-', PROGRAM,
                           str(path)]) as process:
        try:
            wait_until(path.exists, "the port file")
            streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        finally:
            process.terminate()
    assert streams == ["/dev/null"] * 3
    assert process.returncode == 0


def test_port_in_use_ends_with_1_and_leaves_the_other_port_file_alone(provider, tmp_path):
    path = tmp_path / "port"
    path.write_text("1\n")
    done = run("--port", str(provider.port), "--port-file", str(path))
    assert done.returncode == 1
    assert "Choose another --port" in done.stderr
    assert path.read_text() == "1\n"


def test_listens_on_loopback_only(provider):
    with open("/proc/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file if line.split()[3] == "0A"]
    bound = [line[1] for line in lines if line[1].endswith(f":{provider.port:04X}")]
    assert bound == [f"0100007F:{provider.port:04X}"]


def test_flags_win_over_the_file_and_both_over_defaults(tmp_path):
    path = tmp_path / "provider.json"
    path.write_text('{"job_ms": 10, "otpm": 20}')
    done = run("--config", str(path), "--otpm", "30", "--print-knobs")
    knobs = json.loads(done.stdout)
    assert (knobs["job_ms"], knobs["otpm"], knobs["itpm"]) == (10, 30, 0)


def test_sigterm_breaks_off_what_is_in_flight():
    with Provider(*FAST, "--job-ms", "60000") as running:
        connection = running.connect()
        connection.request("POST", "/v1/messages", json.dumps(message_body(stream=True)),
                           {"anthropic-version": "2023-06-01"})
        response = connection.getresponse()
        assert response.status == 200
        assert running.stop() == 0
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while response.read1():
                pass


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
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body(stream=True)),
                       {"anthropic-version": "2023-06-01"})
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


TOOL = {"name": "t", "input_schema": {}}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def marked(text="x", marker=None):
    return {"type": "text", "text": text, "cache_control": marker or MARK}


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


# --- what the cache sees -------------------------------------------------------------


def test_spelling_of_the_json_does_not_matter(provider):
    body = message_body()
    provider.usage(body)
    spaced = json.dumps(body, indent=3)
    turned = json.dumps(dict(reversed(body.items())))
    escaped = json.dumps(body).replace("Answer", "\\u0041nswer").replace("/", "\\/")
    for text in (spaced, turned, escaped):
        assert provider.read(text) == PREFIX_TOKENS


def test_one_letter_does_matter(provider):
    provider.usage(message_body())
    assert provider.read(message_body(prefix="a" + PREFIX[1:])) == 0


def test_plain_string_system_is_never_cached_but_automatic_mode_caches(provider):
    plain = message_body(system=PREFIX)
    for _ in range(2):
        usage = provider.usage(plain)
        assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0
    automatic = message_body(system=PREFIX, cache_control=MARK)
    assert provider.usage(automatic)["cache_creation_input_tokens"] == PREFIX_TOKENS + 1
    assert provider.read(automatic) == PREFIX_TOKENS + 1
    # It wrote at the tail: another question shares nothing.
    assert provider.read(message_body("How?", system=PREFIX, cache_control=MARK)) == 0


def test_string_content_equals_one_text_block(provider):
    body = message_body()
    body["messages"] = [{"role": "user", "content": "First."},
                        {"role": "assistant", "content": "Yes."},
                        {"role": "user", "content": [marked("Go on.")]}]
    provider.usage(body)
    body["messages"][0]["content"] = [{"type": "text", "text": "First."}]
    assert provider.usage(body)["cache_creation_input_tokens"] == 0


@pytest.mark.parametrize("change, reads", [
    ({"max_tokens": 50}, True),
    ({"temperature": 0.5}, True),
    ({"metadata": {"user_id": "x"}}, True),
    ({"tools": [TOOL, dict(TOOL, name="u")], "tool_choice": {"type": "auto"}}, False),
    ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "t"}}, True),
    ({"model": "claude-opus-5"}, False),
    ({"service_tier": "standard_only"}, False),
    ({"thinking": {"type": "adaptive"}}, False),
    ({"output_config": {"effort": "low"}}, False),
    ({"output_config": {"effort": "high"}}, True),
    ({"output_config": {"format": {"type": "json_schema"}}}, False),
    ({"speed": "fast"}, False),
    ({"messages": [{"role": "user", "content": [
        {"type": "document", "source": {"type": "text", "data": "x"},
         "citations": {"enabled": True}}]}]}, False),
])
def test_settings_that_reach_the_system_tier_break_it(provider, change, reads):
    provider.usage(message_body(tools=[TOOL]))
    assert (provider.read(message_body(**{"tools": [TOOL], **change})) > 0) == reads


@pytest.mark.parametrize("change", [
    {"tool_choice": {"type": "any"}},
    {"messages": [{"role": "user", "content": [
        {"type": "text", "text": PREFIX, "cache_control": MARK},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}}]}]},
])
def test_settings_of_the_messages_tier_leave_the_system_alone(provider, change):
    deep = {"role": "user", "content": [marked(PREFIX), {"type": "text", "text": "Why?"}]}
    body = message_body(tools=[TOOL], messages=[deep])
    provider.usage(body)
    tools_and_system = provider.read(message_body(tools=[TOOL]))
    assert provider.read(body) == tools_and_system + PREFIX_TOKENS
    assert provider.read({**body, **change}) == tools_and_system


def test_betas_matter_as_a_set(provider):
    provider.usage(message_body(), anthropic_beta="a-1,b-2")
    assert provider.read(message_body(), anthropic_beta="b-2, a-1") > 0
    assert provider.read(message_body(), anthropic_beta="a-1") == 0


@pytest.mark.parametrize("tokens, cached", [(511, False), (512, True)])
def test_minimum_depends_on_the_model(provider, tokens, cached):
    body = message_body(prefix="x" * tokens * 4, model="claude-opus-5")
    provider.usage(body)
    assert (provider.read(body) > 0) == cached
    assert provider.read({**body, "model": "claude-sonnet-5"}) == 0


@pytest.mark.parametrize("kind, hit", [("text", False), ("tool_use", True)])
def test_lookback_of_25_blocks(provider, kind, hit):
    provider.usage(message_body())
    if kind == "text":
        blocks = [{"type": "text", "text": f"Block {i}."} for i in range(25)]
    else:
        blocks = [{"type": "tool_use", "id": f"t{i}", "name": "t", "input": {}}
                  for i in range(25)]
    blocks[-1]["cache_control"] = MARK
    body = message_body(marker=None, messages=[{"role": "user", "content": "Why?"},
                                               {"role": "assistant", "content": blocks},
                                               {"role": "user", "content": "Go on."}])
    assert (provider.read(body) > 0) == hit


def test_old_models_drop_thinking_after_a_plain_turn(provider):
    history = [{"role": "user", "content": "One."},
               {"role": "assistant", "content": [
                   {"type": "thinking", "thinking": "hmm " * 50, "signature": "x"},
                   {"type": "text", "text": "Two.", "cache_control": MARK}]}]
    result = [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}]
    plain = [{"role": "user", "content": "Three."}]
    for model, kept in (("claude-sonnet-4-5", False), ("claude-sonnet-5", True)):
        provider.reset()
        provider.usage(message_body(model=model, messages=history + result))
        read = provider.read(message_body(model=model, messages=history + plain))
        assert (read > PREFIX_TOKENS) == kept


def test_deduplicated_count_of_tokens_costs_nothing(provider):
    answer = provider.ask("POST", "/v1/messages/count_tokens",
                          {"model": "claude-sonnet-5", "system": PREFIX,
                           "messages": [{"role": "user", "content": "12345"}]},
                          {"anthropic-version": "2023-06-01"})
    assert answer.json() == {"input_tokens": PREFIX_TOKENS + 2}
    assert provider.stats()["requests"] == 0


# --- lag, life and death of entries --------------------------------------------------


def test_visibility_lag_hides_the_entry_for_a_while(provider):
    provider.set(visibility_lag_ms=400)
    provider.usage(message_body())
    assert provider.read(message_body()) == 0
    assert provider.stats()["duplicate_writes"] == 1
    wait_until(lambda: provider.read(message_body()) > 0, "the entry")


def test_entry_dies_after_its_lifetime(provider):
    provider.set(ttl_permille=1)  # 300 ms
    provider.usage(message_body())
    assert provider.read(message_body()) > 0
    wait_until(lambda: not provider.stats()["prefixes"][0]["readable"], "the end of its life")
    usage = provider.usage(message_body())
    assert usage["cache_creation_input_tokens"] == PREFIX_TOKENS
    assert provider.stats()["duplicate_writes"] == 0


def test_caching_switched_off_leaves_everything_uncached(provider):
    provider.set(caching=False)
    for _ in range(2):
        usage = provider.usage(message_body())
        assert usage["input_tokens"] == PREFIX_TOKENS + 1
        assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0


def test_client_that_leaves_early_leaves_nothing_behind(provider):
    provider.set(latency_ms=60000, latency_spread_permille=0)
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body()),
                       {"anthropic-version": "2023-06-01"})
    wait_until(lambda: provider.stats()["concurrency"] == 1, "the request")
    connection.close()
    wait_until(lambda: provider.stats()["concurrency"] == 0, "the end of the request")
    assert provider.stats()["aborted"] == 1
    provider.set(latency_ms=0)
    assert provider.read(message_body()) == 0


def test_aborted_request_may_finish_its_prefill(provider):
    provider.set(latency_ms=300, latency_spread_permille=0, finish_aborted=True)
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body()),
                       {"anthropic-version": "2023-06-01"})
    wait_until(lambda: provider.stats()["concurrency"] == 1, "the request")
    connection.close()
    wait_until(lambda: provider.stats()["concurrency"] == 0, "the end of the prefill")
    assert provider.stats()["aborted"] == 0
    assert provider.read(message_body()) == PREFIX_TOKENS


def test_reset_forgets_entries_and_counts(provider):
    provider.usage(message_body())
    provider.reset()
    stats = provider.stats()
    assert (stats["writes"], stats["tokens_total"], stats["prefixes"]) == (0, 0, [])
    assert provider.read(message_body()) == 0


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


# --- chat completions ----------------------------------------------------------------


def test_chat_answers_in_the_vendors_shape(provider):
    answer = provider.chat(chat_body("What is 7?"))
    body = answer.json()
    assert answer.headers["x-request-id"].startswith("req_")
    assert body["object"] == "chat.completion"
    choice = body["choices"][0]
    assert choice["message"]["content"].startswith("echo " + digest("What is 7?"))
    assert choice["finish_reason"] == "stop"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_chat_caches_whole_steps_by_itself(provider):
    provider.chat(chat_body())
    usage = provider.chat(chat_body("How?")).json()["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert cached % 128 == 0
    assert 0 <= PREFIX_TOKENS - cached < 128
    assert usage["prompt_tokens_details"]["cache_write_tokens"] == 0
    stats = provider.stats()
    assert (stats["writes"], stats["reads"], stats["duplicate_writes"]) == (1, 1, 0)


def test_chat_shares_a_prefix_inside_one_message(provider):
    ask = [{"role": "user", "content": PREFIX + "First question?"}]
    provider.chat({**chat_body(), "messages": ask})
    ask[0]["content"] = PREFIX + "Second question?"
    usage = provider.chat({**chat_body(), "messages": ask}).json()["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= PREFIX_TOKENS - 128


def test_chat_stream_has_usage_only_when_asked_for(provider):
    plain = provider.chat(chat_body(stream=True)).events()
    assert plain[-1][1] == "[DONE]"
    assert all("usage" not in data for _, data in plain[:-1])
    asked = provider.chat(chat_body(stream=True,
                                    stream_options={"include_usage": True})).events()
    chunks = [data for _, data in asked[:-1]]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 64
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    whole = provider.chat(chat_body()).json()["choices"][0]["message"]["content"]
    text = "".join(chunk["choices"][0]["delta"].get("content") or ""
                   for chunk in chunks[:-1])
    assert text == whole


def test_chat_required_tool_is_called_streamed_or_not(provider):
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
    body = chat_body(tools=tools, tool_choice="required")
    call = provider.chat(body).json()["choices"][0]["message"]["tool_calls"][0]
    assert call["function"]["name"] == "look_up"
    assert json.loads(call["function"]["arguments"]) == {"echo": digest("Why?")}
    events = provider.chat({**body, "stream": True}).events()
    deltas = [data["choices"][0]["delta"].get("tool_calls") for _, data in events[:-1]]
    text = "".join(d[0]["function"]["arguments"] for d in deltas if d)
    assert json.loads(text) == {"echo": digest("Why?")}


def test_chat_with_breakpoints_needs_them_in_both_requests(provider):
    def body(question, breakpoint=True, mode=None):
        part = {"type": "text", "text": PREFIX}
        if breakpoint:
            part["prompt_cache_breakpoint"] = {"mode": "explicit"}
        request = chat_body(model="gpt-5.6", messages=[
            {"role": "developer", "content": [part]},
            {"role": "user", "content": question}])
        if mode:
            request["prompt_cache_options"] = {"mode": mode}
        return request

    def cached(request):
        return provider.chat(request).json()["usage"]["prompt_tokens_details"]

    for question in ("A?", "B?"):  # the trap: the implicit end is the varying message
        details = cached(body(question, breakpoint=False))
        assert details["cached_tokens"] == 0
        assert details["cache_write_tokens"] > PREFIX_TOKENS
    cached(body("C?"))
    assert cached(body("D?"))["cached_tokens"] == PREFIX_TOKENS
    assert cached(body("E?", mode="explicit"))["cached_tokens"] == 0
    assert cached(body("F?", mode="explicit"))["cached_tokens"] == PREFIX_TOKENS
    off = cached(body("G?", breakpoint=False, mode="explicit"))
    assert off["cached_tokens"] == off["cache_write_tokens"] == 0


@pytest.mark.parametrize("change, words", [
    ({"messages": []}, "empty array"),
    ({"n": 0}, "'n'"),
    ({"stream_options": {"include_usage": True}}, "only allowed when 'stream'"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokenz": 1}, "Unrecognized request argument supplied: max_tokenz"),
    ({"prompt_cache_options": {"mode": "explicit"}}, "not supported with this model"),
    ({"tool_choice": "required"}, "only allowed when 'tools'"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "role"),
])
def test_wrong_chat_is_a_400_in_the_vendors_words(provider, change, words):
    answer = provider.chat({**chat_body(), **change})
    assert answer.status == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]


def test_chat_limit_headers_are_durations(provider):
    provider.set(rpm=600, itpm=60000)
    headers = provider.chat(chat_body(max_completion_tokens=100)).headers
    assert headers["x-ratelimit-limit-requests"] == "600"
    assert headers["x-ratelimit-remaining-requests"] == "599"
    assert headers["x-ratelimit-reset-requests"].endswith("ms")
    assert re.fullmatch(r"\d+(\.\d+)?s", headers["x-ratelimit-reset-tokens"])
    # Reads count, and so do max tokens: the bucket goes down by all of them.
    before = int(headers["x-ratelimit-remaining-tokens"])
    after = int(provider.chat(chat_body()).headers["x-ratelimit-remaining-tokens"])
    assert before - after > PREFIX_TOKENS - 1000


def test_chat_spend_cap_is_insufficient_quota(provider):
    provider.set(spend_cap=True)
    answer = provider.chat(chat_body())
    assert answer.status == 429
    assert answer.json()["error"]["code"] == "insufficient_quota"
    assert "retry-after" not in answer.headers


def test_chat_null_on_miss(provider):
    provider.set(null_on_miss=True)
    details = provider.chat(chat_body()).json()["usage"]["prompt_tokens_details"]
    assert details == {"cached_tokens": None}


def test_chat_shards_split_busy_keys(provider):
    provider.set(shards=4, shard_rpm=5)
    for i in range(30):
        provider.chat(chat_body(f"{i}?"))
    stats = provider.stats()
    assert 1 < stats["writes"] <= 4
    assert {row["shard"] for row in stats["prefixes"]} != {stats["prefixes"][0]["shard"]}


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


@pytest.mark.parametrize("answer", ["auto", "tool_use", "thinking"])
def test_a_warm_up_stops_at_its_bound_whatever_answers_are_made_of(provider, answer):
    provider.set(answer=answer)
    reply = provider.message(message_body(max_tokens=0)).json()
    assert (reply["content"], reply["stop_reason"]) == ([], "max_tokens")


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
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body()),
                       {"anthropic-version": "2023-06-01"})
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
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body(stream=stream)),
                       {"anthropic-version": "2023-06-01"})
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


# --- time ----------------------------------------------------------------------------


def test_answers_that_are_kept_waiting_begin_when_they_are_told(provider):
    provider.set(keep_waiting=True, job_ms=300)
    asked = []
    for question in ("One?", "Two?"):
        connection = provider.connect()
        connection.request("POST", "/v1/messages", json.dumps(message_body(question)),
                           {"anthropic-version": "2023-06-01"})
        asked.append(connection)
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


def test_who_is_kept_waiting_may_leave(provider):
    provider.set(keep_waiting=True)
    connection = provider.connect()
    connection.request("POST", "/v1/messages", json.dumps(message_body()),
                       {"anthropic-version": "2023-06-01"})
    wait_until(lambda: provider.stats()["concurrency"] == 1, "the request")
    connection.close()
    wait_until(lambda: provider.stats()["concurrency"] == 0, "the end of the request")
    provider.set(keep_waiting=False)
    assert provider.read(message_body()) == 0


def test_first_byte_waits_for_prefill_and_the_last_for_the_job():
    with Provider("--latency-ms", "100", "--latency-spread-permille", "0",
                  "--prefill-tokens-per-second", "20000", "--job-ms", "300") as running:
        def timeline(body):
            connection = running.connect()
            start = time.monotonic()
            connection.request("POST", "/v1/messages", json.dumps(body),
                               {"anthropic-version": "2023-06-01"})
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


# --- HTTP itself ---------------------------------------------------------------------


def exchange(provider, request):
    """Sends bytes, reads until the provider closes."""
    with provider.socket() as sock:
        sock.sendall(request)
        data = b""
        while True:
            part = sock.recv(65536)
            if not part:
                return data
            data += part


def test_connection_serves_many_requests(provider):
    connection = provider.connect()
    for i in range(5):
        answer = provider.message(message_body(f"{i}?"), connection=connection)
        assert answer.json()["content"][0]["text"].startswith("echo " + digest(f"{i}?"))
    assert provider.stats()["connections"] == 2


def test_requests_in_one_packet_are_answered_in_order(provider):
    one = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    last = b"GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    data = exchange(provider, one * 300 + last)
    assert data.count(b"HTTP/1.1 200 OK") == 301
    assert b'"requests_by_status"' in data[data.rfind(b"HTTP/1.1"):]


def test_early_requests_wait_for_the_one_before(provider):
    provider.set(job_ms=100)
    body = json.dumps(message_body(prefix="x" * 100000)).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
    length = b"content-length: %d\r\n\r\n" % len(body)
    data = exchange(provider, (head + length + body) * 3 +
                    head + b"connection: close\r\n" + length + body)
    assert data.count(b"HTTP/1.1 200 OK") == 4
    assert provider.stats()["peak_concurrency"] == 1


def test_chunked_request_in_small_pieces(provider):
    body = json.dumps(message_body()).encode()
    chunks = b"".join(b"%x;x=y\r\n%s\r\n" % (len(body[i:i + 1000]), body[i:i + 1000])
                      for i in range(0, len(body), 1000)) + b"0\r\nx-trailer: 1\r\n\r\n"
    request = (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
               b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n") + chunks
    with provider.socket() as sock:
        for i in range(0, len(request), 777):
            sock.sendall(request[i:i + 777])
        data = b""
        while True:
            part = sock.recv(65536)
            if not part:
                break
            data += part
    assert data.startswith(b"HTTP/1.1 200 OK")
    assert digest("Why?").encode() in data


def test_expect_continue_is_answered_before_the_body(provider):
    body = json.dumps(message_body()).encode()
    with provider.socket() as sock:
        sock.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n"
                     b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body))
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"])
def test_too_large_a_body_is_413_and_can_be_read(provider, expect):
    provider.set(body_max_bytes=100000)
    head = (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 1\r\n" + expect +
            b"content-length: 150000\r\n\r\n")
    data = exchange(provider, head + (b"" if expect else b"x" * 150000))
    assert data.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in data


def test_http_1_0_gets_a_stream_without_chunks(provider):
    body = json.dumps(message_body(stream=True)).encode()
    data = exchange(provider, b"POST /v1/messages HTTP/1.0\r\nanthropic-version: 1\r\n"
                    b"content-length: %d\r\n\r\n" % len(body) + body)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert message_text(list(parse_events(rest))).startswith("echo ")


@pytest.mark.parametrize("request_bytes, status", [
    (b"nonsense\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\n\r\n", 400),
    (b"GET  / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\na : b\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\na: b\n c\r\n\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}", 400),
    (b"POST /knobs HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", 400),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n", 501),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"POST /knobs HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n", 400),
    (b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 70 + b"\r\n", 431),
    (b"GET /nowhere HTTP/1.0\r\n\r\n", 404),
    (b"GET /v1/messages HTTP/1.0\r\n\r\n", 405),
])
def test_wrong_http_is_told_so_and_closed(provider, request_bytes, status):
    data = exchange(provider, request_bytes)
    assert data.startswith(b"HTTP/1.1 %d " % status), data[:80]
    assert provider.ask("GET", "/healthz").json() == {"ok": True}


# --- knobs ---------------------------------------------------------------------------


def test_knobs_read_back_what_was_set(provider):
    provider.set(visibility_lag="uniform", visibility_lag_ms=7, fault_next="hang")
    knobs = provider.ask("GET", "/knobs").json()
    assert knobs["visibility_lag"] == "uniform"
    assert knobs["visibility_lag_ms"] == 7
    assert provider.set(**knobs) == knobs


@pytest.mark.parametrize("knobs", [
    {"job_ms": 5, "nope": 1}, {"job_ms": 5, "otpm": -1}, {"job_ms": 5, "caching": 1},
    {"job_ms": 5, "answer": "song"}, {"job_ms": 5, "shards": 0}, {"job_ms": 1e3},
    {"job_ms": 5, "fault_cut_permille": 600, "fault_hang_permille": 600}, [1],
])
def test_document_with_one_wrong_knob_changes_none(provider, knobs):
    answer = provider.ask("POST", "/knobs", knobs)
    assert answer.status == 400
    assert answer.json()["error"].endswith(".")
    assert provider.ask("GET", "/knobs").json()["job_ms"] == 0


def test_stats_lists_as_many_prefixes_as_asked(provider):
    for i in range(5):
        provider.usage(message_body(prefix=f"{i}" + PREFIX))
    for count in (0, 2, 5):
        rows = provider.ask("GET", f"/stats?prefixes={count}").json()["prefixes"]
        assert len(rows) == count
