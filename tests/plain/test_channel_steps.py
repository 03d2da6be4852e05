"""Channels of a pod in each step: from the files by protobuf and a plain loop, on hosts whose steps are
unlike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.payload_columns import table
from tests.pod_drawing import N_STEPS, drawn_pod
from tests.synthetic import write_run
from tests.tools.pod_viewer.test_exchange import BLOCK_BYTES, permutes

US = 1_000_000
STEP_PS = 1000 * US
OPS = {
    "fusion.9": "fusion",
    "collective-permute-start.3": "collective-permute-start",
    "collective-permute-done.4": "collective-permute-done",
}
PAIRS = [(0, 1), (1, 2), (2, 0), (3, 1)]
SKIPPED = (1, 2)  # core and step in which the core receives nothing
Runs = dict[tuple[int, int, str], list[tuple[int, int]]]


def names_of(plane: Any) -> dict[int, str]:
    """Names of operations by the id of their metadata."""
    return {
        entry.key: entry.value.name.decode().partition(" ")[0].removeprefix("%")
        for entry in plane.event_metadata
    }


def unlike_steps(space_bytes: bytes, first_core: int) -> bytes:
    """Starts are later and transfers longer by amounts that differ from step to step and from core to core;
    in one step one core receives nothing.
    """
    space = xspace_class().FromString(space_bytes)
    planes = [plane for plane in space.planes if plane.name.startswith(b"/device:TPU:")]
    for core, plane in enumerate(planes, first_core):
        names = names_of(plane)
        line = next(line for line in plane.lines if line.name == b"XLA Ops")
        for event in line.events:
            step = event.offset_ps // STEP_PS
            if "start" in names[event.metadata_id]:
                event.offset_ps += (7 * step * (core + 1) % 40) * US
            elif "done" in names[event.metadata_id]:
                event.duration_ps += (11 * step + 3 * core) * US
        kept = [
            event
            for event in line.events
            if "done" not in names[event.metadata_id] or (core, event.offset_ps // STEP_PS) != SKIPPED
        ]
        del line.events[:]
        line.events.extend(kept)
    return bytes(space.SerializeToString())


@pytest.fixture(scope="module")
def hosts() -> dict[str, bytes]:
    """Two hosts of two cores. A core starts its permutation and computes until the block has arrived."""
    cores = [
        f"collective-permute-start.3:{10 * core}-{10 * core + 1} fusion.9:60-{300 + 20 * core} "
        f"collective-permute-done.4:{300 + 20 * core}-{400 + 20 * core}"
        for core in range(4)
    ]
    program = permutes([{1: source, 2: target} for source, target in PAIRS])
    drawn = drawn_pod([cores[:2], cores[2:]], OPS, program)
    return {host: unlike_steps(data, 2 * i) for i, (host, data) in enumerate(drawn.items())}


def runs_of(hosts: dict[str, bytes]) -> Runs:
    """Begins and ends in ps since the step's start, by core, step and operation."""
    result: Runs = {}
    core = 0
    for data in hosts.values():
        for plane in xspace_class().FromString(data).planes:
            if not plane.name.startswith(b"/device:TPU:"):
                continue
            names = names_of(plane)
            for line in plane.lines:
                for event in line.events if line.name == b"XLA Ops" else ():
                    name = names[event.metadata_id]
                    step, begin = divmod(event.offset_ps, STEP_PS)
                    result.setdefault((core, step, name), []).append((begin, begin + event.duration_ps))
            core += 1
    return result


def in_step(runs: Runs, source: int, target: int, step: int) -> tuple[float | None, float | None, int]:
    """Latency, send delay and number of a channel's transfers."""
    sent = runs.get((source, step, "collective-permute-start.3"), [])
    ready = runs.get((target, step, "collective-permute-start.3"), [])
    received = runs.get((target, step, "collective-permute-done.4"), [])
    if not sent or not ready:
        return None, None, len(sent)
    delay = max(0, sent[0][0] - ready[0][0])
    latency = max(0, received[0][1] - max(sent[0][0], ready[0][0])) if received else None
    return latency, delay, len(sent)


def test_channels_in_each_step_are_those_of_a_plain_loop(hosts: dict[str, bytes], tmp_path: Path) -> None:
    session, runs = Session(str(write_run(tmp_path / "run", hosts)), cache=False), runs_of(hosts)
    means = table(TOOL.run(session, None, {}), "channels")
    seen = set()
    for step in range(N_STEPS):
        answer = TOOL.run(session, None, {"step": step}, question="channels")
        rows = table(answer, "channels")
        assert answer.tables["channels"].note == f"in step {step}"
        assert (rows["source"], rows["target"]) == (means["source"], means["target"])
        for row, (source, target) in enumerate(zip(means["source_row"], means["target_row"], strict=True)):
            latency, delay, n = in_step(runs, int(str(source)[0]), int(str(target)[0]), step)
            shown = [rows[name][row] for name in ("latency_ps", "send_delay_ps", "n_per_step")]
            assert [None if cell != cell else cell for cell in shown] == [latency, delay, n]
            rate = BLOCK_BYTES / latency * 1e12 if latency else None
            cell = rows["bytes_per_s"][row]
            assert (None if cell != cell else cell) == (pytest.approx(rate) if rate else None)
            seen.add((row, latency))
    assert len(seen) > 3 * len(PAIRS)  # each channel has at least three unlike steps
    assert any(latency is None for _, latency in seen)


def test_a_channel_step_by_step_is_that_of_the_steps(hosts: dict[str, bytes], tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", hosts)), cache=False)
    by_step = [
        table(TOOL.run(session, None, {"step": step}, question="channels"), "channels")
        for step in range(N_STEPS)
    ]
    for row in range(len(PAIRS)):
        steps = table(TOOL.run(session, None, {"channel": row}, question="channel"), "channel_steps")
        for name in ("latency_ps", "send_delay_ps"):
            assert str(steps[name]) == str([one[name][row] for one in by_step])


def test_without_a_step_the_channels_are_the_page_s(hosts: dict[str, bytes], tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", hosts)), cache=False)
    answer = TOOL.run(session, None, {}, question="channels")
    assert str(table(answer, "channels")) == str(table(TOOL.run(session, None, {}), "channels"))
    assert TOOL.run(session, None, {"step": N_STEPS - 1}, question="channels").tables["channels"].n_rows == 4
    with pytest.raises(BadParameter, match="step cannot be '6'"):
        TOOL.run(session, None, {"step": N_STEPS}, question="channels")
