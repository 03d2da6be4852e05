"""tpu_compatibility: which operations of a TensorFlow graph a TPU can run, where the others stand and what to
do about them.
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
from tb_tpuprof.tools.tpu_compatibility.drawing import drawing_scalars, drawing_tables, told_scopes
from tb_tpuprof.tools.tpu_compatibility.tables import (
    by_op_table,
    fixes_table,
    graphs_table,
    incompatible_table,
    reasons_table,
    scopes_table,
)
from tb_tpuprof.trace.graph import Graph, GraphPlace, GraphSearch
from tb_tpuprof.units import format_fraction

_REASON = "the run's folder contains no TensorFlow graph"
_REMEDY = (
    "Write one beside the profile: `tf.summary.graph(function.get_concrete_function(…).graph)` or "
    "`tf.summary.trace_on(graph=True)` with `trace_export` in an event file, or "
    '`tf.saved_model.save(model, logdir + "/model")`. (Keras 3 leaves `write_graph` of its TensorBoard '
    "callback out; Keras 2 writes it.) JAX and PyTorch programs have no such graph: what they compile for a "
    "TPU, XLA has accepted."
)


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graphs beside the run, and one of them in full. Hosts make no difference."""
    search, place = _chosen(session, params)
    found, tree = session.graphs.get(_of_graph, place)
    tables = {
        "graphs": graphs_table(search.places, place),
        "fixes": fixes_table(found),
        "scopes": scopes_table(tree),
        "incompatible": incompatible_table(found),
        "by_op": by_op_table(found),
        "not_checked": reasons_table(found),
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


def drawing_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The graph as boxes of scopes, operations and the edges between them."""
    _, place = _chosen(session, params)
    found, tree = session.graphs.get(_of_graph, place)
    drawn = drawing(found, tree, *told_scopes(str(params.get("boxes", "")), tree))
    tables, scalars = drawing_tables(found, tree, drawn), drawing_scalars(drawn)
    return Payload(TOOL.name, session.run, hosts, tables, scalars)


def _chosen(session: Session, params: Params) -> tuple[GraphSearch, GraphPlace]:
    """The graphs beside the run, and the one to show. Raises ToolUnavailable, BadParameter."""
    search = session.graphs.search()
    if not search.places:
        raise ToolUnavailable(TOOL.name, _missing(search), _REMEDY)
    return search, _pick(search.places, str(params.get("graph", "")))


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


def _scalars(found: Compatibility) -> dict[str, Scalar]:
    n_invalid = found.count(INVALID)
    rows = found.status == INVALID
    n_kinds = len(np.unique(found.graph.op.codes[rows]))
    n_functions = len(found.graph.functions)
    listed = f"TensorFlow {VERSION} compiles {len(OPS) + len(TPU_ONLY)} operations for TPUs"
    return fill_scalars(
        declared.PAGE_SCALARS,
        {
            "valid_fraction": Number(found.valid_fraction, "of the operations that are checked"),
            "n_invalid": Number(n_invalid, f"of {_count(n_kinds, 'kind')}" if n_invalid else "none"),
            "n_valid": Number(found.count(VALID), listed),
            "n_not_checked": Number(found.count(NOT_CHECKED), "they run on the host"),
            "n_ops": Number(len(found.graph), f"in the graph and {_count(n_functions, 'function')}"),
        },
    )


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
    search = session.graphs.search()
    return Availability() if search.places else Availability(_missing(search), _REMEDY)


TOOL = Tool(
    name="tpu_compatibility",
    title="TPU compatibility",
    group="Compiler",
    summary="Which operations of a TensorFlow graph a TPU can run, and how to change the others",
    view=view,
    available=available,
    needs_trace=False,
    params=declared.PAGE_PARAMS,
    tables=declared.PAGE_TABLES,
    scalars=declared.PAGE_SCALARS,
    questions=(
        Question(
            "drawing",
            "The graph drawn: boxes of scopes, operations, and the edges between them",
            drawing_view,
            declared.DRAWING_PARAMS,
            declared.DRAWING_TABLES,
            declared.DRAWING_SCALARS,
        ),
    ),
)
