#!/usr/bin/env python3
"""booted.py - what `meson install` leaves, run by a real systemd in a container.

    sudo tests/deploy/booted.py                 three minutes, most of them debootstrap
    sudo tests/deploy/booted.py --root DIR      in a tree that an earlier run has left
    sudo tests/deploy/booted.py --keep          leaves the tree, and says where

A Debian 12 with nothing but Redis and the libraries that OPERATIONS.md names; the four
programs and both units as they are installed, the sample configuration with a simulated
provider in place of the real one.  Then what happens to a machine: a burst, kill -9 of
both units, a restart of Redis, an orderly restart, a wrong configuration, a missing key.
Needs root, debootstrap and systemd-container, and the network of Debian's packages.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
PACKAGES = ("systemd", "systemd-sysv", "dbus", "redis-server", "curl", "ca-certificates",
            "libcurl4", "libhiredis0.14", "libjansson4", "libmicrohttpd12", "libmsgpackc2",
            "libuv1", "libyaml-0-2")
PROVIDER = """[Service]
ExecStart=/usr/bin/warmq-provider --port 8000
[Install]
WantedBy=multi-user.target
"""
UNITS = ("warmq-scheduler.service", "warmq-worker.service")
JOBS = 100


class Failure(Exception):
    """What was seen in place of what should be."""


def run(*words, **more):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, **more)
    if done.returncode:
        raise Failure(f"{' '.join(words)} ended with {done.returncode}:\n"
                      f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def say(text):
    print(text, flush=True)


# ---- the tree --------------------------------------------------------------------------


def install(tree):
    """The programs where a package would put them."""
    build = os.path.join(ROOT, "build-installed")
    if not os.path.exists(os.path.join(build, "build.ninja")):
        run("meson", "setup", build, ROOT, "--prefix=/usr", "--sysconfdir=/etc",
            "--buildtype=release", "-Dtests=disabled")
    run("meson", "install", "-C", build, env={**os.environ, "DESTDIR": tree})


def write(tree, path, text, mode=0o644):
    path = os.path.join(tree, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def configure(tree):
    with open(os.path.join(tree, "usr/share/doc/warmq/examples/warmq.yaml"),
              encoding="utf-8") as file:
        sample = file.read()
    ours = sample.replace("url: https://api.anthropic.com",
                          "url: http://127.0.0.1:8000\n    markers: auto")
    if ours == sample:
        raise Failure("the sample configuration names no upstream at api.anthropic.com")
    write(tree, "etc/warmq/warmq.yaml", ours)
    write(tree, "etc/warmq/worker.env", "ANTHROPIC_API_KEY=simulated\n", 0o600)
    write(tree, "etc/systemd/system/provider.service", PROVIDER)
    write(tree, "etc/hosts", "127.0.0.1 localhost\n")
    write(tree, "etc/redis/redis.conf", "bind 127.0.0.1\ndir /var/lib/redis\n"
          "appendonly yes\nmaxmemory-policy noeviction\nsupervised systemd\n")
    for unit in ("redis-server.service", "provider.service", *UNITS):
        run("chroot", tree, "systemctl", "enable", unit)


# ---- the machine -----------------------------------------------------------------------


class Machine:
    """The tree, booted; commands run in it."""

    def __init__(self, tree):
        self.tree = tree
        self.log = open(os.path.join(tree, "var/log/console.log"), "wb")
        self.boot = subprocess.Popen(
            ["systemd-nspawn", "-D", tree, "--boot", "--machine=warmq", "--register=no",
             "--keep-unit", "--private-network"], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=subprocess.STDOUT)

    def init(self):
        found = subprocess.run(["pgrep", "-P", str(self.boot.pid)], capture_output=True,
                               text=True, check=False).stdout.split()
        return found[0] if found else None

    def run(self, *words, code=0):
        done = subprocess.run(
            ["nsenter", "-t", self.init() or "0", "-m", "-u", "-i", "-n", "-p", "-r", "-w",
             "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if code is not None and done.returncode != code:
            raise Failure(f"{' '.join(words)[:200]} ended with {done.returncode}:\n"
                          f"{done.stdout[-1500:]}{done.stderr[-1500:]}")
        return done.stdout.strip()

    def wait(self, what, claim, seconds=90):
        end = time.monotonic() + seconds
        while not claim():
            if time.monotonic() > end:
                raise Failure(f"waited {seconds} s for {what}\n" + self.run(
                    "journalctl", "--no-pager", "-o", "cat", "-n", "40", code=None))
            time.sleep(0.2)
        say(f"ok    {what}")

    def is_active(self, unit):
        return self.run("systemctl", "is-active", unit, code=None) == "active"

    def replies(self):
        return int(self.run("redis-cli", "LLEN", "warmq:reply:me", code=None) or 0)

    def close(self):
        pid = self.init()
        if pid:
            subprocess.run(["kill", "-s", "RTMIN+4", pid], check=False)  # power off
        try:
            self.boot.wait(30)
        except subprocess.TimeoutExpired:
            self.boot.kill()
            self.boot.wait()
        self.log.close()


def enqueue(machine, first, count):
    system = "Parcels may be returned. " * 6000
    lines = [json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system,
                         "messages": [{"role": "user", "content": f"q{n}"}]})
             for n in range(first, first + count)]
    write(machine.tree, "srv/asks.jsonl", "\n".join(lines) + "\n")
    machine.run("warmq", "enqueue", "--upstream", "anthropic", "--reply", "me", "--file",
                "/srv/asks.jsonl")


def stays_down(machine, unit, status):
    """It ended with the status that says "do not start me again"."""
    shown = machine.run("systemctl", "show", unit, "-p", "ExecMainStatus,ActiveState")
    return f"ExecMainStatus={status}" in shown and "ActiveState=failed" in shown


def live(machine):
    machine.wait("the machine is up, and `warmq doctor` finds nothing bad",
                 lambda: machine.init() and "0 bad" in machine.run("warmq", "doctor",
                                                                   code=None))
    machine.run("curl", "-s", "127.0.0.1:8000/knobs", "-d", '{"job_ms": 2000}')
    enqueue(machine, 0, JOBS)
    machine.wait(f"{JOBS} jobs came back", lambda: machine.replies() == JOBS)
    stats = json.loads(machine.run("curl", "-s", "127.0.0.1:8000/stats"))
    if (stats["writes"], stats["duplicate_writes"]) != (1, 0):
        raise Failure(f"{stats['writes']} writes, {stats['duplicate_writes']} of them again")
    say("ok    one request wrote their prefix")

    enqueue(machine, JOBS, JOBS)
    machine.wait("some of the next run",
                 lambda: json.loads(machine.run("curl", "-s", "127.0.0.1:8000/stats"))
                 ["concurrency"] > 0)
    machine.run("systemctl", "kill", "-s", "KILL", *UNITS)
    machine.run("systemctl", "restart", "redis-server")
    machine.wait("kill -9 of both units and a restart of Redis: all came back, each once",
                 lambda: machine.replies() == 2 * JOBS)

    enqueue(machine, 2 * JOBS, 20)
    machine.run("systemctl", "restart", *UNITS)
    machine.wait("a restart in order: all came back",
                 lambda: machine.replies() == 2 * JOBS + 20)
    for unit in UNITS:
        machine.wait(f"{unit} is active", lambda unit=unit: machine.is_active(unit))

    machine.run("mv", "/etc/warmq/worker.env", "/etc/warmq/worker.env.away")
    machine.run("systemctl", "restart", "warmq-worker", code=None)
    machine.wait("a worker without its key stays down, with status 3",
                 lambda: stays_down(machine, "warmq-worker", 3))
    machine.run("mv", "/etc/warmq/worker.env.away", "/etc/warmq/worker.env")
    machine.run("sh", "-c", "echo 'nonsense: 1' >> /etc/warmq/warmq.yaml")
    machine.run("systemctl", "restart", "warmq-scheduler", code=None)
    machine.wait("a scheduler with a wrong configuration stays down, with status 2",
                 lambda: stays_down(machine, "warmq-scheduler", 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", help="a tree that an earlier run has left")
    parser.add_argument("--keep", action="store_true", help="leave the tree")
    options = parser.parse_args()
    for tool in ("debootstrap", "systemd-nspawn", "nsenter"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt install debootstrap systemd-container")
    if os.geteuid() != 0:
        sys.exit("only root may boot a container: sudo tests/deploy/booted.py")
    tree = options.root or tempfile.mkdtemp(prefix="warmq-booted-")
    machine = None
    try:
        if not os.path.exists(os.path.join(tree, "usr/bin/redis-server")):
            say(f"Debian {SUITE} goes into {tree}: some minutes")
            run("debootstrap", "--variant=minbase", "--include=" + ",".join(PACKAGES),
                SUITE, tree, MIRROR)
        install(tree)
        configure(tree)
        machine = Machine(tree)
        live(machine)
    except Failure as failure:
        say(f"FAIL  {failure}")
        return 1
    finally:
        if machine:
            machine.close()
        if options.keep or options.root:
            say(f"the tree is left in {tree}")
        else:
            shutil.rmtree(tree, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
