"""The rules about communication find planted errors, and nothing in the pages that they were planted
in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload
from tests.consistency.communication import communication_agrees
from tests.consistency.pages import Pages, column_of, texts_of
from tests.consistency.slow_hosts import slow_hosts_agree
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts

SHARE = "exposed_communication_fraction"
Change = Callable[[Payload], Payload]


@cache
def pages() -> Pages:
    run = write_run(Path(mkdtemp(prefix="comm_rules_")), comm_hosts())
    session = Session(str(run), cache=False)
    tools = ("communication", "overview_page", "pod_viewer")
    return {name: get_tool(name).run(session, None, {}) for name in tools}


def scaled(name: str, times: float) -> Change:
    """A scalar multiplied."""

    def change(page: Payload) -> Payload:
        old = page.scalars[name]
        return replace(
            page, scalars={**page.scalars, name: replace(old, value=float(old.value or 0) * times)}
        )

    return change


def shifted(table: str, column: str, by: float) -> Change:
    """The first cell of a column changed."""

    def change(page: Payload) -> Payload:
        made = page.tables[table]
        columns = []
        for one in made.columns:
            values = np.array(one.values, np.float64) if one.name == column else one.values
            if one.name == column:
                values[0] += by
            columns.append(replace(one, values=values))
        return replace(page, tables={**page.tables, table: replace(made, columns=tuple(columns))})

    return change


def diagnosed(share: float) -> Pages:
    """One device per host, whose communication the diagnosis counts."""
    page, overview = pages()["communication"], pages()["overview_page"]
    causes = overview.tables["steps"]
    text, number = page.tables["ops"].columns[0], page.tables["ops"].columns[8]
    shares = {
        table: replace(
            causes,
            columns=(
                replace(text, name=name, values=np.zeros(1, np.int32), strings=[value]),
                replace(number, name=column, values=np.array([share])),
            ),
        )
        for table, name, value, column in (
            ("causes", "cause", "Communication", "share"),
            ("breakdown", "color", "collective", "fraction"),
        )
    }
    one_each = replace(page, hosts=("a", "b", "c", "d"))
    return {
        **pages(),
        "communication": one_each,
        "overview_page": replace(overview, tables=shares),
    }


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert list(communication_agrees(pages())) == []
    assert list(communication_agrees({"overview_page": pages()["overview_page"]})) == []


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("communication", shifted("steps", "other_ps", 1e6), "the parts of a step"),
        ("communication", shifted("ops", "exposed_ps", 1e6), "by operations"),
        ("communication", shifted("devices", "exposed_ps", 4e6), "by devices"),
        ("communication", scaled("exposed_devices_ps", 1.1), "by traffic"),
        ("communication", scaled("gain_fraction", 3.0), "hiding saves"),
        ("communication", scaled("wait_ps", 1.1), "on the pod viewer"),
        ("overview_page", scaled(SHARE, 1.1), "on the overview"),
        ("overview_page", shifted("findings", "share", 0.01), "the causes"),
        ("overview_page", shifted("findings", "gain_high_ps", 1e6), "the finding promises"),
        ("communication", scaled("gain_fraction", 0.9), "the finding promises"),
    ],
)
def test_each_rule_finds_what_is_broken(name: str, change: Change, words: str) -> None:
    broken = {**pages(), name: change(pages()[name])}
    assert any(words in violation.text for violation in communication_agrees(broken))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("pod_viewer", shifted("stragglers", "excess_ps", 10e6), "longer"),
        ("pod_viewer", shifted("stragglers", "gain_ps", 10e6), "the job would gain"),
    ],
)
def test_slow_hosts_have_one_excess_and_one_gain(name: str, change: Change, words: str) -> None:
    assert list(slow_hosts_agree(pages())) == []
    broken = {**pages(), name: change(pages()[name])}
    assert [words in violation.text for violation in slow_hosts_agree(broken)] == [True]


def test_a_slow_host_without_a_finding_is_found() -> None:
    overview = pages()["overview_page"]
    findings = overview.tables["findings"]
    rows = np.array(["its own work" not in text for text in texts_of(column_of(findings, "finding"))])
    columns = tuple(replace(column, values=column.values[rows]) for column in findings.columns)
    tables = {**overview.tables, "findings": replace(findings, columns=columns)}
    broken = {**pages(), "overview_page": replace(overview, tables=tables)}
    assert [one.text for one in slow_hosts_agree(broken)] == [
        "the pod viewer names `h1`, no finding of the overview does"
    ]


def test_the_diagnosis_counts_at_most_what_is_exposed() -> None:
    assert list(communication_agrees(diagnosed(0.2612))) == []
    assert any("the overview counts" in one.text for one in communication_agrees(diagnosed(0.2614)))
