"""README.md, followed by the letter: every command, the scripts in other languages, the tables.

Ports are replaced by free ones, and the id in the text by the one that was answered; all else is
run as it is printed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ports import free_port

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("WARMQ_BUILD", ROOT / "build"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
ID = "1764450000000-0"

# A client with the three calls of the script, for a machine without npm's `redis`.
STUB = """
import { execFileSync } from "node:child_process";
export function createClient({ url }) {
  const run = (...words) => execFileSync("redis-cli", ["-u", url, ...words], { encoding: "utf8" });
  const client = {
    connect: async () => client,
    xAdd: async (key, id, fields) => run("XADD", key, id, ...Object.entries(fields).flat()).trim(),
    blPop: async (key, timeout) => {
      const [name, element] = run("BLPOP", key, String(timeout)).split("\\n");
      return { key: name, element };
    },
    close: async () => {},
  };
  return client;
}
"""


def commands():
    """(command, what is printed below it) of each `$` line, in order."""
    lines, found = README.splitlines(), []
    for number, line in enumerate(lines):
        if not line.startswith("    $ "):
            continue
        command, rest = line[6:], number + 1
        while command.endswith("\\"):
            command = command[:-1] + lines[rest].strip()
            rest += 1
        shown = []
        while rest < len(lines) and re.match(r"    [^$ ]", lines[rest]):
            shown.append(lines[rest].strip())
            rest += 1
        found.append((command, shown))
    return found


def script(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.S).group(1)


class Stack:
    """`warmq dev`, as README starts it."""

    def __init__(self, directory, command, shown):
        self.directory = directory
        self.ports = {"40001": str(free_port()), "40002": str(free_port())}
        self.log = directory / "dev.log"
        words = self.local(command).replace("build/cli/warmq", str(BUILD / "cli" / "warmq"))
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words.split(), stdout=log, stderr=log)
        self.wait_for("Ctrl-C stops everything")
        assert_shown(shown, self.read_log(), self.local)

    def read_log(self):
        return self.log.read_text(encoding="utf-8")

    def wait_for(self, text, seconds=240):
        end = time.monotonic() + seconds
        while text not in self.read_log():
            assert self.process.poll() is None and time.monotonic() < end, self.read_log()
            time.sleep(0.02)

    def local(self, text):
        """The same with the ports of this run."""
        for port, own in self.ports.items():
            text = text.replace(port, own)
        return text

    def run(self, *words, **more):
        done = subprocess.run(words, cwd=self.directory, capture_output=True, text=True,
                              timeout=600, **more)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def end(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=600) == 0, self.read_log()


def assert_shown(shown, said, local=str):
    """Each line of the text was printed, but for what is different each time."""
    for line in shown:
        pattern = re.escape(local(line).strip('"')).replace("…", ".*")
        pattern = re.sub(re.escape(re.escape(ID)), r"\\d+-\\d+", pattern)
        assert re.search(pattern, said), (line, said)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    [(command, shown)] = [one for one in commands() if " dev " in one[0]]
    stack = Stack(tmp_path_factory.mktemp("readme"), command, shown)
    yield stack
    stack.end()


def test_every_command_works_as_it_is_printed(stack):
    # One shell for all: what is exported stays.
    lines, outputs = ["set -eu"], []
    for number, (command, shown) in enumerate(commands()):
        if " dev " in command:
            continue
        command = stack.local(command).replace("$PWD/build/cli", str(BUILD / "cli"))
        command = command.replace(ID, '"$id"')
        out = f"out.{number}"
        if ">" not in command and not command.startswith("export"):
            lines.append(f"{command} >{out}")
            lines.append(f"! grep -Eqx '[0-9]+-[0-9]+' {out} || id=$(head -n 1 {out})")
            outputs.append((command, out, shown))
        else:
            lines.append(command)
    assert len(outputs) >= 6
    stack.run("bash", "-c", "\n".join(lines))
    for command, out, shown in outputs:
        said = (stack.directory / out).read_text(encoding="utf-8")
        assert said.strip(), f"{command} prints nothing"
        assert_shown(shown, said)


def test_python_and_javascript_get_the_answer(stack):
    (stack.directory / "ask.py").write_text(stack.local(script("python")), encoding="utf-8")
    assert stack.run(sys.executable, "ask.py").startswith("echo ")
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    module = stack.directory / "node_modules" / "redis"
    module.mkdir(parents=True)
    (module / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (module / "index.js").write_text(STUB)
    (stack.directory / "ask.mjs").write_text(stack.local(script("js")), encoding="utf-8")
    assert stack.run("node", "ask.mjs").startswith("echo ")


def test_the_demo_prints_the_table_that_is_shown():
    table = README.split("prints\n", 1)[1].split("\n`./dev help`")[0]
    done = subprocess.run([BUILD / "cli" / "warmq", "demo", "--only", "warmq", "--jobs", "2",
                           "--slots", "2", "--job-ms", "50", "--prefix-tokens", "3000"],
                          capture_output=True, text=True, timeout=600, check=True)

    def labels(text):
        rows = re.findall(r"^ {2,}(\S.*?)  +\S", text, re.M)
        return [row for row in rows if row != "all at once"]

    assert len(labels(table)) == 9 and "tokens read" in labels(table)
    assert labels(table) == labels(done.stdout)


def test_every_document_is_named():
    documents = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert documents - set(re.findall(r"\(docs/([A-Z]+\.md)\)", README)) == set()


def test_defaults_are_those_of_the_program(tmp_path):
    config = tmp_path / "warmq.yaml"
    config.write_text("upstreams:\n  main:\n    url: http://127.0.0.1:9\n    auth: none\n")
    said = subprocess.run([BUILD / "worker" / "warmq-worker", "--config", config,
                           "--print-config"], capture_output=True, text=True, check=True).stdout
    table = README.split("## Defaults")[1]
    for row, line in [("30 s | `hold_max`", "hold_max: 30s"), ("10 min | `timeout`", "timeout: 10m"),
                      ("doubling on first bytes | `pace_start`", "pace_start: 32"),
                      ("| 100 | `worker.slots`", "slots: 100"),
                      ("at most 8 MiB | `scheduler.job_size_max`", "job_size_max: 8m"),
                      ("1 day | `scheduler.result_ttl`", "result_ttl: 1d"),
                      ("last use | `ttl`", "ttl: 5m")]:
        assert row in table, row
        assert line in said or line.replace("1d", "24h") in said, (line, said)
