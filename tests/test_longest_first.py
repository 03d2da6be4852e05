"""Files that take longest start first, for any number of tests."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.longest_first import RECORDED, SETS, Part, Recorder, longest_first, recorded

ROOT = Path(__file__).resolve().parents[1]
SECONDS = {"slow": {"few.py": 50.0, "both.py": 20.0}, "other": {"both.py": 40.0}}


def test_the_sum_of_what_is_run_of_a_file_decides() -> None:
    parts = [Part("many.py", "other")] * 200 + [Part("few.py", "slow"), Part("both.py", "slow")]
    assert list(longest_first(parts, SECONDS)) == ["few.py", "both.py", "many.py"]
    assert list(longest_first([*parts, Part("both.py", "other")], SECONDS)) == [
        "both.py",
        "few.py",
        "many.py",
    ]
    assert longest_first([Part("b.py", "other"), Part("a.py", "other")], {}) == {"a.py": 0, "b.py": 1}


def test_every_recorded_file_exists() -> None:
    assert set(recorded()) == set(SETS)
    assert RECORDED.parent == ROOT / "tests"
    for files in recorded().values():
        assert [file for file in files if not (ROOT / file).is_file()] == []


def reported(file: str, seconds: float, *keywords: str) -> Any:
    return SimpleNamespace(nodeid=f"{file}::test_x", duration=seconds, keywords=dict.fromkeys(keywords, 1))


def test_recording_adds_up_and_keeps_what_was_not_run(tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    path.write_text(json.dumps({"slow": {"old.py": 30, "new.py": 9}, "other": {"old.py": 7}}), "utf-8")
    recorder = Recorder(path)
    for report in (
        reported("new.py", 3.0, "slow"),
        reported("new.py", 8.5, "slow"),
        reported("new.py", 4.0),
        reported("short.py", 3.9),
    ):
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish()
    assert json.loads(path.read_text("utf-8")) == {
        "other": {"new.py": 4, "old.py": 7},
        "slow": {"new.py": 12, "old.py": 30},
    }
