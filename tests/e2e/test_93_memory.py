"""What pages show of the past, over the death of a scheduler: the same as before."""

import json
import random
import urllib.request

from fleet import BUILD, Fleet, anthropic_body, long_text, wait_until
from ports import free_port

KNOBS = {"latency_ms": 20, "prefill_tokens_per_second": 20000, "job_ms": 50}
OPTIONS = "    pace_start: 200\n    hold_max: 10s\n"

# What says how things are just now, not what was.
NOW = {"now_ms", "owner", "inbox_lag_ms", "taken_us", "pace", "rising", "pending", "window",
       "rank", "misses", "drain_s", "until_ms", "warm_until_ms", "seen_ms", "runnable",
       "requests_own", "requests_foreign", "minute_ms", "active", "limits", "slots",
       "backlog",  # a sample each ten seconds
       "dead_letters"}  # counted in Redis, now and then


class Pages(Fleet):
    def __init__(self, directory, **options):
        super().__init__(directory, OPTIONS, knobs=KNOBS, **options)
        self.ports = {}

    def start_scheduler(self, name="scheduler"):
        self.ports.setdefault(name, free_port())
        self.start(name, BUILD / "scheduler" / "warmq-scheduler", "--config", self.config,
                   "--listen", f"127.0.0.1:{self.ports[name]}")

    def page(self, path, name="scheduler"):
        url = f"http://127.0.0.1:{self.ports[name]}/api/v1/{path}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return json.load(answer)

    def await_ruling(self, name="scheduler"):
        def rules():
            try:
                return self.page("overview", name)["phase"] == "ruling"
            except OSError:
                return False

        wait_until(rules, f"{name} to rule", 30)


def prompt(word, number, **more):
    return anthropic_body(f"Question {number}", long_text(2000, word), **more)


def clock(number):
    """Each job pays for a prompt of its own."""
    text = f"It is 12:{number:02}:00. You are the triage desk. " + long_text(2000)
    return anthropic_body("?", [{"type": "text", "text": text,
                                 "cache_control": {"type": "ephemeral"}}])


def a_day(fleet):
    """Some of everything; how many jobs it was."""
    fleet.burst([prompt("policy ", n) for n in range(30)], route="triage")
    fleet.burst([prompt("policy ", n) for n in range(20)], route="triage", upstream="backup")
    fleet.burst([prompt("review ", n) for n in range(12)], route="review")
    for number in range(4):
        fleet.burst([clock(number)], route="clock")
    fleet.warmq("hold", "off")
    fleet.warmq("hold", "on")
    fleet.enqueue(["no json"], route="broken")
    fleet.collect(1)
    return 30 + 20 + 12 + 4


def await_kept(fleet, jobs, name="scheduler"):
    """Until all that is shown is stored, too."""
    def kept():
        head = fleet.redis("HGET", "warmq:recent", "h:0")
        history = fleet.page("history", name)
        return head and head.split()[1:3] == [b"%d" % jobs, b"1"] and \
            history["done"][-1:] == [jobs] and history["running"][-1] == 0 and \
            int(head.split()[4]) >= len(history["at_ms"])

    wait_until(kept, "the past to be stored", 40)


def without_now(value):
    if isinstance(value, dict):
        return {name: without_now(one) for name, one in value.items() if name not in NOW}
    return [without_now(one) for one in value] if isinstance(value, list) else value


def minutes(cell):
    """{minute: (requests, hits, read, written)}, those that are not empty."""
    if "minute_ms" not in cell:
        return {}
    columns = [cell.pop(f"{name}_a_minute") for name in ("requests", "hits", "read", "written")]
    last = cell["minute_ms"] // 60000
    return {last - 59 + i: row for i, row in enumerate(zip(*columns)) if any(row)}


