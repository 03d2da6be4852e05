"""Saved pages: what runs of finished pages state, in this profiler's units, and nothing else."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.ingest.pages.page import columns_of, number_of, text_of, time_of
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.payload import Payload
from tests.ingest.messages import written
from tests.ingest.saved_pages import PAGES, node
from tests.ingest.test_other_files import CORPUS, needs_corpus, placed
from tests.ingest.xspaces import small_xspace
from tests.plain_protobuf import plain_fields
from tests.tools.test_hlo_stats import cells

MS, US = 10**9, 10**6
TOOL = get_tool("saved_pages")


def shown(folder: Path, *names: str, **renamed: str) -> Payload:
    """The page of a run with these files; `renamed`: files of another name, by their kind."""
    for name in names:
        placed(folder, name, PAGES[name])
    for name, source in renamed.items():
        placed(folder, name.replace("__", "."), PAGES[source])
    return TOOL.run(Session(str(folder), cache=False), None, {})


def rows(payload: Payload, table: str) -> list[dict[str, Any]]:
    columns = cells(payload, table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_the_overview_page_of_a_tpu(tmp_path: Path) -> None:
    payload = shown(tmp_path / "r", "h.overview_page.json")
    assert [row["step"] for row in rows(payload, "steps")] == ["7", "8", "9"]
    assert [row["compute_ps"] for row in rows(payload, "steps")] == [10.5 * MS, 12 * MS, 30 * MS]
    assert [row["input_ps"] for row in rows(payload, "steps")] == [2 * MS, 1 * MS, 40 * MS]
    assert [row["idle_ps"] for row in rows(payload, "steps")] == [0.5 * MS, 0.25 * MS, 0]
    assert [round(row["input_fraction"], 6) for row in rows(payload, "steps")] == [0.1525, 0.075, 0.57]
    assert [
        (row["operation"], row["type"], row["time_fraction"], row["flop_rate"])
        for row in rows(payload, "top_operations")
    ] == [("a/Conv2D", "Conv2D", 0.5, 1797.5e9), ("a/Relu", "Relu", 0.25, 0), ("b/Add", "Add", 0.125, 12e9)]
    facts = {(row["name"], row["value"]) for row in rows(payload, "facts")}
    assert {
        ("mxu utilization percent", "48.8%"),
        ("device type", "TPU v2"),
        ("hardware type", "TPU"),
    } <= facts
    assert not {name for name, _ in facts} & {"remark color", "roofline tool link", "summary conclusion"}
    assert [row["advice"] for row in rows(payload, "advice")] == ["See the guide", "Read"]
    total = 10.5 + 2 + 0.5 + 12 + 1 + 0.25 + 30 + 40
    assert payload.scalars["step_time_ps"].value == pytest.approx(total / 3 * MS)
    assert payload.scalars["input_fraction"].value == pytest.approx(43 / total)
    assert payload.scalars["n_steps"].value == 3
    assert payload.verdict is not None
    assert payload.verdict.level == "warn"
    assert payload.verdict.text == (
        "A step took 32.1 ms on average, 44.7% of it waiting for input. "
        "An older profiler saved the overview page of h, without a timeline."
    )
    assert payload.verdict.details == ("Your program is HIGHLY input-bound.",)
    assert "device_compute_ps" not in cells(payload, "steps")


def test_a_run_that_waits_little_is_good(tmp_path: Path) -> None:
    """From a fifth of the step on, waiting for input is named as the problem."""
    for waiting, level, category in ((19.9, "good", ""), (20.0, "warn", "input")):
        page = written(
            (4, written((1, "x.PerGenericStepDetails"), (2, written((6, 100 - waiting), (11, waiting)))))
        )
        path = placed(tmp_path, "h.input_pipeline.pb", page)
        payload = TOOL.run(Session(path, cache=False), None, {})
        assert payload.verdict is not None
        assert (payload.verdict.level, payload.verdict.category) == (level, category)


def test_steps_that_took_no_time_have_no_mean(tmp_path: Path) -> None:
    """Number of steps, but neither a time nor a share."""
    step = written((1, 3), (6, 0.0), (11, 0.0))
    page = written((4, written((1, "x.PerGenericStepDetails"), (2, step))))
    payload = TOOL.run(Session(placed(tmp_path, "h.input_pipeline.pb", page), cache=False), None, {})
    assert payload.verdict is not None
    assert payload.verdict.text == (
        "An older profiler saved the input pipeline page of h, without a timeline."
    )
    assert (payload.verdict.level, payload.verdict.category) == ("unknown", "")
    for name in ("step_time_ps", "input_fraction"):
        assert name not in payload.scalars or payload.scalars[name].value is None


def test_pages_and_hosts_in_a_sentence(tmp_path: Path) -> None:
    names = ("h.kernel_stats.pb", "h.op_profile.json", "h.tensorflow_stats.pb")
    sentences = []
    for n in (1, 2, 3):
        folder = tmp_path / str(n)
        folder.mkdir()
        verdict = shown(folder, *names[:n]).verdict
        assert verdict is not None
        sentences.append(verdict.text)
    assert sentences == [
        f"An older profiler saved {pages} of h, without a timeline."
        for pages in (
            "the table of GPU kernels",
            "the table of GPU kernels and the op profile page",
            "the table of TensorFlow operations, the table of GPU kernels and the op profile page",
        )
    ]
    several = shown(tmp_path, g__kernel_stats__pb=names[0], k__kernel_stats__pb=names[0]).verdict
    assert several is not None
    assert several.text == "An older profiler saved the table of GPU kernels of 2 hosts, without a timeline."


def test_pages_of_several_hosts_are_shown_together(tmp_path: Path) -> None:
    payload = shown(
        tmp_path,
        "h.overview_page.json",
        "h.input_pipeline.json",
        g__input_pipeline__pb="h.input_pipeline.pb",
        k__kernel_stats__pb="h.kernel_stats.pb",
    )
    assert payload.hosts == ("g", "h", "k")
    steps = rows(payload, "steps")
    assert [(row["host"], row["step"]) for row in steps] == [
        ("g", "0"),
        ("g", "1"),
        ("g", "2"),
        ("h", "7"),
        ("h", "8"),
        ("h", "9"),
    ]
    assert [row["device_compute_ps"] for row in steps[:3]] == [196 * MS, 95 * MS, 50 * MS]
    assert all(math.isnan(row["device_compute_ps"]) for row in steps[3:])
    assert payload.scalars["n_steps"].value == 6
    operations = {(row["host"], row["operation"]): row for row in rows(payload, "input_operations")}
    assert operations["h", "Iterator::Map"]["total_fraction"] == 0.75  # JSON states shares
    assert operations["g", "Iterator::Map"]["total_fraction"] == pytest.approx(0.4325)  # protobufs percents
    assert operations["g", "Iterator::Map"]["total_time_ps"] == 892.25 * MS
    assert operations["h", "Iterator::Batch"]["self_time_ps"] == 90 * MS
    assert {(row["host"], row["page"], row["n_rows"]) for row in rows(payload, "pages")} == {
        ("g", "input pipeline page", 5),
        ("h", "input pipeline page", 5),
        ("h", "overview page", 6),
        ("k", "table of GPU kernels", 2),
    }
    one = TOOL.run(Session(str(tmp_path), cache=False), ["k"], {})
    assert {row["host"] for row in rows(one, "pages")} == {"k"}
    assert "steps" not in one.tables


def test_the_pages_of_a_gpu_in_protobufs(tmp_path: Path) -> None:
    payload = shown(tmp_path, "h.overview_page.pb", "h.tensorflow_stats.pb", "h.kernel_stats.pb")
    first, second, third = rows(payload, "steps")
    assert (first["input_ps"], first["other_ps"], first["host_prepare_ps"]) == (898 * MS, 6.5 * MS, 2.5 * MS)
    assert (second["host_to_device_ps"], third["input_ps"]) == (0.25 * MS, 0)
    operations = {row["operation"]: row for row in rows(payload, "operations")}
    assert set(operations) == {"IDLE", "a/Conv2D", "Iterator"}  # those with idle time, not those without
    conv = operations["a/Conv2D"]
    assert (conv["occurrences"], conv["total_time_ps"], conv["self_time_ps"]) == (32, 256.5 * US, 200.25 * US)
    assert (conv["device_fraction"], conv["flop_rate"], conv["bandwidth"]) == (0.75, 1797.5e9, 281.5e9)
    assert (conv["intensity"], conv["bound_by"], conv["place"], conv["type"]) == (
        6.5,
        "Memory",
        "Device",
        "Conv2D",
    )
    assert math.isnan(operations["IDLE"]["total_time_ps"])  # the largest int64 stands for no time
    assert operations["IDLE"]["self_time_ps"] == 5 * US
    assert math.isnan(operations["Iterator"]["flop_rate"])
    assert operations["Iterator"]["host_fraction"] == 0.5
    gemm, copy = rows(payload, "kernels")
    assert (gemm["kernel"], gemm["operation"], gemm["occurrences"]) == ("sgemm", "a/MatMul", 3)
    assert (gemm["total_time_ps"], gemm["min_time_ps"], gemm["max_time_ps"]) == (
        5_000_000,
        900_000,
        2_100_000,
    )
    assert (gemm["block"], gemm["grid"], gemm["registers"]) == ("32 × 4 × 1", "8 × 1 × 1", 64)
    assert (gemm["static_shared_bytes"], copy["dynamic_shared_bytes"]) == (1024, 2048)
    facts = {row["name"]: row["value"] for row in rows(payload, "facts")}
    assert facts["hosts"] == "2"
    assert facts["device cores"] == "8"
    assert facts["device computations in 32 bits percent"] == "100"
    assert facts["reading files in advance ms"] == "3.2015"
    assert payload.verdict is not None
    assert payload.verdict.details == ("HIGHLY input-bound",)
    assert (
        "saved the overview page, the table of TensorFlow operations and the table of GPU kernels of h"
        in payload.verdict.text
    )
    assert {row["advice"] for row in rows(payload, "advice")} == {"use the trace viewer", "tune prefetch"}


def test_the_pod_viewer(tmp_path: Path) -> None:
    payload = shown(tmp_path, "h.pod_viewer.json")
    cores = rows(payload, "cores")
    assert [(row["step"], row["core"], row["chip"], row["replica"]) for row in cores] == [
        ("5", "0", "0", "2"),
        ("5", "3", "1", "1"),
        ("5", "4", "2", "0"),
        ("6", "0", "0", None),
    ]
    assert [row["total_ps"] for row in cores] == [100.5 * US, 110 * US, 90 * US, 7 * US]
    assert (cores[0]["infeed_ps"], cores[1]["all_reduce_ps"], cores[2]["receive_ps"]) == (
        30.25 * US,
        8 * US,
        2 * US,
    )
    assert {row["core_host"] for row in cores} == {"w1"}
    assert [
        (r["operation"], r["occurrences"], r["duration_ps"], r["data_bytes"])
        for r in rows(payload, "collectives")
    ] == [
        ("all-reduce.1", 8, 34.5 * US, 2654208),
        ("all-reduce.2", 4, 1 * US, 16),
    ]
    assert [
        (r["channel"], r["from_core"], r["to_core"], r["operations"]) for r in rows(payload, "links")
    ] == [
        ("16436", "14", "7", "send.42, recv.43"),
        ("9", "1, 2", "3", None),
    ]
    assert {(row["name"], row["value"]) for row in rows(payload, "facts")} == {
        ("tpuType", "TPU v3"),
        ("topology xDimension", "4"),
    }
    assert payload.verdict is not None
    assert payload.verdict.level == "unknown"


def test_the_op_profile_and_the_memory_profile(tmp_path: Path) -> None:
    payload = shown(tmp_path, "h.op_profile.json", "h.memory_profile.json.gz")
    tree = rows(payload, "op_profile")
    assert [(row["depth"], row["name"]) for row in tree] == [
        (0, "whole"),
        (1, "fusion"),
        (2, "%fusion.1"),
        (1, "copy"),
    ]
    assert [row["time_fraction"] for row in tree] == pytest.approx([1, 0.75, 0.5, 0.25])
    assert (tree[2]["category"], tree[2]["framework_op"]) == ("fusion", "a/Conv2D")
    gpu, cpu = rows(payload, "memories")
    assert (gpu["memory"], gpu["peak_bytes"], gpu["lifetime_peak_bytes"]) == ("GPU_0_bfc", 4000, 5000)
    assert (gpu["capacity_bytes"], gpu["heap_bytes"], gpu["fragmentation"]) == (9000, 3000, 0.25)
    assert (gpu["peak_time_ps"], gpu["snapshots"], cpu["peak_bytes"]) == (77, 2, 10)
    found = [
        (r["operation"], r["occurrences"], r["allocated_bytes"], r["shape"])
        for r in rows(payload, "allocations")
    ]
    assert found[0] == ("a/Conv2D", 3, 2048, "[2,3]")
    assert found[1][:3] == ("unused preallocated device memory", 1, 900)
    assert found[2][0] is None  # there is no snapshot 2
    assert math.isnan(found[2][2])


def test_deep_and_wide_trees_are_bounded(tmp_path: Path) -> None:
    tree: dict[str, Any] = node("leaf", 1)
    for _ in range(100):
        tree = node("n", 1, tree)
    placed(tmp_path, "h.op_profile.json", json.dumps({"byProgram": tree}).encode())
    payload = TOOL.run(Session(str(tmp_path), cache=False), None, {})
    assert len(rows(payload, "op_profile")) == 65
    placed(tmp_path, "h.op_profile.json", b"[" * 100_000)
    with pytest.raises(ToolUnavailable, match="not JSON"):
        TOOL.run(Session(str(tmp_path), cache=False), None, {})


def test_a_damaged_page_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    placed(tmp_path, "h.input_pipeline.pb", PAGES["h.input_pipeline.pb"][:-1])
    placed(tmp_path, "h.pod_viewer.json", b"\x08\x01")
    payload = shown(tmp_path, "h.kernel_stats.pb")
    messages = [diagnostic.message for diagnostic in payload.diagnostics if diagnostic.severity == "error"]
    assert messages == [
        "h.input_pipeline.pb is cut off or damaged.",
        "h.pod_viewer.json is not JSON, as this page is.",
    ]
    assert payload.scalars["n_pages"].value == 1


def test_a_run_of_pages_is_listed_and_other_tools_say_why_not(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "old"
    placed(folder, "h.overview_page.json", PAGES["h.overview_page.json"])
    placed(folder, "h.pod_viewer.json", PAGES["h.pod_viewer.json"])
    placed(folder, "g.kernel_stats.pb", PAGES["h.kernel_stats.pb"])
    (run,) = find_runs(str(tmp_path))
    assert (run.state, [file.host for file in run.files]) == ("legacy", ["g", "h"])
    sizes = [len(PAGES[f"h.{name}"]) for name in ("kernel_stats.pb", "overview_page.json", "pod_viewer.json")]
    assert [file.size_bytes for file in run.files] == [sizes[0], sizes[1] + sizes[2]]
    assert "no timeline" in run.message
    session = Session(str(folder), cache=False)
    working = {tool.name for tool in all_tools() if tool.availability(session)}
    assert working == {"saved_pages"}
    reasons = {
        tool.name: tool.availability(session).reason for tool in all_tools() if tool.name != "saved_pages"
    }
    assert not [name for name, reason in reasons.items() if "the trace" in reason or not reason]
    with pytest.raises(ToolUnavailable, match="pages that an older profiler saved") as caught:
        get_tool("overview_page").run(session, None, {})
    assert "Saved pages" in caught.value.remedy
    for name in ("graph_viewer", "memory_viewer"):
        lacking = get_tool(name).availability(session)
        assert "only pages that an older profiler saved" in lacking.reason
        with pytest.raises(ToolUnavailable, match=re.escape(lacking.reason)) as caught:
            get_tool(name).run(session, None, {})
        assert caught.value.remedy == lacking.remedy
    placed(folder, "w.xplane.pb", small_xspace())
    (run,) = find_runs(str(tmp_path))
    assert (run.state, [file.host for file in run.files]) == ("ok", ["w"])
    assert TOOL.availability(Session(str(folder), cache=False)).short == "has a trace"
    with pytest.raises(ToolUnavailable, match="has a trace"):
        TOOL.run(Session(str(folder), cache=False), None, {})


def test_one_page_is_opened_by_its_name(tmp_path: Path) -> None:
    placed(tmp_path, "h.kernel_stats.pb", PAGES["h.kernel_stats.pb"])
    path = placed(tmp_path, "h.pod_viewer.json", PAGES["h.pod_viewer.json"])
    payload = TOOL.run(Session(path, cache=False), None, {})
    assert "cores" in payload.tables
    assert "kernels" not in payload.tables


def test_numbers_times_and_texts_of_pages() -> None:
    assert number_of("48.8%") == 48.8
    assert number_of("12", 0.5) == 6
    for value in ("", "x", None, True, [1], float("inf"), "1e999"):
        assert math.isnan(number_of(value))
    assert time_of(2, 1e9) == 2e9
    assert time_of(0, 1e9) == 0
    assert math.isnan(time_of(-1, 1e9))
    assert math.isnan(time_of(9223372036854.775, 1e6))
    assert math.isnan(time_of(2.0**62, 1))
    assert time_of(2.0**62 - 2**10, 1) == 2.0**62 - 2**10
    assert text_of("a <b>c</b>\x00\n d") == "a c   d"
    assert text_of(5) == "5"
    assert [text_of(value) for value in (None, True, {}, [])] == [""] * 4
    assert len(text_of("x" * 5000)) == 2000


def test_rows_and_bytes_of_pages_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = PAGES["h.tensorflow_stats.pb"]
    path = placed(tmp_path, "h.tensorflow_stats.pb", data)
    for most, n in ((4, 3), (3, 3), (2, 2)):
        monkeypatch.setattr("tb_tpuprof.ingest.pages.messages.MOST_ROWS", most)
        assert len(rows(TOOL.run(Session(path, cache=False), None, {}), "operations")) == n
        monkeypatch.setattr("tb_tpuprof.ingest.pages.page.MOST_ROWS", most)
        assert columns_of([{"a": 1.0}, {"a": 2.0}, {"a": 3.0}], ["a"])["a"].tolist() == [1.0, 2.0, 3.0][:n]
    monkeypatch.setattr("tb_tpuprof.ingest.pages.reading._MOST_BYTES", len(data))
    assert TOOL.run(Session(path, cache=False), None, {}).scalars["n_pages"].value == 1
    monkeypatch.setattr("tb_tpuprof.ingest.pages.reading._MOST_BYTES", len(data) - 1)
    with pytest.raises(ToolUnavailable, match="which no page has"):
        TOOL.run(Session(path, cache=False), None, {})


@needs_corpus
def test_pages_of_a_real_tpu_equal_their_files() -> None:
    """Numbers of the JSON and of the protobuf, read here in the plainest way."""
    folder = CORPUS / "xprof_demo_legacy" / "plugins" / "profile" / "Cloud-TPU"
    payload = TOOL.run(Session(str(folder), cache=False), None, {})
    table = json.loads((folder / "10.240.1.50.input_pipeline.json").read_text())[0]
    expected = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    assert [[row["compute_ps"], row["input_ps"]] for row in rows(payload, "steps")] == [
        pytest.approx([row[1] * MS, row[2] * MS]) for row in expected
    ]
    pod = json.loads((folder / "10.240.1.50.pod_viewer.json").read_text())["podStatsSequence"]["podStatsMap"]
    assert len(rows(payload, "cores")) == sum(len(step["podStatsPerCore"]) for step in pod) == 24
    durations = [core["totalDurationUs"] for step in pod for core in step["podStatsPerCore"].values()]
    assert sum(row["total_ps"] for row in rows(payload, "cores")) == pytest.approx(sum(durations) * US)
    assert sum(row["data_bytes"] for row in rows(payload, "collectives")) == sum(
        int(op["dataSize"]) for step in pod for op in step["allReduceOpDb"]
    )
    times: dict[str, float] = defaultdict(float)
    whole = dict(plain_fields((folder / "10.240.1.50.tensorflow_stats.pb").read_bytes()))[4]
    for number, value in plain_fields(whole):
        if number == 1:
            fields = dict(plain_fields(value))
            times[fields[4].decode()] += struct.unpack("<d", fields[8])[0] if 8 in fields else 0.0
    assert len(times) > 500
    found: dict[str, float] = defaultdict(float)
    for row in rows(payload, "operations"):
        found[row["operation"]] += row["self_time_ps"]
    assert found == pytest.approx({name: time * US for name, time in times.items()})
    assert payload.verdict is not None
    assert payload.verdict.level == "good"
    assert payload.verdict.text.startswith("A step took 314 ms on average, ")


@needs_corpus
@pytest.mark.parametrize("run", ["GPU-input-bound", "GPU-compute-bound"])
def test_pages_of_real_gpus_agree_with_their_own_sentences(run: str) -> None:
    folder = CORPUS / "xprof_demo_legacy" / "plugins" / "profile" / run
    payload = TOOL.run(Session(str(folder), cache=False), None, {})
    assert payload.verdict is not None
    waiting = re.search(r"because (?:only )?(\d+\.\d)% of the total step time", payload.verdict.details[0])
    assert waiting
    assert payload.scalars["input_fraction"].value == pytest.approx(float(waiting[1]) / 100, abs=0.0005)
    page = (folder / "localhost.input_pipeline.pb").read_bytes()
    steps = [
        dict(plain_fields(dict(plain_fields(value))[2]))
        for number, value in plain_fields(page)
        if number == 4
    ]
    times = [struct.unpack("<d", step[2])[0] for step in steps]
    assert payload.scalars["n_steps"].value == len(times) > 5
    assert payload.scalars["step_time_ps"].value == pytest.approx(sum(times) / len(times) * MS)


def test_an_operation_above_the_peak_has_no_share_of_it(tmp_path: Path) -> None:
    """Just below and above the limit, and far above: the page's `flops` is half of `time` here."""
    whole = node("whole", 1, node("below", 2.08), node("above", 2.12), node("far", 90))
    page = json.dumps({"byCategory": whole, "deviceType": "TPU v3"}).encode()
    placed(tmp_path / "r", "h.op_profile.json", page)
    payload = TOOL.run(Session(str(tmp_path / "r"), cache=False), None, {})
    shares = {row["name"]: row["flops_fraction"] for row in rows(payload, "op_profile")}
    assert (shares["whole"], shares["below"]) == (0.5, 1.0)
    assert math.isnan(shares["above"])
    assert math.isnan(shares["far"])


def test_a_column_of_ones_is_stated(tmp_path: Path) -> None:
    """A column that no page states, or only with zeros, is left out."""
    page = json.loads(PAGES["h.input_pipeline.json"])
    for row in page[1]["rows"]:
        row["c"][1]["v"] = 1  # occurrences
        row["c"][5]["v"] = 0  # the share of self time
    path = placed(tmp_path, "h.input_pipeline.json", json.dumps(page).encode())
    shown_columns = cells(TOOL.run(Session(path, cache=False), None, {}), "input_operations")
    assert shown_columns["occurrences"] == [1, 1]
    assert "self_fraction" not in shown_columns
    assert "total_fraction" in shown_columns
