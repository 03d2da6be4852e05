"""One gRPC call with a large reply: the message is read from the socket directly into its final memory,
without further copies.

grpcio copies a message twice more (its peak memory is three times the size, and it takes twice the CPU time:
docs/decisions/0006-profiles-by-own-download.md), and does not report how much has arrived. One call on one
connection needs little of HTTP/2 (RFC 9113): frames, windows that are opened wide at the start, and the
status in the trailers. There is no TLS, no proxy and no authentication.
"""

from __future__ import annotations

import contextlib
import mmap
import socket
import struct
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field

from tb_tpuprof.capture.headers import BadHeaders, Decoder, encoded

_DATA, _HEADERS, _RST, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 0x20
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_STREAM = 1
_OUR_FRAME, _THEIR_FRAME = 2**24 - 1, 2**14
_WIDEST, _FIRST_WINDOW = 2**31 - 1, 65_535
_REFILL_BYTES = 2**28
_MAX_BLOCK = 2**16
_MAX_REQUEST = _FIRST_WINDOW - 5
_MAX_FRAMES_WITHOUT_DATA = 10_000
_HUGE_PAGE = 2 * 2**20
_SENDING_S = 24 * 3600.0
_SLOWEST_BYTES_PER_S = 64 * 1024
# Code of RST_STREAM or GOAWAY → code of gRPC.
_RESETS = {0: 13, 7: 14, 8: 1, 11: 8, 12: 7}
OK, CANCELLED, UNKNOWN, DEADLINE, EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 0, 1, 2, 4, 8, 12, 13, 14


