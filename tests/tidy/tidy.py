#!/usr/bin/env python3
"""tidy.py - the rules of the house, as tests.

    tidy.py RULE [--build DIR] [--cc CC] [--plain yes|no]

Each rule prints every place that breaks it, with what to do instead, and ends with
`cases: N passed, M failed`.  Exit 77 means that the rule cannot be checked here, and why.
"""

import argparse
import ast
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIP = 77

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import mutant_list  # noqa: E402

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
TEST_LINES_MAX = 750  # a test file is a list of sentences on one subject

PURE_FOLDERS = ("common", "scheduler/core", "scheduler/ledger", "worker/core",
                "provider/model")
PURE_EXCEPT = ("common/buffer.c", "common/buffer.h", "common/options.c",
               "common/options.h", "common/verify_abort.c")

BANNED = {
    "strcpy": "memcpy with a checked length", "strcat": "common/buffer.h",
    "strncpy": "memcpy with a checked length", "strncat": "common/buffer.h",
    "sprintf": "snprintf or buffer_append_format", "vsprintf": "vsnprintf",
    "gets": "fgets", "atoi": "text_parse_unsigned", "atol": "text_parse_unsigned",
    "atof": "text_parse_decimal", "alloca": "a fixed array or the heap",
    "strtok": "memchr over spans", "rand": "common/prng.h", "srand": "common/prng.h",
    "random": "common/prng.h", "sleep": "a timer, or a condition with a deadline",
    "tmpnam": "mkdtemp", "mktemp": "mkdtemp", "setjmp": "an error code", "longjmp": "an error code",
}
BANNED_IN_PURE = {
    name: "what the caller gives: pure layers have no clock, I/O or heap"
    for name in ("time", "clock", "clock_gettime", "gettimeofday", "malloc", "calloc",
                 "realloc", "reallocarray", "free", "strdup", "printf", "fprintf",
                 "snprintf", "vsnprintf", "fopen", "open", "read", "write", "getenv",
                 "uv_now", "uv_hrtime")
}


class Verdict:
    """Counts what was looked at and what is wrong."""

    def __init__(self):
        self.looked = 0
        self.broken = 0

    def case(self, problems):
        self.looked += 1
        if problems:
            self.broken += 1
        for problem in problems:
            print(problem)

    def finish(self):
        if self.looked == 0:
            print("nothing was looked at, which is a failure")
            return 1
        print(f"cases: {self.looked - self.broken} passed, {self.broken} failed")
        return 1 if self.broken else 0


def tracked(*suffixes):
    """Paths of the working tree that git knows or would add, sorted."""
    command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, text=True,
                               check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = walk_tree()
    names = [n for n in names if os.path.isfile(os.path.join(ROOT, n))]
    return sorted(n for n in set(names) if not suffixes or n.endswith(suffixes))


def walk_tree():
    """For a source tree without git, such as an unpacked archive."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith("build") and f != ".git"]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def text_of(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def blank(match):
    """Spaces in place of a comment or literal, with its line breaks."""
    return re.sub(r"[^\n]", " ", match.group(0))


NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(name):
    """The file without comments and literals; lines keep their numbers."""
    return NOISE.sub(blank, text_of(name))


def is_pure(name):
    return os.path.dirname(name) in PURE_FOLDERS and name not in PURE_EXCEPT


def is_generated(name):
    return name.startswith(("tests/fuzz/corpus/", "tests/golden/data/",
                            "scheduler/dashboard/vendor/"))


# ---------------------------------------------------------------- rules


def calls_in(code, names):
    pattern = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(names))
    for number, line in enumerate(code.splitlines(), 1):
        for match in pattern.finditer(line):
            yield number, match.group(1)


def rule_calls(verdict, _options):
    for name in tracked(".c", ".h"):
        code = code_of(name)
        banned = dict(BANNED, **BANNED_IN_PURE) if is_pure(name) else BANNED
        problems = [f"{name}:{number}: {call}() is banned; use {banned[call]}"
                    for number, call in calls_in(code, banned)]
        if is_pure(name):
            problems += [f"{name}:{number}: no floating point in pure layers; count in "
                         "integers of a stated unit"
                         for number, line in enumerate(code.splitlines(), 1)
                         if re.search(r"\b(float|double)\b", line)]
        verdict.case(problems)


def sleeps_in(tree):
    """Lines that call sleep(), but between two looks at a condition."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.While):
            continue
        if isinstance(node, ast.Call) and "sleep" in (getattr(node.func, "attr", ""),
                                                      getattr(node.func, "id", "")):
            found.append(node.lineno)
        found += sleeps_in(node)
    return found


