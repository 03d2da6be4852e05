"""Hosts whose analysis a cluster loses are analyzed by the server itself."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.analysis.overview.summary import summary
from tb_tpuprof.parallel.executors import HostExecutor
from tb_tpuprof.session import Session
from tests.synthetic import TpuJob, tpu_hosts, write_run


class Losing(Executor):
    """A cluster that loses every third call, as one whose worker or scheduler ends."""

    def __init__(self) -> None:
        self.n = 0

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.n += 1
        if self.n % 3 == 0:
            future.set_exception([CancelledError(), OSError("connection closed")][self.n % 2])
        else:
            future.set_result(function(*arguments, **named))
        return future


def test_hosts_that_a_cluster_loses_are_analyzed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", tpu_hosts(TpuJob(), tuple(1.0 + i / 10 for i in range(7))))

    @contextmanager
    def losing(_name: str, _n_hosts: int) -> Iterator[HostExecutor]:
        yield HostExecutor(Losing(), is_remote=True)

    whole = Session(str(run), cache=False)
    expected = [part.steps.duration_ps.tolist() for part in whole.map(summary, whole.hosts)]
    monkeypatch.setattr("tb_tpuprof.parallel.executors.host_executor", losing)
    session = Session(str(run), cache=False)
    assert [part.steps.duration_ps.tolist() for part in session.map(summary, session.hosts)] == expected
