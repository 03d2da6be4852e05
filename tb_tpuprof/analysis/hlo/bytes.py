"""Bytes that HLO instructions read and write where that is not simply all operands and the result: slices,
gathers, fusions.

A fusion reads of each parameter what its body uses of it: the slices where it is only sliced, else the whole,
once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo import HloModule

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

# Instructions that move no bytes: values that are there already, and names for parts of them.
ALWAYS_FREE = frozenset(
    (
        "parameter",
        "constant",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "add-dependency",
        "domain",
        "opt-barrier",
        "async-update",
        "async-done",
        "copy-done",
        "all-reduce-done",
        "all-gather-done",
        "collective-permute-done",
        "send-done",
        "recv-done",
    )
)


@dataclass(frozen=True)
class Sizes:
    """Per instruction: elements and bytes of its result, and the bytes of all its operands. Tuples count as
    tables of pointers, except in `leaves` and `leaf_elements`, which are sums over their arrays.
    """

    elements: Floats
    leaf_elements: Floats
    output: Floats
    leaves: Floats
    operands: Floats

    @classmethod
    def of(cls, module: HloModule) -> Sizes:
        """Sizes of a module's instructions; each distinct shape is looked at once."""
        facts = [
            (s.n_elements, sum(leaf.n_elements for leaf in s.leaves), s.size_bytes, s.array_bytes)
            for s in module.shapes
        ]
        table = np.array(facts, np.float64).reshape(-1, 4)
        elements, leaf_elements, output, leaves = (
            np.ascontiguousarray(table[module.instructions["shape"], i]) for i in range(4)
        )
        values, owner = module.operands.values, module.operands.owner
        known = values >= 0
        operands = np.bincount(owner[known], output[values[known]], module.n_instructions).astype(np.float64)
        return cls(elements, leaf_elements, output, leaves, operands)


def operand_rows(module: HloModule, rows: Rows, index: int) -> Rows:
    """One operand of each row, -1 where there is none."""
    at = module.operands.offsets[rows] + index
    inside = at < module.operands.offsets[rows + 1]
    found = np.full(len(rows), -1, np.int64)
    found[inside] = module.operands.values[at[inside]]
    return found


def size_of(sizes: Floats, rows: Rows) -> Floats:
    """Sizes of rows, 0 for -1."""
    found: Floats = np.where(rows >= 0, sizes[rows], 0.0) if len(sizes) else np.zeros(len(rows))
    return found


def special_bytes(module: HloModule, sizes: Sizes, result: Floats) -> None:
    """Overwrite the bytes of instructions that touch only a part of an operand."""
    out = sizes.output

    def rows(*opcodes: str) -> Rows:
        return np.flatnonzero(module.has_opcode(opcodes)).astype(np.int64)

    def operand(chosen: Rows, index: int) -> Floats:
        return size_of(out, operand_rows(module, chosen, index))

    chosen = rows("slice")
    result[chosen] = 2 * out[chosen]
    chosen = rows("dynamic-slice", "gather")
    result[chosen] = 2 * out[chosen] + operand(chosen, 1)
    chosen = rows("dynamic-update-slice")
    result[chosen] = 2 * operand(chosen, 1) + operand(chosen, 2)
    chosen = rows("tuple")
    result[chosen] = out[chosen]
    # The result of these holds their operand beside what they make of it.
    chosen = rows("all-gather-start", "collective-permute-start", "copy-start", "send", "recv")
    result[chosen] = sizes.leaves[chosen]
    chosen = rows("triangular-solve")
    result[chosen] = out[chosen] + operand(chosen, 0) / 2 + operand(chosen, 1)
    chosen = rows("cholesky")
    result[chosen] = out[chosen] / 2 + operand(chosen, 0) / 2
    for row in rows("scatter").tolist():
        operands = module.operands[row].astype(np.int64)
        n = (len(operands) - 1) // 2
        result[row] = 3 * size_of(out, operands[n + 1 :]).sum() + size_of(out, operands[n : n + 1]).sum()


def set_fusion_bytes(
    module: HloModule, sizes: Sizes, order: list[int], fusions: npt.NDArray[np.intp], result: Floats
) -> None:
    """Set the bytes that fusions read and write in `result`."""
    if not len(fusions):
        return
    rows: Rows = fusions[module.calls.counts[fusions] > 0].astype(np.int64)
    rows = rows[module.calls.values[module.calls.offsets[rows]] >= 0]
    body = module.calls.values[module.calls.offsets[rows]]
    root = module.computations["root"][body].astype(np.int64)
    read = _ParameterReads(module, sizes, order, rows, body)
    result[rows] = _written(module, sizes, rows, root) + read.of_fusions()


