"""What the documents tell people to type exists: verbs, options, keys of the configuration."""

import functools
import glob
import os
import re
import subprocess

import redis

from daemons import BUILD
from redis_process import is_up
from store import ROOT, wait_until

PROGRAMS = {"warmq": "cli", "warmq-worker": "worker", "warmq-scheduler": "scheduler",
            "warmq-provider": "provider"}
DOCUMENTS = sorted(["README.md", *(os.path.relpath(path, ROOT) for path in
                                   glob.glob(os.path.join(ROOT, "docs", "*.md")))])
# Behind the program: words and options up to what ends a command in prose and in shells.
COMMAND = re.compile(r"(?<!ERR )(?<![\w/:=.{-])(warmq(?:-worker|-scheduler|-provider)?)(?![\w:.}-])"
                     r"((?: [^`\n|;,#(]*)?)")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(maxsize=None)
def help_of(program, *words):
    done = subprocess.run([os.path.join(BUILD, PROGRAMS[program], program), *words, "--help"],
                          capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def options_of(program, *words):
    return set(re.findall(r"^  (--[a-z0-9-]+)", help_of(program, *words), re.M))


def verbs():
    listed = subprocess.run([os.path.join(BUILD, "cli", "warmq"), "help"], capture_output=True,
                            text=True, check=True).stdout
    return set(re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", listed, re.M)) | {"help"}


def code_of(text):
    """Inline code, joined where it is broken, and the lines of code blocks."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", text, re.M | re.S)
    blocks += re.findall(r"^ {4}\$? ?(warmq.*|build/cli/warmq.*|\./dev.*)$", text, re.M)
    text = re.sub(r"^ *```\w*\n.*?^ *```$", "", text, flags=re.M | re.S)
    return [line for block in blocks for line in block.splitlines()] + [
        " ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]


def mistakes(code, known):
    """What is wrong with the commands in one piece of code."""
    for program, rest in COMMAND.findall(code):
        words = rest.split()
        if program == "warmq":
            if not words or not re.fullmatch(r"[a-z]+", words[0]):
                continue  # only the name of the program
            verb = next((v for v in (" ".join(words[:2]), words[0]) if v in known), None)
            if not verb and not any(v.startswith(words[0] + " ") for v in known):
                yield f"there is no verb {words[0]}"
            options = options_of(program, *verb.split()) if verb and verb != "help" else set()
        else:
            options = options_of(program)
        for word in words:
            name = re.match(r"\[?(--[a-z][a-z0-9-]*)", word)
            if name and options and name.group(1) not in options | {"--help"}:
                yield f"{program} has no {name.group(1)}"


def test_commands_in_the_documents_exist():
    known, found, looked = verbs(), [], 0
    for document in DOCUMENTS:
        for code in code_of(read(document)):
            looked += bool(COMMAND.search(code))
            found += [f"{document}: `{code}`: {mistake}" for mistake in mistakes(code, known)]
    assert found == []
    assert looked > 60
    assert list(mistakes("warmq frobnicate X", known)) == ["there is no verb frobnicate"]
    assert list(mistakes("warmq wait ID --nonsense", known)) == ["warmq has no --nonsense"]
    assert list(mistakes("warmq-worker --nonsense", known)) == ["warmq-worker has no --nonsense"]


def test_the_manuals_have_the_options_that_the_programs_have():
    for program in PROGRAMS:
        page = read(f"docs/man/{program}.1.scd").replace("\\", "")
        named = set(re.findall(r"\*(--[a-z][a-z0-9-]+)\*", page))
        if program == "warmq":
            known = {name for verb in verbs() - {"help"} for name in
                     options_of(program, *verb.split())} | {"--version"}
        else:
            known = options_of(program)
        assert named - known == set(), program
        if program in ("warmq-worker", "warmq-scheduler"):
            assert known - named == set(), program


def test_the_manual_of_doctor_has_each_thing_that_it_looks_at():
    """Findings about pools, upstreams, results and more were not in it."""
    page = read("docs/man/warmq-doctor.1.scd")
    table = page.split("# DESCRIPTION")[1].split("# OPTIONS")[0]
    listed = {word for row in re.findall(r"^\|  (.+)$", table, re.M) for word in row.split(", ")}
    repairs = set(re.findall(r"\*--repair\* _([a-z]+)_", page))
    found = set()
    for path in glob.glob(os.path.join(ROOT, "cli", "doctor*.c")):
        for call in read(path).split("doctor_say(")[1:]:
            level = re.match(r'[^"]*?DOCTOR_\w+[^"]*?,\s*"([a-z]+)"|[^"]*?level,\s*"([a-z]+)"', call)
            found |= set(level.groups()) - {None} if level else set()
    assert len(found) > 20
    assert found - repairs == listed - repairs


def test_keys_that_the_documents_name_stand_in_the_reference():
    reference = read("docs/CONFIG.md").split("<!-- reference: begin -->")[1]
    keys, section = set(), ""
    for line in reference.splitlines():
        heading = re.match(r"### `?([^`]+)`?$", line)
        row = re.match(r"\| `([a-z0-9_]+)` \|", line)
        if heading:
            section = heading.group(1).split(".")[0].split("[")[0]
        elif row:
            keys.add(f"{section}.{row.group(1)}")
    assert {"scheduler.listen", "worker.slots", "upstreams.url"} <= keys
    named = {}
    for document in [*DOCUMENTS, *(f"docs/man/{program}.1.scd" for program in PROGRAMS)]:
        for key in re.findall(r"(?<![\w/.])(?:scheduler|worker)\.[a-z][a-z_]+(?![\w/.*(])",
                              read(document)):
            if not re.search(r"\.(c|h|py|lua|yaml|record|sock|log|service|md)$", key):
                named.setdefault(key, document)
    assert len(named) > 10
    assert {key: where for key, where in named.items() if key not in keys} == {}


def test_every_example_of_a_configuration_is_understood(tmp_path):
    examples = [block for document in DOCUMENTS
                for block in re.findall(r"^```yaml\n(.*?)^```", read(document), re.M | re.S)
                if re.match(r"(redis|upstreams|worker|scheduler|pools|models):", block)]
    assert len(examples) >= 3
    for block in [*examples, read("deploy/warmq.yaml")]:
        (tmp_path / "warmq.yaml").write_text(block, encoding="utf-8")
        for program in ("warmq-worker", "warmq-scheduler"):
            done = subprocess.run([os.path.join(BUILD, PROGRAMS[program], program), "--config",
                                   str(tmp_path / "warmq.yaml"), "--print-config"],
                                  capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, (block, done.stderr)


def test_redis_takes_the_configuration_that_is_shown(tmp_path):
    block = re.search(r"In `redis.conf`:\n\n *```\n(.*?)^ *```", read("docs/OPERATIONS.md"),
                      re.M | re.S).group(1)
    (tmp_path / "redis.conf").write_text(block, encoding="utf-8")
    socket = tmp_path / "redis.sock"
    process = subprocess.Popen(["redis-server", "redis.conf", "--port", "0", "--unixsocket", socket],
                               cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(unix_socket_path=str(socket), decode_responses=True)
        wait_until(lambda: is_up(client) or process.poll() is not None, "redis-server")
        assert process.poll() is None, "redis-server refuses the file"
        lines = [line.split() for line in block.splitlines() if "#" not in line]
        assert len(lines) == 4
        for name, value in lines:
            assert client.config_get(name)[name] == value
        client.close()
    finally:
        process.kill()
        process.wait()


def defaults_of(name):
    """What the tables of a reference say: key to default."""
    rows = re.findall(r"^\| `([\w.]+)` \|([^|]*)\|([^|]*)\|", read(name), re.M)
    return {key: re.findall(r"`([^`]+)`", default)[0] for key, _, default in rows
            if "`" in default}


def test_the_defaults_that_readme_shows_are_those_of_the_references():
    known = {**defaults_of("docs/CONFIG.md"), **defaults_of("docs/ENVELOPE.md")}
    table = read("README.md").split("\n## Defaults\n")[1].split("\n## ")[0]
    shown = {}
    for default, where in re.findall(r"^\| [^|`]+ \| ([^|]+) \| ([^|]*`[^|]*) \|$", table, re.M):
        key = re.search(r"`(?:\w+\.)?(\w+)", where).group(1)
        amount = re.search(r"(\d+) ?(\w*)", default)
        unit = {"s": "s", "min": "m", "h": "h", "MiB": "m", "day": "d"}.get(
            amount.group(2) if amount else "", "")
        shown[key] = amount.group(1) + unit if amount else default
    compared = {key: {"1d": "24h"}.get(value, value) for key, value in shown.items()
                if key in ("hold_max", "attempts", "timeout", "pace_start", "ttl", "slots",
                           "job_size_max", "result_ttl")}
    assert len(compared) == 8
    assert compared == {key: known[key] for key in compared}
