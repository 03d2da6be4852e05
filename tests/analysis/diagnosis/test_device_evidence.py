"""Evidence of accelerators from handmade operations and kernels: times per step, fractions of peaks, groups.

The devices are busy for 1000 ps of the trace and for 500 in a step, so that a time in the step is half of
that in the trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.diagnosis import device_evidence as module
from tb_tpuprof.analysis.diagnosis.records import DeviceEvidence, Group
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.hlo.work import Work
from tb_tpuprof.analysis.kernels.kernels import Kernels
from tb_tpuprof.analysis.kernels.launch import Launch
from tb_tpuprof.analysis.ops.hlo_record import HloOps, words_of
from tb_tpuprof.analysis.ops.roofline import Roofs
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnEvent, DrawnPlane, build, drawing

TRACE = drawing("main [x ]")
LONG = 20_000_000  # ps
PEAKS = Roofs(
    2e12, (4e12, *[0.0] * (len(SPACES) - 1)), sources=("data sheet https://x.y/z", "trace")
)  # 2 FLOPs and 4 bytes per ps
NONE = Roofs(0.0, (0.0,) * len(SPACES))


@dataclass(frozen=True)
class Op:
    """An operation: all that it ran in the trace."""

    name: str
    category: str
    self_ps: int
    time_ps: int = -1
    n: int = 1
    flops: float = math.nan
    hbm: float = math.nan
    core: str = "TensorCore"


def ops_of(*ops: Op) -> HloOps:
    n = len(ops)
    time = np.array([one.self_ps if one.time_ps < 0 else one.time_ps for one in ops], np.int64)
    flops, moved = (np.array([getattr(one, key) for one in ops]) for key in ("flops", "hbm"))
    space = np.zeros((len(SPACES), n))
    space[0] = np.nan_to_num(moved)
    amounts = np.nan_to_num(flops)
    none, ids = words_of([""] * n), np.full(n, -1, np.int64)
    return HloOps(
        program=np.ones(n, np.int64),
        name=words_of([one.name for one in ops]),
        category=words_of([one.category for one in ops]),
        provenance=none,
        source=none,
        twin=none,
        core=words_of([one.core for one in ops]),
        n_occurrences=np.array([one.n for one in ops], np.int64),
        time_ps=time,
        self_ps=np.array([one.self_ps for one in ops], np.int64),
        normalized_ps=time,
        stall_ps=0 * time,
        work_ps=time,
        thread_ps=ids,
        energy_j=0.0 * amounts,
        work=Work(amounts, amounts, space[0], space, ~np.isnan(flops), ~np.isnan(moved)),
        instruction=ids,
        metadata=ids,
        host=ids,
        span_ps=2000,
        n_devices=1,
        kind="TPU",
    )


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the peaks of the device."""

    def set_to(roofs: Roofs) -> None:
        monkeypatch.setattr(module, "roofs", lambda _trace: roofs)

    set_to(PEAKS)
    monkeypatch.setattr(module, "hardware", lambda _trace: Hardware("TPU", "TPU v5 lite", 1))
    return set_to


OPS = ops_of(
    Op("fusion.1", "loop fusion", 300, flops=100, hbm=400),
    Op("fusion.2", "loop fusion", 200, flops=300),
    Op("fusion.3", "loop fusion", 100, hbm=800),
    Op("while.4", "while", 0, time_ps=600, flops=9000, hbm=9000),
    Op("gather.5", "gather", 700, flops=9000, hbm=9000, core="SparseCore"),
    Op("copy.6", "copy", 400),
)


def test_fractions_of_the_peaks_are_of_the_whole_busy_time(peaks: Any) -> None:
    """400 of 2000 FLOPs and 1200 of 4000 bytes; neither loops nor SparseCores count."""
    assert module._fractions(TRACE, OPS) == (pytest.approx(0.2), pytest.approx(0.3), ("data sheet", "trace"))
    more = ops_of(Op("dot.1", "dot", 1000, flops=5000, hbm=9000))
    assert module._fractions(TRACE, more)[:2] == (1.0, 1.0)


