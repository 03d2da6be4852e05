"""The memory viewer beside the peer, run live on the corpus: peaks, timelines, live buffers and spans of
every program and space.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.environments import peer_if_any
from tb_tpuprof.analysis.hlo.memory import SpaceMemory, scoped_vmem, space_memory
from tb_tpuprof.ingest.storage.programs import programs_in, read_program
from tb_tpuprof.trace.hlo import HloModule
from tests.conformance.peer import RUNS, corpus

pytestmark = pytest.mark.slow
SMALL_BYTES = 16 * 1024  # below this the peer sums buffers up
# Permanent buffers at the peak: the peer lists them for main memory only. Ours are listed in every space.
LISTED_SPACE = "0"
# Without padding: the peer takes off the padding of temporaries alone. Ours takes off that of parameters and
# results too.


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    python = peer_if_any()
    if not python:
        pytest.skip(
            "*** NOT RUN: no interpreter has xprof; `make conformance` makes one, or name one in "
            "TPUPROF_PEER_PYTHON. ***"
        )
    folder = tmp_path_factory.mktemp("peer")
    for log, runs in RUNS.items():
        for run in runs.split():
            (folder / "runs" / f"{log}__{run}").mkdir(parents=True)
            for file in (corpus() / log / "plugins" / "profile" / run).glob("*.xplane.pb"):
                shutil.copyfile(
                    file, folder / "runs" / f"{log}__{run}" / file.name
                )  # the peer writes beside it
    script = Path(__file__).with_name("live_memory_viewer.py")
    subprocess.run(
        [python, str(script), str(folder / "runs"), str(folder / "answers.json")],
        check=True,
        capture_output=True,
        timeout=600,
    )
    found = json.loads((folder / "answers.json").read_text())
    found["folder"] = str(folder / "runs")
    return dict(found)


def spaces(answers: dict[str, Any]) -> Iterator[tuple[HloModule, SpaceMemory, dict[str, Any], str]]:
    """Every program and space of which the peer says something: module, ours, theirs, space."""
    for run, programs in answers.items():
        if run == "folder":
            continue
        by_title = {program.title: program for program in programs_in(f"{answers['folder']}/{run}")}
        for title, answer in programs.items():
            if title not in by_title:
                continue
            module = read_program(by_title[title])
            for space, theirs in answer.items():
                ours = space_memory(module, int(space))
                assert ours is not None
                yield module, ours, theirs or {}, space


def size(mib: float | None) -> int:
    return round((mib or 0) * 2**20)


def test_peaks_sums_and_timelines_are_the_peer_s(answers: dict[str, Any]) -> None:
    n = 0
    for module, ours, theirs, _ in spaces(answers):
        name = module.info.name
        assert ours.peak_bytes == size(theirs.get("peakHeapMib")), name
        assert ours.peak_unpadded_bytes + ours.permanent_padding_bytes == size(
            theirs.get("peakUnpaddedHeapMib")
        ), name
        assert ours.allocated_bytes == size(theirs.get("totalBufferAllocationMib")), name
        assert ours.permanent_bytes == size(theirs.get("indefiniteBufferAllocationMib")), name
        if theirs.get("heapSizes"):
            assert (ours.heap.held + ours.permanent_bytes).tolist() == [
                size(value) for value in theirs["heapSizes"]
            ], name
            unpadded = (ours.heap.held_unpadded + ours.permanent_bytes).tolist()
            assert unpadded == [size(value) for value in theirs["unpaddedHeapSizes"]], name
            assert ours.heap.peak == theirs.get("peakHeapSizePosition", 0), name
            n += 1
    assert n > 10


def test_live_buffers_and_spans_are_the_peer_s(answers: dict[str, Any]) -> None:
    n = 0
    for module, ours, theirs, space in spaces(answers):
        assert module.buffers
        ids = module.buffers.logical_buffers["id"].tolist()
        row = {key: i for i, key in enumerate(ids)}
        for key, span in theirs.get("logicalBufferSpans", {}).items():
            mine = (int(ours.heap.start[row[int(key)]]), int(ours.heap.end[row[int(key)]]))
            assert mine == (span.get("start", 0), span.get("limit", 0)), (module.info.name, key)
            n += 1
        if space != LISTED_SPACE:
            continue
        listed = [item.get("logicalBufferId", 0) for item in theirs.get("maxHeap", [])]
        is_large = ours.size[ours.live] >= SMALL_BYTES
        assert [ids[i] for i in ours.live[is_large].tolist()] == [key for key in listed if key >= 0], (
            module.info.name
        )
        small = sum(
            size(item["logicalBufferSizeMib"])
            for item in theirs.get("maxHeap", [])
            if item.get("logicalBufferId", 0) < 0
        )
        assert int(ours.size[ours.live[~is_large]].sum()) == small, module.info.name
    assert n > 100


def test_scoped_vmem_is_the_peer_s(answers: dict[str, Any]) -> None:
    seen = 0
    for module, _, theirs, space in spaces(answers):
        if space == "1":
            used, row = scoped_vmem(module)
            assert used == size(theirs.get("maxScopedVmemAllocationMib"))
            assert (module.name(row) if row >= 0 else "") == theirs.get("maxScopedVmemInstructionName", "")
            seen += used > 0
    assert seen == 3
