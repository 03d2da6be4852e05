"""Collectives that XLA runs on GPUs: kernels of NCCL by the instruction that they name, three unlike kinds.

GPU 0, 1    ncclDevKernel_AllReduce (4 µs)    all-reduce-start.3 (f32[1000], f32[24])     {0,1}
            ncclDevKernel_AllGather (2 µs)    all-gather-start.4 f32[512] → f32[1024]     {0,1}
            ncclDevKernel_ReduceScatter (8)   async-start.5, around reduce-scatter.11     {0,1}
            ncclDevKernel_Broadcast (1)       names nothing
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.comms import exchanges
from tb_tpuprof.analysis.pod.gpu_transfers import _collective_in, _linked, _transfers, _used, result_bytes
from tb_tpuprof.analysis.pod.host import host_cores, pod_host
from tb_tpuprof.analysis.pod.join import join
from tb_tpuprof.analysis.pod.transfers import TransferOp, transfer_ops
from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.hlo.module import decode_hlo
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


def test_a_collective_within_a_fusion_of_a_tpu_is_read_there() -> None:
    """The fusion itself states neither groups nor what it reduces; a fusion of other work is none."""
    bodies = {
        30: [instruction(10, "parameter", KIBI), instruction(11, "all-reduce", array(512), [10], **GROUPS)],
        31: [instruction(20, "parameter", KIBI), instruction(21, "negate", KIBI, [20])],
    }
    entry = [
        named("fusion.3", instruction(1, "fusion", KIBI, f38=(30,))),
        named("fusion.4", instruction(2, "fusion", KIBI, [1], f38=(31,))),
    ]
    parts = [computation(i, f"c{i}", rows, rows[-1][35]) for i, rows in bodies.items()]
    content = proto([*parts, computation(1, "main", entry, 2)])
    categories = {"fusion.3": "all-reduce fusion", "fusion.4": "all-reduce fusion"}
    device = DrawnPlane(
        "/device:TPU:0",
        {"XLA Ops": [event(name, 20 * i, 9) for i, name in enumerate(categories)]},
        metadata_stats={
            name: {"hlo_category": category, "program_id": 0} for name, category in categories.items()
        },
    )
    metadata = DrawnPlane(
        "/host:metadata",
        {"x": [DrawnEvent("module(0)", 0, 0)]},
        metadata_stats={"module(0)": {"Hlo Proto": content}},
    )
    made = build([metadata, device])
    ops, _ = transfer_ops(made, np.arange(len(made.metadata)))
    assert [(op.name, op.kind, op.size_bytes, op.groups) for op in ops] == [
        ("fusion.3", "all-reduce", 2048, ((0, 1),)),
        ("fusion.4", "all-reduce", 4096, ()),
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


def module(*instructions: dict[int, Any], others: Any = ()) -> Any:
    """A program of these instructions, the first of which is row 0."""
    end = instruction(99, "add", array(3), [98, 98])
    return decode_hlo(proto([computation(1, "main", [*instructions, end], 99), *others]), "f", 7)


def test_sizes_by_the_kind_of_the_start() -> None:
    """The first instruction may be the operand; of an all-gather with flags the size is unknown."""
    made = module(
        instruction(1, "parameter", array(10)),
        instruction(2, "parameter", array(20)),
        instruction(3, "all-reduce-start", pair(array(10), array(20)), [1, 2], **GROUPS),
        instruction(4, "all-gather-start", pair(array(10), array(40)), [1], **GROUPS),
        instruction(5, "all-gather-start", pair(array(10), array(40), array(1)), [1], **GROUPS),
        instruction(6, "all-gather", array(80), [1], **GROUPS),
    )
    sizes = {
        name: result_bytes(made, made.find(name))
        for name in ("all-reduce-start.3", "all-gather-start.4", "all-gather-start.5", "all-gather.6")
    }
    assert list(sizes.values()) == [120, 160, 0, 320]


def nested(depth: int, n_collectives: int = 1) -> Any:
    """A call of a call … of a computation with collectives."""
    inner = [instruction(500 + i, "all-reduce", array(4), [], **GROUPS) for i in range(n_collectives)]
    inner.append(instruction(600, "all-reduce-done", array(4), [500]))
    others = [computation(20, "c0", inner, 600)]
    for level in range(1, depth):
        call = instruction(100 + level, "call", array(4), [], f38=(19 + level,))
        others.append(computation(20 + level, f"c{level}", [call], 100 + level))
    return module(instruction(10, "async-start", pair(array(4)), [], f38=(19 + depth,)), others=others)


def test_the_only_collective_inside_counts() -> None:
    plain = module(instruction(1, "all-reduce", array(4), [], **GROUPS), instruction(2, "add", array(4), []))
    assert _collective_in(plain, 0) == 0
    assert _collective_in(plain, plain.find("add.2")) == -1
    for depth in (1, 2, 7, 8, 20):  # each computation is read once, however deep
        made = nested(depth)
        assert _collective_in(made, made.find("async-start.10")) == made.find("all-reduce.500") > 0, depth
    assert _collective_in(nested(2, 2), nested(2, 2).find("async-start.10")) == -1
    assert _collective_in(nested(2, 0), nested(2, 0).find("async-start.10")) == -1


def linked(program: int, name: str, row: int) -> Any:
    return SimpleNamespace(program_id=program, name=name, instruction=row)


def test_names_are_told_apart_where_programs_share_them() -> None:
    """Of three programs two have a title; one is damaged and one of the events names no instruction."""
    programs = {
        7: module(instruction(1, "all-reduce", array(4), [], **GROUPS)),
        8: module(
            instruction(1, "all-reduce", array(6), [], **GROUPS), instruction(2, "all-gather", array(5), [])
        ),
        9: module(instruction(1, "send", array(4), [], **GROUPS), instruction(2, "recv", array(5), [])),
    }

    def read(program: int) -> Any:
        if program == 10:
            raise TraceFormatError("f", 0, "is damaged")
        return programs.get(program)

    titles = {7: SimpleNamespace(title="jit_f")}
    trace: Any = SimpleNamespace(programs=SimpleNamespace(module=read, get=titles.get))
    ops = [
        linked(7, "all-reduce.1", 0),
        linked(8, "all-reduce.1", 0),
        linked(8, "all-gather.2", 1),
        linked(9, "send.1", 0),
        linked(9, "recv.2", 1),
        linked(8, "unknown", -1),
        linked(10, "damaged", 0),
        linked(11, "no program", 0),
        linked(8, "add.99", 2),
    ]
    found = _transfers(trace, SimpleNamespace(ops=ops), range(len(ops)))  # type: ignore[arg-type]
    assert {i: (one.name, one.size_bytes) for i, one in found.items()} == {
        0: ("all-reduce.1 of jit_f", 16),
        1: ("all-reduce.1 of 8", 24),
        2: ("all-gather.2", 20),
    }


def test_events_by_the_operation_that_they_name() -> None:
    links: Any = SimpleNamespace(events=np.array([2, 5, 9]), op=np.array([7, 8, 6]))
    rows = np.array([1, 2, 5, 6, 9, 12])
    every = np.ones(6, np.bool_)
    assert _linked(links, rows, every).tolist() == [-1, 7, 8, -1, 6, -1]
    some = np.array([True, False, True, True, False, True])
    assert _linked(links, rows, some).tolist() == [-1, -1, 8, -1, -1, -1]


def test_only_used_transfers_are_kept() -> None:
    ops = tuple(TransferOp(name, "all-reduce") for name in "abcd")
    kept, op_of = _used(ops, [np.array([3, -1, 0]), np.array([-1]), np.array([0, 3, 2])])
    assert [one.name for one in kept] == ["a", "c", "d"]
    assert [one.tolist() for one in op_of] == [[2, -1, 0], [-1], [0, 2, 1]]
    assert _used(ops, []) == ((), [])
