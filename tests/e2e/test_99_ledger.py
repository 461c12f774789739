"""The ledger against the provider's own books; its long form is tests/e2e/ledger.py."""

import json
import random
import urllib.request

from fleet import BUILD, Fleet, anthropic_body, long_text, wait_until

from ledger import (FAULTS, KNOBS, OPTIONS, differences, play, read_sums, settled, total,
                    written_by_cause)
from ports import free_port


def test_causes_sum_up_to_what_the_provider_has_written(tmp_path):
    """2,000 jobs with retries, cuts and streams; the ruler is killed in the middle."""
    with Fleet(tmp_path, OPTIONS, knobs={**KNOBS, **FAULTS}) as fleet:
        play(fleet, 2000, kills=1)
        sums, stats = settled(fleet), fleet.stats()
        assert stats["faults"].get("cut", 0) > 20, "some attempts had to fail"
        assert differences(sums, stats) == {}
        assert (sums["answers"], sums["unreported"]) == (2000, 0)
        assert sums["calls"] == stats["requests"]
        assert sums["causes"]["retry_waste"][0] > 0
        assert sums["cost"] > 0 and sums["unpriced"] == 0


def test_what_says_nothing_of_its_cost_is_counted_apart(tmp_path):
    faults = {"fault_lose_reply_permille": 50, "fault_cut_usage_permille": 50}
    with Fleet(tmp_path, OPTIONS, knobs={**KNOBS, **faults}) as fleet:
        play(fleet, 200, kills=0)
        wait_until(lambda: total(fleet) and total(fleet)["answers"] == 200, "all answers", 20)
        sums, stats = settled(fleet), fleet.stats()
        silent = stats["requests"] - sums["calls"]
        assert silent > 0
        assert sums["unreported"] == silent
        assert sums["estimated"] > 0
        assert written_by_cause(sums) == sums["written"] <= stats["tokens_written"]
        missing = stats["tokens_total"] - sum(sums[name] for name in
                                              ("read", "written", "uncached"))
        assert missing > 0
        assert missing / 2 < sums["estimated"] < missing * 2


BURST = ["family", "serial", "row", "place", "start", "last", "write", "readable", "starts",
         "hits", "writes", "extra_writes", "held_ms", "refusals", "cost", "naive", "open"]


def newest_burst(fleet):
    rows = fleet.redis("HGETALL", "warmq:ledger")
    bursts = [dict(zip(BURST, value.decode().split())) for name, value
              in zip(rows[::2], rows[1::2]) if name.startswith(b"b:")]
    return max(bursts, key=lambda burst: int(burst["serial"]), default=None)


def test_a_burst_has_its_price_and_what_all_at_once_would_have_paid(tmp_path):
    jobs, tokens = 60, 8000
    knobs = {"latency_ms": 50, "prefill_tokens_per_second": 10000, "job_ms": 100}
    with Fleet(tmp_path, OPTIONS, knobs=knobs) as fleet:
        fleet.start_all()
        system = long_text(tokens)
        fleet.burst([anthropic_body(f"Question {n}", system) for n in range(jobs)])
        sums = settled(fleet)
        stats = fleet.stats()
        assert differences(sums, stats) == {}
        # $3 in and $15 out a million for this model, writes at 1.25, reads at 0.1.
        assert sums["cost"] == (stats["tokens_read"] * 300 + stats["tokens_written"] * 3750 +
                                stats["tokens_uncached"] * 3000 +
                                stats["tokens_output"] * 15000)
        burst = wait_until(lambda: newest_burst(fleet), "burst", 15)
        figures = {name: int(burst[name]) for name in BURST[1:]}
        assert (figures["starts"], figures["writes"], figures["hits"]) == (jobs, 1, jobs - 1)
        assert figures["extra_writes"] == 0
        assert figures["readable"] - figures["start"] > 500, "a cold prefix"
        assert figures["held_ms"] > (jobs - 1) * 400, "all waited for it"
        written = (jobs - 1) * tokens * (3750 - 300)
        assert 0.9 * written < figures["naive"] - figures["cost"] < 1.1 * written
        assert sums["saved"] == figures["naive"] - figures["cost"]
        assert list(sums["causes"]) == ["first"]


# ---- causes that need more than a busy minute ------------------------------------------


def settled_causes(fleet, calls):
    """cause -> tokens written, of a ledger that knows so many calls; it sums up."""
    sums = wait_until(lambda: (lambda one: one and one["calls"] == calls and one)(total(fleet)),
                      f"{calls} calls in the ledger", 30)
    assert written_by_cause(sums) == sums["written"]
    return {name: figures[1] for name, figures in sums["causes"].items()}


