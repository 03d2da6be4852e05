"""An HLO module → the work of each instruction: FLOPs, transcendental operations, bytes read and written.

The rules are XLA's own (HloCostAnalysis), so the numbers equal those in a TPU's trace:

    elementwise     one flop (or one transcendental) per element of the result
    dot, conv, fft  `analysis/hlo/flops.py`
    reduce, map …   the called computation's work × the number of times it is applied
    fusion          flops of its body; bytes that it reads of its parameters and writes as results, without
                    intermediate values
    call, while     the body's work; for a loop × its trip count if the compiler states it, else × 1
    conditional     the maximum over the branches, for each quantity
    custom call     `analysis/hlo/custom_calls.py`

Two intended differences from XLA: loops count all their trips (`loops="once"` counts as XLA does), and known
custom calls count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.bytes import ALWAYS_FREE, Sizes, set_fusion_bytes, special_bytes
from tb_tpuprof.analysis.hlo.custom_calls import custom_call_cost
from tb_tpuprof.analysis.hlo.flops import (
    cholesky_flops,
    convolution_flops,
    dot_flops,
    fft_flops,
    first_array,
    sort_flops,
    triangular_solve_flops,
)
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import DotDims
from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape

Floats = npt.NDArray[np.float64]

TRANSCENDENTAL = frozenset(
    (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan2",
        "atanh",
        "cbrt",
        "cosh",
        "cosine",
        "erf",
        "exponential",
        "exponential-minus-one",
        "log",
        "log-plus-one",
        "logistic",
        "power",
        "rsqrt",
        "sine",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    )
)
ELEMENTWISE = frozenset(
    (
        "abs",
        "add",
        "and",
        "bitcast-convert",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "convert",
        "count-leading-zeros",
        "divide",
        "floor",
        "imag",
        "is-finite",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "real",
        "reduce-precision",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "stochastic-convert",
        "subtract",
        "xor",
    )
)
_TRIPS = re.compile(rb'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d{1,18})"?')


@dataclass(frozen=True)
class HloCosts:
    """Per instruction, for one execution of it. `is_known` is False if a part of it is unknown: a custom
    call, a loop's trip count, a recursive call. `trips` has the stated trip counts by instruction.
    """

    flops: Floats
    transcendentals: Floats
    bytes_accessed: Floats
    is_known: npt.NDArray[np.bool_]
    trips: dict[int, int]
    total_flops: float
    total_transcendentals: float
    total_bytes: float


def module_costs(module: HloModule, loops: str = "trips") -> HloCosts:
    """Work of all instructions and of one run of the program. With loops="once" the body of a loop counts
    once, as in XLA.
    """
    return _Costs(module, loops == "trips").result()


def computation_order(module: HloModule) -> tuple[list[int], set[int]]:
    """Computations, callees before their callers; and the instructions whose call is recursive."""
    calls: dict[int, list[tuple[int, int]]] = {}
    computation = module.instructions["computation"][module.calls.owner].tolist()
    for caller, row, callee in zip(
        computation, module.calls.owner.tolist(), module.calls.values.tolist(), strict=True
    ):
        if callee >= 0:
            calls.setdefault(caller, []).append((row, callee))
    order: list[int] = []
    cyclic: set[int] = set()
    state = bytearray(len(module.computations))  # 0 new, 1 open, 2 done
    for root in range(len(state)):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(calls.get(root, ())))]
        while stack:
            current, rest = stack[-1]
            for row, callee in rest:
                if state[callee] == 1:
                    cyclic.add(row)
                elif not state[callee]:
                    state[callee] = 1
                    stack.append((callee, iter(calls.get(callee, ()))))
                    break
            else:
                state[current] = 2
                order.append(current)
                stack.pop()
    return order, cyclic


class _Costs:
    """Fills the columns: first each instruction's own work, then the work of called computations."""

    def __init__(self, module: HloModule, with_trips: bool) -> None:
        self.module = module
        self.with_trips = with_trips
        self.sizes = Sizes.of(module)
        n = module.n_instructions
        elements = self.sizes.elements
        self.flops: Floats = np.where(module.has_opcode(ELEMENTWISE), elements, 0.0)
        self.transcendentals: Floats = np.where(module.has_opcode(TRANSCENDENTAL), elements, 0.0)
        rng = module.has_opcode(("rng", "rng-bit-generator"))
        self.transcendentals[rng] = self.sizes.leaf_elements[rng]
        self.bytes = self.sizes.leaves + self.sizes.operands
        self.bytes[module.has_opcode(ALWAYS_FREE)] = 0.0
        self.is_known = np.ones(n, np.bool_)
        self.trips: dict[int, int] = {}
        self.totals = np.zeros((len(module.computations), 3))
        self.is_computation_known = np.ones(len(module.computations), np.bool_)

    def result(self) -> HloCosts:
        """All columns, and the totals of the entry computation."""
        special_bytes(self.module, self.sizes, self.bytes)
        self._set_own_work()
        order, self.cyclic = computation_order(self.module)
        fusions = np.flatnonzero(self.module.has_opcode(("fusion",)))
        set_fusion_bytes(self.module, self.sizes, order, fusions, self.bytes)
        self._add_called_work(order)
        entry = self.module.info.entry
        total = self.totals[entry].tolist() if 0 <= entry < len(self.totals) else [0.0, 0.0, 0.0]
        columns = (self.flops, self.transcendentals, self.bytes, self.is_known)
        for column in columns:
            column.flags.writeable = False
        return HloCosts(*columns, self.trips, *total)

    def _rows(self, *opcodes: str) -> list[int]:
        rows: list[int] = np.flatnonzero(self.module.has_opcode(opcodes)).tolist()
        return rows

    def _operand(self, row: int, index: int) -> Shape:
        operands = self.module.operands[row]
        operand = int(operands[index]) if index < len(operands) else -1
        return self.module.shape(operand) if operand >= 0 else NO_SHAPE

    def _set_own_work(self) -> None:
        """Set the work of instructions that follows from shapes and attributes."""
        module = self.module
        formulas: dict[str, Callable[[int], float]] = {
            "dot": lambda row: dot_flops(
                self._operand(row, 0), module.shape(row), module.attributes(row).dot or DotDims()
            ),
            "convolution": lambda row: convolution_flops(
                self._operand(row, 0), module.shape(row), module.attributes(row)
            ),
            "fft": lambda row: fft_flops(self._operand(row, 0), module.attributes(row).fft_length),
            "triangular-solve": lambda row: triangular_solve_flops(
                self._operand(row, 0), self._operand(row, 1)
            ),
            "cholesky": lambda row: cholesky_flops(self._operand(row, 0)),
            "sort": lambda row: sort_flops(first_array(self._operand(row, 0))),
            "topk": lambda row: float(self._operand(row, 0).n_elements),
        }
        formulas["ragged-dot"] = formulas["dot"]
        for opcode, formula in formulas.items():
            for row in self._rows(opcode):
                self.flops[row] = formula(row)
        for row in self._rows("all-reduce", "all-reduce-start"):
            self.flops[row] = float(sum(leaf.n_elements for leaf in module.shape(row).leaves))
        for row in self._rows("custom-call"):
            cost = custom_call_cost(module, row)
            self.flops[row], self.transcendentals[row] = cost.flops, cost.transcendentals
            self.is_known[row] = cost.is_known
            if cost.bytes_accessed >= 0:
                self.bytes[row] = cost.bytes_accessed

    def _add_called_work(self, order: list[int]) -> None:
        """Add the work of called computations to their callers, and sum each computation."""
        first = self.module.computations["first_instruction"].tolist()
        counts = self.module.computations["n_instructions"].tolist()
        callers: dict[int, list[int]] = {}
        rows = np.unique(self.module.calls.owner)
        for row, computation in zip(
            rows.tolist(), self.module.instructions["computation"][rows].tolist(), strict=True
        ):
            callers.setdefault(computation, []).append(row)
        for computation in order:
            for row in callers.get(computation, ()):
                self._set_caller(row)
            members = slice(first[computation], first[computation] + counts[computation])
            columns = (self.flops, self.transcendentals, self.bytes)
            self.totals[computation] = [column[members].sum() for column in columns]
            self.is_computation_known[computation] = bool(self.is_known[members].all())

    def _set_caller(self, row: int) -> None:
        opcode = self.module.opcode(row)
        called = [int(i) for i in self.module.calls[row] if i >= 0]
        if row in self.cyclic:
            self.is_known[row], called = False, []
        if not called or opcode in (
            "custom-call",
            "sort",
            "all-reduce",
            "all-reduce-start",
            "reduce-scatter",
            "topk",
            "async-update",  # older programs repeat the called computation of async-start in these two
            "async-done",
        ):
            return
        self.is_known[row] &= bool(self.is_computation_known[called].all())
        work = self.totals[called]
        if opcode == "fusion":
            self.flops[row], self.transcendentals[row] = work[0, :2]
        elif opcode in ("call", "async-start"):
            self._set(row, work[0])
        elif opcode == "while":
            self._set(row, work.sum(axis=0) * self._trip_count(row))
        elif opcode == "conditional":
            self._set(row, work.max(axis=0))
        else:
            times = self._applications(row, opcode, len(called))
            self.flops[row], self.transcendentals[row] = (
                work[: len(times), :2] * np.array(times)[:, None]
            ).sum(axis=0)

    def _set(self, row: int, work: Floats) -> None:
        self.flops[row], self.transcendentals[row], self.bytes[row] = work

    def _trip_count(self, row: int) -> int:
        match = _TRIPS.search(self.module.backend_config(row))
        if match:
            self.trips[row] = int(match.group(1))
        elif self.with_trips:
            self.is_known[row] = False
        return self.trips.get(row, 1) if self.with_trips else 1

    def _applications(self, row: int, opcode: str, n_called: int) -> list[float]:
        """The number of times that each called computation is applied."""
        out = float(first_array(self.module.shape(row)).n_elements)
        if opcode == "map":
            return [out]
        if opcode == "reduce":
            return [max(self._operand(row, 0).n_elements - out, 0.0)]
        if opcode == "reduce-window":
            return [max(self._window(row) - 1, 0) * out]
        if opcode == "select-and-scatter":
            source = float(self._operand(row, 1).n_elements)
            return [source * max(self._window(row) - 1, 0), source]
        if opcode == "scatter":
            n_inputs = (len(self.module.operands[row]) - 1) // 2
            return [float(self._operand(row, n_inputs + 1).n_elements)]
        return [1.0] * n_called

    def _window(self, row: int) -> int:
        size = 1
        for dim in self.module.attributes(row).window or ():
            size *= max(dim.size, 0)
        return size
