"""Kernels and operations → the program, HLO operation, framework operation and source line that each belongs
to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.hlo_op_texts import hlo_op_texts
from tb_tpuprof.analysis.events.stat_rows import first_ints, values_at
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.native import ascends, number, split
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.strings import Strings
from tb_tpuprof.trace.trace import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Rows = npt.NDArray[np.integer]
Texts = Callable[[int], str]

# Programs are asked for the framework's names of their operations as long as their HLO is small enough to
# read on the way.
MAX_HLO_BYTES = 32 * 2**20
NO_OPERATION = "XlaModule:"  # what PJRT calls whatever a program runs
STATS = ("program_id", "hlo_op", "tf_op")  # that tell what an event belongs to
_HLO_PARTS = re.compile(r"/|::")


@dataclass(frozen=True)
class Labels:
    """Which label each event has, and the labels: numbers of texts, -1 unknown; `texts` tells them."""

    of: Int32s
    module: Int64s
    hlo_op: Int64s
    framework_op: Int64s
    source: Int64s
    texts: Texts

    def taken(self, chosen: Rows) -> Labels:
        """The labels of some of the events."""
        return replace(self, of=self.of[chosen])

    @property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """Of each event, whether anything is known of it."""
        known: npt.NDArray[np.bool_] = ((self.module >= 0) | (self.hlo_op >= 0) | (self.framework_op >= 0))[
            self.of
        ]
        return known


class _Numbers:
    """Numbers for texts: the given strings have their ids, further texts numbers beyond."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self.n = len(strings)
        self.more: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The number of a text, -1 for none."""
        return self.n + self.more.setdefault(text, len(self.more)) if text else -1

    def texts(self) -> Texts:
        """Looks texts up; the list is made once. JAX's operations end in a colon with no type behind it."""
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
        """The instruction that an event's `hlo_op` names, -1 if there is none such."""
        return (
            -1
            if self.module is None
            else self.module.by_name.get(hlo_parts(hlo_op)[-1].removeprefix("%") if hlo_op else "", -1)
        )


def _program(trace: Trace, program_id: int, event: int) -> _Program:
    """A program by its id: `jit_f(7)`, as others may have its name. Where the trace has no HLO of the id, an
    event of it tells its name (stat `hlo_module`), and HLO of a program of that name describes it: XLA:CPU
    counts the ids in its events and those of its HLO apart.
    """
    if program_id < 0:
        return _Program("", None)
    found = trace.programs.get(program_id)
    name = found.title if found else str(dict(trace.source.event_stats(trace, event)).get("hlo_module", ""))
    found = found or (trace.programs.find(name) if name else None)
    if found is None or found.size_bytes > MAX_HLO_BYTES:
        return _Program(name, None)
    try:
        return _Program(name, trace.programs.module(found))
    except ProfilerError:  # told where the program itself is shown
        return _Program(name, None)


