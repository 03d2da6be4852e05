"""The file of transfers for Perfetto, read with a JSON parser, and its queries, run by SQLite on tables that
are filled as Perfetto's importer of JSON does.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.errors import TooLarge
from tb_tpuprof.session import Session
from tb_tpuprof.tools.clocks import Clocks
from tb_tpuprof.tools.megascale_stats import perfetto
from tb_tpuprof.tools.megascale_stats.queries import QUERIES
from tb_tpuprof.tools.megascale_stats.view import TOOL
from tests.golden_files import ROOT
from tests.payload_columns import table
from tests.synthetic import write_run
from tests.tools.megascale_stats.test_megascale_stats import HOSTS

Event = dict[str, Any]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("dcn") / "run", HOSTS)), cache=False)


@pytest.fixture(scope="module")
def events(session: Session) -> list[Event]:
    name, parts = TOOL.file(session, None, {}, "perfetto")
    assert name == "run_dcn.trace.json.gz"
    written: list[Event] = json.loads(gzip.decompress(b"".join(parts)))["traceEvents"]
    return written


def names_of(events: list[Event], kind: str) -> dict[tuple[int, int], str]:
    return {(e["pid"], e.get("tid", 0)): e["args"]["name"] for e in events if e["name"] == kind}


def test_a_process_is_a_core_and_a_thread_a_rendezvous(events: list[Event]) -> None:
    cores = names_of(events, "process_name")
    assert sorted(cores.values()) == [
        "synthetic-0 TPU:0",
        "synthetic-0 TPU:1",
        "synthetic-1 TPU:0",
        "synthetic-2 TPU:0",
        "synthetic-2 TPU:1",
        "synthetic-2 TPU:2",
    ]
    threads = names_of(events, "thread_name")
    transfers = [event for event in events if event["ph"] == "X"]
    assert len(transfers) == 9
    for event in transfers:
        assert threads[event["pid"], event["tid"]] == event["name"]


def test_a_transfer_has_its_time_and_arguments(events: list[Event]) -> None:
    cores = names_of(events, "process_name")
    (gather,) = [event for event in events if event["ph"] == "X" and event["name"] == "all-gather.7"]
    assert (cores[gather["pid"], 0], gather["ts"], gather["dur"], gather["cat"]) == (
        "synthetic-0 TPU:1",
        10,
        190,
        "dcn",
    )
    assert gather["args"] == {
        "transfer_type": "ALL_GATHER",
        "network_bytes": 1_000_000,
        "slack_us": 70,
        "stall_us": 95,
        "in_send_us": 20,
        "in_send_done_us": 5,
        "in_recv_us": 10,
        "in_recv_done_us": 60,
        "required_gbit_per_s": pytest.approx(1e6 * 8 / 70e-6 / 1e9),
    }
    (permute,) = [event for event in events if event["name"] == "permute.3" and event["ph"] == "X"]
    assert "required_gbit_per_s" not in permute["args"]
    (ragged,) = [event for event in events if event["name"] == "ragged.6" and event["ph"] == "X"]
    assert "network_bytes" not in ragged["args"]


def test_outstanding_transfers_are_counted_per_core(events: list[Event]) -> None:
    cores = names_of(events, "process_name")
    counted: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "C":
            counted.setdefault(cores[event["pid"], 0], []).append((event["ts"], event["args"]["transfers"]))
    assert counted["synthetic-0 TPU:1"] == [(0, 1), (10, 2), (200, 1), (300, 0)]
    assert counted["synthetic-1 TPU:0"] == [(1000, 1), (1800, 0)]
    assert counted["synthetic-2 TPU:2"] == [(50, 1), (95, 0), (95, 1), (100, 0)]


def test_hosts_are_moved_to_one_clock(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """By 5 and 2 µs; the host whose clock is behind begins at 0."""
    monkeypatch.setattr(perfetto, "clocks_of", lambda *_: Clocks((3_000, -2_000, 0)))
    _, parts = TOOL.file(session, None, {}, "perfetto")
    moved = json.loads(gzip.decompress(b"".join(parts)))["traceEvents"]
    cores = names_of(moved, "process_name")
    begins = {cores[event["pid"], 0]: event["ts"] for event in reversed(moved) if event["ph"] == "X"}
    assert begins == {
        "synthetic-0 TPU:0": 5,
        "synthetic-0 TPU:1": 5,
        "synthetic-1 TPU:0": 1000,
        "synthetic-2 TPU:0": 2,
        "synthetic-2 TPU:1": 2,
        "synthetic-2 TPU:2": 52,
    }


def test_too_many_transfers_are_refused_with_a_remedy(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "MAX_TRANSFERS", 9)
    TOOL.file(session, None, {}, "perfetto")
    monkeypatch.setattr(perfetto, "MAX_TRANSFERS", 8)
    with pytest.raises(TooLarge, match="9 transfers between slices") as raised:
        TOOL.file(session, None, {}, "perfetto")
    assert raised.value.remedy == "Choose fewer hosts."


@pytest.fixture(scope="module")
def database(events: list[Event]) -> sqlite3.Connection:
    """The tables of Perfetto's prelude that the queries read."""
    base = sqlite3.connect(":memory:")
    base.executescript(
        "CREATE TABLE process (upid, name); CREATE TABLE thread (utid, upid, name);"
        "CREATE TABLE thread_track (id, utid); CREATE TABLE process_counter_track (id, upid, name);"
        "CREATE TABLE slice (id, ts, dur, track_id, category, name, arg_set_id);"
        "CREATE TABLE counter (ts, track_id, value);"
    )
    arguments: dict[int, dict[str, Any]] = {}
    cores, threads = names_of(events, "process_name"), names_of(events, "thread_name")
    base.executemany("INSERT INTO process VALUES (?, ?)", [(pid, name) for (pid, _), name in cores.items()])
    for (pid, tid), name in threads.items():
        base.execute("INSERT INTO thread VALUES (?, ?, ?)", (1000 * pid + tid, pid, name))
        base.execute("INSERT INTO thread_track VALUES (?, ?)", (1000 * pid + tid, 1000 * pid + tid))
    for i, event in enumerate(events):
        if event["ph"] == "X":
            arguments[i] = event["args"]
            track = 1000 * event["pid"] + event["tid"]
            times = (1000 * event["ts"], 1000 * event["dur"])
            base.execute(
                "INSERT INTO slice VALUES (?, ?, ?, ?, 'dcn', ?, ?)", (i, *times, track, event["name"], i)
            )
        elif event["ph"] == "C":
            ((key, value),) = event["args"].items()
            name = f"{event['name']} {key}"
            base.execute("INSERT INTO process_counter_track VALUES (?, ?, ?)", (i, event["pid"], name))
            base.execute("INSERT INTO counter VALUES (?, ?, ?)", (1000 * event["ts"], i, value))
    base.create_function(
        "EXTRACT_ARG",
        2,
        lambda set_id, key: arguments[set_id].get(key.removeprefix("args.")),
        deterministic=True,
    )
    return base


