"""store.py - the functions of docs/PROTOCOL.md, called and read from Python.

    store = Store(redis_client)          a namespace; rule() makes it ours
    store.enqueue(family, 5)             XADD and admit
    store.open(family)                   a grant: gate open, until far away
    worker = Worker(store)               hello
    claim = worker.claim(0, 1)           runs, refused, sleep_ms
    worker.settle(claim.jobs)            ends them

Shapes are checked where they are read: an answer the protocol does not name fails the
test that got it.
"""

import itertools
import os
import re
import sys

from waiting import wait_until  # noqa: F401: theirs who import from here

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FUNCTIONS = os.path.join(ROOT, "scheduler", "functions")
NEVER = 99999999999999
CLOSED, WRITING, CHECKING, OPEN, BYPASS, LEAKY = range(6)
LISTS = ["back:h", "ready:h", "back:n", "ready:n", "back:l", "ready:l", "now"]
SERIAL = itertools.count(1)


def library_files():
    """Its sources, in the order in which they are joined."""
    with open(os.path.join(FUNCTIONS, "meson.build"), encoding="utf-8") as build:
        names = re.findall(r"^  '(\w+\.lua)',$", build.read(), re.M)
    return [os.path.join(FUNCTIONS, name) for name in names]


# Answers every slot of which the library remembers something else than Redis holds.
RECALLED = """
register('recalled', function()
	local wrong = {}
	for name, own in pairs(recall.tables) do
		for slot, q in pairs(own.q) do
			local lease = call('HGET', name, slot) or ''
			local start = q .. own.home[slot].text .. own.id[slot] .. '|p|' .. own.home[slot].g
			if sub(lease, 1, #start) ~= start then
				wrong[#wrong + 1] = name .. ' ' .. slot .. ': ' .. start .. ' is ' .. lease
			end
		end
	end
	return wrong
end)

"""


def library():
    """The library with one function more, by which a test sees what is remembered."""
    before, name, behind = library_plain().partition("-- register.lua")
    behind = behind.replace("register('rule')", "register('rule')\nregister('recalled')", 1)
    return before + RECALLED + name + behind


def library_plain():
    """The library as its sources are now, whatever was built; or the one that
    WARMQ_LIBRARY names (mutants.py)."""
    named = os.environ.get("WARMQ_LIBRARY")
    if named:
        with open(named, encoding="utf-8") as file:
            return file.read()
    sys.path.insert(0, FUNCTIONS)
    try:
        import embed
    finally:
        sys.path.remove(FUNCTIONS)
    return embed.join(library_files(), "test")[0]


def node(number):
    """A node id: 32 hex digits."""
    return f"{number:032x}"


class Family:
    """What `admit` says of a family."""

    def __init__(self, number, pool="main", budget="acme:large", hold_max=30000, input=100,
                 output=50, lanes=1, ancestors=(), px=None, flags=0, route="triage",
                 model=None):
        self.id = node(number)
        self.pool, self.budget, self.hold_max = pool, budget, hold_max
        self.input, self.output, self.flags, self.route = input, output, flags, route
        self.model = model
        self.lanes = [f"{self.id}.{domain}" for domain in range(lanes)]
        self.ancestors = list(ancestors)
        self.px = [self.id] if px is None else list(px)

    @property
    def lane(self):
        return self.lanes[0]

    def words(self):
        return [self.id, self.pool, self.budget, self.flags, self.hold_max, self.input,
                self.output, ",".join(self.lanes), ",".join(self.ancestors),
                ",".join(self.px), self.route if self.model is None else f"{self.route}|{self.model}"]


class LaneRecord:
    COLUMNS = [("format", 1), ("gate", 1), ("reason", 1), ("g", 10), ("credits", 3),
               ("role", 1), ("in_use", 5), ("window", 5), ("rank", 8), ("until", 14),
               ("p", 8), ("life", 10), ("ticket", 1), ("ticket_deadline", 14),
               ("must_begin", 14)]
    FIELDS = ["pool", "budget", "family", "px", "note"]

    def __init__(self, text):
        read_record(self, text)


class FamilyRecord:
    """`model` is None where the record says nothing of it."""

    COLUMNS = [("format", 1), ("bits", 3), ("flags", 2), ("live", 10), ("hold_max", 8),
               ("input", 8), ("output", 8), ("marks", 1)]
    FIELDS = ["pool", "budget", "lanes", "ancestors", "px", "route"]

    def __init__(self, text):
        read_record(self, text)
        self.route, bar, model = self.route.partition("|")
        self.model = model if bar else None


