"""prometheus.py - a real Prometheus over what the tests scrape, and what it has seen."""

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request

import pytest

from fleet import ROOT, wait_until
from ports import free_port

RULES = ROOT / "deploy" / "prometheus"
DOCUMENT = ROOT / "docs" / "METRICS.md"
ROW = re.compile(r"^\| `(warmq_\w+)`[ ²¹]* \| (\w+) \|([^|]*)\|", re.M)


def documented():
    """name -> (type, set of labels), as docs/METRICS.md has it."""
    rows = {}
    for name, kind, labels in ROW.findall(DOCUMENT.read_text(encoding="utf-8")):
        assert name not in rows, f"{name} is documented twice"
        rows[name] = kind, set(re.findall(r"`(\w+)`", labels))
    return rows


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        return answer.read().decode()


def parse(text):
    """name -> (type, set of labels, number of series) of one scrape."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found[name] = [kind, set(), 0]
        elif not line.startswith("#"):
            name = re.match(r"\w+", line)[0]
            if name not in found:
                name = re.sub(r"_(bucket|sum|count)$", "", name)
            found[name][1] |= set(re.findall(r'(\w+)="', line)) - {"le"}
            found[name][2] += 1
    return found


class Prometheus:
    def __init__(self, directory, targets):
        if not shutil.which("prometheus") or not shutil.which("promtool"):
            pytest.skip("prometheus is not installed; ./dev setup installs it")
        self.directory, self.targets = directory, targets
        self.port = free_port()

    def __enter__(self):
        config = self.directory / "prometheus.yml"
        config.write_text(f"""
global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 1s}}
rule_files: ["{RULES}/warmq.rules.yaml", "{RULES}/warmq.alerts.yaml"]
scrape_configs:
  - job_name: warmq
    static_configs: [{{targets: {json.dumps([f"127.0.0.1:{p}" for p in self.targets])}}}]
""")
        with open(self.directory / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", "--log.level=warn",
                 f"--storage.tsdb.path={self.directory / 'tsdb'}",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)
        wait_until(self.is_ready, "answer of Prometheus", 30)
        self.await_now("up", 30)  # it takes five seconds to look at its targets
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "prometheus.log").read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=120):
                return True
        except OSError:
            return False

    def query(self, expression):
        """label sets and values of an instant query."""
        words = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/api/v1/query?{words}", timeout=120) as answer:
            rows = json.load(answer)["data"]["result"]
        return [(row["metric"], float(row["value"][1])) for row in rows]

    def rules(self):
        """name -> what Prometheus says of it: ok, or what is wrong."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/rules",
                                    timeout=120) as answer:
            groups = json.load(answer)["data"]["groups"]
        return {rule["name"]: rule.get("lastError") or rule["health"]
                for group in groups for rule in group["rules"]}

    def number(self, expression):
        rows = self.query(expression)
        return rows[0][1] if rows else None

    def await_now(self, expression, seconds=20):
        wait_until(lambda: self.query(expression), f"scrape with {expression}", seconds)

    def await_seen(self, expression, seconds=20):
        """Until any scrape so far showed it."""
        self.await_now(f"count_over_time(({expression})[10m:250ms])", seconds)
