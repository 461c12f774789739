#!/usr/bin/env python3
"""Writes files as one C table of bytes.

usage: embed.py OUT.c FILE...
"""
import os
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def array(number, data):
    lines = [f"static const unsigned char bytes_{number}[] = {{"]
    for at in range(0, len(data), 20):
        lines.append("\t" + " ".join(f"{value:d}," for value in data[at:at + 20]))
    return lines + ["\t0,", "};", ""]


def main():
    out_path, *paths = sys.argv[1:]
    lines = ["/* Written by embed.py from the files of the page. */",
             '#include "scheduler/dashboard/dashboard_files.h"', ""]
    rows = []
    for number, path in enumerate(paths):
        with open(path, "rb") as file:
            data = file.read()
        name = os.path.basename(path)
        lines += array(number, data)
        rows.append(f'\t{{ "{name}", "{TYPES[os.path.splitext(name)[1]]}",\n'
                    f"\t  {{ (const char *)bytes_{number}, {len(data)} }} }},")
    lines += ["const struct dashboard_file dashboard_files[] = {", *rows, "};",
              f"const size_t dashboard_files_count = {len(paths)};"]
    with open(out_path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
