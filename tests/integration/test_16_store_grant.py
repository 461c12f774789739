"""rule, grant, glance: who decides, and what a decision moves."""

import redis
import pytest

from store import (BYPASS, CHECKING, CLOSED, LEAKY, NEVER, OPEN, WRITING, Family, Worker, opened,
                   wait_until)


def test_one_scheduler_rules_at_a_time(store):
    owner, took = store.ok("rule", "00000000000000aa", 5000)
    assert (owner, took) == (store.owner, 0)
    answer = store.call("rule", "00000000000000bb", 5000)
    assert answer[:2] == ["HELD", store.owner] and 0 < answer[2] <= 5000


def test_a_rule_ends_in_time_though_the_clock_went_back(store):
    """It was written by a clock that was an hour ahead."""
    store.ok("rule", "00000000000000aa", 5000)
    store.redis.hset(store.key("meta"), "rule_until", store.now() + 3600000)
    answer = store.call("rule", "00000000000000bb", 50)
    assert answer[0] == "HELD" and answer[2] <= 50
    wait_until(lambda: store.call("rule", "00000000000000bb", 50)[0] == "OK", "the rule")


def test_a_rule_that_ran_out_is_taken_over(store):
    store.ok("rule", "00000000000000aa", 5)
    store.wait_past(int(store.meta("rule_until")))
    owner, took = store.ok("rule", "00000000000000bb", 5000)
    assert (owner, took) == ("2:00000000000000bb", 1)
    assert store.call("rule", "00000000000000aa", 5000)[0] == "HELD"


def test_the_seed_is_made_once(store):
    seed = store.meta("seed")
    assert len(seed) == 32 and int(seed, 16) > 0
    store.ok("rule", "00000000000000aa", 0)
    store.rule(nonce="00000000000000bb")
    assert store.meta("seed") == seed


def test_every_call_of_a_stale_scheduler_is_refused_38(store):
    old = store.owner
    store.ok("rule", "00000000000000aa", 0)
    store.rule(nonce="00000000000000bb")
    for name, args in [("grant", ["-", 0, 0]), ("reap", [30000, 10000, 10]),
                       ("promote", [10]), ("expire", [10]), ("audit", [])]:
        assert store.call(name, old, *args) == ["EPOCH", store.owner], name


def test_a_grant_repeated_is_refused_and_says_what_is(store):
    family, _ = opened(store, count=3)
    Worker(store).claim(0, 1)
    lane, status, g, in_use, bits, head = store.grant(family.lane, g=0, g_new=1, gate=CLOSED)
    assert (lane, status, g, in_use, bits) == (family.lane, "refused", 1, 2, 8)
    assert head > 0
    assert store.lane(family.lane).gate == OPEN


def test_until_only_rises_within_a_generation(store):
    family, _ = opened(store, count=1)
    store.open(family, until=5000)
    store.grant(family.lane, g_new=2, until=4000)
    assert store.lane(family.lane).until == 5000
    store.grant(family.lane, g_new=2, until=6000)
    assert store.lane(family.lane).until == 6000
    store.grant(family.lane, until=3000)
    assert store.lane(family.lane).until == 3000


@pytest.mark.parametrize("gate", [CLOSED, WRITING, CHECKING, BYPASS, LEAKY])
def test_an_until_is_set_where_nothing_was_open(store, gate):
    """All these have none: if it stood, the lane would be open for ever."""
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=gate)
    assert store.lane(family.lane).until == NEVER
    store.grant(family.lane, g_new=1, gate=OPEN, until=5000)
    assert store.lane(family.lane).until == 5000


def test_credits_belong_to_a_new_generation(store):
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    store.grant(family.lane, g_new=1, gate=CHECKING, credits=5, role=2, window=7)
    lane = store.lane(family.lane)
    assert (lane.gate, lane.credits, lane.role, lane.window) == (CHECKING, 1, 1, 7)


def test_a_dash_leaves_a_value_as_it_is(store):
    family, _ = opened(store, count=1, window=7)
    store.grant(family.lane, p=300)
    lane = store.lane(family.lane)
    assert (lane.gate, lane.window, lane.until, lane.p) == (OPEN, 7, NEVER, 300)


def test_a_grant_does_not_touch_what_jobs_own(store):
    family, _ = opened(store, count=3)
    worker = Worker(store)
    jobs = worker.claim(0, 1).jobs
    store.open(family, window=1)
    assert store.lane(family.lane).in_use == 2, "a shrink revokes nothing"
    assert worker.claim(2).jobs == []
    worker.settle(jobs)
    assert len(worker.claim(2).jobs) == 1


