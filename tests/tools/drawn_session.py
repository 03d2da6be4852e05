"""A session over drawn traces, for tests of tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from tb_tpuprof.analysis.steps.diagnostics import Notice, trace_notices
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.ingest.storage.run_info import HostFile, RunInfo
from tb_tpuprof.session import Session
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.run_results import RunResults
from tb_tpuprof.trace.trace import Trace

T = TypeVar("T")


class DrawnSession:
    """As much of Session as tools use."""

    run = "drawn"
    info = RunInfo("drawn", "", (), "", "ok", "")

    def __init__(self, traces: dict[str, Trace]) -> None:
        self.traces = traces
        self.info = RunInfo(self.run, "", (), "", "ok", "")
        self.joined = RunResults(Memory())

    def subset(self, hosts: Iterable[str]) -> DrawnSession:
        wanted = frozenset(hosts)
        return DrawnSession({host: trace for host, trace in self.traces.items() if host in wanted})

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.traces)

    def file(self, host: str) -> HostFile:
        return HostFile(host, "", 0, 0)

    def trace(self, host: str) -> Trace:
        return self.traces[host]

    def outline(self, host: str) -> Trace:
        return self.traces[host]

    def notices(self, host: str) -> tuple[Notice, ...]:
        return trace_notices(self.traces[host])

    def get(self, function: Callable[[Trace], T], host: str) -> T:
        return function(self.traces[host])

    def known(self, _function: Callable[[Trace], T], _hosts: Sequence[str]) -> list[T] | None:
        return None  # each analysis is computed again

    def known_failures(self, _hosts: Sequence[str]) -> dict[str, ProfilerError]:
        return {}

    def map(self, function: Callable[[Trace], T], hosts: Sequence[str], *_with_it: object) -> list[T]:
        return [self.get(function, host) for host in hosts]


def session_of(*traces: Trace) -> Session:
    """A session whose hosts are worker-0, worker-1 …"""
    return cast(Session, DrawnSession({f"worker-{i}": trace for i, trace in enumerate(traces)}))