def read_record(record, text):
    at = 0
    for name, width in record.COLUMNS:
        setattr(record, name, int(text[at:at + width]))
        at += width
    assert text[at] == "|", text
    fields = text[at + 1:].split("|", len(record.FIELDS) - 1)
    assert len(fields) == len(record.FIELDS), text
    for name, value in zip(record.FIELDS, fields):
        setattr(record, name, value)


class Lease:
    def __init__(self, text):
        (q, self.family, self.lane, self.element, self.role, g, charge, end, delivery,
         self.band) = text.split("|")
        self.begun, self.role = self.role.isupper(), self.role.lower()
        self.q, self.g, self.end, self.delivery = int(q), int(g), int(end), int(delivery)
        self.input, self.output = (int(part) for part in charge.split(","))
        self.id = re.match(r"[^~/]+", self.element).group()


class Job:
    """One element of a run, in the slot it was put into."""

    def __init__(self, run, element, slot, q):
        (self.lane, self.family, self.role, self.g, self.px, self.marks, self.begin,
         self.leader_ms, self.p) = run
        self.element, self.slot, self.q = element, slot, q
        self.id = re.match(r"[^~/]+", element).group()


def read_run(line):
    """lane family role g px marks begin leader_ms p, then elements; "-": empty."""
    words = ["" if word == "-" else word for word in line.split(" ")]
    assert len(words) > 9, line
    lane, family, role, g, px, *numbers = words[:9]
    return [lane, family, role, int(g), px, *map(int, numbers), *words[9:]]


class Claim:
    """One text of lines: OK now sleep_ms, refused, problems, then the runs."""

    def __init__(self, answer, slots, q):
        assert isinstance(answer, str) and answer.startswith("OK "), answer
        head, refused, problems, *runs = answer.split("\n")
        _, now, sleep_ms = head.split(" ")
        self.now, self.sleep_ms = int(now), int(sleep_ms)
        flat = refused.split()
        self.refused = dict(zip(flat[::2], flat[1::2]))
        flat = ["" if word == "-" else word for word in problems.split()]
        self.problems = list(zip(flat[::3], flat[1::3], flat[2::3]))
        self.runs = [read_run(run) for run in runs]
        free = [(slot, q + i) for i, slot in enumerate(slots)
                if str(slot) not in self.refused]
        self.jobs = []
        for run in self.runs:
            for element in run[9:]:
                slot, own = free[len(self.jobs)]
                self.jobs.append(Job(run[:9], element, slot, own))

    @property
    def ids(self):
        return [job.id for job in self.jobs]


