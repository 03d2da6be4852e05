"""Details of one compiled operation: numbers, text, shapes and their padding, products,
source lines, fusion contents.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.hardware import hardware
from tb_tpuprof.analysis.events.hlo_links import hlo_links
from tb_tpuprof.analysis.events.planes import ASYNC_OP_LINE
from tb_tpuprof.analysis.hlo.padding import dim_roles, padded_dims, products, unit_side
from tb_tpuprof.analysis.hlo.work import ProgramCosts
from tb_tpuprof.analysis.ops.expressions import expressions, program_name
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import LIMITS, Rates, rates
from tb_tpuprof.analysis.ops.torch_ops import torch_ops
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_session import CompiledOps, diagnostics_of
from tb_tpuprof.tools.op_profile.tables import (
    CONTENTS,
    FACTS,
    LONGEST,
    OP_SCALARS,
    PADDING,
    PRODUCTS,
    SHAPES,
    STACK,
)
from tb_tpuprof.tools.payload import Payload, Scalar, Table
from tb_tpuprof.tools.source_lines import source_tables
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.trace_hosts import EVENTS_PER_HOST
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_shape import Shape
from tb_tpuprof.trace.trace import Trace

MAX_INSIDE = 500
MAX_OPERANDS = 200
MAX_EXPRESSION = 20_000
_SPACES = {0: "HBM", 1: "VMEM", 2: "semaphores", 3: "SMEM", 5: "host"}


def details_payload(session: Session, compiled: CompiledOps, tool: str, program: str, op: str) -> Payload:
    """An operation's details. Raises BadParameter if the chosen hosts ran none of that name."""
    row = find_row(compiled.ops, program, op)
    if row < 0:
        raise BadParameter("op", op, "an operation that ran, by its name and its program's title")
    trace = session.trace(compiled.hosts[int(compiled.ops.host[row])])
    costs = ProgramCosts(trace)
    number = int(compiled.ops.program[row])
    module = costs.module(number, program_name(compiled.ops, number))
    instruction = int(compiled.ops.instruction[row])
    if instruction < 0 and module is not None:
        instruction = module.find(compiled.ops.name[row])
    ops = compiled.ops.taken(np.array([row]))
    tables = {"facts": _pairs(_facts(ops, module, instruction, trace))}
    if module is not None and instruction >= 0:
        device = hardware(trace)
        tables["shapes"] = _shapes(module, instruction, device.kind)
        tables["padding"] = _padding(module, instruction)
        tables["products"] = _products(module, instruction, unit_side(device.device, device.kind))
        tables["contents"] = _contents(module, instruction, costs, number)
    places = _places(trace, ops, module, instruction)
    tables["stack"] = STACK.fill(
        {"place": [place for place, _ in places], "function": [name for _, name in places]}
    )
    tables |= source_tables(place for place, _ in places)
    speed = rates(ops.work, ops.work_ps, compiled.roofs)
    tables["longest"] = _longest(session, compiled.hosts[int(compiled.ops.host[row])], trace, ops)
    scalars = _scalars(ops, speed, compiled.ops.busy_ps)
    return Payload(
        tool, session.run, compiled.hosts, tables, scalars, None, diagnostics_of(session, compiled)
    )


def find_row(ops: HloOps, program: str, op: str) -> int:
    """The operation of that name in a program given by title, name or id; if there are several, or no
    program is given, the longest.
    """
    name = op.removeprefix("%")
    if name not in ops.name.strings:
        return -1
    rows = np.flatnonzero(ops.name.codes == ops.name.strings.index(name))
    if program:
        titles = {number: title for number, title in ops.programs.items() if program in _names(number, title)}
        rows = rows[np.isin(ops.program[rows], list(titles))]
    return int(rows[ops.self_ps[rows].argmax()]) if len(rows) else -1


def _names(number: int, title: str) -> tuple[str, ...]:
    return title, title.rpartition("(")[0], str(number), str(number & 0xFFFFFFFFFFFFFFFF)


