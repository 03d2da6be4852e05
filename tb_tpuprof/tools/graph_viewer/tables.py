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
from tb_tpuprof.tools.graph_viewer.declared import (
    CHOSEN,
    COMPUTATIONS,
    EDGES,
    HOT,
    LINES,
    MATCHES,
    MOST_TEXT,
    N_COMPUTATIONS,
    N_HOT,
    N_MATCHES,
    NODES,
    PROGRAMS,
)
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.program_choice import program_values
from tb_tpuprof.tools.spec import Values
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_programs import Program

_MOST_FRAMES = 12
_MOST_SHAPE = 200  # characters


@dataclass(frozen=True, eq=False)
class Timed:
    """A module and, if requested, the times of its instructions; `total_ps` counts none twice (loops and
    calls are left out).
    """

    module: HloModule
    times: ProgramTimes
    with_times: bool = True

    @cached_property
    def hottest(self) -> npt.NDArray[np.int64]:
        """The instructions that took the most time, without loops and calls, whose time belongs to their
        bodies.
        """
        leaves = np.flatnonzero(self._is_leaf)
        return self.times.rows[leaves[np.argsort(-self.times.time_ps[leaves], kind="stable")[:N_HOT]]]

    @cached_property
    def total_ps(self) -> int:
        """Time of all instructions, without those that only run others."""
        return int(self.times.time_ps[self._is_leaf].sum())

    @cached_property
    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        return ~self.module.has_opcode(CONTAINERS)[self.times.rows]

    def values(self, rows: Sequence[int]) -> dict[str, Values]:
        """Time, share and number of events of instructions, unknown if none was traced; no columns if times
        are not requested.
        """
        if not self.with_times:
            return {}
        timings = [self.times.at(row) for row in rows]
        time = np.array([time if n else np.nan for time, n in timings], np.float64)
        total = self.total_ps
        return {
            "time_ps": time,
            "time_fraction": time / total if total else np.full(len(rows), np.nan),
            "n_occurrences": np.array([n for _, n in timings], np.int64),
        }


def nodes_table(timed: Timed, graph: HloGraph, with_metadata: bool) -> Table:
    """A row per node. Ids are rows of the module."""
    module, nodes = timed.module, graph.nodes
    rows = [node.row for node in nodes]
    columns: dict[str, Values] = {
        "node": np.array(rows, np.int64),
        "name": [module.name(row) for row in rows],
        "opcode": [module.opcode(row) for row in rows],
        "op_class": [class_of(module, row) for row in rows],
        "kind": [module.text("fusion_kind", row) or module.text("custom_call_target", row) for row in rows],
        "shape": [module.shape(row).text()[:MOST_TEXT] for row in rows],
        "frame": np.array([node.frame for node in nodes], np.int64),
        "is_frame": np.array([node.is_frame for node in nodes], np.bool_),
        "depth": np.array([node.depth for node in nodes], np.int64),
        **timed.values(rows),
        "n_hidden_operands": np.array([node.n_hidden_operands for node in nodes], np.int64),
        "n_hidden_users": np.array([node.n_hidden_users for node in nodes], np.int64),
        "calls": [_calls(module, node) for node in nodes],
        "expression": [instruction_text(module, row, SHORT)[:MOST_TEXT] for row in rows],
    }
    if with_metadata:
        columns |= {
            "op_name": [module.text("op_name", row) for row in rows],
            "op_type": [module.text("op_type", row) for row in rows],
            "source": [source_text(module, row) for row in rows],
            "stack": [_stack(module, row) for row in rows],
        }
    return NODES.fill(columns)


def _calls(module: HloModule, node: Node) -> str:
    return " ".join(
        module.computation_name(computation)
        for computation in module.calls[node.row].tolist()
        if computation >= 0
    )


def source_text(module: HloModule, row: int) -> str:
    """`model.py:12`: where the program's source has the instruction; empty if unknown."""
    file, line = module.text("source_file", row), int(module.instructions["source_line"][row])
    if file:
        return f"{file}:{line}" if line else file
    stack = module.frames.stack(int(module.instructions["stack_frame"][row]))
    return stack[0].text if stack else ""


