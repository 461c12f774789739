"""cores.py - what others did with the cores while something was measured.

    with Others() as others:
        subprocess.run(...)
    if others.share > 0.2: ...        a fifth of all cores was not ours

Ours is this process and the children it has waited for, and theirs."""

import os
import resource


def ticks():
    """(all, not idle) of all cores, in seconds."""
    with open("/proc/stat", encoding="ascii") as stat:
        values = [int(word) for word in stat.readline().split()[1:9]]
    second = os.sysconf("SC_CLK_TCK")
    return sum(values) / second, (sum(values) - values[3] - values[4]) / second


def ours():
    return sum(usage.ru_utime + usage.ru_stime for usage in (
        resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class Others:
    def __enter__(self):
        self.began = *ticks(), ours()
        return self

    def __exit__(self, *_):
        whole, busy, own = (now - then for now, then in zip((*ticks(), ours()), self.began))
        self.share = max(0, busy - own) / max(whole, 0.01)
