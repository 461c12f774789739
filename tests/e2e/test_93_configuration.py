"""A configuration that changes between two lives of a scheduler, with jobs that wait."""

import json

from fleet import Fleet, anthropic_body, long_text, wait_until

MODELS = """
models:
  - match: "claude-opus-*"
    class: {opus}
"""
RAW = """
  plain:
    url: "{url}"
    dialect: raw
    auth: none
{account}
"""


def write_config(fleet, account, opus):
    """main and plain are one account, and so is their class of models."""
    own = f"    account: {account}\n" if account else ""
    fleet.upstream_options = own + RAW.format(url=fleet.provider, account=own) + \
        MODELS.format(opus=opus)
    fleet.write_config()


def records(fleet):
    """family -> (budget, lanes)"""
    rows = fleet.redis("HGETALL", "warmq:families")
    fields = [value.decode().split("|") for value in rows[1::2]]
    return {id.decode(): (field[2], field[3]) for id, field in zip(rows[::2], fields)
            if field[3]}


def lane_budgets(fleet):
    return {value.decode().split("|")[2] for value in
            fleet.redis("HGETALL", "warmq:lanes")[1::2]}


def members(fleet, budget):
    """Lanes that stand in a set of this budget."""
    return sum(fleet.redis("ZCARD", f"warmq:{kind}:default:{budget}")
               for kind in ("open", "held"))


def jobs():
    """(upstream, route, body): split and not, opaque and raw, of two models."""
    system = long_text(2000)
    for number in range(3):
        for model in ("claude-sonnet-4-5", "claude-opus-4-1"):
            body = {"model": model}
            yield "main", "", anthropic_body(f"Long {number}", system, **body)
            yield "main", "", anthropic_body("Short", **body)
            yield "main", "strange", json.dumps({"mcp_servers": 1, "previous": model, **body,
                                                 "max_tokens": 9, "messages": "no list"})
        yield "plain", "raw", f"line {number}"


def enqueue(fleet):
    ids = []
    for upstream, route, body in jobs():
        words = ["route", route] if route else []
        ids += fleet.enqueue([body], upstream=upstream, **dict(zip(words[::2], words[1::2])))
    return ids


def await_admitted(fleet, count):
    wait_until(lambda: fleet.redis("XLEN", "warmq:jobs") +
               int(fleet.redis("HGET", "warmq:meta", "slims") or 0) == count and
               fleet.redis("FCALL", "warmq_count", 1, "warmq:meta", 1)[2] == 1,
               f"{count} jobs to be admitted", 20)


def restart(fleet):
    told = fleet.log("scheduler").count("memory is complete")
    fleet.end("scheduler")
    fleet.start_scheduler()
    wait_until(lambda: fleet.log("scheduler").count("memory is complete") > told, "the next ruler",
               30)


def test_another_account_and_another_class_count_for_all_that_waits(tmp_path):
    with Fleet(tmp_path) as fleet:
        write_config(fleet, "", "large")
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = enqueue(fleet)
        await_admitted(fleet, len(ids))
        before = records(fleet)
        assert {budget for budget, _ in before.values()} == \
            {"main:sonnet-4", "main:large", "plain:default"}

        write_config(fleet, "shared", "huge")
        restart(fleet)
        after = records(fleet)
        assert set(after) == set(before)
        for id, (budget, _) in before.items():
            there = budget.replace(":large", ":huge").replace(":", "@shared:")
            assert after[id][0] == there, (budget, after[id])
        assert lane_budgets(fleet) == {budget for budget, _ in after.values()}
        for budget in {budget for budget, _ in before.values()}:
            assert members(fleet, budget) == 0, budget
        assert "corrected" not in fleet.log("scheduler")

        fleet.start_worker("worker", 20)
        results = fleet.collect(len(ids), 60)
        assert set(results) == set(ids)
        for budget in {budget for budget, _ in after.values()}:
            wait_until(lambda: fleet.redis("HGET", f"warmq:budget:{budget}",
                                           "in_flight") in (None, b"0"), "an idle account", 10)


def test_families_that_nobody_remembers_change_their_account_too(tmp_path):
    """The scheduler remembers 1,024 families at least; all others stand in Redis only."""
    count = 1500
    with Fleet(tmp_path, settings="  families_max: 100") as fleet:
        write_config(fleet, "", "large")
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.enqueue([anthropic_body("Short", model=f"model-{n}") for n in range(count)])
        await_admitted(fleet, count)
        assert len(records(fleet)) == count
        write_config(fleet, "shared", "large")
        restart(fleet)
        assert {budget for budget, _ in records(fleet).values()} == {"main@shared:default"}
        assert lane_budgets(fleet) == {"main@shared:default"}
        assert members(fleet, "main:default") == 0
        assert members(fleet, "main@shared:default") == count