def test_fractions_are_unknown_without_peaks_work_or_time(peaks: Any) -> None:
    def known(ops: HloOps) -> tuple[bool, bool]:
        flops, hbm, _ = module._fractions(TRACE, ops)
        return not math.isnan(flops), not math.isnan(hbm)

    assert known(ops_of(Op("a", "dot", 10, flops=5))) == (True, False)
    assert known(ops_of(Op("a", "dot", 10, hbm=5))) == (False, True)
    assert known(ops_of(Op("a", "dot", 10, flops=0, hbm=0))) == (False, False)
    assert known(ops_of(Op("a", "dot", 0, time_ps=9, flops=5, hbm=5))) == (False, False)
    assert known(ops_of(Op("a", "dot", 10, flops=1, hbm=1))) == (True, True)
    peaks(replace(PEAKS, flops_per_s=0.0))
    assert known(OPS) == (False, True)
    peaks(replace(PEAKS, bytes_per_s=(0.0,) * len(SPACES)))
    assert known(OPS) == (True, False)


def test_a_group_is_the_time_of_its_operations_and_names_the_longest() -> None:
    mask = np.array([True, True, False, True, False, True])
    assert module._group(OPS, mask, 0.5) == Group(450.0, 3, "copy.6", 200.0)
    only_loops = np.array([False, False, False, True, False, False])
    assert module._group(OPS, only_loops, 0.5) == Group()
    assert module._group(OPS, ~np.ones(6, np.bool_), 0.5) == Group()
    loop_with_own_time = ops_of(Op("while.1", "while", 50), Op("a", "copy", 1))
    assert module._group(loop_with_own_time, np.ones(2, np.bool_), 2.0) == Group(2.0, 1, "a", 2.0)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (module._REMAT, ["fusion.3.remat", "fusion.3.remat2", "remat.remat"]),
        (module._BARRIER, ["barrier-cores.1", "x"]),
        (module._DEBUG, ["debug_print.1", "DebugPrint.2", "debug-callback.3"]),
    ],
)
def test_names_and_categories_of_purposes(pattern: Any, names: list[str]) -> None:
    ops = ops_of(
        *(
            Op(name, category, 1)
            for name, category in (
                ("fusion.3.remat", "loop fusion"),
                ("fusion.3.remat2", "loop fusion"),
                ("rematerialize", "loop fusion"),
                ("remat.remat", "copy"),
                ("barrier-cores.1", "custom-call"),
                ("x", "barrier-cores"),
                ("debug_print.1", "custom-call"),
                ("DebugPrint.2", "custom-call"),
                ("debug-callback.3", "custom-call"),
                ("debugger", "custom-call"),
            )
        )
    )
    mask = module._matching(ops, pattern)
    assert [ops.name[row] for row in np.flatnonzero(mask).tolist()] == names


def test_no_operations_match_nothing() -> None:
    assert module._matching(ops_of(), module._REMAT).tolist() == []


def test_operations_that_compute_with_the_fractions_that_they_reach(peaks: Any) -> None:
    """By self time; what waits, exchanges, contains or runs on SparseCores is left out."""
    ops = ops_of(
        Op("short.1", "loop fusion", 40, time_ps=60, n=3, flops=12, hbm=60),
        Op("long.2", "convolution fusion", 30, time_ps=4 * LONG, n=2, flops=2.4 * LONG, hbm=4.8 * LONG),
        Op("half.3", "loop fusion", 20, time_ps=LONG, flops=LONG),
        Op("none.4", "loop fusion", 0, time_ps=10),
        Op("while.5", "while", 90),
        Op("gather.6", "gather", 90, core="SparseCore"),
        Op("copy-done.7", "copy-done", 90),
        Op("all-reduce.8", "all-reduce", 90),
        Op("over.9", "loop fusion", 10, time_ps=LONG, flops=4 * LONG, hbm=8 * LONG),
        Op("barely.10", "loop fusion", 5, time_ps=LONG - 1, flops=1, hbm=1),
    )
    found = module._ops(TRACE, ops, 0.5)
    assert [(one.name, one.category, one.time_ps, one.each_ps) for one in found] == [
        ("short.1", "loop fusion", 20.0, 20.0),
        ("long.2", "convolution fusion", 15.0, 2.0 * LONG),
        ("half.3", "loop fusion", 10.0, 1.0 * LONG),
        ("over.9", "loop fusion", 5.0, 1.0 * LONG),
        ("barely.10", "loop fusion", 2.5, LONG - 1.0),
    ]
    short, long, half, over, barely = found
    assert (short.flops_fraction, short.hbm_fraction) == (pytest.approx(0.1), pytest.approx(0.25))
    assert math.isnan(short.efficiency)  # too short to be limited by a resource
    assert (long.flops_fraction, long.hbm_fraction, long.efficiency) == pytest.approx((0.3, 0.3, 0.3))
    assert half.flops_fraction == pytest.approx(0.5)
    assert math.isnan(half.efficiency)  # its bytes are unknown
    assert math.isnan(over.efficiency)  # more was counted than the peaks allow
    assert math.isnan(barely.efficiency)
    assert all((one.product, math.isnan(one.fill)) == ("", True) for one in found)


