"""Work of HLO operations per occurrence: stated by the compiler in the trace (TPU), else from the cost model
(GPU, CPU).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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


def _no_excess() -> Floats:
    return np.zeros((1 + len(SPACES), 0))


@dataclass(frozen=True)
class Work:
    """Per operation: FLOPs, model FLOPs, bytes in all memories and in each of SPACES (float64[5, n]).

    Model FLOPs are operations of any precision. A TPU's compiler divides the FLOPs on 8-bit operands by 2 and
    on 4-bit operands by 4, so that they compare with the peak at 16 bits (`GetDeviceFlops` in xprof's
    `hlo_cost_analysis_wrapper.h`).

    `knows_flops` and `knows_bytes` are False if neither trace nor HLO states them (an opaque custom call, a
    program without HLO in the trace); the numbers are then 0, so that they add nothing to a sum.
    `scaled_flops`: see `roof_flops`; empty if no operands have another precision than the peak's.
    `excess` [1 + len(SPACES), n]: of FLOPs and of bytes in each memory, the counted amount ÷ the most that
    the peak allows in the operation's time, where that is impossible, else 0; empty if all of it is possible.
    """

    flops: Floats
    model_flops: Floats
    n_bytes: Floats
    space_bytes: Floats
    knows_flops: Bools
    knows_bytes: Bools
    scaled_flops: Floats = field(default_factory=lambda: np.empty(0))
    excess: Floats = field(default_factory=_no_excess)

    @property
    def is_miscounted(self) -> Bools:
        """Operations of which more was counted than the device can do in their time."""
        if not self.excess.size:
            return np.zeros(len(self.flops), np.bool_)
        return np.asarray((self.excess > 0).any(axis=0), np.bool_)

    @property
    def roof_flops(self) -> Floats:
        """FLOPs × the device's peak rate ÷ its peak rate at the precision of the operands, where that is
        known: as a share of the peak's FLOPs they are the share of the roof.
        """
        return self.scaled_flops if len(self.scaled_flops) else self.flops

    @property
    def is_known(self) -> Bools:
        """Operations with known FLOPs or bytes."""
        result: Bools = self.knows_flops | self.knows_bytes
        return result

    def times(self, n: Int64s | Floats | float) -> Work:
        """The work of n occurrences of each operation."""
        amounts = (self.flops * n, self.model_flops * n, self.n_bytes * n, self.space_bytes * n)
        scaled = self.scaled_flops * n if len(self.scaled_flops) else self.scaled_flops
        return Work(*amounts, self.knows_flops, self.knows_bytes, scaled, self.excess)

    def taken(self, rows: npt.NDArray[np.intp]) -> Work:
        """The work of some of the operations."""
        amounts = (self.flops[rows], self.model_flops[rows], self.n_bytes[rows], self.space_bytes[:, rows])
        scaled = self.scaled_flops[rows] if len(self.scaled_flops) else self.scaled_flops
        excess = self.excess[:, rows] if self.excess.size else self.excess
        return Work(*amounts, self.knows_flops[rows], self.knows_bytes[rows], scaled, excess)

    def kept(self, mask: npt.NDArray[np.bool_]) -> Work:
        """The work of the operations in the mask."""
        return self if mask.all() else self.taken(np.flatnonzero(mask))

    def without(self, excess: Floats) -> Work:
        """The same work; the FLOPs, or the bytes, of the operations with an excess of them are unknown."""
        knows_flops = self.knows_flops & (excess[0] == 0)
        knows_bytes = self.knows_bytes & (excess[1:] == 0).all(axis=0)
        flops, model_flops, scaled = (
            np.where(knows_flops, values, 0.0) if len(values) else values
            for values in (self.flops, self.model_flops, self.scaled_flops)
        )
        n_bytes, space = (np.where(knows_bytes, values, 0.0) for values in (self.n_bytes, self.space_bytes))
        return Work(flops, model_flops, n_bytes, space, knows_flops, knows_bytes, scaled, excess)


def join_work(parts: Iterable[Work]) -> Work:
    """Concatenate the operations of several parts."""
    given = list(parts)
    joined: dict[str, Any] = {
        key: np.concatenate([getattr(part, key) for part in given], axis=-1) for key in COLUMNS
    }
    if any(len(part.scaled_flops) for part in given):
        joined["scaled_flops"] = np.concatenate([part.roof_flops for part in given])
    if any(part.excess.size for part in given):
        none = [np.zeros((1 + len(SPACES), len(part.flops))) for part in given]
        parts_and_none = zip(given, none, strict=True)
        joined["excess"] = np.concatenate(
            [p.excess if p.excess.size else zero for p, zero in parts_and_none], 1
        )
    return Work(**joined)


def no_work(n: int) -> Work:
    """n operations with unknown work."""
    flops, model_flops, n_bytes = np.zeros((3, n))
    return Work(
        flops, model_flops, n_bytes, np.zeros((len(SPACES), n)), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    )


def summed_work(work: Work, key: npt.NDArray[np.integer], n: int, counted: Bools | None = None) -> Work:
    """Sum of the known work by key; a sum is known if any of its operations is. `counted`: the operations to
    include, else all. Sums leave out an operation's impossible amounts, so they have no excess.
    """
    weight = np.ones(len(work.flops)) if counted is None else counted.astype(np.float64)
    flops_weight, bytes_weight = weight * work.knows_flops, weight * work.knows_bytes

    def total(values: Floats, factor: Floats) -> Floats:
        result: Floats = np.bincount(key, values * factor, n).astype(np.float64)
        return result

    return Work(
        total(work.flops, flops_weight), total(work.model_flops, flops_weight),
        total(work.n_bytes, bytes_weight),
        np.array([total(row, bytes_weight) for row in work.space_bytes]).reshape(len(SPACES), n),
        total(np.ones(len(weight)), flops_weight) > 0, total(np.ones(len(weight)), bytes_weight) > 0,
        total(work.scaled_flops, flops_weight) if len(work.scaled_flops) else work.scaled_flops,
    )  # fmt: skip


def stated_work(trace: Trace, rows: npt.NDArray[np.intp]) -> Work:
    """Work per occurrence from the stats of metadata rows: `flops`, `model_flops`, `bytes_accessed`,
    `memory_access_breakdown`.

    If only one of FLOPs and model FLOPs is stated, it is used for both; if neither is, FLOPs are unknown.
    Without a breakdown all bytes count as HBM. For a custom call the compiler writes 0 when it does not know:
    that is unknown, too.
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
    column_of_row = np.full(n, -1, np.int64)
    column_of_row[rows] = np.arange(len(rows))
    owner, position, size = stats.places("memory_access_breakdown")
    column = column_of_row[owner]
    if len(column) and column.min() < 0:
        used = np.flatnonzero(column >= 0)
        column, position, size = column[used], position[used], size[used]
    space[:, column] = 0
    add_bytes(trace, position, size, column, space)
    knows_bytes = has["bytes_accessed"]
    knows_bytes[column] = True
    return Work(flops, model_flops, n_bytes, space, knows_flops, knows_bytes & ~(is_opaque & (n_bytes == 0)))


