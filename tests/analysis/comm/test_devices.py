"""When TensorCores and GPUs move data and compute: three unlike devices, each interval drawn by hand."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import Activity, CommOp, Traffic, activity
from tb_tpuprof.analysis.comm.gpu import op_named
from tb_tpuprof.analysis.comm.host import CommHost, Devices, comm_between, comm_devices, comm_host
from tb_tpuprof.analysis.comm.marks import exposed_marks
from tb_tpuprof.analysis.comm.picture import MOST_CUTS, MOST_RUNS, picture
from tb_tpuprof.analysis.comm.tpu import Role, _role
from tb_tpuprof.analysis.cpu.runs import cpu_runs
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.session import Session
from tb_tpuprof.trace.trace import Trace
from tests.analysis.comm.test_corpus import divided
from tests.builders import PS, DrawnPlane, Stats, build, drawing, event

GATHER = "%all-gather-start.3 = f32[8] all-gather-start(%p)"
GATHERED = "%all-gather-done.4 = f32[8] all-gather-done(f32[8] %all-gather-start.3)"
OFFLOAD = "%copy-start.1 = (f32[2]{0:S(5)}, f32[2], u32[]) copy-start(%p)"
OFFLOADED = "%copy-done.1 = f32[2]{0:S(5)} copy-done((f32[2]) %copy-start.1)"
SEND, SENT = "%send.7 = (f32[2]) send(%p)", "%send-done.9 = token[] send-done((f32[2]) %send.7)"
FUSION, REDUCE, LOOP = (
    "%fusion.1 = f32[8] fusion(%p)",
    "%all-reduce.5 = f32[8] all-reduce(%p)",
    "%while.2 = x",
)
CATEGORIES = {
    GATHER: "all-gather",
    GATHERED: "all-gather",
    OFFLOAD: "copy-start",
    OFFLOADED: "copy-done",
    SEND: "send",
    SENT: "send-done",
    FUSION: "loop fusion",
    REDUCE: "all-reduce",
    LOOP: "while",
}
METADATA: dict[str, Stats] = {
    name: {"program_id": 7, "hlo_category": category} for name, category in CATEGORIES.items()
}


DATA = Path(__file__).resolve().parents[2] / "data" / "corpus"


def open_trace_of(data: bytes) -> Trace:
    """The trace of a file's bytes."""
    folder = Path(tempfile.mkdtemp(prefix="comm_"))
    (folder / "h.xplane.pb").write_bytes(data)
    return Session(str(folder), cache=False).trace("h")


def core(number: int, *ops: tuple[str, int, int], steps: tuple[int, ...] = (0, 100, 200)) -> DrawnPlane:
    """A TensorCore: (operation, start, end) in µs, and steps of 100 µs."""
    made = [event(name, start, end - start) for name, start, end in ops]
    made.sort(key=lambda one: (one.start_ps, -one.duration_ps))
    marks = [event(str(i), start, 100) for i, start in enumerate(steps)]
    return DrawnPlane(f"/device:TPU:{number}", {"Steps": marks, "XLA Ops": made}, metadata_stats=METADATA)


def tpus() -> Trace:
    """Core 0: an asynchronous gather that a fusion covers in part, in a loop; core 1: an all-reduce and a
    send; core 2: a copy to the host without anything else, and one whose start was not captured.
    """
    return build(
        [
            core(0, (LOOP, 0, 60), (GATHER, 0, 1), (FUSION, 10, 30), (GATHERED, 40, 50), (FUSION, 110, 130)),
            core(1, (REDUCE, 10, 25), (SEND, 100, 101), (FUSION, 101, 180), (SENT, 180, 190)),
            core(2, (OFFLOADED, 0, 5), (FUSION, 5, 20), (OFFLOAD, 110, 110), (OFFLOADED, 150, 170)),
        ]
    )


def runs(device: Activity, ops: tuple[CommOp, ...]) -> list[tuple[str, float, float]]:
    return [
        (ops[code].name, start / PS, end / PS)
        for code, start, end in zip(
            device.op.tolist(), device.start_ps.tolist(), device.end_ps.tolist(), strict=True
        )
    ]