def _written(module: HloModule, sizes: Sizes, rows: Rows, root: Rows) -> Floats:
    """Bytes that fusions write: the root's result, or the update where the root updates a slice in place; of
    a tuple each part.
    """
    is_tuple = np.array([shape.is_tuple for shape in module.shapes], np.bool_)[
        module.instructions["shape"][rows]
    ]
    in_place = module.has_opcode(("dynamic-update-slice",))
    safe = np.maximum(root, 0)
    update = size_of(sizes.output, operand_rows(module, safe, 1))
    written: Floats = np.where((root >= 0) & in_place[safe], update, sizes.output[rows])
    for i in np.flatnonzero(is_tuple).tolist():
        parts = (
            module.operands[int(root[i])] if root[i] >= 0 and module.opcode(int(root[i])) == "tuple" else ()
        )
        leaves = float(sizes.leaves[rows[i]])
        for part in parts:
            if part >= 0 and in_place[part]:
                leaves += (
                    float(size_of(sizes.output, operand_rows(module, np.array([part], np.int64), 1))[0])
                    - sizes.output[part]
                )
        written[i] = leaves
    return written


class _ParameterReads:
    """What fused computations read of their parameters."""

    def __init__(
        self, module: HloModule, sizes: Sizes, order: list[int], rows: Rows, body: npt.NDArray[np.int32]
    ) -> None:
        self.module = module
        self.sizes = sizes
        self.rows = rows
        self.body = body
        self.reads = self._direct()
        nested = np.isin(module.instructions["computation"][rows], body)
        if nested.any():
            rank = np.empty(len(module.computations), np.int64)
            rank[order] = np.arange(len(order))
            inner = np.flatnonzero(nested)
            for i in inner[
                np.argsort(rank[module.instructions["computation"][rows[inner]]], kind="stable")
            ].tolist():
                self._add_nested(int(rows[i]), int(body[i]))

    def _direct(self) -> Floats:
        """Bytes read of each instruction by those that use it; nested fusions are left to `_add_nested`."""
        module, out = self.module, self.sizes.output
        used, user = module.operands.values, module.operands.owner
        position = np.arange(len(used)) - module.operands.offsets[user]
        known = used >= 0
        used, user, position = used[known].astype(np.int64), user[known].astype(np.int64), position[known]
        slices, dynamic = module.has_opcode(("slice",)), module.has_opcode(("dynamic-slice",))
        updates, gathers = module.has_opcode(("dynamic-update-slice",)), module.has_opcode(("gather",))
        part = slices[user] | ((dynamic[user] | gathers[user]) & (position == 0))
        in_place = updates[user] & (position == 0)
        nested = module.has_opcode(("fusion",))[user]
        reads: Floats = np.bincount(used[part], out[user[part]], module.n_instructions).astype(np.float64)
        whole = np.zeros(module.n_instructions, np.bool_)
        whole[used[~part & ~in_place & ~nested]] = True
        roots = self.module.computations["root"].astype(np.int64)
        roots = roots[roots >= 0]
        whole[roots[module.has_opcode(("parameter",))[roots]]] = (
            True  # nothing in its computation uses it: it is the result
        )
        reads[whole] += out[whole]
        return reads

    def _add_nested(self, row: int, body: int) -> None:
        module = self.module
        parameters = {
            int(module.instructions["parameter_number"][i]): i
            for i in module.rows_of(body)
            if module.opcode(i) == "parameter"
        }
        for position, operand in enumerate(module.operands[row].tolist()):
            if operand >= 0 and position in parameters:
                self.reads[operand] += self.reads[parameters[position]]

    def of_fusions(self) -> Floats:
        """Bytes that each fusion reads of all its parameters; a fusion whose body is read by several counts
        for each.
        """
        module = self.module
        parameters = np.flatnonzero(module.has_opcode(("parameter",)))
        computation = module.instructions["computation"][parameters]
        sums = np.bincount(computation, self.reads[parameters], len(module.computations)).astype(np.float64)
        read: Floats = sums[self.body]
        return read