def _are_opaque(trace: Trace, rows: npt.NDArray[np.intp]) -> Bools:
    """Which rows of metadata are custom calls, whose work the compiler does not know."""
    custom_call_id = trace.strings.find(CUSTOM_CALL)
    category = trace.metadata_stats.dense_texts("hlo_category", len(trace.metadata))[rows]
    return np.asarray((category == custom_call_id) & (custom_call_id >= 0), np.bool_)


class ProgramCosts:
    """Modules of a trace's programs and the costs of their instructions, each computed once.

    If the trace has no HLO with a program's id, it is searched by `name`: XLA:CPU numbers programs
    differently in its events and in its HLO.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._modules: dict[int, HloModule | None] = {}
        self._costs: dict[int, HloCosts] = {}
        self.unreadable: dict[int, str] = {}

    def module(self, program: int, name: str = "") -> HloModule | None:
        """The program's module, None if the trace has no readable HLO for it (`unreadable` has
        the reason).
        """
        if program not in self._modules:
            programs = self.trace.programs
            entry = programs.get(program) or (programs.find(name) if name else None)
            try:
                self._modules[program] = programs.module(entry) if entry else None
            except ProfilerError as error:
                self._modules[program] = None
                self.unreadable[program] = error.message
        return self._modules[program]

    def costs(self, program: int) -> HloCosts | None:
        """Costs of the program's instructions, None without HLO."""
        module = self.module(program)
        if module is None:
            return None
        if program not in self._costs:
            self._costs[program] = module.memo.get(module_costs, module)
        return self._costs[program]

    def work(self, program: Int64s, instruction: Int64s) -> Work:
        """Work of instructions by the cost model; all bytes count as main memory."""
        n = len(program)
        flops, n_bytes, is_known = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
        for program_id in np.unique(program).tolist():
            costs = self.costs(program_id)
            if costs is None:
                continue
            priced = np.flatnonzero((program == program_id) & (instruction >= 0))
            priced = priced[costs.is_known[instruction[priced]]]
            rows = instruction[priced]
            flops[priced], n_bytes[priced], is_known[priced] = (
                costs.flops[rows],
                costs.bytes_accessed[rows],
                True,
            )
        space = np.zeros((len(SPACES), n))
        space[0] = n_bytes
        return Work(flops, flops.copy(), n_bytes, space, is_known, is_known.copy())
