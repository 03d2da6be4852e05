"""Declared tables and numbers: each name, title, unit and sentence is written once; other modules only fill
them.

A tool declares its tables with these classes and fills them by name; `fill` checks the names. The same
declarations produce the TypeScript accessors, the field lists of docs/http_api.md and the JSON Schemas
(`tests/published_files.py`, `encode/schema.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.payload import Column, Scalar, Table, Unit

Kind = Literal["number", "text", "bool"]
Chart = Literal["", "donut", "steps"]


class DeclarationError(ValueError):
    """A tool fills something other than what it declares: a bug in the tool, never in the input."""


class Texts(NamedTuple):
    """Texts as codes into `strings`, -1 unknown: for columns whose texts are already numbered."""

    codes: npt.NDArray[np.integer[Any]]
    strings: Sequence[str]


Values = npt.NDArray[Any] | Sequence[str] | Sequence[float] | Texts
Filled = Mapping[str, Values]


def known_texts(texts: Sequence[str]) -> Texts:
    """Interned texts; empty ones are unknown."""
    code = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return Texts(np.array([code[text] if text else -1 for text in texts], np.int32), list(code))


@dataclass(frozen=True)
class ColumnSpec:
    """A column: its name, title, unit and kind, the sentence that defines it, its formula, and the reason for
    cells that are unknown.

    `is_optional`: payloads leave it out if it does not apply to the run. `delta`: sorted, sent as
    differences; `after`: the column of lengths, if they are taken from where the row before ends.
    """

    name: str
    title: str
    unit: Unit = ""
    description: str = ""
    kind: Kind = "number"
    is_optional: bool = False
    delta: bool = False
    formula: str = ""
    unknown: str = ""
    after: str = ""

    def sent_as_differences(self, after: str = "") -> ColumnSpec:
        """The same column, sorted. `after`: the column of lengths, if rows follow one another."""
        return replace(self, delta=True, after=after)

    def filled(self, values: Values, title: str, description: str, unknown: str) -> Column:
        """The column with its values. Raises DeclarationError for values of another kind."""
        rows, strings = self._rows(values)
        column = Column(
            self.name,
            title or self.title,
            rows,
            self.unit,
            strings,
            description or self.description,
            self.delta,
            self.formula,
            unknown or self.unknown,
            self.after,
        )
        if column.kind != self.kind:
            raise DeclarationError(
                f"column {column.name} is declared as {self.kind} and filled with {column.kind}"
            )
        return column

    def _rows(self, values: Values) -> tuple[npt.NDArray[Any], Sequence[str] | None]:
        """Values as a column holds them, and the texts that they number."""
        if isinstance(values, Texts):
            return values
        if isinstance(values, np.ndarray):
            return values, None
        if self.kind != "text":
            return np.array(values, np.bool_ if self.kind == "bool" else np.float64), None
        code: dict[object, int] = {}
        codes = np.array([code.setdefault(text, len(code)) for text in values], np.int32)
        return codes, [str(text) for text in code]


def number(
    name: str,
    title: str,
    unit: Unit = "",
    description: str = "",
    *,
    is_optional: bool = False,
    formula: str = "",
    unknown: str = "",
) -> ColumnSpec:
    """A column of numbers; NaN is unknown."""
    return ColumnSpec(name, title, unit, description, "number", is_optional, formula=formula, unknown=unknown)


def text(
    name: str, title: str, description: str = "", *, is_optional: bool = False, unknown: str = ""
) -> ColumnSpec:
    """A column of texts."""
    return ColumnSpec(name, title, "", description, "text", is_optional, unknown=unknown)


def flag(name: str, title: str, description: str = "", *, is_optional: bool = False) -> ColumnSpec:
    """A column of yes and no."""
    return ColumnSpec(name, title, "", description, "bool", is_optional)


@dataclass(frozen=True)
class TableSpec:
    """A table: its columns in order.

    `description` documents its rows for programs, `sentence` what it shows for people, if that differs.
    `chart` is how the generic page draws it: as a `donut` of the first number column by the
    first text column, or, as `steps`, stacked bars of all columns in the first number column's unit.
    `is_optional`: payloads leave it out if it does not apply to the run.
    """

    name: str
    title: str
    columns: tuple[ColumnSpec, ...]
    description: str = ""
    is_optional: bool = False
    chart: Chart = ""
    sentence: str = ""

    def fill(
        self,
        values: Filled,
        note: str = "",
        *,
        title: str = "",
        titles: Mapping[str, str] | None = None,
        descriptions: Mapping[str, str] | None = None,
        unknown: Mapping[str, str] | None = None,
    ) -> Table:
        """The table with its values by column, in the order of `values`.

        `title`, `titles`, `descriptions` and `unknown` (by column) replace the declared ones if they depend
        on the run. Raises DeclarationError for a name that is not declared, a required column that is
        missing, values of another kind, and columns of unequal lengths.
        """
        titles, descriptions, unknown = titles or {}, descriptions or {}, unknown or {}
        self._check_names([*values, *titles, *descriptions, *unknown], values)
        declared = {column.name: column for column in self.columns}
        columns = tuple(
            declared[name].filled(
                column, titles.get(name, ""), descriptions.get(name, ""), unknown.get(name, "")
            )
            for name, column in values.items()
        )
        if len({len(column.values) for column in columns}) > 1:
            lengths = ", ".join(f"{column.name} {len(column.values)}" for column in columns)
            raise DeclarationError(f"columns of table {self.name} have unequal lengths: {lengths}")
        return Table(title or self.title, columns, note, self.chart, self.sentence or self.description)

    def empty(self, note: str = "") -> Table:
        """The table without rows; optional columns are left out."""
        nothing: dict[Kind, Values] = {"number": np.empty(0), "text": (), "bool": np.empty(0, np.bool_)}
        return self.fill(
            {column.name: nothing[column.kind] for column in self.columns if not column.is_optional}, note
        )

    def check(self, table: Table) -> None:
        """Raises DeclarationError if a table does not match this declaration."""
        names = [column.name for column in table.columns]
        self._check_names(names, names)
        declared = {column.name: column for column in self.columns}
        for column in table.columns:
            spec = declared[column.name]
            if (column.kind, column.unit) != (spec.kind, spec.unit):
                raise DeclarationError(
                    f"column {column.name} of table {self.name} is a {column.kind} in "
                    f"{column.unit or 'no unit'}, "
                    f"declared as a {spec.kind} in {spec.unit or 'no unit'}"
                )

    def _check_names(self, names: Iterable[str], present: Iterable[str]) -> None:
        declared = [column.name for column in self.columns]
        if unknown := [name for name in names if name not in declared]:
            raise DeclarationError(f"table {self.name} does not declare {', '.join(unknown)}")
        required = [column.name for column in self.columns if not column.is_optional]
        present_names = set(present)
        if missing := [name for name in required if name not in present_names]:
            raise DeclarationError(f"table {self.name} lacks {', '.join(missing)}")


class Number(NamedTuple):
    """A scalar's value; None is unknown, and `note` gives the reason. `title` replaces the declared one;
    `working` is the formula with this run's numbers.
    """

    value: float | int | bool | None
    note: str = ""
    title: str = ""
    working: str = ""


@dataclass(frozen=True)
class ScalarSpec:
    """One number of a payload: name, title, unit, the sentence that defines it, its formula, and the reason
    why it may be unknown.

    `is_optional`: payloads leave it out if it does not apply to the run.
    """

    name: str
    title: str
    unit: Unit = ""
    description: str = ""
    is_optional: bool = False
    formula: str = ""
    unknown: str = ""

    def of(
        self, value: float | int | bool | None, note: str = "", title: str = "", working: str = ""
    ) -> Scalar:
        """The scalar with its value; the note of an unknown one is the declared reason unless it is given."""
        is_unknown = value is None or value != value
        reason = note or (self.unknown if is_unknown else "")
        return Scalar(value, self.unit, title or self.title, reason, self.description, self.formula, working)


def fill_scalars(
    specs: Sequence[ScalarSpec], values: Mapping[str, Number | float | int | bool | None]
) -> dict[str, Scalar]:
    """Scalars by name in the order of `values`. Raises DeclarationError for a name that is not declared."""
    declared = {spec.name: spec for spec in specs}
    if unknown := [name for name in values if name not in declared]:
        raise DeclarationError(f"no scalar {', '.join(unknown)} is declared")
    return {
        name: declared[name].of(*(value if isinstance(value, Number) else Number(value)))
        for name, value in values.items()
    }
