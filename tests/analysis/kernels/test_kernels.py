"""Kernels on drawn traces: sums, launches, operations, and rows of several hosts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.analysis.kernels.kernels import Kernels, kernels, merge_kernels
from tb_tpuprof.analysis.kernels.launch import read_launch
from tb_tpuprof.analysis.ops.metrics import NO_OPERATION
from tb_tpuprof.analysis.ops.stats import op_stats
from tb_tpuprof.ingest.storage.result_cache import pack
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build, drawing

GEMM = "regs:32 static_shared:1024 dynamic_shared:2048 block:128,1,1 grid:16,2,1 occ_pct:50"
ADD = "regs:16 static_shared:0 dynamic_shared:0 block:256,1,1 grid:4,1,1 occ_pct:100"


def gpu_trace(host: str = "host") -> Trace:
    stats: dict[str, Stats | list[Stats]] = {
        "h884gemm": {"kernel_details": GEMM, "tf_op": "a/MatMul:MatMul"},
        "add": [
            {"kernel_details": ADD, "tf_op": "a/Add:AddV2"},
            {"kernel_details": ADD, "tf_op": "b/Add:AddV2"},
        ],
        "MemcpyD2D": {"memcpy_details": "size:1"},
    }
    return drawing(
        """
        /device:GPU:0:
        Stream #1  [h884gemm    ]  [add  ]   [MemcpyD2D]
        /device:GPU:1:
        Stream #1    [h884gemm        ]         <add>
        """,
        stats,
        host=host,
    )


def test_kernels_are_summed_by_kernel_operation_and_launch() -> None:
    found = kernels(gpu_trace())
    assert found.name == ("h884gemm", "add", "add")
    assert found.op == ("a/MatMul", "a/Add", "b/Add")
    assert found.n_occurrences.tolist() == [2, 1, 1]
    assert (found.total_ps // PS).tolist() == [14 + 18, 7, 5]
    assert (found.min_ps // PS).tolist() == [14, 7, 5]
    assert (found.max_ps // PS).tolist() == [18, 7, 5]
    assert found.is_eligible.tolist() == [True, False, False]
    assert found.uses_tensor_cores.tolist() == [True, False, False]
    assert found.longest_start_ps[0] // PS == 13
    launch = found.launch[0]
    assert (launch.n_registers, launch.shared_bytes, launch.block, launch.grid, launch.occupancy) == (
        32,
        3072,
        "128,1,1",
        "16,2,1",
        0.5,
    )


def test_rows_of_hosts_become_one() -> None:
    one, other = kernels(gpu_trace("a")), kernels(gpu_trace("b"))
    both = merge_kernels([one, other])
    assert both.name == one.name
    assert both.n_occurrences.tolist() == [2 * n for n in one.n_occurrences.tolist()]
    assert both.total_ps.tolist() == [2 * t for t in one.total_ps.tolist()]
    assert both.min_ps.tolist() == one.min_ps.tolist()
    assert both.max_ps.tolist() == one.max_ps.tolist()
    assert len(merge_kernels([one])) == len(one)


def test_extremes_of_hosts_are_kept_where_they_differ() -> None:
    def host(name: str, *durations: int) -> Kernels:
        events = [
            DrawnEvent("k", i * 1000 * PS, d * PS, {"kernel_details": ADD}) for i, d in enumerate(durations)
        ]
        return kernels(build([DrawnPlane("/device:GPU:0", {"Stream #1": events})], host=name))

    both = merge_kernels([host("a", 5, 9), host("b", 3, 20)])
    assert [both.n_occurrences[0], both.total_ps[0] // PS, both.min_ps[0] // PS, both.max_ps[0] // PS] == [
        4,
        37,
        3,
        20,
    ]
    assert (both.host[0], both.longest_start_ps[0] // PS) == ("b", 1000)


def test_derived_lines_and_other_planes_do_not_count_but_kernels_of_0_ps_do() -> None:
    kernel: Stats = {"kernel_details": ADD}
    derived = DrawnPlane(
        "/device:GPU:0",
        {
            "Stream #1": [DrawnEvent("k", 0, 0, kernel), DrawnEvent("l", 0, 5 * PS, kernel)],
            "XLA Ops": [DrawnEvent("k", 0, 9 * PS, kernel)],
        },
        line_ids={"XLA Ops": 0xDEADBEEF + 5},
    )
    host = DrawnPlane("/host:CPU", {"main": [DrawnEvent("cudaLaunch", 0, 3 * PS, kernel)]})
    found = kernels(build([host, derived]))
    assert found.name == ("l", "k")
    assert (found.n_occurrences.tolist(), found.total_ps.tolist(), found.min_ps.tolist()) == (
        [1, 1],
        [5 * PS, 0],
        [5 * PS, 0],
    )


def test_kernels_of_no_known_launch_count_wherever_they_run() -> None:
    """Three streams: a described kernel, one of a graph that names its operation, one that names nothing; and
    what is no kernel.
    """
    plane = DrawnPlane(
        "/device:GPU:1",
        {
            "Stream #1": [DrawnEvent("k", 0, 5 * PS, {"kernel_details": ADD})],
            "Stream #2": [
                DrawnEvent("k", 0, 3 * PS, {"tf_op": "a/MatMul:MatMul"}),
                DrawnEvent("MemcpyH2D", 4 * PS, 9 * PS),
            ],
            "Stream #3": [
                DrawnEvent("CudaGraphExec:7", 6 * PS, 11 * PS),
                DrawnEvent("Memset 32", 20 * PS, 9 * PS),
            ],
        },
    )
    trace = build([plane])
    found = kernels(trace)
    assert list(zip(found.name, found.op, (found.total_ps // PS).tolist(), strict=True)) == [
        ("CudaGraphExec:7", "", 11), ("k", "", 5), ("k", "a/MatMul", 3),
    ]  # fmt: skip
    assert [launch.block for launch in found.launch] == ["", "256,1,1", ""]
    device = op_stats(trace).device
    rows = dict(zip(device.name, zip(device.type, (device.self_ps // PS).tolist(), strict=True), strict=True))
    assert rows == {"a/MatMul": ("MatMul", 3), "k": (NO_OPERATION, 5), "CudaGraphExec:7": (NO_OPERATION, 11)}
    assert device.busy_ps == found.total_ps.sum()  # both pages have the time of all kernels


def test_operations_come_from_a_derived_line_where_kernels_name_none() -> None:
    plane = DrawnPlane(
        "/device:GPU:0",
        {
            "Stream #1": [
                DrawnEvent("k", 2 * PS, 3 * PS, {"kernel_details": ADD}),
                DrawnEvent("k", 20 * PS, PS, {"kernel_details": ADD}),
            ],
            "TensorFlow Ops": [DrawnEvent("x/MatMul:MatMul", 0, 10 * PS)],
        },
        line_ids={"TensorFlow Ops": 0xDEADBEEF + 3},
    )
    found = kernels(build([plane]))
    assert dict(zip(found.op, found.is_eligible.tolist(), strict=True)) == {"x/MatMul": True, "": False}


def test_a_kernel_of_an_instruction_without_a_framework_s_name_is_called_by_the_instruction() -> None:
    stats: Stats = {
        "kernel_details": ADD,
        "tf_op": "XlaModule:",
        "hlo_op": "while.1::loop_add_fusion.3",
        "program_id": 4,
    }
    found = kernels(
        build([DrawnPlane("/device:GPU:0", {"Stream #1": [DrawnEvent("loop_add_fusion_3", 0, PS, stats)]})])
    )
    assert found.op == ("loop_add_fusion.3",)
    assert found.library == ("XLA",)


def test_a_trace_without_kernels_has_none() -> None:
    assert len(kernels(drawing("main [x ]"))) == 0


def test_launches_of_older_and_of_amd_tracers() -> None:
    amd = read_launch(" grid:4,64,1 block:256,1,1 private_mem:0 group_mem:8704 occ_pct:0")
    assert (amd.n_registers, amd.shared_bytes, amd.grid) == (-1, 8704, "4,64,1")
    assert math.isnan(amd.occupancy)
    assert read_launch("regs:16 shm:64 grid:1,1,1 block:1,1,1").shared_bytes == 64
    assert read_launch("regs:32\nstatic_shared:1\nblock:1,2,3").block == "1,2,3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "regs:",
        "regs:-1 grid:1,2",
        "regs:17179869185 grid:1,210453397508,0",
        "a:b:c",
        "occ_pct:nan",
        "occ_pct:1e999",
    ],
)
def test_what_is_no_launch_is_unknown(text: str) -> None:
    launch = read_launch(text)
    assert (launch.n_registers, launch.shared_bytes, launch.grid) == (-1, -1, "")
    assert math.isnan(launch.occupancy)


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    read_launch(text)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(1, 50)), min_size=1, max_size=30
    )
)
def test_sums_are_those_of_a_plain_loop(drawn: list[tuple[str, str, int]]) -> None:
    events = [
        DrawnEvent(n, i * 100 * PS, d * PS, {"kernel_details": ADD, "tf_op": f"{op}:Op"})
        for i, (n, op, d) in enumerate(drawn)
    ]
    found = kernels(build([DrawnPlane("/device:GPU:0", {"Stream #1": events})]))
    wanted: dict[tuple[str, str], list[int]] = {}
    for name, op, duration in drawn:
        wanted.setdefault((name, op), []).append(duration * PS)
    rows = zip(
        found.name, found.op, found.n_occurrences, found.total_ps, found.min_ps, found.max_ps, strict=True
    )
    assert {(n, op): [c, t, low, high] for n, op, c, t, low, high in rows} == {
        k: [len(v), sum(v), min(v), max(v)] for k, v in wanted.items()
    }
    assert (np.diff(found.total_ps) <= 0).all()


def test_a_result_of_many_rows_is_small_where_it_is_kept() -> None:
    """Names of templates have thousands of letters; each is kept once."""
    name = "void kernel<" + "float, " * 500 + ">(int)"
    stats: list[Stats] = [
        {"kernel_details": f"regs:16 grid:{i},1,1 block:64,1,1", "correlation_id": i} for i in range(1, 201)
    ]
    events = [DrawnEvent(name, 10 * i, 5, facts) for i, facts in enumerate(stats)]
    found = kernels(
        build([DrawnPlane("/device:GPU:0", {"Stream #1": events}), DrawnPlane("/host:CPU", {"main": []})])
    )
    packed = pack(found)
    assert len(found) == 200
    assert packed is not None
    assert len(packed) < 50_000
