"""A person who sees the page for the first time can tell why a family does not run: one
test for each reason, from the overview to the family's own page."""

import json
import subprocess

import pytest

from fleet import WARMQ, anthropic_body, long_text, wait_until
from stack import Stack
from test_85_money import store_hours


def follow(browser, stack, word, sentence, route="triage"):
    """From the overview's reasons to the family: each page says the word, the last one the
    sentence."""
    browser.open(stack.url, width=1280, height=800)
    browser.wait_text(word, ".reasons")
    browser.wait_text(route if route == "triage" else "mostly ", ".reasons")  # of several: one
    at_once(browser, ".reasons li")
    browser.do("click", selector=f".reasons a:has-text('{word}')")
    browser.wait_text(word, "tbody")
    browser.do("click", selector=f"td.name a:has-text('{route}')")
    browser.wait_text(sentence, ".why")
    assert word.lower() in browser.text(".why strong").lower()
    at_once(browser, ".why")


def at_once(browser, selector):
    """It is read without a scroll, a click or a pointer: nothing hides or cuts it."""
    assert browser.eval(f"""(() => {{
      const one = document.querySelector({json.dumps(selector)}), box = one.getBoundingClientRect();
      const texts = [...one.querySelectorAll("*")].filter((node) => node.innerText);
      return scrollY === 0 && box.bottom < innerHeight && box.height > 0 && texts.length > 0 &&
        texts.every((node) => node.checkVisibility({{ checkOpacity: true, checkVisibilityCSS: true }})
          && node.scrollWidth <= Math.max(node.clientWidth, node.offsetWidth) + 1);
    }})()"""), browser.eval(f"document.querySelector({json.dumps(selector)}).outerHTML")


def test_because_its_prefix_is_being_written(browser, tmp_path):
    with Stack(tmp_path, "    hold_max: 10m\n    first_byte: 20m", {"keep_waiting": True}) as stack:
        stack.start_all(1, 20)
        stack.enqueue([anthropic_body(f"Question {n}", long_text(6000, "triage "))
                       for n in range(20)], route="triage", hold_max="10m")
        stack.await_blocked("being written")
        follow(browser, stack, "being written",
               "One request is writing the prefix; the others wait until they can read it, "
               "600 s at most.")
        waiting = stack.api(f"jobs?state=waiting&family={stack.family()['id']}")["total"]
        assert waiting == 19, "one writes"
        browser.wait_text(f"WAITING ({waiting})", "main")
        browser.wait_text("writer", "main")


def test_because_the_account_is_parked(browser, tmp_path):
    with Stack(tmp_path, knobs={"retry_after_ms": 600000, "fault_next": "rate_limit",
                                "fault_next_count": 1}) as stack:
        stack.start_all(1, 20)
        stack.send(10)
        family = stack.await_blocked("parked")
        assert family["blocked_until_ms"] > 0
        follow(browser, stack, "account parked", "The account main:sonnet is parked: its provider said 429")
        browser.wait_text("until ", ".why .detail")
        browser.wait_text("(in ", ".why .detail")
        browser.do("hash", hash="#/overview")
        browser.wait_text("parked until", "main")


