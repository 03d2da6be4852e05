"""Collectives that XLA runs on GPUs: kernels of NCCL by the instruction that they name, three unlike kinds.

GPU 0, 1    ncclDevKernel_AllReduce (4 µs)    all-reduce-start.3 (f32[1000], f32[24])     {0,1}
            ncclDevKernel_AllGather (2 µs)    all-gather-start.4 f32[512] → f32[1024]     {0,1}
            ncclDevKernel_ReduceScatter (8)   async-start.5, around reduce-scatter.11     {0,1}
            ncclDevKernel_Broadcast (1)       names nothing
"""

from __future__ import annotations

from typing import Any

import pytest

from tb_tpuprof.analysis.pod.comms import exchanges
from tb_tpuprof.analysis.pod.gpu_transfers import result_bytes
from tb_tpuprof.analysis.pod.host import host_cores, pod_host
from tb_tpuprof.analysis.pod.join import join
from tb_tpuprof.analysis.pod.transfers import TransferOp
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, event
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto

KIBI = array(1024)
GROUPS = {"f49": [{1: (0, 1)}]}


def pair(*shapes: Any) -> dict[int, Any]:
    return {2: TUPLE, 4: list(shapes)}


def named(name: str, made: dict[int, Any]) -> dict[int, Any]:
    return {**made, 1: name}


def program() -> bytes:
    """Two halves each of an all-reduce of two arrays, an all-gather, and a wrapped reduce-scatter."""
    wrapped = [
        instruction(10, "parameter", KIBI),
        instruction(11, "reduce-scatter", array(512), [10], **GROUPS),
    ]
    entry = [
        instruction(1, "parameter", array(1000)),
        instruction(2, "parameter", array(24)),
        instruction(3, "all-reduce-start", pair(array(1000), array(24)), [1, 2], **GROUPS),
        instruction(6, "parameter", array(512)),
        instruction(4, "all-gather-start", pair(array(512), KIBI), [6], **GROUPS),
        named("async-start.5", instruction(5, "async-start", pair(KIBI, array(512)), [4], f38=(20,))),
        instruction(7, "add", array(24), [2, 2]),
    ]
    return proto([computation(20, "wrapped", wrapped, 11), computation(1, "main", entry, 7)])


OPS = (
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all-reduce-start.3", 4),
    ("ncclDevKernel_AllGather_RING_LL", "all-gather-start.4", 2),
    ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", "async-start.5", 8),
    ("ncclDevKernel_Broadcast_RING_LL", "", 1),
    ("loop_add_fusion", "add.7", 3),
)


def calling_each_other() -> bytes:
    """As no compiler does: all 40 instructions of one computation call another, and all of that the first;
    one of them also calls that with the reduce-scatter.
    """
    first = [instruction(100 + i, "fusion", KIBI, f38=(31,)) for i in range(40)]
    second = [instruction(200 + i, "fusion", KIBI, f38=(30, 32) if i == 39 else (30,)) for i in range(40)]
    last = [instruction(10, "parameter", KIBI), instruction(11, "reduce-scatter", array(512), [10], **GROUPS)]
    entry = [named("all-reduce-start.3", instruction(1, "fusion", array(512), f38=(30,)))]
    bodies = [computation(30 + i, f"c{i}", rows, rows[0][35]) for i, rows in enumerate((first, second, last))]
    return proto([*bodies, computation(1, "main", entry, 1)])


def trace(device: str = "NVIDIA H100 80GB HBM3", content: bytes = program()) -> Trace:
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent("module(0)", 0, 0)]},
        metadata_stats={"module(0)": {"Hlo Proto": content}},
    )
    planes = [metadata]
    for number in (0, 1):
        events = []
        for i, (kernel, hlo_op, length) in enumerate(OPS):
            stats = {"correlation_id": i + 1, **({"hlo_op": hlo_op, "program_id": 0} if hlo_op else {})}
            events.append(event(kernel, 20 * i, length, **stats))
        stats = {"gpu_device_name": device}
        planes.append(DrawnPlane(f"/device:GPU:{number}", {"Stream #1": events}, stats))
    return build(planes)