class Store:
    def __init__(self, client, ns="warmq"):
        self.redis, self.ns = client, ns
        self.owner = None
        self.known = set()
        self.broken = False  # a test that damages records says so

    def key(self, name):
        return f"{self.ns}:{name}"

    def call(self, name, *args):
        return self.redis.execute_command("FCALL", f"warmq_{name}", 1, self.key("meta"), "1",
                                          *args)

    def ok(self, name, *args):
        """What a function answers behind OK and the time."""
        answer = self.call(name, *args)
        assert answer[0] == "OK", answer
        return answer[2:]

    def now(self):
        seconds, micros = self.redis.time()
        return seconds * 1000 + micros // 1000

    # ---- scheduler ----

    def rule(self, nonce="00000000000000aa", lease_ms=600000):
        owner, took = self.ok("rule", nonce, lease_ms)
        self.owner = owner
        return took

    def cursor(self):
        entry, n = self.redis.hget(self.key("meta"), "cursor").split(" ")
        return entry, n

    def add(self, **fields):
        return self.redis.xadd(self.key("jobs"), fields or {"upstream": "acme", "body": "{}"})

    def admit_words(self, families=(), segments=None, runs=(), slims=(), later=(), dead=(),
                    deadlines=(), gone=(), prefixes=(), decided=()):
        if segments is None:
            segments = [(px, "segment " + px) for family in families for px in family.px]
        elements = [element for _, _, run in runs for element in run]
        words = ["F", len(families)]
        for family in families:
            words += family.words()
        words += ["X", len(segments)] + [w for pair in segments for w in pair]
        words += ["R", len(runs)]
        for family, name, run in runs:
            words += [family.id, name, len(run)]
        words += ["E", len(elements)] + elements
        for letter, rows in [("S", slims), ("L", later), ("D", dead), ("T", deadlines)]:
            words += [letter, len(rows)] + [w for row in rows for w in row]
        words += ["G", len(gone)] + list(gone)
        words += ["P", len(prefixes)] + [w for row in prefixes for w in row]
        if decided:
            words += ["U", len(decided)] + list(decided)
        return words

    def admit(self, to, to_n=0, at=None, **groups):
        entry, n = at or self.cursor()
        return self.call("admit", self.owner, entry, n, to, to_n, *self.admit_words(**groups))

    def enqueue(self, family, count=1, name="n", suffix="", **fields):
        """XADDs and admits `count` jobs of a family; answers their ids."""
        ids = [self.add(**fields) for _ in range(count)]
        families = [] if family.id in self.known else [family]
        answer = self.admit(ids[-1], families=families,
                            runs=[(family, name, [id + suffix for id in ids])])
        assert answer[0] == "OK", answer
        self.known.add(family.id)
        return ids

    def grant(self, lane, budgets=(), cursor="-", **values):
        """One lane; what is not named stays.  g is read, g_new is g + 1 unless given."""
        order = ["gate", "reason", "credits", "role", "window", "rank", "until", "p", "life",
                 "ticket", "ticket_deadline", "marks"]
        assert set(values) <= set(order) | {"g", "g_new", "family", "px", "pool", "budget"}
        record = self.lane(lane)
        g = values.get("g", record.g if record else 0)
        node_id = lane.split(".")[0]
        words = [lane, values.get("family", record.family if record else node_id),
                 values.get("px", node_id), values.get("pool", "main"),
                 values.get("budget", "acme:large"), g, values.get("g_new", g + 1)]
        words += [values.get(name, "-") for name in order]
        return self.ok("grant", self.owner, cursor, 1, *words, len(budgets),
                       *[w for row in budgets for w in row])[0]

    def grant_budget(self, budget, pace="-", parked="-", r="-", i="-", o="-",
                     learned=0):
        self.ok("grant", self.owner, "-", 0, 1, budget, pace, parked, r, i, o, learned)

    def open(self, family, window=1000, **values):
        for lane in family.lanes:
            values = {"gate": OPEN, "until": NEVER, "credits": 0, "window": window, **values}
            assert self.grant(lane, **values)[1] == "done"

    def reap(self, lease_ms=30000, beat_ms=10000, chunk=100):
        return self.ok("reap", self.owner, lease_ms, beat_ms, chunk)

    def reap_all(self, **options):
        while True:
            returned, more, hold = self.reap(**options)
            assert hold == 0
            if not more:
                return

    def promote(self, limit=100):
        return self.ok("promote", self.owner, limit)

    def expire(self, limit=100):
        return self.ok("expire", self.owner, limit)[0]

    def audit(self):
        """All at once; what was wrong."""
        going_on, *corrections = self.ok("audit", self.owner)
        assert going_on == ""
        return corrections

    def audit_in_pieces(self):
        cursor, corrections, calls = "1:0", [], 0
        while cursor:
            cursor, *more = self.ok("audit", self.owner, cursor)
            corrections += more
            calls += 1
        return corrections, calls

    def count(self):
        names = ["drained", "stream", "slims", "ready", "back", "now", "leases", "later",
                 "dead", "ended"]
        return dict(zip(names, self.ok("count")))

    def is_conserved(self):
        c = self.count()
        return c["stream"] + c["slims"] == (c["ready"] + c["back"] + c["now"] + c["leases"] +
                                            c["later"] + c["dead"] - c["ended"])

    # ---- what is stored ----

    def lane(self, lane):
        text = self.redis.hget(self.key("lanes"), lane)
        return text and LaneRecord(text)

    def family(self, family):
        text = self.redis.hget(self.key("families"), family.id)
        return text and FamilyRecord(text)

    def list(self, family, name):
        """Elements of `ready:n`, `back:h`, `now`, …"""
        return self.redis.lrange(self.key(f"{name}:{family.id}"), 0, -1)

    def open_set(self, pool="main", budget="acme:large"):
        return dict(self.redis.zrange(self.key(f"open:{pool}:{budget}"), 0, -1,
                                      withscores=True))

    def held_set(self, pool="main", budget="acme:large"):
        return dict(self.redis.zrange(self.key(f"held:{pool}:{budget}"), 0, -1,
                                      withscores=True))

    def past(self, id):
        return self.redis.hgetall(self.key(f"past:{id}"))

    def meta(self, name):
        return self.redis.hget(self.key("meta"), name)

    def leases(self, worker):
        table = self.redis.hgetall(self.key(f"lease:{worker.nonce}"))
        return {int(slot): Lease(text) for slot, text in table.items() if slot != "s"}

    def budget(self, name="acme:large"):
        return self.redis.hgetall(self.key(f"budget:{name}"))

    def is_charged(self, bucket, level, limit, since):
        """Whether the level stands there, but for what came in since that ms of Redis."""
        came = limit * (self.now() - since + 1) / 60000
        return level - 1 <= float(self.budget()[f"{bucket}.level"]) <= min(limit, level + came)

    def flight(self, name="acme:large"):
        return int(self.budget(name).get("in_flight", 0))

    def events(self, kind=None):
        lines = [line for _, fields in self.redis.xrange(self.key("events"))
                 for line in fields["e"].split("\n")]
        return [line for line in lines if kind is None or line.split(" ")[0] == kind]

    def replies(self, name):
        return self.redis.lrange(self.key(f"reply:{name}"), 0, -1)

    def result(self, id):
        return self.redis.get(self.key(f"result:{id}"))

    def dead(self):
        return self.redis.zrange(self.key("dead"), 0, -1)

    def wait_past(self, ms):
        wait_until(lambda: self.now() > ms, f"Redis time {ms}")


