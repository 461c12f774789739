"""The numbers that are promised, with the real programs."""

import json
import subprocess
import sys

import pytest

from fleet import LONG, ROOT, SLOWER, WARMQ, Fleet, digest, long_text, wait_until

MODEL = "claude-sonnet-4-5"
SYSTEM = long_text(8000, "policy \"quoted\" \u00e4 / and so on. ")

# Fast enough for a test, slow enough that a race shows: 0.8 s for a cold SYSTEM.
KNOBS = {"latency_ms": 50, "prefill_tokens_per_second": 10000, "job_ms": 300}


def question_of(number):
    return f"Question {number}: what now?"


def check_answers(results, questions):
    for result, question in zip(results, questions):
        text = result["body"]["content"][-1].get("text", "")
        assert digest(question) in text, f"not the answer to {question!r}: {text[:80]}"


def body_of(number, **more):
    return {"model": MODEL, "max_tokens": 64, "system": SYSTEM,
            "messages": [{"role": "user", "content": question_of(number)}], **more}


@pytest.mark.alone
def test_six_cells_of_the_burst_keep_what_is_promised():
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "bench" / "burst.py"),
                           "--quick", "--parallel", "2", "--slower", str(SLOWER)],
                          capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.alone
def test_twenty_prefixes_at_once_are_written_once_each_without_standing_still():
    """Their gates open one after the other, while all of the pace is taken by long jobs."""
    done = subprocess.run([str(WARMQ), "demo", "--json", "--only", "warmq", "--families",
                           "20", "--prefix-tokens", "5000", "--jobs", "200"],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["done"] == 200
    assert answer["warmq"]["writes"] == 20 and answer["warmq"]["peak_writers"] == 1
    assert answer["warmq"]["uncached"] <= 2 * 5000, "at most one started cold"
    assert answer["warmq"]["makespan_ms"] <= SLOWER * 1.5 * answer["lower_bound_ms"]


def serialise(number):
    """The same prefix, as producers of many languages would write it."""
    body = body_of(number)
    text = json.dumps(body, **[
        {}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False},
        {"separators": (" ,  ", " : "), "ensure_ascii": False}][number % 5])
    if number % 3 == 1:
        body["system"] = [{"type": "text", "text": SYSTEM}]
        text = json.dumps({key: body[key] for key in sorted(body, reverse=True)})
    if number % 7 == 2:
        text = text.replace("policy", "pol\\u0069cy").replace(" / ", " \\/ ")
    return text


def test_prefixes_that_producers_write_differently_are_written_once(tmp_path):
    bodies = [serialise(number) for number in range(70)]
    assert len({body[:4000] for body in bodies}) > 8, "they do differ"
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all()
        results, _ = fleet.burst(bodies)
        check_answers(results, map(question_of, range(70)))
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["peak_writers"] == 1
        assert stats["reads"] == 69


@pytest.mark.parametrize("declared", [{}, {"shared": "marker:1"}], ids=["marked", "declared"])
def test_one_document_with_many_questions_in_one_message_is_written_once(tmp_path, declared):
    document = {"type": "text", "text": long_text(8000, "clause of the contract "),
                "cache_control": {"type": "ephemeral"}}
    bodies = [json.dumps({
        "model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": [
            document, {"type": "text", "text": question_of(number)}]}]})
        for number in range(50)]
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all()
        results, _ = fleet.burst(bodies, **declared)
        check_answers(results, map(question_of, range(50)))
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["peak_writers"] == 1
        assert stats["reads"] == 49