def prefix(word, count, **more):
    system = long_text(4000, word)
    return [anthropic_body(f"Question {n}", system, **more) for n in range(count)]


def let_pass(fleet, minutes):
    """As if nothing had happened for so long: the stored versions were used that much
    earlier, and whoever rules next reads them."""
    fleet.end("scheduler")
    rows = fleet.redis("HGETALL", "warmq:ledger")
    for name, value in zip(rows[::2], rows[1::2]):
        words = value.split(b" ")
        if name.startswith(b"v:"):
            for at in (13, 14, 15, 16):  # written, readable, first hit, last use
                words[at] = str(max(int(words[at]) - minutes * 60000, 0)).encode()
            fleet.redis("HSET", "warmq:ledger", name, b" ".join(words))
    fleet.start_scheduler()
    fleet.await_ruler()


QUICK = {"latency_ms": 20, "prefill_tokens_per_second": 20000, "job_ms": 50}


def test_what_is_warm_at_another_upstream_is_written_as_other_place(tmp_path):
    with Fleet(tmp_path, OPTIONS, knobs=QUICK, places=["backup"]) as fleet:
        fleet.start_all()
        fleet.burst(prefix("policy ", 20), route="triage")
        first = settled_causes(fleet, 20)
        assert set(first) == {"first"}
        fleet.burst(prefix("policy ", 10), route="triage", upstream="backup")
        causes = settled_causes(fleet, 30)
        assert causes == {**first, "other_place": causes["other_place"]}
        assert causes["first"] == fleet.stats()["tokens_written"]
        assert 4000 <= causes["other_place"] < 4200


def test_two_names_of_one_account_are_a_false_split(tmp_path):
    with Fleet(tmp_path, OPTIONS, knobs=QUICK, aliases=["again"]) as fleet:
        fleet.start_all()
        fleet.burst(prefix("policy ", 12), route="triage")
        first = settled_causes(fleet, 12)
        fleet.burst(prefix("policy ", 12), route="triage", upstream="again")
        assert settled_causes(fleet, 24) == first, "it read what it had never written"
        let_pass(fleet, 10)
        fleet.http("/knobs", {"evict_permille": 1000})
        fleet.burst(prefix("policy ", 1), route="triage", upstream="again")
        causes = settled_causes(fleet, 25)
        assert causes == {**first, "false_split": causes["false_split"]}
        assert sum(causes.values()) == fleet.stats()["tokens_written"]


def test_what_lives_shorter_than_was_asked_for_is_a_ttl_mismatch(tmp_path):
    with Fleet(tmp_path, OPTIONS + "    ttl: 1h\n", knobs=QUICK) as fleet:
        fleet.start_all()
        fleet.burst(prefix("policy ", 12), route="triage")
        first = settled_causes(fleet, 12)
        let_pass(fleet, 6)
        fleet.http("/knobs", {"evict_permille": 1000})
        fleet.burst(prefix("policy ", 1), route="triage")
        causes = settled_causes(fleet, 13)
        assert causes == {**first, "ttl_mismatch": causes["ttl_mismatch"]}


def test_a_warm_up_whose_jobs_went_away_is_prewarm_wasted(tmp_path):
    """A prefix that must be warmed by a request of its own; its lifetime has to pass."""
    with Fleet(tmp_path, OPTIONS + "    stream: never\n    ttl: 5s\n", knobs=QUICK) as fleet:
        fleet.start_all()
        fleet.keep_waiting()
        ids = fleet.enqueue(prefix("policy ", 6), route="triage")
        fleet.await_requests(1)
        for id in ids:
            fleet.redis("FCALL", "warmq_cancel", 1, "warmq:meta", 1, id)
        fleet.keep_waiting(False)
        ended = fleet.collect(len(ids), 60)
        assert {one["state"] for one in ended.values()} == {"cancelled"}
        wasted = wait_until(lambda: hour_causes(fleet, "triage").get("prewarm_wasted"),
                            "a wasted warm-up", 60)
        assert wasted == fleet.stats()["tokens_written"]
        assert hour_causes(fleet, "triage").get("first", 0) == 0


