"""NCCL's and RCCL's kernels of every Kineto file of the corpus: number, time and bytes per kind and process
group, counted in plain Python.

The count shares nothing with the project: it parses the JSON with `json`, looks for what encloses a launch
event by event, and has its own tables of names and sizes.
"""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.pod.comms import comms
from tb_tpuprof.ingest.opening import open_trace
from tests.ingest.chrome_files import written

CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none"))
KINDS = {
    "allreduce": "all-reduce",
    "all_reduce": "all-reduce",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
    "_all_gather_base": "all-gather",
}
WIDTHS = {
    "BFloat16": 2,
    "signed char": 1,
    "double": 8,
    "bool": 1,
    "long": 8,
    "Float": 4,
    "Long": 8,
    "float": 4,
    "int": 4,
    "long int": 8,
    "unsigned char": 1,
    "c10::BFloat16": 2,
    "c10::Half": 2,
}
KERNELS = ("kernel", "Kernel")
LAUNCHES = ("cuda_runtime", "cuda_driver", "Runtime", "hip_runtime")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CORPUS.is_dir(), reason="TPUPROF_CORPUS is not set")]
Count = dict[tuple[str, str], tuple[int, float, int]]


def files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(CORPUS.rglob("*.json*")):
        if "catapult" not in path.parts and "xprof_demo_legacy" not in path.parts:
            data = path.read_bytes()
            yield path.name, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    with tarfile.open(CORPUS / "param" / "dlrm_kineto.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                yield Path(member.name).name, file.read()


def counted(events: list[dict[str, Any]], listed: dict[str, list[int]]) -> Count:
    """(kernels, µs, bytes put in) by (kind, ranks of the process group)."""
    spans = [
        e
        for e in events
        if e.get("ph") == "X" and (e["name"] == "record_param_comms" or e["name"].startswith("nccl:"))
    ]
    launches = {
        e["args"]["correlation"]: e
        for e in events
        if e.get("cat") in LAUNCHES and "correlation" in e.get("args", {})
    }
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0])
    for kernel in events:
        if kernel.get("cat") not in KERNELS or not kernel["name"].startswith("nccl"):
            continue
        launch = launches.get(kernel["args"].get("correlation"))
        around = [
            e
            for e in spans
            if launch
            and (e["pid"], e["tid"]) == (launch["pid"], launch["tid"])
            and e["ts"] <= launch["ts"] <= e["ts"] + e["dur"]
        ]
        around.sort(key=lambda e: e["dur"])
        stated = next((e["args"] for e in (kernel, *around) if "Collective name" in e["args"]), None)
        inner = next((e for e in around if e["name"].startswith("nccl:")), None)
        ranks, size, kind = "", 0, "collective"
        if stated:
            kind, size = KINDS[stated["Collective name"]], stated["In msg nelems"] * WIDTHS[stated["dtype"]]
            ranks = stated["Process Group Ranks"].strip("[]").replace(" ", "")
            assert listed[stated["Process Group Name"]] == [int(rank) for rank in ranks.split(",")]
        elif inner:
            kind = KINDS[inner["name"].partition(":")[2]]
            for shape, dtype in zip(inner["args"]["Input Dims"], inner["args"]["Input type"], strict=True):
                n = 1
                for length in shape:
                    n *= length
                size += n * WIDTHS[dtype]
        elif "Generic" not in kernel["name"]:
            kind = {"AllReduce": "all-reduce", "Broadcast": "broadcast", "SendRecv": "send-receive"}[
                kernel["name"].split("_")[1]
            ]
        row = found[kind, ranks]
        row[0], row[1], row[2] = row[0] + 1, row[1] + kernel["dur"], row[2] + size
    return {key: (int(n), time, int(size)) for key, (n, time, size) in found.items()}


def ours(path: Path) -> Count:
    trace = open_trace(str(path))
    known = comms(trace)
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0, 0])
    time = trace.events["duration_ps"][known.rows] / 1e6
    for i, (kind, ranks) in enumerate(zip(known.kind.tolist(), known.ranks.tolist(), strict=True)):
        row = found[trace.strings.get(kind), trace.strings.get(ranks)]
        row[0], row[1], row[2] = row[0] + 1, row[1] + float(time[i]), row[2] + max(int(known.in_bytes[i]), 0)
    return {key: (int(n), t, int(size)) for key, (n, t, size) in found.items()}


def test_kernels_time_and_bytes_are_those_of_a_plain_count(tmp_path: Path) -> None:
    n_files = n_kernels = 0
    for name, data in files():
        try:
            content = json.loads(data)
        except ValueError:
            continue
        events = content.get("traceEvents") if isinstance(content, dict) else None
        if not events or not any(e.get("cat") in KERNELS and e["name"].startswith("nccl") for e in events):
            continue
        info = content.get("distributedInfo") or {}
        expected = counted(events, {group["pg_name"]: group["ranks"] for group in info.get("pg_config", [])})
        found = ours(written(tmp_path, data, "h.trace.json"))
        assert set(found) == set(expected), name
        for key, (n, time, size) in expected.items():
            assert found[key] == (n, pytest.approx(time, rel=1e-9), size), (name, key)
        n_files, n_kernels = n_files + 1, n_kernels + sum(n for n, _, _ in expected.values())
    assert n_files >= 14
    print(n_files, n_kernels)
    assert n_kernels >= 240
