"""saved_pages: what the finished pages of an older profiler state, for runs that have nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import share_of_peak
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.ingest.pages.page import SavedPage
from tb_tpuprof.ingest.pages.reading import PageFile, pages_of
from tb_tpuprof.ingest.storage.kinds import page_of_name
from tb_tpuprof.ingest.storage.run_info import LEGACY
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.saved_pages.tables import (
    ADVICE,
    CONTENT,
    FACTS,
    PAGES,
    SCALARS,
    STEPS,
    TABLES,
    TILES,
)
from tb_tpuprof.tools.spec import ColumnSpec, Filled, TableSpec, fill_scalars, known_texts
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.units import format_fraction, format_time

Pages = Sequence[tuple[PageFile, SavedPage]]
_HAS_TRACE = "the run has a trace, from which the other pages compute their numbers."
_NO_PAGES = "the run contains no pages that an older profiler saved."
_OF_PEAK = "flops_fraction"
_INPUT_BOUND = 0.2  # of the step: the share from which the input is named as the problem


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """The pages of these hosts."""
    lacking = available(session)
    if not lacking:
        raise ToolUnavailable(TOOL.name, lacking.reason, lacking.remedy)
    pages, failures = pages_of(session.info.path, hosts)
    if not pages:
        raise ToolUnavailable(TOOL.name, " ".join(failures) or _NO_PAGES, "Profile the job again.")
    tables = {spec.name: table for spec in CONTENT if (table := _content(spec, pages))}
    tables |= {"facts": _facts(pages), "pages": _listed(pages)}
    advice = [(file, text) for file, page in pages for text in page.advice]
    if advice:
        tables["advice"] = ADVICE.fill(_texts(("host", "page", "advice"), _named(advice)))
    values = _numbers(tables.get(STEPS.name))
    scalars = fill_scalars(SCALARS, {"n_pages": len(pages), **values})
    diagnostics = tuple(Diagnostic("error", message, "The other pages are shown.") for message in failures)
    return Payload(
        TOOL.name, session.run, hosts, tables, scalars, _verdict(pages, hosts, scalars), diagnostics
    )


def _content(spec: TableSpec, pages: Pages) -> Table | None:
    """A table with the rows of all hosts, each host's from the first page that has them; None without rows.
    Columns that no page states are left out.
    """
    by_host: dict[str, Any] = {}
    for file, page in sorted(pages, key=lambda one: one[0].page == "overview_page"):
        if spec.name in page.tables and file.host not in by_host:
            by_host[file.host] = page.tables[spec.name]
    hosts = [file.host for file, _ in pages if file.host in by_host]
    parts = [(host, by_host[host]) for host in dict.fromkeys(hosts)]
    counts = [len(next(iter(columns.values()))) for _, columns in parts]
    if not sum(counts):
        return None
    with_host = [
        ({**columns, "host": [host] * n}, n) for (host, columns), n in zip(parts, counts, strict=True)
    ]
    filled = {column.name: _column(column, with_host) for column in spec.columns}
    if filled.get(_OF_PEAK) is not None:
        filled[_OF_PEAK] = share_of_peak(filled[_OF_PEAK], 1.0)
    return spec.fill({name: values for name, values in filled.items() if values is not None})


def _column(column: ColumnSpec, parts: Sequence[tuple[Any, int]]) -> Any:
    """A column of all hosts; None if it is optional and no page states it."""
    if column.kind == "text":
        texts = [text for columns, n in parts for text in columns.get(column.name, [""] * n)]
        return known_texts(texts) if any(texts) or not column.is_optional else None
    numbers = np.concatenate([_floats(columns.get(column.name), n) for columns, n in parts])
    is_stated = bool((np.isfinite(numbers) & (numbers != 0)).any())
    return numbers if is_stated or not column.is_optional else None


def _floats(values: Any, n: int) -> npt.NDArray[np.float64]:
    return np.full(n, np.nan) if values is None else np.asarray(values, np.float64)


def _facts(pages: Pages) -> Table:
    rows = [(file, name.replace("_", " "), value) for file, page in pages for name, value in page.facts]
    return FACTS.fill(_texts(("host", "page", "name", "value"), _named(rows)))


def _listed(pages: Pages) -> Table:
    texts = _texts(
        ("host", "page", "file"), _named([(file, os.path.basename(file.path)) for file, _ in pages])
    )
    n_rows = [sum(len(next(iter(columns.values()))) for columns in page.tables.values()) for _, page in pages]
    numbers = {"n_facts": np.array([len(page.facts) for _, page in pages], np.float64)}
    return PAGES.fill({**texts, **numbers, "n_rows": np.array(n_rows, np.float64)})


def _named(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Rows with the host and the title of the page in place of its file."""
    return [(file.host, _title(file), *rest) for file, *rest in rows]


def _title(file: PageFile) -> str:
    named = page_of_name(file.path)
    return named.title if named else file.page


def _texts(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Filled:
    return {name: known_texts([row[i] for row in rows]) for i, name in enumerate(names)}


def _numbers(steps: Table | None) -> dict[str, float]:
    """Number and mean duration of the steps, and the share of their time that is spent waiting for input."""
    if steps is None:
        return {}
    classes = {
        column.name: column.values.astype(np.float64) for column in steps.columns if column.unit == "ps"
    }
    total = float(sum(np.nansum(values) for values in classes.values()))
    numbers: dict[str, float] = {"n_steps": steps.n_rows}
    if total > 0:
        numbers["step_time_ps"] = total / steps.n_rows
        if "input_ps" in classes:
            numbers["input_fraction"] = float(np.nansum(classes["input_ps"])) / total
    return numbers


def _verdict(pages: Pages, hosts: tuple[str, ...], scalars: dict[str, Scalar]) -> Verdict:
    """The numbers of the steps, and what the pages are; the pages' own sentences as details."""
    titles = list(dict.fromkeys(_title(file) for file, _ in pages))
    of_hosts = hosts[0] if len(hosts) == 1 else f"{len(hosts):,} hosts"
    text = f"An older profiler saved {_joined(titles)} of {of_hosts}, without a timeline."
    step_time, waiting = (scalars[name].value if name in scalars else None for name in _OF_STEPS)
    if step_time is not None:
        share = f", {format_fraction(waiting)} of it waiting for input" if waiting is not None else ""
        text = f"A step took {format_time(step_time)} on average{share}. {text}"
    details = tuple(dict.fromkeys(text for _, page in pages for text in page.statements))
    if waiting is None:
        return Verdict("unknown", text, details=details)
    is_bound = waiting >= _INPUT_BOUND
    return Verdict("warn" if is_bound else "good", text, "input" if is_bound else "", details)


_OF_STEPS = ("step_time_ps", "input_fraction")


def _joined(titles: Sequence[str]) -> str:
    named = [f"the {title}" for title in titles]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def available(session: Session) -> Availability:
    """Only for runs of saved pages."""
    if session.info.state == LEGACY:
        return Availability()
    if session.info.has_trace:
        return Availability(_HAS_TRACE, "Choose another page.", "has a trace")
    return Availability(_NO_PAGES, "Choose another page.", "no pages")


TOOL = Tool(
    name="saved_pages",
    title="Saved pages",
    group="Old files",
    summary="The finished pages that an older profiler saved",
    view=view,
    available=available,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    needs_trace=False,
    only_for=LEGACY,
)
