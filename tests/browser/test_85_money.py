"""What a person opens first when the bill is too high: what is dearer since when, what of it
could be avoided, what changed, and how long the cache really keeps what was paid for."""

import re
import time
import urllib.request

from fleet import anthropic_body, long_text, wait_until
from stack import Stack
from waiting import rest

HOUR = 3600000


def store_hours(stack, route, costs):
    """The ledger of earlier hours, as another scheduler would have left it: dollars by age.
    Answers the hour that is."""
    hour = int(time.time() * 1000) // HOUR
    known = stack.redis("HGET", "warmq:ledger", "hours").decode().split(",")
    for back, dollars in costs.items():
        cost = int(dollars * 1e9)
        stack.redis("HSET", f"warmq:ledger:{hour - back}", route,
                    f"1 1 1 0 0 1000 0 64 {cost} 0 0 0 0 other_place:1,1000,0,{cost // 2},{cost // 4}")
        known.append(str(hour - back))
    stack.redis("HSET", "warmq:ledger", "hours", ",".join(sorted(set(known))))
    row = next(name for name, value in zip(*[iter(stack.redis("HGETALL", "warmq:ledger"))] * 2)
               if name.startswith(b"r:") and value.endswith(b"|" + route.encode()))
    words = stack.redis("HGET", "warmq:ledger", row).split(b" ")
    words[0] = str((hour - max(costs)) * HOUR).encode()  # its first call
    stack.redis("HSET", "warmq:ledger", row, b" ".join(words))
    return hour


def test_what_is_dearer_since_when_and_what_changed(browser, tmp_path):
    with Stack(tmp_path, places=["backup"]) as stack:
        stack.start_all(1, 30)
        stack.send(12, "triage", reply="a")
        stack.collect(12, 60, "a")
        stack.send(12, "triage", reply="b", upstream="backup")
        stack.collect(12, 60, "b")
        wait_until(lambda: stack.redis("HGET", "warmq:ledger", "total") and int(
            stack.redis("HGET", "warmq:ledger", "total").split()[1]) == 24, "a stored ledger", 60)
        stack.end("scheduler")
        # A dollar an hour for a week, nine since three hours ago.
        hour = store_hours(stack, "triage", {**{back: 1 for back in range(4, 160)},
                                             **{back: 9 for back in range(4)}})
        stack.start_scheduler()
        stack.await_ruler()
        ledger = wait_until(lambda: (lambda one: one["routes"] and one["routes"][0].get("jump")
                                    and one)(stack.api("ledger")), "all hours to be read back",
                            60)
        [route] = ledger["routes"]
        assert route["yesterday"] == 1 and route["last_hour"] == 9
        assert route["jump"]["from"] == 1
        assert route["jump"]["at_ms"] == (hour - 3) * HOUR

        browser.open(stack.url)
        browser.wait_text("Dollars an hour: now")
        row = browser.eval("document.querySelector('tr[data-row=triage]').innerText")
        assert "$1.00" in row and "since" in row and "from $1.00" in row
        # The second account has written what was warm at the first.
        browser.wait_text("warm elsewhere", ".causes")
        browser.wait_text("Send the route to fewer places.", ".causes")
        browser.wait_text("came to backup too", ".changes")
        browser.wait_text("this process rules now", ".changes")

        stack.http("/knobs", {"retry_after_ms": 600000, "fault_next": "rate_limit",
                              "fault_next_count": 1})
        stack.send(3, "triage", reply="c")
        wait_until(lambda: [one for one in stack.api("ledger")["notes"]
                            if one["text"].startswith("nothing starts for")],
                   "a parked account", 60)
        browser.wait_text("429: over our limit", ".changes")
        assert re.search(r"nothing starts for \d+ s: 429", browser.text(".changes"))


