from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable, TraceFormatError
from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_viewer.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.payload_columns import table
from tests.synthetic import TpuJob, tpu_xspace, write_run

A, F = 0, 1


def long_program(n: int) -> bytes:
    """A chain: each of n values is allocated, and released after the next one's allocation. Sizes are 1000,
    2000 … in turn.
    """
    size = [1000 * (i % 7 + 1) for i in range(n)]
    instructions = [
        instruction(
            i + 1, "add", array(size[i] // 4), [i] if i else [], f7={2: f"jit(f)/layer_{i}", 3: "a.py", 4: i}
        )
        for i in range(n)
    ]
    buffers = [{1: i, 2: size[i], 3: {4: i + 1}, 4: 0} for i in range(n)]
    events: list[Any] = []
    for i in range(n):
        events.append({1: A, 2: i, 4: f"add.{i + 1}"})
        if i:
            events.append({1: F, 2: i - 1, 4: f"add.{i + 1}"})
    allocation = {1: 0, 2: 14_000, 9: [{1: i, 2: 7000 * (i % 2), 3: size[i]} for i in range(n)]}
    return proto(
        [computation(1, "main", instructions, n)],
        buffers={1: buffers, 3: [allocation], 4: [{1: events, 3: 0}]},
    )


def padded_program() -> bytes:
    """Three values whose buffers are 4, 2 and 1 times as large as their arrays of 250, 500 and 1000
    numbers.
    """
    n_numbers = (250, 500, 1000)
    instructions = [instruction(i + 1, "add", array(n), [i] if i else []) for i, n in enumerate(n_numbers)]
    buffers = [{1: i, 2: 4000, 3: {4: i + 1}, 4: 0} for i in range(3)]
    events = [{1: A, 2: i, 4: f"add.{i + 1}"} for i in range(3)]
    allocation = {1: 0, 2: 12_000, 9: [{1: i, 2: 4000 * i, 3: 4000} for i in range(3)]}
    return proto(
        [computation(1, "main", instructions, 3)],
        buffers={1: buffers, 3: [allocation], 4: [{1: events, 3: 0}]},
    )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    run = write_run(tmp_path / "run", {"h": tpu_xspace(TpuJob())})
    programs = {
        "jit_long(5)": long_program(700),
        "jit_short(6)": long_program(3),
        "jit_bare(7)": proto([computation(1, "main", [instruction(1, "add", array(1))], 1)]),
        "jit_broken(8)": b"\x0a\xff\xff\xff\xff\x0f",
    }
    for title, data in programs.items():
        (run / f"{title}.hlo_proto.pb").write_bytes(data)
    return Session(str(run), cache=False)


def run(session: Session, **params: object) -> Payload:
    return TOOL.run(session, None, params)


def test_the_program_with_the_highest_peak_is_shown_first(session: Session) -> None:
    payload = run(session)
    assert payload.verdict
    assert payload.verdict.text.startswith("`jit_long(5)` needs 12.7 KiB of HBM at its peak")
    assert table(payload, "chosen")["peak_instruction"] == ["add.7"]
    programs = table(payload, "programs")
    peak_of = dict(zip(programs["program"], programs["peak_bytes"], strict=True))
    assert (peak_of["jit_long(5)"], peak_of["jit_short(6)"]) == (13_000, 5_000)
    assert peak_of["jit_bare(7)"] != peak_of["jit_bare(7)"]
    assert peak_of["jit_broken(8)"] != peak_of["jit_broken(8)"]


def test_padding_is_what_a_buffer_has_beyond_its_array(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "padded", {"h": tpu_xspace(TpuJob())})
    (folder / "jit_padded(9).hlo_proto.pb").write_bytes(padded_program())
    live = table(run(Session(str(folder), cache=False)), "live")
    columns = [live[name] for name in ("unpadded_bytes", "padding_bytes", "expansion")]
    assert sorted(zip(*columns, strict=True)) == [(1000, 3000, 4.0), (2000, 2000, 2.0), (4000, 0, 1.0)]


def test_live_buffers_lie_where_and_as_long_as_the_file_says(session: Session) -> None:
    live = table(run(session, program="jit_long"), "live")
    assert live["instruction"] == ["add.6", "add.7"]
    assert (live["size_bytes"], live["offset_bytes"]) == ([6000, 7000], [7000, 0])
    assert (live["first_step"], live["last_step"]) == ([9, 11], [12, 14])
    assert live["op_name"] == ["jit(f)/layer_5", "jit(f)/layer_6"]
    assert live["source"] == ["a.py:5", "a.py:6"]
    assert live["category"] == ["Temporary"] * 2


def test_the_timeline_is_of_at_most_the_asked_width_and_keeps_the_peak(session: Session) -> None:
    all_steps = table(run(session, program="5", width_px=2000), "timeline")
    assert len(all_steps["step"]) == 1399
    assert all_steps["held_bytes"][:4] == [1000, 3000, 2000, 5000]
    few = table(run(session, program="5", width_px=10), "timeline")
    assert len(few["step"]) == 10
    assert max(few["held_bytes"]) == 13_000  # type: ignore[type-var]
    part = run(session, program="5", first_step=100, last_step=119)
    assert table(part, "timeline")["step"] == list(range(100, 120))
    assert set(table(part, "blocks")["instruction"]) == {f"add.{i}" for i in range(50, 62)}


def test_what_is_not_there_is_said(session: Session) -> None:
    with pytest.raises(ToolUnavailable, match="has no buffer assignments"):
        run(session, program="jit_bare(7)")
    with pytest.raises(TraceFormatError):
        run(session, program="jit_broken(8)")
    with pytest.raises(BadParameter) as unknown:
        run(session, program="jit_none")
    assert "jit_long(5)" in unknown.value.remedy
    with pytest.raises(BadParameter, match="space"):
        run(session, space=3)
    with pytest.raises(BadParameter, match="last_step"):
        run(session, first_step=9, last_step=5)


def test_a_run_without_hlo_has_no_such_page(tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "bare", {"h": tpu_xspace(TpuJob())})), cache=False)
    assert "no HLO" in TOOL.available(session).reason
    with pytest.raises(ToolUnavailable):
        run(session)
