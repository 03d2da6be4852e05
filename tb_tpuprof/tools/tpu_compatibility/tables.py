"""Tables of the TPU compatibility: graphs, scopes, incompatible operations, all operations by type, what to
do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.graphs.scopes import Scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import (
    INVALID,
    NOT_CHECKED,
    STATUSES,
    VALID,
    Compatibility,
)
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.tpu_compatibility import declared
from tb_tpuprof.tools.tpu_compatibility.declared import N_ROWS
from tb_tpuprof.trace.graph import GraphPlace

Int64s = npt.NDArray[np.int64]


def graphs_table(places: tuple[GraphPlace, ...], chosen: GraphPlace) -> Table:
    """The graphs next to the run, largest first."""
    ordered = sorted(places, key=lambda place: -place.size_bytes)
    return declared.GRAPHS.fill(
        {
            "graph": [place.name for place in ordered],
            "kind": [place.kind for place in ordered],
            "size_bytes": np.array([place.size_bytes for place in ordered]),
            "is_shown": np.array([place == chosen for place in ordered], np.bool_),
        }
    )


def scopes_table(tree: Scopes) -> Table:
    """The tree of scopes."""
    checked = tree.counts[:, VALID] + tree.counts[:, INVALID]
    share = np.where(checked > 0, tree.counts[:, VALID] / np.maximum(checked, 1), np.nan)
    return declared.SCOPES.fill(
        {
            "path": tree.path,
            "function": tree.function,
            "valid_fraction": share,
            "n_invalid": tree.counts[:, INVALID],
            "n_valid": tree.counts[:, VALID],
            "n_not_checked": tree.counts[:, NOT_CHECKED],
            "name": tree.name,
            "parent": tree.parent,
        },
        f"{tree.n_merged:,} scopes are counted in the ones above them" if tree.n_merged else "",
    )


def incompatible_table(result: Compatibility) -> Table:
    """The nodes that a TPU cannot run."""
    graph = result.graph
    rows = np.flatnonzero(result.status == INVALID)
    shown = rows[:N_ROWS].tolist()
    ops = [graph.op.strings[graph.op.codes[row]] for row in shown]
    reasons = [result.reasons[result.reason[row]] for row in shown]
    kinds = [advice(op, reason) for op, reason in zip(ops, reasons, strict=True)]
    return declared.INCOMPATIBLE.fill(
        {
            "op": ops,
            "name": [graph.name(row) for row in shown],
            "scope": [graph.scope.strings[graph.scope.codes[row]] for row in shown],
            "function": [
                graph.functions[graph.function[row]] if graph.function[row] >= 0 else "" for row in shown
            ],
            "reason": reasons,
            "kind": [kind.kind for kind in kinds],
            "fix": [kind.text for kind in kinds],
        },
        f"the first {N_ROWS:,} of {len(rows):,}" if len(rows) > N_ROWS else "",
    )


def _groups(result: Compatibility, second: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """(code of the operation, code of `second`, number of nodes) of each pair that occurs, most frequent
    first.
    """
    n_seconds = int(second.max(initial=0)) + 1
    pairs, counts = np.unique(result.graph.op.codes.astype(np.int64) * n_seconds + second, return_counts=True)
    order = np.lexsort((pairs, -counts))
    return pairs[order] // n_seconds, pairs[order] % n_seconds, counts[order].astype(np.int64)


def by_op_table(result: Compatibility) -> Table:
    """A row per operation and reason, incompatible ones first."""
    op, reason, counts = _groups(result, result.reason.astype(np.int64))
    status_of = np.zeros(len(result.reasons), np.int64)
    status_of[result.reason] = result.status
    rank = np.array([1, 0, 2])[status_of[reason]]
    order = np.lexsort((-counts, rank))[:N_ROWS]
    op, reason, counts = op[order], reason[order], counts[order]
    ops, reasons = (
        [result.graph.op.strings[code] for code in op.tolist()],
        [result.reasons[code] for code in reason.tolist()],
    )
    statuses = status_of[reason].tolist()
    fixes = [
        advice(name, why).text if status == INVALID else ""
        for name, why, status in zip(ops, reasons, statuses, strict=True)
    ]
    return declared.BY_OP.fill(
        {
            "op": ops,
            "status": [STATUSES[status] for status in statuses],
            "n_ops": counts,
            "fraction": counts / max(len(result.graph), 1),
            "reason": reasons,
            "fix": fixes,
        }
    )


def fixes_table(result: Compatibility) -> Table:
    """A row per kind of incompatible operation, most frequent first."""
    rows = np.flatnonzero(result.status == INVALID)
    n_reasons = len(result.reasons)
    pairs, counts = np.unique(
        result.graph.op.codes[rows].astype(np.int64) * n_reasons + result.reason[rows], return_counts=True
    )
    kinds: dict[tuple[str, str], dict[str, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        op = result.graph.op.strings[pair // n_reasons]
        remedy = advice(op, result.reasons[pair % n_reasons])
        ops = kinds.setdefault((remedy.kind, remedy.text), {})
        ops[op] = ops.get(op, 0) + count
    ordered = sorted(kinds.items(), key=lambda kind: (-sum(kind[1].values()), kind[0]))
    return declared.FIXES.fill(
        {
            "kind": [kind for (kind, _), _ in ordered],
            "n_ops": np.array([sum(ops.values()) for _, ops in ordered], np.int64),
            "ops": [_some(ops) for _, ops in ordered],
            "fix": [text for (_, text), _ in ordered],
        }
    )


def _some(ops: dict[str, int]) -> str:
    """The names of the most frequent ones."""
    names = sorted(ops, key=lambda op: (-ops[op], op))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def reasons_table(result: Compatibility) -> Table:
    """Why operations are not checked."""
    codes, counts = np.unique(result.reason[result.status == NOT_CHECKED], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return declared.NOT_CHECKED.fill(
        {
            "reason": [result.reasons[code] for code in codes[order].tolist()],
            "n_ops": counts[order].astype(np.int64),
        }
    )
