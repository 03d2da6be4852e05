"""One run, opened: its hosts, their traces (decoded when first needed) and every analysis, each computed
once.
"""

from __future__ import annotations

import copy
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import replace
from typing import Any, TypeVar

import numpy.ma  # noqa: F401 (np.unique loads it at its first call: 10 ms that the first answer would wait for)

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.frameworks import software
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.overview.live import LiveSample, live_sample
from tb_tpuprof.analysis.steps import gpu_host as gpu_host_steps  # noqa: F401 (loaded with the plugin, not later)
from tb_tpuprof.analysis.steps import host as host_steps  # noqa: F401 (loaded with the plugin, not later)
from tb_tpuprof.analysis.steps import pytorch_pieces  # noqa: F401 (loaded with the plugin, not later)
from tb_tpuprof.analysis.steps import tpu as tpu_steps  # noqa: F401 (loaded with the plugin, not later)
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.diagnostics import Notice, trace_notices
from tb_tpuprof.errors import HostsUnreadable, ProfilerError, TraceFormatError
from tb_tpuprof.ingest.chrome import decoder as chrome_trace  # noqa: F401 (loaded with the plugin, not while the first answer waits)
from tb_tpuprof.ingest.evaluation import evaluate
from tb_tpuprof.ingest.graphs.files import GraphCache, find_graphs, graph_folder, read_place
from tb_tpuprof.ingest.hlo import module as hlo  # noqa: F401 (loaded with the plugin, not while the first answer waits)
from tb_tpuprof.ingest.opening import open_trace, trace_of_bytes
from tb_tpuprof.ingest.storage import cache as column_cache
from tb_tpuprof.ingest.storage import results as result_cache
from tb_tpuprof.ingest.storage.files import FileState, file_state
from tb_tpuprof.ingest.storage.programs import program_of_file, programs_in, read_program
from tb_tpuprof.ingest.storage.run_info import HostFile, RunInfo
from tb_tpuprof.ingest.storage.runs import host_file, is_program, open_run
from tb_tpuprof.parallel import executors
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.progress import ProgressTracker, ReadingProgress
from tb_tpuprof.parallel.threads import single_threaded
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")
Function = Callable[[Trace], Any]
DEFAULT_MEMORY_BYTES = 2 * 2**30
KEPT_GRAPHS = 4  # a large one with what is made of it takes as much as its file
# Nearly every page asks for these, and they cost little while the trace is at hand.
_ALONG: tuple[Function, ...] = (trace_notices, hardware, planes, software, clock_marks)