def _facts(ops: HloOps, module: HloModule | None, instruction: int, trace: Trace) -> list[tuple[str, str]]:
    pairs = [
        ("Name", ops.name[0]),
        ("Program", ops.programs[int(ops.program[0])]),
        ("Category", ops.category[0]),
        ("Framework op", ops.provenance[0].rstrip(":")),
        ("Source", ops.source[0]),
        ("Duplicate of", ops.twin[0]),
        ("Core", ops.core[0]),
        ("HLO", expressions(trace, ops, np.array([0]))[0][:MAX_EXPRESSION]),
    ]
    if module is not None and instruction >= 0:
        pairs.append(("Opcode", module.opcode(instruction)))
        pairs.append(
            ("Computation", module.computation_name(int(module.instructions["computation"][instruction])))
        )
    return [(name, text) for name, text in pairs if text]


def _pairs(facts: Sequence[tuple[str, str]]) -> Table:
    return FACTS.fill({"name": [name for name, _ in facts], "value": [value for _, value in facts]})


def _values(module: HloModule, instruction: int) -> list[tuple[str, str, Shape]]:
    """Result and operands: their part, name and shape."""
    result = [("result", module.name(instruction), module.shape(instruction))]
    operands = [int(i) for i in module.operands[instruction][:MAX_OPERANDS]]
    return result + [
        (f"operand {n}", module.name(i), module.shape(i)) for n, i in enumerate(operands) if i >= 0
    ]


def _shapes(module: HloModule, instruction: int, kind: str) -> Table:
    values = _values(module, instruction)
    rows = [(part, name, shape, leaf) for part, name, shape in values for leaf in shape.leaves[:MAX_OPERANDS]]
    sizes = np.array([leaf.size_bytes for _, _, _, leaf in rows], np.float64)
    padded = np.array([leaf.padded_bytes for _, _, _, leaf in rows], np.float64)
    names = _SPACES if kind == "TPU" else {0: "device" if kind == "GPU" else "host"}
    spaces = [leaf.layout.memory_space if leaf.layout else 0 for _, _, _, leaf in rows]
    return SHAPES.fill(
        {
            "part": [part for part, _, _, _ in rows],
            "name": [name for _, name, _, _ in rows],
            "shape": [leaf.text(False) for _, _, _, leaf in rows],
            "layout": [leaf.layout.text if leaf.layout else "" for _, _, _, leaf in rows],
            "size_bytes": sizes,
            "padded_bytes": padded,
            "memory": [names.get(space, f"space {space}") for space in spaces],
        }
    )


def _padding(module: HloModule, instruction: int) -> Table:
    roles = dim_roles(module, instruction)
    dims_and_roles = [
        (padded, roles[i].get(padded.dim, "") if i < len(roles) else "")
        for i, (part, name, shape) in enumerate(_values(module, instruction))
        for padded in padded_dims(f"{part} {name}", shape)
    ]
    dims = [padded for padded, _ in dims_and_roles]
    return PADDING.fill(
        {
            "value": [padded.value for padded in dims],
            "dim": np.array([padded.dim for padded in dims], np.int64),
            "role": [role for _, role in dims_and_roles],
            "size": np.array([padded.size for padded in dims], np.float64),
            "padded": np.array([padded.padded for padded in dims], np.float64),
            "waste_fraction": np.array([padded.waste for padded in dims], np.float64),
        }
    )


def _products(module: HloModule, instruction: int, side: int) -> Table:
    matrix_products = products(module, instruction, side)
    numbers = {
        key: np.array([getattr(product, key) for product in matrix_products], np.float64)
        for key in ("batch", "rows", "contracted", "columns")
    }
    fill = np.array([product.fill if side else np.nan for product in matrix_products], np.float64)
    note = (
        f"on a unit of {side} × {side}" if side else "the share of the unit they fill is known only for TPUs"
    )
    names, padding = (
        [product.name for product in matrix_products],
        [product.text if side else "" for product in matrix_products],
    )
    return PRODUCTS.fill({"name": names, **numbers, "fill_fraction": fill, "padding": padding}, note)


def _contents(module: HloModule, instruction: int, costs: ProgramCosts, program: int) -> Table:
    """Instructions of the computations that it runs, without parameters and tuples."""
    inside = [i for c in module.calls[instruction].tolist() if c >= 0 for i in module.rows_of(c)]
    rows = [i for i in inside if module.opcode(i) not in ("parameter", "tuple")]
    shown = rows[:MAX_INSIDE]
    estimated = costs.costs(program)
    shown_rows = np.array(shown, np.int64)
    flops = estimated.flops[shown_rows] if estimated is not None else np.full(len(shown), np.nan)
    total_flops = float(estimated.flops[rows].sum()) if estimated is not None and rows else 0.0
    notes = [f"the first {len(shown):,} of {len(rows):,}"] if len(rows) > len(shown) else []
    notes += (
        ["shares are estimates from FLOPs: the inside of an operation is not measured"]
        if total_flops > 0
        else []
    )
    return CONTENTS.fill(
        {
            "name": [module.name(i) for i in shown],
            "opcode": [module.opcode(i) for i in shown],
            "shape": [module.shape(i).text(False) for i in shown],
            "flops": flops,
            "estimated_fraction": flops / total_flops if total_flops > 0 else np.full(len(shown), np.nan),
            "provenance": [module.text("op_name", i) for i in shown],
        },
        "; ".join(notes),
    )


