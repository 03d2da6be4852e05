"""One run, opened: its hosts, their traces (decoded when first needed) and every analysis, each computed once."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tb_tpuprof.analysis.live import LiveSample, live_sample
from tb_tpuprof.ingest import cache as column_cache
from tb_tpuprof.ingest.files import FileState, file_state
from tb_tpuprof.ingest.hlo_programs import programs_in, read_program
from tb_tpuprof.ingest.opening import open_trace, trace_of_bytes
from tb_tpuprof.ingest.runs import HostFile, RunInfo, host_file, open_run
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")
DEFAULT_MEMORY_BYTES = 2 * 2**30


class Session:
    """A run and what has been computed of it. Safe for use by several threads; a file that changes is read anew.

    `RUN_DIR` holds one `<host>.xplane.pb[.gz]` per host. With `cache`, decoded columns are kept in the user's cache folder.
    Traces beyond `memory_bytes` are dropped, the longest unused first; results of analyses stay.
    """

    def __init__(self, run_dir: str, cache: bool = True, name: str = "", memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.info: RunInfo = open_run(run_dir)
        self.run = name or self.info.name
        self.cache = cache
        self.memory_bytes = memory_bytes
        self._lock = threading.RLock()
        self._host_locks: dict[str, threading.RLock] = {}
        self._states: dict[str, FileState] = {}
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._results: dict[tuple[Callable[..., Any], str], Any] = {}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The run's hosts, in natural order."""
        return tuple(file.host for file in self.info.files)

    def file(self, host: str) -> HostFile:
        """The host's file. Raises HostNotFound."""
        return host_file(self.info, host)

    def trace(self, host: str) -> Trace:
        """The decoded trace of one host. Raises HostNotFound, StorageError or TraceFormatError."""
        with self._host_lock(host):
            state = self._fresh_state(host)
            with self._lock:
                known = self._traces.get(host)
                if known is not None:
                    self._traces.move_to_end(host)
                    return known
            trace = column_cache.load(state) if self.cache else None
            if trace is None:
                trace = open_trace(state.path)
                if self.cache:
                    column_cache.save_later(state, trace)
            with self._lock:
                self._traces[host] = trace
                self._drop_old(keep=host)
            return trace

    def get(self, function: Callable[[Trace], T], host: str) -> T:
        """`function(trace of host)`, computed once for as long as the file stays as it is."""
        with self._host_lock(host):
            self._fresh_state(host)
            key = (function, host)
            if key not in self._results:
                self._results[key] = function(self.trace(host))
            result: T = self._results[key]
            return result

    def programs(self, host: str = "") -> Programs:
        """The compiled programs of a host; without a host those whose HLO stands in files of the run's folder."""
        if host:
            return self.trace(host).programs
        return Programs(programs_in(self.info.path), read_program)

    def map(self, function: Callable[[Trace], T], hosts: Sequence[str]) -> list[T]:
        """`get` for each host, on as many threads as there are processors. Decoding and native loops run side by side."""
        if len(hosts) < 2:
            return [self.get(function, host) for host in hosts]
        with ThreadPoolExecutor(min(len(hosts), os.cpu_count() or 1)) as pool:
            return list(pool.map(lambda host: self.get(function, host), hosts))

    @property
    def size_bytes(self) -> int:
        """Memory that the decoded traces take."""
        with self._lock:
            return sum(trace.size_bytes for trace in self._traces.values())

    def fingerprint(self) -> str:
        """What identifies the state of all the run's files."""
        return "|".join(f"{file.path}:{file.size_bytes}:{file.mtime_ns}" for file in self.info.files)

    def _host_lock(self, host: str) -> threading.RLock:
        with self._lock:
            return self._host_locks.setdefault(host, threading.RLock())

    def _fresh_state(self, host: str) -> FileState:
        """The file's state; where it is not what it was, everything known of the host is forgotten."""
        state = file_state(self.file(host).path)
        with self._lock:
            if self._states.get(host) != state:
                self._states[host] = state
                self._traces.pop(host, None)
                for key in [key for key in self._results if key[1] == host]:
                    del self._results[key]
        return state

    def _drop_old(self, keep: str) -> None:
        total = sum(trace.size_bytes for trace in self._traces.values())
        for host in list(self._traces):
            if total <= self.memory_bytes or host == keep:
                break
            total -= self._traces.pop(host).size_bytes


def measure(xspace: bytes | memoryview) -> LiveSample:
    """The numbers of monitoring from a profile that never becomes a run. Raises TraceFormatError."""
    return live_sample(trace_of_bytes(xspace, "the profile"))


class SessionStore:
    """Sessions of the runs that are being looked at; at most `limit`, the longest unused dropped first."""

    def __init__(self, limit: int = 8, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.limit = limit
        self.memory_bytes = memory_bytes
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, run: RunInfo) -> Session:
        """The session of a run; a new one where the set of its files or their state has changed."""
        with self._lock:
            known = self._sessions.get(run.path)
            if known is None or known.info.files != run.files:
                known = Session(run.path, name=run.name, memory_bytes=self.memory_bytes)
                self._sessions[run.path] = known
            self._sessions.move_to_end(run.path)
            self._drop_old()
            return known

    def _drop_old(self) -> None:
        total = sum(session.size_bytes for session in self._sessions.values())
        for path in list(self._sessions)[:-1]:
            if len(self._sessions) <= self.limit and total <= self.memory_bytes:
                break
            total -= self._sessions.pop(path).size_bytes
