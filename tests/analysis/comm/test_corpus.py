"""Exposed communication of recorded runs beside a plain count over their files: protobuf and JSON, interval
by interval.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tarfile
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.host import CommHost, comm_host
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set"),
]
Span = tuple[int, int]
_HALF = re.compile(r"%([a-z\-]+)-(start|done)")
KINETO = (
    "hta/trace_diff/control/control.json.gz",
    "hta/trace_diff/test/test.json.gz",
    "hta/nccl_parser_config/nccl_data.json.gz",
    "hta/trace_filter/sampled_rank-0.json.gz",
    "hta/trace_filter/sampled_rank-1.json.gz",
    "tracelens_torch/traces/mi300/resnet_act_checkpoint.json.gz",
    "kineto_samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
)


def corpus(path: str) -> Path:
    return Path(os.environ["TPUPROF_CORPUS"]) / path


def merged(spans: list[Span]) -> list[Span]:
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(result[-1][1], end)
        elif end > start:
            result.append((start, end))
    return result


def both_ps(a: list[Span], b: list[Span]) -> int:
    """Time in which one of `a` and one of `b` runs; both merged."""
    total = i = j = 0
    while i < len(a) and j < len(b):
        total += max(min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]), 0)
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def divided(moving: list[Span], computing: list[Span], window: Span) -> tuple[int, int]:
    """Hidden and exposed time in a window."""
    cut = [[(max(a, window[0]), min(b, window[1])) for a, b in spans] for spans in (moving, computing)]
    comm, compute = (merged([span for span in spans if span[1] > span[0]]) for spans in cut)
    hidden = both_ps(comm, compute)
    return hidden, sum(end - start for start, end in comm) - hidden


def found(host: CommHost) -> list[tuple[int, int]]:
    """Hidden and exposed time of each device and step, device by device."""
    hidden, exposed = host.hidden_ps.sum(axis=2), host.exposed_ps.sum(axis=2)
    return list(zip(hidden.reshape(-1).tolist(), exposed.reshape(-1).tolist(), strict=True))


def opened(folder: Path, name: str, data: bytes) -> CommHost:
    (folder / name).write_bytes(data)
    session = Session(str(folder), cache=False)
    return session.get(comm_host, session.hosts[0])


def of_json(data: dict[str, Any], steps: tuple[str, ...]) -> list[tuple[int, int]]:
    """Hidden and exposed time of each GPU and step by the JSON alone."""
    moving, computing = defaultdict(list), defaultdict(list)
    marks: dict[str, Span] = {}
    for one in data["traceEvents"]:
        if one.get("ph") != "X":
            continue
        start = Decimal(one["ts"]) * 10**6
        span = int(start), int(start + Decimal(one["dur"]) * 10**6)
        category, name = str(one.get("cat", "")).lower(), str(one["name"])
        if name.startswith("ProfilerStep") and category in ("user_annotation", "cpu_op", "operator"):
            marks[name] = span
        elif category in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            is_moving = name.lower().startswith("memcpy") or re.match(
                r"(void )?(nccl|rccl|msccl)", name, re.I
            )
            (moving if is_moving else computing)[one["args"].get("device", one["pid"])].append(span)
    devices = sorted({*moving, *computing})
    return [divided(moving[gpu], computing[gpu], marks[step]) for gpu in devices for step in steps]


@pytest.mark.parametrize("path", KINETO)
def test_kineto_files(path: str, tmp_path: Path) -> None:
    data = gzip.decompress(corpus(path).read_bytes())
    host = opened(tmp_path, "rank.pt.trace.json", data)
    steps = tuple(name.replace(" ", "#") for name in host.pod.steps.name)
    plain = of_json(json.loads(data, parse_float=Decimal), steps)
    np.testing.assert_allclose(found(host), plain, rtol=1e-6, atol=1)
    assert sum(exposed for _, exposed in plain) > 0
    parts = host.compute_ps + host.exposed_ps.sum(axis=2)
    assert (parts <= host.total_ps).all()


def test_eight_ranks(tmp_path: Path) -> None:
    with tarfile.open(corpus("param/dlrm_kineto.tar.gz")) as archive:
        files = {
            Path(member.name).name: stream.read()
            for member in archive.getmembers()
            if member.isfile() and (stream := archive.extractfile(member))
        }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    session = Session(str(tmp_path), cache=False)
    hosts = session.map(comm_host, session.hosts)
    assert len(hosts) == 8
    for host in hosts:
        name = next(file for file in files if file.startswith(host.pod.host))
        plain = of_json(
            json.loads(files[name], parse_float=Decimal),
            tuple(step.replace(" ", "#") for step in host.pod.steps.name),
        )
        np.testing.assert_allclose(found(host), plain, rtol=1e-6, atol=1)


def test_the_cores_of_a_tpu(tmp_path: Path) -> None:
    """Starts and dones paired by the operand that a done's HLO text names, on the device's own clock."""
    data = corpus("xprof_tpu_inference_2_old/plugins/profile/run/tpu_inference_2_old.xplane.pb").read_bytes()
    space = xspace_class()()
    space.ParseFromString(data)
    host = opened(tmp_path, "tpu.xplane.pb", data)
    plain, windows = [], []
    cores = [plane for plane in space.planes if re.fullmatch(rb"/device:TPU:\d", plane.name)]
    for plane in cores:
        keys = {entry.key: entry.value.name for entry in plane.stat_metadata}
        texts = {entry.key: entry.value.name.decode() for entry in plane.event_metadata}
        line = next(line for line in plane.lines if line.name == b"XLA Ops")
        moving, computing, open_starts = [], [], defaultdict(list)
        for event in sorted(line.events, key=lambda one: (one.offset_ps, "-done" in texts[one.metadata_id])):
            times = {keys[stat.metadata_id]: stat.int64_value or stat.uint64_value for stat in event.stats}
            start = times[b"device_offset_ps"]
            end = start + times[b"device_duration_ps"]
            text = texts[event.metadata_id]
            windows.append((start, end))
            half = _HALF.match(text)
            if half and half[2] == "start":
                open_starts[text.partition(" = ")[0]].append(start)
            elif half:
                begun = open_starts[re.findall(r"%[\w\-.]+", text)[-1]]
                moving.append((begun.pop(0) if begun else start, end))
            else:
                (moving if text.startswith("%all-reduce") else computing).append((start, end))
        plain.append((moving, computing))
    window = min(start for start, _ in windows), max(end for _, end in windows)
    assert host.total_ps.tolist() == [[window[1] - window[0]]] * 4
    expected = [divided(moving, computing, window) for moving, computing in plain]
    assert found(host) == expected
    assert all(exposed > 76e12 for _, exposed in expected)
