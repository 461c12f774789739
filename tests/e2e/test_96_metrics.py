"""/metrics, as a real Prometheus reads it: every metric is documented, and moves."""

import json
import re
import signal
import subprocess
import time

import pytest

from fleet import BUILD, LONG, Fleet, anthropic_body, long_text, wait_until
from ports import free_port
from prometheus import Prometheus, documented, parse, scrape
from test_97_rules import expressions
from waiting import rest

# They say what this process is, or what cannot change while all runs on one machine.
CONSTANT = {"warmq_build_info", "warmq_worker_build_info",
            "warmq_worker_clock_offset_seconds"}

# Known a minute after a burst has begun; tests/unit/test_ledger.c has it.
SLOW = {"warmq_saved_dollars_total",
        "warmq_outside_requests"}  # tests/browser/test_85_money.py has it
NOTHING_TO_SEE = {"max(warmq_holding) == 0", "count(count by (version) (warmq_build_info)) > 1"}


class Rig(Fleet):
    """A fleet whose programs serve pages, on ports known beforehand."""

    def __init__(self, directory, **options):
        super().__init__(directory, **options)
        self.ports = {}

    def write_config(self, dialect="anthropic"):
        super().write_config(dialect)
        self.config.write_text(self.config.read_text().replace("scheduler:", """\
  nowhere:
    url: http://127.0.0.1:9
    dialect: anthropic
    auth: none
  whole:
    url: "%s"
    dialect: anthropic
    auth: none
    markers: auto
    stream: never
scheduler:""" % self.provider, 1))

    def port(self, name):
        return self.ports.setdefault(name, free_port())

    def start_scheduler(self, name="scheduler"):
        self.start(name, self.program("scheduler"), "--config", self.config, "--listen",
                   f"127.0.0.1:{self.port(name)}")

    def program(self, kind):
        return BUILD / kind / f"warmq-{kind}"

    def start_worker(self, name="worker", slots=50, *options):
        own = self.directory / f"{name}.yaml"
        own.write_text(self.config.read_text() + "worker:\n"
                       f"  listen: 127.0.0.1:{self.port(name)}\n")
        (self.directory / name).mkdir(exist_ok=True)
        self.start(name, self.program("worker"), "--config", own, "--slots", slots,
                   "--label", name, "--state-dir", self.directory / name, *options)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def send(self, *words, **fields):
        return self.redis("XADD", "warmq:jobs", "*", "upstream", "main",
                          *[word for pair in fields.items() for word in pair],
                          *words).decode()


def bodies(count, word, tokens=4000, **more):
    return [anthropic_body(f"Question {n}", long_text(tokens, word), **more)
            for n in range(count)]


def test_every_name_type_and_label_is_documented_and_every_documented_one_is_told(tmp_path):
    with Rig(tmp_path) as fleet:
        fleet.start_all(slots=20)
        fleet.burst(bodies(30, "policy "), route='a "quoted\\ route')
        told = {**parse(scrape(fleet.port("scheduler"))),
                **parse(scrape(fleet.port("worker-1")))}
        assert {name: (kind, labels) for name, (kind, labels, _) in told.items()} == \
            documented()
        for name in ("scheduler", "worker-1"):
            checked = subprocess.run(["promtool", "check", "metrics"], capture_output=True,
                                     input=scrape(fleet.port(name)), text=True)
            assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def samples(text, name):
    """label text -> value of one metric in a scrape."""
    return {labels or "": float(value) for labels, value in re.findall(
        r"^%s(?:\{(.*)\})? (\S+)$" % name, text, re.M)}


def test_the_figures_are_those_of_the_provider_and_of_what_was_done(tmp_path):
    knobs = {"latency_ms": 50, "job_ms": 200}
    with Rig(tmp_path, knobs=knobs) as fleet:
        fleet.start_all(slots=20)
        fleet.burst(bodies(30, "one "), route="one")
        fleet.burst(bodies(10, "two "), route="two")
        port = fleet.port("scheduler")
        wait_until(lambda: sum(samples(scrape(port), "warmq_done_total").values()) == 40,
                   "last line of the event stream", 10)
        text, stats = scrape(port), fleet.stats()
        tokens = samples(text, "warmq_tokens_total")
        for kind in ("read", "written", "uncached", "output"):
            assert sum(value for labels, value in tokens.items()
                       if f'kind="{kind}"' in labels) == stats[f"tokens_{kind}"]
        assert samples(text, "warmq_done_total") == {'route="one"': 30, 'route="two"': 10,
                                                     'route="other"': 0}
        assert sum(samples(text, "warmq_prefix_hits_total").values()) == stats["reads"]
        causes = samples(text, "warmq_cause_tokens_total")
        assert sum(value for labels, value in causes.items()
                   if 'kind="written"' in labels) == stats["tokens_written"]
        labels = 'pool="default",upstream="main"'
        count = {name: samples(text, f"warmq_{name}_seconds_count")[labels]
                 for name in ("wait", "held", "first_event", "run")}
        assert (count["wait"], count["first_event"], count["run"]) == (40, 40, 40)
        assert 20 <= count["held"] <= 38, "not the two writers; the others, unless late"
        total = {name: samples(text, f"warmq_{name}_seconds_sum")[labels]
                 for name in ("wait", "held", "first_event", "run")}
        assert total["held"] <= total["wait"] and total["first_event"] <= total["run"]
        assert total["run"] >= 40 * 0.25, "each took a quarter of a second at least"
        assert samples(text, "warmq_starts_total")['role="lead"'] >= 2


