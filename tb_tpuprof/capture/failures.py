"""gRPC's status codes and the profiler's texts → an error message with a remedy, and whether a retry can
help.
"""

from __future__ import annotations

import re
from typing import Any

import grpc

from tb_tpuprof.errors import CaptureFailed
from tb_tpuprof.native.machine_memory import MEMORY_VARIABLE

# Reasons after which a retry may succeed.
PASSING = {"refused", "unreachable", "busy", "overloaded", "interrupted", "empty"}
_MAX_TEXT = 300
# (pattern in the status' text, reason); the first match wins, and takes precedence over the code.
_TEXTS = (
    (
        r"another profil\w* (session )?(is )?(already )?(active|running)|profiling session active|session "
        r"already active",
        "busy",
    ),
    (r"\ba profiling session is already running", "continuous"),
    (r"no continuous profiling session", "not_continuous"),
    (r"received message larger than max", "too_large"),
    (r"handshake failed|certificate[ _]verify|verification check failed|SSL_ERROR", "tls"),
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
    (r"failed parsing http/2|expected settings frame|http2 handshake", "unimplemented"),
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
# reason: (message, remedy). {server_text} is the server's own text.
_WORDS = {
    "refused": (
        "{target} refused the connection.",
        "Is the profiler server running there, on that port? JAX: jax.profiler.start_server(port); "
        "TensorFlow: tf.profiler.experimental.server.start(port).",
    ),
    "unreachable": (
        "{target} cannot be reached{server_text}.",
        "Check host, port and firewall, and that the job is still running.",
    ),
    "tls": (
        "{target} cannot be reached over TLS{server_text}.",
        "Does the server use TLS on that port? TPUPROF_TLS_ROOTS names a PEM file of the authorities to "
        "trust, TPUPROF_TLS_CERTIFICATE and TPUPROF_TLS_KEY the client's own if the server requires one.",
    ),
    "dns": ("There is no host named {host}.", "Check the spelling, or give its IP address."),
    "busy": (
        "Another profile is running on {target}.",
        "A process can run only one profile at a time: wait until it ends, or stop it (a profiler callback "
        "in the job and continuous profiling count too).",
    ),
    "continuous": (
        "{target} is profiled continuously already.",
        "Save a snapshot of it, or stop it first: `tpuprof continuous stop --service_addr {target}`.",
    ),
    "not_continuous": (
        "{target} is not profiled continuously.",
        "Start that first: `tpuprof continuous start --service_addr {target}`, or in the dialog. It ends "
        "with the job.",
    ),
    "no_continuous": (
        "{target} answers, but cannot profile continuously.",
        "Its profiler server is too old (those of JAX 0.10 and TensorFlow 2.21 can), or another server "
        "listens on that port. Capture single profiles instead.",
    ),
    "overloaded": (
        "{target} is out of resources{server_text}.",
        "Profile for a shorter time or with lower tracing levels, or try again later.",
    ),
    "interrupted": (
        "{target} disconnected in the middle of the reply{server_text}.",
        "Did the job end or crash while it was being profiled? Check its log, then try again.",
    ),
    "stalled": (
        "{target} stopped sending its profile: nothing arrived for {seconds:.0f} s.",
        "Check the network and whether the process still runs. A longer timeout waits longer.",
    ),
    "slow": (
        "{target} sends its profile too slowly: other targets waited {seconds:.0f} s for the memory that it "
        "takes.",
        "Check the network, or capture this target by itself. A longer timeout waits longer; with more "
        f"memory for profiles ({MEMORY_VARIABLE}), more of them arrive at once.",
    ),
    "deadline": (
        "{target} did not answer within {seconds:.0f} s.",
        "The process may hang, or collecting the profile takes long: set a longer timeout, or profile for a "
        "shorter time. With a delay, check that both clocks agree.",
    ),
    "unimplemented": (
        "{target} answers, but has no profiler service.",
        "Another server listens on that port. Give the profiler's port (TPU: 8466; TensorFlow and JAX: the "
        "port passed to their server).",
    ),
    "cancelled_by_server": (
        "{target} cancelled the profile{server_text}.",
        "The server may be shutting down; check the job's log.",
    ),
    "denied": ("{target} denied permission{server_text}.", "Ask the owner of the job."),
    "too_large": (
        "The profile of {target} is larger than {limit} and was not received.",
        "Profile for a shorter time or with lower tracing levels (Python tracing off).",
    ),
    "garbage": (
        "The reply of {target} is not a profile ({what}).",
        "Is it a profiler server's port? If so, check the job's log and try again.",
    ),
    "empty": (
        "{target} recorded no events: the job was idle.",
        "Profile while steps are running: for longer, or with a delay. Check that tracing is not switched "
        "off.",
    ),
    "empty_snapshot": (
        "{target} has recorded no events since it was started, or since the last snapshot.",
        "Take the snapshot while steps are running. Without a TPU or GPU, start with host tracing: "
        "`--host_tracer_level 2`.",
    ),
    "elsewhere": (
        "{target} was profiled, but did not return the profile, and no file appeared in {where}.",
        "Choose a logdir that the profiled process can also write to (gs://…, a shared folder).",
    ),
    "cancelled": ("The capture of {target} was cancelled.", ""),
    "failed": ("{target} failed{server_text}.", "Check the job's log, and try again."),
}


def failure(target: object, reason: str, **facts: Any) -> CaptureFailed:
    """The CaptureFailed for a reason; `facts` fill in the placeholders of its message."""
    message, remedy = _WORDS[reason]
    host = str(target).rpartition(":")[0].removeprefix("grpcs://")
    words = {
        "target": target,
        "host": host,
        "server_text": "",
        "what": "",
        "seconds": 0.0,
        "limit": "",
        "where": "",
        **facts,
    }
    return CaptureFailed(str(target), reason, message.format(**words), remedy.format(**words))


def of_status(
    target: object, code: grpc.StatusCode, text: str, seconds: float, limit_bytes: int
) -> CaptureFailed:
    """The failure behind a gRPC status after `seconds`."""
    reason = _reason_in(text) or _CODES.get(code, "failed")
    server_text = quoted(text)
    limit = f"{limit_bytes / 2**30:.3g} GiB" if limit_bytes >= 2**30 else f"{limit_bytes / 2**20:.3g} MiB"
    return failure(
        target,
        reason,
        server_text=f": {server_text}" if server_text else f" ({code.name})",
        seconds=seconds,
        limit=limit,
    )


def without_continuous(error: CaptureFailed) -> CaptureFailed:
    """A failure of a call that is about continuous profiling: a server without this call may still have
    others.
    """
    return failure(error.target, "no_continuous") if error.reason == "unimplemented" else error


def of_text(target: object, text: str) -> CaptureFailed:
    """The failure that a server reports inside a reply."""
    return failure(target, _reason_in(text) or "failed", server_text=f": {quoted(text)}")


def _reason_in(text: str) -> str | None:
    return next(
        (reason for pattern, reason in _TEXTS if re.search(pattern, text[:4096], re.IGNORECASE)), None
    )


def quoted(text: str | bytes) -> str:
    """A server's text for display: one line, printable, of limited length."""
    if isinstance(text, bytes):
        text = text[: 4 * _MAX_TEXT + 1].decode("utf-8", "replace")
    line = re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in text[: 4 * _MAX_TEXT])).strip(
        " ."
    )
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"
