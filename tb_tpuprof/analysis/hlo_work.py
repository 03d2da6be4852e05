"""Work of HLO operations per occurrence: what the compiler wrote into the trace (TPU), else what the cost model gives (GPU, CPU)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo_cost import HloCosts, module_costs
from tb_tpuprof.analysis.memory_accesses import SPACES, add_bytes
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """Per operation: FLOPs, those that the model asks for, bytes in all memories together and in each of SPACES (float64[5, n]).

    `is_known` False: nobody tells (an opaque custom call, a program without HLO in the trace); its numbers are 0.
    """

    flops: Floats
    model_flops: Floats
    n_bytes: Floats
    space_bytes: Floats
    is_known: npt.NDArray[np.bool_]

    def times(self, n: Int64s) -> Work:
        """The same of so many occurrences."""
        return Work(self.flops * n, self.model_flops * n, self.n_bytes * n, self.space_bytes * n, self.is_known)

    def taken(self, rows: npt.NDArray[np.intp]) -> Work:
        """The work of some of the operations."""
        return Work(self.flops[rows], self.model_flops[rows], self.n_bytes[rows], self.space_bytes[:, rows], self.is_known[rows])

    def kept(self, mask: npt.NDArray[np.bool_]) -> Work:
        """The work of the operations that are marked, in their order."""
        return self if mask.all() else self.taken(np.flatnonzero(mask))


def join_work(parts: Iterable[Work]) -> Work:
    """Operations one after another."""
    given = list(parts)
    columns = [np.concatenate([getattr(part, key) for part in given]) for key in ("flops", "model_flops", "n_bytes", "is_known")]
    return Work(columns[0], columns[1], columns[2], np.concatenate([part.space_bytes for part in given], axis=1), columns[3])


def stated_work(trace: Trace, rows: npt.NDArray[np.intp]) -> Work:
    """Work that the stats of metadata rows state: `flops`, `model_flops` (else flops), `bytes_accessed`, `memory_access_breakdown`.

    Without a breakdown all bytes are HBM's.
    """
    n = len(trace.metadata)
    stats = trace.metadata_stats
    keys = ("flops", "model_flops", "bytes_accessed")
    flops, model_flops, n_bytes = (stats.dense_ints(key, n, 0)[rows].astype(np.float64) for key in keys)
    known = np.zeros(n, np.bool_)
    for key in ("flops", "bytes_accessed"):
        known[stats.ints(key).owner] = True
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
    return Work(flops, np.where(model_flops > 0, model_flops, flops), n_bytes, space, known[rows])


_LOCK = Lock()
_LOCKS: WeakKeyDictionary[HloModule, Lock] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[HloModule, HloCosts] = WeakKeyDictionary()


def _costs_of(module: HloModule) -> HloCosts:
    """What the instructions of a module cost, computed once and kept as long as the module: for a large one it takes seconds."""
    with _LOCK:
        lock = _LOCKS.setdefault(module, Lock())
    with lock:
        if module not in _KNOWN:
            _KNOWN[module] = module_costs(module)
        return _KNOWN[module]


class ProgramCosts:
    """Modules of a trace's programs and what their instructions cost, each looked up once.

    A program whose HLO is not in the trace by its id is looked for by `name`: XLA:CPU counts the ids in its events and those of its
    HLO apart.
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
            rows = instruction[mine]
            flops[mine], n_bytes[mine] = costs.flops[rows], costs.bytes_accessed[rows]
            known[mine] = costs.is_known[rows]
        space = np.zeros((len(SPACES), n))
        space[0] = n_bytes
        return Work(flops, flops.copy(), n_bytes, space, known)
