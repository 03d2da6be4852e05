"""PyTorch jobs of several ranks, drawn: what each rank's file says of its collectives is chosen by the test.

rank_file(2, [[Comm("alltoall_base", 10, 40, …), 30], …])     steps → collectives and, as plain numbers, µs of
computing
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
STEP_US = 1000
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"


@dataclass(frozen=True)
class Comm:
    """A collective's kernel, from `begin_us` of its step on. `on_kernel`, `on_launch`: arguments of the
    kernel and of the `record_param_comms` around its launch; `around`: name and arguments of the range within
    that, none where empty.
    """

    begin_us: float
    length_us: float
    kernel: str = SEND_RECV
    on_kernel: dict[str, Any] = field(default_factory=dict)
    on_launch: dict[str, Any] | None = None
    around: tuple[str, dict[str, Any]] = ("", {})


def stated(
    name: str,
    n_in: int,
    n_out: int,
    dtype: str = "BFloat16",
    group: str = "0",
    ranks: str = "[0, 1, 2]",
    **more: Any,
) -> Event:
    """Arguments as PyTorch 2.3 and later write them."""
    size = more.pop("size", ranks.count(",") + 1)
    return {
        "Collective name": name,
        "In msg nelems": n_in,
        "Out msg nelems": n_out,
        "dtype": dtype,
        "Group size": size,
        "Process Group Name": group,
        "Process Group Description": more.pop("about", "undefined"),
        "Process Group Ranks": ranks,
        **more,
    }


def rank_file(
    rank: int, steps: list[list[Comm | tuple[float, float]]], info: Event | None = None, start_us: float = 0
) -> Event:
    """The file of one rank, on GPU `rank` of its host. Tuples are kernels that compute: (begin, length) in
    µs.
    """
    host, device = {"pid": 100 + rank, "tid": 7}, {"pid": rank, "tid": 20}
    events: list[Event] = [
        {"ph": "M", "name": "process_labels", "pid": rank, "args": {"labels": f"GPU {rank}"}}
    ]
    number = 10

    def x(cat: str, name: str, ts: float, dur: float, where: Event, **args: Any) -> None:
        events.append(
            {"ph": "X", "cat": cat, "name": name, "ts": start_us + ts, "dur": dur, **where, "args": args}
        )

    for i, step in enumerate(steps):
        at = i * STEP_US
        x("user_annotation", f"ProfilerStep#{i + 5}", at, STEP_US, host)
        x("cuda_runtime", "cudaLaunchKernel", at + 1, 1, host, correlation=number)
        x("kernel", "first", at + 2, 1, device, correlation=number)
        number += 1
        for place, one in enumerate(step):
            when, number = at + 4 + 8 * place, number + 1
            if isinstance(one, tuple):
                x("cuda_runtime", "cudaLaunchKernel", when, 1, host, correlation=number)
                x("kernel", "gemm", at + one[0], one[1], device, correlation=number)
                continue
            if one.on_launch is not None:
                x("cpu_op", "record_param_comms", when, 6, host, **{"External id": number, **one.on_launch})
            if one.around[0]:
                x("user_annotation", one.around[0], when + 1, 4, host, **one.around[1])
            x("cuda_runtime", "cudaLaunchKernel", when + 2, 1, host, correlation=number)
            x(
                "kernel",
                one.kernel,
                at + one.begin_us,
                one.length_us,
                device,
                correlation=number,
                **one.on_kernel,
            )
        x("cuda_runtime", "cudaLaunchKernel", at + STEP_US - 4, 1, host, correlation=number + 1)
        x("kernel", "last", at + STEP_US - 2, 1, device, correlation=number + 1)
        number += 2
    job = {"backend": "nccl", "rank": rank, "world_size": 3, **(info or {})}
    devices = [{"id": rank, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80 * 10**9}]
    return {"schemaVersion": 1, "deviceProperties": devices, "distributedInfo": job, "traceEvents": events}
