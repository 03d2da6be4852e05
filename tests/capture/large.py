"""Programs for test_large: `large.py serve MEGABYTES` answers with a profile of that size; `large.py fetch
PORT LOGDIR` captures it and tells what it took.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import grpc

from tb_tpuprof.capture import job
from tb_tpuprof.capture.job import TargetProgress, capture
from tb_tpuprof.capture.messages import PROFILE
from tb_tpuprof.capture.options import CaptureOptions
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.ingest.storage.writing import new_run

PROFILING_S = 0.3
UNIT = 1_000_000


def varint(value: int) -> bytes:
    parts = []
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def large_reply(n_megabytes: int) -> bytes:
    """A profile of one plane with lines of a megabyte of events each."""
    line = field(3, field(4, b"\x08\x01") * (UNIT // 4))
    return field(8, field(1, field(2, b"/host:CPU") + line * n_megabytes))


def serve(n_megabytes: int) -> None:
    """Prints the port, answers until its input ends; then prints how long each answer took within the server,
    in seconds.
    """
    from concurrent import futures

    content = large_reply(n_megabytes)

    def profile(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        time.sleep(PROFILING_S)
        return content

    class Handler(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return (
                grpc.unary_unary_rpc_method_handler(profile)
                if handler_call_details.method == PROFILE
                else None
            )

    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((Handler(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()
    server.stop(0)


def fetch(port: int, logdir: str) -> None:
    """One capture: seconds beyond the server's profiling, peak of memory beyond what it was before, and the
    progress.
    """
    seen: list[tuple[str, int, int | None]] = []

    def on_change(_i: int, progress: TargetProgress) -> None:
        seen.append((progress.state, progress.received_bytes, progress.size_bytes))

    job._REPORT_SECONDS = 0.0  # 50 MB may arrive faster than progress is usually reported
    before = resource.getrusage(resource.RUSAGE_SELF)
    folder = new_run(logdir)
    begun = time.perf_counter()
    (ended,) = capture(
        (Target("127.0.0.1", port),), CaptureOptions(duration_ms=round(PROFILING_S * 1000)), folder, on_change
    )
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = (after.ru_maxrss - before.ru_maxrss) * 1024
    print(
        json.dumps(
            {
                "state": ended.state,
                "size": ended.size_bytes,
                "seconds": took - PROFILING_S,
                "cpu": cpu,
                "peak": peak,
                "seen": seen,
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        fetch(int(sys.argv[2]), sys.argv[3])
