"""tpu_compatibility: which operations of a TensorFlow graph a TPU can run, where the others stand and what to
do about them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.graphs.drawing import drawing
from tb_tpuprof.analysis.graphs.scopes import Scopes, scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import (
    INVALID,
    NOT_CHECKED,
    STATUSES,
    VALID,
    Compatibility,
    compatibility,
)
from tb_tpuprof.analysis.graphs.tpu_kernels import OPS, TPU_ONLY, VERSION
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Param, Params
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Diagnostic, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.tpu_compatibility.tables import drawing_scalars, drawing_tables, told_scopes
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch
from tb_tpuprof.units import format_fraction

N_ROWS = 10_000
_REASON = "the run's folder contains no TensorFlow graph"
_REMEDY = (
    "Write one beside the profile: `tf.summary.graph(function.get_concrete_function(…).graph)` or "
    "`tf.summary.trace_on(graph=True)` with `trace_export` in an event file, or "
    '`tf.saved_model.save(model, logdir + "/model")`. (Keras 3 leaves `write_graph` of its TensorBoard '
    "callback out; Keras 2 writes it.) JAX and PyTorch programs have no such graph: what they compile for a "
    "TPU, XLA has accepted."
)
Int64s = npt.NDArray[np.int64]


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graphs beside the run, and one of them in full. Hosts make no difference."""
    search = session.graphs()
    if not search.places:
        raise ToolUnavailable(TOOL.name, _missing(search), _REMEDY)
    place = _pick(search.places, str(params.get("graph", "")))
    found, tree = session.of_graph(_of_graph, place)
    if params["drawing"]:
        drawn = drawing(found, tree, *told_scopes(str(params.get("boxes", "")), tree))
        return Payload(
            TOOL.name, session.run, hosts, drawing_tables(found, tree, drawn), drawing_scalars(drawn)
        )
    tables = {
        "graphs": _graphs_table(search.places, place),
        "fixes": _fixes_table(found),
        "scopes": _scopes_table(tree),
        "incompatible": _incompatible_table(found),
        "by_op": _by_op_table(found),
        "not_checked": _reasons_table(found),
    }
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        tables,
        _scalars(found),
        _verdict(found, place),
        _diagnostics(search, found, tree),
    )


def _of_graph(graph: Graph) -> tuple[Compatibility, Scopes]:
    found = compatibility(graph)
    return found, scopes(found)


def _pick(places: tuple[GraphPlace, ...], wanted: str) -> GraphPlace:
    """The graph asked for; else the largest."""
    if not wanted:
        return max(places, key=lambda place: place.size_bytes)
    for place in places:
        if place.name == wanted:
            return place
    raise BadParameter("graph", wanted, "one of " + ", ".join(place.name for place in places[:50]))


def _graphs_table(places: tuple[GraphPlace, ...], chosen: GraphPlace) -> Table:
    ordered = sorted(places, key=lambda place: -place.size_bytes)
    return Table(
        "Graphs",
        (
            text_column(
                "graph", "Graph", [place.name for place in ordered], "The file below the run's folder"
            ),
            text_column("kind", "Kind", [place.kind for place in ordered]),
            Column("size_bytes", "Size", np.array([place.size_bytes for place in ordered]), "bytes"),
            Column("is_shown", "Shown", np.array([place == chosen for place in ordered], np.bool_)),
        ),
    )


def _scopes_table(tree: Scopes) -> Table:
    checked = tree.counts[:, VALID] + tree.counts[:, INVALID]
    share = np.where(checked > 0, tree.counts[:, VALID] / np.maximum(checked, 1), np.nan)
    return Table(
        "Scopes",
        (
            text_column("path", "Scope", tree.path, "Of names, from the graph's or its function's root"),
            text_column(
                "function", "Function", tree.function, "That the scope is in; empty in the graph itself"
            ),
            Column(
                "valid_fraction",
                "Valid",
                share,
                "fraction",
                description="Among those checked; includes scopes below",
            ),
            Column("n_invalid", "Incompatible", tree.counts[:, INVALID], "count"),
            Column("n_valid", "Valid operations", tree.counts[:, VALID], "count"),
            Column("n_not_checked", "Not checked", tree.counts[:, NOT_CHECKED], "count"),
            text_column("name", "Name", tree.name, "The last part of the scope"),
            Column(
                "parent",
                "Within",
                tree.parent,
                "id",
                description="Row of the scope above, -1 of the whole graph",
            ),
        ),
        f"{tree.n_merged:,} scopes are counted in the ones above them" if tree.n_merged else "",
    )


