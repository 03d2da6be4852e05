"""The memory snapshot's answers on files written by hand, with three unlike places."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from tb_tpuprof.cli import main
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tb_tpuprof.tools.memory_snapshot import tables as declared
from tb_tpuprof.tools.memory_snapshot.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.golden_files import demo_runs
from tests.ingest.heap_files import LOAD, MAIN, SAMPLES, STEP, Sample, pprof, torch_frames, torch_snapshot
from tests.ingest.xspaces import small_xspace
from tests.payload_columns import cells
from tests.test_contract import check_reasons

PLACE = "train_step /app/train.py:41"
LOADED = "load /app/data.py:7"


def rows(payload: Payload, table: str) -> list[tuple[object, ...]]:
    return list(zip(*(cells(column) for column in payload.tables[table].columns), strict=True))


def snapshot(folder: Path, name: str, *samples: Sample) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.pprof").write_bytes(pprof(samples))


def shown(folder: Path, host: str = "a", **params: str) -> Payload:
    payload = TOOL.run(Session(str(folder), cache=False), [host], params)
    check_reasons(payload)
    return payload


@pytest.fixture
def jax(tmp_path: Path) -> Path:
    snapshot(tmp_path / "job", "a", *SAMPLES)
    return tmp_path / "job"


def test_tables_of_jax(jax: Path) -> None:
    payload = shown(jax)
    assert rows(payload, "places") == [
        (LOADED, 5000, 5000 / 6000, 1),
        (PLACE, 700, 700 / 6000, 5),
        ("(no stack recorded)", 300, 300 / 6000, 4),
    ]
    assert rows(payload, "kinds") == [
        ("TFRT_CPU_1", "buffer", 5000, 5000 / 6000, 1),
        ("TFRT_CPU_0", "buffer", 900, 900 / 6000, 7),
        ("TFRT_CPU_0", "executable", 100, 100 / 6000, 2),
    ]
    assert rows(payload, "functions")[:3] == [
        ("main", "/app/train.py", 5700, 0, 6, 5700 / 6000),
        ("load", "/app/data.py", 5000, 5000, 1, 5000 / 6000),
        ("train_step", "/app/train.py", 700, 700, 5, 700 / 6000),
    ]
    stacks = rows(payload, "stacks")
    assert [(row[2], row[4]) for row in stacks] == [(5000, 1), (600, 3), (300, 4), (100, 2)]
    assert stacks[0] == (
        "TFRT_CPU_1",
        "buffer",
        5000,
        5000 / 6000,
        1,
        LOADED,
        f"{LOADED} < main /app/train.py:80",
    )
    assert "pools" not in payload.tables
    assert "growth" not in payload.tables


def test_numbers_and_sentences_of_jax(jax: Path) -> None:
    payload = shown(jax)
    values = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert values == {"used_bytes": 6000, "n_blocks": 10, "n_places": 2, "unattributed_bytes": 300}
    assert payload.tiles == ("used_bytes", "n_blocks", "n_places", "unattributed_bytes")
    assert payload.scalars["used_bytes"].note == "when saved, on all devices"
    assert payload.verdict is not None
    assert payload.verdict.level == "unknown"
    assert payload.verdict.text == (
        "5.86 KiB was in use in 10 blocks when the snapshot was saved: 83.3% of it was allocated at "
        f"`{LOADED}`."
    )
    messages = [one.message for one in payload.diagnostics]
    assert "300 B (5.00%) of the memory in use has no recorded stack." in messages


def test_everything_attributed_has_no_notice(tmp_path: Path) -> None:
    snapshot(tmp_path, "a", Sample((STEP, MAIN), 1, 64))
    payload = shown(tmp_path)
    assert not payload.diagnostics
    assert payload.scalars["used_bytes"].note == "when saved"
    assert "unattributed_bytes" not in payload.tiles
    assert payload.verdict is not None
    assert payload.verdict.text == (
        f"64 B was in use in 1 block when the snapshot was saved: 100% of it was allocated at `{PLACE}`."
    )


@pytest.mark.parametrize(("n_bytes", "is_shown"), [(0, False), (1, True), (2, True)])
def test_what_nobody_is_known_to_hold_is_a_tile_if_there_is_any(
    tmp_path: Path, n_bytes: int, is_shown: bool
) -> None:
    snapshot(tmp_path, "a", Sample((STEP, MAIN), 1, 64), Sample((), 1, n_bytes))
    payload = shown(tmp_path)
    assert ("unattributed_bytes" in payload.tiles) is is_shown
    assert bool(payload.diagnostics) is is_shown


def test_nothing_attributed_and_nothing_in_use(tmp_path: Path) -> None:
    snapshot(tmp_path, "a", Sample((), 2, 64, "", ""))
    snapshot(tmp_path, "b")
    payload = shown(tmp_path)
    assert payload.verdict is not None
    assert payload.verdict.text == (
        "64 B was in use in 2 blocks when the snapshot was saved; it does not record who allocated it."
    )
    assert rows(payload, "kinds") == [(None, None, 64, 1.0, 2)]
    empty = shown(tmp_path, "b")
    assert empty.verdict is not None
    assert empty.verdict.text == "No memory was in use when the snapshot was saved."
    assert rows(empty, "places") == rows(empty, "functions") == rows(empty, "stacks") == []


def test_only_snapshots_are_shown(tmp_path: Path) -> None:
    """A trace among them has no heap."""
    (tmp_path / "h.xplane.pb").write_bytes(small_xspace())
    with pytest.raises(ToolUnavailable, match="snapshot"):
        TOOL.run(Session(str(tmp_path), cache=False), ["h"], {})


def test_growth_since_another_snapshot(jax: Path) -> None:
    snapshot(jax, "b", Sample((STEP, MAIN), 8, 1700), Sample((LOAD, MAIN), 1, 4000), Sample((), 4, 300))
    payload = shown(jax, "b", before="a")
    assert list(payload.tables)[:2] == ["growth", "places"]
    assert rows(payload, "growth") == [(PLACE, 700, 1700, 1000, 3), (LOADED, 5000, 4000, -1000, 0)]
    assert payload.tables["growth"].note == "compared with a"
    assert payload.scalars["growth_bytes"].value == 0
    assert payload.verdict is not None
    assert payload.verdict.text == (
        f"As much memory was in use as in the other snapshot; `{PLACE}` grew most, by 1,000 B."
    )
    backward = shown(jax, "a", before="b")
    assert [row[3] for row in rows(backward, "growth")] == [1000, -1000]
    snapshot(jax, "c", Sample((LOAD, MAIN), 1, 4000))
    less = shown(jax, "c", before="b")
    assert less.scalars["growth_bytes"].value == -2000
    assert less.verdict is not None
    assert less.verdict.text == "Memory in use shrank by 1.95 KiB since the other snapshot."
    snapshot(jax, "d", Sample((LOAD, MAIN), 1, 4000))
    same = shown(jax, "d", before="c")
    assert same.verdict is not None
    assert same.verdict.text.startswith("Nothing has changed")
    for before in ("d", "nobody"):
        with pytest.raises(BadParameter, match="parameter before "):
            shown(jax, "d", before=before)


def test_comparisons_with_earlier_snapshots_are_offered(tmp_path: Path) -> None:
    for i, name in enumerate(("c", "a", "e", "b", "d")):
        snapshot(tmp_path, name, Sample((STEP, MAIN), 1, 64))
        os.utime(tmp_path / f"{name}.pprof", ns=(0, (i + 1) * 10**9))

    def offered(host: str, **params: str) -> list[tuple[str, str]]:
        verdict = shown(tmp_path, host, **params).verdict
        assert verdict is not None
        assert all(step.tool == TOOL.name for step in verdict.next)
        return [(step.text, step.params.get("before", "")) for step in verdict.next]

    since = "See what has grown since the snapshot "
    assert offered("c") == [("See what has grown from it to the snapshot `d`", "c")]
    first = shown(tmp_path, "c").verdict
    assert first is not None
    assert first.next[0].params["hosts"] == "d"
    assert offered("a") == [(f"{since}`c`", "c")]
    assert offered("d") == [(f"{since}`b`", "b"), (f"{since}`e`", "e"), (f"{since}`a`", "a")]
    os.utime(tmp_path / "c.pprof", ns=(0, 2 * 10**9))  # when a was saved
    assert (offered("a"), offered("c")) == ([(f"{since}`c`", "c")], [(f"{since}`a`", "a")])
    assert offered("b", before="a") == [
        (f"{since}`e`", "e"),
        (f"{since}`c`", "c"),
        ("See this snapshot alone", ""),
    ]


def test_pytorch_s_pools(tmp_path: Path) -> None:
    (tmp_path / "x_snapshot.pickle").write_bytes(pickle.dumps(torch_snapshot()))
    payload = shown(tmp_path, "x_snapshot")
    assert rows(payload, "pools") == [
        ("GPU 0", 2048, 1536, 512, 512, 36),
        ("GPU 1", 6144, 2048, 4096, 4096, 1),
    ]
    values = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert values == {
        "used_bytes": 3584,
        "n_blocks": 3,
        "n_places": 2,
        "unattributed_bytes": 0,
        "reserved_bytes": 8192,
        "free_bytes": 4608,
        "rounding_bytes": 37,
    }
    assert payload.scalars["free_bytes"].note == "56.3% of it"
    notes = [payload.scalars[name].note for name in ("used_bytes", "reserved_bytes")]
    assert notes == ["when saved, on all devices", "when saved, on all devices, by PyTorch's allocator"]
    assert rows(payload, "places") == [(LOADED, 2048, 2048 / 3584, 1), (PLACE, 1536, 1536 / 3584, 2)]
    assert payload.verdict is not None
    assert (payload.verdict.level, payload.verdict.details) == ("unknown", ())


def held(total: int, used: int) -> dict[str, Any]:
    """A device of which the allocator holds `total` bytes."""
    block = {"size": used, "requested_size": used, "state": "active_allocated", "frames": torch_frames(STEP)}
    free = {"size": total - used, "state": "inactive"}
    return {"device": 0, "total_size": total, "blocks": [block, free]}


@pytest.mark.parametrize(
    ("total", "used", "is_warned"),
    [
        (2**29 + 2, 2**28, True),  # just more than a half is free
        (2**29, 2**28, False),  # a half
        (2**28, 0, True),
        (2**28 - 1, 0, False),  # too little to matter
    ],
)
def test_much_memory_held_and_not_used_is_a_warning(
    tmp_path: Path, total: int, used: int, is_warned: bool
) -> None:
    (tmp_path / "x_snapshot.pickle").write_bytes(pickle.dumps({"segments": [held(total, used)]}))
    verdict = shown(tmp_path, "x_snapshot").verdict
    assert verdict is not None
    assert verdict.level == ("warn" if is_warned else "unknown")
    assert len(verdict.details) == is_warned
    if is_warned:
        assert "torch.cuda.empty_cache()" in verdict.details[0]


def test_long_tables_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "N_ROWS", 3)
    snapshot(tmp_path, "a", *SAMPLES)
    payload = shown(tmp_path)
    assert [len(rows(payload, name)) for name in ("places", "functions", "stacks")] == [3, 3, 3]
    assert payload.tables["places"].note == ""
    assert payload.tables["functions"].note == "the first 3 of 4"
    assert payload.tables["stacks"].note == "the first 3 of 4"
    assert payload.scalars["used_bytes"].value == 6000


def test_the_other_pages_say_where_it_is(jax: Path) -> None:
    session = Session(str(jax), cache=False)
    for tool in all_tools():
        availability = tool.availability(session)
        assert bool(availability) == (tool is TOOL)
        if tool is not TOOL:
            assert "only memory snapshots" in availability.reason
            with pytest.raises(ToolUnavailable, match="only memory snapshots"):
                tool.run(session, None, {})


def test_runs_with_a_trace_say_how_to_save_one() -> None:
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    availability = TOOL.availability(session)
    assert availability.reason == "the run contains no memory snapshot."
    assert "save_device_memory_profile" in availability.remedy
    assert get_tool("memory_snapshot") is TOOL


def test_over_http_and_in_the_terminal(jax: Path, capsys: pytest.CaptureFixture[str]) -> None:
    apps = Routes(Logdirs.of(str(jax.parent), ""), "profile").apps()

    def get(route: str, **query: str) -> Any:
        response = Client(apps[route]).get(route, query_string=query)
        assert response.status_code == 200, response.data
        return json.loads(response.data)

    (run,) = get("/runs")["runs"]
    assert (run["run"], run["state"], run["n_hosts"]) == ("job", "memory", 1)
    tools = get("/tools", run="job")
    assert [tool["name"] for tool in tools["tools"] if tool["available"]] == ["memory_snapshot"]
    page = get("/data/memory_snapshot", run="job")
    assert page["scalars"]["used_bytes"]["value"] == 6000
    assert main(["show", "memory_snapshot", str(jax)]) == 0
    assert LOADED in capsys.readouterr().out
    assert main(["show", "memory_snapshot", str(jax / "a.pprof"), "--format", "json"]) == 0
    assert main(["runs", str(jax.parent)]) == 0
    assert "memory: This run contains memory snapshots" in capsys.readouterr().out
    assert main(["show", "overview_page", str(jax)]) == 5


def test_the_card_of_the_run_reads_nothing(jax: Path) -> None:
    apps = Routes(Logdirs.of(str(jax.parent), ""), "profile").apps()
    (jax / "a.pprof").write_bytes(b"damaged")
    card = json.loads(Client(apps["/card"]).get("/card", query_string={"run": "job"}).data)
    assert (card["run"], card["device"], card["damaged"]) == ("job", "", [])
