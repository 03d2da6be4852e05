"""Serialized HloProto → `HloModule`: columns of all instructions at once, the rest on demand.

    HloProto ─ 1 module ─ 3 computations ─ 2 instructions ─ spans ─▶ columns, distinct shapes, operands, calls
             └ 3 buffer assignment                        on demand ─▶ attributes, schedule, buffers, frames

Parts that are malformed or refer to nothing are left out and counted. Field numbers are those of XLA's
`HloProto`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.hlo.attributes import AttributeReader
from tb_tpuprof.ingest.hlo.buffers import BufferReader, numbers
from tb_tpuprof.ingest.hlo.message import Bytes, Message
from tb_tpuprof.ingest.hlo.shapes import ShapeReader
from tb_tpuprof.native import fields, find_ids, intern, ints, parts, spans
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel
from tb_tpuprof.trace.hlo import HloInfo, HloModule, Ragged, SpanStrings
from tb_tpuprof.trace.hlo_attributes import Alias, Attributes, ModuleHeader
from tb_tpuprof.trace.hlo_buffers import BufferAssignment
from tb_tpuprof.trace.hlo_frames import StackFrames
from tb_tpuprof.trace.hlo_schema import COMPUTATIONS, INSTRUCTIONS
from tb_tpuprof.trace.hlo_shape import NO_SHAPE, Shape
from tb_tpuprof.trace.table import Array, Table

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
MAX_INSTRUCTIONS = 2**31 - 2
# Instruction fields: texts, messages and numbers that become columns.
_NAME, _OPCODE, _SHAPE, _METADATA, _BACKEND, _KIND, _TARGET = 1, 2, 3, 7, 43, 11, 28
_ID, _PARAMETER, _TUPLE_INDEX, _CHANNEL = 35, 9, 13, 26
_INSTRUCTION = numbers(
    _NAME, _OPCODE, _SHAPE, _METADATA, _BACKEND, _KIND, _TARGET, _ID, _PARAMETER, _TUPLE_INDEX, _CHANNEL, 38
)
_CALLS = 11  # index of the called computations (field 38) in _INSTRUCTION
# op_type, op_name, source_file, deduplicated_name; source_line, stack_frame
_METADATA_FIELDS = numbers(1, 2, 3, 12, 4, 15)


@dataclass
class _Damage:
    """Descriptions of the parts that were left out, and how many of each."""

    notes: dict[str, int]

    def add(self, what: str, n: int) -> None:
        if n:
            self.notes[what] = self.notes.get(what, 0) + int(n)

    @property
    def n(self) -> int:
        return sum(self.notes.values())

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(f"{n} {what}" for what, n in self.notes.items())


def decode_hlo(data: bytes | Bytes, path: str, program_id: int = -1) -> HloModule:
    """A module from a serialized HloProto (or HloModuleProto). Raises TraceFormatError if the bytes are
    neither.
    """
    block = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    top, bad = fields(block, 0, len(block))
    module_spans = [(int(row[2]), int(row[3])) for row in top if row[0] == 1 and row[1] == 2]
    start, size = module_spans[-1] if module_spans else (0, 0)
    if _looks_like_a_name(block, start, size):
        start, size, top = 0, len(block), top[:0]
    elif not module_spans:
        raise TraceFormatError(path, max(bad, 0), "is not an HLO program")
    assignment = [(int(row[2]), int(row[3])) for row in top if row[0] == 3 and row[1] == 2]
    return _ModuleReader(block, start, size, path).module(
        program_id, assignment[-1] if assignment else (0, 0), int(bad >= 0)
    )


def _looks_like_a_name(block: Bytes, start: int, size: int) -> bool:
    """Whether field 1 is a name: then the bytes are a bare HloModuleProto. In an HloProto, field 1 is the
    module, whose first byte is the tag of its own name.
    """
    return size > 0 and int(block[start]) != 0x0A and bytes(block[start : start + size]).isascii()


def _computations(values: Ints, texts: list[Rows], root: Rows, offsets: Ints) -> dict[str, Array]:
    """Columns of computations; `offsets`: of their instructions."""
    return {
        "id": values[:, 1],
        "name": texts[7],
        "root": root,
        "first_instruction": offsets[:-1].astype(np.int32),
        "n_instructions": np.diff(offsets).astype(np.int32),
        "is_fusion": values[:, 3] != 0,
        "execution_thread": texts[8],
    }


def _fields_of_instructions(values: Ints, metadata: Ints, texts: list[Rows]) -> dict[str, Array]:
    """Columns that are fields of the instructions or of their metadata; `texts`: string ids."""
    return {
        "id": values[:, 7],
        "name": texts[0],
        "op_type": texts[3],
        "op_name": texts[4],
        "source_file": texts[5],
        "source_line": _int32(metadata[:, 4]),
        "stack_frame": _int32(metadata[:, 5]),
        "deduplicated_name": texts[6],
        "fusion_kind": texts[1],
        "custom_call_target": texts[2],
        "parameter_number": values[:, 8],
        "tuple_index": values[:, 9],
        "channel_id": values[:, 10],
        "backend_position": values[:, 4],
    }


class _ModuleReader:
    """Reads the module in data[start:start + size]."""

    def __init__(self, data: Bytes, start: int, size: int, path: str) -> None:
        self.data = data
        self.top = Message(data, start, size)
        self.path = path
        self.damage = _Damage({})
        self.damage.add("module cut off or malformed", self.top.is_damaged)

    def module(self, program_id: int, assignment: tuple[int, int], n_bad: int) -> HloModule:
        """The module, with all columns decoded."""
        self.damage.add("file cut off or malformed", n_bad)
        _, starts, sizes = parts(self.data, numbers(self.top.start), numbers(self.top.size), 3)
        computation_values, computation_lengths, _, bad = spans(
            self.data, starts, sizes, numbers(1, 5, 6, 7, 8)
        )
        self.damage.add("computations malformed", bad.sum())
        offsets, instruction_starts, instruction_sizes = parts(self.data, starts, sizes, 2)
        if len(instruction_starts) > MAX_INSTRUCTIONS:
            raise TraceFormatError(
                self.path, -1, f"contains {len(instruction_starts)} instructions, more than can be opened"
            )
        values, lengths, counts, bad = spans(
            self.data, instruction_starts, instruction_sizes, _INSTRUCTION, _CALLS
        )
        self.damage.add("instructions malformed", bad.sum())
        k, ids = len(starts), values[:, 7]
        (metadata, strings, text_columns), (links, opcodes, opcode, shapes, shape) = _both(
            len(instruction_starts),
            lambda: self._texts(values, lengths, computation_values, computation_lengths),
            lambda: (
                self._links(
                    ids, computation_values, (instruction_starts, instruction_sizes, counts), offsets
                ),
                *self._opcodes(values[:, 1], lengths[:, 1]),
                *self._shapes(*_span(values, lengths, 2)),
            ),
        )
        operands, calls, root = links
        instructions = {
            "computation": np.repeat(np.arange(k, dtype=np.int32), np.diff(offsets)),
            "opcode": opcode,
            "shape": shape,
            "backend_size": np.maximum(lengths[:, 4], 0),
            "position": instruction_starts,
            "size": instruction_sizes,
            **_fields_of_instructions(values, metadata, text_columns),
        }
        computations = _computations(computation_values, text_columns, root, offsets)
        if not k and not self.top.has(1):
            raise TraceFormatError(self.path, -1, "is not an HLO program")
        source = LazyParts(self.data, self.top, assignment)
        return HloModule(
            self._info(program_id, computations, strings),
            Table(COMPUTATIONS, computations),
            Table(INSTRUCTIONS, {column.name: instructions[column.name] for column in INSTRUCTIONS}),
            operands,
            calls,
            shapes,
            tuple(opcodes.all),
            strings,
            self.data,
            source,
        )

    def _texts(
        self, values: Ints, lengths: Ints, computation_values: Ints, computation_lengths: Ints
    ) -> tuple[Ints, SpanStrings, list[Rows]]:
        """(metadata of instructions, distinct strings, string ids of the text columns of instructions and
        computations).
        """
        metadata, sizes, _, _ = spans(self.data, *_span(values, lengths, 3), _METADATA_FIELDS)
        texts = [(values[:, i], lengths[:, i]) for i in (0, 5, 6)] + [
            (metadata[:, i], sizes[:, i]) for i in range(4)
        ]
        return metadata, *self._intern(
            [
                *texts,
                (computation_values[:, 0], computation_lengths[:, 0]),
                (computation_values[:, 4], computation_lengths[:, 4]),
            ]
        )

    def _opcodes(self, starts: Ints, sizes: Ints) -> tuple[SpanStrings, Rows]:
        strings, (opcode,) = self._intern([(starts, sizes)])
        return strings, opcode

    def _intern(self, texts: list[tuple[Ints, Ints]]) -> tuple[SpanStrings, list[Rows]]:
        """Distinct strings, and string ids for each column of texts (given as positions and sizes)."""
        present_rows = [np.flatnonzero(sizes > 0) for _, sizes in texts]
        nothing = np.zeros(1, np.int64)  # the last text is empty: the value of absent ones
        starts = np.concatenate(
            [*(values[rows] for (values, _), rows in zip(texts, present_rows, strict=True)), nothing]
        )
        lengths = np.concatenate(
            [*(sizes[rows] for (_, sizes), rows in zip(texts, present_rows, strict=True)), nothing]
        )
        ids, first = intern(self.data, starts, lengths, _SEED)
        columns, n_done = [], 0
        for (_, sizes), rows in zip(texts, present_rows, strict=True):
            columns.append(np.full(len(sizes), ids[-1], np.int32))
            columns[-1][rows] = ids[n_done : n_done + len(rows)]
            n_done += len(rows)
        return SpanStrings(self.data, starts[first], lengths[first]), columns

    def _shapes(self, starts: Ints, sizes: Ints) -> tuple[tuple[Shape, ...], Rows]:
        ids, first = intern(self.data, starts, sizes, _SEED)
        reader = ShapeReader(self.data)
        distinct = zip(starts[first].tolist(), sizes[first].tolist(), strict=True)
        shapes = tuple(reader.read(start, size) if size else NO_SHAPE for start, size in distinct)
        self.damage.add("shapes malformed", reader.n_damaged)
        return shapes, ids

    def _links(
        self, ids: Ints, computation_values: Ints, place: tuple[Ints, Ints, Ints], offsets: Ints
    ) -> tuple[Ragged, Ragged, Rows]:
        """Operands, called computations and roots as rows. `place` has the starts and sizes of the
        instructions, and how often each has a list of called computations.
        """
        starts, sizes, n_calls = place
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        self.damage.add("instructions that share an id", (np.diff(ordered) == 0).sum() if len(ids) else 0)
        operand_offsets, operand_ids = ints(self.data, starts, sizes, 36)
        operand = find_ids(ordered, order, operand_ids)
        callers = np.flatnonzero(n_calls)
        caller_offsets, call_ids = ints(self.data, starts[callers], sizes[callers], 38)
        call_offsets = np.zeros(len(starts) + 1, np.int64)
        call_offsets[callers + 1] = np.diff(caller_offsets)
        np.cumsum(call_offsets, out=call_offsets)
        by_id = np.argsort(computation_values[:, 1], kind="stable")
        call = find_ids(computation_values[by_id, 1], by_id, call_ids)
        root = find_ids(ordered, order, computation_values[:, 2])
        # If the root is missing or belongs to another computation, take the last instruction.
        first, last = offsets[:-1], offsets[1:]
        is_invalid = (root < first) | (root >= last)
        root = np.where(is_invalid, np.where(last > first, last - 1, -1), root).astype(np.int32)
        self.damage.add("operands not in the file", (operand < 0).sum())
        self.damage.add("called computations not in the file", (call < 0).sum())
        self.damage.add("computations without a root", is_invalid.sum())
        operands = Ragged(operand_offsets, operand)
        computation = np.repeat(np.arange(len(first)), np.diff(offsets))
        is_foreign = (operand >= 0) & (computation[operand] != computation[operands.owner])
        self.damage.add("operands of another computation", is_foreign.sum())
        operand[is_foreign] = -1
        return operands, Ragged(call_offsets, call), root

    def _info(self, program_id: int, computations: dict[str, Ints], strings: SpanStrings) -> HloInfo:
        entry = (
            np.flatnonzero(computations["id"] == self.top.number(6))
            if self.top.has(6)
            else np.empty(0, np.intp)
        )
        if not len(entry):
            string = strings.find(self.top.text(2))
            entry = np.flatnonzero(computations["name"] == string) if string >= 0 else entry
        if not len(entry):
            self.damage.add("entry computation missing", 1)
        last = len(computations["id"]) - 1
        module_id = self.top.number(5) if self.top.has(5) else -1
        return HloInfo(
            self.top.text(1),
            program_id,
            module_id,
            int(entry[0]) if len(entry) else last,
            self.damage.n,
            self.damage.texts,
        )


_A = TypeVar("_A")
_B = TypeVar("_B")


def _both(n_instructions: int, first: Callable[[], _A], second: Callable[[], _B]) -> tuple[_A, _B]:
    """Results of two independent functions, run in parallel for a large module."""
    is_worthwhile = n_instructions >= POLICY.min_parallel_instructions
    results: list[Any] = call_in_parallel((first, second), is_worthwhile)
    return results[0], results[1]


# Differs between processes, so that no file can provoke hash collisions.
_SEED = int.from_bytes(os.urandom(4), "little")


def _span(values: Ints, sizes: Ints, column: int) -> tuple[Ints, Ints]:
    """Positions and sizes of a text or message field of many messages; absent ones are empty."""
    size = np.maximum(sizes[:, column], 0)
    return np.where(size > 0, values[:, column], 0), size


def _int32(values: Ints) -> Rows:
    return values.astype(np.int32)


class LazyParts:
    """Decodes what `decode_hlo` left in the bytes. `assignment` is the position and size of the buffer
    assignment.
    """

    def __init__(self, data: Bytes, top: Message, assignment: tuple[int, int]) -> None:
        self.top = top
        self.assignment = assignment
        self.shapes = ShapeReader(data)
        self.reader = AttributeReader(data, self.shapes)

    def attributes(self, module: HloModule, row: int) -> Attributes:
        """Everything about one instruction that is not a column."""
        start, size = int(module.instructions["position"][row]), int(module.instructions["size"][row])
        return self.reader.read(start, size, module.rows_of_ids)

    def schedule(self, module: HloModule) -> dict[int, Rows]:
        """For each scheduled computation, its instructions in execution order; ids that no instruction has
        are left out.
        """
        entries = self.top.submessage(7).messages(1)
        rows_of_computation: dict[int, Rows] = {}
        by_id = {key: row for row, key in reversed(list(enumerate(module.computations["id"].tolist())))}
        for entry in entries:
            computation = by_id.get(entry.number(1), -1)
            rows = module.rows_of_ids(np.array(entry.submessage(2).numbers(1), np.int64))
            if computation >= 0:
                rows_of_computation[computation] = rows[rows >= 0]
        return rows_of_computation

    def buffers(self, module: HloModule) -> BufferAssignment | None:
        """The buffer assignment, None if the file has none."""
        return BufferReader(module, *self.assignment).read() if self.assignment[1] else None

    def frames(self, module: HloModule) -> StackFrames:
        """Stacks of source lines."""
        index = self.top.submessage(17)
        locations = tuple(
            (m.number32(1), m.number32(2), m.number32(3), m.number32(4), m.number32(5), m.number32(6))
            for m in index.messages(3)
        )
        frames = tuple((m.number32(1), m.number32(2)) for m in index.messages(4))
        return StackFrames(index.texts(1), index.texts(2), locations, frames)

    def header(self, module: HloModule) -> ModuleHeader:
        """The module-wide attributes."""
        program = self.top.submessage(4)
        devices = self.top.submessage(15)
        aliases = self.top.submessage(8).messages(1)
        profiles = [part.text(5) for part in self.top.messages(13)]
        return ModuleHeader(
            parameters=tuple(self.shapes.read(*span) for span in program.spans(1)),
            result=self.shapes.read(*program.span(2)) if program.has(2) else None,
            is_scheduled=self.top.has(7),
            is_dynamic=self.top.flag(11),
            aliases=tuple(
                Alias(part.numbers(1), part.number(2), part.numbers(3), part.number(4)) for part in aliases
            ),
            donors=tuple((part.number(1), part.numbers(2)) for part in self.top.submessage(18).messages(1)),
            replicas=(devices.number32(1), devices.number32(2)),
            fingerprint=next((text for text in profiles if text), ""),
            frontend=self.top.submessage(19).map(1),
        )
