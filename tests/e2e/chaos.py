#!/usr/bin/python3
"""chaos.py - real processes under random faults, and a ledger that must balance.

    tests/e2e/chaos.py --seed 7 --seconds 12      one run, with all that was done to it
    tests/e2e/chaos.py --seeds 100                many, one behind the other

A seed draws the jobs, the faults and their times; what the machine makes of them differs
from run to run, so a seed that failed is a hint and not a replay.  Redis, a provider, one
or two schedulers and some workers run while jobs of all kinds come in.  They are killed,
stopped, cut off and lied to.  Then everything is mended, and while no DRAIN_S pass in
which no job ends

    every job has ended exactly once, as its producer was told
    each answer is that of its own question, over its own prefix
    nothing is leased, in flight, or left behind; the counts balance, the audit is content
    nobody has crashed by himself
    a fresh burst is written once"""

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import books
import chaos_jobs
from fleet import (BUILD, Fleet, Redis, anthropic_body, end_whole_on_signals, long_text,
                   wait_until)

DRAIN_S = 240
LEASE = "2s"
RETRY = (ConnectionError, OSError, AssertionError, ValueError, RuntimeError)
CALM = {"latency_ms": 20, "prefill_tokens_per_second": 200000, "job_ms": 30,
        "job_spread_permille": 500}
# Knobs of the provider that one fault sets, in thousandths or as they are.
WEATHER = [
    {"fault_server_error_permille": 150}, {"fault_unavailable_permille": 150},
    {"fault_overloaded_permille": 60, "retry_after_ms": 0},
    {"fault_rate_limit_permille": 80, "retry_after_ms": 300},
    {"fault_refuse_permille": 200}, {"fault_cut_permille": 200},
    {"fault_cut_usage_permille": 200}, {"fault_lose_reply_permille": 100},
    {"fault_stream_error_permille": 150}, {"fault_drip_permille": 200},
    {"fault_garbage_permille": 100}, {"fault_hang_permille": 30},
    {"fault_stall_permille": 30}, {"caching": False}, {"usage_unknown_permille": 1000},
    {"usage_unknown_permille": 300, "usage_unknown_as": "absent"},
    {"visibility_lag_ms": 1500}, {"visibility_lag": "per_prefix", "visibility_lag_ms": 1500},
    {"visibility_lag": "uniform", "visibility_lag_ms": 900}, {"miss_permille": 300},
    {"evict_permille": 200}, {"ttl_permille": 5}, {"job_ms": 800}, {"latency_ms": 700},
    {"usage_shape": 2}, {"usage_shape": 3}, {"sse_split": True, "sse_padding": True},
    {"finish_aborted": True, "readable": "response_end"}, {"limit_headers": "none"},
    {"itpm": 5000000}, {"rpm": 6000}, {"shards": 4, "shard_rpm": 30},
]


