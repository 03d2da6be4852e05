"""Bytes of trace files: local paths and fsspec URLs, plain and gzipped. Size and time identify a file's
content.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.errors import StorageError, TraceFormatError
from tb_tpuprof.native.machine_memory import machine_memory
from tb_tpuprof.native.memory import HUGE_PAGE, new_array
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.threads import call_in_parallel, n_threads

# Limits on the unpacked size and on its ratio to the packed size: otherwise a few KiB could fill the memory.
# Real traces have a ratio of 5 to 40.
MAX_UNPACKED_BYTES = 32 * 2**30
MAX_UNPACKED_JSON_BYTES = 8 * 2**30
MAX_RATIO = 250
_RATIO_COUNTS_FROM = 4 * 2**20
_SHARE_FOR_UNPACKED = 4  # of the memory: the columns need some, too
_CHUNK = 16 * 2**20
_JSON_SPACE = b" \t\r\n"


@dataclass(frozen=True)
class FileState:
    """Identifies a file's content: if size or time changes, everything derived from the file is stale."""

    path: str
    size_bytes: int
    mtime_ns: int


class FileBytes:
    """A file's bytes, in `data` at their offsets in the file; the last reader may release them."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data
        self._window_buffers: list[WindowBuffer] = []

    @contextlib.contextmanager
    def window_buffer(self) -> Iterator[WindowBuffer]:
        """Context manager: memory for windows, which later callers reuse."""
        try:
            window_buffer = self._window_buffers.pop()
        except IndexError:
            window_buffer = WindowBuffer()
        yield window_buffer
        self._window_buffers.append(window_buffer)

    def window(self, start: int, end: int, window_buffer: WindowBuffer) -> tuple[npt.NDArray[np.uint8], int]:
        """(an array that contains the bytes from `start` to `end`, the file position of its first byte). Uses
        `window_buffer` if it has to read them.
        """
        return self.data, 0

    def lacks(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each message start, whether the message was left unread: only windows show it, `data` has a gap
        there.
        """
        return np.zeros(len(starts), np.bool_)

    def release(self) -> None:
        """Drop the bytes."""
        self.data = np.empty(0, np.uint8)
        self._window_buffers.clear()


