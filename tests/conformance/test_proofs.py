"""Where this project and the peer differ: our side proved by hand, from planted numbers, raw bytes or printed
shapes, never from the peer.

`test_reasons.py` says which test proves which listed difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.input_pipeline_analyzer import view as input_pipeline_analyzer
from tb_tpuprof.tools.memory_profile import view as memory_profile
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tb_tpuprof.tools.why import diagnosis
from tests.builders import drawing
from tests.conformance.live_devices import table
from tests.conformance.peer import NAMES, open_session
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_hosts, tpu_xspace, write_run
from tests.synthetic_devices import MemoryJob, memory_xspace
from tests.tools.drawn_session import session_of

PARTS = Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05)
Row = dict[str, Any]


def run_of(folder: Path, **hosts: bytes) -> Session:
    return Session(str(write_run(folder / "run", hosts)), cache=False)


def test_an_operation_that_begins_with_its_step_is_its_own(tmp_path: Path) -> None:
    """Each step's parts are what was planted in it, whether its first operation begins with it or a
    microsecond later.
    """
    job = TpuJob(parts=PARTS, lead_ps=0)
    session = run_of(tmp_path, synthetic=tpu_xspace(job))
    steps = table(overview_page.TOOL.run(session, None, {}).tables["steps"])
    assert len(steps) == job.n_steps
    for step in steps:
        assert step["input_ps"] == pytest.approx(0.2 * job.step_ps)
        assert step["output_ps"] == pytest.approx(0.03 * job.step_ps)
        assert step["device_compute_ps"] + step["device_collectives_ps"] == pytest.approx(0.65 * job.step_ps)
        assert step["other_ps"] == pytest.approx(0.12 * job.step_ps)
    payload = input_pipeline_analyzer.TOOL.run(session, None, {})
    assert payload.scalars["input_fraction"].value == pytest.approx(0.2)


def test_copies_to_a_gpu_are_transfers_and_no_waiting_for_data(tmp_path: Path) -> None:
    """10% and 2% of each step are planted as copies to and from the device; nothing loads data."""
    job = GpuJob(parts=Parts(compute=0.5, infeed=0.1, outfeed=0.02, collective=0.2))
    session = run_of(tmp_path, synthetic=gpu_xspace(job))
    shares = {one.cause: one.share for one in diagnosis(session).causes}
    assert shares[Cause.TRANSFERS] == pytest.approx(0.12, rel=0.01)
    assert shares[Cause.COMPUTE] == pytest.approx(0.5, rel=0.01)
    assert Cause.INPUT not in shares


def test_parts_of_hosts_are_means_that_sum_to_the_mean_step(tmp_path: Path) -> None:
    """Three hosts whose steps take 1.0, 1.2 and 1.7 ms: the step is 1.3 ms and each part its
    share of that.
    """
    session = run_of(tmp_path, **tpu_hosts(TpuJob(parts=PARTS), (1.0, 1.2, 1.7)))
    payload = overview_page.TOOL.run(session, None, {})
    assert payload.scalars["step_time_avg_ps"].value == pytest.approx(1.3e9)
    for step in table(payload.tables["steps"]):
        assert step["input_ps"] == pytest.approx(0.2 * 1.3e9)
        assert step["output_ps"] == pytest.approx(0.03 * 1.3e9)
        parts = ("device_compute", "device_collectives", "device_to_device", "input", "output", "other")
        assert sum(step[f"{name}_ps"] for name in parts) == pytest.approx(1.3e9)


def test_the_profiled_time_ends_with_the_last_step(tmp_path: Path) -> None:
    """Busy and idle shares are of the same time: they sum to 1, with every operation planted in the first 88
    % of a step.
    """
    scalars = overview_page.TOOL.run(
        run_of(tmp_path, synthetic=tpu_xspace(TpuJob(parts=PARTS))), None, {}
    ).scalars
    duty, idle = (float(scalars[name].value or 0) for name in ("duty_cycle_fraction", "device_idle_fraction"))
    assert duty == pytest.approx(0.65)  # infeed and outfeed are waiting
    assert idle == pytest.approx(0.12)


def test_a_host_without_operations_idles_in_no_span() -> None:
    session = session_of(
        drawing("""
            main  [train            ]
            /device:GPU:0:
            Stream #13  [dense/MatMul:MatMul]
        """)
    )
    listed = table(framework_op_stats.TOOL.run(session, None, {"idle": True}).tables["ops"])
    assert {row["host_or_device"] for row in listed} <= {"Device"}


def test_a_lifetime_peak_is_never_below_what_was_in_use(tmp_path: Path) -> None:
    """A device's stack takes memory that the allocator's own peak leaves out: 8 MiB beside 4 MiB of weights
    and 3 blocks of 256 KiB.
    """
    job = MemoryJob(stack_bytes=8 * 2**20, is_tpu=True)
    payload = memory_profile.TOOL.run(run_of(tmp_path, synthetic=memory_xspace(job)), None, {})
    in_use = (8 + 4) * 2**20 + 3 * 256 * 2**10
    assert payload.scalars["lifetime_peak_bytes"].value == in_use


@pytest.mark.parametrize(
    "name", ["xprof_gpu_multi_worker__GPU-multi-worker", "xprof_tpu_inference_2_old__run"]
)
def test_lifetime_peaks_are_those_of_the_raw_events(name: str) -> None:
    """The larger of what any event states as its peak, and of what any event has in use."""
    stated: dict[str, int] = {}
    for stats in memory_stats(name):
        memory = str(
            stats.get("allocator_name")
            or f"device {stats.get('index_on_host', stats.get('device_ordinal', 0))}"
        )
        used = int(stats.get("bytes_allocated", 0)) + int(stats.get("bytes_reserved", 0))
        stated[memory] = max(stated.get(memory, 0), used, int(stats.get("peak_bytes_in_use", 0)))
    session = open_session(name)
    for memory, peak in stated.items():
        payload = memory_profile.TOOL.run(session, session.hosts[:1], {"memory": memory})
        assert payload.scalars["lifetime_peak_bytes"].value == peak, memory


def memory_stats(name: str) -> Iterator[Row]:
    """Stats of the allocations of a run's first host, as protobuf reads them."""
    session = open_session(name)
    space = xspace_class()()
    space.ParseFromString(Path(session.file(session.hosts[0]).path).read_bytes())
    for plane in space.planes:
        titles = {entry.key: entry.value.name for entry in plane.event_metadata}
        names = {entry.key: entry.value.name.decode() for entry in plane.stat_metadata}
        for line in plane.lines:
            for event in line.events:
                if titles.get(event.metadata_id) in (b"MemoryAllocation", b"MemoryDeallocation"):
                    yield {names[stat.metadata_id]: value_of(stat, names) for stat in event.stats}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("own_tf_cpu")])
