"""Who is held, for how long, and what a job gets back."""

import json
import re
import time
import urllib.request

import pytest

from fleet import SLOWER, Fleet, anthropic_body, digest, long_text, wait_until

TOKENS = 8000
SYSTEM = long_text(TOKENS)
KNOBS = {"latency_ms": 50, "prefill_tokens_per_second": 10000, "job_ms": 300}


def bodies_of(count, system=SYSTEM, **more):
    return [anthropic_body(f"Question {number}", system, **more) for number in range(count)]


def test_one_stray_job_and_then_a_burst_is_written_once(tmp_path):
    """The stray one ran alone, without a marker, and its lane stands open when they come."""
    with Fleet(tmp_path, "    pace_start: 100", knobs=KNOBS) as fleet:
        fleet.start_all()
        for word in ("one ", "two ", "three "):
            system = long_text(TOKENS, word)
            fleet.http("/reset", {})
            fleet.burst(bodies_of(1, system))
            assert fleet.stats()["writes"] == 0, "one job is no burst"
            fleet.burst(bodies_of(60, system))
            stats = fleet.stats()
            assert stats["writes"] == 1
            assert stats["tokens_uncached"] < 2 * TOKENS, "only the stray one was cold"


def test_a_burst_whose_prefix_was_warmed_ahead_only_reads(tmp_path):
    """What a crontab does: `family warm` before the hour, and the burst at the hour."""
    with Fleet(tmp_path, "    pace_start: 100", knobs=KNOBS) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        known = fleet.enqueue(bodies_of(2), route="hourly")
        wait_until(lambda: fleet.redis("HLEN", "warmq:families"), "the family", 20)
        for id in known:
            fleet.warmq("job", "cancel", id)
        fleet.collect(2, 20)
        fleet.start_worker("worker", 40)
        fleet.await_workers(1)
        wait_until(lambda: "One request writes" in fleet.warmq("family", "warm", "hourly",
                                                               check=False), "a warm-up", 30)
        wait_until(lambda: fleet.stats()["writes"] == 1, "the write", 30)
        assert "Nothing need be written" in fleet.warmq("family", "warm", "hourly")
        fleet.burst(bodies_of(60), route="hourly")
        stats = fleet.stats()
        assert (stats["writes"], stats["requests"]) == (1, 61)
        assert stats["tokens_uncached"] < TOKENS, "each of them has read it"


def held(fleet):
    """How many lanes wait behind a gate, over all accounts of the pool."""
    return sum(fleet.redis("ZCARD", key) for key in fleet.redis("KEYS", "warmq:held:default*"))


@pytest.mark.alone
def test_hold_off_starts_what_is_held_within_two_seconds(tmp_path):
    with Fleet(tmp_path, "    pace_start: 100", knobs={**KNOBS, "keep_waiting": True}) as fleet:
        fleet.start_all()
        fleet.enqueue(bodies_of(40))
        wait_until(lambda: held(fleet) == 1
                   and fleet.stats()["concurrency"] == 1, "one writer and a held family")
        fleet.warmq("hold", "off")
        switched = time.monotonic()
        fleet.await_requests(40)
        assert time.monotonic() - switched < SLOWER * 2
        fleet.keep_waiting(False)
        assert json.loads(fleet.warmq("hold", "status", "--json"))["hold"] is False
        fleet.collect(40, 40)


def test_a_job_that_must_not_wait_starts_beside_the_held_ones(tmp_path):
    with Fleet(tmp_path, knobs={**KNOBS, "keep_waiting": True}) as fleet:
        fleet.start_all()
        fleet.enqueue(bodies_of(20))
        fleet.await_requests(1)
        fleet.enqueue([anthropic_body("And now?", SYSTEM)], reply="now", hold_max="0")
        fleet.await_requests(2)
        fleet.keep_waiting(False)
        assert fleet.collect(1, 20, "now")
        fleet.collect(20, 30)


def test_a_writer_that_says_nothing_holds_nobody_longer_than_hold_max(tmp_path):
    """It is given up after 0.6 x hold_max, and another one writes."""
    with Fleet(tmp_path, "    hold_max: 15s", knobs={**KNOBS, "fault_next": "hang",
                                                    "fault_next_count": 1}) as fleet:
        fleet.start_all()
        results, took = fleet.burst(bodies_of(30), seconds=40)
        assert took < SLOWER * (15 + 3), "the hold, a cold prefix, the jobs"
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["peak_writers"] == 1, stats
        assert len(results) == 30


