"""Kernels and operations → the program, HLO operation, framework operation and source line of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.analysis.events.text_cache import text_cache
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import ascends, number, split
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer]
Texts = Callable[[int], str]

# Larger HLO is not read just to find the framework's names of a program's operations.
MAX_HLO_BYTES = 32 * 2**20
NO_OPERATION = "XlaModule:"  # PJRT's name of anything that a program runs
STATS = ("program_id", "hlo_op", "tf_op")  # that identify what an event belongs to
_HLO_PARTS = re.compile(r"/|::")


@dataclass(frozen=True)
class Labels:
    """The label of each event (`of`), and the labels: codes of texts, -1 unknown; `texts` returns the text of
    a code.
    """

    of: Int32s
    module: Int64s
    hlo_op: Int64s
    framework_op: Int64s
    source: Int64s
    texts: Texts

    def taken(self, rows: Rows) -> Labels:
        """The labels of a selection of the events."""
        return replace(self, of=self.of[rows])

    @property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """Mark the events with any known label."""
        is_known: npt.NDArray[np.bool_] = (
            (self.module >= 0) | (self.hlo_op >= 0) | (self.framework_op >= 0)
        )[self.of]
        return is_known


class _TextCodes:
    """Codes of texts: the given strings have their ids, further texts have codes above these."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self.n = len(strings)
        self.more: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The code of a text, -1 for the empty text."""
        return self.n + self.more.setdefault(text, len(self.more)) if text else -1

    def texts(self) -> Texts:
        """A function that looks texts up; it builds the list once. JAX operations end in a colon without a
        type.
        """
        more = list(self.more)
        return lambda code: (self.strings.get(code) if code < self.n else more[code - self.n]).removesuffix(
            ":"
        )


@dataclass(frozen=True)
class _Program:
    """A program that events name, and its HLO if the trace has it."""

    name: str
    module: HloModule | None

    def row(self, hlo_op: str) -> int:
        """The instruction that an event's `hlo_op` names, -1 if there is none."""
        return (
            -1
            if self.module is None
            else self.module.by_name.get(hlo_parts(hlo_op)[-1].removeprefix("%") if hlo_op else "", -1)
        )


def _program(trace: Trace, program_id: int, event: int) -> _Program:
    """A program by its id, titled `jit_f(7)`, since others may have the same name. If the trace has no HLO
    with this id, an event's stat `hlo_module` gives its name, and HLO of a program of that name describes it:
    XLA:CPU numbers programs in events and in HLO separately.
    """
    if program_id < 0:
        return _Program("", None)
    program = trace.programs.get(program_id)
    name = (
        program.title if program else str(dict(trace.source.event_stats(trace, event)).get("hlo_module", ""))
    )
    program = program or (trace.programs.find(name) if name else None)
    if program is None or program.size_bytes > MAX_HLO_BYTES:
        return _Program(name, None)
    try:
        return _Program(name, trace.programs.module(program))
    except ProfilerError:  # the program's own page reports it
        return _Program(name, None)


