"""docs/PROTOCOL.md names every function, answer, event and key of the library, and no others."""

import glob
import os
import re

from store import ROOT


def read(*name):
    with open(os.path.join(ROOT, *name), encoding="utf-8") as file:
        return file.read()


LIBRARY = "\n".join(read("scheduler", "functions", os.path.basename(path)) for path in
                    glob.glob(os.path.join(ROOT, "scheduler", "functions", "*.lua")))
MANUAL = read("docs", "PROTOCOL.md")


def part(title):
    """What stands below a heading, up to the next of its rank or a higher one."""
    rank = len(title.split(" ")[0])
    return re.search(rf"^{re.escape(title)}\n(.*?)(?=^#{{2,{rank}}} |\Z)", MANUAL,
                     re.M | re.S).group(1)


def rows(text):
    """The first cells of a table: what stands between backticks there."""
    cells = re.findall(r"^\| (.*?) \|", text, re.M)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_every_function_has_its_paragraph():
    registered = set(re.findall(r"^register\('(\w+)'", read("scheduler", "functions",
                                                            "register.lua"), re.M))
    assert len(registered) == 31
    assert set(re.findall(r"^\*\*`(\w+)[^`]*`\*\*", part("## 3. Functions"), re.M)) == registered


def test_every_word_that_answers_is_explained():
    words = set(re.findall(r"\b(?:return|and|or) \{ '([A-Z]+)'", LIBRARY))
    explained = {row.split(" ")[0] for row in rows(part("### Answers"))}
    assert words == explained
    for word in set(re.findall(r"problem\([^\n]*'([A-Z]+)'", LIBRARY)) | {"FENCED"}:
        assert f"`{word}` (" in part("## 3. Functions") or f"`{word}`." in MANUAL, word


def test_every_event_has_its_line():
    said = set(re.findall(r"\bsay\('(\w+)", LIBRARY))
    assert said == {row.split(" ")[0] for row in rows(part("## 4. Events"))}


def test_every_key_has_its_row():
    fixed = re.search(r"local FIXED = \{(.*?)\}", LIBRARY, re.S).group(1)
    used = set(re.findall(r"'(\w+)'", fixed)) - {"wake"} | {"meta"}
    used |= {name.strip(":") for name in re.findall(r"key\.ns \.\. '(\w+):?'", LIBRARY)}
    told = {re.match(r"ns:(\w+)", row).group(1) for row in rows(part("## 2. Keys"))
            if row.startswith("ns:")}
    assert used - told == set()
    # Lists are named by variables, the other two are the scheduler's own.
    assert told - used == {"ready", "back", "now", "drift", "status", "pressure"}


def test_every_counter_of_meta_is_named():
    counted = set(re.findall(r"\bcount\('(\w+)'", LIBRARY))
    assert len(counted) >= 4
    fields = re.search(r"^`meta` fields:(.*?)\n\n", MANUAL, re.M | re.S).group(1)
    assert counted - set(re.findall(r"`(\w+)`", fields)) == set()