def test_a_prefix_that_somebody_warmed_in_vain_is_prewarm_wasted(tmp_path):
    """`warmq family warm`, and nobody comes in its lifetime."""
    with Fleet(tmp_path, OPTIONS + "    ttl: 3s\n", knobs=QUICK) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        ids = fleet.enqueue(prefix("policy ", 2), route="triage")
        wait_until(lambda: fleet.redis("HLEN", "warmq:families"), "the family", 20)
        for id in ids:
            fleet.warmq("job", "cancel", id)
        fleet.start_worker("worker-1", 10)
        fleet.await_workers(1)
        wait_until(lambda: "One request writes" in fleet.warmq("family", "warm", "triage",
                                                               check=False), "a warm-up", 30)
        tokens = wait_until(lambda: hour_causes(fleet, "triage").get("prewarm_wasted"),
                            "a wasted warm-up", 60)
        assert tokens == fleet.stats()["tokens_written"]
        assert hour_causes(fleet, "triage").get("first", 0) == 0


def hour_causes(fleet, route):
    """cause -> tokens written in the hours of a route: these move, sums that grow do not."""
    causes = {}
    for key in fleet.redis("KEYS", "warmq:ledger:*"):
        text = fleet.redis("HGET", key, route)
        for name, figures in (read_sums(text)["causes"] if text else {}).items():
            causes[name] = causes.get(name, 0) + figures[1]
    return causes


def test_what_a_new_scheduler_cannot_know_is_unknown_and_sums_up(tmp_path):
    """A route of more prefixes than are kept of it: of the oldest, whoever rules next has never
    heard, and nobody can say why it was written again.  The newest is known."""
    documents = [f"document {n} " for n in range(20)]
    with Fleet(tmp_path, OPTIONS, knobs=QUICK) as fleet:
        fleet.start_all()
        for word in documents:
            fleet.burst(prefix(word, 2), route="documents")
        before = settled_causes(fleet, 40)
        fleet.end("scheduler")
        fleet.start_scheduler()
        fleet.await_ruler()
        fleet.http("/knobs", {"evict_permille": 1000})
        fleet.burst(prefix(documents[0], 1), route="documents")
        fleet.burst(prefix(documents[-1], 1), route="documents")
        causes = settled_causes(fleet, 42)
        assert {name: causes[name] - before.get(name, 0) for name in causes} == {
            **{name: 0 for name in before}, "unknown": causes["unknown"],
            "evicted_early": causes["evicted_early"]}
        assert min(causes["unknown"], causes["evicted_early"]) > 3900
        assert sum(causes.values()) == fleet.stats()["tokens_written"]


def test_what_is_written_behind_the_tools_of_the_provider_is_server_tool(tmp_path):
    tools = [{"type": "web_search_20250305", "name": "web_search"}]

    def own(number):
        return [{"type": "text", "text": f"{number} " + long_text(1500, "own "),
                 "cache_control": {"type": "ephemeral"}}]

    with Fleet(tmp_path, OPTIONS, knobs={**QUICK, "answer": "server_tool"}) as fleet:
        fleet.start_all()
        fleet.burst([anthropic_body(own(n), long_text(4000), tools=tools) for n in range(8)],
                    route="search")
        causes = settled_causes(fleet, 8)
        assert set(causes) == {"first", "server_tool"}, causes
        assert causes["server_tool"] > 7 * 1400
        assert sum(causes.values()) == fleet.stats()["tokens_written"]


def test_drift_is_seen_by_bytes_and_documents_are_no_drift(tmp_path):
    """Each job pays for a prompt of its own: a clock in it, or really another text."""
    def marked(text):
        return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]

    def clock(number):
        return f"It is 12:{number:02}:00. You are the triage desk. " + long_text(2000)

    def document(number):
        choose = random.Random(number)
        return "".join(choose.choices("abcdefghij klmnop", k=8000))

    with Fleet(tmp_path, OPTIONS, knobs=QUICK) as fleet:
        fleet.start_all()
        for route, text in (("clock", clock), ("documents", document)):
            for number in range(6):  # one after the other: each has its company seen
                fleet.burst([anthropic_body("?", marked(text(number)))], route=route)
        settled_causes(fleet, 12)
        drift = wait_until(lambda: hour_causes(fleet, "clock").get("drift"), "drift", 20)
        assert drift > 3 * 1900, "all but the first two"
        assert set(hour_causes(fleet, "documents")) == {"tail"}