def admit(fleet, first, count):
    """Jobs of a family and a route each; answers how many series there are then."""
    port = fleet.port("scheduler")
    wait_until(lambda: "warmq_retries_total" in scrape(port), "look at Redis", 10)
    for start in range(first, first + count, 1000):
        fleet.send("json", json.dumps([
            {"body": json.loads(anthropic_body("?", f"You are number {n}.")),
             "route": f"route-{n}"}
            for n in range(start, min(start + 1000, first + count))]))
    wait_until(lambda: f"warmq_admitted_total {first + count}\n" in scrape(port), "admission",
               200)
    return sum(series for _, _, series in parse(scrape(port)).values())


def scrape_ms(fleet):
    """How long one takes that finds no look at all families younger than 6 s."""
    rest(7)
    started = time.perf_counter()
    scrape(fleet.port("scheduler"))
    return 1000 * (time.perf_counter() - started)


def test_ten_thousand_families_and_routes_make_no_more_series_than_one(tmp_path):
    with Rig(tmp_path) as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        one = admit(fleet, 0, 1)
        assert admit(fleet, 1, 10000) == one
        text = scrape(fleet.port("scheduler"))
        assert "warmq_families 10001\n" in text
        assert 'warmq_blocked_families{pool="default",on="no_worker"} 10001\n' in text


@pytest.mark.alone
@LONG
def test_a_scrape_with_a_hundred_thousand_families_takes_at_most_50_ms(tmp_path):
    with Rig(tmp_path, settings="  families_max: 100000") as fleet:
        fleet.start_scheduler()
        fleet.await_ruler()
        admit(fleet, 0, 100000)
        assert "warmq_families 100000\n" in scrape(fleet.port("scheduler"))
        took = [scrape_ms(fleet) for _ in range(5)]
        print("each after a rest:", *[f"{ms:.1f} ms" for ms in took])
        assert sorted(took)[2] <= 50


# ---- every metric moves ----------------------------------------------------------------


def story_of_jobs(fleet, seen):
    """Good ones, and each way to fail."""
    fleet.send("json", json.dumps([{"body": {}, "not_before": "+1h"}] * 20000))
    fleet.redis("CLIENT", "PAUSE", 2000, "WRITE")  # what was read is not admitted meanwhile
    seen.await_seen("warmq_inbox_lag_seconds > 0")
    fleet.redis("CONFIG", "SET", "maxmemory", "200mb")
    fleet.enqueue(bodies(60, "first "), route="first")
    fleet.enqueue(bodies(60, "second "), route="second")
    seen.await_now('warmq_blocked_jobs{on="no_worker"} >= 120')
    fleet.start_worker("worker-a", 25, "--lease", "2s")
    fleet.collect(120, 60)
    fleet.http("/knobs", {"job_ms": 1000, "rpm": 4000})
    for body in bodies(3, "whole "):  # it takes a warm-up to see when they can be read
        fleet.redis("XADD", "warmq:jobs", "*", "upstream", "whole", "body", body,
                    "reply", "whole")
    fleet.collect(3, 60, "whole")
    for body in bodies(3, "first "):  # the same prefix at both upstreams
        fleet.redis("XADD", "warmq:jobs", "*", "upstream", "whole", "body", body,
                    "reply", "both")
    fleet.collect(3, 60, "both")
    fleet.http("/knobs", {"job_ms": 300})
    fleet.http("/knobs", {"fault_next": "server_error", "fault_next_count": 1})
    fleet.burst(bodies(1, "first "))
    fleet.http("/knobs", {"fault_next": "rate_limit", "fault_next_count": 1})
    fleet.burst(bodies(1, "first "))
    fleet.send(body=anthropic_body("?", max_tokens="many"))
    fleet.send(body="no JSON")
    unsent = fleet.redis("XADD", "warmq:jobs", "*", "upstream", "nowhere", "body",
                         anthropic_body("?")).decode()
    seen.await_seen("warmq_unsent_total > 0")
    fleet.warmq("job", "cancel", unsent)
    fleet.http("/knobs", {"usage_unknown_permille": 1000})
    fleet.burst(bodies(1, "first "))
    fleet.http("/knobs", {"usage_unknown_permille": 0})
    fleet.burst([json.dumps({"model": "unheard-of", "max_tokens": 8, "messages": [
        {"role": "user", "content": "?"}]})])
    fleet.redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    seen.await_seen("warmq_redis_evicts == 1")
    fleet.redis("CONFIG", "SET", "maxmemory-policy", "noeviction")
    fleet.redis("SET", "warmq:reply:odd", "no list")
    fleet.send(body=anthropic_body("?"), reply="odd")
    seen.await_seen("warmq_delivery_errors_total > 0")


