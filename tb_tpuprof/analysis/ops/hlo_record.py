"""Operations of compiled programs as columns: the record, and what all modules that create it need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.planes import MODULE_LINES, line_events
from tb_tpuprof.analysis.events.stat_rows import distinct_codes
from tb_tpuprof.analysis.events.waiting import is_waiting
from tb_tpuprof.analysis.hlo.cost import ELEMENTWISE, TRANSCENDENTAL
from tb_tpuprof.analysis.hlo.work import ProgramCosts, Work
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


TEXTS = ("name", "category", "provenance", "source", "twin", "core")
OTHERS = ("thread_ps", "program", "energy_j", "instruction", "metadata", "host")
SUMS = ("n_occurrences", "time_ps", "self_ps", "normalized_ps", "stall_ps", "work_ps")
# Operations that run others: their work is the work of those, and must not count twice.
CONTAINERS = ("call", "conditional", "while", "megacore fusion")
TRANSFERS = ("infeed", "outfeed")
_FUSIONS = {
    "kLoop": "loop fusion",
    "kInput": "input fusion",
    "kOutput": "output fusion",
    "kCustom": "custom fusion",
}
_FORMATTING = frozenset(("copy", "transpose", "reshape", "dynamic-reshape"))
_ELEMENTWISE = ELEMENTWISE | TRANSCENDENTAL
_RUN_OF_A_PROGRAM = re.compile(r"[^()]+\((\d{1,20})\)")
_UNSIGNED = 0xFFFFFFFFFFFFFFFF
_NO_INTS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Words:
    """A column of texts: row i is `strings[codes[i]]`."""

    codes: Int64s
    strings: tuple[str, ...]

    def __getitem__(self, row: int) -> str:
        return self.strings[int(self.codes[row])]

    def __len__(self) -> int:
        return len(self.codes)

    def taken(self, rows: Rows) -> Words:
        """A selection of the rows."""
        return Words(self.codes[rows], self.strings)

    def used(self) -> Words:
        """The same rows with only the strings they use, in the same order."""
        used_codes, codes = np.unique(self.codes, return_inverse=True)
        return Words(codes.astype(np.int64), tuple(self.strings[code] for code in used_codes.tolist()))

    def is_in(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Mark the rows whose text is one of `texts`."""
        allowed = frozenset(texts)
        is_allowed = np.array([text in allowed for text in self.strings], np.bool_)
        mask: npt.NDArray[np.bool_] = is_allowed[self.codes] if len(self.strings) else np.zeros(0, np.bool_)
        return mask


def words_of(texts: Sequence[str]) -> Words:
    """A column of the given texts."""
    rows: dict[str, int] = {}
    codes = np.array([rows.setdefault(text, len(rows)) for text in texts], np.int64)
    return Words(codes, tuple(rows))


def words_by_id(ids: Int64s, strings: Strings) -> Words:
    """A column of the texts with the given string ids; -1 is the empty text."""
    distinct, codes = distinct_codes(ids)
    n_none = int(np.count_nonzero(distinct < 0))
    return Words(codes.astype(np.int64), ("",) * n_none + tuple(strings.take(distinct[n_none:])))


