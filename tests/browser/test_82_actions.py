"""What can be done on the page, and that it happens."""

from fleet import wait_until
from stack import Stack
from test_81_page import unlock


def test_an_account_is_unparked(browser, tmp_path):
    with Stack(tmp_path, knobs={"spend_cap": True}) as stack:
        stack.start_all(1, 4)
        stack.send(3)
        wait_until(lambda: [one for one in stack.api("overview")["budgets"]
                            if one["parked_until_ms"]], "the spend cap", 60)
        stack.http("/knobs", {"spend_cap": False})
        browser.open(stack.url)
        browser.wait_text("parked until", "main")
        assert "Unpark" not in browser.text("main")
        unlock(browser)
        browser.do("click", selector="button:has-text('Unpark')")
        browser.wait_text("it parks again", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Unparked.", "#toast")
        wait_until(lambda: stack.api("overview")["counts"]["done"] >= 3, "the jobs", 30)
        browser.wait("!document.querySelector('main').innerText.includes('parked until')")


def test_a_worker_is_told_to_be_quiet_to_go_on_and_to_stop(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.start_worker("worker", 4, "--lease", "3s")
        stack.await_workers(1)
        browser.open(stack.url + "#/workers")
        browser.wait_text("running", "main")
        assert "Quiet" not in browser.text("main tbody")
        unlock(browser)
        browser.do("click", selector="button:has-text('Quiet')")
        browser.wait_text("start nothing more", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("It starts nothing more.", "#toast")
        browser.wait_text("Resume", "main")
        wait_until(lambda: stack.api("overview")["pools"][0]["slots"] == 0, "no slots", 20)
        browser.do("click", selector="button:has-text('Resume')")
        browser.wait_text("It claims jobs again.", "#toast")
        wait_until(lambda: stack.api("overview")["pools"][0]["slots"] == 4, "its slots", 20)
        browser.do("click", selector="button:has-text('Stop')")
        browser.wait_text("hears of it at its next beat", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("It stops at its next beat.", "#toast")
        browser.wait_text("No worker is alive", "main")


def test_a_route_is_not_held_and_held_again(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_all(1, 4)
        stack.send(3)
        stack.family()
        browser.open(stack.url + "#/route/triage")
        browser.wait_text("triage", "main h1")
        unlock(browser)
        browser.do("click", selector="button:has-text('Stop holding')")
        browser.wait_text("written many times", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Holding is off for this route", "main")
        assert stack.api("overview")["unheld"] == ["triage"]
        browser.do("hash", hash="#/routes")
        browser.wait_text("not held", "main")
        browser.do("hash", hash="#/overview")
        browser.wait_text("Holding is off for one route", "main")
        browser.do("hash", hash="#/route/triage")
        browser.do("click", selector="button:has-text('Hold again')")
        browser.wait_text("Its jobs are held again.", "#toast")
        wait_until(lambda: stack.api("overview")["unheld"] == [], "the scheduler", 20)


def test_a_prefix_is_written_ahead_and_its_jobs_read_it(browser, tmp_path):
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(2)
        id = stack.family()["id"]
        assert stack.act(f"families/{id}/cancel")["cancelled"] == 2
        stack.start_worker("worker", 10)
        stack.await_workers(1)
        browser.open(stack.url + f"#/family/{id}")
        browser.wait_text("cold", "main")
        unlock(browser)
        browser.do("click", selector="button:has-text('Warm')")
        browser.wait_text("That costs one write", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("One request writes it now.", "#toast")
        wait_until(lambda: stack.family()["state"] == "checking", "the entry", 30)
        written = stack.stats()["tokens_written"]
        assert written > 5000 and stack.stats()["requests"] == 1
        browser.wait("!document.querySelector('main').innerText.includes('Warm\\n')")
        stack.send(8, reply="after")
        stack.collect(8, 60, "after")
        assert stack.stats()["tokens_written"] == written, "all have read it"
        ledger = wait_until(lambda: (lambda one: one["week"]["calls"] >= 9 and one)(stack.api("ledger")),
                            "the ledger", 20)
        assert [(one["cause"], one["written"]) for one in ledger["week"]["causes"]
                if one["written"]] == [("first", written)]


def test_from_the_list_a_family_is_paused_warmed_and_cancelled(browser, tmp_path):
    """By the mouse and by keys; what makes no sense now says why."""
    with Stack(tmp_path) as stack:
        stack.start_scheduler()
        stack.await_ruler()
        stack.send(3)
        id = stack.family()["id"]
        browser.open(stack.url + "#/families")
        browser.wait_text("triage", "tbody")
        assert browser.eval("document.querySelectorAll('[data-do=more]').length") == 0
        unlock(browser)
        browser.do("click", selector="tbody button:has-text('…')")
        browser.wait_text("Jobs wait: the first of them writes it.", "dialog")
        browser.wait_text("All 3 waiting jobs of this family end.", "dialog")
        assert browser.do("axe") == []
        browser.do("click", selector="dialog button:has-text('Pause')")
        browser.wait_text("Paused.", "#toast")
        wait_until(lambda: stack.family()["paused"], "the pause", 20)
        browser.do("click", selector="tbody button:has-text('Resume')")
        browser.wait_text("Resumed.", "#toast")
        browser.do("press", text="Escape")
        browser.do("press", text="j")
        browser.do("press", text="a")
        browser.wait_text("Cancel what waits", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Cancelled. 3 jobs.", "#toast")
        stack.start_worker("worker", 10)
        stack.await_workers(1)
        browser.wait("!document.querySelector('tbody').innerText.includes('oldest')")
        browser.wait_text("cold", "tbody")
        browser.do("click", selector="tbody button:has-text('…')")
        browser.wait_text("No job waits.", "dialog")
        browser.do("click", selector="dialog button:has-text('Warm')")
        browser.wait_text("One request writes it now.", "#toast")
        wait_until(lambda: stack.api(f"families/{id}")["state"] == "checking", "the entry", 30)
        browser.do("hash", hash=f"#/family/{id}")  # who wrote it, if no job has?
        browser.wait_text("warm-up", "main [aria-label='Requests that wrote']")
        [writer] = stack.api(f"families/{id}/writers")["writers"]
        assert writer["role"] == "ticket" and writer["written"] == stack.stats()["tokens_written"]
