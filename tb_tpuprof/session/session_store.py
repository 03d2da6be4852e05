"""The sessions of a server."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from tb_tpuprof.ingest.storage.run_info import HostFile, RunInfo
from tb_tpuprof.native.machine_memory import memory_budget
from tb_tpuprof.parallel.progress import ReadingProgress
from tb_tpuprof.session.session import Session


class SessionStore:
    """Sessions of the runs in use; at most `limit`, the least recently used is dropped first."""

    def __init__(self, limit: int = 8, memory_bytes: int = 0, executor: str = "") -> None:
        self.limit = limit
        self.executor = executor
        self.memory_bytes = memory_bytes or memory_budget()
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
                session = Session(
                    run.path, name=run.name, memory_bytes=self.memory_bytes, executor=self.executor
                )
                self._sessions[run.path], self._files[run.path] = session, run.files
            self._sessions.move_to_end(run.path)
            self._drop_old()
            return session

    def progress(self, run: str) -> ReadingProgress | None:
        """Progress of the read in progress for the named run; None if there is none. Reads nothing."""
        with self._lock:
            sessions = [session for session in self._sessions.values() if session.run == run]
        return next((progress for session in sessions if (progress := session.progress())), None)

    def _drop_old(self) -> None:
        total = sum(session.kept_bytes for session in self._sessions.values())
        for path in list(self._sessions)[:-1]:
            if len(self._sessions) <= self.limit and total <= self.memory_bytes:
                break
            total -= self._sessions.pop(path).kept_bytes