def look(fleet, name="scheduler"):
    """Prefixes of one job are not kept but in the ledger; sizes that are guesses come back
    with the next job."""
    overview = fleet.page("overview", name)
    families = fleet.page("families?limit=200&show=families", name)["families"]
    for lane in [lane for family in families for lane in family["lanes"]]:
        if not lane["measured"]:
            del lane["tokens"]
        if not lane["holds"]:
            del lane["reason"]
    seen = {"counts": overview["counts"],
            "budgets": sorted(overview["budgets"], key=lambda one: one["name"]),
            "families": sorted(families, key=lambda one: one["id"]),
            "routes": sorted([one for one in fleet.page("routes", name)["routes"]
                              if not one["singles"]], key=lambda one: one["route"]),
            "places": sorted(fleet.page("places", name)["rows"], key=lambda one: one["prefix"]),
            "sums": fleet.page("places", name)["places"]}
    for row in seen["places"]:
        row["cells"].sort(key=lambda one: one["family"])
    for family in families:
        cells = fleet.page(f"families/{family['id']}/places", name)
        seen[f"past {family['id']}"] = {cell["place"]: minutes(cell) for cell in cells["cells"]}
        seen[f"writers {family['id']}"] = fleet.page(f"families/{family['id']}/writers", name)
    ledger = fleet.page("ledger", name)
    for burst in ledger["bursts"]:
        del burst["open"]  # until a minute has gone by
    for part in ("week", "bursts", "places", "ahead", "changes", "routes"):
        seen[f"ledger {part}"] = ledger[part]
    return {name: without_now(value) for name, value in seen.items()}