def test_because_somebody_paused_it(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(10)
        family = stack.family()
        browser.open(stack.url + f"#/family/{family['id']}")
        browser.wait_text("no worker", ".why strong")
        assert "Pause" not in browser.text("main"), "nobody may act yet"
        unlock(browser, "wrong-token")
        browser.wait_text("That is not the token", "#toast")
        unlock(browser, "open-sesame")
        browser.wait_text("Pause", "main")
        browser.do("click", selector="main button:has-text('Pause')")
        browser.wait_text("It is paused: nothing starts until it is resumed.", ".why")
        assert stack.family()["paused"] is True
        follow(browser, stack, "paused", "It is paused")
        assert "Resume" not in browser.text("main"), "another tab has no token"


def unlock(browser, token):
    browser.do("click", selector="button:has-text('Unlock actions')")
    browser.do("fill", selector="dialog input", text=token)
    browser.do("press", text="Enter")


def test_because_there_is_no_worker(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        browser.open(stack.url)  # what to do first, with a name of the configuration
        browser.wait_text("XADD warmq:jobs * upstream main route ROUTE body", ".why")
        browser.wait_text("No worker is there yet", ".why")
        stack.send(10)
        stack.await_blocked("no worker")
        follow(browser, stack, "no worker", "No live worker serves the pool default.")
        browser.wait_text("start one: warmq-worker --pool default", ".why .advice")
        browser.do("hash", hash="#/workers")
        browser.wait_text("No worker is alive", "main")


def test_because_the_output_budget_is_used_up(browser, tmp_path):
    limits = "    class_limits:\n      sonnet:\n        otpm: 4000\n"
    with Stack(tmp_path, limits) as stack:
        stack.start_all(1, 100)
        stack.send(6, max_tokens=1000, reply="first")
        stack.collect(6, 120, "first")
        stack.http("/knobs", {"job_ms": 600000})
        stack.send(200, max_tokens=1000)
        stack.await_blocked("budget", seconds=60)
        browser.open(stack.url)  # which limit binds, with its number, before anybody clicks
        browser.wait_text("allows 4,000 output tokens a minute, and they are used up", ".reasons")
        browser.wait_text("4,000 a minute, 1,000 reserved by each: 4 at once", ".reasons")
        browser.wait_text("Advice: answers have", ".reasons")
        follow(browser, stack, "budget",
               "allows 4,000 output tokens a minute, and they are used up.")
        browser.wait_text("output budget", ".why strong")
        browser.wait_text("1,000 reserved by each: 4 at once", ".why .detail")
        browser.wait_text("a max_tokens of", ".why .advice")


def test_because_as_many_run_as_the_account_may_have_at_once(browser, tmp_path):
    """With free slots, and limits a minute that are far away: of the two, the window binds."""
    limits = "    class_limits:\n      sonnet:\n        concurrency: 2\n        rpm: 100000\n"
    with Stack(tmp_path, limits, {"job_ms": 600000}) as stack:
        stack.start_all(1, 20)
        stack.send(30)
        stack.send(20, "review")  # it comes later for the same reason, not for want of slots
        family = stack.await_blocked("window")
        assert (family["blocked_on"], family["window"]) == ("window (2 at once)", 2)
        stack.await_blocked("window", "review")
        follow(browser, stack, "window full", "As many requests run as the account main:sonnet "
               "may have at once: 2, its configured concurrency.")
        browser.wait_text("2 at once", ".why .detail")
        browser.wait_text("raise concurrency in class_limits", ".why .advice")


def test_because_its_provider_is_not_reached(browser, tmp_path):
    """For as long as that is so: also while one request asks whether it is back."""
    with Stack(tmp_path) as stack:
        stack.start_all(1, 10)
        stack.kill("provider")
        stack.send(10)
        stack.await_blocked("parked")
        wait_until(lambda: is_parked(stack) and
                   stack.log("worker-1").count("nothing was sent") >= 5, "five in vain", 60)
        follow(browser, stack, "account parked", "main:sonnet is parked: its provider is not reached")
        browser.wait_text("check its url and the network", ".why .advice")
        browser.do("hash", hash="#/workers")
        browser.wait_text("does not reach main", "main")


def is_parked(stack):
    """Nothing else may be said meanwhile."""
    family = stack.family()
    assert family["blocked_kind"] == "parked", family
    return True


def test_because_all_workers_are_quiet(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_all(1, 10)
        stack.warmq("worker", "quiet", "worker-1")
        wait_until(lambda: "was told to be quiet" in stack.log("scheduler"), "the scheduler", 60)
        stack.send(10)
        stack.await_blocked("no worker")
        follow(browser, stack, "no worker", "All workers of the pool default are quiet: they "
               "were told to start nothing more.")
        browser.wait_text("warmq worker resume", ".why .advice")


def test_because_others_are_drained_first(browser, tmp_path):
    with Stack(tmp_path, knobs={"job_ms": 600000}) as stack:
        stack.start_all(1, 4)
        stack.send(40, "triage")
        wait_until(lambda: stack.family("triage")["running"] == 4, "four running jobs", 60)
        for route in ("one", "two", "three", "four", "five", "six"):
            stack.send(20, route)
        wait_until(lambda: stack.api("families?blocked=drain+order")["total"] >= 5,
                   "families that come later", 60)  # the next one may be warmed ahead
        route = stack.api("families?blocked=drain+order")["families"][0]["route"]
        assert stack.family("triage")["blocked_on"] == "slots"
        follow(browser, stack, "drained later",
               "It is drained later: the slots of the pool default work on other prefixes first.",
               route)
        browser.do("hash", hash="#/workers")
        browser.wait_text("triage", "main")
        browser.wait_text(", for ", "main")
        [worker] = stack.api("workers")["workers"]
        began = {one["since_ms"] for one in worker["drains"] if one["route"] == "triage"}
        assert 0 < min(began) < stack.api("overview")["now_ms"]


@pytest.mark.parametrize("word", ["cold", "warm until"])
def test_and_what_is_warm_is_said_in_words(browser, tmp_path, word):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(6)
        if word != "cold":
            stack.start_worker("worker", 10)
            stack.collect(6, 60, "to-6")
        browser.open(stack.url + "#/families")
        browser.wait_text(word, "tbody")
        assert stack.family()["state"] == ("warm" if word != "cold" else "cold")


def test_and_a_deploy_with_a_date_in_its_prompt_is_named_with_byte_and_dollars(browser, tmp_path):
    """The route, the byte, the dollars: now, and six days later, when the old prefix is
    forgotten by everybody else."""
    def send(stack, date, reply):
        system = f"You are the triage desk. Today is {date}. " + long_text(6000, "policy ")
        stack.enqueue([anthropic_body(f"Question {n}", system) for n in range(12)], reply,
                      route="triage")
        stack.collect(12, 60, reply)

    with Stack(tmp_path) as stack:
        stack.start_all(1, 20)
        send(stack, "2026-11-23", "first")
        send(stack, "2026-11-24", "second")
        ledger = wait_until(lambda: (lambda one: one["week"]["calls"] >= 24 and
                                     one["versions"][0].get("change") and one)(
            stack.api("ledger?route=triage")), "the ledger, and what the new version changed", 60)
        cause = next(one for one in ledger["week"]["causes"] if one["cause"] == "new_version")
        assert cause["written"] > 6000 and cause["cost"] > 0
        browser.open(stack.url + "#/overview")
        browser.wait_text("new version")
        drift = stack.api("drift?route=triage")
        change = f"a date in the system part, from byte {drift['byte']} on"
        browser.wait_text(f"has a new prefix, v2: {change}", ".changes")
        browser.do("hash", hash="#/routes")
        browser.do("click", selector="td.name a:has-text('triage')")
        browser.wait_text("The last change: date", ".why.held")
        text = browser.text(".why.held")
        said = stack.warmq("why", "triage", "--url", stack.url)
        assert "24 are done" in said and "Its last change: Version v2 came " in said
        assert f"date in the system part, from byte {drift['byte']} on." in said
        assert f"system part from byte {drift['byte']}" in text
        assert "Move the date behind the shared part" in text
        assert "v2" in text and "v1" in text
        assert f"${cause['extra']:.2f}" in text
        assert "2026-11-24" not in text.replace("2026-11-24 ", ""), "no prompt without rights"

        tuesday(stack)
        route = wait_until(lambda: next((one for one in stack.api("ledger")["routes"]
                                         if [jump["extra"] for jump in one["jumps"]] == [40]),
                                        None), "every hour of the week to be read back", 60)
        [jump] = route["jumps"]
        assert (jump["from"], jump["to"]) == (1, 9)
        assert jump["until_ms"] - jump["at_ms"] == 5 * 3600000
        browser.open(stack.url)
        browser.wait_text("triage became dearer", ".why.held")
        browser.wait_text(change, ".why.held")
        text = browser.text(".why.held")
        assert "went from $1.00 to $9.00 an hour" in text and "$40.00 more than before" in text
        assert f"version v2 {route['jumps'][0]['version']['family'][:8]} came" in text
        assert "Move the date behind the shared part" in text
        said = subprocess.run([WARMQ, "why", "--url", stack.url], capture_output=True, text=True,
                              timeout=120, check=True).stdout
        assert "triage is dearer since" in said and "from $1.00 to $9.00 an hour, $40.00 more" in said
        assert f"date in the system part, from byte {drift['byte']} on. Move the date" in said
        browser.do("click", selector=".why.held a:has-text('triage')")
        browser.wait_text("The last change: date", "main")
        browser.wait_text(change, "main table")
        browser.do("hash", hash="#/overview?range=week")
        browser.wait("document.querySelectorAll('[data-keep=chart-week-dollars] .mark.version').length === 1")


def tuesday(stack):
    """As if both had come six days ago: the stored ledger says so, and their prefixes are
    forgotten as those of families without work are."""
    wait_until(lambda: stack.redis("HLEN", "warmq:drift") == 1, "the finding in Redis", 30)
    wait_until(lambda: int(stack.redis("HGET", "warmq:ledger", "total").split()[1]) == 24,
               "a stored ledger", 60)
    for program in ("worker-1", "scheduler"):
        stack.end(program)
    hour = store_hours(stack, "triage", {**{back: 1 for back in range(1, 160)},
                                         **{back: 9 for back in range(140, 145)}})
    rows = stack.redis("HGETALL", "warmq:ledger")
    for name, value in zip(rows[::2], rows[1::2]):
        if name.startswith(b"v:"):
            words = value.split(b" ")
            back = 150 if words[1] == b"1" else 144
            words[5] = words[6] = str((hour - back) * 3600000 + 240000).encode()
            stack.redis("HSET", "warmq:ledger", name, b" ".join(words))
    for key in stack.redis("KEYS", "warmq:px:*"):
        stack.redis("DEL", key)
    stack.start_scheduler()
    stack.await_ruler()


