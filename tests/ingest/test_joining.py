"""Folders that were captured seconds apart as one run: what is offered, what is refused, and that it reads as
one folder would.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import RunNotFound, StorageError
from tb_tpuprof.ingest.storage.joining import offers, parts_of
from tb_tpuprof.ingest.storage.runs import find_run, find_runs, open_run
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.synthetic import TpuJob, tpu_hosts, write_run

HOSTS = list(tpu_hosts(TpuJob(), (1.0, 1.2, 1.0)).items())
FIRST = "2026_11_20_22_13_05"


def logdir(tmp_path: Path, **folders: list[int]) -> Path:
    """A logdir whose folders (named by the end of their time) hold these hosts."""
    for end, hosts in folders.items():
        write_run(
            tmp_path / "train" / "plugins" / "profile" / f"2026_11_20_22_{end.removeprefix('at_')}",
            dict(HOSTS[i] for i in hosts),
        )
    return tmp_path


def offered(folder: Path) -> list[str]:
    return [run.name for run in find_runs(str(folder)) if "+" in run.name]


def test_folders_seconds_apart_are_offered_and_read_as_one(tmp_path: Path) -> None:
    folder = logdir(tmp_path, at_13_05=[0], at_13_07=[1], at_13_30=[2])
    name = f"train/{FIRST}+07+30"
    assert offered(folder) == [name]
    assert [run.name for run in find_runs(str(folder))] == [
        "train/2026_11_20_22_13_30", "train/2026_11_20_22_13_07", name, f"train/{FIRST}",
    ]  # fmt: skip
    run = find_run(str(folder), name)
    assert [file.host for file in run.files] == [host for host, _ in HOSTS]
    together = write_run(tmp_path / "together", dict(HOSTS))
    payload = get_tool("overview_page").run(Session(run.path, cache=False), None, {})
    expected = get_tool("overview_page").run(Session(str(together), cache=False, name=payload.run), None, {})
    assert payload.run == f"{FIRST}+07+30"
    assert encode_json(payload) == encode_json(expected)
    assert Logdirs.of(str(folder), "").run(name).files == run.files


def test_across_a_minute_the_end_of_the_name_is_longer(tmp_path: Path) -> None:
    folder = logdir(tmp_path, at_13_55=[0], at_14_02=[1])
    (name,) = offered(folder)
    assert name == "train/2026_11_20_22_13_55+14_02"
    assert len(find_run(str(folder), name).files) == 2


@pytest.mark.parametrize(
    ("folders", "why"),
    [
        ({"at_13_05": [0], "at_13_07": [0, 1]}, "in more than one of its parts"),
        ({"at_13_05": [0], "at_13_36": [1]}, "not times within 30 s"),
    ],
)
def test_what_may_be_two_captures_is_neither_offered_nor_joined(
    tmp_path: Path, folders: dict[str, list[int]], why: str
) -> None:
    folder = logdir(tmp_path, **folders)
    assert offered(folder) == []
    with pytest.raises(RunNotFound, match=why):
        find_run(str(folder), f"train/{FIRST}+{list(folders)[1][-2:]}")


def test_other_parents_and_other_names_are_not_offered(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "plugins" / "profile" / FIRST, dict(HOSTS[:1]))
    write_run(tmp_path / "b" / "plugins" / "profile" / FIRST.replace("05", "06"), dict(HOSTS[1:2]))
    write_run(tmp_path / "a" / "plugins" / "profile" / "mine", dict(HOSTS[1:2]))
    write_run(tmp_path / "a" / "plugins" / "profile" / "2026_99_20_22_13_06", dict(HOSTS[1:2]))
    assert offered(tmp_path) == []
    for name in (f"a/{FIRST}+mine", f"a/{FIRST}+06", f"a/{FIRST}+"):
        with pytest.raises(RunNotFound):
            find_run(str(tmp_path), name)


def test_a_folder_that_is_called_so_is_that_folder(tmp_path: Path) -> None:
    write_run(tmp_path / "plugins" / "profile" / "a+b", dict(HOSTS[:1]))
    assert find_run(str(tmp_path), "a+b").path.endswith("a+b")
    assert len(open_run(str(tmp_path / "plugins" / "profile" / "a+b")).files) == 1


@pytest.mark.parametrize("name", ["+", "a+", "+b", "a++b", "a", "", "../x+y", "a+" + "+".join("b" * 2000)])
def test_hostile_names_lead_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunNotFound):
        find_run(str(logdir(tmp_path, at_13_05=[0], at_13_07=[1])), name)
    with pytest.raises((RunNotFound, StorageError)):
        open_run(str(tmp_path / "nothing" / name) + "x")


def test_parts() -> None:
    assert parts_of(f"train/{FIRST}+07") == [f"train/{FIRST}", f"train/{FIRST[:-2]}07"]
    assert parts_of("a+longer") == ["a", "longer"]
    assert parts_of("dir+with/plain") == []


def test_hosts_come_from_both_folders_and_a_folder_that_goes_is_told(tmp_path: Path) -> None:
    folder = logdir(tmp_path, at_13_05=[0], at_13_07=[1])
    (name,) = offered(folder)
    shutil.rmtree(folder / "train" / "plugins" / "profile" / "2026_11_20_22_13_07")
    with pytest.raises(RunNotFound):
        find_run(str(folder), name)
    assert offers([]) == []


def test_the_command_line_lists_and_opens_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tb_tpuprof.cli import main

    folder = logdir(tmp_path, at_13_05=[0], at_13_07=[1])
    assert main(["runs", str(folder), "--format", "json"]) == 0
    listed = {run["run"]: run["path"] for run in json.loads(capsys.readouterr().out)["runs"]}
    assert main(["show", "overview_page", listed[f"train/{FIRST}+07"], "--no-cache", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hosts"]) == 2
