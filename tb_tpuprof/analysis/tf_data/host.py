"""The tf.data pipelines of a host with its steps: small enough to keep for every host of a run."""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.forest import Unplaced, count_unplaced
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, pipelines
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class HostPipelines:
    """Results of one host that are kept without its trace."""

    host: str
    pipelines: tuple[Pipeline, ...]
    unplaced: Unplaced
    steps: Steps


def host_pipelines(trace: Trace) -> HostPipelines:
    """The pipelines of one host."""
    return HostPipelines(trace.info.host, pipelines(trace), count_unplaced(trace), steps(trace))
