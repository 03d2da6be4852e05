"""The rules about numbers, lists and operations find planted errors, and nothing in the pages that
it was broken in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Column, Payload, Scalar, Table
from tests.consistency.names import lists_agree
from tests.consistency.numbers import moments_are_within, numbers_are_sound, rows_are_in_order
from tests.consistency.operations import operations_agree
from tests.consistency.pages import Pages, Violation
from tests.consistency.test_checks import Change, cell, scalar, table
from tests.payload_columns import text_column
from tests.synthetic import gpu_xspace, write_run
from tests.synthetic_comm import comm_hosts
from tests.synthetic_unlike import GPU, memory_run, tpu_run

Rule = Callable[[Pages], object]
RULES = (numbers_are_sound, rows_are_in_order, moments_are_within, lists_agree, operations_agree)


@cache
def drawn() -> Pages:
    """One page with three unlike rows and their percentiles."""
    rows = Table(
        "Kernels",
        (
            Column("n_occurrences", "Runs", np.array([2, 3, 5]), "count"),
            Column("total_time_ps", "Total", np.array([20.0, 60.0, 35.0]), "ps"),
            Column("avg_time_ps", "Average", np.array([10.0, 20.0, 7.0]), "ps"),
            Column("total_self_time_ps", "Self", np.array([20.0, 50.0, 35.0]), "ps"),
            Column("self_cumulative_fraction", "So far", np.array([0.5, 0.8, 1.0]), "fraction"),
            Column("growth_bytes", "Growth", np.array([-5.0, 3.0, 0.0]), "bytes"),
            Column("peak", "Peak", np.array([np.nan, 1.0, 2.0]), "count", unknown="not stated"),
        ),
    )
    percentiles = Table(
        "Latency",
        (
            text_column("percentile", "Percentile", ("Average", "p50", "p90", "p99")),
            Column("latency_ps", "Latency", np.array([40.0, 20.0, 30.0, 90.0]), "ps"),
            Column("low_ps", "At least", np.array([np.nan, 10.0, 20.0, 80.0]), "ps", unknown="too few"),
            Column("start_ps", "Start", np.array([5.0, 1.0, 2.0, 10.0]), "ps"),
        ),
    )
    scalars = {
        "latency_p50_ps": Scalar(20.0, "ps", "p50"),
        "latency_p99_ps": Scalar(90.0, "ps", "p99"),
        "rate": Scalar(None, "flops_per_s", "Rate", "no FLOPs are stated"),
    }
    page = Payload("kernel_stats", "run", ("a",), {"rows": rows, "percentiles": percentiles}, scalars)
    timeline = Payload("trace_viewer", "run", ("a",), {}, {"trace_duration_ps": Scalar(100, "ps", "Trace")})
    return {"kernel_stats": page, "trace_viewer": timeline}


@cache
def real(which: str) -> Pages:
    """The pages of generated runs: three TPU hosts, devices that communicate, three memories on each host, a
    host with three GPUs.
    """
    made = {
        "tpu": tpu_run,
        "comm": comm_hosts,
        "memory": memory_run,
        "gpu": lambda: {"synthetic-gpu": gpu_xspace(GPU)},
    }
    session = Session(str(write_run(Path(mkdtemp(prefix="rules_")), made[which]())), cache=False)
    tools = {
        "tpu": (
            *("overview_page", "input_pipeline_analyzer", "hlo_stats", "roofline_model", "op_profile"),
            "pod_viewer",
        ),
        "comm": ("communication", "pod_viewer"),
        "memory": ("memory_profile",),
        "gpu": ("overview_page", "trace_viewer"),
    }
    return {name: get_tool(name).run(session, None, {}) for name in tools[which]}


def found_in(pages: Pages) -> list[Violation]:
    return [one for rule in RULES for one in rule(pages)]


def test_nothing_is_wrong_with_what_is_right() -> None:
    for pages in (drawn(), *(real(which) for which in ("tpu", "comm", "memory", "gpu"))):
        assert found_in(pages) == []


BROKEN: list[tuple[Change, str]] = [
    (cell("rows", "total_time_ps", 1, math.inf), "`rows.total_time_ps` is infinite in row 1"),
    (cell("rows", "total_time_ps", 1, -60.0), "is -60 in row 1"),
    (cell("rows", "total_self_time_ps", 2, math.nan), "is unknown in row 2 for no reason"),
    (cell("rows", "total_self_time_ps", 1, 63.0), "total_self_time_ps is 63, total_time_ps 60"),
    (cell("rows", "avg_time_ps", 1, 22.0), "3 times avg_time_ps 22 is not total_time_ps 60"),
    (cell("rows", "self_cumulative_fraction", 2, 1.1), "runs from 0.5 to 1.1"),
    (cell("percentiles", "latency_ps", 2, 15.0), "of the percentiles are [20.0, 15.0, 90.0]"),
    (cell("percentiles", "low_ps", 1, 25.0), "low_ps is 25, latency_ps 20"),
    (cell("percentiles", "start_ps", 3, 20.0), "lies within 1 and 110 of 100 ps"),
    (cell("percentiles", "start_ps", 3, -1.0), "lies within -1 and"),
    (scalar("latency_p50_ps", 95.0), "latency_p50_ps is 95, latency_p99_ps 90"),
    (scalar("latency_p50_ps", math.nan), "`latency_p50_ps` is unknown for no reason"),
    (scalar("latency_p99_ps", math.inf), "`latency_p99_ps` is inf"),
    (scalar("latency_p50_ps", -3.0), "`latency_p50_ps` is -3"),
]


@pytest.mark.parametrize(("change", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_each_rule_about_numbers_finds_what_is_broken(change: Change, words: str) -> None:
    found = found_in({**drawn(), "kernel_stats": change(drawn()["kernel_stats"])})
    assert any(words in one.text for one in found), found


def test_a_code_without_a_text_is_found() -> None:
    page = drawn()["kernel_stats"]
    names = page.tables["percentiles"].columns[0]
    lost = replace(names, values=np.array([0, 1, 2, 4], np.int32))
    columns = (lost, *page.tables["percentiles"].columns[1:])
    broken = table("percentiles", replace(page.tables["percentiles"], columns=columns))(page)
    assert ["has a code beyond its 4 texts" in one.text for one in numbers_are_sound({"x": broken})] == [True]


def renamed(table_name: str, column: str) -> Change:
    """The first text of a column under another name."""

    def change(page: Payload) -> Payload:
        made = page.tables[table_name]
        columns = [
            replace(one, strings=["another", *(one.strings or ())[1:]]) if one.name == column else one
            for one in made.columns
        ]
        return table(table_name, replace(made, columns=tuple(columns)))(page)

    return change


def times(table_name: str, column: str, factor: float, row: int = 0) -> Change:
    """A cell multiplied."""

    def change(page: Payload) -> Payload:
        made = next(one for one in page.tables[table_name].columns if one.name == column)
        return cell(table_name, column, row, float(made.values[row]) * factor)(page)

    return change


@pytest.mark.parametrize(
    ("which", "page", "change", "words"),
    [
        ("tpu", "overview_page", lambda one: replace(one, hosts=one.hosts[:2]), "names 3 hosts"),
        ("tpu", "overview_page", renamed("hosts", "host"), "lists the hosts ['another']"),
        ("tpu", "input_pipeline_analyzer", times("steps", "step_time_ps", 1.01), "step "),
        ("tpu", "hlo_stats", times("ops", "total_self_time_ps", 1.01), "total_self_time_ps is"),
        ("tpu", "hlo_stats", times("ops", "hbm_bytes_per_s", 1.01), "hbm_bytes_per_s is"),
        ("tpu", "op_profile", times("nodes", "self_time_ps", 1.01), "of its children together"),
        ("tpu", "op_profile", times("nodes", "flops", 1.01), "flops are"),
        ("tpu", "overview_page", scalar("flops_fraction", 0.2), "flops_fraction of the whole is"),
        ("tpu", "overview_page", scalar("hbm_bandwidth_fraction", 0.2), "hbm_bandwidth_fraction of the"),
        ("tpu", "overview_page", scalar("roofline_fraction", 0.2), "roofline efficiency of the whole is"),
        ("tpu", "op_profile", scalar("flop_rate_flops_per_s", 1e12), "FLOPs of the whole is"),
        ("comm", "communication", renamed("devices", "device"), "['another'] are no devices of"),
        ("comm", "communication", times("steps", "step_ps", 1.01), "takes"),
        ("gpu", "overview_page", times("steps", "step_time_ps", 1.01), "drawn are"),
        ("gpu", "trace_viewer", times("steps", "duration_ps", 1.01, row=2), "step train 2 takes"),
        ("memory", "memory_profile", scalar("peak_bytes", 5), "no row of `memories` has"),
        ("memory", "memory_profile", times("memories", "used_fraction", 1.01), "shares"),
    ],
)
def test_each_rule_about_lists_and_operations_finds_what_is_broken(
    which: str, page: str, change: Change, words: str
) -> None:
    found = found_in({**real(which), page: change(real(which)[page])})
    assert any(words in one.text for one in found), found
