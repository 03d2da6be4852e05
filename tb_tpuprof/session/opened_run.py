"""A run's folder → the parts of its session: stores of its hosts, runner, graphs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.frameworks import software
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.steps.clocks import clock_marks
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.ingest.storage.file_names import is_program
from tb_tpuprof.ingest.storage.run_info import RunInfo
from tb_tpuprof.ingest.storage.runs import open_run
from tb_tpuprof.parallel.executors import EXECUTOR_VARIABLE
from tb_tpuprof.parallel.progress import ProgressTracker
from tb_tpuprof.session.host_store import Function, HostStore, RunContext
from tb_tpuprof.session.memory import Memory
from tb_tpuprof.session.run_files import RunGraphs, run_programs
from tb_tpuprof.session.run_results import RunResults
from tb_tpuprof.session.runner import Runner
from tb_tpuprof.session.trace_memory import TraceMemory

# Nearly every page uses these, and they cost little while the trace is in memory.
_COMMON: tuple[Function, ...] = (trace_notices, hardware, planes, software)
_COMMON_OF_SEVERAL = (*_COMMON, clock_marks)  # clocks of several hosts are compared


@dataclass(frozen=True)
class OpenedRun:
    """What a session of a run consists of; a session of some of its hosts has the same parts."""

    info: RunInfo
    name: str
    stores: Mapping[str, HostStore]
    runner: Runner
    graphs: RunGraphs
    traces: TraceMemory
    joined: RunResults
    progress: ProgressTracker

    def subset(self, hosts: Iterable[str]) -> OpenedRun:
        """The same run, limited to these of its hosts."""
        chosen = set(hosts)
        files = tuple(file for file in self.info.files if file.host in chosen)
        stores = {file.host: self.stores[file.host] for file in files}
        return replace(self, info=replace(self.info, files=files), stores=stores)


def opened_run(run_dir: str, cache: bool, name: str, memory: Memory, executor: str) -> OpenedRun:
    """A run's parts; no trace is read. See `Session` for the parameters. Raises StorageError, NotATrace or
    BadParameter.
    """
    info = open_run(run_dir)
    common = _COMMON_OF_SEVERAL if len(info.files) > 1 else _COMMON
    progress, traces = ProgressTracker(), TraceMemory(memory)
    runner = Runner(executor or os.environ.get(EXECUTOR_VARIABLE, ""), common, progress)
    # A run that is one program's file is not cached: the run that is the whole folder has the same host file.
    is_one_program = is_program(info.path)
    programs = (lambda: run_programs(info)) if is_one_program else None
    context = RunContext(cache and not is_one_program, common, traces, progress, programs)
    stores = {file.host: HostStore(file, context) for file in info.files}
    graphs, joined = RunGraphs(info.path, memory), RunResults(memory)
    return OpenedRun(info, name or info.name, stores, runner, graphs, traces, joined, progress)
