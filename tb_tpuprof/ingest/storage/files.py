"""Bytes of trace files: local paths and fsspec URLs, plain and gzipped, with their state (size and time) as
their identity.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.native.memory import HUGE_PAGE, new_array
from tb_tpuprof.parallel import threads

# A gzipped trace may unpack to this much, and to so many times its size: a few KiB can otherwise fill the
# memory. Real traces pack 5 to 40 times.
MAX_UNPACKED_BYTES = 32 * 2**30
MAX_UNPACKED_JSON_BYTES = 8 * 2**30
MAX_RATIO = 250
_RATIO_COUNTS_FROM = 64 * 2**20
_CHUNK = 16 * 2**20
_PARALLEL_READ_BYTES = 16 * 2**20
_JSON_SPACE = b" \t\r\n"


@dataclass(frozen=True)
class FileState:
    """What identifies a file's content: when either changes, everything derived from it is stale."""

    path: str
    size_bytes: int
    mtime_ns: int


class FileBytes:
    """A file's bytes, each in its place in `data`, which whoever has read them last can let go."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data
        self._rooms: list[Room] = []

    @contextlib.contextmanager
    def room(self) -> Iterator[Room]:
        """Memory to use for windows, which whoever comes next uses again."""
        try:
            room = self._rooms.pop()
        except IndexError:
            room = Room()
        yield room
        self._rooms.append(room)

    def window(self, start: int, end: int, room: Room) -> tuple[npt.NDArray[np.uint8], int]:
        """(bytes that hold those from `start` to `end`, the position in the file that they begin at); `room`
        to put them if need be.
        """
        return self.data, 0

    def lacks(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether messages that begin there were left unread: only windows show them, and `data` has nothing
        in their place.
        """
        return np.zeros(len(starts), np.bool_)

    def release(self) -> None:
        """Forget the bytes."""
        self.data = np.empty(0, np.uint8)
        self._rooms.clear()


