"""Rules about gains: a finding measures at most the time of its cause and promises at most that; no link
promises more than the findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_tpuprof.tools.payload import Payload, Table
from tests.consistency.pages import (
    EQUAL,
    Pages,
    Violation,
    column_of,
    largest_of,
    numbers_of,
    texts_of,
    time_of,
)

_PROMISE = re.compile(r"\(expected gain.*")
_TIME = re.compile(r"[\d.,]+ (?:ps|ns|µs|ms|s|min|h)\b")
_ROUNDED = 0.006  # of a time in a sentence
_RULE = "gains are within"
# Findings whose time is that of other causes, as their sentences say.
_OF_OTHERS = ("Contention", "Warm-up")


def gains_are_within(pages: Pages) -> Iterator[Violation]:
    """Gains against the times of the overview's findings."""
    overview = pages.get("overview_page")
    findings = overview.tables.get("findings") if overview is not None else None
    if findings is None or not findings.n_rows:
        return
    times = _numbers(findings, "time_ps")
    if times is None:
        return
    for text in (*_rows(findings, times), *_causes(overview, findings, times)):
        yield Violation(_RULE, "overview_page", text)
    for page, payload in pages.items():
        for text in _links(payload, largest_of(times)):
            yield Violation(_RULE, page, text)


def _numbers(table: Table, name: str) -> npt.NDArray[np.float64] | None:
    return next((numbers_of(column) for column in table.columns if column.name == name), None)


def _rows(findings: Table, times: npt.NDArray[np.float64]) -> Iterator[str]:
    for name in ("gain_low_ps", "gain_high_ps"):
        gains = _numbers(findings, name)
        if gains is None:
            continue
        for row in np.flatnonzero(gains > times * (1 + EQUAL)).tolist():
            yield f"finding {row} takes {times[row]:g} ps, its {name} is {gains[row]:g}"


def _causes(overview: Payload, findings: Table, times: npt.NDArray[np.float64]) -> Iterator[str]:
    """Of one host; of several, a finding is the worst host's and causes are means."""
    causes = overview.tables.get("causes")
    of_causes = _numbers(causes, "time_ps") if causes is not None else None
    if causes is None or of_causes is None or len(overview.hosts) != 1:
        return
    most = dict(zip(texts_of(column_of(causes, "cause")), of_causes.tolist(), strict=True))
    for row, cause in enumerate(texts_of(column_of(findings, "cause"))):
        if cause not in _OF_OTHERS and times[row] > most.get(cause, 0.0) * (1 + EQUAL) + 2:
            yield f"finding {row} takes {times[row]:g} ps, its cause {cause} {most.get(cause, 0.0):g} ps"


def _links(payload: Payload, most_ps: float) -> Iterator[str]:
    for step in payload.verdict.next if payload.verdict else ():
        promise = _PROMISE.search(step.text)
        for time in _TIME.findall(promise[0]) if promise else ():
            if (time_of(time) or 0.0) > most_ps * (1 + _ROUNDED):
                yield f"promises {time}, the largest finding takes {most_ps:g} ps: {step.text}"