def test_the_longest_twelve_operations_are_kept(peaks: Any) -> None:
    ops = ops_of(*(Op(f"fusion.{i}", "loop fusion", 100 - i) for i in range(20)))
    assert [one.name for one in module._ops(TRACE, ops, 1.0)] == [f"fusion.{i}" for i in range(12)]


@pytest.mark.parametrize(("grid", "n"), [("", 0), ("4,2,1", 8), ("16", 16), ("3,5,7", 105), ("2,0,1", 0)])
def test_blocks_of_a_grid(grid: str, n: int) -> None:
    assert module._n_blocks(grid) == n


def gpus(*core_counts: float | None) -> Trace:
    """A host's own plane has such a number, too."""
    lines = {"Stream #1": [DrawnEvent("k", 0, 5)]}
    host = DrawnPlane("/host:CPU", {"main": [DrawnEvent("a", 0, 5)]}, stats={"core_count": 7})
    planes = [
        DrawnPlane(f"/device:GPU:{i}", lines, stats={} if n is None else {"core_count": n})
        for i, n in enumerate(core_counts)
    ]
    return build([host, *planes])


def test_multiprocessors_are_those_of_the_first_gpu_that_states_them() -> None:
    assert module._multiprocessors(gpus(132, 108)) == 132
    assert module._multiprocessors(gpus(None, 108)) == 108
    assert module._multiprocessors(gpus(None)) == 0
    assert module._multiprocessors(gpus(math.inf)) == 0


def kernels_of(*rows: tuple[str, str, int, int]) -> Kernels:
    """(name, operation, total time, number) of each kernel, longest first; all could use tensor cores."""
    names, ops, total, n = zip(*rows, strict=True)
    times, ones = np.array(total, np.int64), np.ones(len(rows), np.bool_)
    launches = tuple(Launch(grid=f"{i + 1},2,1", occupancy=0.25 * i) for i in range(len(rows)))
    counts = np.array(n, np.int64)
    columns = (counts, times, times, times)
    return Kernels(names, ops, names, launches, ones, ~ones, *columns, ("a",) * len(rows), times)


KERNELS = kernels_of(
    ("gemm<float>(int)", "aten::mm", 400, 4),
    ("void add<float>(int)", "aten::add", 300, 3),
    ("ncclDevKernel_AllReduce", "nccl:all_reduce", 200, 1),
    ("other_gemm", "aten::mm", 150, 5),
    ("unnamed<int>", "", 50, 1),
)


def test_kernels_of_a_purpose_are_counted_by_their_operation() -> None:
    """Of 900 ps, `aten::mm` has 550."""
    mask = np.array([True, True, False, True, True])
    assert module._of_kernels(KERNELS, mask, 90.0) == Group(90.0, 3, "aten::mm", pytest.approx(55.0))
    last = np.array([False, False, False, False, True])
    assert module._of_kernels(KERNELS, last, 90.0) == Group(90.0, 1, "unnamed", 90.0)
    assert module._of_kernels(KERNELS, ~np.ones(5, np.bool_), 90.0) == Group()
    two = np.array([False, True, False, False, True])
    assert module._of_kernels(KERNELS, two, 70.0) == Group(70.0, 2, "aten::add", pytest.approx(60.0))


