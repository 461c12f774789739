"""books.py - what must be true of a namespace once nothing is under way.

    assert books.check(link) == []

The counts balance, nothing is leased, waiting or in flight, the audit corrects nothing, and
no key is left behind.  `link` is called with the words of a command and answers as Redis
does; link.surely() does so until it is answered (chaos.py has one)."""

import re
import time

FIXED = {"families", "lanes", "pools", "workers", "idle", "ends", "unused", "meta", "events",
         "status", "jobs", "pressure", "look", "stamp",
         "early",  # cancelled before anybody read them: goes when a later entry is admitted
         "ledger", "recent", "drift", "deadline"}  # the last: deadlines of jobs that are done
FAMILIES = ("px", "under", "budget", "session", "lease", "prefix", "result", "reply", "slim",
            "past", "dead", "open", "held", "ready", "back", "now",
            "ledger", "paid")
COUNTS = ["drained", "stream", "slims", "ready", "back", "now", "leases", "later", "dead",
          "ended"]
PATIENCE_S = 60  # marks go when their id is met, which takes a beat


def call(link, name, *words):
    return link.surely("FCALL", f"warmq_{name}", 1, "warmq:meta", 1, *words)


def counts_of(link):
    return dict(zip(COUNTS, call(link, "count")[2:]))


def balance(link):
    """What is wrong right now; it may still be under way."""
    wrong = []
    counts = counts_of(link)
    places = sum(counts[name] for name in ("ready", "back", "now", "leases", "later", "dead"))
    if counts["stream"] + counts["slims"] != places - counts["ended"]:
        wrong.append(f"the counts do not balance: {counts}")
    for name in ("ready", "back", "now", "leases", "later", "stream", "ended"):
        if counts[name]:
            wrong.append(f"{counts[name]} jobs are still in `{name}`")
    if not counts["drained"]:
        wrong.append("the inbox is not drained")
    lanes = link.surely("HGETALL", "warmq:lanes")
    for lane, record in zip(lanes[::2], lanes[1::2]):
        if int(record[17:22]):
            wrong.append(f"lane {lane} has {record[17:22]} in use")
    for name in link.surely("KEYS", "warmq:budget:*"):
        if int(link.surely("HGET", name, "in_flight") or 0):
            wrong.append(f"{name} has requests in flight")
    return wrong


def corrections(link):
    """What an audit puts right, as Redis says it."""
    return call(link, "audit", link.surely("HGET", "warmq:meta", "owner"))[3:]


def leftovers(link):
    wrong = []
    dead = set(link.surely("ZRANGE", "warmq:dead", 0, -1))
    for key in link.surely("KEYS", "warmq:*"):
        kind, _, id = key[len("warmq:"):].partition(b":")
        kind = kind.decode()
        if kind in ("slim", "past") and id not in dead:
            wrong.append(f"{key} was left behind")
        elif kind not in FIXED and kind not in FAMILIES:
            wrong.append(f"{key} was left behind")
    return wrong


def check(link):
    end = time.monotonic() + PATIENCE_S
    while True:
        wrong = balance(link)
        if not wrong or time.monotonic() > end:
            break
        time.sleep(0.2)
    found = corrections(link)
    if found:
        wrong.append(f"the audit corrects {found}")
    for field in ("lane_drift", "function_errors"):
        count = link.surely("HGET", "warmq:meta", field)
        if count:
            wrong.append(f"{field} is {count}")
    return wrong + leftovers(link)


def complaints(name, log):
    """Lines of a scheduler's log that no run may have."""
    return [f"{name}: {line}" for line in log.splitlines()
            if "the audit corrected" in line or "broken invariant" in line]


WHO = (" job=", " ticket=", " family=", " route=", " budget=", " upstream=", " slot=")
OF_ALL = ("connection to Redis", "Redis ", "the clock of Redis", "the functions are missing",
          "another scheduler", "somebody has moved", "the stored cursor", "memory and Redis differ",
          "the cursor of the inbox", "the entry ", "holding was switched", "the worker ",
          "jobs of workers that died", "lines of the event stream", "the books ",
          "numbers were clamped", "results could not be delivered", "no beat reached Redis",
          "no connection to Redis", "stopping", "the loop was held up", "cannot start",
          "schedulers began")


def nameless(name, log):
    """Warnings and errors that say neither whom they are about nor that it is everybody."""
    found = []
    for line in log.splitlines():
        event = re.search(r' level=(?:warning|error) program=\S+ event=(?:"((?:[^"\\]|\\.)*)"|(\S+))', line)
        words = re.sub(r"^\d+ ", "", event[1] or event[2]) if event else ""
        if event and not any(who in line for who in WHO) and not words.startswith(OF_ALL):
            found.append(f"{name}: of whom? {line}")
    return found
