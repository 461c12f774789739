"""What the simulated provider caches, and for how long."""

import json

import pytest

from provider import PREFIX, message_body
from provider_rig import MARK, PREFIX_TOKENS, TOOL, marked, provider
from waiting import wait_until

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


def ask_and_leave(provider):
    """A client that is gone before it has an answer, and is known to be."""
    connection = provider.begin(message_body())
    wait_until(lambda: provider.stats()["concurrency"] == 1, "the request")
    connection.close()
    wait_until(lambda: provider.stats()["concurrency"] == 0, "its end")


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
    ask_and_leave(provider)
    assert provider.stats()["aborted"] == 1
    provider.set(latency_ms=0)
    assert provider.read(message_body()) == 0


def test_aborted_request_may_finish_its_prefill(provider):
    provider.set(latency_ms=300, latency_spread_permille=0, finish_aborted=True)
    ask_and_leave(provider)
    assert provider.stats()["aborted"] == 0
    assert provider.read(message_body()) == PREFIX_TOKENS


def test_who_is_kept_waiting_may_leave(provider):
    provider.set(keep_waiting=True)
    ask_and_leave(provider)
    provider.set(keep_waiting=False)
    assert provider.read(message_body()) == 0


def test_reset_forgets_entries_and_counts(provider):
    provider.usage(message_body())
    provider.reset()
    stats = provider.stats()
    assert (stats["writes"], stats["tokens_total"], stats["prefixes"]) == (0, 0, [])
    assert provider.read(message_body()) == 0