def test_the_use_of_kernels_leaves_out_collectives() -> None:
    uses = module._kernel_uses(KERNELS, 0.5)
    assert [(one.name, one.op, one.time_ps, one.each_ps, one.occupancy, one.n_blocks) for one in uses] == [
        ("gemm", "aten::mm", 200.0, 100.0, 0.0, 2),
        ("add", "aten::add", 150.0, 100.0, 0.25, 4),
        ("other_gemm", "aten::mm", 75.0, 30.0, 0.75, 8),
        ("unnamed", "", 25.0, 50.0, 1.0, 10),
    ]
    many = kernels_of(*((f"k{i}", "", 100 - i, 1) for i in range(20)))
    assert [one.name for one in module._kernel_uses(many, 1.0)] == [f"k{i}" for i in range(12)]


@dataclass(frozen=True)
class Cores:
    """Steps of cores: how long they wait for SparseCores."""

    parts: dict[str, np.ndarray]


def tpu(monkeypatch: pytest.MonkeyPatch, ops: Sequence[Op], cores: Cores | None) -> DeviceEvidence:
    monkeypatch.setattr(module, "core_steps", lambda _trace: cores)
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": [DrawnEvent("a", 0, 5)]})])
    return module._of_tpu(trace, ops_of(*ops), 500.0, 300.0)


def test_the_groups_of_a_tpu(monkeypatch: pytest.MonkeyPatch, peaks: Any) -> None:
    peaks(NONE)
    evidence = tpu(
        monkeypatch,
        [
            Op("copy.1", "data formatting", 30),
            Op("transpose.2", "transpose", 50),
            Op("fusion.3.remat", "loop fusion", 70),
            Op("copy-done.4", "copy-done", 110),
            Op("infeed.5", "infeed", 130),
            Op("outfeed.6", "outfeed", 10),
            Op("barrier-cores.7", "custom-call", 20),
            Op("debug_print.8", "custom-call", 40),
            Op("all-reduce.9", "all-reduce", 60),
            Op("all-gather.10", "all-gather fusion", 90),
            Op("fusion.11", "loop fusion", 390),
            Op("copy.12", "copy", 900, core="SparseCore"),
        ],
        Cores({"sparse_wait": np.array([10, 20, 60])}),
    )
    assert (evidence.device, evidence.busy_ps, evidence.compute_ps) == ("/device:TPU:0", 500.0, 300.0)
    assert (evidence.n_kernels, evidence.n_multiprocessors, evidence.kernels) == (0.0, 0, ())
    assert evidence.moves == Group(40.0, 2, "transpose.2", 25.0)
    assert evidence.remat == Group(35.0, 1, "fusion.3.remat", 35.0)
    assert evidence.waits == Group(55.0, 1, "copy-done.4", 55.0)
    assert evidence.barrier == Group(10.0, 1, "barrier-cores.7", 10.0)
    assert evidence.debug == Group(20.0, 1, "debug_print.8", 20.0)
    assert evidence.sparse == Group(30.0, 1, "", 30.0)
    assert evidence.collectives == Group(75.0, 2, "all-gather.10", 45.0)
    assert math.isnan(evidence.flops_fraction)
    assert evidence.ops[0].name == "fusion.11"
    assert evidence.ops[0].time_ps == 195.0


def test_products_are_looked_for_on_tpus_only(monkeypatch: pytest.MonkeyPatch, peaks: Any) -> None:
    """With the side of the device's matrix unit."""
    asked: list[int] = []
    monkeypatch.setattr(module, "_padding", lambda *arguments: asked.append(arguments[-1]) or ("`dot`", 0.4))
    evidence = tpu(monkeypatch, [Op("fusion.1", "loop fusion", 100)], None)
    assert [(one.product, one.fill) for one in evidence.ops] == [("`dot`", 0.4)]
    assert asked == [128]
    (elsewhere,) = module._ops(TRACE, ops_of(Op("fusion.1", "loop fusion", 100)), 1.0)
    assert (elsewhere.product, math.isnan(elsewhere.fill), asked) == ("", True, [128])


def test_a_tpu_without_sparse_cores_or_operations(monkeypatch: pytest.MonkeyPatch, peaks: Any) -> None:
    for cores in (None, Cores({"sparse_wait": np.zeros(3)})):
        evidence = tpu(monkeypatch, [], cores)
        assert evidence.sparse == Group(0.0, 0, "", 0.0)
        assert (evidence.ops, evidence.moves, evidence.collectives) == ((), Group(), Group())


