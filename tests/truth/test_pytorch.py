"""PyTorch's files: pages against a plain count of the file, on made-up files of known content and on every
file of the corpus.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.ops.metrics import NO_OPERATION
from tb_tpuprof.analysis.steps.pytorch_loader import loader_wait
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload, Table
from tests.ingest.chrome_files import written
from tests.kineto_jobs import HOST, LENGTHS, RANKS, Job, kineto_file, step_length, x
from tests.truth.plain_kineto import TRIMMED_ABOVE, counts

CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none"))
FOLDERS = ("kineto_samples", "tracelens_torch", "hta")
RANKS_OF_DLRM = 8
EQUAL = 0.99
US = 1_000_000


@cache
def dlrm(folder: Path) -> list[Path]:
    shutil.unpack_archive(CORPUS / "param" / "dlrm_kineto.tar.gz", folder)
    found = sorted(folder.rglob("*.json"))
    assert len(found) == RANKS_OF_DLRM
    return found


def corpus_files() -> list[Path]:
    if not CORPUS.is_dir():
        return []
    found = [
        path
        for folder in FOLDERS
        for path in sorted((CORPUS / folder).rglob("*"))
        if path.name.endswith((".json", ".json.gz"))
    ]
    assert len(found) > 30
    return found


def columns(table: Table) -> dict[str, list[Any]]:
    return {
        column.name: [column.strings[i] for i in column.values.tolist()]
        if column.strings is not None
        else column.values.tolist()
        for column in table.columns
    }


def page(session: Session, tool: str) -> Payload:
    return get_tool(tool).run(session, None, {})


def value(payload: Payload, name: str) -> float:
    found = payload.scalars[name].value
    assert isinstance(found, (int, float))
    return float(found)


def check_kernels(session: Session, plain: dict[str, Any]) -> None:
    """Number and time of kernels, by operation, on the page of kernels and on that of operations."""
    kernels = page(session, "kernel_stats")
    assert value(kernels, "n_launches") == plain["n_kernels"]
    assert value(kernels, "kernel_time_ps") / US == pytest.approx(plain["kernel_us"], rel=1e-6)
    by_op = columns(kernels.tables["by_op"])
    ours = dict(zip(by_op["op"], by_op["total_ps"], strict=True))
    alike = sum(min(ours.get(op, 0) / US, time) for op, time in plain["op_us"].items())
    assert alike >= EQUAL * plain["kernel_us"]
    n_alike = sum(
        min(n, plain["op_n"].get(op, 0)) for op, n in zip(by_op["op"], by_op["n_occurrences"], strict=True)
    )
    assert n_alike >= EQUAL * plain["n_kernels"]
    ops = columns(page(session, "framework_op_stats").tables["ops"])
    on_device = [
        row
        for row in zip(*(ops[k] for k in ("host_or_device", "type", "total_self_time_ps")), strict=True)
        if row[0] == "Device"
    ]
    without = sum(time for _, type_, time in on_device if type_ == NO_OPERATION)
    assert without / US == pytest.approx(plain["op_us"].get(NO_OPERATION, 0), rel=1e-6, abs=1e-3)
    # What the operations' page has beyond kernels are copies of operations.
    scalars = page(session, "framework_op_stats").scalars
    copied = (
        int(value(page(session, "framework_op_stats"), "device_copies_ps"))
        if "device_copies_ps" in scalars
        else 0
    )
    assert value(page(session, "framework_op_stats"), "device_ops_ps") - copied == value(
        kernels, "kernel_time_ps"
    )
    assert sum(time for *_, time in on_device) - copied == value(kernels, "kernel_time_ps")


def check_steps(session: Session, plain: dict[str, Any]) -> None:
    """Step times, input and busy time of the steps, but for first and last ones of many, and those in which
    no kernel ran.
    """
    (host,) = session.hosts
    found = session.get(steps, host)
    expected = {
        name: facts
        for name, facts in plain["steps"].items()
        if not plain["has_device"] or name in found.name or facts["kernels"] > 0
    }
    names = sorted(expected, key=lambda name: float(expected[name]["start"]))
    names = names[1:-1] if len(names) > TRIMMED_ABOVE else names
    assert list(found.name) == names
    for i, name in enumerate(names):
        facts = expected[name]
        assert found.duration_ps[i] / US == pytest.approx(facts["duration"], rel=1e-6)
        assert found.class_ps[i].sum() == found.duration_ps[i]
        if plain["has_device"]:
            assert found.category_ps("input")[i] / US == pytest.approx(facts["input"], rel=0.01, abs=0.01)
            busy = sum(
                int(found.category_ps(c)[i])
                for c in ("device_compute", "device_collectives", "device_to_device", "output")
            )
            assert busy / US <= facts["duration"] * (1 + 1e-9)
            assert busy / US == pytest.approx(facts["kernels"], rel=0.01, abs=facts["input"] * 1.01)
        else:
            fetched = sum(
                int(wait.time_ps[i]) for wait in found.waits if wait.name.startswith("enumerate(DataLoader)")
            )
            assert fetched / US == pytest.approx(facts["loader"], rel=0.01, abs=0.01)
            assert found.category_ps("input")[i] >= fetched
    waits = session.get(loader_wait, host)
    fetched = sum(expected[name]["loader"] for name in names)
    assert (waits.total_ps / US if waits else 0.0) == pytest.approx(fetched, rel=0.01, abs=0.01)


def check(path: Path) -> None:
    plain = counts(path)
    session = Session(str(path), cache=False)
    if plain["n_kernels"]:
        check_kernels(session, plain)
    if session.hosts and plain["steps"]:
        check_steps(session, plain)


@pytest.fixture(params=RANKS, ids=lambda job: f"rank{job.rank}_{job.ids}")
def made_up(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Job, Path]:
    return request.param, kineto_file(tmp_path, request.param)


def test_pages_of_made_up_files_are_what_a_plain_count_finds(made_up: tuple[Job, Path]) -> None:
    check(made_up[1])


def test_the_plain_count_itself(made_up: tuple[Job, Path]) -> None:
    job, path = made_up
    plain = counts(path)
    assert plain["n_kernels"] == 7 * 3
    graph = f"cudaGraphLaunch in {job.graph_op}" if job.graph_op else "cudaGraphLaunch"
    assert plain["op_us"] == {
        "aten::addmm": 300,
        "aten::mm": 450,
        graph: 270,
        "aten::linear": 0,
        NO_OPERATION: 300,
    }
    assert [facts["duration"] for facts in plain["steps"].values()] == [
        length + 100 * job.rank for length in LENGTHS
    ]
    assert sum(facts["loader"] for facts in plain["steps"].values()) == sum(
        int(job.loader * step_length(job, i)) for i in range(3)
    )


def test_a_graph_s_kernels_are_one_operation_that_occurs_once_a_launch(made_up: tuple[Job, Path]) -> None:
    job, path = made_up
    ops = columns(page(Session(str(path), cache=False), "framework_op_stats").tables["ops"])
    graph = f"cudaGraphLaunch in {job.graph_op}" if job.graph_op else "cudaGraphLaunch"
    row = ops["operation"].index(graph)
    assert (ops["type"][row], ops["n_occurrences"][row], ops["total_self_time_ps"][row]) == (
        "cudaGraphLaunch",
        3,
        270 * US,
    )
    row = ops["operation"].index("stray")  # a kernel of no operation is a row of its own
    assert (ops["type"][row], ops["n_occurrences"][row], ops["total_self_time_ps"][row]) == (
        NO_OPERATION,
        3,
        300 * US,
    )


def test_a_step_that_waits_for_its_loader_names_it_and_what_costs_more(tmp_path: Path) -> None:
    slow, fast = (
        page(Session(str(kineto_file(tmp_path / str(job.rank), job)), cache=False), "input_pipeline_analyzer")
        for job in RANKS[:2]
    )
    assert slow.verdict
    assert fast.verdict
    loader = "`enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__`"
    assert slow.verdict.level == "warn"
    assert slow.verdict.text == (
        f"Each step waits 187 µs (17.0%) for data in {loader}. This job is limited by unrecorded time, "
        "40.8% of the mean step: see the overview."
    )
    assert (
        "`enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__` takes 220 µs (20.0%) of each of the "
        "3 marked steps" in slow.verdict.details[0]
    )
    assert "num_workers=0" in slow.verdict.details[0]
    advice = [columns(one.tables["advice"])["text"] for one in (slow, fast)]
    held_up = (
        "`enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__` blocks the thread that runs the steps"
    )
    assert [any(text.startswith(held_up) for text in texts) for texts in advice] == [True, False]
    assert not any("_MultiProcessing" in text for text in advice[1])
    assert not fast.verdict.text.startswith(("Highly input-bound", "Moderately input-bound"))
    assert "_MultiProcessingDataLoaderIter" in fast.verdict.details[0]
    assert "num_workers=0" not in fast.verdict.details[0]


def test_a_window_is_never_busier_than_it_is_long(tmp_path: Path) -> None:
    session = Session(str(kineto_file(tmp_path, Job(late=0.95, steps=tuple(range(3, 12))))), cache=False)
    found = session.get(steps, session.hosts[0])
    assert (len(found), found.n_trimmed) == (7, 2)
    assert (found.class_ps >= 0).all()
    assert np.array_equal(found.class_ps.sum(axis=1), found.duration_ps)
    assert found.duration_ps.tolist() == [step_length(Job(), i) * US for i in range(1, 8)]


def test_a_step_lasts_as_long_as_its_marker_though_its_kernels_take_less_than_a_third(tmp_path: Path) -> None:
    """As a video model on an MI300: steps of 390.7 ms, kernels of 119.9 ms that begin 268.8 ms after the step
    does.
    """
    events = []
    for i in range(3):
        at, run = 390_700 * i, 390_700 * i + 268_800
        events += [
            x("user_annotation", f"ProfilerStep#{i}", at, 390_700, HOST),
            x("cpu_op", "aten::mm", at + 1000, 100, HOST),
            x("cuda_runtime", "hipLaunchKernel", at + 1010, 5, HOST, correlation=i + 1),
            x("kernel", "Cijk_MT64", run, 119_900, {"pid": 2, "tid": 0}, correlation=i + 1),
        ]
    session = Session(str(written(tmp_path, events, "w.pt.trace.json")), cache=False)
    overview = page(session, "overview_page")
    assert value(overview, "step_time_avg_ps") == 390_700 * US
    assert value(overview, "device_compute_fraction") == pytest.approx(0.3069, abs=1e-4)
    assert value(overview, "device_idle_fraction") == pytest.approx(1 - 0.3069, abs=1e-4)
    assert overview.verdict
    assert overview.verdict.text.startswith("The GPU is idle for 271 ms (69.3%) of each step")


def test_work_that_runs_after_the_last_step_is_said(tmp_path: Path) -> None:
    """Three short steps on the host launch kernels that take ten times as long: the windows are full, and the
    rest is told.
    """
    events = []
    for i, length in enumerate((100, 130, 70)):
        at = 200 * i
        events += [
            x("user_annotation", f"ProfilerStep#{i}", at, length, HOST),
            x("cuda_runtime", "cudaLaunchKernel", at + 5, 5, HOST, correlation=i + 1),
            x("kernel", "k", 20 + 1000 * i, 1000, {"pid": 0, "tid": 7 + i}, correlation=i + 1),
        ]
    overview = page(Session(str(written(tmp_path, events, "w.pt.trace.json")), cache=False), "overview_page")
    assert value(overview, "step_time_avg_ps") == 100 * US
    assert value(overview, "n_steps") == 3
    assert value(overview, "device_idle_fraction") == pytest.approx(20 / 300)
    assert any(
        "worked on the marked steps for 2.55 ms after the last one ended" in one.message
        for one in overview.diagnostics
    )


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="TPUPROF_CORPUS is not set")
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: str(path.relative_to(CORPUS)))
def test_pages_of_a_file_of_the_corpus_are_what_a_plain_count_finds(path: Path) -> None:
    check(path)


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="TPUPROF_CORPUS is not set")
@pytest.mark.parametrize("rank", range(RANKS_OF_DLRM))
def test_pages_of_a_rank_of_dlrm_are_what_a_plain_count_finds(
    rank: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(dlrm(tmp_path_factory.getbasetemp() / "dlrm")[rank])