def test_sizes_of_starts_are_those_of_their_results() -> None:
    module = trace().programs.module(0)
    assert module is not None
    sizes = {
        name: result_bytes(module, module.find(name)) for name in ("all-reduce-start.3", "all-gather-start.4")
    }
    assert sizes == {"all-reduce-start.3": 4 * 1024, "all-gather-start.4": 4 * 1024}
    assert result_bytes(module, module.find("reduce-scatter.11")) == 4 * 512


def test_kernels_are_the_collectives_that_they_name() -> None:
    made = trace()
    cores = host_cores(made).cores
    ops, op_of = exchanges(made, [(core.rows, core.step) for core in cores])
    facts = {op.name: (op.kind, op.size_bytes, op.groups, op.has_hlo, op.is_half) for op in ops}
    groups = ((0, 1),)
    assert facts == {
        "all-reduce-start.3": ("all-reduce", 4096, groups, True, False),
        "all-gather-start.4": ("all-gather", 4096, groups, True, False),
        "async-start.5": ("reduce-scatter", 2048, groups, True, False),
        "ncclDevKernel_Broadcast_RING_LL": ("broadcast", 0, (), False, False),
    }
    for number, of_core in enumerate(op_of):
        names = [ops[i].name if i >= 0 else "" for i in of_core.tolist()]
        assert names == ["all-reduce-start.3", "all-gather-start.4", "async-start.5", OPS[3][0], ""], number


def test_computations_that_call_each_other_are_read_once() -> None:
    """Else there would be 40 times more instructions at each level."""
    made = trace(content=calling_each_other())
    ops, _ = exchanges(made, [(core.rows, core.step) for core in host_cores(made).cores])
    assert [(op.name, op.kind, op.size_bytes) for op in ops if op.has_hlo] == [
        ("all-reduce-start.3", "reduce-scatter", 2048)
    ]


def test_bandwidths_of_two_gpus() -> None:
    """Algorithm and bus bandwidth by hand: S of the larger side; times 1, 1/2, 1/2 for two ranks."""
    pod = join([pod_host(trace())])
    rates = {one.op.name: (one.algorithm_bytes_per_s, one.bus_bytes_per_s) for one in pod.collectives}
    assert rates["all-reduce-start.3"] == pytest.approx((4096 / 4e-6, 4096 / 4e-6))
    assert rates["all-gather-start.4"] == pytest.approx((4096 / 2e-6, 4096 / 2e-6 / 2))
    assert rates["async-start.5"] == pytest.approx((4096 / 8e-6, 4096 / 8e-6 / 2))
    assert rates["ncclDevKernel_Broadcast_RING_LL"] == (None, None)


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [("all-reduce", 1.0), ("all-gather", 2.0), ("broadcast", 1.0)],
)
def test_nothing_is_faster_than_the_links(kind: str, allowed: float) -> None:
    """`allowed`: the algorithm bandwidth of two ranks ÷ what the links carry, at most: an all-reduce may be
    reduced on the way, an all-gather sends half of its result.
    """
    from tb_tpuprof.analysis.pod.collectives import Collective, GroupsFrom

    def made(rate: float, link: float) -> Collective:
        op = TransferOp("x", kind, size_bytes=int(rate), has_hlo=True)
        return Collective(op, 1.0, 1e12, 0.0, ((0, 1),), 2, GroupsFrom.PROGRAM, 2, link_bytes_per_s=link)

    below, above = made(450e9 * allowed * 1.04, 450e9), made(450e9 * allowed * 1.06, 450e9)
    assert below.algorithm_bytes_per_s == pytest.approx(450e9 * allowed * 1.04)
    assert below.bus_bytes_per_s is not None
    assert below.remark == ""
    assert (above.algorithm_bytes_per_s, above.bus_bytes_per_s) == (None, None)
    assert "more than the GPU's links carry" in above.remark
    assert made(450e9 * allowed * 9, 0.0).algorithm_bytes_per_s == pytest.approx(450e9 * allowed * 9)
