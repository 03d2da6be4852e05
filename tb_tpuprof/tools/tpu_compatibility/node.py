"""One operation of a TensorFlow graph: its attributes and inputs."""

from __future__ import annotations

from tb_tpuprof.analysis.graphs.tpu_compatibility import type_name
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.ingest.graphs.attributes import node_details
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.tpu_compatibility.declared import ATTRIBUTES, INPUTS, NODE
from tb_tpuprof.trace.graph import Graph


def node_tables(graph: Graph, node: int) -> dict[str, Table]:
    """Tables about a node. Raises BadParameter if the graph has no node of that number."""
    if not 0 <= node < len(graph):
        raise BadParameter("node", str(node), f"the number of an operation, 0 to {len(graph) - 1}")
    details = node_details(graph, node, type_name)
    function = int(graph.function[node])
    return {
        "node": NODE.fill(
            {
                "name": [graph.name(node)],
                "op": [graph.op.strings[graph.op.codes[node]]],
                "function": [graph.functions[function] if function >= 0 else ""],
                "device": [details.device],
            }
        ),
        "attributes": ATTRIBUTES.fill(
            {
                "name": [one.name for one in details.attributes],
                "kind": [one.kind for one in details.attributes],
                "value": [one.value for one in details.attributes],
            },
            _cut(len(details.attributes), details.n_attributes),
        ),
        "inputs": INPUTS.fill({"input": list(details.inputs)}, _cut(len(details.inputs), details.n_inputs)),
    }


def _cut(n_shown: int, n: int) -> str:
    return f"the first {n_shown:,} of {n:,}" if n > n_shown else ""
