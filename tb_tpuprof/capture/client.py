"""One call of a profiler service: returns a profile's bytes or a monitor's numbers, or raises CaptureFailed
with the reason.

grpcio connects, reports why connecting fails, and makes the calls with small replies and those over TLS.
Other profiles are received by `download`, which copies them less often. Each attempt has a channel of its
own: otherwise gRPC would remember an address that failed and refuse it for a while.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from tb_tpuprof.capture.cancellation import Cancellation
from tb_tpuprof.capture.configuration import Value
from tb_tpuprof.capture.download import CallFailed, Download
from tb_tpuprof.capture.failures import failure, of_status, of_text, without_continuous
from tb_tpuprof.capture.messages import MONITOR, NEW_SESSION, PROFILE, SNAPSHOT, message_class
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.reply import Malformed, Reply, read_reply
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.capture.tls import credentials
from tb_tpuprof.errors import CaptureFailed
from tb_tpuprof.native.machine_memory import machine_memory

CONNECT_SECONDS = 10.0
_MAX_EVENTS = 1_000_000
_PROBE_METHOD = "/tb_tpuprof.ConnectionProbe/Probe"
_SHARE_OF_REPLY = 2  # of the memory: a reply is received as a whole
_MONITOR_BYTES = 16 * 2**20
_LEAST_BYTES_PER_S = 2**20  # over TLS
# Larger frames, read chunks and windows were measured with replies of 50 MB: no gain, since copying within
# gRPC takes most of the time.
_CHANNEL = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)
# Called with the name of the stage; while receiving, also with the bytes received and the total.
Stage = Callable[[str, int, int], object]
_STATUS = {code.value[0]: code for code in grpc.StatusCode}


def _ignore_stage(_name: str, _received: int, _size: int) -> None:
    """Default stage callback: does nothing."""


@dataclass(frozen=True)
class Repository:
    """The place where a server writes the profile itself: `root` is `<logdir>/plugins/profile`, the file is
    `session`/`host`.xplane.pb below it.
    """

    root: str
    session: str
    host: str


@dataclass(frozen=True)
class MonitorReply:
    """One sample of the Monitor service. Percentages are 0-100 and times milliseconds, as in the server's
    reply.
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
    take: Callable[[int], object] = int,
) -> Reply:
    """One attempt at a profile, or at a snapshot. `begin` is called once connected, may wait, and returns
    when to start (Unix ns; 0: at once). `take` is called with the reply's size before it is received, may
    wait, and refuses it by raising.

    `stage` is called with profiling, then repeatedly with receiving as bytes arrive. With a repository, the
    server writes the file itself, and the reply contains no profile. Raises CaptureFailed.
    """

    def request() -> bytes:
        start_ns = begin() if begin else 0
        if options.is_snapshot:
            return bytes(message_class("SnapshotRequest")().SerializeToString())
        return bytes(profile_request(options, start_ns, repository, target.host_name).SerializeToString())

    settings = CallSettings(
        options.attempt_deadline_s,
        min(options.max_reply_bytes, machine_memory() // _SHARE_OF_REPLY),
        cancel or Cancellation(),
        stage or _ignore_stage,
        options.timeout_s,
        take,
    )
    _connect(target, settings)
    content = request()
    settings.stage("receiving" if options.is_snapshot else "profiling", 0, 0)
    receive = _secure_profile if target.is_secure else _download
    method = SNAPSHOT if options.is_snapshot else PROFILE
    try:
        return read_reply(receive(target, method, content, settings))
    except Malformed as error:
        raise failure(target, "garbage", what=error) from None
    except CaptureFailed as error:
        raise (without_continuous(error) if options.is_snapshot else error) from None


def new_session(
    target: Target,
    options: CaptureOptions,
    workers: Sequence[str],
    repository: Repository,
    cancel: Cancellation,
) -> Reply:
    """Have one server profile `workers` and write their files itself. Raises CaptureFailed, also for errors
    in the server's reply.
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
        CallSettings(options.attempt_deadline_s, options.max_reply_bytes, cancel, _ignore_stage),
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
    """One sample at monitoring level 1 or 2 over `duration_ms`. Raises CaptureFailed (`unimplemented`: the
    server has no monitor).
    """
    request = message_class("MonitorRequest")(
        duration_ms=duration_ms, monitoring_level=level, timestamp=has_timestamp
    )
    settings = CallSettings(
        30.0 + duration_ms / 1000, _MONITOR_BYTES, cancel or Cancellation(), _ignore_stage
    )
    data = _call(target, MONITOR, request.SerializeToString(), settings)
    reply = _parsed(target, "MonitorResponse", data)
    result = reply.monitor_result
    return MonitorReply(
        reply.data[: 2**16].decode("utf-8", "replace"),
        result.response_type,
        result.device_idle_time_percent,
        result.matrix_unit_utilization_percent,
        (result.step_time_ms_avg, result.step_time_ms_min, result.step_time_ms_max),
        (result.infeed_percent_avg, result.infeed_percent_min, result.infeed_percent_max),
    )


def call_once(
    target: Target, method: str, request: bytes, deadline_s: float, cancel: Cancellation | None = None
) -> None:
    """A call whose reply has no contents. Raises CaptureFailed."""
    _call(
        target,
        method,
        request,
        CallSettings(deadline_s, _MONITOR_BYTES, cancel or Cancellation(), _ignore_stage),
    )


def profile_request(
    options: CaptureOptions, start_ns: int, repository: Repository | None, host_name: str = ""
) -> Any:
    """The request for a profile, which is returned in the reply, or written by the server if a repository is
    given.
    """
    request = message_class("ProfileRequest")(
        duration_ms=options.duration_ms,
        session_id=options.session_id,
        host_name=host_name,
        max_events=_MAX_EVENTS,
        tools=["xplane.pb"],  # servers without emit_xspace send the trace as this tool's data
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
            session_id=options.session_id,
            override_hostname=host_name,
        ),
    )
    if options.host_traceme_filter_mask is not None:
        request.opts.trace_options.host_traceme_filter_mask = options.host_traceme_filter_mask
    for key, value in options.configuration:
        request.opts.advanced_configuration.add(key=key, value=_setting(value))
    if repository:
        request.repository_root, request.session_id, request.host_name = (
            repository.root,
            repository.session,
            repository.host,
        )
        request.opts.repository_path = repository.root
    return request


def _setting(value: Value) -> Any:
    """One of a setting's three kinds of values; a bool is an int in Python, but not on the wire."""
    kind = (
        "bool_value"
        if isinstance(value, bool)
        else "int64_value"
        if isinstance(value, int)
        else "string_value"
    )
    return message_class("SettingValue")(**{kind: value})


def _parsed(target: Target, name: str, data: bytes) -> Any:
    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise failure(target, "garbage", what=error) from None


@dataclass(frozen=True)
class CallSettings:
    """Limits of one call, its cancellation token and its stage callback. `deadline_s`: until the reply
    begins; `silence_s`: how long it may pause then.
    """

    deadline_s: float
    limit_bytes: int
    cancel: Cancellation
    stage: Stage
    silence_s: float = 60.0
    take: Callable[[int], object] = int


def _call(target: Target, method: str, request: bytes, settings: CallSettings) -> bytes:
    """The bytes of a small reply. Ends within the deadline, and at once on cancellation."""
    with _channel(target, settings) as channel:
        _probe_connection(channel, target, settings)
        try:
            data = _receive_from(channel.unary_stream(method)(request, timeout=settings.deadline_s), settings)
        except grpc.RpcError as error:
            _check_cancelled(target, settings)
            raise of_status(
                target, error.code(), error.details() or "", settings.deadline_s, settings.limit_bytes
            ) from None
    if data is None:
        raise failure(target, "garbage", what="an empty reply")
    return data


def _channel(target: Target, settings: CallSettings) -> grpc.Channel:
    options = (*_CHANNEL, ("grpc.max_receive_message_length", min(settings.limit_bytes, 2**31 - 1)))
    if not target.is_secure:
        return grpc.insecure_channel(target.uri, options)
    # The certificate names the host, also where the connection goes to the address that was checked.
    return grpc.secure_channel(
        target.uri, credentials(target), (*options, ("grpc.ssl_target_name_override", target.host))
    )


def _secure_profile(target: Target, method: str, request: bytes, settings: CallSettings) -> memoryview:
    """A profile over TLS. gRPC has one deadline for the whole call, so it includes the time of the largest
    reply; its size is known only afterwards.
    """
    transfer_s = settings.limit_bytes / _LEAST_BYTES_PER_S
    data = _call(target, method, request, replace(settings, deadline_s=settings.deadline_s + transfer_s))
    settings.take(len(data))
    settings.stage("receiving", len(data), len(data))
    return memoryview(data)


def _connect(target: Target, settings: CallSettings) -> None:
    """Check that a gRPC server answers at the address."""
    with _channel(target, settings) as channel:
        _probe_connection(channel, target, settings)


def _probe_connection(channel: grpc.Channel, target: Target, settings: CallSettings) -> None:
    """Connection probe: calls a method that no server has, which every gRPC server rejects at once."""
    wait_s = min(CONNECT_SECONDS, settings.deadline_s)
    try:
        _receive_from(channel.unary_stream(_PROBE_METHOD)(b"", timeout=wait_s), settings)
    except grpc.RpcError as error:
        _check_cancelled(target, settings)
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise failure(target, "unreachable", server_text=f": no answer within {wait_s:.0f} s") from None
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            raise of_status(
                target, error.code(), error.details() or "", wait_s, settings.limit_bytes
            ) from None


def _download(target: Target, method: str, request: bytes, settings: CallSettings) -> memoryview:
    ends_at = time.monotonic() + settings.deadline_s
    download = None
    try:
        with socket.create_connection(
            (target.address or target.host, target.port), min(CONNECT_SECONDS, settings.deadline_s)
        ) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            download = Download(
                connection,
                settings.limit_bytes,
                ends_at,
                settings.silence_s,
                lambda n_received, size: settings.stage("receiving", n_received, size),
                settings.take,
            )
            with settings.cancel.calling(partial(_close, connection)):
                return download.fetch(str(target), method, request)
    except CallFailed as error:
        _check_cancelled(target, settings)
        if error.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]:
            if download and download.has_begun:
                raise failure(target, "stalled", seconds=settings.silence_s) from None
            raise failure(target, "deadline", seconds=settings.deadline_s) from None
        if error.is_garbage:
            raise failure(target, "garbage", what=error.text) from None
        code = _STATUS.get(error.code, grpc.StatusCode.UNKNOWN)
        raise of_status(target, code, error.text, settings.deadline_s, settings.limit_bytes) from None
    except OSError as error:
        _check_cancelled(target, settings)
        raise of_status(
            target,
            grpc.StatusCode.UNAVAILABLE,
            error.strerror or str(error),
            settings.deadline_s,
            settings.limit_bytes,
        ) from None


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _receive_from(call: Any, settings: CallSettings) -> bytes | None:
    """The only message of a call, None if there is none. Raises RpcError, also if the call fails after its
    message.
    """
    try:
        with settings.cancel.calling(call.cancel):
            data: bytes | None = next(call, None)
            next(call, None)
            return data
    finally:
        call.cancel()


def _check_cancelled(target: Target, settings: CallSettings) -> None:
    if settings.cancel.is_set():
        raise failure(target, "cancelled")
