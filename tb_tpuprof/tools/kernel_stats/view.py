"""kernel_stats: the kernels that ran on GPUs, with time, launch and units; by kernel, by operation and by
library.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import Hardware, hardware
from tb_tpuprof.analysis.events.frameworks import Software, software
from tb_tpuprof.analysis.events.kernel_names import short_name
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.kernels.kernels import Kernels, kernels, merge_kernels
from tb_tpuprof.analysis.kernels.launch import Launch
from tb_tpuprof.analysis.ops.metrics import NO_OPERATION
from tb_tpuprof.analysis.steps.diagnostics import trace_notices
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params
from tb_tpuprof.tools.kernel_stats.tables import (
    BY_KERNEL,
    BY_LIBRARY,
    BY_OP,
    KERNELS,
    N_SLICES,
    SCALARS,
    TABLES,
    TILES,
    TOP_KERNELS,
    TOP_LIBRARIES,
)
from tb_tpuprof.tools.payload import Diagnostic, NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.spec import Filled, Number, TableSpec, Texts, Values, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.units import PS_PER_US, counted, format_fraction, format_time

N_ROWS = 10_000
SHORT_PS = 5 * PS_PER_US  # about as long as the host takes to launch a kernel
_STANDS_OUT = 0.1
TENSOR_CORES = "tensor cores"
_MANY = 100  # fewer launches show no pattern
_HOSTS_TO_CHECK = 4
_REASON = "the trace has no GPU, so there are no kernels to show."
_CAPTURE = (
    "Capture while the job computes on a GPU. NVIDIA: CUPTI must be found (LD_LIBRARY_PATH) and permitted; "
    "AMD: rocprofiler or roctracer must be installed. TPU operations are on the pages of operations."
)
Int64s = npt.NDArray[np.int64]


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """Kernels of one, several or all hosts together."""
    if not any(role.gpus for role in session.map(planes, hosts, kernels)):
        raise ToolUnavailable(TOOL.name, _REASON, _CAPTURE)
    merged = merge_kernels(session.map(kernels, hosts))
    notices = [notice for notices in session.map(trace_notices, hosts) for notice in notices]
    diagnostics = [Diagnostic(notice.severity, notice.message, notice.remedy) for notice in notices]
    if not len(merged):
        diagnostics.append(Diagnostic("warning", "The GPUs' streams contain no kernels.", _CAPTURE))
    units = _matrix_units(session.map(hardware, hosts), session.map(software, hosts))
    tables = {
        "kernels": kernels_table(merged, units),
        "by_kernel": group_table(BY_KERNEL, merged.name, merged, units),
        "by_op": group_table(BY_OP, [op or NO_OPERATION for op in merged.op], merged, units),
        "by_library": group_table(BY_LIBRARY, merged.library, merged, units),
    }
    tables["top_kernels"] = pie(TOP_KERNELS, tables["by_kernel"])
    tables["top_libraries"] = pie(TOP_LIBRARIES, tables["by_library"])
    verdict = with_limits(TOOL.name, _verdict(merged, units), limits_of(session, hosts))
    return Payload(
        TOOL.name, session.run, hosts, tables, _scalars(merged, units), verdict, tuple(diagnostics)
    )


def _matrix_units(devices: Sequence[Hardware], programs: Sequence[Software]) -> str:
    """What the GPUs' vendor calls the units that multiply matrices."""
    is_amd = any(part.is_amd for part in programs) or any(
        "AMD" in part.device or part.model.startswith("MI") for part in devices
    )
    return "matrix cores" if is_amd else TENSOR_CORES


def kernels_table(merged: Kernels, units: str = TENSOR_CORES) -> Table:
    """A row per kernel, operation and launch, the largest total time first. `units`: as the vendor calls
    tensor cores.
    """
    shown = merged if len(merged) <= N_ROWS else merged.rows(range(N_ROWS))
    all_ps = int(merged.total_ps.sum()) or 1
    ops = [op or NO_OPERATION for op in shown.op]
    note = "" if len(merged) <= N_ROWS else f"the first {N_ROWS:,} of {len(merged):,}"
    columns = {
        "rank": np.arange(1, len(shown) + 1),
        "kernel": shown.name,
        "op": ops,
        "library": shown.library,
        "n_occurrences": shown.n_occurrences,
        "total_ps": shown.total_ps,
        "fraction": shown.total_ps / all_ps,
        "avg_ps": shown.total_ps / shown.n_occurrences,
        "is_tensor_core_eligible": _could_use(shown),
        "uses_tensor_cores": shown.uses_tensor_cores,
        "min_ps": shown.min_ps,
        "max_ps": shown.max_ps,
        **_launch_columns(shown.launch),
        "longest_host": shown.host,
        "longest_start_ps": shown.longest_start_ps,
    }
    titles = {
        "is_tensor_core_eligible": f"{units.capitalize()} possible",
        "uses_tensor_cores": f"{units.capitalize()} used",
    }
    return KERNELS.fill(columns, note, titles=titles)


