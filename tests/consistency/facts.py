"""Rules about names: a fact, a label and the headline of a verdict mean the same on every page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.facts import FACTS
from tb_tpuprof.tools.payload import Payload, Scalar, Table
from tb_tpuprof.units import format_fraction, format_time
from tests.consistency.pages import (
    EQUAL,
    NAMED,
    Pages,
    Violation,
    all_near,
    column_of,
    numbers_of,
    row_of,
    texts_of,
)

# (page, scalar) that has the name of a fact and is none: why.
NOT_FACTS = {
    (
        "memory_viewer",
        "n_steps",
    ): "places in the order in which a program runs its instructions, not steps of the job"
}
# Pages whose verdict names an operation, with where that stands: table, name, time, share. A page that says
# `subjects` is held to these.
HEADLINES = {
    "framework_op_stats": ("ops", "operation", "total_self_time_ps"),
    "hlo_stats": ("ops", "op", "total_self_time_ps"),
    "kernel_stats": ("by_kernel", "kernel", "total_ps"),
}
_OF_THE_VIEW = (
    "start_ps",
    "end_ps",
    "n_events_in_window",
    "trace_duration_ps",
    "rank",
)  # of what a page happens to show


def facts_agree(pages: Pages) -> Iterator[Violation]:
    """A fact of the run has one value on all pages that show it, and is not known on one page and unknown on
    another.
    """
    for name in (spec.name for spec in FACTS):
        shown = {
            page: one.scalars[name].value
            for page, one in pages.items()
            if name in one.scalars and (page, name) not in NOT_FACTS
        }
        if len(set(map(_comparable, shown.values()))) > 1 and not all_near(list(shown.values())):
            yield Violation(
                "facts agree",
                ", ".join(shown),
                f"`{name}` is " + ", ".join(f"{value} ({page})" for page, value in shown.items()),
            )


def _comparable(value: float | bool | None) -> float | None:
    return None if value is None else float(value)


def labels_tell_apart(pages: Pages) -> Iterator[Violation]:
    """Two values under one name and title differ only where the note of each says what it is of."""
    first: dict[tuple[str, str], tuple[str, Scalar]] = {}
    for page, payload in pages.items():
        for name, scalar in payload.scalars.items():
            if (
                scalar.value is None
                or (page, name) in NOT_FACTS
                or scalar.unit == "id"
                or name in _OF_THE_VIEW
            ):
                continue
            before, other = first.setdefault((name, scalar.title), (page, scalar))
            if not all_near([other.value, scalar.value]) and (
                other.note == scalar.note or not (other.note and scalar.note)
            ):
                values = " and ".join(
                    f"{one.value} ({one.note or 'no base said'})" for one in (other, scalar)
                )
                yield Violation(
                    "labels tell apart", f"{before}, {page}", f"`{name}` ({scalar.title}) is {values}"
                )


def headlines_are_first(pages: Pages) -> Iterator[Violation]:
    """The operation that a verdict names is the first row of its table, with the number that the sentence
    says.
    """
    for page, payload in pages.items():
        verdict = payload.verdict
        if verdict is None:
            continue
        for subject in verdict.subjects:
            yield from _subject(page, payload, subject.table, subject.column, subject.name, subject.values)
        named = NAMED.search(verdict.text)
        if page in HEADLINES and named and not verdict.subjects:
            table, column, time = HEADLINES[page]
            yield from _first_row(page, payload, (table, column, time), named[1])


def _subject(
    page: str, payload: Payload, table: str, column: str, name: str, values: Mapping[str, float]
) -> Iterator[Violation]:
    made = payload.tables.get(table)
    row = row_of(made, column, name) if made else -1
    if made is None or row < 0:
        yield Violation(
            "headlines are first",
            page,
            f"the verdict speaks of `{name}` ({table}.{column}), which is not in the table",
        )
        return
    quoted = NAMED.findall(payload.verdict.text) if payload.verdict is not None else []
    if quoted and not any(
        _plain(one) in _plain(name) or one in texts_of(column_of(made, column)) for one in quoted
    ):
        yield Violation(
            "headlines are first", page, f"the verdict quotes `{quoted[0]}`, its subject is `{name}`"
        )
    for key, value in values.items():
        cell = float(column_of(made, key).values[row])
        if not all_near([cell, float(value)]):
            yield Violation(
                "headlines are first", page, f"`{name}`: the verdict's {key} is {value}, the table's {cell}"
            )
    by = next(iter(values), "")
    if by:
        yield from _is_first(page, made, (table, column, by), row, name)


def _plain(name: str) -> str:
    """A kernel's name as a sentence may shorten it."""
    return name.replace("(anonymous namespace)::", "").removesuffix("…")


def _is_first(
    page: str, made: Table, where: tuple[str, str, str], row: int, name: str
) -> Iterator[Violation]:
    table, column, by = where
    numbers, names = numbers_of(column_of(made, by)), texts_of(column_of(made, column))
    counted = (
        np.array([text.lower() not in ("idle", "other", "(no operation)") for text in names])
        & np.isfinite(numbers)
        & _beside(made)
    )
    if counted.any() and numbers[row] < numbers[counted].max() * (1 - EQUAL):
        first = int(np.flatnonzero(counted & (numbers == numbers[counted].max()))[0])
        text = (
            f"the verdict names `{name}` ({numbers[row]:g}), the first row of {table} by {by} is "
            f"`{names[first]}` ({numbers[first]:g})"
        )
        yield Violation("headlines are first", page, text)


def _beside(made: Table) -> npt.NDArray[np.bool_]:
    """Rows of the first row's side, where a table holds those of device and host."""
    side = next((column for column in made.columns if column.name == "host_or_device"), None)
    return np.ones(made.n_rows, np.bool_) if side is None else side.values == side.values[0]


def _first_row(page: str, payload: Payload, where: tuple[str, str, str], name: str) -> Iterator[Violation]:
    """The same for a page that gives no subject: its sentence is read."""
    table, column, by = where
    made, verdict = payload.tables[table], payload.verdict
    assert verdict is not None
    names = texts_of(column_of(made, column))
    row = next((i for i, text in enumerate(names) if text == name), -1)
    if row < 0:
        yield Violation(
            "headlines are first", page, f"the verdict names `{name}`, which no row of {table} is called by"
        )
        return
    yield from _is_first(page, made, where, row, name)
    time = format_time(float(column_of(made, by).values[row]))
    if time not in verdict.text:
        yield Violation(
            "headlines are first", page, f"`{name}` has {time} in {table}, the verdict says: {verdict.text}"
        )
    shares = [
        column
        for column in made.columns
        if column.name.endswith("fraction") and np.isfinite(float(column.values[row]))
    ]
    said = [format_fraction(float(one.values[row])) for one in shares]
    if "%" in verdict.text and shares and not any(text in verdict.text for text in said):
        yield Violation(
            "headlines are first",
            page,
            f"`{name}` has the shares {said} in {table}, the verdict says: {verdict.text}",
        )
