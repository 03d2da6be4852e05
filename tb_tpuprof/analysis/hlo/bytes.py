"""Bytes read and written by HLO instructions for which that is not simply all operands and the result:
slices, gathers, fusions.

A fusion reads of each parameter what its body uses: the slices if it is only sliced, else the whole
parameter, once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.trace.hlo import HloModule

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

# Instructions that move no bytes: existing values, and names for parts of them.
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
    """Per instruction: elements and bytes of its result, and bytes of all its operands. Tuples count as
    tables of pointers, except in `leaves` (bytes) and `leaf_elements`, which are sums over their arrays.
    """

    elements: Floats
    leaf_elements: Floats
    output: Floats
    leaves: Floats
    operands: Floats

    @classmethod
    def of(cls, module: HloModule) -> Sizes:
        """Sizes of a module's instructions; each distinct shape is measured once."""
        measures = [
            (s.n_elements, sum(leaf.n_elements for leaf in s.leaves), s.size_bytes, s.array_bytes)
            for s in module.shapes
        ]
        table = np.array(measures, np.float64).reshape(-1, 4)
        elements, leaf_elements, output, leaves = (
            np.ascontiguousarray(table[module.instructions["shape"], i]) for i in range(4)
        )
        values, owner = module.operands.values, module.operands.owner
        is_known = values >= 0
        operands = np.bincount(owner[is_known], output[values[is_known]], module.n_instructions).astype(
            np.float64
        )
        return cls(elements, leaf_elements, output, leaves, operands)


def operand_rows(module: HloModule, rows: Rows, index: int) -> Rows:
    """The row of operand `index` of each instruction, -1 if it has none."""
    position = module.operands.offsets[rows] + index
    exists = position < module.operands.offsets[rows + 1]
    result = np.full(len(rows), -1, np.int64)
    result[exists] = module.operands.values[position[exists]]
    return result


def size_of(sizes: Floats, rows: Rows) -> Floats:
    """`sizes` of the rows, 0 for -1."""
    result: Floats = np.where(rows >= 0, sizes[rows], 0.0) if len(sizes) else np.zeros(len(rows))
    return result


def special_bytes(module: HloModule, sizes: Sizes, result: Floats) -> None:
    """Overwrite in `result` the bytes of instructions that touch only a part of an operand."""
    out = sizes.output

    def rows(*opcodes: str) -> Rows:
        return np.flatnonzero(module.has_opcode(opcodes)).astype(np.int64)

    def operand(selected: Rows, index: int) -> Floats:
        return size_of(out, operand_rows(module, selected, index))

    selected = rows("slice")
    result[selected] = 2 * out[selected]
    selected = rows("dynamic-slice", "gather")
    result[selected] = 2 * out[selected] + operand(selected, 1)
    selected = rows("dynamic-update-slice")
    result[selected] = 2 * operand(selected, 1) + operand(selected, 2)
    selected = rows("tuple")
    result[selected] = out[selected]
    # The result tuple of these contains their operand, too.
    selected = rows("all-gather-start", "collective-permute-start", "copy-start", "send", "recv")
    result[selected] = sizes.leaves[selected]
    selected = rows("triangular-solve")
    result[selected] = out[selected] + operand(selected, 0) / 2 + operand(selected, 1)
    selected = rows("cholesky")
    result[selected] = out[selected] / 2 + operand(selected, 0) / 2
    for row in rows("scatter").tolist():
        operands = module.operands[row].astype(np.int64)
        n = (len(operands) - 1) // 2
        result[row] = 3 * size_of(out, operands[n + 1 :]).sum() + size_of(out, operands[n : n + 1]).sum()


def set_fusion_bytes(
    module: HloModule, sizes: Sizes, order: list[int], fusions: npt.NDArray[np.intp], result: Floats
) -> None:
    """Set the bytes that fusions read and write in `result`. `order`: computations, callees first."""
    if not len(fusions):
        return
    rows: Rows = fusions[module.calls.counts[fusions] > 0].astype(np.int64)
    rows = rows[module.calls.values[module.calls.offsets[rows]] >= 0]
    body = module.calls.values[module.calls.offsets[rows]]
    root = module.computations["root"][body].astype(np.int64)
    parameter_reads = _ParameterReads(module, sizes, order, rows, body)
    result[rows] = _written(module, sizes, rows, root) + parameter_reads.of_fusions()


def _written(module: HloModule, sizes: Sizes, rows: Rows, root: Rows) -> Floats:
    """Bytes that fusions write: the root's result, or only the update if the root updates a slice in place;
    for a tuple, the sum of its parts.
    """
    is_tuple = np.array([shape.is_tuple for shape in module.shapes], np.bool_)[
        module.instructions["shape"][rows]
    ]
    in_place = module.has_opcode(("dynamic-update-slice",))
    root_or_0 = np.maximum(root, 0)
    update = size_of(sizes.output, operand_rows(module, root_or_0, 1))
    written: Floats = np.where((root >= 0) & in_place[root_or_0], update, sizes.output[rows])
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
    """Bytes that fused computations read of their parameters."""

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
        """Bytes that its users read of each instruction, without nested fusions (see `_add_nested`)."""
        module, out = self.module, self.sizes.output
        used, user = module.operands.values, module.operands.owner
        position = np.arange(len(used)) - module.operands.offsets[user]
        is_known = used >= 0
        used, user, position = (
            used[is_known].astype(np.int64),
            user[is_known].astype(np.int64),
            position[is_known],
        )
        slices, dynamic = module.has_opcode(("slice",)), module.has_opcode(("dynamic-slice",))
        updates, gathers = module.has_opcode(("dynamic-update-slice",)), module.has_opcode(("gather",))
        reads_part = slices[user] | ((dynamic[user] | gathers[user]) & (position == 0))
        in_place = updates[user] & (position == 0)
        nested = module.has_opcode(("fusion",))[user]
        reads: Floats = np.bincount(used[reads_part], out[user[reads_part]], module.n_instructions).astype(
            np.float64
        )
        reads_whole = np.zeros(module.n_instructions, np.bool_)
        reads_whole[used[~reads_part & ~in_place & ~nested]] = True
        roots = self.module.computations["root"].astype(np.int64)
        roots = roots[roots >= 0]
        reads_whole[roots[module.has_opcode(("parameter",))[roots]]] = (
            True  # a parameter that is the root has no users but is read
        )
        reads[reads_whole] += out[reads_whole]
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
        """Bytes that each fusion reads of all its parameters. If several fusions share a body,
        each counts.
        """
        module = self.module
        parameters = np.flatnonzero(module.has_opcode(("parameter",)))
        computation = module.instructions["computation"][parameters]
        sums = np.bincount(computation, self.reads[parameters], len(module.computations)).astype(np.float64)
        read: Floats = sums[self.body]
        return read
