"""Results of analyses on disk: what travels, what is refused, and when a kept result counts."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.inference.work import Part
from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.analysis.pod.topology import PlacedBy
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import BadParameter, CaptureFailed, ExecutorFailed, HostsUnreadable, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import result_cache
from tb_tpuprof.ingest.storage.files import file_state
from tb_tpuprof.parallel.executors import check_name, host_executor, one_request
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.session import Session
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.opened_run import opened_run
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.why import explained_hosts
from tests.synthetic import TpuJob, tpu_hosts, write_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Twenty hosts, of which one is slower, and a cache of its own."""
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    return write_run(tmp_path / "run", tpu_hosts(TpuJob(), tuple(1.3 if i == 7 else 1.0 for i in range(20))))


def overview(run: Path, **options: object) -> bytes:
    return encode_json(get_tool("overview_page").run(Session(str(run), **options), None, {}))  # type: ignore[arg-type]


def test_a_result_comes_back_as_it_was(run: Path) -> None:
    session = Session(str(run), cache=False)
    for function in (summary, hardware):
        result = session.get(function, session.hosts[0])  # type: ignore[arg-type]
        packed = result_cache.pack(result)
        assert packed
        with np.printoptions(threshold=10**6):
            assert repr(result_cache.unpack(packed)) == repr(result)


def test_traces_and_strangers_do_not_travel(run: Path) -> None:
    trace = Session(str(run), cache=False).trace(next(iter(Session(str(run)).hosts)))
    assert result_cache.pack((1, trace)) is None
    assert result_cache.pack({"path": Path("x")}) is None
    assert result_cache.pack(lambda: 1) is None
    assert result_cache.pack(np.zeros(result_cache.MAX_RESULT_BYTES + 1, np.uint8)) is None
    assert not result_cache.travels(lambda trace: trace)
    assert result_cache.travels(summary)


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("echo broken into",)


EVIL = pickle.dumps(Evil())


@pytest.mark.parametrize("what", [Evil(), eval, os.path.join, Path("x"), Session])
def test_a_pickle_that_names_anything_else_is_refused(what: object) -> None:
    with pytest.raises((pickle.UnpicklingError, AttributeError)):
        result_cache.unpack(pickle.dumps(what))


