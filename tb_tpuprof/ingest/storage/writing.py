"""Captured profiles → files of a new run in a logdir, local or behind a URL. A run shows only complete files.

<logdir>/plugins/profile/.<run>.<host>.<random>.part     while it is being written: next to the runs; no
                                                         search lists it
<logdir>/plugins/profile/<run>/<host>.xplane.pb          its name when complete; the folder is made then

No existing file is ever replaced: several processes may save into one run at the same time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tb_tpuprof.errors import BadParameter, StorageError
from tb_tpuprof.ingest.storage.cache_folder import RESERVE_BYTES
from tb_tpuprof.ingest.storage.files import filesystem, is_url, local_folders

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,119}")
_SUFFIX = ".xplane.pb"
_CHUNK_BYTES = 8 * 2**20
_UNFINISHED = ".part"
_ABANDONED_AFTER_S = 24 * 3600.0
_MOST_FILES_OF_A_HOST = 10_000
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class SavedFile:
    """A file of a run: its name without the suffix, and its size."""

    host: str
    size_bytes: int


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

    def save(self, host: str, pieces: Iterable[memoryview | bytes]) -> SavedFile:
        """Write one host's file atomically. If the run has a file of that host, the new one is called
        `<host>_2`, `<host>_3` … Raises StorageError.
        """
        part = f"{self.repository}/.{self.run}.{host}.{secrets.token_hex(4)}.part"
        with writing_errors(f"{self.path}/{host}{_SUFFIX}"):
            if is_url(self.logdir):
                return _write_url(part, self.path, host, pieces)
            _remove_abandoned(self.repository)
            return _write_local(part, self.path, host, pieces)

    def free_bytes(self) -> int | None:
        """How much may still be written: the disk keeps 1 GiB free (a tenth of a small disk). With a logdir
        behind a URL, that of the local disk that receives it (`local_folders`); None if there is none.
        Raises StorageError.
        """
        with writing_errors(self.repository):
            return min(map(_free_bytes, local_folders(self.repository)), default=None)

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


def _free_bytes(folder: str) -> int:
    os.makedirs(folder, exist_ok=True)
    disk = shutil.disk_usage(folder)
    return max(0, disk.free - min(RESERVE_BYTES, disk.total // 10))


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
        _remove_abandoned_objects(fs, os.path.dirname(inner))
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
    return _exists_now(*filesystem(path))


def _write_local(part: str, folder: str, host: str, pieces: Iterable[memoryview | bytes]) -> SavedFile:
    try:
        with open(part, "xb", buffering=0) as file:
            size = sum(_write_all(file, piece) for piece in pieces)
        os.makedirs(folder, exist_ok=True)
        for name in _names(host):
            if _takes_name(part, f"{folder}/{name}{_SUFFIX}"):
                return SavedFile(name, size)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{folder}/{host}{_SUFFIX}")
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _takes_name(part: str, final: str) -> bool:
    """Give a complete file its final name; False if another file has it."""
    try:
        os.link(part, final)  # unlike a rename, it fails if the name is taken
    except FileExistsError:
        return False
    except OSError:  # file systems without hard links, such as mounted buckets
        try:
            with open(final, "xb"):
                pass
        except FileExistsError:
            return False
        try:
            os.replace(part, final)
        except BaseException:
            os.unlink(final)  # it is only reserved
            raise
        return True
    os.unlink(part)
    return True


def _names(host: str) -> Iterator[str]:
    yield host
    for n in range(2, _MOST_FILES_OF_A_HOST):
        yield f"{host}_{n}"


def _remove_abandoned(repository: str) -> None:
    """Remove unfinished files of captures that were killed. Those of running captures are younger."""
    before = time.time() - _ABANDONED_AFTER_S
    with contextlib.suppress(OSError), os.scandir(repository) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(_UNFINISHED):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


def _remove_abandoned_objects(fs: Any, repository: str) -> None:
    """As `_remove_abandoned`, behind a URL."""
    with contextlib.suppress(Exception):  # drivers fail in many ways, and some know no times
        before = time.time() - _ABANDONED_AFTER_S
        for entry in fs.ls(repository, detail=False):
            name = entry.rpartition("/")[2]
            is_unfinished = name.startswith(".") and name.endswith(_UNFINISHED)
            if is_unfinished and fs.modified(entry).timestamp() < before:
                fs.rm_file(entry)


def _write_url(part: str, folder: str, host: str, pieces: Iterable[memoryview | bytes]) -> SavedFile:
    fs, inner = filesystem(part)
    target_folder = filesystem(folder)[1]
    target = ""
    try:
        with fs.open(inner, "wb") as file:
            size = sum(_write_all(file, piece) for piece in pieces)
        fs.makedirs(target_folder, exist_ok=True)
        name = _free_name(fs, target_folder, host)
        target = f"{target_folder}/{name}{_SUFFIX}"
        fs.mv(inner, target)
    except BaseException:
        with contextlib.suppress(Exception):
            fs.rm_file(inner)
        with contextlib.suppress(Exception):
            if target and not fs.size(target):  # only reserved: nothing was moved there
                fs.rm_file(target)
        raise
    fs.invalidate_cache()
    return SavedFile(name, size)


def _free_name(fs: Any, folder: str, host: str) -> str:
    """A name for a host's file that no other process gets. An empty object reserves it; if the store cannot
    create one on condition that there is none, the name ends in random digits.
    """
    for name in _names(host):
        path = f"{folder}/{name}{_SUFFIX}"
        if _exists_now(fs, path):
            continue
        try:
            fs.pipe_file(path, b"", mode="create")
        except Exception:  # drivers report a taken name, and a missing feature, in many ways
            if _exists_now(fs, path):
                continue
            return f"{host}_{secrets.token_hex(4)}"
        return name
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{folder}/{host}{_SUFFIX}")


def _exists_now(fs: Any, path: str) -> bool:
    fs.invalidate_cache()
    return bool(fs.exists(path))


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