class _Graphs:
    """What is known of TensorFlow graphs beside the run."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: GraphCache = {}
        self.results: OrderedDict[tuple[object, ...], Any] = OrderedDict()


class Session:
    """A run and what has been computed of it. Safe for use by several threads; a file that changes is read
    anew.

    `RUN_DIR` holds one `<host>.xplane.pb[.gz]` per host. With `cache`, decoded columns and results are kept
    in the user's cache folder. Traces beyond `memory_bytes` are dropped, the longest unused first; results of
    analyses stay. `executor` names where analyses of several hosts run (`parallel/executors.py`).
    """

    def __init__(
        self,
        run_dir: str,
        cache: bool = True,
        name: str = "",
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        executor: str = "",
    ) -> None:
        self.info: RunInfo = open_run(run_dir)
        self._along = (
            _ALONG if len(self.info.files) > 1 else _ALONG[:-1]
        )  # a single host's clock agrees with itself
        self.run = name or self.info.name
        self._is_one_program = is_program(
            self.info.path
        )  # not its whole folder, whose results are kept under the same file's name
        self.cache = cache and not self._is_one_program
        self.memory_bytes = memory_bytes
        self.executor = executors.check_name(executor or os.environ.get(executors.EXECUTOR_VARIABLE, ""))
        self._progress = ProgressTracker()
        self._lock = threading.RLock()
        self._host_locks: dict[str, threading.RLock] = {}
        self._states: dict[str, FileState] = {}
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._results: dict[tuple[Function, str], Any] = {}
        self._failures: dict[str, ProfilerError] = {}
        self._outlines: dict[str, Trace] = {}
        self._graphs = _Graphs()
        self._files = {file.host: file for file in reversed(self.info.files)}

    @property
    def hosts(self) -> tuple[str, ...]:
        """The run's hosts, in natural order."""
        return tuple(file.host for file in self.info.files)

    def without(self, hosts: Iterable[str]) -> Session:
        """The same session as if the run had none of these hosts."""
        gone, other = set(hosts), copy.copy(self)
        other.info = replace(
            self.info, files=tuple(file for file in self.info.files if file.host not in gone)
        )
        other._files = {host: file for host, file in self._files.items() if host not in gone}
        return other

    def file(self, host: str) -> HostFile:
        """The host's file. Raises HostNotFound."""
        return self._files.get(host) or host_file(self.info, host)

    def trace(self, host: str) -> Trace:
        """The decoded trace of one host. Raises HostNotFound, StorageError or TraceFormatError, whose `host`
        it is.
        """
        with self._host_lock(host):
            state = self._fresh_state(host)
            return self._known_trace(host) or self._opened(host, state, keep=True)

    def outline(self, host: str) -> Trace:
        """The trace of one host, maybe without its lines and events: planes with their stats, and programs.
        Raises as `trace` does.
        """
        with self._host_lock(host):
            state = self._fresh_state(host)
            found = self._outlines.get(host) or self._known_trace(host)
            if found is None:
                found = self._outlines[host] = self._read(host, state, is_outline=True)
            return found

    def notices(self, host: str) -> tuple[Notice, ...]:
        """What to know of as much of the host's trace as was read, its outline at least. Raises as `trace`
        does.
        """
        with self._host_lock(host):
            known = self._kept(trace_notices, host)
            if known or self._known_trace(host):
                return known[0] if known else self.get(trace_notices, host)
            return trace_notices(self.outline(host))

    def get(self, function: Callable[[Trace], T], host: str) -> T:
        """`function(trace of host)`, computed once for as long as the file stays as it is. Raises as `trace`
        does.
        """
        return self._get(function, host, keep=True)

    def programs(self, host: str = "") -> Programs:
        """The compiled programs of a host; without a host those whose HLO stands in files of the run's
        folder.

        Where the run is a single program's file, that program alone.
        """
        if self._is_one_program:
            return Programs(
                [program_of_file(file.path, file.size_bytes) for file in self.info.files], read_program
            )
        if host:
            return self.outline(host).programs
        folders = list(dict.fromkeys(os.path.dirname(file.path) for file in self.info.files))
        joined = folders if len(folders) > 1 else [self.info.path]
        found = {program.title: program for folder in reversed(joined) for program in programs_in(folder)}
        return Programs(list(found.values()), read_program)

    def graphs(self) -> GraphSearch:
        """The TensorFlow graphs in the folder above the run's `plugins`, and below it."""
        with self._graphs.lock:
            return find_graphs(graph_folder(self.info.path), self._graphs.known)

    def of_graph(self, function: Callable[[Graph], T], place: GraphPlace) -> T:
        """`function(graph at place)`, kept for as long as the file stays as it is. Raises StorageError or
        TraceFormatError.
        """
        key = (function, place, file_state(place.path))
        with self._graphs.lock:
            if key not in self._graphs.results:
                self._graphs.results[key] = function(read_place(place))
                while len(self._graphs.results) > KEPT_GRAPHS:
                    self._graphs.results.popitem(last=False)
            self._graphs.results.move_to_end(key)
            return self._graphs.results[key]  # type: ignore[no-any-return]

    def map(self, function: Callable[[Trace], T], hosts: Sequence[str], *with_it: Function) -> list[T]:
        """`get` for each host, side by side on the executor. Raises HostsUnreadable when the others are
        computed.

        `with_it`: what is asked of these hosts next. It is computed of the same reading, since traces of many
        hosts are not kept.
        """
        functions = (function, *with_it)
        failures: dict[str, ProfilerError] = {}
        known: dict[str, T] = {}
        waiting: list[str] = []
        for host in hosts:
            try:
                for result in self._kept(function, host):
                    known[host] = result
                if host not in known or not all(self._kept(one, host) for one in with_it):
                    waiting.append(host)
            except ProfilerError as error:
                failures[host] = error
        keep = len(hosts) <= POLICY.max_hosts_in_memory
        if waiting:
            with self._progress.reading({host: self.file(host).size_bytes for host in waiting}) as task:
                for host, failure in self._compute(functions, waiting, keep):
                    self._progress.host_done(task, host)
                    if failure:
                        failures[host] = failure
        if failures:
            raise HostsUnreadable({host: failures[host] for host in hosts if host in failures})
        return [known[host] if host in known else self._get(function, host, keep) for host in hosts]

    def known(self, function: Callable[[Trace], T], hosts: Sequence[str]) -> list[T] | None:
        """What `map` gives, where it is there for all of the hosts, or was kept by an earlier process; else
        None. Reads no trace.

        Raises HostNotFound, StorageError or TraceFormatError as `trace` does.
        """
        found = [self._kept(function, host) for host in hosts]
        return [result for results in found for result in results] if all(found) else None

    def known_failures(self, hosts: Iterable[str]) -> dict[str, ProfilerError]:
        """Why hosts cannot be read, of those of which it is known without reading: it was tried before, or
        nothing is in the file.
        """
        found: dict[str, ProfilerError] = {}
        for host in hosts:
            try:
                self._fresh_state(host)
                if not self.file(host).size_bytes:
                    self.outline(host)
            except ProfilerError as error:
                found[host] = error
            if host in self._failures:
                found[host] = self._failures[host]
        return found

    def progress(self) -> ReadingProgress | None:
        """What is being read at the moment; None while nothing is."""
        return self._progress.current()

    @property
    def size_bytes(self) -> int:
        """Memory that the decoded traces take."""
        with self._lock:
            return sum(trace.size_bytes for trace in self._traces.values())

    def fingerprint(self) -> str:
        """What identifies the state of all the run's files."""
        return "|".join(f"{file.path}:{file.size_bytes}:{file.mtime_ns}" for file in self.info.files)

    def _compute(
        self, functions: tuple[Function, ...], hosts: list[str], keep: bool
    ) -> Iterator[tuple[str, ProfilerError | None]]:
        """Make the results of hosts known, on the executor; yields each host as it is done, with its error if
        it cannot be read.
        """
        if len(hosts) == 1:  # no thread to start and to wait for
            yield hosts[0], self._failure_of(functions, hosts[0], keep)
            return
        is_full = POLICY.hosts_fill_processors([self.file(host).size_bytes for host in hosts])

        def work(host: str) -> None:
            with single_threaded(is_full):
                self._get(functions[0], host, keep, functions[1:])

        name = self.executor if all(map(result_cache.travels, functions)) else executors.THREADS
        with executors.host_executor(name, len(hosts)) as executor:
            if executor.is_remote:
                yield from self._compute_far(executor.calls, functions, hosts)
                return
            submitted = {executor.calls.submit(work, host): host for host in hosts}
            for done in as_completed(submitted):
                yield submitted[done], _failure(done)

    def _failure_of(self, functions: tuple[Function, ...], host: str, keep: bool) -> ProfilerError | None:
        """Make the results of a host known; why it cannot be read, if it cannot."""
        try:
            self._get(functions[0], host, keep, functions[1:])
        except ProfilerError as error:
            return error
        return None

    def _compute_far(
        self, far: Executor, functions: tuple[Function, ...], hosts: list[str]
    ) -> Iterator[tuple[str, ProfilerError | None]]:
        """In other processes. What does not travel back (it may be too large) is computed here when it is
        asked for.
        """
        asked = tuple(dict.fromkeys((*functions, *self._along)))
        is_full = POLICY.hosts_fill_processors([self.file(host).size_bytes for host in hosts])
        submitted = {far.submit(evaluate, self.file(host).path, asked, is_full): host for host in hosts}
        for done in as_completed(submitted):
            host, error = submitted[done], _failure(done)
            if error:
                error.host = host
            else:
                self._take(host, dict(zip(asked, done.result(), strict=True)))
            yield host, error

    def _take(self, host: str, packed: dict[Function, bytes | None]) -> None:
        """Keep results that came from another process."""
        with self._host_lock(host):
            state = self._fresh_state(host)
            for function, data in packed.items():
                if data is not None:
                    self._results[function, host] = result_cache.unpack(data)
            self._save(state, packed)

    def _save(self, state: FileState, packed: dict[Function, bytes | None]) -> None:
        """Keep packed results for later processes: those that nearly every page asks for in one file, each
        other in its own.
        """
        along = {function: packed[function] for function in self._along if self._along[0] in packed}
        for one in [along, *({function: data} for function, data in packed.items() if function not in along)]:
            if self.cache and any(one.values()):
                result_cache.save(state, one)

    def _kept(self, function: Callable[[Trace], T], host: str) -> tuple[T, ...]:
        """(the result,) where it is there, or was kept by an earlier process, else (). Raises what reading
        the file raised before.
        """
        with self._host_lock(host):
            state = self._fresh_state(host)
            if (function, host) not in self._results and self.cache and result_cache.travels(function):
                for one, result in result_cache.load(
                    state, self._along if function in self._along else (function,)
                ).items():
                    self._results.setdefault((one, host), result)
            if (function, host) not in self._results and host in self._failures:
                raise self._failures[host]
            return (self._results[function, host],) if (function, host) in self._results else ()

    def _get(
        self, function: Callable[[Trace], T], host: str, keep: bool, with_it: tuple[Function, ...] = ()
    ) -> T:
        """As `get`, and `with_it` of the same trace; without `keep` the trace is dropped as soon as the
        results are there.
        """
        with self._host_lock(host):
            functions = (function, *with_it)
            found = [self._kept(one, host) for one in functions]
            if not all(found):
                trace = self._known_trace(host)
                along = self._along if trace is None or not set(functions).isdisjoint(self._along) else ()
                trace = trace or self._opened(host, self._states[host], keep)
                self._compute_here(trace, host, tuple(dict.fromkeys((*functions, *along))))
            result: T = self._results[function, host]
            return result

    def _compute_here(self, trace: Trace, host: str, functions: tuple[Function, ...]) -> None:
        new = [function for function in functions if (function, host) not in self._results]
        for function in new:
            self._results[function, host] = function(trace)
        kept = [function for function in functions if function in new or not set(self._along).isdisjoint(new)]
        if self.cache and kept:
            packed = {
                function: result_cache.pack(self._results[function, host])
                for function in kept
                if result_cache.travels(function)
            }
            self._save(self._states[host], packed)

    def _known_trace(self, host: str) -> Trace | None:
        with self._lock:
            known = self._traces.get(host)
            if known is not None:
                self._traces.move_to_end(host)
            return known

    def _opened(self, host: str, state: FileState, keep: bool) -> Trace:
        """Read the file, or what is cached of it. A file that is damaged is not read again until
        it changes.
        """
        if host in self._failures:
            raise self._failures[host]
        trace = column_cache.load(state) if self.cache else None
        if trace is None:
            trace = self._read(host, state)
            if self.cache and keep:
                column_cache.save_later(state, trace)
        if keep:
            with self._lock:
                if host in self._outlines:  # a program that was opened from there is not opened again
                    trace.take_programs(self._outlines[host].programs)
                self._traces[host] = trace
                self._drop_old(keep=host)
        return trace

    def _read(self, host: str, state: FileState, is_outline: bool = False) -> Trace:
        if host in self._failures:
            raise self._failures[host]
        try:
            with self._progress.reading({host: state.size_bytes}):
                trace = open_trace(state.path, is_outline)
        except ProfilerError as error:
            error.host = host
            if isinstance(error, TraceFormatError):
                self._failures[host] = error
            raise
        if self._is_one_program:
            trace.take_programs(self.programs())
        return trace

    def _host_lock(self, host: str) -> threading.RLock:
        with self._lock:
            return self._host_locks.setdefault(host, threading.RLock())

    def _fresh_state(self, host: str) -> FileState:
        """The file's state; where it is not what it was, everything known of the host is forgotten."""
        try:
            state = file_state(self.file(host).path)
        except ProfilerError as error:
            error.host = host
            raise
        with self._lock:
            if self._states.get(host) != state:
                self._states[host] = state
                self._traces.pop(host, None)
                self._failures.pop(host, None)
                self._outlines.pop(host, None)
                for key in [key for key in self._results if key[1] == host]:
                    del self._results[key]
        return state

    def _drop_old(self, keep: str) -> None:
        total = sum(trace.size_bytes for trace in self._traces.values())
        for host in list(self._traces):
            if total <= self.memory_bytes or host == keep:
                break
            total -= self._traces.pop(host).size_bytes


