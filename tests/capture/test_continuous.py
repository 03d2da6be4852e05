"""Continuous profiling against a double: start, snapshots, stop, and what each refusal says."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from tb_tpuprof.capture.continuous import (
    RING,
    continuous_options,
    snapshot_options,
    start,
    stop,
)
from tb_tpuprof.capture.job import TargetProgress, capture
from tb_tpuprof.capture.messages import SNAPSHOT, START_CONTINUOUS, STOP_CONTINUOUS, message_class
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target, named_targets
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest.storage.writing import RunFolder, new_run
from tests.capture.double import continuously_profiled, empty, free_target, good, raw, serving, status
from tests.ingest.xspaces import small_xspace

Code = grpc.StatusCode
TAKE = snapshot_options(CaptureOptions(timeout_s=10))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return new_run(str(tmp_path / "logs"))


def test_start_two_snapshots_stop(tmp_path: Path) -> None:
    with continuously_profiled() as (target, double):
        (started,) = start((target,), CaptureOptions(host_tracer_level=0, python_tracer_level=0))
        assert started.is_ok
        assert (started.message, started.remedy, started.reason) == ("", "", "")
        seen: list[TargetProgress] = []
        for i in range(2):
            folder = new_run(str(tmp_path), f"snapshot{i}")
            (ended,) = capture((target,), TAKE, folder, lambda _i, progress: seen.append(progress))
            assert (ended.state, ended.message, ended.size_bytes) == ("saved", "", len(small_xspace()))
            assert (Path(folder.path) / f"{ended.host}.xplane.pb").read_bytes() == small_xspace()
        assert {progress.state for progress in seen} == {"connecting", "receiving", "saved"}
        (stopped,) = stop((target,))
        assert stopped.is_ok
    assert [type(request).__name__ for request in double.requests] == [
        "ProfileRequest",
        "SnapshotRequest",
        "SnapshotRequest",
        "StopRequest",
    ]
    request = double.requests[0]
    assert (request.emit_xspace, request.repository_root) == (True, "")
    assert (request.opts.host_tracer_level, request.opts.device_tracer_level) == (0, 1)
    ((key, value),) = [(one.key, one.value.bool_value) for one in request.opts.advanced_configuration]
    assert (key, value) == RING
    assert request.opts.start_timestamp_ns == 0  # at once


def test_a_snapshot_takes_what_there_is_without_waiting() -> None:
    asked = CaptureOptions(
        duration_ms=900, delay_ms=700, num_tracing_attempts=5, timeout_s=30, host_tracer_level=1
    )
    made = snapshot_options(asked)
    assert (made.is_snapshot, made.duration_ms, made.delay_ms, made.num_tracing_attempts) == (True, 1, 0, 1)
    assert (made.timeout_s, made.host_tracer_level) == (30, 1)


def test_the_ring_of_tpus_can_be_switched_off() -> None:
    off = CaptureOptions(configuration=((RING[0], False), ("a", 1)))
    assert continuous_options(off) is off
    assert continuous_options(CaptureOptions(configuration=(("a", 1),))).configuration == (("a", 1), RING)


def test_refusals_say_what_to_do(folder: RunFolder) -> None:
    with continuously_profiled() as (target, _):
        (ended,) = capture((target,), TAKE, folder)
        assert (ended.state, ended.reason) == ("failed", "not_continuous")
        assert ended.message == f"{target} is not profiled continuously."
        assert f"tpuprof continuous start --service_addr {target}" in ended.remedy
        (stopped,) = stop((target,))
        assert (stopped.is_ok, stopped.reason) == (False, "not_continuous")
        assert start((target,), CaptureOptions())[0].is_ok
        (again,) = start((target,), CaptureOptions())
        assert (again.reason, again.message) == ("continuous", f"{target} is profiled continuously already.")
        assert f"tpuprof continuous stop --service_addr {target}" in again.remedy
    assert not Path(folder.path).exists()


def test_a_server_that_cannot_says_so_and_not_that_it_has_no_profiler(folder: RunFolder) -> None:
    with serving(good()) as (target, _):
        outcomes = (*start((target,), CaptureOptions()), *stop((target,)))
        (ended,) = capture((target,), TAKE, folder)
    for outcome in (*outcomes, ended):
        assert outcome.reason == "no_continuous"
        assert outcome.message == f"{target} answers, but cannot profile continuously."
        assert "JAX 0.10" in outcome.remedy


def test_one_of_three_targets_fails_alone() -> None:
    busy = {START_CONTINUOUS: [status(Code.INTERNAL, "Another profiling session active.")]}
    with (
        continuously_profiled() as (a, _),
        continuously_profiled() as (b, _),
        serving(methods=busy) as (c, _),
    ):
        outcomes = start((a, c, free_target(), b), CaptureOptions())
    assert [outcome.reason for outcome in outcomes] == ["", "busy", "refused", ""]
    assert [outcome.target for outcome in outcomes][:2] == [a, c]


def test_a_snapshot_is_tried_once_and_needs_a_profile(folder: RunFolder) -> None:
    with serving(methods={SNAPSHOT: [empty(), good()]}) as (target, double):
        (ended,) = capture((target,), TAKE, folder)
        assert (ended.state, ended.reason, len(double.requests)) == ("failed", "empty_snapshot", 1)
    nothing = bytes(message_class("ProfileResponse")().SerializeToString())
    with serving(methods={SNAPSHOT: [raw(nothing)]}) as (target, double):
        (ended,) = capture((target,), TAKE, folder)
        assert (ended.state, ended.reason, len(double.requests)) == ("failed", "garbage", 1)


def test_no_targets_no_outcomes() -> None:
    assert start((), CaptureOptions()) == stop(()) == ()


def test_settings_names_and_session_reach_the_server(folder: RunFolder) -> None:
    options = CaptureOptions(
        duration_ms=10,
        configuration=(("a", False), ("b", 0), ("c", ""), ("d", "x"), ("e", True), ("f", -5)),
        host_traceme_filter_mask=0,
    )
    with serving(good()) as (one, first), serving(good()) as (two, second):
        named = named_targets((one, two), ("left", "right"), "p")
        ended = capture(named, options, folder)
    assert [progress.host for progress in ended] == ["left", "right"]
    assert sorted(path.name for path in Path(folder.path).iterdir()) == ["left.xplane.pb", "right.xplane.pb"]
    (request,) = first.requests
    assert (request.host_name, request.opts.override_hostname) == ("left", "left")
    assert second.requests[0].opts.override_hostname == "right"
    assert request.session_id == request.opts.session_id == folder.run
    assert request.opts.HasField("trace_options")
    assert request.opts.trace_options.host_traceme_filter_mask == 0
    sent = {
        one.key: (one.value.WhichOneof("value"), getattr(one.value, one.value.WhichOneof("value")))
        for one in request.opts.advanced_configuration
    }
    assert sent == {
        "a": ("bool_value", False),
        "b": ("int64_value", 0),
        "c": ("string_value", ""),
        "d": ("string_value", "x"),
        "e": ("bool_value", True),
        "f": ("int64_value", -5),
    }


def test_without_settings_nothing_of_them_is_sent(folder: RunFolder) -> None:
    with serving(good()) as (target, double):
        capture((target,), CaptureOptions(duration_ms=10), folder)
    (request,) = double.requests
    assert not request.opts.HasField("trace_options")
    assert not request.opts.advanced_configuration
    assert request.opts.override_hostname == ""


def test_names_are_as_many_as_targets() -> None:
    targets = (Target("a", 1), Target("b", 2), Target("c", 3))
    assert named_targets(targets, (), "p") == targets
    assert [target.host_name for target in named_targets(targets, ("x", "y", "z"), "p")] == ["x", "y", "z"]
    for names in (("x",), ("x", "y", "z", "w")):
        with pytest.raises(BadParameter, match="parameter p ") as caught:
            named_targets(targets, names, "p")
        assert "as many names as targets, 3" in caught.value.remedy


def test_field_numbers_on_the_wire() -> None:
    """Against a message put together by hand: numbers as the servers' own descriptors have them."""
    value = message_class("SettingValue")(int64_value=7)
    options = message_class("ProfileOptions")(session_id="s", override_hostname="h")
    options.trace_options.host_traceme_filter_mask = 5
    options.advanced_configuration.add(key="k", value=value)
    setting = b"\x0a\x01k" + b"\x12\x02" + b"\x18\x07"
    assert options.SerializeToString(deterministic=True) == (
        b"\x5a\x02\x08\x05" + b"\x62" + bytes([len(setting)]) + setting + b"\x72\x01s" + b"\x7a\x01h"
    )
    assert message_class("SnapshotRequest")(snapshot_session_id="x").SerializeToString() == b"\x0a\x01x"
    assert START_CONTINUOUS.endswith("ProfilerService/StartContinuousProfiling")
    assert STOP_CONTINUOUS.endswith("ProfilerService/StopContinuousProfiling")
    assert SNAPSHOT.endswith("ProfilerService/GetSnapshot")
