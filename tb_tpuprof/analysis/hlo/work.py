"""Work of HLO operations per occurrence: what the compiler wrote into the trace (TPU), else what the cost
model gives (GPU, CPU).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.cost import HloCosts, module_costs
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES, add_bytes
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
CUSTOM_CALL = "custom-call"
COLUMNS = ("flops", "model_flops", "n_bytes", "space_bytes", "knows_flops", "knows_bytes")
_MISSING = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Work:
    """Per operation: FLOPs, those that the model asks for, bytes in all memories together and in each of
    SPACES (float64[5, n]).

    `knows_flops` and `knows_bytes` are False where neither trace nor HLO states them (an opaque custom call,
    a program without HLO in the trace); such numbers are 0, so that they add nothing to a sum.
    """

    flops: Floats
    model_flops: Floats
    n_bytes: Floats
    space_bytes: Floats
    knows_flops: Bools
    knows_bytes: Bools

    @property
    def is_known(self) -> Bools:
        """Operations of which FLOPs or bytes are known."""
        known: Bools = self.knows_flops | self.knows_bytes
        return known

    def times(self, n: Int64s | Floats | float) -> Work:
        """The same of so many occurrences."""
        amounts = (self.flops * n, self.model_flops * n, self.n_bytes * n, self.space_bytes * n)
        return Work(*amounts, self.knows_flops, self.knows_bytes)

    def taken(self, rows: npt.NDArray[np.intp]) -> Work:
        """The work of some of the operations."""
        amounts = (self.flops[rows], self.model_flops[rows], self.n_bytes[rows], self.space_bytes[:, rows])
        return Work(*amounts, self.knows_flops[rows], self.knows_bytes[rows])

    def kept(self, mask: npt.NDArray[np.bool_]) -> Work:
        """The work of the operations that are marked, in their order."""
        return self if mask.all() else self.taken(np.flatnonzero(mask))


def join_work(parts: Iterable[Work]) -> Work:
    """Operations one after another."""
    given = list(parts)
    joined: dict[str, Any] = {
        key: np.concatenate([getattr(part, key) for part in given], axis=-1) for key in COLUMNS
    }
    return Work(**joined)


def no_work(n: int) -> Work:
    """So many operations of which nothing is known."""
    flops, model_flops, n_bytes = np.zeros((3, n))
    return Work(
        flops, model_flops, n_bytes, np.zeros((len(SPACES), n)), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    )


def summed_work(work: Work, key: npt.NDArray[np.integer], n: int, counted: Bools | None = None) -> Work:
    """Work by key: sums of what is known, which is known where any of it is. `counted`: the operations that
    count, else all.
    """
    weight = np.ones(len(work.flops)) if counted is None else counted.astype(np.float64)
    flops, bytes_weight = weight * work.knows_flops, weight * work.knows_bytes

    def total(values: Floats, factor: Floats) -> Floats:
        found: Floats = np.bincount(key, values * factor, n).astype(np.float64)
        return found

    return Work(
        total(work.flops, flops), total(work.model_flops, flops), total(work.n_bytes, bytes_weight),
        np.array([total(row, bytes_weight) for row in work.space_bytes]).reshape(len(SPACES), n),
        total(np.ones(len(weight)), flops) > 0, total(np.ones(len(weight)), bytes_weight) > 0,
    )  # fmt: skip


def stated_work(trace: Trace, rows: npt.NDArray[np.intp]) -> Work:
    """Work per occurrence that the stats of metadata rows state: `flops`, `model_flops`, `bytes_accessed`,
    `memory_access_breakdown`.

    FLOPs and model FLOPs stand in for one another where one of them is missing; where both are, FLOPs are
    unknown. Without a breakdown all bytes are HBM's. Of a custom call 0 is what the compiler writes for want
    of knowledge: it is unknown.
    """
    n = len(trace.metadata)
    stats = trace.metadata_stats
    stated = {
        key: stats.dense_ints(key, n, _MISSING)[rows] for key in ("flops", "model_flops", "bytes_accessed")
    }
    has = {key: values != _MISSING for key, values in stated.items()}
    flops, model_flops, n_bytes = (
        np.where(has[key], values, 0).astype(np.float64) for key, values in stated.items()
    )
    flops = np.where(has["flops"], flops, model_flops)
    model_flops = np.where(model_flops > 0, model_flops, flops)
    is_opaque = _are_opaque(trace, rows)
    knows_flops = (has["flops"] | has["model_flops"]) & ~(is_opaque & (flops == 0))
    space = np.zeros((len(SPACES), len(rows)))
    space[0] = n_bytes
    at = np.full(n, -1, np.int64)
    at[rows] = np.arange(len(rows))
    owner, position, size = stats.places("memory_access_breakdown")
    column = at[owner]
    if len(column) and column.min() < 0:
        used = np.flatnonzero(column >= 0)
        column, position, size = column[used], position[used], size[used]
    space[:, column] = 0
    add_bytes(trace, position, size, column, space)
    knows_bytes = has["bytes_accessed"]
    knows_bytes[column] = True
    return Work(flops, model_flops, n_bytes, space, knows_flops, knows_bytes & ~(is_opaque & (n_bytes == 0)))


def _are_opaque(trace: Trace, rows: npt.NDArray[np.intp]) -> Bools:
    """Which rows of metadata are custom calls, into which the compiler does not look."""
    found = trace.strings.find(CUSTOM_CALL)
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))[rows]
    return np.asarray((category == found) & (found >= 0), np.bool_)


_LOCK = Lock()
_LOCKS: WeakKeyDictionary[HloModule, Lock] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[HloModule, HloCosts] = WeakKeyDictionary()


def _costs_of(module: HloModule) -> HloCosts:
    """What the instructions of a module cost, computed once and kept as long as the module: for a large one
    it takes seconds.
    """
    with _LOCK:
        lock = _LOCKS.setdefault(module, Lock())
    with lock:
        if module not in _KNOWN:
            _KNOWN[module] = module_costs(module)
        return _KNOWN[module]


class ProgramCosts:
    """Modules of a trace's programs and what their instructions cost, each looked up once.

    A program whose HLO is not in the trace by its id is looked for by `name`: XLA:CPU counts the ids in its
    events and those of its HLO apart.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._modules: dict[int, HloModule | None] = {}
        self._costs: dict[int, HloCosts] = {}
        self.unreadable: dict[int, str] = {}

    def module(self, program: int, name: str = "") -> HloModule | None:
        """The program's module, None where the trace has none that can be read."""
        if program not in self._modules:
            programs = self.trace.programs
            found = programs.get(program) or (programs.find(name) if name else None)
            try:
                self._modules[program] = programs.module(found) if found else None
            except ProfilerError as error:
                self._modules[program] = None
                self.unreadable[program] = error.message
        return self._modules[program]

    def costs(self, program: int) -> HloCosts | None:
        """What its instructions cost."""
        module = self.module(program)
        if module is None:
            return None
        if program not in self._costs:
            self._costs[program] = _costs_of(module)
        return self._costs[program]

    def work(self, program: Int64s, instruction: Int64s) -> Work:
        """Work of instructions by the cost model; all bytes are those of the main memory."""
        n = len(program)
        flops, n_bytes, known = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
        for number in np.unique(program).tolist():
            costs = self.costs(number)
            if costs is None:
                continue
            mine = np.flatnonzero((program == number) & (instruction >= 0))
            mine = mine[costs.is_known[instruction[mine]]]
            rows = instruction[mine]
            flops[mine], n_bytes[mine], known[mine] = costs.flops[rows], costs.bytes_accessed[rows], True
        space = np.zeros((len(SPACES), n))
        space[0] = n_bytes
        return Work(flops, flops.copy(), n_bytes, space, known, known.copy())
