#!/usr/bin/python3
"""strange.py - single misfortunes that no random storm brings about, one run for each.

    tests/e2e/strange.py             all of them
    tests/e2e/strange.py rollback    one, with its logs kept

    rollback    an older dump is restored under living workers and a living scheduler
    emptied     Redis comes back with nothing at all
    full        maxmemory is reached: producers are refused, everything else drains
    paused      CLIENT PAUSE for longer than a lease
    spent       the account is out of money while jobs run, then it is not
    replica     Redis is made a replica of nobody by mistake: it takes no writes
    unsaved     Redis cannot write its dump, and refuses all writes for that
    hung_up     every connection is closed again and again
    crowded     there is no room for another connection, and ours are closed
    forbidden   one command after the other is taken from the user
    unloaded    the functions are deleted again and again, and killed while they run
    refused     replica, unsaved and forbidden, shortly, one behind the other
    harassed    hung_up, crowded and unloaded, likewise

Jobs, ledger and books are those of chaos.py.  What Redis itself has lost is no promise: jobs
that came behind the dump may be gone, what has ended since may end again, once."""

import argparse
import shutil
import socket
import sys
import tempfile
import time

from chaos import Chaos, ChaosFleet, Link
from fleet import end_whole_on_signals, wait_until

from ports import free_port

ORDEALS = {}


def ordeal(function):
    ORDEALS[function.__name__] = function
    return function


class StrangeFleet(ChaosFleet):
    """Redis keeps nothing unless it is told to."""

    def start_redis(self):
        self.socket.unlink(missing_ok=True)
        self.start("redis", "redis-server", "--port", 0, "--unixsocket", self.socket,
                   "--save", "", "--dir", self.directory, "--maxmemory-policy", "noeviction",
                   "--enable-debug-command", "yes")
        self.link = self.redis = Link(self.socket)
        self.link.surely("PING")