def _incompatible_table(found: Compatibility) -> Table:
    graph = found.graph
    rows = np.flatnonzero(found.status == INVALID)
    shown = rows[:N_ROWS].tolist()
    ops = [graph.op.strings[graph.op.codes[row]] for row in shown]
    reasons = [found.reasons[found.reason[row]] for row in shown]
    kinds = [advice(op, reason) for op, reason in zip(ops, reasons, strict=True)]
    return Table(
        "Incompatible operations",
        (
            text_column("op", "Operation", ops),
            text_column("name", "Node", [graph.name(row) for row in shown]),
            text_column("scope", "Scope", [graph.scope.strings[graph.scope.codes[row]] for row in shown]),
            text_column(
                "function",
                "Function",
                [graph.functions[graph.function[row]] if graph.function[row] >= 0 else "" for row in shown],
            ),
            text_column("reason", "Why", reasons),
            text_column("kind", "Kind", [kind.kind for kind in kinds]),
            text_column("fix", "What to do", [kind.text for kind in kinds]),
        ),
        f"the first {N_ROWS:,} of {len(rows):,}" if len(rows) > N_ROWS else "",
    )


def _groups(found: Compatibility, second: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """(codes of operations, of `second`, numbers of nodes) of each pair that occurs, the most
    frequent first.
    """
    n = int(second.max(initial=0)) + 1
    pairs, counts = np.unique(found.graph.op.codes.astype(np.int64) * n + second, return_counts=True)
    order = np.lexsort((pairs, -counts))
    return pairs[order] // n, pairs[order] % n, counts[order].astype(np.int64)


def _by_op_table(found: Compatibility) -> Table:
    """A row per operation and reason, incompatible ones first."""
    op, reason, counts = _groups(found, found.reason.astype(np.int64))
    status_of = np.zeros(len(found.reasons), np.int64)
    status_of[found.reason] = found.status
    rank = np.array([1, 0, 2])[status_of[reason]]
    order = np.lexsort((-counts, rank))[:N_ROWS]
    op, reason, counts = op[order], reason[order], counts[order]
    ops, reasons = (
        [found.graph.op.strings[code] for code in op.tolist()],
        [found.reasons[code] for code in reason.tolist()],
    )
    statuses = status_of[reason].tolist()
    fixes = [
        advice(name, why).text if status == INVALID else ""
        for name, why, status in zip(ops, reasons, statuses, strict=True)
    ]
    return Table(
        "By operation",
        (
            text_column("op", "Operation", ops),
            text_column("status", "Status", [STATUSES[status] for status in statuses]),
            Column("n_ops", "Nodes", counts, "count"),
            Column(
                "fraction", "Share", counts / max(len(found.graph), 1), "fraction", description="Of all nodes"
            ),
            text_column("reason", "Why", reasons),
            text_column("fix", "What to do", fixes),
        ),
    )


def _fixes_table(found: Compatibility) -> Table:
    """A row per kind of incompatible operation, the most frequent first."""
    rows = np.flatnonzero(found.status == INVALID)
    n = len(found.reasons)
    pairs, counts = np.unique(
        found.graph.op.codes[rows].astype(np.int64) * n + found.reason[rows], return_counts=True
    )
    kinds: dict[tuple[str, str], dict[str, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        op = found.graph.op.strings[pair // n]
        what = advice(op, found.reasons[pair % n])
        ops = kinds.setdefault((what.kind, what.text), {})
        ops[op] = ops.get(op, 0) + count
    ordered = sorted(kinds.items(), key=lambda kind: (-sum(kind[1].values()), kind[0]))
    return Table(
        "What to do",
        (
            text_column("kind", "Kind", [kind for (kind, _), _ in ordered]),
            Column("n_ops", "Nodes", np.array([sum(ops.values()) for _, ops in ordered], np.int64), "count"),
            text_column("ops", "Operations", [_some(ops) for _, ops in ordered]),
            text_column("fix", "What to do", [text for (_, text), _ in ordered]),
        ),
    )


def _some(ops: dict[str, int]) -> str:
    """The most frequent ones by name."""
    names = sorted(ops, key=lambda op: (-ops[op], op))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _reasons_table(found: Compatibility) -> Table:
    codes, counts = np.unique(found.reason[found.status == NOT_CHECKED], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return Table(
        "Not checked",
        (
            text_column("reason", "Why", [found.reasons[code] for code in codes[order].tolist()]),
            Column("n_ops", "Nodes", counts[order].astype(np.int64), "count"),
        ),
    )


def _scalars(found: Compatibility) -> dict[str, Scalar]:
    n_invalid = found.count(INVALID)
    rows = found.status == INVALID
    n_kinds = len(np.unique(found.graph.op.codes[rows]))
    n_functions = len(found.graph.functions)
    listed = f"TensorFlow {VERSION} compiles {len(OPS) + len(TPU_ONLY)} operations for TPUs"
    return {
        "valid_fraction": Scalar(
            found.valid_fraction, "fraction", "Compatible", "of the operations that are checked"
        ),
        "n_invalid": Scalar(
            n_invalid, "count", "Incompatible", f"of {_count(n_kinds, 'kind')}" if n_invalid else "none"
        ),
        "n_valid": Scalar(found.count(VALID), "count", "Valid", listed),
        "n_not_checked": Scalar(found.count(NOT_CHECKED), "count", "Not checked", "they run on the host"),
        "n_ops": Scalar(
            len(found.graph), "count", "Operations", f"in the graph and {_count(n_functions, 'function')}"
        ),
    }


def _verdict(found: Compatibility, place: GraphPlace) -> Verdict:
    share, n_invalid = found.valid_fraction, found.count(INVALID)
    where = f"`{place.name}`"
    if share is None:
        return Verdict(
            "unknown", f"Nothing of {where} is meant for a TPU: all its operations run on the host."
        )
    n_checked = found.count(VALID) + n_invalid
    if not n_invalid:
        return Verdict(
            "good",
            f"TPU-ready: a TPU has a kernel for each of the {n_checked:,} operations checked in {where}.",
        )
    graph = found.graph
    rows = np.flatnonzero(found.status == INVALID)
    pairs, first, counts = np.unique(
        graph.op.codes[rows].astype(np.int64) * len(found.reasons) + found.reason[rows],
        return_index=True,
        return_counts=True,
    )
    details: list[str] = []
    seen: set[str] = set()
    for at in np.lexsort((first, -counts)).tolist():
        op, why = (
            graph.op.strings[int(pairs[at]) // len(found.reasons)],
            found.reasons[int(pairs[at]) % len(found.reasons)],
        )
        what = advice(op, why)
        if what.kind not in seen and len(details) < 3:
            seen.add(what.kind)
            times = f" ({int(counts[at])} times)" if counts[at] > 1 else ""
            details.append(f"`{op}`{times}, at `{graph.name(int(rows[first[at]]))}`: {why}. {what.text}")
    text = (
        f"{_count(n_invalid, 'operation')} of {n_checked:,} in {where} cannot run on a TPU: "
        f"{format_fraction(share)} are compatible."
    )
    return Verdict("bad", text, "", tuple(details))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _diagnostics(search: GraphSearch, found: Compatibility, tree: Scopes) -> tuple[Diagnostic, ...]:
    result = [Diagnostic("warning", note) for note in search.notes[:20]]
    if search.is_cut:
        result.append(
            Diagnostic(
                "warning",
                "The folder holds more than was looked through; graphs may be missing.",
                "Open a smaller folder.",
            )
        )
    if found.graph.n_damaged:
        text = f"{_count(found.graph.n_damaged, 'node')} of the graph could not be read and are left out."
        result.append(Diagnostic("warning", text, "Write the graph again."))
    if tree.n_merged:
        text = (
            f"{_count(tree.n_merged, 'scope')} were too many or too deep for the tree; their operations "
            "count in the scope above."
        )
        result.append(Diagnostic("info", text))
    text = (
        f"The list is of TensorFlow {VERSION}: each operation and type that its registry compiles for XLA's "
        "TPU backend. It says whether there is a kernel, not whether shapes are known when XLA compiles, "
        "sizes fit, or arguments that must be constant are."
    )
    return (*result, Diagnostic("info", text))


def _missing(search: GraphSearch) -> str:
    if search.n_files:
        files = (
            _count(search.n_files, "event file or SavedModel")
            if search.n_files == 1
            else f"{search.n_files:,} event files and SavedModels"
        )
        return f"{_REASON} ({files} looked through)."
    return f"{_REASON}: it holds neither event files nor SavedModels."


def available(session: Session) -> Availability:
    """Whether there is a graph beside the run. What was found in a file is kept until the file changes."""
    search = session.graphs()
    return Availability() if search.places else Availability(_missing(search), _REMEDY)


TOOL = Tool(
    name="tpu_compatibility",
    title="TPU compatibility",
    group="Compiler",
    summary="Which operations of a TensorFlow graph a TPU can run, and how to change the others",
    view=view,
    available=available,
    needs_trace=False,
    params=(
        Param(
            "graph",
            "Graph",
            "text",
            None,
            "Which graph to show, by its name in the table of graphs; absent: the largest",
        ),
        Param(
            "drawing",
            "Drawing",
            "bool",
            False,
            "Answer the drawing of the graph alone: boxes of scopes, operations, edges",
        ),
        Param(
            "boxes",
            "Boxes",
            "text",
            None,
            "With `drawing`: rows of scopes to open (`o`) or close (`c`), such as 3o.17c; without a letter: "
            "other than it would be",
        ),
    ),
)
