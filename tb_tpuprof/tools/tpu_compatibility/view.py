"""tpu_compatibility: the operations of a TensorFlow graph that a TPU can run, where the others are and how
to change them.
"""

from __future__ import annotations

import numpy as np

from tb_tpuprof.analysis.graphs.drawing import drawing
from tb_tpuprof.analysis.graphs.scopes import Scopes, scopes
from tb_tpuprof.analysis.graphs.tpu_advice import advice
from tb_tpuprof.analysis.graphs.tpu_compatibility import (
    INVALID,
    NOT_CHECKED,
    VALID,
    Compatibility,
    compatibility,
)
from tb_tpuprof.analysis.graphs.tpu_kernels import OPS, TPU_ONLY, VERSION
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, Params, Question
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar, Verdict
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.tpu_compatibility import declared
from tb_tpuprof.tools.tpu_compatibility.drawing import drawing_scalars, drawing_tables, toggled_scopes
from tb_tpuprof.tools.tpu_compatibility.node import node_tables
from tb_tpuprof.tools.tpu_compatibility.tables import (
    by_op_table,
    fixes_table,
    graphs_table,
    incompatible_table,
    reasons_table,
    scopes_table,
)
from tb_tpuprof.tools.working import quotient
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch
from tb_tpuprof.units import counted, format_fraction

_REASON = "the run's folder contains no TensorFlow graph"
_REMEDY = (
    "Write one next to the profile: `tf.summary.graph(function.get_concrete_function(…).graph)` or "
    "`tf.summary.trace_on(graph=True)` with `trace_export` in an event file, or "
    '`tf.saved_model.save(model, logdir + "/model")`. (The TensorBoard callback of Keras 2 '
    "writes one with `write_graph`; that of Keras 3 does not.) JAX and PyTorch programs have no such "
    "graph: XLA "
    "has accepted what they compile for a TPU."
)


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graphs next to the run, and one of them in full. Hosts make no difference."""
    search, place = _chosen(session, params)
    result, tree = session.graphs.get(_of_graph, place)
    tables = {
        "graphs": graphs_table(search.places, place),
        "fixes": fixes_table(result),
        "scopes": scopes_table(tree),
        "incompatible": incompatible_table(result),
        "by_op": by_op_table(result),
        "not_checked": reasons_table(result),
    }
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        tables,
        _scalars(result),
        _verdict(result, place),
        _diagnostics(search, result, tree),
    )


def drawing_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graph as boxes of scopes, operations and the edges between them."""
    _, place = _chosen(session, params)
    result, tree = session.graphs.get(_of_graph, place)
    drawn = drawing(result, tree, *toggled_scopes(str(params.get("boxes", "")), tree))
    tables, scalars = drawing_tables(result, tree, drawn), drawing_scalars(drawn)
    return Payload(TOOL.name, session.run, hosts, tables, scalars)