def story_of_caches(fleet, seen):
    """A late entry, an evicted one, a stampede, a turn that nobody takes."""
    fleet.http("/knobs", {"visibility_lag_ms": 1500})
    fleet.burst(bodies(20, "late "))
    fleet.http("/knobs", {"visibility_lag_ms": 0, "evict_permille": 1000})
    fleet.burst(bodies(20, "second "))
    fleet.http("/knobs", {"evict_permille": 0})
    fleet.warmq("hold", "off")
    seen.await_seen("warmq_holding == 0")
    fleet.burst(bodies(20, "stampede "))
    fleet.warmq("hold", "on")
    seen.await_seen("warmq_avoidable_dollars_total > 0")
    seen.await_seen("warmq_prefixes_everywhere > 0", 60)


def await_lease(fleet):
    """The one lease that Redis holds: key, slot, text."""
    def find():
        for key in fleet.redis("KEYS", "warmq:lease:*"):
            rows = fleet.redis("HGETALL", key)
            for slot, text in zip(rows[::2], rows[1::2]):
                if slot != b"s":
                    return key, slot, text
        return None

    return wait_until(find, "lease", 10)


def hang_up(fleet):
    fleet.redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def story_of_rollbacks(fleet, seen):
    """Redis has lost its last second: a lease is there again, or is not there any more."""
    fleet.http("/knobs", {"job_ms": 1500})
    fleet.enqueue(bodies(1, "first "), reply="again")
    key, slot, text = await_lease(fleet)
    fleet.collect(1, 20, "again")
    other = str((int(slot) + 1) % 25)
    fleet.redis("HSET", key, slot, text, other, b"77777" + text[text.index(b"|"):])
    hang_up(fleet)
    seen.await_seen("warmq_worker_resent_total > 0")
    fleet.enqueue(bodies(1, "first "), reply="orphan")
    wait_until(lambda: fleet.stats()["concurrency"] == 1, "request", 10)  # its worker knows it
    key, slot, _ = await_lease(fleet)
    fleet.redis("HDEL", key, slot)
    hang_up(fleet)
    fleet.collect(1, 20, "orphan")
    seen.await_seen("warmq_late_accepted_total > 0")


def story_of_workers(fleet, seen):
    """One is frozen for longer than its lease, then both die, then nobody is there."""
    fleet.enqueue(bodies(1, "first "), reply="late")
    wait_until(lambda: fleet.stats()["concurrency"] == 1, "request", 10)
    fleet.signal("worker-a", signal.SIGSTOP)
    fleet.start_worker("worker-b", 5, "--lease", "2s")
    fleet.collect(1, 30, "late")
    fleet.signal("worker-a", signal.SIGCONT)
    seen.await_seen("warmq_late_refused_total > 0")
    fleet.enqueue(bodies(4, "first "), reply="killed")
    wait_until(lambda: fleet.stats()["concurrency"] == 4, "requests", 10)
    fleet.kill("worker-a")
    fleet.kill("worker-b")
    seen.await_seen("warmq_recoveries_total > 0")
    seen.await_now('warmq_slots{pool="default"} == 0')
    fleet.start_worker("worker-b", 5, "--lease", "2s")
    fleet.collect(4, 30, "killed")
    fleet.warmq("worker", "quiet", "worker-b")
    seen.await_seen("warmq_worker_quiet == 1")
    fleet.warmq("worker", "resume", "worker-b")
    seen.await_now("warmq_worker_quiet == 0")


