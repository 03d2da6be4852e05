"""A place in source code that a trace names → the lines around it, from a folder that the user allowed.

Traces are hostile: a place may name any file. A file is read only if

    * `TPUPROF_SOURCE_FILES` names a folder that contains it (by default none is read),
    * no part of its path below that folder is `..`, hidden, or a symbolic link, and
    * it is a regular text file of source code, by its ending, of at most 2 MiB.

Anything else is no snippet, without a reason: a page must not become a way to ask which files exist.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from tb_tpuprof.settings import source_folders

AROUND = 3  # lines before and after
MAX_BYTES = 2 * 2**20
MAX_CHARACTERS = 240  # of a line
MAX_PATH = 4096
_PLACE = re.compile(r"(.+?):(\d{1,7})(?::\d{1,7})?")
_CODE = (
    ".py",
    ".pyi",
    ".pyx",
    ".pxd",
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hh",
    ".hpp",
    ".inc",
    ".rs",
    ".go",
    ".java",
    ".kt",
    ".jl",
    ".swift",
    ".js",
    ".ts",
    ".mlir",
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_INSIDE = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | _INSIDE | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CAN_WALK = bool(_INSIDE) and os.open in os.supports_dir_fd


@dataclass(frozen=True)
class Snippet:
    """Lines of a file: `place` as the trace names it, its `line`, and the number of the first of `lines`."""

    place: str
    line: int
    first_line: int
    lines: tuple[str, ...]


def snippet(place: str) -> Snippet | None:
    """The lines around a place `file:line`, None if they may not or cannot be shown."""
    folders = source_folders()
    match = _PLACE.fullmatch(place) if folders.rules and len(place) <= MAX_PATH else None
    found = folders.find(match[1]) if match else None
    if match is None or found is None:
        return None
    rule, rest = found
    text = _text(rule.target, rest.split("/"))
    line = int(match[2])
    lines = text.split("\n") if text is not None else []
    if not 1 <= line <= len(lines):
        return None
    first = max(line - AROUND, 1)
    return Snippet(place, line, first, tuple(_shown(each) for each in lines[first - 1 : line + AROUND]))


def _shown(line: str) -> str:
    return _CONTROL.sub(" ", line.rstrip("\r")).expandtabs(4)[:MAX_CHARACTERS]


def _text(folder: str, parts: list[str]) -> str | None:
    """The text of a file below a folder, reached without following a link."""
    if not _CAN_WALK or not parts[-1].endswith(_CODE):
        return None
    if any(not part or part.startswith(".") or "\0" in part for part in parts):
        return None
    try:
        at = os.open(folder, _FOLDER)
        for part in parts[:-1]:
            at = _entered(at, part, _FOLDER | _INSIDE)
        at = _entered(at, parts[-1], _FILE)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    try:
        status = os.fstat(at)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        with open(at, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(at)
    return None if len(data) > MAX_BYTES or b"\0" in data else data.decode("utf-8", "replace")


def _entered(folder: int, name: str, flags: int) -> int:
    """Opens an entry of an open folder, and closes the folder."""
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)
