"""mutant_list.py - lists of mutants: code that is broken on purpose, and who must notice.

    == name
    file
    by: test            who has to fail; what it means, the reader's file says
    seeds: 27 103       of the simulator, tried before all others
    - text that stands there exactly once
    + text in its place

Everything else than these lines, empty ones and `#` is the name of the file.
"""


class Mutant:
    def __init__(self, name):
        self.name = name
        self.file, self.by, self.seeds = None, None, []
        self.old, self.new = [], []

    def apply(self, text):
        """The text with this mutant, and None; or None, and what is wrong with it."""
        old, new = "\n".join(self.old), "\n".join(self.new)
        times = text.count(old)
        if times != 1:
            return None, f"its text stands {times} times in {self.file}"
        return text.replace(old, new), None


def read(path):
    mutants = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("== "):
                mutants.append(Mutant(line[3:]))
            elif not line or line.startswith("#"):
                continue
            elif line.startswith("by: "):
                mutants[-1].by = line[4:]
            elif line.startswith("seeds: "):
                mutants[-1].seeds = [int(seed) for seed in line[7:].split()]
            elif line[:2].strip() == "-":
                mutants[-1].old.append(line[2:])
            elif line[:2].strip() == "+":
                mutants[-1].new.append(line[2:])
            else:
                mutants[-1].file = line
    return mutants