class Strange(Chaos):
    def __init__(self, directory, ordeal, seed=1, say=lambda text: None):
        super().__init__(directory, seed, 0, say)
        self.fleet = StrangeFleet(directory)
        self.ordeal = ordeal
        self.jobs.packs = [1, 2, 30]

    def calm(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.watch():
            self.produce()
            self.collect()
            if self.random.random() < 0.2:
                self.cancel_jobs()
            time.sleep(0.05)

    def storm(self):
        self.calm(2)
        self.say(f"{self.ordeal.__name__} after {len(self.ledger.jobs)} jobs")
        self.ordeal(self)
        self.calm(2)

    def be_told(self, word):
        """Nobody can write, and everybody says why."""
        end = time.monotonic() + 30
        silent = self.workers() + self.schedulers()
        while silent and self.watch() and time.monotonic() < end:
            self.calm(0.2)
            silent = [name for name in silent if word not in self.fleet.log(name)]
        self.broken += [f"{name} does not say {word}" for name in silent]

    def lose_since(self, known):
        """Whatever Redis knew of jobs beyond `known` (refs) is gone; ends may come again."""
        for job in self.ledger.jobs.values():
            job.maybe += 1
            if job.ref not in known:
                job.runs, job.maybe = len(job.ends), job.maybe + 1
            if job.cancel == "ended":
                job.cancel = "unknown"

    def give_up_prefixes(self):
        self.jobs.prefixes = {}  # puts them again before it names them


@ordeal
def rollback(run):
    run.fleet.link.surely("SAVE")
    known = set(run.ledger.jobs)
    prefixes = dict(run.jobs.prefixes)
    run.calm(2)
    run.fleet.kill("redis")
    run.fleet.start_redis()
    run.lose_since(known)
    run.jobs.prefixes = prefixes


@ordeal
def emptied(run):
    run.fleet.kill("redis")
    (run.fleet.directory / "dump.rdb").unlink(missing_ok=True)
    run.fleet.start_redis()
    run.lose_since(set())
    for job in run.ledger.jobs.values():
        job.maybe = max(job.maybe, 2)
    run.give_up_prefixes()


@ordeal
def full(run):
    used = next(int(row[12:]) for row in run.fleet.link("INFO", "memory").decode().split("\r\n")
                if row.startswith("used_memory:"))
    run.fleet.link("CONFIG", "SET", "maxmemory", used + 100000)
    refused = sum(job.state == "refused" for job in run.ledger.jobs.values())
    run.jobs.named = run.jobs.flat  # nobody knows which of two versions was refused
    run.calm(3)
    refused = sum(job.state == "refused" for job in run.ledger.jobs.values()) - refused
    if refused == 0:
        run.broken.append("memory was never full: the test is too tame")

    run.drain()
    left = run.ledger.waiting()
    if left:
        run.broken.append(f"{len(left)} jobs do not end while memory is full: {left[0].words}")
    for name in run.workers() + run.schedulers():
        run.kill(name)  # nor does it keep anybody from starting
    run.fleet.link("CONFIG", "SET", "maxmemory", 0)


@ordeal
def paused(run):
    for kind in ("ALL", "WRITE"):
        run.fleet.link("CLIENT", "PAUSE", 4000, kind)
        run.calm(5)


@ordeal
def spent(run):
    run.set_knobs({"spend_cap": True})
    run.calm(2)
    wait_until(lambda: run.fleet.http("/stats")["concurrency"] == 0, "the end of those under way")
    before = run.fleet.http("/stats")["refused"]["spend_cap"]
    run.calm(3)
    asked = run.fleet.http("/stats")["refused"]["spend_cap"] - before
    if before == 0:
        run.broken.append("nobody was refused for money: the test is too tame")
    run.say(f"{asked} requests while the account was out of money")
    if asked > 10:
        run.broken.append(f"{asked} requests went to an account that is out of money")
    run.set_knobs({"spend_cap": False})
    for name in run.schedulers():  # the account would rest for 15 minutes
        run.fleet.kill(name)
    for name in run.fleet.link("KEYS", "warmq:budget:*"):
        run.fleet.link("HSET", name, "parked_until", 0)
    run.fleet.start_scheduler("scheduler-1")


@ordeal
def replica(run):
    run.jobs.named = run.jobs.flat  # nobody knows which of two versions was refused
    run.fleet.link.surely("REPLICAOF", "127.0.0.1", free_port())
    run.be_told("READONLY")
    run.fleet.link.surely("REPLICAOF", "NO", "ONE")


@ordeal
def unsaved(run):
    run.jobs.named = run.jobs.flat
    dump = run.fleet.directory / "dump.rdb"
    dump.unlink(missing_ok=True)
    dump.mkdir()
    (dump / "in the way").touch()
    run.fleet.link.surely("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes", "save", "1 1")
    run.be_told("MISCONF")
    shutil.rmtree(dump)
    run.fleet.link.surely("CONFIG", "SET", "save", "")


@ordeal
def forbidden(run):
    """Taken from living callers, rights would hold for up to a second more."""
    code = run.fleet.link.surely("FUNCTION", "LIST", "LIBRARYNAME", "warmq", "WITHCODE")[0][-1]
    for command in ("fcall", "hset", "xread", "publish", "lpop", "time", "xdel", "rpush"):
        run.fleet.link.surely("MULTI")
        run.fleet.link.surely("FUNCTION", "LOAD", "REPLACE", code)  # asks for rights anew
        run.fleet.link.surely("ACL", "SETUSER", "default", f"-{command}")
        run.fleet.link.surely("EXEC")
        run.calm(0.5)
        run.fleet.link.surely("ACL", "SETUSER", "default", "+@all")
        run.calm(0.3)


@ordeal
def refused(run):
    for part in (replica, unsaved, forbidden):
        part(run)
        run.calm(1)


def hang_up(run):
    for kind in ("normal", "pubsub"):
        run.quietly("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


@ordeal
def hung_up(run):
    for _ in range(25):
        run.calm(0.1)
        hang_up(run)


@ordeal
def crowded(run):
    for _ in range(2):
        run.fleet.link.surely("CONFIG", "SET", "maxclients", 8)
        hang_up(run)
        seats = [socket.socket(socket.AF_UNIX) for _ in range(30)]
        for seat in seats:
            seat.connect(str(run.fleet.socket))
        run.calm(1.5)
        for seat in seats:
            seat.close()
        run.calm(0.5)
    run.fleet.link.surely("CONFIG", "SET", "maxclients", 10000)


@ordeal
def unloaded(run):
    for _ in range(25):
        run.calm(0.1)
        run.quietly("FUNCTION", "DELETE", "warmq")
        for kind in ("FUNCTION", "SCRIPT") * 5:
            run.quietly(kind, "KILL")


@ordeal
def harassed(run):
    for part in (hung_up, crowded, unloaded):
        part(run)
        run.calm(0.5)


IN_OTHERS = (replica, unsaved, forbidden, hung_up, crowded, unloaded)


def run_ordeal(name, directory, seed=1, say=lambda text: None):
    run = Strange(directory, ORDEALS[name], seed, say)
    return run, run.run()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(ORDEALS))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    end_whole_on_signals()
    failed = 0
    for name in args.names or ORDEALS:
        directory = tempfile.mkdtemp(prefix=f"strange-{name}-")
        run, broken = run_ordeal(name, directory, args.seed, print)
        failed += bool(broken)
        print(f"{name}: {len(run.ledger.jobs)} jobs, {run.ledger.summary()}: "
              f"{'BROKEN' if broken else 'fine'}", *broken[:10], sep="\n   ", flush=True)
        if broken or args.names:
            print(f"   kept in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
