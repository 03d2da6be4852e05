"""Functions of a trace mapped over hosts: on threads, in processes or on a Dask cluster, with progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from functools import partial
from typing import Any

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
        self, functions: tuple[Function, ...], hosts: Sequence[str], store_of: Callable[[str], HostStore]
    ) -> list[Any]:
        """The first function's result for each host; the other functions are computed in the same pass.

        Raises HostsUnreadable once all readable hosts are computed; errors of `store_of` count as such.
        """
        failures: dict[str, ProfilerError] = {}
        results: dict[str, Any] = {}
        waiting: list[HostStore] = []
        for host in hosts:
            try:
                store = store_of(host)
                for result in store.recall(functions[0]):
                    results[host] = result
                if host not in results or not all(store.recall(function) for function in functions[1:]):
                    waiting.append(store)
            except ProfilerError as error:
                failures[host] = error
        keeps_traces = len(hosts) <= POLICY.max_hosts_in_memory
        if waiting:
            with self._progress.reading({store.host: store.file.size_bytes for store in waiting}) as task:
                for host, failure in self._compute(functions, waiting, keeps_traces):
                    self._progress.host_done(task, host)
                    if failure:
                        failures[host] = failure
        if failures:
            raise HostsUnreadable({host: failures[host] for host in hosts if host in failures})
        return [
            results[host] if host in results else store_of(host).get(functions[0], keeps_trace=keeps_traces)
            for host in hosts
        ]

    def _compute(
        self, functions: tuple[Function, ...], stores: Sequence[HostStore], keeps_traces: bool
    ) -> Outcomes:
        """Compute the hosts' results into their stores; yields each host when it is done, with its error if
        it cannot be read.
        """
        is_single_threaded = POLICY.hosts_fill_processors([store.file.size_bytes for store in stores])

        def compute(store: HostStore) -> None:
            with single_threaded(is_single_threaded):
                store.get(*functions, keeps_trace=keeps_traces)

        if len(stores) == 1:  # without the cost of a thread
            yield stores[0].host, _failure_of(lambda: compute(stores[0]))
            return
        name = self.executor if all(map(result_cache.travels, functions)) else executors.THREADS
        with executors.host_executor(name, len(stores)) as executor:
            if executor.is_remote:
                lost: list[HostStore] = []
                yield from self._compute_remotely(
                    executor.calls, functions, stores, is_single_threaded, lost.append
                )
                for store in lost:
                    yield store.host, _failure_of(partial(compute, store))
                return
            submitted = {executor.calls.submit(compute, store): store for store in stores}
            for done in as_completed(submitted):
                yield submitted[done].host, _failure_of(done.result)

    def _compute_remotely(
        self,
        calls: Executor,
        functions: tuple[Function, ...],
        stores: Sequence[HostStore],
        is_single_threaded: bool,
        lose: Callable[[HostStore], object],
    ) -> Outcomes:
        """In other processes. A result that cannot be sent (it may be too large) is computed here later;
        calls `lose` for hosts whose calls a cluster has lost.
        """
        needed = tuple(dict.fromkeys((*functions, *self._common)))
        submitted: dict[Future[list[bytes | None]], HostStore] = {
            calls.submit(evaluate, store.file.path, needed, is_single_threaded): store for store in stores
        }
        for done in as_completed(submitted):
            store = submitted[done]
            try:
                failure = _failure_of(done.result)
            except (CancelledError, BrokenExecutor, OSError) as error:
                _log.warning("The analysis of %s was lost (%s) and runs here.", store.host, error)
                lose(store)
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
