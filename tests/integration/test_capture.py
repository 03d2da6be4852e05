"""Captures from real JAX and TensorFlow servers in processes of their own: the run opens and shows the steps
that ran.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import Client

from tb_tpuprof.analysis.overview.recording import Recording, recording
from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.client import Repository, monitor_once, profile_once
from tb_tpuprof.capture.continuous import snapshot_options, start, stop
from tb_tpuprof.capture.job import TargetProgress, capture
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target, named_targets
from tb_tpuprof.errors import CaptureFailed
from tb_tpuprof.ingest.storage.writing import RunFolder, new_run
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tests.integration.servers import training

FRAMEWORKS = ("jax", "tensorflow")
OPTIONS = CaptureOptions(duration_ms=600, retry_wait_s=0.2)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=FRAMEWORKS)
def job(request: pytest.FixtureRequest) -> Iterator[Target]:
    with training(request.param) as target:
        yield target


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(str(tmp_path))


def n_steps(folder: RunFolder, host: str) -> int:
    """How many steps the overview shows for one host."""
    payload = get_tool("overview_page").run(Session(folder.path), [host], {})
    value = payload.scalars["n_steps"].value
    assert isinstance(value, int | float)
    return int(value)


def captured(
    targets: tuple[Target, ...], folder: RunFolder, options: CaptureOptions = OPTIONS
) -> tuple[TargetProgress, ...]:
    ended = capture(targets, options, folder)
    assert [(one.state, one.message) for one in ended] == [("saved", "")] * len(targets)
    return ended


def test_one_target(job: Target, folder: RunFolder) -> None:
    (one,) = captured((job,), folder)
    # A step takes some 6 ms on an idle machine; on a busy one it may be slower, but not a hundred times.
    assert 5 <= n_steps(folder, one.host) <= 600 / 5


def test_a_delay_is_kept(job: Target, folder: RunFolder) -> None:
    ended = capture((job,), CaptureOptions(duration_ms=300, delay_ms=500), folder)
    assert ended[0].state == "saved"
    assert ended[0].profiling_ms == 800


def test_an_option_makes_a_difference(job: Target, tmp_path: Path) -> None:
    """Calls of Python functions are traced when asked for, and only then: their names begin with a dollar."""
    traced = []
    for level in (0, 1):
        folder = new_run(str(tmp_path))
        (one,) = captured((job,), folder, CaptureOptions(duration_ms=400, python_tracer_level=level))
        trace = Session(folder.path).trace(one.host)
        traced.append(any(trace.strings[i].startswith("$") for i in trace.metadata["name"].tolist()))
    assert traced == [False, True]


def test_two_captures_of_one_process(job: Target, tmp_path: Path) -> None:
    """The second finds it busy, says so, waits, and gets its profile."""
    first, second = new_run(str(tmp_path)), new_run(str(tmp_path), "second")
    long = CaptureOptions(duration_ms=1500)
    told: list[str] = []
    started = threading.Event()

    def on_change(_i: int, progress: TargetProgress) -> None:
        if progress.state == "profiling":
            started.set()

    thread = threading.Thread(target=capture, args=((job,), long, first, on_change))
    thread.start()
    assert started.wait(10)
    time.sleep(0.2)
    options = CaptureOptions(duration_ms=200, num_tracing_attempts=8, retry_wait_s=0.4)
    (ended,) = capture((job,), options, second, lambda _i, progress: told.append(progress.message))
    thread.join(20)
    assert ended.state == "saved"
    assert first.file_sizes()
    assert ended.attempt > 1
    assert any("Another profile is running" in message for message in told)


def test_continuous_profiling(job: Target, tmp_path: Path) -> None:
    """Snapshots have the steps since the one before; refusals are those that the double imitates."""
    take = snapshot_options(CaptureOptions())
    (early,) = capture((job,), take, new_run(str(tmp_path), "early"))
    assert (early.state, early.reason) == ("failed", "not_continuous")
    assert [outcome.reason for outcome in stop((job,))] == ["not_continuous"]
    assert [outcome.reason for outcome in start((job,), CaptureOptions(host_tracer_level=2))] == [""]
    try:
        assert [outcome.reason for outcome in start((job,), CaptureOptions())] == ["continuous"]
        single = CaptureOptions(duration_ms=50, num_tracing_attempts=1)
        assert capture((job,), single, new_run(str(tmp_path), "single"))[0].reason == "busy"
        numbers = []
        for name in ("one", "two"):
            time.sleep(0.5)
            folder = new_run(str(tmp_path), name)
            (one,) = captured((job,), folder, take)
            trace = Session(folder.path).trace(one.host)
            numbers.append(trace.event_stats.ints("step_num").value)
        assert len(numbers[0]) >= 5
        assert len(numbers[1]) >= 5
        assert numbers[0].max() <= numbers[1].min()
    finally:
        outcomes = stop((job,))
    assert [outcome.reason for outcome in outcomes] == [""]
    captured((job,), new_run(str(tmp_path), "after"), CaptureOptions(duration_ms=200))


def test_settings_reach_the_profiler(job: Target, folder: RunFolder) -> None:
    """The trace states the options that the profiler got."""
    options = CaptureOptions(
        duration_ms=200,
        host_tracer_level=1,
        configuration=(("text", "a=b"), ("yes", True), ("no", False), ("n", -5)),
        host_traceme_filter_mask=5,
    )
    captured(named_targets((job,), ("chosen",), "p"), folder, options)
    found = recording(Session(folder.path).outline("chosen"))
    settings = (("n", "-5"), ("no", "false"), ("text", "a=b"), ("yes", "true"))
    assert found == Recording(1, 1, 0, 200, 5, settings)


def test_cancelling_frees_the_server(job: Target, tmp_path: Path) -> None:
    """A server goes on to its own end; a capture afterwards waits for it."""
    cancel = Cancellation()
    threading.Timer(0.5, cancel.set).start()
    (ended,) = capture((job,), CaptureOptions(duration_ms=1500), new_run(str(tmp_path)), None, cancel)
    assert ended.state == "cancelled"
    captured(
        (job,),
        new_run(str(tmp_path)),
        CaptureOptions(duration_ms=200, num_tracing_attempts=8, retry_wait_s=0.5),
    )


def test_a_server_writes_the_file_itself(job: Target, folder: RunFolder) -> None:
    """What older servers can only do, today's do when they are asked to."""
    reply = profile_once(job, OPTIONS, repository=Repository(folder.repository, folder.run, "worker"))
    assert not reply.pieces
    assert list(folder.file_sizes()) == ["worker"]
    assert n_steps(folder, "worker") >= 5


