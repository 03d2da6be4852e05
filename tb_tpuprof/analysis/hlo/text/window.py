"""Any range of lines of a module's text, without printing the lines before it: the number of lines of each
computation is known in advance.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.text.printer import (
    LONG,
    TextOptions,
    computation_text,
    instruction_text,
    preamble,
    printed_computations,
)
from tb_tpuprof.trace.hlo import HloModule


@dataclass(frozen=True, eq=False)
class TextIndex:
    """`computations` in print order; the first line of computation i is `first[i]`, and `first[-1]` is the
    number of lines.
    """

    module: HloModule
    options: TextOptions
    head: tuple[str, ...]
    computations: tuple[int, ...]
    first: npt.NDArray[np.int64]

    @property
    def n_lines(self) -> int:
        """Number of lines of the whole text."""
        return int(self.first[-1])

    def lines(self, start: int, count: int) -> list[str]:
        """At most `count` lines from line `start` (0 is the first)."""
        result = list(self.head[start : start + count])
        i = max(0, int(np.searchsorted(self.first, max(start, len(self.head)), "right")) - 1)
        while len(result) < count and i < len(self.computations):
            skip = max(0, start + len(result) - int(self.first[i]))
            result += self._of_computation(i, skip, count - len(result))
            i += 1
        return result

    def line_of(self, row: int) -> int:
        """The line of an instruction, -1 if it has no line of its own."""
        computation = int(self.module.instructions["computation"][row])
        if computation not in self.computations:
            return -1
        rows = self._rows(computation)
        position = np.flatnonzero(rows == row)
        return (
            int(self.first[self.computations.index(computation)]) + 1 + int(position[0])
            if len(position)
            else -1
        )

    def _rows(self, computation: int) -> npt.NDArray[np.int64]:
        rows = self.module.schedule.get(computation)
        return np.array(self.module.rows_of(computation) if rows is None else rows, np.int64)

    def _of_computation(self, i: int, skip: int, count: int) -> list[str]:
        """Lines skip … skip + count of a computation and the empty line after it."""
        computation = self.computations[i]
        rows = self._rows(computation)
        head = [next(computation_text(self.module, computation, self.options))][skip:]
        begin = max(0, skip - 1)
        body = [
            f"  {instruction_text(self.module, row, self.options)}"
            for row in rows[begin : begin + count].tolist()
        ]
        tail = []
        if skip - 1 + count > len(rows):
            thread = self.module.strings.get(int(self.module.computations["execution_thread"][computation]))
            tail = ["}" + (f', execution_thread="{thread}"' if thread and thread != "main" else ""), ""][
                max(0, skip - 1 - len(rows)) :
            ]
        return list(itertools.chain(head, body, tail))[:count]


def text_index(module: HloModule, options: TextOptions = LONG) -> TextIndex:
    """The index of a module's lines; kept as long as the module."""
    return module.memo.get(_Indexed(options), module)


@dataclass(frozen=True)
class _Indexed:
    """Indexes a module's lines; equal options are the same function to a memo."""

    options: TextOptions

    def __call__(self, module: HloModule) -> TextIndex:
        head = tuple(preamble(module, self.options))
        computations = tuple(printed_computations(module))
        schedule = module.schedule
        counts = [len(schedule.get(c, ())) if c in schedule else len(module.rows_of(c)) for c in computations]
        first = np.cumsum([len(head), *(n + 3 for n in counts)])
        return TextIndex(module, self.options, head, computations, first)
