"""A route's page: its versions, and what it costs to use two of them side by side."""

from fleet import anthropic_body, long_text, wait_until
from stack import Stack

VERSION = ["family", "number", "tokens", "place", "domain", "first_ms", "last_ms", "answers",
           "hits", "prefixed", "writes"]


def versions(stack):
    """The versions of the ledger as they stand in Redis: field -> words."""
    rows = stack.redis("HGETALL", "warmq:ledger")
    return {name.decode(): value.decode().split(" ") for name, value in zip(rows[::2], rows[1::2])
            if name.startswith(b"v:")}


def send(stack, version, count, reply):
    system = f"You are the triage desk, variant {version}. " + long_text(6000, "policy ")
    stack.enqueue([anthropic_body(f"Question {n}", system) for n in range(count)], reply,
                  route="triage")
    stack.collect(count, 60, reply)


def test_a_clock_in_each_prompt_is_named_with_its_byte(browser, tmp_path):
    """Each job has a version of its own: which byte is it, what does it cost?"""
    with Stack(tmp_path) as stack:
        stack.start_all(1, 10)
        for number in range(5):  # one after the other: each has its company seen
            system = f"It is 12:{number:02}:00. You are the triage desk. " + long_text(2000, "policy ")
            stack.enqueue([anthropic_body("?", system)], "clock", route="clock")
            stack.collect(1, 60, "clock")
        week = wait_until(lambda: (lambda one: one["calls"] == 5 and one)(stack.api("ledger")["week"]),
                          "all calls in the ledger", 60)
        [drift] = [one for one in week["causes"] if one["cause"] == "drift"]
        found = stack.api("drift?route=clock")
        assert (found["kind"], found["part"]) == ("clock", "system")
        assert found["byte"] == len('"system":"It is 12:0') + 1
        assert stack.api("ledger?route=clock")["versions"] == [], "prefixes of one job are none"
        browser.open(stack.url + "#/overview")
        browser.wait_text("the route's page names the byte", ".causes")
        browser.do("hash", hash="#/route/clock")
        browser.wait_text("Drift: clock", ".why.held strong")
        browser.wait_text(f"They differ in the system part from byte {found['byte']} on.", ".why.held")
        browser.wait_text(f"have cost ${drift['extra']:.2f}", ".why.held")


def test_variants_have_shares_and_the_split_a_price(browser, tmp_path):
    """Two versions that began twenty minutes ago: nobody waits for that, so the scheduler is
    given a ledger that says so, and reads it when it starts."""
    with Stack(tmp_path) as stack:
        stack.start_all(1, 30)
        send(stack, "A", 30, "a")
        send(stack, "B", 10, "b")
        browser.open(stack.url + "#/route/triage")
        browser.wait_text("2 versions are alive", ".why.later")
        wait_until(lambda: sum(int(words[VERSION.index("answers")])
                               for words in versions(stack).values()) == 40, "stored versions", 60)
        stack.end("scheduler")
        at = VERSION.index("first_ms")
        for field, words in versions(stack).items():
            words[at] = str(int(words[at]) - 1200000)
            stack.redis("HSET", "warmq:ledger", field, " ".join(words))
        stack.start_scheduler()
        stack.await_ruler()
        send(stack, "A", 10, "c")
        send(stack, "B", 10, "d")
        ledger = wait_until(lambda: (lambda one: one["routes"][0]["variants"] == 2 and sum(
            version["answers"] for version in one["versions"]) == 60 and one)(
                stack.api("ledger?route=triage")), "two variants", 60)
        shares = {one["answers"]: one["share"] for one in ledger["versions"]}
        assert shares == {40: 0.666, 20: 0.333} and all(one["variant"] for one in ledger["versions"])
        # Each was written once; merged, one write would have done: 1.25 less 0.1 of the price.
        [tokens] = {one["tokens"] for one in ledger["versions"]}
        price = ledger["routes"][0]["split_cost"]
        assert abs(price - tokens * (3.75 - 0.3) / 1e6) < 0.0002
        browser.open(stack.url + "#/route/triage")
        browser.wait_text("2 variants are used side by side", ".why.held")
        box = browser.text(".why.held")
        assert "66.6 % of the answers" in box and "33.3 % of the answers" in box
        assert f"${price:.2f} more than one version would have" in box
        browser.wait_text("Price of the split", ".facts")
