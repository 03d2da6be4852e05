"""A run: its folder, its hosts' files, and when it was captured."""

from __future__ import annotations

from dataclasses import dataclass

OK, HLO, LEGACY, MEMORY = "ok", "hlo", "legacy", "memory"


@dataclass(frozen=True)
class HostFile:
    """One host's trace file."""

    host: str
    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class RunInfo:
    """A profile run.

    `state` is ok, hlo (programs without a trace; its only file, of host `NO_HOST`, is the largest one, with
    the size of all), memory (snapshots of memory without a trace), legacy (only pages that older profilers
    saved; a host's file is the largest, with the size of all), unsupported (other files, which cannot be
    opened), unreadable (the folder, or each of its traces) or empty; `message` says what the files are and
    what to do.
    """

    name: str
    path: str
    files: tuple[HostFile, ...]
    captured_at: str
    state: str
    message: str

    @property
    def has_trace(self) -> bool:
        """Whether its files are traces: not programs, saved pages or snapshots of memory."""
        return self.state not in (HLO, LEGACY, MEMORY)

    @property
    def has_hosts(self) -> bool:
        """Whether its files are those of hosts, or snapshots, which the user chooses from in the same way."""
        return self.state not in (HLO, LEGACY)
