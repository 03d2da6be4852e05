"""One run, opened: its hosts, their traces (decoded when first needed) and every analysis, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")


class Session:
    """`RUN_DIR` holds one `<host>.xplane.pb[.gz]` per host."""

    run: str
    hosts: tuple[str, ...]

    def trace(self, host: str) -> Trace:
        """The decoded trace of one host. Raises HostNotFound, TraceFormatError, StorageError."""
        raise NotImplementedError

    def get(self, function: Callable[[Trace], T], host: str) -> T:
        """`function(trace of host)`, computed once and kept (memoised on function, host and the file's state)."""
        raise NotImplementedError