class Room:
    """Memory for one window after the other."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """Room for so many bytes; what was in it before is gone."""
        if len(self.memory) < size:
            self.memory = new_array(max(size, HUGE_PAGE), np.uint8)
        return self.memory[:size]


def is_url(path: str) -> bool:
    """Whether the path is an fsspec URL such as gs://bucket/run rather than a local path."""
    return "://" in path


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec filesystem of a URL and the path within it. Raises StorageError if fsspec or the scheme's
    driver is missing.
    """
    try:
        import fsspec
    except ImportError:
        raise StorageError(
            f"{url}: reading URLs needs fsspec.", "Run: pip install fsspec (and gcsfs or s3fs)."
        ) from None
    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except (ImportError, ValueError, OSError) as error:
        raise StorageError(
            f"{url}: {error}.", "Install the file system's driver: gcsfs for gs://, s3fs for s3://."
        ) from None


def file_state(path: str) -> FileState:
    """Size and time of a file. Raises StorageError where there is none."""
    with storage_errors(path):
        if is_url(path):
            fs, inner = filesystem(path)
            facts = fs.info(inner)
            stamp = str(
                facts.get("mtime")
                or facts.get("updated")
                or facts.get("LastModified")
                or facts.get("etag")
                or 0
            )
            return FileState(path, int(facts["size"] or 0), zlib.crc32(stamp.encode()))
        facts = os.stat(path)
        return FileState(path, facts.st_size, facts.st_mtime_ns)


def is_chrome_trace(data: npt.NDArray[np.uint8]) -> bool:
    """Whether a file is JSON rather than an XSpace.

    No XSpace begins with a bracket, but one whose first plane has 91 or 123 bytes with a line's end and a
    bracket: no plane goes on as JSON does there.
    """
    raw = data[:4096].tobytes()
    head = raw.removeprefix(b"\xef\xbb\xbf").lstrip(_JSON_SPACE)
    if raw[:1] == b"\n":
        return head[:1] + head[1:].lstrip(_JSON_SPACE)[:1] in (b'{"', b"{}", b"[{", b"[]")
    return head[:1] in (b"{", b"[")


def read_file(path: str) -> tuple[npt.NDArray[np.uint8], bool]:
    """(the whole file, whether it was gzipped and had to be unpacked). Raises StorageError or
    TraceFormatError.
    """
    with storage_errors(path):
        if is_url(path):
            fs, inner = filesystem(path)
            data = np.frombuffer(fs.cat_file(inner), np.uint8)
        else:
            data = _read_local(path)
    is_packed = data[:2].tobytes() == b"\x1f\x8b"
    return (_unpack(path, data) if is_packed else data), is_packed


def _read_local(path: str) -> npt.NDArray[np.uint8]:
    """A local file, large ones in parts side by side: most of the time goes into filling fresh memory."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < _PARALLEL_READ_BYTES or not hasattr(os, "preadv"):
            return np.fromfile(file, np.uint8)
        data = np.empty(size, np.uint8)
        n_parts = min(threads.n_threads(), 4)
        bounds = [size * i // n_parts for i in range(n_parts + 1)]
        if not all(
            threads.done(partial(fill, file.fileno(), data[a:b], a) for a, b in itertools.pairwise(bounds))
        ):
            raise StorageError(
                f"{path} became shorter while it was read.", "Wait until it is written, then reload the page."
            )
        return data


def fill(file: int, part: npt.NDArray[np.uint8], position: int) -> bool:
    """Fill an array from a position of a file; False where the file ends before."""
    while len(part):
        n = os.preadv(file, [part.data], position)
        if n <= 0:
            return False
        part, position = part[n:], position + n
    return True


def read_range(state: FileState, position: int, size: int) -> npt.NDArray[np.uint8]:
    """Part of a plain file that must still be as it was. Raises StorageError where it is gone or
    has changed.
    """
    _check_unchanged(state)
    with storage_errors(state.path):
        if is_url(state.path):
            fs, inner = filesystem(state.path)
            return np.frombuffer(fs.cat_file(inner, start=position, end=position + size), np.uint8)
        with open(state.path, "rb", buffering=0) as file:
            data = np.empty(max(0, min(size, state.size_bytes - position)), np.uint8)
            return data if fill(file.fileno(), data, position) else data[:0]


def read_packed_range(state: FileState, position: int, size: int) -> bytes:
    """Part of what a gzipped file unpacks to. Raises StorageError where the file is gone or has changed."""
    _check_unchanged(state)
    with storage_errors(state.path), _open(state.path) as file, gzip.GzipFile(fileobj=file) as stream:
        stream.seek(position)
        return stream.read(size)


def _check_unchanged(state: FileState) -> None:
    if file_state(state.path) != state:
        raise StorageError(f"{state.path} has changed since it was opened.", "Reload the page.")


def _open(path: str) -> Any:
    if is_url(path):
        fs, inner = filesystem(path)
        return fs.open(inner, "rb")
    return open(path, "rb")


@contextlib.contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Turn the errors of operating system and file systems into StorageError."""
    try:
        yield
    except FileNotFoundError:
        raise StorageError(f"{path} does not exist (any more).", "Reload the list of runs.") from None
    except PermissionError:
        raise StorageError(f"{path} may not be read.", "Check the file's permissions.") from None
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read: {error.strerror or error}.", "Check that the storage is reachable."
        ) from None


def _unpack(path: str, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    found = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:  # type: ignore[arg-type]
            while part := stream.read(_CHUNK):
                found += part
                _check_size(path, found, len(data))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceFormatError(path, -1, f"is not whole gzip data ({error})") from None
    return np.frombuffer(found, np.uint8)


def _check_size(path: str, found: bytearray, packed_bytes: int) -> None:
    """Raises TraceFormatError for what was packed to fill the memory."""
    limit = MAX_UNPACKED_JSON_BYTES if bytes(found[:1]) in (b"{", b"[") else MAX_UNPACKED_BYTES
    remedy = "If it is a trace all the same, unpack it (gunzip) and open the plain file."
    if len(found) > limit:
        raise TraceFormatError(path, -1, f"unpacks to more than {limit / 2**30:.0f} GiB", remedy)
    if len(found) > max(_RATIO_COUNTS_FROM, MAX_RATIO * packed_bytes):
        raise TraceFormatError(
            path, -1, f"unpacks to more than {MAX_RATIO} times its size, as no trace does", remedy
        )