class WindowBuffer:
    """Memory that successive windows share."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)

    def take(self, size: int) -> npt.NDArray[np.uint8]:
        """`size` bytes of memory; overwrites what the last call returned."""
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


def local_folders(path: str) -> tuple[str, ...]:
    """The folders of this machine that receive what is written below a path: itself, or for a URL the folder
    of file:// and those of caches such as simplecache::s3://. Empty for a store elsewhere: what is written
    there passes through memory. Raises StorageError like `filesystem`.
    """
    if not is_url(path):
        return (path,)
    fs, inner = filesystem(path)
    from fsspec.implementations.cached import CachingFileSystem
    from fsspec.implementations.local import LocalFileSystem

    folders = []
    while isinstance(fs, CachingFileSystem):
        folders.append(str(fs.storage[-1]))
        fs = fs.fs
    if isinstance(fs, LocalFileSystem):
        folders.append(inner)
    return tuple(folders)


def file_state(path: str) -> FileState:
    """Size and time of a file. Raises StorageError if there is none, or if it is a pipe or a device."""
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
    if not stat.S_ISREG(facts.st_mode):  # opening a pipe would wait for a writer
        raise StorageError(f"{path} is not a file.", "Remove it from the run's folder.")
    return FileState(path, facts.st_size, facts.st_mtime_ns)


def is_chrome_trace(data: npt.NDArray[np.uint8]) -> bool:
    """Whether a file is JSON rather than an XSpace.

    No XSpace starts with a bracket, except for one whose first plane has 91 or 123 bytes: it starts with a
    newline and a bracket. But no plane continues as JSON does after the bracket.
    """
    raw = data[:4096].tobytes()
    head = raw.removeprefix(b"\xef\xbb\xbf").lstrip(_JSON_SPACE)
    if raw[:1] == b"\n":
        return head[:1] + head[1:].lstrip(_JSON_SPACE)[:1] in (b'{"', b"{}", b"[{", b"[]")
    return head[:1] in (b"{", b"[")


def read_file(path: str) -> tuple[npt.NDArray[np.uint8], bool]:
    """(the whole file, unpacked; whether it was gzipped). Raises StorageError or TraceFormatError."""
    with storage_errors(path):
        if is_url(path):
            fs, inner = filesystem(path)
            data = np.frombuffer(fs.cat_file(inner), np.uint8)
        else:
            data = _read_local(path)
    is_packed = data[:2].tobytes() == b"\x1f\x8b"
    return (_unpack(path, data) if is_packed else data), is_packed


def _read_local(path: str) -> npt.NDArray[np.uint8]:
    """A local file. Reads large ones in parallel parts, since most of the time is spent on page faults of
    fresh memory.
    """
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < POLICY.min_parallel_read_bytes or not hasattr(os, "preadv"):
            return np.fromfile(file, np.uint8)
        data = np.empty(size, np.uint8)
        n_parts = min(n_threads(), POLICY.max_read_threads)
        bounds = [size * i // n_parts for i in range(n_parts + 1)]
        reads = [partial(fill, file.fileno(), data[a:b], a) for a, b in itertools.pairwise(bounds)]
        if not all(call_in_parallel(reads)):
            raise StorageError(
                f"{path} became shorter while it was being read.",
                "Wait until it is fully written, then reload the page.",
            )
        return data


def fill(file: int, part: npt.NDArray[np.uint8], position: int) -> bool:
    """Fill an array from a position of a file; False if the file ends before the array is full."""
    while len(part):
        n_read = os.preadv(file, [part.data], position)
        if n_read <= 0:
            return False
        part, position = part[n_read:], position + n_read
    return True


def read_range(state: FileState, position: int, size: int) -> npt.NDArray[np.uint8]:
    """Part of a plain file. Raises StorageError if the file is gone or has changed."""
    check_unchanged(state)
    with storage_errors(state.path):
        if is_url(state.path):
            fs, inner = filesystem(state.path)
            return np.frombuffer(fs.cat_file(inner, start=position, end=position + size), np.uint8)
        with open(state.path, "rb", buffering=0) as file:
            data = np.empty(max(0, min(size, state.size_bytes - position)), np.uint8)
            return data if fill(file.fileno(), data, position) else data[:0]


@contextlib.contextmanager
def open_ranges(state: FileState) -> Iterator[Callable[[int, int], npt.NDArray[np.uint8]]]:
    """Context manager: a function like `read_range` of one file, which stays open meanwhile."""
    if is_url(state.path) or not hasattr(os, "preadv"):
        yield partial(read_range, state)
        return
    check_unchanged(state)
    with storage_errors(state.path), open(state.path, "rb", buffering=0) as file:

        def read(position: int, size: int) -> npt.NDArray[np.uint8]:
            part = np.empty(max(0, min(size, state.size_bytes - position)), np.uint8)
            return part if fill(file.fileno(), part, position) else part[:0]

        yield read


def read_packed_range(state: FileState, position: int, size: int) -> bytes:
    """Part of the unpacked content of a gzipped file. Raises StorageError if the file is gone or changed."""
    check_unchanged(state)
    with storage_errors(state.path), _open(state.path) as file, gzip.GzipFile(fileobj=file) as stream:
        stream.seek(position)
        return stream.read(size)


def check_unchanged(state: FileState) -> None:
    """Raises StorageError if a file is gone or not in that state any more."""
    if file_state(state.path) != state:
        raise StorageError(f"{state.path} has changed since it was opened.", "Reload the page.")


def _open(path: str) -> Any:
    if is_url(path):
        fs, inner = filesystem(path)
        return fs.open(inner, "rb")
    return open(path, "rb")


@contextlib.contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Context manager: turns errors of the operating system and of file systems into StorageError."""
    try:
        yield
    except FileNotFoundError:
        if os.path.islink(path):
            target = os.readlink(path)
            raise StorageError(
                f"{path} is a link to {target}, which does not exist.", "Correct or remove the link."
            ) from None
        raise StorageError(f"{path} does not exist (anymore).", "Reload the list of runs.") from None
    except PermissionError:
        raise StorageError(f"{path}: permission denied.", "Check the file's permissions.") from None
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read: {error.strerror or error}.", "Check that the storage is reachable."
        ) from None


def _unpack(path: str, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:  # type: ignore[arg-type]
            while part := stream.read(_CHUNK):
                unpacked += part
                _check_size(path, unpacked, len(data))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if isinstance(error, EOFError):
            unpacked = _unpacked_part(path, data)
        if not isinstance(error, EOFError) or not unpacked:
            raise TraceFormatError(path, -1, f"is not whole gzip data ({error})") from None
    return np.frombuffer(unpacked, np.uint8)


def _unpacked_part(path: str, data: npt.NDArray[np.uint8]) -> bytearray:
    """What a gzip file contains up to where it is cut off, or damaged as well."""
    unpacked = bytearray()
    packed: bytes = data.tobytes()
    with contextlib.suppress(zlib.error):
        while packed:
            member = zlib.decompressobj(wbits=31)
            while packed and not member.eof:
                unpacked += member.decompress(packed, _CHUNK)
                packed = member.unconsumed_tail
                _check_size(path, unpacked, len(data))
            packed = member.unused_data
            if not member.eof:
                break
    return unpacked


def most_unpacked_bytes() -> int:
    """How many bytes a packed file may unpack to on this machine, at a time: the columns need memory, too."""
    return min(MAX_UNPACKED_BYTES, machine_memory() // _SHARE_FOR_UNPACKED)


def _check_size(path: str, unpacked: bytearray, packed_bytes: int) -> None:
    """Raises TraceFormatError for a file that was packed to fill the memory."""
    limit = MAX_UNPACKED_JSON_BYTES if bytes(unpacked[:1]) in (b"{", b"[") else MAX_UNPACKED_BYTES
    limit = min(limit, machine_memory() // _SHARE_FOR_UNPACKED)
    remedy = "If it is a trace nevertheless, unpack it (gunzip) and open the plain file."
    if len(unpacked) > limit:
        raise TraceFormatError(path, -1, f"unpacks to more than {limit / 2**30:.1f} GiB", remedy)
    if len(unpacked) > max(_RATIO_COUNTS_FROM, MAX_RATIO * packed_bytes):
        raise TraceFormatError(
            path, -1, f"unpacks to more than {MAX_RATIO} times its size, which no trace does", remedy
        )
