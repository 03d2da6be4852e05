"""A profiler service in this process that answers call by call as it is told: a good profile, a fault, or
nothing at all.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from tb_tpuprof.capture.messages import (
    MONITOR,
    NEW_SESSION,
    PROFILE,
    SNAPSHOT,
    START_CONTINUOUS,
    STOP_CONTINUOUS,
    message_class,
)
from tb_tpuprof.capture.targets import Target
from tests.ingest.xspaces import small_xspace

Answer = Callable[[Any, grpc.ServicerContext], bytes]
REQUESTS = {
    PROFILE: "ProfileRequest",
    NEW_SESSION: "NewSessionRequest",
    MONITOR: "MonitorRequest",
    START_CONTINUOUS: "ProfileRequest",
    STOP_CONTINUOUS: "StopRequest",
    SNAPSHOT: "SnapshotRequest",
}


class Double(grpc.GenericRpcHandler):
    """Serves the methods in `answers`; each list's last answer is repeated. `requests` are those that came,
    `times` when.
    """

    def __init__(self, answers: dict[str, Sequence[Answer]]) -> None:
        self.answers = answers
        self.requests: list[Any] = []
        self.times: list[float] = []
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(answers, 0)

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if method not in self.answers:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._answer(method, request, context)
        )

    def _answer(self, method: str, data: bytes, context: grpc.ServicerContext) -> bytes:
        request = message_class(REQUESTS[method]).FromString(data)
        with self._lock:
            script = self.answers[method]
            answer = script[min(self._counts[method], len(script) - 1)]
            self._counts[method] += 1
            self.requests.append(request)
            self.times.append(time.monotonic())
        return answer(request, context)


@contextmanager
def listening_with(
    handler: grpc.GenericRpcHandler, credentials: grpc.ServerCredentials | None = None
) -> Iterator[Target]:
    """A server that hands every call to `handler`, while the block runs; its address. With `credentials` it
    speaks TLS.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(8), handlers=(handler,), options=[("grpc.max_send_message_length", -1)]
    )
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    server.start()
    try:
        yield Target("127.0.0.1", port, is_secure=credentials is not None)
    finally:
        server.stop(0).wait(5)


@contextmanager
def serving(
    *profile: Answer, methods: dict[str, Sequence[Answer]] | None = None
) -> Iterator[tuple[Target, Double]]:
    """A server whose Profile answers `profile`, one after the other; its address and the double behind it."""
    double = Double({**({PROFILE: profile} if profile else {}), **(methods or {})})
    with listening_with(double) as target:
        yield target, double


def reply(
    xspace: bytes | None = None, is_empty: bool = False, tools: dict[str, bytes] | None = None
) -> bytes:
    """A ProfileResponse."""
    entries = [
        message_class("ToolData")(name=name.encode(), data=data) for name, data in (tools or {}).items()
    ]
    given = {} if xspace is None else {"xspace": xspace}
    return bytes(
        message_class("ProfileResponse")(empty_trace=is_empty, tool_data=entries, **given).SerializeToString()
    )


def good(seconds: float = 0.0, xspace: bytes | None = None) -> Answer:
    """A profile after a while."""
    content = reply(xspace or small_xspace())

    def answer(_request: Any, _context: grpc.ServicerContext) -> bytes:
        time.sleep(seconds)
        return content

    return answer


def raw(content: bytes) -> Answer:
    """These bytes."""
    return lambda _request, _context: content


def empty() -> Answer:
    """What an idle job's server says."""
    return raw(reply(b"", is_empty=True))


def status(code: grpc.StatusCode, text: str = "") -> Answer:
    """A failure."""
    return lambda _request, context: context.abort(code, text)


def hanging(ended: threading.Event) -> Answer:
    """Nothing until the client goes; `ended` is set then."""

    def answer(_request: Any, context: grpc.ServicerContext) -> bytes:
        context.add_callback(ended.set)
        ended.wait(60)
        return b""

    return answer


def writing(host: str = "") -> Answer:
    """An old server: it writes the file below the repository itself and returns nothing."""

    def answer(request: Any, _context: grpc.ServicerContext) -> bytes:
        if request.repository_root:
            folder = Path(request.repository_root) / request.session_id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{host or request.host_name}.xplane.pb").write_bytes(small_xspace())
        return b""

    return answer


# Sends bytes of the server on to the client, of which so many were sent before; returns whether to go on.
Passing = Callable[[socket.socket, bytes, int], bool]


@contextmanager
def cut_after(target: Target, n_bytes: int, port: int = 0) -> Iterator[Target]:
    """An address that passes on to `target`, and breaks every connection once the server has sent `n_bytes`
    on it.
    """

    def cut(client: socket.socket, data: bytes, n_before: int) -> bool:
        if n_before + len(data) >= n_bytes:
            return False
        client.sendall(data)
        return True

    with passing(target, cut, port) as address:
        yield address


@contextmanager
def trickling(target: Target, after: int, bytes_per_s: int) -> Iterator[Target]:
    """An address that passes on to `target`; on each connection, only `after` bytes of the server
    are quick.
    """
    step_s = 0.05
    step = max(1, int(bytes_per_s * step_s))

    def trickle(client: socket.socket, data: bytes, n_before: int) -> bool:
        quick = max(0, after - n_before)
        client.sendall(data[:quick])
        for start in range(quick, len(data), step):
            time.sleep(step_s)
            client.sendall(data[start : start + step])
        return True

    with passing(target, trickle) as address:
        yield address


@contextmanager
def passing(target: Target, send: Passing, port: int = 0) -> Iterator[Target]:
    """An address that passes on to `target`; `send` sends what the server answers."""
    listener = socket.create_server(("127.0.0.1", port))
    threads: list[threading.Thread] = []

    def send_at_once(sink: socket.socket, data: bytes, _n_before: int) -> bool:
        sink.sendall(data)
        return True

    def pump(source: socket.socket, sink: socket.socket, send: Passing) -> None:
        total = 0
        with suppress(OSError):
            while data := source.recv(65536):
                if not send(sink, data, total):
                    break
                total += len(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection((target.host, target.port))
            for source, sink, how in ((client, server, send_at_once), (server, client, send)):
                threads.append(threading.Thread(target=pump, args=(source, sink, how), daemon=True))
                threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield Target("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(5)
        for thread in threads:
            thread.join(5)


def free_target() -> Target:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Target("127.0.0.1", listener.getsockname()[1])


@contextmanager
def continuously_profiled(xspace: bytes | None = None) -> Iterator[tuple[Target, Double]]:
    """A server that is profiled continuously, and answers as JAX's does (`tests/integration` compares): a
    second start is refused, and so is a snapshot before the first start or after the stop.
    """
    is_on = threading.Event()
    snapshot = reply(xspace or small_xspace())

    def start(_request: Any, context: grpc.ServicerContext) -> bytes:
        if is_on.is_set():
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "A profiling session is already running.")
        is_on.set()
        return b""

    def stop(_request: Any, context: grpc.ServicerContext) -> bytes:
        if not is_on.is_set():
            context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")
        is_on.clear()
        return b""

    def take(_request: Any, context: grpc.ServicerContext) -> bytes:
        if not is_on.is_set():
            context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")
        return snapshot

    methods = {START_CONTINUOUS: [start], STOP_CONTINUOUS: [stop], SNAPSHOT: [take]}
    with serving(methods=methods) as (target, double):
        yield target, double
