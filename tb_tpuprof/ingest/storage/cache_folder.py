"""The user's cache folder: where it is, how files get into it, and how it stays within a size.

<TPUPROF_CACHE_DIR, else tb_tpuprof in the platform's cache folder of the user>/columns, …/results
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

RESERVE_BYTES = 2**30
_UNFINISHED = ".part"
_ABANDONED_AFTER_S = 3600.0


def cache_folder(kind: str) -> Path:
    """Where files of a kind are cached: `columns` or `results`. It need not exist."""
    chosen = os.environ.get("TPUPROF_CACHE_DIR")
    if chosen:
        return Path(chosen) / kind
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tb_tpuprof" / kind


def write_whole(path: Path, parts: Iterable[Buffer], n_bytes: int) -> None:
    """Write a cache file so that nobody sees part of it: under another name, then renamed.

    `n_bytes`: its size, of which the disk must keep RESERVE_BYTES free (a tenth of a small disk). Raises
    OSError; then nothing remains of the file.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(path.parent.stat()):
        raise PermissionError(errno.EPERM, "other users can write here", str(path.parent))
    disk = shutil.disk_usage(path.parent)
    if disk.free - n_bytes < min(RESERVE_BYTES, disk.total // 10):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path.parent))
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=_UNFINISHED, delete=False) as file:
        try:
            for part in parts:
                file.write(part)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def is_private(facts: os.stat_result) -> bool:
    """Whether a cache file or folder belongs to this user or to root, and no other user can write to it.

    Whoever writes cache files decides which numbers the pages show. Windows has no such owners and modes; its
    cache folder is in the user's profile.
    """
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid in (os.geteuid(), 0) and not facts.st_mode & stat.S_IWOTH


def trim(folder: Path, limit_bytes: int) -> None:
    """Remove the least recently used files until the rest is within the limit, and unfinished files of
    processes that were killed.
    """
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in files)
    abandoned_before = time.time() - _ABANDONED_AFTER_S
    for used_s, size, path in sorted(files):
        if total > limit_bytes or (path.suffix == _UNFINISHED and used_s < abandoned_before):
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