def of_rows(trace: Trace, rows: Rows) -> Labels:
    """Labels of kernels and of XLA:CPU operations, from their stats `program_id`, `hlo_op` (see
    `hlo_op_texts`) and `tf_op`.

    The HLO of an event's program names its framework operation and its source line. Without that, the event's
    `tf_op` names the operation, unless it is PJRT's `XlaModule:`, which only says that an XLA program runs.
    """
    ops = hlo_op_texts(trace)
    text_codes, span = _TextCodes(ops.strings), len(ops.strings) + 1
    program_id = _values_of_rows(rows, *first_ints(trace, "program_id"))
    hlo_op, no_text = ops.at(rows), trace.strings.find("")
    of_program, _ = split(np.empty(0, np.int32), program_id)
    label_of_event, example = split(of_program, hlo_op)
    framework_op = np.full(len(example), -1, np.int64)
    if trace.event_stats.has("tf_op"):
        label_and_op, label_of_event = number(
            label_of_event * np.int64(span) + (_text_ids(trace, "tf_op", rows) + 1)
        )
        example, framework_op = example[label_and_op // span], label_and_op % span - 1
    program_ids, first, program_row = np.unique(program_id[example], return_index=True, return_inverse=True)
    op, sample_event = hlo_op[example], rows[example[first]]
    op[op == no_text] = framework_op[framework_op == no_text] = -1
    programs = [
        _program(trace, program_number, event)
        for program_number, event in zip(program_ids.tolist(), sample_event.tolist(), strict=True)
    ]
    module = (
        np.array([text_codes.of(program.name) for program in programs], np.int64)[program_row]
        if len(example)
        else program_row
    )
    source = np.full(len(example), -1, np.int64)
    for label in (
        np.flatnonzero((op >= 0) & (program_ids[program_row] >= 0)).tolist()
        if any(program.module for program in programs)
        else ()
    ):
        framework_op[label], source[label] = _from_hlo(
            programs[program_row[label]],
            ops.strings.get(int(op[label])),
            int(framework_op[label]),
            text_codes,
        )
    for code in np.unique(framework_op[framework_op >= 0]).tolist():
        if code < text_codes.n and trace.strings.get(code).startswith(NO_OPERATION):
            framework_op[framework_op == code] = -1
    return Labels(label_of_event, module, op, framework_op, source, text_codes.texts())


def of_metadata(trace: Trace, rows: Rows) -> Labels:
    """Labels of a TPU's operations, from the stats of their metadata."""
    n = len(trace.metadata)
    # Only those of these rows: all of them for each of thousands of planes would take minutes.
    used, label_of_event = number(trace.events["metadata"][rows].astype(np.int64))
    framework_op, source = (
        trace.metadata_stats.dense_texts(key, n)[used].astype(np.int64) for key in ("tf_op", "source")
    )
    none = np.full(len(used), -1, np.int64)
    return Labels(
        label_of_event.astype(np.int32),
        none,
        none,
        framework_op,
        source,
        _TextCodes(trace.strings).texts(),
    )


def _from_hlo(program: _Program, hlo_op: str, framework_op: int, text_codes: _TextCodes) -> tuple[int, int]:
    """Framework operation (the given one if the program has none) and source line of an instruction."""
    row = program.row(hlo_op)
    if row < 0 or program.module is None:
        return framework_op, -1
    module = program.module
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    op_name = text_codes.of(module.text("op_name", row))
    source = f"{file}:{line}" if file and line else file
    if not source:
        source = next(
            (frame.text for frame in module.frames.stack(int(module.instructions["stack_frame"][row]))), ""
        )
    return op_name if op_name >= 0 else framework_op, text_codes.of(source)


def levels(
    codes: Int64s, texts: Texts, parts: Callable[[str], Sequence[str]], limit: int
) -> tuple[Int64s, Texts]:
    """Texts split into parts, as one key per level: int64[codes, levels], -1 where a text has no such level;
    and a function from a key to its name.

    Two codes have the same key on a level only if they agree on all levels above: `a/x` and `b/x` differ on
    both.
    """
    keys: dict[tuple[int, str], int] = {}  # by the key of the level above and the part
    rows: dict[Sequence[str], int] = {}
    row_of_code = [
        rows.setdefault(parts(texts(code)) if code >= 0 else (), len(rows)) for code in codes.tolist()
    ]
    table = np.full((len(rows), min(max(map(len, rows), default=0), limit)), -1, np.int64)
    for i, pieces in enumerate(rows):
        parent_key = -1
        for level, part in enumerate(pieces[:limit]):
            parent_key = table[i, level] = keys.setdefault((parent_key, part), len(keys))
    names = [part for _, part in keys]
    return table[row_of_code], lambda key: names[key]


def scope_parts(name: str) -> tuple[str, ...]:
    """The scopes around a framework operation: `a/b/MatMul:MatMul` is in `a` and `b`."""
    return _scopes(name.partition(":")[0].rpartition("/")[0])


@text_cache
def _scopes(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def hlo_parts(name: str) -> tuple[str, ...]:
    """The path of a nested HLO operation: `call.1/fusion.2` and `call.1::fusion.2` are `fusion.2` in
    `call.1`.
    """
    return tuple(part for part in _HLO_PARTS.split(name) if part)


def _values_of_rows(rows: Rows, owner: npt.NDArray[np.int32], value: Int64s) -> Int64s:
    """The value of each row, -1 if it has none; `value` itself if the rows are the owners."""
    return (
        value
        if len(rows) == len(owner) and np.array_equal(rows, owner)
        else values_at(rows, owner, value, -1)
    )


def _text_ids(trace: Trace, key: str, rows: Rows) -> Int64s:
    """String id of a text stat of each row, -1 if it has none."""
    sparse = trace.event_stats.texts(key)
    owner, value = sparse.owner, sparse.value.astype(np.int64, copy=False)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    return _values_of_rows(rows, owner, value)
