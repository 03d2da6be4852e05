"""What XProf 2.24.2 answered for the traces of the corpus, recorded once; and the corpus itself."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.trace.table import Table
from tb_tpuprof.trace.trace import Trace

VERSION = "xprof-2.24.2"
RUNS = {
    "own_jax_cpu": "mlp",
    "own_tf_cpu": "keras_callback remote_capture",
    "xprof_gpu_multi_worker": "GPU-multi-worker",
    "reactant": "2025_02_05_11_07_48 2025_05_15_16_04_13",
    "tracelens_mi300_jax": "jax08_attention jax08_gemm jax_conv_minimal_08",
    "xprof_tpu_inference_2_old": "run",
}
NAMES = [f"{log}__{run}" for log, runs in RUNS.items() for run in runs.split()]
Row = dict[str, Any]
STEP_COLUMNS = {  # parts of a step: the peer's columns
    "device_compute": "deviceComputeTimeMs",
    "device_to_device": "deviceToDeviceTimeMs",
    "device_collectives": "deviceCollectivesTimeMs",
    "host_compute": "hostComputeTimeMs",
    "kernel_launch": "kernelLaunchTimeMs",
    "input": "infeedTimeMs",
    "output": "outfeedTimeMs",
    "compilation": "compileTimeMs",
    "other": "otherTimeMs",
}


def corpus() -> Path:
    """The folder of traces; skips the test where it is not given."""
    folder = os.environ.get("TPUPROF_CORPUS", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TPUPROF_CORPUS does not name the folder of recorded traces")
    return Path(folder)


@cache
def open_session(name: str) -> Session:
    """The run of a recorded answer."""
    log, run = name.split("__")
    return Session(str(corpus() / log / "plugins" / "profile" / run), cache=False)


def answer(name: str, tool: str) -> Any:
    """The peer's recorded JSON."""
    path = corpus().parent / "oracle" / VERSION / name / f"{tool}.json.gz"
    if not path.is_file():
        pytest.skip(f"no recorded answer of {tool} for {name}")
    with gzip.open(path) as file:
        return json.load(file)


def rows(data_table: Any) -> list[Row]:
    """Rows of a Google Charts table as mappings."""
    ids = [column["id"] for column in data_table["cols"]]
    return [
        dict(zip(ids, [(cell or {}).get("v") for cell in row["c"]], strict=True))
        for row in data_table["rows"]
    ]


def without_regions(trace: Trace) -> Trace:
    """The trace as the peer groups it: it ties a thread pool's start marks to a step, but not the work up to
    their stop marks.
    """
    names = trace.metadata["name"].copy()
    marks = ("ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion")
    names[[trace.strings[i] in marks for i in names.tolist()]] = trace.strings.find(
        "ThreadpoolListener::Record"
    )
    metadata = Table(trace.metadata.spec, {**trace.metadata.columns, "name": names})
    return replace(trace, metadata=metadata)
