"""The sessions of a server."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from tb_tpuprof.ingest.storage.run_info import HostFile, RunInfo
from tb_tpuprof.parallel.progress import ReadingProgress
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.session import Session


class SessionStore:
    """Sessions of the runs in use; at most `limit`, the least recently used is dropped first. All that they
    keep stays within one `memory`, which holds at most `memory_bytes` (0: `memory_budget`).
    """

    def __init__(self, limit: int = 8, memory_bytes: int = 0, executor: str = "") -> None:
        self.limit = limit
        self.executor = executor
        self.memory = Memory(memory_bytes or None)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._files: dict[str, tuple[HostFile, ...]] = {}
        self._lock = Lock()

    def open(self, run: RunInfo) -> Session:
        """The session of a run; a new one where the set of its files or their state has changed."""
        with self._lock:
            session = self._sessions.get(run.path)
            # Compared with the files passed at opening: the session's paths are absolute, those of a
            # relative log directory are not.
            if session is None or self._files[run.path] != run.files:
                session = Session(run.path, name=run.name, memory=self.memory, executor=self.executor)
                self._sessions[run.path], self._files[run.path] = session, run.files
            self._sessions.move_to_end(run.path)
            while len(self._sessions) > self.limit:
                self._sessions.popitem(last=False)
        self.memory.trim(is_between_requests=True)
        return session

    def progress(self, run: str) -> ReadingProgress | None:
        """Progress of the read in progress for the named run; None if there is none. Reads nothing."""
        with self._lock:
            sessions = [session for session in self._sessions.values() if session.run == run]
        return next((progress for session in sessions if (progress := session.progress())), None)
