"""logs.py - the ends of all logs in a folder, for whoever reads of a failed test."""

from pathlib import Path

BYTES = 3000
LOGS = 12


def ends(folder):
    """(path, text) of each log, the one written last at the end."""
    paths = [path for pattern in ("*.log", "log") for path in Path(folder).rglob(pattern)]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime)[-LOGS:]:
        text = path.read_bytes()[-BYTES:].decode(errors="replace")
        if text.strip():
            yield path, text


def print_ends(folder):
    for path, text in ends(folder):
        print(f"---- the end of {path}:\n{text}")