def story_of_a_frozen_fleet(fleet, seen):
    """Somebody may write a prefix, and the only worker does not move."""
    fleet.start_worker("worker-a", 5)
    seen.await_now("warmq_workers == 2")
    fleet.end("worker-b")
    seen.await_now("warmq_workers == 1")
    fleet.signal("worker-a", signal.SIGSTOP)
    fleet.enqueue(bodies(5, "nobody "), reply="frozen", hold_max="3s")
    seen.await_seen("warmq_revoked_total > 0")
    fleet.signal("worker-a", signal.SIGCONT)
    fleet.collect(5, 30, "frozen")


def story_of_redis(fleet, seen):
    """Away while a request runs: beats, results and claims have to wait."""
    fleet.redis("CLIENT", "PAUSE", 1500)
    seen.await_seen("warmq_redis_round_trip_seconds > 0.1")
    fleet.enqueue(bodies(3, "first "), reply="spooled")
    wait_until(lambda: fleet.stats()["concurrency"] == 3, "requests", 10)
    fleet.redis("CLIENT", "PAUSE", 7000)
    seen.await_seen("warmq_worker_spool_results > 0 and warmq_worker_fenced == 1")
    fleet.collect(3, 40, "spooled")


def story_of_a_lost_provider(fleet, seen):
    """Nobody listens where requests go, and then somebody does again."""
    port = fleet.provider.rsplit(":", 1)[1]
    fleet.kill("provider")
    fleet.enqueue(bodies(5, "lost "), reply="lost")
    seen.await_seen("warmq_worker_unreached == 1")
    fleet.start("provider", BUILD / "provider" / "warmq-provider", "--port", port)
    fleet.collect(5, 60, "lost")
    seen.await_now("warmq_worker_unreached == 0")


def story_of_bugs(fleet, seen):
    """What must never happen is done by hand."""
    fleet.redis("HSET", "warmq:budget:main:sonnet-4", "in_flight", 7)
    for counter in ("lane_drift", "function_errors", "replies_trimmed", "dead_trimmed"):
        fleet.redis("HINCRBY", "warmq:meta", counter, 1)
    seen.await_seen("warmq_corrections_total > 0 and warmq_dead_trimmed_total > 0")


def dashboard_and_rules(seen):
    """Prometheus understands them, and there is something to see in nearly all panels."""
    wrong = {name: health for name, health in seen.rules().items() if health != "ok"}
    assert not wrong

    def is_filled():
        """A scrape may have come too late for the last moment."""
        empty = {expression for expression in expressions() if not seen.query(
            expression.replace("$pool", ".*").replace("$route", ".*"))}
        return empty <= NOTHING_TO_SEE

    wait_until(is_filled, "something to see in nearly all panels")


def story_of_rulers(fleet, seen):
    """The stand-by takes over, behind lines that nobody has read and without a cursor."""
    fleet.signal("stand-by", signal.SIGSTOP)
    fleet.kill("scheduler")
    fleet.redis("XTRIM", "warmq:events", "MAXLEN", "=", 0)
    fleet.redis("HDEL", "warmq:meta", "cursor")
    fleet.signal("stand-by", signal.SIGCONT)
    seen.await_seen("warmq_admitting == 0 and warmq_ledger_gaps_total > 0")


def moved(seen, name, kind):
    if kind == "gauge":
        low, high = (seen.number(f"{word}({word}_over_time({name}[1h]))")
                     for word in ("min", "max"))
        return low is not None and low != high
    name = name + "_count" if kind == "histogram" else name
    return (seen.number(f"max(max_over_time({name}[1h]))") or 0) > 0


def test_a_real_prometheus_sees_every_documented_metric_move(tmp_path):
    knobs = {"latency_ms": 50, "prefill_tokens_per_second": 10000, "job_ms": 300}
    with Rig(tmp_path, knobs=knobs) as fleet:
        targets = [fleet.port(name) for name in ("scheduler", "stand-by", "worker-a",
                                                 "worker-b")]
        with Prometheus(tmp_path, targets) as seen:
            fleet.start_scheduler()
            fleet.await_ruler()
            fleet.start_scheduler("stand-by")
            for story in (story_of_jobs, story_of_caches, story_of_rollbacks,
                          story_of_workers, story_of_redis, story_of_a_frozen_fleet,
                          story_of_a_lost_provider, story_of_bugs, story_of_rulers):
                if story is story_of_rulers:
                    dashboard_and_rules(seen)
                story(fleet, seen)
            still = [name for name, (kind, _) in documented().items()
                     if name not in CONSTANT | SLOW and not moved(seen, name, kind)]
            assert not still, " ".join(still)
