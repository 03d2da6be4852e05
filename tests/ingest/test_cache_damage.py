"""Caches that are damaged, forged or on a full disk: the answer is right, and the bad file is gone."""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.storage import cache_folder, column_cache, result_cache
from tb_tpuprof.ingest.storage.cache_folder import is_private, trim, write_whole
from tb_tpuprof.ingest.storage.files import FileState, file_state
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.trace.references import check_references
from tb_tpuprof.trace.trace import Trace
from tests.ingest.xspaces import content, small_xspace

needs_compiled = pytest.mark.skipif(not IS_COMPILED, reason="only decoded columns are cached")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FileState, Trace]:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(small_xspace())
    return file_state(str(path)), open_trace(str(path))


def cached(tmp_path: Path, kind: str = "columns") -> Path:
    (file,) = (tmp_path / "cache" / kind).iterdir()
    return file


@needs_compiled
def test_every_damaged_byte_is_noticed(opened: tuple[FileState, Trace], tmp_path: Path) -> None:
    """Any byte changed, anywhere but in the padding: the columns are not used, and the file is removed."""
    state, trace = opened
    assert column_cache.save(state, trace)
    whole = cached(tmp_path).read_bytes()
    loaded = column_cache.load(state)
    assert loaded is not None
    assert content(loaded) == content(trace)
    rng = random.Random(3)
    n_refused = 0
    for place in rng.sample(range(len(whole)), 300):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        cached_path = tmp_path / "cache" / "columns"
        shutil.rmtree(cached_path)
        cached_path.mkdir()
        column_cache.save(state, trace)
        file = cached(tmp_path)
        file.write_bytes(damaged)
        again = column_cache.load(state)
        if again is None:
            n_refused += 1
            assert not file.exists()
        else:  # padding between two arrays
            assert content(again) == content(trace)
    assert n_refused > 150


@needs_compiled
def test_zeros_where_a_write_was_lost_are_noticed(opened: tuple[FileState, Trace], tmp_path: Path) -> None:
    state, trace = opened
    column_cache.save(state, trace)
    file = cached(tmp_path)
    whole = file.read_bytes()
    (length,) = struct.unpack("<I", whole[8:12])
    file.write_bytes(whole[: 16 + length] + bytes(len(whole) - 16 - length))
    assert column_cache.load(state) is None
    assert not file.exists()


@needs_compiled
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("events", "metadata", 10**6),
        ("events", "metadata", -2),
        ("metadata", "name", 10**6),
        ("metadata", "plane", 99),
        ("lines", "first_event", 10**9),
        ("lines", "n_events", 2**62),
        ("lines", "name", -7),
        ("event_stats", "owner", 2**30),
        ("event_stats", "key", 2**30),
        ("event_stats", "value", 2**63 - 1),
        ("strings", "offsets", 2**40),
        ("strings", "offsets", -1),
    ],
)
def test_forged_row_numbers_are_refused_though_their_checksums_are_right(
    opened: tuple[FileState, Trace], tmp_path: Path, table: str, column: str, value: int
) -> None:
    state, trace = opened
    original = trace.strings.offsets if table == "strings" else _columns(trace, table)[column]
    if not len(original):
        pytest.skip("the small XSpace has no such rows")
    forged = np.full_like(
        original, np.clip(value, np.iinfo(original.dtype).min, np.iinfo(original.dtype).max)
    )
    if table == "strings":
        trace.strings.offsets = forged
    else:
        _columns(trace, table)[column] = forged
        if column == "value":
            _columns(trace, table)["kind"] = np.full_like(_columns(trace, table)["kind"], 5)
    assert column_cache.save(state, trace)
    assert column_cache.load(state) is None


def _columns(trace: Trace, table: str) -> dict[str, np.ndarray]:
    part = getattr(trace, table)
    columns: dict[str, np.ndarray] = getattr(part, "table", part).columns
    return columns


