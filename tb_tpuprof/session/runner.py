"""Functions of a trace mapped over hosts: on threads, in processes or on a Dask cluster, with progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from functools import partial
from typing import Any, NamedTuple

from tb_tpuprof.errors import HostsUnreadable, ProfilerError
from tb_tpuprof.ingest.evaluation import evaluate
from tb_tpuprof.ingest.storage import result_cache
from tb_tpuprof.parallel import executors
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.progress import ProgressTracker
from tb_tpuprof.parallel.threads import single_threaded
from tb_tpuprof.session.host_store import Function, HostStore

_log = logging.getLogger("tb_tpuprof")
Outcomes = Iterator[tuple[str, ProfilerError | None]]
OfSome = Mapping[Function, Collection[str]]


class _Work(NamedTuple):
    """What is computed of one host."""

    store: HostStore
    functions: tuple[Function, ...]


class Runner:
    """Computes results that the hosts' stores do not have yet. `executor` names where
    (`parallel/executors.py`).

    `common`: analyses that other processes always compute as well, because they keep no trace.
    """

    def __init__(self, executor: str, common: tuple[Function, ...], progress: ProgressTracker) -> None:
        self.executor = executors.check_name(executor)
        self._common = common
        self._progress = progress

    def map(
        self,
        functions: tuple[Function, ...],
        hosts: Sequence[str],
        store_of: Callable[[str], HostStore],
        of_some: OfSome | None = None,
    ) -> list[Any]:
        """The first function's result for each host; the other functions are computed in the same pass, those
        of `of_some` only for the hosts named there.

        Raises HostsUnreadable once all readable hosts are computed; errors of `store_of` count as such.
        """
        failures: dict[str, ProfilerError] = {}
        results: dict[str, Any] = {}
        work: list[_Work] = []
        for host in hosts:
            needed = (*functions, *(each for each, some in (of_some or {}).items() if host in some))
            try:
                store = store_of(host)
                for result in store.recall(needed[0]):
                    results[host] = result
                if host not in results or not all(store.recall(function) for function in needed[1:]):
                    work.append(_Work(store, needed))
            except ProfilerError as error:
                failures[host] = error
        # The most work first, so that at the end no processor waits long for another.
        work.sort(key=lambda each: len(each.functions), reverse=True)
        keeps_traces = len(hosts) <= POLICY.max_hosts_in_memory
        if work:
            with self._progress.reading(
                {each.store.host: each.store.file.size_bytes for each in work}
            ) as task:
                for host, failure in self._compute(work, keeps_traces):
                    self._progress.host_done(task, host)
                    if failure:
                        failures[host] = failure
        if failures:
            raise HostsUnreadable({host: failures[host] for host in hosts if host in failures})
        return [
            results[host] if host in results else store_of(host).get(functions[0], keeps_trace=keeps_traces)
            for host in hosts
        ]

    def _compute(self, work: Sequence[_Work], keeps_traces: bool) -> Outcomes:
        """Compute the hosts' results into their stores; yields each host when it is done, with its error if
        it cannot be read.
        """
        is_single_threaded = POLICY.hosts_fill_processors([each.store.file.size_bytes for each in work])

        def compute(each: _Work) -> None:
            with single_threaded(is_single_threaded):
                each.store.get(*each.functions, keeps_trace=keeps_traces)

        if len(work) == 1:  # without the cost of a thread
            yield work[0].store.host, _failure_of(lambda: compute(work[0]))
            return
        can_travel = all(result_cache.travels(function) for each in work for function in each.functions)
        with executors.host_executor(
            self.executor if can_travel else executors.THREADS, len(work)
        ) as executor:
            if executor.is_remote:
                lost: list[_Work] = []
                yield from self._compute_remotely(executor.calls, work, is_single_threaded, lost.append)
                for each in lost:
                    yield each.store.host, _failure_of(partial(compute, each))
                return
            submitted = {executor.calls.submit(compute, each): each.store for each in work}
            for done in as_completed(submitted):
                yield submitted[done].host, _failure_of(done.result)

    def _compute_remotely(
        self,
        calls: Executor,
        work: Sequence[_Work],
        is_single_threaded: bool,
        lose: Callable[[_Work], object],
    ) -> Outcomes:
        """In other processes. A result that cannot be sent (it may be too large) is computed here later;
        calls `lose` for hosts whose calls a cluster has lost.
        """
        submitted: dict[Future[list[bytes | None]], _Work] = {}
        for each in work:
            needed = tuple(dict.fromkeys((*each.functions, *self._common)))
            call = calls.submit(evaluate, each.store.file.path, needed, is_single_threaded)
            submitted[call] = _Work(each.store, needed)
        for done in as_completed(submitted):
            store, needed = submitted[done]
            try:
                failure = _failure_of(done.result)
            except (CancelledError, BrokenExecutor, OSError) as error:
                _log.warning("The analysis of %s was lost (%s) and runs here.", store.host, error)
                lose(submitted[done])
                continue
            if failure:
                failure.host = store.host
            else:
                store.take(dict(zip(needed, done.result(), strict=True)))
            yield store.host, failure


def _failure_of(call: Callable[[], object]) -> ProfilerError | None:
    """The error if a host cannot be read. Raises every other error."""
    try:
        call()
    except ProfilerError as error:
        return error
    return None