def node_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The attributes and inputs of one operation. Raises BadParameter if there is none of that number."""
    _, place = _chosen(session, params)
    result, _ = session.graphs.get(_of_graph, place)
    return Payload(TOOL.name, session.run, hosts, node_tables(result.graph, int(params["node"])), {})


def _chosen(session: Session, params: Params) -> tuple[GraphSearch, GraphPlace]:
    """The graphs next to the run, and the one to show. Raises ToolUnavailable, BadParameter."""
    search = session.graphs.search()
    if not search.places:
        raise ToolUnavailable(TOOL.name, _missing(search), _REMEDY)
    return search, _pick(search.places, str(params.get("graph", "")))


def _of_graph(graph: Graph) -> tuple[Compatibility, Scopes]:
    result = compatibility(graph)
    return result, scopes(result)


def _pick(places: tuple[GraphPlace, ...], name: str) -> GraphPlace:
    """The requested graph; else the largest."""
    if not name:
        return max(places, key=lambda place: place.size_bytes)
    for place in places:
        if place.name == name:
            return place
    raise BadParameter("graph", name, "one of " + ", ".join(place.name for place in places[:50]))


def _scalars(result: Compatibility) -> dict[str, Scalar]:
    n_invalid = result.count(INVALID)
    rows = result.status == INVALID
    n_kinds = len(np.unique(result.graph.op.codes[rows]))
    n_functions = len(result.graph.functions)
    listed = f"checked against the {len(OPS) + len(TPU_ONLY)} operation types of TensorFlow {VERSION}"
    return fill_scalars(
        declared.PAGE_SCALARS,
        {
            "valid_fraction": Number(
                result.valid_fraction,
                "" if result.valid_fraction is None else "of the checked operations",
                "",
                quotient((result.count(VALID), result.count(VALID) + n_invalid), "count"),
            ),
            "n_invalid": Number(n_invalid, f"of {counted(n_kinds, 'kind')}" if n_invalid else "none"),
            "n_valid": Number(result.count(VALID), listed),
            "n_not_checked": Number(result.count(NOT_CHECKED), "they run on the host"),
            "n_ops": Number(len(result.graph), f"in the graph and {counted(n_functions, 'function')}"),
        },
    )


def _verdict(result: Compatibility, place: GraphPlace) -> Verdict:
    share, n_invalid = result.valid_fraction, result.count(INVALID)
    where = f"`{place.name}`"
    if share is None:
        return Verdict(
            "unknown", f"{where} has no operations intended for a TPU: all of them run on the host."
        )
    n_checked = result.count(VALID) + n_invalid
    if not n_invalid:
        return Verdict(
            "good",
            f"TPU-ready: a TPU has a kernel for each of the {n_checked:,} operations checked in {where}.",
        )
    graph = result.graph
    rows = np.flatnonzero(result.status == INVALID)
    pairs, first, counts = np.unique(
        graph.op.codes[rows].astype(np.int64) * len(result.reasons) + result.reason[rows],
        return_index=True,
        return_counts=True,
    )
    details: list[str] = []
    kinds_shown: set[str] = set()
    for pair in np.lexsort((first, -counts)).tolist():
        op, why = (
            graph.op.strings[int(pairs[pair]) // len(result.reasons)],
            result.reasons[int(pairs[pair]) % len(result.reasons)],
        )
        remedy = advice(op, why)
        if remedy.kind not in kinds_shown and len(details) < 3:
            kinds_shown.add(remedy.kind)
            times = f" ({int(counts[pair])} times)" if counts[pair] > 1 else ""
            details.append(f"`{op}`{times}, at `{graph.name(int(rows[first[pair]]))}`: {why}. {remedy.text}")
    text = (
        f"{counted(n_invalid, 'operation')} of {n_checked:,} in {where} cannot run on a TPU: "
        f"{format_fraction(share)} are compatible."
    )
    return Verdict("bad", text, "", tuple(details))


def _diagnostics(search: GraphSearch, result: Compatibility, tree: Scopes) -> tuple[Diagnostic, ...]:
    diagnostics = [Diagnostic("warning", note) for note in search.notes[:20]]
    if search.is_cut:
        diagnostics.append(
            Diagnostic(
                "warning",
                "The folder contains too many files to search all of them; graphs may be missing.",
                "Open a smaller folder.",
            )
        )
    if result.graph.n_damaged:
        text = f"{counted(result.graph.n_damaged, 'node')} of the graph could not be read and are left out."
        diagnostics.append(Diagnostic("warning", text, "Write the graph again."))
    if tree.n_merged:
        text = (
            f"{counted(tree.n_merged, 'scope')} were too many or too deep for the tree; their operations "
            "count in the scope above."
        )
        diagnostics.append(Diagnostic("info", text))
    text = (
        f"Compatibility is checked against TensorFlow {VERSION}: the operations and types that its "
        "registry compiles for XLA's TPU backend. This shows whether a kernel exists, not whether shapes "
        "are known at compile time, sizes fit, or arguments that must be constant are."
    )
    return (*diagnostics, Diagnostic("info", text))


def _missing(search: GraphSearch) -> str:
    if search.n_files:
        files = (
            counted(search.n_files, "event file or SavedModel")
            if search.n_files == 1
            else f"{search.n_files:,} event files and SavedModels"
        )
        return f"{_REASON} ({files} searched)."
    return f"{_REASON}: it contains neither event files nor SavedModels."


def available(session: Session) -> Availability:
    """Whether there is a graph next to the run. Graphs of a file are cached until the file changes."""
    search = session.graphs.search()
    return Availability() if search.places else Availability(_missing(search), _REMEDY, "no TF graph")


TOOL = Tool(
    name="tpu_compatibility",
    title="TPU compatibility",
    group="Compiler",
    summary="The operations of a TensorFlow graph that a TPU can run, and how to change the others",
    view=view,
    available=available,
    needs_trace=False,
    params=declared.PAGE_PARAMS,
    tables=declared.PAGE_TABLES,
    scalars=declared.PAGE_SCALARS,
    tiles=declared.TILES,
    questions=(
        Question(
            "drawing",
            "The graph drawn: boxes of scopes, operations, and the edges between them",
            drawing_view,
            declared.DRAWING_PARAMS,
            declared.DRAWING_TABLES,
            declared.DRAWING_SCALARS,
        ),
        Question(
            "node",
            "The attributes and inputs of one operation",
            node_view,
            declared.NODE_PARAMS,
            declared.NODE_TABLES,
        ),
    ),
)
