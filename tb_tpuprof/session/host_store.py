"""One host of a run: its trace file, and where each result comes from.

A result is taken from the first of these that has it:

    memory         `Contents.results` of this process
    result cache   packed results on disk, of any process (`ingest/storage/result_cache.py`)
    trace          the function is applied to the trace, whose `memo` holds the analyses it builds on. The
                   trace itself is taken from memory (`TraceMemory`), else from the column cache (decoded
                   columns on disk, memory-mapped; `ingest/storage/column_cache.py`), else decoded

What makes each of them invalid:

    memory         a change of the file's size or time: then trace, outline, results and failure are all
                   dropped together (`HostStore._current`). When memory runs short (`memory.py`), the part
                   that was not used for the longest time is dropped: a trace, an outline or the results
    result cache   its key: the file's path, size and time, the analyses' names, the package's code and the
                   user's settings. At most 512 MiB
    column cache   its key: the file's path, size and time, the format's version and which stats become
                   columns. At most 8 GiB, of files from 4 MiB; of many hosts (`Policy.max_hosts_in_memory`)
                   neither traces nor columns are kept
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar

from tb_tpuprof.analysis.steps.diagnostics import Notice, trace_notices
from tb_tpuprof.errors import ProfilerError, TraceFormatError
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.storage import column_cache, result_cache
from tb_tpuprof.ingest.storage.files import FileState, file_state
from tb_tpuprof.ingest.storage.run_info import HostFile
from tb_tpuprof.parallel.progress import ProgressTracker
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.trace_memory import TraceMemory
from tb_tpuprof.trace.held import Sizes
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")
Function = Callable[[Trace], Any]
_OUTLINE, _RESULTS = "outline", "results"
_NO_FILE = FileState("", -1, -1)


@dataclass(frozen=True)
class RunContext:
    """What the hosts of a run share. `common`: analyses that nearly every page uses, computed with any other.

    `programs`: those that every trace has in place of its own, of a run that is a single program's file.
    """

    uses_cache: bool
    common: tuple[Function, ...]
    traces: TraceMemory
    progress: ProgressTracker
    programs: Callable[[], Programs] | None = None


@dataclass
class Contents:
    """Data of a file in one state, except its trace, which is in `TraceMemory`. `failure`: why it cannot be
    decoded.
    """

    state: FileState
    outline: Trace | None = None
    failure: ProfilerError | None = None
    results: dict[Function, Any] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=Sizes)


class HostStore:
    """A host's trace and results, as long as its file stays as it is. Thread-safe: one thread at a time
    reads or computes.

    All methods raise StorageError or TraceFormatError, whose `host` is this one, where the file cannot be
    read. A damaged file is not read again until it changes.
    """

    def __init__(self, file: HostFile, run: RunContext) -> None:
        self.file = file
        self.host = file.host
        self._run = run
        self._lock = RLock()
        self._n_uses = 0
        self._contents = Contents(_NO_FILE)

    def trace(self) -> Trace:
        """The decoded trace."""
        with self._current() as contents:
            return self._open(contents, keeps_trace=True)

    def outline(self) -> Trace:
        """The trace, possibly without its lines and events: planes with their stats, and programs."""
        with self._current() as contents:
            outline = contents.outline or self._run.traces.get(contents.state)
            if outline is None:
                outline = contents.outline = self._read(contents, is_outline=True)
            if outline is contents.outline:
                self._memory.use(self, _OUTLINE)
            return outline

    def notices(self) -> tuple[Notice, ...]:
        """Notices about the part of the trace that was read, at least its outline."""
        with self._current() as contents:
            if self._recall(contents, trace_notices) or self._run.traces.get(contents.state):
                return self.get(trace_notices)
            return trace_notices(self.outline())

    def recall(self, function: Callable[[Trace], T]) -> tuple[T, ...]:
        """(the result,) if it is in memory or in the result cache, else (): the trace is not read."""
        with self._current() as contents:
            return self._recall(contents, function)

    def get(self, function: Callable[[Trace], T], *with_it: Function, keeps_trace: bool = True) -> T:
        """`function(trace)`; the functions `with_it` are computed in the same pass. Without `keeps_trace`,
        a trace that has to be read is dropped after the results are computed.
        """
        with self._current() as contents:
            functions = (function, *with_it)
            recalled = [self._recall(contents, each) for each in functions]
            if not all(recalled):
                common = self._run.common
                is_read = self._run.traces.get(contents.state) is not None
                more = () if is_read and set(functions).isdisjoint(common) else common
                self._compute(contents, tuple(dict.fromkeys((*functions, *more))), keeps_trace)
            result: T = contents.results[function]
            return result

    def take(self, packed: Mapping[Function, bytes | None]) -> None:
        """Keep packed results that another process computed; None stands for one that could not be packed."""
        with self._current() as contents:
            for function, data in packed.items():
                if data is not None:
                    contents.results[function] = result_cache.unpack(data)
            self._save(contents.state, packed)

    @property
    def _memory(self) -> Memory:
        return self._run.traces.memory

    def bytes_of(self, part: Hashable) -> int:
        """About the memory of the outline or of the results."""
        contents = self._contents
        if part == _OUTLINE:
            return contents.outline.kept_bytes if contents.outline else 0
        return contents.sizes.total(contents.results.copy(), again=False)  # type: ignore[arg-type]

    def drop(self, part: Hashable) -> bool:
        """Forget the outline or the results; False while this host is read or computed."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._n_uses:
                return False
            if part == _OUTLINE:
                self._contents.outline = None
            else:
                self._contents.results = {}
            return True
        finally:
            self._lock.release()

    def known_failure(self) -> ProfilerError | None:
        """Why the host cannot be read, as far as that is known without reading it: an earlier attempt failed,
        or the file is empty or gone. Does not wait for another thread that reads.
        """
        try:
            state = file_state(self.file.path)
            if not self.file.size_bytes:
                self.outline()
        except ProfilerError as error:
            error.host = self.host
            return error
        contents = self._contents
        return contents.failure if contents.state == state else None

    @contextmanager
    def _current(self) -> Iterator[Contents]:
        """The contents of the file as it is now, for this thread alone: empty ones where it has changed."""
        with self._lock:
            try:
                state = file_state(self.file.path)
            except ProfilerError as error:
                error.host = self.host
                raise
            if state != self._contents.state:
                self._run.traces.drop(self._contents.state)
                self._contents = Contents(state)
            self._n_uses += 1
            try:
                yield self._contents
            finally:
                self._n_uses -= 1
                if self._contents.results:
                    self._memory.use(self, _RESULTS, is_lasting=True)

    def _recall(self, contents: Contents, function: Callable[[Trace], T]) -> tuple[T, ...]:
        results = contents.results
        if function not in results and self._run.uses_cache and result_cache.travels(function):
            file = self._run.common if function in self._run.common else (function,)
            for loaded, result in result_cache.load(contents.state, file).items():
                results.setdefault(loaded, result)
        if function in results:
            return (results[function],)
        if contents.failure:
            raise contents.failure
        return ()

    def _compute(self, contents: Contents, functions: tuple[Function, ...], keeps_trace: bool) -> None:
        """Compute the missing results; keep all of them in memory and in the result cache."""
        trace, common = self._open(contents, keeps_trace), self._run.common
        new = [function for function in functions if function not in contents.results]
        for function in new:
            contents.results[function] = function(trace)
        is_common_new = not set(common).isdisjoint(new)
        if self._run.uses_cache:
            saved = [each for each in functions if each in new or (is_common_new and each in common)]
            packed = {
                each: result_cache.pack(contents.results[each])
                for each in saved
                if result_cache.travels(each)
            }
            self._save(contents.state, packed)

    def _save(self, state: FileState, packed: Mapping[Function, bytes | None]) -> None:
        """Write packed results into the result cache, if it is used: the common ones into one file, each
        other one into its own.
        """
        if not self._run.uses_cache:
            return
        common = {each: packed[each] for each in self._run.common if self._run.common[0] in packed}
        separate = [{each: data} for each, data in packed.items() if each not in common]
        for results in (common, *separate):
            if any(results.values()):
                result_cache.save(state, results)

    def _open(self, contents: Contents, keeps_trace: bool) -> Trace:
        """The trace from memory, else from the column cache, else decoded."""
        trace = self._run.traces.get(contents.state)
        if trace is not None:
            return trace
        if contents.failure:
            raise contents.failure
        trace = column_cache.load(contents.state) if self._run.uses_cache else None
        if trace is not None:
            trace.watch_programs(self._memory.use)
        if trace is None:
            trace = self._read(contents)
            if self._run.uses_cache and keeps_trace:
                column_cache.save_later(contents.state, trace)
        if keeps_trace:
            if contents.outline:  # its programs, of which some may have been decoded
                trace.take_programs(contents.outline.programs)
            self._run.traces.keep(contents.state, trace)
        return trace

    def _read(self, contents: Contents, is_outline: bool = False) -> Trace:
        """Decode the file."""
        if contents.failure:
            raise contents.failure
        try:
            with self._run.progress.reading({self.host: contents.state.size_bytes}):
                trace = open_trace(contents.state.path, is_outline)
        except ProfilerError as error:
            error.host = self.host
            if isinstance(error, TraceFormatError):
                contents.failure = error
            raise
        if self._run.programs:
            trace.take_programs(self._run.programs())
        trace.watch_programs(self._memory.use)
        return trace
