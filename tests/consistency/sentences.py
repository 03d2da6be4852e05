"""`python -m tests.consistency.sentences`: the overview's sentence of every run of the demo and of
TPUPROF_CORPUS, a line each.

The lines of two versions beside one another show which answers have changed.
"""

from __future__ import annotations

import sys

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.consistency.runs import corpus_runs
from tests.golden_files import demo_runs


def sentence(path: str) -> str:
    """Level and sentence, or why there is none."""
    try:
        verdict = get_tool("overview_page").run(Session(path, cache=False), None, {}).verdict
    except ProfilerError as error:
        return f"(refused: {type(error).__name__})"
    return f"{verdict.level}: {verdict.text}" if verdict else "(none)"


def main() -> None:
    """Print `run<tab>level: sentence` for each run."""
    runs = {f"demo/{name}": str(path) for name, path in demo_runs().items()} | {
        f"corpus/{n}": path for n, path in corpus_runs().items()
    }
    for name, path in runs.items():
        sys.stdout.write(f"{name}\t{sentence(path)}\n")


if __name__ == "__main__":
    main()
