"""The input pipeline analyzer's tables, filled: steps, their breakdown, the host's time by category, input
operations, hosts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.input.host import HOST_CATEGORIES, WAITING, HostTime
from tb_tpuprof.analysis.input.pipeline import InputPipeline
from tb_tpuprof.analysis.input.tpu import SC_PARTS, TC_PARTS
from tb_tpuprof.tools.facts import common_steps_note
from tb_tpuprof.tools.input_pipeline_analyzer.declared import (
    BREAKDOWN,
    CORE_PARTS,
    HOST_PARTS,
    HOST_TIMES,
    HOSTS,
    HOSTS_ONLY,
    INPUT_OPS,
    PARTS,
    STEPS,
    meaning_of,
)
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Values

Numbers = npt.NDArray[Any]


def mean(values: Numbers) -> float:
    """Mean; NaN if empty."""
    return float(values.mean()) if len(values) else np.nan


def deviation(values: Numbers) -> float:
    """Standard deviation of a sample; 0 for a single value, NaN if empty."""
    if len(values) > 1:
        return float(values.std(ddof=1))
    return 0.0 if len(values) else np.nan


def _parts(pipeline: InputPipeline) -> list[tuple[str, tuple[str, str, str], Numbers]]:
    """Name, (title, color, meaning) and times per step of the parts that add up to a step, as stacked."""
    if pipeline.cores:
        times = pipeline.cores.parts
        shown = [name for name in TC_PARTS if name != "sparse_wait" or times[name].any()]
        return [(name, CORE_PARTS[name], times[name]) for name in shown]
    names = [name for name in PARTS if pipeline.steps.source != "device" or name not in HOSTS_ONLY]
    return [(name, PARTS[name], pipeline.steps.category_ps(name)) for name in names]


def steps_table(pipeline: InputPipeline) -> Table:
    """A row per step, a column per part, the share of waiting for input; on TPUs its range over cores."""
    steps = pipeline.steps
    parts = _parts(pipeline)
    columns: dict[str, Values] = {
        "step": steps.name,
        "step_time_ps": steps.duration_ps,
        "start_ps": steps.start_ps,
        **{f"{name}_ps": times for name, _, times in parts},
        "input_fraction": pipeline.input_fraction,
    }
    if pipeline.cores:
        cores = pipeline.cores
        columns |= {
            "input_fraction_min": cores.least,
            "input_fraction_max": cores.most,
            "input_core": cores.worst,
            **{f"{name}_ps": cores.parts[name] for name in SC_PARTS if name in cores.parts},
        }
    return STEPS.fill(
        columns,
        titles={f"{name}_ps": title for name, (title, _, _), _ in parts},
        descriptions={f"{name}_ps": meaning_of(activity) for name, (_, _, activity), _ in parts},
    )


def breakdown_table(pipeline: InputPipeline) -> Table:
    """A row per part of the step. The share is the ratio of the sums over all steps."""
    parts = _parts(pipeline)
    total_ps = int(pipeline.steps.duration_ps.sum())
    share = [int(times.sum()) / total_ps if total_ps else np.nan for _, _, times in parts]
    return BREAKDOWN.fill(
        {
            "category": [title for _, (title, _, _), _ in parts],
            "column": [f"{name}_ps" for name, _, _ in parts],
            "color": [color for _, (_, color, _), _ in parts],
            "avg_ps": np.array([mean(times) for _, _, times in parts]),
            "sd_ps": np.array([deviation(times) for _, _, times in parts]),
            "fraction": np.array(share),
            "meaning": [meaning_of(activity) for _, (_, _, activity), _ in parts],
        },
        common_steps_note(pipeline.steps, len(pipeline.hosts)),
    )


def host_categories_table(time: HostTime, why_none: str) -> Table:
    """The host's time for input by category. `why_none`: why it has none, if so."""
    total = time.total_ps
    times = np.array(time.time_ps)
    note = "Self times of the input operations, summed over all threads."
    if time.enqueue_fraction >= 0:
        note = "Scaled to the time between enqueues, when threads work in parallel."
    return HOST_TIMES.fill(
        {
            "category": [HOST_PARTS[name][0] for name in HOST_CATEGORIES],
            "color": [HOST_PARTS[name][1] for name in HOST_CATEGORIES],
            "time_ps": times,
            "fraction": times / total if total else np.full(len(times), np.nan),
            "meaning": [meaning_of(HOST_PARTS[name][2]) for name in HOST_CATEGORIES],
        },
        note if total else f"{why_none[0].upper()}{why_none[1:]}.",
    )


def input_ops_table(pipeline: InputPipeline) -> Table:
    """A row per operation of the input pipeline, largest self time first, then by name."""
    ops, category = pipeline.host_input.ops, pipeline.host_input.category
    by_name = np.argsort(np.array(ops.name, np.str_), kind="stable") if len(ops) else np.empty(0, np.intp)
    order = by_name[np.argsort(-ops.self_ps[by_name], kind="stable")]
    rows = order.tolist()
    busy_ps = ops.busy_ps or 1
    return INPUT_OPS.fill(
        {
            "operation": [ops.name[i] for i in rows],
            "n_occurrences": ops.n_occurrences[order],
            "total_time_ps": ops.time_ps[order],
            "total_fraction": ops.time_ps[order] / busy_ps,
            "self_time_ps": ops.self_ps[order],
            "self_fraction": ops.self_ps[order] / busy_ps,
            "category": ["Waiting" if category[i] == WAITING else HOST_PARTS[category[i]][0] for i in rows],
        }
    )


def hosts_table(pipeline: InputPipeline) -> Table:
    """A row per host, the one that waits the largest share of its steps first."""
    hosts = pipeline.hosts
    times = [part.host_time for part in hosts]
    largest = [time.largest for time in times]
    return HOSTS.fill(
        {
            "host": [part.host for part in hosts],
            "n_steps": np.array([len(part.steps) for part in hosts]),
            "step_time_avg_ps": np.array([mean(part.steps.duration_ps) for part in hosts]),
            "input_fraction": np.array([part.fraction for part in hosts]),
            "waiting_ps": np.array([part.waiting_ps for part in hosts]),
            "host_category": [HOST_PARTS[name][0] if name else "" for name in largest],
            "host_category_ps": np.array([max(time.time_ps) if time.total_ps else np.nan for time in times]),
        }
    )
