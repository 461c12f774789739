"""What can be done on the page, and that it happens."""

from fleet import wait_until
from stack import Stack
from test_81_page import unlock


def test_an_account_is_unparked(browser, tmp_path):
    with Stack(tmp_path, knobs={"spend_cap": True}) as stack:
        stack.start_all(1, 4)
        stack.send(3)
        wait_until(lambda: [one for one in stack.api("overview")["budgets"]
                            if one["parked_until_ms"]], 60, "the spend cap")
        stack.http("/knobs", {"spend_cap": False})
        browser.open(stack.url)
        browser.wait_text("parked until", "main")
        assert "Unpark" not in browser.text("main")
        unlock(browser)
        browser.do("click", selector="button:has-text('Unpark')")
        browser.wait_text("it parks again", "dialog")
        browser.do("click", selector="dialog button.danger")
        browser.wait_text("Unparked.", "#toast")
        wait_until(lambda: stack.api("overview")["counts"]["done"] >= 3, 30, "the jobs")
        browser.wait("!document.querySelector('main').innerText.includes('parked until')")
