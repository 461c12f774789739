"""Hundreds of named prefixes at once: each job gets its own, in the version of its time.

The scheduler remembers 64 names at a time and looks for 32 of them ahead; how many tokens a
job was charged for says which content it was sent with."""

import json

from fleet import Fleet, anthropic_body, long_text

NAMES = 150


def content(tokens):
    return json.dumps({"system": long_text(tokens, f"{tokens} ")})


def tokens_of(result):
    usage = result["body"]["usage"]
    return sum(usage[f"{kind}input_tokens"] for kind in (
        "", "cache_read_", "cache_creation_"))


class Names:
    """What each job has to be sent with: no two contents have as many tokens."""

    def __init__(self, fleet):
        self.fleet, self.version, self.count = fleet, {}, 0

    def next_version(self, name):
        self.count += 1
        self.version[name] = self.count
        return content(self.version[name])

    def put(self, name):
        return {"put_prefix": name, "body": json.loads(self.next_version(name))}

    def job(self, name):
        return {"upstream": "main", "prefix": name, "reply": "results",
                "ref": f"{name} {self.version[name]}",
                "body": json.loads(anthropic_body("four"))}

    def send(self, acts):
        """One entry: as much of it as fits goes into one batch of the scheduler."""
        self.fleet.redis("XADD", "warmq:jobs", "*", "json",
                         json.dumps([act(name) for act, name in acts]))


def test_each_job_gets_the_content_that_its_name_had(tmp_path):
    with Fleet(tmp_path, knobs={"job_ms": 5}) as fleet:
        names = Names(fleet)
        stored = [f"stored-{n}" for n in range(NAMES)]
        for name in stored:
            fleet.redis("SET", f"warmq:prefix:{name}", names.next_version(name))
        put = [f"put-{n}" for n in range(NAMES)]
        acts = [(names.put, name) for name in put]
        for _ in range(2):
            acts += [(names.job, name) for both in zip(put, stored) for name in both]
            acts += [(names.put, name) for name in put[::2]]
        acts += [(names.job, name) for name in put]
        names.send(acts)
        late = [f"late-{n}" for n in range(NAMES)]
        texts = {name: names.next_version(name) for name in late}
        names.send([(names.job, name) for name in late])
        fleet.start_all(2, 50)
        fleet.await_ruler()
        for name in late:
            fleet.redis("SET", f"warmq:prefix:{name}", texts[name])
        results = fleet.collect(6 * NAMES, 90)
        for result in results.values():
            assert result["state"] == "done", result
            assert tokens_of(result) == int(result["ref"].split()[1]) + 1, result
