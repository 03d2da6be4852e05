"""Runs made for the walks, in one log directory with the demo runs, so that a process of tests starts one
TensorBoard for all.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.synthetic import PS_PER_US, Parts, PlaneWriter, TpuJob, tpu_hosts, tpu_xspace, write_run
from tests.synthetic_comm import comm_hosts
from tests.synthetic_dcn import dcn_hosts
from tests.synthetic_devices import kernels_xspace
from tests.synthetic_pod import Pod, pod_hosts
from tests.synthetic_serving import serving
from tests.synthetic_torus import Slice, torus_hosts
from tests.tools.test_memory_viewer import long_program

DATA = Path(__file__).resolve().parent.parent / "data"
CATAPULT = Path(os.environ.get("TPUPROF_CORPUS", "none")) / "catapult"
# The lowest and highest sample of the counter `SM Active (%)` in the run `lines/gpu`.
LOW, HIGH = 20.0, 62.5
# The length of the run `made/long`: times beyond 2^53 ps.
LONG_HOURS = 10 / 3
_ALLOCATOR = {"Device Type": 1, "Device Id": 0, "Total Reserved": 4 * 2**20}


def make_runs(logs: Path) -> None:
    """Write them all below a copy of the demo logs: their names are `folder/session`."""
    _tpus(logs)
    _gpus(logs)
    _pytorch(logs)
    _chrome(logs)
    shutil.copytree(logs / "keras_slow_input", logs / "graphs")
    shutil.copytree(DATA / "graphs" / "words", logs / "graphs" / "train" / "words")
    for path in sorted(CATAPULT.iterdir()) if CATAPULT.is_dir() else ():
        folder = _folder(logs, f"catapult/{path.name.partition('.')[0]}")
        (folder / f"host.trace.json{'.gz' if path.suffix == '.gz' else ''}").symlink_to(path)


def _folder(logs: Path, run: str) -> Path:
    folder, _, session = run.partition("/")
    folder_of_run = logs / folder / "plugins" / "profile" / session
    folder_of_run.mkdir(parents=True, exist_ok=True)
    return folder_of_run


def _tpus(logs: Path) -> None:
    """A TPU, one with two programs, three hosts of which one is damaged, a pod of four, a cube of 64
    chips, and three hosts of a multislice job.
    """
    job = TpuJob(Parts(compute=0.5, infeed=0.1, outfeed=0.1, collective=0.2))
    write_run(_folder(logs, "tpu/synthetic"), {"synthetic-tpu": tpu_xspace(job)})
    programs = write_run(_folder(logs, "programs/synthetic"), {"h": tpu_xspace(TpuJob())})
    (programs / "jit_long(5).hlo_proto.pb").write_bytes(long_program(700))
    (programs / "jit_short(6).hlo_proto.pb").write_bytes(long_program(3))
    hosts = {f"w-{i}": data for i, data in enumerate(tpu_hosts(TpuJob(), (1.0, 1.0)).values())}
    write_run(_folder(logs, "hosts/run"), {**hosts, "w-2": b"\xff" * 99})
    write_run(_folder(logs, "pods/pod"), pod_hosts(Pod(noise=0.02)))
    write_run(_folder(logs, "dcn/run"), dcn_hosts())
    write_run(_folder(logs, "pods/cube"), torus_hosts(Slice(late_host=9, late_from=2)))
    write_run(_folder(logs, "serving/synthetic"), {"synthetic-server": serving().data})
    write_run(_folder(logs, "comm/async"), comm_hosts())


def _gpus(logs: Path) -> None:
    """Kernels on two GPUs, and two steps with counters and launches."""
    hosts = {f"gpu-{i}": kernels_xspace(host=f"gpu-{i}") for i in range(2)}
    write_run(_folder(logs, "gpu/synthetic"), hosts)
    write_run(_folder(logs, "lines/gpu"), {"host": _counters_xspace()})


def _pytorch(logs: Path) -> None:
    """The memory of a captured job on the CPU, and of a drawn one with a GPU."""
    captured = DATA / "kineto" / "memory.pt.trace.json.gz"
    shutil.copyfile(captured, _folder(logs, "pytorch/cpu") / "host.pt.trace.json.gz")
    (_folder(logs, "pytorch/gpu") / "host.pt.trace.json.gz").write_bytes(_allocator_trace())


def _chrome(logs: Path) -> None:
    """An instant at the very end of a trace (at a time that float32 rounds up), and a trace of many hours."""
    place = {"pid": 1, "ts": 0}
    edges = [
        {"ph": "X", "name": "before", "dur": 10, "tid": 1, **place},
        {"ph": "i", "name": "last", "s": "t", "tid": 2, **place, "ts": 72_697},
    ]
    long = [
        {"ph": "X", "name": f"work {i % 7}", "dur": 900_000, "tid": 1, **place, "ts": i * 10**6}
        for i in range(round(LONG_HOURS * 3600))
    ]
    for name, events in {"edges": edges, "long": long}.items():
        path = _folder(logs, f"made/{name}") / "host.trace.json"
        path.write_text(json.dumps({"traceEvents": events}), "utf-8")


def _counters_xspace() -> bytes:
    """Two steps of 1 ms with a kernel each; a counter that is LOW in the first and HIGH in the second,
    another below zero.
    """
    space = xspace_class()()
    gpu, host = PlaneWriter(space, "/device:GPU:0"), PlaneWriter(space, "/host:CPU")
    stream, samples = gpu.line("Stream #7(Compute)", 7, 1000), gpu.line("_counters_", 8, 1000)
    main = host.line("python", 1, 1000)
    for step in range(2):
        start = step * 1000 * PS_PER_US
        host.event(main, "train", start, 1000 * PS_PER_US, {"_r": 1, "step_num": step})
        host.event(
            main, "cudaLaunchKernel", start + 100 * PS_PER_US, 50 * PS_PER_US, {"correlation_id": step + 1}
        )
        gpu.event(stream, "gemm", start + 400 * PS_PER_US, 500 * PS_PER_US, {"correlation_id": step + 1})
        gpu.event(samples, "SM Active (%)", start, 0, {"sm": (LOW, HIGH)[step]})
        gpu.event(samples, "Balance", start, 0, {"value": (-4, 3)[step]})
    data: bytes = space.SerializeToString()
    return data


def _allocator_trace() -> bytes:
    """A GPU's memory that fills and empties, as PyTorch's profiler writes it."""
    where = {"pid": 1, "tid": 1}
    events: list[dict[str, object]] = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 999, **where, "args": {}}
    ]
    for i in range(20):
        level = 2**20 * (1 + i % 2)
        args = {**_ALLOCATOR, "Bytes": 2**20 if i % 2 else -(2**20), "Total Allocated": level, "Addr": 1}
        events.append({"ph": "i", "s": "t", "name": "[memory]", "ts": 10 * i, **where, "args": args})
    devices = [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 8 * 2**20}]
    return gzip.compress(json.dumps({"deviceProperties": devices, "traceEvents": events}).encode())
