"""Finding runs, reading files from disk and from fsspec, and the column cache."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import fsspec
import pytest

from tb_tpuprof.errors import RunNotFound, StorageError, TraceFormatError
from tb_tpuprof.ingest import open_trace
from tb_tpuprof.ingest.storage import column_cache
from tb_tpuprof.ingest.storage.cache_folder import trim
from tb_tpuprof.ingest.storage.files import file_state, read_file
from tb_tpuprof.ingest.storage.runs import find_run, find_runs, has_runs, open_run
from tb_tpuprof.native import IS_COMPILED
from tb_tpuprof.parallel.policy import POLICY
from tests.ingest.xspaces import content, small_xspace


def make_run(logdir: Path, name: str, *files: str, data: bytes = b"") -> Path:
    """A run's folder with files of that content."""
    above, _, session = name.rpartition("/")
    folder = logdir / above / "plugins" / "profile" / session
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_bytes(data or small_xspace())
    return folder


def test_runs_are_found_in_nested_logdirs_newest_first(tmp_path: Path) -> None:
    make_run(tmp_path, "2024_01_02_03_04_05", "h.xplane.pb")
    make_run(tmp_path, "a/b/train/2025_01_02_03_04_05", "h.xplane.pb", "h2.xplane.pb.gz", "notes.txt")
    runs = find_runs(str(tmp_path))
    assert [run.name for run in runs] == ["a/b/train/2025_01_02_03_04_05", "2024_01_02_03_04_05"]
    assert [file.host for file in runs[0].files] == ["h", "h2"]
    assert runs[0].captured_at == "2025-01-02T03:04:05"
    assert all(run.state == "ok" for run in runs)
    assert has_runs(str(tmp_path))


def test_legacy_and_empty_runs_are_listed_with_a_message(tmp_path: Path) -> None:
    make_run(tmp_path, "old", "h.overview_page.json")
    make_run(tmp_path, "nothing", "notes.txt")
    found = {run.name: run for run in find_runs(str(tmp_path))}
    assert found["old"].state == "legacy"
    assert "an older profiler saved" in found["old"].message
    assert found["nothing"].state == "empty"
    assert found["nothing"].message


def test_a_host_without_a_name_and_natural_order(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "r", ".xplane.pb", "w-10.xplane.pb", "w-9.xplane.pb")
    assert [file.host for file in open_run(str(folder)).files] == ["(no name)", "w-9", "w-10"]