def test_hosts_without_accelerators_or_steps_have_no_evidence_of_devices() -> None:
    assert module.device_evidence(TRACE) is None
    assert module.device_evidence(build([DrawnPlane("/device:TPU:0", {})])) is None


def test_evidence_of_one_step_keeps_only_what_holds_for_it() -> None:
    whole = DeviceEvidence(
        "H100", 500.0, 300.0, 7.0, 0.5, 0.6, ("a", "b"), 132, moves=Group(9.0, 1, "x", 9.0)
    )
    one = whole.of_one_step()
    assert (one.device, one.busy_ps, one.compute_ps, one.n_kernels, one.sources) == (
        "H100",
        0.0,
        0.0,
        7.0,
        ("a", "b"),
    )
    assert (one.n_multiprocessors, one.moves) == (0, Group())
    assert math.isnan(one.flops_fraction)


@dataclass(frozen=True)
class Columns:
    """Steps: how long each spends in collectives."""

    collectives: tuple[int, ...]

    def category_ps(self, name: str) -> np.ndarray:
        assert name == "device_collectives"
        return np.array(self.collectives)


def gpu(monkeypatch: pytest.MonkeyPatch, kernels: Kernels, ops: HloOps) -> DeviceEvidence:
    """The evidence of a GPU that computes for 300 ps of a step, and is in collectives for 40 on average."""
    for name, value in (
        ("kernels", kernels),
        ("_moves", Group(1.0, 1, "aten::copy_", 1.0)),
        ("_exchanges", ()),
        ("_runtime_calls", (("cudaFree", 5.0),)),
        ("_kernels_per_step", 7.5),
        ("_multiprocessors", 132),
    ):
        monkeypatch.setattr(module, name, lambda *_, value=value: value)
    return module._of_gpu(TRACE, ops, Columns((10, 30, 80)), 500.0, 300.0)  # type: ignore[arg-type]


def test_the_evidence_of_a_gpu_without_compiled_programs(monkeypatch: pytest.MonkeyPatch, peaks: Any) -> None:
    """Kernels other than collectives take 900 ps of the trace: a time in the step is a third of that."""
    used = np.array([False, True, False, False, False])
    half = ("half_gemm_fp16", *KERNELS.name[1:])
    kernels = replace(KERNELS, name=half, uses_tensor_cores=used)
    evidence = gpu(monkeypatch, kernels, ops_of())
    assert (evidence.busy_ps, evidence.compute_ps, evidence.n_kernels) == (500.0, 300.0, 7.5)
    assert (evidence.n_multiprocessors, evidence.runtime_calls) == (132, (("cudaFree", 5.0),))
    assert [one.time_ps for one in evidence.kernels] == pytest.approx([400 / 3, 100, 50, 50 / 3])
    assert evidence.moves == Group(1.0, 1, "aten::copy_", 1.0)
    assert evidence.remat == Group()
    assert (evidence.ops, evidence.sources) == ((), ("", ""))
    assert math.isnan(evidence.flops_fraction)
    assert evidence.collectives == Group(pytest.approx(40.0), 1, "nccl:all_reduce", pytest.approx(40.0))
    # Of 32 bits without tensor cores: the collective, the other product and what names no operation.
    assert evidence.wide.time_ps == pytest.approx((200 + 150 + 50) / 3)
    assert (evidence.wide.n, evidence.wide.top) == (3, "nccl:all_reduce")
    none = gpu(monkeypatch, replace(kernels, is_eligible=~np.ones(5, np.bool_)), ops_of())
    assert none.wide == Group()


