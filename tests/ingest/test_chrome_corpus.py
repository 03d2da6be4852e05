"""Every Chrome trace of the corpus: opens with the counts and durations that Python's own parser finds, or
says what it is not.
"""

from __future__ import annotations

import os
import tarfile
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import Event, loaded, phases, plain_durations, ps, rows
from tests.truth.plain_kineto import MTIA_OTHERS, is_kernel

CORPUS = Path(os.environ.get("TPUPROF_CORPUS", "none"))
FOLDERS = (
    "catapult",
    "hta",
    "kineto_samples",
    "tracelens_torch",
    "tensorboard_review",
    "tpu_inference_480b",
    "reactant",
)
UNSUPPORTED = {"google_cloud_trace.json": "without the traceEvents"}
# Ends without a begin, as the files have them.
UNMATCHED = {"async_begin_end.json": 1, "nestable_async.json": 1, "nestable_async_annotation.json": 1}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CORPUS.is_dir(), reason="TPUPROF_CORPUS is not set")]


def files() -> list[Path]:
    if not CORPUS.is_dir():
        return []
    found = [
        path
        for folder in FOLDERS
        for path in sorted((CORPUS / folder).rglob("*"))
        if path.name.endswith((".json", ".json.gz", "_gz.gz"))
    ]
    assert len(found) > 50
    return found


class Opened:
    """A file of the corpus, read by both sides, by each once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def trace(self) -> Trace:
        return open_trace(str(self.path))

    @cached_property
    def loaded(self) -> tuple[list[Event], dict[str, Any]]:
        return loaded(self.path)

    @cached_property
    def rows(self) -> list[tuple[str, str, str, int, int]]:
        return rows(self.trace)


@pytest.fixture(scope="module", params=files(), ids=lambda path: str(path.relative_to(CORPUS)))
def file(request: pytest.FixtureRequest) -> Opened:
    return Opened(Path(request.param))


def stripped(name: str) -> str:
    return "ProfilerStep" if name.startswith("ProfilerStep#") else name


def test_a_file_of_the_corpus(file: Opened) -> None:
    name = file.path.name
    if name in UNSUPPORTED:
        with pytest.raises(TraceFormatError, match=UNSUPPORTED[name]):
            open_trace(str(file.path))
        return
    trace = file.trace
    events, others = file.loaded
    n = phases(events)
    assert trace.info.n_damaged == UNMATCHED.get(name, 0), trace.info.damage
    # Slices, begins (of threads, async, objects), and all marks are events.
    unmatched_deletions = (
        trace.n_events - sum(n[phase] for phase in "XBbSnTpiIRPcNO") - len(others.get("samples", ()))
    )
    assert 0 <= unmatched_deletions <= n["D"]
    samples = sum(
        isinstance(value, int) or not isinstance(value, str)
        for e in events
        if e.get("ph") == "C"
        for value in e["args"].values()
    )
    assert len(trace.samples) - memory_samples(events) == samples
    ours: dict[str, list[int]] = defaultdict(list)
    on_stack = (trace.kind_of_line[trace.event_line] == schema.STACK).tolist()
    for (_, _, name, _, duration), stacked in zip(file.rows, on_stack, strict=True):
        if stacked and duration:
            ours[stripped(name)].append(duration)
    theirs: dict[str, list[int]] = defaultdict(list)
    for name, durations in plain_durations(events).items():
        theirs[stripped(name)] += [duration for duration in durations if duration]
    assert {name: sorted(values) for name, values in ours.items()} == {
        name: sorted(values) for name, values in theirs.items() if values
    }


def memory_samples(events: list[Event]) -> int:
    marks = [event["args"] for event in events if event.get("ph") == "i" and event.get("name") == "[memory]"]
    return sum((name in args) for args in marks for name in ("Total Allocated", "Total Reserved"))


def kineto(path: Path) -> bool:
    return any(part in ("kineto_samples", "hta", "tracelens_torch") for part in path.parts)


def test_kernels_have_the_sums_and_details_of_the_file(file: Opened) -> None:
    if not kineto(file.path):
        pytest.skip("no trace of PyTorch")
    trace = file.trace
    events, _ = file.loaded
    kernels = [event for event in events if is_kernel(event)]
    theirs: Counter[str] = Counter()
    for event in kernels:
        theirs[event["name"]] += ps(event["dur"])
    on_device = np.array(
        [trace.plane_names[plane].startswith("/device:") for plane in trace.lines["plane"]], np.bool_
    )
    derived = np.array(
        [name.startswith(("Annotations", "Synchronization")) for name in trace.line_names], np.bool_
    )
    ours: Counter[str] = Counter()
    keep = (on_device & ~derived)[trace.event_line].tolist() if trace.n_events else []
    for (_, _, name, _, duration), kept in zip(file.rows, keep, strict=True):
        if kept and not name.startswith(("Memcpy", "Memset")) and name not in MTIA_OTHERS:
            ours[name] += duration
    assert ours == theirs
    texts = trace.event_stats.texts("kernel_details")
    assert len(texts.owner) == len(kernels)
    assert sum(bool(trace.strings[text]) for text in texts.value.tolist()) == sum(
        bool({"grid", "block", "registers per thread", "shared memory"} & set(event["args"]))
        for event in kernels
    )


def test_ranks_of_an_archive_open_as_hosts_of_one_run(tmp_path: Path) -> None:
    from tb_tpuprof.ingest.storage.runs import find_runs

    archive = CORPUS / "param" / "dlrm_kineto.tar.gz"
    folder = tmp_path / "dlrm_kineto"
    folder.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile():
                (folder / Path(member.name).name).write_bytes(tar.extractfile(member).read())
    run = find_runs(str(tmp_path))[0]
    assert run.name == "dlrm_kineto"
    assert [file.host for file in run.files] == [f"worker{i}_step_12" for i in range(8)]
    assert run.captured_at.startswith("2023-09-07")
    for file in run.files:
        trace = open_trace(file.path)
        assert trace.info.n_damaged == 0
        events, _ = loaded(Path(file.path))
        assert trace.n_events == sum(phases(events)[phase] for phase in "XBi")