class Paged(Fleet):
    """Its scheduler serves the ledger as it is now; what is stored may be 5 s old."""

    def start_scheduler(self, name="scheduler"):
        self.port = free_port()
        self.start(name, BUILD / "scheduler" / "warmq-scheduler", "--config", self.config,
                   "--listen", f"127.0.0.1:{self.port}")

    def calls(self, route):
        return self.week(route).get("calls", 0)

    def causes(self, route):
        """cause -> tokens written; none while nothing is known of the route."""
        return {one["cause"]: one["written"] for one in self.week(route).get("causes", ())}

    def week(self, route):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/ledger?route={route}",
                                        timeout=120) as answer:
                return json.load(answer)["week"]
        except OSError:  # no such route yet, or no page
            return {}


def test_the_causes_of_a_busy_minute(tmp_path):
    """What happens to a route in the order of a bad day, each with its cause."""
    def causes_of(act, wanted):
        """Those that came, once the wanted one has: a burst is booked answer by answer."""
        before = fleet.causes("day")

        def come():
            after = fleet.causes("day")
            return {name for name in after if after[name] > before.get(name, 0)}

        act()
        wait_until(lambda: wanted in come(), f"the cause {wanted}", 30)
        return come()

    def burst(word, count, **fields):
        fleet.burst(prefix(word, count), route="day", **fields)

    def evicted():
        fleet.http("/knobs", {"evict_permille": 1000})
        burst("one ", 1)
        fleet.http("/knobs", {"evict_permille": 0})

    def let_all(count, answered, reply="results"):
        """Nobody is answered before so many are under way."""
        fleet.await_requests(count)
        fleet.keep_waiting(False)
        fleet.collect(answered, 120, reply)

    def unheld():
        """All write at once what was evicted.  Before the scheduler has told of their markers
        they may start without; then they do so again."""
        before = fleet.causes("day").get("stampede", 0)
        fleet.warmq("hold", "off")
        wait_until(lambda: "holding was switched off" in fleet.log("scheduler"), "no hold", 30)
        fleet.http("/knobs", {"evict_permille": 1000})
        for _ in range(10):
            fleet.keep_waiting()
            fleet.enqueue(prefix("three ", 6), route="day")
            let_all(6, 6)
            wait_until(lambda: fleet.calls("day") == fleet.stats()["requests"], "their booking")
            if fleet.causes("day").get("stampede", 0) > before:
                break
        fleet.http("/knobs", {"evict_permille": 0})
        fleet.warmq("hold", "on")
        wait_until(lambda: "holding was switched on" in fleet.log("scheduler"), "a hold", 30)

    def late():
        """None can read what was written, before one has failed to."""
        before = fleet.causes("day").get("proof_miss", 0)
        fleet.http("/knobs", {"visibility_lag_ms": 600000})
        ids = fleet.enqueue(prefix("four ", 6), route="day")
        wait_until(lambda: fleet.causes("day").get("proof_miss", 0) > before, "a miss", 60)
        fleet.http("/knobs", {"visibility_lag_ms": 0})
        fleet.collect(len(ids), 120)

    def too_soon():
        """Two of a prefix, whose leader writes for as long as it takes until four have come
        that do not wait for it.  Where they come before anybody has ruled on the prefix, one
        of the four is its writer, and they do so again."""
        before = fleet.causes("day").get("hold_limit", 0)
        for attempt in range(10):
            fleet.keep_waiting()
            fleet.enqueue(prefix(f"five {attempt} ", 2), route="day", reply="lead")
            fleet.await_requests(1)
            fleet.enqueue(prefix(f"five {attempt} ", 4), route="day", hold_max="0")
            let_all(5, 4)
            fleet.collect(2, 120, "lead")
            wait_until(lambda: fleet.calls("day") == fleet.stats()["requests"], "their booking")
            if fleet.causes("day").get("hold_limit", 0) > before:
                break

    def stored():
        sums = total(fleet)
        return sums and sums["calls"] == fleet.stats()["requests"]

    with Paged(tmp_path, OPTIONS, knobs=QUICK) as fleet:
        fleet.start_all()
        assert causes_of(lambda: burst("one ", 6), "first") == {"first"}
        assert causes_of(lambda: burst("two ", 6), "new_version") == {"new_version"}
        assert causes_of(evicted, "evicted_early") == {"evicted_early"}
        causes_of(unheld, "stampede")
        causes_of(late, "proof_miss")
        causes_of(too_soon, "hold_limit")
        wait_until(stored, "a stored ledger", 30)
        let_pass(fleet, 10)
        fleet.http("/knobs", {"evict_permille": 1000})
        wait_until(lambda: fleet.causes("day"), "the ledger that was stored", 30)
        assert causes_of(lambda: burst("two ", 1), "expired") == {"expired"}
        assert sum(fleet.causes("day").values()) == fleet.stats()["tokens_written"]
