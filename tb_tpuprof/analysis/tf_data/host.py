"""The tf.data pipelines of a host with its steps: what the page of all hosts needs of each, small enough to
keep.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.tf_data.forest import Loose, loose
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, pipelines
from tb_tpuprof.trace.trace import Trace


@dataclass(frozen=True)
class HostPipelines:
    """What is kept of a host, beside its trace."""

    host: str
    pipelines: tuple[Pipeline, ...]
    loose: Loose
    steps: Steps


def host_pipelines(trace: Trace) -> HostPipelines:
    """The pipelines of one host."""
    return HostPipelines(trace.info.host, pipelines(trace), loose(trace), steps(trace))
