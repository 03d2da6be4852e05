"""gRPC's status codes and the profiler's texts → what went wrong and what to try, in words, and whether
trying again can help.
"""

from __future__ import annotations

import re
from typing import Any

import grpc

from tb_tpuprof.errors import CaptureFailed

# Reasons after which another attempt may succeed.
PASSING = {"refused", "unreachable", "busy", "overloaded", "interrupted", "empty"}
_MAX_TEXT = 300
# (pattern in the status' text, reason); the first that matches counts, before the code does.
_TEXTS = (
    (
        r"another profil\w* (session )?(is )?(already )?(active|running)|profiling session active|session "
        r"already active",
        "busy",
    ),
    (r"received message larger than max", "too_large"),
    (
        r"dns resolution failed|name or service not known|name resolution|domain name not found|could not "
        r"contact dns",
        "dns",
    ),
    (
        r"stream removed|socket closed|connection reset|goaway|rst_stream|transport closed|broken "
        r"pipe|recvmsg|endpoint closing",
        "interrupted",
    ),
    (r"connection refused", "refused"),
    (
        r"failed to connect|connection attempt timed out|no route to host|network is unreachable|host is "
        r"down|deadline_exceeded before",
        "unreachable",
    ),
)
_CODES = {
    grpc.StatusCode.UNAVAILABLE: "unreachable",
    grpc.StatusCode.ALREADY_EXISTS: "busy",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "overloaded",
    grpc.StatusCode.DEADLINE_EXCEEDED: "deadline",
    grpc.StatusCode.UNIMPLEMENTED: "unimplemented",
    grpc.StatusCode.CANCELLED: "cancelled_by_server",
    grpc.StatusCode.PERMISSION_DENIED: "denied",
    grpc.StatusCode.UNAUTHENTICATED: "denied",
}
# reason: (what went wrong, what to try). {said} is the server's own text.
_WORDS = {
    "refused": (
        "{target} refused the connection.",
        "Is the profiler server running there, on that port? JAX: jax.profiler.start_server(port); "
        "TensorFlow: tf.profiler.experimental.server.start(port).",
    ),
    "unreachable": (
        "{target} cannot be reached{said}.",
        "Check host, port and firewall, and that the job is still running.",
    ),
    "dns": ("There is no host of the name {host}.", "Check the spelling, or give its IP address."),
    "busy": (
        "Another profile is running on {target}.",
        "One profile at a time is possible per process: wait until it ends, or end it (a profiler callback "
        "in the job counts too).",
    ),
    "overloaded": (
        "{target} is out of resources{said}.",
        "Profile for a shorter time or with lower levels; try again later.",
    ),
    "interrupted": (
        "{target} broke off in the middle of the answer{said}.",
        "Did the job end or crash while it was profiled? Look at its log, then try again.",
    ),
    "deadline": (
        "{target} did not answer within {seconds:.0f} s.",
        "The process may hang, or collecting takes long: profile for a shorter time. With a delay, check "
        "that both clocks agree.",
    ),
    "unimplemented": (
        "{target} answers, but has no profiler service.",
        "Another server listens on that port: give the profiler's port (TPU: 8466, TensorFlow and JAX: the "
        "one given to their server).",
    ),
    "cancelled_by_server": (
        "{target} called the profile off{said}.",
        "The server may be shutting down; look at the job's log.",
    ),
    "denied": ("{target} does not allow this{said}.", "Ask who runs the job."),
    "too_large": (
        "The profile of {target} is larger than {limit} and was not received.",
        "Profile for a shorter time or with lower levels (Python tracing off).",
    ),
    "garbage": (
        "What {target} answered is no profile ({what}).",
        "Is it a profiler server's port? If so, look at the job's log and try again.",
    ),
    "empty": (
        "{target} recorded no events: the job was idle.",
        "Profile while steps are running: longer, or with a delay; check that tracing levels are not all "
        "off.",
    ),
    "elsewhere": (
        "{target} was profiled, but keeps the profile to itself: no file appeared in {where}.",
        "Give a logdir that the profiled process can write to as well (gs://…, a shared folder).",
    ),
    "cancelled": ("The capture of {target} was cancelled.", ""),
    "failed": ("{target} failed{said}.", "Look at the job's log, and try again."),
}


def failure(target: object, reason: str, **facts: Any) -> CaptureFailed:
    """The failure of that reason in words; `facts` fill in what the reason's sentence names."""
    message, remedy = _WORDS[reason]
    host = str(target).rpartition(":")[0]
    words = {
        "target": target,
        "host": host,
        "said": "",
        "what": "",
        "seconds": 0.0,
        "limit": "",
        "where": "",
        **facts,
    }
    return CaptureFailed(str(target), reason, message.format(**words), remedy)


def of_status(
    target: object, code: grpc.StatusCode, text: str, seconds: float, limit_bytes: int
) -> CaptureFailed:
    """The failure behind a gRPC status after `seconds`."""
    reason = _reason_in(text) or _CODES.get(code, "failed")
    said = quoted(text)
    limit = f"{limit_bytes / 2**30:.3g} GiB" if limit_bytes >= 2**30 else f"{limit_bytes / 2**20:.3g} MiB"
    return failure(
        target, reason, said=f": {said}" if said else f" ({code.name})", seconds=seconds, limit=limit
    )


def of_text(target: object, text: str) -> CaptureFailed:
    """The failure that a server tells within a reply."""
    return failure(target, _reason_in(text) or "failed", said=f": {quoted(text)}")


def _reason_in(text: str) -> str | None:
    return next(
        (reason for pattern, reason in _TEXTS if re.search(pattern, text[:4096], re.IGNORECASE)), None
    )


def quoted(text: str | bytes) -> str:
    """A server's text for people: one line, printable, of bounded length."""
    if isinstance(text, bytes):
        text = text[: 4 * _MAX_TEXT].decode("utf-8", "replace")
    line = re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in text[: 4 * _MAX_TEXT])).strip(
        " ."
    )
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"
