"""Debian's Chromium, led from Python through driver.mjs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from waiting import PATIENCE  # noqa: E402

CHROMIUM = os.environ.get("WARMQ_CHROMIUM", "/usr/bin/chromium")


def missing():
    """What the browser tests lack on this machine, or None."""
    if not shutil.which("node"):
        return "node is not installed"
    if not os.path.exists(CHROMIUM):
        return f"{CHROMIUM} is not there: ./dev setup installs Debian's chromium"
    if not (HERE / "node_modules" / "playwright-core").is_dir():
        return "playwright-core is not there: ./dev setup installs it from npm"
    return None


class Browser:
    """One Chromium; `open` begins a fresh page, the other methods speak to it."""

    def __init__(self):
        self.process = subprocess.Popen(["node", str(HERE / "driver.mjs")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=HERE)
        assert self.read() == "ready"

    def read(self):
        line = self.process.stdout.readline()
        assert line, "the browser has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer["ok"]

    def do(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def open(self, url, **more):
        self.do("open", url=url, **more)

    def eval(self, js):
        return self.do("eval", js=js)

    def wait(self, js, seconds=60):
        self.do("wait", js=js, ms=int(seconds * PATIENCE * 1000))

    def text(self, selector="main"):
        return self.eval(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait_text(self, text, selector="main", seconds=60):
        quoted = json.dumps(text.lower())
        try:
            self.wait(f"(document.querySelector({json.dumps(selector)})?.innerText ?? '')"
                      f".toLowerCase().includes({quoted})", seconds)
        except AssertionError as error:
            raise AssertionError(f"{text!r} is not in {self.text(selector)!r}") from error
