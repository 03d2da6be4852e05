"""Names of cores, GPUs and ranks, as all pages that compare them write them."""

from __future__ import annotations

from tb_tpuprof.analysis.pod.join import Pod


def core_name(pod: Pod, core: int) -> str:
    """`rank 3` if cores are a job's processes, else `host TPU:0`; only the host if it is the core."""
    if pod.has_ranks:
        return f"rank {pod.cores[core].rank}"
    host, name = pod.hosts[int(pod.host_of[core])], pod.cores[core].name
    return host if name == host else f"{host} {name}"


def unit_of(pod: Pod) -> str:
    """What is compared: a rank, a TPU's core, a GPU or a host."""
    return "rank" if pod.has_ranks else {"TPU": "core", "GPU": "GPU"}.get(pod.kind, "host")