def test_the_system_under_thirty_documents_is_written_once(tmp_path):
    """Users mark the document; a second marker lets all documents read the system."""
    bodies = []
    for number in range(150):
        document = f"Document {number % 30}. " + long_text(3000, f"clause {number % 30} ")
        bodies.append(json.dumps(body_of(number, messages=[{"role": "user", "content": [
            {"type": "text", "text": document, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": question_of(number)}]}])))
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all()
        results, _ = fleet.burst(bodies)
        check_answers(results, map(question_of, range(150)))
        stats = fleet.stats()
        assert stats["node_writes"] == 31 and stats["node_duplicate_writes"] == 0
        assert stats["peak_writers"] == 1
        assert stats["tokens_written"] < 8000 + 30 * 3100


def test_fifty_tool_choices_over_one_system_are_written_once(tmp_path):
    tools = [{"name": f"tool_{number}", "description": f"Does {number}.",
              "input_schema": {"type": "object", "properties": {}}} for number in range(50)]
    bodies = [json.dumps(body_of(number, tools=tools,
                                 tool_choice={"type": "tool", "name": f"tool_{number}"}))
              for number in range(50)]
    with Fleet(tmp_path, knobs=KNOBS) as fleet:
        fleet.start_all()
        results, _ = fleet.burst(bodies)
        for number, result in enumerate(results):
            block = result["body"]["content"][-1]
            assert block["name"] == f"tool_{number}"
            assert block["input"] == {"echo": digest(question_of(number))}
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["peak_writers"] == 1


def test_a_burst_of_chat_completions_is_written_once(tmp_path):
    bodies = [json.dumps({"model": "gpt-5.6", "max_tokens": 64, "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question_of(number)}]}) for number in range(60)]
    with Fleet(tmp_path, dialect="openai-chat", knobs=KNOBS) as fleet:
        fleet.start_all()
        results, _ = fleet.burst(bodies)
        for number, result in enumerate(results):
            text = result["body"]["choices"][0]["message"]["content"]
            assert digest(question_of(number)) in text
        stats = fleet.stats()
        assert stats["writes"] == 1 and stats["peak_writers"] == 1


HOLD_MAX_S = 3


@pytest.mark.alone
@pytest.mark.parametrize("trouble", [
    {"caching": False}, {"usage_unknown_permille": 1000},
    {"usage_unknown_permille": 1000, "usage_unknown_as": "absent", "caching": False}],
    ids=["caching off", "usage null", "neither cache nor usage"])
def test_without_a_cache_all_finish_one_hold_limit_later_at_most(tmp_path, trouble):
    bodies = [json.dumps(body_of(number)) for number in range(60)]
    took = {}
    with Fleet(tmp_path, f"    hold_max: {HOLD_MAX_S}s\n    pace_start: 100",
               knobs={**KNOBS, **trouble, "job_ms": 1000}) as fleet:
        fleet.start_all()
        fleet.warmq("hold", "off")
        _, took["unheld"] = fleet.burst(bodies)
        fleet.warmq("hold", "on")
        fleet.http("/reset", {})
        system = SYSTEM.replace("policy", "Policy")  # another prefix, not seen before
        fresh = [json.dumps(dict(json.loads(body), system=system)) for body in bodies]
        results, took["held"] = fleet.burst(fresh)
        check_answers(results, map(question_of, range(60)))
    assert took["held"] <= SLOWER * (1.05 * took["unheld"] + HOLD_MAX_S), took


def test_token_limits_are_kept_and_the_one_that_binds_is_named(tmp_path):
    bodies = [json.dumps(body_of(number, max_tokens=8192)) for number in range(40)]
    with Fleet(tmp_path, knobs={**KNOBS, "itpm": 450000, "otpm": 90000, "job_ms": 1000,
                                "output_tokens": 400}) as fleet:
        fleet.start_all()
        ids = fleet.enqueue(bodies, route="triage")
        wait_until(lambda: fleet.stats()["reads"] > 1, "the start of the others")
        fleet.keep_waiting()  # what the account has room for runs, and no more
        seen = set()

        def named():
            page = fleet.warmq("family", "show", "triage", check=False)
            seen.update(line.strip() for line in page.splitlines() if "blocked" in line)
            return any("output" in line for line in seen)

        wait_until(named, "binding limit on the page", 20)
        fleet.keep_waiting(False)
        results = fleet.collect(len(ids), 90)
        assert all(result["state"] == "done" for result in results.values())
        stats = fleet.stats()
        refused = stats["requests_by_status"].get("429", 0)
        assert refused <= 0.01 * stats["requests"], stats["requests_by_status"]
        assert stats["writes"] == 1


def test_an_output_limit_is_kept_whatever_each_of_a_family_asks_for(tmp_path):
    """The mean of all was reserved, and one of four requests was answered by a 429.  The
    second family comes when the limit is known, and its first ones ask for little."""
    with Fleet(tmp_path, knobs={**KNOBS, "itpm": 1800000, "otpm": 360000, "job_ms": 300,
                                "output_tokens": 400}) as fleet:
        fleet.start_all()
        fleet.burst([json.dumps(body_of(number)) for number in range(3)])
        bodies = [json.dumps(body_of(number, max_tokens=(10, 8192, 1000, 90000)[number % 4],
                                     system=SYSTEM[number % 2:]))
                  for number in range(80)]
        fleet.burst(bodies, 90)
        stats = fleet.stats()
        refused = stats["requests_by_status"].get("429", 0)
        assert refused <= 0.01 * stats["requests"], stats["requests_by_status"]
        assert stats["writes"] == 2


@LONG
def test_token_limits_are_kept_over_two_minutes(tmp_path):
    """More output than the account has: 200 answers of 1,000 tokens at 90,000 a minute."""
    bodies = [json.dumps(body_of(number, max_tokens=8192)) for number in range(200)]
    with Fleet(tmp_path, knobs={**KNOBS, "itpm": 450000, "otpm": 90000, "job_ms": 2000,
                                "output_tokens": 1000}) as fleet:
        fleet.start_all()
        _, took = fleet.burst(bodies, seconds=300)
        stats = fleet.stats()
        refused = stats["requests_by_status"].get("429", 0)
        assert refused <= 0.01 * stats["requests"], stats["requests_by_status"]
        at_best = (200 * 1000 - 90000) / 90000 * 60
        assert took <= 1.25 * at_best + 10, "nor is the account left idle"