def test_the_evidence_of_a_gpu_with_compiled_programs(monkeypatch: pytest.MonkeyPatch, peaks: Any) -> None:
    """Operations and kernels are scaled by the longer of their times in the trace: 1200 or 900 ps."""
    ops = ops_of(
        Op("fusion.1", "loop fusion", 700, flops=600, hbm=1200),
        Op("copy.2", "copy", 300),
        Op("fusion.3.remat", "loop fusion", 200),
    )
    evidence = gpu(monkeypatch, KERNELS, ops)
    assert (evidence.flops_fraction, evidence.hbm_fraction) == (pytest.approx(0.25), pytest.approx(0.25))
    assert evidence.moves == Group(75.0, 1, "copy.2", 75.0)
    assert evidence.remat == Group(50.0, 1, "fusion.3.remat", 50.0)
    assert [one.time_ps for one in evidence.ops] == [175.0, 75.0, 50.0]
    assert evidence.kernels[0].time_ps == 100.0
    fewer = gpu(monkeypatch, KERNELS, ops_of(Op("copy.2", "copy", 90)))
    assert fewer.moves == Group(pytest.approx(30.0), 1, "copy.2", pytest.approx(30.0))
    empty = gpu(monkeypatch, KERNELS, ops_of(Op("copy.2", "copy", 0, time_ps=5)))
    assert (empty.moves.top, empty.ops) == ("aten::copy_", ())


@dataclass(frozen=True)
class Metrics:
    """Operations of PyTorch."""

    name: tuple[str, ...]
    self_ps: np.ndarray

    @property
    def busy_ps(self) -> int:
        return int(self.self_ps.sum())


@dataclass(frozen=True)
class Stats:
    device: Metrics


@pytest.mark.parametrize(
    ("times", "group"),
    [
        ((500, 300, 200, 0), Group(150.0, 3, "aten::cat", 90.0)),
        ((500, 200, 300, 0), Group(150.0, 3, "aten::copy_", 90.0)),
        ((0, 0, 0, 0), Group()),
    ],
)
def test_operations_that_copy_within_a_gpu(
    monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...], group: Group
) -> None:
    """They take the share of the step's 300 ps that they have in the trace."""
    names = ("aten::mm", "aten::cat", "aten::copy_", "aten::stack")
    metrics = Stats(Metrics(names, np.array(times)))
    monkeypatch.setattr(module, "op_stats", lambda _trace: metrics)
    assert module._moves(TRACE, 300.0) == group
    monkeypatch.setattr(module, "op_stats", lambda _trace: Stats(Metrics(names[:1], np.array(times[:1]))))
    assert module._moves(TRACE, 300.0) == Group()


def test_runtime_calls_while_all_devices_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps. Of five calls the longest three are kept; what no call of CUDA or HIP names, and what
    another device's work covers, does not count.
    """
    names = ("cudaFree", "cudaMalloc", "hipModuleLoad", "cuGraphLaunch", "aten::mm", "cudaEventQuery")
    trace = drawing("main " + "".join(f"[{name}]" for name in names))
    idle, computes = TimeClass.UNKNOWN, TimeClass.DEVICE_COMPUTE_16
    table = [  # start, end, event, class, the thread's class
        (0, 10, 0, idle, TimeClass.HOST_COMPUTE),
        (20, 40, 1, idle, TimeClass.HOST_COMPUTE),
        (30, 35, 2, computes, computes),
        (50, 60, 2, idle, TimeClass.HOST_COMPUTE),
        (60, 66, 3, idle, TimeClass.HOST_COMPUTE),
        (70, 170, 4, idle, TimeClass.HOST_COMPUTE),
        (180, 280, 5, idle, TimeClass.HOST_PYTHON),
        (290, 292, 5, idle, TimeClass.HOST_COMPUTE),
        (300, 312, 0, idle, TimeClass.HOST_COMPUTE),
    ]
    start, end, event, klass, thread = (np.array(column, np.int64) for column in zip(*table, strict=True))
    zeros = np.zeros(len(table), np.int64)
    pieces = Pieces(start, end, klass.astype(np.uint8), zeros, zeros - 1, event, thread.astype(np.uint8))
    monkeypatch.setattr(module, "step_pieces", lambda _trace: ((1, 2), pieces))
    assert module._runtime_calls(trace) == (("cudaFree", 11.0), ("cudaMalloc", 7.5), ("hipModuleLoad", 5.0))
    monkeypatch.setattr(module, "step_pieces", lambda _trace: ((1, 2), None))
    assert module._runtime_calls(trace) == ()
    monkeypatch.setattr(module, "step_pieces", lambda _trace: ((), pieces))
    assert module._runtime_calls(trace) == ()
