#!/usr/bin/python3
"""cli_fuzz.py - the command line, given whatever a keyboard and a clipboard can hold.

    tests/e2e/cli_fuzz.py --runs 5000 --seed 3

Verbs and options are those that `warmq help` names; words are right ones, wrong ones, bytes.
No run may crash, hang, put control characters on the terminal, fail without a sentence, or
leave Redis in a state that an audit corrects."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import books
from chaos import Link
from fleet import WARMQ, Fleet, anthropic_body, end_whole_on_signals

BUSY = {"dev", "demo"}  # they start whole fleets
HANGS = {"--url", "--redis"}  # addresses come from a list of our own
PATIENCE_S = 60
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
BYTES = [b"", b"-", b"--", b"-1", b"0", b"1", b"9" * 40, b"1e9", b"0x10", b"1s", b"+2s", b"1y",
         b"high", b"tools", b"messages:99999999999", b"\xff\xfe", b"\x1b[31mred\x1b[0m",
         "ü€😀".encode(), b"a b\tc\nd", b"*", b"../../etc/passwd", b"@/nowhere", b"@/dev/null",
         b"%s%n%x", b"'; FLUSHALL", b"x" * 5000, b"{}", b"[]", b"null", b'{"model":',
         b"{\"a\":" * 500, b"1-1", b"1-1.1", b"18446744073709551615-18446744073709551615"]


def verbs():
    text = subprocess.run([WARMQ, "help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", text, re.M)
    return [name.split() for name in names if name.split()[0] not in BUSY]


def options(verb):
    text = subprocess.run([WARMQ, *verb, "--help"], capture_output=True, text=True,
                          check=True).stdout
    return [(name, bool(value)) for name, value in
            re.findall(r"^  (--[a-z-]+)(?: ([A-Z]+))?", text, re.M) if name not in HANGS]


class Fuzz:
    def __init__(self, directory, seed):
        self.random = random.Random(seed)
        self.fleet = Fleet(directory)
        self.known = [b"warmq", b"red", b"nobody"]
        self.broken = []
        self.seen = set()

    def prepare(self):
        """Jobs of all states, and names that are unkind."""
        self.fleet.start_scheduler()
        self.fleet.await_ruler()
        body = anthropic_body("Why?", "Be brief. " * 500)
        ids = self.fleet.enqueue([body] * 5, route="\x1b[31mroute\x1b[0m", ref="\x07\x9b")
        ids += self.fleet.enqueue([body], not_before="+1h")
        ids += self.fleet.enqueue(["{"])
        self.known += [id.encode() for id in ids] + [body.encode()]
        self.fleet.redis("XADD", "warmq:jobs", "*", "put_prefix", "red", "body",
                         json.dumps({"system": "Be brief. " * 500}))

    def word(self):
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice(self.known)
        if kind < 0.9:
            return self.random.choice(BYTES)
        return bytes(self.random.randrange(1, 256) for _ in range(self.random.randrange(12)))

    def command(self, verb, known_options):
        words = [name.encode() for name in verb]
        for _ in range(self.random.choice([0, 1, 1, 2, 5])):
            if known_options and self.random.random() < 0.6:
                name, has_value = self.random.choice(known_options)
                words.append(name.encode())
                if has_value and self.random.random() < 0.9:
                    words.append(self.word())
            else:
                words.append(self.word())
        if self.random.random() < 0.1:
            self.random.shuffle(words)
        return [word.replace(b"\0", b"") for word in words]

    def run_one(self, words):
        env = dict(os.environ, WARMQ_REDIS=f"unix://{self.fleet.socket}",
                   WARMQ_URL="http://127.0.0.1:9")
        try:
            done = subprocess.run([os.fsencode(WARMQ), *words], input=self.word(),
                                  capture_output=True, timeout=PATIENCE_S, env=env,
                                  cwd=self.fleet.directory)
        except subprocess.TimeoutExpired:
            # To wait is what these are for, if the job does not end.
            return None if b"wait" in b" ".join(words) or b"top" in words else "it hangs"
        self.seen.add(done.returncode)
        if done.returncode < 0:
            return f"died of signal {-done.returncode}: {done.stderr[-300:]}"
        if done.returncode > 0 and not (done.stderr or done.stdout).strip():
            return f"exit status {done.returncode} without a word"
        for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            found = CONTROL.search(text)
            if found:
                return f"control characters on {name}: {text[max(0, found.start() - 60):][:120]}"
        return None

    def check(self):
        link = Link(self.fleet.socket)
        found = books.corrections(link)
        if found:
            self.broken.append(f"the audit corrects {found}")
        count = link.surely("HGET", "warmq:meta", "function_errors")
        if count:
            self.broken.append(f"function_errors is {count}")
        process = self.fleet.processes["scheduler"]
        if process.poll() is not None:
            self.broken.append("the scheduler died:\n" + self.fleet.log("scheduler")[-2000:])

    def run(self, runs):
        with self.fleet:
            self.prepare()
            table = [(verb, options(verb)) for verb in verbs()]
            assert len(table) > 10
            for _ in range(runs):
                words = self.command(*self.random.choice(table))
                # A wait that is not bounded waits for the test's whole patience.
                if words[:1] in ([b"wait"], [b"enqueue"]):
                    words += [b"--timeout" if words[0] == b"wait" else b"--wait-timeout",
                              b"300ms"]
                problem = self.run_one(words)
                if problem:
                    self.broken.append(f"{[os.fsdecode(w)[:80] for w in words]}: {problem}")
            self.check()
        return self.broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    end_whole_on_signals()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cli-fuzz-") as directory:
        fuzz = Fuzz(directory, args.seed)
        broken = fuzz.run(args.runs)
    for text in broken[:20]:
        print(text)
    print(f"{args.runs} runs in {time.monotonic() - started:.0f} s, exit codes "
          f"{sorted(fuzz.seen)}, {len(broken)} went wrong")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
