"""One call over HTTP/2 against a peer that sends frames by hand: what is allowed, and what a broken or
hostile one does.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.capture.download import CallFailed, Download
from tb_tpuprof.capture.headers import encoded

DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 0x20


def frame(kind: int, flags: int = 0, payload: bytes = b"", stream: int = 1) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def message(content: bytes) -> bytes:
    return struct.pack(">BI", 0, len(content)) + content


BEGIN = frame(SETTINGS, stream=0) + frame(
    HEADERS, END_HEADERS, b"\x88" + encoded([("content-type", "application/grpc")])
)
STATUS_OK = frame(HEADERS, END_HEADERS | END_STREAM, encoded([("grpc-status", "0")]))


def end(status: str, text: str = "") -> bytes:
    return frame(
        HEADERS, END_HEADERS | END_STREAM, encoded([("grpc-status", status), ("grpc-message", text)])
    )


def fetched(
    answer: bytes, limit: int = 10_000, seconds: float = 2.0
) -> tuple[bytes, bytes, list[tuple[int, int]]]:
    """(the message, what the peer was sent, the progress) for a peer that sends these bytes and hangs up."""
    ours, theirs = socket.socketpair()
    told: list[tuple[int, int]] = []
    sent = bytearray()

    def read() -> None:
        with suppress(OSError):
            while part := theirs.recv(65536):
                sent.extend(part)

    def write() -> None:
        with suppress(OSError):
            theirs.sendall(answer)
            theirs.shutdown(socket.SHUT_WR)

    threads = [threading.Thread(target=work) for work in (read, write)]
    for thread in threads:
        thread.start()
    try:
        download = Download(
            ours, limit, time.monotonic() + seconds, seconds, lambda n, size: told.append((n, size))
        )
        found = bytes(download.fetch("host:1", "/Service/Method", b"request"))
    finally:
        ours.close()
        for thread in threads:
            thread.join(5)
        theirs.close()
    return found, bytes(sent), told


def test_a_plain_answer() -> None:
    found, sent, told = fetched(BEGIN + frame(DATA, 0, message(b"hello")) + STATUS_OK)
    assert found == b"hello"
    assert told == [(0, 0), (5, 5)]
    assert sent.startswith(b"PRI * HTTP/2.0")
    assert b"/Service/Method" in sent
    assert frame(DATA, END_STREAM, message(b"request")) in sent
    assert sent.endswith(frame(SETTINGS, ACK, stream=0))


def test_a_message_in_pieces_among_other_frames() -> None:
    content = bytes(range(200))
    body = message(content)
    frames = [
        BEGIN,
        frame(DATA, 0, body[:3]),
        frame(PING, 0, b"12345678", 0),
        frame(DATA, 0),
        frame(DATA, PADDED, b"\x04" + body[3:20] + b"\0" * 4),
        frame(SETTINGS, ACK, stream=0),
        frame(200, 255, b"unknown"),
        frame(8, 0, b"\0\0\0\1", 0),
        frame(DATA, 0, body[20:]),
        frame(GOAWAY, 0, struct.pack(">II", 1, 0), 0),
        frame(2, 0, b"\0\0\0\0\1"),
    ]
    block = encoded([("grpc-status", "0"), ("padding", "x" * 50)])
    trailers = frame(
        HEADERS, END_STREAM | PADDED | PRIORITY, b"\x02\0\0\0\0\0" + block[:9] + b"\0\0"
    ) + frame(CONTINUATION, 0, block[9:20])
    trailers += frame(CONTINUATION, END_HEADERS, block[20:])
    found, sent, _ = fetched(b"".join(frames) + trailers)
    assert found == content
    assert frame(PING, ACK, b"12345678", 0) in sent


def test_windows_are_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.capture.download._REFILL_BYTES", 1000)
    content = b"x" * 5000
    body = message(content)
    frames = [frame(DATA, 0, body[at : at + 600]) for at in range(0, len(body), 600)]
    found, sent, _ = fetched(BEGIN + b"".join(frames) + STATUS_OK)
    assert found == content
    more = struct.pack(">I", 1200)
    assert sent.count(frame(8, 0, more, 0) + frame(8, 0, more)) == 4


def test_an_empty_message_is_one() -> None:
    assert fetched(BEGIN + frame(DATA, 0, message(b"")) + STATUS_OK)[0] == b""


FAILURES = {
    "a status": (BEGIN + end("14", "try%20later %E2%9C%93"), 14, "try later ✓"),
    "a status at once": (frame(SETTINGS, stream=0) + end("12"), 12, ""),
    "a status after the message": (BEGIN + frame(DATA, 0, message(b"x")) + end("13", "late"), 13, "late"),
    "a strange status": (BEGIN + end("x" * 100), 2, ""),
    "a large status": (BEGIN + end("9" * 100), 2, ""),
    "no status": (BEGIN + frame(DATA, END_STREAM, message(b"x")), 2, "no status"),
    "no message": (BEGIN + STATUS_OK, 13, "empty reply"),
    "half a message": (BEGIN + frame(DATA, 0, message(b"hello")[:-1]) + STATUS_OK, 13, "empty reply"),
    "half a prefix": (BEGIN + frame(DATA, 0, b"\0\0") + STATUS_OK, 13, "empty reply"),
    "two messages": (BEGIN + frame(DATA, 0, message(b"a") * 2) + STATUS_OK, 13, "more than one"),
    "a packed message": (BEGIN + frame(DATA, 0, b"\1\0\0\0\1x") + STATUS_OK, 13, "compressed"),
    "too large": (BEGIN + frame(DATA, 0, struct.pack(">BI", 0, 2**31)), 8, "larger than max"),
    "reset": (BEGIN + frame(RST, 0, struct.pack(">I", 7)), 14, "RST_STREAM"),
    "reset by name": (BEGIN + frame(RST, 0, struct.pack(">I", 8)), 1, "RST_STREAM"),
    "going away": (frame(GOAWAY, 0, struct.pack(">II", 0, 0) + b"bye", 0), 14, "bye"),
    "gone": (b"", 14, "socket closed"),
    "gone in a frame": (BEGIN + frame(DATA, 0, message(b"hello"))[:-2], 14, "middle of the reply"),
    "gone in a head": (BEGIN + b"\0\0", 14, "socket closed"),
    "HTTP 1": (b"HTTP/1.1 400 Bad Request\r\n\r\n", 13, "does not speak HTTP/2"),
    "HTTP 404": (frame(HEADERS, END_HEADERS, b"\x8d"), 12, "404"),
    "HTTP 503": (frame(HEADERS, END_HEADERS, encoded([(":status", "503")])), 14, "503"),
    "a push": (frame(PUSH, 0, b"\0\0\0\2"), 13, "unexpected frame"),
    "another stream": (BEGIN + frame(DATA, 0, b"x", 3), 13, "unexpected frame"),
    "bad headers": (frame(HEADERS, END_HEADERS, b"\x80"), 13, "bad headers"),
    "padding beyond": (BEGIN + frame(DATA, PADDED, b"\xffx"), 13, "padding"),
    "a long control frame": (frame(PING, 0, b"x" * 70_000, 0), 13, "overlong"),
    "endless headers": (
        frame(HEADERS, 0, b"\x82" * 60_000) + frame(CONTINUATION, 0, b"\x82" * 60_000),
        13,
        "overlong",
    ),
    "endless frames": (BEGIN + frame(DATA, 0, b"") * 10_100, 13, "endless"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str) -> None:
    answer, code, text = FAILURES[name]
    with pytest.raises(CallFailed) as caught:
        fetched(answer)
    assert caught.value.code == code
    assert text in caught.value.text


def test_a_peer_that_trickles_ends_at_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def trickle() -> None:
        theirs.sendall(BEGIN)
        while not stop.wait(0.05):
            theirs.sendall(frame(PING, ACK, b"12345678", 0))

    thread = threading.Thread(target=trickle)
    thread.start()
    begun = time.monotonic()
    with ours, theirs:
        with pytest.raises(CallFailed) as caught:
            Download(ours, 100, begun + 0.4, 0.4, lambda n, size: None).fetch("h:1", "/x", b"")
        assert time.monotonic() - begun < 1
        stop.set()
        thread.join(5)
    assert caught.value.code == 4


def test_a_promise_of_gigabytes_takes_no_memory() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CallFailed, match="socket closed"):
        fetched(BEGIN + frame(DATA, 0, struct.pack(">BI", 0, 2**31 - 1) + b"x"), limit=2**31)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_end_the_call(answer: bytes, is_late: bool) -> None:
    with pytest.raises(CallFailed):
        fetched((BEGIN if is_late else b"") + answer, seconds=1)


PART, BEGUN = 100_000, BEGIN + frame(DATA, 0, struct.pack(">BI", 0, 400_000))


def slow_reply(pauses_s: list[float], part: int = PART) -> tuple[memoryview | CallFailed, float]:
    """The reply to a call with a deadline of 0.3 s that may pause for 0.3 s; it arrives in parts."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        with suppress(OSError):
            theirs.sendall(BEGUN)
            for pause_s in pauses_s:
                time.sleep(pause_s)
                theirs.sendall(frame(DATA, 0, b"x" * part))
            theirs.sendall(STATUS_OK)

    thread = threading.Thread(target=send)
    thread.start()
    begun = time.monotonic()
    with ours, theirs:
        try:
            result: memoryview | CallFailed = Download(
                ours, 2**20, begun + 0.3, 0.3, lambda n, size: None
            ).fetch("h:1", "/x", b"")
        except CallFailed as error:
            result = error
    took_s = time.monotonic() - begun
    thread.join(5)
    return result, took_s


