"""One call of a profiler service: a profile's bytes or a monitor's numbers, or a CaptureFailed that says what
went wrong.

grpcio connects, tells what is wrong where that fails, and makes the calls whose replies are small; a profile
comes by `download`, which copies it less. Each attempt has a channel of its own: gRPC would otherwise
remember an address that failed and refuse it for a while.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.download import CallFailed, Download
from tb_tpuprof.capture.failures import failure, of_status, of_text
from tb_tpuprof.capture.messages import MONITOR, NEW_SESSION, PROFILE, message_class
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.reply import Malformed, Reply, read_reply
from tb_tpuprof.capture.targets import Target

CONNECT_SECONDS = 10.0
# The server knows the deadline too, and may break off a little before we do.
_CLOCK_SECONDS = 0.1
_MAX_EVENTS = 1_000_000
_NO_METHOD = "/tb_tpuprof.Knock/Knock"
_MONITOR_BYTES = 16 * 2**20
# Larger frames, read chunks and windows were measured with replies of 50 MB: no gain, as copying within gRPC
# is what takes the time.
_CHANNEL = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)
# Told a stage's name, and while receiving how many bytes have come and of how many.
Stage = Callable[[str, int, int], object]
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


def _nobody(_name: str, _received: int, _size: int) -> None:
    """Who is told of stages when nobody asked."""


@dataclass(frozen=True)
class Repository:
    """Where a server shall write by itself: `root` is `<logdir>/plugins/profile`; below it
    `session`/`host`.xplane.pb.
    """

    root: str
    session: str
    host: str


@dataclass(frozen=True)
class MonitorReply:
    """One sample of the Monitor service. Percentages are 0-100 and times milliseconds, as the server says
    them.
    """

    text: str
    response_type: int
    device_idle_percent: float
    matrix_unit_percent: float
    step_time_ms: tuple[float, float, float]  # average, minimum, maximum
    infeed_percent: tuple[float, float, float]


def profile_once(
    target: Target,
    options: CaptureOptions,
    cancel: Cancellation | None = None,
    begin: Callable[[], int] | None = None,
    stage: Stage | None = None,
    repository: Repository | None = None,
) -> Reply:
    """One attempt at a profile. `begin` is called once connected, may wait, and returns when to begin (Unix
    ns; 0: at once).

    `stage` is told profiling, then receiving, again and again as bytes come. With a repository the server is
    asked to write the file itself, and the reply holds no profile. Raises CaptureFailed.
    """

    def request() -> bytes:
        return bytes(profile_request(options, begin() if begin else 0, repository).SerializeToString())

    how = Call(
        options.attempt_deadline_s, options.max_reply_bytes, cancel or Cancellation(), stage or _nobody
    )
    _connect(target, how)
    content = request()
    how.stage("profiling", 0, 0)
    data = _download(target, PROFILE, content, how)
    try:
        return read_reply(data)
    except Malformed as error:
        raise failure(target, "garbage", what=error) from None


def new_session(
    target: Target,
    options: CaptureOptions,
    workers: Sequence[str],
    repository: Repository,
    cancel: Cancellation,
) -> Reply:
    """Have one server profile `workers` and write their files itself. Raises CaptureFailed, also with what
    the server says in its reply.
    """
    request = message_class("NewSessionRequest")(
        request=profile_request(options, 0, repository),
        repository_root=repository.root,
        hosts=workers,
        session_id=repository.session,
    )
    data = _call(
        target,
        NEW_SESSION,
        request.SerializeToString(),
        Call(options.attempt_deadline_s, options.max_reply_bytes, cancel, _nobody),
    )
    reply = _parsed(target, "NewSessionResponse", data)
    if reply.error_message:
        raise of_text(target, reply.error_message.decode("utf-8", "replace"))
    return Reply((), reply.empty_trace)


def monitor_once(
    target: Target,
    level: int,
    duration_ms: int,
    has_timestamp: bool = False,
    cancel: Cancellation | None = None,
) -> MonitorReply:
    """One sample at monitoring level 1 or 2 over `duration_ms`. Raises CaptureFailed (`unimplemented`: there
    is no monitor).
    """
    request = message_class("MonitorRequest")(
        duration_ms=duration_ms, monitoring_level=level, timestamp=has_timestamp
    )
    how = Call(30.0 + duration_ms / 1000, _MONITOR_BYTES, cancel or Cancellation(), _nobody)
    data = _call(target, MONITOR, request.SerializeToString(), how)
    reply = _parsed(target, "MonitorResponse", data)
    told = reply.monitor_result
    return MonitorReply(
        reply.data[: 2**16].decode("utf-8", "replace"),
        told.response_type,
        told.device_idle_time_percent,
        told.matrix_unit_utilization_percent,
        (told.step_time_ms_avg, told.step_time_ms_min, told.step_time_ms_max),
        (told.infeed_percent_avg, told.infeed_percent_min, told.infeed_percent_max),
    )


def profile_request(options: CaptureOptions, start_ns: int, repository: Repository | None) -> Any:
    """The request for a profile: returned in the reply, or written by the server where a
    repository is given.
    """
    request = message_class("ProfileRequest")(
        duration_ms=options.duration_ms,
        max_events=_MAX_EVENTS,
        tools=["xplane.pb"],  # servers that know no emit_xspace send the trace as this tool's data
        emit_xspace=repository is None,
        opts=message_class("ProfileOptions")(
            version=1,
            duration_ms=options.duration_ms,
            host_tracer_level=options.host_tracer_level,
            device_tracer_level=options.device_tracer_level,
            python_tracer_level=options.python_tracer_level,
            include_dataset_ops=options.include_dataset_ops,
            enable_hlo_proto=True,
            start_timestamp_ns=start_ns,
        ),
    )
    if repository:
        request.repository_root, request.session_id, request.host_name = (
            repository.root,
            repository.session,
            repository.host,
        )
        request.opts.repository_path = repository.root
    return request


def _parsed(target: Target, name: str, data: bytes) -> Any:
    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise failure(target, "garbage", what=error) from None


@dataclass(frozen=True)
class Call:
    """How to make one call: what ends it, and whom to tell of its stages."""

    deadline_s: float
    limit_bytes: int
    cancel: Cancellation
    stage: Stage


def _call(target: Target, method: str, request: bytes, how: Call) -> bytes:
    """A small reply's bytes. Ends within the deadline, and at once when cancelled."""
    with _channel(target, how) as channel:
        _knock(channel, target, how)
        try:
            data = _receive_from(channel.unary_stream(method)(request, timeout=how.deadline_s), how)
        except grpc.RpcError as error:
            _check_cancelled(target, how)
            raise of_status(
                target, error.code(), error.details() or "", how.deadline_s, how.limit_bytes
            ) from None
    if data is None:
        raise failure(target, "garbage", what="an empty answer")
    return data


