"""Where prefixes are: the matrix, a prefix that is kept everywhere, its last hour."""

import json
import re

from fleet import long_text, wait_until
from stack import Stack


def rows(stack, **query):
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return stack.api(f"places?{words}")["rows"]


def test_a_prefix_at_both_accounts_is_one_row_and_flagged(browser, tmp_path):
    with Stack(tmp_path, places=["backup"]) as stack:
        stack.start_all(1, 40)
        stack.send(20, "triage", reply="a")
        stack.send(12, "review", reply="b")  # another prefix, at one place only
        stack.collect(20, 60, "a")
        stack.collect(12, 60, "b")
        [row] = wait_until(lambda: [one for one in rows(stack, route="triage")
                                    if one["cells"][0]["jobs_done"] == 20], "the first place", 60)
        assert [cell["place"] for cell in row["cells"]] == ["main"] and not row["everywhere"]
        stack.send(10, "triage", reply="c", upstream="backup")
        stack.collect(10, 60, "c")
        row = wait_until(lambda: next((one for one in rows(stack, route="triage")
                                       if one["everywhere"] and sum(
                                           cell["jobs_done"] for cell in one["cells"]) == 30), None),
                         "a prefix that is everywhere", 60)
        cells = {cell["place"]: cell for cell in row["cells"]}
        assert set(cells) == {"main", "backup"} and len(rows(stack)) == 2
        for name, jobs in (("main", 20), ("backup", 10)):
            cell = cells[name]
            assert cell["kept"] and cell["jobs_done"] == jobs
            assert cell["used_ms"] > cell["written_ms"] > 0
            assert 5000 < cell["written"] < 8000 and cell["read"] > (jobs - 2) * 5000
        assert rows(stack, everywhere=1) == rows(stack, route="triage")
        # Read nowhere else: its second place paid for it again, and the ledger says why.
        ledger = wait_until(lambda: (lambda one: one["week"]["calls"] >= 42 and one)(
            stack.api("ledger")), "the ledger", 60)
        causes = {one["cause"]: one["written"] for one in ledger["week"]["causes"]}
        assert causes["other_place"] == cells["backup"]["written"]
        bursts = [one for one in ledger["bursts"] if one["route"] == "triage"]
        assert {one["writes"] for one in bursts} == {1} and not any(one["spike"] for one in bursts)

        browser.open(stack.url + "#/places")
        browser.wait_text("1 prefix is kept at every place")
        table = browser.text("main table")
        assert "at every place" in table and table.count("warm for") == 3
        assert "20 requests, " in table and "10 requests, " in table and "% hits" in table
        browser.do("click", selector="main .why a")
        browser.wait("document.querySelectorAll('main table tbody')[0].rows.length === 1")
        browser.do("click", selector="td.name a:has-text('triage')")
        browser.wait("location.hash === '#/route/triage'")

        family = cells["backup"]["family"]
        browser.do("hash", hash=f"#/family/{family}")
        browser.wait_text("minute by minute")
        browser.wait("document.querySelectorAll('svg.hour rect.written').length === 2")
        browser.wait_text("It is kept at every place to which its route sends jobs")
        past = stack.api(f"families/{family}/places")["cells"]
        assert {cell["place"]: sum(cell["requests_a_minute"]) for cell in past} == {
            "main": 20, "backup": 10}
        assert all(sum(cell["written_a_minute"]) == cells[cell["place"]]["written"] for cell in past)
        metric = wait_until(lambda: "\nwarmq_prefixes_everywhere 1\n" in stack.metrics(),
                            "the gauge", 60)
        assert metric


class Replicas(Stack):
    """Three servers of one's own with the OpenAI API, each with a cache that nobody else reads."""

    def write_config(self, dialect="openai-chat"):
        super().write_config("openai-chat")
        text = self.config.read_text()
        self.config.write_text(re.sub("    (markers: auto|proof: canary)\n", "", text))


def test_three_replicas_as_upstreams_are_three_places(browser, tmp_path):
    def ask(route, upstream):
        system = {"role": "system", "content": long_text(5000, f"{route} ")}
        stack.enqueue([json.dumps({"model": "qwen", "max_tokens": 32, "messages": [
            system, {"role": "user", "content": f"Question {n}"}]}) for n in range(10)],
            "replies", route=route, upstream=upstream)
        stack.collect(10, 60, "replies")

    with Replicas(tmp_path, places=["vllm-2", "vllm-3"]) as stack:
        stack.start_all(1, 30)
        for upstream in ("main", "vllm-2"):
            ask("rag", upstream)
            ask("chat", upstream)
        ask("alone", "main")
        ask("rag", "vllm-3")  # now at each place to which its route sends jobs, as is `chat` at two
        row = wait_until(lambda: next((one for one in rows(stack, route="rag") if len(one["cells"]) == 3
                                       and all(cell["jobs_done"] == 10 for cell in one["cells"])), None),
                         "three places", 60)
        assert row["everywhere"] and {cell["place"] for cell in row["cells"]} == {"main", "vllm-2", "vllm-3"}
        for cell in row["cells"]:
            # These servers tell what they read, and of the rest that it was not cached.
            assert cell["kept"] and cell["read"] > 7 * 4900 and cell["written"] == 0
        assert [one["route"] for one in rows(stack, everywhere=1)].count("alone") == 0
        ledger = wait_until(lambda: (lambda one: one["week"]["calls"] >= 60 and one)(
            stack.api("ledger")), "the ledger", 60)
        paid = {one["cause"]: one["full"] for one in ledger["week"]["causes"]}
        # The second and the third replica paid for it in full.
        assert paid["other_place"] > 2.9 * 5000, ledger["week"]["causes"]
        browser.open(stack.url + "#/places")
        browser.wait("document.querySelectorAll('main table thead')[0].innerText.includes('vllm-3')")
        browser.wait_text("at every place", "tr[data-row] td.name")
        text = browser.eval("[...document.querySelectorAll('main table')][0].innerText")
        assert text.count("10 requests") == 6 and text.count("warm for") == 6


def test_of_many_prefixes_a_page_is_shown(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        for number in range(60):
            stack.send(2, f"route-{number:02}", 400)
        wait_until(lambda: stack.api("places")["total"] == 60, "all prefixes", 60)
        first, second = rows(stack, limit=50), rows(stack, limit=50, offset=50)
        assert (len(first), len(second)) == (50, 10)
        assert len({one["prefix"] for one in first + second}) == 60
        browser.open(stack.url + "#/places")
        browser.wait_text("1 to 50 of 60")
        browser.do("click", selector=".pager button:has-text('Next')")
        browser.wait_text("51 to 60 of 60")
        browser.do("hash", hash="#/places?q=route-07")
        browser.wait("document.querySelectorAll('main table tbody')[0].rows.length === 1")
