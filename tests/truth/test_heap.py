"""The memory snapshot page against what a JAX program counted itself: arrays, bytes, who made them, and
growth.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload

FOLDER = Path(__file__).parents[1] / "data" / "heap"
INDEX = json.loads((FOLDER / "index.json").read_text("utf-8"))
SNAPSHOTS = sorted(INDEX)


def page(snapshot: str, **params: str) -> Payload:
    return get_tool("memory_snapshot").run(Session(str(FOLDER), cache=False), [snapshot], params)


def rows(payload: Payload, table: str) -> list[dict[str, object]]:
    columns = {
        column.name: [column.strings[i] if i >= 0 else "" for i in column.values.tolist()]
        if column.strings is not None
        else column.values.tolist()
        for column in payload.tables[table].columns
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_arrays_and_bytes_are_those_that_the_program_holds(snapshot: str) -> None:
    payload = page(snapshot)
    (buffers,) = [row for row in rows(payload, "kinds") if row["kind"] == "buffer"]
    assert (buffers["n_blocks"], buffers["size_bytes"]) == (
        INDEX[snapshot]["n_arrays"],
        INDEX[snapshot]["n_bytes"],
    )
    assert buffers["device"] == "cpu:0"


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_each_function_has_what_it_made(snapshot: str) -> None:
    payload = page(snapshot)
    places = {str(row["place"]).split()[0]: row for row in rows(payload, "places")}
    made = INDEX[snapshot]["by_function"]
    assert {name: row["size_bytes"] for name, row in places.items()} == {
        name: n_bytes for name, (_, n_bytes) in made.items()
    }
    # Blocks are the arrays and the programs that were compiled to make them, which take no bytes on a CPU.
    assert all(int(str(places[name]["n_blocks"])) > n for name, (n, _) in made.items())


def test_growth_is_what_was_made_in_between() -> None:
    before, after = INDEX["memory"]["by_function"], INDEX["later.memory"]["by_function"]
    grown = {
        str(row["place"]).split()[0]: row["growth_bytes"]
        for row in rows(page("later.memory", before="memory"), "growth")
    }
    expected = {name: n_bytes - before.get(name, [0, 0])[1] for name, (_, n_bytes) in after.items()}
    assert grown == {name: n_bytes for name, n_bytes in expected.items() if n_bytes}
    later, earlier = INDEX["later.memory"]["n_bytes"], INDEX["memory"]["n_bytes"]
    assert sum(grown.values()) == later - earlier  # type: ignore[arg-type]