def rule_waits(verdict, _options):
    """No test sleeps for a fixed time.  What it starts may, and what it waits with."""
    for name in tracked(".py"):
        if re.match(r"tests/.*(test_\w+|conftest)\.py$", name):
            verdict.case([f"{name}:{number}: a test sleeps; wait for a condition "
                          "(tests/lib/waiting.py)" for number in sleeps_in(ast.parse(text_of(name)))])


def functions_of(lines):
    """(name, first line, length) of each function: its name stands in column one and its
    body between braces in column one."""
    name = start = None
    for number, line in enumerate(lines, 1):
        match = re.match(r"([a-z_]\w*)\(", line)
        if match:
            name, start = match.group(1), number
        elif line.startswith("}") and name:
            yield name, start, number - start + 1
            name = None


def rule_length(verdict, _options):
    for name in tracked(".c", ".h"):
        lines = text_of(name).splitlines()
        problems = []
        most = TEST_LINES_MAX if name.startswith("tests/") else FILE_LINES_MAX
        if len(lines) > most:
            problems.append(f"{name}: {len(lines)} lines; split it by what it is about, "
                            f"at most {most}")
        for function, start, length in functions_of(code_of(name).splitlines()):
            if length > FUNCTION_LINES_MAX:
                problems.append(f"{name}:{start}: {function} has {length} lines; at most "
                                f"{FUNCTION_LINES_MAX}")
        verdict.case(problems)


PICTURE = re.compile(r"^ \* \S.*[─│┌┐└┘├┤┬┴┼►◄▲▼]")


def rule_headers(verdict, _options):
    """First line, guard, and pictures that stand as they were drawn."""
    for name in tracked(".h"):
        lines = text_of(name).splitlines()
        base = os.path.basename(name)
        guard = re.sub(r"\W", "_", name).upper()
        problems = []
        if not re.match(r"/\* %s - \S.*" % re.escape(base), lines[0] if lines else ""):
            problems.append(f"{name}:1: must begin with `/* {base} - what it is`")
        if f"#ifndef {guard}" not in lines or f"#define {guard}" not in lines:
            problems.append(f"{name}: its guard must be {guard}")
        problems += [f"{name}:{number}: a picture was broken into lines of text; draw it "
                     "three blanks in, and narrower"
                     for number, line in enumerate(lines, 1) if PICTURE.match(line)]
        verdict.case(problems)


def rule_marks(verdict, _options):
    """No notes to self, no paths of a machine, no stray white space."""
    notes = re.compile(r"\b(%s)\b" % "|".join(("FIX" + "ME", "XX" + "X", "HA" + "CK")))
    todo = re.compile(r"\bTO" + r"DO\b(?!\(\d+\))")
    machine = re.compile(r"(?<![\w.~-])/(%s)/\w" % "|".join(("wo" + "rk", "ho" + "me",
                                                              "ro" + "ot", "tmp/" + "wt")))
    for name in tracked():
        if is_generated(name) or name.endswith((".png", ".gz")):
            continue
        problems = []
        text = text_of(name)
        for number, line in enumerate(text.splitlines(), 1):
            if notes.search(line):
                problems.append(f"{name}:{number}: settle it now, or file it")
            if todo.search(line):
                problems.append(f"{name}:{number}: a note for later names its decision, "
                                "as in TO" + "DO(0007)")
            if machine.search(line):
                problems.append(f"{name}:{number}: a path of somebody's machine")
            if line != line.rstrip() and not name.endswith(".md"):
                problems.append(f"{name}:{number}: white space at the end")
        if text and not text.endswith("\n"):
            problems.append(f"{name}: no line break at the end")
        verdict.case(problems)


def rule_listed(verdict, _options):
    """A C file that no meson.build names is dead."""
    for name in tracked(".c"):
        folder, base = os.path.split(name)
        stem = re.sub(r"^(test|fuzz|bench|property|golden)_", "", base[:-2])
        builds = [f for f in (folder, os.path.dirname(folder))
                  if os.path.exists(os.path.join(ROOT, f, "meson.build"))]
        lists = "".join(text_of(os.path.join(f, "meson.build")) for f in builds)
        listed = re.search(r"['/](%s|%s)'" % (re.escape(base), re.escape(stem)), lists)
        verdict.case([] if listed else [f"{name}: no meson.build names it"])


