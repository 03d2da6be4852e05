"""Pipelines of tf.data and their stages, made by hand."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.tf_data.forest import stage_type, works_ahead
from tb_tpuprof.analysis.tf_data.pipeline import Pipeline, Stage, Times

MS = 10**9


def pipeline(
    calls: list[tuple[int, int]], waited: list[int] | None = None, complete: list[bool] | None = None
) -> Pipeline:
    """A pipeline of calls (start, duration)."""
    start, duration = (np.array(column, np.int64) for column in zip(*calls, strict=True))
    return Pipeline(
        "Host:0",
        "Host",
        np.arange(len(calls)),
        start,
        duration,
        duration if waited is None else np.array(waited),
        np.array(complete or [True] * len(calls)),
        (),
        -1,
        1,
    )


def stage(long_name: str, parent: int, blocking: int = 0, n_calls: int = 1) -> Stage:
    return Stage(
        stage_type(long_name), long_name, Times(0, 0, blocking, 0, n_calls), works_ahead(long_name), parent
    )