def answers(database: sqlite3.Connection, question: str) -> list[tuple[Any, ...]]:
    (query,) = [query for query in QUERIES if question in query.question]
    return database.execute(query.sql).fetchall()


def test_the_first_query_sums_what_the_page_sums(database: sqlite3.Connection, session: Session) -> None:
    rows = table(TOOL.run(session, None, {}), "rendezvous")
    by_name = {
        name: (times, total_ms) for name, times, total_ms, *_ in answers(database, "stalls the cores longest")
    }
    assert by_name == {
        name: (count, pytest.approx(float(str(total)) / 1e9))
        for name, count, total in zip(rows["rendezvous"], rows["count"], rows["total_stall_ps"], strict=True)
    }


def test_each_query_answers_its_question(database: sqlite3.Connection) -> None:
    longest = answers(database, "Which transfers took longest")
    assert [row[3:5] for row in longest[:2]] == [
        ("permute.3", "synthetic-1 TPU:0"),
        ("all-reduce.1", "synthetic-0 TPU:0"),
    ]
    assert (longest[0][1], longest[0][2], longest[0][5], longest[0][6]) == (1_000_000, 800, 800, 400)
    spread = {row[0]: row[1:] for row in answers(database, "longer than the median")}
    # 70, 220, 300 and 340 µs.
    assert spread["all-reduce.1"] == (4, 220, 340, 340)
    assert spread["permute.3"] == (1, 800, 800, 800)
    needs = answers(database, "more bandwidth than 10 Gbit/s")
    assert needs[0][2:4] == ("all-reduce.1", "synthetic-2 TPU:0")
    assert needs[0][6] == pytest.approx(6e6 * 8 / 30e-6 / 1e9)
    assert "permute.3" not in {row[2] for row in needs}
    halves = {row[0]: row[1:] for row in answers(database, "In which operation")}
    assert halves["all-gather.7"] == (20, 5, 10, 60)
    assert halves["all-reduce.1"] == (35, 55, 35, 120)
    assert answers(database, "Which core is stalled longest")[0] == (
        "synthetic-1 TPU:0",
        1,
        pytest.approx(0.8),
    )
    assert answers(database, "outstanding at once")[0] == ("synthetic-0 TPU:1", 10_000, 2)


def test_every_query_is_in_the_documents() -> None:
    text = (Path(ROOT) / "docs" / "tools" / "megascale_stats.md").read_text("utf-8")
    blocks = re.findall(r"\*\*([^*\n]+)\*\*\n\n```sql\n(.*?)\n```", text, re.DOTALL)
    assert blocks == [(query.question, query.sql) for query in QUERIES]
