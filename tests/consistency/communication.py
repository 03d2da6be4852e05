"""Rules about communication: the page's parts add up, and the overview, the pod viewer and the diagnosis
agree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_tpuprof.tools.payload import Payload, Table
from tests.consistency.pages import (
    EQUAL,
    Pages,
    Violation,
    all_near,
    column_of,
    numbers_of,
    row_of,
    texts_of,
)

_PARTS = ("compute_ps", "hidden_ps", "partly_ps", "exposed_ps", "other_ps")
_ROUNDING = 0.001  # of the step


def communication_agrees(pages: Pages) -> Iterator[Violation]:
    """What the communication page says of itself and what other pages say of the same."""
    page = pages.get("communication")
    if page is None:
        return
    for text in (*_sums(page), *_what_if(page), *_elsewhere(page, pages), *_diagnosed(page, pages)):
        yield Violation("communication agrees", "communication", text)


def _number(page: Payload, name: str) -> float:
    scalar = page.scalars.get(name)
    return float("nan") if scalar is None or scalar.value is None else float(scalar.value)


def _column(page: Payload, table: str, name: str) -> np.ndarray:
    return numbers_of(column_of(page.tables[table], name))


def _sums(page: Payload) -> Iterator[str]:
    """Parts are the step; operations, devices, steps and kinds of traffic are the exposed time."""
    steps = page.tables["steps"]
    parts = np.array([numbers_of(column_of(steps, name)) for name in _PARTS])
    whole = numbers_of(column_of(steps, "step_ps"))
    if (parts < -EQUAL * whole).any() or not np.allclose(parts.sum(axis=0), whole, rtol=EQUAL, atol=2):
        yield f"the parts of a step are {parts[:, 0]}, the step {whole[0]}"
    exposed = _number(page, "exposed_ps")
    sums = {
        "operations": float(_column(page, "ops", "exposed_ps").sum()),
        "devices": float(_column(page, "devices", "exposed_ps").mean()),
        "steps": float(_column(page, "steps", "exposed_ps").mean()),
        "traffic": sum(_number(page, f"exposed_{name}_ps") for name in ("devices", "host", "local")),
    }
    for name, value in sums.items():
        if abs(value - exposed) > EQUAL * exposed + 2:
            yield f"exposed is {exposed}, by {name} it is {value}"


def _what_if(page: Payload) -> Iterator[str]:
    """Hiding saves at most what is exposed."""
    gain, share = _number(page, "gain_fraction"), _number(page, "exposed_communication_fraction")
    if not 0 <= gain <= share * (1 + EQUAL) <= 1 + 2 * EQUAL:
        yield f"hiding saves {gain} of the step, of which {share} is exposed"


def _elsewhere(page: Payload, pages: Pages) -> Iterator[str]:
    """The overview's share and the pod viewer's waiting are the page's."""
    name = "exposed_communication_fraction"
    if name in pages["overview_page"].scalars:
        values = [_number(one, name) for one in (page, pages["overview_page"])]
        if not all_near(values):
            yield f"the exposed share is {values[0]}, on the overview {values[1]}"
    pod, wait = pages.get("pod_viewer"), _number(page, "wait_ps")
    if pod is None or wait != wait or "steps" not in pod.tables:
        return
    columns = [c for c in pod.tables["steps"].columns if c.name == "collective_wait_ps"]
    theirs = float(numbers_of(columns[0]).mean()) if columns else 0.0
    if abs(theirs - wait) > EQUAL * wait + 2:
        yield f"devices wait for {wait} in collectives, on the pod viewer for {theirs}"


def _diagnosed(page: Payload, pages: Pages) -> Iterator[str]:
    """The cause `Communication` is part of what is exposed, where both are of one device; of several hosts,
    the class of the steps that all have, as causes are means over all steps of each host. Its finding has the
    cause's time, and promises what the page says that hiding saves.
    """
    overview = pages["overview_page"]
    causes = overview.tables.get("causes")
    row = row_of(causes, "cause", "Communication") if causes is not None else -1
    if causes is None or row < 0 or _number(page, "n_shown_steps") < 1:
        return
    step = _number(page, "step_ps")
    share = float(numbers_of(column_of(causes, "share"))[row])
    exposed = _number(page, "exposed_ps") / step
    is_one_each = _number(page, "n_devices_compared") == len(page.hosts)
    counted = share if len(page.hosts) == 1 else _share_of_class(overview.tables["breakdown"])
    if is_one_each and counted > exposed + _ROUNDING:
        yield f"the overview counts {counted} of the step as communication, of which {exposed} is exposed"
    findings = overview.tables.get("findings")
    if findings is None or "exposed_communication_fraction" not in overview.scalars:
        return
    saved = _number(page, "gain_fraction") * step
    for found in _of_all_hosts(findings):
        stated, time, gain = (
            float(numbers_of(column_of(findings, name))[found])
            for name in ("share", "time_ps", "gain_high_ps")
        )
        if abs(stated - share) > EQUAL:
            yield f"the finding counts {stated} of the step as communication, the causes {share}"
        if abs(gain - min(saved, time)) > EQUAL * time + 2:
            yield f"the finding promises {gain} of its {time}, the page {saved}"


def _share_of_class(breakdown: Table) -> float:
    """The share of collectives in the steps that all hosts have."""
    return float(numbers_of(column_of(breakdown, "fraction"))[row_of(breakdown, "color", "collective")])


def _of_all_hosts(findings: Table) -> Iterator[int]:
    """Rows of findings about communication, without those about a slow host."""
    causes, hosts = texts_of(column_of(findings, "cause")), texts_of(column_of(findings, "host"))
    for row, (cause, host) in enumerate(zip(causes, hosts, strict=True)):
        if cause == "Communication" and not host:
            yield row
