"""TensorBoard's folders: named and unnamed ones, and the run behind a name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb_tpuprof.errors import RunNotFound
from tb_tpuprof.serve.logdirs import Logdirs
from tests.synthetic_devices import kernels_xspace


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ("", ()),
        ("a:/x", (("a", "/x"),)),
        ("a:/x, b:y ,,/z", (("a", "/x"), ("b", "y"), ("", "/z"))),
        ("gs://bucket/x", (("", "gs://bucket/x"),)),
        ("a:gs://bucket/x", (("a", "gs://bucket/x"),)),
        ("/x/y:z", (("", "/x/y:z"),)),
        ("relative", (("", "relative"),)),
    ],
)
def test_folders_of_the_spec(spec: str, paths: tuple[tuple[str, str], ...]) -> None:
    assert Logdirs.of("", spec).paths == paths


def test_the_logdir_comes_before_the_spec() -> None:
    assert Logdirs.of("/x", "a:/y").paths == (("", "/x"),)


@pytest.fixture
def logs(tmp_path: Path) -> Logdirs:
    """Two named folders and one without a name; both named ones have a run `same`."""
    data = kernels_xspace(host="h")
    for folder, run in (("one", "same"), ("two", "same"), ("two", "other"), ("plain", "third")):
        path = tmp_path / folder / "plugins" / "profile" / run
        path.mkdir(parents=True)
        (path / "h.xplane.pb").write_bytes(data)
    spec = ",".join((f"a:{tmp_path / 'one'}", f"b:{tmp_path / 'two'}", str(tmp_path / "plain")))
    return Logdirs.of("", spec)


def test_runs_are_named_after_their_folder(logs: Logdirs) -> None:
    assert sorted(run.name for run in logs.runs()) == ["a/same", "b/other", "b/same", "third"]
    for name, folder in (("a/same", "one"), ("b/same", "two"), ("b/other", "two"), ("third", "plain")):
        run = logs.run(name)
        assert run.name == name
        assert f"/{folder}/" in Path(run.path).as_posix()


def test_newest_runs_come_first(tmp_path: Path) -> None:
    data = kernels_xspace(host="h")
    for run, time_s in (("b", 2_000_000), ("c", 1_000_000), ("a", 3_000_000)):
        path = tmp_path / "plugins" / "profile" / run
        path.mkdir(parents=True)
        (path / "h.xplane.pb").write_bytes(data)
        for touched in (path / "h.xplane.pb", path):
            os.utime(touched, (time_s, time_s))
    assert [run.name for run in Logdirs.of(str(tmp_path), "").runs()] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["same", "a/other", "c/same", "a", "b/third", "/third", ""])
def test_other_names_have_no_run(logs: Logdirs, name: str) -> None:
    with pytest.raises(RunNotFound):
        logs.run(name)


def test_without_folders_there_is_no_run() -> None:
    assert Logdirs.of("", "").runs() == []
    with pytest.raises(RunNotFound):
        Logdirs.of("", "").run("x")
