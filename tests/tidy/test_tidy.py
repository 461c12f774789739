#!/usr/bin/env python3
"""test_tidy.py - every rule bites: a small tree that breaks it is refused, and the same
tree mended is accepted."""

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile

import tidy

ARCHITECTURE = """<!-- layers: begin -->
| folder | may include from | libraries |
|---|---|---|
| `common` | | |
| `worker` | `common` | uv |
<!-- layers: end -->
"""
GOOD = {
    "docs/ARCHITECTURE.md": ARCHITECTURE,
    "common/meson.build": "files('a.c')\n",
    "common/a.h": "/* a.h - something.  */\n#ifndef COMMON_A_H\n#define COMMON_A_H\n#endif\n",
    "common/a.c": '#include "common/a.h"\n\nint\na_do(void)\n{\n\treturn 0;\n}\n',
    "docs/decisions/0001-begin.md": "Begin.\n",
    "docs/CORE.md": "See common/a.c, `test_a_does`, ./dev build, [it](CORE.md#it).\n",
    "tests/test_a.py": "def test_a_does():\n    pass\n",
    "tests/mutants.txt": "== nothing is done\ncommon/a.c\n- \treturn 0;\n+ \treturn 1;\n",
    "dev": "case $verb in\nbuild | all) x ;;\nesac\n",
}
BAD = [
    ("calls", "common/a.c", 'int\na_do(void)\n{\n\tsprintf(x, "y");\n}\n'),
    ("calls", "common/a.c", "int\na_do(void)\n{\n\treturn malloc(1);\n}\n"),
    ("calls", "common/a.c", "double a_ratio;\n"),
    ("waits", "tests/test_a.py", "import time\n\n\ndef test_a():\n    time.sleep(1)\n"),
    ("waits", "tests/conftest.py", "from time import sleep\nsleep(1)\n"),
    ("length", "common/a.c", "int\na_do(void)\n{\n" + "\ta++;\n" * 70 + "}\n"),
    ("length", "common/a.c", "\n" * 601),
    ("headers", "common/a.h", "/* A header. */\n#ifndef COMMON_A_H\n#define COMMON_A_H\n"),
    ("headers", "common/a.h", "/* a.h - something. */\n#ifndef A_H\n#define A_H\n"),
    ("headers", "common/a.h", GOOD["common/a.h"].replace(" */", "\n *\n * a ─► b\n */")),
    ("marks", "common/a.c", "/* FIX" + "ME */\n"),
    ("marks", "common/a.c", "/* TO" + "DO: later */\n"),
    ("marks", "common/a.c", '"/ho' + 'me/alice/x";\n'),
    ("marks", "common/a.c", "int a; \n"),
    ("marks", "common/a.c", "int a;"),
    ("listed", "common/meson.build", "files('b.c')\n"),
    ("decisions", "docs/decisions/0001-again.md", "Again.\n"),
    ("decisions", "docs/decisions/1-short.md", "Short.\n"),
    ("includes", "common/a.c", '#include "common/a.h"\n#include <uv.h>\n'),
    ("includes", "common/a.c", '#include "common/a.h"\n#include "worker/w.h"\n'),
    ("includes", "common/a.c", '#include "a.h"\n'),
    ("includes", "common/a.c", '#include <stdio.h>\n#include "common/a.h"\n'),
    ("includes", "elsewhere/x.c", "int x;\n"),
    ("docs", "docs/CORE.md", "See `common/b.c`.\n"),
    ("docs", "docs/CORE.md", "See [that](THAT.md).\n"),
    ("docs", "docs/CORE.md", "See `test_a_does_not`.\n"),
    ("docs", "docs/CORE.md", "Say ./dev destroy.\n"),
    ("mutants", "tests/mutants.txt", "== nothing is done\ncommon/a.c\n- \treturn 2;\n+ x\n"),
]
UNIT = "deploy/a.service.in"
if shutil.which("systemd-analyze"):
    BAD += [
        ("units", UNIT, "[Service]\nExecStart=@bindir@/a\nDynamicUser=yes\n"),
        ("units", UNIT, tidy.text_of("deploy/systemd/warmq-worker.service.in")
            .replace("RestartSec=1s", "RestartSec=soon")),
    ]
ALLOWED = [
    ("calls", "common/a.c", '/* sprintf() */ const char *a = "malloc(";\n'),
    ("waits", "tests/rig.py", "import time\ntime.sleep(1)\n"),
    ("waits", "tests/test_a.py", "handler = 'time.sleep(1)'\n"),
    ("waits", "tests/test_a.py", "while not is_done():\n    time.sleep(1)\n"),
    ("headers", "common/a.h", GOOD["common/a.h"].replace(" */", "\n *\n *   a ─► b\n */")),
    ("marks", "common/a.c", "/* TO" + "DO(0001): later. */\n"),
    ("includes", "worker/w.c", '#include "common/a.h"\n#include <uv.h>\n'),
    ("docs", "docs/CORE.md", "All of common/*.c, https://docs/nothing.md, ./dev all.\n"),
]


def broken(rule, change):
    """How many cases of the rule fail in the good tree with one file changed."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in dict(GOOD, **change).items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        verdict = tidy.Verdict()
        tidy.ROOT = root
        tidy.tracked = tracked_by_walk
        with contextlib.redirect_stdout(io.StringIO()):
            tidy.RULES[rule](verdict, argparse.Namespace(build=root, cc="cc", plain="yes"))
        return verdict.broken


def tracked_by_walk(*suffixes):
    return sorted(n for n in tidy.walk_tree() if not suffixes or n.endswith(suffixes))


def main():
    failed = 0
    cases = [(rule, {name: text}, True) for rule, name, text in BAD]
    cases += [(rule, {name: text}, False) for rule, name, text in ALLOWED]
    cases += [(rule, {}, False) for rule in sorted({rule for rule, _n, _t in BAD})]
    for rule, change, expected in cases:
        if (broken(rule, change) > 0) != expected:
            failed += 1
            print(f"{rule} should {'refuse' if expected else 'accept'} {change}")
    print(f"cases: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