def rule_decisions(verdict, _options):
    seen = {}
    for name in tracked(".md"):
        if not name.startswith("docs/decisions/"):
            continue
        match = re.match(r"docs/decisions/(\d{4})-[a-z0-9-]+\.md$", name)
        problems = []
        if not match:
            problems.append(f"{name}: decisions are called NNNN-words-in-lower-case.md")
        elif match.group(1) in seen:
            problems.append(f"{name}: {seen[match.group(1)]} has the same number")
        else:
            seen[match.group(1)] = name
        verdict.case(problems)


def layers():
    """{folder: (folders or prefixes, libraries)} of docs/ARCHITECTURE.md."""
    text = text_of("docs/ARCHITECTURE.md")
    table = text.split("<!-- layers: begin -->")[1].split("<!-- layers: end -->")[0]
    rows = {}
    for line in table.strip().splitlines()[2:]:
        folder, folders, libraries = [c.strip() for c in line.strip("|").split("|")]
        rows[folder.strip("`")] = (re.findall(r"`([^`]+)`", folders), libraries.split())
    return rows


LIBRARIES = [
    (re.compile(r"^hiredis/"), "hiredis"), (re.compile(r"^uv\.h$"), "uv"),
    (re.compile(r"^curl/"), "curl"), (re.compile(r"^microhttpd\.h$"), "microhttpd"),
    (re.compile(r"^jansson\.h$"), "jansson"), (re.compile(r"^yaml\.h$"), "yaml"),
    (re.compile(r"^msgpack"), "msgpack"), (re.compile(r"^xxhash\.h$"), "xxhash"),
    (re.compile(r"^check\.h$"), "check"), (re.compile(r"^(lua|lauxlib|lualib)\.h$"), "lua"),
    (re.compile(r"^pthread\.h$"), "pthread"),
]


def row_of(name, rows):
    folder = os.path.dirname(name)
    while folder and folder not in rows:
        folder = os.path.dirname(folder)
    return folder


def include_allowed(path, own, allowed):
    folder = os.path.dirname(path)
    if folder == own:
        return True
    return any(path.startswith(a[:-1]) if a.endswith("*") else folder == a
               for a in allowed)


def rule_includes(verdict, _options):
    rows = layers()
    for name in tracked(".c", ".h"):
        row = row_of(name, rows)
        if not row:
            verdict.case([f"{name}: docs/ARCHITECTURE.md has no row for its folder"])
            continue
        allowed, libraries = rows[row]
        problems, first = [], None
        for number, line in enumerate(text_of(name).splitlines(), 1):
            match = re.match(r'#\s*include (["<])([^">]+)', line)
            if not match:
                continue
            kind, path = match.groups()
            first = first or path
            if kind == '"' and not os.path.exists(os.path.join(ROOT, path)):
                problems.append(f"{name}:{number}: includes are rooted at the "
                                f"repository; there is no {path}")
            elif kind == '"' and not include_allowed(path, os.path.dirname(name), allowed):
                problems.append(f"{name}:{number}: {row} may not use {path}")
            for pattern, library in LIBRARIES:
                if kind == "<" and pattern.match(path) and library not in libraries:
                    problems.append(f"{name}:{number}: {row} may not use {library}")
        own = name[:-2] + ".h"
        if (name.endswith(".c") and os.path.exists(os.path.join(ROOT, own))
                and not (first or "").startswith(name[:-2])):  # lane_state.h serves lane.c
            problems.append(f"{name}: its own header must be the first include")
        verdict.case(problems)


def archives(build):
    for folder, folders, files in os.walk(build):
        # build/mutants is a tree of its own, with a build of its own
        folders[:] = [name for name in folders if name not in ("meson-private", "mutants")]
        for file in files:
            if file.endswith(".a"):
                yield os.path.join(folder, file)


def symbols_of(archive, flag):
    """(member, symbol) pairs."""
    output = subprocess.run(["nm", "-A", flag, archive], capture_output=True, text=True,
                            check=True).stdout
    for line in output.splitlines():
        where, rest = re.match(r"(.*?\.o):\s*(.*)", line).groups()
        fields = rest.split()
        yield os.path.basename(where.split(":")[-1])[:-2], fields[-2], fields[-1]


def prefixes_for(base):
    """What symbols of this file may begin with: its stem, or a leading part of it, since
    text_escape.c serves text.h and config_parse.c serves config.h."""
    parts = base[:-2].split("_")
    return ["_".join(parts[:length]) for length in range(len(parts), 0, -1)]


