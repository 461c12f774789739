"""A whole WarmQ with pages: tests/e2e/fleet.py, and what its API says."""

import json
import re
import urllib.request

from fleet import Fleet, anthropic_body, long_text, wait_until

TOKEN = "open-sesame"
KNOBS = {"latency_ms": 50, "prefill_tokens_per_second": 20000, "job_ms": 300}
PRICES = """
models:
  - match: "*"
    class: sonnet
    price_input: 3
    price_output: 15
"""


class Stack(Fleet):
    """A fleet whose scheduler serves pages, with a token and prices; `places` are further
    upstreams, whose caches are their own (`main` is the first one)."""

    def __init__(self, directory, upstream_options="", knobs=None, scheduler="", token=TOKEN,
                 places=()):
        settings = scheduler
        if token:
            (directory / "token").write_text(token + "\n")
            settings += f'  token_file: "{directory / "token"}"\n'
        super().__init__(directory, upstream_options + PRICES, settings, places=places,
                         knobs={**KNOBS, **(knobs or {})})

    def write_config(self, dialect="anthropic"):
        super().write_config(dialect)
        text = self.config.read_text()
        self.config.write_text(text.replace('listen: "off"', 'listen: "127.0.0.1:0"'))

    def start_scheduler(self, name="scheduler"):
        log = self.directory / f"{name}.log"
        from_byte = log.stat().st_size if log.exists() else 0  # of one that ran before
        super().start_scheduler(name)
        port = wait_until(lambda: re.findall(r'event="serving pages".* port=(\d+)',
                                             self.log(name)[from_byte:]), "pages", 60)[-1]
        self.url = f"http://127.0.0.1:{port}/"

    def __exit__(self, kind, value, trace):
        super().__exit__(kind or KeyboardInterrupt, value, trace)  # nobody waits for long jobs

    def api(self, path):
        with urllib.request.urlopen(f"{self.url}api/v1/{path}", timeout=120) as answer:
            return json.load(answer)

    def metrics(self):
        with urllib.request.urlopen(f"{self.url}metrics", timeout=120) as answer:
            return answer.read().decode()

    def act(self, path, data=None):
        request = urllib.request.Request(
            f"{self.url}api/v1/{path}", json.dumps(data or {}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def send(self, count, route="triage", tokens=6000, reply=None, upstream="main",
             **more):
        """A burst of one route; its prefix is made of the route's name."""
        system = long_text(tokens, f"{route} ")
        return self.enqueue([anthropic_body(f"Question {n}", system, **more)
                             for n in range(count)], reply or f"to-{len(route)}", route=route,
                            upstream=upstream)

    def family(self, route="triage", seconds=60):
        """The family of a route, once it is there."""
        found = wait_until(lambda: self.api(f"families?route={route}")["families"],
                           f"family of {route}", seconds)
        return found[0]

    def await_blocked(self, kind, route="triage", seconds=60):
        return wait_until(lambda: [one for one in self.api(f"families?route={route}")["families"]
                                   if one.get("blocked_kind") == kind],
                          f"family that is blocked: {kind}", seconds)[0]