@pytest.mark.parametrize("member", [Cause.INPUT, Part.DEVICE, PlacedBy.NUMBERS])
def test_members_of_enumerations_are_packed_by_value(member: Enum, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this version of Python does: 3.11.2 reduces them to a call of `getattr`."""

    def reduced(self: Enum, _protocol: int) -> tuple[object, tuple[object, ...]]:
        return getattr, (type(self), self.name)

    monkeypatch.setattr(type(member), "__reduce_ex__", reduced)
    packed = result_cache.pack((member, [member]))
    assert packed is not None
    assert b"getattr" not in packed
    assert result_cache.unpack(packed) == (member, [member])
    assert result_cache.unpack(packed)[0] is member


def test_a_second_process_reads_no_trace(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = overview(run)
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", None)
    assert overview(run) == first
    with pytest.raises(TypeError):
        overview(run, cache=False, executor="threads")


def test_what_every_page_asks_for_lies_in_one_file_of_each_host(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overview(run)
    session = Session(str(run))
    n_explained = len(explained_hosts(session, session.hosts))
    assert len(list((tmp_path / "cache" / "results").iterdir())) == 3 * 20 + n_explained, (
        "the overview's own, communication, the one that all share, and those of the diagnosis"
    )
    opened: list[str] = []

    def counted(path: str, mode: str) -> object:
        opened.append(path)
        return open(path, mode)

    monkeypatch.setattr(result_cache, "open", counted, raising=False)
    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", None)
    overview(run)
    session = Session(str(run))
    session.map(hardware, session.hosts)
    session.map(clock_marks, session.hosts)
    assert len(opened) == 4 * 20 + n_explained


@pytest.mark.parametrize("tool", ["overview_page", "pod_viewer", "input_pipeline_analyzer"])
def test_each_host_of_many_is_read_once_for_a_page(
    run: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces of many hosts are not kept: a page that asks for clocks, notices and its own must have them of
    one reading.
    """
    opened: list[str] = []

    def counted(path: str, *more: object) -> object:
        opened.append(path)
        return open_trace(path, *more)  # type: ignore[arg-type]

    monkeypatch.setattr("tb_tpuprof.session.host_store.open_trace", counted)
    get_tool(tool).run(Session(str(run), cache=False, executor="threads"), None, {}, waits=False)
    again = len(opened) - len(set(opened))
    assert len(set(opened)) == 20
    assert again <= (4 if tool == "overview_page" else 0), (
        "the diagnosis reads the slowest again, which are known only then"
    )


def test_a_kept_result_counts_until_file_code_or_settings_change(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    overview(run)
    path = str(sorted(run.iterdir())[0])
    assert result_cache.load(file_state(path), (summary,))
    monkeypatch.setattr(result_cache, "code_fingerprint", lambda: "another version")
    assert not result_cache.load(file_state(path), (summary,))
    monkeypatch.undo()
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    assert result_cache.load(file_state(path), (summary,))
    (tmp_path / "peaks.json").write_text('{"TPU v5 lite": {"flops_per_s": 1}}')
    monkeypatch.setenv("TPUPROF_PEAKS", str(tmp_path / "peaks.json"))
    assert not result_cache.load(file_state(path), (summary,))
    monkeypatch.delenv("TPUPROF_PEAKS")
    os.utime(path, ns=(5, 5))
    assert not result_cache.load(file_state(path), (summary,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"TPURSLT\x02",
        b"TPURSLT\x02" + struct.pack("<I", len(EVIL)) + EVIL,
        b"TPURSLT\x02\xff\0\0\0",
        b"\xff" * 99,
    ],
)
def test_a_damaged_file_is_computed_again(run: Path, tmp_path: Path, damage: bytes) -> None:
    first = overview(run)
    for file in (tmp_path / "cache" / "results").iterdir():
        file.write_bytes(damage)
    assert overview(run) == first


def test_a_folder_that_cannot_be_written_is_no_error(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert overview(run)


def test_no_cache_writes_nothing(run: Path, tmp_path: Path) -> None:
    overview(run, cache=False)
    assert not (tmp_path / "cache").exists()


def test_processes_answer_the_same(run: Path) -> None:
    (run / "bad.xplane.pb").write_bytes(b"\xff" * 99)
    assert overview(run, cache=False, executor="processes") == overview(run, cache=False)


def test_of_many_hosts_no_trace_is_kept(run: Path) -> None:
    session = Session(str(run), cache=False)
    session.map(summary, session.hosts)
    assert session.size_bytes == 0
    session.map(summary, session.hosts[:3])
    assert session.size_bytes == 0, "their results are there"
    assert session.trace(session.hosts[0])
    assert session.size_bytes > 0


@pytest.mark.parametrize("name", ["dask", "dask://", "threads:4", "rm -rf"])
def test_unknown_executors_are_refused(name: str, run: Path) -> None:
    with pytest.raises(BadParameter, match="executor"):
        check_name(name)
    with pytest.raises(BadParameter, match="executor"):
        Session(str(run), executor=name)


def test_the_executor_is_what_was_said_else_what_the_environment_says_else_auto(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPUPROF_EXECUTOR", raising=False)
    assert executor_of(run) == "auto"
    monkeypatch.setenv("TPUPROF_EXECUTOR", "threads")
    assert executor_of(run) == "threads"
    assert executor_of(run, "processes") == "processes"


def executor_of(run: Path, asked: str = "") -> str:
    """The name of the executor on which a session's analyses run."""
    return opened_run(str(run), cache=False, name="", memory=Memory(), executor=asked).runner.executor


def test_auto_takes_processes_for_many_hosts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICY, "n_processors", lambda: 4)
    for n_hosts, is_far in ((2, False), (16, False), (17, True)):
        with host_executor("auto", n_hosts) as executor:
            assert executor.is_remote is is_far
    monkeypatch.setattr(POLICY, "n_processors", lambda: 1)
    with host_executor("auto", 99) as executor:
        assert not executor.is_remote


def test_a_request_about_many_hosts_starts_its_processes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it reads some of its hosts again. They end with it."""
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)
    with one_request(17):
        pools = []
        for n_hosts in (17, 4, 2):
            with host_executor("auto", n_hosts) as executor:
                assert executor.is_remote
                pools.append(executor.calls)
        assert pools[0] is pools[1] is pools[2]
        calls = [pools[0].submit(os.getpid) for _ in range(8)]
        processes = {call.result() for call in calls} - {os.getpid()}
        with ThreadPoolExecutor(1) as other, host_executor("auto", 4) as executor:  # of the same request only
            assert not other.submit(is_remote, 4).result()
    assert len(processes) == 1
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert not is_remote(4)
    with one_request(16):
        assert not is_remote(4)


def is_remote(n_hosts: int) -> bool:
    """Whether so many hosts are analyzed in other processes, as far as this thread knows."""
    with host_executor("auto", n_hosts) as executor:
        return executor.is_remote


def test_processes_that_die_are_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POLICY, "n_processors", lambda: 2)

    def die() -> None:
        with host_executor("processes", 4) as executor:
            assert executor.is_remote
            for done in [executor.calls.submit(end_another, os.getpid()) for _ in range(4)]:
                done.result()

    with pytest.raises(
        ExecutorFailed, match="Two processes that analyzed it ended: a process has ended with the exit code 3"
    ) as caught:
        die()
    assert "Memory may be short" in caught.value.remedy


def end_another(process: int) -> None:
    """End the process that calls, unless it is the one of the tests; that one waits until another has had a
    call.
    """
    if os.getpid() != process:
        os._exit(3)
    time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["processes", "auto"])
def test_a_script_needs_no_guard(run: Path, tmp_path: Path, asked: str) -> None:
    """The processes do not import what starts them: a script that asks without `if __name__ == "__main__":`
    does it once.
    """
    script = tmp_path / "script.py"
    ask = (
        f"print(len(get_tool('overview_page').run(Session({str(run)!r}, cache=False, executor={asked!r}), "
        f"None, {{}}).hosts))"
    )
    script.write_text(
        f"from tb_tpuprof.session import Session\nfrom tb_tpuprof.tools import get_tool\n{ask}\n"
    )
    paths = os.pathsep.join([str(Path(result_cache.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("20\n", "", 0)


@pytest.mark.parametrize(
    "error",
    [
        TraceFormatError("f", 7, "is bad"),
        CaptureFailed("t", "refused", "no"),
        HostsUnreadable({"h": ExecutorFailed("x", "y")}),
    ],
)
def test_errors_travel(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert repr(sorted(again.__dict__)) == repr(sorted(error.__dict__))
