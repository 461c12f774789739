#!/usr/bin/env python3
"""Writes files as one C table of bytes; the page itself becomes one file.

usage: embed.py OUT.c FILE...

A comment in index.html is replaced by what it names: `<!-- style.css -->` by the style,
`<!-- app.js -->` by that module and all that it imports, each a function of its own that
answers its exports.  So a browser has everything in one answer, and what may run is known by
its hash.  `<!-- first -->` is where the server puts the first figures.
"""
import base64
import hashlib
import os
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FIRST = b"<!-- first -->"
IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "\./(\w+)\.js";$', re.M)
EXPORT = re.compile(r"^export ((?:async )?function|const|let) (\w+)", re.M)


def module(name, texts, done):
    """The modules that `name` needs, and itself: in order, each once."""
    if name in done:
        return []
    done.add(name)
    text, before = texts[f"{name}.js"], []
    for _, _, other in IMPORT.findall(text):
        before += module(other, texts, done)
    text = IMPORT.sub(lambda found: f"const {found[1] or found[2]} = {found[3]}_js;", text)
    names = [found[1] for found in EXPORT.findall(text)]
    text = EXPORT.sub(r"\1 \2", text)
    assert not re.search(r"^(import|export)\b", text, re.M), f"{name}.js: only plain ones"
    return before + [f"const {name}_js = (() => {{\n{text}\n"
                     f"return {{ {', '.join(names)} }};\n}})();\n"]


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(texts):
    """The one file, the policy that lets it run and nothing else, and what stands in it."""
    done = set()
    style, script = texts["style.css"], '"use strict";\n' + "".join(module("app", texts, done))
    for text, end in ((style, "</style"), (script, "</script")):
        assert end not in text.lower(), f"{end} ends it too early"
    html = texts["index.html"]
    for mark, tag, text in (("<!-- style.css -->", "style", style),
                            ("<!-- app.js -->", "script", script)):
        assert html.count(mark) == 1, mark
        html = html.replace(mark, f"<{tag}>{text}</{tag}>")
    policy = (f"default-src 'none'; script-src 'self' 'sha256-{digest(script)}'; "
              f"style-src 'self' 'sha256-{digest(style)}'; img-src 'self'; connect-src 'self'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    return html, policy, {"style.css", *(f"{name}.js" for name in done)}


def array(number, data):
    lines = [f"static const unsigned char bytes_{number}[] = {{"]
    for at in range(0, len(data), 20):
        lines.append("\t" + " ".join(f"{value:d}," for value in data[at:at + 20]))
    return lines + ["\t0,", "};", ""]


def main():
    out_path, *paths = sys.argv[1:]
    files = {}
    for path in paths:
        with open(path, "rb") as file:
            files[os.path.basename(path)] = file.read()
    html, policy, inline = page({name: data.decode() for name, data in files.items()})
    files["index.html"] = html.encode()
    assert files["index.html"].count(FIRST) == 1, FIRST
    lines = ["/* Written by embed.py from the files of the page. */",
             '#include "scheduler/dashboard/dashboard_files.h"', ""]
    rows = []
    for number, (name, data) in enumerate(files.items()):
        if name in inline:
            continue
        lines += array(number, data)
        rows.append(f'\t{{ "{name}", "{TYPES[os.path.splitext(name)[1]]}",\n'
                    f"\t  {{ (const char *)bytes_{number}, {len(data)} }} }},")
    lines += ["const struct dashboard_file dashboard_files[] = {", *rows, "};",
              f"const size_t dashboard_files_count = {len(rows)};",
              f"const size_t dashboard_first_at = {files['index.html'].index(FIRST)};",
              f'const char dashboard_policy[] = "{policy}";']
    with open(out_path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