def differences(before, after, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        return [one for name in sorted(set(before) | set(after), key=str) for one in
                differences(before.get(name), after.get(name), f"{path}/{name}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [one for i, (a, b) in enumerate(zip(before, after))
                for one in differences(a, b, f"{path}/{i}")]
    return [] if before == after else [f"{path}: {before} before, {after} after"]


def check_log(before, after):
    """What was said then stands behind what was said since."""
    assert after[-len(before):] == before and len(before) > 2


def check_history(before, after):
    """A sample that says what the one before it said may be missing."""
    rows = [dict(zip(one, row)) for one in (before, after) for row in zip(*one.values())]
    old, new = rows[:len(before["at_ms"])], rows[len(before["at_ms"]):]
    kept = {row["at_ms"]: row for row in new}
    assert old[-1]["done"] == new[-1]["done"] > 0
    for last, row in zip(old, old[1:]):
        same = {**row, "at_ms": 0} == {**last, "at_ms": 0}
        assert kept.get(row["at_ms"]) == row or same and row["at_ms"] not in kept, row
    for row, following in zip(new, new[1:]):
        assert following["done"] >= row["done"], "a counter that falls begins anew"


def backlogs(fleet, name="scheduler"):
    """Samples of each family, up to the last one that says something."""
    families = fleet.page("families?limit=200&show=families", name)["families"]
    return {family["id"]: " ".join(map(str, family.get("backlog") or [])).rstrip(" 0")
            for family in families}


def check_heir(fleet, heir, before, notes, changes, history, backlog):
    now = backlogs(fleet, heir)
    assert [id for id in backlog if not now[id].startswith(backlog[id])] == [], (backlog, now)
    assert "\n".join(differences(before, look(fleet, heir))) == ""
    check_log(notes, fleet.page("notes?limit=200", heir)["notes"])
    check_log(changes, fleet.page("ledger", heir)["notes"])
    wait_until(lambda: fleet.page("history", heir)["at_ms"], "a sample", 20)
    check_history(history, fleet.page("history", heir))
    assert "cannot be read" not in fleet.log(heir)


def test_whoever_rules_next_shows_what_was_shown_before(tmp_path):
    """A stand-by takes over; it dies, too, and one that was just started follows it."""
    with Pages(tmp_path, places=["backup"]) as fleet:
        fleet.start_all()
        fleet.start_scheduler("standby")
        jobs = a_day(fleet)
        await_kept(fleet, jobs)
        before, notes = look(fleet), fleet.page("notes?limit=200")["notes"]
        history, changes = fleet.page("history"), fleet.page("ledger")["notes"][-3:]
        backlog = backlogs(fleet)
        assert requests(before) == 30 + 20 + 30 + 20 + 12
        assert [len(row["cells"]) for row in before["places"]].count(2) == 1, "a twin"

        fleet.kill("scheduler")
        fleet.await_ruling("standby")
        check_heir(fleet, "standby", before, notes, changes, history, backlog)
        fleet.kill("standby")
        fleet.start_scheduler("third")
        fleet.await_ruling("third")
        check_heir(fleet, "third", before, notes, changes, history, backlog)

        # It goes on from there.
        fleet.burst([prompt("policy ", n) for n in range(5)], route="triage")
        wait_until(lambda: fleet.page("overview", "third")["counts"]["done"] == jobs + 5, "more",
                   20)
        rows = {one["route"]: one["jobs_done"] for one in fleet.page("routes", "third")["routes"]}
        assert rows["triage"] == 55


def requests(seen):
    """What the last hour of all families shows; it is written a little behind the counts."""
    return sum(row[0] for part, past in seen.items() if part.startswith("past ")
               for cell in past.values() for row in cell.values())


def of_the_hour(seen):
    """The same without minutes: what is counted again may come into the next one."""
    return {part: {place: tuple(map(sum, zip(*rows.values()))) for place, rows in cells.items()}
            if part.startswith("past ") else cells for part, cells in seen.items()}


def look_unstored(fleet, jobs):
    """What is shown of jobs that came since it was stored last; how many there are now."""
    def total():
        return fleet.redis("HGET", "warmq:ledger", "total")

    for _ in range(10):  # somebody else's load may have let it rest for 5 s
        stored, shown = total(), requests(look(fleet))
        fleet.burst([prompt("policy ", n) for n in range(4)], route="triage")
        jobs += 4
        wait_until(lambda: fleet.page("overview")["counts"]["done"] == jobs, "the last ones")
        wait_until(lambda: requests(look(fleet)) >= shown + 4, "their minute")
        before = look(fleet)
        before["counts"].pop("admitted")  # no event says it
        if total() == stored:
            return before, jobs
    raise AssertionError("it was stored each time")


def test_what_was_not_stored_is_counted_again_after_a_kill(tmp_path):
    """Between two stores lie two minutes while jobs trickle in."""
    with Pages(tmp_path, places=["backup"]) as fleet:
        fleet.start_all()
        jobs = a_day(fleet)
        await_kept(fleet, jobs)
        before, jobs = look_unstored(fleet, jobs)
        fleet.kill("scheduler")
        fleet.start_scheduler()
        fleet.await_ruling()
        wait_until(lambda: fleet.page("overview")["counts"]["done"] == jobs, "all of them again")
        wait_until(lambda: requests(look(fleet)) >= requests(before), "their minute")
        after = look(fleet)
        assert jobs - 4 <= after["counts"].pop("admitted") <= jobs + 1
        assert "\n".join(differences(of_the_hour(before), of_the_hour(after))) == ""


def test_who_is_told_to_stop_stores_before(tmp_path):
    with Pages(tmp_path) as fleet:
        fleet.start_all()
        fleet.burst([prompt("policy ", n) for n in range(12)], route="triage")
        wait_until(lambda: fleet.redis("HGET", "warmq:ledger", "total"), "a stored ledger")
        before, jobs = look_unstored(fleet, 12)
        fleet.end("scheduler")
        words = fleet.redis("HGET", "warmq:ledger", "total").split()
        assert int(words[1]) == jobs, "answers"
        assert fleet.redis("HGET", "warmq:recent", "h:0").split()[1] == b"%d" % jobs
        assert before["counts"]["done"] == jobs


def spoil(fleet, choose):
    """Each field of what is kept cut off, mixed up, or somebody else's."""
    rows = fleet.redis("HGETALL", "warmq:recent")
    values = rows[1::2]
    for field, value in zip(rows[::2], values):
        at = choose.randrange(len(value) + 1)
        fleet.redis("HSET", "warmq:recent", field, choose.choice([
            value[:at], value[:at] + b"99999999999999999999" + value[at:], choose.choice(values),
            b"", b"\x00\xff", value.replace(b" ", b","), value.replace(b"0", b"18446744073709551615")]))
    for field in ("f:127", "f:128", "m:60", "t:99999", "b:4294967295", "x:1", "n:-1", "h"):
        fleet.redis("HSET", "warmq:recent", field, choose.choice(values))


def test_what_is_kept_may_be_lost_or_spoilt(tmp_path):
    """A page lacks it then; nothing else does."""
    choose = random.Random(93)
    with Pages(tmp_path, places=["backup"]) as fleet:
        fleet.start_all()
        jobs = a_day(fleet)
        await_kept(fleet, jobs)
        kept = fleet.redis("HGETALL", "warmq:recent")
        for turn in range(8):
            fleet.end("scheduler")
            fleet.redis("DEL", "warmq:recent")
            if turn == 1:
                fleet.redis("SET", "warmq:recent", "not a hash")
            elif turn > 1:
                fleet.redis("HSET", "warmq:recent", *kept)
                spoil(fleet, choose)
            fleet.start_scheduler()
            fleet.await_ruling()
            look(fleet)
            for page in ("history", "notes?limit=200"):
                fleet.page(page)
        fleet.burst([prompt("policy ", n) for n in range(5)], route="triage")
        wait_until(lambda: fleet.redis("TYPE", "warmq:recent") == "hash", "a new beginning", 20)
        assert fleet.processes["scheduler"].poll() is None