def of_rows(trace: Trace, rows: Rows) -> Labels:
    """Labels of kernels and of XLA:CPU's operations, from their stats `program_id`, `hlo_op` (see
    `hlo_op_texts`) and `tf_op`.

    An event is named as the HLO of its program names its instruction, which tells the source line too, or
    else by its `tf_op`: PJRT's says no more than that a program of XLA's runs (`XlaModule:`), which names
    nothing.
    """
    ops = hlo_op_texts(trace)
    numbers, span = _Numbers(ops.strings), len(ops.strings) + 1
    program_id = _at(rows, *first_ints(trace, "program_id"))
    hlo_op, no_text = ops.at(rows), trace.strings.find("")
    of_program, _ = split(np.empty(0, np.int32), program_id)
    of, at = split(of_program, hlo_op)
    named = np.full(len(at), -1, np.int64)
    if trace.event_stats.has("tf_op"):
        both, of = number(of * np.int64(span) + (_text_ids(trace, "tf_op", rows) + 1))
        at, named = at[both // span], both % span - 1
    distinct, first, place = np.unique(program_id[at], return_index=True, return_inverse=True)
    op, sample = hlo_op[at], rows[at[first]]
    op[op == no_text] = named[named == no_text] = -1
    programs = [
        _program(trace, known_id, event)
        for known_id, event in zip(distinct.tolist(), sample.tolist(), strict=True)
    ]
    module = np.array([numbers.of(known.name) for known in programs], np.int64)[place] if len(at) else place
    source = np.full(len(at), -1, np.int64)
    for label in (
        np.flatnonzero((op >= 0) & (distinct[place] >= 0)).tolist()
        if any(known.module for known in programs)
        else ()
    ):
        named[label], source[label] = _from_hlo(
            programs[place[label]], ops.strings.get(int(op[label])), int(named[label]), numbers
        )
    for code in np.unique(named[named >= 0]).tolist():
        if code < numbers.n and trace.strings.get(code).startswith(NO_OPERATION):
            named[named == code] = -1
    return Labels(of, module, op, named, source, numbers.texts())


def of_metadata(trace: Trace, rows: Rows) -> Labels:
    """Labels of a TPU's operations, from the stats of their metadata."""
    n = len(trace.metadata)
    framework_op, source = (
        trace.metadata_stats.dense_texts(key, n).astype(np.int64) for key in ("tf_op", "source")
    )
    none = np.full(n, -1, np.int64)
    return Labels(
        trace.events["metadata"][rows].astype(np.int32),
        none,
        none,
        framework_op,
        source,
        _Numbers(trace.strings).texts(),
    )


def _from_hlo(program: _Program, hlo_op: str, framework_op: int, numbers: _Numbers) -> tuple[int, int]:
    """Framework operation (the given one if the program tells none) and source line of an instruction."""
    row = program.row(hlo_op)
    if row < 0 or program.module is None:
        return framework_op, -1
    module = program.module
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    op_name = numbers.of(module.text("op_name", row))
    source = f"{file}:{line}" if file and line else file
    if not source:
        source = next(
            (place.text for place in module.frames.stack(int(module.instructions["stack_frame"][row]))), ""
        )
    return op_name if op_name >= 0 else framework_op, numbers.of(source)


def levels(
    codes: Int64s, texts: Texts, parts: Callable[[str], Sequence[str]], limit: int
) -> tuple[Int64s, Texts]:
    """Texts cut into parts, as one key per level: int64[codes, levels], -1 where a text has no such level;
    and what keys are called.

    Two codes have the same key on a level only if they agree on all levels above: `a/x` and `b/x` differ on
    both.
    """
    known: dict[tuple[int, str], int] = {}  # by the key above and the part
    rows: dict[Sequence[str], int] = {}
    cut = [rows.setdefault(parts(texts(code)) if code >= 0 else (), len(rows)) for code in codes.tolist()]
    table = np.full((len(rows), min(max(map(len, rows), default=0), limit)), -1, np.int64)
    for i, pieces in enumerate(rows):
        above = -1
        for level, part in enumerate(pieces[:limit]):
            above = table[i, level] = known.setdefault((above, part), len(known))
    names = [part for _, part in known]
    return table[cut], lambda key: names[key]


def scope_parts(name: str) -> tuple[str, ...]:
    """The scopes around a framework operation: `a/b/MatMul:MatMul` lies in `a` and `b`."""
    return _scopes(name.partition(":")[0].rpartition("/")[0])


@lru_cache(1 << 16)
def _scopes(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def hlo_parts(name: str) -> tuple[str, ...]:
    """An HLO operation within others: `call.1/fusion.2` and `call.1::fusion.2` are `fusion.2` in `call.1`."""
    return tuple(part for part in _HLO_PARTS.split(name) if part)


def _at(rows: Rows, owner: npt.NDArray[np.int32], value: Int64s) -> Int64s:
    """The value of each row, -1 where it has none; the values themselves where the rows are the owners."""
    return (
        value
        if len(rows) == len(owner) and np.array_equal(rows, owner)
        else values_at(rows, owner, value, -1)
    )


def _text_ids(trace: Trace, key: str, rows: Rows) -> Int64s:
    """String id of a text stat of each row, -1 where it is missing."""
    sparse = trace.event_stats.texts(key)
    owner, value = sparse.owner, sparse.value.astype(np.int64, copy=False)
    if not ascends(owner):
        owner, first = np.unique(owner, return_index=True)
        value = value[first]
    return _at(rows, owner, value)
