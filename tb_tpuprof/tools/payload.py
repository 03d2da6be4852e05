"""A tool's answer: Payload, its tables, scalars, verdict and diagnostics. HTTP, CLI and CSV encode it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Unit = Literal["ps", "bytes", "fraction", "flops_per_s", "bytes_per_s", "flops_per_byte", "count", "id", ""]


@dataclass(frozen=True)
class Column:
    """One column of a table. Text is interned: `values` are codes into `strings`, -1 unknown; else `strings`
    is None.

    Unknown numbers are NaN; booleans are a bool array. `delta` marks a sorted column worth sending
    as differences; `after` names the column of lengths if these can be taken from the end of the row before.
    `description` and `formula` define the column; `unknown` is the reason for its unknown cells.
    """

    name: str
    title: str
    values: npt.NDArray[np.generic]
    unit: Unit = ""
    strings: Sequence[str] | None = None
    description: str = ""
    delta: bool = False
    formula: str = ""
    unknown: str = ""
    after: str = ""

    @property
    def kind(self) -> str:
        """`text`, `bool` or `number`."""
        if self.strings is not None:
            return "text"
        return "bool" if self.values.dtype.kind == "b" else "number"


@dataclass(frozen=True)
class Table:
    """Columns of equal length under a title. `chart`: how the generic page draws it; `description`: what it
    shows, in a sentence. `parts`: a number for each row; binary columns hold rows of one number together,
    as they compress better.
    """

    title: str
    columns: tuple[Column, ...]
    note: str = ""
    chart: str = ""
    description: str = ""
    parts: npt.NDArray[np.uint8] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values) if self.columns else 0


@dataclass(frozen=True)
class Scalar:
    """One number with its unit and name; None means unknown. `note` says why, or adds a second figure.

    `description` and `formula` define it; `working` is the formula with this run's numbers put in.
    """

    value: float | int | bool | None
    unit: Unit
    title: str
    note: str = ""
    description: str = ""
    formula: str = ""
    working: str = ""


@dataclass(frozen=True)
class NextStep:
    """The next thing to do, and the tool (with its parameters) to open; without a tool it is plain advice."""

    text: str
    tool: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """The subject of a sentence: the row of `table` with `name` in `column`, and the numbers that the
    sentence gives, by column.

    The row is the first of its table when sorted by the first of these columns, without idle time.
    """

    table: str
    column: str
    name: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """The tool's answer in one sentence. `category` names the kind of time, for its color.

    `subjects`: the rows of the payload's tables that `text` names, so that programs need not read the
    sentence.
    """

    level: Literal["good", "warn", "bad", "unknown"]
    text: str
    category: str = ""
    details: tuple[str, ...] = ()
    next: tuple[NextStep, ...] = ()
    subjects: tuple[Subject, ...] = ()


@dataclass(frozen=True)
class Diagnostic:
    """A notice about the trace itself that matters for trusting the numbers."""

    severity: Literal["info", "warning", "error"]
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class Payload:
    """A tool's answer for a run."""

    tool: str
    run: str
    hosts: tuple[str, ...]
    tables: Mapping[str, Table]
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    verdict: Verdict | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    tiles: tuple[str, ...] = ()
    """The scalars that the page shows at its top, in this order."""
    is_diagnosed: bool = True
    """False: the verdict does not include the diagnosis yet, because computing it takes a while.
    """