def computing(device: Activity) -> list[tuple[float, float]]:
    pairs = zip(device.compute_start_ps.tolist(), device.compute_end_ps.tolist(), strict=True)
    return [(start / PS, end / PS) for start, end in pairs]


def test_tensor_cores_move_data_from_start_to_done() -> None:
    devices = comm_devices(tpus())
    assert devices.kind == "TPU"
    first, second, third = devices.activities
    assert runs(first, devices.ops) == [("all-gather.3", 0, 50)]
    assert computing(first) == [(10, 30), (110, 130)]  # not the loop around, which only runs others
    assert runs(second, devices.ops) == [("all-reduce.5", 10, 25), ("send.7", 100, 190)]
    assert computing(second) == [(101, 180)]
    assert runs(third, devices.ops) == [("copy.1", 0, 5), ("copy.1", 110, 170)]
    by_name = {op.name: op for op in devices.ops}
    assert by_name["all-gather.3"].transfers == (GATHERED[1:], GATHER[1:])
    assert {name: (op.kind, op.traffic, op.is_async) for name, op in by_name.items()} == {
        "all-gather.3": ("all-gather", Traffic.DEVICES, True),
        "all-reduce.5": ("all-reduce", Traffic.DEVICES, False),
        "send.7": ("send", Traffic.DEVICES, True),
        "copy.1": ("copy", Traffic.HOST, True),
    }


def sums(host: CommHost) -> dict[str, list[list[float]]]:
    """By device and step, in µs."""
    return {
        name: (getattr(host, name).sum(axis=2) / PS).tolist()
        for name in ("hidden_ps", "partly_ps", "exposed_ps")
    }


def test_tensor_cores_hide_what_runs_beside_compute() -> None:
    host = comm_host(tpus())
    assert sums(host) == {
        "hidden_ps": [[20, 0, 0], [0, 79, 0], [0, 0, 0]],
        "partly_ps": [[20, 0, 0], [0, 79, 0], [0, 0, 0]],
        "exposed_ps": [[30, 0, 0], [15, 11, 0], [5, 60, 0]],
    }
    assert (host.compute_ps / PS).tolist() == [[20, 20, 0], [0, 79, 0], [15, 0, 0]]
    assert (host.total_ps / PS).tolist() == [[100, 100, 100]] * 3
    by_traffic = (host.exposed_ps / PS).sum(axis=(0, 1)).tolist()
    assert by_traffic == [30 + 15 + 11, 65, 0]
    names = [op.name for op in host.ops]
    assert {name: host.n_runs[i].tolist() for i, name in enumerate(names)} == {
        "all-gather.3": [0, 1, 0],  # 40%
        "all-reduce.5": [0, 0, 1],
        "send.7": [0, 1, 0],  # 79 of 90
        "copy.1": [0, 0, 2],
    }


def test_marks_are_the_exposed_stretches() -> None:
    trace = tpus()
    marks = [exposed_marks(trace, plane) for plane in planes(trace).tensor_cores]
    drawn = [
        list(zip(mark.names, (mark.start_ps / PS).tolist(), (mark.end_ps / PS).tolist(), strict=True))
        for mark in marks
    ]
    assert drawn == [
        [("all-gather.3", 0, 10), ("all-gather.3", 30, 50)],
        [("all-reduce.5", 10, 25), ("send.7", 100, 101), ("send.7", 180, 190)],
        [("copy.1", 0, 5), ("copy.1", 110, 170)],
    ]


def test_the_asynchronous_line_counts_where_the_operations_line_has_no_halves() -> None:
    made = core(0, (FUSION, 10, 30))
    made.lines["Async XLA Ops"] = [event(OFFLOAD, 5, 40), event(GATHER, 20, 60)]
    both = core(1, (GATHER, 0, 1), (GATHERED, 50, 60))
    both.lines["Async XLA Ops"] = [event(GATHER, 0, 70), event(OFFLOAD, 20, 5)]
    devices = comm_devices(build([made, both]))
    assert [runs(device, devices.ops) for device in devices.activities] == [
        [("copy.1", 5, 45), ("all-gather.3", 20, 80)],
        [("all-gather.3", 0, 60), ("copy.1", 20, 25)],
    ]


