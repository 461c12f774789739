"""`warmq why` and `warmq top` print what the page shows."""

import json
import os
import subprocess

from daemons import BUILD, inbox, server  # noqa: F401
from test_42_scheduler_pages import act, enqueue, families, scheduler  # noqa: F401
from store import wait_until


def warmq(*words, url=None, check=0):
    done = subprocess.run([os.path.join(BUILD, "cli", "warmq"), *words,
                           *(["--url", url] if url else [])], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == check, (done.stdout, done.stderr)
    return done.stdout if check == 0 else done.stderr


def url_of(scheduler):
    return f"http://127.0.0.1:{scheduler.port}"


def test_why_says_what_waits_and_why(scheduler, inbox):
    enqueue(inbox, ["triage"], 12)
    enqueue(inbox, ["summaries"], 3)
    id = families(scheduler, "route=summaries")["families"][0]["id"]
    assert act(scheduler, f"families/{id}/pause")[0] == 200
    wait_until(lambda: families(scheduler, "route=summaries")["families"][0]["paused"], "the pause")
    text = warmq("why", url=url_of(scheduler) + "/")
    assert "The scheduler is ruling, holding is on. 15 jobs wait, 0 run in 0 slots." in text
    assert "no worker              12 jobs in 1 family, the oldest for " in text
    assert "triage" in text and "No live worker serves the pool default." in text
    assert "Advice: start one: warmq-worker --pool " in text, text
    assert "It is paused: nothing starts until it is resumed." in text
    assert len(text.splitlines()) <= 15
    one = warmq("why", "summaries", url=url_of(scheduler))
    assert "It is paused" in one and "triage" not in one
    assert "summaries: 3 jobs wait, 0 run, 0 are done." in one
    assert "no worker" not in one and "15 jobs" not in one, "that is of others"
    answer = json.loads(warmq("why", "--json", url=url_of(scheduler)))
    assert {one["route"] for one in answer["families"]} == {"triage", "summaries"}
    assert answer["ledger"]["sums_up"] is True


def test_top_prints_once_without_a_terminal(scheduler, inbox):
    enqueue(inbox, ["triage"], 12)
    text = warmq("top", url=url_of(scheduler))
    line = next(line for line in text.splitlines() if line.startswith("triage"))
    family = families(scheduler)["families"][0]
    assert family["id"][:8] in line and " 12 " in line and "no worker" in line
    assert "\033" not in text
    answer = json.loads(warmq("top", "--json", "--limit", "1", url=url_of(scheduler)))
    assert answer["families"][0]["id"] == family["id"]


def test_a_route_that_escapes_is_harmless_to_a_terminal(scheduler, inbox):
    enqueue(inbox, ["a<b>/ü\u202e %"], 2)
    for verb in ("why", "top"):
        text = warmq(verb, url=url_of(scheduler))
        assert "a<b>/" in text and "\u202e" not in text
    assert "a<b>/" in warmq("why", "a<b>/ü\u202e %", url=url_of(scheduler))


def test_what_cannot_be_is_said(scheduler):
    assert "Start warmq-scheduler, or say where it is with --url" in warmq(
        "why", url="http://127.0.0.1:9", check=3)
    assert "No job of this route is remembered" in warmq("why", "nobody", url=url_of(scheduler),
                                                         check=4)


def test_words_that_mean_nothing_are_refused(server):
    for words in (["hold", "off", "triage"], ["worker", "ls", "x"], ["wait", "x"],
                  ["job", "show", "99999999999999999999-0"]):
        said = warmq(*words, "--redis", server.url, check=2)
        assert words[-1] in said or "Say which" in said, said
    assert '"1" is a word too many' in warmq("version", "1", check=2)
    assert "There is no option --redis" in warmq("version", "--redis", server.url, check=2)
