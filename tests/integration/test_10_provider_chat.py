"""The simulated provider in OpenAI's words: chat completions."""

import json
import re

import pytest

from provider import PREFIX, chat_body, digest
from provider_rig import PREFIX_TOKENS, provider


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
