"""Jobs: found by id, route and state; the whole story of one; dead letters in bulk."""

from fleet import anthropic_body, long_text, wait_until
from stack import TOKEN, Stack


def listed(stack, state, route):
    return stack.api(f"jobs?state={state}&route={route}&limit=200")


def unlock(browser):
    browser.do("click", selector="button:has-text('Unlock actions')")
    browser.do("fill", selector="dialog input", text=TOKEN)
    browser.do("press", text="Enter")
    browser.wait_text("Lock", "#state")


def rows_of(browser):
    return browser.eval("[...document.querySelectorAll('main tbody tr')].map((row) => row.dataset.row)")


def test_jobs_are_found_by_route_and_state(browser, tmp_path):
    with Stack(tmp_path, knobs={"job_ms": 600000}) as stack:
        stack.start_all(1, 4)
        triage = set(stack.send(12, "triage"))
        wait_until(lambda: listed(stack, "running", "triage")["total"] == 4, "four running", 60)
        review = set(stack.send(6, "review"))
        later = set(stack.enqueue([anthropic_body("later", long_text(2000))] * 3, route="review",
                                  not_before="+3600s"))
        wait_until(lambda: listed(stack, "waiting", "review")["total"] == 6 and
                   listed(stack, "waiting", "triage")["total"] == 8, "both queues", 60)
        assert stack.api("jobs?state=later")["total"] == 3
        found = {(state, route): {job["id"] for job in listed(stack, state, route)["jobs"]}
                 for state in ("running", "waiting") for route in ("triage", "review")}
        assert found["running", "triage"] | found["waiting", "triage"] == triage
        assert found["running", "review"] == set() and found["waiting", "review"] == review
        assert listed(stack, "waiting", "nothing")["total"] == 0
        first = stack.api("jobs?state=waiting&route=triage&limit=5")["jobs"]
        rest = stack.api("jobs?state=waiting&route=triage&limit=5&offset=5")["jobs"]
        assert [one["id"] for one in first + rest] == [
            one["id"] for one in listed(stack, "waiting", "triage")["jobs"]]

        browser.open(stack.url + "#/jobs?state=waiting")
        browser.wait_text("Waiting jobs are listed by route")
        browser.do("fill", selector="input[name=route]", text="review")
        browser.wait("document.querySelectorAll('main tbody tr').length === 6")
        assert set(rows_of(browser)) == review
        browser.do("hash", hash="#/jobs?state=later")
        browser.wait("document.querySelectorAll('main tbody tr').length === 3")
        assert set(rows_of(browser)) == later

        # One of those that wait: where, and what stands between it and a start.
        browser.do("hash", hash=f"#/job/{sorted(review)[0]}")
        browser.wait_text("the slots of the pool default work on other prefixes first", ".why")
        browser.wait_text("It was enqueued for main, route review.")
        browser.wait_text("It waits in the queue of its family")


def test_the_story_of_a_job_has_its_failures_and_its_end(browser, tmp_path):
    knobs = {"fault_next": "server_error", "fault_next_count": 2, "job_ms": 50}
    with Stack(tmp_path, knobs=knobs) as stack:
        stack.start_all(1, 4)
        job = stack.redis("XADD", "warmq:jobs", "*", "upstream", "main", "route", "story", "body",
                          anthropic_body("why?", long_text(3000, "story "))).decode()
        wait_until(lambda: stack.redis("EXISTS", f"warmq:result:{job}"), "its result", 90)
        browser.open(stack.url + f"#/job/{job}")
        browser.wait_text("done", "main .badge")
        story = browser.text("main .notes")
        result = stack.api(f"jobs/{job}")["result"]
        assert result["attempts"] == 2 and result["delivery"] == 3
        assert "had its first event after" in story and "after it was sent: done" in story
        assert "in delivery 3" in story
        assert int(job.split("-")[0]) < result["sent_ms"] < stack.api("overview")["now_ms"]
        assert "Its request (the job's start number 3) left, " in story
        usage = result["usage"]
        assert f"had {usage['uncached']:,} in full and {usage['output']} as its answer" in story
        assert "why?" not in browser.text("main"), "no prompt without rights"
        # Tries that failed are counted, and are no dead letters.
        wait_until(lambda: stack.api("overview")["counts"]["retried"] == 2, "the count", 30)
        counts = stack.api("overview")["counts"]
        assert (counts["dead"], counts["dead_letters"], counts["deferred"]) == (0, 0, 0)
        wait_until(lambda: stack.api("history")["failed"][-1:] == [2], "a point of the chart", 30)
        browser.do("hash", hash="#/overview")
        browser.wait_text("tries so far: 2 failed", ".tiles")
        browser.wait_text("tries failed", "[data-key=hour-jobs]")


def test_dead_letters_are_retried_and_dropped_in_bulk(browser, tmp_path):
    with Stack(tmp_path, knobs={"fault_next": "bad_request", "fault_next_count": 9}) as stack:
        stack.start_all(1, 10)
        stack.send(5, "triage", reply="dead")
        wait_until(lambda: listed(stack, "dead", "triage")["total"] == 5, "five deaths", 60)
        stack.send(4, "review", reply="dead")
        wait_until(lambda: listed(stack, "dead", "review")["total"] == 4, "four more", 60)
        assert stack.api("jobs?state=dead")["total"] == 9
        browser.open(f"{stack.url}#/job/{listed(stack, 'dead', 'triage')['jobs'][0]['id']}")
        browser.wait_text("It was enqueued for main, route triage.")
        browser.wait_text("It died: invalid_request_error. 400 ")
        browser.do("hash", hash="#/dead?route=triage")
        unlock(browser)
        browser.wait("document.querySelectorAll('main tbody tr').length === 5")
        assert browser.eval("[...document.querySelectorAll('main button')].filter("
                            "(one) => / all$/.test(one.innerText)).length") == 0
        assert len(stack.pop_results({}, "dead")) == 9
        browser.do("click", selector="main button:has-text('Choose all shown')")
        browser.do("click", selector="main button:has-text('Retry chosen')")
        browser.wait_text("Queued again 5 jobs", "#toast")
        assert all(one["state"] == "done" for one in stack.collect(5, 60, "dead").values())
        browser.do("hash", hash="#/dead")
        browser.wait("document.querySelectorAll('main tbody tr').length === 4")
        browser.wait_text("its first try", "main tbody")
        browser.wait_text("4 jobs ended without a result, of 9 that died", "main")
        browser.wait_text("Dead letters4", "#nav")
        browser.do("click", selector="main button:has-text('Drop all')")
        browser.do("click", selector="dialog button:has-text('Yes')")
        browser.wait_text("Dropped. 4 jobs", "#toast")
        browser.wait_text("No job has died")
        assert stack.api("jobs?state=dead")["total"] == 0
        browser.wait("!document.querySelector('#nav').innerText.includes('4')")  # none is kept
