"""`python -m tests.consistency [RUN …]`: every contradiction of every run, those with a reason too. RUN is a
pattern of a run's name.
"""

from __future__ import annotations

import fnmatch
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tb_tpuprof.errors import ProfilerError
from tests.consistency.checks import violations
from tests.consistency.runs import all_runs, payloads


def main(patterns: list[str]) -> int:
    """Print a line per contradiction and how many there are of each rule and page; 1 if there is any."""
    counted: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, path in all_runs(Path(folder)).items():
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns or ["*"]):
                continue
            try:
                found = violations(payloads(path))
            except ProfilerError as error:
                sys.stdout.write(f"{name}: refused: {error}\n")
                continue
            for one in found:
                sys.stdout.write(f"{name}: {one}\n")
                counted[one.rule, one.pages] += 1
    for (rule, page), n in sorted(counted.items()):
        sys.stdout.write(f"{n:6,}  {rule}: {page}\n")
    return 1 if counted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