class Link:
    """A connection that is made again when it breaks; a call's outcome may be unknown."""

    def __init__(self, path):
        self.path, self.redis = path, None

    def __call__(self, *words):
        try:
            if self.redis is None:
                self.redis = Redis(self.path)
            return self.redis(*words)
        except RuntimeError:
            raise  # Redis said so
        except RETRY:
            self.close()
            raise ConnectionError from None

    def close(self):
        if self.redis is not None:
            self.redis.close()
            self.redis = None

    def surely(self, *words, seconds=30):
        """Until it is answered; only for calls that may be repeated."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self(*words)
            except RETRY:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


class ChaosFleet(Fleet):
    """A fleet whose Redis keeps what it acknowledged and whose parts come back."""

    def start_redis(self):
        self.socket.unlink(missing_ok=True)
        self.start("redis", "redis-server", "--port", 0, "--unixsocket", self.socket,
                   "--save", "", "--appendonly", "yes", "--appendfsync", "no", "--dir",
                   self.directory, "--maxmemory-policy", "noeviction",
                   "--enable-debug-command", "yes")
        self.link = Link(self.socket)
        self.link.surely("PING")
        self.redis = self.link

    def start_provider(self):
        port_file = self.directory / "provider.port"
        port_file.unlink(missing_ok=True)
        port = getattr(self, "provider_port", 0)
        self.start("provider", BUILD / "provider" / "warmq-provider", "--port", port,
                   "--port-file", port_file)
        text = wait_until(lambda: port_file.exists() and port_file.read_text().strip(),
                          "port of warmq-provider", 10)
        self.provider_port = int(text)
        self.provider = f"http://127.0.0.1:{text}"

    def write_config(self, dialect="anthropic"):
        self.upstream_options = f"""    hold_max: 5s
  chat:
    url: "{self.provider}"
    dialect: openai-chat
    auth: none
    hold_max: 5s"""
        super().write_config(dialect)

    def start_worker(self, name, slots=20):
        state = self.directory / name
        state.mkdir(exist_ok=True)
        self.start(name, BUILD / "worker" / "warmq-worker", "--config", self.config,
                   "--slots", slots, "--label", name, "--state-dir", state, "--lease", LEASE)


class Chaos:
    def __init__(self, directory, seed, seconds, say=lambda text: None):
        self.random = random.Random(seed)
        self.fleet = ChaosFleet(directory)
        self.seconds, self.say = seconds, say
        self.ledger = chaos_jobs.Ledger()
        self.jobs = chaos_jobs.Jobs(self.random)
        self.broken = []
        self.stopped = set()  # SIGSTOPped
        self.log_ends = []
        self.done = collections.Counter()

    # ---- faults ----

    def workers(self):
        return [name for name in self.fleet.processes if name.startswith("worker")]

    def schedulers(self):
        return [name for name in self.fleet.processes if name.startswith("scheduler")]

    def restart(self, name):
        if name.startswith("worker"):
            self.fleet.start_worker(name)
        elif name.startswith("scheduler"):
            self.fleet.start_scheduler(name)
        elif name == "provider":
            self.fleet.start_provider()
            self.set_knobs(CALM)
        else:
            self.fleet.start_redis()

    def kill(self, name):
        self.stopped.discard(name)
        self.fleet.kill(name)
        self.restart(name)

    def freeze(self, name):
        if name in self.stopped:
            return
        self.fleet.processes[name].send_signal(signal.SIGSTOP)
        self.stopped.add(name)
        self.later(self.random.choice([0.2, 1, 3]), lambda: self.thaw(name))

    def thaw(self, name):
        if name in self.stopped:
            self.stopped.discard(name)
            self.fleet.processes[name].send_signal(signal.SIGCONT)

    def later(self, seconds, action):
        self.plan.append((time.monotonic() + seconds, action))

    def kill_worker(self):
        self.kill(self.random.choice(self.workers()))

    def kill_scheduler(self):
        self.kill(self.random.choice(self.schedulers()))

    def kill_provider(self):
        self.kill("provider")

    def kill_redis(self):
        self.kill("redis")

    def end_worker(self):
        name = self.random.choice(self.workers())
        self.thaw(name)
        self.fleet.end(name, signal.SIGTERM, seconds=2)
        self.restart(name)

    def end_scheduler(self):
        name = self.random.choice(self.schedulers())
        self.thaw(name)
        self.fleet.end(name, signal.SIGTERM, seconds=5)
        self.restart(name)

    def freeze_worker(self):
        self.freeze(self.random.choice(self.workers()))

    def freeze_scheduler(self):
        self.freeze(self.random.choice(self.schedulers()))

    def freeze_redis(self):
        self.fleet.processes["redis"].send_signal(signal.SIGSTOP)
        time.sleep(self.random.choice([0.1, 1, 2.5]))
        self.fleet.processes["redis"].send_signal(signal.SIGCONT)

    def freeze_provider(self):
        self.freeze("provider")

    def cut_connections(self):
        rows = self.fleet.link.surely("CLIENT", "LIST").decode().splitlines()
        ids = [row.split()[0][3:] for row in rows if " name=warmq" in row]
        for id in self.random.sample(ids, min(len(ids), self.random.choice([1, 2, 50]))):
            self.quietly("CLIENT", "KILL", "ID", id)

    def pause_clients(self):
        self.quietly("CLIENT", "PAUSE", self.random.choice([100, 1000, 2500]),
                     self.random.choice(["WRITE", "ALL"]))

    def sleep_redis(self):
        self.quietly("DEBUG", "SLEEP", self.random.choice(["0.1", "1", "2.5"]))

    def flush_functions(self):
        self.quietly("FUNCTION", "FLUSH")

    def kill_function(self):
        for _ in range(50):
            self.quietly(self.random.choice(["FUNCTION", "SCRIPT"]), "KILL")

    def switch_hold(self):
        self.quietly("FCALL", "warmq_hold", 1, "warmq:meta", 1,
                     self.random.choice(["on", "off"]), "chaos")

    def change_weather(self):
        knobs = dict(CALM)
        for weather in self.random.sample(WEATHER, self.random.choice([0, 1, 2])):
            knobs.update(weather)
        self.set_knobs(knobs)

    def cancel_jobs(self):
        for job in self.ledger.sample_open(self.random, self.random.choice([1, 5, 20])):
            answer = self.quietly("FCALL", "warmq_cancel", 1, "warmq:meta", 1, job.id)
            self.ledger.cancelled(job, answer[2].decode() if answer else None)

    def requeue_dead(self):
        for id in (self.quietly("ZRANGE", "warmq:dead", 0, 9) or []):
            answer = self.quietly("FCALL", "warmq_requeue", 1, "warmq:meta", 1, id)
            self.ledger.requeued(id.decode(), answer[2].decode() if answer else None)

    def plant_types(self):
        """A reply list of a type that it must not have."""
        name = f"warmq:reply:{self.random.choice(chaos_jobs.REPLIES)}"
        if self.quietly("SET", name, "somebody's", "NX") is not None:
            self.later(1, lambda: self.quietly("DEL", name))

    FAULTS = [
        ("kill_worker", 6), ("end_worker", 3), ("freeze_worker", 4), ("kill_scheduler", 4),
        ("end_scheduler", 2), ("freeze_scheduler", 3), ("kill_provider", 1),
        ("freeze_provider", 1), ("kill_redis", 1), ("freeze_redis", 1),
        ("cut_connections", 6), ("pause_clients", 2), ("sleep_redis", 1),
        ("flush_functions", 2), ("kill_function", 1), ("switch_hold", 3),
        ("change_weather", 14), ("cancel_jobs", 5), ("requeue_dead", 3), ("plant_types", 1)]

    def quietly(self, *words):
        """The answer, or None if nobody knows."""
        try:
            return self.fleet.link(*words)
        except RETRY:
            return None

    def set_knobs(self, knobs):
        calm = {name: (False if isinstance(value, bool) else 0)
                for weather in WEATHER for name, value in weather.items()
                if name.startswith("fault_")}
        calm.update({"caching": True, "usage_unknown_permille": 0, "visibility_lag": "fixed",
                     "usage_unknown_as": "null",
                     "visibility_lag_ms": 0, "miss_permille": 0, "evict_permille": 0,
                     "ttl_permille": 1000, "usage_shape": 1, "sse_split": False,
                     "sse_padding": False, "finish_aborted": False,
                     "readable": "response_start", "limit_headers": "full", "itpm": 0,
                     "rpm": 0, "retry_after_ms": 300, "shards": 1, "shard_rpm": 0})
        try:
            self.fleet.http("/knobs", {**calm, **CALM, **knobs})
        except OSError:
            pass  # it is down, or stopped

    # ---- one run ----

    def produce(self):
        for job in self.jobs.draw(self.random.choice([1, 3, 10, 40])):
            self.ledger.add(job)
            try:
                id = self.fleet.link("XADD", "warmq:jobs", "*", *job.words)
            except RuntimeError:
                self.ledger.refused(job)
            except RETRY:
                self.ledger.lost(job)
            else:
                self.ledger.added(job, id.decode())

    def collect(self):
        for name in chaos_jobs.REPLIES:
            while True:
                try:
                    popped = self.fleet.link("LPOP", f"warmq:reply:{name}", 50)
                except RuntimeError:
                    break  # the planted type
                except RETRY:
                    self.ledger.popped_in_vain()
                    break
                for text in popped or []:
                    self.ledger.take(text)
                if not popped:
                    break

    def collect_stored(self):
        cursor = "0"
        while True:
            cursor, names = self.fleet.link.surely("SCAN", cursor, "MATCH", "warmq:result:*",
                                                   "COUNT", 1000)
            for name in names:
                self.ledger.take(self.fleet.link.surely("GET", name), stored=True)
            if cursor == b"0":
                return

    def watch(self):
        for name, process in self.fleet.processes.items():
            if process.poll() is not None:
                self.broken.append(f"{name} ended by itself ({process.returncode}):\n" +
                                   self.fleet.log(name)[-2000:])
        return not self.broken

    def run_plan(self):
        due = [action for at, action in self.plan if at <= time.monotonic()]
        self.plan = [row for row in self.plan if row[0] > time.monotonic()]
        for action in due:
            action()

    def storm(self):
        end = time.monotonic() + self.seconds
        fault_at = time.monotonic() + 0.5
        names, weights = zip(*self.FAULTS)
        while time.monotonic() < end and self.watch():
            self.produce()
            self.collect()
            self.run_plan()
            if time.monotonic() >= fault_at:
                name = self.random.choices(names, weights)[0]
                self.say(f"{time.strftime('%H:%M:%S')} {name}")
                self.done[name] += 1
                getattr(self, name)()
                fault_at = time.monotonic() + self.random.choice([0.05, 0.3, 0.8])
            time.sleep(self.random.choice([0.01, 0.05, 0.2]))

    def mend(self):
        for _, action in self.plan:
            action()
        self.plan = []
        for name in list(self.stopped):
            self.thaw(name)
        self.set_knobs({})
        self.fleet.link.surely("FCALL", "warmq_hold", 1, "warmq:meta", 1, "on", "chaos")

    def drain(self):
        """Ends when nothing has ended for DRAIN_S: how long all takes is for the limits of an
        account to say, which may have been 100 requests a second in the storm."""
        left, end = None, 0
        while self.watch():
            self.collect()
            if self.random.random() < 0.1:
                self.collect_stored()
            waiting = len(self.ledger.waiting())
            if waiting == 0:
                break
            if left is None or waiting < left:
                left, end = waiting, time.monotonic() + DRAIN_S
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        self.collect_stored()

    # ---- the books ----

    def check_books(self):
        self.broken += books.check(self.fleet.link)
        for name in self.schedulers():
            self.broken += books.complaints(name, self.fleet.log(name))
        for name in self.schedulers() + self.workers():
            self.broken += books.nameless(name, self.fleet.log(name))

    def check_burst(self):
        """It all works still: a prefix nobody has seen is written once."""
        system = long_text(4000, f"burst {self.random.random()} ")
        before = self.fleet.http("/stats")
        for i in range(40):
            job = chaos_jobs.Job(f"burst {i}", None, ["upstream", "main", "reply", "burst",
                                 "ref", f"burst {i}", "body",
                                 anthropic_body(f"Burst question {i}?", system)])
            self.ledger.add(job)
            self.ledger.added(job, self.fleet.link("XADD", "warmq:jobs", "*",
                                                   *job.words).decode())

        def all_there():
            self.collect()
            return not self.ledger.waiting()

        try:
            wait_until(all_there, "the fresh burst", 30)
        except AssertionError as error:
            self.broken.append(str(error))
            return
        after = self.fleet.http("/stats")
        writes = after["writes"] - before["writes"]
        if writes != 1:
            self.broken.append(f"a fresh burst was written {writes} times")

    def run(self):
        self.plan = []
        with self.fleet:
            try:
                self.set_knobs({})
                for name in ["scheduler-1"] + ["scheduler-2"] * self.random.randint(0, 1):
                    self.fleet.start_scheduler(name)
                for i in range(self.random.randint(1, 3)):
                    self.fleet.start_worker(f"worker-{i}")
                self.fleet.await_ruler()
                self.storm()
                self.say(f"mending after {len(self.ledger.jobs)} jobs")
                self.mend()
                self.drain()
                self.broken += self.ledger.faults()
                if not self.broken:
                    self.check_books()
                if not self.broken:
                    self.check_burst()
                self.watch()
            finally:
                for name in list(self.fleet.processes):
                    self.fleet.kill(name)
        return self.broken


def run_seed(seed, seconds, keep, verbose):
    directory = tempfile.mkdtemp(prefix="chaos-")
    started = time.monotonic()
    chaos = Chaos(directory, seed, seconds, print if verbose else lambda text: None)
    broken = chaos.run()
    took = time.monotonic() - started
    print(f"seed {seed}: {len(chaos.ledger.jobs)} jobs, {sum(chaos.done.values())} faults, "
          f"{chaos.ledger.summary()}, {took:.0f} s: {'BROKEN' if broken else 'fine'}",
          flush=True)
    for text in broken[:20]:
        print(f"   {text}", flush=True)
    if broken and keep:
        print(f"   kept in {directory}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return not broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="one run with this seed")
    parser.add_argument("--seeds", type=int, default=1, help="so many runs, from --first on")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12, help="of faults in one run")
    parser.add_argument("--keep", action="store_true", help="keep logs of runs that failed")
    args = parser.parse_args()
    end_whole_on_signals()
    seeds = [args.seed] if args.seed is not None else range(args.first,
                                                            args.first + args.seeds)
    fine = sum(run_seed(seed, args.seconds, args.keep, args.seed is not None)
               for seed in seeds)
    print(f"cases: {fine} passed, {len(seeds) - fine} failed")
    return 0 if fine == len(seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
