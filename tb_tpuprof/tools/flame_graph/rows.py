"""Trees, functions, threads and steps → the page's tables. Times are means per step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.flame.frames import Family, label_of
from tb_tpuprof.analysis.flame.modules import MODULE
from tb_tpuprof.analysis.flame.nodes import Function, Node
from tb_tpuprof.analysis.steps.steps import steps as trace_steps
from tb_tpuprof.tools.flame_graph.flame import Flame
from tb_tpuprof.tools.flame_graph.tables import FUNCTIONS, NODES, STEPS, THREADS
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Filled, Values, known_texts

MAX_STEPS = 5_000


def labels(names: Sequence[str]) -> dict[str, Values]:
    """The columns that say what names are: name, file, line, package, key."""
    found = [label_of(name) for name in names]
    return {
        "name": [label.function for label in found],
        "file": known_texts([label.file for label in found]),
        "line": np.array([label.line or np.nan for label in found], np.float64),
        "package": known_texts([label.package for label in found]),
        "key": known_texts(list(names)),
    }


def times(rows: Sequence[Node] | Sequence[Function], n_windows: Sequence[int]) -> dict[str, Values]:
    """Self and total time and calls per step, of each set of steps."""
    result: dict[str, Values] = {}
    for k, n in enumerate(n_windows):
        prefix = "other_" if k else ""
        for name, attribute in (("self_ps", "own_ps"), ("total_ps", "total_ps"), ("calls", "calls")):
            values = np.array([getattr(row, attribute)[k] for row in rows], np.int64)
            result[prefix + name] = per_step(values, n)
    return result


def per_step(values: np.typing.NDArray[np.int64], n: int) -> Values:
    """Means; the sums themselves, as whole numbers, of a single step."""
    return values if n == 1 else values / n


def nodes_table(flame: Flame, nodes: Sequence[Node]) -> Table:
    """A row per node."""
    keys = [node.name if flame.tree_group < 0 or node.name.startswith(MODULE) else "" for node in nodes]
    columns: Filled = {
        "thread": np.array([node.group for node in nodes], np.int64),
        "parent": np.array([node.parent for node in nodes], np.int64),
        **labels([node.name for node in nodes]),
        "key": known_texts(keys),
        "family": known_texts(["" if node.n_smaller else Family(node.family).word for node in nodes]),
        **times(nodes, flame.n_summed),
        "n_smaller": np.array([node.n_smaller for node in nodes], np.int64),
    }
    if flame.is_in_order:
        columns = {**columns, "start_ps": np.array([node.start_ps for node in nodes], np.int64)}
    if flame.tree_group >= 0:
        n = flame.n_windows[0]
        phases = known_texts([node.phase for node in nodes])
        columns = {**columns, "flops": _known([node.flops for node in nodes]) / n, "phase": phases}
    if flame.is_of_modules:
        columns = {
            **columns,
            "allocated_bytes": _known([node.allocated_bytes for node in nodes]) / n,
            "net_bytes": _known([node.net_bytes for node in nodes]) / n,
            "peak_bytes": _known([node.peak_bytes for node in nodes]),
        }
    return NODES.fill(columns)


def _known(values: Sequence[float | None]) -> np.typing.NDArray[np.float64]:
    """Numbers, NaN for those that are unknown."""
    return np.array([np.nan if value is None else value for value in values], np.float64)


def functions_table(flame: Flame, functions: Sequence[Function]) -> Table:
    """A row per function, the user's first."""
    ordered = sorted(
        functions,
        key=lambda one: (not one.is_users, -(one.with_calls_ps[0] if one.is_users else one.own_ps[0])),
    )
    n = flame.n_windows[0]
    with_calls, waiting, own = (
        np.array([getattr(one, name)[0] for one in ordered], np.float64) / n
        for name in ("with_calls_ps", "waiting_ps", "own_ps")
    )
    is_users = np.array([one.is_users for one in ordered], np.bool_)
    return FUNCTIONS.fill(
        {
            **labels([one.name for one in ordered]),
            "family": [Family(one.family).word for one in ordered],
            "with_calls_ps": np.where(is_users, with_calls, np.nan),
            "waiting_ps": np.where(is_users, waiting, np.nan),
            **times(ordered, flame.n_windows),
            "self_fraction": own * n / max(flame.shown_ps(), 1),
        }
    )


def threads_table(flame: Flame) -> Table:
    """A row per group."""
    covered, window = flame.covered_ps(), flame.window_ps()
    n_lines = np.array([group.n_lines for group in flame.groups], np.int64)
    return THREADS.fill(
        {
            "name": [group.title for group in flame.groups],
            "section": [group.section for group in flame.groups],
            "kind": [group.kind for group in flame.groups],
            "n_threads": n_lines,
            "busy_ps": per_step(covered, flame.n_summed[0]),
            "busy_fraction": np.where(window > 0, covered / np.where(window > 0, window, 1), np.nan),
            "is_shown": np.isin(
                np.arange(len(flame.groups)), flame.shown if flame.tree_group < 0 else flame.tree_group
            ),
            "tracks": [",".join(map(str, group.track_ids)) for group in flame.groups],
        }
    )


def steps_table(flame: Flame) -> Table:
    """The steps of the first host, in order."""
    steps = trace_steps(flame.hosts[0].trace)
    kept = np.arange(min(len(steps), MAX_STEPS))
    waits = np.minimum(steps.category_ps("input"), steps.duration_ps)[kept]
    shown, *others = (one.rows for one in flame.hosts[0].chosen)
    return STEPS.fill(
        {
            "step": [steps.name[i] for i in kept.tolist()],
            "input_ps": waits,
            "rest_ps": steps.duration_ps[kept] - waits,
            "is_shown": np.isin(kept, shown),
            "is_compared": np.isin(kept, others[0]) if others else np.zeros(len(kept), np.bool_),
        },
        f"the first {len(kept):,} of {len(steps):,}" if len(steps) > len(kept) else "",
    )