def _channel(target: Target, how: Call) -> grpc.Channel:
    return grpc.insecure_channel(
        target.uri, (*_CHANNEL, ("grpc.max_receive_message_length", min(how.limit_bytes, 2**31 - 1)))
    )


def _connect(target: Target, how: Call) -> None:
    """Make sure that a gRPC server answers at the address."""
    with _channel(target, how) as channel:
        _knock(channel, target, how)


def _knock(channel: grpc.Channel, target: Target, how: Call) -> None:
    """Connect, and know that it is done: a call that no server has is turned down by every gRPC server at
    once.
    """
    wait_s = min(CONNECT_SECONDS, how.deadline_s)
    try:
        _receive_from(channel.unary_stream(_NO_METHOD)(b"", timeout=wait_s), how)
    except grpc.RpcError as error:
        _check_cancelled(target, how)
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise failure(target, "unreachable", said=f": no answer within {wait_s:.0f} s") from None
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise of_status(target, error.code(), error.details() or "", wait_s, how.limit_bytes) from None


def _download(target: Target, method: str, request: bytes, how: Call) -> memoryview:
    ends_at = time.monotonic() + how.deadline_s
    try:
        with socket.create_connection(
            (target.host, target.port), min(CONNECT_SECONDS, how.deadline_s)
        ) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            download = Download(
                connection, how.limit_bytes, ends_at, lambda n, size: how.stage("receiving", n, size)
            )
            with how.cancel.calling(partial(_hang_up, connection)):
                return download.fetch(str(target), method, request)
    except CallFailed as error:
        _check_cancelled(target, how)
        # The server knows the deadline too, and may break off a little before we do.
        if (
            error.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
            or time.monotonic() >= ends_at - _CLOCK_SECONDS
        ):
            raise failure(target, "deadline", seconds=how.deadline_s) from None
        if error.is_garbage:
            raise failure(target, "garbage", what=error.text) from None
        code = _STATUS.get(error.code, grpc.StatusCode.UNKNOWN)
        raise of_status(target, code, error.text, how.deadline_s, how.limit_bytes) from None
    except OSError as error:
        _check_cancelled(target, how)
        raise of_status(
            target, grpc.StatusCode.UNAVAILABLE, error.strerror or str(error), how.deadline_s, how.limit_bytes
        ) from None


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _receive_from(call: Any, how: Call) -> bytes | None:
    """The only message of a call; None where there is none. Raises RpcError, also where the call fails after
    its message.
    """
    try:
        with how.cancel.calling(call.cancel):
            data: bytes | None = next(call, None)
            next(call, None)
            return data
    finally:
        call.cancel()


def _check_cancelled(target: Target, how: Call) -> None:
    if how.cancel.is_set():
        raise failure(target, "cancelled")
