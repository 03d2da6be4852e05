"""The drawing of a TensorFlow graph's scopes as tables: its items, and the edges between them."""

from __future__ import annotations

import re

import numpy as np

from tb_tpuprof.analysis.graphs.drawing import KINDS, OPERATION, REST, Drawing
from tb_tpuprof.analysis.graphs.scopes import Scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import INVALID, NOT_CHECKED, VALID, Compatibility
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.payload import Scalar, Table
from tb_tpuprof.tools.spec import fill_scalars
from tb_tpuprof.tools.tpu_compatibility.declared import DRAWING_SCALARS, EDGES, ITEMS

_MOST_ROWS = 1000
_BOX = re.compile(r"([0-9]{1,9})([oc]?)")


def toggled_scopes(text: str, tree: Scopes) -> tuple[list[int], dict[int, bool]]:
    """From `3.17o.20c` the rows of scopes to toggle (3), and those to open (17) or to close (20). Raises
    BadParameter.
    """
    parts = [_BOX.fullmatch(part) for part in text.split(".") if part]
    if len(parts) > _MOST_ROWS or None in parts:
        raise BadParameter(
            "boxes",
            text[:80],
            "rows of the table of scopes, separated by dots, each with `o` to open it or `c` to close it",
        )
    rows = [(int(part[1]), part[2]) for part in parts if part and int(part[1]) < len(tree.name)]
    return [row for row, action in rows if not action], {row: action == "o" for row, action in rows if action}


def drawing_tables(result: Compatibility, tree: Scopes, drawn: Drawing) -> dict[str, Table]:
    """`items`, frames before their contents, and `edges` between their rows."""
    return {"items": _items_table(result, tree, drawn), "edges": _edges_table(drawn)}


def drawing_scalars(drawn: Drawing) -> dict[str, Scalar]:
    """Numbers of items that are drawn and that are not."""
    return fill_scalars(
        DRAWING_SCALARS,
        {
            "n_items": len(drawn),
            "n_rest": int(drawn.counts[drawn.kind == REST].sum()),
            "n_cut": drawn.n_cut,
        },
    )


def _items_table(result: Compatibility, tree: Scopes, drawn: Drawing) -> Table:
    graph = result.graph
    names, ops, reasons, fixes = [], [], [], []
    for kind, scope, node, counts in zip(
        drawn.kind.tolist(), drawn.scope.tolist(), drawn.node.tolist(), drawn.counts, strict=True
    ):
        if kind != OPERATION:
            names.append(tree.name[scope] if kind != REST else f"{int(counts.sum()):,} more")
            ops.append("")
            reasons.append("")
            fixes.append("")
            continue
        op, reason = graph.op.strings[graph.op.codes[node]], result.reasons[result.reason[node]]
        names.append(graph.name(node))
        ops.append(op)
        reasons.append(reason)
        fixes.append(advice(op, reason).text if result.status[node] == INVALID else "")
    return ITEMS.fill(
        {
            "kind": [KINDS[kind] for kind in drawn.kind.tolist()],
            "name": names,
            "op": ops,
            "frame": drawn.frame,
            "scope": drawn.scope,
            "is_open": drawn.is_open,
            "n_valid": drawn.counts[:, VALID],
            "n_invalid": drawn.counts[:, INVALID],
            "n_not_checked": drawn.counts[:, NOT_CHECKED],
            "reason": reasons,
            "fix": fixes,
            "node": np.where(drawn.kind == OPERATION, drawn.node, -1),
        }
    )


def _edges_table(drawn: Drawing) -> Table:
    both = np.concatenate([drawn.edges, drawn.calls])
    is_call = np.arange(len(both)) >= len(drawn.edges)
    return EDGES.fill({"from": both[:, 0], "to": both[:, 1], "n": both[:, 2], "is_call": is_call})