def rule_symbols(verdict, options):
    for archive in sorted(archives(options.build)):
        folder = os.path.relpath(os.path.dirname(archive), options.build)
        if folder.startswith("tests"):
            continue
        problems = []
        for member, kind, symbol in symbols_of(archive, "--defined-only"):
            base = re.sub(r"^.*?([\w.-]+\.c)$", r"\1", member)
            base = base.replace("meson-generated_.._", "")  # written by a custom_target
            if not kind.isupper() or symbol == "main" or symbol.startswith(("__", "_")):
                continue
            if base.startswith("verify_") and symbol == "verify_fail":
                continue
            if not any(symbol == p or symbol.startswith(p + "_")
                       for p in prefixes_for(base)):
                problems.append(f"{folder}/{base}: {symbol} does not begin with the "
                                "file's stem; make it static or rename it")
        verdict.case(problems)


PURE_SYMBOLS = {"memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "memmem",
                "strlen", "strnlen", "strchr", "strrchr", "strcmp", "strncmp", "verify_fail",
                "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}


def pure_archives(build):
    for archive in archives(build):
        folder = os.path.relpath(os.path.dirname(archive), build)
        base = os.path.basename(archive)
        if folder == "common" and base != "libcommon.a":
            continue
        if folder in PURE_FOLDERS or base == "libprotocol.a":
            yield archive


def rule_purity(verdict, options):
    if options.plain != "yes":
        print("skipped: sanitizers, coverage and -O0 add symbols of their own; the plain "
              "optimised build is checked")
        return SKIP
    pure = sorted(pure_archives(options.build))
    defined = {symbol for archive in pure
               for _m, kind, symbol in symbols_of(archive, "--defined-only")
               if kind.isupper()}
    for archive in pure:
        foreign = sorted({(member, symbol)
                          for member, _k, symbol in symbols_of(archive, "-u")
                          if symbol not in PURE_SYMBOLS and symbol not in defined})
        verdict.case([f"{os.path.relpath(archive, options.build)}: {member} uses {symbol}, "
                      "which is not pure" for member, symbol in foreign])
    return None


def rule_alone(verdict, options):
    """Every header compiles by itself."""
    flags = subprocess.run(["pkg-config", "--cflags", "libuv", "jansson", "libmicrohttpd",
                            "libcurl", "yaml-0.1", "check"],
                           capture_output=True, text=True, check=False).stdout.split()
    lua = subprocess.run(["pkg-config", "--cflags", "lua5.1"], capture_output=True,
                         text=True, check=False).stdout.split()
    headers = tracked(".h")
    command = options.cc.split() + ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra",
                                    "-Werror", "-Wno-unused-parameter", "-I", ROOT,
                                    "-fsyntax-only", "-x", "c"]
    for start in range(0, len(headers), 8):
        batch = [os.path.join(ROOT, h) for h in headers[start:start + 8]]
        result = subprocess.run(command + flags + lua + batch, capture_output=True,
                                text=True, check=False)
        verdict.case([result.stderr] if result.returncode else [])


def rule_format(verdict, _options):
    for tool in ("clang-format-14", "clang-format"):
        found = shutil.which(tool)
        if found and " 14." in subprocess.run([found, "--version"], capture_output=True,
                                              text=True, check=False).stdout:
            break
    else:
        print("skipped: needs clang-format 14, which the style is pinned to")
        return SKIP
    names = tracked(".c", ".h")
    result = subprocess.run([found, "--dry-run", "-Werror"] + names, cwd=ROOT,
                            capture_output=True, text=True, check=False)
    places = {}
    for name, line in re.findall(r"^(\S+?):(\d+):\d+: error", result.stderr, re.M):
        places.setdefault(name, []).append(line)
    for name in names:
        verdict.case([f"{name}:{places[name][0]}: `./dev format` rewrites "
                      f"{len(places[name])} places"] if name in places else [])
    if result.returncode and not places:
        verdict.case([result.stderr])
    return None


def rule_shell(verdict, _options):
    if not shutil.which("shellcheck"):
        print("skipped: needs shellcheck")
        return SKIP
    for name in tracked():
        if is_generated(name) or not os.access(os.path.join(ROOT, name), os.X_OK):
            continue
        first = text_of(name).split("\n", 1)[0]
        if not re.match(r"#!.*\b(ba)?sh\b", first):
            continue
        result = subprocess.run(["shellcheck", os.path.join(ROOT, name)],
                                capture_output=True, text=True, check=False)
        verdict.case([result.stdout] if result.returncode else [])
    return None


UNIT_EXPOSURE_MAX = 20  # tenths, of 100: what `systemd-analyze security` gives