@pytest.mark.parametrize(
    ("category", "name", "role"),
    [
        ("loop fusion", "", Role.COMPUTES),
        ("convolution fusion", "", Role.COMPUTES),
        ("while", "", Role.NEITHER),
        ("infeed", "infeed.1", Role.NEITHER),
        ("host recv-done", "recv-done.1", Role.NEITHER),
        ("async-start", "call-start.3", Role.NEITHER),
        ("async-done", "call-done.3", Role.NEITHER),
        ("all-reduce fusion", "all-reduce-scatter_fusion.1", Role.WHOLE),
        ("collective-permute-start", "collective-permute-start", Role.STARTS),
        ("async-done", "slice-done.4.clone", Role.ENDS),
        ("recv", "recv.2", Role.STARTS),
        ("", "all-to-all.3", Role.WHOLE),
        ("", "fusion.3", Role.COMPUTES),
        ("", "copy-done.7", Role.ENDS),
    ],
)
def test_roles(category: str, name: str, role: Role) -> None:
    assert _role(category, name) == role


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"
GPU_TEXT = """
    main     [train 0            ][train 1             ]
    /device:GPU:0:
    7           <gemm      >         <gemm    >
    20                 <nccl      >         <nccl >
    13              <MemcpyH2D>
    /device:GPU:1:
    7           <gemm                >
    20                     <nccl>
    /device:GPU:2:
    7           <gemm>
    20                       <MemcpyP2P>
"""


def gpus(with_collectives: bool = True) -> Trace:
    text = (
        GPU_TEXT if with_collectives else GPU_TEXT.replace("nccl", "gemm").replace("MemcpyP2P", "MemcpyD2H")
    )
    names = ("gemm", "nccl") if with_collectives else ("gemm",)
    stats: dict[str, list[Stats]] = {}
    number = 0
    for name in (*names, "MemcpyH2D", *(("MemcpyP2P",) if with_collectives else ("MemcpyD2H",))):
        stats[name] = [{"correlation_id": (number := number + 1)} for _ in range(text.count(f"<{name}"))]
    return drawing(text, stats)


def test_copies_and_collectives_of_gpus() -> None:
    assert op_named(NCCL) == CommOp(NCCL, "all-reduce", Traffic.DEVICES)
    assert op_named("ncclDevKernel_Generic(x)").kind == "collective"
    traffic = {
        "MemcpyH2D": Traffic.HOST,
        "Memcpy DtoH (Device -> Pinned)": Traffic.HOST,
        "MemcpyD2D": Traffic.LOCAL,
        "Memcpy PtoP (Device -> Device)": Traffic.DEVICES,
        "MemcpyP2P": Traffic.DEVICES,
    }
    assert {name: op_named(name).traffic for name in traffic} == traffic


def test_a_gpu_that_only_copies_does_not_communicate() -> None:
    assert comm_between(gpus(with_collectives=False)) is None
    between = comm_between(gpus())
    assert between is not None
    assert between.exposed_ps.any()


def test_gpus_hide_what_runs_beside_any_kernel() -> None:
    trace = gpus()
    host = comm_host(trace)
    assert [core.name for core in host.cores] == ["GPU:0", "GPU:1", "GPU:2"]
    busy = (host.compute_ps + host.exposed_ps.sum(axis=2)).astype(np.int64)
    assert (busy <= host.total_ps).all()
    for plane, core_row in zip(planes(trace).gpus, range(3), strict=True):
        marks = exposed_marks(trace, plane)
        whole = int((marks.end_ps - marks.start_ps).sum())
        if core_row < 2:
            assert whole == int(host.exposed_ps[core_row].sum())
        else:
            assert whole == 0  # no collective: the timeline has no such line


def crowded(n_kernels: int, n_copies: int) -> Devices:
    """A GPU with a kernel of 2 ps in every 10 ps, and copies that last the whole step."""
    total = 10 * n_kernels
    starts = np.arange(n_kernels, dtype=np.int64) * 10
    runs = np.zeros(n_copies, np.int64), np.full(n_copies, total), np.zeros(n_copies, np.int64)
    device = activity((*runs, np.arange(n_copies, dtype=np.int64)), (starts, starts + 2))
    whole = np.zeros((1, 1), np.int64), np.full((1, 1), total)
    return Devices("GPU", (), (device,), (op_named("MemcpyH2D"),), *whole)


