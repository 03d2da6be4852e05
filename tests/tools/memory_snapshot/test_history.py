"""What the page of a snapshot says about the allocator's history: failures, the peak, leaks, and doubts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.memory_snapshot import history_rows
from tb_tpuprof.tools.payload import Payload
from tests.ingest.heap_files import torch_snapshot
from tests.ingest.torch_allocator import (
    FORWARD,
    HISTORY,
    LOSS,
    MAIN,
    MIB,
    MODEL,
    Allocator,
    place_of,
    snapshot_of,
    train,
)
from tests.tools.memory_snapshot.test_memory_snapshot import rows, shown

FIRST = ("failures", "timeline", "at_places", "at_sizes", "kept", "devices")


def saved(folder: Path, snapshot: dict[str, Any]) -> Path:
    (folder / "x_snapshot.pickle").write_bytes(pickle.dumps(snapshot))
    return folder


def page(folder: Path, *allocators: Allocator, **params: str) -> Payload:
    return shown(saved(folder, snapshot_of(allocators)), "x_snapshot", **params)


def details(payload: Payload) -> str:
    assert payload.verdict is not None
    return " ".join(payload.verdict.details)


def failing(is_scattered: bool) -> Allocator:
    """8 MiB, of which 6 are in use when 3 more are requested; or 2, with holes of 1.5 between them."""
    allocator = Allocator(1, 8 * MIB)
    if is_scattered:
        blocks = []
        for _ in range(4):
            blocks.append(allocator.alloc(3 * MIB // 2, (FORWARD, MAIN)))
            allocator.alloc(MIB // 2, (MODEL, MAIN))
        for block in blocks:
            assert block
            allocator.free(block)
    else:
        allocator.alloc(5 * MIB // 2, (MODEL, MAIN))
        allocator.alloc(7 * MIB // 2, (FORWARD, MAIN))
    assert allocator.alloc(3 * MIB, (HISTORY, MAIN)) is None
    return allocator


def test_out_of_memory_comes_first(tmp_path: Path) -> None:
    payload = page(tmp_path, failing(is_scattered=False))
    assert payload.verdict is not None
    assert payload.verdict.level == "bad"
    assert payload.verdict.text == (
        f"GPU 1 ran out of memory: `{place_of((HISTORY,))}` requested 3.00 MiB while 6.00 MiB "
        "was in use (58.3% of "
        f"it was allocated at `{place_of((FORWARD,))}`) and the device had 0 B left. Use a smaller batch, "
        "activation checkpointing (`torch.utils.checkpoint`), or lower precision."
    )
    assert tuple(payload.tables)[: len(FIRST)] == FIRST
    (failure,) = rows(payload, "failures")
    assert failure[1:] == (
        place_of((HISTORY,)), 3 * MIB, 0, 6 * MIB, 8 * MIB, 2 * MIB, place_of((FORWARD,)), 3.5 * MIB,
    )  # fmt: skip
    assert "n_failures" in payload.tiles
    assert "6.00 MiB was in use in 2 blocks when the snapshot was saved" in details(payload)


def test_out_of_memory_though_enough_is_held(tmp_path: Path) -> None:
    verdict = page(tmp_path, failing(is_scattered=True)).verdict
    assert verdict is not None
    assert verdict.text.endswith(
        f"(100% of it was allocated at `{place_of((MODEL,))}`) and the device had 0 B left. "
        "6.00 MiB more was held but not in use, in pieces "
        "that are too small or of another pool: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` reduces "
        "fragmentation."
    )


def test_a_failure_on_another_device(tmp_path: Path) -> None:
    """The page opens with the device that failed, though another one has the larger peak."""
    large = Allocator(0, 2**40)
    train(large, 9, 1, batch_bytes=100 * MIB)
    failed = failing(is_scattered=False)
    payload = page(tmp_path, large, failed)
    assert payload.verdict is not None
    assert payload.verdict.text.startswith("GPU 1 ran out of memory")
    assert payload.scalars["device_row"].value == 1
    assert [row[0] for row in rows(payload, "devices")] == ["GPU 0", "GPU 1"]
    other = page(tmp_path, large, failed, device="GPU 0")
    assert other.scalars["device_row"].value == 0
    assert "failures" not in other.tables
    assert "GPU 1 also ran out of memory." in details(other)
    assert other.scalars["n_failures"].value == 1
    with pytest.raises(BadParameter, match="parameter device cannot be 'GPU 7'") as error:
        page(tmp_path, large, failed, device="GPU 7")
    assert "GPU 0, GPU 1" in error.value.remedy


def test_memory_that_is_never_freed_is_a_possible_leak(tmp_path: Path) -> None:
    allocator = Allocator(0, 2**40)
    train(allocator, 40, 1)
    payload = page(tmp_path, allocator)
    assert payload.verdict is not None
    assert payload.verdict.level == "warn"
    n_bytes = allocator.truth[-1].by_place[place_of((HISTORY,))]
    assert payload.verdict.text.startswith(
        f"Possible leak: memory that is not freed grows through the whole history. `{place_of((HISTORY,))}` "
    )
    assert payload.verdict.text.endswith("in 40 of the 40 blocks it allocated.")
    assert "was in use in 44 blocks when the snapshot was saved" in details(payload)
    kept = {row[0]: row[1:] for row in rows(payload, "kept")}
    assert kept[place_of((HISTORY,))][:4] == (n_bytes, 40, n_bytes, 40)
    assert kept[place_of((HISTORY,))][-1] is True
    assert kept[place_of((MODEL,))][-1] is False
    few = Allocator(0, 2**40)
    train(few, 7, 1)
    verdict = page(tmp_path, few).verdict
    assert verdict is not None
    assert verdict.level == "unknown"
    assert not any("leak" in text for text in verdict.details)
    assert "n_failures" not in payload.tiles


def test_the_window_and_the_moment(tmp_path: Path) -> None:
    allocator = Allocator(0, 2**40)
    train(allocator, 40, 1)
    whole = page(tmp_path, allocator)
    end_ps = int(whole.scalars["history_ps"].value or 0)
    assert (whole.scalars["start_ps"].value, whole.scalars["end_ps"].value) == (0, end_ps)
    part = page(
        tmp_path, allocator, start_ps=str(end_ps // 2), end_ps=str(end_ps * 3 // 4), at_ps=str(end_ps // 4)
    )
    times = [int(row[0]) for row in rows(part, "timeline")]  # type: ignore[call-overload]
    assert times[0] < end_ps // 2 <= times[1]
    assert times[-1] <= end_ps * 3 // 4
    assert part.tables["at_places"].title.startswith("In use at 1")
    assert int(part.scalars["at_ps"].value or 0) <= end_ps // 4
    assert whole.tables["at_places"].title == "In use at the peak, by place"
    narrow = page(tmp_path, allocator, width_px="20")
    assert 20 <= narrow.tables["timeline"].n_rows <= 120
    assert "drawn" in narrow.tables["timeline"].note
    with pytest.raises(BadParameter, match="end_ps"):
        page(tmp_path, allocator, start_ps="5", end_ps="5")


def test_doubts_are_said(tmp_path: Path) -> None:
    allocator = Allocator(0, 2**40)
    train(allocator, 3, 1)
    snapshot = snapshot_of([allocator])
    snapshot["device_traces"][0].insert(0, {"action": "of tomorrow", "time_us": 1})
    assert [one.message for one in shown(saved(tmp_path, snapshot), "x_snapshot").diagnostics] == [
        "1 entry of the history is left out: of an unknown kind, or without a time."
    ]
    snapshot["segments"] = []
    messages = [one.message for one in shown(saved(tmp_path, snapshot), "x_snapshot").diagnostics]
    assert any(text.startswith("GPU 0: the history and the blocks") for text in messages)


def test_shares_add_up_where_history_and_blocks_disagree(tmp_path: Path) -> None:
    """Of the blocks that the snapshot lists, none is in the history, and the reverse."""
    allocator = failing(is_scattered=False)
    snapshot = snapshot_of([allocator])
    block = {"size": 5 * MIB, "requested_size": 5 * MIB, "state": "active_allocated", "frames": []}
    snapshot["segments"] = [{"device": 1, "address": 512, "total_size": 5 * MIB, "blocks": [block]}]
    for at_ps in ({"at_ps": "0"}, {}):
        payload = shown(saved(tmp_path, snapshot), "x_snapshot", **at_ps)
        for table, column in (("at_places", 2), ("at_sizes", 3)):
            shares = [row[column] for row in rows(payload, table)]
            assert sum(shares) == pytest.approx(1)  # type: ignore[arg-type]
    assert payload.tables["at_places"].note == "11.0 MiB at the peak"


def test_what_is_held_is_unknown_where_more_is_in_use(tmp_path: Path) -> None:
    """A history without segments, and a snapshot without blocks."""
    snapshot = snapshot_of([failing(is_scattered=False)])
    snapshot["segments"] = []
    entries = [one for one in snapshot["device_traces"][1] if not one["action"].startswith("segment_")]
    for one in entries:
        one.pop("device_free", None)
    snapshot["device_traces"][1] = entries
    payload = shown(saved(tmp_path, snapshot), "x_snapshot")
    (failure,) = rows(payload, "failures")
    assert [str(failure[column]) for column in (3, 6)] == ["nan", "nan"]
    assert payload.verdict is not None
    assert payload.verdict.text.startswith(
        f"GPU 1 ran out of memory: `{place_of((HISTORY,))}` requested 3.00 MiB while 6.00 MiB was in use "
        f"(58.3% of it was allocated at `{place_of((FORWARD,))}`). Use a smaller batch"
    )


def test_long_lists_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = failing(is_scattered=False)
    for _ in range(3):
        allocator.alloc(3 * MIB, (LOSS, MAIN))
    monkeypatch.setattr(history_rows, "N_FAILURES", 2)
    monkeypatch.setattr(history_rows, "N_ROWS", 1)
    payload = page(tmp_path, allocator)
    assert [row[1] for row in rows(payload, "failures")] == [place_of((LOSS,))] * 2
    assert payload.tables["failures"].note == "the last 2 of 4"
    assert payload.tables["kept"].note == "the first 1 of 2"
    assert payload.tables["at_sizes"].note == "the first 1 of 2"
    assert payload.tables["at_places"].n_rows == 1
    monkeypatch.setattr(history_rows, "_MOST_LOOKED_AT", 1)
    holders = [row[-1] for row in rows(page(tmp_path, allocator), "failures")]
    assert str(holders[0]) == "nan"
    assert holders[1] == 3.5 * MIB
    assert [row[-2] for row in rows(payload, "failures")] == [place_of((FORWARD,))] * 2


def test_snapshots_without_a_history_say_nothing_of_it(tmp_path: Path) -> None:
    payload = shown(saved(tmp_path, torch_snapshot()), "x_snapshot")
    assert not set(FIRST) & set(payload.tables)
    assert "peak_bytes" not in payload.scalars
    assert not payload.diagnostics
