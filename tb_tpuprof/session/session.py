"""An open run: its hosts, and every analysis of them, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import tb_tpuprof.session.preloaded  # noqa: F401
from tb_tpuprof.analysis.steps.diagnostics import Notice
from tb_tpuprof.errors import HostNotFound, ProfilerError
from tb_tpuprof.ingest.storage.run_info import HostFile
from tb_tpuprof.parallel.progress import ReadingProgress
from tb_tpuprof.session.host_store import Function, HostStore
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.opened_run import OpenedRun, opened_run
from tb_tpuprof.session.run_files import run_programs
from tb_tpuprof.session.runner import OfSome
from tb_tpuprof.trace.hlo_programs import Programs
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")


class Session:
    """A run and the results computed from it. Thread-safe; a file that changes is read again.

    `RUN_DIR` holds one `<host>.xplane.pb[.gz]` per host. With `cache`, decoded columns and results are kept
    in the user's cache folder. What is beyond `memory`, which several sessions may share, is dropped, least
    recently used first. `executor` names where analyses of several hosts run
    (`parallel/executors.py`).
    """

    def __init__(
        self,
        run_dir: str,
        cache: bool = True,
        name: str = "",
        memory: Memory | None = None,
        executor: str = "",
    ) -> None:
        self._use(opened_run(run_dir, cache, name, memory or Memory(), executor))

    def _use(self, run: OpenedRun) -> None:
        self._run = run
        self.run, self.info, self.graphs, self.joined = run.name, run.info, run.graphs, run.joined

    def subset(self, hosts: Iterable[str]) -> Session:
        """A session limited to these hosts of the run; both sessions share the hosts' stores."""
        part = Session.__new__(Session)
        part._use(self._run.subset(hosts))
        return part

    @property
    def hosts(self) -> tuple[str, ...]:
        """The run's hosts, in natural order."""
        return tuple(self._run.stores)

    def file(self, host: str) -> HostFile:
        """The host's file. Raises HostNotFound."""
        return self._store(host).file

    def trace(self, host: str) -> Trace:
        """The decoded trace of one host. Raises HostNotFound, StorageError or TraceFormatError, whose `host`
        is this one.
        """
        return self._store(host).trace()

    def outline(self, host: str) -> Trace:
        """The trace of one host, possibly without its lines and events: planes with their stats, and
        programs. Raises as `trace` does.
        """
        return self._store(host).outline()

    def notices(self, host: str) -> tuple[Notice, ...]:
        """Notices about the part of a host's trace that was read, at least its outline. Raises as `trace`
        does.
        """
        return self._store(host).notices()

    def get(self, function: Callable[[Trace], T], host: str) -> T:
        """`function(trace of host)`, computed once as long as the file stays as it is. Raises as `trace`
        does.
        """
        return self._store(host).get(function)

    def map(
        self,
        function: Callable[[Trace], T],
        hosts: Sequence[str],
        *with_it: Function,
        of_some: OfSome | None = None,
    ) -> list[T]:
        """`function(trace)` of each host, in parallel on the executor. Raises HostsUnreadable once the other
        hosts are computed.

        `with_it`: functions that will be requested next, computed in the same pass, since traces of many
        hosts are not kept; `of_some`: likewise, each for some of the hosts only. Results must pickle (frozen
        dataclasses of `analysis/`, arrays, plain values): they come from other processes, and stay in the
        result cache.
        """
        return self._run.runner.map((function, *with_it), hosts, self._store, of_some)

    def known(self, function: Callable[[Trace], T], hosts: Sequence[str]) -> list[T] | None:
        """The result of `map` if it is cached for all hosts, so that no trace is read; else None. Raises as
        `trace` does.
        """
        recalled = [self._store(host).recall(function) for host in hosts]
        return [result for results in recalled for result in results] if all(recalled) else None

    def known_failures(self, hosts: Iterable[str]) -> dict[str, ProfilerError]:
        """Why hosts cannot be read, as far as that is known without reading them."""
        failures: dict[str, ProfilerError] = {}
        for host in hosts:
            try:
                failure = self._store(host).known_failure()
            except HostNotFound as error:
                failure = error
            if failure:
                failures[host] = failure
        return failures

    def programs(self, host: str = "") -> Programs:
        """The compiled programs of a host; without a host those whose HLO is in files of the run's folder.
        Raises as `trace` does.
        """
        return self.outline(host).programs if host else run_programs(self.info)

    def progress(self) -> ReadingProgress | None:
        """Progress of the read in progress; None if there is none."""
        return self._run.progress.current()

    @property
    def size_bytes(self) -> int:
        """Memory of the decoded traces' tables."""
        return self._run.traces.size_bytes

    @property
    def kept_bytes(self) -> int:
        """About the memory of all that is kept of this run and of those that share its memory: traces,
        outlines, programs, results and graphs.
        """
        return self._run.traces.memory.size_bytes

    def fingerprint(self) -> str:
        """Identifies the state of all the run's files."""
        return "|".join(f"{file.path}:{file.size_bytes}:{file.mtime_ns}" for file in self.info.files)

    def _store(self, host: str) -> HostStore:
        """A host's store. Raises HostNotFound."""
        if host not in self._run.stores:
            raise HostNotFound(host, list(self.hosts))
        return self._run.stores[host]
