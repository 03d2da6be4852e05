"""The user's cache folder: where it is, how files get into it, and how it stays within a size.

<TPUPROF_CACHE_DIR, else tb_tpuprof in the platform's cache folder of the user>/columns, …/results
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


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


def write_whole(path: Path, parts: Iterable[Buffer]) -> None:
    """Write a file so that nobody sees a part of it: under another name, then moved. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        for part in parts:
            file.write(part)
    os.replace(file.name, path)


def trim(folder: Path, limit_bytes: int) -> None:
    """Remove the longest unused files until the rest is within the limit, and what unfinished writers left
    behind.
    """
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            facts = path.stat()
            files.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in files)
    newest = max((time for time, _, _ in files), default=0.0)
    for time, size, path in sorted(files):
        is_left_behind = path.suffix == ".part" and time < newest - 3600
        if total > limit_bytes or is_left_behind:
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size
