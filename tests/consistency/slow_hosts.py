"""Rules about slow hosts: the overview's findings and the pod viewer's stragglers are the same hosts, with
the same excess and the same gain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tb_tpuprof.tools.payload import Table
from tb_tpuprof.units import format_time
from tests.consistency.pages import Pages, Violation, column_of, numbers_of, texts_of, time_of

_SLOW_HOST = re.compile(r"`([^`]+)` .*?: its own work takes ([\d.,]+ \S+) ")
_APART = 0.05
_RULE, _PAGES = "slow hosts agree", "overview_page, pod_viewer"
_WORTH_A_FINDING = {"excess": 0.05, "gain": 0.02}  # of the step: more than the least of a finding


def slow_hosts_agree(pages: Pages) -> Iterator[Violation]:
    """The overview and the pod viewer name the same hosts with the same excess; where collectives show who
    waits for whom, also with the same gain.
    """
    overview, pod = pages.get("overview_page"), pages.get("pod_viewer")
    if overview is None or pod is None or "findings" not in overview.tables:
        return
    slow = pod.tables.get("stragglers")
    if slow is None:
        return
    findings = overview.tables["findings"]
    knows_waits = "exposed_communication_fraction" in overview.scalars
    row_of = {name: row for row, name in enumerate(texts_of(column_of(slow, "straggler")))}
    named = set()
    for i, sentence in enumerate(texts_of(column_of(findings, "finding"))):
        match = _SLOW_HOST.match(sentence)
        if match is None:
            continue
        named.add(match[1])
        for text in _differs(match[1], time_of(match[2]) or 0.0, slow, row_of.get(match[1], -1)):
            yield Violation(_RULE, _PAGES, text)
        if knows_waits and match[1] in row_of:
            gains = (_cell(findings, "gain_high_ps", i), _cell(slow, "gain_ps", row_of[match[1]]))
            if abs(gains[0] - gains[1]) > _APART * max(gains):
                amounts = " and ".join(map(format_time, gains))
                yield Violation(_RULE, _PAGES, f"without `{match[1]}` the job would gain {amounts}")
    if knows_waits:
        for text in _unnamed(slow, named):
            yield Violation(_RULE, _PAGES, text)


def _cell(table: Table, name: str, row: int) -> float:
    return float(numbers_of(column_of(table, name))[row])


def _differs(name: str, excess_ps: float, slow: Table, row: int) -> Iterator[str]:
    if row < 0:
        return
    theirs = _cell(slow, "excess_ps", row)
    if theirs and abs(excess_ps / theirs - 1) > _APART:
        yield f"`{name}` takes {format_time(excess_ps)} longer, and {format_time(theirs)} longer"


def _unnamed(slow: Table, named: set[str]) -> Iterator[str]:
    """Slow hosts of the pod viewer that are worth a finding and have none."""
    hosts, names = texts_of(column_of(slow, "host")), texts_of(column_of(slow, "straggler"))
    for row, (host, name) in enumerate(zip(hosts, names, strict=True)):
        job = _cell(slow, "job_ps", row)
        is_worth_it = (
            _cell(slow, "excess_ps", row) > _WORTH_A_FINDING["excess"] * job
            and _cell(slow, "gain_ps", row) > _WORTH_A_FINDING["gain"] * job
        )
        if host == name and host not in named and is_worth_it:
            yield f"the pod viewer names `{host}`, no finding of the overview does"
