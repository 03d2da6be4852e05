"""The decoded traces of a run that stay in memory."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.trace.trace import Trace


class TraceMemory:
    """Traces by the state of their file, at most `limit_bytes` together: the least recently used is dropped
    first. The last one stays, whatever its size. Thread-safe.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._traces: OrderedDict[FileState, Trace] = OrderedDict()
        self._lock = Lock()

    def get(self, state: FileState) -> Trace | None:
        """The trace of a file in that state, if it is here."""
        with self._lock:
            trace = self._traces.get(state)
            if trace is not None:
                self._traces.move_to_end(state)
            return trace

    def keep(self, state: FileState, trace: Trace) -> None:
        """Keep a trace; drops others if there is not enough room."""
        with self._lock:
            self._traces[state] = trace
            self._traces.move_to_end(state)
            total = sum(held.size_bytes for held in self._traces.values())
            while total > self.limit_bytes and len(self._traces) > 1:
                _, dropped = self._traces.popitem(last=False)
                total -= dropped.size_bytes

    def drop(self, state: FileState) -> None:
        """Forget the trace of a file in that state."""
        with self._lock:
            self._traces.pop(state, None)

    @property
    def size_bytes(self) -> int:
        """Memory used by the traces."""
        with self._lock:
            return sum(trace.size_bytes for trace in self._traces.values())