def test_a_good_trace_passes_the_checks(opened: tuple[FileState, Trace]) -> None:
    _, trace = opened
    tables = {
        name: getattr(getattr(trace, name), "table", getattr(trace, name))
        for name in (
            "planes",
            "lines",
            "events",
            "metadata",
            "aggregates",
            "stat_names",
            "event_stats",
            "metadata_stats",
            "plane_stats",
            "line_kinds",
            "counters",
            "samples",
            "flows",
        )
    }
    check_references(tables, trace.strings)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no modes")
def test_files_that_others_can_write_are_not_used(opened: tuple[FileState, Trace], tmp_path: Path) -> None:
    state, trace = opened
    column_cache.save(state, trace)
    file = cached(tmp_path)
    assert file.stat().st_mode & 0o077 == 0
    file.chmod(0o602)
    assert column_cache.load(state) is None
    assert file.exists()
    file.parent.chmod(0o777)
    assert not column_cache.save(state, trace)


def test_files_of_another_user_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = namedtuple("facts", "st_uid st_mode")
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert is_private(facts(1000, 0o600))  # type: ignore[arg-type]
    assert is_private(facts(0, 0o644))  # type: ignore[arg-type]
    assert not is_private(facts(1001, 0o600))  # type: ignore[arg-type]
    assert not is_private(facts(1000, 0o606))  # type: ignore[arg-type]


def _disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(total, total - free, free))


@pytest.mark.parametrize(
    ("total", "free", "n_bytes", "is_written"),
    [
        (2**40, 2**31, 2**30, True),
        (2**40, 2**31, 2**30 + 1, False),
        (2**20, 2**18, 2**17, True),
        (2**20, 2**17, 2**16, False),
    ],
)
def test_the_cache_leaves_a_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, n_bytes: int, is_written: bool
) -> None:
    """A gibibyte, or a tenth of a small disk."""
    _disk(monkeypatch, total, free)
    if is_written:
        write_whole(tmp_path / "c" / "x", [b"x"], n_bytes)
        assert (tmp_path / "c" / "x").read_bytes() == b"x"
        return
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_whole(tmp_path / "c" / "x", [b"x"], n_bytes)
    assert list((tmp_path / "c").iterdir()) == []


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def parts() -> object:
        yield b"x" * 1000
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "c" / "x", parts(), 1)  # type: ignore[arg-type]
    assert list((tmp_path / "c").iterdir()) == []


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    old, young = tmp_path / "a.part", tmp_path / "b.part"
    old.write_bytes(b"x")
    young.write_bytes(b"x")
    hour_ago = time.time() - cache_folder._ABANDONED_AFTER_S - 1
    os.utime(old, (hour_ago, hour_ago))
    trim(tmp_path, 10**9)
    assert [path.name for path in tmp_path.iterdir()] == ["b.part"]


def test_damaged_results_are_removed_and_results_of_a_wrong_type_refused(
    opened: tuple[FileState, Trace], tmp_path: Path
) -> None:
    state, trace = opened
    result = summary(trace)
    result_cache.save(state, {summary: result_cache.pack(result)})
    assert result_cache.load(state, (summary,))
    file = cached(tmp_path, "results")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert result_cache.load(state, (summary,)) == {}
    assert not file.exists()
    result_cache.save(state, {summary: result_cache.pack([1, 2, 3])})
    assert result_cache.load(state, (summary,)) == {}
    assert not cached_exists(tmp_path)


def cached_exists(tmp_path: Path) -> bool:
    return any((tmp_path / "cache" / "results").iterdir())


def test_every_analysis_declares_a_type_that_can_be_checked() -> None:
    """Its results come back from the cache only if the declared type can be compared with."""
    from tb_tpuprof.session.opened_run import _COMMON_OF_SEVERAL

    for function in _COMMON_OF_SEVERAL:
        assert result_cache._declared_types(function)
        assert not result_cache.is_result_of(function, object())
