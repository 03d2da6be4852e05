"""Kineto files of made-up jobs: three ranks, streams and steps that are unlike one another, and what real
files have of oddities.

thread 100   ├ ProfilerStep#5 ─────────────────────────────┤├ #6 …
             ├ DataLoader ─┤ ├ aten::linear ──┤ ├ Graph ┤
                               ├ aten::addmm ┤
thread 200                          ├ MmBackward0 ─┤
stream 7          ▒▒ (the step before's)   ▒▒▒▒▒▒
stream 13                                         ▒▒▒ (a graph's)
stream 20                                       ▏ (0 µs)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ingest.chrome_files import Event, written

STEPS = (5, 6, 7)
LENGTHS = (1000, 1400, 900)  # µs, of rank 0; other ranks' are longer
HOST, BACKWARD = {"pid": 100, "tid": 100}, {"pid": 100, "tid": 200}
LOADER = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"
DETAILS = {"grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}


@dataclass(frozen=True)
class Job:
    """What a rank's file is like.

    `ids`: what a kernel's External id is: the `operator`'s, its own `correlation`, or `none`. `loader`: share
    of a step that fetching takes. `late`: share of a step at which its kernels begin to run. `graph_op`: the
    operator around a graph's launch, empty for none.
    """

    rank: int = 0
    ids: str = "operator"
    loader: float = 0.2
    late: float = 0.5
    graph_op: str = "CompiledFunction"
    workers: str = "SingleProcess"
    steps: tuple[int, ...] = STEPS


RANKS = (
    Job(0),
    Job(1, "correlation", 0.01, 0.6, "", "MultiProcessing"),
    Job(2, "none", 0.35, 0.7, "CompiledFunctionBackward"),
)


def x(cat: str, name: str, ts: float, dur: float, where: dict[str, int], **args: Any) -> Event:
    """A complete event."""
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **where, "args": args}


def step_length(job: Job, i: int) -> int:
    """Length of the i-th step in µs."""
    return LENGTHS[i % len(LENGTHS)] + 100 * job.rank


def events(job: Job) -> list[Event]:
    """All of a rank's events."""
    found: list[Event] = []
    at = 10_000
    for i, number in enumerate(job.steps):
        length = step_length(job, i)
        found += _step(job, number, at, length)
        at += length
    return found


def _step(job: Job, number: int, at: int, length: int) -> list[Event]:
    first = 100 * number
    ids = {name: first + i for i, name in enumerate(("linear", "addmm", "backward", "mm", "graph"), 1)}
    made = {
        name: first + 1 + i for i, name in enumerate(("addmm", "mm", "graph", "zero"), 1)
    }  # clash with the operators' ids
    run, launch = at + int(job.late * length), at + int(0.4 * length)
    found = [
        x("user_annotation", f"ProfilerStep#{number}", at, length, HOST),
        x("user_annotation", LOADER.format(job.workers), at, int(job.loader * length), HOST),
        x("cpu_op", "aten::linear", launch, 60, HOST, **{"External id": ids["linear"]}),
        x("cpu_op", "aten::addmm", launch + 5, 40, HOST, **{"External id": ids["addmm"]}),
        x("cuda_runtime", "cudaLaunchKernel", launch + 10, 5, HOST, correlation=made["addmm"]),
        x("cuda_runtime", "cudaLaunchKernel", launch + 50, 5, HOST, correlation=made["zero"]),
        x("cpu_op", "MmBackward0", launch + 70, 60, BACKWARD, **{"External id": ids["backward"]}),
        x("cpu_op", "aten::mm", launch + 80, 30, BACKWARD, **{"External id": ids["mm"]}),
        x("cuda_driver", "cuLaunchKernel", launch + 85, 5, BACKWARD, correlation=made["mm"]),
        x("cuda_runtime", "cudaGraphLaunch", launch + 150, 8, HOST, correlation=made["graph"]),
    ]
    if job.graph_op:
        found.append(x("cpu_op", job.graph_op, launch + 140, 30, HOST, **{"External id": ids["graph"]}))
    kernels = [
        ("sm90_gemm", run, 100, 7, "addmm", "addmm", DETAILS),
        ("gemm_half", run + 110, 150, 7, "mm", "mm", DETAILS),
        *(
            (name, run + start, 30, 13, "graph", "graph", {})
            for name, start in (("g1", 200), ("g2", 235), ("g1", 270))
        ),
        ("empty", run + 120, 0, 20, "zero", "linear", DETAILS),
        (
            "stray<float>(int)",
            at + length - 50,
            100,
            20,
            "",
            "",
            DETAILS,
        ),  # of no launch, and into the next step
    ]
    for name, start, duration, stream, launched, operator, details in kernels:
        correlation = made.get(launched, 0)
        told = {"operator": ids.get(operator, 0), "correlation": correlation, "none": 0}[job.ids]
        args = {
            key: number for key, number in (("External id", told), ("correlation", correlation)) if number
        }
        found.append(
            x(
                "kernel",
                name,
                start,
                duration,
                {"pid": 0, "tid": stream},
                device=0,
                stream=stream,
                **args,
                **details,
            )
        )
    found.append(
        x(
            "gpu_memcpy",
            "Memcpy HtoD (Pageable -> Device)",
            run - 20,
            10,
            {"pid": 0, "tid": 7},
            device=0,
            stream=7,
        )
    )
    return found


def kineto_file(folder: Path, job: Job, name: str = "") -> Path:
    """A rank's file."""
    meta = [
        {"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": label}}
        for pid, label in ((100, "CPU"), (0, "GPU 0"))
    ]
    devices = [
        {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    ]
    content = {
        "schemaVersion": 1,
        "deviceProperties": devices,
        "baseTimeNanoseconds": 10**18,
        "traceEvents": meta + events(job),
    }
    folder.mkdir(parents=True, exist_ok=True)
    return written(folder, content, name or f"worker{job.rank}.pt.trace.json")
