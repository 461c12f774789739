"""ledger: rows of the ledger and its cursor, in one call."""

import pytest
from redis import ResponseError

from store import Worker, opened

DAY_MS = 86400000


def ledger(store, cursor, *rows, owner=None):
    words = [word for row in rows for word in row]
    return store.call("ledger", owner or store.owner, cursor, 8 * DAY_MS, len(rows), *words)


def some_events(store):
    opened(store, count=1)
    Worker(store)
    Worker(store)
    return [id for id, _ in store.redis.xrange(store.key("events"))]


def test_rows_and_cursor_are_stored_together(store):
    ids = some_events(store)
    answer = ledger(store, ids[1], ("", "total", "1 2"), ("", "r:0", "3 |triage"),
                   (500000, "triage", "4"), (500000, "other", "5"), (500001, "triage", "6"))
    assert answer[0] == "OK"
    assert store.meta("ledger") == ids[1]
    assert store.redis.hgetall(store.key("ledger")) == {"total": "1 2", "r:0": "3 |triage"}
    assert store.redis.hgetall(store.key("ledger:500000")) == {"triage": "4", "other": "5"}
    assert store.redis.hgetall(store.key("ledger:500001")) == {"triage": "6"}
    assert store.redis.pttl(store.key("ledger")) == -1
    assert 7 * DAY_MS < store.redis.pttl(store.key("ledger:500000")) <= 8 * DAY_MS


def test_what_pages_show_goes_along_and_has_a_life(store):
    ids = some_events(store)
    assert ledger(store, ids[0], ("", "total", "1"), ("recent", "h:0", "1 2"),
                  ("recent", "f:0", "a\nb"))[0] == "OK"
    assert store.redis.hgetall(store.key("recent")) == {"h:0": "1 2", "f:0": "a\nb"}
    assert 7 * DAY_MS < store.redis.pttl(store.key("recent")) <= 8 * DAY_MS
    store.redis.set(store.key("recent"), "somebody else's")
    assert ledger(store, ids[1], ("", "total", "2"), ("recent", "h:0", "3"))[0] == "OK"
    assert store.redis.hgetall(store.key("recent")) == {"h:0": "3"}
    assert store.redis.hget(store.key("ledger"), "total") == "2"
    with pytest.raises(ResponseError, match="expected an hour, .recent., or nothing"):
        ledger(store, ids[1], ("recently", "h:0", "3"))


@pytest.mark.parametrize("told, tallied, first", [(0, 1, 0), (1, 0, 0), (1, 1, 1)])
def test_only_what_both_have_read_is_trimmed_and_the_last_of_it_stays(store, told, tallied,
                                                                      first):
    ids = some_events(store)
    store.ok("grant", store.owner, ids[told], 0, 0)
    assert store.redis.xrange(store.key("events"))[0][0] == ids[0], "a grant trims nothing"
    assert ledger(store, ids[tallied])[0] == "OK"
    assert store.redis.xrange(store.key("events"))[0][0] == ids[first]


def test_before_the_first_grant_nothing_is_trimmed(store):
    ids = some_events(store)
    ledger(store, ids[-1])
    assert store.redis.xrange(store.key("events"))[0][0] == ids[0]


def test_a_stale_scheduler_books_nothing(store):
    ids = some_events(store)
    stale = store.owner
    store.ok("rule", "00000000000000aa", 0)
    store.rule("00000000000000bb")
    assert ledger(store, ids[-1], ("", "total", "1"), owner=stale)[0] == "EPOCH"
    assert store.meta("ledger") is None
    assert store.redis.exists(store.key("ledger")) == 0


@pytest.mark.parametrize("cursor, rows, what", [
    ("x", [], "cursor: expected an id"), ("1-0", [("a", "b", "c")], "key: expected an hour"),
    ("1-0", [("", "total", "1"), ("../x", "b", "c")], "key: expected an hour")])
def test_what_is_no_row_is_refused_and_changes_nothing(store, cursor, rows, what):
    with pytest.raises(Exception, match=what):
        ledger(store, cursor, *rows)
    assert store.redis.exists(store.key("ledger")) == 0
    assert store.meta("ledger") is None


def test_a_count_that_does_not_add_up_is_refused(store):
    with pytest.raises(Exception, match="rows do not add up"):
        store.call("ledger", store.owner, "1-0", 1, 2, "", "total", "1")


def test_many_rows_fit_one_call(store):
    rows = [("", f"v:{i // 16}:{i % 16}", f"{i}") for i in range(1040)]
    rows += [(500000, f"route-{i}", "1") for i in range(65)]
    assert ledger(store, "1-0", *rows)[0] == "OK"
    assert store.redis.hlen(store.key("ledger")) == 1040
    assert store.redis.hlen(store.key("ledger:500000")) == 65
