"""The decoded traces of a run that stay in memory."""

from __future__ import annotations

from collections.abc import Hashable

from tb_tpuprof.ingest.storage.files import FileState
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.trace.trace import Trace


class TraceMemory:
    """Traces by the state of their file, within the memory that all sessions share. Thread-safe."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._traces: dict[Hashable, Trace] = {}

    def get(self, state: FileState) -> Trace | None:
        """The trace of a file in that state, if it is here."""
        trace = self._traces.get(state)
        if trace is not None:
            self.memory.use(self, state)
        return trace

    def keep(self, state: FileState, trace: Trace) -> None:
        """Keep a trace; drops other parts of sessions if there is not enough room."""
        self._traces[state] = trace
        self.memory.use(self, state)
        self.memory.trim()

    def bytes_of(self, part: Hashable) -> int:
        """Memory of a file's trace and, about, of what was computed from it."""
        trace = self._traces.get(part)
        return trace.kept_bytes if trace else 0

    def drop(self, part: Hashable) -> bool:
        """Forget the trace of a file in that state."""
        self._traces.pop(part, None)
        return True

    @property
    def size_bytes(self) -> int:
        """Memory of the traces' tables."""
        return sum(trace.size_bytes for trace in list(self._traces.values()))
