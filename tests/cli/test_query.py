"""`tpuprof query`: events and groups as text, CSV and JSON; wrong queries in words."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tb_tpuprof.cli import main
from tests.xspace_files import write_drawing

# Three unlike hosts; a column is a millisecond. Letters are functions (tests/analysis/diagnosis/drawn.py).
HOSTS = {
    "a": "main  [train     ][train   ]\nmain   [u  ]  [v ]   [u ]",
    "b": "main  [train  ][train         ]\nmain   [v ]     [v     ]",
    "c": "main  [train ]",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "run"
    folder.mkdir()
    for host, text in HOSTS.items():
        write_drawing(folder / f"{host}.xplane.pb", text)
    return folder


def query(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["query", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_events_are_listed_with_their_number_and_total(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Steps of 12, 10, 9, 16 and 8 ms, as wide as they are drawn.
    lines = query(capsys, run, "name:train dur>10ms").splitlines()
    assert lines[0] == "2 events, 28.0 ms in total"
    assert sum("train" in line for line in lines) == 2
    assert query(capsys, run, "name:train dur>=10ms").startswith("3 events, 38.0 ms in total\n")
    longest = rows(query(capsys, run, "name:train", "--sort", "dur", "--csv"))
    durations = [int(row["duration_ps"]) for row in longest]
    assert durations == sorted(durations, reverse=True)
    assert len(durations) == 5
    shortest = rows(query(capsys, run, "name:train", "--sort", "dur", "--reverse", "--csv", "--limit", 1))
    assert [int(row["duration_ps"]) for row in shortest] == durations[-1:]
    assert "… and 4 more (--limit, now 1; --csv)" in query(capsys, run, "name:train", "--limit", 1)


def test_or_and_brackets_are_those_of_the_language(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = rows(query(capsys, run, "--csv"))
    either = rows(query(capsys, run, "host=c OR (name:u | name:v) -host=b", "--csv"))
    expected = [
        e["event"]
        for e in events
        if e["host"] == "c" or (e["host"] != "b" and any(part in e["name"].lower() for part in "uv"))
    ]
    assert 0 < len(expected) < len(events)
    assert [e["event"] for e in either] == expected


def test_groups_add_up_over_hosts(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = rows(query(capsys, run, "--csv"))
    for key, column in (("name", "name"), ("host", "host"), ("step", "step")):
        groups = rows(query(capsys, run, "--group", key, "--csv"))
        for group in groups:
            times = [
                int(e["duration_ps"])
                for e in events
                if e[column].split(" ")[0 if key == "name" else -1]
                == group["group"].split(" ")[0 if key == "name" else -1]
            ]
            assert (int(group["n"]), int(group["total_ps"]), int(group["max_ps"])) == (
                len(times),
                sum(times),
                max(times),
            )
    assert "Group" in query(capsys, run, "--group", "host")
    one = rows(query(capsys, run, "--host", "b", "--group", "host", "--csv"))
    assert [group["group"] for group in one] == ["b"]


def test_json_is_the_answer_over_http(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(query(capsys, run, "name:train", "--json"))
    assert answer["scalars"]["n_matches"]["value"] == 5
    assert set(answer["tables"]) == {"slices"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["durr>1ms"], ["at character 1", "no field 'durr'", "Did you mean dur?"]),
        (["name:a OR"], ["at character 8", "lacks a condition after it"]),
        (["name~(a"], ["at character 6", "not closed"]),
        (["", "--group", "color"], ["by", "arg.NAME"]),
        (["", "--sort", "length"], ["sort", "start, dur"]),
        (["", "--group", "name", "--sort", "dur"], ["--sort", "without --group"]),
        (["", "--limit", "none"], ["limit", "whole number"]),
    ],
)
def test_wrong_usage_is_explained(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    assert main(["query", str(run), *arguments]) == 2
    text = capsys.readouterr().err
    assert all(word in text for word in words), text


def test_no_match_is_no_error(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert query(capsys, run, "name:nowhere") == "0 events, 0 s in total\n"
