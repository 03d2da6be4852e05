"""The page of memory snapshots against plain loops over the pickle, on a synthetic allocator's devices."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_snapshot.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.ingest.torch_allocator import MIB, Allocator, snapshot_of, train
from tests.truth.plain_allocator import history
from tests.truth.test_heap import rows

PS = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three unlike devices, one with failures and one of expandable segments; and the same with a short
    ring.
    """
    made = [Allocator(0, 2**40), Allocator(2, 16 * MIB), Allocator(3, 2**40, is_expandable=True)]
    for allocator, n_steps in zip(made, (40, 60, 9), strict=True):
        train(allocator, n_steps, allocator.device)
    found = tmp_path_factory.mktemp("snapshots")
    (found / "whole_snapshot.pickle").write_bytes(pickle.dumps(snapshot_of(made)))
    (found / "ring_snapshot.pickle").write_bytes(pickle.dumps(snapshot_of(made, 80)))
    return found


def page(folder: Path, host: str, **params: str) -> Payload:
    return TOOL.run(Session(str(folder), cache=False), [host], params)


@pytest.mark.parametrize("device", [0, 2, 3])
@pytest.mark.parametrize("host", ["whole_snapshot", "ring_snapshot"])
def test_the_history_is_that_of_the_file(folder: Path, host: str, device: int) -> None:
    true = history(folder / f"{host}.pickle", device)
    payload = page(folder, host, device=f"GPU {device}", width_px="8000")
    (shown,) = [row for row in rows(payload, "devices") if row["device"] == f"GPU {device}"]
    at_us, peak, _ = true["levels"][true["peak"]]
    assert shown["peak_bytes"] == payload.scalars["peak_bytes"].value == peak
    assert shown["reserved_peak_bytes"] == max(reserved for *_, reserved in true["levels"])
    first = int(rows(payload, "timeline")[0]["start_ps"])  # type: ignore[call-overload]
    assert int(payload.scalars["peak_ps"].value or 0) - first == at_us * PS
    assert [
        (
            int(row["start_ps"]) - first,  # type: ignore[call-overload]
            row["used_bytes"],
            row["reserved_bytes"],
        )
        for row in rows(payload, "timeline")
    ] == [(time * PS, used, reserved) for time, used, reserved in true["levels"]]
    check_contents(payload, true["at_peak"], peak)
    kept = {str(row["place"]): (row["kept_bytes"], row["n_kept"]) for row in rows(payload, "kept")}
    assert kept == true["kept"]
    assert payload.scalars["kept_bytes"].value == sum(size for size, _ in true["kept"].values())
    failures = rows(payload, "failures") if "failures" in payload.tables else []
    assert shown["n_failures"] == len(true["failures"])
    assert [
        (
            row["requested_bytes"],
            row["device_free_bytes"],
            row["place"],
            row["used_bytes"],
            row["reserved_bytes"],
        )
        for row in failures
    ] == true["failures"][-100:]
    end = page(folder, host, device=f"GPU {device}", at_ps=str(10**15))
    check_contents(end, true["end"], true["levels"][-1][1])


def check_contents(payload: Payload, true: dict[str, int], used: int) -> None:
    """Places add up to the memory in use. Blocks that the file lists at its end are known by place even if
    older than the history; only the rest is not.
    """
    places = {str(row["place"]): int(str(row["size_bytes"])) for row in rows(payload, "at_places")}
    assert sum(places.values()) == used
    unknown = places.pop("(allocated before the history)", 0)
    older = true.get("before", 0)
    assert unknown <= older
    known = {place: size for place, size in true.items() if place != "before"}
    assert all(places[place] >= size for place, size in known.items())
    assert sum(places.values()) - sum(known.values()) == older - unknown
    sizes = rows(payload, "at_sizes")
    assert sum(int(str(row["size_bytes"])) for row in sizes) == used - unknown
    assert all(row["size_bytes"] == int(str(row["block_bytes"])) * int(str(row["n_blocks"])) for row in sizes)
    if not older:
        assert places == known
