"""Synthetic XSpaces of TPU and GPU jobs as bytes or files, with planted times and work. Nothing here was
measured on a device.

Each step on each core or stream is laid out in this order, with the planted shares of the step time; what is
left is idle:

    Steps     ├──────────────────── step ────────────────────┤
    XLA Ops   ▪infeed▪ ■■■■ fusion ■■■■ ▫all-reduce▫ ▪outfeed▪  idle

"synthetic" stands in every host's name, so that no number of theirs is taken for a measured one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tb_tpuprof.ingest.xspace.messages import xspace_class

PS_PER_US = 1_000_000
PS_PER_S = 1_000_000_000_000
Stat = int | float | str | bytes
HBM = 1  # memory space in a memory access breakdown
READ, WRITE = 1, 2
_LAUNCH = 12  # the kind of context that ties a program's run to the thread that launched it


@dataclass(frozen=True)
class Parts:
    """Shares of a step: what a device did in it. The rest is idle."""

    compute: float = 0.6
    infeed: float = 0.0
    outfeed: float = 0.0
    collective: float = 0.0

    @property
    def idle(self) -> float:
        """What is left."""
        return 1.0 - self.compute - self.infeed - self.outfeed - self.collective


@dataclass(frozen=True)
class TpuJob:
    """A job on the TensorCores of one host. `flops`, `n_bytes`: planted work of one step on one core.

    `core_delay`: how much longer the infeed of each further core lasts (at the cost of idle time).
    `peak_flops_per_s` and `peak_bytes_per_s` 0: the trace states none. `host_busy`: share of a step in which
    the host's thread runs an operation. `lead_ps`: from a step's start to its first operation. `replicas` and
    devices in each: what the program's HLO says, if not 0. `annotates`: whether the host's thread marks steps
    by number and launches the programs from them. `step_scale`, `core_scale`: how much longer each step
    lasts, and each core computes (at the cost of idle time), over and over. `n_threads`: of the host; the
    i-th further one runs an operation of its own in each step, for 1/(i + 3) of `host_busy`.
    """

    parts: Parts = Parts()
    n_steps: int = 6
    n_cores: int = 2
    cores_per_chip: int = 1
    step_ps: int = 1000 * PS_PER_US
    flops: int = 50_000_000_000
    n_bytes: int = 400_000_000
    device: str = "TPU v5 lite"
    peak_flops_per_s: float = 197e12
    peak_bytes_per_s: float = 819e9
    host_busy: float = 0.25
    core_delay: float = 0.0
    first_step: int = 0
    start_ns: int = 1_000_000
    has_steps: bool = True
    n_sparse_cores: int = 0
    replicas: tuple[int, int] = (0, 0)
    lead_ps: int = PS_PER_US
    annotates: bool = False
    step_scale: tuple[float, ...] = (1.0,)
    core_scale: tuple[float, ...] = (1.0,)
    n_threads: int = 1


@dataclass(frozen=True)
class GpuJob:
    """A job on the GPUs of one host: launches on the host's thread, kernels on a stream.

    `step_scale`, `gpu_scale`, `n_threads`: as of a TpuJob, each kernel and copy of a GPU lasting `gpu_scale`
    times its share. `stream_scale`: a further stream for each, whose one kernel lasts that share of a step,
    from the step's start.
    """

    parts: Parts = Parts()
    n_steps: int = 6
    n_gpus: int = 1
    step_ps: int = 1000 * PS_PER_US
    capability: tuple[int, int] = (9, 0)
    n_multiprocessors: int = 132
    clock_khz: int = 1_830_000
    bandwidth: int = 3_350_000_000_000
    start_ns: int = 1_000_000
    step_scale: tuple[float, ...] = (1.0,)
    gpu_scale: tuple[float, ...] = (1.0,)
    stream_scale: tuple[float, ...] = ()
    n_threads: int = 1


def step_spans(job: TpuJob | GpuJob) -> list[tuple[int, int]]:
    """(start, length) of each step in ps, one behind the other."""
    lengths = [round(job.step_ps * job.step_scale[i % len(job.step_scale)]) for i in range(job.n_steps)]
    return [(sum(lengths[:i]), length) for i, length in enumerate(lengths)]


class PlaneWriter:
    """One plane of an XSpace, with names in place of ids."""

    def __init__(self, space: Any, name: str) -> None:
        self.plane = space.planes.add(id=len(space.planes), name=name.encode())
        self.stat_ids: dict[str, int] = {}
        self.event_ids: dict[str, int] = {}

    def stats(self, owner: Any, values: Mapping[str, Stat]) -> None:
        """Give an event, metadata entry or the plane itself stats."""
        for key, value in values.items():
            if key not in self.stat_ids:
                self.stat_ids[key] = len(self.stat_ids) + 1
                self.plane.stat_metadata.add(
                    key=self.stat_ids[key], value={"id": self.stat_ids[key], "name": key.encode()}
                )
            stat = owner.stats.add(metadata_id=self.stat_ids[key])
            if isinstance(value, str):
                stat.str_value = value.encode()
            elif isinstance(value, bytes):
                stat.bytes_value = value
            elif isinstance(value, float):
                stat.double_value = value
            else:
                stat.int64_value = value

    def metadata(self, name: str, stats: Mapping[str, Stat] | None = None, display_name: str = "") -> int:
        """The id of an event's name; its stats count the first time."""
        if name not in self.event_ids:
            self.event_ids[name] = len(self.event_ids) + 1
            entry = self.plane.event_metadata.add(key=self.event_ids[name])
            entry.value.id, entry.value.name, entry.value.display_name = (
                self.event_ids[name],
                name.encode(),
                display_name.encode(),
            )
            self.stats(entry.value, stats or {})
        return self.event_ids[name]

    def line(self, name: str, line_id: int, start_ns: int) -> Any:
        """A new line."""
        return self.plane.lines.add(id=line_id, name=name.encode(), timestamp_ns=start_ns)

    def event(
        self,
        line: Any,
        name: str,
        start_ps: float,
        duration_ps: float,
        stats: Mapping[str, Stat] | None = None,
    ) -> None:
        """An event; its name's stats must have been given before, if any."""
        event = line.events.add(
            metadata_id=self.metadata(name), offset_ps=round(start_ps), duration_ps=round(duration_ps)
        )
        self.stats(event, stats or {})


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    result = b""
    while value > 0x7F:
        result, value = result + bytes([value & 0x7F | 0x80]), value >> 7
    return result + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def memory_accesses(*accesses: tuple[int, int, int]) -> bytes:
    """A MemoryAccessBreakdown of (operation, memory space, bytes)."""
    return b"".join(
        field(1, field(1, kind) + field(2, space) + field(3, n_bytes)) for kind, space, n_bytes in accesses
    )


