"""Arguments of events and conditions on them → the events, and metadata rows, that satisfy these.

Where arguments that were not decoded on opening are read, `ArgumentSource` reads them; what it read of one
argument stays with the trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.query.grammar import Condition, TextTest
from tb_tpuprof.analysis.query.quantities import number_in, time_scale
from tb_tpuprof.trace.schema import BYTES, DOUBLE, TEXT, UINT
from tb_tpuprof.trace.stats import StatColumns, StatTable
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
FULL_NAME = "full_name"
_SPACES = re.compile(r"\s*([,\[\](){}:])\s*")


class ArgumentSource(Protocol):
    """Reads arguments that were not decoded on opening."""

    def argument(self, trace: Trace, name: str) -> StatTable:
        """One argument of all events."""
        ...

    def all_arguments(self, trace: Trace) -> Iterator[StatTable]:
        """All arguments of all events, in parts."""
        ...

    def names_of(self, trace: Trace) -> list[str]:
        """Names of all arguments, ascending."""
        ...


@dataclass(frozen=True)
class _Reading:
    """The reading of one argument, by which the trace's memo keeps it."""

    name: str
    source: ArgumentSource = field(compare=False)

    def __call__(self, trace: Trace) -> StatTable:
        return self.source.argument(trace, self.name)


def argument_of(trace: Trace, name: str, source: ArgumentSource) -> StatTable:
    """A table with (at least) one argument of all events, kept with the trace."""
    return trace.memo.get(_Reading(name, source), trace)


@dataclass(frozen=True)
class Owners:
    """Rows that satisfy a condition: events of the file (in no order), and rows of `metadata` as flags."""

    events: Int64s
    metadata: Flags


def owners_of(trace: Trace, condition: Condition, source: ArgumentSource) -> Owners:
    """What has the argument (or, for `arg` and `any`, an argument) that a condition asks for."""
    name = condition.argument
    metadata = np.zeros(len(trace.metadata), np.bool_)
    metadata |= _full_names(trace, condition) if name in ("", FULL_NAME) else False
    for key in [name] if name else trace.metadata_stats.names():
        metadata[owners_in(trace.metadata_stats, key, condition)] = True
    tables = [argument_of(trace, name, source)] if name else source.all_arguments(trace)
    parts = [
        owners_in(table, key, condition) for table in tables for key in ([name] if name else table.names())
    ]
    return Owners(np.concatenate([np.empty(0, np.int64), *parts]), metadata)


def _full_names(trace: Trace, condition: Condition) -> Flags:
    """Whether each metadata row's full name (such as an operation's HLO text) passes."""
    if condition.text is None:
        return np.zeros(len(trace.metadata), np.bool_)
    distinct, position = np.unique(trace.metadata["name"], return_inverse=True)
    passes = passing(condition.text, [trace.strings.get(i) for i in distinct.tolist()])
    return passes[position.reshape(-1)] if len(distinct) else np.zeros(0, np.bool_)


def owners_in(stats: StatTable, key: str, condition: Condition) -> Int64s:
    """Owners of the stats of a key whose value passes."""
    columns = stats.columns(key)
    if not len(columns.owner):
        return np.empty(0, np.int64)
    chosen = np.zeros(len(columns.owner), np.bool_)
    is_text = columns.kind == TEXT
    rows = np.flatnonzero(is_text)
    if len(rows):
        ids, position = np.unique(columns.value[rows], return_inverse=True)
        texts = [stats.strings.get(i) for i in ids.tolist()]
        chosen[rows] = _texts_pass(texts, key, condition)[position.reshape(-1)]
    rows = np.flatnonzero(~is_text & (columns.kind != BYTES))
    if len(rows):
        chosen[rows] = _numbers_pass(columns, rows, key, condition)
    return columns.owner[chosen].astype(np.int64)


def _texts_pass(texts: list[str], key: str, condition: Condition) -> Flags:
    result = np.zeros(len(texts), np.bool_)
    if condition.bounds:
        numbers = np.array([number_in(text) for text in texts], np.float64)
        result |= condition.bounds.contain(numbers, _scale(key, condition))
    if condition.text:
        result |= passing(condition.text, texts)
    return result


def _numbers_pass(columns: StatColumns, rows: Int64s, key: str, condition: Condition) -> Flags:
    kind, value = columns.kind[rows], columns.value[rows]
    result = np.zeros(len(rows), np.bool_)
    for of_kind, numbers in _by_kind(kind, value):
        if condition.bounds:
            result[of_kind] |= condition.bounds.contain(numbers, _scale(key, condition))
        elif condition.text:
            distinct, position = np.unique(numbers, return_inverse=True)
            passes = passing(condition.text, [str(number) for number in distinct.tolist()])
            result[of_kind] |= passes[position.reshape(-1)]
    return result


def _by_kind(
    kind: npt.NDArray[np.uint8], value: Int64s
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.number]]]:
    """(rows, their numbers) of doubles, of unsigned and of signed integers."""
    for rows, view in (
        (np.flatnonzero(kind == DOUBLE), np.float64),
        (np.flatnonzero((kind == UINT) & (value < 0)), np.uint64),
        (np.flatnonzero((kind != DOUBLE) & ~((kind == UINT) & (value < 0))), np.int64),
    ):
        if len(rows):
            yield rows, np.ascontiguousarray(value[rows]).view(view)


def _scale(key: str, condition: Condition) -> int:
    """Picoseconds in the unit of the argument if the condition is about times; else 1."""
    return (time_scale(key) or 1) if condition.bounds and condition.bounds.kind == "time" else 1


def passing(test: TextTest, texts: Sequence[str]) -> Flags:
    """Whether each text passes. Lists are compared without their spaces: `[8,128]` is `[8, 128]`."""
    if test.how == "pattern":
        assert test.pattern is not None
        return np.array(test.pattern.are_in(texts), np.bool_)
    same: Callable[[str], bool]
    if test.how == "equals":
        same = test.text.__eq__
        result = np.array([same(text) for text in texts], np.bool_)
    else:
        result = np.array([test.text in text.lower() for text in texts], np.bool_)
    if test.text[:1] not in ("[", "(", "{"):
        return result
    bare = _SPACES.sub(r"\1", test.text)
    for i in np.flatnonzero(~result).tolist():
        if texts[i][:1] in ("[", "(", "{") or test.how == "contains":
            text = _SPACES.sub(r"\1", texts[i])
            result[i] = text == bare if test.how == "equals" else bare in text.lower()
    return result


@dataclass(frozen=True)
class _Names:
    """The reading of all names, by which the trace's memo keeps them."""

    source: ArgumentSource = field(compare=False)

    def __call__(self, trace: Trace) -> list[str]:
        return self.source.names_of(trace)


def argument_names(trace: Trace, source: ArgumentSource) -> list[str]:
    """Names of all arguments that the trace's events may have, ascending."""
    return trace.memo.get(_Names(source), trace)