def test_named_prefixes_come_through_the_inbox_and_can_be_pinned(tmp_path):
    def own(number):
        return json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [
            {"role": "user", "content": f"Question {number}"}]})

    versions = [json.dumps({"system": long_text(TOKENS, word)}) for word in ("one ", "two ")]
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all()
        put = [word for word in ("XADD", "warmq:jobs", "*", "put_prefix", "policy", "body")]
        fleet.redis(*put, versions[0])
        fleet.enqueue([own(number) for number in range(20)], prefix="policy", reply="first")
        fleet.redis(*put, versions[1])
        fleet.enqueue([own(number) for number in range(20)], prefix="policy", reply="second")
        fleet.collect(20, 20, "first")
        fleet.collect(20, 20, "second")
        assert fleet.stats()["writes"] == 2, "one for each version"

        fleet.http("/reset", {})  # forgets the entries as well
        rows = json.loads(fleet.warmq("prefix", "ls", "--json"))
        row = next(row for row in rows if row.get("name") == "policy")
        old = json.loads(fleet.warmq("prefix", "put", "policy", "-", "--json",
                                     text=versions[0]))
        assert old["version"] != row["version"]
        fleet.redis("XADD", "warmq:jobs", "*", "put_prefix", "policy", "body", versions[0])
        fleet.enqueue([own(9)], prefix=f"policy@{old['version']}", reply="pinned")
        assert next(iter(fleet.collect(1, 20, "pinned").values()))["state"] == "done"
        fleet.enqueue([own(9)], prefix=f"policy@{row['version']}", reply="stale")
        stale = next(iter(fleet.collect(1, 20, "stale").values()))
        assert stale["state"] == "dead" and "pin" in json.dumps(stale)


ANSWERS = ["text", "thinking", "tool_use", "citations", "server_tool"]


def without_id(value):
    """Ids are counted: msg_..., toolu_..., srvtoolu_... and sixteen hexadecimal digits.
    `created` of chat completions is the second."""
    text = re.sub(r'"([a-z]+[_-])[0-9a-f]{16,}"', r'"\1"', json.dumps(value))
    return json.loads(re.sub(r'"created": \d+', '"created": 0', text))


def events_of(text):
    return [without_id(json.loads(line[6:])) for line in text.splitlines()
            if line.startswith("data: ") and '"ping"' not in line]


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_job_gets_the_shape_it_asked_for_as_the_provider_would_give_it(tmp_path, answer):
    plain = anthropic_body("Why?", max_tokens=64)
    streamed = anthropic_body("Why?", max_tokens=64, stream=True)

    with Fleet(tmp_path, knobs={"latency_ms": 5, "job_ms": 20, "answer": answer}) as fleet:
        def ask(body):
            request = urllib.request.Request(
                fleet.provider + "/v1/messages", body.encode(),
                {"Content-Type": "application/json", "anthropic-version": "2023-06-01"})
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.read().decode()

        fleet.start_all()
        (object_result, sse_result), _ = fleet.burst([plain, streamed])
        assert object_result["format"] == "json" and sse_result["format"] == "sse"
        assert without_id(object_result["body"]) == without_id(json.loads(ask(plain)))
        assert events_of(sse_result["body"]) == events_of(ask(streamed))
        assert digest("Why?") in json.dumps(object_result["body"])


@pytest.mark.parametrize("answer", ["text", "tool_use"])
def test_a_chat_job_gets_the_shape_it_asked_for_as_the_provider_would_give_it(tmp_path,
                                                                             answer):
    body = {"model": "gpt-5.6", "max_tokens": 64,
            "messages": [{"role": "user", "content": "Why?"}]}
    plain, streamed = json.dumps(body), json.dumps({**body, "stream": True})

    with Fleet(tmp_path, dialect="openai-chat",
               knobs={"latency_ms": 5, "job_ms": 20, "answer": answer}) as fleet:
        def ask(body):
            request = urllib.request.Request(fleet.provider + "/v1/chat/completions",
                                             body.encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.read().decode()

        def chunks_of(text):
            return [without_id(json.loads(line[6:])) for line in text.splitlines()
                    if line.startswith("data: {")]

        fleet.start_all()
        (object_result, sse_result), _ = fleet.burst([plain, streamed])
        assert object_result["format"] == "json" and sse_result["format"] == "sse"
        assert without_id(object_result["body"]) == without_id(json.loads(ask(plain)))
        assert chunks_of(sse_result["body"]) == chunks_of(ask(streamed)), \
            "no usage chunk that it did not ask for"