def _failure(done: Future[Any]) -> ProfilerError | None:
    """The error by which a host could not be read. Raises every other."""
    try:
        done.result()
    except ProfilerError as error:
        return error
    return None


def measure(xspace: bytes | memoryview) -> LiveSample:
    """The numbers of monitoring from a profile that never becomes a run. Raises TraceFormatError."""
    return live_sample(trace_of_bytes(xspace, "the profile"))


class SessionStore:
    """Sessions of the runs that are being looked at; at most `limit`, the longest unused dropped first."""

    def __init__(self, limit: int = 8, memory_bytes: int = DEFAULT_MEMORY_BYTES, executor: str = "") -> None:
        self.limit = limit
        self.executor = executor
        self.memory_bytes = memory_bytes
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._asked: dict[str, tuple[HostFile, ...]] = {}
        self._lock = threading.Lock()

    def open(self, run: RunInfo) -> Session:
        """The session of a run; a new one where the set of its files or their state has changed."""
        with self._lock:
            known = self._sessions.get(run.path)
            # Compared with what was asked for then: the session's own paths are absolute, those of a relative
            # logdir are not.
            if known is None or self._asked[run.path] != run.files:
                known = Session(
                    run.path, name=run.name, memory_bytes=self.memory_bytes, executor=self.executor
                )
                self._sessions[run.path], self._asked[run.path] = known, run.files
            self._sessions.move_to_end(run.path)
            self._drop_old()
            return known

    def progress(self, run: str) -> ReadingProgress | None:
        """What is being read at the moment of the run of that name; reads nothing itself."""
        with self._lock:
            found = [session.progress() for session in self._sessions.values() if session.run == run]
        return next((progress for progress in found if progress), None)

    def _drop_old(self) -> None:
        total = sum(session.size_bytes for session in self._sessions.values())
        for path in list(self._sessions)[:-1]:
            if len(self._sessions) <= self.limit and total <= self.memory_bytes:
                break
            total -= self._sessions.pop(path).size_bytes