class CallFailed(Exception):
    """A gRPC status that is not OK: its number and text. `is_garbage`: the peer does not speak HTTP/2 or
    gRPC.
    """

    def __init__(self, code: int, text: str, is_garbage: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.is_garbage = is_garbage


@dataclass
class Download:
    """A call on a connection. Calls `on_bytes(received, size)` with (0, 0) when the reply starts, then as it
    arrives.
    """

    connection: socket.socket
    limit_bytes: int
    ends_at: float  # on the monotonic clock; later if the reply is arriving by then
    silence_s: float  # how long the reply may pause
    on_bytes: Callable[[int, int], object]
    take: Callable[[int], object] = int  # called with the reply's size; may wait, or raise to refuse it
    _decoder: Decoder = field(default_factory=Decoder)
    _prefix: bytearray = field(default_factory=bytearray)
    _message: memoryview | None = None
    _size: int = 0
    _n_received: int = 0
    _n_unacknowledged: int = 0
    _block: bytearray = field(default_factory=bytearray)
    _block_ends_stream: bool = False
    _status: tuple[int, str] | None = None
    _is_over: bool = False
    _began_at: float = 0.0
    _has_headers: bool = False
    _is_block_open: bool = False

    @property
    def has_begun(self) -> bool:
        """Whether a part of the reply has arrived."""
        return self._n_received > 0

    def fetch(self, authority: str, path: str, request: bytes) -> memoryview:
        """The reply's message. Raises CallFailed."""
        if len(request) > _MAX_REQUEST:
            raise CallFailed(EXHAUSTED, "the request is too large")
        try:
            self._send(authority, path, request)
            n_idle = 0
            while not self._is_over:
                before = self._n_received
                self._frame()
                n_idle = 0 if self._n_received > before else n_idle + 1
                if n_idle > _MAX_FRAMES_WITHOUT_DATA:
                    raise CallFailed(INTERNAL, "endless frames without data", is_garbage=True)
        except BadHeaders as error:
            raise CallFailed(INTERNAL, f"bad headers: {error}", is_garbage=True) from None
        except TimeoutError:
            raise CallFailed(DEADLINE, "deadline exceeded") from None
        except OSError as error:
            raise CallFailed(UNAVAILABLE, f"socket closed: {error.strerror or error}") from None
        return self._result()

    def _send(self, authority: str, path: str, request: bytes) -> None:
        # The server stops sending when its deadline passes, so it gets the time to send a large reply too.
        timeout_ms = max(1, round((self.ends_at - time.monotonic() + _SENDING_S) * 1000))
        block = encoded(
            (
                (":method", "POST"),
                (":scheme", "http"),
                (":path", path),
                (":authority", authority),
                ("te", "trailers"),
                ("grpc-timeout", f"{min(timeout_ms, 99_999_999)}m"),
                ("content-type", "application/grpc"),
                ("user-agent", "tb-tpuprof"),
            )
        )
        # No push; window and frames as large as possible.
        settings = struct.pack(">HIHIHI", 2, 0, 4, _WIDEST, 5, _OUR_FRAME)
        body = struct.pack(">BI", 0, len(request)) + request
        parts = [body[start : start + _THEIR_FRAME] for start in range(0, len(body), _THEIR_FRAME)]
        frames = [
            _frame(_SETTINGS, 0, settings, 0),
            _frame(_WINDOW, 0, struct.pack(">I", _WIDEST - _FIRST_WINDOW), 0),
        ]
        frames.append(_frame(_HEADERS, _END_HEADERS, block))
        frames += [
            _frame(_DATA, _END_STREAM if i == len(parts) - 1 else 0, part) for i, part in enumerate(parts)
        ]
        self._wait()
        self.connection.sendall(_PREFACE + b"".join(frames))

    def _frame(self) -> None:
        head = self._exactly(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        if size > _OUR_FRAME or (head[:4] == b"HTTP" and not self._n_received):
            raise CallFailed(INTERNAL, "it does not speak HTTP/2", is_garbage=True)
        if self._is_block_open and (kind != _CONTINUATION or stream != _STREAM):
            raise CallFailed(INTERNAL, "a header block is interrupted", is_garbage=True)
        if kind == _DATA and stream == _STREAM:
            if not self._has_headers:
                raise CallFailed(INTERNAL, "data before the headers", is_garbage=True)
            self._data(size, flags)
        elif kind in (_HEADERS, _CONTINUATION) and stream == _STREAM:
            self._headers(kind, flags, self._exactly(_bounded(size, _MAX_BLOCK)))
        else:
            self._control(kind, flags, self._exactly(_bounded(size, _MAX_BLOCK)), stream)

    def _control(self, kind: int, flags: int, payload: bytes, stream: int) -> None:
        """Handle frames about the connection or about the end of the call."""
        if kind == _SETTINGS and (stream or len(payload) % 6 or (flags & _ACK and payload)):
            raise CallFailed(INTERNAL, "malformed settings", is_garbage=True)
        if (kind == _PING and (stream or len(payload) != 8)) or (
            kind == _WINDOW and not _is_increment(payload)
        ):
            raise CallFailed(INTERNAL, f"a malformed frame of kind {kind}", is_garbage=True)
        if kind == _SETTINGS and not flags & _ACK:
            self.connection.sendall(_frame(_SETTINGS, _ACK, b"", 0))
        elif kind == _PING and not flags & _ACK:
            self.connection.sendall(_frame(_PING, _ACK, payload, 0))
        elif kind == _RST and stream == _STREAM:
            code = int.from_bytes(payload[:4], "big")
            raise CallFailed(_RESETS.get(code, INTERNAL), f"RST_STREAM with error {code}")
        elif kind == _GOAWAY and int.from_bytes(payload[:4], "big") & 0x7FFFFFFF < _STREAM:
            raise CallFailed(UNAVAILABLE, f"GOAWAY: {payload[8:200].decode('utf-8', 'replace')}")
        elif kind in (_DATA, _HEADERS, _PUSH, _CONTINUATION):
            raise CallFailed(INTERNAL, f"an unexpected frame of kind {kind}", is_garbage=True)

    def _headers(self, kind: int, flags: int, payload: bytes) -> None:
        if self._is_block_open != (kind == _CONTINUATION):
            raise CallFailed(INTERNAL, "a header block out of order", is_garbage=True)
        if kind == _HEADERS:
            start = (1 if flags & _PADDED else 0) + (5 if flags & _PRIORITY else 0)
            stop = len(payload) - (payload[0] if flags & _PADDED and payload else 0)
            payload = payload[start:stop]
            self._block, self._block_ends_stream = bytearray(), bool(flags & _END_STREAM)
        self._is_block_open = not flags & _END_HEADERS
        self._block += payload
        _bounded(len(self._block), _MAX_BLOCK)
        if not flags & _END_HEADERS:
            return
        headers = dict(self._decoder.decode(bytes(self._block)))
        if headers.get(b":status", b"").startswith(b"1") and not self._has_headers:
            if self._block_ends_stream:
                raise CallFailed(INTERNAL, "an interim status ends the call", is_garbage=True)
            return  # informational: the final headers follow
        self._has_headers = True
        if headers.get(b":status", b"200") != b"200":
            code = headers[b":status"].decode("latin-1")
            raise CallFailed(UNIMPLEMENTED if code == "404" else UNAVAILABLE, f"HTTP status {code}")
        if b"grpc-status" in headers:
            text = urllib.parse.unquote_to_bytes(headers.get(b"grpc-message", b"")).decode("utf-8", "replace")
            number = headers[b"grpc-status"]
            self._status = (int(number) if number.isdigit() and len(number) < 4 else UNKNOWN, text)
        if self._block_ends_stream:
            self._is_over = True
        else:
            self.on_bytes(0, 0)

    def _data(self, size: int, flags: int) -> None:
        n_left = size
        padding = 0
        if flags & _PADDED:
            padding = self._exactly(1)[0]
            n_left -= 1 + padding
        if n_left < 0:
            raise CallFailed(INTERNAL, "padding beyond its frame", is_garbage=True)
        while n_left and self._message is None:
            part = self._exactly(min(n_left, 5 - len(self._prefix)))
            self._prefix += part
            n_left -= len(part)
            if len(self._prefix) == 5:
                self._begin_message()
        if n_left:
            self._fill(n_left)
        if padding:
            self._exactly(padding)
        self._refill(size)
        self._is_over = bool(flags & _END_STREAM)

    def _begin_message(self) -> None:
        is_packed, self._size = struct.unpack(">BI", self._prefix)
        if is_packed:
            raise CallFailed(INTERNAL, "an unexpected compressed message", is_garbage=True)
        if self._size > self.limit_bytes:
            raise CallFailed(
                EXHAUSTED, f"received message larger than max ({self._size} vs. {self.limit_bytes})"
            )
        began_at = time.monotonic()
        self.take(self._size)
        self.ends_at += time.monotonic() - began_at
        self._message = _memory(self._size)

    def _fill(self, n_bytes: int) -> None:
        assert self._message is not None
        if self._n_received + n_bytes > self._size:
            raise CallFailed(INTERNAL, "more than one message", is_garbage=True)
        stop = self._n_received + n_bytes
        while self._n_received < stop:
            self._wait()
            n = self.connection.recv_into(self._message[self._n_received : stop])
            if not n:
                raise CallFailed(UNAVAILABLE, "socket closed in the middle of the reply")
            self._n_received += n
            self._extend()
            self.on_bytes(self._n_received, self._size)

    def _extend(self) -> None:
        """Postpone the end while bytes arrive, unless they arrive slower than any network."""
        now = time.monotonic()
        self._began_at = self._began_at or now
        latest = self._began_at + self.silence_s + self._n_received / _SLOWEST_BYTES_PER_S
        self.ends_at = max(self.ends_at, min(now + self.silence_s, latest))

    def _refill(self, n_bytes: int) -> None:
        """Enlarge the windows again after a large part, long before they are used up."""
        self._n_unacknowledged += n_bytes
        if self._n_unacknowledged >= _REFILL_BYTES:
            increment = struct.pack(">I", self._n_unacknowledged)
            self.connection.sendall(_frame(_WINDOW, 0, increment, 0) + _frame(_WINDOW, 0, increment))
            self._n_unacknowledged = 0

    def _result(self) -> memoryview:
        code, text = self._status or (UNKNOWN, "the reply has no status")
        if code != OK:
            raise CallFailed(code, text, is_garbage=self._status is None)
        if self._message is None or self._n_received < self._size:
            raise CallFailed(INTERNAL, "an empty reply", is_garbage=True)
        return self._message[: self._size]

    def _exactly(self, n_bytes: int) -> bytes:
        parts = bytearray()
        while len(parts) < n_bytes:
            self._wait()
            part = self.connection.recv(n_bytes - len(parts))
            if not part:
                raise CallFailed(UNAVAILABLE, "socket closed")
            parts += part
        return bytes(parts)

    def _wait(self) -> None:
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)


def _frame(kind: int, flags: int, payload: bytes, stream: int = _STREAM) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _is_increment(payload: bytes) -> bool:
    """Whether a frame enlarges a window, by at least one byte."""
    return len(payload) == 4 and int.from_bytes(payload, "big") & 0x7FFFFFFF > 0


def _bounded(size: int, limit: int) -> int:
    if size > limit:
        raise CallFailed(INTERNAL, f"an overlong frame of {size} bytes", is_garbage=True)
    return size


def _memory(size: int) -> memoryview:
    """Memory that is used only where it is written to; on large pages if the system has them, because faults
    on small pages would take as long as receiving.
    """
    if size < _HUGE_PAGE:
        return memoryview(bytearray(size))
    area = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # kernels without huge pages refuse
            area.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(area)
