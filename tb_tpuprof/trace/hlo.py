"""An HLO module as frozen columns: computations, instructions, operands and calls; the rest is decoded on
demand.

    instructions, computations   tables of `trace/hlo_schema.py`; an instruction's id is its row
    operands, calls              per instruction: the instructions it reads and the computations it calls
                                 (-1: not in the file)
    shapes, opcodes, strings     distinct values; the tables hold indexes into them
    attributes(row)              everything else of an instruction (dimension numbers, windows, literals …),
                                 read from `data`
    schedule, buffers, frames    order of execution, memory, source stacks; read from `data` on first use
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import find_ids, intern, joined
from tb_tpuprof.trace.held import Sizes
from tb_tpuprof.trace.hlo_attributes import Attributes, ModuleHeader
from tb_tpuprof.trace.hlo_buffers import BufferAssignment
from tb_tpuprof.trace.hlo_frames import StackFrames
from tb_tpuprof.trace.hlo_shape import Shape
from tb_tpuprof.trace.memo import Memo
from tb_tpuprof.trace.strings import find_bytes
from tb_tpuprof.trace.table import Table

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Ragged:
    """A list of row numbers per row: row i has values[offsets[i]:offsets[i + 1]]."""

    offsets: npt.NDArray[np.int64]
    values: Rows

    def __getitem__(self, row: int) -> Rows:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """Length of each list."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> Rows:
        """The row to which each value belongs."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.counts)

    def inverted(self, n_rows: int) -> Ragged:
        """For each of `n_rows` values, the rows whose lists contain it, ascending, once per occurrence.
        Values of -1 are left out.
        """
        valid = np.flatnonzero(self.values >= 0)
        order = valid[np.argsort(self.values[valid], kind="stable")]
        offsets = np.zeros(n_rows + 1, np.int64)
        np.cumsum(np.bincount(self.values[order], minlength=n_rows), out=offsets[1:])
        return Ragged(offsets, self.owner[order])


_DERIVED = ("by_name", "_by_id", "users", "callers", "header", "schedule", "buffers", "frames")
# Differs between processes, so that no file can provoke hash collisions.
_SEED = int.from_bytes(os.urandom(4), "little")


class SpanStrings(Sequence[str]):
    """Table of distinct strings backed by the file's bytes; each is decoded when it is read."""

    def __init__(self, data: Bytes, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> None:
        self.data = data
        self.starts = starts
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        if not 0 <= index < len(self.starts):
            raise IndexError(index)
        start = self.starts[index]
        return str(self.data[start : start + self.sizes[index]].tobytes(), "utf-8", "replace")

    def get(self, index: int) -> str:
        """The string, or "" for -1 (none)."""
        return self[index] if index >= 0 else ""

    @cached_property
    def all(self) -> list[str]:
        """Every string, decoded once."""
        blob = self.data.data
        spans = zip(self.starts.tolist(), (self.starts + self.sizes).tolist(), strict=True)
        return [str(blob[a:b], "utf-8", "replace") for a, b in spans]

    def find(self, text: str) -> int:
        """Id of a string, -1 if absent. Compares only strings of the same length."""
        return find_bytes(self.data, self.starts, self.sizes, text.encode("utf-8", "surrogatepass"))


class HloSource(Protocol):
    """Decodes the parts of a module that opening it left in its bytes."""

    def attributes(self, module: HloModule, row: int) -> Attributes:
        """Everything about one instruction that is not a column."""
        ...

    def header(self, module: HloModule) -> ModuleHeader:
        """The module-wide attributes."""
        ...

    def schedule(self, module: HloModule) -> dict[int, Rows]:
        """For each scheduled computation, its instructions in execution order."""
        ...

    def buffers(self, module: HloModule) -> BufferAssignment | None:
        """The buffer assignment, None if the file has none."""
        ...

    def frames(self, module: HloModule) -> StackFrames:
        """Stacks of source lines."""
        ...


@dataclass(frozen=True)
class HloInfo:
    """Facts about a module as a whole. `program_id` is the trace's, `module_id` the compiler's; -1 if
    unknown.

    `n_damaged` counts parts that could not be read or that refer to nothing; `damage` describes them to the
    user.
    """

    name: str
    program_id: int
    module_id: int
    entry: int
    n_damaged: int
    damage: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class HloModule:
    """One compiled program; the module's docstring lists the columns. Compared and hashed by identity."""

    info: HloInfo
    computations: Table
    instructions: Table
    operands: Ragged
    calls: Ragged
    shapes: tuple[Shape, ...]
    opcodes: tuple[str, ...]
    strings: SpanStrings
    data: Bytes
    source: HloSource
    memo: Memo = field(default_factory=Memo, init=False, repr=False)
    _sizes: Sizes = field(default_factory=Sizes, init=False, repr=False)

    COUNTED_APART: ClassVar[bool] = True

    @property
    def n_instructions(self) -> int:
        """Number of instructions of all computations."""
        return len(self.instructions)

    @property
    def size_bytes(self) -> int:
        """Memory of bytes and columns, without what is decoded on demand."""
        ragged = (self.operands, self.calls)
        arrays = (
            sum(part.offsets.nbytes + part.values.nbytes for part in ragged) + self.strings.starts.nbytes * 2
        )
        return self.data.nbytes + self.instructions.size_bytes + self.computations.size_bytes + arrays

    @property
    def kept_bytes(self) -> int:
        """Memory of bytes and columns and, about, of what was decoded on demand and computed from them."""
        derived: dict[Hashable, object] = dict(self.memo.results)
        derived |= {name: self.__dict__.get(name) for name in _DERIVED}
        derived["strings"] = self.strings.__dict__.get("all")
        return self.size_bytes + self._sizes.total(derived, (self.data,))

    def name(self, row: int) -> str:
        """Name of an instruction."""
        return self.strings.get(int(self.instructions["name"][row]))

    def opcode(self, row: int) -> str:
        """Opcode of an instruction, such as dot."""
        return self.opcodes[int(self.instructions["opcode"][row])]

    def shape(self, row: int) -> Shape:
        """Shape of an instruction's value."""
        return self.shapes[int(self.instructions["shape"][row])]

    def text(self, column: str, row: int) -> str:
        """A string column of an instruction: op_name, op_type, source_file, deduplicated_name, fusion_kind,
        custom_call_target.
        """
        return self.strings.get(int(self.instructions[column][row]))

    def computation_name(self, computation: int) -> str:
        """Name of a computation."""
        return self.strings.get(int(self.computations["name"][computation]))

    def rows_of(self, computation: int) -> range:
        """Instructions of a computation, in the file's order (operands before their users)."""
        first = int(self.computations["first_instruction"][computation])
        return range(first, first + int(self.computations["n_instructions"][computation]))

    def has_opcode(self, opcodes: Iterable[str]) -> npt.NDArray[np.bool_]:
        """For each instruction, whether it has one of the opcodes."""
        sought = set(opcodes)
        is_sought = np.array([opcode in sought for opcode in self.opcodes], np.bool_)
        mask: npt.NDArray[np.bool_] = is_sought[self.instructions["opcode"]]
        return mask

    def backend_config(self, row: int) -> bytes:
        """The backend's configuration of an instruction: JSON or a serialized message, as the compiler wrote
        it.
        """
        start, size = (
            int(self.instructions["backend_position"][row]),
            int(self.instructions["backend_size"][row]),
        )
        return self.data[start : start + size].tobytes()

    def attributes(self, row: int) -> Attributes:
        """Everything else about an instruction. Decodes at each call: keep a result that you need twice."""
        return self.source.attributes(self, row)

    def find(self, name: str) -> int:
        """The instruction of that name, with or without %, or -1. Cheaper than `by_name` for a
        single name.
        """
        string = self.strings.find(name.removeprefix("%"))
        rows = np.flatnonzero(self.instructions["name"] == string) if string >= 0 else np.empty(0, np.intp)
        return int(rows[0]) if len(rows) else -1

    def find_computation(self, name: str) -> int:
        """The computation of that name, with or without %, or -1."""
        string = self.strings.find(name.removeprefix("%"))
        rows = np.flatnonzero(self.computations["name"] == string) if string >= 0 else np.empty(0, np.intp)
        return int(rows[0]) if len(rows) else -1

    def rows_named(self, names: Bytes, offsets: npt.NDArray[np.int64]) -> Rows:
        """The instruction of each name, -1 if there is none; name i is the UTF-8 in
        names[offsets[i]:offsets[i + 1]]. Meant for many names at once.
        """
        ids = self.instructions["name"].astype(np.int64)
        module_names, module_offsets = joined(self.data, self.strings.starts[ids], self.strings.sizes[ids])
        starts, ends = (
            np.concatenate([module_offsets[part], offsets[part] + len(module_names)])
            for part in (slice(-1), slice(1, None))
        )
        codes, first = intern(np.concatenate([module_names, names]), starts, ends - starts, _SEED)
        first_rows = first[codes[len(ids) :]]
        return np.where(first_rows < len(ids), first_rows, -1).astype(np.int32)

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Instruction of each name; the first one if a damaged file repeats a name."""
        texts = self.strings.all
        names = self.instructions["name"].tolist()
        return {texts[name]: row for row, name in reversed(list(enumerate(names)))}

    @cached_property
    def _by_id(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        ids = self.instructions["id"]
        order = np.argsort(ids, kind="stable")
        return ids[order], order

    def rows_of_ids(self, ids: npt.NDArray[np.int64]) -> Rows:
        """The instruction of each id of the file, -1 if there is none."""
        rows: Rows = find_ids(*self._by_id, ids)
        return rows

    @cached_property
    def users(self) -> Ragged:
        """For each instruction, the instructions that read it."""
        return self.operands.inverted(self.n_instructions)

    @cached_property
    def callers(self) -> Ragged:
        """For each computation, the instructions that call it."""
        return self.calls.inverted(len(self.computations))

    @cached_property
    def header(self) -> ModuleHeader:
        """The module-wide attributes."""
        return self.source.header(self)

    @cached_property
    def schedule(self) -> dict[int, Rows]:
        """For each scheduled computation, its instructions in execution order."""
        return self.source.schedule(self)

    @cached_property
    def buffers(self) -> BufferAssignment | None:
        """The buffer assignment, None if the file has none."""
        return self.source.buffers(self)

    @cached_property
    def frames(self) -> StackFrames:
        """Stacks of source lines, by an instruction's `stack_frame`."""
        return self.source.frames(self)
