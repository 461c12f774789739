"""cores.py - who measures keeps what is measured apart."""

import os
import shutil


def on_core(number, command):
    """Pinned, where there is more than one core and something to pin with."""
    if os.cpu_count() > 1 and shutil.which("taskset"):
        return ["taskset", "-c", str(number), *command]
    return command