def rule_units(verdict, _options):
    """systemd understands every line of our units, and each is locked up well."""
    tool = shutil.which("systemd-analyze")
    if not tool:
        print("skipped: needs systemd-analyze")
        return SKIP
    for name in tracked(".service.in"):
        text = re.sub(r"^(ExecStart=)\S+", r"\1/bin/true", text_of(name), flags=re.M)
        with tempfile.TemporaryDirectory() as folder:
            unit = os.path.join(folder, os.path.basename(name)[:-3])
            with open(unit, "w", encoding="utf-8") as file:
                file.write(re.sub(r"@\w+@", "/etc", text))
            said = subprocess.run([tool, "verify", "--man=no", unit], capture_output=True,
                                  text=True, check=False).stderr
            said = "".join(line for line in said.splitlines(True) if folder in line
                           or os.path.basename(unit) in line)
            rated = subprocess.run([tool, "security", "--offline=yes", "--no-pager",
                                    f"--threshold={UNIT_EXPOSURE_MAX}", unit],
                                   capture_output=True, text=True, check=False)
        verdict.case([f"{name}: {said}"] if said else [])
        verdict.case([f"{name}: {rated.stdout[-200:]}{rated.stderr}"]
                     if rated.returncode else [])
    return None


FOLDERS = "cli|common|deploy|docs|provider|scheduler|tests|worker"
PATH = re.compile(r"(?<![\w/.:-])(?:%s)/[\w./*-]*[\w/*]" % FOLDERS)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TEST_NAME = re.compile(r"`(test_\w+)`")
DEV_VERB = re.compile(r"\./dev ([a-z]+)")


def test_names():
    """All functions that are tests, and all files of tests."""
    names = set()
    for name in tracked(".py", ".c"):
        if name.startswith("tests/"):
            names.add(os.path.splitext(os.path.basename(name))[0])
            names.update(word for pair in
                         re.findall(r"^def (test_\w+)\(|^START_TEST\((\w+)\)", text_of(name), re.M)
                         for word in pair)
    return names


def dev_verbs():
    usage = text_of("dev").split("\ncase $verb in")[-1]
    return {word for words in re.findall(r"^([a-z |-]+)\)", usage, re.M)
            for word in words.split(" | ")}


def exists(path):
    return bool(glob.glob(os.path.join(ROOT, path)) or glob.glob(os.path.join(ROOT, path + ".*")))


def rule_docs(verdict, _options):
    """What a document names is there: files, tests, verbs of ./dev.  Decisions and changes are
    history, and may name what was."""
    tests, verbs = test_names(), dev_verbs()
    for name in tracked(".md"):
        if name.startswith("docs/decisions/") or name == "CHANGELOG.md":
            continue
        problems = []
        for number, line in enumerate(text_of(name).splitlines(), 1):
            links = [os.path.join(os.path.dirname(name), link) for link in LINK.findall(line)]
            problems += [f"{name}:{number}: there is no {path}"
                         for path in PATH.findall(line) + links if not exists(path)]
            problems += [f"{name}:{number}: there is no test {test}"
                         for test in TEST_NAME.findall(line) if test not in tests]
            problems += [f"{name}:{number}: there is no ./dev {verb}"
                         for verb in DEV_VERB.findall(line) if verb not in verbs]
        verdict.case(problems)


def rule_mutants(verdict, _options):
    """The text that a mutant replaces stands where it says, once: else it has gone stale
    with its code, which whoever plays the mutants would learn after minutes."""
    for name in tracked("mutants.txt"):
        for mutant in mutant_list.read(os.path.join(ROOT, name)):
            _, problem = mutant.apply(text_of(mutant.file))
            verdict.case([f"{name}: {mutant.name}: {problem}"] if problem else [])


RULES = {
    "docs": rule_docs, "mutants": rule_mutants,
    "calls": rule_calls, "length": rule_length, "headers": rule_headers,
    "marks": rule_marks, "listed": rule_listed, "decisions": rule_decisions,
    "includes": rule_includes, "symbols": rule_symbols, "purity": rule_purity,
    "alone": rule_alone, "format": rule_format, "shell": rule_shell, "units": rule_units,
    "waits": rule_waits,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rule", choices=sorted(RULES))
    parser.add_argument("--build", default="build")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--plain", default="yes")
    options = parser.parse_args()
    verdict = Verdict()
    skipped = RULES[options.rule](verdict, options)
    return skipped if skipped is not None else verdict.finish()


if __name__ == "__main__":
    sys.exit(main())