def test_functions_ran_each_operation_as_often_as_the_raw_events_of_its_name(name: str) -> None:
    """Of operations inside functions: the events `name:Type` with their durations, as protobuf reads them,
    and nothing else.
    """
    session = open_session(name)
    space = xspace_class()()
    space.ParseFromString(Path(session.file(session.hosts[0]).path).read_bytes())
    raw: dict[str, list[int]] = {}
    for plane in space.planes:
        titles = {entry.key: entry.value.name.decode() for entry in plane.event_metadata}
        for event in (event for line in plane.lines for event in line.events):
            operation, _, type_ = titles[event.metadata_id].partition(":")
            if "/" in operation and re.fullmatch(r"[A-Z_]\w*", type_):
                raw.setdefault(operation, []).append(event.duration_ps)
    found = {
        row["operation"]: row for row in table(framework_op_stats.TOOL.run(session, None, {}).tables["ops"])
    }
    inside = {
        operation for operation, row in found.items() if "/" in operation and row["host_or_device"] == "Host"
    }
    assert len(raw) > 15
    assert inside == set(raw)
    for operation, durations in raw.items():
        assert (found[operation]["n_occurrences"], found[operation]["total_time_ps"]) == (
            len(durations),
            sum(durations),
        ), operation


def value_of(stat: Any, names: dict[int, str]) -> Any:
    kind = stat.WhichOneof("value")
    value = getattr(stat, kind) if kind else 0
    return (
        names[value]
        if kind == "ref_value"
        else value.decode("utf-8", "replace")
        if kind == "str_value"
        else value
    )