def test_a_reply_that_still_arrives_at_the_deadline_is_kept() -> None:
    result, took_s = slow_reply([0.2] * 4)
    assert isinstance(result, memoryview)
    assert len(result) == 400_000
    assert took_s > 0.6


@pytest.mark.slow
def test_silence_in_the_middle_of_a_reply_ends_it() -> None:
    result, took_s = slow_reply([0.1, 0.1, 2.0, 0.0])
    assert isinstance(result, CallFailed)
    assert result.code == 4
    assert 0.4 < took_s < 1.5


def test_bytes_that_arrive_slower_than_any_network_do_not_postpone_the_end() -> None:
    """10 bytes every 20 ms are 500 bytes per second."""
    result, took_s = slow_reply([0.02] * 500, part=10)
    assert isinstance(result, CallFailed)
    assert took_s < 1.5


def test_memory_without_huge_pages_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a kernel that refuses them: the advice fails, the memory is as good."""
    import mmap

    class Refusing(mmap.mmap):
        def madvise(self, *_: int) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr("tb_tpuprof.capture.download.mmap.mmap", Refusing)
    content = b"x" * (3 * 2**20)
    frames = b"".join(
        frame(DATA, 0, message(content)[start : start + 2**20]) for start in range(0, len(content) + 5, 2**20)
    )
    assert fetched(BEGIN + frames + STATUS_OK, limit=2**23)[0] == content


HEADER_BLOCK = encoded([(":status", "200")])
FORBIDDEN = {
    "data before the headers": frame(DATA, 0, message(b"hello")) + BEGIN,
    "a continuation of nothing": frame(CONTINUATION, END_HEADERS, HEADER_BLOCK),
    "data within a header block": frame(HEADERS, 0, HEADER_BLOCK) + frame(DATA, 0, message(b"x")),
    "settings of five bytes": frame(SETTINGS, 0, b"12345", 0),
    "settings on a stream": frame(SETTINGS, 0, b"", 1),
    "an acknowledgment with content": frame(SETTINGS, ACK, b"123456", 0),
    "a window of no bytes": frame(8, 0, b"\0\0\0\0", 0),
    "a window of three bytes": frame(8, 0, b"\0\0\1", 0),
    "a ping of four bytes": frame(PING, 0, b"1234", 0),
    "three table sizes": frame(HEADERS, END_HEADERS, b"\x20\x20\x20" + HEADER_BLOCK),
    "a table size after a header": frame(HEADERS, END_HEADERS, HEADER_BLOCK + b"\x20"),
    "an interim status as the end": frame(HEADERS, END_HEADERS | END_STREAM, encoded([(":status", "100")])),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_the_specification_forbids_is_refused(name: str) -> None:
    with pytest.raises(CallFailed) as caught:
        fetched(FORBIDDEN[name])
    assert caught.value.is_garbage


def test_an_interim_status_is_followed_by_the_final_one() -> None:
    interim = frame(HEADERS, END_HEADERS, encoded([(":status", "103")]))
    answer = interim + BEGIN + frame(DATA, 0, message(b"hello")) + STATUS_OK
    assert fetched(answer)[0] == b"hello"