def _launch_columns(launches: Sequence[Launch]) -> dict[str, Values]:
    """Columns of the launches; many rows share one object, which is read once."""
    distinct = {id(launch): launch for launch in launches}
    position = {key: i for i, key in enumerate(distinct)}
    code = np.array([position[id(launch)] for launch in launches], np.intp)
    unique = list(distinct.values())
    sizes = ("n_registers", "shared_bytes", "static_shared_bytes", "dynamic_shared_bytes")
    return {
        **{key: _known([getattr(launch, key) for launch in unique])[code] for key in sizes},
        "block": _sizes([launch.block for launch in unique], code),
        "grid": _sizes([launch.grid for launch in unique], code),
        "occupancy_fraction": np.array([launch.occupancy for launch in unique], np.float64)[code],
        "is_occupancy_computed": np.array([launch.is_computed for launch in unique], np.bool_)[code],
    }


def _known(values: Sequence[int]) -> npt.NDArray[np.float64]:
    result = np.array(values, np.float64)
    result[result < 0] = np.nan
    return result


def _sizes(texts: Sequence[str], code: npt.NDArray[np.intp]) -> Texts:
    """Texts by position; empty ones are unknown."""
    code_of = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text))}
    return Texts(np.array([code_of.get(text, -1) for text in texts], np.int32)[code], list(code_of))


def _could_use(merged: Kernels) -> npt.NDArray[np.bool_]:
    """Whether tensor cores can do a kernel's work. Kernels that use them count even if their operation is
    unknown, as in a command buffer.
    """
    return merged.is_eligible | merged.uses_tensor_cores


def group_table(spec: TableSpec, keys: Sequence[str], merged: Kernels, units: str = TENSOR_CORES) -> Table:
    """Kernels summed by a text, the largest total time first."""
    code: dict[str, int] = {}
    group = np.array([code.setdefault(key, len(code)) for key in keys], np.intp)
    n_groups = len(code)
    total, count, tensor, eligible = (np.zeros(n_groups, np.int64) for _ in range(4))
    least, most = np.full(n_groups, np.iinfo(np.int64).max), np.zeros(n_groups, np.int64)
    for sums, values in (
        (total, merged.total_ps),
        (count, merged.n_occurrences),
        (tensor, merged.total_ps * merged.uses_tensor_cores),
        (eligible, merged.total_ps * _could_use(merged)),
    ):
        np.add.at(sums, group, values)
    np.minimum.at(least, group, merged.min_ps)
    np.maximum.at(most, group, merged.max_ps)
    variants = np.bincount(group, minlength=n_groups)
    order = np.lexsort((np.arange(n_groups), -total))[:N_ROWS]
    names = list(code)
    all_ps = int(total.sum()) or 1
    on_tensor = tensor / np.maximum(total, 1)
    return spec.fill(
        {
            spec.columns[0].name: [names[i] for i in order.tolist()],
            "n_occurrences": count[order],
            "total_ps": total[order],
            "fraction": total[order] / all_ps,
            "avg_ps": total[order] / np.maximum(count[order], 1),
            "min_ps": least[order],
            "max_ps": most[order],
            "tensor_core_fraction": on_tensor[order],
            "eligible_fraction": eligible[order] / np.maximum(total[order], 1),
            "n_variants": variants[order],
        },
        "" if n_groups <= N_ROWS else f"the first {N_ROWS:,} of {n_groups:,}",
        titles={"tensor_core_fraction": f"On {units}"},
    )


def pie(spec: TableSpec, table: Table) -> Table:
    """The first rows of a group table and the rest together."""
    name, total = table.columns[0], table.columns[2].values.astype(np.int64)
    assert name.strings is not None
    names = [name.strings[int(i)] for i in name.values[:N_SLICES].tolist()]
    times = total[:N_SLICES].tolist()
    n_others = len(total) - len(times)
    if n_others:
        names, times = [*names, "Other"], [*times, int(total[N_SLICES:].sum())]
    values = np.array(times, np.int64)
    columns: Filled = {
        "name": names,
        "total_ps": values,
        "fraction": values / (int(values.sum()) or 1),
    }
    return spec.fill(columns, f"{n_others:,} more in Other" if n_others else "")