_ARRAY = re.compile(r"\b(bf16|f16|f32|s8|u8)\[([\d,]*)\]")
_WIDTH = {"bf16": 2, "f16": 2, "f32": 4, "s8": 1, "u8": 1}
_MATRICES = (
    "tracelens_mi300_jax__jax08_gemm",
    "tracelens_mi300_jax__jax08_attention",
    "tracelens_mi300_jax__jax_conv_minimal_08",
)


def arrays_of(expression: str) -> list[tuple[str, list[int]]]:
    """The arrays of an instruction's printed text: result (and workspace) first, then operands."""
    shown = re.sub(r"window=.*", "", expression)
    return [(kind, [int(side) for side in sides.split(",") if side]) for kind, sides in _ARRAY.findall(shown)]


def rows_of(name: str, words: str) -> list[Row]:
    found = [
        row
        for row in table(hlo_stats.TOOL.run(open_session(name), None, {}).tables["ops"])
        if words in str(row["expression"])
    ]
    return [row for row in found if row["n_occurrences"]]


@pytest.mark.parametrize("name", _MATRICES[:2])
def test_a_cublas_call_multiplies_its_matrices(name: str) -> None:
    """2·m·n·k FLOPs, and every byte of both operands, the result and the workspace once, by the shapes that
    the instruction prints.
    """
    found = rows_of(name, "__cublas$gemm")
    assert found
    for row in found:
        (kind, out), workspace, (_, left), (_, right) = arrays_of(str(row["expression"]))
        inner = math.prod(left) * math.prod(right) / math.prod(out)
        k = math.isqrt(round(inner)) if len(out) == 2 else math.isqrt(round(inner / out[0]))
        seconds = row["avg_time_ps"] / 1e12
        assert row["flop_rate_flops_per_s"] * seconds == pytest.approx(2 * math.prod(out) * k)
        n_bytes = _WIDTH[kind] * (math.prod(out) + math.prod(left) + math.prod(right)) + math.prod(
            workspace[1]
        )
        assert row["memory_bandwidth_bytes_per_s"] * seconds == pytest.approx(n_bytes)


@pytest.mark.parametrize("name", _MATRICES[:2])
def test_a_matrix_fusion_reads_each_operand_once(name: str) -> None:
    """By the shapes that the instruction prints: the result is written, the operands are read."""
    found = rows_of(name, "kind=kCustom")
    assert found
    for row in found:
        n_bytes = sum(_WIDTH[kind] * math.prod(sides) for kind, sides in arrays_of(str(row["expression"])))
        assert row["memory_bandwidth_bytes_per_s"] * row["avg_time_ps"] / 1e12 == pytest.approx(n_bytes), row[
            "op"
        ]


def test_a_cudnn_call_moves_its_images_kernels_and_workspace_through_hbm() -> None:
    found = rows_of(_MATRICES[2], "__cudnn$conv")
    assert found
    for row in found:
        n_bytes = sum(_WIDTH[kind] * math.prod(sides) for kind, sides in arrays_of(str(row["expression"])))
        assert row["hbm_bytes_per_s"] * row["avg_time_ps"] / 1e12 == pytest.approx(n_bytes)


def test_a_copy_to_or_from_the_host_moves_its_array_once_from_its_start_to_its_done() -> None:
    """By the raw events: its 5.4 GB pass HBM once, from the k-th `copy-start.n` to the end of the k-th
    `copy-done.n` of a core.
    """
    session = open_session("xprof_tpu_inference_2_old__run")
    elapsed = elapsed_s(session, 1)
    n_bytes = 5 * 1024 * 1024 * 256 * 4
    (row,) = [
        row
        for row in table(hlo_stats.TOOL.run(session, None, {}).tables["ops"])
        if row["op"] == "copy-done.1"
    ]
    assert row["n_occurrences"] == len(elapsed)
    assert row["hbm_bytes_per_s"] == pytest.approx(n_bytes * len(elapsed) / sum(elapsed), rel=0.03)


