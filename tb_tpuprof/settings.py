"""The user's settings for this machine: a file of peaks, and where source code is. Environment variables name
them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PEAKS_VARIABLE = "TPUPROF_PEAKS"
LINKS_VARIABLE = "TPUPROF_SOURCE"
FOLDERS_VARIABLE = "TPUPROF_SOURCE_FILES"
_SEPARATOR = ";"
MAX_RULES = 50
_NO_ADDRESS = re.compile(r"[\x00-\x20\x7f-\x9f<>\"'`\\^|]")


@dataclass(frozen=True)
class PeaksFile:
    """`{"device name": {"flops_per_s": …, "hbm_bytes_per_s": …}}` as the user wrote it; `problem` is the
    reason if it cannot be read.
    """

    path: str = ""
    devices: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def peaks_file() -> PeaksFile:
    """The file that TPUPROF_PEAKS names; an empty one if it is not set. Read once per process."""
    path = os.environ.get(PEAKS_VARIABLE, "")
    return _read(path) if path else PeaksFile()


@cache
def _read(path: str) -> PeaksFile:
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return PeaksFile(path, {}, str(error))
    return (
        PeaksFile(path, content)
        if isinstance(content, dict)
        else PeaksFile(path, {}, "it is not a JSON object")
    )


@dataclass(frozen=True)
class SourceRule:
    """Where the files below `prefix` are: an address or a folder. A prefix ends at the end of a folder's
    name; the empty one stands for every relative path.
    """

    prefix: str
    target: str

    def rest_of(self, path: str) -> str | None:
        """The part of a path below the prefix, None if the path is elsewhere."""
        if not self.prefix:
            return None if path.startswith("/") else path
        inside = path.startswith(self.prefix + "/")
        return path[len(self.prefix) + 1 :] if inside else None


@dataclass(frozen=True)
class SourceRules:
    """The rules of one variable, longest prefix first; `problems` are the reasons why others do not apply."""

    rules: tuple[SourceRule, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, path: str) -> tuple[SourceRule, str] | None:
        """The rule with the longest prefix of the path, and the path below it."""
        for rule in self.rules:
            rest = rule.rest_of(path)
            if rest is not None:
                return rule, rest
        return None


def source_links() -> SourceRules:
    """TPUPROF_SOURCE: `PREFIX=ADDRESS` of source code on the web, several separated by semicolons."""
    return _rules(LINKS_VARIABLE, os.environ.get(LINKS_VARIABLE, ""), _address_problem)


def source_folders() -> SourceRules:
    """TPUPROF_SOURCE_FILES: `FOLDER` or `PREFIX=FOLDER`, several separated by semicolons: the folders from
    which pages may show lines of source code. None by default.
    """
    return _rules(FOLDERS_VARIABLE, os.environ.get(FOLDERS_VARIABLE, ""), _folder_problem)


@cache
def _rules(variable: str, text: str, problem_of: Callable[[str], str]) -> SourceRules:
    entries = [entry.strip() for entry in text.split(_SEPARATOR) if entry.strip()]
    rules: dict[str, SourceRule] = {}
    problems = []
    if len(entries) > MAX_RULES:
        problems.append(f"{variable}: only the first {MAX_RULES} of {len(entries)} entries apply.")
    for entry in entries[:MAX_RULES]:
        prefix, equals, target = entry.partition("=")
        if not equals and problem_of is _folder_problem:
            target = prefix
        problem = problem_of(target.strip())
        if not problem and prefix.strip() and not prefix.strip().strip("/"):
            problem = "the prefix / names no folder"
        if problem:
            problems.append(f"{variable}: the entry {entry[:200]!r} does not apply: {problem}.")
        else:
            prefix = prefix.strip().rstrip("/")
            rules.setdefault(prefix, SourceRule(prefix, target.strip()))
    ordered = sorted(rules.values(), key=lambda rule: -len(rule.prefix))
    return SourceRules(tuple(ordered), tuple(problems))


def _address_problem(address: str) -> str:
    """Why an address cannot be linked to; empty if it can."""
    try:
        parts = urlsplit(address)
        host, user = parts.hostname, parts.username
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not host:
        return "write PREFIX=https://host/path"
    if "{" in parts.netloc:
        return "the server's name must not contain a placeholder"
    if user is not None:
        return "an address must not contain a user name"
    return (
        "the address contains a character that addresses cannot have" if _NO_ADDRESS.search(address) else ""
    )


def _folder_problem(folder: str) -> str:
    """Why lines of the files in a folder cannot be shown; empty if they can."""
    if not os.path.isabs(folder):
        return "write an absolute folder, or PREFIX=FOLDER"
    return (
        "" if len([part for part in folder.split("/") if part]) > 0 else "the whole file system is too much"
    )