def test_how_long_entries_really_live(browser, tmp_path):
    """An entry that rested for five seconds and was found, and another time was gone."""
    with Stack(tmp_path) as stack:
        stack.start_all(1, 30)
        stack.send(12, "triage", reply="a")
        stack.collect(12, 60, "a")
        rest(5.5)  # the shortest that counts
        stack.send(3, "triage", reply="b")
        stack.collect(3, 60, "b")
        rest(5.5)
        stack.http("/knobs", {"evict_permille": 1000})
        stack.send(1, "triage", reply="c")
        stack.collect(1, 60, "c")
        rests = wait_until(lambda: (lambda one: one and one[0]["gone"] and one)(
            stack.api("ledger")["places"][0]["rests"]), "a rest", 60)
        assert [(one["from_ms"], one["to_ms"], one["kept"] > 0, one["gone"]) for one in rests] == [
            (5000, 30000, True, 1)]
        browser.open(stack.url)
        browser.wait_text("5.0 s to 30 s")
        browser.wait_text("5 min")
        causes = stack.api("ledger")["week"]["causes"]
        assert [one["calls"] for one in causes if one["cause"] == "evicted_early"] == [1]


def test_requests_that_do_not_come_through_warmq_are_seen(browser, tmp_path):
    """Somebody else sends to the same account, by its address."""
    with Stack(tmp_path, knobs={"job_ms": 20, "rpm": 150}) as stack:
        stack.start_all(1, 8)
        stranger = urllib.request.Request(
            f"{stack.provider}/v1/messages", anthropic_body("from elsewhere").encode(),
            {"Content-Type": "application/json", "anthropic-version": "2023-06-01"})

        def take_until(left):
            """However slowly: what is left of the minute counts, which refills meanwhile."""
            while True:
                with urllib.request.urlopen(stranger, timeout=120) as answer:
                    if int(answer.headers["anthropic-ratelimit-requests-remaining"]) <= left:
                        return

        def account_now():
            return (stack.api("overview")["budgets"] or [{}])[0]

        def seen():
            """Ours, and theirs between ours: of these few, or the minute goes to us alone."""
            before = account_now().get("requests_own", 0)
            stack.send(2, "triage", reply="a")
            stack.collect(2, 60, "a")
            take_until(90)  # not so few that one of ours is refused
            account = wait_until(lambda: (lambda one: one.get("requests_own", 0) > before and one)(
                account_now()), "ours to be counted", 30)
            return account["requests_foreign"] >= 20 and account["requests_own"] >= 4 and account

        account = wait_until(seen, "foreign requests", 120)
        sent = stack.stats()["requests"] - account["requests_own"]
        assert account["requests_foreign"] <= sent
        browser.open(stack.url)
        browser.wait_text("Somebody else uses an account", ".why.held")
        browser.wait_text("Not through WarmQ")
        assert f'warmq_outside_requests{{budget="{account["name"]}"}}' in stack.metrics()


def test_thousands_of_one_job_families_are_one_line_with_cause_and_cost(browser, tmp_path):
    """A clock in the prompt: each job pays for all of it, and the page says why and how much."""
    with Stack(tmp_path, knobs={"job_ms": 20}) as stack:
        stack.start_all(1, 30)
        stack.enqueue([anthropic_body("Why?", f"It is 12:{n // 60:02}:{n % 60:02}. You are the desk. " +
                                      long_text(3000, "policy ")) for n in range(60)], "a",
                      route="clock")
        stack.collect(60, 60, "a")
        singles = wait_until(lambda: (lambda one: one["uncached"] > 60 * 2900 and one)(
            stack.api("families?show=families")["singles"]), "all of their tokens", 60)
        assert singles["families"] == 60

        def drift():
            return next((one for one in stack.api("ledger")["week"]["causes"]
                         if one["cause"] == "drift"), None)

        def is_told():
            """What the page says of it: both go on while the last answers are counted."""
            one, text = drift(), browser.text(".folded")
            return (f"{one['written'] + one['full']:,} tokens" in text and
                    f"${one['extra']:.2f} more than reading" in text)

        wait_until(lambda: (lambda one: one and one["calls"] > 50 and one["extra"] > 0 and
                            one["full"] + one["written"] > 50 * 2900)(drift()), "drift", 60)
        browser.open(stack.url + "#/families")
        browser.wait_text("60 families of one job each", ".folded")
        browser.wait_text("Cause: drift.", ".folded")
        wait_until(is_told, "the same figures on the page", 60)
        assert browser.eval("document.querySelectorAll('main tbody tr').length") == 0
        browser.do("click", selector=".folded a")
        browser.wait("document.querySelectorAll('main tbody tr').length === 50")
