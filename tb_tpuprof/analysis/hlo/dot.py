"""The displayed part of an HLO graph → Graphviz's DOT, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tb_tpuprof.analysis.hlo.classes import class_of
from tb_tpuprof.analysis.hlo.graph import HloGraph, Node
from tb_tpuprof.trace.hlo import HloModule

_COLORS = {
    "matrix": "#cfe0f5",
    "fusion": "#e8def5",
    "elementwise": "#e3e6ea",
    "reduction": "#d5efe9",
    "data movement": "#fbe5cf",
    "collective": "#eadcf8",
    "control": "#f3f4f6",
    "input": "#f6f0cc",
    "custom call": "#f8dbe6",
}


def dot_text(module: HloModule, graph: HloGraph) -> Iterator[str]:
    """Lines of a digraph; opened fusions are clusters."""
    yield f"digraph {_quoted(module.info.name)} {{"
    yield '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10];'
    yield '  edge [fontname="sans-serif", fontsize=8];'
    frames: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.is_frame:
            frames.setdefault(node.row, [])
        elif node.frame >= 0:
            frames.setdefault(node.frame, []).append(node)
        else:
            yield f"  {_dot_node(module, node, graph.center)}"
    for fusion, inner in frames.items():
        yield f"  subgraph {_quoted(f'cluster_{fusion}')} {{ label={_quoted(module.name(fusion))};"
        yield from (f"    {_dot_node(module, node, graph.center)}" for node in inner)
        yield "  }"
    for edge in graph.edges:
        yield (
            f"  n{edge.source} -> n{edge.target} "
            f"[label={_quoted(module.shape(edge.source).text(with_layout=False)[:80])}];"
        )
    yield "}"


def _dot_node(module: HloModule, node: Node, center: int) -> str:
    label = f"{module.name(node.row)}\n{module.shape(node.row).text(with_layout=False)[:80]}"
    color = _COLORS[class_of(module, node.row)]
    width = ", penwidth=3" if node.row == center else ""
    return f"n{node.row} [label={_quoted(label)}, fillcolor={_quoted(color)}{width}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def json_text(module: HloModule, graph: HloGraph) -> str:
    """The graph as JSON: nodes and edges by instruction name."""
    nodes = [
        {
            "name": module.name(node.row),
            "opcode": module.opcode(node.row),
            "class": class_of(module, node.row),
            "shape": module.shape(node.row).text(),
            "op_name": module.text("op_name", node.row),
            "computation": module.computation_name(int(module.instructions["computation"][node.row])),
            "fusion": module.name(node.frame) if node.frame >= 0 else None,
            "depth": node.depth,
        }
        for node in graph.nodes
    ]
    edges = [
        {"from": module.name(edge.source), "to": module.name(edge.target), "operand": edge.operand}
        for edge in graph.edges
    ]
    document = {
        "module": module.info.name,
        "center": module.name(graph.center),
        "nodes": nodes,
        "edges": edges,
        "n_cut": graph.n_cut,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
