"""Files of captured runs: whole or not there, in folders and behind URLs."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import NamedTuple

import fsspec
import fsspec.implementations.memory
import pytest

from tb_tpuprof.errors import BadParameter, StorageError
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.ingest.storage.writing import RunFolder, new_run
from tests.ingest.xspaces import small_xspace


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture(params=["folder", "memory"])
def logdir(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        str(tmp_path / "new" / "logs")
        if request.param == "folder"
        else f"memory://{secrets.token_hex(4)}/logs"
    )


def everything(logdir: str) -> list[str]:
    """All files below a logdir."""
    if "://" in logdir:
        import fsspec

        fs, inner = fsspec.core.url_to_fs(logdir)
        return [str(path) for path in fs.find(inner)]
    return [str(path) for path in Path(logdir).rglob("*") if path.is_file()]


def test_a_run_appears_with_its_first_whole_file(logdir: str) -> None:
    folder = new_run(logdir, "r")
    assert find_runs(logdir) == []
    content = small_xspace()
    seen: list[list[object]] = []

    def pieces() -> Iterator[memoryview]:
        yield memoryview(content)[:10]
        seen.append([find_runs(logdir), folder.file_sizes()])
        yield memoryview(content)[10:]

    assert folder.save("a", pieces()).size_bytes == len(content)
    assert seen == [[[], {}]]
    folder.save("b", [content, b""])
    (run,) = find_runs(logdir)
    assert [(file.host, file.size_bytes) for file in run.files] == [("a", len(content)), ("b", len(content))]
    assert folder.file_sizes() == {"a": len(content), "b": len(content)}
    assert len(everything(logdir)) == 2


def test_what_fails_half_way_leaves_nothing(logdir: str) -> None:
    folder = new_run(logdir)

    def pieces() -> Iterator[bytes]:
        yield b"x" * 1000
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match="no space left"):
        folder.save("a", pieces())
    assert everything(logdir) == []
    assert find_runs(logdir) == []


def test_large_pieces_are_written_in_chunks(logdir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.storage.writing._CHUNK_BYTES", 7)
    content = bytes(range(256)) * 3
    folder = new_run(logdir)
    assert folder.save("a", [memoryview(content)]).size_bytes == len(content)
    (path,) = everything(logdir)
    if "://" not in logdir:
        assert Path(path).read_bytes() == content


def test_names_of_runs(logdir: str) -> None:
    new_run(logdir, "my-run_1.2").save("a", [b"x"])
    with pytest.raises(BadParameter, match="run_name"):
        new_run(logdir, "my-run_1.2")
    for name in ("..", ".", "a/b", "a\\b", ".hidden", "-x", "a\0", "x" * 200, "a ", "é", "a."):
        with pytest.raises(BadParameter, match="run_name"):
            new_run(logdir, name)


def test_two_runs_in_one_second(logdir: str) -> None:
    names = set()
    for _ in range(3):
        folder = new_run(logdir)
        folder.save("a", [b"x"])
        names.add(folder.run)
    assert len(names) == 3
    assert {run.name for run in find_runs(logdir)} == names


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        new_run(str(tmp_path / "file" / "logs"))
    assert caught.value.remedy
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(StorageError):
            new_run(str(tmp_path / "closed"))


def test_a_url_whose_driver_is_missing() -> None:
    with pytest.raises(StorageError, match="nosuchscheme"):
        new_run("nosuchscheme://bucket/logs")


def test_a_relative_logdir_is_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert new_run("logs").repository == str(tmp_path / "logs" / "plugins" / "profile")
    assert RunFolder("gs://b/logs/", "r").path == "gs://b/logs/plugins/profile/r"


def files_of(logdir: str, run: str) -> dict[str, bytes]:
    """The files of a run, and what is left next to the runs."""
    fs, inner = fsspec.core.url_to_fs(logdir)
    return {
        path.rpartition("/")[2]: fs.cat_file(path)
        for path in fs.find(f"{inner}/plugins/profile")
        if run in path
    }


@pytest.mark.parametrize("error", [TypeError("mode"), ValueError("bad parameter"), OSError(22, "EINVAL")])
def test_stores_without_conditional_writes_get_names_that_nobody_else_has(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Both see no file of that name, as processes do that save at the same moment."""
    logdir = f"memory://{secrets.token_hex(4)}/logs"

    def refuse(*_: object, **__: object) -> None:
        raise error

    folder = new_run(logdir, "r")
    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "pipe_file", refuse)
    saved = [folder.save("h", [content]) for content in (b"first", b"second")]
    assert all(re.fullmatch("h_[0-9a-f]{8}", one.host) for one in saved)
    assert sorted(files_of(logdir, "r").values()) == [b"first", b"second"]


