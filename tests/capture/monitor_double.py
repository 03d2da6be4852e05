"""A double of a profiler server for monitoring: says what it is told to say to Monitor and Profile, and
counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from tb_tpuprof.capture.messages import MONITOR, PROFILE, message_class
from tests.capture.double import listening_with

LEVEL_1 = """  TPU type: TPU v2
  Utilization of TPU Matrix Units (higher is better): 10.7%
"""
LEVEL_2 = """  Timestamp: 20:41:52
  TPU type: TPU v3
  Number of TPU cores: 8 (Replica count = 8, num cores per replica = 1)
  Per-core batch size: 32
  TPU idle time (lower is better): 36.9%
  Utilization of TPU Matrix Units (higher is better): 10.7%
  Step time: 90.8ms (avg), 89.8ms (min), 92.2ms (max)
  Infeed percentage: 1.500% (avg), 0.000% (min), 3.000% (max)
"""


class Refusal(Exception):
    """A status to end a call with."""

    def __init__(self, code: grpc.StatusCode, text: str = "") -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Profiler(grpc.GenericRpcHandler):
    """`monitor` and `profile` make the reply's bytes of a request, or raise Refusal; None: the server has no
    such call.
    """

    def __init__(self) -> None:
        self.monitor: Callable[[Any], bytes] | None = None
        self.profile: Callable[[Any], bytes] | None = None
        self.requests: list[tuple[str, Any]] = []
        self.address = ""
        self.stopped = threading.Event()

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a method."""
        details = handler_call_details
        known = {MONITOR: (self.monitor, "MonitorRequest"), PROFILE: (self.profile, "ProfileRequest")}
        answer, name = known.get(details.method, (None, ""))
        if answer is None:
            return None

        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            parsed = message_class(name).FromString(request)
            self.requests.append((details.method, parsed))
            try:
                return answer(parsed)
            except Refusal as refusal:
                context.abort(refusal.code, refusal.text)

        return grpc.unary_unary_rpc_method_handler(handle)


def monitor_reply(text: str = "", **result: float) -> bytes:
    """A MonitorResponse."""
    reply = message_class("MonitorResponse")(data=text.encode())
    if result:
        reply.monitor_result.MergeFrom(message_class("MonitorResult")(**result))
    return bytes(reply.SerializeToString())


@contextmanager
def listening(profiler: Profiler) -> Iterator[Profiler]:
    """The double, listening while the block runs."""
    with listening_with(profiler) as target:
        profiler.address = f"{target.host}:{target.port}"
        try:
            yield profiler
        finally:
            profiler.stopped.set()
