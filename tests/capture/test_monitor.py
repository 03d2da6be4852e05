"""Monitoring: the Monitor call where a server has it, else short profiles; failures in words; it ends when it
should.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import grpc
import pytest

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.messages import MONITOR, PROFILE
from tb_tpuprof.capture.monitor import MonitorOptions, MonitorSample, monitor
from tb_tpuprof.capture.monitor_text import RpcNumbers, numbers_of
from tb_tpuprof.capture.targets import Target, parse_targets
from tb_tpuprof.errors import BadParameter, CaptureFailed, TraceFormatError
from tb_tpuprof.session import measure
from tests.capture.double import reply as profile_reply
from tests.capture.monitor_double import LEVEL_1, LEVEL_2, Profiler, Refusal, listening, monitor_reply
from tests.ingest.xspaces import small_xspace
from tests.synthetic import Parts, TpuJob, tpu_xspace

QUICK = MonitorOptions(interval_ms=10, n_queries=2)
JOB = tpu_xspace(TpuJob(parts=Parts(compute=0.6, infeed=0.2), n_cores=4))
NUMBERS = {
    "response_type": 3,
    "device_idle_time_percent": 20.0,
    "matrix_unit_utilization_percent": 31.0,
    "step_time_ms_avg": 100.0,
    "step_time_ms_min": 90.0,
    "step_time_ms_max": 130.0,
    "infeed_percent_avg": 10.0,
    "infeed_percent_min": 5.0,
    "infeed_percent_max": 40.0,
}


@pytest.fixture
def server() -> Iterator[Profiler]:
    with listening(Profiler()) as profiler:
        yield profiler


def samples(*servers: Profiler, options: MonitorOptions = QUICK) -> list[MonitorSample]:
    return list(monitor(targets(*servers), options, measure))


def targets(*servers: Profiler) -> tuple[Target, ...]:
    return parse_targets(",".join(server.address for server in servers))


def test_level_2_of_a_server_that_has_monitor(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2, **NUMBERS)
    before = time.time_ns() // 1_000_000
    first, second = samples(server)
    assert first == MonitorSample(
        0,
        0,
        first.time_unix_ms,
        server.address,
        "monitor_rpc",
        "TPU v3",
        8,
        0.31,
        0.2,
        100e9,
        90e9,
        130e9,
        None,
        0.1,
        0.05,
        0.4,
    )
    assert (second.n, second.query) == (1, 1)
    assert before <= first.time_unix_ms <= second.time_unix_ms <= time.time_ns() // 1_000_000
    assert [(method, r.monitoring_level, r.duration_ms) for method, r in server.requests] == [
        (MONITOR, 2, 10)
    ] * 2


def test_level_1_leaves_the_rest_out(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_1)
    first, _ = samples(server, options=replace(QUICK, level=1))
    assert first == MonitorSample(
        0,
        0,
        first.time_unix_ms,
        server.address,
        "monitor_rpc",
        "TPU v2",
        matrix_unit_fraction=pytest.approx(0.107),
    )
    assert server.requests[0][1].monitoring_level == 1


def test_level_1_of_a_profile_leaves_the_rest_out(server: Profiler) -> None:
    server.profile = lambda request: profile_reply(JOB)
    first, _ = samples(server, options=replace(QUICK, level=1))
    known = MonitorSample(0, 0, first.time_unix_ms, server.address, "profile", "TPU v5e")
    assert first == replace(known, matrix_unit_fraction=measure(JOB).matrix_unit_fraction)


def test_short_profiles_where_there_is_no_monitor(server: Profiler) -> None:
    server.profile = lambda request: profile_reply(JOB)
    first, second = samples(server)
    told = measure(JOB)
    assert {name: getattr(first, name) for name in vars(told)} == vars(told)
    assert first.source == second.source == "profile"
    assert first.n_steps
    assert first.input_fraction_max == pytest.approx(0.2)
    assert [method for method, _ in server.requests] == [PROFILE] * 2
    assert {(r.duration_ms, r.opts.python_tracer_level, r.emit_xspace) for _, r in server.requests} == {
        (10, 0, True)
    }


def test_a_monitor_that_says_it_is_not_implemented_is_asked_once(server: Profiler) -> None:
    def unimplemented(_request: Any) -> bytes:
        raise Refusal(grpc.StatusCode.UNIMPLEMENTED, "unimplemented.")

    server.monitor, server.profile = unimplemented, lambda request: profile_reply(JOB)
    assert [sample.source for sample in samples(server)] == ["profile"] * 2
    assert [method for method, _ in server.requests] == [MONITOR, PROFILE, PROFILE]


def test_several_targets_side_by_side() -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(listening(Profiler())) for _ in range(3)]

        def slow(_request: Any) -> bytes:
            time.sleep(0.3)
            return monitor_reply(LEVEL_2)

        for server in servers:
            server.monitor = slow
        begun = time.monotonic()
        found = samples(*servers)
        assert time.monotonic() - begun < 1.5  # 1.8 one after the other
    assert [sample.n for sample in found] == list(range(6))
    assert sorted(sample.target for sample in found[:3]) == sorted(server.address for server in servers)
    assert [sample.query for sample in found] == [0, 0, 0, 1, 1, 1]


def test_a_good_target_is_not_lost_with_a_bad_one(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2)
    found = list(monitor((*targets(server), Target("127.0.0.1", 1)), replace(QUICK, n_queries=5), measure))
    good = [sample for sample in found if sample.target == server.address]
    bad = [sample for sample in found if sample.target == "127.0.0.1:1"]
    assert (len(good), len(bad)) == (5, 5)
    assert all(sample.source and not sample.error for sample in good)
    assert all("refused" in sample.error and sample.remedy and not sample.source for sample in bad)


def test_nothing_there_ends_it_at_once() -> None:
    endless = monitor([Target("127.0.0.1", 1)], MonitorOptions(), measure)
    assert "refused" in next(endless).error
    with pytest.raises(CaptureFailed, match="refused") as caught:
        next(endless)
    assert caught.value.reason == "refused"


def test_a_job_that_ends_ends_it_after_three_queries(server: Profiler) -> None:
    server.monitor = lambda request: (
        monitor_reply(LEVEL_2) if len(server.requests) < 3 else refuse(grpc.StatusCode.PERMISSION_DENIED)
    )
    found = monitor(targets(server), replace(QUICK, n_queries=100), measure)
    assert [bool(next(found).error) for _ in range(5)] == [False, False, True, True, True]
    with pytest.raises(CaptureFailed, match="denied permission"):
        next(found)


def refuse(code: grpc.StatusCode, text: str = "") -> bytes:
    raise Refusal(code, text)


def test_another_profile_and_an_idle_job_pass(server: Profiler) -> None:
    replies = iter(
        [b"busy", b"busy", b"busy", b"busy", profile_reply(b"", is_empty=True), profile_reply(small_xspace())]
    )

    def profile(_request: Any) -> bytes:
        reply = next(replies)
        return (
            refuse(grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active")
            if reply == b"busy"
            else reply
        )

    server.profile = profile
    found = samples(server, options=replace(QUICK, n_queries=6))
    assert all("Another profile is running" in sample.error for sample in found[:4])
    assert "idle" in found[4].error
    assert (found[5].error, found[5].device_type) == ("", "CPU")


def test_what_is_no_profile_ends_it(server: Profiler) -> None:
    server.profile = lambda request: profile_reply(small_xspace()[:-9])
    found = monitor(targets(server), QUICK, measure)
    assert "is not a profile" in next(found).error
    with pytest.raises(CaptureFailed, match="is not a profile"):
        next(found)


def test_a_profile_that_cannot_be_measured_is_an_error_of_its_sample(server: Profiler) -> None:
    def damaged(_xspace: bytes | memoryview) -> Any:
        raise TraceFormatError("the profile", 7, "is cut off")

    server.profile = lambda request: profile_reply(JOB)
    found = list(monitor(targets(server), QUICK, damaged))
    assert [sample.error for sample in found] == ["the profile is cut off."] * 2
    assert all(sample.remedy for sample in found)


def test_cancelling_cuts_off_a_call_under_way(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2) if server.stopped.wait(30) else b""
    cancel = Cancellation()
    threading.Timer(0.2, cancel.set).start()
    begun = time.monotonic()
    assert not list(monitor(targets(server), MonitorOptions(), measure, cancel))
    assert time.monotonic() - begun < 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tpuprof-monitor")]


def test_leaving_the_loop_ends_it(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2)
    endless = monitor(targets(server), MonitorOptions(interval_ms=60_000), measure)
    assert next(endless).n == 0
    begun = time.monotonic()
    endless.close()
    assert time.monotonic() - begun < 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tpuprof-monitor")]


def test_queries_keep_their_distance(server: Profiler) -> None:
    server.monitor = lambda request: monitor_reply(LEVEL_2)
    begun = time.monotonic()
    samples(server, options=MonitorOptions(interval_ms=200, n_queries=3))
    assert 0.4 <= time.monotonic() - begun < 2


@pytest.mark.parametrize(
    "wrong", [{"level": 0}, {"level": 3}, {"interval_ms": 1}, {"interval_ms": 10**9}, {"n_queries": -1}]
)
def test_options_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(BadParameter):
        MonitorOptions(**wrong)


def reply(text: str = "", response_type: int = 0, value: float = 0.0) -> Any:
    from tb_tpuprof.capture.client import MonitorReply

    return MonitorReply(text, response_type, value, value, (value,) * 3, (value,) * 3)


def test_the_text_alone_tells_everything() -> None:
    assert numbers_of(reply(LEVEL_2)) == RpcNumbers(
        "TPU v3",
        8,
        pytest.approx(0.107),
        pytest.approx(0.369),
        pytest.approx((90.8e9, 89.8e9, 92.2e9)),
        pytest.approx((0.015, 0.0, 0.03)),
    )


def test_thousands_of_milliseconds() -> None:
    found = numbers_of(
        reply(
            "TPU type: TPU v2\nStep time: 1.95kms (avg), 1.90 kms (min), 2.00s (max)\nInfeed percentage: "
            "87.5% (avg). 87.2% (min)"
        )
    )
    assert found.step_time_ps == pytest.approx((1.95e12, 1.9e12, 2e12))
    assert found.input_fraction == (0.875, 0.872, None)


def test_hostile_texts() -> None:
    nothing = RpcNumbers()
    for text in (
        "",
        ":" * 10_000,
        "a: " * 10_000,
        "Step time: .ms, ms, -",
        "Utilization of x: ..%",
        "Number of cores: 99999999999",
        "\0\xff",
    ):
        assert numbers_of(reply(text)) == nothing
    assert numbers_of(reply("TPU type: \x1b[31mTPU\x07 v2" + "x" * 500)).device_type.startswith("[31mTPU v2")
    assert numbers_of(reply("", 3, float("nan"))) == nothing
    assert numbers_of(reply("", 3, -1.0)) == nothing
    assert numbers_of(reply("", 1, 1e300)).matrix_unit_fraction == 1.0
