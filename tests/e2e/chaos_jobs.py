"""chaos_jobs.py - the jobs of chaos.py, and the ledger that says what became of each.

A job is known by its `ref`, since the answer of its XADD may be lost.  What may be true of
a job in the end depends on what is known: one that was added ends exactly once; one whose
XADD was lost ends once or never; one that a cancel has ended is `cancelled`."""

import collections
import json
import re

from fleet import anthropic_body, long_text

REPLIES = ["red", "green", "burst"]
FAULTY = {"malformed", "unsupported", "payload_missing", "lost", "prefix_missing"}
ECHO = re.compile(r"echo ([0-9a-f]{16})")


def digest(text):
    """FNV-1a, 64 bits: what the provider's answer says about its question."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def tokens(text):
    return -(-len(text.encode()) // 4)


class Job:
    def __init__(self, ref, question, words, tokens=None, bad=None):
        self.ref, self.words = ref, words
        self.question, self.tokens = question, tokens
        self.bad = bad  # the reason for which it has to end dead
        self.id = None
        self.state = "open"  # open, lost (nobody knows whether it was added), refused
        self.cancel = None  # None, "ended", "gone", "unknown"
        self.expires = "deadline" in words
        self.runs = 1  # how many ends it must have
        self.maybe = 0  # and how many more it may have
        self.ends = []


class Pack:
    """Many jobs in one entry."""

    def __init__(self, jobs, words):
        self.jobs, self.words = jobs, words


class Jobs:
    """Draws jobs."""

    def __init__(self, random):
        self.random = random
        self.count = 0
        self.packs = [1, 2, 30, 700]  # how many jobs an entry may hold
        self.prefixes = {}  # name -> tokens of its newest version
        # Families differ in size, so that the usage of an answer tells which it was.
        self.systems = [long_text(1100 + 137 * i, f"rule {i} ") for i in range(5)]

    def draw(self, count):
        kinds = [self.flat] * 12 + [self.named] * 2 + [self.pack, self.bad, self.chat]
        return [self.random.choice(kinds)() for _ in range(count)]

    def next_ref(self):
        self.count += 1
        return f"r{self.count}"

    def question(self, ref):
        return f"Question {ref} {self.random.choice(['', 'why? ' * 40, 'ü€'])}"

    def options(self):
        words = []
        for chance, name, values in [
                (0.8, "reply", REPLIES[:2]), (0.2, "priority", ["high", "normal", "low"]),
                (0.1, "not_before", ["+200ms", "+1s", "+2s"]),
                (0.1, "deadline", ["+300ms", "+1s", "+5s"]),
                (0.2, "hold_max", ["0", "1s", "3s"]), (1, "timeout", ["2s", "5s"]),
                (0.3, "attempts", [1, 2, 5]), (0.05, "markers", ["never"]),
                (0.1, "conversation", ["c1", "c2"]), (0.1, "route", ["a", "b"])]:
            if self.random.random() < chance:
                words += [name, self.random.choice(values)]
        return words

    def flat(self):
        ref = self.next_ref()
        question = self.question(ref)
        system = self.random.choice(self.systems + ["", long_text(40, ref)])
        more = {"stream": True} if self.random.random() < 0.3 else {}
        words = ["upstream", "main", "ref", ref, *self.options(), "body",
                 anthropic_body(question, system, **more)]
        if system and self.random.random() < 0.2:
            words += ["shared", "system"]
        return Job(ref, question, words, tokens(question) + tokens(system))

    def chat(self):
        ref = self.next_ref()
        question = self.question(ref)
        body = {"model": "gpt-5.5", "max_completion_tokens": 64,
                "messages": [{"role": "system", "content": self.systems[0]},
                             {"role": "user", "content": question}]}
        return Job(ref, question, ["upstream", "chat", "ref", ref, *self.options(), "body",
                                   json.dumps(body)])

    def named(self):
        """Through the inbox: jobs behind a put_prefix get the new version."""
        name = self.random.choice(["p1", "p2"])
        if name not in self.prefixes or self.random.random() < 0.2:
            size = self.random.randrange(1100, 3000)
            self.prefixes[name] = size
            system = long_text(size, f"{name} {size} ")
            return Job(None, None, ["put_prefix", name, "body", json.dumps({"system": system})],
                       size)
        ref = self.next_ref()
        question = self.question(ref)
        job = Job(ref, question, ["upstream", "main", "prefix", name, "ref", ref,
                                  *self.options(), "body", anthropic_body(question)],
                  self.prefixes[name] + tokens(question))
        return job

    def pack(self):
        jobs, rows = [], []
        system = self.random.choice(self.systems + [""])
        for _ in range(self.random.choice(self.packs)):
            ref = self.next_ref()
            question = self.question(ref)
            jobs.append(Job(ref, question, [], tokens(question) + tokens(system)))
            row = {"ref": ref, "body": json.loads(anthropic_body(question, system))}
            if self.random.random() < 0.2:
                row["not_before"] = "+500ms"
            rows.append(row)
        return Pack(jobs, ["upstream", "main", "reply", "red", "timeout", "5s", "json",
                           json.dumps(rows)])

    def bad(self):
        ref = self.next_ref()
        body = anthropic_body("never")
        words, reason = self.random.choice([
            (["upstream", "nobody", "body", body], "malformed"),
            (["upstream", "main", "body", "{"], "malformed"),
            (["upstream", "main", "body", body, "hold-max", "1"], "malformed"),
            (["upstream", "main", "body", body, "unique", "x"], "unsupported"),
            (["upstream", "main", "body", body, "deadline", "+9y"], "malformed")])
        return Job(ref, None, ["ref", ref, "reply", "green", *words], bad=reason)


class Ledger:
    def __init__(self):
        self.jobs = {}  # by ref
        self.ids = {}
        self.strange = []
        self.vain = 0  # pops whose answer was lost: so many results may be missing

    # ---- what producers know ----

    def parts(self, job):
        return job.jobs if isinstance(job, Pack) else [job] if job.ref else []

    def add(self, job):
        for part in self.parts(job):
            self.jobs[part.ref] = part

    def added(self, job, id):
        parts = self.parts(job)
        for n, part in enumerate(parts):
            part.id = f"{id}.{n + 1}" if isinstance(job, Pack) else id
            self.ids[part.id] = part

    def refused(self, job):
        for part in self.parts(job):
            part.state, part.runs = "refused", 0

    def lost(self, job):
        for part in self.parts(job):
            part.state, part.runs, part.maybe = "lost", 0, 1
        if not isinstance(job, Pack) and job.ref is None:
            self.any_prefix = True

    def sample_open(self, random, count):
        open_jobs = [job for job in self.jobs.values() if job.id and not job.ends]
        return random.sample(open_jobs, min(count, len(open_jobs)))

    def cancelled(self, job, answer):
        if answer == "ended" or job.cancel is None or (job.cancel == "gone" and not answer):
            job.cancel = answer or "unknown"

    def requeued(self, id, answer):
        job = self.ids.get(id)
        if not job:
            return
        if answer == "queued":
            job.runs += 1
            job.cancel = None if job.cancel != "unknown" else job.cancel
        elif answer is None:
            job.maybe += 1

    # ---- what consumers get ----

    def popped_in_vain(self):
        self.vain += 50

    def take(self, text, stored=False):
        try:
            result = json.loads(text)
        except ValueError:
            self.strange.append(f"a result that is not JSON: {text[:200]}")
            return
        job = self.jobs.get(result.get("ref")) or self.ids.get(result["id"])
        if not job:
            if result.get("ref") is not None or result["id"] in self.ids:
                self.strange.append(f"a result of nobody's job: {text[:200]}")
            return
        if job.id is None:
            job.id = result["id"]
            self.ids[job.id] = job
        if job.id != result["id"]:
            self.strange.append(f"{job.ref} has the ids {job.id} and {result['id']}")
        key = (stored, text)
        if stored and key in [end[0] for end in job.ends]:
            return  # it is read again and again
        job.ends.append((key, result))

    def waiting(self):
        return [job for job in self.jobs.values() if len(job.ends) < job.runs]

    # ---- the verdict ----

    def summary(self):
        states = collections.Counter(job.ends[-1][1]["state"] if job.ends else job.state
                                     for job in self.jobs.values())
        return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))

    def answer_text(self, result):
        body = result.get("body")
        if result.get("format") != "sse":
            return json.dumps(body)
        text = ""
        for line in body.splitlines():
            if line.startswith("data: {"):
                delta = json.loads(line[6:]).get("delta", {})
                text += delta.get("text", "") if isinstance(delta, dict) else ""
        return text

    def check_done(self, job, result):
        if job.question is None:
            return f"{job.ref} is done and should not be" if job.bad else None
        echo = ECHO.search(self.answer_text(result))
        if not echo or echo.group(1) != digest(job.question):
            return f"{job.ref} {job.id} got another job's answer: {str(result)[:300]}"
        usage = result["usage"]
        parts = [usage["read"], usage["written"], usage["uncached"]]
        if job.tokens and None not in parts and sum(parts) != job.tokens:
            return (f"{job.ref} {job.id} ran over {sum(parts)} tokens instead of "
                    f"{job.tokens}: {usage}")
        return None

    def check_end(self, job, result):
        state = result["state"]
        if state == "done":
            return self.check_done(job, result)
        if state == "cancelled" and job.cancel in ("ended", "unknown"):
            return None
        if state == "expired" and job.expires:
            return None
        if state == "dead":
            if job.bad:
                return None if result["reason"] == job.bad else f"{job.ref}: {result}"
            if result["reason"] not in FAULTY:
                return None
        return f"{job.ref} {job.id} ended as {str(result)[:400]}"

    def faults(self):
        wrong = list(self.strange)
        missing = []
        for job in self.jobs.values():
            count = len(job.ends)
            if count < job.runs:
                missing.append(job)
            if count > job.runs + job.maybe:
                wrong.append(f"{job.ref} {job.id} ended {count} times instead of {job.runs}: "
                             f"{[str(end[1])[:200] for end in job.ends]}")
            if job.cancel == "ended" and "cancelled" not in [
                    result["state"] for _, result in job.ends] and count >= job.runs:
                wrong.append(f"{job.ref} {job.id} was cancelled: {job.ends}")
            wrong += filter(None, (self.check_end(job, result) for _, result in job.ends))
        if len(missing) > self.vain:
            wrong.append(f"{len(missing)} jobs have no end: " + ", ".join(
                f"{job.ref} {job.id}" for job in missing[:10]))
        return wrong