def _stack(module: HloModule, row: int) -> str:
    places = module.frames.stack(int(module.instructions["stack_frame"][row]))[:_MOST_FRAMES]
    return "\n".join(f"{place.text} {place.function}".strip() for place in places)


def edges_table(module: HloModule, graph: HloGraph) -> Table:
    """A row per value that one node produces and another reads."""
    edges = graph.edges
    return EDGES.fill(
        {
            "from": np.array([edge.source for edge in edges], np.int64),
            "to": np.array([edge.target for edge in edges], np.int64),
            "operand": np.array([edge.operand for edge in edges], np.int64),
            "shape": [_plain_shape(module, edge.source) for edge in edges],
        }
    )


def _plain_shape(module: HloModule, row: int) -> str:
    return module.shape(row).text(with_layout=False)[:_MOST_SHAPE]


def _instruction_values(timed: Timed, rows: Sequence[int]) -> dict[str, Values]:
    module = timed.module
    return {
        "name": [module.name(row) for row in rows],
        "opcode": [module.opcode(row) for row in rows],
        "op_class": [class_of(module, row) for row in rows],
        **timed.values(rows),
        "shape": [_plain_shape(module, row) for row in rows],
        "op_name": [module.text("op_name", row) for row in rows],
        "computation": [_computation(module, row) for row in rows],
    }


def matches_table(timed: Timed, rows: Sequence[int]) -> Table:
    """The first N_MATCHES instructions that match a search."""
    note = f"the first {N_MATCHES} of {len(rows):,}" if len(rows) > N_MATCHES else ""
    return MATCHES.fill(_instruction_values(timed, rows[:N_MATCHES]), note)


def _computation(module: HloModule, row: int) -> str:
    return module.computation_name(int(module.instructions["computation"][row]))


def hot_table(timed: Timed) -> Table:
    """The instructions that took the most time."""
    rows = timed.hottest.tolist()
    note = f"the first {N_HOT}" if len(rows) == N_HOT else ""
    return HOT.fill(_instruction_values(timed, rows), note)


def computations_table(module: HloModule) -> Table:
    """The program's computations: the entry, then the largest first, bodies of fusions last."""
    table = module.computations
    order = np.lexsort(
        (-table["n_instructions"], table["is_fusion"], np.arange(len(table)) != module.info.entry)
    )[:N_COMPUTATIONS]
    callers = [module.callers[c].tolist()[:3] for c in order.tolist()]
    return COMPUTATIONS.fill(
        {
            "name": [module.computation_name(c) for c in order.tolist()],
            "n_instructions": table["n_instructions"][order],
            "is_fusion": table["is_fusion"][order],
            "callers": [" ".join(module.name(row) for row in rows) for rows in callers],
        },
        f"the first {N_COMPUTATIONS:,} of {len(table):,}" if len(table) > N_COMPUTATIONS else "",
    )


def programs_table(programs: Sequence[Program], total_ps: Sequence[int]) -> Table:
    """All programs with the time of their instructions."""
    times = np.array([time or np.nan for time in total_ps], np.float64)
    return PROGRAMS.fill({**program_values(programs), "time_ps": times})


def chosen_table(module: HloModule, program: Program, center: int) -> Table:
    """The program, and the instruction in the middle with its computation."""
    computation = int(module.instructions["computation"][center])
    callers = module.callers[computation].tolist()[:20]
    return CHOSEN.fill(
        {
            "program": [program.title],
            "op": [module.name(center)],
            "computation": [module.computation_name(computation)],
            "callers": [" ".join(module.name(row) for row in callers)],
            "entry": [module.computation_name(module.info.entry) if module.info.entry >= 0 else ""],
        }
    )


def lines_table(lines: Sequence[str], first: int) -> Table:
    """Lines of the module's text; very long ones are cut."""
    cut = [line if len(line) <= MOST_TEXT else line[:MOST_TEXT] + " …" for line in lines]
    return LINES.fill({"line": np.arange(first, first + len(lines)), "text": cut})