def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores report a failed condition as any kind of error."""
    logdir = f"memory://{secrets.token_hex(4)}/logs"
    folder = new_run(logdir, "r")
    store = fsspec.implementations.memory.MemoryFileSystem
    real = store.pipe_file

    def pipe_file(self: store, path: str, value: bytes, mode: str = "overwrite") -> None:  # type: ignore[valid-type]
        if mode == "create" and path.endswith("/h.xplane.pb"):
            real(self, path, b"theirs")
            raise OSError(errno.EINVAL, "PreconditionFailed")
        real(self, path, value, mode)

    monkeypatch.setattr(store, "pipe_file", pipe_file)
    assert folder.save("h", [b"ours"]).host == "h_2"
    assert files_of(logdir, "r") == {"h.xplane.pb": b"theirs", "h_2.xplane.pb": b"ours"}


def test_a_move_that_fails_leaves_no_reserved_name(monkeypatch: pytest.MonkeyPatch) -> None:
    logdir = f"memory://{secrets.token_hex(4)}/logs"
    folder = new_run(logdir, "r")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "mv", fail)
    with pytest.raises(StorageError, match="cannot be written"):
        folder.save("h", [b"x"])
    assert files_of(logdir, "r") == {}


def test_a_rename_that_fails_leaves_no_reserved_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    folder = new_run(str(tmp_path), "r")
    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StorageError, match="cannot be written"):
        folder.save("h", [b"x"])
    assert find_runs(str(tmp_path))[0].state == "empty"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_free_space_is_that_of_the_local_disks_that_receive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disks of 100 GiB: 30 GiB are free in general, 5 GiB where the cache is."""
    gib = 2**30
    asked: list[str] = []

    def usage(folder: str) -> Disk:
        assert os.path.isdir(folder)
        asked.append(folder)
        free = 5 if "cache" in folder else 30
        return Disk(100 * gib, (100 - free) * gib, free * gib)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    store = f"memory://{secrets.token_hex(4)}/logs"
    cache = str(tmp_path / "cache")
    monkeypatch.setitem(fsspec.config.conf, "simplecache", {"cache_storage": cache})
    runs = f"{tmp_path}/logs/plugins/profile"
    for logdir, free, folders in [
        (f"{tmp_path}/logs", 29, [runs]),
        (f"file://{tmp_path}/logs", 29, [runs]),
        (f"local://{tmp_path}/logs", 29, [runs]),
        (store, None, []),
        (f"simplecache::{store}", 4, [cache]),
        (f"simplecache::file://{tmp_path}/logs", 4, [cache, runs]),
    ]:
        asked.clear()
        assert new_run(logdir).free_bytes() == (free * gib if free else None)
        assert asked == folders


def test_unfinished_objects_of_killed_captures_are_removed_after_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logdir = f"memory://{secrets.token_hex(4)}/logs"
    fs, inner = fsspec.core.url_to_fs(f"{logdir}/plugins/profile")
    names = [".run.h.1.part", "kept.part", "run/h.xplane.pb"]
    for name in names:
        fs.pipe_file(f"{inner}/{name}", b"x")
    new_run(logdir)
    assert sorted(fs.find(inner)) == [f"{inner}/{name}" for name in names]
    day_s = 24 * 3600
    monkeypatch.setattr("tb_tpuprof.ingest.storage.writing.time.time", lambda: time() + day_s + 1)
    new_run(logdir)
    assert sorted(fs.find(inner)) == [f"{inner}/{name}" for name in names[1:]]