def core_details(ordinal: int, chip: int, is_sparse_core: bool = False) -> bytes:
    """A CoreDetails message."""
    return (
        field(2, ordinal)
        + field(4, chip)
        + field(5, chip)
        + field(6, ordinal)
        + (field(7, 1) if is_sparse_core else b"")
    )


def tpu_xspace(job: TpuJob, host: str = "synthetic-tpu") -> bytes:
    """A host with TPUs."""
    space = xspace_class()()
    for core in range(job.n_cores):
        _tensor_core(PlaneWriter(space, f"/device:TPU:{core}"), job, core)
        for sparse in range(job.n_sparse_cores):
            _sparse_core(PlaneWriter(space, f"/device:TPU:{core} SparseCore {sparse}"), job, core)
    _tpu_host(PlaneWriter(space, "/host:CPU"), job)
    if job.replicas[0]:
        assignment = field(1, job.replicas[0]) + field(2, job.replicas[1])
        hlo = field(1, field(1, b"jit_train") + field(15, assignment))
        PlaneWriter(space, "/host:metadata").metadata("jit_train(7)", {"Hlo Proto": hlo})
    space.hostnames.append(host.encode())
    data: bytes = space.SerializeToString()
    return data


def _tensor_core(plane: PlaneWriter, job: TpuJob, core: int) -> None:
    peaks: dict[str, Stat] = {}
    if job.peak_flops_per_s:
        peaks["peak_teraflops_per_second"] = job.peak_flops_per_s / 1e12
    if job.peak_bytes_per_s:
        peaks["peak_hbm_bw_gigabytes_per_second"] = job.peak_bytes_per_s / 1e9
    chip = core // job.cores_per_chip
    plane.stats(
        plane.plane, {"device_type_string": job.device, "core_details": core_details(core, chip), **peaks}
    )
    accesses = memory_accesses(
        (READ, HBM, job.n_bytes - job.n_bytes // 4),
        (WRITE, HBM, job.n_bytes // 4),
        (READ, 3, 7 * job.n_bytes),
    )
    work: dict[str, Stat] = {
        "tf_op": "jit(train)/dot_general:",
        "flops": job.flops,
        "model_flops": job.flops,
        "bytes_accessed": 8 * job.n_bytes,
        "memory_access_breakdown": accesses,
    }
    ops = {
        "infeed": "infeed",
        "fusion": "convolution fusion",
        "all-reduce": "all-reduce",
        "outfeed": "outfeed",
    }
    for symbol, (name, category) in enumerate(ops.items(), 1):
        stats: dict[str, Stat] = {"program_id": 7, "symbol_id": symbol, "hlo_category": category}
        plane.metadata(
            f"%{name}.{symbol} = {name}()",
            {**stats, **(work if name == "fusion" else {})},
            f"{name}.{symbol}",
        )
    lines = [
        plane.line(name, i + 1, job.start_ns) for i, name in enumerate(("Steps", "XLA Modules", "XLA Ops"))
    ]
    infeed = job.parts.infeed + core * job.core_delay
    compute = job.parts.compute * job.core_scale[core % len(job.core_scale)]
    shares = (infeed, compute, job.parts.collective, job.parts.outfeed)
    for step, (start, length) in enumerate(step_spans(job)):
        at = start + job.lead_ps
        if job.has_steps:
            plane.event(lines[0], str(job.first_step + step), start, length)
        for (name, _), symbol, share in zip(ops.items(), range(1, 5), shares, strict=True):
            if share > 0:
                plane.event(lines[2], f"%{name}.{symbol} = {name}()", at, share * length)
                at += round(share * length)
        launched: dict[str, Stat] = {"_ct": _LAUNCH, "_c": 1 + step} if job.annotates else {}
        plane.event(lines[1], "jit_train(7)", start + job.lead_ps, at - start - job.lead_ps, launched)


def _sparse_core(plane: PlaneWriter, job: TpuJob, core: int) -> None:
    """A SparseCore that works while its TensorCore idles: from 80% to 90% of each step."""
    plane.stats(
        plane.plane,
        {
            "device_type_string": job.device,
            "core_details": core_details(core, core // job.cores_per_chip, True),
        },
    )
    lines = [
        plane.line(name, i + 1, job.start_ns)
        for i, name in enumerate(("Sparse Core Steps", "Sparse Core Modules", "Sparse Core Ops"))
    ]
    plane.metadata(
        "%gather.1 = gather()", {"program_id": 9, "symbol_id": 1, "hlo_category": "gather"}, "gather.1"
    )
    for step, (start, length) in enumerate(step_spans(job)):
        for line, name in zip(lines, (str(step), "jit_gather(9)", "%gather.1 = gather()"), strict=True):
            plane.event(line, name, start + 0.8 * length, 0.1 * length)


def _tpu_host(plane: PlaneWriter, job: TpuJob) -> None:
    main = plane.line("main", 1, job.start_ns)
    spans = step_spans(job)
    for step, (start, length) in enumerate(spans):
        if job.annotates:
            marks: dict[str, Stat] = {
                "_r": 1,
                "step_num": job.first_step + step,
                "_pt": _LAUNCH,
                "_p": 1 + step,
            }
            plane.event(main, "train", start, length - PS_PER_US, marks)
        plane.event(main, "infeed_enqueue:InfeedEnqueueTuple", start, job.host_busy * length)
    plane.event(main, "done:NoOp", sum(spans[-1]) - PS_PER_US if spans else 0, PS_PER_US)
    _further_threads(plane, job, job.host_busy)


def _further_threads(plane: PlaneWriter, job: TpuJob | GpuJob, busy: float) -> None:
    """Threads that differ in what they run, and for how long: the i-th for 1/(i + 3) of `busy`."""
    for i in range(job.n_threads - 1):
        line = plane.line(f"worker-{i}", 2 + i, job.start_ns)
        for start, length in step_spans(job):
            plane.event(line, f"work_{i}:Work{i}", start, busy * length / (i + 3))


def gpu_xspace(job: GpuJob, host: str = "synthetic-gpu") -> bytes:
    """A host with GPUs. Infeed is a copy from host to device, outfeed one back, the collective an NCCL
    kernel.
    """
    space = xspace_class()()
    kernels = (
        (
            "MemcpyHToD",
            job.parts.infeed,
            {
                "memcpy_details": "kind_src:pageable kind_dst:device size:1024 dest:0 async:0",
                "tf_op": "MemcpyHToD",
            },
        ),
        (
            "sm90_gemm_f32",
            job.parts.compute,
            {"tf_op": "train/MatMul:MatMul", "kernel_details": "regs:32 shm:0 grid:1,1,1 block:128,1,1"},
        ),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            job.parts.collective,
            {"tf_op": "train/NcclAllReduce:NcclAllReduce"},
        ),
        (
            "MemcpyDToH",
            job.parts.outfeed,
            {
                "memcpy_details": "kind_src:device kind_dst:pageable size:64 dest:0 async:0",
                "tf_op": "MemcpyDToH",
            },
        ),
    )
    for gpu in range(job.n_gpus):
        plane = PlaneWriter(space, f"/device:GPU:{gpu}")
        major, minor = job.capability
        plane.stats(
            plane.plane,
            {
                "device_vendor": "Nvidia",
                "compute_cap_major": major,
                "compute_cap_minor": minor,
                "core_count": job.n_multiprocessors,
                "clock_rate": job.clock_khz,
                "memory_bandwidth": job.bandwidth,
                "memory_size": 80 * 2**30,
            },
        )
        stream = plane.line("Stream #13(Compute)", 13, job.start_ns)
        scale = job.gpu_scale[gpu % len(job.gpu_scale)]
        for step, (at, length) in enumerate(step_spans(job)):
            for i, (name, share, stats) in enumerate(kernels):
                if share > 0:
                    plane.event(
                        stream,
                        name,
                        at,
                        share * scale * length,
                        {"correlation_id": _correlation(step, gpu, i), **stats},
                    )
                    at += round(share * scale * length)
        _further_streams(plane, job)
    _gpu_host(
        PlaneWriter(space, "/host:CPU"), job, [i for i, (_, share, _) in enumerate(kernels) if share > 0]
    )
    space.hostnames.append(host.encode())
    data: bytes = space.SerializeToString()
    return data


def _further_streams(plane: PlaneWriter, job: GpuJob) -> None:
    for i, share in enumerate(job.stream_scale):
        line = plane.line(f"Stream #{14 + i}(Compute)", 14 + i, job.start_ns)
        details: dict[str, Stat] = {
            "tf_op": f"side_{i}:Side",
            "kernel_details": f"regs:{16 + i} shm:0 grid:1,1,1 block:{32 << i},1,1",
        }
        for start, length in step_spans(job):
            plane.event(line, f"side_kernel_{i}", start, share * length, details)


def _correlation(step: int, gpu: int, kernel: int) -> int:
    return 1 + step * 100 + gpu * 10 + kernel


def _gpu_host(plane: PlaneWriter, job: GpuJob, kernels: list[int]) -> None:
    main = plane.line("main", 1, job.start_ns)
    for step, (start, length) in enumerate(step_spans(job)):
        plane.event(main, "train", start, length, {"_r": 1, "step_num": step})
        at = start + PS_PER_US
        for gpu in range(job.n_gpus):
            for kernel in kernels:
                plane.event(
                    main,
                    "cuLaunchKernel",
                    at,
                    PS_PER_US // 10,
                    {"correlation_id": _correlation(step, gpu, kernel)},
                )
                at += PS_PER_US // 5
    _further_threads(plane, job, 0.25)


def tpu_hosts(job: TpuJob, slowdown: tuple[float, ...]) -> dict[str, bytes]:
    """Several hosts of one job, by name; each step of host i takes `slowdown[i]` times the job's, and its
    clock is its own.
    """
    return {
        f"synthetic-tpu-{i}": tpu_xspace(
            replace(job, step_ps=round(job.step_ps * factor)), f"synthetic-tpu-{i}"
        )
        for i, factor in enumerate(slowdown)
    }


def gpu_hosts(job: GpuJob, slowdown: tuple[float, ...]) -> dict[str, bytes]:
    """The same of GPUs."""
    return {
        f"synthetic-gpu-{i}": gpu_xspace(
            replace(job, step_ps=round(job.step_ps * factor)), f"synthetic-gpu-{i}"
        )
        for i, factor in enumerate(slowdown)
    }


def write_run(folder: Path, hosts: Mapping[str, bytes]) -> Path:
    """A run directory with one file per host."""
    folder.mkdir(parents=True, exist_ok=True)
    for host, data in hosts.items():
        (folder / f"{host}.xplane.pb").write_bytes(data)
    return folder