class Worker:
    """A session.  q counts up by itself; answers that are not OK come back as they are."""

    def __init__(self, store, pool="main", slots=8, budgets="*", lease_ms=600000, replaces="",
                 job_ms=None):
        self.store, self.slots = store, slots
        self.nonce = f"{next(SERIAL):016x}"
        self.q = 1
        words = [self.nonce, "test", pool, slots, budgets, lease_ms, replaces]
        self.c = store.ok("hello", *words, *([] if job_ms is None else [job_ms]))[0]

    def attach(self, lease_ms=600000):
        answer = self.store.ok("attach", self.nonce, lease_ms)
        self.c = answer[0]
        return {int(slot): Lease(text) for slot, text in answer[1:]}

    def take_q(self, count):
        q = self.q
        self.q += max(count, 1)
        return q

    def claim_raw(self, q, *slots):
        return self.store.call("claim", self.nonce, self.c, q, *slots)

    def claim(self, *slots):
        slots = slots or range(self.slots)
        q = self.take_q(len(slots))
        return Claim(self.claim_raw(q, *slots), slots, q)

    def settle_raw(self, jobs, q, slots, usage="", reply="", ttl=60000, result=None,
                   named=False):
        """As workers do: slots that end and go on are named once, unless `named`."""
        words, count = [], len(jobs)
        for job in jobs:
            words += [job.slot, job.q, usage, reply, ttl, result or f"result of {job.id}"]
        if not named and slots and list(slots) == [job.slot for job in jobs]:
            count, slots = f"={count}", []
        return self.store.call("settle", self.nonce, self.c, count, *words, q, *slots)

    def settle(self, jobs, claim=(), **options):
        q = self.take_q(len(claim))
        return Claim(self.settle_raw(jobs, q, claim, **options), claim, q)

    def fail(self, job, kind, attempts_max=3, delay_ms=0, park_ms=0, reason="", text="",
             usage="", reply="", ttl=60000, result=""):
        answer = self.store.call("fail", self.nonce, self.c, job.slot, job.q, kind,
                                 attempts_max, delay_ms, park_ms, reason, text, usage, reply,
                                 ttl, result)
        return answer[2] if answer[0] == "OK" else answer

    def release(self, jobs, sent=1):
        words = [w for job in jobs for w in (job.slot, job.q, sent)]
        return self.store.call("release", self.nonce, self.c, *words)

    def begin(self, job, usage):
        return self.store.call("begin", self.nonce, self.c, job.slot, job.q, usage)

    def claim_of(self, upstream, slot):
        """One job of this upstream, also if it is shunned."""
        q = self.take_q(1)
        return Claim(self.claim_raw(q, f"={upstream}", slot), [slot], q)

    def beat(self, busy=None, lease_ms=600000, shunned=None):
        if busy is None:
            busy = len(self.store.leases(self))
        words = [] if shunned is None else [shunned]
        return self.store.call("beat", self.nonce, self.c, busy, lease_ms, *words)

    def bye(self):
        return self.store.call("bye", self.nonce, self.c)

    def die(self):
        """What a killed process leaves behind, its lease run out."""
        self.store.redis.zadd(self.store.key("workers"), {self.nonce: self.store.now() - 1})


def opened(store, number=1, count=5, window=1000, name="n", suffix="", **options):
    """A family with so many jobs, whose lane is open; and their ids."""
    family = Family(number, **options)
    ids = store.enqueue(family, count, name, suffix)
    store.open(family, window)
    return family, ids


def killed(store, count=1, **options):
    """A worker that has died with so many jobs, and these."""
    worker = Worker(store, slots=max(count, 8), **options)
    jobs = worker.claim(*range(count)).jobs
    worker.die()
    return worker, jobs
