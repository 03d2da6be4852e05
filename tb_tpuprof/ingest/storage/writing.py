"""Captured profiles → files of a new run in a logdir, local or behind a URL. A run shows only complete files.

<logdir>/plugins/profile/.<run>.<host>.<random>.part     while it is being written: next to the runs; no
                                                         search lists it
<logdir>/plugins/profile/<run>/<host>.xplane.pb          moved here when complete, which creates the folder
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tb_tpuprof.errors import BadParameter, StorageError
from tb_tpuprof.ingest.storage.files import filesystem, is_url

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,119}")
_SUFFIX = ".xplane.pb"
_CHUNK_BYTES = 8 * 2**20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run that is being captured."""

    logdir: str
    run: str

    @property
    def repository(self) -> str:
        """The folder of all runs at the top of the logdir; profiler servers call it the repository root."""
        return f"{self.logdir.rstrip('/')}/plugins/profile"

    @property
    def path(self) -> str:
        """The run's folder, which may not exist yet."""
        return f"{self.repository}/{self.run}"

    def save(self, host: str, pieces: Iterable[memoryview | bytes]) -> int:
        """Writes one host's file atomically; returns its size. Raises StorageError."""
        part = f"{self.repository}/.{self.run}.{host}.{secrets.token_hex(4)}.part"
        final = f"{self.path}/{host}{_SUFFIX}"
        with writing_errors(final):
            write = _write_url if is_url(self.logdir) else _write_local
            return write(part, self.path, final, pieces)

    def file_sizes(self) -> dict[str, int]:
        """Size in bytes of each host's file that exists."""
        with writing_errors(self.path):
            if is_url(self.logdir):
                fs, inner = filesystem(self.path)
                fs.invalidate_cache()
                listed = fs.ls(inner, detail=True) if fs.exists(inner) else []
                return {
                    _host(entry["name"]): int(entry["size"] or 0)
                    for entry in listed
                    if entry["name"].endswith(_SUFFIX)
                }
            if not os.path.isdir(self.path):
                return {}
            with os.scandir(self.path) as entries:
                return {
                    _host(entry.name): entry.stat().st_size
                    for entry in entries
                    if entry.name.endswith(_SUFFIX)
                }


def check_run_name(name: str) -> None:
    """Raises BadParameter for an invalid run name. An empty name is valid: it stands for the present time."""
    if name and (not _NAME.fullmatch(name) or name.endswith(".")):
        raise BadParameter(
            "run_name",
            name,
            "up to 120 letters, digits and . _ + = @ -, starting with a letter, a digit or _",
        )


def new_run(logdir: str, name: str = "") -> RunFolder:
    """A run that does not exist yet, with the given name or the present time as its name. Checks that the
    logdir is writable.

    Raises BadParameter for an invalid or taken name and StorageError if nothing can be written.
    """
    check_run_name(name)
    stem = name or datetime.now().strftime("%Y_%m_%d_%H_%M_%S")
    logdir = logdir if is_url(logdir) else os.path.abspath(logdir)
    folder, n = RunFolder(logdir, stem), 2
    with writing_errors(folder.repository):
        while _exists(folder.path):
            if name:
                raise BadParameter("run_name", name, "a name that no run has yet")
            folder, n = RunFolder(logdir, f"{stem}_{n}"), n + 1
        _check_writable(folder)
    return folder


def _check_writable(folder: RunFolder) -> None:
    """Writes and removes a small file: better to fail before the job is profiled than after."""
    part = f"{folder.repository}/.{folder.run}.{secrets.token_hex(4)}.part"
    if is_url(folder.logdir):
        fs, inner = filesystem(part)
        fs.makedirs(os.path.dirname(inner), exist_ok=True)
        fs.pipe_file(inner, b"")
        fs.rm_file(inner)
        return
    os.makedirs(folder.repository, exist_ok=True)
    with open(part, "xb"):
        pass
    os.unlink(part)


def _exists(path: str) -> bool:
    if not is_url(path):
        return os.path.lexists(path)
    fs, inner = filesystem(path)
    fs.invalidate_cache()
    return bool(fs.exists(inner))


def _write_local(part: str, folder: str, final: str, pieces: Iterable[memoryview | bytes]) -> int:
    try:
        with open(part, "xb", buffering=0) as file:
            size = sum(_write_all(file, piece) for piece in pieces)
        os.makedirs(folder, exist_ok=True)
        os.replace(part, final)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    return size


def _write_url(part: str, folder: str, final: str, pieces: Iterable[memoryview | bytes]) -> int:
    fs, inner = filesystem(part)
    target = filesystem(final)[1]
    try:
        with fs.open(inner, "wb") as file:
            size = sum(_write_all(file, piece) for piece in pieces)
        fs.makedirs(os.path.dirname(target), exist_ok=True)
        fs.mv(inner, target)
    except BaseException:
        with contextlib.suppress(Exception):
            fs.rm_file(inner)
        raise
    fs.invalidate_cache()
    return size


def _write_all(file: Any, piece: memoryview | bytes) -> int:
    """Writes a piece in chunks, without copying it; returns its size."""
    view = memoryview(piece)
    position = 0
    while position < len(view):
        chunk = view[position : position + _CHUNK_BYTES]
        n_written = file.write(chunk)
        position += len(chunk) if n_written is None else n_written
    return len(view)


def _host(path: str) -> str:
    return os.path.basename(path).removesuffix(_SUFFIX)


@contextlib.contextmanager
def writing_errors(path: str) -> Iterator[None]:
    """Context manager: turns errors of the operating system and of file systems into StorageError with a
    remedy.
    """
    try:
        yield
    except PermissionError:
        raise StorageError(
            f"{path} cannot be written: permission denied.",
            "Choose another logdir, or give TensorBoard's user permission to write there.",
        ) from None
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(
                f"{path}: no space left.", "Free some space, or capture into another logdir."
            ) from None
        if error.errno == errno.EROFS:
            raise StorageError(
                f"{path} is on a read-only file system.", "Capture into another logdir."
            ) from None
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}.", "Check that the storage is reachable."
        ) from None
