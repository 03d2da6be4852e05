"""Work of real TPU runs against plain counts over the raw files, made without this project's decoder."""

from __future__ import annotations

import collections
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_stats import view as hlo_stats
from tb_tpuprof.tools.op_profile import view as op_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.roofline_model import view as roofline_model
from tests.plain_protobuf import plain_fields
from tests.tools.test_hlo_stats import cells

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set"),
]
HALF = re.compile(r"([\w-]+)-(start|done)((?:\.\d+)*)")


def corpus(path: str) -> Path:
    return Path(os.environ["TPUPROF_CORPUS"]) / path


def of(data: bytes, number: int) -> list[Any]:
    return [value for key, value in plain_fields(data) if key == number]


def hbm_of_v6e(path: Path) -> tuple[int, int]:
    """HBM bytes and FLOPs of the TensorCores' operations in an XSpace, an asynchronous copy counted once."""
    total = flops = 0
    for plane in of(path.read_bytes(), 1):
        if not re.fullmatch(rb"/device:TPU:\d+", of(plane, 2)[0]):
            continue
        stat_names = {of(entry, 1)[0]: of(of(entry, 2)[0], 2)[0].decode() for entry in of(plane, 5)}
        work: dict[int, tuple[str, int, int]] = {}
        for entry in of(plane, 4):
            metadata = of(entry, 2)[0]
            stats: dict[str, Any] = {}
            for stat in of(metadata, 5):
                values = dict(plain_fields(stat))
                key = stat_names[values.pop(1)]
                stats[key] = next(iter(values.values()))
            accesses = [dict(plain_fields(one)) for one in of(stats.get("memory_access_breakdown", b""), 1)]
            hbm = (
                sum(int(one.get(3, 0)) for one in accesses if one.get(2) == 1)
                if accesses
                else int(stats.get("bytes_accessed", 0))
            )
            name = (of(metadata, 4) or of(metadata, 2))[0].decode()
            if {"program_id", "symbol_id"} <= set(stats):
                work[of(entry, 1)[0]] = (name, hbm, int(stats.get("flops", 0)))
        of_start: dict[str, int] = collections.defaultdict(int)
        for name, hbm, _ in work.values():
            if (half := HALF.fullmatch(name.lstrip("%"))) and half[2] == "start":
                of_start[half[1] + half[3]] = hbm
        for line in of(plane, 3):
            if of(line, 2) != [b"XLA Ops"]:
                continue
            for event in of(line, 4):
                key = of(event, 1)[0]
                if key not in work:
                    continue
                name, hbm, n = work[key]
                half = HALF.fullmatch(name.lstrip("%"))
                total += (
                    0 if half and half[2] == "start" else hbm or (of_start[half[1] + half[3]] if half else 0)
                )
                flops += n
    return total, flops


def test_hbm_bytes_of_a_run_with_host_offload() -> None:
    run = corpus("xprof_tpu_inference_2_old/plugins/profile/run")
    total, flops = hbm_of_v6e(next(run.glob("*.xplane.pb")))
    session = Session(str(run), cache=False)
    programs = cells(roofline_model.TOOL.run(session, None, {}), "programs")
    assert (programs["hbm_bytes"][0], programs["flops"][0]) == (total, flops)
    assert cells(op_profile.TOOL.run(session, None, {}), "nodes")["hbm_bytes"][0] == total
    fastest = np.nanmax(np.array(cells(hlo_stats.TOOL.run(session, None, {}))["hbm_bytes_per_s"], np.float64))
    assert fastest < 1.05 * 1638e9  # 3.15 EB/s when a copy's bytes were divided by the 2 ns of its start


def test_an_exported_trace_states_model_flops_alone() -> None:
    run = corpus("tpu_inference_480b/plugins/profile/2026_01_11_21_26_41")
    events = json.loads(gzip.decompress(next(run.glob("*.trace.json.gz")).read_bytes()))["traceEvents"]
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    ops = [e for e in events if e.get("ph") == "X" and lines.get((e["pid"], e.get("tid"))) == "XLA Ops"]
    flops = sum(int(e["args"]["model_flops"]) for e in ops)
    n_bytes = sum(int(e["args"]["bytes_accessed"]) for e in ops if not re.search(r"-start[.\d]*$", e["name"]))
    assert not any("flops" in e["args"] for e in ops)
    session = Session(str(run), cache=False)
    programs = cells(roofline_model.TOOL.run(session, None, {}), "programs")
    tree = cells(op_profile.TOOL.run(session, None, {}), "nodes")
    assert (programs["flops"][0], programs["hbm_bytes"][0]) == (flops, n_bytes)
    assert (tree["flops"][0], tree["hbm_bytes"][0]) == (flops, n_bytes)
    busy = op_profile.TOOL.run(session, None, {}).scalars
    assert busy["flop_rate_flops_per_s"].value == pytest.approx(
        flops / (int(busy["busy_ps"].value or 0) / 1e12)
    )
    assert "FLOP/s per core" in overview_page.TOOL.run(session, None, {}).scalars["flops_fraction"].note
