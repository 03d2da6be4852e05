"""Events of compiled operations → the HLO instructions that they ran.

An event is linked by its stats `program_id` and `hlo_op` (GPU, CPU: a path of calls `a::b::c` or `a/b`, whose
last part is the instruction), or by the same stats of its metadata, with the display name in place of
`hlo_op` (TPU's lines of XLA ops).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.stat_rows import distinct_codes, first_ints, marked, values_at
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import joined, rows_of
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinkedOp:
    """An operation that events name: its program, and its instruction's name and row (-1 if the trace has no
    HLO for it).
    """

    program_id: int
    name: str
    instruction: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class HloLinks:
    """`events` (ascending) are those that name an operation; `op` is the operation of each event.

    One row per operation: `program` is its id, `string` the text by which events name it (an id of
    `strings`), `instruction` its row in the program's module, -1 if the trace has no HLO for it. `unreadable`
    maps each program whose HLO is damaged or out of reach to the reason.
    """

    program: Rows
    string: Rows
    instruction: Rows
    strings: Strings
    events: Rows
    op: Rows
    unreadable: dict[int, str]

    def __len__(self) -> int:
        return len(self.program)

    def named(self, program: int, name: str) -> Rows:
        """The operations of a program that name an instruction: several if it was called by several paths."""
        ops = np.flatnonzero(self.program == program)
        texts = self.strings.take(self.string[ops])
        return (
            ops[[text.endswith(name) and instruction_name(text) == name for text in texts]] if texts else ops
        )

    @cached_property
    def ops(self) -> tuple[LinkedOp, ...]:
        """All operations as records."""
        columns = (column.tolist() for column in (self.program, self.instruction))
        paths = [_path(text) for text in self.strings.take(self.string)]
        return tuple(
            LinkedOp(program, _name(path), row, path)
            for program, row, path in zip(*columns, paths, strict=True)
        )

    @cached_property
    def first_named(self) -> Rows:
        """For each operation the first one that names the same instruction: paths of calls may differ."""
        first: dict[tuple[int, str], int] = {}
        keys = ((op.program_id, op.name) for op in self.ops)
        return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], np.int64)

    @cached_property
    def n_unknown(self) -> int:
        """Number of events whose operation has no HLO in the trace."""
        return int((self.instruction < 0)[self.op].sum()) if len(self) else 0


@once
def hlo_links(trace: Trace) -> HloLinks:
    """All events that name an HLO operation. Reads only the modules of programs that ran."""
    events, program, string = _named_by_event(trace)
    by_metadata = _named_by_metadata(trace)
    is_new = ~np.isin(by_metadata[0], events)
    events, program, string = (
        np.concatenate((column, added[is_new]))
        for column, added in zip((events, program, string), by_metadata, strict=True)
    )
    order = np.argsort(events, kind="stable")
    program_ids, code = distinct_codes(program[order])
    strings = hlo_op_texts(trace).strings
    keys, op = distinct_codes(code * len(strings) + string[order])
    of_program, text = np.divmod(keys, len(strings))
    unreadable: dict[int, str] = {}
    instruction = np.full(len(keys), -1, np.int64)
    for i, program_id in enumerate(program_ids.tolist()):
        module = _module(trace, program_id, unreadable)
        if module is not None:
            ops = np.flatnonzero(of_program == i)
            instruction[ops] = _rows_named(strings, text[ops], module)
    return HloLinks(program_ids[of_program], text, instruction, strings, events[order], op, unreadable)


def _rows_named(strings: Strings, texts: Rows, module: HloModule) -> Rows:
    """The instruction that each text names: itself, or the last part of a path of calls."""
    blob, offsets = joined(strings.blob, strings.offsets[texts], strings.sizes[texts])
    rows = module.rows_named(blob, offsets).astype(np.int64)
    separators = np.flatnonzero((blob == ord("/")) | (blob == ord(":")) | (blob == ord("%")))
    for i in np.unique(np.searchsorted(offsets, separators, "right") - 1).tolist():
        rows[i] = module.by_name.get(instruction_name(strings[int(texts[i])]), -1)
    return rows


def _named_by_event(trace: Trace) -> tuple[Rows, Rows, Rows]:
    """Events with the stats `hlo_op` and `program_id`: (event, program id, text id)."""
    texts = hlo_op_texts(trace)
    missing = np.iinfo(np.int64).min
    program = values_at(texts.owner, *first_ints(trace, "program_id"), missing)
    both = np.flatnonzero(program != missing)
    return texts.owner[both].astype(np.int64), program[both], texts.text[both]


def _named_by_metadata(trace: Trace) -> tuple[Rows, Rows, Rows]:
    """Events whose metadata has a `program_id` and a display name and belongs to an instruction (it has a
    `symbol_id` or an `hlo_op`): (event, program id, text id).
    """
    n = len(trace.metadata)
    sparse = trace.metadata_stats.ints("program_id")
    program = values_at(np.arange(n), *_first(sparse.owner, sparse.value.astype(np.int64)), -1)
    op = trace.metadata_stats.dense_texts("hlo_op", n).astype(np.int64)
    op = np.where(
        (op < 0) & (trace.metadata_stats.dense_ints("symbol_id", n, 0) != 0),
        trace.metadata["display_name"],
        op,
    )
    has_program = np.zeros(n, np.bool_)
    has_program[marked(sparse.owner, n)] = True
    names_op = has_program & (op >= 0)
    if not names_op.any():
        none = np.empty(0, np.int64)
        return none, none, none
    rows = rows_of(trace.events["metadata"], names_op.view(np.uint8))
    metadata = trace.events["metadata"][rows]
    texts = trace.event_stats.texts("hlo_op")
    event_text = values_at(
        rows, *_first(texts.owner, texts.value.astype(np.int64)), -1
    )  # the events of an async pair name the half that ran
    return rows.astype(np.int64), program[metadata], np.where(event_text >= 0, event_text, op[metadata])


def _first(owner: npt.NDArray[np.int32], value: Rows) -> tuple[npt.NDArray[np.int32], Rows]:
    rows, first = np.unique(owner, return_index=True)
    return rows, value[first]


def _module(trace: Trace, program: int, unreadable: dict[int, str]) -> HloModule | None:
    try:
        return trace.programs.module(program)
    except ProfilerError as error:
        unreadable[program] = error.message
        return None


def instruction_name(text: str) -> str:
    """The instruction that a text names: itself, or the last part of a path of calls."""
    return _name(_path(text))


def _path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.replace("::", "/").split("/") if part)


def _name(path: tuple[str, ...]) -> str:
    return path[-1].removeprefix("%") if path else ""
