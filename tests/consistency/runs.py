"""Every run that pages are compared on: the demo's, those of the corpus that TPUPROF_CORPUS names, and
generated ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.ingest.storage.runs import find_runs, open_run
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.payload import Payload
from tests import synthetic_unlike as unlike
from tests.golden_files import demo_runs
from tests.ingest.chrome_files import written
from tests.kineto_jobs import RANKS, kineto_file
from tests.synthetic import GpuJob, Parts, TpuJob, gpu_xspace, tpu_hosts, tpu_xspace, write_run
from tests.synthetic_comm import comm_hosts
from tests.synthetic_dcn import dcn_hosts
from tests.synthetic_devices import MemoryJob, kernels_xspace, memory_xspace
from tests.synthetic_pod import Pod, pod_hosts
from tests.synthetic_serving import Server, serving
from tests.synthetic_torus import Slice, torus_hosts
from tests.tools.pod_viewer.test_ranks import job as torch_groups

PYTORCH = ("ranks", "groups", "unequal")
GPU_CAPTURES = Path(__file__).parents[1] / "data" / "gpu"
_TRACES = (".json", ".json.gz", ".pb", ".pb.gz", ".riegeli")
_MIXED = Parts(compute=0.6, infeed=0.2, outfeed=0.03, collective=0.05)
_TPU = TpuJob(parts=_MIXED, n_steps=7)
_GPU = GpuJob(parts=Parts(compute=0.5, infeed=0.1, outfeed=0.02, collective=0.2), n_steps=8)


def _gpus(parts: tuple[Parts, ...], gap_s: float = 0.0) -> dict[str, bytes]:
    """Hosts whose steps go into different things; the next begins `gap_s` later."""
    jobs = [
        replace(_GPU, parts=part, n_gpus=i + 1, start_ns=10**15 + round(i * gap_s * 1e9))
        for i, part in enumerate(parts)
    ]
    return {f"synthetic-gpu-{i}": gpu_xspace(job, f"synthetic-gpu-{i}") for i, job in enumerate(jobs)}


def generated() -> dict[str, Mapping[str, bytes]]:
    """Files of generated runs by host. Hosts, cores and parts of steps are unlike where there are several."""
    three = (Parts(0.5, 0.1, 0.02, 0.2), Parts(0.3, 0.4), Parts(0.9))
    return {
        "tpu_three_hosts": tpu_hosts(_TPU, (1.0, 1.3, 1.1)),
        "tpu_compute": {
            "synthetic-tpu": tpu_xspace(replace(_TPU, parts=Parts(compute=0.985), n_cores=3, device="TPU v4"))
        },
        "tpu_skew": {"synthetic-tpu": tpu_xspace(replace(_TPU, n_cores=4, core_delay=0.02))},
        "tpu_sparse": {
            "synthetic-tpu": tpu_xspace(
                replace(_TPU, n_cores=4, cores_per_chip=2, n_sparse_cores=1, parts=Parts(0.4, 0.1))
            )
        },
        "tpu_no_steps": {"synthetic-tpu": tpu_xspace(replace(_TPU, has_steps=False, n_cores=3))},
        "tpu_unknown": {
            "synthetic-tpu": tpu_xspace(
                replace(_TPU, device="TPU of tomorrow", peak_flops_per_s=0, peak_bytes_per_s=0)
            )
        },
        "pod": pod_hosts(Pod()),
        "slice": torus_hosts(Slice((2, 2, 2), late_host=1)),
        "dcn": dcn_hosts(),
        "tpu_async": {"h0": comm_hosts(has_hlo=False)["h0"]},
        "tpu_async_hosts": comm_hosts(has_hlo=False),
        "tpu_async_no_steps": comm_hosts(has_steps=False, has_hlo=False),
        "gpu_three_hosts": _gpus(three),
        "gpu_apart": _gpus(three, 86_400.0 * 148),
        "gpu_many_steps": {"synthetic-gpu": gpu_xspace(replace(_GPU, n_gpus=3))},
        "kernels": {
            f"synthetic-gpu-{i}": kernels_xspace(n_gpus=i + 1, host=f"synthetic-gpu-{i}") for i in range(3)
        },
        "memory": {"synthetic-memory": memory_xspace(MemoryJob(n_memories=3))},
        "serving": {"server": serving(Server(n_requests=300)).data},
        "unlike_tpus": unlike.tpu_run(),
        "unlike_gpus": unlike.gpu_run(),
        "unlike_kernels": unlike.kernels_run(),
        "unlike_memories": unlike.memory_run(),
        "unlike_pod": pod_hosts(unlike.POD),
        "unlike_clocks": unlike.clocks_run(),
        "unlike_servers": unlike.servers_run(),
        "evaluated": unlike.evaluated_run(),
        "gpu_and_cpu": unlike.gpu_and_cpu_run(),
    }


def pytorch_run(name: str, folder: Path) -> Path:
    """The folder of a drawn job of PyTorch: `ranks`, whose files differ in what they state, `groups`, which
    communicate in two process groups, or `unequal`, ranks with unlike numbers of steps.
    """
    folder.mkdir(parents=True)
    for rank in RANKS if name == "ranks" else ():
        kineto_file(folder, rank)
    files = {"groups": torch_groups, "unequal": unlike.unequal_ranks}
    for rank_name, content in (files[name]() if name in files else {}).items():
        written(folder, content, f"{rank_name}.pt.trace.json")
    return folder


def corpus_runs() -> dict[str, str]:
    """Runs of the corpus by name, with the folder or file of each; files that belong to no run are runs by
    themselves.
    """
    root = os.environ.get("TPUPROF_CORPUS", "")
    if not root:
        return {}
    found, used = {}, set()
    for run in find_runs(root):
        if "+" not in run.path and run.state in ("ok", "hlo"):
            found[run.name] = run.path
        if "+" not in run.path:
            used |= {os.path.realpath(file.path) for file in run.files}
    for file in sorted(Path(root).rglob("*")):
        is_new = (
            file.name.endswith(_TRACES) and os.path.realpath(file) not in used and "plugins" not in file.parts
        )
        if is_new and file.stat().st_size:
            found[str(file.relative_to(root))] = str(file)
    return dict(sorted(found.items()))


@cache
def payloads(path: str) -> dict[str, Payload]:
    """What each tool that has anything to show of a run shows by default. Raises ProfilerError where the run
    cannot be read.
    """
    session = Session(path, cache=False)
    if open_run(path).state != "hlo":
        for host in session.hosts:
            session.trace(host)
    result = {}
    for tool in all_tools():
        try:
            result[tool.name] = tool.run(session, None, {})
        except ProfilerError:
            continue
    return result


def captured() -> dict[str, str]:
    """Jobs that ran on a GPU, which this project captured."""
    return {file.name.partition(".")[0]: str(file) for file in sorted(GPU_CAPTURES.glob("*.gz"))}


def all_runs(folder: Path) -> dict[str, str]:
    """Every run by name with its path; generated ones are written below the folder."""
    made = {f"generated/{name}": str(write_run(folder / name, files)) for name, files in generated().items()}
    made |= {f"pytorch/{name}": str(pytorch_run(name, folder / f"pytorch_{name}")) for name in PYTORCH}
    demo = {f"demo/{name}": str(path) for name, path in demo_runs().items()}
    gpu = {f"captured/{name}": path for name, path in captured().items()}
    return {**demo, **gpu, **made, **{f"corpus/{name}": path for name, path in corpus_runs().items()}}
