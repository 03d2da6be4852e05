"""One function: its callers and callees, longest calls, and its time in each step."""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.events.python_frames import python_place
from tb_tpuprof.analysis.flame.frames import Family
from tb_tpuprof.analysis.flame.function import FunctionSides, function_sides
from tb_tpuprof.analysis.flame.nodes import merged_nodes
from tb_tpuprof.analysis.flame.selection import ALL, selection
from tb_tpuprof.analysis.steps.steps import steps as trace_steps
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.flame_graph.flame import Flame, open_flame
from tb_tpuprof.tools.flame_graph.rows import MAX_STEPS, labels, per_step
from tb_tpuprof.tools.flame_graph.tables import BY_STEP, CALLS, FUNCTION_SCALARS, SIDES
from tb_tpuprof.tools.payload import Payload, Table
from tb_tpuprof.tools.source_lines import source_tables
from tb_tpuprof.tools.spec import fill_scalars

MAX_NAME = 10_000
Found = list[tuple[int, FunctionSides]]


def function_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The function named by its event. Raises BadParameter if the chosen threads never call it."""
    name = str(params["function"])
    flame = open_flame(session, hosts, {**params, "order": "merged"})
    found: Found = []
    for place, host in enumerate(flame.hosts if len(name) <= MAX_NAME else ()):
        steps = selection(host.trace, ALL)
        assert steps is not None  # every trace has all of its steps
        one = function_sides(host.trace, host.tree, host.found, name, (host.chosen[0].windows, steps.windows))
        if one is not None:
            found.append((place, one))
    if not found:
        raise BadParameter(
            "function", name[:100], "the event name (column `key`) of a function on the chosen threads"
        )
    n = flame.n_windows[0]
    sums = [
        sum(getattr(one, field) for _, one in found) for field in ("own_ps", "total_ps", "n_calls", "n_calls")
    ]
    values = dict(zip(("self_ps", "total_ps", "calls", "n_calls"), sums, strict=True))
    scalars = fill_scalars(
        FUNCTION_SCALARS, {key: value / n if key != "n_calls" else value for key, value in values.items()}
    )
    tables = {
        "sides": _sides_table(found, n),
        "longest_calls": _calls_table(flame, found),
        "by_step": _steps_table(flame, found),
        **source_tables((python_place(name),)),
    }
    shown = tuple(host.view.host for host in flame.hosts)
    return Payload("flame_graph", session.run, shown, tables, scalars)


def _sides_table(found: Found, n: int) -> Table:
    callers = merged_nodes([one.callers for _, one in found])
    callees = merged_nodes([one.callees for _, one in found])
    first = len(callers)
    nodes = [*callers, *callees]
    parents = [node.parent for node in callers]
    parents += [node.parent + first if node.parent >= 0 else -1 for node in callees]
    return SIDES.fill(
        {
            "side": ["callers"] * first + ["callees"] * len(callees),
            "parent": np.array(parents, np.int64),
            **labels([node.name for node in nodes]),
            "family": [Family(node.family).word for node in nodes],
            "total_ps": per_step(np.array([node.total_ps[0] for node in nodes], np.int64), n),
            "calls": per_step(np.array([node.calls[0] for node in nodes], np.int64), n),
        }
    )


def _calls_table(flame: Flame, found: Found) -> Table:
    rows: list[tuple[int, str, str, int, int]] = []
    for place, one in found:
        host = flame.hosts[place]
        steps = trace_steps(host.trace)
        ends = steps.start_ps + steps.duration_ps
        columns = (one.longest.event, one.longest.start_ps, one.longest.duration_ps)
        for event, start, duration in zip(*(column.tolist() for column in columns), strict=True):
            inside = np.flatnonzero((steps.start_ps <= start) & (start < ends))
            step = steps.name[int(inside[0])] if len(inside) else ""
            rows.append(
                (
                    duration,
                    step,
                    host.view.host,
                    int(host.view.event_ids(event)),
                    start + host.view.offset_ps,
                )
            )
    rows.sort(key=lambda row: (-row[0], row[4]))
    rows = rows[:20]
    return CALLS.fill(
        {
            "step": [row[1] for row in rows],
            "host": [row[2] for row in rows],
            "event": np.array([row[3] for row in rows], np.int64),
            "start_ps": np.array([row[4] for row in rows], np.int64),
            "duration_ps": np.array([row[0] for row in rows], np.int64),
        }
    )


def _steps_table(flame: Flame, found: Found) -> Table:
    place, one = found[0]
    host = flame.hosts[place]
    steps = trace_steps(host.trace)
    if not len(steps):
        return BY_STEP.empty()
    order = np.argsort(steps.start_ps, kind="stable")
    own, total = np.zeros(len(steps), np.int64), np.zeros(len(steps), np.int64)
    own[order], total[order] = one.step_own_ps, one.step_total_ps
    kept = min(len(steps), MAX_STEPS)
    return BY_STEP.fill(
        {
            "step": list(steps.name[:kept]),
            "self_ps": own[:kept],
            "total_ps": total[:kept],
            "is_shown": np.isin(np.arange(kept), host.chosen[0].rows),
        }
    )