def _places(
    trace: Trace, ops: HloOps, module: HloModule | None, instruction: int
) -> Sequence[tuple[str, str]]:
    """Source lines and their functions, innermost first: the module's frames, else the text from a TPU's
    compiler.
    """
    places: Sequence[tuple[str, str]] = ()
    if module is not None and instruction >= 0:
        frames = module.frames.stack(int(module.instructions["stack_frame"][instruction]))
        places = [(f"{frame.file}:{frame.line}", frame.function) for frame in frames]
    if not places and ops.metadata[0] >= 0:
        text = trace.strings.get(
            int(trace.metadata_stats.dense_texts("source_stack", len(trace.metadata))[ops.metadata[0]])
        )
        places = [(line.strip(), "") for line in text.splitlines() if line.strip()]
    if not places and ops.source[0]:
        places = [(ops.source[0], "")]
    return places


def _scalars(ops: HloOps, speed: Rates, busy_ps: int) -> dict[str, Scalar]:
    def finite(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    n_runs = int(ops.n_occurrences[0]) or 1
    work = ops.work
    per_run = [
        float(amount[0]) / n_runs if is_known[0] else None
        for amount, is_known in ((work.flops, work.knows_flops), (work.n_bytes, work.knows_bytes))
    ]
    limit = LIMITS[int(speed.limits(ops.is_waiting)[0])]
    values = {
        "self_time_ps": int(ops.self_ps[0]),
        "fraction": int(ops.self_ps[0]) / (busy_ps or 1),
        "n_occurrences": n_runs,
        "avg_time_ps": int(ops.time_ps[0]) / n_runs,
        "flops": per_run[0],
        "n_bytes": per_run[1],
        "flop_rate_flops_per_s": finite(speed.flops_per_s[0]),
        "flops_fraction": finite(speed.flops_fraction[0]),
        "hbm_bytes_per_s": finite(speed.space_bytes_per_s[0][0]),
        "hbm_fraction": finite(speed.space_fraction[0][0]),
        "intensity_flops_per_byte": Number(
            finite(speed.space_intensity[0][0]), f"of HBM bytes; limited by: {limit}"
        ),
    }
    return fill_scalars(OP_SCALARS, values)


def _events_of(trace: Trace, ops: HloOps) -> npt.NDArray[np.int64]:
    """The events of one operation: those that name it, or the first kernels of an operator's calls."""
    if not ops.has_hlo:
        calls = torch_ops(trace)
        row = calls.ops.find(int(ops.program[0]), ops.name[0])
        events: npt.NDArray[np.int64] = calls.event[calls.op == row]
        return events
    links = hlo_links(trace)
    linked_ops = links.named(int(ops.program[0]), ops.name[0])
    return links.events[np.isin(links.op, linked_ops)]


def _async_lines(trace: Trace) -> list[int]:
    return [line for line, name in enumerate(trace.line_names) if name == ASYNC_OP_LINE]


def _longest(session: Session, host: str, trace: Trace, ops: HloOps) -> Table:
    """The place of its longest event on the timeline: one row, or none if it has no events. An asynchronous
    operation's own time is that of its halves: its event from start to end counts only without these.
    """
    events = _events_of(trace, ops)
    is_own = ~np.isin(trace.event_line[events], _async_lines(trace))
    events = events[is_own] if is_own.any() else events
    longest = events[trace.events["duration_ps"][events].argmax()][None] if len(events) else events[:0]
    number = longest.astype(np.int64) + session.hosts.index(host) * EVENTS_PER_HOST
    return LONGEST.fill(
        {
            "host": [host] * len(longest),
            "event": number,
            "start_ps": trace.events["start_ps"][longest],
            "duration_ps": trace.events["duration_ps"][longest],
        }
    )
