#!/usr/bin/env python3
"""Joins the Lua files to one library, and writes it as Lua text and as a C array.

usage: embed.py VERSION OUT.lua OUT.c FILE.lua...
"""
import hashlib
import sys


def join_texts(texts, version):
    text = "".join(text + "\n" for text in texts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return text.replace("@VERSION@", f"{version}-{digest}"), f"{version}-{digest}"


def join(files, version):
    texts = []
    for name in files:
        with open(name, encoding="utf-8") as source:
            texts.append(source.read())
    return join_texts(texts, version)


def c_text(library, version):
    lines = ["/* Written by embed.py from the Lua files of this folder. */",
             '#include "scheduler/functions/functions_library.h"', "",
             f'const char functions_library_version[] = "{version}";', "",
             "const char functions_library[] = {"]
    data = library.encode()
    for at in range(0, len(data), 20):
        lines.append("\t" + " ".join(f"{value:d}," for value in data[at:at + 20]))
    lines += ["\t0,", "};", "",
              "const size_t functions_library_size = sizeof(functions_library) - 1;"]
    return "\n".join(lines) + "\n"


def main():
    version, out_lua, out_c, *files = sys.argv[1:]
    library, full = join(files, version)
    with open(out_lua, "w", encoding="utf-8") as out:
        out.write(library)
    with open(out_c, "w", encoding="ascii") as out:
        # Bytes above 127 would narrow a signed char: the library keeps them in comments.
        out.write(c_text(library.encode("ascii", "replace").decode(), full))


if __name__ == "__main__":
    main()
