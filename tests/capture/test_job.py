"""Captures from a local double: good ones, and every fault it can be told to have."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.job import TargetProgress, capture, waiting_s
from tb_tpuprof.capture.messages import NEW_SESSION, message_class
from tb_tpuprof.capture.options import MAX_WAIT_S, CaptureOptions
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.ingest.storage.runs import find_runs
from tb_tpuprof.ingest.storage.writing import RunFolder, new_run
from tests.capture.double import (
    cut_after,
    empty,
    free_target,
    good,
    hanging,
    raw,
    reply,
    serving,
    status,
    writing,
)
from tests.ingest.xspaces import small_xspace

Code = grpc.StatusCode
QUICK = CaptureOptions(duration_ms=50, retry_wait_s=0.05, timeout_s=10)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 3
    while set(threading.enumerate()) - before and time.monotonic() < until:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - before


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(str(tmp_path / "logs"))


def states(
    folder: RunFolder, target: Target, options: CaptureOptions = QUICK
) -> tuple[list[str], TargetProgress]:
    """The states that one target goes through, and where it ends."""
    seen: list[str] = []
    (ended,) = capture((target,), options, folder, lambda _i, progress: seen.append(progress.state))
    assert ended.state in ("saved", "failed", "cancelled")
    assert bool(ended.message and ended.remedy) == (ended.state == "failed")
    parts = [path for path in Path(folder.repository).iterdir() if path.name.startswith(".")]
    assert not parts, "a part of a file was left"
    return seen, ended


def content(folder: RunFolder, host: str) -> bytes:
    return (Path(folder.path) / f"{host}.xplane.pb").read_bytes()


def test_one_target(folder: RunFolder) -> None:
    with serving(good(0.05)) as (target, double):
        seen, ended = states(folder, target)
    assert list(dict.fromkeys(seen)) == ["connecting", "profiling", "receiving", "saved"]
    assert content(folder, ended.host) == small_xspace()
    assert ended.host == f"127.0.0.1_{target.port}"
    assert ended.size_bytes == ended.received_bytes == len(small_xspace())
    (run,) = find_runs(folder.logdir)
    assert (run.name, [file.host for file in run.files]) == (folder.run, [ended.host])
    assert re.fullmatch(r"\d{4}(_\d\d){5}", folder.run)
    assert not double.requests[0].opts.start_timestamp_ns


def test_every_option_reaches_the_server(folder: RunFolder) -> None:
    options = CaptureOptions(
        duration_ms=70,
        delay_ms=300,
        host_tracer_level=3,
        device_tracer_level=0,
        python_tracer_level=1,
        include_dataset_ops=False,
    )
    with serving(good()) as (target, double):
        begun_ns = time.time_ns()
        capture((target,), options, folder)
        (request,) = double.requests
    assert (request.duration_ms, request.emit_xspace, request.repository_root) == (70, True, "")
    opts = request.opts
    assert (
        opts.host_tracer_level,
        opts.device_tracer_level,
        opts.python_tracer_level,
        opts.include_dataset_ops,
    ) == (3, 0, 1, False)
    assert (opts.version, opts.duration_ms) == (1, 70)
    assert 300 <= (opts.start_timestamp_ns - begun_ns) / 1e6 < 1300


def test_levels_of_zero_are_sent_as_such(folder: RunFolder) -> None:
    with serving(good()) as (target, double):
        capture((target,), CaptureOptions(duration_ms=10, host_tracer_level=0, device_tracer_level=0), folder)
    assert double.requests[0].opts.version == 1  # without a version, servers take their own defaults
    assert (double.requests[0].opts.host_tracer_level, double.requests[0].opts.device_tracer_level) == (0, 0)


def test_many_targets_begin_together_and_one_failure_loses_no_other(folder: RunFolder) -> None:
    with (
        serving(good(0.2)) as (a, one),
        serving(good(0.1)) as (b, two),
        serving(status(Code.INTERNAL, "boom")) as (bad, _),
    ):
        ended = capture(
            (a, bad, b, free_target()),
            CaptureOptions(duration_ms=50, num_tracing_attempts=1, delay_ms=200),
            folder,
        )
    assert [progress.state for progress in ended] == ["saved", "failed", "saved", "failed"]
    assert [progress.reason for progress in ended] == ["", "failed", "", "refused"]
    assert "boom" in ended[1].message
    assert set(folder.file_sizes()) == {ended[0].host, ended[2].host}
    assert one.requests[0].opts.start_timestamp_ns == two.requests[0].opts.start_timestamp_ns > 0
    assert abs(one.times[0] - two.times[0]) < 0.5


FAULTS = {
    "already exists": (status(Code.ALREADY_EXISTS, "Another profiler is active"), "busy"),
    "session active": (status(Code.INTERNAL, "Another profiling session active."), "busy"),
    "unavailable": (status(Code.UNAVAILABLE, "try later"), "unreachable"),
    "stream removed": (status(Code.UNKNOWN, "Stream removed"), "interrupted"),
    "exhausted": (status(Code.RESOURCE_EXHAUSTED, "out of memory"), "overloaded"),
    "empty": (empty(), "empty"),
    "without events": (raw(reply(b"\x0a\x07\x12\x05/host")), "empty"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_passing_faults_are_tried_again(folder: RunFolder, name: str) -> None:
    fault, reason = FAULTS[name]
    reasons: list[str] = []
    with serving(fault, fault, good()) as (target, double):
        (ended,) = capture((target,), QUICK, folder, lambda _i, progress: reasons.append(progress.reason))
    assert ended.state == "saved"
    assert ended.attempt == 3
    assert [found for found in reasons if found] == [reason, reason]
    gaps = [later - earlier for earlier, later in zip(double.times, double.times[1:], strict=False)]
    assert gaps[0] >= 0.05 * 0.75
    assert gaps[1] >= 0.1 * 0.75


@pytest.mark.parametrize("name", FAULTS)
def test_lasting_faults_fail_in_words(folder: RunFolder, name: str) -> None:
    fault, reason = FAULTS[name]
    with serving(fault) as (target, double):
        _, ended = states(folder, target)
    assert (ended.state, ended.reason, len(double.requests)) == ("failed", reason, 3)
    assert str(target) in ended.message
    assert find_runs(folder.logdir) == []


HOPELESS = {
    "denied": (status(Code.PERMISSION_DENIED, "no"), "denied"),
    "internal": (status(Code.INTERNAL, "boom"), "failed"),
    "garbage": (raw(b"\xff" * 100), "garbage"),
    "cut off": (raw(reply(small_xspace())[:-5]), "garbage"),
    "garbage within": (raw(reply(b"\x0a\xff\xff\xff\xff\x07hello")), "garbage"),
    "group": (raw(b"\x0b\x0c"), "garbage"),
    "many fields": (raw(b"\x38\x00" * 20_000), "garbage"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_faults_are_not_tried_again(folder: RunFolder, name: str) -> None:
    fault, reason = HOPELESS[name]
    with serving(fault, good()) as (target, double):
        _, ended = states(folder, target)
    assert (ended.state, ended.reason, len(double.requests)) == ("failed", reason, 1)
    assert find_runs(folder.logdir) == []


def test_a_server_without_the_service(folder: RunFolder) -> None:
    with serving(methods={"/other.Service/Do": ()}) as (target, _):
        _, ended = states(folder, target)
    assert ended.reason == "unimplemented"
    assert "no profiler service" in ended.message


def test_a_web_server(folder: RunFolder) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        seen, ended = states(folder, Target("127.0.0.1", server.server_port))
        server.shutdown()
        thread.join(5)
    assert (ended.reason, seen) == ("unimplemented", ["connecting", "failed"])
    assert "no profiler service" in ended.message


def test_nobody_listens(folder: RunFolder) -> None:
    seen, ended = states(folder, free_target())
    assert seen == ["connecting", "retrying", "connecting", "retrying", "connecting", "failed"]
    assert ended.reason == "refused"
    assert "start_server" in ended.remedy


def test_no_such_host(folder: RunFolder) -> None:
    _, ended = states(folder, Target("no-such-host.invalid", 6009))
    assert ended.reason in ("dns", "unreachable")
    assert "no-such-host.invalid" in ended.message


def test_a_server_that_starts_meanwhile(folder: RunFolder) -> None:
    target = free_target()
    options = CaptureOptions(duration_ms=10, retry_wait_s=0.3, num_tracing_attempts=5)
    ended: list[TargetProgress] = []
    thread = threading.Thread(target=lambda: ended.extend(capture((target,), options, folder)))
    thread.start()
    time.sleep(0.2)
    with serving(good()) as (real, _), cut_after(real, 2**40, target.port):
        thread.join(20)
    assert [progress.state for progress in ended] == ["saved"]
    assert ended[0].attempt > 1


def test_a_server_that_hangs_is_given_up_at_the_deadline(folder: RunFolder) -> None:
    ended_event = threading.Event()
    with serving(hanging(ended_event), good()) as (target, _):
        begun = time.monotonic()
        _, ended = states(folder, target, CaptureOptions(duration_ms=50, timeout_s=1))
        assert 0.9 < time.monotonic() - begun < 3
        assert ended_event.wait(2)
    assert ended.reason == "deadline"


def test_one_that_hangs_loses_no_other(folder: RunFolder) -> None:
    with serving(hanging(threading.Event())) as (a, _), serving(good()) as (b, _):
        ended = capture((a, b), CaptureOptions(duration_ms=50, timeout_s=1), folder)
    assert [progress.state for progress in ended] == ["failed", "saved"]


def test_a_listener_that_never_answers(folder: RunFolder) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = Target("127.0.0.1", listener.getsockname()[1])
        begun = time.monotonic()
        _, ended = states(folder, target, CaptureOptions(duration_ms=50, timeout_s=1, num_tracing_attempts=1))
        assert time.monotonic() - begun < 3
    assert ended.reason == "unreachable"


def test_cancelling_ends_the_call_at_once(folder: RunFolder) -> None:
    gone, cancel = threading.Event(), Cancellation()
    with serving(hanging(gone)) as (target, double):
        ended: list[TargetProgress] = []
        thread = threading.Thread(
            target=lambda: ended.extend(capture((target,), QUICK, folder, None, cancel))
        )
        thread.start()
        while not double.requests:
            time.sleep(0.01)
        begun = time.monotonic()
        cancel.set()
        thread.join(5)
        took = time.monotonic() - begun
        assert gone.wait(1), "the server was not told"
    assert took < 0.2
    assert [progress.state for progress in ended] == ["cancelled"]
    assert find_runs(folder.logdir) == []


def test_cancelling_ends_a_wait(folder: RunFolder) -> None:
    cancel = Cancellation()
    options = CaptureOptions(retry_wait_s=30)

    def on_change(_i: int, progress: TargetProgress) -> None:
        if progress.state == "retrying":
            threading.Timer(0.05, cancel.set).start()

    begun = time.monotonic()
    (ended,) = capture((free_target(),), options, folder, on_change, cancel)
    assert ended.state == "cancelled"
    assert time.monotonic() - begun < 2


def test_a_server_that_dies_in_the_middle_of_its_answer(folder: RunFolder) -> None:
    big = good(xspace=small_xspace() * 3000)
    with serving(big) as (real, _), cut_after(real, 100_000) as cut:
        seen, ended = states(folder, cut)
    assert ended.reason == "interrupted"
    assert seen.count("retrying") == 2
    assert find_runs(folder.logdir) == []


def test_a_profile_beyond_the_limit_is_not_received(folder: RunFolder) -> None:
    with serving(good(xspace=small_xspace() * 3000)) as (target, _):
        _, ended = states(folder, target, CaptureOptions(duration_ms=50, max_reply_bytes=2**20))
    assert ended.reason == "too_large"
    assert "1 MiB" in ended.message


def test_older_servers_send_the_trace_as_a_tools_data(folder: RunFolder) -> None:
    tools = {"overview_page.json": b"{}", "worker.xplane.pb": small_xspace()}
    with serving(raw(reply(None, tools=tools))) as (target, _):
        _, ended = states(folder, target)
    assert content(folder, ended.host) == small_xspace()


def test_servers_that_keep_the_profile_are_asked_to_write_it(folder: RunFolder) -> None:
    with serving(writing()) as (target, double):
        _, ended = states(folder, target)
    assert ended.state == "saved"
    assert [request.emit_xspace for request in double.requests] == [True, False]
    assert content(folder, ended.host) == small_xspace()


def test_servers_that_write_elsewhere(folder: RunFolder) -> None:
    with serving(raw(b"")) as (target, double):
        _, ended = states(folder, target)
    assert ended.reason == "elsewhere"
    assert folder.path in ended.message
    assert len(double.requests) == 2


def test_a_list_of_workers_goes_to_one_server(folder: RunFolder) -> None:
    def session(request: object, context: grpc.ServicerContext) -> bytes:
        for worker in request.hosts:  # type: ignore[attr-defined]
            writing(worker)(request.request, context)  # type: ignore[attr-defined]
        return b""

    with serving(methods={NEW_SESSION: (session,)}) as (target, double):
        (ended,) = capture((target,), QUICK, folder, None, None, ("w0", "w1"))
    assert ended.state == "saved"
    assert set(folder.file_sizes()) == {"w0", "w1"}
    (request,) = double.requests
    assert (list(request.hosts), request.session_id, request.repository_root) == (
        ["w0", "w1"],
        folder.run,
        folder.repository,
    )


def test_what_a_session_says_went_wrong(folder: RunFolder) -> None:
    told = bytes(
        message_class("NewSessionResponse")(error_message=b"worker w0 \xff is gone").SerializeToString()
    )
    with serving(methods={NEW_SESSION: (raw(told),)}) as (target, _):
        (ended,) = capture((target,), QUICK, folder, None, None, ("w0",))
    assert ended.state == "failed"
    assert "worker w0 � is gone" in ended.message


def test_texts_of_servers_are_bounded_and_on_one_line(folder: RunFolder) -> None:
    with serving(status(Code.INTERNAL, "a\nb " * 1000)) as (target, _):
        _, ended = states(folder, target)
    assert len(ended.message) < 400
    assert "\n" not in ended.message


def test_waits_grow_within_bounds() -> None:
    for attempt in range(1, 12):
        middle = min(2.0 ** (attempt - 1), MAX_WAIT_S)
        assert 0.74 * middle < waiting_s(1.0, attempt) < 1.26 * middle


def test_no_disk_space(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(os, "replace", full)
    with serving(good()) as (target, _):
        _, ended = states(folder, target)
    assert "no space left" in ended.message