def elapsed_s(session: Session, number: int) -> list[float]:
    """From each `copy-start` of that number to the end of the `copy-done` that follows, of all cores."""
    space = xspace_class()()
    space.ParseFromString(Path(session.file(session.hosts[0]).path).read_bytes())
    found: list[float] = []
    for plane in space.planes:
        names = {entry.key: entry.value.display_name.decode() for entry in plane.event_metadata}
        for line in plane.lines:
            if line.name == b"XLA Ops":
                starts, ends = (
                    sorted(
                        event.offset_ps + (event.duration_ps if what == "done" else 0)
                        for event in line.events
                        if names.get(event.metadata_id) == f"copy-{what}.{number}"
                    )
                    for what in ("start", "done")
                )
                found += [(end - start) / 1e12 for start, end in zip(starts, ends, strict=True)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_tracer_of_the_corpus_writes_what_has_no_column(name: str) -> None:
    """Neither autotuning nor a parent operation is a stat of any file."""
    trace = open_session(name).trace(open_session(name).hosts[0])
    stats = {trace.strings.get(i).lower() for i in trace.stat_names["name"].tolist()}
    assert not {
        stat for stat in stats if stat in ("autotuned", "is_autotuned", "parent_op_name", "parent_op")
    }


def test_time_per_device_is_of_devices_that_ran_something(tmp_path: Path) -> None:
    """Two cores compute 0.6 ms in each of 6 steps and the third has no event: 3.6 ms per device, not 2.4."""
    job = TpuJob(parts=Parts(compute=0.6), n_cores=2, n_steps=6)
    space = xspace_class()()
    space.ParseFromString(tpu_xspace(job))
    space.planes.add(id=99, name=b"/device:TPU:2")
    (row,) = table(
        roofline_model.TOOL.run(run_of(tmp_path, synthetic=space.SerializeToString()), None, {}).tables["ops"]
    )
    assert row["total_time_ps"] == pytest.approx(7.2e9)
    assert row["time_per_device_ps"] == pytest.approx(3.6e9)


def test_without_steps_there_is_no_average_of_steps(tmp_path: Path) -> None:
    session = run_of(tmp_path, synthetic=tpu_xspace(TpuJob(parts=PARTS, has_steps=False)))
    listed = table(roofline_model.TOOL.run(session, None, {}).tables["programs"])
    assert [row["step"] for row in listed] == ["Total"]
    payload = overview_page.TOOL.run(session, None, {})
    assert payload.scalars["step_time_avg_ps"].value is None
    assert payload.verdict is not None
    assert payload.verdict.text.startswith(
        "`convolution fusion` takes 68.2% of the operations' time on the TPU"
    )


def test_no_node_of_the_tree_has_no_time() -> None:
    for grouping in ("program", "category", "provenance"):
        payload = op_profile.TOOL.run(
            open_session("reactant__2025_02_05_11_07_48"), None, {"group_by": grouping, "idle": True}
        )
        nodes = table(payload.tables["nodes"])
        assert nodes
        assert all(node["self_time_ps"] > 0 for node in nodes if node["name"] == "IDLE")


def test_what_is_no_number_is_called_as_its_maker_or_the_page_calls_it() -> None:
    """Names, colours and arrangements, in which neither side is wrong: vendor's and processor's names as
    users know them.
    """
    for name, word in (
        ("tracelens_mi300_jax__jax08_gemm", "AMD"),
        ("reactant__2025_02_05_11_07_48", "NVIDIA"),
        ("own_jax_cpu__mlp", "CPU"),
    ):
        facts = {
            row["name"]: row["value"]
            for row in table(overview_page.TOOL.run(open_session(name), None, {}).tables["environment"])
        }
        assert word in facts["Hardware"]