def test_pictures_are_bounded() -> None:
    assert MOST_CUTS == 10_000
    few = picture(crowded(1_000, 10), 0, 0)  # 10,000 cuts
    assert few.kind.count("compute") == 1_000
    assert few.kind.count("partly") == 10_000
    assert few.n_left_out == 0
    one_more = picture(crowded(1_000, 11), 0, 0)
    assert one_more.kind.count("compute") == 1  # gaps of 8 ps are not drawn any more
    many = picture(crowded(3_000, MOST_RUNS + 5), 0, 0)
    assert many.n_left_out == 5
    assert len(many.kind) < 5_000


def test_lanes_of_a_picture() -> None:
    """Asynchronous operations are in the first free lane; others of a TensorCore beside its
    compute.
    """
    devices = comm_devices(tpus())
    names = {code: op.name for code, op in enumerate(devices.ops)}
    boxes = picture(devices, 1, 0)
    drawn = zip(boxes.lane.tolist(), boxes.kind, boxes.op.tolist(), strict=True)
    assert {(lane, kind, names.get(op, "")) for lane, kind, op in drawn} == {
        (0, "exposed", "all-reduce.5"),
        (-1, "total", ""),
    }
    assert (boxes.start_ps / PS).tolist() == [10, 10]
    later = picture(devices, 1, 1)
    assert set(zip(later.lane.tolist(), later.kind, strict=True)) == {
        (0, "compute"),
        (1, "exposed"),
        (1, "partly"),
        (-1, "total"),
    }
    overlapping = comm_devices(
        build(
            [
                core(
                    0,
                    (GATHER, 0, 1),
                    (OFFLOAD, 2, 3),
                    (GATHERED, 40, 50),
                    (OFFLOADED, 60, 70),
                    (FUSION, 5, 9),
                )
            ]
        )
    )
    lanes = picture(overlapping, 0, 0)
    of_op = {
        overlapping.ops[op].name: lane
        for lane, op in zip(lanes.lane.tolist(), lanes.op.tolist(), strict=True)
        if op >= 0
    }
    assert of_op == {"all-gather.3": 1, "copy.1": 2}


def test_four_devices_of_a_cpu_sum_over_one_another() -> None:
    """A recorded JAX job: its `psum` is an all-reduce in the program, under any name. The runs of
    operations, whose ends have tests of their own, divided in plain loops.
    """
    data = gzip.decompress((DATA / "jax_four_devices.xplane.pb.gz").read_bytes())
    trace = open_trace_of(data)
    host = comm_host(trace)
    assert [core.name for core in host.cores] == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
    assert [(op.name, op.kind, op.is_async) for op in host.ops] == [("psum_invariant.7", "all-reduce", False)]
    runs = cpu_runs(trace)
    names = [trace.strings.get(int(text)) for text in runs.text.tolist()]
    steps = host.pod.steps
    for device in range(4):
        spans = [
            (name, (start, end))
            for name, start, end, of in zip(
                names, runs.start_ps.tolist(), runs.end_ps.tolist(), runs.device.tolist(), strict=True
            )
            if of == device
        ]
        moving = [span for name, span in spans if "psum" in name]
        computing = [span for name, span in spans if "psum" not in name]
        for step, (start, length) in enumerate(
            zip(steps.start_ps.tolist(), steps.duration_ps.tolist(), strict=True)
        ):
            hidden, exposed = divided(moving, computing, (start, start + length))
            assert host.hidden_ps[device, step].tolist() == [hidden, 0, 0]
            assert host.exposed_ps[device, step].tolist() == [exposed, 0, 0]
            assert exposed > 0


def test_a_cpu_without_collectives_has_no_devices_to_show() -> None:
    data = gzip.decompress((DATA / "jax_matmul.xplane.pb.gz").read_bytes())
    host = comm_host(open_trace_of(data))
    assert (host.cores, host.ops, host.exposed_ps.shape[0]) == ((), (), 0)
    assert comm_between(open_trace_of(data)) is None