def test_an_opened_lane_wakes_its_pool_28(store):
    family = Family(1)
    store.enqueue(family)
    channel = store.redis.pubsub()
    channel.subscribe(store.key("wake"))
    channel.get_message(timeout=120)
    store.open(family)
    assert channel.get_message(timeout=120)["data"] == "main"
    store.grant_budget("acme:large", pace=5)
    channel.get_message(timeout=120)
    store.grant_budget("acme:large", pace=50)
    assert channel.get_message(timeout=120)["data"] == "main", "a pace that rises wakes as well"
    channel.close()


def test_marks_are_rendered_as_granted(store):
    family, _ = opened(store, count=1)
    store.open(family, marks=3)
    assert Worker(store).claim().jobs[0].marks == 3


def test_events_are_read_from_a_cursor_that_the_grant_stores_9(store):
    opened(store, count=1)
    Worker(store)
    Worker(store)
    entries = store.redis.xrange(store.key("events"))
    store.ok("grant", store.owner, entries[1][0], 0, 0)
    assert store.meta("events") == entries[1][0]
    assert store.redis.xrange(store.key("events"))[0][0] == entries[0][0], "tally trims"


def test_reading_events_consumes_nothing_and_a_stale_scheduler_moves_nothing_9(store):
    family = Family(1)
    store.enqueue(family)
    store.grant(family.lane, gate=WRITING, credits=1, role=1)
    worker = Worker(store)
    worker.settle(worker.claim(0).jobs, usage="1 2 0 5 5 5")
    last = store.redis.xrevrange(store.key("events"), count=1)[0][0]
    seen = store.events()
    stale = store.owner
    store.ok("rule", "00000000000000aa", 0)
    store.rule("00000000000000bb")
    # The one that was frozen goes on where it was: it has read them.
    assert store.call("grant", stale, last, 0, 0)[0] == "EPOCH"
    assert store.events()[:len(seen)] == seen
    assert store.meta("events") != last
    store.ok("grant", store.owner, last, 0, 0)
    assert store.meta("events") == last


def test_a_glance_counts_all_lists_37(store):
    family, ids = opened(store, count=5)
    store.enqueue(family, 2, "h")
    store.enqueue(family, 1, "now")
    worker = Worker(store)
    worker.release(worker.claim(0, 1).jobs)
    worker.claim(0)
    answer = store.ok("glance", family.id, "f" * 32)
    head = int(ids[0].split("-")[0])
    assert answer[0][:3] == [family.id, 7, 1]
    assert head <= answer[0][3] <= store.now()
    assert answer[1] == ["f" * 32, 0, 0, 0]


def test_a_family_moves_to_another_pool_with_its_lanes(store):
    family, ids = opened(store, count=3)
    worker = Worker(store)
    worker.claim(0)
    family.pool, family.budget = "other", "acme:small"
    store.admit(store.cursor()[0], families=[family])
    assert store.open_set() == {}
    assert list(store.open_set("other", "acme:small")) == [family.lane]
    assert (store.flight(), store.flight("acme:small")) == (0, 1)
    assert Worker(store, pool="other").claim().ids == ids[1:]


def test_mistakes_in_a_grant_change_nothing(store):
    family, _ = opened(store, count=1)
    before = store.redis.hget(store.key("lanes"), family.lane)
    with pytest.raises(redis.ResponseError, match="window: expected a number"):
        store.grant(family.lane, gate=CLOSED, window="wide")
    with pytest.raises(redis.ResponseError, match="do not add up|expected a number"):
        store.call("grant", store.owner, "-", 1, family.lane, 0)
    assert store.redis.hget(store.key("lanes"), family.lane) == before


def test_a_limit_learned_late_counts_what_is_in_flight(store):
    family = Family(1, input=100, output=50)
    store.enqueue(family, 5)
    store.open(family, p=1000)
    worker = Worker(store)
    assert len(worker.claim(0, 1).jobs) == 2
    store.grant(family.lane, budgets=[["acme:large", 0, "-", 10, 6000, 120, 0]])
    budget = store.budget()
    assert [float(budget[name]) for name in ("r.level", "i.level", "o.level")] == [
        10 - 2, 6000 - 2 * 1100, 120 - 2 * 50]
    store.grant(family.lane, budgets=[["acme:large", 0, "-", 10, 6000, 120, 0]])
    assert float(store.budget()["o.level"]) == 20, "only once"


# ---- warm ------------------------------------------------------------------------------


def known(store, **options):
    """A family without work, cold."""
    family = Family(1, **options)
    [id] = store.enqueue(family, 1)
    store.ok("cancel", id)
    store.open(family)
    assert Worker(store).claim().jobs == []
    store.grant(family.lane, gate=CLOSED, window=1000)
    return family


def test_a_cold_prefix_may_be_written_ahead(store):
    family = known(store)
    store.redis.set(store.key(f"warm:{family.id}"), "busy")
    assert store.ok("warm", family.id, "a b") == ["asked"]
    assert store.events("warm") == [f"warm {family.id} a_b"]
    assert not store.redis.exists(store.key(f"warm:{family.id}"))
    store.grant(family.lane, gate=OPEN, until=1)
    assert store.ok("warm", family.id) == ["asked"], "an entry that has lived its time"


