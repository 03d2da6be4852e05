"""Results of a run as a table of modules and a list of what survived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.mutate.belonging import GOLDENS
from tests.mutate.mutants import Mutant

KILLED, TIMEOUT, SURVIVED, EQUIVALENT = "killed", "timeout", "survived", "equivalent"
UNTESTED, ERROR = "untested", "error"
_COLUMNS = (KILLED, TIMEOUT, SURVIVED, UNTESTED, ERROR, EQUIVALENT)


@dataclass(frozen=True)
class Result:
    """The result of a mutant. `by`: the test that detected it; `n_tests`: how many were selected."""

    module: str
    mutant: Mutant
    status: str
    by: str = ""
    seconds: float = 0.0
    n_tests: int = 0

    @property
    def is_by_golden(self) -> bool:
        """Whether only a golden detected it."""
        return self.by.startswith(GOLDENS)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "mutant": {**asdict(self.mutant), "key": self.mutant.key}}


def share_killed(results: Sequence[Result]) -> float:
    """Share of the non-equivalent mutants that a test detects; 1 if there are none."""
    count = Counter(result.status for result in results)
    n = len(results) - count[EQUIVALENT]
    return (count[KILLED] + count[TIMEOUT]) / n if n else 1.0


def table(results: Sequence[Result]) -> str:
    """A Markdown table: one row per module, and the total."""
    modules = sorted({result.module for result in results})
    rows = [(module, [one for one in results if one.module == module]) for module in modules]
    lines = [
        f"| module | mutants | {' | '.join(_COLUMNS)} | by a golden only | share killed |",
        f"|---|{'---|' * (len(_COLUMNS) + 3)}",
    ]
    for name, module_results in (*rows, (f"all {len(modules)}", list(results))):
        count = Counter(result.status for result in module_results)
        numbers = " | ".join(str(count[status]) for status in _COLUMNS)
        n_golden = sum(result.is_by_golden for result in module_results)
        share = share_killed(module_results)
        lines.append(f"| {name} | {len(module_results)} | {numbers} | {n_golden} | {share:.0%} |")
    return "\n".join(lines)


def survivors(results: Sequence[Result]) -> str:
    """Each mutant that no test detected, with its place and its key."""
    alive = [result for result in results if result.status in (SURVIVED, UNTESTED, ERROR)]
    ordered = sorted(alive, key=lambda one: (one.module, one.mutant.line))
    return "\n".join(
        f"{one.module}:{one.mutant.line}: {one.status} ({one.n_tests} tests): {one.mutant.key}"
        for one in ordered
    )
