"""worker.py - what a worker costs, in CPU of its own process: ./dev bench worker

    no-op jobs (null executor)         jobs/s, and CPU of worker and Redis per job
    streamed requests of 1 and 120 KB  the same, against the simulated provider

Redis and the provider have one core, the worker the other, if there are two.  Each figure
is the median of --runs; each run checks that every job was answered exactly once.  The
scheduler is played by the bench: no gate, no budget, so that nothing waits.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", part) for part in ("integration", "lib")]

import redis  # noqa: E402

from cores import on_core  # noqa: E402
from redis_process import redis_command, wait_up  # noqa: E402
from store import Family, Store, library, node, wait_until  # noqa: E402

BUILD = os.environ.get("WARMQ_BUILD", os.path.join(ROOT, "build"))
TICK = os.sysconf("SC_CLK_TCK")
FAMILIES = 100
TOOLS = 'px1 A T c - - - 5m 4 0 {}\n{"model":"claude-sonnet-4-5"'
OWN, TAIL = ',"messages":[{"role":"user","content":"Why?"}]', ',"max_tokens":16}'


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Place:
    """Redis with the library, and whatever else a bench starts; all end with it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="warmq-b-")
        self.processes = []
        path = os.path.join(self.folder, "r.sock")
        self.redis_url = f"unix://{path}"
        self.redis_pid = self.start(0, redis_command(path)).pid
        self.client = redis.Redis(unix_socket_path=path, decode_responses=True)
        wait_up(self.client)
        self.client.execute_command("FUNCTION", "LOAD", "REPLACE", library())
        self.store = Store(self.client)
        self.store.rule()

    def start(self, core, command, **options):
        self.processes.append(subprocess.Popen(on_core(core, command),
                                               stdout=subprocess.DEVNULL, **options))
        return self.processes[-1]

    def provider(self):
        file = os.path.join(self.folder, "port")
        self.start(0, [os.path.join(BUILD, "provider", "warmq-provider"), "--port-file", file,
                       "--latency-ms", "50", "--decode-tokens-per-second", "0",
                       "--prefill-tokens-per-second", "0", "--deltas", "4",
                       "--output-tokens", "16"])
        wait_until(lambda: os.path.exists(file) and open(file, encoding="ascii").read(),
                   "the provider's port")
        with open(file, encoding="ascii") as port:
            return f"http://127.0.0.1:{port.read().strip()}"

    def worker(self, slots, url, executor):
        config = os.path.join(self.folder, "warmq.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"redis: {self.redis_url}\nstate_dir: {self.folder}/state\n"
                       f"upstreams:\n  prov:\n    url: {url}\n    auth: none\n"
                       f"    markers: auto\nworker:\n  pool: main\n  slots: {slots}\n")
        worker = self.start(1, [os.path.join(BUILD, "worker", "warmq-worker"), "--config",
                                config, "--executor", executor, "--log-level", "error"])
        wait_until(lambda: self.client.zcard("warmq:workers"), "the worker")
        return worker.pid

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def fill_plain(place, count):
    families = [Family(i + 1, budget="prov:default", px=[]) for i in range(FAMILIES)]
    for family in families:
        pipeline = place.client.pipeline(transaction=False)
        for _ in range(count // FAMILIES):
            pipeline.xadd("warmq:jobs", {"upstream": "prov", "reply": "box",
                                         "body": '{"a":"%s"}' % ("x" * 192)})
        ids = pipeline.execute()
        for at in range(0, len(ids), 400):
            part = ids[at:at + 400]
            answer = place.store.admit(part[-1], families=[family] if at == 0 else [],
                                       runs=[(family, "n", part)])
            assert answer[0] == "OK", answer
    return families


def fill_split(place, count, size):
    family = Family(7, budget="prov:default", px=[node(6), node(7)])
    text = "word " * (size // 5)
    system = f'px1 A S c - 10 {12 + len(text)} 5m 5000 0 {{}}\n,"system":"{text}"'
    slim = (f"slim1 own\nupstream prov\nreply box\n\nown1 A --- 0 - ------ 0 {len(OWN)}\n"
            f"{OWN}{TAIL}")
    for at in range(0, count, 200):
        ids = [place.store.add(upstream="prov", body="x")
               for _ in range(min(200, count - at))]
        new = at == 0
        answer = place.store.admit(
            ids[-1], families=[family] if new else [], slims=[(id, slim) for id in ids],
            segments=[(node(6), TOOLS), (node(7), system)] if new else [],
            runs=[(family, "n", [id + "~" for id in ids])], gone=ids)
        assert answer[0] == "OK", answer
    place.store.grant(family.lane, marks=2)
    return [family]


def measure(place, families, worker, count):
    before = cpu_seconds(worker), cpu_seconds(place.redis_pid)
    begun = time.monotonic()
    for family in families:
        place.store.open(family, window=10000)
    wait_until(lambda: place.client.llen("warmq:reply:box") >= count, "all results", 300)
    took = time.monotonic() - begun
    after = cpu_seconds(worker), cpu_seconds(place.redis_pid)
    results = [json.loads(text) for text in place.client.lrange("warmq:reply:box", 0, -1)]
    assert len(results) == count and len({result["id"] for result in results}) == count
    assert all(result["state"] == "done" for result in results)
    return {"jobs_per_s": count / took,
            "worker_us": (after[0] - before[0]) * 1e6 / count,
            "redis_us": (after[1] - before[1]) * 1e6 / count}


def run(kind, count, slots, size):
    place = Place()
    try:
        if kind == "null":
            families, url = fill_plain(place, count), "http://127.0.0.1:1"
        else:
            families, url = fill_split(place, count, size), place.provider()
        worker = place.worker(slots, url, kind)
        return measure(place, families, worker, count)
    finally:
        place.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=40000, help="no-op jobs of one run")
    parser.add_argument("--requests", type=int, default=4000, help="requests of one run")
    parser.add_argument("--slots", type=int, default=200)
    args = parser.parse_args()
    print(f"{args.slots} slots, median of {args.runs} runs, each job answered once")
    print(f"{'':34}{'jobs/s':>10}{'worker us':>12}{'redis us':>12}")
    for name, kind, count, size in (
            ("no-op job", "null", args.jobs, 0),
            ("streamed request, 1 KB", "http", args.requests, 1000),
            ("streamed request, 120 KB", "http", args.requests, 120000)):
        rows = [run(kind, count, args.slots, size) for _ in range(args.runs)]
        middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        print(f"{name:34}{middle['jobs_per_s']:10.0f}{middle['worker_us']:12.1f}"
              f"{middle['redis_us']:12.1f}", flush=True)


if __name__ == "__main__":
    main()