@pytest.mark.parametrize("word, values", [
    ("warm", {"gate": OPEN, "until": NEVER}), ("writing", {"gate": WRITING}),
    ("written", {"gate": CHECKING}), ("small", {"gate": BYPASS, "reason": 2}),
    ("unshared", {"gate": BYPASS, "reason": 3}), ("off", {"gate": BYPASS, "reason": 9}),
    ("uncacheable", {"gate": BYPASS, "reason": 1}), ("uncacheable", {"gate": LEAKY, "reason": 5}),
    ("writing", {"gate": CLOSED, "ticket": 1, "ticket_deadline": NEVER})])
def test_what_speaks_against_warming_is_said(store, word, values):
    family = known(store)
    store.grant(family.lane, window=1000, **values)
    assert store.ok("warm", family.id) == [word]
    assert store.events("warm") == []


def test_what_may_not_start_is_not_warmed(store):
    family = known(store)
    assert store.ok("warm", "f" * 32) == ["gone"]
    store.ok("pause", family.id, "on")
    assert store.ok("warm", family.id) == ["paused"]
    store.ok("pause", family.id, "off")
    store.grant_budget("acme:large", parked=store.now() + 60000)
    assert store.ok("warm", family.id) == ["parked"]
    store.ok("unpark", "acme")
    store.ok("hold", "off")
    assert store.ok("warm", family.id) == ["off"]
    store.ok("hold", "on")
    assert store.ok("warm", family.id) == ["asked"]
    store.redis.hset(store.key("unheld"), "triage", "1 x")
    store.audit()
    assert store.ok("warm", family.id) == ["off"]


def test_families_move_to_another_pool_with_their_lanes(store):
    family, ids = opened(store, count=4)
    other = Worker(store, pool="special")
    running = Worker(store).claim(0).jobs
    store.enqueue(family, 1)
    before = len(ids) + 1 - len(running)
    assert other.claim().ids == []
    assert store.ok("move", store.owner, "special", family.id, "f" * 32) == [1]
    assert store.audit() == [] and store.flight() == len(running)
    assert Worker(store).claim().ids == []
    assert len(other.claim().ids) == before
    assert store.ok("move", store.owner, "special", family.id) == [0]
    with pytest.raises(redis.ResponseError, match="move: pool: expected a name"):
        store.ok("move", store.owner, "a|b", family.id)


def test_families_move_to_another_account_with_what_they_have_in_flight(store):
    family, ids = opened(store, count=4)
    running = Worker(store).claim(0).jobs
    assert store.ok("move", store.owner, "main acme@new:large", family.id, "f" * 32) == [1]
    assert store.audit() == []
    assert (store.flight(), store.flight("acme@new:large")) == (0, len(running))
    assert store.family(family).budget == store.lane(family.lane).budget == "acme@new:large"
    assert store.open_set() == {}
    assert Worker(store, budgets="acme:large").claim().ids == []
    assert len(Worker(store, budgets="acme@new:large").claim().ids) == len(ids) - len(running)
    assert store.ok("move", store.owner, "main acme@new:large", family.id) == [0]
    for wrong in ("main large", "main a:b:c", "main a:*", "main  x:y"):
        with pytest.raises(redis.ResponseError, match="move: budget: expected upstream:class"):
            store.ok("move", store.owner, wrong, family.id)


def test_a_record_names_the_model_of_its_family(store):
    family, old = Family(1, model="claude-opus-4-1"), Family(2)
    store.enqueue(family)
    store.enqueue(old)
    assert (store.family(family).model, store.family(family).route) == ("claude-opus-4-1", "triage")
    assert (store.family(old).model, store.family(old).route) == (None, "triage")
    store.ok("move", store.owner, "special acme@new:large", family.id)
    assert (store.family(family).model, store.family(family).pool) == ("claude-opus-4-1", "special")
    store.redis.hset(store.key("unheld"), "triage", "1 x")
    assert store.audit() == []
    assert (store.family(family).flags, store.family(old).flags) == (8, 8)
    with pytest.raises(redis.ResponseError, match="a bar or control character"):
        store.enqueue(Family(3, model="a|b"))


def test_a_family_that_may_be_marked_is_held_until_its_route_is_not(store):
    family = Family(1, flags=16 + 2)
    store.enqueue(family, 2)
    assert Worker(store).claim().ids == [] and list(store.held_set()) == [family.lane]
    store.ok("hold", "off", "me", "triage")
    store.audit()
    assert store.family(family).flags == 16 + 8 + 2
    assert len(Worker(store).claim().ids) == 2
    store.ok("hold", "on", "me", "triage")
    store.audit()
    assert store.family(family).flags == 16 + 2
    store.enqueue(family, 1)
    assert Worker(store).claim().ids == []
