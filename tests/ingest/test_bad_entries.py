"""One bad entry in a log directory affects only itself: everything else is listed and opens."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_tpuprof.errors import StorageError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.storage import joining
from tb_tpuprof.ingest.storage.run_info import HostFile, RunInfo
from tb_tpuprof.ingest.storage.runs import find_run, find_runs, open_run
from tests.ingest.test_runs_and_files import make_run
from tests.ingest.xspaces import small_xspace

PLACES = ("plugins", "profile")


def _link(target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "w.xplane.pb").symlink_to(target)


def _loop(folder: Path) -> None:
    (folder / "w.xplane.pb").symlink_to(folder / "w.xplane.pb")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "w.xplane.pb")


def _empty(folder: Path) -> None:
    (folder / "w.xplane.pb").touch()


def _folder(folder: Path) -> None:
    (folder / "w.xplane.pb").mkdir()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_link("/nowhere/at/all"), "is a link to /nowhere/at/all, which does not exist"),
        (_loop, "cannot be read: Too many levels of symbolic links"),
        (_pipe, "is not a file"),
        (_folder, "is not a file"),
        (_empty, "is empty (0 bytes)"),
    ],
)
def test_a_run_with_only_a_bad_entry_is_unreadable_with_the_reason(
    tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    make_run(tmp_path, "good", "h.xplane.pb")
    spoil(make_run(tmp_path, "bad"))
    runs = {run.name: run for run in find_runs(str(tmp_path))}
    assert (runs["good"].state, runs["bad"].state) == ("ok", "unreadable")
    assert reason in runs["bad"].message
    assert find_run(str(tmp_path), "good").files[0].host == "h"


@pytest.mark.parametrize("spoil", [_link("/nowhere"), _loop, _pipe, _folder])
def test_a_bad_entry_next_to_a_good_host_is_refused_at_once_with_its_name(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    folder = make_run(tmp_path, "run", "h.xplane.pb")
    spoil(folder)
    (run,) = find_runs(str(tmp_path))
    assert run.state == "ok"
    assert [file.host for file in run.files] == ["h", "w"]
    assert open_trace(run.files[0].path).n_events
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"w\.xplane\.pb"):
        open_trace(run.files[1].path)
    assert time.monotonic() - began < 5


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    make_run(tmp_path, "good", "h.xplane.pb")
    locked = make_run(tmp_path, "locked", "h.xplane.pb")
    locked.chmod(0)
    try:
        runs = {run.name: run for run in find_runs(str(tmp_path))}
    finally:
        locked.chmod(0o700)
    assert runs["good"].state == "ok"
    assert runs["locked"].state == "unreadable"
    assert "permission denied" in runs["locked"].message


def test_a_folder_that_fails_to_list_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `test_a_folder_that_may_not_be_read`, for tests that run as root."""
    make_run(tmp_path, "good", "h.xplane.pb")
    broken = make_run(tmp_path, "broken", "h.xplane.pb")
    real_scandir = os.scandir

    def scandir(path: str) -> object:
        if Path(path) == broken:
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    runs = {run.name: run for run in find_runs(str(tmp_path))}
    assert (runs["good"].state, runs["broken"].state) == ("ok", "unreadable")
    assert f"{broken}: permission denied" in runs["broken"].message


def test_runs_that_are_deleted_while_they_are_listed_are_gone_and_no_error(tmp_path: Path) -> None:
    for number in range(30):
        make_run(tmp_path, f"stays_{number}", "h.xplane.pb")
    is_over = threading.Event()

    def churn() -> None:
        number = 0
        while not is_over.is_set():
            folder = make_run(tmp_path, f"goes_{number}", "h.xplane.pb")
            (folder / "h.xplane.pb").unlink()
            folder.rmdir()
            number += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            names = [run.name for run in find_runs(str(tmp_path)) if run.name.startswith("stays")]
            assert len(names) == 30
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("host", ["worker-1²", "w1①", "w٣", "w-²-3", "a,b", "-dash", "w with space"])
def test_any_name_of_a_host_is_listed_and_opens(tmp_path: Path, host: str) -> None:
    make_run(tmp_path, "run", f"{host}.xplane.pb", "w-3.xplane.pb")
    (run,) = find_runs(str(tmp_path))
    (file,) = [file for file in run.files if file.host != "w-3"]
    assert file.host == host
    assert open_trace(file.path).info.host == host


@pytest.mark.parametrize("name", [b"r\xff", b"a\\b", b"-dash", b"a,b", "µ²".encode()])
def test_any_listed_name_of_a_run_can_be_found(tmp_path: Path, name: bytes) -> None:
    folder = os.path.join(os.fsencode(tmp_path), *map(str.encode, PLACES), name)
    os.makedirs(folder)
    with open(os.path.join(folder, b"h\xfe.xplane.pb"), "wb") as file:
        file.write(small_xspace())
    (listed,) = find_runs(str(tmp_path))
    listed.name.encode("utf-8")
    found = find_run(str(tmp_path), listed.name)
    assert found == listed
    assert found.files[0].host == "h\\xfe"
    assert open_trace(found.files[0].path).n_events


def test_a_file_from_after_the_year_9999_has_no_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path, "run", "h.xplane.pb")
    from tb_tpuprof.ingest.storage import runs

    monkeypatch.setattr(runs, "_size_and_time", lambda entry: (entry.stat().st_size, 4 * 10**20))
    (run,) = find_runs(str(tmp_path))
    assert (run.state, run.captured_at) == ("ok", "")


def _run_of(name: str, hosts: list[str]) -> RunInfo:
    return RunInfo(name, f"/logs/{name}", tuple(HostFile(host, host, 1, 1) for host in hosts), "", "ok", "")


def test_a_name_that_joins_one_run_many_times_is_no_run() -> None:
    assert joining.parts_of("2026_01_01_00_00_01" + "+01" * 1000) == []
    assert joining.parts_of("2026_01_01_00_00_01+02+02") == []
    assert len(joining.parts_of("2026_01_01_00_00_01+02+03")) == 3


def test_joining_thousands_of_hosts_takes_milliseconds() -> None:
    """4,000 hosts with the same names in two runs: the first objection ends the comparison."""
    hosts = [f"w-{i}" for i in range(4000)]
    runs = [_run_of("2026_01_01_00_00_01", hosts), _run_of("2026_01_01_00_00_02", hosts)]
    many = [_run_of(f"2026_01_01_00_00_{i:02}", [f"w-{i}-{j}" for j in range(200)]) for i in range(3, 30)]
    began = time.process_time()
    offered = joining.offers([*runs, *many])
    with pytest.raises(Exception, match="w-0 is in more than one"):
        joining.joined("x", "x", runs)
    assert time.process_time() - began < 1
    assert [len(run.files) for run in offered] == [4000 + 200 * 27]


def test_the_open_folder_of_a_damaged_run_names_the_reason(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "bad")
    _empty(folder)
    assert open_run(str(folder)).state == "unreadable"