def _scalars(merged: Kernels, units: str) -> dict[str, Scalar]:
    if not len(merged):
        return {}
    all_ps, n_launches = int(merged.total_ps.sum()), int(merged.n_occurrences.sum())
    eligible = int(merged.total_ps[_could_use(merged)].sum())
    tensor = int(merged.total_ps[merged.uses_tensor_cores].sum())
    mean, n_kernels = all_ps / n_launches, len(set(merged.name))
    eligible_note = (
        f"eligible operations take {format_fraction(eligible / all_ps)}"
        if eligible
        else "no eligible operations"
    )
    return fill_scalars(
        SCALARS,
        {
            "kernel_time_ps": Number(all_ps, "of all launches, on all devices and hosts"),
            "n_launches": Number(n_launches, f"of {counted(n_kernels, 'distinct kernel')}"),
            "avg_kernel_ps": Number(
                mean,
                "short kernels are launch-bound" if mean < SHORT_PS else "",
                "",
                quotient((all_ps, n_launches), ("ps", "count"), mean, "ps"),
            ),
            "tensor_core_fraction": Number(
                tensor / all_ps, eligible_note, f"Time on {units}", quotient((tensor, all_ps), "ps")
            ),
        },
    )


def _verdict(merged: Kernels, units: str = TENSOR_CORES) -> Verdict | None:
    """The kernel that takes the most time, unused tensor cores, and kernels that are too short."""
    if not len(merged):
        return None
    all_ps = int(merged.total_ps.sum())
    by_name: dict[str, int] = {}
    for name, total in zip(merged.name, merged.total_ps.tolist(), strict=True):
        by_name[name] = by_name.get(name, 0) + total
    first = max(by_name, key=lambda name: by_name[name])
    share = by_name[first] / all_ps
    time_text = f"{format_time(by_name[first])}, {format_fraction(share)} of the time of all kernels"
    text = f"`{short_name(first)}` takes the most time: {time_text}."
    if share < _STANDS_OUT:
        text = f"No single kernel stands out: `{short_name(first)}` comes first with {time_text}."
    idle = _without_tensor_cores(merged, units)
    details = [*idle, *_too_short(merged)]
    row = merged.name.index(first)
    subject = Subject("by_kernel", "kernel", first, {"total_ps": float(by_name[first]), "fraction": share})
    start, length = int(merged.longest_start_ps[row]), int(merged.max_ps[row])
    where = {
        "hosts": merged.host[row],
        "start_ps": str(max(0, start - length)),
        "end_ps": str(start + 2 * length),
    }
    return Verdict(
        "warn" if details else "unknown",
        text,
        "compute",
        tuple(details),
        (NextStep("See its longest launch", "trace_viewer", where),),
        (subject,),
    )


def _without_tensor_cores(merged: Kernels, units: str) -> list[str]:
    """Operations that could use tensor cores but launch no kernel that does."""
    uses: dict[str, bool] = {}
    total: dict[str, int] = {}
    for op, time, eligible, tensor in zip(
        merged.op,
        merged.total_ps.tolist(),
        merged.is_eligible.tolist(),
        merged.uses_tensor_cores.tolist(),
        strict=True,
    ):
        if eligible:
            uses[op] = uses.get(op, False) or tensor
            total[op] = total.get(op, 0) + time
    idle = {op: time for op, time in total.items() if not uses[op]}
    all_ps = int(merged.total_ps.sum())
    lost = sum(idle.values())
    if lost < _STANDS_OUT * all_ps:
        return []
    first = max(idle, key=lambda op: idle[op])
    return [
        f"{format_fraction(lost / all_ps)} of the time is spent in operations that could run on {units}, in "
        f"kernels that do not use them, mostly `{first}` ({format_time(idle[first])}). Compute in bfloat16, "
        "float16 or TF32, and keep sizes multiples of 8 (16 for FP8)."
    ]


def _too_short(merged: Kernels) -> list[str]:
    mean = merged.total_ps / merged.n_occurrences
    short = mean < SHORT_PS
    n_short, n_launches = int(merged.n_occurrences[short].sum()), int(merged.n_occurrences.sum())
    share = float(merged.total_ps[short].sum()) / int(merged.total_ps.sum())
    if n_launches < _MANY or n_short < 0.5 * n_launches or share < _STANDS_OUT:
        return []
    return [
        f"{format_fraction(n_short / n_launches)} of {n_launches:,} launches last less than "
        f"{SHORT_PS / PS_PER_US:g} µs on average, about as long as launching takes: fuse them (XLA, "
        "torch.compile), "
        "batch more, or use CUDA graphs."
    ]


def available(session: Session) -> Availability:
    """Whether one of the first hosts has a GPU."""
    if any(session.get(planes, host).gpus for host in session.hosts[:_HOSTS_TO_CHECK]):
        return Availability()
    return Availability(_REASON, _CAPTURE, "no GPU")


TOOL = Tool(
    name="kernel_stats",
    title="Kernel stats",
    group="Time",
    summary="GPU kernels by time, launch, library and use of tensor or matrix cores",
    view=view,
    available=available,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
)
