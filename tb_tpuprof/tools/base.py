"""A tool's declaration: its questions with their parameters, tables and numbers, its files, its
availability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.spec import DeclarationError, ScalarSpec, TableSpec
from tb_tpuprof.tools.tiles import Tile

if TYPE_CHECKING:
    from tb_tpuprof.session import Session

# The largest time: a host's own times and the view's are int64 picoseconds (106 days).
MAX_TIME_PS = 2**63 - 1
ParamValue = bool | int | float | str
Params = Mapping[str, ParamValue]


@dataclass(frozen=True)
class Param:
    """A parameter of a tool. `default` None: it may be left out and then has no value. Whole numbers are
    exact up to `maximum`, even beyond 2^53.
    """

    name: str
    title: str
    kind: Literal["bool", "int", "float", "text", "choice"]
    default: ParamValue | None
    help: str
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 2.0**53
    is_required: bool = False


@dataclass(frozen=True)
class Availability:
    """Whether a tool has something to show for a run; if not, why, and what to do.

    `short`: the reason in two words or so, for the menu.
    """

    reason: str = ""
    remedy: str = ""
    short: str = ""

    def __bool__(self) -> bool:
        return not self.reason


@dataclass(frozen=True)
class File:
    """A file that a tool offers for download.

    `make(session, hosts, params)` returns its name, without the ending, and its parts.
    """

    format: str
    ending: str
    content_type: str
    make: Callable[[Session, tuple[str, ...], Params], tuple[str, Iterable[bytes]]]
    params: tuple[Param, ...] = ()
    summary: str = ""

    @property
    def is_text(self) -> bool:
        """Whether a terminal can show it."""
        return self.content_type.startswith("text/") or self.content_type == "application/json"


@dataclass(frozen=True)
class Question:
    """A request that a tool answers: `view(session, hosts, params)` gets validated arguments. The page
    itself is the question without a name. `tables` and `scalars` declare everything that an answer may
    contain.
    """

    name: str
    summary: str
    view: Callable[[Session, tuple[str, ...], Params], Payload]
    params: tuple[Param, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    scalars: tuple[ScalarSpec, ...] = ()

    def check(self, payload: Payload) -> None:
        """Raises DeclarationError if a payload does not match this declaration."""
        for name in missing(self.tables, payload.tables):
            raise DeclarationError(f"{payload.tool}/{self.name}: the payload lacks table {name}")
        for name in missing(self.scalars, payload.scalars):
            raise DeclarationError(f"{payload.tool}/{self.name}: the payload lacks scalar {name}")
        tables = {spec.name: spec for spec in self.tables}
        for name, table in payload.tables.items():
            if name not in tables:
                raise DeclarationError(f"{payload.tool}/{self.name} does not declare table {name}")
            tables[name].check(table)
        scalars = {spec.name: spec for spec in self.scalars}
        for name, scalar in payload.scalars.items():
            if name not in scalars or scalars[name].unit != scalar.unit:
                unit = scalar.unit or "no unit"
                raise DeclarationError(f"{payload.tool}/{self.name} does not declare scalar {name} in {unit}")


def missing(specs: Sequence[TableSpec] | Sequence[ScalarSpec], names: Iterable[str]) -> list[str]:
    """Names of the required tables or scalars that are not among `names`."""
    present = set(names)
    return [spec.name for spec in specs if not spec.is_optional and spec.name not in present]


@dataclass(frozen=True)
class Declaration:
    """The declaration of one page of the profiler.

    `group` is its heading in the menu. `view`, `params`, `tables` and
    `scalars` are the page's; `questions` are the others. `tiles`: which scalars the page may show at its top;
    None: all of them. Without `needs_trace` it also has something to show for runs that hold only programs.
    `only_for`: the state of the runs that it is listed for; empty: all.
    `badge`: a few characters next to its name in the menu, from results that are known already; reads
    nothing.
    """

    name: str
    title: str
    group: str
    summary: str
    view: Callable[[Session, tuple[str, ...], Params], Payload]
    available: Callable[[Session], Availability] = lambda _session: Availability()
    badge: Callable[[Session], str] = lambda _session: ""
    params: tuple[Param, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    scalars: tuple[ScalarSpec, ...] = ()
    tiles: tuple[Tile, ...] | None = None
    questions: tuple[Question, ...] = ()
    hosts: Literal["one", "many"] = "many"
    files: tuple[File, ...] = ()
    needs_trace: bool = True
    only_for: str = ""

    @property
    def page(self) -> Question:
        """The page's own question."""
        return Question("", self.summary, self.view, self.params, self.tables, self.scalars)
