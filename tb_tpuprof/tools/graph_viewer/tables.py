"""Tables of the graph viewer: nodes and edges around an instruction, the hottest instructions, computations,
matches, lines of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo.classes import class_of
from tb_tpuprof.analysis.hlo.graph import HloGraph, Node
from tb_tpuprof.analysis.hlo.text.printer import SHORT, instruction_text
from tb_tpuprof.analysis.ops.hlo_times import CONTAINERS, ProgramTimes
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program

_MOST_TEXT = 2000
_MOST_FRAMES = 12
N_HOT, N_COMPUTATIONS = 100, 2000


@dataclass(frozen=True, eq=False)
class Timed:
    """A module and the times of its instructions, where they are asked for; `total_ps` counts none twice
    (loops and calls are left out).
    """

    module: HloModule
    times: ProgramTimes
    with_times: bool = True

    @cached_property
    def hottest(self) -> npt.NDArray[np.int64]:
        """The instructions that took most time; loops and calls, whose time is that of others,
        are left out.
        """
        own = np.flatnonzero(self._is_own)
        return self.times.rows[own[np.argsort(-self.times.time_ps[own], kind="stable")[:N_HOT]]]

    @cached_property
    def total_ps(self) -> int:
        """Time of all instructions, without those that only run others."""
        return int(self.times.time_ps[self._is_own].sum())

    @cached_property
    def _is_own(self) -> npt.NDArray[np.bool_]:
        return ~self.module.has_opcode(CONTAINERS)[self.times.rows]

    def columns(self, rows: Sequence[int]) -> tuple[Column, ...]:
        """Time, share and number of events of instructions, unknown where none was traced; no columns where
        times are not asked for.
        """
        if not self.with_times:
            return ()
        found = [self.times.at(row) for row in rows]
        time = np.array([time if n else np.nan for time, n in found], np.float64)
        total = self.total_ps
        share = time / total if total else np.full(len(rows), np.nan)
        return (
            Column("time_ps", "Time", time, "ps", description="Of all its events on all devices"),
            Column(
                "time_fraction",
                "Share",
                share,
                "fraction",
                description="Of the time of all the program's instructions",
            ),
            Column("n_occurrences", "Occurrences", np.array([n for _, n in found], np.int64), "count"),
        )


def nodes_table(timed: Timed, graph: HloGraph, with_metadata: bool) -> Table:
    """A row per node. Ids are rows of the module."""
    module, nodes = timed.module, graph.nodes
    rows = [node.row for node in nodes]
    columns = [
        Column("node", "Node", np.array(rows, np.int64), "id"),
        text_column("name", "Name", [module.name(row) for row in rows]),
        text_column("opcode", "Opcode", [module.opcode(row) for row in rows]),
        text_column("op_class", "Class", [class_of(module, row) for row in rows]),
        text_column(
            "kind",
            "Kind",
            [module.text("fusion_kind", row) or module.text("custom_call_target", row) for row in rows],
        ),
        text_column("shape", "Shape", [module.shape(row).text()[:_MOST_TEXT] for row in rows]),
        Column(
            "frame",
            "In fusion",
            np.array([node.frame for node in nodes], np.int64),
            "id",
            description="The opened fusion it is in, or -1",
        ),
        Column("is_frame", "Opened", np.array([node.is_frame for node in nodes], np.bool_)),
        Column(
            "depth",
            "Hops",
            np.array([node.depth for node in nodes], np.int64),
            "count",
            description="From the instruction in the middle",
        ),
        *timed.columns(rows),
        Column(
            "n_hidden_operands",
            "Operands not shown",
            np.array([node.n_hidden_operands for node in nodes], np.int64),
            "count",
        ),
        Column(
            "n_hidden_users",
            "Users not shown",
            np.array([node.n_hidden_users for node in nodes], np.int64),
            "count",
        ),
        text_column(
            "calls",
            "Calls",
            [_calls(module, node) for node in nodes],
            "Computations that it runs, separated by spaces",
        ),
        text_column("expression", "HLO", [instruction_text(module, row, SHORT)[:_MOST_TEXT] for row in rows]),
    ]
    if with_metadata:
        columns += [
            text_column("op_name", "Framework op", [module.text("op_name", row) for row in rows]),
            text_column("op_type", "Type", [module.text("op_type", row) for row in rows]),
            text_column("source", "Source", [_source(module, row) for row in rows]),
            text_column("stack", "Source stack", [_stack(module, row) for row in rows]),
        ]
    return Table("Graph", tuple(columns))


def _calls(module: HloModule, node: Node) -> str:
    return " ".join(
        module.computation_name(computation)
        for computation in module.calls[node.row].tolist()
        if computation >= 0
    )


def _source(module: HloModule, row: int) -> str:
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    if file:
        return f"{file}:{line}" if line else file
    stack = module.frames.stack(int(module.instructions["stack_frame"][row]))
    return stack[0].text if stack else ""


def _stack(module: HloModule, row: int) -> str:
    places = module.frames.stack(int(module.instructions["stack_frame"][row]))[:_MOST_FRAMES]
    return "\n".join(f"{place.text} {place.function}".strip() for place in places)


def edges_table(module: HloModule, graph: HloGraph) -> Table:
    """A row per value that one node makes and another reads."""
    edges = graph.edges
    return Table(
        "Values",
        (
            Column("from", "From", np.array([edge.source for edge in edges], np.int64), "id"),
            Column("to", "To", np.array([edge.target for edge in edges], np.int64), "id"),
            Column("operand", "Operand", np.array([edge.operand for edge in edges], np.int64), "id"),
            text_column(
                "shape", "Shape", [module.shape(edge.source).text(with_layout=False)[:200] for edge in edges]
            ),
        ),
    )


def instructions_table(timed: Timed, title: str, rows: Sequence[int], note: str = "") -> Table:
    """Instructions in a list: what a search finds, or the hottest."""
    module = timed.module
    return Table(
        title,
        (
            text_column("name", "Name", [module.name(row) for row in rows]),
            text_column("opcode", "Opcode", [module.opcode(row) for row in rows]),
            text_column("op_class", "Class", [class_of(module, row) for row in rows]),
            *timed.columns(rows),
            text_column("shape", "Shape", [module.shape(row).text(with_layout=False)[:200] for row in rows]),
            text_column("op_name", "Framework op", [module.text("op_name", row) for row in rows]),
            text_column("computation", "Computation", [_computation(module, row) for row in rows]),
        ),
        note,
    )


def _computation(module: HloModule, row: int) -> str:
    return module.computation_name(int(module.instructions["computation"][row]))


def hot_table(timed: Timed) -> Table:
    """The instructions that took most time."""
    rows = timed.hottest.tolist()
    return instructions_table(
        timed, "Hottest instructions", rows, f"the first {N_HOT}" if len(rows) == N_HOT else ""
    )


def computations_table(module: HloModule) -> Table:
    """The program's computations: the entry, then those that are no fusion's body, the largest first."""
    table = module.computations
    order = np.lexsort(
        (-table["n_instructions"], table["is_fusion"], np.arange(len(table)) != module.info.entry)
    )[:N_COMPUTATIONS]
    callers = [module.callers[c].tolist()[:3] for c in order.tolist()]
    return Table(
        "Computations",
        (
            text_column("name", "Name", [module.computation_name(c) for c in order.tolist()]),
            Column("n_instructions", "Instructions", table["n_instructions"][order], "count"),
            Column("is_fusion", "Fusion's body", table["is_fusion"][order]),
            text_column(
                "callers",
                "Called by",
                [" ".join(module.name(row) for row in rows) for rows in callers],
                "The first three",
            ),
        ),
        f"the first {N_COMPUTATIONS:,} of {len(table):,}" if len(table) > N_COMPUTATIONS else "",
    )


def programs_table(programs: Sequence[Program], total_ps: Sequence[int]) -> Table:
    """All programs with the time of their instructions."""
    return Table(
        "Programs",
        (
            text_column("program", "Program", [program.title for program in programs]),
            text_column("program_id", "Id", [str(program.program_id % 2**64) for program in programs]),
            Column(
                "hlo_bytes", "HLO", np.array([program.size_bytes for program in programs], np.int64), "bytes"
            ),
            Column(
                "time_ps",
                "Time",
                np.array([time or np.nan for time in total_ps], np.float64),
                "ps",
                description="Of all its instructions",
            ),
        ),
    )


def lines_table(lines: Sequence[str], first: int) -> Table:
    """Lines of the module's text. Very long ones are cut."""
    return Table(
        "Text",
        (
            Column("line", "Line", np.arange(first, first + len(lines)), "id", description="0 is the first"),
            text_column(
                "text",
                "Text",
                [line if len(line) <= _MOST_TEXT else line[:_MOST_TEXT] + " …" for line in lines],
            ),
        ),
    )
