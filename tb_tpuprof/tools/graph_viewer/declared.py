"""The parameters, tables and numbers of the graph viewer's answers."""

from __future__ import annotations

from tb_tpuprof.analysis.hlo.graph import MOST_NODES
from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.program_choice import PROGRAM_COLUMNS
from tb_tpuprof.tools.reasons import NOT_TRACED
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, flag, number, text

N_HOT, N_COMPUTATIONS, N_MATCHES = 100, 2000, 200
MOST_TEXT = 2000  # characters of a cell
_STYLES = ("short", "long")

_PROGRAM = Param(
    "program",
    "Program",
    "text",
    None,
    "Title, id or name of a program; absent: the one that spent the most time in the instruction `op`, "
    "else the "
    "one that took the most time, else the largest",
)
_OP = Param(
    "op",
    "Instruction",
    "text",
    None,
    "Instruction or computation in the middle; absent: the instruction that took the most time, else the "
    "root of "
    "the entry computation",
)
_OP_OF_PROGRAM = Param(
    "op", "Instruction", "text", None, "Without `program`: an instruction of the program to write"
)
_TIMES = Param(
    "times",
    "Times",
    "bool",
    True,
    "Include times. Without them no event is read, which is faster: then the largest program and the root of "
    "its entry are the defaults, and what `most_nodes` keeps does not depend on times",
)
DRAWN_PARAMS = (
    _PROGRAM,
    _OP,
    Param(
        "radius",
        "Radius",
        "int",
        2,
        "Number of hops shown around the instruction in the middle",
        minimum=0,
        maximum=50,
    ),
    Param(
        "most_nodes",
        "Most nodes",
        "int",
        120,
        f"Nodes to show at most, those that took the most time first; up to {MOST_NODES}",
        minimum=1,
        maximum=MOST_NODES,
    ),
    Param(
        "fusions",
        "Fusions",
        "choice",
        "merged",
        "Draw fusions as one node or with their bodies",
        choices=("merged", "opened"),
    ),
    Param("open", "Open", "text", None, "Names of fusions to open, separated by commas"),
    _TIMES,
)
PAGE_PARAMS = (
    *DRAWN_PARAMS,
    Param("metadata", "Metadata", "bool", True, "Include framework op and source of each node"),
)
SEARCH_PARAMS = (
    Param(
        "program",
        "Program",
        "text",
        None,
        "Title, id or name of a program; absent: the one that took the most time, else the largest",
    ),
    Param(
        "text",
        "Text",
        "text",
        None,
        "Text in the name, opcode or framework op (case-insensitive, at most 200 characters)",
        is_required=True,
    ),
    Param("times", "Times", "bool", True, "Include times and sort by them; without them no event is read"),
)
TEXT_PARAMS = (
    _PROGRAM,
    Param("op", "Instruction", "text", None, "Instruction whose line is `op_line`"),
    Param("style", "Style", "choice", "short", "Short, or long with metadata", choices=_STYLES),
    Param("first_line", "First line", "int", 0, "The first line, from 0"),
    Param("n_lines", "Lines", "int", 400, "How many lines, up to 5,000", minimum=1, maximum=5000),
)
PROTO_PARAMS = (_PROGRAM, _OP_OF_PROGRAM)
HLO_PARAMS = (
    *PROTO_PARAMS,
    Param(
        "style",
        "Style",
        "choice",
        "long",
        "Short, which XLA can parse, or long with metadata",
        choices=_STYLES,
    ),
)

