"""The parameters, tables and numbers of the TPU compatibility's answers."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

N_ROWS = 10_000

_GRAPH = Param(
    "graph",
    "Graph",
    "text",
    None,
    "The graph to show, by its name in the table `graphs`; absent: the largest",
)
PAGE_PARAMS = (_GRAPH,)
DRAWING_PARAMS = (
    _GRAPH,
    Param(
        "boxes",
        "Boxes",
        "text",
        None,
        "Rows of `scopes` to open (`o`) or close (`c`), such as 3o.17c; without a letter: toggle the default",
    ),
)

NODE_PARAMS = (
    _GRAPH,
    Param("node", "Node", "int", None, "Number of the operation, as in `items`", is_required=True),
)

_OP = text("op", "Operation", "Its type, such as MatMul")
_N_OPS = number("n_ops", "Nodes", "count", "Number of nodes")
_REASON = text("reason", "Why", "Reason for its status")
_FIX = text("fix", "What to do", "For incompatible operations")
_N_VALID = number(
    "n_valid",
    "Valid",
    "count",
    "Operations for which TensorFlow has a TPU kernel, or which are resolved before XLA compiles",
)
_N_INVALID = number(
    "n_invalid", "Incompatible", "count", "Operations or types for which TensorFlow has no TPU kernel"
)
_N_NOT_CHECKED = number(
    "n_not_checked",
    "Not checked",
    "count",
    "Operations that run on the host, so that no TPU kernel is needed",
)
_FUNCTION = text("function", "Function", "The function that contains it; empty in the graph itself")

GRAPHS = TableSpec(
    "graphs",
    "Graphs",
    (
        text("graph", "Graph", "File below the run's folder"),
        text("kind", "Kind", "Kind of file that contains the graph"),
        number("size_bytes", "Size", "bytes", "Size of the graph in the file"),
        flag("is_shown", "Shown", "The other tables are of this graph"),
    ),
    "The TensorFlow graphs next to the run, largest first",
)
SCOPES = TableSpec(
    "scopes",
    "Scopes",
    (
        text("path", "Scope", "Name scope, from the root of the graph or function"),
        _FUNCTION,
        number(
            "valid_fraction",
            "Valid",
            "fraction",
            "Share of the checked operations that are valid, including scopes below",
            formula="valid ÷ (valid + incompatible)",
            unknown="no operation of this scope is checked: all run on the host",
        ),
        _N_INVALID,
        number(
            "n_valid",
            "Valid operations",
            "count",
            "Operations for which TensorFlow has a TPU kernel, or which are resolved before XLA compiles",
        ),
        _N_NOT_CHECKED,
        text("name", "Name", "The last part of the scope"),
        number("parent", "Within", "id", "Row of the scope above; -1 for row 0, the whole graph"),
    ),
    "A row for each name scope and function, as a depth-first tree; counts include scopes below. At most "
    "20,000 rows: operations of deeper or further scopes count in the scope above",
)
INCOMPATIBLE = TableSpec(
    "incompatible",
    "Incompatible operations",
    (
        _OP,
        text("name", "Node", "Name of the node in the graph"),
        text("scope", "Scope", "Name scope that contains the node"),
        _FUNCTION,
        _REASON,
        text("kind", "Kind", "Kind of problem: each has one fix"),
        text("fix", "What to do", "How to make the operation run on a TPU"),
    ),
    f"A row for each incompatible node, at most {N_ROWS:,}",
)
BY_OP = TableSpec(
    "by_op",
    "By operation",
    (
        _OP,
        text("status", "Status", "Whether it is valid, incompatible or not checked"),
        _N_OPS,
        number("fraction", "Share", "fraction", "Share of all nodes", formula="nodes ÷ all nodes"),
        _REASON,
        _FIX,
    ),
    "A row for each operation and reason: incompatible ones first, then valid ones, then those not checked; "
    f"at most {N_ROWS:,}",
)
FIXES = TableSpec(
    "fixes",
    "What to do",
    (
        text("kind", "Kind", "Kind of problem: each has one fix"),
        _N_OPS,
        text("ops", "Operations", "Names of the most frequent ones"),
        text("fix", "What to do", "How to make these operations run on a TPU"),
    ),
    "A row for each kind of incompatible operation, most frequent first",
)
NOT_CHECKED = TableSpec(
    "not_checked",
    "Not checked",
    (text("reason", "Why", "Why the operations are not checked"), _N_OPS),
    "Why operations are not checked, most frequent reason first",
)
PAGE_TABLES = (GRAPHS, FIXES, SCOPES, INCOMPATIBLE, BY_OP, NOT_CHECKED)
PAGE_SCALARS = (
    ScalarSpec(
        "valid_fraction",
        "Compatible",
        "fraction",
        "Share of the checked operations that can run on a TPU",
        formula="valid ÷ (valid + incompatible)",
        unknown="no operation is checked: all run on the host",
    ),
    ScalarSpec(
        "n_invalid", "Incompatible", "count", "Operations or types for which TensorFlow has no TPU kernel"
    ),
    ScalarSpec(
        "n_valid",
        "Valid",
        "count",
        "Operations for which TensorFlow has a TPU kernel, or which are resolved before XLA compiles",
    ),
    ScalarSpec(
        "n_not_checked",
        "Not checked",
        "count",
        "Operations that run on the host, so that no TPU kernel is needed",
    ),
    ScalarSpec(
        "n_ops",
        "Operations",
        "count",
        "Number of nodes in the graph and its functions",
        formula="valid + incompatible + not checked",
    ),
)
TILES = tiles("valid_fraction", "n_invalid", "n_valid", Tile("n_not_checked", least=1), "n_ops")

ITEMS = TableSpec(
    "items",
    "Drawing",
    (
        text(
            "kind",
            "Kind",
            "Kind of item: scope, operation, or rest: the remaining children of a scope, drawn as one",
        ),
        text("name", "Name", "Name of the scope or operation"),
        text("op", "Operation", "Type of an operation"),
        number("frame", "Within", "id", "Row of the open scope that contains it, -1 at the top"),
        number("scope", "Scope", "id", "Row of the table `scopes`"),
        flag("is_open", "Open", "The scope is drawn as a frame around its contents"),
        _N_VALID,
        _N_INVALID,
        _N_NOT_CHECKED,
        text("reason", "Why", "Reason for an operation's status"),
        text("fix", "What to do", "For an incompatible operation"),
        number("node", "Node", "id", "Number of the operation in the graph; -1 for other items"),
    ),
    "Boxes of scopes and operations, frames before their contents",
)
EDGES = TableSpec(
    "edges",
    "Edges",
    (
        number("from", "From", "id", "Row of the table `items`"),
        number("to", "To", "id", "Row of the table `items`"),
        number("n", "Edges", "count", "Number of edges drawn as one"),
        flag("is_call", "Call", "Edge to a called function"),
    ),
    "Edges between the rows of `items`",
)
DRAWING_TABLES = (ITEMS, EDGES)
DRAWING_SCALARS = (
    ScalarSpec(
        "n_items", "Boxes and operations drawn", "count", "Number of boxes and operations in the drawing"
    ),
    ScalarSpec(
        "n_rest",
        "Operations drawn as one box because there are too many",
        "count",
        "Operations that one box stands for, because there are too many to draw",
    ),
    ScalarSpec(
        "n_cut",
        "Edges not drawn because there are too many",
        "count",
        "Edges that are not drawn, because there are too many",
    ),
)

NODE = TableSpec(
    "node",
    "Operation",
    (
        text("name", "Node", "Name of the node in the graph"),
        _OP,
        _FUNCTION,
        text("device", "Device", "The device that the graph asks for; empty: any"),
    ),
    "The node itself: one row",
)
ATTRIBUTES = TableSpec(
    "attributes",
    "Attributes",
    (
        text("name", "Attribute", "Name of the attribute in the NodeDef"),
        text("kind", "Kind", "Kind of the value: type, shape, tensor, function, integer and so on"),
        text("value", "Value", "The value as text; long lists, texts and tensors by their beginning"),
    ),
    "The attributes of the node's definition by name, at most 200",
)
INPUTS = TableSpec(
    "inputs",
    "Inputs",
    (text("input", "Input", "Node and output, or an argument of the function; `^`: a control input"),),
    "What the node reads, in the order of the graph, at most 200",
)
NODE_TABLES = (NODE, ATTRIBUTES, INPUTS)