@dataclass(frozen=True)
class HloOps:
    """One row per (program, operation) of one host or several. Times in ps, summed over occurrences, devices
    and hosts.

    `time_ps` with, `self_ps` without nested operations; `normalized_ps` at the device's rated clock. `work`
    is that of all occurrences, done in `work_ps`: this is `time_ps`, except for asynchronous operations,
    where it is 0 for a start and the time from start to done for a done (0 if unknown). `twin`: the name of
    the operation that this is a duplicate of, else empty. `instruction`: its row in the program's module,
    `metadata`: its row in the trace's, both in the trace of host `host` (-1: none).

    `thread_ps`: for XLA:CPU, the time that all threads together worked on the operation, -1 if unknown.

    `span_ps`: profiled time of all `n_devices` devices together. `programs`: titles by id. `kind`: TPU, GPU
    or CPU. `has_hlo`: False for PyTorch's operators, which no compiler describes.
    """

    program: Int64s
    name: Words
    category: Words
    provenance: Words
    source: Words
    twin: Words
    core: Words
    n_occurrences: Int64s
    time_ps: Int64s
    self_ps: Int64s
    normalized_ps: Int64s
    stall_ps: Int64s
    thread_ps: Int64s
    work_ps: Int64s
    energy_j: Floats
    work: Work
    instruction: Int64s
    metadata: Int64s
    host: Int64s
    span_ps: int
    n_devices: int
    kind: str
    programs: dict[int, str] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)
    has_hlo: bool = True

    def __len__(self) -> int:
        return len(self.program)

    @cached_property
    def busy_ps(self) -> int:
        """Self time of all operations except those of SparseCores, which run concurrently with the others."""
        return int(self.self_ps[~self.is_sparse].sum())

    @property
    def idle_ps(self) -> int:
        """The span without the operations' self time; never negative, though streams and threads run
        concurrently.
        """
        return max(0, self.span_ps - self.busy_ps)

    @property
    def total_ps(self) -> int:
        """The time that shares are of: the span, or the operations' own time where they fill it more than
        once.

        On CPUs it is always the operations' own time: how long a processor could have worked on them is
        unknown.
        """
        return self.busy_ps if self.kind == "CPU" else max(self.span_ps, self.busy_ps)

    @cached_property
    def is_sparse(self) -> npt.NDArray[np.bool_]:
        """Operations of SparseCores."""
        return self.core.is_in(("SparseCore",))

    @property
    def is_container(self) -> npt.NDArray[np.bool_]:
        """Operations that do nothing but run others."""
        return self.category.is_in(CONTAINERS)

    @cached_property
    def is_waiting(self) -> npt.NDArray[np.bool_]:
        """Operations in which the device only waits: for an asynchronous operation, or for the host to
        provide or take data.
        """
        waits = [text for text in self.category.strings if text in TRANSFERS or is_waiting(text)]
        return self.category.is_in(waits)

    @cached_property
    def by_self_time(self) -> Rows:
        """Rows by self time, longest first, then by name."""
        order: Rows = np.argsort(-self.self_ps, kind="stable")
        time = self.self_ps[order]
        starts = (
            np.flatnonzero(np.append(True, time[1:] != time[:-1])) if len(order) else np.empty(0, np.intp)
        )
        sizes = np.diff(np.append(starts, len(order)))
        texts, codes = self.name.strings, self.name.codes
        for start, n in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
            tied = order[start : start + n]
            names = [texts[code] for code in codes[tied].tolist()]
            order[start : start + n] = tied[sorted(range(n), key=names.__getitem__)]
        return order

    def find(self, program: int, name: str) -> int:
        """The row of an operation, -1 where there is none."""
        if name not in self.name.strings:
            return -1
        code = self.name.strings.index(name)
        rows = np.flatnonzero((self.name.codes == code) & (self.program == program))
        return int(rows[0]) if len(rows) else -1

    def taken(self, rows: Rows) -> HloOps:
        """A selection of the operations."""
        columns: dict[str, Any] = {key: getattr(self, key).taken(rows) for key in (*TEXTS, "work")}
        columns |= {key: getattr(self, key)[rows] for key in (*SUMS, *OTHERS)}
        return replace(self, **columns)

    def kept(self, mask: npt.NDArray[np.bool_]) -> HloOps:
        """The operations that `mask` marks, in their order; `self` if it marks all."""
        return self if mask.all() else self.taken(np.flatnonzero(mask))


def instruction_category(module: HloModule, row: int) -> str:
    """The category of an instruction, with XLA's names: the kind of a fusion, `data formatting`, `non-fusion
    elementwise`, else the opcode.
    """
    opcode = module.opcode(row)
    if opcode == "fusion":
        return _FUSIONS.get(module.text("fusion_kind", row), "fusion")
    if opcode in _FORMATTING:
        return "data formatting"
    return "non-fusion elementwise" if opcode in _ELEMENTWISE else opcode


def program_titles(trace: Trace, costs: ProgramCosts, programs: Sequence[int]) -> dict[int, str]:
    """Titles of programs: `name(id)`, from the HLO, else from the runs on the devices' lines of programs;
    without a name the id only.
    """
    titles = {}
    for number in programs:
        program = trace.programs.get(number)
        module = None if program else costs.module(number)
        unsigned = number & _UNSIGNED
        if program:
            titles[number] = program.title
        elif module:
            titles[number] = f"{module.info.name}({unsigned})"
        else:
            titles[number] = _titles_of_runs(trace).get(unsigned, str(unsigned))
    return titles


@once
def _titles_of_runs(trace: Trace) -> dict[int, str]:
    """Titles of the programs on the lines of programs, by id: `jit_step(56)` of 56."""
    titles: dict[int, str] = {}
    for line in range(len(trace.lines)):
        if trace.line_names[line] not in MODULE_LINES:
            continue
        for row in np.unique(trace.events["metadata"][line_events(trace, line)]).tolist():
            name = trace.strings.get(int(trace.event_names[row]))
            match = _RUN_OF_A_PROGRAM.fullmatch(name)
            if match:
                titles.setdefault(int(match[1]) & _UNSIGNED, name)
    return titles