_NAME = text("name", "Name", "Name of the instruction in the compiled program")
_OPCODE = text("opcode", "Opcode", "Kind of HLO instruction, such as fusion, dot or copy")
_OP_CLASS = text(
    "op_class",
    "Class",
    "Class that gives the node its color: matrix, fusion, elementwise, reduction, data movement, "
    "collective, control, input or custom call",
)
_TIME_COLUMNS = (
    number(
        "time_ps",
        "Time",
        "ps",
        "Time of all events of the instruction, on all devices",
        is_optional=True,
        unknown=NOT_TRACED,
    ),
    number(
        "time_fraction",
        "Share",
        "fraction",
        "The instruction's share of the time of all instructions in the program",
        is_optional=True,
        formula="time ÷ Σ time of the program's instructions",
        unknown=NOT_TRACED,
    ),
    number(
        "n_occurrences",
        "Occurrences",
        "count",
        "Number of events of the instruction in the trace",
        is_optional=True,
    ),
)
_INSTRUCTION_COLUMNS = (
    _NAME,
    _OPCODE,
    _OP_CLASS,
    *_TIME_COLUMNS,
    text("shape", "Shape", "Data type and dimensions of the result, without layout"),
    text("op_name", "Framework op", "The framework operation that the instruction came from"),
    text("computation", "Computation", "The computation that contains the instruction"),
)
NODES = TableSpec(
    "nodes",
    "Graph",
    (
        number("node", "Node", "id", "Row of the instruction in the module, the same in every answer"),
        _NAME,
        _OPCODE,
        _OP_CLASS,
        text("kind", "Kind", "Kind of a fusion, such as kLoop or kOutput; for a custom call, its target"),
        text("shape", "Shape", "Data type, dimensions and layout of the result"),
        number("frame", "In fusion", "id", "The opened fusion that contains it, or -1"),
        flag("is_frame", "Opened", "A fusion whose body is drawn"),
        number(
            "depth", "Hops", "count", "Number of values between this node and the instruction in the middle"
        ),
        *_TIME_COLUMNS,
        number(
            "n_hidden_operands",
            "Operands not shown",
            "count",
            "Operands of the node that the graph does not show",
        ),
        number(
            "n_hidden_users",
            "Users not shown",
            "count",
            "Instructions that read the node's result and that the graph does not show",
        ),
        text("calls", "Calls", "Computations it runs, separated by spaces"),
        text("expression", "HLO", "As XLA prints it, without metadata"),
        text(
            "op_name",
            "Framework op",
            "The framework operation that the instruction came from",
            is_optional=True,
        ),
        text("op_type", "Type", "The framework's type of the operation", is_optional=True),
        text("source", "Source", "File and line of the framework's code", is_optional=True),
        text("stack", "Source stack", "The innermost place first, one per line", is_optional=True),
    ),
    "A row for each node. With `times=false` times are absent, with `metadata=false` framework op and source",
    sentence="Instructions around the one in the middle; values flow downward",
)
EDGES = TableSpec(
    "edges",
    "Values",
    (
        number("from", "From", "id", "The node that produces the value"),
        number("to", "To", "id", "The node that reads it"),
        number("operand", "Operand", "id", "Index among the reader's operands"),
        text("shape", "Shape", "Data type and dimensions of the value, without layout"),
    ),
    "A row for each value that one node produces and another reads",
)
HOT = TableSpec(
    "hot",
    "Hottest instructions",
    _INSTRUCTION_COLUMNS,
    f"The {N_HOT} instructions that took the most time, without loops and calls, whose time belongs to "
    "their bodies; "
    "absent with `times=false`",
    is_optional=True,
    sentence="Instructions that took the most time, without loops and calls, whose time belongs to their "
    "bodies",
)
COMPUTATIONS = TableSpec(
    "computations",
    "Computations",
    (
        _NAME,
        number("n_instructions", "Instructions", "count", "Number of instructions in the computation"),
        flag("is_fusion", "Fusion's body", "Whether the computation is the body of a fusion"),
        text("callers", "Called by", "The first three, separated by spaces"),
    ),
    f"The entry, then the largest first, bodies of fusions last; at most {N_COMPUTATIONS:,}",
)
PROGRAMS = TableSpec(
    "programs",
    "Programs",
    (
        *PROGRAM_COLUMNS,
        number(
            "time_ps",
            "Time",
            "ps",
            "Time of all instructions of the program, on all devices. Unknown too with `times=false`",
            unknown="no event in the trace names an instruction of this program",
        ),
    ),
    "All programs of the host",
)
CHOSEN = TableSpec(
    "chosen",
    "Chosen",
    (
        text("program", "Program", "Title of the program shown: name and id"),
        text("op", "Instruction", "The instruction in the middle of the graph"),
        text("computation", "Computation", "The computation that contains it"),
        text("callers", "Called by", "The first 20, separated by spaces"),
        text("entry", "Entry computation", "The computation that the program starts with"),
    ),
    "One row: the program, and the instruction in the middle with its computation",
    sentence="The program and the instruction in the middle",
)
PAGE_TABLES = (NODES, EDGES, HOT, COMPUTATIONS, PROGRAMS, CHOSEN)
PAGE_SCALARS = (
    ScalarSpec(
        "n_instructions", "Instructions", "count", "Number of instructions in all computations of the program"
    ),
    ScalarSpec(
        "n_computations",
        "Computations",
        "count",
        "Number of computations in the program, bodies of fusions and loops included",
    ),
    ScalarSpec(
        "program_time_ps",
        "Time of the program's instructions",
        "ps",
        "Time of all events of the program's instructions, on all devices; absent with `times=false`",
        is_optional=True,
        formula="Σ time of the instructions",
        unknown="no event in the trace names an instruction of this program",
    ),
    ScalarSpec(
        "op_time_ps",
        "Time of the instruction",
        "ps",
        "Time of all events of the instruction in the middle, on all devices; absent with `times=false`",
        is_optional=True,
        unknown=NOT_TRACED,
    ),
    ScalarSpec(
        "n_cut",
        "Nodes within the radius that are not shown",
        "count",
        "Nodes within the chosen number of hops that `most_nodes` leaves out",
    ),
    ScalarSpec("center", "Node in the middle", "id", "Row of the instruction in the middle"),
)

MATCHES = TableSpec(
    "matches",
    "Matches",
    _INSTRUCTION_COLUMNS,
    f"The instructions that contain the text, those that took the most time first; at most {N_MATCHES}",
)
LINES = TableSpec(
    "lines",
    "Text",
    (
        number("line", "Line", "id", "Number of the line in the program's text; 0 is the first"),
        text("text", "Text", f"Cut at {MOST_TEXT:,} characters"),
    ),
    "The requested lines of the program as XLA prints it. Events are read only where `program` is absent",
)
TEXT_SCALARS = (
    ScalarSpec("n_lines", "Lines of the text", "count", "Number of lines in the text of the whole program"),
    ScalarSpec(
        "op_line",
        "Line of the instruction",
        "id",
        "Line of the instruction `op` in the program's text",
        unknown="the instruction has no line of its own",
    ),
)
