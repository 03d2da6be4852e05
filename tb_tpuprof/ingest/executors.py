"""The name of an executor → where analyses of many hosts run: threads of this process, processes, or a Dask cluster.

threads               as many as there are processors (the default)
processes             as many as there are processors
dask://host:port      the workers of a Dask cluster: they need this package, and the trace files under the same path
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

from tb_tpuprof.errors import BadParameter, ExecutorFailed
from tb_tpuprof.ingest.files import file_state
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.ingest.results import pack
from tb_tpuprof.trace.trace import Trace

EXECUTOR_VARIABLE = "TPUPROF_EXECUTOR"
DASK = "dask://"
NAMES = ("threads", "processes")
_CONNECT_SECONDS = 10
_open: dict[str, Executor] = {}
_lock = threading.Lock()


def n_processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def check_name(name: str) -> str:
    """The name if it is one; an empty one is threads. Raises BadParameter."""
    name = name.strip() or NAMES[0]
    if name not in NAMES and not (name.startswith(DASK) and len(name) > len(DASK)):
        raise BadParameter("executor", name, "threads, processes or dask://host:port")
    return name


def executor(name: str) -> Executor | None:
    """The executor of that name, made when first asked for and kept; None for threads. Raises BadParameter or ExecutorFailed."""
    name = check_name(name)
    if name == NAMES[0]:
        return None
    with _lock:
        if name not in _open:
            _open[name] = _dask(name) if name.startswith(DASK) else _processes()
        return _open[name]


def forget(name: str) -> None:
    """Make it anew when it is asked for again: its processes have died."""
    with _lock:
        _open.pop(name, None)


def evaluate(path: str, functions: Sequence[Callable[[Trace], Any]]) -> list[bytes | None]:
    """Open a host's file and apply analyses, in whatever process this is called: packed results, None for one that does not travel.

    Nothing is kept of the trace. Raises StorageError or TraceFormatError, as opening does.
    """
    file_state(path)
    trace = open_trace(path)
    return [pack(function(trace)) for function in functions]


def _processes() -> Executor:
    """Fresh processes: a fork of one that has threads may hang. They are started when first needed."""
    return ProcessPoolExecutor(n_processors(), multiprocessing.get_context("spawn"))


def _dask(name: str) -> Executor:
    address = name.removeprefix(DASK)
    try:
        from distributed import Client
    except ImportError:
        raise ExecutorFailed("Running on a Dask cluster needs Dask.", "Run: pip install 'tb-tpuprof[dask]'.") from None
    try:
        client = Client(f"tcp://{address}", timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        remedy = "Is the scheduler running there, and reachable from here? Its address is the one that it prints when it starts."
        raise ExecutorFailed(f"The Dask scheduler at {address} does not answer: {error}", remedy) from None
    pool: Executor = client.get_executor(pure=False)
    return pool