@pytest.mark.parametrize("name", ["../../etc", "..", "/etc", "a/../b", "", "a//b", "a\0b", "a\\b", "."])
def test_a_runs_name_cannot_lead_out_of_the_logdir(tmp_path: Path, name: str) -> None:
    make_run(tmp_path, "a/r", "h.xplane.pb")
    with pytest.raises(RunNotFound):
        find_run(str(tmp_path), name)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    make_run(tmp_path, "x/r", "h.xplane.pb")
    (tmp_path / "x" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(find_runs(str(tmp_path))) == 1


def test_a_logdir_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    assert find_runs(str(tmp_path / "none")) == []
    assert not has_runs(str(tmp_path / "none"))
    with pytest.raises(StorageError):
        open_run(str(tmp_path / "none"))


def test_a_thousand_runs_are_listed_quickly(tmp_path: Path) -> None:
    for i in range(1000):
        make_run(tmp_path, f"group{i % 10}/run_{i}", "h.xplane.pb", data=b"x")
    started = time.perf_counter()
    assert len(find_runs(str(tmp_path))) == 1000
    assert time.perf_counter() - started < 2


def test_gzip_and_urls_read_as_the_plain_file_does(tmp_path: Path) -> None:
    plain = tmp_path / "h.xplane.pb"
    plain.write_bytes(small_xspace())
    packed = tmp_path / "h.xplane.pb.gz"
    packed.write_bytes(gzip.compress(small_xspace()))
    memory = fsspec.filesystem("memory")
    memory.pipe("/logs/plugins/profile/r/h.xplane.pb", small_xspace())
    expected = {k: v for k, v in content(open_trace(str(plain))).items() if k != "info"}
    for path in (str(packed), "memory://logs/plugins/profile/r/h.xplane.pb"):
        assert {k: v for k, v in content(open_trace(path)).items() if k != "info"} == expected


def test_runs_are_found_behind_a_url() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/deep/train/plugins/profile/2025_01_02_03_04_05/h.xplane.pb", small_xspace())
    run = find_run("memory://deep", "train/2025_01_02_03_04_05")
    assert [file.host for file in run.files] == ["h"]
    assert [found.name for found in find_runs("memory://deep")] == [run.name]
    assert open_run(run.path).files[0].host == "h"


@pytest.mark.skipif(not IS_COMPILED, reason="only natively decoded traces are cached")
def test_the_cache_gives_back_the_same_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(small_xspace())
    state = file_state(str(path))
    trace = open_trace(str(path))
    assert column_cache.load(state) is None
    assert column_cache.save(state, trace)
    loaded = column_cache.load(state)
    assert loaded is not None
    assert content(loaded) == content(trace)


@pytest.mark.skipif(not IS_COMPILED, reason="only natively decoded traces are cached")
def test_a_damaged_or_stale_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(small_xspace())
    state = file_state(str(path))
    column_cache.save(state, open_trace(str(path)))
    (file,) = (tmp_path / "cache" / "columns").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[: len(whole) // 2], b"X" * len(whole)):
        file.write_bytes(damaged)
        assert column_cache.load(state) is None
    file.write_bytes(whole)
    os.utime(path, ns=(1, 1))
    assert column_cache.load(file_state(str(path))) is None


def test_the_cache_is_kept_within_its_limit(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.tpc").write_bytes(bytes(100))
        os.utime(tmp_path / f"{i}.tpc", (1000 + i, 1000 + i))
    trim(tmp_path, 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.tpc", "4.tpc"]


def test_an_unwritable_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(blocked))
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(small_xspace())
    assert not column_cache.save(file_state(str(path)), open_trace(str(path)))


def test_a_large_file_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(os.urandom(100_003))
    monkeypatch.setattr(POLICY, "min_parallel_read_bytes", 1000)
    data, was_packed = read_file(str(path))
    assert data.tobytes() == path.read_bytes()
    assert not was_packed


@pytest.mark.slow
@pytest.mark.parametrize("start", [b"[", b"\x0a"])
def test_what_is_packed_to_fill_the_memory_is_refused_early(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "h.trace.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(start)
        for _ in range(20):
            file.write(b" " * 2**24)
    assert path.stat().st_size < 400_000
    with pytest.raises(TraceFormatError, match="250 times its size") as caught:
        open_trace(str(path))
    assert "gunzip" in caught.value.remedy


def test_unpacked_sizes_are_limited_and_json_more_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.ingest.storage.files._CHUNK", 1000)
    monkeypatch.setattr("tb_tpuprof.ingest.storage.files.MAX_UNPACKED_JSON_BYTES", 5_000)
    data = b"[" + os.urandom(9_000)
    path = tmp_path / "h.trace.json.gz"
    path.write_bytes(gzip.compress(data))
    with pytest.raises(TraceFormatError, match="unpacks to more than"):
        read_file(str(path))
    path.write_bytes(gzip.compress(b"\x0a" + data))
    assert read_file(str(path))[0].tobytes() == b"\x0a" + data


def test_an_xplane_counts_before_json_of_the_same_host(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "r", "w.xplane.pb")
    for name in (
        "w.trace.json",
        "w.trace.json.gz",
        "v.trace.json.gz",
        "v.xplane.pb.gz",
        "u.trace.json",
        "u.trace.json.gz",
        "w.pt.trace.json",
    ):
        (folder / name).write_bytes(b"[]")
    files = {file.host: os.path.basename(file.path) for file in open_run(str(folder)).files}
    assert files == {"w": "w.xplane.pb", "v": "v.xplane.pb.gz", "u": "u.trace.json"}


def test_captures_of_one_pytorch_worker_at_several_times_are_hosts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("w0.1700000000000", "w0.1700000005000", "w1.1700000000000"):
        (folder / f"{name}.pt.trace.json").write_bytes(
            b'[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]'
        )
    (run,) = find_runs(str(tmp_path))
    assert [file.host for file in run.files] == ["w0.1700000000000", "w0.1700000005000", "w1"]
    assert run.captured_at == "2023-11-14T22:13:25"
    assert open_trace(run.files[0].path).n_events == 1


def test_a_thousand_folders_of_pytorch_are_listed_quickly(tmp_path: Path) -> None:
    for i in range(1000):
        folder = tmp_path / f"group{i % 10}" / f"run_{i}"
        folder.mkdir(parents=True)
        (folder / f"w.{1_700_000_000_000 + i}.pt.trace.json").write_bytes(b"x")
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        assert len(find_runs(str(tmp_path))) == 1000
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.5


def test_a_flat_folder_is_a_run(tmp_path: Path) -> None:
    """As a logdir itself and below one; its name is stable and opens it."""
    flat = tmp_path / "copied"
    for place, name in ((flat, "copied"), (flat / "deep" / "er", "deep/er")):
        place.mkdir(parents=True)
        (place / "h.xplane.pb").write_bytes(small_xspace())
        found = {run.name: run for run in find_runs(str(flat))}
        assert set(found) == ({"copied"} if place == flat else {"copied", "deep/er"})
        assert [file.host for file in found[name].files] == ["h"]
        assert find_run(str(flat), name) == found[name]
        assert has_runs(str(flat))
    assert find_run(str(tmp_path), "copied/deep/er").path == str(flat / "deep" / "er")
    assert find_run(str(tmp_path), "copied").path == str(flat)


@pytest.mark.parametrize(
    ("name", "is_run"),
    [
        ("h.xplane.pb", True),
        ("h.xplane.pb.gz", True),
        ("h.xspace.pb", True),
        ("h.trace.json", True),
        ("h.trace.json.gz", True),
        ("perfetto_trace.json.gz", False),
        ("h.SSTABLE", True),
        ("h.tracetable", True),
        ("h.metadata.SSTABLE", False),
        ("h.trie.SSTABLE", False),
        ("config.json", False),
        ("strace.trace", False),
        ("saved_model.pb", False),
    ],
)
def test_only_names_of_traces_make_a_run_of_any_folder(tmp_path: Path, name: str, is_run: bool) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / name).write_bytes(small_xspace())
    assert [run.name for run in find_runs(str(tmp_path))] == (["some"] if is_run else [])
    if not is_run:
        with pytest.raises(RunNotFound):
            find_run(str(tmp_path), "some")


def test_a_runs_own_folder_is_a_logdir_too(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "train/2025_01_02_03_04_05", "h.xplane.pb", "g.xplane.pb")
    for logdir in (folder, folder.parent, folder.parents[1]):
        (run,) = find_runs(str(logdir))
        assert (run.name, [file.host for file in run.files]) == ("2025_01_02_03_04_05", ["g", "h"])
        assert find_run(str(logdir), run.name) == run
    empty = make_run(tmp_path, "nothing", "notes.txt")
    (run,) = find_runs(str(empty))
    assert (run.name, run.state) == ("nothing", "empty")
    assert find_run(str(empty), "nothing") == run


def test_files_directly_in_plugins_profile_are_a_run(tmp_path: Path) -> None:
    make_run(tmp_path, "r", "h.xplane.pb")
    (tmp_path / "plugins" / "profile" / "k.xplane.pb").write_bytes(small_xspace())
    found = {run.name: [file.host for file in run.files] for run in find_runs(str(tmp_path))}
    assert found == {"r": ["h"], "plugins/profile": ["k"]}
    assert [file.host for file in find_run(str(tmp_path), "plugins/profile").files] == ["k"]


@pytest.mark.parametrize(
    ("files", "opened"),
    [
        (("h.SSTABLE",), ["h.SSTABLE"]),
        (("h.tracetable",), ["h.tracetable"]),
        (("h.SSTABLE", "h.metadata.SSTABLE", "h.trie.SSTABLE"), ["h.SSTABLE"]),
        (("h.xplane.pb", "h.SSTABLE", "h.trace.json.gz"), ["h.xplane.pb"]),
        (("h.xplane.pb", "ALL_HOSTS.SSTABLE"), ["h.xplane.pb"]),
        (("ALL_HOSTS.SSTABLE",), ["ALL_HOSTS.SSTABLE"]),
        (("g.xplane.pb", "h.SSTABLE"), ["g.xplane.pb", "h.SSTABLE"]),
        (("h.trace.json.gz", "h.SSTABLE", "h.trace"), ["h.trace.json.gz"]),
        (("h.trace", "h.tracetable"), ["h.trace"]),
        (("h.xspace.pb", "h.xplane.pb"), ["h.xplane.pb"]),
        (("x.json",), ["x.json"]),
        (("x.json.gz", "perfetto_trace.json.gz"), ["perfetto_trace.json.gz"]),
        (("x.json", "h.xplane.pb"), ["h.xplane.pb"]),
        (("x.json", "jit_f(1).hlo_proto.pb"), ["jit_f(1).hlo_proto.pb"]),
        (("h.SSTABLE", "jit_f(1).hlo_proto.pb"), ["h.SSTABLE"]),
        (("x.json", "h.overview_page.json"), ["h.overview_page.json"]),
        (("h.memory_viewer.json",), []),
        ((".cached_tools.json",), []),
    ],
)
def test_the_best_file_of_each_host_is_opened(
    tmp_path: Path, files: tuple[str, ...], opened: list[str]
) -> None:
    make_run(tmp_path, "r", *files)
    (run,) = find_runs(str(tmp_path))
    assert [os.path.basename(file.path) for file in run.files] == opened


def test_flat_folders_behind_a_url() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/flat/one/h.xplane.pb", small_xspace())
    memory.pipe("/flat/one/notes.txt", b"x")
    memory.pipe("/flat/two/config.json", b"{}")
    assert [run.name for run in find_runs("memory://flat")] == ["one"]
    assert [file.host for file in find_run("memory://flat", "one").files] == ["h"]


def test_listing_runs_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path, "r", "h.xplane.pb", "h.SSTABLE", "x.json", "h.overview_page.json")
    make_run(tmp_path, "pages", "h.overview_page.json", "h.pod_viewer.json")
    make_run(tmp_path, "table", "h.SSTABLE")
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "h.xplane.pb").write_bytes(small_xspace())

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", refuse)
    assert len(find_runs(str(tmp_path))) == 4
