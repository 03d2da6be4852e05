"""The name of an executor → where analyses of many hosts run: threads of this process, processes, or a Dask
cluster.

    threads               as many as there are processors
    processes             this one, and as many more as there are further processors, started for each
    question and ended with it
    auto                  threads for a few hosts, processes for many; the default
    dask://host:port      the workers of a Dask cluster: they need this package, and the trace files under the
    same path

Decoding lets go of the interpreter's lock, and traces stay for the next question: threads serve a few large
hosts best. What is left after decoding many small hosts is held up by the lock: 256 hosts of 5 MB take two
threads as long as one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any

from tb_tpuprof.errors import BadParameter, ExecutorFailed
from tb_tpuprof.parallel.helpers import Helped
from tb_tpuprof.parallel.threads import n_processors

EXECUTOR_VARIABLE = "TPUPROF_EXECUTOR"
DASK = "dask://"
NAMES = ("threads", "processes", "auto")
MANY_HOSTS = 16
_MOST_PROCESSES = 32
_CONNECT_SECONDS = 10
_clients: dict[str, Any] = {}
_lock = threading.Lock()


def check_name(name: str) -> str:
    """The name if it is one; an empty one is auto. Raises BadParameter."""
    name = name.strip() or "auto"
    if name not in NAMES and not (name.startswith(DASK) and len(name) > len(DASK)):
        raise BadParameter("executor", name, "threads, processes, auto or dask://host:port")
    return name


@contextmanager
def executor(name: str, n_hosts: int) -> Iterator[Executor | None]:
    """The executor of that name for so many hosts, for as long as the context; None for threads. Raises
    BadParameter, ExecutorFailed.
    """
    name = check_name(name)
    n_processes = min(n_processors(), _MOST_PROCESSES, n_hosts)
    try:
        if name.startswith(DASK):
            yield _dask(name.removeprefix(DASK)).get_executor(pure=False)
        elif n_processes > 1 and (name == "processes" or (name == "auto" and n_hosts > MANY_HOSTS)):
            with Helped(n_processes) as pool:
                yield pool
        else:
            yield None
    except (BrokenExecutor, UnpicklingError, OSError) as error:
        with _lock:
            _clients.pop(name.removeprefix(DASK), None)
        remedy = (
            f"Try again. With the executor threads ({EXECUTOR_VARIABLE}=threads) analyses run in this "
            "process."
        )
        raise ExecutorFailed(f"The executor {name} failed: {error}", remedy) from error


def _dask(address: str) -> Any:
    """The client of a cluster, connected when it is first asked for. Raises ExecutorFailed."""
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
                    "Is the scheduler running there, and reachable from here? It prints its address "
                    "when it starts."
                )
                raise ExecutorFailed(
                    f"The Dask scheduler at {address} does not answer: {error}", remedy
                ) from None
        return _clients[address]