def test_a_processor_has_no_monitor(job: Target) -> None:
    with pytest.raises(CaptureFailed) as caught:
        monitor_once(job, 2, 100)
    assert caught.value.reason == "unimplemented"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_idle_job(framework: str, folder: RunFolder) -> None:
    with training(framework, "idle") as target:
        (ended,) = capture(
            (target,), CaptureOptions(duration_ms=200, num_tracing_attempts=2, retry_wait_s=0.1), folder
        )
    assert (ended.state, ended.reason, ended.attempt) == ("failed", "empty", 2)


def test_three_targets_of_both_frameworks_become_one_run(tmp_path: Path) -> None:
    """Through the routes, as the page does it."""
    with training("jax") as a, training("tensorflow") as b, training("jax") as c:
        routes = Routes(Logdirs.of(str(tmp_path), ""), "profile")
        apps = routes.apps()
        token = json.loads(Client(apps["/capture"]).get("/capture").data)["token"]
        body = {"targets": f"{a},grpc://{b},{c}", "options": {"duration_ms": 600}}
        started = Client(apps["/capture"]).post("/capture", json=body, headers={"X-Tpuprof-Token": token})
        capture_id = json.loads(started.data)["capture"]
        assert routes.capture.captures.get(capture_id).wait(60)
    told = json.loads(
        Client(apps["/capture/status"]).get("/capture/status", query_string={"capture": capture_id}).data
    )
    assert (told["state"], told["message"]) == ("done", "")
    (run,) = json.loads(Client(apps["/runs"]).get("/runs").data)["runs"]
    assert (run["run"], run["n_hosts"]) == (told["run"], 3)
    folder = RunFolder(str(tmp_path), told["run"])
    for target in told["targets"]:
        assert n_steps(folder, target["host"]) >= 5
