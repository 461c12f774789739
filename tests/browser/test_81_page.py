"""The page as a whole: its figures are the API's, nothing of a user's becomes markup, it is
accessible, and it goes by the keyboard."""

import json
import re

import pytest

from fleet import wait_until
from stack import TOKEN, Stack

EVIL = "<img src=x onerror=window.hurt=1>"
VIEWS = ["overview", "families", "families?show=all", "routes", "places", "workers", "jobs", "dead"]


def cells(browser, selector="tbody tr"):
    """The texts of the first table that is shown, by the labels of its columns."""
    return browser.eval(f"""[...document.querySelectorAll({json.dumps(selector)})].map((row) =>
        Object.fromEntries([...row.querySelectorAll("td")].map((cell) =>
          [cell.dataset.label, cell.innerText.replace(/\\s+/g, " ").trim()])))""")


def grouped(value):
    return f"{value:,}"


def compact(value):
    for size, unit in ((10 ** 9, "G"), (10 ** 6, "M"), (10 ** 3, "k")):
        if value >= size:
            scaled = value / size
            text = f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}".removesuffix(".0")
            return f"{text} {unit}"
    return str(value)


def test_after_a_burst_the_figures_are_those_of_the_api(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_all(1, 30)
        ids = stack.send(40)
        stack.collect(40, 60, "to-6")
        wait_until(lambda: stack.family()["jobs_done"] == 40, "usage", 60)
        browser.open(stack.url + "#/families")
        family = stack.family()
        browser.wait_text(compact(family["read"]), "tbody")
        [row] = cells(browser)
        assert row["Family"].startswith("triage") and family["id"][:8] in row["Family"]
        assert row["State"].startswith("warm until ")
        assert row["Prefix hits"] == f"{family['prefix_hit_ratio'] * 100:.1f} %".replace(".0 %", " %")
        assert row["Tokens read"] == f"{family['token_read_ratio'] * 100:.1f} %".replace(".0 %", " %")
        assert row["Tokens read / written / uncached"] == " / ".join(
            compact(family[name]) for name in ("read", "written", "uncached"))
        assert family["written"] == stack.stats()["tokens_written"], "and those of the provider"
        browser.do("hash", hash=f"#/family/{family['id']}")
        browser.wait_text(grouped(family["read"]), ".facts")
        facts = browser.text(".facts")
        for name in ("read", "written", "uncached", "output", "tokens"):
            assert grouped(family[name]) in facts, name
        [writer] = stack.api(f"families/{family['id']}/writers")["writers"]
        assert writer["written"] == family["written"] and writer["role"] == "lead"
        browser.wait_text("writer", "main")
        browser.do("hash", hash="#/overview")
        ledger = wait_until(lambda: (lambda one: one["week"]["calls"] >= 40 and one)(stack.api("ledger")),
                            "the ledger", 20)
        written = sum(one["written"] for one in ledger["week"]["causes"])
        assert written == ledger["week"]["written"] == stack.stats()["tokens_written"]
        browser.wait_text(grouped(ledger["week"]["causes"][0]["written"]), "main")
        browser.wait_text("first of its kind", "main")
        browser.do("hash", hash=f"#/job/{ids[0]}")
        browser.wait_text("Nothing is known of this job", "main")


def test_nothing_that_users_write_becomes_markup(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.start_worker("worker", 4)
        stack.await_workers(1)
        stack.redis("HSET", next(key for key in stack.redis("KEYS", "warmq:session:*")), "label",
                    EVIL + "\u202e")
        stack.enqueue(["{}"], route=EVIL, reply="dead")
        ids = stack.send(6, EVIL, 4000, reply="evil")
        stack.collect(6, 60, "evil")
        family = stack.family(EVIL.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20"))
        browser.open(stack.url)
        for hash in [f"#/{view}" for view in VIEWS] + [
                f"#/family/{family['id']}", "#/route/" + EVIL.replace(" ", "%20"),
                f"#/job/{ids[0]}", f"#/job/{EVIL}", f"#/{EVIL}", f"#/families?q={EVIL}",
                "#/family/../../x"]:
            browser.do("hash", hash=hash)
            browser.wait("document.querySelector('main h1') !== null")
            if hash in ("#/families", "#/routes"):
                browser.wait_text("<img src=x", "main")
            if hash == "#/workers":
                browser.wait_text("<img src=x", "main")
            assert browser.eval("document.querySelectorAll('main img, main script').length") == 0, hash
            assert browser.eval("window.hurt") is None, hash


def test_every_view_is_accessible_in_both_colours(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_all(1, 6)
        stack.send(6)
        stack.collect(6, 60, "to-6")
        stack.http("/knobs", {"job_ms": 600000})
        stack.send(40)
        stack.enqueue(["{}"], reply="dead")
        family = wait_until(lambda: stack.family().get("tokens") and stack.family(),
                            "the family", 60)
        browser.open(stack.url)
        serious = {}
        waiting = "jobs?state=waiting&route=triage"
        job = wait_until(lambda: stack.api(waiting)["jobs"], "a waiting job", 60)[0]["id"]
        for view in VIEWS + [f"family/{family['id']}", "route/triage", waiting, f"job/{job}"]:
            browser.do("hash", hash=f"#/{view}")
            browser.wait(f"location.hash === '#/{view}' && document.querySelector('main h1') !== null"
                         " && !document.querySelector('main h1').innerText.includes('WarmQ')")
            for dark, width in ((False, 1280), (True, 1280), (True, 390), (False, 390)):
                browser.do("media", dark=dark)
                browser.do("size", width=width, height=860)
                found = [one for one in browser.do("axe") if one["impact"] in ("serious", "critical")]
                if found:
                    serious[f"{view}, {'dark' if dark else 'light'}, {width}"] = found
        assert serious == {}


# All that can be acted on, and what the keyboard has come to: its mark must be seen.
REACHABLE = """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
  .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility() && !one.closest('dialog'))
  .map((one) => { one.dataset.seen = one.dataset.seen || ''; return one; }).length"""
HERE = """(() => { const one = document.activeElement, style = getComputedStyle(one);
  if (one === document.body) return 'end';
  one.dataset.seen = 'yes';
  return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 ? 'seen'
    : 'no mark at ' + one.outerHTML.slice(0, 120); })()"""
MISSED = """[...document.querySelectorAll('[data-seen=""]')].filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 120))"""


def test_every_action_is_reached_by_the_keyboard_and_marked(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_all(1, 6)
        stack.send(12)
        stack.enqueue(["{}"], reply="dead")
        stack.collect(12, 60, "to-6")
        family = stack.family()["id"]
        stack.kill("provider")  # nothing moves any more
        browser.open(stack.url, width=1280, height=860)
        unlock(browser)
        for view in VIEWS + [f"family/{family}", "route/triage"]:
            browser.do("hash", hash=f"#/{view}")
            browser.wait(f"location.hash === '#/{view}' && document.querySelector('main h1') !== null"
                         " && !document.querySelector('main h1').innerText.includes('WarmQ')")
            browser.eval("document.activeElement.blur(); window.getSelection().removeAllRanges();"
                         " document.querySelector('.skip').focus()")
            count = browser.eval(REACHABLE)
            for _ in range(count + 2):
                here = browser.eval(HERE)
                if here == "end":
                    break
                assert here == "seen", f"{view}: {here}"
                browser.do("press", text="Tab")
            assert browser.eval(MISSED) == [], view


def test_it_goes_by_the_keyboard(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        for route in ("alpha", "beta", "gamma"):
            stack.send(3, route)
        wait_until(lambda: stack.api("families")["total"] == 3, "three families", 60)
        browser.open(stack.url)
        browser.wait_text("Why jobs wait")
        browser.do("press", text="2")
        browser.wait_text("gamma", "tbody")
        browser.do("press", text="/")
        assert browser.eval("document.activeElement.name") == "q"
        for letter in "beta":
            browser.do("press", text=letter)
        browser.wait("location.hash.includes('q=beta')")
        browser.wait("document.querySelectorAll('tbody tr').length === 1")
        assert browser.eval("document.activeElement.value") == "beta", "it keeps the focus"
        browser.do("press", text="Tab")
        browser.eval("document.activeElement.blur()")
        browser.do("press", text="j")
        assert browser.eval("document.activeElement.innerText") == "beta"
        browser.do("press", text="Enter")
        browser.wait_text("No live worker serves the pool", ".why")
        browser.do("press", text="?")
        browser.wait("document.querySelector('dialog').open")
        browser.do("press", text="Escape")
        browser.wait("!document.querySelector('dialog').open")


def unlock(browser):
    browser.do("click", selector="button:has-text('Unlock actions')")
    browser.do("fill", selector="dialog input", text=TOKEN)
    browser.do("press", text="Enter")
    browser.wait_text("Lock", "#state")


def test_the_switch_and_the_dead_letters(browser, tmp_path):
    with Stack(tmp_path, knobs={"fault_next": "bad_request", "fault_next_count": 3}) as stack:
        stack.start_all(1, 10)
        stack.send(3)
        wait_until(lambda: stack.api("jobs?state=dead")["total"] == 3, "three deaths", 60)
        browser.open(stack.url + "#/dead")
        browser.wait_text("invalid_request_error", "tbody")
        assert "Retry" not in browser.text("main")
        unlock(browser)
        browser.wait_text("Retry chosen", "main")
        browser.do("click", selector="tbody tr:first-child input")
        browser.do("click", selector="button:has-text('Drop chosen')")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Dropped 1 jobs", "#toast")
        assert stack.api("jobs?state=dead")["total"] == 2
        browser.do("click", selector="button:has-text('Retry all')")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Queued again. 2 jobs", "#toast")
        wait_until(lambda: stack.api("overview")["counts"]["done"] >= 2, "two good ends", 60)
        browser.do("click", selector="button[role=switch]")
        browser.wait_text("Switch holding off", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Holding off", "#state")
        assert stack.api("overview")["hold"] is False
        browser.do("hash", hash="#/overview")
        browser.wait_text("Holding is off", "main")
        browser.do("click", selector="button[role=switch]")
        browser.wait_text("Holding on", "#state")


def test_a_stand_by_shows_no_figures_of_what_it_does_not_know(browser, tmp_path):
    """Zeros of a scheduler that knows nothing read like an empty queue."""
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(10)
        stack.await_blocked("no worker")
        stack.start_scheduler("second")
        wait_until(lambda: stack.api("overview")["phase"] == "standing by", "a stand-by", 60)
        browser.open(stack.url)
        browser.wait_text("This scheduler stands by", "main")
        browser.wait_text("standing by", "#state")
        for view in ("overview", "families", "routes", "places"):
            browser.do("hash", hash=f"#/{view}")
            browser.wait_text("open its page", "main")
            assert browser.eval("document.querySelectorAll('main .tile, main table').length") == 0
        for words in (["why"], ["top", "--once"]):
            said = stack.warmq(*words, "--url", stack.url)
            assert "This scheduler stands by" in said and "0 jobs wait" not in said
        browser.do("hash", hash="#/jobs?state=waiting&route=triage")  # that is asked of Redis
        browser.wait_text("This scheduler stands by", "main")
        browser.wait("document.querySelector('main .filters') !== null")


def test_old_figures_say_how_old_they_are(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(10)
        stack.await_blocked("no worker")
        browser.open(stack.url)
        browser.wait_text("live", "#state")
        stack.end("redis")
        browser.wait_text("Redis is away", "#state")
        browser.wait_text("What is shown is what was known before", "main .why")
        browser.do("hash", hash="#/workers")
        browser.wait_text("Redis does not answer", "main")
        browser.do("hash", hash="#/overview")
        browser.wait("document.querySelector('main .tile') !== null")
        stack.kill("scheduler")
        browser.wait_text("No news from the scheduler since ", "main .why.stuck")
        browser.wait_text("no news from the scheduler", "#state")


def test_a_page_that_was_cut_off_goes_on_by_itself(browser, tmp_path):
    """The same address again, as behind a restart: nobody has to reload."""
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        browser.open(stack.url)
        browser.wait_text("live", "#state")
        text = stack.config.read_text()
        stack.config.write_text(text.replace("127.0.0.1:0", stack.url[len("http://"):-1]))
        stack.end("scheduler")
        browser.wait_text("No news from the scheduler since ", "main .why.stuck")
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(7)
        browser.wait_text("live", "#state")
        browser.wait("document.querySelector('main .why.stuck') === null")
        browser.wait_text("7", ".tile .figure")


def test_a_read_without_an_answer_leaves_what_is_known_and_says_from_when(browser, tmp_path):
    """A page that reads in the moment in which the scheduler ends, as one behind each event does."""
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(7)
        browser.open(stack.url)
        browser.wait_text("7", ".tile .figure")
        text = stack.config.read_text()
        stack.config.write_text(text.replace("127.0.0.1:0", stack.url[len("http://"):-1]))
        stack.end("scheduler")
        browser.eval("dispatchEvent(new Event('hashchange'))")
        browser.wait_text("No news from the scheduler since ", "main .why.stuck")
        assert "What is shown is from then" in browser.text("main .why.stuck")
        assert browser.text(".tile .figure") == "7"
        browser.do("hash", hash="#/workers")
        browser.wait_text("No news from the scheduler since ", "main .why.stuck")
        browser.wait_text("Workers", "main h1")
        assert "What is shown" not in browser.text("main .why.stuck")
        stack.start_scheduler()
        stack.await_ruler()
        browser.wait_text("live", "#state")
        browser.wait("document.querySelector('main .why.stuck') === null")
        browser.wait_text("No worker is alive", "main")


def test_a_changed_configuration_is_a_mark_on_the_event_line(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(3)
        wait_until(lambda: stack.redis("HGET", "warmq:recent", "g:0"), "its parts to be stored")
        stack.end("scheduler")
        stack.config.write_text(stack.config.read_text().replace("price_input: 3", "price_input: 4"))
        stack.start_scheduler()
        stack.await_ruler()
        browser.open(stack.url + "#/overview?range=week")
        browser.wait_text("the configuration has changed: models", ".changes")
        assert browser.eval("document.querySelectorAll('.changes .mark.config').length") == 1
        browser.wait("document.querySelectorAll('[data-keep=chart-week-tokens] .lane .mark.config').length === 1")
        mark = "document.querySelector('[data-keep=chart-week-tokens] .lane .mark.config')"
        assert "the configuration has changed: models" in browser.eval(f"{mark}.title")
        box = browser.eval(f"(({{ left, width, height }}) => [left, width, height])({mark}.getBoundingClientRect())")
        assert box[0] > 0 and box[1] >= 8 and box[2] >= 8, "it can be seen"
        assert "another configuration" in browser.text(".marks")


def test_without_a_token_it_is_read_only_and_says_so(browser, tmp_path):
    with Stack(tmp_path, token=None) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(3)
        family = stack.family()
        browser.open(stack.url + f"#/family/{family['id']}")
        browser.wait_text("read-only", "#state")
        browser.wait_text("No live worker", "main")
        assert browser.eval("document.querySelectorAll('main button').length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_narrow_screen_nothing_sticks_out(browser, tmp_path, dark):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        name = "AnameAsLongAsItCanBeOfOneWordOnlyWithNoPlaceWhereItCouldBeBroken"
        stack.send(12, name)
        family = stack.family(name)
        browser.open(stack.url, width=360, height=740, dark=dark)
        route = f"route/{name}"
        for view in (*VIEWS, "places?everywhere=1", f"family/{family['id']}", route):
            browser.do("hash", hash=f"#/{view}")
            browser.wait(f"location.hash === '#/{view}' && document.querySelector('main h1') !== null"
                         " && !document.querySelector('main h1').innerText.includes('WarmQ')")
            assert browser.eval("document.documentElement.scrollWidth") <= 360, view


def test_on_a_usual_screen_no_column_is_cut_off(browser, tmp_path):
    """1280 pixels, with the columns of those who may act, and figures as long as they get."""
    with Stack(tmp_path, knobs={"job_ms": 500}, places=["backup"]) as stack:
        stack.start_all(1, 30)
        for route in ("support/triage", "contracts/review"):
            for place in ("main", "backup"):
                stack.send(60, route, 20000, "wide", upstream=place)
        stack.enqueue([f'{{"a":{n}}}' for n in range(3)], "dead", route="support/triage")
        stack.collect(240, 90, "wide")
        family = wait_until(lambda: [one for one in stack.api("families")["families"]
                                     if one["jobs_done"] >= 50], "figures", 60)[0]
        browser.open(stack.url, width=1280)
        unlock(browser)
        for view in (*VIEWS, "overview?range=week", f"family/{family['id']}", "route/support%2Ftriage"):
            stack.send(40, "support/triage", 20000, "more")
            browser.do("hash", hash=f"#/{view}")
            browser.wait(f"location.hash === '#/{view}' && document.querySelector('main h1') !== null"
                         " && !document.querySelector('main h1').innerText.includes('WarmQ')")
            browser.wait("document.querySelector('main .scroll') !== null")
            cut = browser.eval("[...document.querySelectorAll('main .scroll')].filter((one) => "
                               "one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)")
            assert cut == [], view
            assert browser.eval("document.documentElement.scrollWidth") <= 1280, view


def test_the_vendored_library_is_what_it_says(tmp_path):
    """A build needs no npm: the file is here, with its licence and its version."""
    import hashlib
    from pathlib import Path

    vendor = Path(__file__).resolve().parents[2] / "scheduler" / "dashboard" / "vendor"
    text = (vendor / "uPlot.iife.min.js").read_text()
    version = re.search(r"uPlot \(v([\d.]+)\)", text).group(1)
    notes = (vendor / "README.md").read_text()
    assert f"uPlot {version}" in notes and "MIT License" in (vendor / "LICENSE").read_text()
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() in notes, name
