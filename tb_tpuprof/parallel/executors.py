"""The name of an executor → where analyses of many hosts run: threads of this process, processes, or a Dask
cluster.

    threads            as many as there are processors
    processes          this one, and one more for each further processor, started for each request and ended
                       with it (`one_request`)
    auto               threads for a few hosts, processes for many; the default
    dask://host:port   the workers of a Dask cluster: they need this package, and the trace files under the
                       same path

Decoding releases the interpreter's lock, and traces stay in memory for the next request: threads serve a few
large hosts best. What remains after decoding many small hosts waits for the lock: 256 hosts of 5 MB take as
long on two threads as on one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any

from tb_tpuprof.errors import BadParameter, ExecutorFailed
from tb_tpuprof.parallel.policy import POLICY
from tb_tpuprof.parallel.process_pool import ProcessPool

EXECUTOR_VARIABLE = "TPUPROF_EXECUTOR"
THREADS, PROCESSES, AUTO = NAMES = ("threads", "processes", "auto")
DASK = "dask://"
_CONNECT_SECONDS = 10
_clients: dict[str, Any] = {}
_lock = threading.Lock()
_this_thread = threading.local()


@dataclass(frozen=True)
class HostExecutor:
    """An executor for calls that analyze a host each. `is_remote`: they run in other processes, so
    functions and results must pickle.
    """

    calls: Executor
    is_remote: bool


def check_name(name: str) -> str:
    """The name if it is valid; auto for an empty one. Raises BadParameter."""
    name = name.strip() or AUTO
    if name not in NAMES and not (name.startswith(DASK) and len(name) > len(DASK)):
        raise BadParameter("executor", name, "threads, processes, auto or dask://host:port")
    return name


class _Request:
    """A request about `n_hosts` hosts, and its processes once they are needed."""

    def __init__(self, n_hosts: int) -> None:
        self.n_hosts = n_hosts
        self._pool: ProcessPool | None = None

    def pool(self, n_processes: int) -> ProcessPool:
        """The request's processes, started by the first caller."""
        self._pool = self._pool or ProcessPool(n_processes)
        return self._pool

    def end(self) -> None:
        """End the processes."""
        if self._pool:
            self._pool.shutdown()


@contextmanager
def one_request(n_hosts: int) -> Iterator[None]:
    """In this context, every `host_executor` of this thread uses the same processes: a page about many hosts
    reads some of them several times, and a process takes as long to start as a dozen hosts to analyze.
    """
    outer, request = getattr(_this_thread, "request", None), _Request(n_hosts)
    _this_thread.request = outer or request
    try:
        yield
    finally:
        _this_thread.request = outer
        request.end()


@contextmanager
def host_executor(name: str, n_hosts: int) -> Iterator[HostExecutor]:
    """Context manager: the executor `name` for `n_hosts` hosts, which may be some of a request's. Raises
    BadParameter or ExecutorFailed.
    """
    name = check_name(name)
    request: _Request | None = getattr(_this_thread, "request", None)
    n_requested = max(n_hosts, request.n_hosts if request else 0)
    is_auto = name == AUTO and n_requested > POLICY.max_hosts_in_memory
    n_processes = POLICY.n_processes(n_requested) if name == PROCESSES or is_auto else 1
    try:
        if name.startswith(DASK):
            yield HostExecutor(_dask(name.removeprefix(DASK)).get_executor(pure=False), is_remote=True)
        elif n_processes > 1 and request:
            yield HostExecutor(request.pool(n_processes), is_remote=True)
        elif n_processes > 1:
            with ProcessPool(n_processes) as processes:
                yield HostExecutor(processes, is_remote=True)
        else:
            with ThreadPoolExecutor(max(min(n_hosts, POLICY.n_processors()), 1)) as threads:
                yield HostExecutor(threads, is_remote=False)
    except (BrokenExecutor, UnpicklingError, OSError) as error:
        with _lock:
            _clients.pop(name.removeprefix(DASK), None)
        remedy = (
            f"Try again. With the executor threads ({EXECUTOR_VARIABLE}=threads) analyses run in this "
            "process."
        )
        raise ExecutorFailed(f"The executor {name} failed: {error}", remedy) from error


def _dask(address: str) -> Any:
    """The client of a cluster, connected at first use. Raises ExecutorFailed."""
    try:
        import distributed
    except ImportError:
        raise ExecutorFailed(
            "Running on a Dask cluster needs Dask.", "Run: pip install 'tb-tpuprof[dask]'."
        ) from None
    with _lock:
        if address not in _clients or _clients[address].status != "running":
            try:
                connect: Any = distributed.Client
                _clients[address] = connect(
                    f"tcp://{address}", timeout=_CONNECT_SECONDS, set_as_default=False
                )
            except (OSError, ValueError) as error:
                remedy = (
                    "Check that the scheduler is running and reachable from here. It prints its address "
                    "when it starts."
                )
                raise ExecutorFailed(
                    f"The Dask scheduler at {address} does not answer: {error}", remedy
                ) from None
        return _clients[address]
